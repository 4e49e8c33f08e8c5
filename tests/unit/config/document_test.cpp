// The files that are generated from, or must agree with, the table of keys.
#include "tandem/config/load.hpp"
#include "tandem/config/schema.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::config {
namespace {

const std::string kTop = TANDEM_SOURCE "/";

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void expect_generated(const std::string& file, const std::string& text) {
  if (std::getenv("TANDEM_REGENERATE") != nullptr) std::ofstream(kTop + file, std::ios::binary) << text;
  EXPECT_TRUE(contents(kTop + file) == text) << file << " is out of date: run TANDEM_REGENERATE=1 test_config";
}

TEST(ConfigDocument, TheReferenceInTheTreeIsWhatTheTableSays) {
  expect_generated("docs/configuration.md", reference_markdown());
}

TEST(ConfigDocument, TheSchemaInTheTreeIsWhatTheTableSays) {
  expect_generated("config/relay.schema.json", json_schema());
}

TEST(ConfigDocument, EveryKeySaysWhatItMeans) {
  for (const Key& key : keys()) {
    EXPECT_GT(key.doc.size(), 20u) << key.path;
    EXPECT_EQ(key.doc.back(), '.') << key.path;
  }
}

TEST(ConfigDocument, TheExampleIsValidAndHoldsTheDefaults) {
  const auto loaded = load(kTop + "config/relay.jsonc");
  ASSERT_TRUE(std::holds_alternative<Config>(loaded)) << std::get<ConfigError>(loaded).one_line();
  const Config& example = std::get<Config>(loaded);
  for (const Key& key : keys()) {
    if (key.fallback.empty() || !present(example, key)) continue;
    Config fallback = example;
    ASSERT_FALSE(key.read(fallback, nlohmann::json::parse(key.fallback), "")) << key.path;
    EXPECT_EQ(key.show(example), key.show(fallback)) << key.path;
  }
}

TEST(ConfigDocument, TheExampleNamesEveryKeyWithAComment) {
  const std::string text = contents(kTop + "config/relay.jsonc");
  for (const Key& key : keys()) {
    const std::size_t at = text.find("\"" + key.name() + "\":");
    ASSERT_NE(at, std::string::npos) << key.path;
    EXPECT_NE(text.substr(at, text.find('\n', at) - at).find("//"), std::string::npos) << key.path;
  }
}

TEST(ConfigDocument, TheExamplesMapSectionIsValidOnceUncommented) {
  std::string text = contents(kTop + "config/relay.jsonc");
  const std::size_t from = text.find("  // \"shard_map\": {"), to = text.find("// },", from);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  std::istringstream lines(text.substr(from, to + 5 - from));
  std::string section;
  for (std::string line; std::getline(lines, line);) section += line.replace(line.find("//"), 2, "") + "\n";
  text.replace(from, to + 5 - from, section);
  const auto parsed = parse(text);
  ASSERT_TRUE(std::holds_alternative<Config>(parsed)) << std::get<ConfigError>(parsed).one_line();
  EXPECT_TRUE(std::get<Config>(parsed).resolved());
}

TEST(ConfigDocument, TheSchemaKnowsEveryKeyAndNoOther) {
  const auto schema = nlohmann::json::parse(json_schema());
  std::size_t known = 0;
  for (const auto& [name, value] : schema["properties"].items()) {
    const auto& object = value.contains("anyOf") ? value["anyOf"][0] : value;
    known += object.contains("properties") ? object["properties"].size() : 1;
  }
  EXPECT_EQ(known, keys().size() + 1);  // "$schema"
}

}  // namespace
}  // namespace tandem::config
