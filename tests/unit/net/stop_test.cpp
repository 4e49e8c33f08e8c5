// The graceful stop, over real sockets.
#include "unit/net/wire.hpp"

#include <gtest/gtest.h>

namespace tandem::net::wire {
namespace {

using std::chrono::milliseconds;

TEST(Stop, DeliversWhatWasOnItsWay) {
  Options options;
  options.relay.meter = {UINT64_MAX, UINT64_MAX, std::chrono::hours(24)};
  TestServer server(options);
  Pair p = pair(server);
  constexpr int kMessages = 300;
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) p.mac.send_frame(2, std::to_string(i) + std::string(900, 'x'));
  });
  sender
      .join();  // with more in the kernel's buffers than the relay may take in at once: the phone has read nothing yet
  std::thread reader([&] {
    for (int i = 0; i < kMessages; ++i) {
      const auto message = p.phone.message();
      ASSERT_TRUE(message) << i;
      ASSERT_EQ(message->payload, std::to_string(i) + std::string(900, 'x'));
    }
    EXPECT_EQ(p.phone.ending(), (Ending{1001, "server shutting down", true}));
  });
  std::thread other([&] { EXPECT_EQ(p.mac.ending(), (Ending{1001, "server shutting down", true})); });
  EXPECT_LT(server.stop(), milliseconds(4000));
  reader.join();
  other.join();
}

}  // namespace
}  // namespace tandem::net::wire
