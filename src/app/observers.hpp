// Several observers as one: each is told everything, in order.
#pragma once

#include "tandem/core/observer.hpp"

#include <vector>

namespace tandem::app {

class Observers final : public Observer {
 public:
  void add(Observer& observer) { observers_.push_back(&observer); }
  void observe(const Observed& what) override {
    for (Observer* observer : observers_) observer->observe(what);
  }

 private:
  std::vector<Observer*> observers_;
};

}  // namespace tandem::app
