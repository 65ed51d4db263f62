// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/membership.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "cli/cluster/brick_host.h"
#include "cli/cluster/json_text.h"
#include "cli/output/program.h"
#include "shared/base/bytes.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

constexpr const char* kEtcdUser = "etcd";
constexpr const char* kServerUser = "pnfsrdma";
constexpr const char* kEtcdUnit = "etcd";
constexpr const char* kServerUnit = "pnfsrdma-mdsd";
constexpr const char* kLogKey = "metadata_log";
constexpr const char* kGoOn = "pnfsrdma cluster join, again without a token, goes on";
constexpr auto kStartPatience = std::chrono::seconds(30);
// A learner has to have what the others have, before it gets its vote; and etcd changes its members only when those
// that it has know each other for some seconds.
constexpr auto kMembersPatience = std::chrono::seconds(60);
constexpr Milliseconds kLookAgain{200};
constexpr size_t kSecretBytes = 32;
constexpr int kRenewedBeforeDays = 365;

// What etcd refuses now it may do in a moment.
template <typename Step>
Outcome<> until_done(Step step) {
  const SteadyTime end = steady_now() + kMembersPatience;
  for (;;) {
    Outcome<> done = step();
    if (done || steady_now() > end) return done;
    sleep_for(kLookAgain);
  }
}

std::string random_text(size_t bytes) {
  std::vector<std::byte> random(bytes);
  SystemRandom().fill(random);
  return to_hex(random);
}

Outcome<std::string> name_of_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0)
    return refuse(ExitCode::kFailed, Error::from_errno("gethostname").to_string());
  return std::string(name.data());
}

const EtcdMember* find_member(const std::vector<EtcdMember>& members, const std::string& peer_url) {
  const auto found = std::ranges::find(members, peer_url, &EtcdMember::peer_url);
  return found == members.end() ? nullptr : &*found;
}

std::string description_of(const MemberSettings& settings) {
  return to_json(settings).dump(2) + "\n";
}

// "192.0.2.1" of "https://192.0.2.1:2379".
std::string host_in(const std::string& url) {
  const std::string_view scheme = "https://";
  std::string host = url.starts_with(scheme) ? url.substr(scheme.size()) : url;
  host = host.substr(0, host.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

// Those that clients may ask, but for this one.
std::vector<std::string> contacts_in(const std::vector<EtcdMember>& members, const MemberSettings& settings) {
  std::vector<std::string> contacts;
  for (const EtcdMember& member : members)
    if (member.peer_url != settings.peer_url() && !member.client_url.empty() && !member.learner)
      contacts.push_back(member.client_url);
  return contacts;
}

}  // namespace

Membership::Membership(MembershipOptions options, Output& output)
    : options_(std::move(options)),
      output_(output),
      steps_(options_.dry_run, options_.paths.directory, output) {}

EtcdGateway Membership::gateway(const MemberSettings& settings) const {
  const MemberPaths& paths = options_.paths;
  return {settings.endpoints(), {paths.authority(), paths.etcd_certificate(), paths.etcd_key()}};
}

Outcome<std::optional<MemberSettings>> Membership::read_settings() const {
  TRY_ASSIGN(const auto text, read_host_file(options_.paths.member()));
  if (!text) return std::nullopt;
  const json from = json::parse(*text, nullptr, false);
  auto settings = from.is_object() ? member_settings_from(from) : member_settings_from(json::object());
  if (!settings) {
    return refuse(ExitCode::kFailed, options_.paths.member() + ": " + settings.error().title,
                  "It is what this host knows of its place in the cluster.", "take it from a backup");
  }
  return *settings;
}

// What there is already counts. A new member's description is written before all else, so that its names are the same
// when the command runs again.
Outcome<MemberSettings> Membership::settle(MemberSettings wanted) {
  TRY_ASSIGN(const auto known, read_settings());
  // One that was never let in may begin once more, as another member.
  if (known && (known->first || !known->contacts.empty())) {
    if (known->first != wanted.first || known->witness != wanted.witness ||
        (!wanted.name.empty() && known->name != wanted.name) ||
        (!wanted.address.empty() && known->address != wanted.address))
      return refuse(ExitCode::kConflict,
                    fmt::format("this host is member {} at {} already", known->name, known->address), {},
                    known->first ? "pnfsrdma cluster leave, first" : kGoOn);
    return *known;
  }
  if (wanted.name.empty()) {
    TRY_ASSIGN(wanted.name, name_of_host());
  }
  TRY(check(wanted));
  TRY(check_host(wanted));
  wanted.data_directory = options_.data_directory + "/pnfsrdma-" + random_text(4);
  TRY(steps_.write({.path = options_.paths.member(), .content = description_of(wanted)},
                   "what this host is in the cluster"));
  return wanted;
}

// Before anything is changed: that all files can be.
Outcome<> Membership::check_host(const MemberSettings& settings) const {
  TRY_ASSIGN(const auto etcd, read_host_file(options_.paths.etcd_config));
  if (etcd && !may_replace_etcd_config(*etcd)) {
    return refuse(ExitCode::kConflict, options_.paths.etcd_config + " is of another etcd",
                  "The log needs an etcd of its own: its history is compacted.",
                  "if that one is not needed, move the file away; --etcd-config FILE for another unit");
  }
  if (settings.witness) return {};
  TRY_ASSIGN(const auto config, read_host_file(options_.paths.config));
  if (!config) {
    return refuse(ExitCode::kNotFound, "there is no " + options_.paths.config,
                  "A member with a metadata server needs its configuration.",
                  "install pnfsrdma-server; --witness for a host without one");
  }
  const auto object = read_json_text(*config);
  if (!object) return refuse(ExitCode::kFailed, options_.paths.config + " is no JSON object");
  if (object->contains(kLogKey)) {
    return refuse(ExitCode::kConflict, options_.paths.config + " has metadata_log already",
                  "This host has another etcd. These commands set up one of their own.",
                  "see the guide, if its log shall be left: pnfsrdma-mdsd --leave-log");
  }
  return {};
}

Outcome<> Membership::write_etcd_settings(const std::string& text) {
  return steps_.write({.path = options_.paths.etcd_config, .content = text, .keep_copy = true},
                      "etcd's settings", text);
}

Outcome<> Membership::make_certificates(const MemberSettings& settings, const CertificatePair& authority) {
  const auto make = [&](const std::string& key_path, const std::string& path, const char* user) -> Outcome<> {
    TRY_ASSIGN(const auto known, read_host_file(path));
    if (known) {
      TRY_ASSIGN(const int days, days_left(*known));
      if (days > kRenewedBeforeDays) return {};
    }
    TRY_ASSIGN(const std::string key, steps_.private_key(key_path, user));
    TRY_ASSIGN(const std::string public_key, public_key_of(key));
    TRY_ASSIGN(const std::string certificate, sign(authority, public_key, settings.name, settings.address));
    return steps_.write({.path = path, .content = certificate}, "a certificate");
  };
  const MemberPaths& paths = options_.paths;
  TRY(make(paths.etcd_key(), paths.etcd_certificate(), kEtcdUser));
  if (settings.witness) return {};
  return make(paths.mds_key(), paths.mds_certificate(), kServerUser);
}

Outcome<> Membership::init(MemberSettings wanted) {
  wanted.first = true;
  TRY_ASSIGN(const MemberSettings settings, settle(std::move(wanted)));
  const MemberPaths& paths = options_.paths;
  TRY_ASSIGN(const auto certificate, read_host_file(paths.authority()));
  TRY_ASSIGN(const auto key, read_host_file(paths.authority_key()));
  CertificatePair authority{certificate.value_or(""), key.value_or("")};
  if (!certificate || !key) {  // the certificate is written last: without it nothing is signed yet
    TRY_ASSIGN(authority, make_authority());
    TRY(steps_.write_secret(paths.authority_key(), authority.key, ""));
    TRY(steps_.write({.path = paths.authority(), .content = authority.certificate},
                     "the cluster's authority"));
  }
  TRY(make_certificates(settings, authority));
  // Later it may have been changed by an administrator.
  if (!std::filesystem::exists(settings.data_directory)) {
    TRY(write_etcd_settings(etcd_environment(settings, paths, {})));
  }
  if (!settings.witness) TRY(configure_server(settings));
  TRY(start_etcd(settings));
  if (!settings.witness)
    steps_.next(fmt::format("systemctl restart {} (mounts wait meanwhile); it begins the log", kServerUnit));
  steps_.next(
      "pnfsrdma cluster invite, for each other host; pnfsrdma cluster invite --witness for a small one");
  return settings.witness ? Outcome<>() : tell_of_brick_control(steps_, options_.paths);
}

Outcome<> Membership::join(const std::optional<InvitationToken>& token, MemberSettings wanted) {
  TRY_ASSIGN(const auto known, read_settings());
  if (token && token->guest == Guest::kBrick) return become_brick(*token, wanted, known);
  if (!known && !token)
    return refuse(ExitCode::kUsage, "this host is no member yet", {},
                  "pnfsrdma cluster invite, on a member, makes a token: pnfsrdma cluster join TOKEN");
  MemberSettings settings = known.value_or(wanted);
  if (!known || token) {
    wanted.witness = token->guest == Guest::kWitness;
    TRY_ASSIGN(settings, settle(std::move(wanted)));
  }
  if (token) TRY(be_let_in(*token, settings));
  if (options_.dry_run && !known) {
    steps_.did("ask a member for certificates, with the token");
    steps_.did("add this host to etcd, without a vote until it has what the others have");
    steps_.did("write " + options_.paths.etcd_config + " and start etcd");
    if (!settings.witness) steps_.did("write metadata_log into " + options_.paths.config);
    return {};
  }
  const MemberPaths& paths = options_.paths;
  TRY_ASSIGN(const auto certificate, read_host_file(paths.authority()));
  TRY_ASSIGN(const auto key, read_host_file(paths.authority_key()));
  if (certificate && key) TRY(make_certificates(settings, {*certificate, *key}));
  TRY_ASSIGN(const auto mine, read_host_file(paths.etcd_certificate()));
  if (!mine)
    return refuse(ExitCode::kFailed, "this host has no certificate yet", {},
                  "pnfsrdma cluster invite, on a member, makes a token: pnfsrdma cluster join TOKEN");
  TRY(enter_etcd(settings));
  if (!settings.witness) TRY(configure_server(settings));
  TRY(get_vote(settings));
  return settings.witness ? Outcome<>() : tell_of_brick_control(steps_, options_.paths);
}

Outcome<> Membership::become_brick(const InvitationToken& token, const MemberSettings& wanted,
                                   const std::optional<MemberSettings>& known) {
  const MemberPaths& paths = options_.paths;
  if (known)
    return refuse(ExitCode::kConflict, fmt::format("this host is member {} of the cluster", known->name),
                  "It has certificates already, which serve for its bricks, too.",
                  "in \"control\" of " + paths.brick_config + ": \"tls\": " + brick_tls_of(paths).dump());
  std::string name = wanted.name;
  if (name.empty()) {
    TRY_ASSIGN(name, name_of_host());
  }
  return become_brick_host(steps_, paths, token, name, wanted.address);
}

// Keys stay on this host; the authority's comes here if this host shall be able to invite.
Outcome<> Membership::be_let_in(const InvitationToken& token, MemberSettings& settings) {
  if (options_.dry_run) return {};
  const MemberPaths& paths = options_.paths;
  TRY_ASSIGN(const std::string authority, authority_of(token));
  TRY_ASSIGN(const auto known, read_host_file(paths.authority()));
  if (known && *known != authority && !settings.contacts.empty())
    return refuse(ExitCode::kConflict, "this host is a member of another cluster", {},
                  "pnfsrdma cluster leave, first");
  JoinRequest request{.name = settings.name, .address = settings.address, .public_keys = {}};
  TRY_ASSIGN(const std::string etcd_key, steps_.private_key(paths.etcd_key(), kEtcdUser));
  TRY_ASSIGN(request.public_keys.emplace_back(), public_key_of(etcd_key));
  if (!settings.witness) {
    TRY_ASSIGN(const std::string mds_key, steps_.private_key(paths.mds_key(), kServerUser));
    TRY_ASSIGN(request.public_keys.emplace_back(), public_key_of(mds_key));
  }
  TRY_ASSIGN(const JoinAnswer answer, ask_to_join(token, authority, request));
  steps_.did("ask " + token.door + " for certificates");
  TRY(steps_.write({.path = paths.authority(), .content = authority}, "the cluster's authority"));
  settings.prefix = answer.prefix;
  settings.contacts = answer.endpoints;
  TRY(steps_.write({.path = paths.member(), .content = description_of(settings)},
                   "what this host is in the cluster"));
  if (!settings.witness) {
    TRY(steps_.write_secret(paths.authority_key(), answer.authority_key, ""));
    TRY(steps_.write({.path = paths.mds_certificate(), .content = answer.certificates[1]}, "a certificate"));
  }
  return steps_.write({.path = paths.etcd_certificate(), .content = answer.certificates[0]}, "a certificate");
}

// A member without a vote, until it has what the others have: they lose nothing if it never starts.
Outcome<> Membership::enter_etcd(MemberSettings& settings) {
  TRY_ASSIGN(auto members, gateway(settings).members());
  if (find_member(members, settings.peer_url()) == nullptr) {
    if (settings.first)
      return refuse(ExitCode::kFailed, "etcd does not know this host any more", {}, "pnfsrdma cluster leave");
    if (!options_.dry_run) {
      TRY(until_done([&] { return gateway(settings).add_learner(settings.peer_url()); }));
      TRY_ASSIGN(members, gateway(settings).members());
    }
    steps_.did("add " + settings.name + " to etcd, without a vote until it has what the others have");
  }
  const auto contacts = contacts_in(members, settings);
  if (contacts != settings.contacts) {
    settings.contacts = contacts;
    TRY(steps_.write({.path = options_.paths.member(), .content = description_of(settings)},
                     "what this host is in the cluster"));
  }
  const EtcdMember* const mine = find_member(members, settings.peer_url());
  if (mine != nullptr && !mine->name.empty()) return {};  // it has started: etcd has its own list by now
  for (const EtcdMember& member : members) {
    if (member.name.empty() && member.peer_url != settings.peer_url())
      return refuse(ExitCode::kConflict, "etcd waits for another member, " + member.peer_url + ", to start",
                    {}, "start it, or `pnfsrdma cluster leave` there; " + std::string(kGoOn));
  }
  TRY(write_etcd_settings(etcd_environment(settings, options_.paths, members)));
  return start_etcd(settings);
}

Outcome<> Membership::configure_server(const MemberSettings& settings) {
  const std::string& path = options_.paths.config;
  TRY_ASSIGN(const auto text, read_host_file(path));
  if (!text) return refuse(ExitCode::kNotFound, "there is no " + path);
  const auto before = read_json_text(*text);
  if (!before) return refuse(ExitCode::kFailed, path + " is no JSON object");
  const json known = before->value(kLogKey, json::object());
  const json log = metadata_log_of(settings, options_.paths, known);
  if (log == known) return {};
  TRY_ASSIGN(const std::string changed, with_member(*text, kLogKey, log));
  TRY(steps_.try_config(daemon_program(), path, changed));
  TRY(steps_.write({.path = path, .content = changed, .keep_copy = true}, kLogKey, log.dump(2) + "\n"));
  if (known.contains("endpoints"))
    steps_.next(fmt::format("systemctl restart {}, when it suits: until then it knows the members of before",
                            kServerUnit));
  return {};
}

Outcome<> Membership::start_etcd(const MemberSettings& settings) {
  const EtcdGateway etcd = gateway(settings);
  if (!options_.dry_run && etcd.is_well(settings.client_url())) return {};
  if (!options_.starts) {
    steps_.next(fmt::format("systemctl enable {0}; systemctl restart {0}", kEtcdUnit));
    return {};
  }
  steps_.did("start etcd");
  if (options_.dry_run) return {};
  TRY(output_of({"systemctl", "enable", kEtcdUnit}));
  TRY(output_of({"systemctl", "restart", kEtcdUnit}));
  for (const SteadyTime end = steady_now() + kStartPatience; !etcd.is_well(settings.client_url());) {
    if (steady_now() > end)
      return refuse(ExitCode::kFailed, "etcd has started, and does not answer at " + settings.client_url(),
                    {}, "journalctl -u etcd; the same command goes on");
    sleep_for(kLookAgain);
  }
  return {};
}

Outcome<> Membership::get_vote(const MemberSettings& settings) {
  const EtcdGateway etcd = gateway(settings);
  TRY_ASSIGN(const auto members, etcd.members());
  const EtcdMember* const mine = find_member(members, settings.peer_url());
  if (mine == nullptr || !mine->learner) return {};
  if (mine->name.empty() && !options_.starts) {
    steps_.next("when etcd runs: pnfsrdma cluster join, again without a token, gives it its vote");
    return {};
  }
  steps_.did("give " + settings.name + " its vote in etcd");
  if (options_.dry_run) return {};
  if (const auto promoted = until_done([&] { return etcd.promote(mine->id); }); !promoted)
    return refuse(ExitCode::kFailed, "etcd does not give this host its vote", promoted.error().title, kGoOn);
  if (settings.witness) return {};
  steps_.next(
      "if the other metadata servers have served before: stop the one that serves, copy its metadata "
      "directory "
      "(/var/lib/pnfsrdma/mds/metadata) to this host, start it again");
  steps_.next(
      fmt::format("systemctl enable {0}; systemctl restart {0}; then pnfsrdma cluster status", kServerUnit));
  return {};
}

// A certificate for a member's address would serve for its etcd, and for its copies of the metadata.
Outcome<> Membership::check_invited(const Invited& invited, const MemberSettings& settings) const {
  if (invited.guest != Guest::kBrick) return {};
  TRY(check({.name = settings.name, .address = invited.address}));
  std::vector<std::string> members{settings.client_url()};
  members.insert(members.end(), settings.contacts.begin(), settings.contacts.end());
  for (const std::string& member : members)
    if (same_address(invited.address, host_in(member)))
      return refuse(ExitCode::kConflict, invited.address + " is the address of a member",
                    "It has certificates already, which serve for its bricks, too.");
  return {};
}

// What a guest that has shown the secret is given.
Outcome<JoinAnswer> Membership::welcome(const JoinRequest& request, const Invited& invited,
                                        const MemberSettings& settings,
                                        const CertificatePair& authority) const {
  const Guest guest = invited.guest;
  MemberSettings asked{.name = request.name, .address = request.address};
  TRY(check(asked));
  if (guest == Guest::kBrick && !same_address(request.address, invited.address))
    return refuse(ExitCode::kConflict, "the token is for the host at " + invited.address,
                  "A certificate is for the address that the invitation names.");
  if (request.public_keys.size() != (guest == Guest::kServer ? 2 : 1))
    return refuse(ExitCode::kUsage, "the other program is of another version");
  JoinAnswer given;
  if (guest != Guest::kBrick) {
    TRY_ASSIGN(const auto members, gateway(settings).members());
    const std::string same_host = https_url(request.address, asked.peer_port);
    for (const EtcdMember& member : members)
      if (member.name == request.name &&
          !member.peer_url.starts_with(same_host.substr(0, same_host.rfind(':') + 1)))
        return refuse(ExitCode::kConflict, "there is a member of the name " + request.name + " already",
                      "--name NAME gives the host another one; pnfsrdma cluster leave " + request.name +
                          ", on a member, takes a lost one out.");
    given.endpoints = contacts_in(members, {});
    given.prefix = settings.prefix;
  }
  if (guest == Guest::kServer) given.authority_key = authority.key;
  const CertificateUse use = guest == Guest::kBrick ? CertificateUse::kBrick : CertificateUse::kMember;
  for (const std::string& public_key : request.public_keys) {
    TRY_ASSIGN(given.certificates.emplace_back(),
               sign(authority, public_key, request.name, request.address, use));
  }
  return given;
}

Outcome<> Membership::invite(const Invited& invited, uint16_t port, Milliseconds patience) {
  TRY_ASSIGN(const auto settings, read_settings());
  if (!settings)
    return refuse(ExitCode::kFailed, "this host is no member of a cluster", {},
                  "pnfsrdma cluster init, on the first host");
  TRY(check_invited(invited, *settings));
  const MemberPaths& paths = options_.paths;
  TRY_ASSIGN(const auto certificate, read_host_file(paths.authority()));
  TRY_ASSIGN(const auto key, read_host_file(paths.authority_key()));
  if (!certificate || !key)
    return refuse(ExitCode::kFailed, "this host cannot invite: it has no key of the cluster's authority",
                  "A witness has none.", "pnfsrdma cluster invite on a host with a metadata server");
  const CertificatePair authority{*certificate, *key};
  InvitationToken token{.door = https_url(settings->address, port),
                        .authority = {},
                        .secret = random_text(kSecretBytes),
                        .guest = invited.guest};
  TRY_ASSIGN(token.authority, fingerprint_of(*certificate));
  const auto answer = [&](const JoinRequest& request) {
    return welcome(request, invited, *settings, authority);
  };
  const auto opened = [&](uint16_t) {
    if (output_.json) {
      output_.value({{"token", token.text()}, {"seconds", patience.count() / 1000}});
      return;
    }
    output_.line(fmt::format("On the other host, within {} minutes, while this waits:",
                             std::max<int64_t>(patience.count() / 60'000, 1)));
    output_.line(fmt::format("  pnfsrdma cluster join --address {} {}",
                             invited.address.empty() ? "ITS_ADDRESS" : invited.address, token.text()));
  };
  TRY_ASSIGN(const JoinRequest came,
             receive_one({settings->address, port, paths.etcd_certificate(), paths.etcd_key()}, token,
                         patience, answer, opened, *certificate));
  if (output_.json) {
    output_.value({{"name", came.name}, {"address", came.address}});
  } else {
    output_.line(came.name + " at " + came.address + " has its certificates.");
  }
  return {};
}

Outcome<> Membership::stop_unit(const std::string& unit) {
  if (!options_.starts) {
    steps_.next("systemctl disable --now " + unit);
    return {};
  }
  steps_.did("stop " + unit);
  if (options_.dry_run) return {};
  TRY(output_of({"systemctl", "disable", "--now", unit}));
  return {};
}

// Why the member must stay; empty: it may go.
Outcome<> Membership::may_leave(const MemberSettings& settings, const EtcdMember& target, const Rest& rest,
                                const Leads& leads) const {
  const bool mine = target.peer_url == settings.peer_url();
  const std::string& name = target.name.empty() ? settings.name : target.name;
  if (!mine && gateway(settings).is_well(target.client_url))
    return refuse(ExitCode::kConflict, name + " answers: it is not lost", {},
                  "pnfsrdma cluster leave, on its host");
  if (rest.voters == 0)
    return refuse(ExitCode::kConflict, name + " is the last member: its etcd has the log", {},
                  "--force gives the cluster up; the metadata stay on this host");
  if (!target.learner && rest.well <= rest.voters / 2)
    return refuse(ExitCode::kConflict,
                  fmt::format("without {} etcd has no quorum: of {} others {} answer, so nobody would serve",
                              name, rest.voters, rest.well),
                  {}, "start the others first; --force if they are lost, too");
  if (!mine || settings.witness) return {};
  TRY_ASSIGN(const bool alone, leads(name));
  if (alone)
    return refuse(ExitCode::kConflict, name + " serves, and no other metadata server can take over", {},
                  "start another one first; --force stops serving");
  return {};
}

Outcome<> Membership::leave(const std::string& other, const Leads& leads, const Sure& sure) {
  TRY_ASSIGN(auto settings, read_settings());
  if (!settings)
    return refuse(ExitCode::kFailed, "this host is no member of a cluster that these commands made", {},
                  "with an etcd of your own: etcdctl member remove ID, etcdctl del /pnfsrdma/member/NAME");
  const bool mine = other.empty() || other == settings->name;
  const std::string name = mine ? settings->name : other;
  const auto asked = gateway(*settings).members();
  // With nobody to ask only what is on this host can be given up.
  if (!asked && !(mine && options_.force))
    return refuse(asked.error().code, asked.error().title, asked.error().detail,
                  mine ? "systemctl status etcd; --force gives up what is on this host, and asks nobody"
                       : "systemctl status etcd");
  const std::vector<EtcdMember> members = asked ? *asked : std::vector<EtcdMember>();
  if (asked) {
    // Whom to ask when the command has to run again: this host's etcd may have ended by then.
    settings->contacts = contacts_in(members, *settings);
    if (!options_.dry_run)
      TRY(write_host_file({.path = options_.paths.member(), .content = description_of(*settings)}));
  }
  const EtcdGateway etcd = gateway(*settings);
  const EtcdMember* target = nullptr;
  Rest rest;
  for (const EtcdMember& member : members) {
    if (mine ? member.peer_url == settings->peer_url() : member.name == name) {
      target = &member;
    } else if (!member.learner) {
      ++rest.voters;
      if (etcd.is_well(member.client_url)) ++rest.well;
    }
  }
  if (!mine && target == nullptr) return forget_server(etcd, *settings, name);
  if (target != nullptr && !options_.force) TRY(may_leave(*settings, *target, rest, leads));
  if (!options_.dry_run)
    TRY(sure(mine ? "This host leaves the cluster: its etcd and its metadata server stop."
                  : "Member " + name + " is taken out: its host must not come back without a new token.",
             name));
  if (mine && !settings->witness) TRY(stop_unit(kServerUnit));
  if (target != nullptr && rest.voters > 0) TRY(take_out(etcd, *target, *settings, mine));
  if (!mine) return {};
  return leave_host(*settings, rest.well == 0);
}

// Of one that is in etcd no more, for which the log is still kept.
Outcome<> Membership::forget_server(const EtcdGateway& etcd, const MemberSettings& settings,
                                    const std::string& name) {
  if (!options_.dry_run) {
    TRY_ASSIGN(const bool known, etcd.erase(settings.prefix + "/member/" + name));
    if (!known)
      return refuse(ExitCode::kNotFound, "there is no member of the name " + name, {},
                    "pnfsrdma cluster status");
  }
  steps_.did("keep the log for " + name + " no more");
  return {};
}

Outcome<> Membership::take_out(const EtcdGateway& etcd, const EtcdMember& target,
                               const MemberSettings& settings, bool mine) {
  const std::string& name = target.name.empty() ? settings.name : target.name;
  if (!options_.dry_run) {
    // The log need not be kept for it any more.
    const auto erased = etcd.erase(settings.prefix + "/member/" + name);
    Outcome<> gone = erased ? Outcome<>() : std::unexpected(erased.error());
    if (gone) gone = until_done([&] { return etcd.remove(target.id); });
    // Without a quorum etcd forgets nobody, and what is on this host can be given up all the same.
    if (!gone && mine && options_.force) return {};
    TRY(gone);
  }
  steps_.did("take " + name + " out of etcd");
  return {};
}

// What it is in the cluster goes last: the same command again finds what is left to do.
Outcome<> Membership::leave_host(const MemberSettings& settings, bool last) {
  TRY(stop_unit(kEtcdUnit));
  const MemberPaths& paths = options_.paths;
  TRY_ASSIGN(const auto config, settings.witness ? Outcome<std::optional<std::string>>(std::nullopt)
                                                 : read_host_file(paths.config));
  if (config) {
    TRY_ASSIGN(const std::string changed, without_member(*config, kLogKey));
    TRY(steps_.write({.path = paths.config, .content = changed, .keep_copy = true}, "without metadata_log"));
  }
  for (const std::string& path : {paths.etcd_config, paths.directory}) {
    std::string aside;
    if (!options_.dry_run) {
      TRY_ASSIGN(aside, put_aside(path));
    }
    steps_.did("put " + path + " aside" + (aside.empty() ? "" : ": " + aside));
  }
  steps_.next("erase " + settings.data_directory + " (etcd's data), when nothing of it is needed");
  if (settings.witness) return {};
  steps_.next(
      last ? fmt::format(
                 "to serve without a cluster: runuser -u pnfsrdma -- pnfsrdma-mdsd --config {} --leave-log; "
                 "systemctl enable --now {}",
                 paths.config, kServerUnit)
           : "erase /var/lib/pnfsrdma/mds/metadata: the other metadata servers have it, and go on with it");
  return {};
}

}  // namespace pnfsrdma::cli
