// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_client.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "server/mds/log/copy_server.h"
#include "server/mds/log/copy_stream.h"
#include "shared/base/log.h"
#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/http/client.h"

namespace pnfsrdma::mds {
namespace {

constexpr auto kConnectPatience = std::chrono::seconds(3);  // for TCP, and once more for TLS
constexpr auto kAnswerPatience = std::chrono::seconds(60);  // it is put together first
constexpr Milliseconds kLookWhetherToStop{50};

Result<> make_empty(const std::string& directory) {
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (!error) std::filesystem::create_directory(directory, error);
  if (!error) std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  if (error) return fail(error.value(), "making " + directory);
  return {};
}

// Ends what a client waits for when this is to stop. httplib's reads know one deadline and no signal.
class StopOfClient {
 public:
  StopOfClient(httplib::ClientImpl& client, const std::atomic<bool>& stopping)
      : thread_([this, &client, &stopping] {
          for (; !over_; sleep_for(kLookWhetherToStop)) {
            if (stopping) client.stop();  // again and again: it does nothing to what begins later
          }
        }) {}
  ~StopOfClient() {
    over_ = true;
    thread_.join();
  }
  StopOfClient(const StopOfClient&) = delete;
  StopOfClient& operator=(const StopOfClient&) = delete;

 private:
  std::atomic<bool> over_ = false;
  Thread thread_;
};

// What it has.
Result<uint64_t> fetch(const CopySource& source, const std::string& directory,
                       const std::atomic<bool>& stopping) {
  TRY_ASSIGN(const http::Client client, http::make_client(source.url, source.certificate, source.key));
  client->set_ca_cert_path(source.authority);
  client->enable_server_certificate_verification(true);
  client->set_connection_timeout(kConnectPatience);
  client->set_read_timeout(kAnswerPatience);
  CopyReader reader(directory);
  Result<> taken;
  int status = 0;
  const auto get = [&] {
    const StopOfClient stop(*client, stopping);
    return client->Get(
        CopyServer::kPath,
        [&](const httplib::Response& response) {
          status = response.status;
          return status == 200;
        },
        [&](const char* bytes, size_t count) {
          taken = stopping ? fail(ECANCELED, "stopping") : reader.take({bytes, count});
          return taken.has_value();
        });
  };
  const httplib::Result answer = get();
  if (!taken) return std::unexpected(taken.error());
  if (stopping) return fail(ECANCELED, "stopping");
  if (status == 503) return fail(EBUSY, source.url + " gives another server a copy");
  if (status != 0 && status != 200) return fail(EIO, source.url + ": HTTP status " + std::to_string(status));
  if (!answer) return fail(EIO, source.url + ": " + httplib::to_string(answer.error()));
  TRY(reader.end());
  return reader.bytes();
}

Result<> sync_parent(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const FileDescriptor directory(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || fsync(directory.get()) != 0)
    return std::unexpected(Error::from_errno("syncing " + parent));
  return {};
}

// A name beside the store that nothing has.
std::string name_for_old(const std::string& path) {
  std::string name = path + ".replaced";
  std::error_code error;
  for (int number = 2; std::filesystem::exists(std::filesystem::symlink_status(name, error)); ++number)
    name = path + ".replaced-" + std::to_string(number);
  return name;
}

// Of a directory: which one it is, whatever its name. 0: there is none.
uint64_t inode_of(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

Result<> rename_to(const std::string& from, const std::string& to, unsigned flags) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) != 0)
    return std::unexpected(Error::from_errno("renaming " + from + " to " + to));
  return {};
}

}  // namespace

Result<> begin_with_copy(const CopySource& source, const std::string& path, OldStore old,
                         const std::atomic<bool>& stopping) {
  std::string copy = path + ".copy";
  TRY(make_empty(copy));
  const auto fetched = fetch(source, copy, stopping);
  std::error_code error;
  if (!fetched) {
    std::filesystem::remove_all(copy, error);
    return std::unexpected(fetched.error());
  }
  if (old == OldStore::kKept) {
    // Behind the exchange nothing is left to do: a crash would leave the old store under a name that is removed.
    const std::string kept = name_for_old(path);
    TRY(rename_to(copy, kept, RENAME_NOREPLACE));
    copy = kept;
  }
  // Before or behind it, one whole store is in its place.
  const uint64_t taken = inode_of(copy);
  if (const Result<> exchanged = rename_to(copy, path, RENAME_EXCHANGE); !exchanged) {
    // Each further try would leave one. Never a store that has come to its name after all.
    if (taken != 0 && inode_of(copy) == taken) std::filesystem::remove_all(copy, error);
    return exchanged;
  }
  TRY(sync_parent(path));
  log_info("mds", "copy-taken from={} bytes={}", source.url, *fetched);
  if (old == OldStore::kKept) {
    log_warning(
        "mds",
        "replaced-store-kept path={} what=\"the log could not be compared with it any more: if etcd was "
        "restored from a backup, it may have changes that nobody else has\"",
        copy);
  } else {
    std::filesystem::remove_all(copy, error);  // else the next one removes it
  }
  return {};
}

}  // namespace pnfsrdma::mds
