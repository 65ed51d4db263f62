// SPDX-License-Identifier: Apache-2.0
#include "server/console/console.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "server/console/api.h"
#include "server/console/certificate.h"
#include "server/console/http_server.h"
#include "server/console/sampler.h"
#include "server/console/secret.h"
#include "shared/base/log.h"
#include "shared/base/log_observer.h"

namespace pnfsrdma::console {

namespace {

constexpr int kDaysWarned = 30;

Result<> make_private_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) {
    std::filesystem::permissions(path, std::filesystem::perms::owner_all,
                                 std::filesystem::perm_options::replace, error);
  }
  if (error) return fail(error.value(), "making the console's directory " + path);
  return {};
}

CertificateFiles certificate_files(const ConsoleOptions& options) {
  if (!options.certificate.empty()) return {options.certificate, options.key};
  return {options.directory + "/certificate.pem", options.directory + "/key.pem"};
}

HealthCheck check_of(const TlsContext& context, const std::string& path) {
  const auto days = days_left(context);
  if (!days)
    return {"certificate", HealthStatus::kWarning, days.error().to_string(), "See console.certificate."};
  const std::string detail = *days < 0 ? "It has expired." : "Valid for " + std::to_string(*days) + " days.";
  if (*days > kDaysWarned) return {"certificate", HealthStatus::kOk, detail, ""};
  return {"certificate", *days < 0 ? HealthStatus::kFailed : HealthStatus::kWarning, detail,
          "Replace " + path + " and its key, then restart (one of our own: remove both files)."};
}

// What alerts call this server.
std::string server_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

// In the order they are built on each other.
struct Console::Machinery {
  Machinery(const Parts& given, ConsoleOptions chosen)
      : parts(given),
        options(std::move(chosen)),
        loop(parts.loop),
        numbers(loop, [this] { return parts.administration.numbers(); }),
        holdings(loop, Snapshot<Holdings>::Take(
                           [this](auto done) { parts.administration.holdings(std::move(done)); })),
        blocks(loop, parts.administration),
        accounts(loop, parts.records, parts.clock),
        sessions(parts.clock, parts.random),
        passwords(options.password_cost),
        attempts(parts.clock),
        setup(options.directory + "/setup-token", parts.random),
        events(parts.clock),
        sampler(loop, parts.administration, throughput, history) {}

  Result<> prepare();
  void make_alerts();
  std::optional<double> certificate_seconds_left() const;
  void listen_at_start();
  Result<> listen_unix();
  Result<> listen_tcp(const std::string& address);
  void listen_beyond_loopback();

  const Parts parts;
  const ConsoleOptions options;
  ControlLoop loop;
  Snapshot<Numbers> numbers;
  Snapshot<Holdings> holdings;
  BlockMaps blocks;
  ApiDocument document;
  Accounts accounts;
  LoginSessions sessions;
  PasswordHasher passwords;
  LoginLimit attempts;
  SetupToken setup;
  std::unique_ptr<AuditLog> audit;
  EventLog events;
  Throughput throughput;
  History history;
  Sampler sampler;
  TlsContext tls;
  StaticFiles files;
  UnixNames names{parts.clock};
  std::unique_ptr<Webhook> webhook;
  std::unique_ptr<AlertKeeper> alerts;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Api> api;
  struct Servers {
    std::vector<std::unique_ptr<HttpServer>> open;
    std::vector<std::string> waiting;  // for the first password
  };
  Guarded<Servers> servers;
};

Result<> Console::Machinery::prepare() {
  TRY(make_private_directory(options.directory));
  TRY(accounts.load());
  TRY_ASSIGN(audit, AuditLog::open(options.directory));
  TRY_ASSIGN(files, StaticFiles::load(options.web_directory));
  if (options.certificate.empty()) TRY(make_certificate_if_missing(certificate_files(options)));
  TRY_ASSIGN(tls, load_tls_context(certificate_files(options)));
  make_alerts();
  backend.reset(new Backend{
      .loop = loop,
      .administration = parts.administration,
      .numbers = numbers,
      .holdings = holdings,
      .blocks = blocks,
      .document = document,
      .accounts = accounts,
      .sessions = sessions,
      .passwords = passwords,
      .attempts = attempts,
      .setup = setup,
      .audit = *audit,
      .events = events,
      .throughput = throughput,
      .history = history,
      .alerts = *alerts,
      .webhook = *webhook,
      .names = names,
      .clock = parts.clock,
      .random = parts.random,
      .version = options.version,
      .run = new_name(parts.random),
      .configuration_file = options.configuration_file,
      .password_set = [this] { listen_beyond_loopback(); },
      .check_certificate = [this] { return check_of(tls, certificate_files(options).certificate); },
      .certificate_seconds_left = [this] { return certificate_seconds_left(); }});
  api = std::make_unique<Api>(*backend, files);
  if (accounts.password_set()) return {};
  TRY(setup.create());
  log_warning(
      "console",
      "password-missing what=\"no password is set: only this host can reach the console\" "
      "token_file={} fix=\"open the web console from this host with the token in that file, or run as "
      "root: pnfsrdma setup\"",
      setup.path());
  return {};
}

std::optional<double> Console::Machinery::certificate_seconds_left() const {
  const auto left = seconds_left(tls);
  return left ? std::optional(*left) : std::nullopt;
}

void Console::Machinery::make_alerts() {
  webhook = std::make_unique<Webhook>(parts.clock, options.directory, server_name());
  alerts = std::make_unique<AlertKeeper>(
      AlertKeeper::Parts{.clock = parts.clock,
                         .directory = options.directory,
                         .server = server_name(),
                         .numbers =
                             [this] {
                               webhook->end_overdue();
                               return numbers.get();
                             },
                         .certificate_seconds_left = [this] { return certificate_seconds_left(); },
                         .tell = [this](const Alert& alert) { webhook->tell(alert); }});
}

Result<> Console::Machinery::listen_tcp(const std::string& address) {
  TRY_ASSIGN(ListeningSocket socket, ListeningSocket::tcp(address));
  auto server = std::make_unique<HttpServer>(
      std::move(socket), tls.get(), [this](const HttpRequest& request) { return api->handle(request); });
  log_info("console", "listening address=https://{} certificate={}", server->address(),
           fingerprint_of(tls).value_or("unknown"));
  servers.lock()->open.push_back(std::move(server));
  return {};
}

// One place that cannot be listened on keeps nobody from the others.
void Console::Machinery::listen_at_start() {
  if (!options.socket.empty()) {
    if (const auto listening = listen_unix(); !listening)
      log_error("console", "not-listening error=\"{}\"", listening.error().to_string());
  }
  for (const std::string& address : options.listen) {
    if (!is_loopback(address) && !accounts.password_set()) {
      log_warning("console", "not-listening address={} what=\"no password is set yet\"", address);
      servers.lock()->waiting.push_back(address);
    } else if (const auto listening = listen_tcp(address); !listening) {
      log_error("console", "not-listening error=\"{}\"", listening.error().to_string());
    }
  }
}

Result<> Console::Machinery::listen_unix() {
  std::error_code ignored;  // listening says what is wrong with the place
  std::filesystem::create_directories(std::filesystem::path(options.socket).parent_path(), ignored);
  TRY_ASSIGN(ListeningSocket socket, ListeningSocket::unix_path(options.socket));
  servers.lock()->open.push_back(std::make_unique<HttpServer>(
      std::move(socket), nullptr, [this](const HttpRequest& request) { return api->handle(request); }));
  log_info("console", "listening address=unix:{}", options.socket);
  return {};
}

// In the thread of the request that has set the first password.
void Console::Machinery::listen_beyond_loopback() {
  // Not inside of the for: with newer compilers the lock would be held as long as the loop runs.
  const std::vector<std::string> waiting = std::exchange(servers.lock()->waiting, {});
  for (const std::string& address : waiting) {
    const auto listening = listen_tcp(address);
    if (!listening) log_error("console", "not-listening error=\"{}\"", listening.error().to_string());
  }
}

Console::Console(const Parts& parts, ConsoleOptions options)
    : machinery_(std::make_unique<Machinery>(parts, std::move(options))) {
  observe_log([events = &machinery_->events](LogLevel level, std::string_view component,
                                             std::string_view text) { events->add(level, component, text); });
}

Console::~Console() {
  machinery_->loop.stop();
  machinery_->events.stop();
  // Outside of the lock: a request that runs may want to add one.
  auto closing = std::exchange(machinery_->servers.lock()->open, {});
  closing.clear();
  closing = std::exchange(machinery_->servers.lock()->open, {});
  closing.clear();
  observe_log(nullptr);
}

Result<> Console::start() {
  TRY(machinery_->prepare());
  machinery_->sampler.start();
  machinery_->alerts->start();
  machinery_->listen_at_start();
  return {};
}

std::vector<std::string> Console::addresses() {
  std::vector<std::string> addresses;
  auto servers = machinery_->servers.lock();
  for (const auto& server : servers->open) {
    const std::string& address = server->address();
    addresses.push_back((address.starts_with('/') ? "unix:" : "https://") + address);
  }
  return addresses;
}

}  // namespace pnfsrdma::console
