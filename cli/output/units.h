// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pnfsrdma::cli {

// Numbers as people read them.

// "0 B", "4.0 KiB", "1.5 TiB"
std::string bytes_text(double bytes);
// "12", "3.4 k", "5.6 M": for rates
std::string count_text(double count);
// "12 s", "3 min 12 s", "4 h 5 min", "6 d 7 h"
std::string duration_text(std::chrono::seconds duration);
// "4.2 us", "1.3 ms", "2.1 s"
std::string latency_text(std::chrono::duration<double> latency);

}  // namespace pnfsrdma::cli
