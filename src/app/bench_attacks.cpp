#include "app/bench_attacks.hpp"

#include "tandem/client/frames.hpp"
#include "tandem/protocol/admission.hpp"

#include <iterator>

namespace tandem::app {
namespace {

using client::Opcode;
using std::chrono::milliseconds;

struct Site {
  std::string host, room;
  SeededRandom& random;
};

std::string noise(SeededRandom& random, std::size_t size) {
  std::string out(size, '\0');
  random.fill({reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
  return out;
}

std::string head(const Site& s, const std::string& line, const std::string& fields) {
  return line + " HTTP/1.1\r\nHost: " + s.host + "\r\nx-relay-room: " + s.room + "\r\n" + fields + "\r\n";
}

std::string upgrade(const Site& s, const std::string& fields = {}) {
  return head(s, "GET /",
              "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" +
                  fields);
}

std::string frame(Opcode opcode, std::string_view payload) {
  Bytes out;
  client::append_frame(out, opcode, bytes_of(payload), {1, 2, 3, 4});
  return {out.begin(), out.end()};
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// All of an admission in one write; a relay loses nothing of what comes together.
std::string join(const Site& s, Role role) {
  return upgrade(s) + frame(Opcode::text, protocol::hello_message(role, false)) + frame(Opcode::text, "{}");
}

using Make = Attack (*)(const Site&);
constexpr Attack::Leave kReset = Attack::Leave::reset;

// In the order in which the threat model names them (docs/security.md).
constexpr Make kMakers[] = {
    // ---- before TLS is up
    [](const Site&) { return Attack{.name = "says nothing", .tls = false}; },
    [](const Site& s) { return Attack{.name = "garbage", .tls = false, .first = noise(s.random, 900)}; },
    [](const Site& s) { return Attack{.name = "no TLS", .tls = false, .first = head(s, "GET /", "")}; },
    [](const Site&) { return Attack{.name = "reset before accept", .tls = false, .leave = kReset}; },
    [](const Site&) { return Attack{.name = "half closed", .tls = false, .leave = Attack::Leave::half_close}; },
    [](const Site&) {
      return Attack{
          .name = "handshake that trickles", .tls = false, .first = std::string("\x16\x03\x01\x02\0", 5), .again = "a"};
    },
    // ---- HTTP
    [](const Site&) { return Attack{.name = "head that trickles", .first = "GET / HT", .again = "x"}; },
    [](const Site&) {
      return Attack{.name = "endless head",
                    .first = "GET / HTTP/1.1\r\nX: ",
                    .again = std::string(4096, 'x'),
                    .every = milliseconds(50)};
    },
    [](const Site& s) {
      return Attack{
          .name = "body that never comes",
          .first = head(s, "POST /register", "Content-Length: 60000\r\n"),
      };
    },
    [](const Site& s) {
      return Attack{.name = "body that trickles",
                    .first = head(s, "POST /delete", "Transfer-Encoding: chunked\r\n") + "fff\r\n",
                    .again = " "};
    },
    [](const Site& s) {
      return Attack{
          .name = "smuggled request",
          .first = head(s, "POST /delete", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" +
                   head(s, "POST /delete", "Content-Length: 0\r\n"),
      };
    },
    [](const Site& s) {
      return Attack{.name = "browser with a pipeline",
                    .first = upgrade(s, "Origin: https://x.test\r\n") +
                             repeat(head(s, "POST /delete", "Content-Length: 0\r\n"), 20),
                    .reads = false};
    },
    // ---- WebSocket, un-admitted
    [](const Site& s) { return Attack{.name = "never says hello", .first = upgrade(s)}; },
    [](const Site& s) { return Attack{.name = "records of a byte", .first = join(s, Role::mac), .drip = true}; },
    [](const Site& s) {
      return Attack{.name = "deep JSON", .first = upgrade(s) + frame(Opcode::text, std::string(8000, '['))};
    },
    [](const Site& s) {
      return Attack{.name = "never answers a close and sends on",
                    .first = upgrade(s) + frame(Opcode::text, "nope"),
                    .again = frame(Opcode::binary, std::string(1000, 'x')),
                    .every = milliseconds(50),
                    .reads = false};
    },
    // ---- WebSocket, admitted
    [](const Site& s) {
      return Attack{.name = "unmasked frame", .first = join(s, Role::mac) + std::string("\x82\x01x", 3)};
    },
    [](const Site& s) {
      return Attack{
          .name = "message too large",
          .first = join(s, Role::mac) + std::string("\x82\xff\0\0\0\0\0\x10\0\0", 10),
      };
    },
    [](const Site& s) {
      return Attack{.name = "half a frame, then gone",
                    .first = join(s, Role::mac) + frame(Opcode::binary, std::string(9000, 'x')).substr(0, 4000),
                    .reads = false};
    },
    [](const Site& s) {
      return Attack{.name = "pings, and takes no answer",
                    .first = join(s, Role::mac),
                    .again = repeat(frame(Opcode::ping, std::string(100, 'p')), 10),
                    .every = milliseconds(50),
                    .reads = false};
    },
    [](const Site& s) {
      return Attack{.name = "too many messages",
                    .first = join(s, Role::mac),
                    .again = repeat(frame(Opcode::binary, "x"), 200),
                    .every = milliseconds(100)};
    },
    [](const Site& s) {
      return Attack{.name = "floods a peer that never reads",
                    .first = join(s, Role::mac),
                    .again = frame(Opcode::binary, std::string(60'000, 'x')),
                    .every = milliseconds(100),
                    .companion = join(s, Role::phone)};
    },
};

}  // namespace

std::size_t attack_kinds() noexcept { return std::size(kMakers); }

Attack make_attack(std::size_t kind, const std::string& host, const RoomName& room, SeededRandom& random) {
  return kMakers[kind % std::size(kMakers)](Site{host, room.hex(), random});
}

}  // namespace tandem::app
