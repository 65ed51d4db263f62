// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/partition_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "server/brickd/format_command.h"
#include "server/brickd/partition_label.h"
#include "server/brickd/pool.h"
#include "shared/base/owned.h"
#include "shared/base/random.h"
#include "shared/brick/partition_key.h"

namespace pnfsrdma::brick {
namespace {

using Json = nlohmann::ordered_json;
using Hold = pmem::Window::Hold;

// The label and what its partitions are multiples of; held until it ends.
struct OpenLabel {
  uint64_t alignment = 0;
  std::unique_ptr<pmem::Mapping> mapping;
  std::unique_ptr<pmem::Persistence> persistence;
  PartitionLabel label;

  static Result<OpenLabel> open(const std::string& path, Hold hold) {
    TRY_ASSIGN(const auto extent, pmem::Mapping::extent(path));
    const uint64_t alignment = std::max(extent.alignment, format::kLabelRegion);
    if (extent.size < alignment) return fail(EINVAL, path + " is too small for partitions");
    TRY_ASSIGN(auto mapping, pmem::Mapping::open(path, {0, alignment, hold}));
    auto persistence = mapping->make_persistence(pmem::FileFlush::kSync);
    auto label =
        PartitionLabel::open(mapping->bytes().first(format::kLabelRegion), *persistence, extent.size);
    if (!label) return std::unexpected(label.error().in(path));
    return OpenLabel{alignment, std::move(mapping), std::move(persistence), std::move(*label)};
  }
};

Result<PartitionPlace> place_of_partition(const PartitionLabel& label, const std::string& path,
                                          const std::string& name) {
  if (auto place = label.find(name)) return *std::move(place);
  std::string names;
  for (const PartitionPlace& place : label.partitions()) names += (names.empty() ? "" : ", ") + place.name;
  return fail(ENOENT,
              fmt::format("{} has no partition {}: it has {}", path, name, names.empty() ? "none" : names));
}

format::Ownership ownership_of(const std::string& name, const PartitionKey& key, uint64_t quota_blocks) {
  format::Ownership ownership{.quota_blocks = quota_blocks};
  std::ranges::copy(name, ownership.name.begin());
  ownership.secret = key.secret();
  return ownership;
}

}  // namespace

Result<std::unique_ptr<pmem::Mapping>> open_pool_memory(const Config& config) {
  if (config.pool.partition.empty()) return pmem::Mapping::open(config.pool.path);
  TRY_ASSIGN(const auto open, OpenLabel::open(config.pool.path, Hold::kWhenFree));
  TRY_ASSIGN(const auto place, place_of_partition(open.label, config.pool.path, config.pool.partition));
  return pmem::Mapping::open(config.pool.path, {place.offset, place.length});
}

PartitionCommand::PartitionCommand(CLI::App& app) {
  noun_ = app.add_subcommand("partition", "split a device or file into pools, each of an owner of its own");
  noun_->require_subcommand(1);
  const auto verb = [this](const char* name, const char* what) {
    CLI::App* const made = noun_->add_subcommand(name, what);
    made->add_option("--pool,-p", path_, "the device or file")->required();
    return made;
  };
  const auto named = [this](CLI::App* of) {
    of->add_option("--name,-n", name_, "of the partition")->required();
    return of;
  };
  CLI::App* const format = verb("format", "prepare a device, or a new file, for partitions");
  format->add_option("--size,-s", size_, "of a new file: \"4G\"");
  format->add_flag("--force", force_, "destroy what is there");
  CLI::App* const create = named(verb("create", "make a partition, and the key of its owner"));
  create->add_option("--size,-s", size_, "\"512M\"; without it all of the largest free piece");
  create->add_option("--quota", quota_, "what may be allocated of it at most: \"256M\"");
  create->add_option("--key-file,-k", key_file_, "a new file for the key, in place of stdout");
  create->add_flag("--for-mds", for_mds_, "for an MDS: without a key");
  create->add_flag("--json", json_, "output as JSON");
  verb("list", "what partitions there are")->add_flag("--json", json_, "output as JSON");
  named(verb("remove", "remove a partition and all data in it"))->add_flag("--yes,-y", yes_, "do not ask");
  CLI::App* const key = named(verb("key", "make a new key, in place of the one there is"));
  key->add_option("--key-file,-k", key_file_, "a new file for the key, in place of stdout");
  key->add_flag("--json", json_, "output as JSON");
}

bool PartitionCommand::asked() const {
  return noun_->parsed();
}

Result<> PartitionCommand::run() {
  if (!name_.empty() && !is_partition_name(name_))
    return fail(
        EINVAL,
        fmt::format("\"{}\" is no name of a partition: 1 to 63 letters, digits, '.', '_' and '-'", name_));
  const std::string verb = noun_->get_subcommands().front()->get_name();
  if (verb == "format") return format();
  if (verb == "create") return create();
  if (verb == "list") return list();
  if (verb == "remove") return remove();
  return renew_key();
}

Result<> PartitionCommand::format() {
  TRY(prepare_file(path_, size_, force_));
  TRY_ASSIGN(const auto mapping, pmem::Mapping::open(path_));
  if (mapping->bytes().size() < 2 * format::kLabelRegion)
    return fail(EINVAL, path_ + " is too small for partitions");
  const auto persistence = mapping->make_persistence(pmem::FileFlush::kSync);
  SystemRandom random;
  const auto written =
      PartitionLabel::write_new(mapping->bytes().first(format::kLabelRegion), *persistence, force_, random);
  if (!written) return std::unexpected(written.error().in(path_));
  fmt::print("{} is ready for partitions: {} MiB\n", path_,
             (mapping->bytes().size() - format::kLabelRegion) >> 20);
  return {};
}

// The pool is there before the label names it: a create that is cut short has made nothing.
Result<> PartitionCommand::create() {
  SystemRandom random;
  TRY_ASSIGN(OpenLabel open, OpenLabel::open(path_, Hold::kWhenFree));
  uint64_t length = open.label.largest_gap(open.alignment);
  if (!size_.empty()) {
    TRY_ASSIGN(length, parse_size(size_));
  }
  length -= length % open.alignment;
  const uint64_t blocks = format::blocks_that_fit(length, kBlockSize);
  if (blocks == 0)
    return fail(ENOSPC, "a partition takes at least 4 MiB, in steps of what the device is mapped by");
  uint64_t quota = 0;
  if (!quota_.empty()) {
    TRY_ASSIGN(quota, parse_size(quota_));
  }
  if (!quota_.empty() && quota < kBlockSize) return fail(EINVAL, "the quota is less than a block of 2M");
  TRY_ASSIGN(const uint64_t offset, open.label.gap(length, open.alignment));
  if (open.label.find(name_)) return fail(EEXIST, fmt::format("{} has a partition {} already", path_, name_));

  const PartitionKey key = PartitionKey::make(random);
  Pool::FormatOptions options{.block_size = kBlockSize, .force = true};
  if (!for_mds_) options.ownership = ownership_of(name_, key, quota / kBlockSize);
  const auto mapping = pmem::Mapping::open(path_, {offset, length});
  if (!mapping) return std::unexpected(mapping.error());
  const auto persistence = (*mapping)->make_persistence(pmem::FileFlush::kSync);
  TRY(Pool::format((*mapping)->bytes(), *persistence, options, random));
  // A partition whose key nobody has seen would be of no use.
  if (!for_mds_) TRY(tell_key(key.text()));
  TRY(open.label.add({name_, offset, length}));
  if (!json_) fmt::print("partition {}: {} blocks of 2 MiB\n", name_, blocks);
  return {};
}

Result<> PartitionCommand::list() {
  TRY_ASSIGN(const OpenLabel open, OpenLabel::open(path_, Hold::kBesides));
  Json all = Json::array();
  for (const PartitionPlace& place : open.label.partitions()) {
    TRY_ASSIGN(const auto mapping, pmem::Mapping::open(path_, {place.offset, place.length, Hold::kBesides}));
    const auto persistence = mapping->make_persistence(pmem::FileFlush::kSync);
    const auto superblock = Superblock::open(mapping->bytes(), *persistence);
    Json one = {{"name", place.name}, {"offset", place.offset}, {"size", place.length}};
    if (superblock) {
      const format::Superblock& content = superblock->content();
      one["blocks"] = content.block_count;
      one["owner"] = superblock->has_owner_by_key() ? "key" : "mds";
      one["quota"] = content.ownership.quota_blocks * content.block_size;
    } else {
      one["error"] = superblock.error().to_string();
    }
    all.push_back(std::move(one));
  }
  if (json_) {
    fmt::print("{}\n",
               Json({{"partitions", all}, {"largest_free", open.label.largest_gap(open.alignment)}}).dump(2));
    return {};
  }
  fmt::print("{:<24} {:>10} {:>10} {:>10}  {}\n", "NAME", "MIB", "BLOCKS", "QUOTA MIB", "OWNER");
  for (const Json& one : all) {
    const uint64_t quota = one.value("quota", uint64_t{0});
    fmt::print("{:<24} {:>10} {:>10} {:>10}  {}\n", one["name"].get<std::string>(),
               one["size"].get<uint64_t>() >> 20, one.value("blocks", uint64_t{0}),
               quota == 0 ? "-" : std::to_string(quota >> 20),
               one.contains("error") ? one["error"].get<std::string>() : one["owner"].get<std::string>());
  }
  fmt::print("largest free piece: {} MiB\n", open.label.largest_gap(open.alignment) >> 20);
  return {};
}

// Out of the label first: from there on nothing finds it, and what is left of it is zeroed before anybody gets it.
Result<> PartitionCommand::remove() {
  TRY_ASSIGN(OpenLabel open, OpenLabel::open(path_, Hold::kWhenFree));
  TRY_ASSIGN(const PartitionPlace place, place_of_partition(open.label, path_, name_));
  TRY_ASSIGN(const auto mapping, pmem::Mapping::open(path_, {place.offset, place.length}));
  TRY_ASSIGN(const bool sure, confirmed(fmt::format("partition {} of {} and all data in it", name_, path_)));
  if (!sure) return fail(ECANCELED, "nothing was removed");
  TRY(open.label.remove(name_));
  const auto persistence = mapping->make_persistence(pmem::FileFlush::kSync);
  const MutableByteSpan superblocks = mapping->bytes().first(format::kTableOffset);
  persistence->zero(superblocks);
  TRY(persistence->persist(superblocks));
  fmt::print("removed partition {}\n", name_);
  return {};
}

Result<> PartitionCommand::renew_key() {
  TRY_ASSIGN(const OpenLabel open, OpenLabel::open(path_, Hold::kWhenFree));
  TRY_ASSIGN(const PartitionPlace place, place_of_partition(open.label, path_, name_));
  TRY_ASSIGN(const auto mapping, pmem::Mapping::open(path_, {place.offset, place.length}));
  const auto persistence = mapping->make_persistence(pmem::FileFlush::kSync);
  TRY_ASSIGN(Superblock superblock, Superblock::open(mapping->bytes(), *persistence));
  if (!superblock.has_owner_by_key())
    return fail(EINVAL, fmt::format("partition {} is an MDS's and has no key", name_));
  SystemRandom random;
  const PartitionKey key = PartitionKey::make(random);
  TRY(tell_key(key.text()));
  // Both copies: the old key is on the medium nowhere.
  for (int copy = 0; copy < 2; ++copy) {
    TRY(persistence->persist(
        superblock.set_ownership(ownership_of(name_, key, superblock.content().ownership.quota_blocks))));
  }
  return {};
}

Result<> PartitionCommand::tell_key(const std::string& text) const {
  if (key_file_.empty()) {
    json_ ? fmt::print("{}\n", Json({{"partition", name_}, {"key", text}}).dump(2))
          : fmt::print("the key of partition {}, which is not shown again:\n{}\n", name_, text);
    std::fflush(stdout);
    return {};
  }
  const FileDescriptor fd(open(key_file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const std::string line = text + "\n";
  if (!fd || write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      fsync(fd.get()) != 0)
    return std::unexpected(Error::from_errno("the key file " + key_file_));
  if (json_) fmt::print("{}\n", Json({{"partition", name_}, {"key_file", key_file_}}).dump(2));
  return {};
}

Result<bool> PartitionCommand::confirmed(const std::string& what) const {
  if (yes_) return true;
  if (isatty(STDIN_FILENO) == 0) return fail(EINVAL, "nobody can be asked: --yes removes " + what);
  fmt::print("this removes {}; type the name of the partition to go on: ", what);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == name_;
}

}  // namespace pnfsrdma::brick
