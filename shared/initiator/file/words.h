// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/initiator/file/committer.h"
#include "shared/initiator/file/flusher.h"
#include "shared/initiator/file/io.h"
#include "shared/initiator/file/layout_getter.h"

namespace pnfsrdma::initiator {

// Has bricks change words of one file: a message and its answer under a layout for writing, and once more where the
// answer was lost with its connection, which the brick then makes once all the same. There is no other way:
// through the MDS nothing would be atomic. Waits for bricks and the MDS. Thread-safe; without a state of its own.
class Words {
 public:
  Words(FileState& file, Committer& committer, Flusher& flusher, LayoutGetter& layouts)
      : file_(file), committer_(committer), flusher_(flusher), layouts_(layouts) {}

  // As FileIo::change_word().
  Result<uint64_t> change(uint64_t offset, const WordIo& word);

 private:
  class Inside;

  Result<> settle();
  // Inside of the gate, for writing, in the file as it is known to be.
  Result<> enter(uint64_t offset, Inside& inside);
  // None: it was not made; another try may do it.
  Result<std::optional<uint64_t>> change_once(uint64_t offset, const WordIo& word);
  std::optional<brick::ChangeWordCall> prepare(const LayoutSegment& piece, Connection& connection,
                                               const WordIo& word) const;
  // After the answer was lost. None: nobody knows.
  std::optional<brick::ChangeWordReply> ask_again(Device& device, const brick::ChangeWordCall& call) const;
  // That it was made, as DirtyList::wrote().
  void note(const LayoutPin& pin, const Connection& connection, std::optional<uint64_t> flushed_behind);
  Result<std::optional<uint64_t>> conclude(const Inside& inside, const WordIo& word,
                                           const Connection& connection, const brick::ChangeWordReply& reply,
                                           uint64_t noted);

  FileState& file_;
  Committer& committer_;
  Flusher& flusher_;
  LayoutGetter& layouts_;
};

}  // namespace pnfsrdma::initiator
