// Reload and the graceful stop.
#include "net/loop.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

namespace tandem::net {
namespace {

constexpr Duration kLastWords = seconds(1), kQuietCheck = milliseconds(20);
constexpr int kQuietChecks = 5;

}  // namespace

void Loop::update(Settings fresh) {
  const Turn turn(*this);
  settings = std::move(fresh);
  box.set_rate(settings.box_bytes_per_second, mono());
  reschedule_box();
  for (const ConnectionPtr& connection : connections_) connection->settings_changed();
}

void Loop::stop(std::function<void()> done) {
  if (std::exchange(stopping_, true)) return;
  const Turn turn(*this);
  stopped_ = std::move(done);
  for (auto& listener : listeners) listener->stop();
  const auto all = connections_;
  for (const ConnectionPtr& connection : all) connection->stop_serving();
  wheel.set(stop_timer_, mono() + settings.shutdown);
  last_words_until_ = mono() + std::min<Duration>(kLastWords, settings.shutdown / 4);
  wheel.set(last_words_timer_, mono() + kQuietCheck);
}

// What clients sent before they heard of the end, and the kernel has acknowledged, still goes to their peers: splices
// go on until all are quiet, for a short while at most. Then the relay closes everything.
void Loop::hear_last_words() {
  const std::uint64_t relayed = counters.from_mac.bytes + counters.from_phone.bytes;
  const bool quiet = relayed == relayed_at_check_ && std::all_of(connections_.begin(), connections_.end(),
                                                                 [](const ConnectionPtr& c) { return c->quiet(); });
  relayed_at_check_ = relayed;
  // One look is not enough: what is on its way to the kernel cannot be seen.
  quiet_checks_ = quiet ? quiet_checks_ + 1 : 0;
  if (quiet_checks_ < kQuietChecks && mono() < last_words_until_) {
    wheel.set(last_words_timer_, mono() + kQuietCheck);
    return;
  }
  dispatch(relay::event::ShutdownBegun{});
}

void Loop::check_stopped() {
  if (!connections_.empty() || !stopped_) return;
  wheel.cancel(stop_timer_);
  boost::asio::post(io, std::exchange(stopped_, nullptr));
}

}  // namespace tandem::net
