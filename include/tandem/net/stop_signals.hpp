// Who takes the signals that steer the daemon (SIGTERM, SIGINT, SIGHUP, SIGUSR2): its main thread, until the end
// begins.
#pragma once

#include <csignal>

namespace tandem::net {

// Keeps them from the calling thread from now on, and from threads that it starts. -> the mask before.
inline sigset_t block_stop_signals() noexcept {
  sigset_t ours, before;
  sigemptyset(&ours);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) sigaddset(&ours, number);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  return before;
}

// For the scope in which a thread is started: a signal must find the main thread, or none.
class StopSignalsBlocked {
 public:
  StopSignalsBlocked() noexcept : before_(block_stop_signals()) {}
  ~StopSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignalsBlocked(const StopSignalsBlocked&) = delete;
  StopSignalsBlocked& operator=(const StopSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tandem::net
