// The life of tandemd: command line, configuration, boot, run, stop.
#pragma once

namespace tandem::app {

// Returns the process's exit code: 0 stopped as told, 1 could not start or run, 2 usage.
[[nodiscard]] int run_daemon(int argc, char** argv);

}  // namespace tandem::app
