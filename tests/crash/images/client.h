// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/crash/images/brick_link.h"
#include "tests/crash/images/compound_client.h"
#include "tests/crash/images/grain.h"
#include "tests/crash/images/journal.h"

namespace pnfsrdma::crash {

// A file a client has open: its state at the server, its layout, and what it has written and not synced.
struct OpenFile {
  uint16_t serial = 0;
  nfs4::FileHandle handle;
  nfs4::Stateid open;
  std::optional<nfs4::Stateid> layout;

  // Part of the layout.
  struct Piece {
    uint64_t begin = 0, end = 0;
    bool hole = false;
    bool writable = false;
    uint32_t connection = 0;
    nfs4::Target target;
  };
  std::map<uint64_t, Piece> pieces;  // by begin; none overlap

  std::map<uint64_t, uint32_t> unsynced;  // grain -> generation, flushed or not
  uint64_t written_end = 0;               // of what was written under the layout
  uint64_t size = 0;                      // as the server knows it
};

// The client side of the system under test: does what FileIo does, in one thread and a step at a time, and
// tells the journal before it begins anything and when it may count on something.
class Client {
 public:
  Client(System& system, Journal& journal, const Faults& faults = {})
      : system_(system), journal_(journal), faults_(faults), compounds_(system, "client") {}

  // Starts anew and knows nothing: as after its own crash, or the servers'.
  bool start();
  // The servers' state is still there, the brick's connection and all layouts are not.
  void brick_lost();

  // Null: it could not be opened.
  OpenFile* open(const std::string& name, bool create);
  OpenFile* opened(const std::string& name);
  // All of these: false if it was not done, which the journal then does not claim either.
  bool write(OpenFile& file, uint64_t offset, uint64_t length, uint64_t wished);
  bool sync(OpenFile& file, Flush method);
  bool write_through_server(OpenFile& file, uint64_t offset, uint64_t length, bool stable);
  bool truncate(OpenFile& file, uint64_t size);
  // Gives the layout back without saying what was written.
  bool give_back(OpenFile& file);
  bool close(const std::string& name);
  // Names of open files may go: they stay open until forget_nameless().
  bool remove(const std::string& name);
  bool rename(const std::string& from, const std::string& to);
  void close_nameless();

  // For the checker.
  std::optional<uint64_t> size_of(const OpenFile& file);
  std::optional<Bytes> read_through_server(const OpenFile& file, uint64_t offset, uint64_t length);
  std::optional<Bytes> read(OpenFile& file, uint64_t offset, uint64_t length);
  std::optional<std::vector<std::string>> names();

  // Operations that succeeded, and "later" or "no space" for an answer.
  uint64_t done = 0;
  uint64_t refused = 0;

 private:
  bool cover(OpenFile& file, uint64_t offset, uint64_t length, uint64_t wished, bool write);
  bool get_layout(OpenFile& file, uint64_t offset, uint64_t length, uint64_t wished, bool write);
  bool connect(const nfs4::DeviceId& device);
  std::optional<rdma::RemoteSlice> remote(const OpenFile::Piece& piece, uint64_t offset, uint64_t length);
  // each(piece, offset in the file, length) for the parts of a covered range. False, and the connection is
  // gone, if one of them says so.
  using Each = std::function<bool(const OpenFile::Piece&, uint64_t offset, uint64_t length)>;
  bool each_piece(OpenFile& file, uint64_t offset, uint64_t length, const Each& each);
  bool flush(OpenFile& file, Flush method);
  bool commit(OpenFile& file, Flush method);
  Operations layout_return(const OpenFile& file) const;
  void drop_layout(OpenFile& file);
  bool finished(const Reply& reply);
  bool journalled(bool success, const std::function<void()>& note);
  void move_name(const std::string& from, const std::string& to);

  System& system_;
  Journal& journal_;
  const Faults faults_;
  CompoundClient compounds_;
  nfs4::DeviceId device_{};
  std::unique_ptr<BrickLink> link_;
  std::map<std::string, std::unique_ptr<OpenFile>> files_;
  std::vector<std::unique_ptr<OpenFile>> nameless_;
};

}  // namespace pnfsrdma::crash
