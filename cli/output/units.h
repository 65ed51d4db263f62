// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// And as people type them; none: it is no such thing, or more than 2^63.

// "4096", "512M", "10G", "10GiB": by 1024
std::optional<uint64_t> bytes_of(std::string_view text);
// "12", "50K", "3M": by 1000
std::optional<uint64_t> count_of(std::string_view text);
// "90s", "30m", "2h", "7d" in seconds; "0"
std::optional<uint64_t> seconds_of(std::string_view text);
// "2026-11-21T21:00:00.5Z", to the second
std::optional<std::chrono::system_clock::time_point> time_of(const std::string& text);

}  // namespace pnfsrdma::cli
