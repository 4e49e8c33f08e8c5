// What the worker's settings mean: the trusted roots are read from their file.
#pragma once

#include "tandem/app/worker.hpp"

#include <variant>

namespace tandem::app {

// The policy, or one line that says why not.
[[nodiscard]] std::variant<protocol::AttestPolicy, std::string> attest_policy(const WorkerSettings& settings);

}  // namespace tandem::app
