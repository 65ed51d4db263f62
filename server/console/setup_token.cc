// SPDX-License-Identifier: Apache-2.0
#include "server/console/setup_token.h"

#include <fcntl.h>
#include <unistd.h>

#include "server/console/secret.h"
#include "shared/base/owned.h"

namespace pnfsrdma::console {

Result<> SetupToken::create() {
  const std::string token = new_secret(random_);
  ::unlink(path_.c_str());
  const FileDescriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::string line = token + "\n";
  if (!file || write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return std::unexpected(Error::from_errno("write " + path_));
  *token_.lock() = token;
  return {};
}

void SetupToken::destroy() {
  ::unlink(path_.c_str());
  token_.lock()->reset();
}

bool SetupToken::matches(const std::string& token) {
  auto kept = token_.lock();
  return kept->has_value() && same_secret(**kept, token);
}

}  // namespace pnfsrdma::console
