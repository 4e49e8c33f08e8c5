# The layer check runs as part of every build: see check_layers.py. Debian's own python, whatever PATH says.
find_program(TANDEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
add_custom_target(check_layers ALL
  COMMAND ${TANDEM_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/check_layers.py ${CMAKE_SOURCE_DIR}
  COMMENT "Checking that rooms include only what they may")
