// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/doctor_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/doctor/checks.h"
#include "cli/output/table.h"
#include "cli/output/text.h"

namespace pnfsrdma::cli {
namespace {

Style style_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return Style::kGood;
    case Verdict::kWarning:
      return Style::kWarning;
    case Verdict::kProblem:
      return Style::kBad;
  }
  return Style::kPlain;
}

size_t count(const Findings& findings, Verdict verdict) {
  return static_cast<size_t>(std::ranges::count(findings, verdict, &Finding::verdict));
}

std::string counted(size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// Long texts continue below each other instead of being cut: a fix must be whole.
std::string wrapped(std::string_view text, size_t indent, size_t columns) {
  std::string all;
  const size_t room = columns > indent + 20 ? columns - indent : 0;
  size_t used = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string word = printable(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t width = columns_of(word);
    if (used > 0 && room > 0 && used + 1 + width > room) {
      all += '\n' + std::string(indent, ' ');
      used = 0;
    }
    if (used > 0) all += ' ';
    all += word;
    used += (used > 0 ? 1 : 0) + width;
  }
  return all;
}

}  // namespace

Findings examine(const Host& host, const DoctorOptions& options) {
  Findings all;
  const auto add = [&](Findings some) {
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  };
  add(check_kernel(host));
  add(check_memory(host));
  add(check_pmem(host));
  add(check_rdma(host));
  add(check_ports(host));
  add(check_fuse(host));
  add(check_source_port(host));
  add(check_clock(host));
  add(check_cluster(host));
  add(check_control(host));
  if (!options.server.empty()) add(check_server(host, options.server));
  if (options.console != nullptr) add(check_console(*options.console, std::chrono::system_clock::now()));
  return all;
}

std::string doctor_report(const Findings& findings, const Terminal& terminal) {
  constexpr size_t kVerdictWidth = 7;
  size_t widest = 0;
  for (const Finding& finding : findings) widest = std::max(widest, columns_of(printable(finding.subject)));
  const size_t indent = kVerdictWidth + 2 + widest + 2;
  std::string text;
  for (const Finding& finding : findings) {
    const std::string verdict = to_string(finding.verdict);
    const std::string subject = printable(finding.subject);
    text += terminal.styled(verdict, style_of(finding.verdict)) +
            std::string(kVerdictWidth + 2 - verdict.size(), ' ');
    text += subject + std::string(widest + 2 - columns_of(subject), ' ');
    text += wrapped(finding.what, indent, terminal.columns) + '\n';
    if (!finding.fix.empty()) {
      text += std::string(indent, ' ') + wrapped("fix: " + finding.fix, indent, terminal.columns) + '\n';
    }
  }
  const size_t problems = count(findings, Verdict::kProblem);
  const size_t warnings = count(findings, Verdict::kWarning);
  return text + fmt::format("\n{}, {}, {} ok\n", counted(problems, "problem"), counted(warnings, "warning"),
                            count(findings, Verdict::kOk));
}

nlohmann::json doctor_json(const Findings& findings) {
  auto all = nlohmann::json::array();
  for (const Finding& finding : findings) {
    all.push_back({{"subject", finding.subject},
                   {"verdict", to_string(finding.verdict)},
                   {"what", finding.what},
                   {"fix", finding.fix}});
  }
  return {{"findings", std::move(all)},
          {"problems", count(findings, Verdict::kProblem)},
          {"warnings", count(findings, Verdict::kWarning)}};
}

ExitCode run_doctor(const Host& host, const DoctorOptions& options, Output& output) {
  const Findings findings = examine(host, options);
  if (output.json) {
    output.value(doctor_json(findings));
  } else {
    output.text(doctor_report(findings, output.terminal()));
  }
  return count(findings, Verdict::kProblem) > 0 ? ExitCode::kFailed : ExitCode::kDone;
}

}  // namespace pnfsrdma::cli
