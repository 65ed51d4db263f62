// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <utility>
#include <vector>

#include "shared/nfs4/operations.h"
#include "shared/xdr/codec.h"

// COMPOUND and CB_COMPOUND (RFC 8881, 16.2 and 20) operation by operation, as a server executes and a client
// reads them; and whole, in vectors. Everything exists twice, for the fore channel and for callbacks, by one
// template.
namespace pnfsrdma::nfs4 {

using Tag = xdr::String<kTagMax>;

// What stands before the operations. CB_COMPOUND also has an identifier, which only NFSv4.0 uses.
struct CompoundHeader {
  Tag tag;
  uint32_t minor_version = 0;
};
struct CallbackCompoundHeader {
  Tag tag;
  uint32_t minor_version = 0;
  uint32_t callback_identifier = 0;
};

struct ForeChannel {
  using Header = CompoundHeader;
  using Number = Operation;
  static constexpr Operation kIllegal = Operation::kIllegal;
  using Arguments = ArgumentOperation;
  using Results = ResultOperation;
};
struct BackChannel {
  using Header = CallbackCompoundHeader;
  using Number = CallbackOperation;
  static constexpr CallbackOperation kIllegal = CallbackOperation::kCallbackIllegal;
  using Arguments = CallbackArgumentOperation;
  using Results = CallbackResultOperation;
};

// --- server ---

// The arguments of a COMPOUND, one operation after the other as they are executed: garbage in the fifth does
// not keep the first four from running. Reads the record, which must live as long: data of a WRITE points
// into it.
template <typename Channel>
class BasicCompoundReader {
 public:
  struct Item {
    typename Channel::Number operation{};
    std::expected<typename Channel::Arguments, Status> arguments;
  };

  // An error: not a COMPOUND at all (answer GARBAGE_ARGS).
  static std::expected<BasicCompoundReader, xdr::DecodeError> open(ByteSpan arguments);

  const typename Channel::Header& header() const { return header_; }
  uint32_t minor_version() const { return header_.minor_version; }
  // How many the peer announced (any number: nothing is allocated for them), and how many are still to come.
  // None are once one could not be decoded.
  uint32_t operation_count() const { return count_; }
  uint32_t left() const { return left_; }

  // The next one: its arguments, or kOpIllegal for a number that is no operation in this minor version
  // (`operation` is then kIllegal, as the reply has it), or kBadXdr. left() must not be 0. Operations that
  // the minor version forbids or the server lacks are decoded: their handlers answer kNotSupp.
  Item next();

 private:
  explicit BasicCompoundReader(ByteSpan arguments) : decoder_(arguments) {}

  xdr::Decoder decoder_;
  typename Channel::Header header_;
  uint32_t count_ = 0;
  uint32_t left_ = 0;
};

// The results, appended to `out` one after the other: status, tag, results. The status is that of the last
// one added.
template <typename Channel>
class BasicResultWriter {
 public:
  BasicResultWriter(Bytes& out, const Tag& tag);

  void add(const typename Channel::Results& result);
  // The number and status of a result whose body the caller encodes itself (READ straight from its source).
  xdr::Encoder& begin(typename Channel::Number operation, Status status);
  // Takes back the last result: it made the reply too long (NFS4ERR_REP_TOO_BIG goes in its place).
  void drop_last();

  // Bytes written so far, from the status on.
  size_t size() const { return encoder_.position() - start_; }
  uint32_t count() const { return count_; }
  // The status of the whole COMPOUND when no operation has been added (NFS4ERR_MINOR_VERS_MISMATCH, …).
  void set_status(Status status);

 private:
  xdr::Encoder encoder_;
  size_t start_;
  size_t count_position_ = 0;
  size_t last_ = 0;
  Status status_before_last_ = Status::kOk;
  Status status_ = Status::kOk;
  uint32_t count_ = 0;
};

// --- client ---

// The arguments of a COMPOUND, appended to `out` one operation after the other.
template <typename Channel>
class BasicCompoundWriter {
 public:
  BasicCompoundWriter(Bytes& out, const typename Channel::Header& header);

  void add(const typename Channel::Arguments& arguments);
  // The number of an operation whose arguments the caller encodes itself.
  xdr::Encoder& begin(typename Channel::Number operation);
  uint32_t count() const { return count_; }

 private:
  xdr::Encoder encoder_;
  size_t count_position_ = 0;
  uint32_t count_ = 0;
};

// The results of a COMPOUND, in order. Reads the record, which must live as long: data of a READ points into
// it.
//
//   TRY_ASSIGN(auto results, CompoundResultReader::open(reply.results));        // xdr::DecodeError
//   TRY(results.result<SequenceResponse>());                                    // the failing operation's
//   status TRY_ASSIGN(OpenResult open, results.result<OpenResponse>());
template <typename Channel>
class BasicResultReader {
 public:
  static std::expected<BasicResultReader, xdr::DecodeError> open(ByteSpan results);

  Status status() const { return status_; }
  const Tag& tag() const { return tag_; }
  uint32_t left() const { return left_; }

  // The next result, whatever it is. kBadXdr if it is malformed; status() (never kOk) if there are no more.
  std::expected<typename Channel::Results, Status> next();
  // The next result, which has to be of this operation: kBadXdr if it is of another one.
  template <typename Response>
  std::expected<Response, Status> response() {
    auto operation = next();
    if (!operation) return std::unexpected(operation.error());
    if (Response* response = std::get_if<Response>(&*operation)) return std::move(*response);
    const Status status = status_of(*operation);
    return std::unexpected(status == Status::kOk ? Status::kBadXdr : status);
  }
  // What it brought, or its status.
  template <typename Response>
  std::expected<typename Response::Result, Status> result() {
    auto answer = response<Response>();
    if (!answer) return std::unexpected(answer.error());
    if (!answer->ok()) return std::unexpected(answer->status);
    return std::move(answer->result);
  }

 private:
  explicit BasicResultReader(ByteSpan results) : decoder_(results) {}

  xdr::Decoder decoder_;
  Status status_ = Status::kOk;
  Tag tag_;
  uint32_t left_ = 0;
};

using CompoundReader = BasicCompoundReader<ForeChannel>;
using CompoundResultWriter = BasicResultWriter<ForeChannel>;
using CompoundWriter = BasicCompoundWriter<ForeChannel>;
using CompoundResultReader = BasicResultReader<ForeChannel>;
using CallbackCompoundReader = BasicCompoundReader<BackChannel>;
using CallbackResultWriter = BasicResultWriter<BackChannel>;
using CallbackCompoundWriter = BasicCompoundWriter<BackChannel>;
using CallbackResultReader = BasicResultReader<BackChannel>;

extern template class BasicCompoundReader<ForeChannel>;
extern template class BasicCompoundReader<BackChannel>;
extern template class BasicResultWriter<ForeChannel>;
extern template class BasicResultWriter<BackChannel>;
extern template class BasicCompoundWriter<ForeChannel>;
extern template class BasicCompoundWriter<BackChannel>;
extern template class BasicResultReader<ForeChannel>;
extern template class BasicResultReader<BackChannel>;

// --- whole ---

// COMPOUND4args and CB_COMPOUND4args; encoded and decoded in one go (xdr::encode, xdr::decode). Decoding
// takes at most kOperationsMax operations and refuses one that is no operation in the minor version.
template <typename Channel>
struct BasicCompoundArguments {
  typename Channel::Header header;
  std::vector<typename Channel::Arguments> operations;
};
template <typename Channel>
struct BasicCompoundResults {
  Status status = Status::kOk;
  Tag tag;
  std::vector<typename Channel::Results> operations;
};
using CompoundArguments = BasicCompoundArguments<ForeChannel>;
using CompoundResults = BasicCompoundResults<ForeChannel>;
using CallbackCompoundArguments = BasicCompoundArguments<BackChannel>;
using CallbackCompoundResults = BasicCompoundResults<BackChannel>;

void xdr_encode(xdr::Encoder& encoder, const CompoundArguments& arguments);
void xdr_encode(xdr::Encoder& encoder, const CompoundResults& results);
void xdr_encode(xdr::Encoder& encoder, const CallbackCompoundArguments& arguments);
void xdr_encode(xdr::Encoder& encoder, const CallbackCompoundResults& results);
bool xdr_decode(xdr::Decoder& decoder, CompoundArguments& arguments);
bool xdr_decode(xdr::Decoder& decoder, CompoundResults& results);
bool xdr_decode(xdr::Decoder& decoder, CallbackCompoundArguments& arguments);
bool xdr_decode(xdr::Decoder& decoder, CallbackCompoundResults& results);

}  // namespace pnfsrdma::nfs4
