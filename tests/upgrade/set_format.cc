// SPDX-License-Identifier: Apache-2.0
// Writes a format version into a metadata store, as a program of that format would: for the test that ours
// refuses a newer one. usage: set-format STORE NUMBER      (with the MDS stopped)
#include <rocksdb/db.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

int main(int argc, char** argv) {
  using namespace pnfsrdma;
  if (argc != 3) return EXIT_FAILURE;
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status = rocksdb::DB::Open({}, argv[1], &opened);
  const std::unique_ptr<rocksdb::DB> database(opened);
  if (status.ok()) {
    mds::Batch batch;
    mds::put_value(batch, mds::meta_key("format"), mds::StoredNumber{std::stoull(argv[2])});
    rocksdb::WriteOptions durable;
    durable.sync = true;
    batch.for_each(
        [&](std::string_view key, std::string_view value) { status = database->Put(durable, key, value); },
        [](std::string_view) {});
  }
  if (!status.ok()) std::fprintf(stderr, "set-format: %s\n", status.ToString().c_str());
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
