// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>

#include "shared/base/owned.h"
#include "shared/rpc/tls.h"
#include "shared/rpc_tls/endpoint.h"

namespace pnfsrdma::rpc_tls {

// A TLS session by OpenSSL, in memory. OpenSSL is given whole TLS records only, so that its buffers are empty between
// calls, and what has come in part is counted to the byte.
class Session final : public rpc::TlsSession {
 public:
  static Result<std::unique_ptr<rpc::TlsSession>> begin(std::shared_ptr<Endpoint> endpoint,
                                                        const std::string& peer);
  ~Session() override = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<bool> handshake(ByteSpan came) override;
  Result<size_t> read(ByteSpan came, MutableByteSpan to) override;
  bool has_plaintext() const override;
  bool ended() const override { return ended_; }
  Result<> write(ByteSpan plaintext) override;
  void end() override;
  Bytes& output() override { return output_; }
  size_t held_bytes() const override;
  bool mid_record() const override { return !waiting_.empty(); }
  const rpc::TlsPeer& peer() const override { return peer_; }
  Result<> reassess() const override;

 private:
  using Ssl = Owned<SSL, SSL_free>;

  Session(std::shared_ptr<Endpoint> endpoint, std::shared_ptr<const Credentials> credentials)
      : endpoint_(std::move(endpoint)), credentials_(std::move(credentials)) {}
  Result<> prepare(const std::string& peer);
  void set_state();
  bool by_key() const { return credentials_->key().has_value(); }
  Result<bool> check_peer();
  std::string_view protocol() const;
  void offer(ByteSpan came);
  void keep_rest();
  std::unexpected<Error> failure(const char* what);
  static BIO_METHOD* method();
  static int verify(int sound, X509_STORE_CTX* store);
  static int take_input(BIO* bio, char* to, int size);
  static int add_output(BIO* bio, const char* from, int size);
  static long control(BIO* bio, int command, long number, void* pointer);

  const std::shared_ptr<Endpoint> endpoint_;
  const std::shared_ptr<const Credentials> credentials_;
  Bytes waiting_;           // ciphertext that has come and was not taken
  ByteSpan input_;          // what may be taken in the current call
  size_t record_left_ = 0;  // of the TLS record that is being taken
  size_t owed_ = 0;         // bytes of data, for records that had none
  Bytes output_;
  size_t handshake_bytes_ = 0;
  bool established_ = false;
  bool ended_ = false;
  bool broken_ = false;
  rpc::TlsPeer peer_;
  Ssl ssl_;  // uses what is above
};

}  // namespace pnfsrdma::rpc_tls
