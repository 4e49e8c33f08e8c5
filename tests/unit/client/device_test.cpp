// Whole devices against a real relay: what the rules of 2-sharding 2.8 come to on a real network.
#include "tandem/client/device.hpp"

#include "tandem/protocol/derivation.hpp"
#include "unit/client/maps.hpp"
#include "unit/client/relay_host.hpp"

#include <chrono>
#include <map>

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

using Clock = std::chrono::steady_clock;
namespace mint = protocol::mint;

// Gives one map, which the test changes; always fresh.
class FixedMap final : public MapSource {
 public:
  FixedMap(boost::asio::io_context& loop, std::shared_ptr<const shard::ShardMap>& map) : loop_(loop), map_(map) {}
  void fetch(std::function<void(const MapAnswer&)> done) override {
    const int mine = ++fetch_;
    boost::asio::post(loop_, [this, mine, done = std::move(done)] {
      if (mine == fetch_) done(FetchedMap{map_, seconds(5)});
    });
  }
  void cancel() override { ++fetch_; }

 private:
  boost::asio::io_context& loop_;
  std::shared_ptr<const shard::ShardMap>& map_;
  int fetch_ = 0;
};

class GenuinePhone final : public Attestor {
 public:
  Bytes attestation(const Sha256& client_data_hash) override {
    ++attestations;
    key_ = mint::new_key();
    counter_ = 0;
    return mint::attestation(authority_, key_, client_data_hash);
  }
  Bytes assertion(const Sha256& client_data_hash) override {
    return mint::assertion(key_, authority_.app_id, ++counter_, client_data_hash);
  }
  int attestations = 0;

 private:
  mint::Authority authority_ = mint::Authority::synthetic();
  mint::Key key_;
  std::uint32_t counter_ = 0;
};

class DeviceTest : public ::testing::Test {
 protected:
  struct Seen {
    int admissions = 0, registrations = 0;
    std::vector<std::string> hosts, messages, endings;
    Standing standing = Standing::connecting;
  };

  DeviceTest() {
    room_ = protocol::room_name(bytes_of("a mac's key, thirty-two bytes ..."), "device test");
    seed_ = protocol::auth_seed(bytes_of("secret"));
  }
  ~DeviceTest() override {
    mac_.reset();
    phone_.reset();
    loop_.poll();
  }

  template <class Condition>
  bool eventually(Condition condition, std::chrono::seconds patience = std::chrono::seconds(12)) {
    const auto end = Clock::now() + patience;
    while (!condition()) {
      if (Clock::now() > end) return false;
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(50));
    }
    return true;
  }

  std::unique_ptr<Device> device(Role role, Seen& seen, Attestor* attestor = nullptr) {
    DeviceSettings settings;
    settings.agent.role = role;
    settings.agent.room = room_;
    if (!map_) settings.agent.relay = "a.test";
    settings.agent.can_attest = attestor != nullptr;
    settings.key = seed_;
    settings.attestor = attestor;
    settings.connect = [this](const std::string& host) { return "127.0.0.1:" + std::to_string(ports_[host]); };
    Device::Watchers watchers;
    watchers.connecting = [&seen](const std::string& host) { seen.hosts.push_back(host); };
    watchers.admitted = [&seen] { ++seen.admissions; };
    watchers.registered = [&seen] { ++seen.registrations; };
    watchers.ended = [&seen](const Ending& ending) { seen.endings.push_back(describe(ending)); };
    watchers.standing = [&seen](Standing standing, const std::string&) { seen.standing = standing; };
    watchers.message = [&seen](Opcode, ByteView bytes) { seen.messages.emplace_back(bytes.begin(), bytes.end()); };
    auto source = map_ ? std::make_unique<FixedMap>(loop_, map_) : nullptr;
    return std::make_unique<Device>(loop_, trust_anything(), std::move(source), random_, settings, watchers);
  }

  void start_both(Attestor* attestor = nullptr) {
    mac_ = device(Role::mac, mac_seen_);
    phone_ = device(Role::phone, phone_seen_, attestor);
    mac_->start();
    ASSERT_TRUE(eventually([this] { return mac_seen_.admissions == 1; }));
    phone_->start();
    ASSERT_TRUE(eventually([this] { return phone_seen_.registrations == 1; }));
  }

  bool both_live() const { return mac_->agent().is_live() && phone_->agent().is_live(); }

  void expect_talk(const std::string& words) {
    phone_->send(Opcode::text, bytes_of(words));
    EXPECT_TRUE(eventually([&] { return !mac_seen_.messages.empty() && mac_seen_.messages.back() == words; }));
    mac_->send(Opcode::text, bytes_of(words + " back"));
    EXPECT_TRUE(
        eventually([&] { return !phone_seen_.messages.empty() && phone_seen_.messages.back() == words + " back"; }));
  }

  boost::asio::io_context loop_;
  SeededRandom random_{42};
  RoomName room_;
  Ed25519Seed seed_{};
  std::shared_ptr<const shard::ShardMap> map_;
  std::map<std::string, std::uint16_t> ports_;
  Seen mac_seen_, phone_seen_;
  std::unique_ptr<Device> mac_, phone_;
};

TEST_F(DeviceTest, PairsRegistersAndTalks) {
  RelayHost host({.hostname = "a.test"});
  ports_["a.test"] = host.port();
  start_both();
  expect_talk("hello");
  EXPECT_TRUE(host.is_established(room_));
}

TEST_F(DeviceTest, JoinsBySignatureAfterTheNetworkWentAway) {
  RelayHost host({.hostname = "a.test"});
  ports_["a.test"] = host.port();
  start_both();
  mac_->drop();
  ASSERT_TRUE(eventually([this] { return mac_seen_.admissions == 2 && both_live(); }));
  expect_talk("again");
  const auto admitted = host.observed().all<observed::Admitted>();
  EXPECT_EQ(admitted.back().via, Via::signature);
}

TEST_F(DeviceTest, ComesBackToAHostThatDiedAndLostItsState) {
  auto host = std::make_unique<RelayHost>(RelayHost::Options{.hostname = "a.test"});
  const std::uint16_t port = ports_["a.test"] = host->port();
  start_both();
  host.reset();
  ASSERT_TRUE(eventually([this] { return !mac_->agent().is_live() && !phone_->agent().is_live(); }));
  host = std::make_unique<RelayHost>(RelayHost::Options{.hostname = "a.test", .port = port});
  ASSERT_TRUE(eventually([this] { return both_live() && phone_seen_.registrations == 2; }, std::chrono::seconds(40)));
  expect_talk("back");
  EXPECT_TRUE(host->is_established(room_)) << "the phone registers the verifier again by itself";
}

TEST_F(DeviceTest, HealsAHostThatLostTheVerifierByAttestingAgain) {
  GenuinePhone genuine;
  auto host = std::make_unique<RelayHost>(RelayHost::Options{.hostname = "a.test", .attest = true});
  const std::uint16_t port = ports_["a.test"] = host->port();
  start_both(&genuine);
  EXPECT_EQ(genuine.attestations, 1);
  expect_talk("first");

  host.reset();
  ASSERT_TRUE(eventually([this] { return !mac_->agent().is_live() && !phone_->agent().is_live(); }));
  host = std::make_unique<RelayHost>(RelayHost::Options{.hostname = "a.test", .port = port, .attest = true});
  ASSERT_TRUE(eventually([this] { return both_live() && phone_seen_.registrations == 2; }, std::chrono::seconds(40)));
  EXPECT_EQ(genuine.attestations, 2);
  expect_talk("healed");

  // The verifier is the same as before: the mac's next park is by signature.
  mac_->drop();
  ASSERT_TRUE(eventually([this] { return both_live() && mac_seen_.admissions >= 3; }));
  const auto admitted = host->observed().all<observed::Admitted>();
  const auto last_mac =
      std::find_if(admitted.rbegin(), admitted.rend(), [](const auto& a) { return a.role == Role::mac; });
  ASSERT_NE(last_mac, admitted.rend());
  EXPECT_EQ(last_mac->via, Via::signature);
}

TEST_F(DeviceTest, FollowsTheMapWhenItsRoomIsEvicted) {
  RelayHost a({.hostname = "a.test", .resolved = true}), b({.hostname = "b.test", .resolved = true});
  ports_ = {{"a.test", a.port()}, {"b.test", b.port()}};
  map_ = one_host_map(1, "a.test");
  a.adopt(map_);
  b.adopt(map_);
  start_both();
  EXPECT_EQ(phone_seen_.hosts.back(), "a.test");

  map_ = one_host_map(2, "b.test");
  a.adopt(map_);
  b.adopt(map_);
  ASSERT_TRUE(eventually(
      [this] { return both_live() && mac_seen_.hosts.back() == "b.test" && phone_seen_.hosts.back() == "b.test"; },
      std::chrono::seconds(40)));
  EXPECT_EQ(mac_seen_.endings.front(), "closed 4421 reshard b.test");
  EXPECT_EQ(phone_seen_.endings.front(), "closed 4421 reshard b.test");
  expect_talk("moved");
}

TEST_F(DeviceTest, LeavesAHostThatRefusesItForWhereTheMapPoints) {
  RelayHost a({.hostname = "a.test", .resolved = true}), b({.hostname = "b.test", .resolved = true});
  ports_ = {{"a.test", a.port()}, {"b.test", b.port()}};
  map_ = one_host_map(2, "b.test");
  a.adopt(map_);
  b.adopt(map_);
  map_ = one_host_map(1, "a.test");  // a lagging edge
  mac_ = device(Role::mac, mac_seen_);
  mac_->start();
  ASSERT_TRUE(eventually([this] { return !mac_seen_.endings.empty(); }));
  EXPECT_EQ(mac_seen_.endings.front(), "HTTP 421 misdirected");
  map_ = one_host_map(2, "b.test");
  ASSERT_TRUE(eventually([this] { return mac_->agent().is_live(); }, std::chrono::seconds(40)));
  EXPECT_EQ(mac_seen_.hosts.back(), "b.test");
}

TEST_F(DeviceTest, DoesNotTrustACertificateThatNobodyVouchesFor) {
  RelayHost host({.hostname = "localhost"});
  std::optional<Ending> ended;
  const auto endpoint = Endpoint::open(
      loop_, trust_system(), {.host = "localhost:" + std::to_string(host.port()), .connect = {}, .source = {}},
      {.role = Role::mac, .room = room_, .key = {}, .ticket = {}},
      {.admitted = nullptr, .message = nullptr, .ended = [&](const Ending& ending) { ended = ending; }});
  ASSERT_TRUE(eventually([&] { return ended.has_value(); }));
  EXPECT_NE(describe(*ended).find("certificate"), std::string::npos) << describe(*ended);
}

}  // namespace
}  // namespace tandem::client
