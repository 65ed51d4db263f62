// SPDX-License-Identifier: Apache-2.0
// Debian's RocksDB is not built with TSan: the order that its reference counts make cannot be seen.
#ifdef __SANITIZE_THREAD__
extern "C" const char* __tsan_default_suppressions() {
  return "race:rocksdb::Version::Unref\n";
}
#endif
