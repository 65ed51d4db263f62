// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_tls/session.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "shared/base/check.h"
#include "shared/rpc/limits.h"
#include "shared/rpc_tls/key_exchange.h"
#include "shared/rpc_tls/peer_names.h"

namespace pnfsrdma::rpc_tls {
namespace {

// A TLS record (RFC 8446, 5.1): type, two bytes of version, two of length.
constexpr size_t kRecordHeader = 5;
constexpr size_t kRecordBodyMax = rpc::kTlsRecordBytes + 256;
constexpr auto kFirstRecordType = std::byte{20};
constexpr auto kLastRecordType = std::byte{24};
constexpr auto kMajorVersion = std::byte{3};
// New keys (RFC 8446, 4.6.3) cost more time than a KiB of data. Records without data are paid for by
// data, but for the first 64 of them.
constexpr size_t kCostWithoutData = 1024;
constexpr size_t kOwedMax = 64 * kCostWithoutData;

// Of the record that begins there; 0: it has not come whole. What is no record is for OpenSSL to refuse, at once.
size_t whole_record(ByteSpan input) {
  if (input.size() < kRecordHeader) return 0;
  const size_t body = load_big_endian<uint16_t>(input.data() + 3);
  if (input[0] < kFirstRecordType || input[0] > kLastRecordType || input[1] != kMajorVersion ||
      body > kRecordBodyMax)
    return input.size();
  return input.size() < kRecordHeader + body ? 0 : kRecordHeader + body;
}

bool is_address(const std::string& text) {
  std::array<unsigned char, 16> address{};
  return inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

// RFC 8446, 6.2: those by which a peer says that it does not want us.
bool is_refusal(int reason) {
  switch (reason - SSL_AD_REASON_OFFSET) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_DECRYPT_ERROR:  // an authority of the same name with another key
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

// The same of a key: OpenSSL has named another alert for it in each of its versions.
bool is_refusal_of_key(int reason) {
  const int alert = reason - SSL_AD_REASON_OFFSET;
  return is_refusal(reason) || alert == SSL_AD_ILLEGAL_PARAMETER || alert == SSL_AD_UNKNOWN_PSK_IDENTITY;
}

}  // namespace

// --- in memory ---

BIO_METHOD* Session::method() {
  static BIO_METHOD* const made = [] {
    BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rpc-with-tls");
    CHECK(method != nullptr);
    BIO_meth_set_read(method, take_input);
    BIO_meth_set_write(method, add_output);
    BIO_meth_set_ctrl(method, control);
    return method;
  }();
  return made;
}

int Session::take_input(BIO* bio, char* to, int size) {
  auto& self = *static_cast<Session*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self.record_left_ == 0 && self.owed_ <= kOwedMax) {
    self.record_left_ = whole_record(self.input_);
    if (self.established_ && self.record_left_ > 0) self.owed_ += kCostWithoutData;
  }
  const size_t count =
      std::min({static_cast<size_t>(std::max(size, 0)), self.record_left_, self.input_.size()});
  if (count == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  std::memcpy(to, self.input_.data(), count);
  self.input_ = self.input_.subspan(count);
  self.record_left_ -= count;
  return static_cast<int>(count);
}

int Session::add_output(BIO* bio, const char* from, int size) {
  auto& self = *static_cast<Session*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ByteSpan bytes = as_bytes(std::string_view(from, static_cast<size_t>(std::max(size, 0))));
  self.output_.insert(self.output_.end(), bytes.begin(), bytes.end());
  return size;
}

long Session::control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// What came is used where it is, unless something waits before it.
void Session::offer(ByteSpan came) {
  if (waiting_.empty()) {
    input_ = came;
  } else {
    waiting_.insert(waiting_.end(), came.begin(), came.end());
    input_ = waiting_;
  }
}

void Session::keep_rest() {
  if (input_.size() == waiting_.size() && !waiting_.empty()) {
    input_ = {};
    return;
  }
  waiting_ = Bytes(input_.begin(), input_.end());
  input_ = {};
}

// --- beginning ---

Result<std::unique_ptr<rpc::TlsSession>> Session::begin(std::shared_ptr<Endpoint> endpoint,
                                                        const std::string& peer) {
  const auto credentials = endpoint->credentials();
  std::unique_ptr<Session> session(new Session(std::move(endpoint), credentials));
  TRY(session->prepare(peer));
  return std::unique_ptr<rpc::TlsSession>(std::move(session));
}

Result<> Session::prepare(const std::string& peer) {
  ERR_clear_error();
  ssl_.reset(SSL_new(credentials_->context()));
  BIO* const bio = ssl_ ? BIO_new(method()) : nullptr;
  if (bio == nullptr) return fail(ENOMEM, "a TLS session");
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  set_state();
  if (by_key()) {
    SSL_set_verify(ssl_.get(), SSL_VERIFY_NONE, nullptr);  // check_peer() sees to it that the key was used
    return SSL_set_ex_data(ssl_.get(), credentials_index(), const_cast<Credentials*>(credentials_.get())) == 1
               ? Result<>()
               : fail(ENOMEM, "a TLS session");
  }
  SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify);
  if (credentials_->role() == Role::kServer) return {};
  // RFC 9289, 5.2.1: the name or the address that was dialled, never the common name, no wildcards.
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const bool set = is_address(peer)
                       ? X509_VERIFY_PARAM_set1_ip_asc(wanted, peer.c_str()) == 1
                       : !peer.empty() && SSL_set_tlsext_host_name(ssl_.get(), peer.c_str()) == 1 &&
                             X509_VERIFY_PARAM_set1_host(wanted, peer.c_str(), peer.size()) == 1;
  if (!set) return fail(EINVAL, "\"" + peer + "\" is no name that a certificate could have");
  return {};
}

void Session::set_state() {
  credentials_->role() == Role::kServer ? SSL_set_accept_state(ssl_.get())
                                        : SSL_set_connect_state(ssl_.get());
}

// Behind OpenSSL's own look at the chain.
int Session::verify(int sound, X509_STORE_CTX* store) {
  if (sound != 1 || X509_STORE_CTX_get_error_depth(store) != 0) return sound;
  const SSL* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const auto& self = *static_cast<const Session*>(SSL_get_app_data(ssl));
  const rpc::TlsPeer peer = peer_of(X509_STORE_CTX_get_current_cert(store));
  if (self.credentials_->permits(peer.names)) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

Result<bool> Session::handshake(ByteSpan came) {
  handshake_bytes_ += came.size();
  offer(came);
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  const int what = SSL_get_error(ssl_.get(), result);
  keep_rest();
  if (result == 1) return check_peer();
  if (what != SSL_ERROR_WANT_READ) return failure("the TLS handshake failed");
  if (handshake_bytes_ > rpc::kTlsHandshakeBytesMax) {
    broken_ = true;
    return fail(EPROTO, "the TLS handshake failed: its messages are too long");
  }
  return false;
}

std::string_view Session::protocol() const {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

Result<bool> Session::check_peer() {
  if (by_key()) {
    if (protocol() != rpc::kAlpnProtocol || SSL_session_reused(ssl_.get()) != 1 ||
        SSL_version(ssl_.get()) != TLS1_3_VERSION)
      return fail(EACCES, "the TLS handshake failed: the peer did not use the key");
    const std::string& identity = credentials_->key()->identity;
    peer_ = {.subject = "whoever has the key of " + identity, .names = {identity}};
    established_ = true;
    return true;
  }
  X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  if (protocol() != rpc::kAlpnProtocol || certificate == nullptr ||
      SSL_version(ssl_.get()) != TLS1_3_VERSION) {
    return fail(
        EPROTO,
        "the TLS handshake failed: the peer does not speak \"sunrpc\" (ALPN), or shows no certificate");
  }
  peer_ = peer_of(certificate);
  established_ = true;
  // The handshake has used the configuration of its beginning, and a peer may take its time.
  TRY(reassess());
  return true;
}

// What OpenSSL has met. Behind it the session is of no use.
std::unexpected<Error> Session::failure(const char* what) {
  broken_ = true;
  const unsigned long error = ERR_peek_error();
  const int reason = ERR_GET_REASON(error);
  const char* const text = ERR_reason_error_string(error);
  ERR_clear_error();
  const long verified = SSL_get_verify_result(ssl_.get());
  std::string why = std::string(what) + ": ";
  if (verified == X509_V_ERR_APPLICATION_VERIFICATION)
    return fail(EACCES, why + "the peer's certificate is not one of those that are let in");
  if (verified != X509_V_OK)
    return fail(EACCES,
                why + "the peer's certificate is not taken: " + X509_verify_cert_error_string(verified));
  why += text == nullptr ? "it broke off" : text;
  if (by_key() && !established_) {
    if (reason == SSL_R_BINDER_DOES_NOT_VERIFY) return fail(EACCES, why + ": the peer's key is another one");
    if (is_refusal_of_key(reason)) return fail(EACCES, why + ": the peer does not take our key");
  }
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return fail(EACCES, why);
  if (is_refusal(reason)) return fail(EACCES, why + ": the peer does not take our certificate");
  return fail(EPROTO, why);
}

// --- data ---

Result<size_t> Session::read(ByteSpan came, MutableByteSpan to) {
  if (broken_) return fail(EPROTO, "the TLS session is broken");
  offer(came);
  size_t total = 0;
  while (total < to.size() && !ended_) {
    size_t count = 0;
    const size_t owed = owed_;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), to.data() + total, to.size() - total, &count);
    total += count;
    if (result == 1) {
      if (owed_ > owed) owed_ -= kCostWithoutData;  // the last record had data
      owed_ -= std::min(owed_, count);
      continue;
    }
    const int what = SSL_get_error(ssl_.get(), result);
    if (what == SSL_ERROR_WANT_READ) break;
    if (what == SSL_ERROR_ZERO_RETURN) {
      ended_ = true;
    } else {
      keep_rest();
      return failure(
          "TLS");  // what came with it was changed, or the peer has ended all: nothing of it counts
    }
  }
  keep_rest();
  if (owed_ > kOwedMax) {
    broken_ = true;
    return fail(EPROTO, "TLS: the peer sends new keys again and again, and no data");
  }
  return total;
}

bool Session::has_plaintext() const {
  return !broken_ && !ended_ && (SSL_pending(ssl_.get()) > 0 || whole_record(waiting_) > 0);
}

Result<> Session::write(ByteSpan plaintext) {
  CHECK(plaintext.size() <= rpc::kTlsRecordBytes);
  if (broken_) return fail(EPROTO, "the TLS session is broken");
  ERR_clear_error();
  size_t written = 0;
  if (SSL_write_ex(ssl_.get(), plaintext.data(), plaintext.size(), &written) != 1 ||
      written != plaintext.size())
    return failure("TLS");
  return {};
}

void Session::end() {
  if (!established_ || broken_) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

size_t Session::held_bytes() const {
  const size_t own = established_ ? rpc::kTlsSessionCost : rpc::kTlsHandshakeCost + handshake_bytes_;
  return own + waiting_.capacity();
}

Result<> Session::reassess() const {
  if (!established_) return {};
  const auto& now = endpoint_->credentials();
  if (now == credentials_) return {};
  if (by_key()) return fail(EACCES, "the key is another one now");
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> look(X509_STORE_CTX_new());
  X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  ERR_clear_error();
  if (!look || X509_STORE_CTX_init(look.get(), SSL_CTX_get_cert_store(now->context()), certificate,
                                   SSL_get_peer_cert_chain(ssl_.get())) != 1)
    return fail(ENOMEM, "looking at a certificate again");
  X509_STORE_CTX_set_default(look.get(), now->role() == Role::kServer ? "ssl_client" : "ssl_server");
  X509_VERIFY_PARAM_set1(X509_STORE_CTX_get0_param(look.get()), SSL_get0_param(ssl_.get()));
  const bool sound = X509_verify_cert(look.get()) == 1;
  ERR_clear_error();
  if (sound && now->permits(peer_.names)) return {};
  return fail(EACCES, sound ? "the peer's certificate is not one of those that are let in any more"
                            : std::string("the peer's certificate is not taken any more: ") +
                                  X509_verify_cert_error_string(X509_STORE_CTX_get_error(look.get())));
}

}  // namespace pnfsrdma::rpc_tls
