# SPDX-License-Identifier: Apache-2.0

# pnfsrdma_library(NAME [ROOMS folder...] DEPENDS target...): a static library of every .cc file in the current folder
# (main.cc excepted) and in the folders named.
function(pnfsrdma_library NAME)
  cmake_parse_arguments(ARG "" "" "ROOMS;DEPENDS" ${ARGN})
  set(PATTERNS *.cc)
  foreach(ROOM ${ARG_ROOMS})
    list(APPEND PATTERNS ${ROOM}/*.cc)
  endforeach()
  file(GLOB SOURCES CONFIGURE_DEPENDS ${PATTERNS})
  list(FILTER SOURCES EXCLUDE REGEX "/main\\.cc$")
  if(SOURCES)
    add_library(${NAME} STATIC ${SOURCES})
    target_include_directories(${NAME} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${NAME} PUBLIC ${ARG_DEPENDS})
  else()
    add_library(${NAME} INTERFACE)
    target_include_directories(${NAME} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${NAME} INTERFACE ${ARG_DEPENDS})
  endif()
endfunction()

# pnfsrdma_program(NAME DEPENDS target...): a program from main.cc in the current folder.
function(pnfsrdma_program NAME)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/main.cc)
    add_executable(${NAME} main.cc)
    target_link_libraries(${NAME} PRIVATE ${ARG_DEPENDS})
  endif()
endfunction()

# pnfsrdma_test(NAME [WHOLE] [TIMEOUT seconds] [ROOMS folder...] DEPENDS target...): one GoogleTest program of every *_test.cc
# in the current folder and in the folders named; every test in it is one ctest case, labelled with the folder's first name
# (unit, integration, ...). WHOLE: the program is one case, LABEL.NAME, and tests/totals.py counts its tests by the file that it
# leaves in whole/: for many short tests, which take less time than a start under sanitizers. A crash ends those behind it, too.
function(pnfsrdma_test NAME)
  cmake_parse_arguments(ARG "WHOLE" "TIMEOUT" "ROOMS;DEPENDS" ${ARGN})
  set(PATTERNS *_test.cc)
  foreach(ROOM ${ARG_ROOMS})
    list(APPEND PATTERNS ${ROOM}/*_test.cc)
  endforeach()
  file(GLOB SOURCES CONFIGURE_DEPENDS ${PATTERNS})
  if(SOURCES)
    file(RELATIVE_PATH WHERE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
    string(REGEX REPLACE "/.*" "" LABEL ${WHERE})
    if(NOT ARG_TIMEOUT)
      set(ARG_TIMEOUT 120)
    endif()
    add_executable(${NAME} ${SOURCES})
    target_link_libraries(${NAME} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
    if(ARG_WHOLE)
      set(RESULTS ${CMAKE_BINARY_DIR}/whole/${LABEL}.${NAME}.xml)
      # Those of an earlier run go first: who dies leaves none. COST: it begins early, beside shorter ones.
      add_test(NAME ${LABEL}.${NAME}
               COMMAND sh -c "rm -f \"$1\" && exec \"$0\" --gtest_output=xml:\"$1\"" $<TARGET_FILE:${NAME}> ${RESULTS})
      set_tests_properties(${LABEL}.${NAME} PROPERTIES LABELS ${LABEL} TIMEOUT 600 COST 100)
      return()
    endif()
    gtest_discover_tests(${NAME} TEST_PREFIX "${LABEL}." DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${LABEL} TIMEOUT ${ARG_TIMEOUT})
  endif()
endfunction()

# pnfsrdma_fuzzer(NAME DEPENDS target...): a libFuzzer program of the .cc files in the current folder, and a ctest case of
# label fuzz that runs it for PNFSRDMA_FUZZ_SECONDS, starting from ./corpus (checked in, small, never written: what a run
# finds goes into the build folder). Only with PNFSRDMA_FUZZERS, which also builds the libraries with coverage.
function(pnfsrdma_fuzzer NAME)
  cmake_parse_arguments(ARG "" "MAX_LENGTH" "DEPENDS" ${ARGN})
  if(NOT PNFSRDMA_FUZZERS)
    return()
  endif()
  if(NOT ARG_MAX_LENGTH)
    set(ARG_MAX_LENGTH 4096)
  endif()
  file(GLOB SOURCES CONFIGURE_DEPENDS *.cc)
  add_executable(${NAME} ${SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPENDS})
  target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
  set(FOUND ${CMAKE_BINARY_DIR}/fuzz/${NAME})
  file(MAKE_DIRECTORY ${FOUND})
  set(CORPUS ${CMAKE_CURRENT_SOURCE_DIR}/corpus)
  if(NOT EXISTS ${CORPUS})
    set(CORPUS "")
  endif()
  math(EXPR TIMEOUT "${PNFSRDMA_FUZZ_SECONDS} + 120")
  add_test(NAME fuzz.${NAME}
           COMMAND ${NAME} -max_total_time=${PNFSRDMA_FUZZ_SECONDS} -max_len=${ARG_MAX_LENGTH} -timeout=20
                   -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=${FOUND}/crash- ${FOUND} ${CORPUS})
  set_tests_properties(fuzz.${NAME} PROPERTIES LABELS fuzz TIMEOUT ${TIMEOUT})
endfunction()
