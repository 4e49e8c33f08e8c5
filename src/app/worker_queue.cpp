#include "app/worker_queue.hpp"

namespace tandem::app {

void WorkerQueue::push(StoreRequest request) {
  {
    const std::lock_guard lock(mutex_);
    store_.push_back(std::move(request));
  }
  changed_.notify_one();
}

bool WorkerQueue::push(relay::effect::VerifyAttestation request, std::size_t most, std::size_t most_bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (attestations_.size() >= most || attestation_bytes_ + request.object.size() > most_bytes) return false;
    attestation_bytes_ += request.object.size();
    attestations_.push_back(std::move(request));
  }
  changed_.notify_one();
  return true;
}

void WorkerQueue::push(protocol::AttestPolicy policy) {
  {
    const std::lock_guard lock(mutex_);
    policy_ = std::move(policy);
  }
  changed_.notify_one();
}

void WorkerQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

WorkerQueue::Batch WorkerQueue::take(std::optional<Duration> wait, std::size_t attestations) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !store_.empty() || !attestations_.empty() || policy_ || closed_; };
  if (wait) {
    changed_.wait_for(lock, *wait, ready);
  } else {
    changed_.wait(lock, ready);
  }
  Batch batch;
  batch.store.swap(store_);
  batch.policy.swap(policy_);
  batch.last = closed_;
  while (!closed_ && !attestations_.empty() && batch.attestations.size() < attestations) {
    attestation_bytes_ -= attestations_.front().object.size();
    batch.attestations.push_back(std::move(attestations_.front()));
    attestations_.pop_front();
  }
  return batch;
}

}  // namespace tandem::app
