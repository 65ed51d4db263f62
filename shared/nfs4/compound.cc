// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/compound.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/nfs4/operation_codec.h"

namespace pnfsrdma::nfs4 {
namespace {

constexpr const OperationRow* find_row(uint32_t number, ForeChannel) {
  return find_operation(number);
}
constexpr const OperationRow* find_row(uint32_t number, BackChannel) {
  return find_callback(number);
}

// No operation at all, or one that a later minor version brought.
template <typename Channel>
bool is_illegal(uint32_t number, uint32_t minor_version) {
  const OperationRow* row = find_row(number, Channel());
  return !row || row->minor_first > minor_version || number == static_cast<uint32_t>(Channel::kIllegal);
}

template <typename Channel>
uint32_t number_of(const auto& operation) {
  return static_cast<uint32_t>(operation_of(operation));
}

}  // namespace

// --- reading arguments ---

template <typename Channel>
auto BasicCompoundReader<Channel>::open(ByteSpan arguments)
    -> std::expected<BasicCompoundReader, xdr::DecodeError> {
  BasicCompoundReader reader(arguments);
  if (!xdr::decode(reader.decoder_, reader.header_) || !reader.decoder_.get_u32(reader.count_)) {
    return std::unexpected(reader.decoder_.error());
  }
  reader.left_ = reader.count_;
  return reader;
}

template <typename Channel>
auto BasicCompoundReader<Channel>::next() -> Item {
  CHECK(left_ > 0);
  --left_;
  uint32_t number = 0;
  if (!decoder_.get_u32(number)) {
    left_ = 0;
    return {Channel::kIllegal, std::unexpected(Status::kBadXdr)};
  }
  if (is_illegal<Channel>(number, header_.minor_version)) {
    left_ = 0;  // where its arguments end nobody knows
    return {Channel::kIllegal, std::unexpected(Status::kOpIllegal)};
  }
  Item item{static_cast<typename Channel::Number>(number), {}};
  if (!decode_operation(decoder_, number, *item.arguments)) {
    left_ = 0;
    item.arguments = std::unexpected(Status::kBadXdr);
  }
  return item;
}

// --- writing results ---

template <typename Channel>
BasicResultWriter<Channel>::BasicResultWriter(Bytes& out, const Tag& tag)
    : encoder_(out), start_(encoder_.position()) {
  xdr::encode(encoder_, Status::kOk);
  xdr::encode(encoder_, tag);
  count_position_ = encoder_.position();
  encoder_.put_u32(0);
  last_ = encoder_.position();
}

template <typename Channel>
void BasicResultWriter<Channel>::add(const typename Channel::Results& result) {
  const xdr::Encoder::Staging staging(encoder_);
  last_ = encoder_.position();
  encoder_.put_u32(number_of<Channel>(result));
  encode_operation(encoder_, result);
  encoder_.patch_u32(count_position_, ++count_);
  status_before_last_ = status_;
  set_status(status_of(result));
}

template <typename Channel>
xdr::Encoder& BasicResultWriter<Channel>::begin(typename Channel::Number operation, Status status) {
  last_ = encoder_.position();
  encoder_.put_u32(static_cast<uint32_t>(operation));
  xdr::encode(encoder_, status);
  encoder_.patch_u32(count_position_, ++count_);
  status_before_last_ = status_;
  set_status(status);
  return encoder_;
}

template <typename Channel>
void BasicResultWriter<Channel>::drop_last() {
  if (encoder_.position() == last_) return;
  encoder_.truncate(last_);
  encoder_.patch_u32(count_position_, --count_);
  set_status(status_before_last_);
}

template <typename Channel>
void BasicResultWriter<Channel>::set_status(Status status) {
  status_ = status;
  encoder_.patch_u32(start_, static_cast<uint32_t>(status));
}

// --- writing arguments ---

template <typename Channel>
BasicCompoundWriter<Channel>::BasicCompoundWriter(Bytes& out, const typename Channel::Header& header)
    : encoder_(out) {
  xdr::encode(encoder_, header);
  count_position_ = encoder_.position();
  encoder_.put_u32(0);
}

template <typename Channel>
void BasicCompoundWriter<Channel>::add(const typename Channel::Arguments& arguments) {
  encode_operation(begin(operation_of(arguments)), arguments);
}

template <typename Channel>
xdr::Encoder& BasicCompoundWriter<Channel>::begin(typename Channel::Number operation) {
  encoder_.put_u32(static_cast<uint32_t>(operation));
  encoder_.patch_u32(count_position_, ++count_);
  return encoder_;
}

// --- reading results ---

template <typename Channel>
auto BasicResultReader<Channel>::open(ByteSpan results)
    -> std::expected<BasicResultReader, xdr::DecodeError> {
  BasicResultReader reader(results);
  if (!xdr::decode(reader.decoder_, reader.status_) || !xdr::decode(reader.decoder_, reader.tag_) ||
      !reader.decoder_.get_count(reader.left_, kOperationsMax)) {
    return std::unexpected(reader.decoder_.error());
  }
  return reader;
}

template <typename Channel>
auto BasicResultReader<Channel>::next() -> std::expected<typename Channel::Results, Status> {
  if (left_ == 0) return std::unexpected(status_ == Status::kOk ? Status::kBadXdr : status_);
  --left_;
  uint32_t number = 0;
  std::expected<typename Channel::Results, Status> result;
  if (!decoder_.get_u32(number) || !find_row(number, Channel()) ||
      !decode_operation(decoder_, number, *result)) {
    left_ = 0;
    status_ = Status::kBadXdr;
    result = std::unexpected(Status::kBadXdr);
  }
  return result;
}

template class BasicCompoundReader<ForeChannel>;
template class BasicCompoundReader<BackChannel>;
template class BasicResultWriter<ForeChannel>;
template class BasicResultWriter<BackChannel>;
template class BasicCompoundWriter<ForeChannel>;
template class BasicCompoundWriter<BackChannel>;
template class BasicResultReader<ForeChannel>;
template class BasicResultReader<BackChannel>;

// --- whole ---

namespace {

template <typename Channel>
void encode_arguments(xdr::Encoder& encoder, const BasicCompoundArguments<Channel>& arguments) {
  CHECK(arguments.operations.size() <= kOperationsMax);
  xdr::encode(encoder, arguments.header);
  encoder.put_u32(static_cast<uint32_t>(arguments.operations.size()));
  for (const auto& operation : arguments.operations) {
    encoder.put_u32(number_of<Channel>(operation));
    encode_operation(encoder, operation);
  }
}

template <typename Channel>
void encode_results(xdr::Encoder& encoder, const BasicCompoundResults<Channel>& results) {
  CHECK(results.operations.size() <= kOperationsMax);
  xdr::encode(encoder, results.status);
  xdr::encode(encoder, results.tag);
  encoder.put_u32(static_cast<uint32_t>(results.operations.size()));
  for (const auto& operation : results.operations) {
    encoder.put_u32(number_of<Channel>(operation));
    encode_operation(encoder, operation);
  }
}

// The operations of either, each behind its number. `minor_version` decides which numbers there are.
template <typename Channel, typename Operations>
bool decode_operations(xdr::Decoder& decoder, uint32_t minor_version, Operations& operations) {
  uint32_t count = 0;
  if (!decoder.get_count(count, kOperationsMax)) return false;
  operations.clear();
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t number = 0;
    if (!decoder.get_u32(number)) return false;
    const OperationRow* row = find_row(number, Channel());
    if (!row || row->minor_first > minor_version) return decoder.fail(xdr::DecodeError::kDiscriminant);
    if (!decode_operation(decoder, number, operations.emplace_back())) return false;
  }
  return true;
}

template <typename Channel>
bool decode_arguments(xdr::Decoder& decoder, BasicCompoundArguments<Channel>& arguments) {
  return xdr::decode(decoder, arguments.header) &&
         decode_operations<Channel>(decoder, arguments.header.minor_version, arguments.operations);
}

template <typename Channel>
bool decode_results(xdr::Decoder& decoder, BasicCompoundResults<Channel>& results) {
  return xdr::decode(decoder, results.status) && xdr::decode(decoder, results.tag) &&
         decode_operations<Channel>(decoder, UINT32_MAX, results.operations);
}

}  // namespace

void xdr_encode(xdr::Encoder& encoder, const CompoundArguments& arguments) {
  encode_arguments(encoder, arguments);
}
void xdr_encode(xdr::Encoder& encoder, const CompoundResults& results) {
  encode_results(encoder, results);
}
void xdr_encode(xdr::Encoder& encoder, const CallbackCompoundArguments& arguments) {
  encode_arguments(encoder, arguments);
}
void xdr_encode(xdr::Encoder& encoder, const CallbackCompoundResults& results) {
  encode_results(encoder, results);
}
bool xdr_decode(xdr::Decoder& decoder, CompoundArguments& arguments) {
  return decode_arguments(decoder, arguments);
}
bool xdr_decode(xdr::Decoder& decoder, CompoundResults& results) {
  return decode_results(decoder, results);
}
bool xdr_decode(xdr::Decoder& decoder, CallbackCompoundArguments& arguments) {
  return decode_arguments(decoder, arguments);
}
bool xdr_decode(xdr::Decoder& decoder, CallbackCompoundResults& results) {
  return decode_results(decoder, results);
}

}  // namespace pnfsrdma::nfs4
