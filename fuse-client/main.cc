// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fuse-client/mount.h"
#include "fuse-client/remount.h"
#include "shared/base/log.h"
#include "shared/version/version.h"

namespace {

using namespace pnfsrdma;

constexpr const char* kOptionsHelp = R"(Mount options (-o, as in nfs(5)):
  hard | soft | softerr          what a call does when the server does not answer (hard)
  timeo=N  retrans=N             timeout in tenths of a second (600), and retries (2)
  proto=tcp|rdma|iwarp           calls by TCP, data by iWARP in user space (tcp); both by an RDMA device, or fail
                                 (rdma); both by iWARP (iwarp). Default: calls by TCP, data by the best path
  port=N                         of the MDS (2049; with proto=rdma and iwarp 20049)
  vers=4.1|4.2                   protocol version to try first (4.2)
  acregmin= acregmax= acdirmin= acdirmax= actimeo=  noac
                                 seconds that attributes are cached (3, 60, 30, 60)
  lookupcache=all|pos|none       which names are cached: also those that are not there (all), only those that are
                                 (pos), or no names (none)
  cache=none                     cache nothing: noac, lookupcache=none and direct_io
  rdirplus | nordirplus          whether a listing includes attributes (rdirplus)
  ro | rw   sec=sys
  local_lock=none|flock|posix|all
                                 locks that are visible on this host only (none)
  require_durability=persistent  refuse a server whose memory does not survive a loss of power
  writeback                      use the kernel's write-back cache: only for a single writer
  direct_io                      bypass the page cache
  allow_other | noallow_other    whether other users may access the mount (default: if root mounts)
  layoutstats_timer=N            tell the server every N seconds what was read and written by layouts (60); 0: never
  flush_after=N                  flush data written more than N seconds ago (5); 0: never
  threads=N                      maximum number of FUSE threads (16)
  ring_memory=MIB                memory that programs may share with the mount (1024); 0: none may
  name_memory=MIB                memory for names and attributes that the kernel does not keep (64); 0: none
  metrics=ADDRESS:PORT|unix:/path  serve metrics there (GET /metrics), without authentication
  remount                        change ro, rw, nosuid and so on of an existing mount
  nosuid nodev noexec noatime …  as in mount(8)
)";

int complain(const Error& error) {
  std::fprintf(stderr, "pnfsrdma-fuse: %s\n", error.to_string().c_str());
  return EXIT_FAILURE;
}

struct CommandLine {
  std::string source;
  std::string mountpoint;
  std::vector<std::string> options;
  bool foreground = false;
  bool debug = false;
  bool read_only = false;
  bool is_helper = false;  // called by mount(8)
};

Result<fuse_client::MountOptions> options_of(const CommandLine& line) {
  fuse_client::MountOptions options;
  options.allow_other = ::geteuid() == 0;
  // mount(8) has no words for what is the default everywhere but in libfuse.
  if (line.is_helper && ::geteuid() == 0) options.kernel = {"suid", "dev"};
  TRY(client::parse_source(line.source, options));
  for (const std::string& text : line.options) TRY(fuse_client::parse_options(text, options));
  options.foreground |= line.foreground || line.debug;
  options.debug |= line.debug;
  options.read_only |= line.read_only;
  char resolved[PATH_MAX];
  if (::realpath(line.mountpoint.c_str(), resolved) == nullptr) {
    return std::unexpected(Error::from_errno("mount point " + line.mountpoint));
  }
  options.mountpoint = resolved;
  return options;
}

int run_remount(const CommandLine& line, bool only_check) {
  char resolved[PATH_MAX];
  if (::realpath(line.mountpoint.c_str(), resolved) == nullptr) {
    return complain(Error::from_errno("mount point " + line.mountpoint));
  }
  if (only_check) return EXIT_SUCCESS;
  std::vector<std::string> options = line.options;
  if (line.read_only) options.emplace_back("ro");
  const auto done = fuse_client::remount(resolved, options);
  if (!done) return complain(done.error());
  if (!done->ignored.empty()) {
    std::fprintf(stderr,
                 "pnfsrdma-fuse: remount changes ro, rw and other flags of mount(8) only; to change %s, "
                 "unmount and mount again\n",
                 fmt::format("{}", fmt::join(done->ignored, ",")).c_str());
  }
  return EXIT_SUCCESS;
}

int run(const CommandLine& line, bool only_check) {
  if (fuse_client::is_remount(line.options)) return run_remount(line, only_check);
  const auto options = options_of(line);
  if (!options) return complain(options.error());
  if (only_check) return EXIT_SUCCESS;
  if (options->debug) set_log_level(LogLevel::kDebug);
  fuse_client::Readiness readiness;
  if (!options->foreground) {
    if (const auto forked = readiness.go_to_background(); !forked) return complain(forked.error());
  }
  const Result<> result = fuse_client::run_mount(*options, readiness);
  return result ? EXIT_SUCCESS : complain(result.error());
}

}  // namespace

int main(int argc, char** argv) {
  // mount(8) calls its helper with -f for "fake" (check only), -s, -n and -v.
  const bool is_helper = std::filesystem::path(argv[0]).filename().string().starts_with("mount.");
  CommandLine line;
  line.is_helper = is_helper;
  CLI::App app{"Mounts a pnfsrdma (or any NFSv4.1+) server over FUSE.", "pnfsrdma-fuse"};
  app.footer(kOptionsHelp);
  app.set_version_flag("-V,--version", version_text("pnfsrdma-fuse"));
  bool fake = false, ignored = false;
  app.add_option("source", line.source, "server[,server...][:port]:/path")->required();
  app.add_option("mountpoint", line.mountpoint, "an existing directory")->required();
  app.add_option("-o", line.options, "mount options, separated by commas")->allow_extra_args(false);
  app.add_flag("-f", is_helper ? fake : line.foreground, is_helper ? "check only" : "stay in the foreground");
  app.add_flag("-d", line.debug, "log every FUSE request; stay in the foreground");
  app.add_flag("-r", line.read_only, "read-only");
  app.add_flag("-s,-n,-v,-w", ignored, "accepted for mount(8)");
  std::string of_mount;
  app.add_option("-t", of_mount, "accepted for mount(8): the type");
  app.add_option("-N", of_mount, "accepted for mount(8): a namespace");
  CLI11_PARSE(app, argc, argv);
  return run(line, fake);
}
