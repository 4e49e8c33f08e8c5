#include "tandem/app/dev_cert.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sys/stat.h>

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;

CertificatePtr read_certificate(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  CertificatePtr certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), &X509_free);
  BIO_free(bio);
  return certificate;
}

class DevCert : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("tandem-dev-cert-" + std::to_string(::getpid()));
    fs::remove_all(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  static DevCertificate made(const std::vector<std::string>& names = {}) {
    return std::get<DevCertificate>(make_dev_certificate(names));
  }
  fs::path directory_;
};

mode_t mode_of(const fs::path& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 0777;
}

TEST_F(DevCert, NamesLocalhostLoopbackAndWhatWasAskedFor) {
  const auto certificate = read_certificate(made({"relay1.test", "192.0.2.7"}).certificate_pem);
  ASSERT_TRUE(certificate);
  for (const char* name : {"localhost", "relay1.test"})
    EXPECT_EQ(X509_check_host(certificate.get(), name, 0, 0, nullptr), 1) << name;
  for (const char* address : {"127.0.0.1", "::1", "192.0.2.7"})
    EXPECT_EQ(X509_check_ip_asc(certificate.get(), address, 0), 1) << address;
  EXPECT_EQ(X509_check_host(certificate.get(), "other.test", 0, 0, nullptr), 0);
}

TEST_F(DevCert, IsValidNowAndForAtMost825Days) {
  const auto certificate = read_certificate(made().certificate_pem);
  ASSERT_TRUE(certificate);
  EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(certificate.get())), 0);
  EXPECT_GT(X509_cmp_current_time(X509_get0_notAfter(certificate.get())), 0);
  int days = 0, rest = 0;
  ASSERT_EQ(ASN1_TIME_diff(&days, &rest, X509_get0_notBefore(certificate.get()), X509_get0_notAfter(certificate.get())),
            1);
  EXPECT_LE(days * 86400 + rest, 825 * 86400);
  EXPECT_GE(days, 700);
}

TEST_F(DevCert, IsNoAuthority) { EXPECT_EQ(X509_check_ca(read_certificate(made().certificate_pem).get()), 0); }

TEST_F(DevCert, RefusesANameThatIsNone) {
  for (const char* name : {"Relay.Test", "a b", "https://x.test", "x.test:443", "", "x,DNS:evil.test"}) {
    const auto refused = make_dev_certificate({name});
    ASSERT_TRUE(std::holds_alternative<std::string>(refused)) << name;
    EXPECT_NE(std::get<std::string>(refused).find(name), std::string::npos);
  }
}

TEST_F(DevCert, WritesTheKeyForItsOwnerAlone) {
  EXPECT_EQ(write_dev_certificate(made(), (directory_ / "deep").string()), "");
  EXPECT_EQ(mode_of(directory_ / "deep/privkey.pem"), 0600u);
  EXPECT_EQ(mode_of(directory_ / "deep/fullchain.pem"), 0644u);
}

TEST_F(DevCert, OverwritesNeitherFile) {
  for (const char* there : {"fullchain.pem", "privkey.pem"}) {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    std::ofstream(directory_ / there) << "precious";
    const std::string fault = write_dev_certificate(made(), directory_.string());
    EXPECT_NE(fault.find(there), std::string::npos) << fault;
    EXPECT_EQ(fs::file_size(directory_ / there), 8u);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator{}), 1);
  }
}

}  // namespace
}  // namespace tandem::app
