#include "tandem/app/checker.hpp"

#include "tandem/app/dev_cert.hpp"
#include "tandem/config/load.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Checker : public testing::Test {
 protected:
  Checker() {
    char dir[] = "/tmp/tandem-check-XXXXXX";
    dir_ = mkdtemp(dir);
    const auto made = make_dev_certificate({"relay1.test"});
    EXPECT_EQ(write_dev_certificate(std::get<DevCertificate>(made), dir_), "");
    config_ = {{"hostname", "relay1.test"},
               {"listen", {"127.0.0.1:8443"}},
               {"tls", {{"certificate", "fullchain.pem"}, {"private_key", "privkey.pem"}}},
               {"attest", {{"required", false}}},
               {"limits", {{"sockets", 1000}}},
               {"state", {{"path", "state.db"}}}};
  }
  ~Checker() override { std::filesystem::remove_all(dir_); }

  config::Config config() {
    auto parsed = config::parse(config_.dump(1), dir_);
    EXPECT_TRUE(std::holds_alternative<config::Config>(parsed));
    return std::get<config::Config>(parsed);
  }
  CheckReport report() { return check(config(), facts_); }
  std::string path(const char* name) const { return dir_ + "/" + name; }

  std::string dir_;
  json config_;
  CheckFacts facts_{std::chrono::floor<seconds>(std::chrono::system_clock::now()), 1'000'000, {10'000, 200'000}};
};

TEST_F(Checker, ASoundSetupSaysWhatItWouldDo) {
  const CheckReport r = report();
  EXPECT_EQ(r.fault, std::nullopt);
  EXPECT_THAT(r.plan, Contains(testing::Pair("hostname", HasSubstr("https://relay1.test"))));
  EXPECT_THAT(r.plan, Contains(testing::Pair("listen", "127.0.0.1:8443")));
  EXPECT_THAT(r.plan, Contains(testing::Pair("mode", HasSubstr("direct"))));
  EXPECT_THAT(r.plan, Contains(testing::Pair("memory", HasSubstr("191 MiB with all 1000 sockets"))));
  EXPECT_FALSE(std::filesystem::exists(path("state.db"))) << "a check writes nothing";
}

TEST_F(Checker, ACertificateForAnotherNameIsAFaultUnlessAllowed) {
  config_["hostname"] = "relay2.test";
  EXPECT_THAT(report().fault.value_or(""), HasSubstr("not for hostname relay2.test"));
  config_["tls"]["allow_name_mismatch"] = true;
  EXPECT_EQ(report().fault, std::nullopt);
  EXPECT_THAT(report().warnings, Contains(HasSubstr("clients will refuse it")));
}

TEST_F(Checker, AnExpiredCertificateIsAWarning) {
  facts_.now += std::chrono::days(4000);
  const CheckReport r = report();
  EXPECT_EQ(r.fault, std::nullopt);
  EXPECT_THAT(r.warnings, Contains(HasSubstr("expired on")));
}

TEST_F(Checker, AMissingOrForeignKeyIsAFaultThatNamesIt) {
  std::filesystem::remove(path("privkey.pem"));
  EXPECT_THAT(report().fault.value_or(""), testing::StartsWith("tls.private_key: cannot read " + path("privkey.pem")));
}

TEST_F(Checker, ALowDescriptorLimitIsAWarningWithTheNumberNeeded) {
  facts_.descriptor_limit = 512;
  EXPECT_THAT(report().warnings,
              Contains(testing::AllOf(HasSubstr("1064"), HasSubstr("512"), HasSubstr("LimitNOFILE"))));
  facts_.descriptor_limit = 1064;
  EXPECT_THAT(report().warnings, Not(Contains(HasSubstr("LimitNOFILE"))));
}

TEST_F(Checker, AStateFileThatCannotBeIsAFaultAndADamagedOneAWarning) {
  std::filesystem::create_directory(path("state.db"));
  EXPECT_THAT(report().fault.value_or(""), testing::AllOf(HasSubstr("state.db"), HasSubstr("directory")));
  std::filesystem::remove(path("state.db"));
  std::ofstream(path("state.db")) << "not a database at all";
  EXPECT_EQ(report().fault, std::nullopt);
  EXPECT_THAT(report().warnings, Contains(HasSubstr("damaged")));
  config_["state"]["path"] = "missing/state.db";
  EXPECT_THAT(report().fault.value_or(""), HasSubstr("missing/state.db"));
}

TEST_F(Checker, AnAttestationWithoutAnAppIsAWarning) {
  config_["attest"]["required"] = true;
  EXPECT_THAT(report().warnings, Contains(HasSubstr("attest.app_id")));
  config_["attest"]["app_id"] = "TEAM.app";
  EXPECT_THAT(report().warnings, Not(Contains(HasSubstr("attest.app_id"))));
}

TEST_F(Checker, ARootThatHoldsNoCertificateIsAFault) {
  config_["attest"]["root_ca"] = "root.pem";
  EXPECT_THAT(report().fault.value_or(""), HasSubstr("attest.root_ca"));
  std::ofstream(path("root.pem")) << "nothing";
  EXPECT_THAT(report().fault.value_or(""), HasSubstr("holds no PEM certificate"));
  config_["attest"]["root_ca"] = "fullchain.pem";
  EXPECT_EQ(report().fault, std::nullopt);
}

TEST_F(Checker, PrintsThePlanOrOneLine) {
  std::ofstream(path("relay.jsonc")) << config_.dump(1);
  std::ostringstream out, err;
  EXPECT_EQ(run_check(path("relay.jsonc"), false, out, err), 0);
  EXPECT_EQ(err.str(), "");
  EXPECT_THAT(out.str(), testing::EndsWith("ok\n"));
  config_["limits"]["sokets"] = 1;
  std::ofstream(path("relay.jsonc")) << config_.dump(1);
  out.str("");
  EXPECT_EQ(run_check(path("relay.jsonc"), false, out, err), 1);
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT(err.str(), HasSubstr("limits.sokets"));
  const std::string line = err.str();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST_F(Checker, OnlineReadsTheMapAndSaysWhatIsOwned) {
  config_["shard_map"] = {{"url", "file://" + path("map.json")}};
  std::ofstream(path("relay.jsonc")) << config_.dump(1);
  std::ostringstream out, err;
  EXPECT_EQ(run_check(path("relay.jsonc"), false, out, err), 0) << "offline needs no map: " << err.str();
  EXPECT_EQ(run_check(path("relay.jsonc"), true, out, err), 1);
  EXPECT_THAT(err.str(), HasSubstr("cannot be fetched"));
  std::ofstream(path("map.json")) << R"({"version": 7, "ranges": [{"low": 0, "high": 65535, "host": "relay2.test"}]})";
  out.str("");
  EXPECT_EQ(run_check(path("relay.jsonc"), true, out, err), 0);
  EXPECT_THAT(out.str(), testing::AllOf(HasSubstr("version 7, 0 of 65536"),
                                        HasSubstr("owns nothing; the nearest name in it is relay2.test")));
}

}  // namespace
}  // namespace tandem::app
