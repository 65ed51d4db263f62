// SPDX-License-Identifier: Apache-2.0
#include "cli/output/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output/text.h"

namespace pnfsrdma::cli {

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputc('\n', stream_);
}

std::string ProgressBar::line(double progress, const std::string& message, size_t columns) {
  constexpr size_t kBarMax = 30;
  const double share = std::clamp(progress, 0.0, 1.0);
  const size_t width = std::clamp(columns / 3, size_t{5}, kBarMax);
  const auto full = static_cast<size_t>(share * static_cast<double>(width) + 1e-9);
  const std::string text = fmt::format("[{}{}] {:3.0f} %  {}", std::string(full, '#'),
                                       std::string(width - full, '.'), share * 100, printable(message));
  return shortened(text, columns > 1 ? columns - 1 : 0);
}

void ProgressBar::show(double progress, const std::string& message) {
  draw(line(progress, message, terminal_.columns));
}

void ProgressBar::show(const std::string& message) {
  draw(shortened(printable(message), terminal_.columns > 1 ? terminal_.columns - 1 : 0));
}

void ProgressBar::draw(const std::string& line) {
  if (!terminal_.interactive) return;
  drawn_ = true;
  fmt::print(stream_, "\r\033[K{}", line);
  std::fflush(stream_);
}

}  // namespace pnfsrdma::cli
