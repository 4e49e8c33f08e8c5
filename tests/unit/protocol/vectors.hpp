// Reads the pinned vectors of tests/vectors.
#pragma once

#include "tandem/core/base64.hpp"

#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

namespace tandem::test {

inline nlohmann::json read_vectors(const std::string& name) {
  std::ifstream in(std::string(TANDEM_VECTORS) + "/" + name);
  return nlohmann::json::parse(in);
}

inline Bytes unhex(const nlohmann::json& text) { return hex_decode(text.get<std::string>()).value(); }

}  // namespace tandem::test
