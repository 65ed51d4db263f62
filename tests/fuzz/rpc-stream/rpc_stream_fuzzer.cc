// SPDX-License-Identifier: Apache-2.0
// A byte stream from a peer: record marks, and in the records calls and replies. The first byte says in what
// pieces the stream arrives; the records that come out may not depend on it.
#include <vector>

#include "shared/rpc/message.h"
#include "shared/rpc/record.h"
#include "tests/fuzz/round_trip.h"

using namespace pnfsrdma;

namespace {

constexpr size_t kRecordMax = 100000;

struct Stream {
  bool understood = true;
  std::vector<Bytes> records;
};

Stream read_stream(ByteSpan input, size_t step) {
  Stream stream;
  rpc::RecordReader reader(kRecordMax);
  while (stream.understood && !input.empty()) {
    const size_t count = std::min(step, input.size());
    stream.understood = reader.feed(input.first(count));
    input = input.subspan(count);
    while (auto record = reader.next()) {
      CHECK(record->size() <= kRecordMax);
      stream.records.push_back(std::move(*record));
    }
  }
  return stream;
}

void read_message(ByteSpan record) {
  check_round_trip<rpc::CallHeader>(record);
  check_round_trip<rpc::ReplyHeader>(record);
  xdr::Decoder decoder(record);
  const auto header = rpc::decode_call(decoder);
  if (header) {
    (void)rpc::to_auth_sys(header->credential);
  } else if (header.error().reply) {
    CHECK(!header.error().reply->successful());
    (void)header.error().reply->to_error();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ByteSpan input(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const Stream whole = read_stream(input, size);
  const Stream pieces = read_stream(input, data[0] + size_t{1});
  CHECK(whole.understood == pieces.understood);
  // Up to the mark that was not understood both have seen the same records, unless all came in one read.
  CHECK(whole.records == pieces.records);
  for (const Bytes& record : whole.records) read_message(record);
  return 0;
}
