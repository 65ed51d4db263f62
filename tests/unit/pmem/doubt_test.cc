// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/doubt.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pnfsrdma::pmem {
namespace {

namespace fs = std::filesystem;

const dev_t kDisk = makedev(259, 0);
const dev_t kLoop = makedev(7, 0);
const dev_t kMapper = makedev(254, 0);
const dev_t kRam = makedev(1, 0);

// A tree like /sys, as Linux 6.12 makes it; gone with the test.
class DoubtTest : public testing::Test {
 protected:
  DoubtTest() {
    std::string name = fs::temp_directory_path() / "pnfsrdma-sysfs.XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~DoubtTest() override { fs::remove_all(root_); }

  std::string place(const std::string& path) const { return root_ / "devices" / path; }

  void attribute(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(place(path)).parent_path());
    std::ofstream(place(path)) << text << '\n';
  }

  // A region of a bus that maps one DIMM.
  std::string region(const std::string& provider, const std::string& flags = "") {
    const std::string bus = "LNXSYSTM:00/ACPI0012:00/ndbus0";
    attribute(bus + "/provider", provider);
    attribute(bus + "/region0/devtype", "nd_pmem");
    attribute(bus + "/region0/mappings", "1");
    attribute(bus + "/region0/mapping0", "nmem0,0,1073741824,0");
    attribute(bus + "/nmem0/nfit/flags", flags);
    return bus + "/region0";
  }
  std::string doubt_of_dax(const std::string& region) const {
    return doubt_of_memory(place(region + "/dax0.0/dax/dax0.0"));
  }

  void block_device(dev_t device, const std::string& path) {
    fs::create_directories(place(path));
    fs::create_directories(root_ / "dev/block");
    fs::create_symlink(place(path), root_ / "dev/block" / fmt::format("{}:{}", major(device), minor(device)));
  }
  void slave(const std::string& of, const std::string& path) {
    fs::create_directories(place(of + "/slaves"));
    fs::create_symlink(place(path), fs::path(place(of + "/slaves")) / fs::path(path).filename());
  }
  std::string doubt_of_block(dev_t device) const {
    return doubt_of_block_device(device, Sysfs(root_.string()));
  }

  fs::path root_;
};

TEST_F(DoubtTest, AnArmedNvdimmOfTheFirmwareIsNone) {
  EXPECT_EQ(doubt_of_dax(region("ACPI.NFIT")), "");
  EXPECT_EQ(doubt_of_dax(region("ACPI.NFIT", "smart_notify ")), "");
}

TEST_F(DoubtTest, MemoryThatIsNotOnTheNvdimmBus) {
  EXPECT_NE(doubt_of_memory(place("platform/hmem.0/dax0.0")), "");
}

TEST_F(DoubtTest, MemorySetAsideByTheCommandLineIsDram) {
  EXPECT_NE(doubt_of_dax(region("e820")).find("memmap"), std::string::npos);
}

TEST_F(DoubtTest, AnNvdimmThatIsNotArmedOrHasFailedIsNamed) {
  for (const char* flag : {"not_armed", "save_fail", "restore_fail", "flush_fail", "map_fail"}) {
    const std::string doubt = doubt_of_dax(region("ACPI.NFIT", std::string(flag) + " smart_notify "));
    EXPECT_NE(doubt.find("nmem0"), std::string::npos) << flag;
    EXPECT_NE(doubt.find(flag), std::string::npos) << doubt;
  }
}

TEST_F(DoubtTest, EachNvdimmOfAnInterleavedRegionIsLookedAt) {
  const std::string path = region("ACPI.NFIT");
  attribute(path + "/mappings", "2");
  attribute(path + "/mapping1", "nmem1,0,1073741824,1");
  EXPECT_NE(doubt_of_dax(path), "") << "nothing is known of nmem1";
  attribute(path + "/../nmem1/nfit/flags", "");
  EXPECT_EQ(doubt_of_dax(path), "");
  attribute(path + "/../nmem1/nfit/flags", "not_armed ");
  EXPECT_NE(doubt_of_dax(path).find("nmem1"), std::string::npos);
}

TEST_F(DoubtTest, ARegionWithoutNvdimmsIsARamDiskOfTheFirmware) {
  const std::string path = region("ACPI.NFIT");
  attribute(path + "/mappings", "0");
  EXPECT_NE(doubt_of_dax(path), "");
}

TEST_F(DoubtTest, AVolatileRegion) {
  const std::string path = region("ACPI.NFIT");
  attribute(path + "/devtype", "nd_volatile");
  EXPECT_NE(doubt_of_dax(path), "");
}

TEST_F(DoubtTest, CxlMemoryIsNoneWhenTheKernelSaysWhatIsFlushed) {
  const std::string path = region("CXL");
  EXPECT_NE(doubt_of_dax(path), "");
  attribute(path + "/persistence_domain", "");
  EXPECT_NE(doubt_of_dax(path), "");
  attribute(path + "/persistence_domain", "memory_controller");
  EXPECT_EQ(doubt_of_dax(path), "");
}

TEST_F(DoubtTest, ProvidersThatAreNotKnown) {
  for (const char* provider : {"ibm,persistent-memory:ibm,pmemory@44100001", "nfit_test.0", ""}) {
    EXPECT_NE(doubt_of_dax(region(provider)), "") << provider;
  }
  fs::remove(place("LNXSYSTM:00/ACPI0012:00/ndbus0/provider"));
  EXPECT_NE(doubt_of_memory(place("LNXSYSTM:00/ACPI0012:00/ndbus0/region0/dax0.0")), "");
}

TEST_F(DoubtTest, MemoryOfAVirtualMachinesHostIsDurableByItsOwnFlushOnly) {
  const std::string path = region("virtio-pmem");
  EXPECT_NE(doubt_of_dax(path), "");
  block_device(kDisk, path + "/namespace0.0/block/pmem0");
  EXPECT_EQ(doubt_of_block(kDisk), "");
}

TEST_F(DoubtTest, ABlockDeviceOfTheNvdimmBusIsWhatTheMemoryIs) {
  block_device(kDisk, region("ACPI.NFIT") + "/namespace0.0/block/pmem0");
  EXPECT_EQ(doubt_of_block(kDisk), "");
  region("e820");
  EXPECT_NE(doubt_of_block(kDisk), "");
}

TEST_F(DoubtTest, ADiskAndItsPartitionAreNone) {
  block_device(kDisk, "pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1");
  EXPECT_EQ(doubt_of_block(kDisk), "");
  attribute("pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1/nvme0n1p1/partition", "1");
  block_device(makedev(259, 1), "pci0000:00/0000:00:04.0/nvme/nvme0/nvme0n1/nvme0n1p1");
  EXPECT_EQ(doubt_of_block(makedev(259, 1)), "");
}

TEST_F(DoubtTest, AFileSystemWithoutABlockDeviceIsTakenAtItsWord) {
  EXPECT_EQ(doubt_of_block(makedev(0, 42)), "");
}

TEST_F(DoubtTest, BlockDevicesThatAreMemory) {
  for (const char* path : {"virtual/block/ram0", "virtual/block/zram0", "virtual/block/nullb0",
                           "pseudo_0/adapter0/host0/target0:0:0/0:0:0:0/block/sda"}) {
    fs::remove_all(root_ / "dev");
    block_device(kRam, path);
    EXPECT_NE(doubt_of_block(kRam), "") << path;
  }
}

TEST_F(DoubtTest, ALoopDeviceIsWhatItsFileLiesOn) {
  block_device(kLoop, "virtual/block/loop0");
  EXPECT_NE(doubt_of_block(kLoop), "") << "nothing is known of its file";
  attribute("virtual/block/loop0/loop/backing_file", "/not/there (deleted)");
  const std::string doubt = doubt_of_block(kLoop);
  EXPECT_NE(doubt.find("/not/there (deleted)"), std::string::npos) << doubt;
  EXPECT_NE(doubt.find("No such file"), std::string::npos) << "why not: " << doubt;
  EXPECT_NE(doubt.find("let its user"), std::string::npos) << "what to do: " << doubt;
  // A file on a device that this tree does not know: taken at its word.
  attribute("virtual/block/loop0/loop/backing_file", "/proc/self/exe");
  EXPECT_EQ(doubt_of_block(kLoop), "");
  struct stat status{};
  ASSERT_EQ(stat("/proc/self/exe", &status), 0);
  block_device(status.st_dev, "virtual/block/zram0");
  EXPECT_NE(doubt_of_block(kLoop), "");
}

TEST_F(DoubtTest, ALoopDeviceOverTmpfsAndItsPartition) {
  constexpr int64_t kTmpfsMagic = 0x01021994;
  struct statfs status{};
  if (statfs("/dev/shm", &status) != 0 || status.f_type != kTmpfsMagic)
    GTEST_SKIP() << "/dev/shm is no tmpfs here";
  std::string file = "/dev/shm/pnfsrdma-loop.XXXXXX";
  close(mkstemp(file.data()));
  attribute("virtual/block/loop0/loop/backing_file", file);
  block_device(kLoop, "virtual/block/loop0");
  EXPECT_NE(doubt_of_block(kLoop), "");
  attribute("virtual/block/loop0/loop0p1/partition", "1");
  block_device(makedev(259, 5), "virtual/block/loop0/loop0p1");
  EXPECT_NE(doubt_of_block(makedev(259, 5)), "");
  unlink(file.c_str());
}

TEST_F(DoubtTest, AVolumeIsWhatTheWeakestOfItsDevicesIs) {
  block_device(kMapper, "virtual/block/dm-0");
  block_device(kDisk, "pci0000:00/nvme0n1");
  block_device(kRam, "virtual/block/ram0");
  slave("virtual/block/dm-0", "pci0000:00/nvme0n1");
  EXPECT_EQ(doubt_of_block(kMapper), "");
  slave("virtual/block/dm-0", "virtual/block/ram0");
  EXPECT_NE(doubt_of_block(kMapper), "");
}

TEST_F(DoubtTest, DevicesInACircleEnd) {
  block_device(kMapper, "virtual/block/dm-0");
  slave("virtual/block/dm-0", "virtual/block/dm-0");
  EXPECT_NE(doubt_of_block(kMapper), "");
}

}  // namespace
}  // namespace pnfsrdma::pmem
