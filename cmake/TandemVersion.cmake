# The version and commit that --version, build_info and /status report. Reproducible: nothing of the time or place of the build.
set(TANDEM_COMMIT "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                  OUTPUT_VARIABLE TANDEM_GIT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE TANDEM_GIT_RESULT)
  if(TANDEM_GIT_RESULT EQUAL 0)
    set(TANDEM_COMMIT "${TANDEM_GIT_COMMIT}")
  endif()
endif()
configure_file(${CMAKE_SOURCE_DIR}/cmake/version.cpp.in ${CMAKE_BINARY_DIR}/generated/version.cpp @ONLY)
