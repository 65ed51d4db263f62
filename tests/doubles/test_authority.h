// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/x509v3.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "shared/base/x509.h"

namespace pnfsrdma {

// Signs certificates for tests, as PEM files in a folder of its own. Whatever fails throws.
class TestAuthority {
 public:
  struct Wish {
    std::string names = "IP:127.0.0.1";  // subjectAltName, as x509v3_config(5) has it
    std::string usage = "serverAuth,clientAuth";
    bool expired = false;
  };

  explicit TestAuthority(std::filesystem::path folder)
      : folder_(std::move(folder)), key_(x509::make_key().value()) {
    std::filesystem::create_directories(folder_);
    certificate_ = x509::begin(key_.get(), "test authority").value();
    X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
    x509::add_extension(certificate_, certificate_, NID_basic_constraints, "critical,CA:TRUE").value();
    x509::add_extension(certificate_, certificate_, NID_subject_key_identifier, "hash").value();
    write("ca.pem", x509::sign(certificate_, key_.get()).value());
  }

  // NAME.pem and NAME.key.
  void issue(const std::string& name, const Wish& wish) {
    const x509::Key key = x509::make_key().value();
    const x509::Certificate made = x509::begin(key.get(), name).value();
    X509_set_issuer_name(made.get(), X509_get_subject_name(certificate_.get()));
    if (wish.expired) X509_gmtime_adj(X509_getm_notAfter(made.get()), -60);
    if (!wish.usage.empty()) x509::add_extension(made, certificate_, NID_ext_key_usage, wish.usage).value();
    if (!wish.names.empty())
      x509::add_extension(made, certificate_, NID_subject_alt_name, wish.names).value();
    write(name + ".pem", x509::sign(made, key_.get()).value());
    write(name + ".key", x509::text_of(key.get()).value());
  }
  std::string file(const std::string& name) const { return folder_ / name; }

 private:
  void write(const std::string& name, const std::string& text) { std::ofstream(file(name)) << text; }

  const std::filesystem::path folder_;
  x509::Key key_;
  x509::Certificate certificate_;
};

}  // namespace pnfsrdma
