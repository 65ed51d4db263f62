// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/host_steps.h"
#include "cli/cluster/invitation.h"
#include "cli/cluster/member_settings.h"
#include "cli/output/failure.h"
#include "cli/output/output.h"
#include "shared/base/clock.h"

// How a host becomes a member of the cluster, lets another one in, and leaves: pnfsrdma cluster init, join, invite,
// leave. Each is a row of steps of which every one is done or not, after a crash too; the same command again does those
// that are missing.
namespace pnfsrdma::cli {

struct MembershipOptions {
  MemberPaths paths;
  std::string data_directory = "/var/lib/etcd";  // etcd's own gets a name of its own in it
  bool dry_run = false;
  bool starts = true;  // starts and stops units; else it says how
  bool force = false;  // leave, against better advice
};

class Membership {
 public:
  // `output` outlives this.
  Membership(MembershipOptions options, Output& output);

  // As the first member. `wanted`: without data_directory; without a name, the host's.
  Outcome<> init(MemberSettings wanted);
  // Goes on with what was begun, without a token. Of a host that is a member already it writes the other members of now
  // into the configuration of its metadata server. A token for a host with bricks alone gives it a certificate, and
  // nothing else of the cluster.
  Outcome<> join(const std::optional<InvitationToken>& token, MemberSettings wanted);
  // Lets one host in, and waits for it. kUsage: the address is none; kConflict: it is a member's.
  Outcome<> invite(const Invited& invited, uint16_t port, Milliseconds patience);
  // This host, or another one that is lost for good. `leads`: whether the metadata server of that name leads while no
  // other one follows; asked if this host has one. `sure`: asks whoever types the command.
  using Leads = std::function<Outcome<bool>(const std::string& name)>;
  using Sure = std::function<Outcome<>(const std::string& what, const std::string& name)>;
  Outcome<> leave(const std::string& other, const Leads& leads, const Sure& sure);

  // HostSteps::report().
  void report() const { steps_.report(); }

 private:
  Outcome<std::optional<MemberSettings>> read_settings() const;
  Outcome<MemberSettings> settle(MemberSettings wanted);
  Outcome<> check_host(const MemberSettings& settings) const;
  Outcome<> write_etcd_settings(const std::string& text);
  Outcome<> make_certificates(const MemberSettings& settings, const CertificatePair& authority);
  Outcome<> be_let_in(const InvitationToken& token, MemberSettings& settings);
  Outcome<> become_brick(const InvitationToken& token, const MemberSettings& wanted,
                         const std::optional<MemberSettings>& known);
  Outcome<> check_invited(const Invited& invited, const MemberSettings& settings) const;
  Outcome<JoinAnswer> welcome(const JoinRequest& request, const Invited& invited,
                              const MemberSettings& settings, const CertificatePair& authority) const;
  Outcome<> enter_etcd(MemberSettings& settings);
  Outcome<> configure_server(const MemberSettings& settings);
  Outcome<> start_etcd(const MemberSettings& settings);
  Outcome<> get_vote(const MemberSettings& settings);
  // The other members that have a vote, and how many of them answer.
  struct Rest {
    size_t voters = 0;
    size_t well = 0;
  };
  Outcome<> may_leave(const MemberSettings& settings, const EtcdMember& target, const Rest& rest,
                      const Leads& leads) const;
  Outcome<> forget_server(const EtcdGateway& etcd, const MemberSettings& settings, const std::string& name);
  Outcome<> take_out(const EtcdGateway& etcd, const EtcdMember& target, const MemberSettings& settings,
                     bool mine);
  Outcome<> leave_host(const MemberSettings& settings, bool last);
  Outcome<> stop_unit(const std::string& unit);
  EtcdGateway gateway(const MemberSettings& settings) const;

  const MembershipOptions options_;
  Output& output_;
  HostSteps steps_;
};

}  // namespace pnfsrdma::cli
