// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_client.h"

#include <fcntl.h>
#include <httplib.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "server/mds/log/copy_server.h"
#include "server/mds/log/copy_stream.h"
#include "shared/base/log.h"
#include "shared/base/owned.h"

namespace pnfsrdma::mds {
namespace {

constexpr auto kAnswerPatience = std::chrono::seconds(60);  // it is put together first

Result<> make_empty(const std::string& directory) {
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (!error) std::filesystem::create_directory(directory, error);
  if (!error) std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  if (error) return fail(error.value(), "making " + directory);
  return {};
}

// What it has.
Result<uint64_t> fetch(const CopySource& source, const std::string& directory,
                       const std::atomic<bool>& stopping) {
  httplib::Client client(source.url, source.certificate, source.key);
  client.set_ca_cert_path(source.authority);
  client.enable_server_certificate_verification(true);
  client.set_connection_timeout(kAnswerPatience);
  client.set_read_timeout(kAnswerPatience);
  CopyReader reader(directory);
  Result<> taken;
  int status = 0;
  const httplib::Result answer = client.Get(
      CopyServer::kPath,
      [&](const httplib::Response& response) {
        status = response.status;
        return status == 200;
      },
      [&](const char* bytes, size_t count) {
        taken = stopping ? fail(ECANCELED, "stopping") : reader.take({bytes, count});
        return taken.has_value();
      });
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

}  // namespace

Result<> begin_with_copy(const CopySource& source, const std::string& path,
                         const std::atomic<bool>& stopping) {
  const std::string copy = path + ".copy";
  const std::string replaced = path + ".replaced";
  std::error_code error;
  std::filesystem::remove_all(replaced, error);  // the disk may need its room
  if (error) return fail(error.value(), "removing " + replaced);
  TRY(make_empty(copy));
  const auto fetched = fetch(source, copy, stopping);
  if (!fetched) {
    std::filesystem::remove_all(copy, error);
    return std::unexpected(fetched.error());
  }
  // Before or behind it, one whole store is in its place.
  if (renameat2(AT_FDCWD, copy.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0)
    return std::unexpected(Error::from_errno("putting " + copy + " in the place of " + path));
  TRY(sync_parent(path));
  std::filesystem::rename(copy, replaced, error);
  if (error) return fail(error.value(), "renaming " + copy);
  log_info("mds", "copy-taken from={} bytes={} replaced={}", source.url, *fetched, replaced);
  return {};
}

}  // namespace pnfsrdma::mds
