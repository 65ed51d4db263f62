// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/mds/log/key_server.h"
#include "shared/base/clock.h"

namespace pnfsrdma::mds {

struct EtcdOptions {
  std::vector<std::string>
      endpoints;  // "http://host:port" or "https://host:port"; those that answer are used
  // PEM files. Empty: none; `authority` then is the host's.
  std::string authority;
  std::string certificate;
  std::string key;
  Milliseconds patience{1500};  // with one endpoint, for one answer
};

// Of the cluster that answers.
struct EtcdMember {
  std::string id;  // 16 hexadecimal digits
  std::string name;
  std::vector<std::string> addresses;  // for clients
};
// Of the member that answers.
struct EtcdState {
  std::string version;
  uint64_t database_bytes = 0;
  bool leads = false;  // the other members
};

// That the PEM files are there and belong together: EINVAL, with the key of the configuration that is wrong.
Result<> check_files_of(const EtcdOptions& options);

// etcd through its JSON gateway (etcd 3.4: /v3/kv). Source: etcd.io/docs/v3.4/dev-guide/api_grpc_gateway.
class EtcdClient final : public KeyServer {
 public:
  // Connects when it is first asked.
  explicit EtcdClient(EtcdOptions options);
  ~EtcdClient() override;

  Result<KeyOutcome> commit(const KeyTransaction& transaction) override;
  Result<std::vector<KeyRow>> range(std::string_view from, std::string_view end, size_t limit) override;
  Result<KeyRevision> erase(std::string_view from, std::string_view end) override;
  Result<> forget(KeyRevision before) override;
  // Errors: EIO and what a network gives; EPROTO: no answer of etcd's.
  Result<std::vector<EtcdMember>> members();
  Result<EtcdState> state();

 private:
  struct Connection;
  struct Body;
  // To one endpoint; after a failure the next call goes to the next one.
  Result<Body> call(const std::string& path, const std::string& request);

  const EtcdOptions options_;
  size_t endpoint_ = 0;
  std::unique_ptr<Connection> connection_;
};

}  // namespace pnfsrdma::mds
