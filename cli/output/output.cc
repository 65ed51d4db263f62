// SPDX-License-Identifier: Apache-2.0
#include "cli/output/output.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output/text.h"

namespace pnfsrdma::cli {
namespace {

void put(std::FILE* stream, std::string_view text) {
  (void)!std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

// Strings that are no UTF-8 (file names) must not end the program.
std::string dumped(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Output::Output(std::FILE* results, std::FILE* complaints)
    : results_(results),
      complaints_(complaints),
      terminal_(Terminal::of(::fileno(results))),
      complaints_terminal_(Terminal::of(::fileno(complaints))) {}

void Output::text(std::string_view text) {
  put(results_, text);
}

void Output::line(std::string_view text) {
  put(results_, std::string(text) + '\n');
}

void Output::value(const nlohmann::json& value) {
  put(results_, dumped(value, terminal_.interactive ? 2 : -1) + '\n');
}

void Output::note(std::string_view text) {
  if (!json) put(complaints_, std::string(text) + '\n');
}

ExitCode Output::complain(const Failure& failure) {
  if (json) {
    const nlohmann::json problem = {{"title", failure.title},
                                    {"detail", failure.detail},
                                    {"fix", failure.fix},
                                    {"exit_code", static_cast<int>(failure.code)}};
    put(complaints_, dumped(problem, -1) + '\n');
    return failure.code;
  }
  std::string message =
      "pnfsrdma: " + complaints_terminal_.styled(printable(failure.title), Style::kBad) + '\n';
  if (!failure.detail.empty()) message += "  " + printable(failure.detail) + '\n';
  if (!failure.fix.empty()) {
    message += "  " + complaints_terminal_.styled("fix: ", Style::kBold) + printable(failure.fix) + '\n';
  }
  put(complaints_, message);
  return failure.code;
}

}  // namespace pnfsrdma::cli
