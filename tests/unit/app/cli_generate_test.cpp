#include "tandem/app/cli_generate.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class Generate : public testing::Test {
 protected:
  Generate() {
    app_.add_flag("-q,--quiet", quiet_, "Says it's \"nothing\" \\ little.");
    CLI::App* map = app_.add_subcommand("map", "Works on the map.");
    map->add_option("--store", text_, "Where the map lives.")->type_name("DIR");
    CLI::App* move = map->add_subcommand("move", "Hands over a range.");
    move->add_option("RANGE", text_, "LOW-HIGH.")->required();
    move->add_option("host", text_, "Who gets it.");
    app_.add_subcommand("secret", "Not shown.")->group("");
    app_.add_option("--generate", text_, "Not shown either.")->group("");
  }

  std::string made(const char* what) {
    std::ostringstream out, err;
    EXPECT_EQ(generate(app_, what, out, err), 0);
    EXPECT_EQ(err.str(), "");
    EXPECT_THAT(out.str(), Not(HasSubstr("secret")));
    EXPECT_THAT(out.str(), Not(HasSubstr("generate")));
    return out.str();
  }

  // Whether the shell, where it is installed, can read the script; its output where `then` is run behind it.
  static std::string run(const std::string& script, const std::string& shell, const std::string& then) {
    char file[] = "/tmp/tandem-completion-XXXXXX";
    const int fd = mkstemp(file);
    std::ofstream(file) << script << "\n" << then << "\n";
    FILE* pipe = popen((shell + " " + file + " 2>&1").c_str(), "r");
    std::string out;
    for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
    const int status = pclose(pipe);
    close(fd);
    unlink(file);
    EXPECT_EQ(status, 0) << out;
    return out;
  }

  CLI::App app_{"Operates a relay.", "tandemctl"};
  std::string text_;
  bool quiet_ = false;
};

TEST_F(Generate, TheManPageHoldsEveryCommandOptionAndExitCode) {
  const std::string page = made("man");
  for (const char* part : {".TH TANDEMCTL 1", "tandemctl \\- Operates a relay\n", ".SS tandemctl map move",
                           "\\fB\\-\\-store\\fR \\fIDIR\\fR", "\\fIRANGE\\fR [\\fIHOST\\fR]",
                           "\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR", ".SH EXIT STATUS", "\\e little"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST_F(Generate, BashCompletesTheCommandThatWasReached) {
  const std::string script = made("bash");
  const auto completed = [&](const std::string& words, int at) {
    return run(
        script, "bash",
        "COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) + "; _tandemctl; echo \"${COMPREPLY[*]}\"");
  };
  EXPECT_EQ(completed("tandemctl ''", 1), "map --help --quiet\n");
  EXPECT_EQ(completed("tandemctl map mo", 2), "move\n");
  EXPECT_EQ(completed("tandemctl map --st", 2), "--store\n");
  EXPECT_EQ(completed("tandemctl map --store ''", 3), "\n");
}

TEST_F(Generate, AGroupOfOptionsBelongsToItsCommand) {
  CLI::App* status = app_.add_subcommand("status", "Looks.");
  CLI::Option_group* where = status->add_option_group("relay", "Which one.");
  where->add_option("--admin", text_, "Its listener.")->type_name("ADDRESS");
  const std::string page = made("man");
  EXPECT_THAT(page, HasSubstr(".SS tandemctl status\n\\fBtandemctl status\\fR [\\fIOPTIONS\\fR]\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-admin\\fR \\fIADDRESS\\fR"));
  EXPECT_THAT(page, Not(HasSubstr(".SS tandemctl status \n")));
  EXPECT_EQ(
      run(made("bash"), "bash", "COMP_WORDS=(tandemctl status --); COMP_CWORD=2; _tandemctl; echo \"${COMPREPLY[*]}\""),
      "--help --admin\n");
}

TEST_F(Generate, CompletionsAskTheStoreForHosts) {
  CLI::App* drain = app_.get_subcommand("map")->add_subcommand("drain", "Empties a host.");
  drain->add_option("host", text_, "Which.")->type_name("HOST");
  drain->add_option("--into", text_, "Where to.")->type_name("HOST");
  const std::string script = made("bash") + "\ntandemctl() { echo \"$TANDEM_STORE.${*: -1} relay2\"; }\n";
  const auto completed = [&](const std::string& words, int at) {
    return run(script, "bash",
               "TANDEM_STORE=env; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) +
                   "; _tandemctl; echo \"${COMPREPLY[*]}\"");
  };
  EXPECT_EQ(completed("tandemctl map drain --into ''", 4), "env.hosts relay2\n");
  EXPECT_EQ(completed("tandemctl map drain rel", 3), "relay2\n");
  EXPECT_EQ(completed("tandemctl map --store /srv drain ''", 5), "--help --into /srv.hosts relay2\n");
  EXPECT_THAT(made("fish"), HasSubstr("-a '(tandemctl map complete hosts 2>/dev/null)'"));
  EXPECT_THAT(made("zsh"), HasSubstr("known=(${(f)\"$(tandemctl map complete hosts 2>/dev/null)\"})"));
}

TEST_F(Generate, ZshAndFishScriptsNameEveryCommand) {
  for (const char* shell : {"zsh", "fish"}) {
    const std::string script = made(shell);
    for (const char* part : {"tandemctl map move", "Hands over a range.", "store"})
      EXPECT_THAT(script, HasSubstr(part)) << shell;
    if (std::system((std::string("command -v ") + shell + " >/dev/null").c_str()) == 0)
      run(script, std::string(shell) + " -n", "");
  }
}

TEST_F(Generate, AnUnknownKindIsAUsageError) {
  std::ostringstream out, err;
  EXPECT_EQ(generate(app_, "tcsh", out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("man, bash, zsh or fish"));
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace tandem::app
