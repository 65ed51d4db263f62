// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/pmem/kind.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::pmem {

// What the administrator wants of a page-cached file: msync at each flush, or speed.
enum class FileFlush : uint8_t { kSync, kPageCache };

// A part of a file or device.
struct Window {
  uint64_t offset = 0;  // multiples of what the device needs: Mapping::alignment()
  uint64_t length = 0;
  enum class Hold : uint8_t {
    kAlone,     // EWOULDBLOCK: somebody has a part of it
    kWhenFree,  // waits for whoever has it, who will not have it for long
    kBesides,   // beside whoever has it: only to look at
  } hold = Hold::kAlone;
};

// The pool's bytes in our address space, mapped by libpmem2 (a file or device) or anonymous. Owns mapping,
// descriptor and the exclusive lock on the file. The bytes may be touched by any thread.
class Mapping {
 public:
  // Maps all of an existing file or device, locked against other processes. Errors name cause and fix;
  // EWOULDBLOCK: another process has it.
  static Result<std::unique_ptr<Mapping>> open(const std::string& path);
  // The same of a part of it, locked against whoever maps all of it or a part that overlaps.
  static Result<std::unique_ptr<Mapping>> open(const std::string& path, const Window& window);
  // What offset and length of a Window are multiples of, at least; and how long the file or device is.
  struct Extent {
    uint64_t alignment = 0;
    uint64_t size = 0;
  };
  static Result<Extent> extent(const std::string& path);
  // Memory of this process.
  static Result<std::unique_ptr<Mapping>> anonymous(uint64_t size);

  virtual ~Mapping() = default;

  MutableByteSpan bytes() const { return bytes_; }
  Medium medium() const { return medium_; }

  // The right way to make these bytes durable; never claims more than is true:
  //   memory, tmpfs                 volatile: nothing to flush
  //   file                          power by msync, or process when `file_flush` says so
  //   fsdax, devdax                 power by cache-line flush, when libpmem2 says that the mapping allows
  //                                 that; fsdax without it: as a file
  //   whatever is in doubt          volatile
  // The mapping must outlive it.
  virtual std::unique_ptr<Persistence> make_persistence(FileFlush file_flush) const = 0;

  // Of a plain file: into the page cache what lies on the disk. A touch brings in a single page there: what the
  // kernel reads ahead comes in larger units, of which a store makes all dirty (ext4 since Linux 6.16: a flush of
  // 4 KiB wrote 1.9 MiB). May wait for the disk. Any thread.
  virtual void read_ahead(ByteSpan) const {}

 protected:
  Mapping(MutableByteSpan bytes, Medium medium) : bytes_(bytes), medium_(medium) {}

 private:
  MutableByteSpan bytes_;
  Medium medium_;
};

}  // namespace pnfsrdma::pmem
