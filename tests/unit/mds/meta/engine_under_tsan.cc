// SPDX-License-Identifier: Apache-2.0
// Debian's RocksDB is not built with TSan: the order that its locks and reference counts make cannot be seen.
// A frame of its own stands only in a report about what it calls (free, close, memcmp): what it calls of ours
// has none.
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_suppressions() {
  return "race:^rocksdb::\n";
}
#endif
