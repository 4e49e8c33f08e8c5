# Everything comes from Debian's packages; `./dev` installs them.
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(cbor REQUIRED IMPORTED_TARGET libcbor)
pkg_check_modules(sqlite REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(systemd REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(qrencode REQUIRED IMPORTED_TARGET libqrencode)

# Asio and Beast are compiled once, here: including their implementation everywhere costs half a minute a translation unit.
add_library(tandem_asio STATIC ${CMAKE_SOURCE_DIR}/cmake/asio_impl.cpp)
target_compile_definitions(tandem_asio PUBLIC BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_NO_TS_EXECUTORS)
target_link_libraries(tandem_asio PUBLIC Boost::headers OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
if(TANDEM_SANITIZE)
  target_compile_options(tandem_asio PRIVATE "-fsanitize=${TANDEM_SANITIZE}" -fno-omit-frame-pointer)
endif()
