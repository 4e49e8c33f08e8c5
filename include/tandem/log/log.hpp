// The one log: lines on stderr as text for people or journald, or as JSON objects for machines (3-operations 3.6).
// Redaction is by construction: callers give fixed texts and fields; a room is only ever given as its tag
// (RoomName::tag()), and no client's address, key, token or text is given at all. Control characters are escaped, so
// that one event is one line whatever it holds.
//
// Never blocks and never fails: a line that a full or closed pipe does not take at once is dropped and counted, and the
// count is told when writing works again. The process must ignore SIGPIPE. Safe to call from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace tandem::log {

enum class Level : std::uint8_t { debug, info, warn, error };
enum class Format : std::uint8_t { text, json };

struct Field {
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Field(std::string_view k, T v) : key(k), value(static_cast<std::int64_t>(v)) {}
  Field(std::string_view k, bool v) : key(k), value(v) {}
  Field(std::string_view k, double v) : key(k), value(v) {}
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  Field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}

  std::string_view key;
  std::variant<std::int64_t, double, bool, std::string_view> value;
};
using Fields = std::initializer_list<Field>;

struct Options {
  Level level = Level::info;
  Format format = Format::text;
  int fd = 2;
};

class Log {
 public:
  explicit Log(Options options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // `message` is a fixed text; what varies goes into fields: "map adopted" {version: 8}. As text: `map adopted
  // version=8`.
  void write(Level level, std::string_view message, Fields fields = {});
  void debug(std::string_view message, Fields fields = {}) { write(Level::debug, message, fields); }
  void info(std::string_view message, Fields fields = {}) { write(Level::info, message, fields); }
  void warn(std::string_view message, Fields fields = {}) { write(Level::warn, message, fields); }
  void error(std::string_view message, Fields fields = {}) { write(Level::error, message, fields); }

  [[nodiscard]] bool enabled(Level level) const noexcept;
  [[nodiscard]] Level level() const noexcept;  // what is in force now
  void configure(Level level, Format format);  // from the configuration; a toggle stays in force
  void toggle_debug();                         // SIGUSR2: debug on (off where configured on); again: back

  [[nodiscard]] std::uint64_t dropped() const noexcept;  // lines nobody took, ever

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::log
