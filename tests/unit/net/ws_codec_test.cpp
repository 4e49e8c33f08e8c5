#include "tandem/net/ws_codec.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Status = FrameReader::Status;

struct FrameSpec {
  unsigned opcode = 2;
  bool fin = true;
  unsigned rsv = 0;
  bool masked = true;
  int form = 0;  // 0: minimal, else 126 or 127
  std::array<std::uint8_t, 4> mask = {0x12, 0xff, 0x00, 0xa5};
};

Bytes frame(const std::string& payload, FrameSpec spec = {}, std::uint64_t claim = UINT64_MAX) {
  const std::uint64_t length = claim == UINT64_MAX ? payload.size() : claim;
  Bytes out{static_cast<std::uint8_t>((spec.fin ? 0x80u : 0u) | spec.rsv << 4 | spec.opcode)};
  const unsigned mask_bit = spec.masked ? 0x80u : 0u;
  const int form = spec.form != 0 ? spec.form : length < 126 ? 0 : length < 65536 ? 126 : 127;
  out.push_back(
      static_cast<std::uint8_t>(mask_bit | (form == 0 ? static_cast<unsigned>(length) : static_cast<unsigned>(form))));
  const int bytes = form == 0 ? 0 : form == 126 ? 2 : 8;
  for (int i = bytes; i-- > 0;) out.push_back(static_cast<std::uint8_t>(length >> (8 * i)));
  if (spec.masked) out.insert(out.end(), spec.mask.begin(), spec.mask.end());
  for (std::size_t i = 0; i < payload.size(); ++i) {
    const auto c = static_cast<std::uint8_t>(payload[i]);
    out.push_back(spec.masked ? static_cast<std::uint8_t>(c ^ spec.mask[i % 4]) : c);
  }
  return out;
}

// Reads a whole stream in pieces of `step` bytes: "opcode fin payload;" for each frame, then how it ended.
std::string read_all(const Bytes& stream, std::size_t step, std::uint64_t limit = 1 << 20) {
  FrameReader reader;
  std::string out, payload;
  for (std::size_t at = 0; at < stream.size(); at += step) {
    std::span<const std::uint8_t> in(stream.data() + at, std::min(step, stream.size() - at));
    while (!in.empty()) {
      if (reader.remaining() == 0) {
        const auto head = reader.read_head(in, limit);
        in = in.subspan(head.taken);
        if (head.status == Status::protocol_error) return out + "protocol_error";
        if (head.status == Status::too_large) return out + "too_large";
        if (head.status == Status::need_more) continue;
      } else {
        const std::size_t n = std::min<std::uint64_t>(in.size(), reader.remaining());
        const std::size_t old = payload.size();
        payload.resize(old + n);
        reader.take(reinterpret_cast<std::uint8_t*>(payload.data()) + old, in.first(n));
        in = in.subspan(n);
      }
      if (reader.remaining() != 0) continue;
      out += std::to_string(static_cast<int>(reader.opcode())) + (reader.fin() ? "F " : "- ") + payload + ";";
      payload.clear();
    }
  }
  return out;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(FrameReader, ReadsTheSameWhateverThePieces) {
  const std::string big(70000, 'q');
  const Bytes stream = frame("hello", {.opcode = 1}) + frame("", {.opcode = 9}) + frame(std::string(125, 'a')) +
                       frame(std::string(126, 'b')) + frame(std::string(65535, 'c')) + frame(big) +
                       frame("part", {.opcode = 1, .fin = false}) + frame("ping", {.opcode = 9}) +
                       frame("end", {.opcode = 0});
  const std::string whole = read_all(stream, stream.size());
  EXPECT_EQ(whole, "1F hello;9F ;2F " + std::string(125, 'a') + ";2F " + std::string(126, 'b') + ";2F " +
                       std::string(65535, 'c') + ";2F " + big + ";1- part;9F ping;0F end;");
  for (const std::size_t step : {1u, 2u, 3u, 5u, 7u, 13u, 14u, 15u, 1000u, 16384u})
    EXPECT_EQ(read_all(stream, step), whole) << step;
}

TEST(FrameReader, RefusesWhatRfc6455Forbids) {
  const std::vector<std::pair<const char*, Bytes>> bad = {
      {"unmasked", frame("x", {.masked = false})},
      {"unmasked and empty", frame("", {.opcode = 1, .masked = false})},
      {"reserved bit 1", frame("x", {.rsv = 4})},
      {"reserved bit 2", frame("x", {.rsv = 2})},
      {"reserved bit 3", frame("x", {.rsv = 1})},
      {"reserved bit on a ping", frame("x", {.opcode = 9, .rsv = 4})},
      {"opcode 3", frame("x", {.opcode = 3})},
      {"opcode 7", frame("x", {.opcode = 7})},
      {"opcode 11", frame("x", {.opcode = 11})},
      {"opcode 15", frame("x", {.opcode = 15})},
      {"a short length in 16 bits", frame(std::string(125, 'x'), {.form = 126})},
      {"a short length in 64 bits", frame(std::string(65535, 'x'), {.form = 127})},
      {"a length of 2^63", frame("", {.form = 127}, std::uint64_t{1} << 63)},
      {"a fragmented ping", frame("x", {.opcode = 9, .fin = false})},
      {"a fragmented close", frame("", {.opcode = 8, .fin = false})},
      {"a ping of 126", frame(std::string(126, 'x'), {.opcode = 9})},
      {"a close of 126", frame(std::string(126, 'x'), {.opcode = 8})},
      {"a continuation of nothing", frame("x", {.opcode = 0})},
      {"a continuation of nothing, not final", frame("x", {.opcode = 0, .fin = false})},
      {"a message inside a message", frame("a", {.fin = false}) + frame("b", {.opcode = 1})},
      {"a continuation after the end",
       frame("a", {.fin = false}) + frame("b", {.opcode = 0}) + frame("c", {.opcode = 0})},
  };
  for (const auto& [what, stream] : bad)
    for (const std::size_t step : {std::size_t{1}, stream.size()})
      EXPECT_TRUE(read_all(stream, step).ends_with("protocol_error")) << what << " in steps of " << step;
}

TEST(FrameReader, SeesAMissingMaskInTheSecondByte) {
  FrameReader reader;
  const Bytes two{0x82, 0x05};
  EXPECT_EQ(reader.read_head(two, 100).status, Status::protocol_error);
}

TEST(FrameReader, RefusesAMessageAsSoonAsAHeadMakesItTooLarge) {
  EXPECT_EQ(read_all(frame("", {}, 1001), 1, 1000), "too_large");
  EXPECT_EQ(read_all(frame("", {.form = 127}, std::uint64_t{1} << 62), 14, 1000), "too_large");
  EXPECT_EQ(read_all(frame(std::string(1000, 'x')), 64, 1000), "2F " + std::string(1000, 'x') + ";");
  const Bytes halves = frame(std::string(600, 'a'), {.fin = false}) + frame("", {.opcode = 0}, 401);
  EXPECT_TRUE(read_all(halves, 64, 1000).ends_with(";too_large"));
  const Bytes fits = frame(std::string(600, 'a'), {.fin = false}) + frame("p", {.opcode = 9}) +
                     frame(std::string(400, 'b'), {.opcode = 0}) + frame(std::string(1000, 'c'));
  EXPECT_TRUE(read_all(fits, 64, 1000).ends_with("2F " + std::string(1000, 'c') + ";"))
      << "a control frame counts, or a new message does not start anew";
}

TEST(FrameReader, ControlFramesDoNotCountAsTheMessage) {
  Bytes stream = frame("a", {.fin = false});
  for (int i = 0; i < 20; ++i) stream = stream + frame(std::string(125, 'p'), {.opcode = 9});
  EXPECT_TRUE(read_all(stream + frame("b", {.opcode = 0}), 1 << 20, 10).ends_with("0F b;"));
}

TEST(Unmask, MatchesTheDefinitionAtEveryLengthAndPhase) {
  const std::array<std::uint8_t, 4> mask = {1, 0x80, 0x33, 0xfe};
  Bytes in(101);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * 37);
  for (std::size_t size = 0; size <= in.size(); ++size) {
    for (unsigned phase = 0; phase < 4; ++phase) {
      Bytes out(size + 1, 0xee), wanted(size + 1, 0xee);
      for (std::size_t i = 0; i < size; ++i) wanted[i] = static_cast<std::uint8_t>(in[i] ^ mask[(i + phase) % 4]);
      unmask(out.data(), in.data(), size, mask, phase);
      ASSERT_EQ(out, wanted) << size << " bytes, phase " << phase;
      Bytes in_place(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(size));
      in_place.push_back(0xee);
      unmask(in_place.data(), in_place.data(), size, mask, phase);
      ASSERT_EQ(in_place, wanted);
    }
  }
}

TEST(WriteFrameHead, UsesTheShortestLength) {
  std::uint8_t out[kMaxServerHeader];
  EXPECT_EQ(write_frame_head(out, Opcode::text, true, 125), 2u);
  EXPECT_EQ(out[0], 0x81);
  EXPECT_EQ(out[1], 125);
  EXPECT_EQ(write_frame_head(out, Opcode::continuation, false, 126), 4u);
  EXPECT_EQ(out[0], 0x00);
  EXPECT_EQ(out[1], 126);
  EXPECT_EQ(out[3], 126);
  EXPECT_EQ(write_frame_head(out, Opcode::binary, true, 65535), 4u);
  EXPECT_EQ(write_frame_head(out, Opcode::binary, true, 65536), 10u);
  EXPECT_EQ(out[1], 127);
  EXPECT_EQ(out[7], 1);
  EXPECT_EQ(out[9], 0);
}

TEST(JudgeClose, LetsOnlyCodesTravelThatMay) {
  const auto verdict = [](unsigned code, const std::string& reason = "") {
    Bytes payload{static_cast<std::uint8_t>(code >> 8), static_cast<std::uint8_t>(code)};
    payload.insert(payload.end(), reason.begin(), reason.end());
    const CloseVerdict v = judge_close(payload);
    return v.valid ? 0 : static_cast<int>(v.code);
  };
  for (const unsigned good : {1000u, 1001u, 1003u, 1007u, 1011u, 1014u, 3000u, 3999u, 4000u, 4421u, 4999u})
    EXPECT_EQ(verdict(good), 0) << good;
  for (const unsigned bad : {0u, 999u, 1004u, 1005u, 1006u, 1015u, 1016u, 2000u, 2999u, 5000u, 65535u})
    EXPECT_EQ(verdict(bad), 1002) << bad;
  EXPECT_EQ(verdict(1000, "caf\xc3\xa9"), 0);
  EXPECT_EQ(verdict(1000, "caf\xc3"), 1007);
  EXPECT_TRUE(judge_close({}).valid);
  EXPECT_EQ(judge_close({}).code, 1005);
  EXPECT_EQ(judge_close(Bytes{3}).code, 1002);
}

TEST(IsUtf8, KnowsTheEdgesOfUnicode) {
  const auto check = [](std::string_view s) {
    return is_utf8({reinterpret_cast<const std::uint8_t*>(s.data()), s.size()});
  };
  for (const char* good : {"", "plain", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(check(good)) << good;
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82", "\xe2\x28\xa1"})
    EXPECT_FALSE(check(bad)) << bad;
  EXPECT_TRUE(check(std::string_view("\0", 1)));
}

}  // namespace
}  // namespace tandem::net
