# SPDX-License-Identifier: Apache-2.0
"""One QEMU machine of the lab: boots the tree, runs one command inside, streams what it prints, returns its exit code.

Owned by whoever starts it: end() or leaving the `with` block kills QEMU by its process id. A guest whose kernel dies before
its command begins is booted again: where QEMU only emulates, one boot of some hundreds runs into code the kernel is patching.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

# Nothing here needs protection from itself, and every check costs an emulated processor dearly. Without random addresses
# (norandmaps) code that has been translated once serves the next process too.
KERNEL_WORDS = ("console=ttyS0 quiet panic=1 oops=panic net.ifnames=0 mitigations=off audit=0 nowatchdog lsm=capability "
                "norandmaps init_on_alloc=0 hardened_usercopy=off rcupdate.rcu_expedited=1 random.trust_cpu=1 no_timer_check")
# Emulated, STAC and CLAC end a block of translated code, and `rep movsb`, which ERMS recommends, goes byte by byte.
TCG_MODEL = "max,la57=off,smap=off,smep=off,pku=off,umip=off,erms=off"
BOOTS = 3


def accelerator(cache):
    """'kvm' where a machine really boots under it, else 'tcg'. The answer is kept in the cache."""
    known = pathlib.Path(cache) / "accelerator"
    if known.exists():
        return known.read_text().strip()
    answer = "tcg"
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        probe = Machine(cache, ["true"], name="probe", accelerator="kvm", memory="512M", pmem=(), print_line=lambda _: None)
        with probe:
            answer = "kvm" if probe.wait(20) == 0 else "tcg"
    known.write_text(answer + "\n")
    return answer


class Machine:
    def __init__(self, cache, command, *, name="lab", out=None, build=None, source=None, accelerator="tcg", cpus=2,
                 memory="3G", pmem=("1G",), links=(), interactive=False, print_line=None):
        """command: a list of words. out: a folder both sides see. pmem: sizes of NVDIMMs. links: pairs (own, other) of Unix socket paths."""
        cache = pathlib.Path(cache)
        self.name = name
        self.out = pathlib.Path(out or cache / "out" / f"{name}-{os.getpid()}")
        self.remove_out = out is None
        self.out.mkdir(parents=True, exist_ok=True)
        self.console = self.out / f"{name}.console"
        (self.out / f"{name}.command").write_text("\n".join(command) + "\n")
        self.print_line = print_line or (lambda line: (sys.stdout.write(line), sys.stdout.flush()))
        self.tail = []
        source = source or pathlib.Path(__file__).resolve().parents[2]
        kernel = max((cache / "root/boot").glob("vmlinuz-*"))
        model = "host" if accelerator == "kvm" else TCG_MODEL
        # The machines give way to whatever else runs here, but not entirely: their tests have time limits.
        words = ["setpriv", "--pdeathsig", "KILL", "nice", "-n", os.environ.get("PNFSRDMA_LAB_NICE", "2"),
                 "qemu-system-x86_64", "-machine", "q35" + (",nvdimm=on" if pmem else ""),
                 "-accel", "kvm" if accelerator == "kvm" else "tcg,thread=multi", "-cpu", model, "-smp", str(cpus),
                 "-m", f"{memory},slots=4,maxmem=16G", "-nographic", "-no-reboot", "-nodefaults", "-net", "none",
                 "-kernel", str(kernel), "-initrd", str(cache / "initramfs"),
                 "-append", f"{KERNEL_WORDS} lab.name={name}" + (terminal_words() if interactive else ""),
                 "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-device", "virtio-rng-pci",
                 "-serial", f"file:{self.console}", "-device", "virtio-serial-pci",
                 "-chardev", f"stdio,id=terminal,signal={'off' if interactive else 'on'}",
                 "-device", "virtconsole,chardev=terminal"]
        for number, size in enumerate(pmem):
            words += ["-object", f"memory-backend-ram,id=pmem{number},size={size}",
                      "-device", f"nvdimm,id=nvdimm{number},memdev=pmem{number},unarmed=off"]
        shares = {"root": (cache / "root", True), "source": (source, True), "build": (build or cache / "build", True),
                  "out": (self.out, False)}
        for tag, (path, read_only) in shares.items():
            words += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap" +
                      (",readonly=on" if read_only else "")]
        for number, (own, other) in enumerate(links):
            words += ["-netdev", f"dgram,id=link{number},local.type=unix,local.path={own},"
                                 f"remote.type=unix,remote.path={other}",
                      "-device", f"virtio-net-pci,netdev=link{number},romfile=,mac=52:54:00:4c:{number:02x}:{mac_byte(own):02x}"]
        self.words = words
        self.begun = self.out / f"{name}.begun"  # the guest makes it before its command
        self.begun.unlink(missing_ok=True)
        self.ended = False
        self.lock = threading.Lock()  # between end() and another boot
        if interactive:
            self.process = subprocess.Popen(words)
            self.reader = None
        else:
            self.boot()
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.end()

    def boot(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def read(self):
        for boot in range(1, BOOTS + 1):
            for raw in self.process.stdout:
                line = raw.decode(errors="replace").replace("\r", "")
                self.tail = self.tail[-200:] + [line]
                self.print_line(line)
            self.process.wait()
            with self.lock:
                if self.begun.exists() or self.ended or boot == BOOTS:
                    return
                self.print_line(f"{self.name}: died before its command began, boots again\n{self.kernel_messages(6)}")
                self.boot()

    def wait(self, seconds):
        """The command's exit code; 124 when it took longer than `seconds`, 125 when the machine died."""
        if not self.over(seconds):
            self.print_line(f"{self.name}: not done after {seconds:.0f} s, ended\n{self.kernel_messages()}")
            self.end()
            return 124
        status = self.process.returncode
        if status % 2 == 0 or not self.begun.exists():
            self.print_line(f"{self.name}: the machine died (QEMU ended with {status})\n{self.kernel_messages()}")
            return 125
        return status // 2

    def failed(self):
        """Over, but not by its command's end with exit code 0 or 1."""
        return self.process.returncode not in (1, 3)

    def over(self, seconds):
        """Whether it has ended, after `seconds` at most."""
        if self.reader:
            self.reader.join(seconds)
            return not self.reader.is_alive()
        try:
            self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kernel_said(self, words):
        return self.console.exists() and words in self.console.read_text(errors="replace")

    def kernel_messages(self, count=40):
        if not self.console.exists():
            return ""
        lines = self.console.read_text(errors="replace").replace("\r", "").splitlines()
        return "".join(f"{self.name} kernel: {line}\n" for line in lines[-count:])

    def end(self):
        with self.lock:
            self.ended = True
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        if self.remove_out:
            shutil.rmtree(self.out, ignore_errors=True)


def terminal_words():
    """What the machine's console cannot ask this terminal for."""
    columns, rows = shutil.get_terminal_size()
    return f" lab.rows={rows} lab.columns={columns} lab.term={os.environ.get('TERM', 'linux')}"


def mac_byte(path):
    """Different for different link ends, the same at each start."""
    return sum(str(path).encode()) % 251
