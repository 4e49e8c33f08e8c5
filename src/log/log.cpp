#include "tandem/log/log.hpp"

#include "log/fd_sink.hpp"
#include "log/format.hpp"

#include <array>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

#include <spdlog/logger.h>

namespace tandem::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: break;
  }
  return spdlog::level::err;
}

// What stands before a line of text: the time on a terminal, the priority for the journal, else the level's name alone.
enum class Prefix { time, priority, level };

// The journal names the device and inode of the stream it reads; a child whose stderr went elsewhere inherits the
// variable too.
bool is_journal(int fd) {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info{};
  if (stream == nullptr || ::fstat(fd, &info) != 0) return false;
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino) == stream;
}

Prefix prefix_for(int fd) {
  if (::isatty(fd) == 1) return Prefix::time;
  return is_journal(fd) ? Prefix::priority : Prefix::level;
}

}  // namespace

struct Log::Impl {
  explicit Impl(const Options& options)
      : sink(std::make_shared<FdSink>(options.fd)),
        logger("tandem", sink),
        prefix(prefix_for(options.fd)),
        configured(options.level),
        format(options.format) {
    logger.set_level(to_spdlog(configured));
  }

  [[nodiscard]] Level in_force() const {
    if (!toggled) return configured;
    return configured == Level::debug ? Level::info : Level::debug;
  }

  [[nodiscard]] std::string render(Level level, std::string_view message, Fields fields) const {
    timespec at{};
    ::clock_gettime(CLOCK_REALTIME, &at);
    if (format == Format::json) return format_json(at, level, message, fields);
    static constexpr std::array<const char*, 4> kPriority{"<7>", "<6>", "<4>", "<3>"};
    std::string out;
    if (prefix == Prefix::priority) out = kPriority[static_cast<std::size_t>(level)];
    if (prefix == Prefix::time) out = format_time(at) + " ";
    if (prefix != Prefix::priority) out += std::string(to_string(level)) + ": ";
    return out + format_text(message, fields);
  }

  std::shared_ptr<FdSink> sink;
  spdlog::logger logger;
  Prefix prefix;
  mutable std::mutex mutex;  // over what a reload or a signal changes
  Level configured;
  Format format;
  bool toggled = false;
};

Log::Log(Options options) : impl_(std::make_unique<Impl>(options)) {}
Log::~Log() = default;

void Log::write(Level level, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  const std::lock_guard lock(impl_->mutex);
  const std::uint64_t lost_before = impl_->sink->dropped();
  impl_->logger.log(to_spdlog(level), impl_->render(level, message, fields));
  if (impl_->sink->dropped() != lost_before) return;
  if (const std::uint64_t lost = impl_->sink->take_unreported(); lost != 0) {
    impl_->logger.log(spdlog::level::warn,
                      impl_->render(Level::warn, "log lines lost: nobody read them", {{"lines", lost}}));
  }
}

bool Log::enabled(Level level) const noexcept { return impl_->logger.should_log(to_spdlog(level)); }

Level Log::level() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->in_force();
}

void Log::configure(Level level, Format format) {
  const std::lock_guard lock(impl_->mutex);
  impl_->configured = level;
  impl_->format = format;
  impl_->logger.set_level(to_spdlog(impl_->in_force()));
}

void Log::toggle_debug() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->toggled = !impl_->toggled;
    impl_->logger.set_level(to_spdlog(impl_->in_force()));
  }
  info("debug logging toggled", {{"level", to_string(level())}});
}

std::uint64_t Log::dropped() const noexcept { return impl_->sink->dropped(); }

}  // namespace tandem::log
