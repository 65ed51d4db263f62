// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// A member of etcd, as etcd knows it.
struct EtcdMember {
  std::string id;    // decimal
  std::string name;  // empty: it has not started yet
  std::string peer_url;
  std::string client_url;  // empty: it has not started yet
  bool learner = false;    // has no vote yet
};

// The members of an etcd, by its JSON gateway (etcd 3.4 and later). Asks one endpoint after the other until one
// answers.
// Errors: kUnreachable: none answers; kFailed: etcd refuses, with its words. Each call blocks, for some seconds at each
// endpoint. One thread.
class EtcdGateway {
 public:
  // Paths of PEM files.
  struct Files {
    std::string authority;
    std::string certificate;
    std::string key;
  };
  EtcdGateway(std::vector<std::string> endpoints, Files files);

  Outcome<std::vector<EtcdMember>> members() const;
  Outcome<> add_learner(const std::string& peer_url) const;
  Outcome<> promote(const std::string& id) const;
  Outcome<> remove(const std::string& id) const;
  // Whether there was such a key.
  Outcome<bool> erase(const std::string& key) const;
  // That member itself answers, and knows a leader.
  bool is_well(const std::string& endpoint) const;

 private:
  Outcome<nlohmann::json> call(const std::string& path, const nlohmann::json& request) const;

  const std::vector<std::string> endpoints_;
  const Files files_;
};

// "https://192.0.2.1:2379"; an IPv6 address gets its brackets.
std::string https_url(const std::string& address, uint16_t port);

}  // namespace pnfsrdma::cli
