// Reads Prometheus's text format as strictly as it is written, for tests.
#pragma once

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::test {

struct MetricFamily {
  std::string type, help;
  std::map<std::string, double> samples;  // by name{labels} as written
};

// Fails the test on the first line out of form; families by name.
inline std::map<std::string, MetricFamily> read_exposition(const std::string& text) {
  static const std::regex kMeta(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
  static const std::regex kSample(
      R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-z_]+="[^"\\]*"(,[a-z_]+="[^"\\]*")*)?\})? (\S+))");
  std::map<std::string, MetricFamily> families;
  std::istringstream in(text);
  std::string line, current;
  EXPECT_TRUE(text.ends_with('\n'));
  while (std::getline(in, line)) {
    std::smatch m;
    if (std::regex_match(line, m, kMeta)) {
      auto& family = families[m[2]];
      if (current != m[2]) {
        EXPECT_TRUE(family.samples.empty()) << "apart: " << line;
      }
      current = m[2];
      std::string& slot = m[1] == "TYPE" ? family.type : family.help;
      EXPECT_TRUE(slot.empty()) << "twice: " << line;
      slot = m[3];
      continue;
    }
    if (!std::regex_match(line, m, kSample)) {
      ADD_FAILURE() << "out of form: " << line;
      continue;
    }
    EXPECT_TRUE(m[1].str().starts_with(current)) << "not under its family: " << line;
    const std::string key = m[1].str() + m[2].str();
    EXPECT_TRUE(families[current].samples.emplace(key, std::stod(m[5])).second) << "twice: " << line;
  }
  for (const auto& [name, family] : families) {
    EXPECT_FALSE(family.help.empty()) << name;
    EXPECT_TRUE(family.type == "counter" || family.type == "gauge" || family.type == "histogram") << name;
    EXPECT_EQ(family.type == "counter", name.ends_with("_total")) << name;
    EXPECT_FALSE(family.samples.empty()) << name << " has no series";
  }
  return families;
}

}  // namespace tandem::test
