// What the loop hands to the worker's thread: requests to the store in their order, attestations in theirs, and a
// policy.
#pragma once

#include "tandem/core/time.hpp"
#include "tandem/protocol/attest.hpp"
#include "tandem/relay/effect.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

namespace tandem::app {

using StoreRequest = std::variant<relay::effect::LoadRoom, relay::effect::StoreRoom, relay::effect::WipeRoom,
                                  relay::effect::WipeBuckets, relay::effect::TouchRoom, relay::effect::StoreCounter,
                                  relay::effect::StoreFloor, relay::effect::StoreEgress, relay::effect::SweepIdle>;

class WorkerQueue {
 public:
  struct Batch {
    std::vector<StoreRequest> store;
    std::vector<relay::effect::VerifyAttestation> attestations;
    std::optional<protocol::AttestPolicy> policy;
    bool last = false;  // the queue is closed and this was all of the store's; attestations that still wait are dropped
  };

  void push(StoreRequest request);
  // False where as many wait as may.
  [[nodiscard]] bool push(relay::effect::VerifyAttestation request, std::size_t most, std::size_t most_bytes);
  void push(protocol::AttestPolicy policy);
  void close();

  // Blocks until there is something, or for as long as given (not at all where it is negative).
  [[nodiscard]] Batch take(std::optional<Duration> wait, std::size_t attestations);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<StoreRequest> store_;
  std::deque<relay::effect::VerifyAttestation> attestations_;
  std::size_t attestation_bytes_ = 0;
  std::optional<protocol::AttestPolicy> policy_;
  bool closed_ = false;
};

}  // namespace tandem::app
