// One HTTP GET at a time to a place the operator named: the shard map's origin, another relay's admin listener, a local
// file. Decides how much of an answer is believed: strict framing, a bounded size, verified certificates, no redirects,
// no codings.
//
// `https` is verified against the system's CAs (SSL_CERT_FILE and SSL_CERT_DIR are honoured) or `ca_file` alone, for
// the URL's host name or address. `http` goes to loopback only, `file` to a regular file of this machine
// (2-sharding 2.3). Every call opens a fresh connection. Names are looked up in a thread of their own; an answer that
// comes too late is dropped.
//
// Ownership: a Fetch is one running call; destroying or cancelling it ends the call, and its callback is never called
// after. The callback comes from the loop, never from inside start(). Single-threaded: use from the loop's thread
// alone.
#pragma once

#include "tandem/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace tandem::net {

// Why a fetch failed: the label values of shard_map_fetch_errors_total (2-sharding 2.3). A deadline that passes while
// the name is being looked up is `dns`, any other is `timeout`. A body past the limit is `parse`; a wrong coding or a
// cut body `other`.
enum class FetchCause : std::uint8_t { dns, timeout, connect, tls, http_4xx, http_5xx, http_other, parse, other };
inline constexpr int kFetchCauseCount = static_cast<int>(FetchCause::other) + 1;
[[nodiscard]] std::string_view label(FetchCause cause) noexcept;

struct FetchRequest {
  std::string url;                                           // sent verbatim, without its fragment
  std::vector<std::pair<std::string, std::string>> headers;  // beside Host, User-Agent and Accept
  Duration timeout = seconds(3);                             // covers everything from the look-up to the last byte
  std::size_t max_body_bytes = 1024 * 1024;
  std::string ca_file;      // empty: the system's CAs
  bool any_coding = false;  // true: a body with a Content-Encoding is given as it came, for who wants to say so
  bool any_status = false;  // false: all but 200, and 304 where If-None-Match was sent, is a failure by its class
};

struct FetchAnswer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, in the order received
  std::string body;

  [[nodiscard]] std::optional<std::string_view> header(std::string_view lower_case_name) const noexcept;  // the first
};

struct FetchFailure {
  FetchCause cause = FetchCause::other;
  std::string detail;                           // for people; names the phase and the system's word, never the URL
  int status = 0;                               // of the HTTP answer, where one came
  bool retryable = true;                        // false for 4xx and parse (2-sharding 2.3)
  std::optional<std::uint64_t> oversize_bytes;  // the body passed the limit: its declared length, or the bytes seen
};

using FetchResult = std::variant<FetchAnswer, FetchFailure>;

struct FetchUrl {
  enum class Scheme : std::uint8_t { http, https, file } scheme = Scheme::https;
  std::string host;  // without brackets; empty for file
  std::uint16_t port = 443;
  std::string authority;  // as the Host header carries it
  std::string target;     // path and query; for file the decoded path
};
// The URL, or why it cannot be fetched: a scheme, host or port out of form, user info, http to a host that is not
// loopback.
[[nodiscard]] std::variant<FetchUrl, std::string> parse_fetch_url(std::string_view url);

class Fetch {
 public:
  Fetch() = default;
  Fetch(Fetch&&) noexcept = default;
  Fetch& operator=(Fetch&& other) noexcept;
  ~Fetch();
  void cancel() noexcept;

  struct Call;
  explicit Fetch(std::weak_ptr<Call> call) noexcept : call_(std::move(call)) {}

 private:
  std::weak_ptr<Call> call_;
};

class HttpFetcher {
 public:
  explicit HttpFetcher(boost::asio::io_context& loop);  // outlives the fetcher
  ~HttpFetcher();
  HttpFetcher(const HttpFetcher&) = delete;
  HttpFetcher& operator=(const HttpFetcher&) = delete;

  using Done = std::function<void(FetchResult)>;
  [[nodiscard]] Fetch start(FetchRequest request, Done done);

 private:
  boost::asio::io_context& loop_;
  struct Trust;
  std::shared_ptr<Trust>
      trust_;  // TLS contexts by CA file: reading the system's CAs again for each call would stall the loop
};

// The same for a command line: returns when the answer or the failure is there.
[[nodiscard]] FetchResult fetch_blocking(FetchRequest request);

}  // namespace tandem::net
