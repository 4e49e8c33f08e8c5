// How a command joins tandemctl: one add_* function each, called once by main_tandemctl before parsing. --help, man
// pages and shell completions are all generated from what these functions define, so a command exists in one place.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace tandem::app {

// Exit codes (3-operations 3.1).
inline constexpr int kOk = 0, kWrong = 1, kUsage = 2;

// A command sets its subcommand's callback to store its exit code here. `run` is called after parsing succeeded.
struct Ctl {
  CLI::App* app = nullptr;
  std::function<int()> run;  // set by the callback of the chosen subcommand
};

void add_map(Ctl& ctl);       // map ...           (ctl_map*.cpp)
void add_owner(Ctl& ctl);     // owner             (ctl_map*.cpp, the same command as `map owner`)
void add_floor(Ctl& ctl);     // floor             (ctl_floor.cpp)
void add_status(Ctl& ctl);    // status            (ctl_status.cpp)
void add_explain(Ctl& ctl);   // explain           (ctl_explain.cpp)
void add_doctor(Ctl& ctl);    // doctor            (ctl_doctor.cpp)
void add_probe(Ctl& ctl);     // probe             (ctl_probe.cpp)
void add_pair(Ctl& ctl);      // pair              (ctl_pair.cpp)
void add_dev_cert(Ctl& ctl);  // dev-cert          (ctl_dev_cert.cpp)
void add_bench(Ctl& ctl);     // bench             (ctl_bench.cpp)

// One line on stderr: "tandemctl: what: where: what to do". With --json also {"ok":false,"error":code,"message":m} on
// stdout.
int fail(const std::string& message, int exit_code = kWrong);

}  // namespace tandem::app
