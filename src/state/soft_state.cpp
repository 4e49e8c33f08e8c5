#include "tandem/state/soft_state.hpp"

#include <algorithm>

namespace tandem::state {

SoftState::SoftState(std::optional<std::string> path, Reports reports)
    : path_(std::move(path)), reports_(std::move(reports)) {}

std::optional<Fault> SoftState::open(Now now) {
  if (!path_) return std::nullopt;
  auto opened = Store::open(*path_);
  if (opened) {
    store_ = std::move(*opened);
    return std::nullopt;
  }
  if (opened.error().kind == Fault::Kind::newer) return opened.error();
  failed(opened.error(), now);
  return std::nullopt;
}

// The one place where a fault of the disk is taken note of. A damaged file is moved away and another begun at once, as
// is one that was removed. After a write that failed the file stays open: what it holds can still be read, and a full
// disk would not let it be opened again.
void SoftState::failed(const Fault& fault, Now now) {
  std::string message = fault.message;
  if (fault.kind == Fault::Kind::damaged) {
    store_.reset();
    const auto aside = Store::set_aside(*path_, now.wall);
    if (aside) {
      reports_.fault(message + "; set aside as " + *aside);
      auto opened = Store::open(*path_);
      if (opened) {
        store_ = std::move(*opened);
        return;
      }
      message = opened.error().message;
    } else {
      message += "; " + aside.error().message;
    }
  } else if (fault.kind == Fault::Kind::gone) {
    store_.reset();
    auto opened = Store::open(*path_);
    if (opened) {
      reports_.fault(message + "; going on in what is there now");
      store_ = std::move(*opened);
      return;
    }
    if (opened.error().kind == Fault::Kind::damaged) {  // its log was left behind
      reports_.fault(message);
      return failed(opened.error(), now);
    }
    message += "; " + opened.error().message;
  }
  degraded_ = true;
  next_try_ = now.mono + kRetryDelay;
  next_flush_ = next_try_;
  if (message != last_fault_) reports_.fault(message + "; going on in memory");
  last_fault_ = message;
}

void SoftState::reopen(Now now) {
  const bool read_only = store_ && degraded_ && store_->is_read_only();  // it may be writable by now
  if ((store_ && !read_only) || now.mono < next_try_) return;
  auto opened = Store::open(*path_);
  if (opened) {
    store_ = std::move(*opened);
  } else if (!read_only) {
    failed(opened.error(), now);
  }
}

void SoftState::changed(Now now) {
  // A little slack, as bounding costs a pass over everything.
  if (changes_.size() > kHeldEntries + kHeldEntries / 8) changes_.bound(kHeldEntries);
  if (path_) next_flush_ = std::min(next_flush_, now.mono + (degraded_ ? kRetryDelay : kWriteDelay));
}

template <class T, class Read>
T SoftState::read(Read read, T otherwise, Now now) {
  if (!store_) return otherwise;
  auto outcome = read(*store_);
  if (outcome) return std::move(*outcome);
  if (outcome.error().kind == Fault::Kind::unavailable) store_.reset();  // there is nothing to lose by opening it again
  failed(outcome.error(), now);
  return otherwise;
}

std::optional<relay::StoredRoom> SoftState::room(const RoomName& name, Now now) {
  const RoomKey key = key_of(name);
  if (const auto held = changes_.rooms.find(key); held != changes_.rooms.end()) return held->second;
  if (changes_.wiped_buckets.contains(name.bucket())) return std::nullopt;
  auto stored = read([&](Store& s) { return s.room(key); }, std::optional<relay::StoredRoom>(), now);
  if (const auto touched = changes_.touches.find(key); stored && touched != changes_.touches.end()) {
    stored->last_activity = std::max(stored->last_activity, touched->second);
  }
  return stored;
}

std::uint32_t SoftState::counter(const relay::KeyId& key, Now now) {
  const auto stored = read([&](Store& s) { return s.counter(key); }, std::uint32_t{0}, now);
  const auto held = changes_.counters.find(key);
  return held == changes_.counters.end() ? stored : std::max(stored, held->second.value);
}

std::optional<MapVersion> SoftState::floor(Now now) {
  if (changes_.floor) return changes_.floor;
  return read([](Store& s) { return s.floor(); }, std::optional<MapVersion>(), now);
}

std::optional<Egress> SoftState::egress(Now now) {
  if (changes_.egress) return changes_.egress;
  return read([](Store& s) { return s.egress(); }, std::optional<Egress>(), now);
}

void SoftState::put(const RoomName& name, const relay::StoredRoom& room, Now now) {
  changes_.put(key_of(name), room);
  changed(now);
}

void SoftState::wipe(const RoomName& name, Now now) {
  if (path_) {
    changes_.wipe(key_of(name));
  } else {
    changes_.rooms.erase(key_of(name));
  }
  changed(now);
}

void SoftState::wipe(const std::vector<Bucket>& buckets, Now now) {
  changes_.wipe(buckets, path_.has_value());
  changed(now);
}

void SoftState::touch(const RoomName& name, WallTime at, Now now) {
  const RoomKey key = key_of(name);
  if (!path_ && !changes_.rooms.contains(key)) return;
  changes_.touch(key, at);
  changed(now);
}

void SoftState::count(const relay::KeyId& key, std::uint32_t counter, Now now) {
  changes_.count(key, counter, now.wall);
  changed(now);
}

void SoftState::set_floor(MapVersion floor, Now now) {
  changes_.floor = floor;
  changed(now);
}

void SoftState::set_egress(Egress egress, Now now) {
  changes_.egress = egress;
  changed(now);
}

void SoftState::sweep(WallTime rooms_before, WallTime believed, Now now) {
  const Sweep what{rooms_before, believed - std::chrono::duration_cast<std::chrono::seconds>(kCounterLife)};
  if (path_) {
    changes_.sweep_later(what);
  } else {
    changes_.sweep_here(what);
  }
  changed(now);
}

bool SoftState::flush(Now now) {
  if (!path_) return true;
  next_flush_ = kNever;
  reopen(now);
  if (!store_) {
    next_flush_ = next_try_;
    return changes_.empty();
  }
  if (changes_.empty()) {
    if (empty_log_) {
      empty_log_ = false;
      (void)store_->checkpoint();  // a reader in the way is no fault; the next forgetting tries again
    }
    if (!degraded_) return true;
  }
  Store::Applied applied;
  if (const auto fault = store_->apply(changes_, applied)) {
    failed(*fault, now);
    if (!store_ || degraded_) return false;
    // The file was damaged or gone, and another took its place.
    if (const auto again = store_->apply(changes_, applied)) {
      failed(*again, now);
      return false;
    }
  }
  const bool forgets = changes_.sweep.has_value() || !changes_.wiped_buckets.empty() ||
                       std::ranges::any_of(changes_.rooms, [](const auto& room) { return !room.second; });
  Changes rest;
  if (applied.more) rest.sweep = changes_.sweep;
  for (const Bucket bucket : applied.wiped) changes_.wiped_buckets.erase(bucket);
  rest.wiped_buckets = std::move(changes_.wiped_buckets);
  changes_ = std::move(rest);
  empty_log_ = empty_log_ || forgets;
  if (!changes_.empty()) next_flush_ = now.mono;
  if (empty_log_) next_flush_ = std::min(next_flush_, now.mono + kWriteDelay);
  if (degraded_) {
    degraded_ = false;
    last_fault_.clear();
    reports_.recovered(*path_ + ": the state file works again");
  }
  return true;
}

TimePoint SoftState::next_flush() const noexcept { return next_flush_; }

}  // namespace tandem::state
