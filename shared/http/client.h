// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>

#include <memory>
#include <string>

#include "shared/base/result.h"

namespace pnfsrdma::http {

using Client = std::unique_ptr<httplib::ClientImpl>;

// A client of the server at `url`, "https://host:port" or "http://host:port"; with a certificate and its key
// (PEM files) where they are not empty. httplib's own Client takes only digits for an IPv6 address (0.11).
// EINVAL: `url` is none.
Result<Client> make_client(const std::string& url, const std::string& certificate = {},
                           const std::string& key = {});

}  // namespace pnfsrdma::http
