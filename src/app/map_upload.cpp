#include "tandem/app/map_upload.hpp"

#include "tandem/config/units.hpp"
#include "tandem/core/json.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace tandem::app {

namespace {

std::string with_file(std::string argument, const std::string& file) {
  constexpr std::string_view kMark = "{file}";
  for (std::size_t at = argument.find(kMark); at != std::string::npos; at = argument.find(kMark, at + file.size()))
    argument.replace(at, kMark.size(), file);
  return argument;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with_version(MapVersion version) {
  std::vector<std::string> out;
  for (char** e = environ; *e != nullptr; ++e)
    if (!std::string_view(*e).starts_with("TANDEM_VERSION=")) out.emplace_back(*e);
  out.push_back("TANDEM_VERSION=" + std::to_string(version.value));
  return out;
}

// Everything the child touches was made before the fork: the console has other threads.
[[noreturn]] void become(char* const* argv, char* const* envp, int errors) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // an upload that outlived us could overtake the next writer's
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::execvpe(argv[0], argv, envp);
  const int failed = errno;
  [[maybe_unused]] const auto n = ::write(errors, &failed, sizeof failed);
  ::_exit(127);
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::variant<std::vector<std::string>, std::string> parse_upload_command(std::string_view json) {
  const auto parsed = parse_json(json);
  if (!parsed) return std::string("is not JSON");
  if (!parsed->is_array() || parsed->empty()) return std::string("is not a list with a command in it");
  if (!std::all_of(parsed->begin(), parsed->end(), [](const Json& e) { return e.is_string(); }))
    return std::string("holds something that is not a string");
  auto command = parsed->get<std::vector<std::string>>();
  if (command.front().empty()) return std::string("begins with an empty command");
  return command;
}

std::optional<std::string> run_upload(const std::vector<std::string>& command, const std::filesystem::path& map,
                                      MapVersion version, Duration timeout) {
  std::vector<std::string> arguments;
  arguments.reserve(command.size());
  for (const std::string& a : command) arguments.push_back(with_file(a, map.string()));
  std::vector<std::string> environment = environment_with_version(version);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  int errors[2];
  if (::pipe2(errors, O_CLOEXEC) != 0) return "could not be started: " + std::generic_category().message(errno);

  const pid_t child = ::fork();
  if (child == 0) become(argv.data(), envp.data(), errors[1]);
  ::close(errors[1]);
  if (child < 0) {
    ::close(errors[0]);
    return "could not be started: " + std::generic_category().message(errno);
  }
  int failed = 0;
  const bool not_started = ::read(errors[0], &failed, sizeof failed) == sizeof failed;
  ::close(errors[0]);

  const auto until = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  for (auto pause = std::chrono::microseconds(500);; pause = std::min(pause * 2, std::chrono::microseconds(20000))) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return "was lost: " + std::generic_category().message(errno);
    if (std::chrono::steady_clock::now() >= until) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "took more than " + config::describe_duration(timeout) + " and was stopped";
    }
    std::this_thread::sleep_for(pause);
  }
  if (not_started)
    return "could not be started (status 127): " + arguments.front() + ": " + std::generic_category().message(failed);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return describe(status);
}

}  // namespace tandem::app
