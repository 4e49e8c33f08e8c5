#include "tandem/app/worker.hpp"

#include "app/worker_queue.hpp"
#include "app/worker_settings.hpp"
#include "tandem/net/stop_signals.hpp"
#include "tandem/state/soft_state.hpp"

#include <type_traits>
#include <utility>

namespace tandem::app {

namespace {

using relay::Event;

// Attestations between two looks at the store's requests: each takes a millisecond or two.
constexpr std::size_t kAttestationsPerRound = 2;

}  // namespace

struct Worker::Impl : std::enable_shared_from_this<Worker::Impl> {
  const WorkerSettings settings;
  Observer& observer;
  const Post post;
  const Deliver deliver_one;
  const Note recovered;
  const Clock clock;
  WorkerQueue queue;
  std::optional<protocol::AttestationVerifier> verifier;  // the thread's, once it runs
  state::SoftState soft;                                  // the thread's; the loop's where there is no disk
  std::thread thread;
  bool open = true;  // the loop's: answers are still wanted

  Impl(WorkerSettings s, Observer& o, Post p, Deliver d, Note r, Clock c)
      : settings(std::move(s)),
        observer(o),
        post(std::move(p)),
        deliver_one(std::move(d)),
        recovered(std::move(r)),
        clock(std::move(c)),
        soft(settings.state_path, {[this](const std::string& what) {
                                     tell([what](Impl& i) { i.observer.observe(observed::StateError{what}); });
                                   },
                                   [this](const std::string& what) {
                                     tell([what](Impl& i) {
                                       if (i.recovered) i.recovered(what);
                                     });
                                   }}) {}

  // Runs a function on the loop's thread, unless the worker has stopped by then.
  template <class Function>
  void tell(Function function) {
    post([self = weak_from_this(), function = std::move(function)] {
      if (const auto impl = self.lock(); impl && impl->open) function(*impl);
    });
  }

  void deliver(std::vector<Event> events) {
    if (events.empty()) return;
    tell([events = std::move(events)](Impl& i) {
      for (const Event& event : events) i.deliver_one(event);
    });
  }

  // Applies one request; what it answers at once goes to `answers`, what waits for the disk to `waiting`.
  void apply(const StoreRequest& request, Now now, std::vector<Event>& answers, std::vector<std::uint64_t>& waiting) {
    std::visit(
        [&](const auto& r) {
          using T = std::decay_t<decltype(r)>;
          if constexpr (std::is_same_v<T, relay::effect::LoadRoom>) {
            answers.emplace_back(relay::event::RoomLoaded{r.room, soft.room(r.room, now)});
          } else if constexpr (std::is_same_v<T, relay::effect::StoreRoom>) {
            soft.put(r.room, r.stored, now);
            if (r.counter && r.stored.registrant) soft.count(*r.stored.registrant, *r.counter, now);
          } else if constexpr (std::is_same_v<T, relay::effect::WipeRoom>) {
            soft.wipe(r.room, now);
          } else if constexpr (std::is_same_v<T, relay::effect::WipeBuckets>) {
            soft.wipe(r.buckets, now);
          } else if constexpr (std::is_same_v<T, relay::effect::TouchRoom>) {
            soft.touch(r.room, r.at, now);
          } else if constexpr (std::is_same_v<T, relay::effect::StoreCounter>) {
            soft.count(r.key, r.counter, now);
          } else if constexpr (std::is_same_v<T, relay::effect::StoreFloor>) {
            soft.set_floor(r.floor, now);
          } else if constexpr (std::is_same_v<T, relay::effect::StoreEgress>) {
            soft.set_egress({r.month, r.bytes}, now);
          } else {
            soft.sweep(r.before, r.believed, now);
          }
          if constexpr (requires { r.id; }) {
            if (r.id != 0) waiting.push_back(r.id);
          }
        },
        request);
  }

  // A map that was acted upon must not be rolled back by a lagging edge after a crash, and there is one a reshard: its
  // version does not wait for other writes.
  static bool holds_a_floor(const WorkerQueue::Batch& batch) {
    return std::any_of(batch.store.begin(), batch.store.end(), [](const StoreRequest& request) {
      return std::holds_alternative<relay::effect::StoreFloor>(request);
    });
  }

  static std::vector<Event> stored(const std::vector<std::uint64_t>& ids, bool ok) {
    std::vector<Event> events;
    events.reserve(ids.size());
    for (const std::uint64_t id : ids) events.emplace_back(relay::event::Stored{id, ok});
    return events;
  }

  // ---- the thread

  void verify(const relay::effect::VerifyAttestation& request) {
    const auto outcome = verifier->verify(request.object, request.client_data_hash, clock().wall);
    if (!outcome) {
      deliver({relay::event::AttestationVerified{request.request, std::nullopt, label(outcome.error())}});
      return;
    }
    const relay::AttestedKey key{outcome->key_id, outcome->point, 0};
    if (soft.has_disk()) {
      deliver({with_counter(request.request, key)});
    } else {
      tell([id = request.request, key](Impl& i) { i.deliver_one(i.with_counter(id, key)); });
    }
  }

  // On whichever thread the soft state lives.
  Event with_counter(RequestId id, relay::AttestedKey key) {
    key.counter = soft.counter(key.id, clock());
    return relay::event::AttestationVerified{id, key, {}};
  }

  void run() {
    for (;;) {
      const TimePoint due = soft.has_disk() ? soft.next_flush() : kNever;
      const Now asleep = clock();
      WorkerQueue::Batch batch =
          queue.take(due == kNever ? std::nullopt : std::optional(due - asleep.mono), kAttestationsPerRound);
      if (batch.policy) verifier.emplace(std::move(*batch.policy));
      const Now now = clock();
      std::vector<Event> answers;
      std::vector<std::uint64_t> waiting;
      for (const StoreRequest& request : batch.store) apply(request, now, answers, waiting);
      deliver(std::move(answers));
      const bool at_once = !waiting.empty() || batch.last || holds_a_floor(batch);
      if (soft.has_disk() && (at_once || soft.next_flush() <= now.mono)) {
        const bool ok = soft.flush(now);
        deliver(stored(waiting, ok));
      }
      for (const auto& attestation : batch.attestations) verify(attestation);
      if (batch.last) return;
    }
  }
};

Worker::Worker(WorkerSettings settings, Observer& observer, Post post, Deliver deliver, Note recovered, Clock clock)
    : impl_(std::make_shared<Impl>(std::move(settings), observer, std::move(post), std::move(deliver),
                                   std::move(recovered), std::move(clock))) {}

Worker::~Worker() { stop(); }

std::optional<std::string> Worker::start(Now now) {
  auto policy = attest_policy(impl_->settings);
  if (auto* fault = std::get_if<std::string>(&policy)) return std::move(*fault);
  impl_->verifier.emplace(std::get<protocol::AttestPolicy>(std::move(policy)));
  if (auto fault = impl_->soft.open(now)) return "state.path: " + fault->message;
  if (const auto floor = impl_->soft.floor(now)) impl_->deliver_one(relay::event::FloorLoaded{*floor});
  if (const auto egress = impl_->soft.egress(now)) {
    impl_->deliver_one(relay::event::EgressLoaded{egress->month, egress->bytes});
  }
  const net::StopSignalsBlocked blocked;
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
  return std::nullopt;
}

bool Worker::take(relay::Effect&& effect) {
  return std::visit(
      [this](auto& e) {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, relay::effect::VerifyAttestation>) {
          const RequestId id = e.request;
          if (!impl_->queue.push(std::move(e), kWaitingAttestations, kWaitingAttestationBytes)) {
            impl_->deliver({relay::event::AttestationVerified{id, std::nullopt, relay::event::kAttestationBusy}});
          }
          return true;
        } else if constexpr (std::is_constructible_v<StoreRequest, T>) {
          if (impl_->soft.has_disk()) {
            impl_->queue.push(StoreRequest(std::move(e)));
            return true;
          }
          std::vector<Event> answers;
          std::vector<std::uint64_t> waiting;
          impl_->apply(StoreRequest(std::move(e)), impl_->clock(), answers, waiting);
          for (Event& event : Impl::stored(waiting, true)) answers.push_back(std::move(event));
          impl_->deliver(std::move(answers));
          return true;
        } else {
          return false;
        }
      },
      effect);
}

std::optional<std::string> Worker::check(const WorkerSettings& settings) const {
  auto policy = attest_policy(settings);
  auto* fault = std::get_if<std::string>(&policy);
  return fault ? std::optional(std::move(*fault)) : std::nullopt;
}

void Worker::update(const WorkerSettings& settings) {
  auto policy = attest_policy(settings);
  if (auto* good = std::get_if<protocol::AttestPolicy>(&policy)) impl_->queue.push(std::move(*good));
}

void Worker::stop() {
  impl_->open = false;
  if (!impl_->thread.joinable()) return;
  impl_->queue.close();
  impl_->thread.join();
}

}  // namespace tandem::app
