// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "server/console/http.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// The built web console: small, so it is read once and kept, and a path can lead nowhere else. Immutable:
// thread-safe.
class StaticFiles {
 public:
  // Empty `directory`, or one that is not there: no files, and a page that says so.
  static Result<StaticFiles> load(const std::string& directory);

  // A path without a dot in its last part is the single page's own business: index.html.
  HttpResponse get(const HttpRequest& request) const;
  bool empty() const { return files_.empty(); }

 private:
  struct File {
    std::string type;
    std::string bytes;
    std::string etag;
  };
  std::map<std::string, File> files_;  // by path: "/index.html"
};

}  // namespace pnfsrdma::console
