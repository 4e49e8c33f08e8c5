// The operator's configuration, translated into what each part is configured with. Siblings do not know config/; this
// does.
#pragma once

#include "tandem/config/config.hpp"
#include "tandem/log/log.hpp"
#include "tandem/net/settings.hpp"
#include "tandem/relay/settings.hpp"

namespace tandem::app {

[[nodiscard]] relay::Settings relay_settings(const config::Config& config);
[[nodiscard]] net::Settings net_settings(const config::Config& config);
[[nodiscard]] log::Options log_options(const config::Config& config);

}  // namespace tandem::app
