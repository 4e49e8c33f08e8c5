# tandem_room(NAME ROOMS other... LIBS lib...): one static library per room of the house, from src/NAME/*.cpp, with the
# headers of include/tandem/NAME. Sources are globbed, so that a new file needs no edit here.
function(tandem_room name)
  cmake_parse_arguments(arg "" "" "ROOMS;LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(name STREQUAL "core")
    list(APPEND sources ${CMAKE_BINARY_DIR}/generated/version.cpp)
  endif()
  list(TRANSFORM arg_ROOMS PREPEND tandem_)
  if(sources)
    add_library(tandem_${name} STATIC ${sources})
    target_include_directories(tandem_${name} PUBLIC ${CMAKE_SOURCE_DIR}/include PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(tandem_${name} PUBLIC ${arg_ROOMS} ${arg_LIBS} PRIVATE tandem_flags tandem_watched)
    set_target_properties(tandem_${name} PROPERTIES UNITY_BUILD ${TANDEM_UNITY} UNITY_BUILD_BATCH_SIZE 12)
    if(TANDEM_SANITIZE)   # executables that link a sanitized room need the runtime as well
      target_link_options(tandem_${name} PUBLIC "-fsanitize=${TANDEM_SANITIZE}")
    endif()
  else()                  # a room of headers only
    add_library(tandem_${name} INTERFACE)
    target_include_directories(tandem_${name} INTERFACE ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(tandem_${name} INTERFACE ${arg_ROOMS} ${arg_LIBS})
  endif()
endfunction()
