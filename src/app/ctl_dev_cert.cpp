// tandemctl dev-cert: a certificate for a relay on one's own machine.
#include "tandem/app/ctl.hpp"
#include "tandem/app/dev_cert.hpp"

#include <filesystem>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

struct DevCertOptions {
  std::string out = ".";
  std::vector<std::string> names;
  bool json = false;
};

int dev_cert(const DevCertOptions& options) {
  const auto made = make_dev_certificate(options.names);
  if (const auto* fault = std::get_if<std::string>(&made)) return fail("dev-cert: " + *fault);
  const std::string fault = write_dev_certificate(std::get<DevCertificate>(made), options.out);
  if (!fault.empty()) return fail("dev-cert: " + fault + "; choose another folder with --out");
  const std::string certificate = (std::filesystem::path(options.out) / "fullchain.pem").string();
  const std::string key = (std::filesystem::path(options.out) / "privkey.pem").string();
  if (options.json) {
    const nlohmann::json line = {
        {"ok", true}, {"certificate", certificate}, {"private_key", key}, {"days", kDevCertificateDays}};
    std::cout << line.dump() << "\n";
  } else {
    std::cout << "certificate  " << certificate << "\nprivate key  " << key << "\nvalid for " << kDevCertificateDays
              << " days, for development only; clients trust it with SSL_CERT_FILE=" << certificate << "\n";
  }
  return kOk;
}

}  // namespace

void add_dev_cert(Ctl& ctl) {
  auto options = std::make_shared<DevCertOptions>();
  CLI::App* command = ctl.app->add_subcommand("dev-cert", "Make a self-signed certificate for localhost and loopback");
  command->add_option("--out", options->out, "Folder for fullchain.pem and privkey.pem; nothing there is overwritten")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--name", options->names, "A further DNS name or IP address (repeatable)")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  command->add_flag("--json", options->json, "Print the result as one JSON object");
  command->callback([&ctl, options] { ctl.run = [options] { return dev_cert(*options); }; });
}

}  // namespace tandem::app
