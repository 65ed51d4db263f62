// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/data_items.h"

#include <algorithm>

#include "shared/nfs4/attributes.h"
#include "shared/nfs4/compound.h"
#include "shared/nfs4/operation_codec.h"
#include "shared/xdr/codec.h"

namespace pnfsrdma::nfs4 {
namespace {

constexpr size_t kUnknown = SIZE_MAX;
// Owners are "user@domain"; nobody's are longer.
constexpr size_t kOwnerBytesMax = 256;
constexpr size_t kLinkDataMax = 4096;
// Operation and status.
constexpr size_t kResultHead = 8;
// Stateids, change infos, verifiers, flags: whatever has no variable part in its results.
constexpr size_t kFixedResultMax = 64;
// OPEN: stateid, change info, flags, attributes set, a delegation with its ACE.
constexpr size_t kOpenResultMax = 1024;

size_t attribute_bytes(uint32_t number) {
  switch (static_cast<Attribute>(number)) {
    case Attribute::kOwner:
    case Attribute::kOwnerGroup:
      return kOwnerBytesMax;
    case Attribute::kFileHandle:
      return 4 + kFileHandleSize;
    case Attribute::kSupportedAttributes:
    case Attribute::kSupportedExclusiveCreate:
    case Attribute::kFsLayoutTypes:
    case Attribute::kLayoutTypes:
    case Attribute::kMdsThreshold:
    case Attribute::kOpenArguments:
      return 128;
    default:
      break;
  }
  // The longest of all others are fsid and change_policy.
  constexpr uint32_t kKnown[] = {
#define PNFSRDMA_NUMBER(number, enumerator, member, type) number,
      PNFSRDMA_NFS4_ATTRIBUTES(PNFSRDMA_NUMBER)
#undef PNFSRDMA_NUMBER
  };
  return std::find(std::begin(kKnown), std::end(kKnown), number) != std::end(kKnown) ? 16 : kUnknown;
}

size_t attributes_bytes(const Bitmap& wanted) {
  size_t bytes = 8 + 4 * wanted.size();
  for (uint32_t number = 0; number < 32 * wanted.size(); ++number) {
    if (!wanted.test(number)) continue;
    const size_t more = attribute_bytes(number);
    if (more == kUnknown) return kUnknown;
    bytes += more;
  }
  return bytes;
}

// What an operation's results may have behind their status, data items apart.
size_t result_bytes(const ArgumentOperation& arguments, std::vector<uint32_t>& data) {
  if (const auto* read = std::get_if<ReadArguments>(&arguments)) {
    data.push_back(read->count);
    return 8;
  }
  if (std::holds_alternative<ReadLinkArguments>(arguments)) {
    data.push_back(kLinkDataMax);
    return 4;
  }
  if (const auto* wanted = std::get_if<GetAttributesArguments>(&arguments))
    return attributes_bytes(wanted->requested);
  if (const auto* wanted = std::get_if<ReadDirectoryArguments>(&arguments))
    return size_t{16} + wanted->max_count;
  if (const auto* wanted = std::get_if<LayoutGetArguments>(&arguments)) return size_t{64} + wanted->max_count;
  if (const auto* wanted = std::get_if<GetDeviceInfoArguments>(&arguments))
    return size_t{128} + wanted->max_count;
  if (const auto* wanted = std::get_if<ListXattrsArguments>(&arguments))
    return size_t{16} + wanted->max_count;
  if (const auto* tested = std::get_if<TestStateidArguments>(&arguments))
    return 4 + 4 * tested->stateids.size();
  switch (operation_of(arguments)) {
    case Operation::kOpen:
      return kOpenResultMax;
    case Operation::kGetFileHandle:
      return 4 + kFileHandleSize;
    case Operation::kCreateSession:
    case Operation::kCreate:
    case Operation::kSetAttributes:
    case Operation::kSequence:
      return 2 * kFixedResultMax + 4 * kBitmapWordsMax;
    case Operation::kAccess:
    case Operation::kAllocate:
    case Operation::kBackchannelControl:
    case Operation::kBindConnectionToSession:
    case Operation::kClone:
    case Operation::kClose:
    case Operation::kCommit:
    case Operation::kDeallocate:
    case Operation::kDelegationReturn:
    case Operation::kDestroyClientId:
    case Operation::kDestroySession:
    case Operation::kFreeStateid:
    case Operation::kLayoutCommit:
    case Operation::kLayoutError:
    case Operation::kLayoutReturn:
    case Operation::kLayoutStatistics:
    case Operation::kLink:
    case Operation::kLookup:
    case Operation::kLookupParent:
    case Operation::kNegatedVerify:
    case Operation::kOpenDowngrade:
    case Operation::kPutFileHandle:
    case Operation::kPutPublicFileHandle:
    case Operation::kPutRootFileHandle:
    case Operation::kReclaimComplete:
    case Operation::kRemove:
    case Operation::kRemoveXattr:
    case Operation::kRename:
    case Operation::kRestoreFileHandle:
    case Operation::kSaveFileHandle:
    case Operation::kSeek:
    case Operation::kSetXattr:
    case Operation::kUnlock:
    case Operation::kVerify:
    case Operation::kWrite:
      return kFixedResultMax;
    default:
      return kUnknown;
  }
}

// What stands in front of the results. False as from every decoder.
bool decode_head(xdr::Decoder& decoder, uint32_t& count) {
  Status status{};
  Tag tag;
  return xdr::decode(decoder, status) && xdr::decode(decoder, tag) &&
         decoder.get_count(count, kOperationsMax);
}

size_t padded(size_t length) {
  return length + xdr::padding(length);
}

}  // namespace

std::vector<xdr::DataItem> argument_data_items(ByteSpan arguments) {
  std::vector<xdr::DataItem> items;
  auto reader = CompoundReader::open(arguments);
  while (reader && reader->left() > 0) {
    const auto item = reader->next();
    if (!item.arguments) break;
    const auto* write = std::get_if<WriteArguments>(&*item.arguments);
    if (write == nullptr || write->data.empty()) continue;
    const ByteSpan data = write->data.span();  // a view into `arguments`
    items.push_back(
        {static_cast<size_t>(data.data() - arguments.data()), static_cast<uint32_t>(data.size())});
  }
  return items;
}

std::vector<xdr::DataItem> result_data_items(ByteSpan results) {
  std::vector<xdr::DataItem> items;
  xdr::Decoder decoder(results);
  uint32_t count = 0;
  if (!decode_head(decoder, count)) return items;
  for (; count > 0; --count) {
    uint32_t number = 0;
    ResultOperation result;
    if (!decoder.get_u32(number) || find_operation(number) == nullptr ||
        !decode_operation(decoder, number, result)) {
      break;
    }
    size_t length = 0;
    if (const auto* read = std::get_if<ReadResponse>(&result); read != nullptr && read->ok()) {
      length = read->result.data.size();
    } else if (const auto* link = std::get_if<ReadLinkResponse>(&result); link != nullptr && link->ok()) {
      length = link->result.link.size();
    } else {
      continue;
    }
    // Both end with their data.
    items.push_back({decoder.position() - padded(length), static_cast<uint32_t>(length)});
  }
  return items;
}

xdr::StreamBound result_bound(ByteSpan arguments) {
  xdr::StreamBound bound;
  auto reader = CompoundReader::open(arguments);
  if (!reader) return {.stream_bytes = kUnknown, .data_bytes = {}};
  bound.stream_bytes = 12 + padded(reader->header().tag.size());
  while (reader->left() > 0) {
    const auto item = reader->next();
    const size_t more = item.arguments ? result_bytes(*item.arguments, bound.data_bytes) : kUnknown;
    if (more == kUnknown) {
      bound.stream_bytes = kUnknown;
    } else if (bound.stream_bytes != kUnknown) {
      bound.stream_bytes += kResultHead + more;
    }
  }
  return bound;
}

std::optional<std::vector<xdr::DataItem>> restored_data_items(ByteSpan reduced,
                                                              std::span<const uint32_t> lengths) {
  std::vector<xdr::DataItem> items;
  xdr::Decoder decoder(reduced);
  uint32_t count = 0;
  if (!decode_head(decoder, count)) return std::nullopt;
  size_t next = 0;
  size_t restored = 0;  // bytes of items so far
  for (; count > 0; --count) {
    uint32_t number = 0;
    if (!decoder.get_u32(number) || find_operation(number) == nullptr) return std::nullopt;
    const auto operation = static_cast<Operation>(number);
    const bool has_data = operation == Operation::kRead || operation == Operation::kReadLink;
    const uint32_t missing = has_data && next < lengths.size() ? lengths[next++] : 0;
    if (missing == 0) {
      ResultOperation result;
      if (!decode_operation(decoder, number, result)) return std::nullopt;
      continue;
    }
    uint32_t status = 0;
    uint32_t end_of_file = 0;
    uint32_t length = 0;
    const bool whole = decoder.get_u32(status) &&
                       (operation == Operation::kReadLink || decoder.get_u32(end_of_file)) &&
                       decoder.get_u32(length);
    if (!whole || status != 0 || length != missing) return std::nullopt;
    items.push_back({decoder.position() + restored, length});
    restored += padded(length);
  }
  return items;
}

}  // namespace pnfsrdma::nfs4
