// SPDX-License-Identifier: Apache-2.0
#include "shared/http/client.h"

#include <cerrno>

#include "shared/http/url.h"

namespace pnfsrdma::http {

Result<Client> make_client(const std::string& url, const std::string& certificate, const std::string& key) {
  const auto place = parse_url(url);
  if (!place) return fail(EINVAL, "\"" + url + "\" is not of the form \"https://host:port\"");
  if (!place->tls) return std::make_unique<httplib::ClientImpl>(place->host, place->port);
  return std::make_unique<httplib::SSLClient>(place->host, place->port, certificate, key);
}

}  // namespace pnfsrdma::http
