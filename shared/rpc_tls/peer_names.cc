// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_tls/peer_names.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/x509v3.h>

#include <array>
#include <string>

#include "shared/base/owned.h"

namespace pnfsrdma::rpc_tls {
namespace {

// One with a zero in it is no name: who compares texts would see the part before it only.
void add_text(std::vector<std::string>& names, const ASN1_STRING* text) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size < 0) return;
  std::string name(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  if (!name.empty() && name.find('\0') == std::string::npos) names.push_back(std::move(name));
}

void add_address(std::vector<std::string>& names, const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int size = ASN1_STRING_length(address);
  if (size != 4 && size != 16) return;
  if (inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text.data(), text.size()) !=
      nullptr)
    names.emplace_back(text.data());
}

std::string text_of(const X509_NAME* name) {
  const Owned<BIO, BIO_free_all> memory(BIO_new(BIO_s_mem()));
  if (!memory || X509_NAME_print_ex(memory.get(), name, 0, XN_FLAG_ONELINE & ~XN_FLAG_SPC_EQ) < 0) return {};
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

}  // namespace

rpc::TlsPeer peer_of(const X509* certificate) {
  rpc::TlsPeer peer;
  X509_NAME* const subject = X509_get_subject_name(certificate);
  peer.subject = text_of(subject);
  const Owned<GENERAL_NAMES, GENERAL_NAMES_free> others(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; others && i < sk_GENERAL_NAME_num(others.get()); ++i) {
    const GENERAL_NAME* const other = sk_GENERAL_NAME_value(others.get(), i);
    if (other->type == GEN_DNS) add_text(peer.names, other->d.dNSName);
    if (other->type == GEN_IPADD) add_address(peer.names, other->d.iPAddress);
  }
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) add_text(peer.names, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  return peer;
}

}  // namespace pnfsrdma::rpc_tls
