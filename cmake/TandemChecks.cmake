# The layer check runs as part of every build: see check_layers.py.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_target(check_layers ALL
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/check_layers.py ${CMAKE_SOURCE_DIR}
  COMMENT "Checking that rooms include only what they may")
