// What probe and bench take for a relay's origin.
#include "tandem/app/bench.hpp"
#include "tandem/app/probe.hpp"

#include <gtest/gtest.h>

namespace tandem::app {
namespace {

TEST(Origin, IsAnHttpsOrWssUrlWithoutAPath) {
  const struct {
    const char* url;
    const char* host;
  } rows[] = {{"https://relay1.test", "relay1.test"},
              {"wss://relay1.test/", "relay1.test"},
              {"https://relay1.test:443", "relay1.test"},
              {"https://relay1.test:8443/", "relay1.test:8443"},
              {"https://[::1]:8443", "[::1]:8443"},
              {"http://relay1.test", ""},
              {"relay1.test", ""},
              {"https://", ""},
              {"https://relay1.test/path", ""},
              {"https://user@relay1.test", ""},
              {"https://Relay1.Test", ""},
              {"https://relay1.test:99999", ""},
              {"", ""}};
  for (const auto& row : rows) EXPECT_EQ(host_of_origin(row.url), row.host) << row.url;
}

TEST(Origin, OfABenchIsOnLoopback) {
  for (const char* host : {"localhost", "localhost:8443", "127.0.0.1", "127.9.9.9:443", "[::1]:8443"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"relay1.test", "localhost.evil.test", "128.0.0.1", "[::2]", "10.0.0.1", "", "127.evil.test"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

}  // namespace
}  // namespace tandem::app
