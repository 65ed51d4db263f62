// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "server/console/inventory.h"
#include "server/mds/meta/records.h"
#include "server/mds/ops/exports.h"
#include "server/mds/ops/handle_keys.h"

namespace pnfsrdma::mds {

// Exports that change while the server runs. Those of the configuration file are in force until the first
// change; from then on the store has them all, with the ids they have in filehandles, and the file's are not
// looked at any more. Control loop only.
class ExportKeeper {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;
  struct Effects {
    // An export lets its clients do less than before.
    std::function<void(uint16_t id)> narrowed;
    // Filehandles have ended: those of an export around a new one, or of one that was removed.
    std::function<void()> handles_ended;
  };

  // A client with a connection, and the address it comes from.
  struct MountedClient {
    std::string name;
    std::string host;
  };
  // Visits all of them, so many a turn of the loop, then calls `done`; neither when the server ends.
  using Mounted =
      std::function<void(std::function<void(const MountedClient&)> visit, std::function<void()> done)>;

  ExportKeeper(KeyValueStore& store, Exports& exports, HandleKeys& handles, Effects effects, Mounted mounted);

  // What a start serves: the store's if there are any, else `configured`. EUCLEAN.
  struct Initial {
    std::vector<Export> exports;
    uint16_t next_id = 1;
    bool stored = false;
  };
  static Result<Initial> initial(KeyValueStore& store, std::vector<Export> configured);

  std::vector<console::Export> all() const;
  // They changed at run time: what the configuration file says of them is not in force any more.
  bool stored() const { return stored_; }
  // Those in force, as JSON in the form of the configuration file.
  std::string text() const;
  // What add() would cost clients that are mounted now, by the exports there are when it is asked. EINVAL (path,
  // networks).
  void effect(const console::ExportRules& rules, Done<console::ExportEffect> done) const;
  // EINVAL (path, networks), EEXIST (the path), ENOSPC (65535 were made). Inside another export it ends the
  // filehandles of that one, which may lead into it: the answer's warning says so.
  void add(const console::ExportRules& rules, Done<console::Export> done);
  // ENOENT, EINVAL (another path, too).
  void change(uint16_t id, const console::ExportRules& rules, Done<console::Export> done);
  // Nobody comes in by it any more; what was granted through it before is the caller's business.
  void remove(uint16_t id, Done<void> done);

 private:
  void effect_of(const Export& added, std::function<void(const console::ExportEffect&)> done) const;
  Result<> may_add(const Export& item) const;
  void add(Export item, const console::ExportEffect& effect, const Done<console::Export>& done);
  // With everything that is in force, when the store has nothing yet.
  Batch begin() const;
  console::Export shown(const Export& item) const;
  void commit(const Batch& batch, const std::function<void()>& apply, Done<void> done);
  void answer(uint16_t id, Result<> stored, const Done<console::Export>& done) const;

  KeyValueStore& store_;
  Exports& exports_;
  HandleKeys& handles_;
  const Effects effects_;
  const Mounted mounted_;
  bool stored_;
};

}  // namespace pnfsrdma::mds
