// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/doctor_command.h"
#include "tests/unit/cli/api_server.h"
#include "tests/unit/cli/fake_host.h"

namespace pnfsrdma::cli {
namespace {

using testing::HasSubstr;

class Doctor : public ::testing::Test {
 protected:
  Finding find(const Findings& findings, const std::string& subject) {
    for (const Finding& finding : findings) {
      if (finding.subject == subject) return finding;
    }
    ADD_FAILURE() << "no finding about " << subject;
    return {};
  }
  // Every verdict but ok has a fix.
  void expect(const Findings& findings, const std::string& subject, Verdict verdict, const char* what) {
    const Finding finding = find(findings, subject);
    EXPECT_EQ(finding.verdict, verdict) << subject << ": " << finding.what;
    EXPECT_THAT(finding.what, HasSubstr(what));
    EXPECT_EQ(finding.fix.empty(), verdict == Verdict::kOk) << finding.fix;
  }
  // An active RoCE device of Soft-RoCE on v0.
  void add_rxe() {
    const std::string port = "/sys/class/infiniband/rxe0/ports/1/";
    host.files[port + "state"] = "4: ACTIVE";
    host.files[port + "link_layer"] = "Ethernet";
    host.files[port + "gid_attrs/ndevs/0"] = "v0";
    host.files[port + "gid_attrs/types/0"] = "RoCE v2";
    host.files["/sys/class/net/v0/mtu"] = "9000";
    host.files["/dev/infiniband/rdma_cm"] = "";
    host.interface_addresses = {{"v0", "10.77.0.1"}};
    host.rdma_devices = std::vector<std::string>{"verbs"};
  }
  static std::string tcp_line(const char* port, const char* inode, const char* state = "0A") {
    return std::string("  sl  local_address rem_address   st\n   0: 00000000:") + port + " 00000000:0000 " +
           state + " 00000000:00000000 00:00000000 00000000     0        0 " + inode + " 1\n";
  }
  FakeHost host;
};

TEST_F(Doctor, AHealthyHostHasNoProblem) {
  for (const Finding& finding : examine(host, {})) {
    EXPECT_NE(finding.verdict, Verdict::kProblem) << finding.subject << ": " << finding.what;
  }
}

TEST_F(Doctor, KernelVersions) {
  expect(check_kernel(host), "kernel", Verdict::kOk, "no RDMA FLUSH before 6.2");
  host.release = "6.12.1";
  expect(check_kernel(host), "kernel", Verdict::kOk, "Linux 6.12.1");
  host.release = "5.4.0-generic";
  expect(check_kernel(host), "kernel", Verdict::kWarning, "older than 5.10");
}

TEST_F(Doctor, LockedMemoryIsAProblemOnlyWhereRdmaNeedsIt) {
  expect(check_memory(host), "memlock", Verdict::kOk, "unlimited are available");
  host.memlock = {uint64_t{8} << 20, uint64_t{8} << 20};
  expect(check_memory(host), "memlock", Verdict::kWarning, "8.0 MiB; RDMA pins memory");
  add_rxe();
  expect(check_memory(host), "memlock", Verdict::kProblem, "a mount needs 64.0 MiB");
  host.files["/proc/self/status"] = "CapEff:\t0000000000004000";
  expect(check_memory(host), "memlock", Verdict::kOk, "CAP_IPC_LOCK");
  host.memlock = {};
  expect(check_memory(host), "memlock", Verdict::kOk, "unlimited");
}

TEST_F(Doctor, HugePages) {
  expect(check_memory(host), "huge pages", Verdict::kOk, "none reserved");
  host.files["/proc/meminfo"] = "HugePages_Total: 8\nHugePages_Free: 0\nHugepagesize: 2048 kB";
  expect(check_memory(host), "huge pages", Verdict::kWarning, "all 8 of 2.0 MiB are in use");
  host.files["/proc/meminfo"] = "HugePages_Total: 8\nHugePages_Free: 3\nHugepagesize: 2048 kB";
  expect(check_memory(host), "huge pages", Verdict::kOk, "3 of 8 free");
}

TEST_F(Doctor, DeviceDax) {
  expect(check_pmem(host), "device dax", Verdict::kOk, "none");
  host.files["/sys/bus/dax/devices/dax0.0/size"] = "1073741824";
  expect(check_pmem(host), "dax dax0.0", Verdict::kProblem, "no device node");
  host.files["/dev/dax0.0"] = "";
  expect(check_pmem(host), "dax dax0.0", Verdict::kOk, "/dev/dax0.0, 1.0 GiB");
  host.closed = {"/dev/dax0.0"};
  expect(check_pmem(host), "dax dax0.0", Verdict::kWarning, "may not open");
  host.links["/sys/bus/dax/devices/dax0.0/driver"] = "../../../bus/dax/drivers/kmem";
  expect(check_pmem(host), "dax dax0.0", Verdict::kWarning, "ordinary memory");
}

TEST_F(Doctor, ANamespaceThatCannotBePinnedIsAWarning) {
  host.files["/sys/bus/nd/devices/namespace0.0/mode"] = "memory";
  host.files["/sys/bus/nd/devices/namespace0.0/size"] = "1073741824";
  expect(check_pmem(host), "pmem namespace0.0", Verdict::kWarning, "cannot pin");
  host.files["/sys/bus/nd/devices/namespace0.0/mode"] = "dax";
  EXPECT_EQ(check_pmem(host).size(), 2u);
}

TEST_F(Doctor, WithoutRdmaIwarpIsUsed) {
  expect(check_rdma(host), "rdma device", Verdict::kWarning, "iWARP in user space");
  expect(check_rdma(host), "rdma-core", Verdict::kOk, "version 44; no RDMA FLUSH");
  host.libibverbs = "/usr/lib/libibverbs.so.1.14.56.0";
  expect(check_rdma(host), "rdma-core", Verdict::kOk, "version 56; has RDMA FLUSH");
  host.libibverbs = "";
  expect(check_rdma(host), "rdma-core", Verdict::kWarning, "missing");
}

TEST_F(Doctor, AnRdmaDeviceThatWorks) {
  add_rxe();
  expect(check_rdma(host), "rdma rxe0", Verdict::kOk, "Ethernet RoCE v2, ACTIVE on v0, 10.77.0.1, MTU 9000");
  expect(check_rdma(host), "rdma access", Verdict::kOk, "1 can be used");
}

TEST_F(Doctor, AnRdmaDeviceThatDoesNot) {
  add_rxe();
  host.files["/sys/class/net/v0/mtu"] = "1500";
  expect(check_rdma(host), "rdma rxe0", Verdict::kWarning, "MTU 1500");
  host.interface_addresses = {{"eth0", "192.0.2.7"}};
  expect(check_rdma(host), "rdma rxe0", Verdict::kProblem, "no IP address");
  host.files["/sys/class/infiniband/rxe0/ports/1/state"] = "1: DOWN";
  expect(check_rdma(host), "rdma rxe0", Verdict::kProblem, "DOWN");
  host.rdma_devices = fail(EACCES, "open /dev/infiniband/uverbs0");
  expect(check_rdma(host), "rdma access", Verdict::kProblem, "uverbs0");
  host.files.erase("/dev/infiniband/rdma_cm");
  expect(check_rdma(host), "rdma access", Verdict::kProblem, "no /dev/infiniband/rdma_cm");
}

TEST_F(Doctor, PortsAreFreeOursOrTaken) {
  expect(check_ports(host), "port 2049", Verdict::kOk, "free");
  host.files["/proc/net/tcp"] = tcp_line("0801", "777");  // 2049
  expect(check_ports(host), "port 2049", Verdict::kProblem, "kernel's NFS server");
  host.uid = 1000;
  expect(check_ports(host), "port 2049", Verdict::kWarning, "cannot see");
  host.links["/proc/42/fd/5"] = "socket:[777]";
  host.files["/proc/42/comm"] = "ganesha.nfsd";
  expect(check_ports(host), "port 2049", Verdict::kProblem, "taken by ganesha.nfsd (42)");
  host.files["/proc/42/comm"] = "pnfsrdma-mdsd";
  expect(check_ports(host), "port 2049", Verdict::kOk, "pnfsrdma-mdsd (42) listens");
  // A connection to that port elsewhere is not a listener.
  host.files["/proc/net/tcp"] = tcp_line("0801", "777", "01");
  expect(check_ports(host), "port 2049", Verdict::kOk, "free");
}

TEST_F(Doctor, PortsOfVersion6SocketsCountToo) {
  host.files["/proc/net/tcp6"] =
      "titles\n 0: 00000000000000000000000000000000:20FB 00000000000000000000000000000000:0000 0A 0:0 0:0 0 "
      "0 0 9 1\n";
  expect(check_ports(host), "port 8443", Verdict::kProblem, "console");
}

TEST_F(Doctor, Fuse) {
  expect(check_fuse(host), "/dev/fuse", Verdict::kOk, "may be opened");
  expect(check_fuse(host), "fusermount3", Verdict::kOk, "/usr/bin/fusermount3");
  expect(check_fuse(host), "mount helper", Verdict::kOk, "/sbin/mount.pnfsrdma");
  host.modes.clear();
  expect(check_fuse(host), "fusermount3", Verdict::kWarning, "set-user-id");
  host.uid = 1000;
  expect(check_fuse(host), "fusermount3", Verdict::kProblem, "only root can mount");
  expect(check_fuse(host), "fuse.conf", Verdict::kWarning, "this user alone");
  host.files["/etc/fuse.conf"] = "# x\nuser_allow_other";
  expect(check_fuse(host), "fuse.conf", Verdict::kOk, "user_allow_other");
  host.programs = {{"pnfsrdma-fuse", "/opt/bin/pnfsrdma-fuse"}};
  expect(check_fuse(host), "fusermount3", Verdict::kProblem, "missing");
  host.files.erase("/sbin/mount.pnfsrdma");
  expect(check_fuse(host), "mount helper", Verdict::kWarning, "fstab");
  EXPECT_EQ(find(check_fuse(host), "mount helper").fix, "ln -s /opt/bin/pnfsrdma-fuse /sbin/mount.pnfsrdma");
  host.closed = {"/dev/fuse"};
  expect(check_fuse(host), "/dev/fuse", Verdict::kProblem, "may not open");
  host.files.erase("/dev/fuse");
  expect(check_fuse(host), "/dev/fuse", Verdict::kProblem, "missing");
}

// exports(5), "secure".
TEST_F(Doctor, WhereCallsComeFrom) {
  host.files["/proc/self/uid_map"] = "         0          0 4294967295";
  expect(check_source_port(host), "source port", Verdict::kOk, "below 1024");
  host.uid = 1000;
  expect(check_source_port(host), "source port", Verdict::kWarning, "this user");
  EXPECT_NE(check_source_port(host)[0].fix.find("--insecure --all-squash"), std::string::npos);
  host.files["/proc/sys/net/ipv4/ip_unprivileged_port_start"] = "1024";
  expect(check_source_port(host), "source port", Verdict::kWarning, "this user");
  host.files["/proc/sys/net/ipv4/ip_unprivileged_port_start"] = "0";
  expect(check_source_port(host), "source port", Verdict::kOk, "below 1024");
  host.files.erase("/proc/sys/net/ipv4/ip_unprivileged_port_start");
  host.files["/proc/self/status"] = "Name:\tpnfsrdma\nCapEff:\t0000000000000400\nCapBnd:\t0";
  expect(check_source_port(host), "source port", Verdict::kOk, "below 1024");
  // A rootless container: root, with every capability, of a user namespace.
  host.uid = 0;
  host.files["/proc/self/uid_map"] = "         0       1000          1\n         1     100000      65536";
  expect(check_source_port(host), "source port", Verdict::kWarning, "container");
}

TEST_F(Doctor, AClockThatRunsFree) {
  expect(check_clock(host), "clock", Verdict::kOk, "12.0 ms");
  host.clock_state.synchronised = false;
  expect(check_clock(host), "clock", Verdict::kWarning, "not synchronised");
}

TEST_F(Doctor, AServerIsLookedForAtItsPort) {
  expect(check_server(host, "mds.example"), "server", Verdict::kOk, "mds.example:2049");
  EXPECT_EQ(host.asked_address, "mds.example:2049");
  (void)check_server(host, "[::1]");
  EXPECT_EQ(host.asked_address, "[::1]:2049");
  (void)check_server(host, "[::1]:77");
  EXPECT_EQ(host.asked_address, "[::1]:77");
  host.reached = fail(ECONNREFUSED, "connect");
  expect(check_server(host, "mds"), "server", Verdict::kProblem, "Connection refused");
}

TEST_F(Doctor, AConsoleTellsItsHealthAndItsTime) {
  ApiServer server;
  server.answer("/health", R"({"status":"warning","checks":[
      {"name":"bricks","status":"failed","detail":"b1 is away","fix":"start it"},
      {"name":"space","status":"ok","detail":"90 % free","fix":null}]})");
  server.answer("/throughput",
                R"({"samples":[{"time":"2026-11-21T20:59:59Z"},{"time":"2026-11-21T21:00:00.25Z"}]})");
  server.start();
  ApiClient client = server.client();
  const auto nine = std::chrono::system_clock::from_time_t(1795294800);  // 2026-11-21 21:00:00 UTC
  const Findings findings = check_console(client, nine + std::chrono::seconds(1));
  expect(findings, "console", Verdict::kOk, "answers");
  expect(findings, "server bricks", Verdict::kProblem, "b1 is away");
  expect(findings, "server space", Verdict::kOk, "90 % free");
  expect(findings, "server clock", Verdict::kOk, "as this host's");
  expect(check_console(client, nine + std::chrono::seconds(60)), "server clock", Verdict::kWarning,
         "60 s behind");
  expect(check_console(client, nine - std::chrono::seconds(9)), "server clock", Verdict::kWarning,
         "9 s ahead of");
}

TEST_F(Doctor, AConsoleThatDoesNotAnswerIsAProblem) {
  auto client = ApiClient::make({.server = "http://127.0.0.1:1"});
  ASSERT_TRUE(client);
  expect(check_console(*client, {}), "console", Verdict::kProblem, "127.0.0.1:1");
}

TEST_F(Doctor, TheReportIsWholeAndNoWiderThanTheTerminal) {
  const Findings findings = {
      {"port 2049", Verdict::kProblem, "taken by another program that listens there since long",
       "end that program, or set another port in the configuration"},
      {"clock", Verdict::kOk, "synchronised", ""}};
  const std::string text = doctor_report(findings, {.columns = 50});
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 50u) << text;
    begin = end + 1;
  }
  EXPECT_THAT(text, HasSubstr("configuration"));
  EXPECT_THAT(text, HasSubstr("1 problem, 0 warnings, 1 ok"));
  const nlohmann::json json = doctor_json(findings);
  EXPECT_EQ(json["problems"], 1);
  EXPECT_EQ(json["findings"][0]["verdict"], "problem");
}

}  // namespace
}  // namespace pnfsrdma::cli
