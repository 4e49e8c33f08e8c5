// Writes lines to a file descriptor that may be a terminal, a file, a pipe or the journal's socket, and never waits for
// it: what is not taken at once is dropped and counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include <spdlog/sinks/base_sink.h>

namespace tandem::log {

class FdSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FdSink(int fd);
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  // Lines lost since this was last asked; taken() says whether the newest line went out, so that the loss can be told.
  [[nodiscard]] std::uint64_t take_unreported() noexcept { return unreported_.exchange(0); }

 protected:
  void sink_it_(const spdlog::details::log_msg& msg) override;
  void flush_() override {}

 private:
  [[nodiscard]] bool write_whole(std::string_view line);

  int fd_;
  bool is_socket_ = false;
  bool mid_line_ = false;  // a line went out in part: the rest of it is lost, so the next begins with a newline
  std::atomic<std::uint64_t> dropped_{0}, unreported_{0};
};

}  // namespace tandem::log
