// What the box gives up under memory pressure, and when it stops (3-operations 3.2): first new rooms, then un-admitted
// sockets, then whole rooms. Pure policy: a sample of pressure and a time go in, a stage comes out.
//
// Above `above` percent the next stage is entered, at most one every two seconds; between the two marks nothing more is
// given up, but new rooms stay refused; below `resume_below` all is over. Rooms are closed only while the newest sample
// is above and fresh: a sampler that died must not empty the box.
#pragma once

#include "tandem/core/time.hpp"

#include <cstdint>

namespace tandem::relay {

class Shedder {
 public:
  enum class Stage : std::uint8_t { calm, refuse_rooms, close_pending, close_rooms };
  static constexpr Duration kStep = seconds(2);
  static constexpr Duration kFresh = seconds(10);
  static constexpr Duration kRoomSpacing = milliseconds(100);  // 10 rooms a second

  // True where the stage changed.
  bool sample(double percent, double above, double resume_below, TimePoint now);

  [[nodiscard]] Stage stage() const noexcept { return stage_; }
  [[nodiscard]] bool refuses_rooms() const noexcept { return stage_ != Stage::calm; }
  [[nodiscard]] bool closes_rooms(TimePoint now) const noexcept {
    return stage_ == Stage::close_rooms && above_ && now - sampled_ < kFresh;
  }
  // When the next room may be closed: kNever where none is to be.
  [[nodiscard]] TimePoint next_room(TimePoint now) const noexcept { return closes_rooms(now) ? next_room_ : kNever; }
  void room_closed(TimePoint now) noexcept { next_room_ = now + kRoomSpacing; }

 private:
  Stage stage_ = Stage::calm;
  bool above_ = false;
  TimePoint since_{}, sampled_{}, next_room_{};
};

}  // namespace tandem::relay
