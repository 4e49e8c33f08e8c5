#include "tandem/config/schema.hpp"

#include "config/read_value.hpp"

#include <utility>

namespace tandem::config {
namespace {

class Table {
 public:
  // `get` maps a Config to the key's field, const or not.
  template <class Get>
  void add(const char* path, Get get, Rule rule, const char* fallback, Reload reload, const char* doc) {
    Key key{path, rule, fallback, reload, doc, {}, {}, {}};
    key.read = [get, rule](Config& c, const json& v, const std::string& base_dir) {
      return read_value(v, Reading{rule, base_dir}, get(c));
    };
    key.show = [get, rule](const Config& c) { return show_value(get(c), rule).dump(); };
    key.copy = [get](Config& to, const Config& from) { get(to) = get(from); };
    keys.push_back(std::move(key));
  }

  std::vector<Key> keys;
};

Rule of(Type type) { return {.type = type}; }
Rule buffer(std::uint64_t least, std::uint64_t most) { return {.type = Type::size, .least = {least}, .most = {most}}; }
Rule or_null(Type type) { return {.type = type, .nullable = true}; }
Rule one_of(std::vector<std::string> words) { return {.type = Type::choice, .choices = std::move(words)}; }

constexpr auto now = Reload::now;
constexpr auto restart = Reload::restart;

void add_identity(Table& t) {
  t.add(
      "hostname", [](auto& c) -> auto& { return c.hostname; }, of(Type::authority), "", restart,
      "Who this relay is: the name in its TLS certificate, its name in the shard map, and the base of the origin that "
      "clients "
      "sign (`https://` + hostname). A bare name or address in lowercase, with a port only where clients use one other "
      "than "
      "443. Changing it makes every pairing join under another origin.");
  t.add(
      "listen", [](auto& c) -> auto& { return c.listen; }, of(Type::addresses), R"(["0.0.0.0:443","[::]:443"])",
      restart,
      "The addresses of the public listeners: literal addresses with a port (`localhost` stands for 127.0.0.1). "
      "Sockets passed by "
      "systemd take their place.");
}

void add_tls(Table& t) {
  t.add(
      "tls.certificate", [](auto& c) -> auto& { return c.tls->certificate; }, of(Type::path), "", now,
      "PEM file with the certificate and its chain, leaf first. Watched: a new one is taken within 5 s, once it "
      "matches its key.");
  t.add(
      "tls.private_key", [](auto& c) -> auto& { return c.tls->private_key; }, of(Type::path), "", now,
      "PEM file with the certificate's private key.");
  t.add(
      "tls.min_version", [](auto& c) -> auto& { return c.tls->min_version; }, one_of({"1.2", "1.3"}), R"("1.2")", now,
      "The oldest TLS version that is spoken.");
  t.add(
      "tls.allow_name_mismatch", [](auto& c) -> auto& { return c.tls->allow_name_mismatch; }, of(Type::flag), "false",
      now,
      "For tests: starts although the certificate does not hold the hostname. Clients will refuse such a certificate.");
}

void add_proxy(Table& t) {
  t.add(
      "proxy.trust", [](auto& c) -> auto& { return c.proxy.trust; },
      one_of({"none", "forwarded_for", "cloudflare", "proxy_protocol"}), R"("none")", now,
      "Who says what a client's address is, for the limits per client. `none`: the socket. `forwarded_for`: the "
      "`hops`-th entry "
      "from the right of `X-Forwarded-For`. `cloudflare`: `CF-Connecting-IP`. `proxy_protocol`: a PROXY header, "
      "version 1 or 2, "
      "before TLS; a connection without one is closed.");
  t.add(
      "proxy.hops", [](auto& c) -> auto& { return c.proxy.hops; }, of(Type::count), "1", now,
      "How many proxies of yours append to `X-Forwarded-For`. A shorter chain gives its right-most entry.");
  t.add(
      "proxy.from", [](auto& c) -> auto& { return c.proxy.from; }, of(Type::networks), R"(["127.0.0.0/8","::1/128"])",
      now, "The addresses of your proxies: their word counts, nobody else's.");
}

void add_shard_map(Table& t) {
  t.add(
      "shard_map.url", [](auto& c) -> auto& { return c.shard_map->url; }, of(Type::url), "", restart,
      "Where the shard map is published: `https`, or `http` on loopback, or `file:///path`.");
  t.add(
      "shard_map.poll_interval", [](auto& c) -> auto& { return c.shard_map->poll_interval; }, of(Type::duration),
      R"("10s")", restart, "How often the map is fetched, with 10 % of jitter.");
  t.add(
      "shard_map.drain_delay", [](auto& c) -> auto& { return c.shard_map->drain_delay; }, of(Type::duration),
      R"("20s")", restart,
      "How long rooms of a bucket that was given away stay before they are evicted. At least twice `poll_interval`, so "
      "that the "
      "new owner knows by then.");
  t.add(
      "shard_map.eviction_rate", [](auto& c) -> auto& { return c.shard_map->eviction_rate; }, of(Type::rate), "10", now,
      "Rooms evicted per second over the whole host, evenly spaced. Fractions are allowed: 0.5 is one room every 2 s.");
  t.add(
      "shard_map.fetch_timeout", [](auto& c) -> auto& { return c.shard_map->fetch_timeout; }, of(Type::duration),
      R"("3s")", restart, "How long one attempt to fetch the map may take.");
  t.add(
      "shard_map.fetch_attempts", [](auto& c) -> auto& { return c.shard_map->fetch_attempts; }, of(Type::count), "3",
      restart, "Attempts in one poll, each on a fresh connection.");
  t.add(
      "shard_map.boot_timeout", [](auto& c) -> auto& { return c.shard_map->boot_timeout; }, of(Type::duration),
      R"("60s")", restart, "How long a starting relay tries to get its first map before it exits.");
  t.add(
      "shard_map.ca_file", [](auto& c) -> auto& { return c.shard_map->ca_file; }, or_null(Type::path), "null", restart,
      "PEM file of the CAs that may vouch for the map's server. null: the system's.");
}

void add_attest(Table& t) {
  t.add(
      "attest.required", [](auto& c) -> auto& { return c.attest.required; }, of(Type::flag), "true", now,
      "Whether a phone must prove by App Attest that it runs the real app before it may pair. Only an explicit `false` "
      "turns it "
      "off: then whoever knows a room's name may pair in it.");
  t.add(
      "attest.app_id", [](auto& c) -> auto& { return c.attest.app_id; }, or_null(Type::text), "null", now,
      "The app that may attest: its Apple team identifier, a dot, its bundle identifier (`TEAMID.bundle.id`). null: "
      "the relay "
      "starts, warns, and rejects every attestation, so that no phone can pair for the first time.");
  t.add(
      "attest.environment", [](auto& c) -> auto& { return c.attest.environment; },
      one_of({"production", "development"}), R"("production")", now,
      "Which of Apple's two App Attest environments the app uses.");
  t.add(
      "attest.root_ca", [](auto& c) -> auto& { return c.attest.root_ca; }, or_null(Type::path), "null", now,
      "PEM file of another App Attest root, for tests. null: Apple's, which is built in.");
}

void add_limits(Table& t) {
  t.add(
      "limits.room_bytes_per_day", [](auto& c) -> auto& { return c.limits.room_bytes_per_day; }, or_null(Type::size),
      R"("8GiB")", now,
      "What one room may move in 24 h, both directions together. Crossing it closes the room until the window ends.");
  t.add(
      "limits.message_bytes", [](auto& c) -> auto& { return c.limits.message_bytes; }, or_null(Type::size),
      R"("256KiB")", now, "The largest message of an admitted endpoint.");
  t.add(
      "limits.messages_per_second", [](auto& c) -> auto& { return c.limits.messages_per_second; }, or_null(Type::count),
      "500", now, "Messages per second in one room, both directions together.");
  t.add(
      "limits.upgrades_per_minute", [](auto& c) -> auto& { return c.limits.upgrades_per_minute; }, or_null(Type::count),
      "120", now, "WebSockets one client may open in a minute. A client is an IPv4 address or an IPv6 /64.");
  t.add(
      "limits.attests_per_minute", [](auto& c) -> auto& { return c.limits.attests_per_minute; }, or_null(Type::count),
      "30", now, "Requests to `/attest` and `/attest/challenge` of one client in a minute.");
  t.add(
      "limits.sockets_per_client", [](auto& c) -> auto& { return c.limits.sockets_per_client; }, or_null(Type::count),
      "64", now, "WebSockets of one client at once.");
  t.add(
      "limits.sockets", [](auto& c) -> auto& { return c.limits.sockets; }, or_null(Type::count), "200000", now,
      "WebSockets at once. Each needs a file descriptor: `LimitNOFILE` must be higher.");
  t.add(
      "limits.rooms", [](auto& c) -> auto& { return c.limits.rooms; }, or_null(Type::count), "200000", now,
      "Rooms with a socket at once. At the ceiling new rooms are refused; joins to a room that exists pass.");
  t.add(
      "limits.splice_buffer", [](auto& c) -> auto& { return c.limits.splice_buffer; }, buffer(4 << 10, 64 << 20),
      R"("64KiB")", now, "What may wait inside the relay in each direction of a splice. For new sockets.");
  t.add(
      "limits.socket_buffer", [](auto& c) -> auto& { return c.limits.socket_buffer; }, buffer(4 << 10, 1 << 30),
      R"("256KiB")", now, "The kernel's receive buffer of one socket, as the kernel counts it. For new sockets.");
  t.add(
      "limits.fast_socket_buffer", [](auto& c) -> auto& { return c.limits.fast_socket_buffer; },
      buffer(4 << 10, 1 << 30), R"("768KiB")", now,
      "The same while a source fills so much in 20 ms. Not above `socket_buffer`: off.");
  t.add(
      "limits.room_bytes_per_second", [](auto& c) -> auto& { return c.limits.room_bytes_per_second; },
      or_null(Type::size), "null", now, "Paces the payload of one room by backpressure. null: not paced.");
  t.add(
      "limits.box_bytes_per_second", [](auto& c) -> auto& { return c.limits.box_bytes_per_second; },
      or_null(Type::size), "null", now, "Paces the payload of the whole box; no room is starved. null: not paced.");
  t.add(
      "limits.box_egress_per_month", [](auto& c) -> auto& { return c.limits.box_egress_per_month; },
      or_null(Type::egress), "null", now,
      "What the box means to send in a calendar month (UTC). A size alone warns at 80 and 100 %; "
      "`{\"limit\": \"20TiB\", \"hard\": true}` also refuses new rooms at 100 %. null: no budget.");
}

void add_timeouts(Table& t) {
  t.add(
      "timeouts.request", [](auto& c) -> auto& { return c.timeouts.request; }, of(Type::duration), R"("10s")", now,
      "For a TLS handshake, a request's head, its body, and an idle keep-alive connection.");
  t.add(
      "timeouts.admission", [](auto& c) -> auto& { return c.timeouts.admission; }, of(Type::duration), R"("15s")", now,
      "How long a WebSocket may stay un-admitted.");
  t.add(
      "timeouts.rendezvous", [](auto& c) -> auto& { return c.timeouts.rendezvous; },
      Rule{.type = Type::duration, .zero_allowed = true}, R"("2s")", now,
      "How long a phone waits for a mac that is not there yet before it hears `mac offline`. `\"0s\"` turns the wait "
      "off.");
  t.add(
      "timeouts.keepalive", [](auto& c) -> auto& { return c.timeouts.keepalive; }, of(Type::duration), R"("30s")", now,
      "How often a socket is pinged; it is dropped when it shows no sign of life for a whole further interval.");
  t.add(
      "timeouts.stall", [](auto& c) -> auto& { return c.timeouts.stall; }, of(Type::duration), R"("30s")", now,
      "How long a receiver may acknowledge nothing while data waits for it.");
  t.add(
      "timeouts.established_idle", [](auto& c) -> auto& { return c.timeouts.established_idle; }, of(Type::duration),
      R"("30d")", now, "How long the registration of a room is kept without an authenticated contact.");
  t.add(
      "timeouts.shutdown", [](auto& c) -> auto& { return c.timeouts.shutdown; }, of(Type::duration), R"("15s")", now,
      "How long a graceful stop may take. The unit's `TimeoutStopSec` must be longer.");
}

void add_box(Table& t) {
  t.add(
      "shed.memory_pressure", [](auto& c) -> auto& { return c.shed.memory_pressure; }, of(Type::percent), "20", now,
      "Refuse new rooms above this memory pressure: PSI, `some`, the average of 10 s, in percent.");
  t.add(
      "shed.resume_below", [](auto& c) -> auto& { return c.shed.resume_below; }, of(Type::percent), "10", now,
      "Take new rooms again below this. Lower than `memory_pressure`.");
  t.add(
      "shed.pressure_file", [](auto& c) -> auto& { return c.shed.pressure_file; }, or_null(Type::path), "null", now,
      "Where the pressure is read. null: the cgroup's `memory.pressure`, else `/proc/pressure/memory`.");
  t.add(
      "state.path", [](auto& c) -> auto& { return c.state_path; }, or_null(Type::path), R"("/var/lib/tandem/state.db")",
      restart,
      "The SQLite file of the soft state. null: memory only; then every restart costs each pairing a silent "
      "re-registration.");
  t.add(
      "admin.listen", [](auto& c) -> auto& { return c.admin_listen; }, of(Type::address), R"("127.0.0.1:9464")",
      restart, "Where metrics, health, status and the status page are served. Loopback only.");
  t.add(
      "log.level", [](auto& c) -> auto& { return c.log.level; }, one_of({"debug", "info", "warn", "error"}),
      R"("info")", now,
      "The least important lines that are written. `SIGUSR2` turns `debug` on and off without a reload.");
  t.add(
      "log.format", [](auto& c) -> auto& { return c.log.format; }, one_of({"text", "json"}), R"("text")", now,
      "`text` for people and the journal, `json` for one object a line.");
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> table = [] {
    Table t;
    add_identity(t);
    add_tls(t);
    add_proxy(t);
    add_shard_map(t);
    add_attest(t);
    add_limits(t);
    add_timeouts(t);
    add_box(t);
    return std::move(t.keys);
  }();
  return table;
}

const std::vector<Section>& sections() {
  static const std::vector<Section> table{
      {"tls",
       "The certificate, or `\"off\"` where a proxy on the same box ends TLS: then every listener must be loopback. "
       "The expiry and the "
       "name in the certificate are checked at the start and at every change.",
       true},
      {"proxy", "Whom to believe about a client's address, where a proxy stands before the relay.", false},
      {"shard_map",
       "Where the map of a fleet is. Without this section (or with null) the relay is alone and owns every room: "
       "direct mode.",
       false},
      {"attest", "App Attest: whether phones must prove which app they are, and which app that is.", false},
      {"limits", "Ceilings and rates. Ceilings refuse new rooms and never end one that runs.", false},
      {"timeouts", "How long things may take. Each acts within 1 s of its time.", false},
      {"shed", "When the box runs out of memory: refuse new rooms, keep the ones there are.", false},
      {"state", "What survives a restart. All of it is soft: losing it never loses a pairing.", false},
      {"admin", "The loopback listener for the operator.", false},
      {"log", "Lines on standard error. They never hold a room's name, an address, a key or a payload.", false},
  };
  return table;
}

bool present(const Config& config, const Key& key) {
  const std::string section = key.section();
  return (section != "tls" || config.tls) && (section != "shard_map" || config.shard_map);
}

std::string expectation(const Rule& rule) {
  std::string out;
  switch (rule.type) {
    case Type::text: out = "a string that is not empty"; break;
    case Type::path: out = "a file's path in a string"; break;
    case Type::url: out = "a URL in a string, such as \"https://resolver.example.com/shardmap.json\""; break;
    case Type::authority: out = "a bare host name in a string, such as \"relay1.example.com\""; break;
    case Type::flag: out = "true or false"; break;
    case Type::count: out = "a whole number above zero"; break;
    case Type::rate: out = "a number above zero"; break;
    case Type::percent: out = "a percentage, a number from 0 to 100"; break;
    case Type::duration: out = "a duration in a string, a number and its unit (ms s m h d), such as \"30s\""; break;
    case Type::size: out = "a size in a string, a number and its unit (B KiB MiB GiB TiB), such as \"64KiB\""; break;
    case Type::address: out = "an address and port in a string, such as \"127.0.0.1:9464\""; break;
    case Type::addresses: out = "a list of addresses, such as [\"0.0.0.0:443\", \"[::]:443\"]"; break;
    case Type::networks: out = "a list of address ranges, such as [\"127.0.0.0/8\", \"::1/128\"]"; break;
    case Type::egress: out = "a size such as \"20TiB\", or {\"limit\": \"20TiB\", \"hard\": true}"; break;
    case Type::choice:
      for (std::size_t i = 0; i < rule.choices.size(); ++i) {
        out += (i == 0 ? "" : i + 1 == rule.choices.size() ? " or " : ", ") + ("\"" + rule.choices[i] + "\"");
      }
      break;
  }
  return rule.nullable ? out + ", or null" : out;
}

}  // namespace tandem::config
