// What the web console may ask, apart from HTTP: the state of map and fleet, a preview, a publish. Edits go through the
// same functions and the same publisher as the command line's, so that both make byte-identical maps.
#pragma once

#include "tandem/app/map_http.hpp"
#include "tandem/app/map_observed.hpp"
#include "tandem/app/map_publish.hpp"

#include <mutex>
#include <string>
#include <string_view>

namespace tandem::app {

// One edit as the page sends it: {"op":"add","host":H,"at":B,"buckets":N}, {"op":"remove","host":H,"into":H},
// {"op":"move","low":L,"high":H,"host":H,"new":true}, {"op":"rebalance"}, {"op":"rollback","version":N}.
[[nodiscard]] shard::Ranges apply_edits(const MapStore& store, const shard::ShardMap& current,
                                        const OrderedJson& edits);

class MapConsole {
 public:
  // token: the secret first segment of every path. Both references outlive the console.
  MapConsole(MapStore& store, const MapOptions& options, std::string token);
  [[nodiscard]] HttpReply answer(const HttpRequest& request);

 private:
  [[nodiscard]] HttpReply api(const HttpRequest& request, std::string_view what);
  [[nodiscard]] OrderedJson state();
  [[nodiscard]] OrderedJson history() const;
  [[nodiscard]] OrderedJson difference(std::string_view versions) const;  // "FROM/TO"
  [[nodiscard]] OrderedJson publish(const OrderedJson& request, bool preview_only);

  MapStore& store_;
  const MapOptions& options_;
  std::string token_;
  std::mutex fleet_mutex_;
  FleetObserver fleet_;
};

}  // namespace tandem::app
