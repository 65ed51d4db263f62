# SPDX-License-Identifier: Apache-2.0
# The front door. `make demo` and `make test` install what they need (Debian 12, root) and do everything.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
CHECK ?= 0
FUZZ_SECONDS ?= 30
export CTEST_OUTPUT_ON_FAILURE = 1

.DEFAULT_GOAL := help
.PHONY: help build demo demo-stop demo-ha demo-ha-stop packages test test-unit test-web pictures test-tsan test-fuzz test-demo test-packages test-lab build-dev build-tsan build-fuzz build-lab build-ahead built-ahead sim sim-soak lab lab-test lab-bench bench bench-server conformance soak format format-check tidy clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Release binaries in build/release/bin, the console's pages in build/release/web
	@packaging/dependencies.sh build
	@cmake --preset release >/dev/null
	@cmake --build build/release -j $(JOBS) --target pnfsrdma-brickd pnfsrdma-mdsd pnfsrdma-fuse pnfsrdma libpnfsrdma pnfsrdma-preload pnfsrdma-bench bench-transport web

demo: ## Start brick, MDS and a mount, do real work on it, prove where the data went (CHECK=1: no waiting, clean up)
	@packaging/dependencies.sh build demo web-build
	@$(MAKE) --no-print-directory build
	@CHECK=$(CHECK) tests/demo/demo.sh build/release/bin

demo-stop: ## Unmount and stop what `make demo` left running
	@tests/demo/stop.sh

demo-ha: ## Two MDSs, two bricks, three members of etcd, a host each in network namespaces: what is lost, and for how long all waits (CHECK=1: cleans up)
	@packaging/dependencies.sh build ha
	@$(MAKE) --no-print-directory build
	@CHECK=$(CHECK) python3 tests/ha/demo.py build/release/bin || [ $$? -eq 77 ]

demo-ha-stop: ## Unmount and stop what `make demo-ha` left running
	@python3 tests/ha/stop.py

packages: ## deb and rpm for this system in build/release/packages
	@packaging/dependencies.sh build web-build packages
	@$(MAKE) --no-print-directory build
	@cmake --build build/release -j $(JOBS) --target pnfsrdma man completion
	@packaging/packages.sh build/release

test-packages: ## The packages checked, and installed, used, upgraded and removed on fresh Debian 12 and 13
	@packaging/dependencies.sh build web-build packages
	@$(MAKE) --no-print-directory build
	@cmake --build build/release -j $(JOBS) --target pnfsrdma man completion
	@code=0; tests/packages/test.sh build/release || code=$$?; [ $$code -eq 0 ] || [ $$code -eq 77 ]

# Where time ends (tests/in_time.sh) what comes last is skipped: the fuzzers have nothing new to read in most runs.
SUITES := unit web demo tsan lab fuzz
RESULTS := $(CURDIR)/build/results

# What fails does not hide what comes behind it; the end tells all of it again.
test: ## Every test: unit to crash under ASan/UBSan, the console in a browser, the demo's checks, concurrency under TSan, each fuzzer, the lab
	@rm -rf $(RESULTS)
	@$(MAKE) -k --no-print-directory build-ahead $(SUITES:%=in-time-%); code=$$?; tests/totals.py $(RESULTS) $(SUITES) && exit $$code

in-time-%:
	@tests/in_time.sh $* $(RESULTS) $(MAKE) --no-print-directory test-$*

build-dev:
	@packaging/dependencies.sh build test demo ha web-build
	@cmake --preset dev >/dev/null && cmake --build build/dev -j $(JOBS)

build-tsan:
	@packaging/dependencies.sh build test
	@cmake --preset tsan >/dev/null && cmake --build build/tsan -j $(JOBS)

build-fuzz:
	@packaging/dependencies.sh build fuzz
	@cmake --preset fuzz -DPNFSRDMA_FUZZ_SECONDS=$(FUZZ_SECONDS) >/dev/null && cmake --build build/fuzz -j $(JOBS)

build-lab:
	@code=0; tests/vm/lab.py prepare || code=$$?; [ $$code -eq 0 ] || [ $$code -eq 77 ]

# Half of the time of test-unit is waiting, for leases and stopped programs: the builds of what comes behind it use it, at a
# priority that yields to everything else. They hold the lock until they are done; what failed is built, and told, again.
build-ahead: build-dev
	@packaging/dependencies.sh build test demo web fuzz
	@exec 9>build/ahead.lock && flock 9 && \
	  { chrt --idle 0 $(MAKE) -k --no-print-directory build-tsan build-fuzz build-lab >build/ahead.log 2>&1 </dev/null & }

built-ahead:
	@mkdir -p build && flock build/ahead.lock true

# One test more at a time than there are processors: half of them wait.
test-unit: build-dev
	@tests/suite.py $(RESULTS)/unit.xml dev -j $$(($(JOBS) + 1)) -LE 'web|demo'

test-web: ## The console's pages: their logic, and all of them in a browser against the real programs
	@packaging/dependencies.sh build test web
	@cmake --preset dev >/dev/null && cmake --build build/dev -j $(JOBS) --target pnfsrdma-brickd pnfsrdma-mdsd pnfsrdma-fuse web
	@tests/suite.py $(RESULTS)/web.xml dev -L web

pictures: ## Recreate the pictures of docs/console.md, with the browser test
	@mkdir -p docs/pictures && PNFSRDMA_PICTURES=$(CURDIR)/docs/pictures $(MAKE) --no-print-directory test-web

test-tsan: built-ahead build-tsan
	@tests/suite.py $(RESULTS)/tsan.xml tsan -j $(JOBS)

test-fuzz: built-ahead build-fuzz
	@ctest --test-dir build/fuzz -j $(JOBS) -L fuzz --no-tests=error --output-junit $(RESULTS)/fuzz.xml

# With the programs of test-unit: under sanitizers, and without a third build of everything.
test-demo:
	@packaging/dependencies.sh build demo ha
	@cmake --preset dev >/dev/null && cmake --build build/dev -j $(JOBS) --target pnfsrdma-brickd pnfsrdma-mdsd pnfsrdma-fuse
	@ctest --preset dev -V -L demo --no-tests=error --output-junit $(RESULTS)/demo.xml

lab: ## A shell in a QEMU machine with Soft-RoCE (rxe0) and device DAX (/dev/dax0.0), the project built inside
	@tests/vm/lab.py shell

lab-test: ## The lab's scenarios: real verbs, device DAX, the Linux kernel's NFS client, several machines
	@code=0; tests/vm/lab.py --results $(RESULTS)/lab.xml test || code=$$?; [ $$code -eq 0 ] || [ $$code -eq 77 ]

test-lab: built-ahead lab-test

lab-bench: ## In the lab: our transport beside perftest, our mount beside the Linux kernel's NFS/RDMA client, durable writes beside librpma
	@tests/vm/lab.py compare

bench: build ## Transport and mount benchmarks, each beside its ceiling in the same run; CHART=FILE.svg draws them
	@packaging/dependencies.sh bench
	@CHART="$(CHART)" tests/bench/bench.sh build/release/bin

bench-server: build ## Our MDS under thousands of clients beside NFS-Ganesha, one processor each; BENCH="--medium tmpfs" and more: tests/bench/server
	@packaging/dependencies.sh test peers
	@cmake --build build/release -j $(JOBS) --target bench-server
	@tests/bench/server/server_bench.py --bin build/release/bin --pin --open half $(BENCH) || [ $$? -eq 77 ]

conformance: build ## Third-party suites in SUITES=FOLDER (pjdfstest, cthon04, fsx, fsstress, pynfs, xfstests), compared with the expected results; ONLY=NAME,...
	@packaging/dependencies.sh test
	@tests/conformance/conformance.py build/release/bin "$(SUITES)" $(if $(ONLY),--only $(ONLY)) || [ $$? -eq 77 ]

SEED ?= 1
WORKLOAD ?=
build/sim/bin/sim: FORCE
	@packaging/dependencies.sh build test
	@cmake --preset release -B build/sim -DPNFSRDMA_VERSION_FROM_GIT=OFF >/dev/null
	@cmake --build build/sim -j $(JOBS) --target sim
FORCE:

sim: build/sim/bin/sim ## The simulator: replay SEED=n with a trace (WORKLOAD="--sharing 1 --forks": tests/sim/README.md)
	@build/sim/bin/sim $(SEED) $(WORKLOAD)

sim-soak: build/sim/bin/sim ## The simulator without end, from SEED=n on; stop it with Ctrl-C
	@build/sim/bin/sim --from $(SEED) --count 0 --keep-going $(WORKLOAD)

soak: build ## Crash rounds without end; stop it with Ctrl-C
	@packaging/dependencies.sh test
	@tests/crash/kill_test.py --bin build/release/bin --rounds 1000000

format: ## Format every source file
	@packaging/dependencies.sh tidy
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

format-check:
	@packaging/dependencies.sh tidy
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 --dry-run -Werror

tidy: ## clang-tidy over every source file
	@packaging/dependencies.sh build tidy
	@cmake --preset dev -B build/tidy -DCMAKE_UNITY_BUILD=OFF >/dev/null
	@git ls-files '*.cc' | grep -v '^tests/fuzz/' | xargs -n 8 -P $(JOBS) clang-tidy-19 --quiet -p build/tidy

clean: ## Remove build/
	@rm -rf build web/node_modules web/node_modules.l* web/src/api/generated.ts
