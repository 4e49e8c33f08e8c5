#include "tandem/config/reload.hpp"

#include "tandem/config/schema.hpp"

namespace tandem::config {

ReloadPlan plan_reload(const Config& running, const Config& wanted) {
  ReloadPlan plan{{}, {}, wanted};
  // A section that comes or goes changes the mode the process was started in, whatever its keys say.
  if (running.tls.has_value() != wanted.tls.has_value()) {
    plan.restart.emplace_back("tls");
    plan.effective.tls = running.tls;
  }
  if (running.shard_map.has_value() != wanted.shard_map.has_value()) {
    plan.restart.emplace_back("shard_map");
    plan.effective.shard_map = running.shard_map;
  }
  for (const Key& key : keys()) {
    if (!present(running, key) || !present(wanted, key) || key.show(running) == key.show(wanted)) continue;
    if (key.reload == Reload::now) {
      plan.now.push_back(key.path);
    } else {
      plan.restart.push_back(key.path);
      key.copy(plan.effective, running);
    }
  }
  return plan;
}

}  // namespace tandem::config
