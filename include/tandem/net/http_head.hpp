// Reads HTTP/1.1 request heads and bodies, strictly (1-wire 1.2): what is malformed or could be read in two ways is
// refused, and the connection must then end. Pure; views point into the caller's buffer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace tandem::net {

inline constexpr std::size_t kMaxHeadBytes = 16 * 1024;  // request line to empty line, both included
inline constexpr std::size_t kMaxHeaderLines = 64;
inline constexpr std::size_t kMaxBodyBytes = 64 * 1024;

// Finds the end of a head in a growing buffer, looking at each byte once. Bare LF, bare CR, NUL and excess are seen at
// once.
class HeadScanner {
 public:
  struct Found {
    std::size_t size;  // of the head, its empty line included
  };
  struct Fault {
    std::uint16_t status;  // 400 or 431
  };
  struct NeedMore {};

  [[nodiscard]] std::variant<NeedMore, Found, Fault> scan(std::string_view buffer) noexcept;
  void reset() noexcept { *this = HeadScanner{}; }

 private:
  std::size_t at_ = 0, line_start_ = 0, lines_ = 0;
  bool after_cr_ = false;
};

struct RequestHead {
  struct Field {
    std::string_view name, value;  // value: white space around it removed
  };

  std::string_view method, path;  // path: of the target, without its query; "*" and authority forms as they are
  int minor_version = 1;          // HTTP/1.x, 0 or 1
  bool keep_alive = true;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  bool expects_continue = false;
  bool upgrade = false;  // GET that asks for `websocket`
  std::array<Field, kMaxHeaderLines> fields;
  std::size_t field_count = 0;

  [[nodiscard]] std::size_t count(std::string_view lower_name) const noexcept;
  // The only value of that name; nothing where it is missing or repeated.
  [[nodiscard]] std::optional<std::string_view> single(std::string_view lower_name) const noexcept;
  // Whether a comma-separated list, over all lines of that name, holds the token (case does not count).
  [[nodiscard]] bool has_token(std::string_view lower_name, std::string_view lower_token) const noexcept;
  [[nodiscard]] bool has_body() const noexcept { return chunked || content_length.value_or(0) != 0; }
};

// Parses a complete head. The status where it is refused: 400, 417 (an Expect we cannot meet) or 501 (a coding we do
// not know).
[[nodiscard]] std::variant<std::uint16_t, RequestHead> parse_head(std::string_view head);

// Decodes a body of known length or in chunks, with its limit.
class BodyReader {
 public:
  enum class Status : std::uint8_t { need_more, done, too_large, malformed };
  struct Step {
    Status status;
    std::size_t taken;  // bytes of input used; what is behind them belongs to the next request
  };

  explicit BodyReader(const RequestHead& head) noexcept;
  // Appends what it decodes to `out`.
  [[nodiscard]] Step read(std::string_view in, std::string& out);

 private:
  enum class State : std::uint8_t {
    plain,
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer,
    trailer_lf,
    done
  };
  [[nodiscard]] Step read_chunks(std::string_view in, std::string& out);

  State state_;
  std::uint64_t left_ = 0;
  std::uint32_t overhead_ = 0;  // bytes of extensions and trailers: bounded, as nobody needs any
  std::uint8_t digits_ = 0;
  bool trailer_line_empty_ = true;
};

[[nodiscard]] bool equals_ignoring_case(std::string_view a, std::string_view lower) noexcept;

}  // namespace tandem::net
