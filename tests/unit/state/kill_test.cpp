// kill -9 at random moments: what was answered is there after a restart. Real processes, a real file.
#include "tandem/state/soft_state.hpp"
#include "unit/state/temporary_folder.hpp"

#include <chrono>
#include <csignal>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tandem::state {
namespace {

RoomName killed_room(std::uint32_t n) { return RoomName(sha256(bytes_of(std::to_string(n)))); }

const Now kNow{TimePoint(seconds(1)), WallTime(seconds(1'800'000'000))};

constexpr std::uint32_t kBatch = 25;  // registrations that share a commit, as those of one moment do

// Registers rooms from `first` on, as fast as it can, and writes how many there are to `out` once they are durable.
[[noreturn]] void register_rooms(const std::string& path, std::uint32_t first, int out) {
  SoftState s(path, {[](const std::string&) { ::_exit(3); }, [](const std::string&) {}});
  if (s.open(kNow)) ::_exit(2);
  for (std::uint32_t n = first;;) {
    for (const std::uint32_t end = n + kBatch; n < end; ++n) {
      s.put(killed_room(n), {{7}, relay::KeyId{9}, kNow.wall}, kNow);
      s.count(sha256(bytes_of(std::to_string(n))), n + 1, kNow);
    }
    if (!s.flush(kNow)) ::_exit(4);
    if (::write(out, &n, sizeof n) != sizeof n) ::_exit(5);
  }
}

TEST(KillDashNine, UndoesNoRegistrationThatWasAnswered) {
  TemporaryFolder folder;
  const std::string path = folder / "state.db";
  std::mt19937 random(20260601);
  std::uint32_t answered = 0;
  int kills = 0;
  for (; answered < 10000 && kills < 400; ++kills) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(ends[0]);
      register_rooms(path, answered, ends[1]);
    }
    ::close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + random() % 60000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << WEXITSTATUS(status);
    std::uint32_t n = 0;
    while (::read(ends[0], &n, sizeof n) == sizeof n) answered = n;
    ::close(ends[0]);
  }
  ASSERT_GE(answered, 10000u) << "after " << kills << " kills";
  SoftState s(path, {[](const std::string& m) { ADD_FAILURE() << m; }, [](const std::string&) {}});
  ASSERT_FALSE(s.open(kNow));
  for (std::uint32_t n = 0; n < answered; ++n) {
    ASSERT_TRUE(s.room(killed_room(n), kNow)) << n << " of " << answered;
    ASSERT_EQ(s.counter(sha256(bytes_of(std::to_string(n))), kNow), n + 1);
  }
}

}  // namespace
}  // namespace tandem::state
