#include "tandem/relay/shedder.hpp"

namespace tandem::relay {

bool Shedder::sample(double percent, double above, double resume_below, TimePoint now) {
  const Stage before = stage_;
  above_ = percent > above;
  sampled_ = now;
  if (stage_ == Stage::calm) {
    if (above_) {
      stage_ = Stage::refuse_rooms;
      since_ = now;
    }
  } else if (percent < resume_below) {
    stage_ = Stage::calm;
  } else if (above_ && stage_ != Stage::close_rooms && now - since_ >= kStep) {
    stage_ = stage_ == Stage::refuse_rooms ? Stage::close_pending : Stage::close_rooms;
    since_ = now;
    next_room_ = now;
  }
  return stage_ != before;
}

}  // namespace tandem::relay
