// Any text is a valid configuration or one printable line; a valid one shows itself in words that read the same again.
#include "tandem/config/load.hpp"
#include "tandem/config/reload.hpp"
#include "tandem/config/schema.hpp"

#include <cstdlib>

#include <nlohmann/json.hpp>

using namespace tandem;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = config::parse({reinterpret_cast<const char*>(data), size});
  if (const auto* error = std::get_if<config::ConfigError>(&parsed)) {
    const std::string line = error->one_line();
    if (line.empty() || line.size() > 500 || line.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto& c = std::get<config::Config>(parsed);
  for (const config::Key& key : config::keys()) {
    if (!config::present(c, key)) continue;
    config::Config again = c;
    const std::string shown = key.show(c);
    if (key.read(again, nlohmann::json::parse(shown), "") || key.show(again) != shown) std::abort();
  }
  const config::ReloadPlan plan = config::plan_reload(c, c);
  if (!plan.now.empty() || !plan.restart.empty()) std::abort();
  return 0;
}
