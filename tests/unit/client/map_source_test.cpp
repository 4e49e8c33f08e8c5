// How a client asks for the map again (2-sharding 2.8.1): by the tag of the newest it has seen, whatever came since.
#include "tandem/client/device.hpp"
#include "unit/support/scripted_origin.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace tandem::client {
namespace {

using test::http_answer;
using test::OriginPeer;
using test::ScriptedOrigin;

ScriptedOrigin::Script serves(int version) {
  const std::string v = std::to_string(version);
  const std::string map =
      R"({"version":)" + v + R"(,"ranges":[{"low":0,"high":65535,"host":"relay)" + v + R"(.test"}]})";
  return [answer = http_answer(map, "200 OK", "ETag: \"v" + v + "\"\r\nCache-Control: max-age=5\r\n")](
             const std::string&, OriginPeer& peer) { peer.send(answer); };
}

struct Asking {
  boost::asio::io_context loop;
  std::unique_ptr<MapSource> source;

  std::uint64_t version() {
    std::uint64_t got = 0;
    source->fetch([&](const MapAnswer& answer) {
      if (const auto* fetched = std::get_if<FetchedMap>(&answer)) got = fetched->map->version().value;
    });
    loop.restart();
    loop.run();
    return got;
  }
};

bool asked_with(const ScriptedOrigin& origin, const std::string& tag) {
  return origin.heads().back().find("If-None-Match: \"" + tag + "\"\r\n") != std::string::npos;
}

TEST(MapSource, SendsTheTagOfTheNewestMapAlsoBehindALaggingEdge) {
  ScriptedOrigin origin(serves(3));
  Asking client;
  client.source = http_map_source(client.loop, origin.url());
  EXPECT_EQ(client.version(), 3u);
  EXPECT_EQ(origin.heads().back().find("If-None-Match"), std::string::npos);
  origin.script(serves(2));
  EXPECT_EQ(client.version(), 2u) << "whether to believe it is the resolver's business";
  EXPECT_TRUE(asked_with(origin, "v3"));
  origin.script(serves(4));
  EXPECT_EQ(client.version(), 4u);
  EXPECT_TRUE(asked_with(origin, "v3")) << "an edge that has the old map still would have said: not modified";
  EXPECT_EQ(client.version(), 4u);
  EXPECT_TRUE(asked_with(origin, "v4"));
}

}  // namespace
}  // namespace tandem::client
