// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <limits>

#include "library/blocks/owner.h"
#include "library/guarded_call.h"
#include "library/pnfsrdma.h"

// The C functions of blocks (pnfsrdma.h).
namespace {

using namespace pnfsrdma;
using library::failed;
using library::guarded;
using library::number;
using library::WordChange;
using library::blocks::BlockMapping;
using library::blocks::Owner;

Owner* inside(pnfsrdma_blocks* blocks) {
  return reinterpret_cast<Owner*>(blocks);
}
const Owner* inside(const pnfsrdma_blocks* blocks) {
  return reinterpret_cast<const Owner*>(blocks);
}
BlockMapping* inside(pnfsrdma_mapping* mapping) {
  return reinterpret_cast<BlockMapping*>(mapping);
}

template <typename Call>
int on_blocks(pnfsrdma_blocks* blocks, Call call) {
  return number(guarded(inside(blocks), [&] { return call(*inside(blocks)); }));
}

template <typename Call>
int on_mapping(pnfsrdma_mapping* mapping, Call call) {
  return number(guarded(mapping == nullptr ? nullptr : &inside(mapping)->owner(),
                        [&] { return call(*inside(mapping)); }));
}

Result<> check_durable_only(uint32_t flags) {
  if ((flags & ~uint32_t{PNFSRDMA_DURABLE}) == 0) return {};
  return fail(EINVAL, "flags that are not known");
}

Result<uint64_t> change(BlockMapping& mapping, WordChange wanted, uint32_t flags, uint64_t* old) {
  TRY(check_durable_only(flags));
  wanted.durable = flags != 0;
  TRY_ASSIGN(const uint64_t before, mapping.change_word(wanted));
  if (old != nullptr) *old = before;
  return before;
}

}  // namespace

int pnfsrdma_blocks_open(const char* address, const char* partition, const char* key_file,
                         const char* options, pnfsrdma_blocks** blocks) {
  if (blocks != nullptr) *blocks = nullptr;
  if (address == nullptr || partition == nullptr || key_file == nullptr || blocks == nullptr)
    return failed({EINVAL, "a null pointer"});
  return number(library::without_exceptions([&]() -> Result<> {
    library::keep_quiet();
    TRY_ASSIGN(auto made, Owner::open(address, partition, key_file, options != nullptr ? options : ""));
    *blocks = reinterpret_cast<pnfsrdma_blocks*>(made.release());
    return {};
  }));
}

int pnfsrdma_blocks_close(pnfsrdma_blocks* blocks) {
  return on_blocks(blocks, [](Owner& owner) -> Result<> {
    if (owner.has_mappings()) return fail(EBUSY, "blocks are mapped");
    delete &owner;
    return {};
  });
}

const char* pnfsrdma_blocks_transport(const pnfsrdma_blocks* blocks) {
  return inside(blocks)->transport().c_str();
}

const char* pnfsrdma_blocks_durability(const pnfsrdma_blocks* blocks) {
  return inside(blocks)->durability().c_str();
}

int pnfsrdma_blocks_stat(pnfsrdma_blocks* blocks, pnfsrdma_partition* partition) {
  return on_blocks(blocks, [&](Owner& owner) -> Result<> {
    if (partition == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(const auto told, owner.look());
    *partition = {told.block_size, told.block_count, told.quota_blocks, told.allocated_blocks, told.epoch};
    return {};
  });
}

int pnfsrdma_blocks_alloc(pnfsrdma_blocks* blocks, uint64_t count, uint64_t wanted, uint64_t tag,
                          uint64_t* address) {
  return on_blocks(blocks, [&](Owner& owner) -> Result<> {
    if (address == nullptr) return fail(EFAULT, "a null pointer");
    TRY_ASSIGN(*address, owner.allocate(count, wanted, tag));
    return {};
  });
}

int pnfsrdma_blocks_unmap(pnfsrdma_blocks* blocks, uint64_t address, uint64_t count) {
  return on_blocks(blocks, [&](Owner& owner) { return owner.unmap(address, count); });
}

int pnfsrdma_blocks_free(pnfsrdma_blocks* blocks, uint64_t address, uint64_t count) {
  return on_blocks(blocks, [&](Owner& owner) { return owner.free(address, count); });
}

int pnfsrdma_blocks_list(pnfsrdma_blocks* blocks, uint64_t from, pnfsrdma_run* runs, unsigned most) {
  return on_blocks(blocks, [&](Owner& owner) -> Result<size_t> {
    if (runs == nullptr && most > 0) return fail(EFAULT, "a null pointer");
    if (most > std::numeric_limits<int>::max()) return fail(EINVAL, "too many runs");
    TRY_ASSIGN(const auto listed, owner.list(from, most));
    for (size_t i = 0; i < listed.size(); ++i) runs[i] = {listed[i].address, listed[i].count};
    return listed.size();
  });
}

int pnfsrdma_blocks_map(pnfsrdma_blocks* blocks, uint64_t address, uint64_t count, unsigned flags,
                        pnfsrdma_mapping** mapping) {
  if (mapping != nullptr) *mapping = nullptr;
  return on_blocks(blocks, [&](Owner& owner) -> Result<> {
    if (mapping == nullptr) return fail(EFAULT, "a null pointer");
    constexpr unsigned kKnown = PNFSRDMA_MAP_WRITE | PNFSRDMA_MAP_SHARED;
    if ((flags & ~kKnown) != 0) return fail(EINVAL, "flags that are not known");
    const bool writable = (flags & PNFSRDMA_MAP_WRITE) != 0;
    const bool shared = (flags & PNFSRDMA_MAP_SHARED) != 0;
    TRY_ASSIGN(BlockMapping* const made, owner.map(address, count, writable, shared));
    *mapping = reinterpret_cast<pnfsrdma_mapping*>(made);
    return {};
  });
}

int pnfsrdma_mapping_release(pnfsrdma_mapping* mapping) {
  return on_mapping(mapping, [](BlockMapping& mapped) { return mapped.owner().release(mapped); });
}

int pnfsrdma_mapping_read(pnfsrdma_mapping* mapping, void* buffer, size_t count, uint64_t offset) {
  return on_mapping(mapping, [&](BlockMapping& mapped) -> Result<> {
    if (buffer == nullptr && count > 0) return fail(EFAULT, "the buffer is a null pointer");
    return mapped.read({static_cast<std::byte*>(buffer), count}, offset);
  });
}

int pnfsrdma_mapping_write(pnfsrdma_mapping* mapping, const void* buffer, size_t count, uint64_t offset,
                           uint32_t flags) {
  return on_mapping(mapping, [&](BlockMapping& mapped) -> Result<> {
    if (buffer == nullptr && count > 0) return fail(EFAULT, "the buffer is a null pointer");
    TRY(check_durable_only(flags));
    return mapped.write({static_cast<const std::byte*>(buffer), count}, offset, flags != 0);
  });
}

int pnfsrdma_mapping_flush(pnfsrdma_mapping* mapping, uint64_t offset, uint64_t length) {
  return on_mapping(mapping, [&](BlockMapping& mapped) { return mapped.flush(offset, length); });
}

int pnfsrdma_mapping_compare_and_swap(pnfsrdma_mapping* mapping, uint64_t offset, uint64_t expected,
                                      uint64_t desired, uint32_t flags, uint64_t* old) {
  return on_mapping(mapping, [&](BlockMapping& mapped) -> Result<int> {
    TRY_ASSIGN(const uint64_t before, change(mapped,
                                             {.kind = WordChange::Kind::kCompareAndSwap,
                                              .offset = offset,
                                              .operand = desired,
                                              .expected = expected},
                                             flags, old));
    return before == expected ? 1 : 0;
  });
}

int pnfsrdma_mapping_fetch_and_add(pnfsrdma_mapping* mapping, uint64_t offset, uint64_t addend,
                                   uint32_t flags, uint64_t* old) {
  return on_mapping(mapping, [&](BlockMapping& mapped) -> Result<> {
    TRY(change(mapped, {.kind = WordChange::Kind::kFetchAndAdd, .offset = offset, .operand = addend}, flags,
               old));
    return {};
  });
}
