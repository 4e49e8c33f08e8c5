#include "tandem/client/agent.hpp"

#include "unit/client/maps.hpp"

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

constexpr TimePoint t0{seconds(1000)};

template <class T>
const T* find(const Actions& actions) {
  for (const Action& action : actions)
    if (const T* found = std::get_if<T>(&action)) return found;
  return nullptr;
}

class AgentTest : public ::testing::Test {
 protected:
  static AgentSettings known(Role role = Role::phone) {
    AgentSettings settings;
    settings.role = role;
    settings.memory = {MapVersion{1}, "a.test"};
    return settings;
  }
  // An agent that is live at a.test by map version 1.
  Agent live(AgentSettings settings) {
    Agent agent(std::move(settings), random_);
    (void)agent.start(t0);
    (void)agent.map_fetched(one_host_map(1, "a.test"), seconds(5), t0);
    (void)agent.admitted(1, t0);
    EXPECT_TRUE(agent.is_live());
    return agent;
  }
  SeededRandom random_{1};
};

TEST_F(AgentTest, ConnectsToTheRememberedHostAtOnceAndFetchesTheMapAlongside) {
  Agent agent(known(), random_);
  const Actions actions = agent.start(t0);
  ASSERT_TRUE(find<action::Connect>(actions));
  EXPECT_EQ(find<action::Connect>(actions)->host, "a.test");
  EXPECT_TRUE(find<action::FetchMap>(actions));
}

TEST_F(AgentTest, WithoutMemoryFetchesTheMapBeforeItConnects) {
  Agent agent(AgentSettings{}, random_);
  Actions actions = agent.start(t0);
  EXPECT_FALSE(find<action::Connect>(actions));
  ASSERT_TRUE(find<action::FetchMap>(actions));
  actions = agent.map_fetched(one_host_map(9, "b.test"), seconds(0), t0);
  ASSERT_TRUE(find<action::Connect>(actions));
  EXPECT_EQ(find<action::Connect>(actions)->host, "b.test");
  EXPECT_EQ(find<action::Remember>(actions)->memory, (Memory{MapVersion{9}, "b.test"}));
  EXPECT_FALSE(find<action::FetchMap>(actions)) << "it has just been fetched";
}

TEST_F(AgentTest, WithoutMemoryOrMapTriesAgainLater) {
  Agent agent(AgentSettings{}, random_);
  (void)agent.start(t0);
  const Actions actions = agent.map_failed(t0);
  EXPECT_FALSE(find<action::Connect>(actions));
  EXPECT_EQ(agent.failures(), 1);
  EXPECT_LE(agent.next_deadline(), t0 + seconds(3));
}

TEST_F(AgentTest, MovesAnUnadmittedAttemptWhenTheMapNamesAnotherHost) {
  Agent agent(known(), random_);
  (void)agent.start(t0);
  const Actions actions = agent.map_fetched(one_host_map(2, "b.test"), seconds(5), t0);
  ASSERT_TRUE(find<action::Abandon>(actions));
  EXPECT_EQ(find<action::Abandon>(actions)->attempt, 1u);
  EXPECT_EQ(find<action::Connect>(actions)->host, "b.test");
  EXPECT_EQ(agent.failures(), 0);
}

TEST_F(AgentTest, IgnoresAnOlderMap) {
  AgentSettings settings = known();
  settings.memory.floor = MapVersion{5};
  Agent agent(settings, random_);
  (void)agent.start(t0);
  const Actions actions = agent.map_fetched(one_host_map(4, "b.test"), seconds(5), t0);
  EXPECT_TRUE(actions.empty());
  EXPECT_EQ(agent.host(), "a.test");
}

TEST_F(AgentTest, KeepsALiveSpliceWhateverTheMapSays) {
  for (const char* host : {"b.test", "nobody.invalid"}) {
    Agent agent = live(known());
    ASSERT_EQ(agent.next_deadline(), t0 + seconds(10));
    const Actions refresh = agent.advance(t0 + seconds(10));
    ASSERT_TRUE(find<action::FetchMap>(refresh));
    const Actions actions = agent.map_fetched(one_host_map(2, host), seconds(5), t0 + seconds(10));
    EXPECT_FALSE(find<action::Abandon>(actions)) << host;
    EXPECT_TRUE(agent.is_live());
  }
}

TEST_F(AgentTest, MovesAMacThatParkedBeforeItsOwnMapCame) {
  Agent agent(known(Role::mac), random_);
  (void)agent.start(t0);
  (void)agent.admitted(1, t0);
  const Actions actions = agent.map_fetched(one_host_map(2, "b.test"), seconds(5), t0 + seconds(1));
  EXPECT_TRUE(find<action::Abandon>(actions));
  EXPECT_EQ(find<action::Connect>(actions)->host, "b.test");
}

TEST_F(AgentTest, LeavesAMacThatHasHeardItsPeer) {
  Agent agent(known(Role::mac), random_);
  (void)agent.start(t0);
  (void)agent.admitted(1, t0);
  agent.heard_peer(1);
  EXPECT_FALSE(find<action::Abandon>(agent.map_fetched(one_host_map(2, "b.test"), seconds(5), t0)));
  EXPECT_TRUE(agent.is_live());
}

TEST_F(AgentTest, OnReshardGoesWhereTheMapSaysAndNotWhereTheHintSays) {
  Agent agent = live(known());
  const Actions ended = agent.ended(1, Closed{4421, "reshard hint.test"}, t0 + seconds(1));
  EXPECT_TRUE(find<action::FetchMap>(ended));
  EXPECT_FALSE(find<action::Connect>(ended));
  (void)agent.map_fetched(one_host_map(2, "b.test"), seconds(5), t0 + seconds(1));
  const TimePoint at = agent.next_deadline();
  EXPECT_LE(at, t0 + seconds(4));
  const Actions again = agent.advance(at);
  ASSERT_TRUE(find<action::Connect>(again));
  EXPECT_EQ(find<action::Connect>(again)->host, "b.test");
}

TEST_F(AgentTest, AfterA421WaitsForTheMapBeforeItConnects) {
  Agent agent(known(), random_);
  (void)agent.start(t0);
  (void)agent.ended(1, Refused{421, "misdirected"}, t0);
  const Actions due = agent.advance(agent.next_deadline());
  EXPECT_FALSE(find<action::Connect>(due)) << "the fetch that began before the 421 does not count";
  const Actions stale = agent.map_fetched(one_host_map(1, "a.test"), seconds(5), t0 + seconds(3));
  EXPECT_FALSE(find<action::Connect>(stale));
  EXPECT_TRUE(find<action::FetchMap>(stale));
  const Actions fresh = agent.map_fetched(one_host_map(2, "b.test"), seconds(5), t0 + seconds(3));
  ASSERT_TRUE(find<action::Connect>(fresh));
  EXPECT_EQ(find<action::Connect>(fresh)->host, "b.test");
}

TEST_F(AgentTest, AsksOnceMoreForAMapThatHasMisledRightBeforeItTriesAgain) {
  Agent agent = live(known());
  (void)agent.ended(1, Closed{4421, "reshard"}, t0);
  (void)agent.map_fetched(one_host_map(1, "a.test"), seconds(5), t0);  // from an edge that lags behind
  const TimePoint at = agent.next_deadline();
  Actions due = agent.advance(at);
  EXPECT_FALSE(find<action::Connect>(due)) << "where it was just turned away";
  ASSERT_TRUE(find<action::FetchMap>(due));
  due = agent.map_fetched(one_host_map(2, "b.test"), seconds(5), at);
  ASSERT_TRUE(find<action::Connect>(due));
  EXPECT_EQ(find<action::Connect>(due)->host, "b.test");
}

TEST_F(AgentTest, GoesWhereAMapThatHasMisledSaysWhenThereIsNoOther) {
  Agent agent = live(known());
  (void)agent.ended(1, Refused{421, "misdirected"}, t0);
  (void)agent.map_fetched(one_host_map(1, "a.test"), seconds(5), t0);
  const TimePoint at = agent.next_deadline();
  (void)agent.advance(at);
  const Actions due = agent.map_fetched(one_host_map(1, "a.test"), seconds(5), at);
  ASSERT_TRUE(find<action::Connect>(due));
  EXPECT_EQ(find<action::Connect>(due)->host, "a.test");
}

TEST_F(AgentTest, WithoutAMapTriesTheSameHostAgainAfterAConnectionFailure) {
  Agent agent(known(), random_);
  (void)agent.start(t0);
  (void)agent.map_failed(t0);
  (void)agent.ended(1, NoConnection{"refused"}, t0);
  (void)agent.map_failed(t0);
  const TimePoint at = agent.next_deadline();
  Actions due = agent.advance(at);
  EXPECT_TRUE(find<action::FetchMap>(due));
  due = agent.map_failed(at);
  ASSERT_TRUE(find<action::Connect>(due));
  EXPECT_EQ(find<action::Connect>(due)->host, "a.test");
}

TEST_F(AgentTest, CountsAMapThatNamesNobodyAsAConnectionFailure) {
  Agent agent(known(), random_);
  (void)agent.start(t0);
  const Actions actions = agent.map_fetched(one_host_map(2, "nobody.invalid"), seconds(5), t0);
  EXPECT_TRUE(find<action::Abandon>(actions));
  EXPECT_FALSE(find<action::Connect>(actions));
  EXPECT_EQ(agent.failures(), 1);
}

TEST_F(AgentTest, WaitsItsFixedTimesForQuotaAndDisplacement) {
  Agent quota = live(known());
  (void)quota.ended(1, Closed{1008, "daily quota exceeded"}, t0);
  EXPECT_EQ(quota.next_deadline(), t0 + std::chrono::minutes(30));
  Agent displaced = live(known(Role::mac));
  (void)displaced.ended(1, Closed{1000, "displaced"}, t0);
  EXPECT_EQ(displaced.next_deadline(), t0 + seconds(60));
}

TEST_F(AgentTest, GivesUpWhereWaitingWouldChangeNothing) {
  Agent agent = live(known());
  const Actions actions = agent.ended(1, Refused{403, "forbidden"}, t0);
  ASSERT_TRUE(find<action::Show>(actions));
  EXPECT_EQ(find<action::Show>(actions)->standing, Standing::failed);
  EXPECT_TRUE(agent.is_stopped());
  EXPECT_EQ(agent.next_deadline(), kNever);
}

TEST_F(AgentTest, AsksForANewPairingWhenTheRoomIsGone) {
  Agent agent = live(known());
  const Actions actions = agent.ended(1, Closed{1000, "room deleted"}, t0);
  EXPECT_EQ(find<action::Show>(actions)->standing, Standing::pair_again);
}

TEST_F(AgentTest, ShowsReconnectingAfterThreeFailuresAndLiveOnceAdmitted) {
  AgentSettings direct;
  direct.role = Role::phone;
  direct.relay = "a.test";
  Agent agent(direct, random_);
  (void)agent.start(t0);
  TimePoint now = t0;
  for (Attempt n = 1; n <= 3; ++n) {
    const Actions actions = agent.ended(n, Closed{1008, "mac offline"}, now);
    EXPECT_EQ(find<action::Show>(actions) != nullptr, n == 3) << n;
    now = agent.next_deadline();
    (void)agent.advance(now);
  }
  EXPECT_EQ(find<action::Show>(agent.admitted(4, now))->standing, Standing::live);
  EXPECT_EQ(agent.failures(), 0);
}

TEST_F(AgentTest, AttestsOnceAnAttemptAndJoinsTheSameHostWithTheTicket) {
  AgentSettings settings = known();
  settings.can_attest = true;
  Agent agent(settings, random_);
  (void)agent.start(t0);
  Actions actions = agent.ended(1, Closed{1008, "ticket required"}, t0);
  ASSERT_TRUE(find<action::Attest>(actions));
  EXPECT_EQ(find<action::Attest>(actions)->host, "a.test");
  actions = agent.attested(1, "dGlja2V0", t0);
  ASSERT_TRUE(find<action::Connect>(actions));
  EXPECT_EQ(find<action::Connect>(actions)->ticket, "dGlja2V0");
  EXPECT_EQ(find<action::Connect>(actions)->host, "a.test");
  EXPECT_EQ(agent.failures(), 0);
  actions = agent.admitted(1, t0);
  ASSERT_TRUE(find<action::Register>(actions));
  EXPECT_TRUE(find<action::Register>(actions)->attested);
}

TEST_F(AgentTest, DoesNotAttestTwiceInOneAttempt) {
  AgentSettings settings = known();
  settings.can_attest = true;
  Agent agent(settings, random_);
  (void)agent.start(t0);
  (void)agent.ended(1, Closed{1008, "ticket required"}, t0);
  (void)agent.attested(1, "x", t0);
  EXPECT_FALSE(find<action::Attest>(agent.ended(1, Closed{1008, "ticket required"}, t0)));
  EXPECT_EQ(agent.failures(), 1);
}

TEST_F(AgentTest, RestartsTheAttemptWhenAPostIsMisdirected) {
  AgentSettings settings = known();
  settings.can_attest = true;
  Agent attesting(settings, random_);
  (void)attesting.start(t0);
  (void)attesting.map_fetched(one_host_map(1, "a.test"), seconds(5), t0);
  (void)attesting.ended(1, Closed{1008, "ticket required"}, t0);
  EXPECT_TRUE(find<action::FetchMap>(attesting.attest_failed(1, Refused{421, "misdirected"}, t0)));
  EXPECT_EQ(attesting.failures(), 1);

  Agent registering = live(settings);
  const Actions actions = registering.register_failed(1, Refused{421, "misdirected"}, t0);
  EXPECT_TRUE(find<action::Abandon>(actions));
  EXPECT_TRUE(find<action::FetchMap>(actions));
  EXPECT_FALSE(registering.is_live());
}

TEST_F(AgentTest, RegistersAgainAfterAPassingFaultAFewTimesOnly) {
  Agent agent = live(known());
  int tries = 0;
  TimePoint now = t0;
  for (; tries < 20; ++tries) {
    (void)agent.register_failed(1, Refused{503, "capacity"}, now);
    // Deadlines before the registration's are map refreshes.
    const TimePoint limit = now + seconds(40);
    bool registers = false;
    while (!registers && agent.next_deadline() <= limit) {
      now = agent.next_deadline();
      const Actions actions = agent.advance(now);
      registers = find<action::Register>(actions) != nullptr;
      if (find<action::FetchMap>(actions)) (void)agent.map_unchanged(seconds(5), now);
    }
    if (!registers) break;
  }
  EXPECT_EQ(tries, kRegisterTries);
  EXPECT_TRUE(agent.is_live());
}

TEST_F(AgentTest, AMacNeitherAttestsNorRegisters) {
  AgentSettings settings = known(Role::mac);
  settings.can_attest = true;
  Agent agent(settings, random_);
  (void)agent.start(t0);
  EXPECT_FALSE(find<action::Attest>(agent.ended(1, Closed{1008, "ticket required"}, t0)));
  (void)agent.advance(agent.next_deadline());
  EXPECT_FALSE(find<action::Register>(agent.admitted(agent.attempt(), t0)));
}

TEST_F(AgentTest, AFirstPairingGivesUpAfterSixtySeconds) {
  AgentSettings direct;
  direct.role = Role::phone;
  direct.relay = "a.test";
  direct.first_pairing = true;
  Agent agent(direct, random_);
  (void)agent.start(t0);
  EXPECT_EQ(agent.next_deadline(), t0 + seconds(60));
  const Actions actions = agent.advance(t0 + seconds(60));
  EXPECT_TRUE(find<action::Abandon>(actions));
  EXPECT_EQ(find<action::Show>(actions)->standing, Standing::failed);
}

TEST_F(AgentTest, IgnoresWhatComesFromAnAttemptThatIsOver) {
  Agent agent = live(known());
  (void)agent.ended(1, Closed{1001, "peer gone"}, t0);
  EXPECT_TRUE(agent.ended(1, Closed{1001, "peer gone"}, t0).empty());
  EXPECT_TRUE(agent.admitted(1, t0).empty());
  EXPECT_TRUE(agent.register_failed(1, Refused{421, ""}, t0).empty());
  EXPECT_EQ(agent.failures(), 1);
}

TEST_F(AgentTest, StoppingDropsTheSocketAndSilencesEverything) {
  Agent agent = live(known());
  EXPECT_TRUE(find<action::Abandon>(agent.stop()));
  EXPECT_TRUE(agent.stop().empty());
  EXPECT_TRUE(agent.advance(t0 + seconds(100)).empty());
  EXPECT_EQ(agent.next_deadline(), kNever);
}

}  // namespace
}  // namespace tandem::client
