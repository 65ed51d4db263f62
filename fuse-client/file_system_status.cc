// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "fuse-client/file_system.h"

// statfs, and the mount's own status as extended attributes of its root.
namespace pnfsrdma::fuse_client {
namespace {

constexpr std::array<std::string_view, 3> kStatusAttributes = {
    "user.pnfsrdma.transport", "user.pnfsrdma.durability", "user.pnfsrdma.statistics"};

// The same under "system.": for "user." attributes the kernel first looks whether the caller may read the
// root, and asks for its attributes when it has none it may still believe: a call to the MDS, for a look at
// the counters. Of "system." attributes it leaves the permission to the file system.
constexpr std::string_view kUserPrefix = "user.";
constexpr std::string_view kSystemPrefix = "system.";

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {kUserPrefix, kSystemPrefix}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

// What differs between devices is shown of all: "process,volatile".
template <typename Member>
std::string of_all(const std::vector<initiator::DeviceView>& devices, Member member, const char* none) {
  std::string text;
  for (const initiator::DeviceView& device : devices) {
    const std::string& value = device.*member;
    if (value.empty() || text.find(value) != std::string::npos) continue;
    if (!text.empty()) text += ',';
    text += value;
  }
  return text.empty() ? none : text;
}

void reply_text(fuse_req_t request, std::string_view text, size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, text.size());
  } else if (text.size() > size) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, text.data(), text.size());
  }
}

}  // namespace

std::string FileSystem::statistics_json() const {
  nlohmann::json json;
  for (const auto& [name, value] : parts_.data_path.statistics().snapshot()) json[std::string(name)] = value;
  const initiator::SessionStatistics session = parts_.session.statistics();
  json["mds_calls"] = session.compounds;
  json["mds_renewals"] = session.renewals;
  json["mds_reconnects"] = session.reconnects;
  json["mds_new_sessions"] = session.new_sessions;
  json["mds_new_clientids"] = session.new_clientids;
  json["mds_delays"] = session.delays;
  json["mds_callbacks"] = session.callbacks;
  json["mds_sends"] = session.send_calls;
  json["mds_receives"] = session.receive_calls;
  nlohmann::json operations = nlohmann::json::object();
  for (size_t number = 0; number < session.operations.size(); ++number) {
    if (session.operations[number] == 0) continue;
    operations[nfs4::to_string(static_cast<nfs4::Operation>(number))] = session.operations[number];
  }
  json["mds_operations"] = std::move(operations);
  return json.dump();
}

void FileSystem::getxattr(fuse_req_t request, fuse_ino_t node, const char* name, size_t size) {
  if (node != kRootNode) {
    fuse_reply_err(request, ENOTSUP);
    return;
  }
  const std::string_view wanted = without_prefix(name);
  const auto devices = [this] { return parts_.data_path.devices(); };
  if (wanted == without_prefix(kStatusAttributes[0])) {
    reply_text(request, of_all(devices(), &initiator::DeviceView::transport, "none"), size);
  } else if (wanted == without_prefix(kStatusAttributes[1])) {
    reply_text(request, of_all(devices(), &initiator::DeviceView::durability, "unknown"), size);
  } else if (wanted == without_prefix(kStatusAttributes[2])) {
    reply_text(request, statistics_json(), size);
  } else {
    fuse_reply_err(request, ENOTSUP);
  }
}

void FileSystem::listxattr(fuse_req_t request, fuse_ino_t node, size_t size) {
  std::string names;
  if (node == kRootNode) {
    for (const std::string_view name : kStatusAttributes) names.append(name).push_back('\0');
  }
  reply_text(request, names, size);
}

void FileSystem::statfs(fuse_req_t request) {
  using nfs4::Attribute;
  const nfs4::Bitmap wanted = nfs4::Bitmap::of(
      Attribute::kFilesAvailable, Attribute::kFilesFree, Attribute::kFilesTotal, Attribute::kMaxName,
      Attribute::kSpaceAvailable, Attribute::kSpaceFree, Attribute::kSpaceTotal);
  initiator::CompoundReply reply;
  const int error =
      call(request,
           {nfs4::PutFileHandleArguments{parts_.inodes.root()->handle}, nfs4::GetAttributesArguments{wanted}},
           reply, false, parts_.clock.now() + kUmountPatience);
  const auto* result = reply.result<nfs4::GetAttributesResponse>(1);
  if (error != 0 || result == nullptr) {
    fuse_reply_err(request, error != 0 ? error : EIO);
    return;
  }
  const nfs4::Attributes& attributes = result->attributes;
  constexpr uint64_t kBlock = 4096;
  struct statvfs status{};
  status.f_bsize = status.f_frsize = kBlock;
  status.f_blocks = attributes.space_total.value_or(0) / kBlock;
  status.f_bfree = attributes.space_free.value_or(0) / kBlock;
  status.f_bavail = attributes.space_available.value_or(0) / kBlock;
  status.f_files = attributes.files_total.value_or(0);
  status.f_ffree = attributes.files_free.value_or(0);
  status.f_favail = attributes.files_available.value_or(0);
  status.f_namemax = attributes.max_name.value_or(255);
  fuse_reply_statfs(request, &status);
}

}  // namespace pnfsrdma::fuse_client
