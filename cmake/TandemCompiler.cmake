# Warnings, hardening, sanitizers and ccache: one place for what every target of ours is compiled with.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")          # assertions stay on: they abort on our own bugs
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")   # what the sanitizers run on: quick to build, readable traces

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
endif()

add_library(tandem_flags INTERFACE)
target_compile_options(tandem_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-align -Wformat=2 -Werror
  -fstack-protector-strong -fno-plt
  "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.")    # reproducible: no path of the build machine in a binary
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees dangling pointers and overreads inside inlined standard containers that are not there.
  target_compile_options(tandem_flags INTERFACE -Wno-dangling-pointer -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-array-bounds -Wno-maybe-uninitialized -Wno-restrict)
  if(TANDEM_UNITY)   # an anonymous namespace is taken for a header's when its file is included in another
    target_compile_options(tandem_flags INTERFACE -Wno-subobject-linkage)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TANDEM_SANITIZE STREQUAL "thread")
  # Asio's fences are not understood; each io_context of ours has one thread, so none of them orders anything between two.
  target_compile_options(tandem_flags INTERFACE -Wno-tsan)
endif()
# Sanitizers: what is tested carries all of them, a test itself only what it must share with it.
add_library(tandem_watched INTERFACE)
add_library(tandem_watching INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(tandem_watching INTERFACE -Wno-missing-designated-field-initializers)
endif()
if(TANDEM_FUZZ)
  target_compile_options(tandem_watched INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(TANDEM_SANITIZE)
  target_compile_options(tandem_watched INTERFACE "-fsanitize=${TANDEM_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
  string(REPLACE ",undefined" "" shared "${TANDEM_SANITIZE}")
  target_compile_options(tandem_watching INTERFACE "-fsanitize=${shared}" -fno-omit-frame-pointer)
  target_link_options(tandem_flags INTERFACE "-fsanitize=${TANDEM_SANITIZE}")
  target_compile_definitions(tandem_flags INTERFACE TANDEM_SANITIZED=1)
else()
  target_compile_options(tandem_flags INTERFACE $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
  target_link_options(tandem_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
