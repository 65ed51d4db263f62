// SPDX-License-Identifier: Apache-2.0
#include "library/last_error.h"

#include <cerrno>
#include <string>

namespace pnfsrdma::library {
namespace {

std::string& text() {
  static thread_local std::string text;
  return text;
}

}  // namespace

int to_number(const Error& error) {
  switch (error.number()) {
    case 0:
    case ESHUTDOWN:
    case EPROTO:
    case EMSGSIZE:
      return EIO;  // programs do not know these of files
    default:
      return error.number();
  }
}

int failed(const Error& error) {
  text() = error.to_string();
  return -to_number(error);
}

const char* last_error() {
  return text().c_str();
}

}  // namespace pnfsrdma::library
