# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, sanitizers and the compiler cache: the same for every target.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# shared/ is also part of libpnfsrdma.so. Nobody replaces a function of ours, so the compiler may inline all the same.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fno-semantic-interposition)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

option(PNFSRDMA_TESTS "Build the tests" ON)
# Half of a compilation is the same headers (the NFS operations alone are 2.5 s): eight sources in one compilation make a
# cold build three times as fast. -DCMAKE_UNITY_BUILD=OFF for editing one file again and again, and for clang-tidy.
option(CMAKE_UNITY_BUILD "Several sources in one compilation" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
option(PNFSRDMA_VERSION_FROM_GIT "Let --version name the commit; off: the release alone" ON)
option(PNFSRDMA_FUZZERS "Build the libFuzzer targets (clang only)" OFF)
set(PNFSRDMA_FUZZ_SECONDS 60 CACHE STRING "How long ctest runs each fuzzer")
set(PNFSRDMA_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")

add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these two inside its own headers when optimising std::expected and std::string.
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict)
endif()
add_compile_definitions(_FILE_OFFSET_BITS=64)
if(PNFSRDMA_SANITIZE)
  add_compile_options(-fsanitize=${PNFSRDMA_SANITIZE})
  add_link_options(-fsanitize=${PNFSRDMA_SANITIZE})
  if(PNFSRDMA_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    if(NOT PNFSRDMA_FUZZERS)
      # These four double the compilation, and ASan finds nearly all of it. The fuzzers, which feed the decoders, have them.
      add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
    endif()
  endif()
endif()
if(NOT PNFSRDMA_SANITIZE)
  # The same bytes wherever the checkout stands. (A sanitizer's report wants the real paths.)
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
endif()
if(PNFSRDMA_FUZZERS)
  # Coverage for the fuzzers in every object; only they link libFuzzer and its main().
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(PNFSRDMA_SANITIZE)
  # Seventy programs, most of whose bytes are names in templates: half the disk (6 GB less), and no time.
  add_link_options(-Wl,--compress-debug-sections=zlib)
endif()
