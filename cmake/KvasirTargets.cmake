# One target per layer, explicit sources, and the flags every target shares.

add_library(kvasir_flags INTERFACE)
target_include_directories(kvasir_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
# -ffp-contract=off: a multiply and an add fuse only where the code says fma, so that
# numbers do not depend on the compiler's mood (docs/ARCHITECTURE.md, "Numbers").
target_compile_options(kvasir_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wno-missing-field-initializers  # designated initialisers leave defaults in place on purpose
  -ffp-contract=off
  -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees uninitialised and overlapping memory inside its own std::optional, std::variant and std::string.
  target_compile_options(kvasir_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's std::stable_sort calls a function that it declares deprecated itself.
  target_compile_options(kvasir_flags INTERFACE -Wno-deprecated-declarations)
endif()
target_compile_definitions(kvasir_flags INTERFACE _GLIBCXX_ASSERTIONS)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_definitions(kvasir_flags INTERFACE _FORTIFY_SOURCE=3)
endif()
target_link_options(kvasir_flags INTERFACE -Wl,-z,relro,-z,now)
if(KVASIR_WERROR)
  target_compile_options(kvasir_flags INTERFACE -Werror)
endif()
if(KVASIR_SANITIZE)
  target_compile_options(kvasir_flags INTERFACE -fsanitize=${KVASIR_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(kvasir_flags INTERFACE -fsanitize=${KVASIR_SANITIZE})
endif()
if(KVASIR_FUZZ)
  target_compile_options(kvasir_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Compiles a target's files in batches of `size`. Files of one target share no name of an unnamed namespace then;
# those that do have the property SKIP_UNITY_BUILD_INCLUSION.
function(kvasir_batches target size)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${KVASIR_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O2)  # -O3 costs a tenth more to compile, and is for the arithmetic
  endif()
endfunction()

# kvasir_layer(NAME SOURCES a.cc ... ALONE b.cc ... DEPS base tensor ... LIBS fmt::fmt ...)
# ALONE names those of the sources that are not compiled in a batch with others; with UNBATCHED none is.
# DEPS are layers; scripts/check_layers.py holds the table of which are allowed.
function(kvasir_layer name)
  cmake_parse_arguments(arg "UNBATCHED" "" "SOURCES;ALONE;DEPS;LIBS" ${ARGN})
  if(arg_SOURCES)
    add_library(kvasir_${name} STATIC ${arg_SOURCES})
    if(NOT arg_UNBATCHED)
      kvasir_batches(kvasir_${name} 6)
      set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    set(scope PUBLIC)
  else()
    add_library(kvasir_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  set(deps)
  foreach(dep ${arg_DEPS})
    list(APPEND deps kvasir_${dep})
  endforeach()
  target_link_libraries(kvasir_${name} ${scope} $<BUILD_INTERFACE:kvasir_flags> ${deps} ${arg_LIBS})
  target_compile_features(kvasir_${name} ${scope} cxx_std_23)
endfunction()

# kvasir_test(NAME SOURCES a_test.cc ... DEPS layer ... LIBS lib ...): one executable per layer,
# every TEST in it a ctest entry. Tests find the checkout through KVASIR_SOURCE_DIR.
function(kvasir_test name)
  if(NOT KVASIR_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(kvasir_${name}_test ${arg_SOURCES})
  set(deps)
  foreach(dep ${arg_DEPS})
    list(APPEND deps kvasir_${dep})
  endforeach()
  target_link_libraries(kvasir_${name}_test PRIVATE ${deps} ${arg_LIBS} GTest::gtest_main)
  target_compile_definitions(kvasir_${name}_test PRIVATE KVASIR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  # A test of a few lines costs the compiler seconds for GoogleTest and the standard library: several are compiled as one.
  # Each test file has a namespace of its own name, so that what it declares meets nobody else's.
  kvasir_batches(kvasir_${name}_test 6)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    # The test's own objects only: -O1 gives the same results (no fast-math, -ffp-contract=off), a third sooner.
    target_compile_options(kvasir_${name}_test PRIVATE -O1)
  endif()
  set(properties TIMEOUT 300)
  if(arg_LABELS)
    list(APPEND properties LABELS "${arg_LABELS}")
  endif()
  gtest_discover_tests(kvasir_${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
