// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/format_version.h"

#include <cerrno>
#include <string>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {

Result<> raise_format_version(KeyValueStore& store, Batch& batch, uint64_t format) {
  TRY_ASSIGN(const std::optional<std::string> stored, store.get(meta_key("format")));
  if (stored) {
    TRY_ASSIGN(const StoredNumber present, read_value<StoredNumber>(*stored, "a format version"));
    if (present.number >= format) return {};
  }
  put_value(batch, meta_key("format"), StoredNumber{format});
  return {};
}

void raise_format_version(Batch& batch, uint64_t format) {
  put_value(batch, meta_key("format"), StoredNumber{format});
}

Result<> check_format_version(KeyValueStore& store) {
  TRY_ASSIGN(const std::optional<std::string> stored, store.get(meta_key("format")));
  if (!stored) {
    bool empty = true;
    TRY(store.scan({}, {}, [&](std::string_view, std::string_view) { return empty = false; }));
    if (!empty) return fail(EUCLEAN, "this database was not made by pnfsrdma: choose an empty directory");
    Batch batch;
    put_value(batch, meta_key("format"), StoredNumber{kFormatBasic});
    TRY(store.commit(batch, CommitKind::kNamespace));
    return store.sync();
  }
  return check_format_row(*stored);
}

Result<> check_format_row(std::string_view stored) {
  TRY_ASSIGN(const StoredNumber format, read_value<StoredNumber>(stored, "a format version"));
  if (format.number > kFormatVersion) {
    return fail(ENOTSUP, "the metadata has format " + std::to_string(format.number) +
                             ", this program knows up to " + std::to_string(kFormatVersion) +
                             ": use the newer program that wrote it");
  }
  return {};
}

}  // namespace pnfsrdma::mds
