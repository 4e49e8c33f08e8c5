#include "tandem/app/worker.hpp"

#include "tandem/state/store.hpp"
#include "unit/protocol/attest_mint.hpp"
#include "unit/state/temporary_folder.hpp"

#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace tandem::app {
namespace {

namespace effect = relay::effect;
namespace event = relay::event;
namespace mint = protocol::mint;
using state::TemporaryFolder;

RoomName room(int n) { return RoomName(sha256(bytes_of(std::to_string(n)))); }

// The loop: runs what is posted, on the test's thread, until something has come true.
class HandLoop {
 public:
  Worker::Post poster() {
    return [this](std::function<void()> f) {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(f));
      changed_.notify_one();
    };
  }
  template <class Done>
  bool run_until(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_until(lock, end, [this] { return !waiting_.empty(); })) return false;
      const auto f = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      f();
    }
    return true;
  }
  void drain() {
    while (!waiting_.empty()) {
      waiting_.front()();
      waiting_.pop_front();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
};

struct Faults final : Observer {
  std::vector<std::string> seen;
  void observe(const Observed& what) override {
    if (const auto* error = std::get_if<observed::StateError>(&what)) seen.push_back(error->what);
  }
};

struct WorkerTest : testing::Test {
  TemporaryFolder folder;
  HandLoop loop;
  Faults faults;
  std::vector<relay::Event> events;
  std::vector<std::string> notes;
  WorkerSettings settings{.state_path = folder / "state.db"};
  mint::Authority authority = mint::Authority::synthetic();
  mint::Key key = mint::new_key();
  Sha256 hash = sha256(bytes_of("challenge"));

  std::unique_ptr<Worker> make() {
    return std::make_unique<Worker>(
        settings, faults, loop.poster(), [this](relay::Event e) { events.push_back(std::move(e)); },
        [this](const std::string& note) { notes.push_back(note); });
  }
  std::unique_ptr<Worker> started() {
    auto worker = make();
    const auto fault = worker->start(net::read_clock());
    EXPECT_FALSE(fault) << *fault;
    return worker;
  }
  bool until_events(std::size_t n) {
    return loop.run_until([&] { return events.size() >= n; });
  }
  template <class Event>
  const Event& get(std::size_t i) {
    return std::get<Event>(events.at(i));
  }
  void trust_synthetic_root() {
    settings.root_ca = folder / "root.pem";
    std::ofstream(*settings.root_ca) << mint::vectors("appattest_synthetic.json")["root_pem"].get<std::string>();
    settings.app_id = authority.app_id;
  }
  [[nodiscard]] relay::StoredRoom stored(std::uint8_t n) const { return {{n}, relay::KeyId{n}, net::wall_now()}; }
};

TEST_F(WorkerTest, LoadsWhatItStoredAlsoAfterARestart) {
  {
    const auto worker = started();
    EXPECT_TRUE(worker->take(effect::StoreRoom{7, room(1), stored(1), 5}));
    EXPECT_TRUE(worker->take(effect::LoadRoom{room(1)}));
    EXPECT_TRUE(worker->take(effect::StoreFloor{MapVersion{12}}));
    EXPECT_TRUE(worker->take(effect::StoreEgress{24000, 9}));
    ASSERT_TRUE(until_events(2));
    worker->stop();
  }
  events.clear();
  const auto worker = started();
  ASSERT_EQ(events.size(), 2u) << "before start() returns";
  EXPECT_EQ(get<event::FloorLoaded>(0).floor, MapVersion{12});
  EXPECT_EQ(get<event::EgressLoaded>(1).bytes, 9u);
  worker->take(effect::LoadRoom{room(1)});
  worker->take(effect::LoadRoom{room(2)});
  ASSERT_TRUE(until_events(4));
  EXPECT_EQ(get<event::RoomLoaded>(2).stored->verifier, stored(1).verifier);
  EXPECT_FALSE(get<event::RoomLoaded>(3).stored);
}

TEST_F(WorkerTest, AnswersAStoreOnlyOnceItIsOnDisk) {
  const auto worker = started();
  worker->take(effect::StoreRoom{7, room(1), stored(1), std::nullopt});
  ASSERT_TRUE(until_events(1));
  EXPECT_TRUE(get<event::Stored>(0).ok);
  EXPECT_EQ(get<event::Stored>(0).id, 7u);
  auto other = state::Store::open(*settings.state_path);  // as after a kill
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->room(state::key_of(room(1))).value());
}

TEST_F(WorkerTest, WritesWhatNobodyWaitsForWithinTwoSecondsAndAtItsEnd) {
  auto worker = started();
  worker->take(effect::StoreFloor{MapVersion{3}});
  const auto written = [&] {
    auto other = state::Store::open(*settings.state_path);
    return other && other->floor().value() == MapVersion{3};
  };
  const auto begin = std::chrono::steady_clock::now();
  while (!written() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(written());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2500));
  worker->take(effect::WipeRoom{0, room(1)});
  worker->take(effect::StoreRoom{0, room(2), stored(2), std::nullopt});
  worker->stop();
  auto other = state::Store::open(*settings.state_path);
  EXPECT_TRUE(other->room(state::key_of(room(2))).value());
}

TEST_F(WorkerTest, TakesOnlyWhatIsItsOwn) {
  const auto worker = started();
  EXPECT_FALSE(worker->take(effect::Send{SocketId{1}, "x"}));
  EXPECT_FALSE(worker->take(effect::Reply{RequestId{1}, 200, "", 0}));
  EXPECT_TRUE(worker->take(effect::TouchRoom{room(1), net::wall_now()}));
  EXPECT_TRUE(worker->take(effect::SweepIdle{net::wall_now(), net::wall_now()}));
}

TEST_F(WorkerTest, WithoutAStateFileAnswersFromMemoryAndNeverInsideTheCall) {
  settings.state_path.reset();
  const auto worker = started();
  worker->take(effect::StoreRoom{1, room(1), stored(1), 3});
  worker->take(effect::LoadRoom{room(1)});
  worker->take(effect::WipeRoom{2, room(1)});
  worker->take(effect::LoadRoom{room(1)});
  EXPECT_TRUE(events.empty());
  ASSERT_TRUE(until_events(4));
  EXPECT_TRUE(get<event::Stored>(0).ok);
  EXPECT_TRUE(get<event::RoomLoaded>(1).stored);
  EXPECT_TRUE(get<event::Stored>(2).ok);
  EXPECT_FALSE(get<event::RoomLoaded>(3).stored);
}

TEST_F(WorkerTest, VerifiesAnAttestationAndKnowsItsKeysCounterWithAndWithoutADisk) {
  trust_synthetic_root();
  for (const bool disk : {true, false}) {
    events.clear();
    if (!disk) settings.state_path.reset();
    const auto worker = started();
    const relay::KeyId id = sha256(mint::point_of(key));
    worker->take(effect::StoreCounter{0, id, 41});
    worker->take(effect::VerifyAttestation{RequestId{5}, hash, mint::attestation(authority, key, hash)});
    ASSERT_TRUE(until_events(1));
    const auto& verified = get<event::AttestationVerified>(0);
    EXPECT_EQ(verified.request, RequestId{5});
    ASSERT_TRUE(verified.key) << verified.why;
    EXPECT_EQ(verified.key->id, id);
    EXPECT_EQ(verified.key->point, mint::point_of(key));
    EXPECT_EQ(verified.key->counter, 41u);
  }
}

TEST_F(WorkerTest, SaysWhyAnAttestationWasRefusedAndFollowsANewPolicy) {
  trust_synthetic_root();
  const auto worker = started();
  const Bytes object = mint::attestation(authority, key, hash);
  worker->take(effect::VerifyAttestation{RequestId{1}, Sha256{}, object});
  ASSERT_TRUE(until_events(1));
  EXPECT_EQ(get<event::AttestationVerified>(0).why, "wrong_nonce");
  WorkerSettings apple = settings;
  apple.root_ca.reset();
  worker->update(apple);
  worker->take(effect::VerifyAttestation{RequestId{2}, hash, object});
  ASSERT_TRUE(until_events(2));
  EXPECT_EQ(get<event::AttestationVerified>(1).why, "untrusted");
}

TEST_F(WorkerTest, RefusesAttestationsPastItsBoundAsBusyAndServesTheStoreMeanwhile) {
  trust_synthetic_root();
  const auto worker = started();
  const Bytes object = mint::attestation(authority, key, hash);
  const std::size_t many = Worker::kWaitingAttestations + 200;
  for (std::size_t i = 0; i < many; ++i) worker->take(effect::VerifyAttestation{RequestId{i + 1}, hash, object});
  worker->take(effect::LoadRoom{room(1)});
  const auto loaded = [&] {
    return std::ranges::any_of(events,
                               [](const relay::Event& e) { return std::holds_alternative<event::RoomLoaded>(e); });
  };
  ASSERT_TRUE(loop.run_until(loaded));
  EXPECT_LT(events.size(), many) << "the store did not wait for the attestations";
  std::size_t busy = 0, good = 0;
  ASSERT_TRUE(until_events(many + 1));
  for (const relay::Event& e : events) {
    const auto* verified = std::get_if<event::AttestationVerified>(&e);
    if (verified && verified->key) ++good;
    if (verified && verified->why == event::kAttestationBusy) ++busy;
  }
  EXPECT_GT(busy, 0u);
  EXPECT_GE(good, Worker::kWaitingAttestations);
  EXPECT_EQ(good + busy, many);
}

TEST_F(WorkerTest, DoesNotStartOnANewerStateFileOrAnUnreadableRoot) {
  {
    started()->stop();
  }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(settings.state_path->c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version = 9", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const auto newer = make()->start(net::read_clock());
  ASSERT_TRUE(newer);
  EXPECT_NE(newer->find("newer"), std::string::npos);
  settings.state_path.reset();
  settings.root_ca = folder / "none.pem";
  const auto missing = make()->start(net::read_clock());
  ASSERT_TRUE(missing);
  EXPECT_NE(missing->find("attest.root_ca"), std::string::npos);
  EXPECT_NE(missing->find("No such file"), std::string::npos);
  std::ofstream(*settings.root_ca) << "no certificate";
  EXPECT_TRUE(make()->start(net::read_clock()));
  settings.root_ca.reset();
  const auto worker = started();
  settings.root_ca = folder / "none.pem";
  EXPECT_TRUE(worker->check(settings));
}

TEST_F(WorkerTest, ReportsADegradedStoreAnswersNotOkAndTellsOfItsRecovery) {
  settings.state_path = folder / "later/state.db";
  const auto worker = started();
  worker->take(effect::StoreRoom{1, room(1), stored(1), std::nullopt});
  ASSERT_TRUE(until_events(1));
  EXPECT_FALSE(get<event::Stored>(0).ok);
  EXPECT_EQ(faults.seen.size(), 1u);
  worker->take(effect::LoadRoom{room(1)});
  ASSERT_TRUE(until_events(2));
  EXPECT_TRUE(get<event::RoomLoaded>(1).stored) << "from memory";
  std::filesystem::create_directory(folder / "later");
  ASSERT_TRUE(loop.run_until([&] { return !notes.empty(); }));
  worker->take(effect::StoreRoom{2, room(2), stored(2), std::nullopt});
  ASSERT_TRUE(until_events(3));
  EXPECT_TRUE(get<event::Stored>(2).ok);
}

TEST_F(WorkerTest, DeliversNothingOnceItHasStopped) {
  auto worker = started();
  for (int i = 0; i < 50; ++i) worker->take(effect::LoadRoom{room(i)});
  worker->stop();
  loop.drain();
  EXPECT_TRUE(events.empty());
  worker.reset();
  loop.drain();
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace tandem::app
