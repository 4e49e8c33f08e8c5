#include "tandem/app/doctor.hpp"

#include "tandem/app/dev_cert.hpp"
#include "tandem/config/load.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Doctor : public testing::Test {
 protected:
  Doctor() {
    char dir[] = "/tmp/tandem-doctor-XXXXXX";
    dir_ = mkdtemp(dir);
    EXPECT_EQ(write_dev_certificate(std::get<DevCertificate>(make_dev_certificate({})), dir_), "");
    config_ = {{"hostname", "localhost:8443"},
               {"listen", {"127.0.0.1:8443"}},
               {"tls", {{"certificate", "fullchain.pem"}, {"private_key", "privkey.pem"}}},
               {"state", {{"path", "state.db"}}}};
  }
  ~Doctor() override { std::filesystem::remove_all(dir_); }

  config::Config config() {
    auto parsed = config::parse(config_.dump(1), dir_);
    EXPECT_TRUE(std::holds_alternative<config::Config>(parsed));
    return std::get<config::Config>(parsed);
  }
  void publish(const char* host) {
    config_["shard_map"] = {{"url", "file://" + dir_ + "/map.json"}};
    std::ofstream(dir_ + "/map.json") << json{{"version", 3},
                                              {"ranges", {{{"low", 0}, {"high", 65535}, {"host", host}}}}};
  }
  static Health worst(const Findings& findings) {
    Health out = Health::good;
    for (const Finding& f : findings) {
      EXPECT_EQ(f.fix.empty(), f.health == Health::good) << f.text;
      out = std::max(out, f.health);
    }
    return out;
  }
  static std::string texts(const Findings& findings) {
    std::string out;
    for (const Finding& f : findings) out += f.about + ": " + f.text + "\n";
    return out;
  }
  const WallTime now_ = std::chrono::floor<seconds>(std::chrono::system_clock::now());
  std::string dir_;
  json config_;
};

TEST_F(Doctor, ACertificateThatNobodyVouchesForIsWrongUntilItsIssuerIsTrusted) {
  ASSERT_EQ(setenv("SSL_CERT_FILE", "/dev/null", 1), 0);
  EXPECT_THAT(texts(examine_certificate(config(), now_)), HasSubstr("not trusted"));
  ASSERT_EQ(setenv("SSL_CERT_FILE", (dir_ + "/fullchain.pem").c_str(), 1), 0);
  const Findings good = examine_certificate(config(), now_);
  EXPECT_EQ(worst(good), Health::good) << texts(good);
  config_["hostname"] = "other.example";
  EXPECT_THAT(texts(examine_certificate(config(), now_)), HasSubstr("not for hostname other.example"));
  config_["hostname"] = "localhost";
  EXPECT_THAT(texts(examine_certificate(config(), now_ + std::chrono::days(2000))), HasSubstr("expired"));
  ASSERT_EQ(unsetenv("SSL_CERT_FILE"), 0);
}

TEST_F(Doctor, ANameThatResolvesHereIsGoodAndOneThatDoesNotIsWrong) {
  EXPECT_EQ(worst(examine_name(config())), Health::good);
  config_["hostname"] = "[::1]:8443";
  EXPECT_EQ(worst(examine_name(config())), Health::good);
  config_["hostname"] = "no-such-host.invalid";
  EXPECT_EQ(worst(examine_name(config())), Health::wrong);
}

TEST_F(Doctor, AMapThatNamesAnotherPortIsWrongAndSaysTheNearest) {
  std::optional<WallTime> server_time;
  EXPECT_EQ(worst(examine_map(config(), server_time)), Health::good);
  publish("localhost:8443");
  EXPECT_THAT(texts(examine_map(config(), server_time)), HasSubstr("65536 of 65536"));
  publish("localhost:8444");
  const Findings found = examine_map(config(), server_time);
  EXPECT_EQ(worst(found), Health::wrong);
  EXPECT_THAT(texts(found), HasSubstr("nearest name in it is localhost:8444"));
  std::filesystem::remove(dir_ + "/map.json");
  EXPECT_THAT(texts(examine_map(config(), server_time)), HasSubstr("cannot be fetched"));
}

TEST_F(Doctor, AClockThatDisagreesWithTheMapsServerIsWrong) {
  EXPECT_EQ(worst(examine_clock(now_, now_ + seconds(5))), Health::good);
  EXPECT_THAT(texts(examine_clock(now_, now_ - std::chrono::minutes(10))), HasSubstr("10 min ahead of"));
  EXPECT_EQ(worst(examine_clock(now_, now_ + std::chrono::hours(1))), Health::wrong);
}

TEST_F(Doctor, NarrowKernelSettingsAreWarningsWithTheCommand) {
  std::filesystem::create_directories(dir_ + "/sys/net/core");
  std::filesystem::create_directories(dir_ + "/sys/fs");
  std::ofstream(dir_ + "/sys/net/core/somaxconn") << "128\n";
  std::ofstream(dir_ + "/sys/net/core/rmem_max") << "1048576\n";
  std::ofstream(dir_ + "/sys/fs/nr_open") << "1048576\n";
  const Findings found = examine_kernel(config(), dir_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].health, Health::warning);
  EXPECT_THAT(found[0].fix, HasSubstr("sysctl -w net.core.somaxconn=4096"));
  EXPECT_EQ(worst(examine_kernel(config(), dir_ + "/nothing")), Health::good);
}

TEST_F(Doctor, DescriptorsAreJudgedByTheRelaysOwnLimit) {
  EXPECT_EQ(worst(examine_descriptors(config(), 1048576)), Health::good);
  EXPECT_THAT(texts(examine_descriptors(config(), 1024)),
              HasSubstr("of the running relay: 1024, limits.sockets: 200000"));
}

TEST_F(Doctor, ARelayThatDoesNotRunIsAWarning) {
  config_["admin"] = {{"listen", "127.0.0.1:1"}};
  EXPECT_EQ(worst(examine_relay(config())), Health::warning);
}

TEST_F(Doctor, AStateFileThatCannotBeIsWrong) {
  EXPECT_EQ(worst(examine_state(config())), Health::good);
  std::filesystem::create_directory(dir_ + "/state.db");
  EXPECT_EQ(worst(examine_state(config())), Health::wrong);
  config_["state"]["path"] = nullptr;
  EXPECT_EQ(worst(examine_state(config())), Health::warning);
}

}  // namespace
}  // namespace tandem::app
