#include "tandem/client/frames.hpp"

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

Bytes raw(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

Bytes server_frame(Opcode opcode, const Bytes& payload, bool final = true) {
  Bytes frame = raw({(final ? 0x80 : 0) | static_cast<int>(opcode)});
  if (payload.size() < 126) {
    frame.push_back(static_cast<std::uint8_t>(payload.size()));
  } else if (payload.size() <= 0xffff) {
    frame.push_back(126);
    frame.push_back(static_cast<std::uint8_t>(payload.size() >> 8));
    frame.push_back(static_cast<std::uint8_t>(payload.size()));
  } else {
    frame.push_back(127);
    for (int shift = 56; shift >= 0; shift -= 8) frame.push_back(static_cast<std::uint8_t>(payload.size() >> shift));
  }
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

TEST(Frames, MasksWhatItSends) {
  Bytes out;
  append_frame(out, Opcode::text, bytes_of("Hello"), {0x37, 0xfa, 0x21, 0x3d});
  // The masked text message of RFC 6455, section 5.7.
  EXPECT_EQ(out, raw({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58}));
}

TEST(Frames, MasksEveryByteAtEveryLength) {
  for (std::size_t size = 0; size < 70; ++size) {
    Bytes payload(size), out;
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<std::uint8_t>(i * 7);
    const Mask mask = {1, 2, 3, 4};
    append_frame(out, Opcode::binary, payload, mask);
    ASSERT_EQ(out.size(), 6 + size);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(out[6 + i] ^ mask[i % 4], payload[i]);
  }
}

TEST(Frames, UsesTheShortestLength) {
  for (const auto& [size, header] : {std::pair<std::size_t, std::size_t>{125, 2}, {126, 4}, {65535, 4}, {65536, 10}}) {
    Bytes out;
    append_frame(out, Opcode::binary, Bytes(size), {});
    EXPECT_EQ(out.size(), size + header + 4);
  }
}

TEST(Frames, ReadsMessagesByteByByte) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{125}, std::size_t{126}, std::size_t{70000}}) {
    const Bytes payload(size, 0x5a);
    FrameReader reader;
    int messages = 0;
    for (const std::uint8_t byte : server_frame(Opcode::binary, payload)) {
      reader.feed({&byte, 1});
      const auto next = reader.next();
      ASSERT_TRUE(next);
      if (!*next) continue;
      ++messages;
      EXPECT_EQ((*next)->payload, payload);
    }
    EXPECT_EQ(messages, 1) << size;
  }
}

TEST(Frames, PutsFragmentsTogetherAroundControlFrames) {
  FrameReader reader;
  reader.feed(server_frame(Opcode::text, raw({'a'}), false));
  reader.feed(server_frame(Opcode::ping, raw({'p'})));
  reader.feed(server_frame(Opcode::continuation, {}, false));
  reader.feed(server_frame(Opcode::continuation, raw({'b'})));
  const auto ping = reader.next();
  ASSERT_TRUE(ping && *ping);
  EXPECT_EQ((*ping)->opcode, Opcode::ping);
  const auto message = reader.next();
  ASSERT_TRUE(message && *message);
  EXPECT_EQ((*message)->opcode, Opcode::text);
  EXPECT_EQ((*message)->payload, raw({'a', 'b'}));
}

TEST(Frames, RefusesWhatAServerMayNotSend) {
  const struct {
    const char* what;
    Bytes bytes;
  } rows[] = {{"masked", raw({0x81, 0x81, 1, 2, 3, 4, 5})},
              {"reserved bit", raw({0xc1, 0x00})},
              {"unknown opcode", raw({0x83, 0x00})},
              {"unknown control opcode", raw({0x8b, 0x00})},
              {"fragmented ping", raw({0x09, 0x00})},
              {"long ping", raw({0x89, 126, 0, 126})},
              {"continuation of nothing", raw({0x80, 0x00})},
              {"long form of a short length", raw({0x82, 126, 0, 5})},
              {"longest form of a short length", raw({0x82, 127, 0, 0, 0, 0, 0, 0, 0, 9})},
              {"a message inside another", raw({0x01, 0x00, 0x81, 0x00})}};
  for (const auto& row : rows) {
    FrameReader reader;
    reader.feed(row.bytes);
    auto next = reader.next();
    EXPECT_FALSE(next) << row.what;
  }
}

TEST(Frames, RefusesMessagesPastTheLimitWhateverTheirFragments) {
  FrameReader reader(100);
  reader.feed(server_frame(Opcode::binary, Bytes(60), false));
  ASSERT_TRUE(reader.next());
  reader.feed(server_frame(Opcode::continuation, Bytes(41)));
  const auto next = reader.next();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error(), Error::too_large);
}

TEST(Frames, ReadsCloseFrames) {
  EXPECT_EQ(parse_close({}).code, 1005);
  const Bytes payload = raw({0x11, 0x45, 'r', 'e'});
  EXPECT_EQ(parse_close(payload).code, 4421);
  EXPECT_EQ(parse_close(payload).reason, "re");
}

}  // namespace
}  // namespace tandem::client
