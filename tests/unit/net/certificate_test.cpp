#include "tandem/net/certificate.hpp"

#include "tandem/net/clock.hpp"
#include "unit/net/wire.hpp"

#include <cstdio>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

std::string fault_of(const std::string& chain, const std::string& key) {
  const auto parsed = Certificate::parse(chain, key, "chain.pem", "key.pem");
  const auto* fault = std::get_if<Certificate::Fault>(&parsed);
  return fault != nullptr ? fault->message : "";
}

bool covers(const Certificate& c, std::string_view host) { return c.covers(Authority::parse(host).value()); }

TEST(Certificate, TellsNamesAddressesAndDates) {
  const wire::Pem pem = wire::make_certificate(3600);
  const auto parsed = Certificate::parse(pem.chain, pem.key);
  ASSERT_TRUE(std::holds_alternative<Certificate>(parsed));
  const auto& certificate = std::get<Certificate>(parsed);
  EXPECT_EQ(certificate.names(), (std::vector<std::string>{"localhost", "*.wild.test", "127.0.0.1", "::1"}));
  EXPECT_TRUE(covers(certificate, "localhost"));
  EXPECT_TRUE(covers(certificate, "localhost:8443")) << "the port does not count";
  EXPECT_TRUE(covers(certificate, "a.wild.test"));
  EXPECT_FALSE(covers(certificate, "a.b.wild.test"));
  EXPECT_FALSE(covers(certificate, "wild.test"));
  EXPECT_TRUE(covers(certificate, "127.0.0.1:443"));
  EXPECT_TRUE(covers(certificate, "[::1]:443"));
  EXPECT_FALSE(covers(certificate, "127.0.0.2"));
  EXPECT_FALSE(covers(certificate, "common.test")) << "clients ignore the common name";
  EXPECT_NEAR(static_cast<double>((certificate.not_after() - wall_now()).count()), 3600, 60);
}

TEST(Certificate, LoadsOneThatHasExpired) {
  const wire::Pem pem = wire::make_certificate(-60);
  const auto parsed = Certificate::parse(pem.chain, pem.key);
  ASSERT_TRUE(std::holds_alternative<Certificate>(parsed));
  EXPECT_LT(std::get<Certificate>(parsed).not_after(), wall_now());
}

TEST(Certificate, SaysInOneLineWhatIsWrong) {
  const wire::Pem one = wire::make_certificate(), other = wire::make_certificate();
  EXPECT_NE(fault_of(one.chain, other.key).find("match"), std::string::npos);
  EXPECT_NE(fault_of("", one.key).find("chain.pem"), std::string::npos);
  EXPECT_NE(fault_of(one.key, one.key).find("no PEM certificate"), std::string::npos);
  EXPECT_NE(fault_of(one.chain, one.chain).find("key.pem"), std::string::npos);
  EXPECT_NE(fault_of(one.chain, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").find("key.pem"),
            std::string::npos);
  EXPECT_EQ(fault_of(one.chain + other.chain, one.key), "");
  const auto missing = Certificate::load("/nonexistent/chain.pem", "/nonexistent/key.pem");
  ASSERT_TRUE(std::holds_alternative<Certificate::Fault>(missing));
  EXPECT_EQ(std::get<Certificate::Fault>(missing).message,
            "cannot read /nonexistent/chain.pem: No such file or directory");
}

}  // namespace
}  // namespace tandem::net
