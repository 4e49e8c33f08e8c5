#include "http_fetch_reply.hpp"

#include <charconv>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace tandem::net {

namespace http = boost::beast::http;

namespace {

constexpr std::uint32_t kMaxReplyHeadBytes = 16 * 1024;
constexpr std::size_t kLastChunk = 5;  // `0 CR LF CR LF`
constexpr int kMaxInterim = 8;         // 1xx answers before the real one

std::string lower(std::string_view in) {
  std::string out(in);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

struct ReplyReader::Impl {
  using Parser = http::response_parser<http::string_body>;

  std::size_t max_body_bytes;
  bool any_status, any_coding, conditional, head_judged = false;
  int interim = 0;
  std::string pending;  // bytes received, not yet consumed
  std::optional<Parser> parser;

  Impl(const FetchRequest& request, bool cond)
      : max_body_bytes(request.max_body_bytes),
        any_status(request.any_status),
        any_coding(request.any_coding),
        conditional(cond) {
    renew();
  }

  void renew() {
    parser.emplace();
    parser->header_limit(kMaxReplyHeadBytes);
    parser->body_limit(max_body_bytes);
  }

  [[nodiscard]] int status() const { return static_cast<int>(parser->get().result_int()); }

  // The failure that the status alone is, if any; framing faults behind it do not matter then.
  [[nodiscard]] std::optional<FetchFailure> refused_status() const {
    const int s = status();
    if (s == 0 || any_status || s == 200 || (s == 304 && conditional)) return std::nullopt;
    FetchFailure f;
    f.status = s;
    f.cause = s / 100 == 4 ? FetchCause::http_4xx : s / 100 == 5 ? FetchCause::http_5xx : FetchCause::http_other;
    f.retryable = f.cause != FetchCause::http_4xx;
    f.detail = "HTTP status " + std::to_string(s);
    if (s == 304) f.detail += " that nobody asked for";
    if (s / 100 == 3 && s != 304) f.detail += "; redirects are not followed";
    return f;
  }

  [[nodiscard]] FetchFailure other(std::string detail) const {
    FetchFailure f;
    f.status = status();
    f.detail = std::move(detail);
    return f;
  }

  [[nodiscard]] FetchFailure failed(boost::system::error_code ec) const {
    // A head that is itself malformed says nothing, its status neither.
    if (auto f = refused_status(); f && (parser->is_header_done() || ec == http::error::body_limit)) return *f;
    if (ec != http::error::body_limit) return other("a malformed HTTP answer: " + ec.message());
    FetchFailure f = other("the body is larger than " + std::to_string(max_body_bytes) + " bytes");
    f.cause = FetchCause::parse;
    f.retryable = false;
    std::uint64_t bytes = max_body_bytes + 1;
    const auto declared = parser->get()[http::field::content_length];
    std::from_chars(declared.data(), declared.data() + declared.size(), bytes);
    f.oversize_bytes = bytes;
    return f;
  }

  // Called once the head is whole.
  [[nodiscard]] std::optional<FetchFailure> judge_head() const {
    if (auto f = refused_status()) return f;
    const auto& head = parser->get();
    for (const auto& field : head) {
      if (field.name() == http::field::content_encoding && !any_coding)
        return other("the body has a Content-Encoding, which nobody asked for");
      if (field.name() == http::field::transfer_encoding && !boost::beast::iequals(field.value(), "chunked"))
        return other("a Transfer-Encoding other than chunked");
    }
    return std::nullopt;
  }

  [[nodiscard]] FetchAnswer answer() {
    FetchAnswer a;
    auto message = parser->release();
    a.status = static_cast<int>(message.result_int());
    for (const auto& field : message) a.headers.emplace_back(lower(field.name_string()), field.value());
    a.body = std::move(message.body());
    return a;
  }

  // True: an interim answer was taken away, and the next one is to be read.
  [[nodiscard]] bool skip_interim() {
    if (status() / 100 != 1 || status() == 101 || ++interim > kMaxInterim) return false;
    renew();
    return true;
  }
};

ReplyReader::ReplyReader(const FetchRequest& request, bool conditional)
    : impl_(std::make_unique<Impl>(request, conditional)) {}
ReplyReader::~ReplyReader() = default;

std::optional<FetchResult> ReplyReader::feed(std::string_view bytes) {
  Impl& i = *impl_;
  i.pending += bytes;
  while (true) {
    // Beast 1.81 aborts when it has seen `0 CR LF` and is given a single byte more. All that is chunked ends with five.
    if (i.parser->is_header_done() && i.parser->chunked() && i.pending.size() < kLastChunk) return std::nullopt;
    boost::system::error_code ec;
    const std::size_t used = i.parser->put(boost::asio::const_buffer(i.pending.data(), i.pending.size()), ec);
    i.pending.erase(0, used);
    if (ec == http::error::need_more) return std::nullopt;
    if (ec) return i.failed(ec);
    if (i.parser->is_header_done() && !i.head_judged) {
      if (i.parser->is_done() && i.skip_interim()) continue;
      if (auto fault = i.judge_head()) return *fault;
      i.head_judged = true;
      i.parser->eager(true);
    }
    if (i.parser->is_done()) return i.answer();
    if (i.pending.empty() || used == 0) return std::nullopt;
  }
}

FetchResult ReplyReader::end(bool clean) {
  Impl& i = *impl_;
  if (auto f = i.refused_status(); f && i.parser->is_header_done()) return *f;
  if (!i.parser->got_some()) return i.other("the connection ended without an answer");
  boost::system::error_code ec;
  i.parser->put_eof(ec);
  if (ec || !i.parser->is_done() || !clean) return i.other("the connection ended in the middle of the answer");
  return i.answer();
}

}  // namespace tandem::net
