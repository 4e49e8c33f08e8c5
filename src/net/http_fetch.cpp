#include "tandem/net/http_fetch.hpp"

#include "http_fetch_lookup.hpp"
#include "http_fetch_reply.hpp"
#include "http_fetch_trust.hpp"
#include "tandem/core/version.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace tandem::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

constexpr Duration kNextAddressAfter = milliseconds(250);  // RFC 8305, section 5

FetchFailure failure(FetchCause cause, std::string detail) {
  FetchFailure f;
  f.cause = cause;
  f.detail = std::move(detail);
  return f;
}

// At most 1 MiB of a regular local file: short enough to be read on the loop.
FetchResult read_file(const std::string& path, std::size_t max_bytes) {
  const auto failed = [] {
    return failure(FetchCause::other, "the file cannot be read: " + std::generic_category().message(errno));
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return failed();
  FetchAnswer answer;
  FetchResult result = answer;
  struct stat s{};
  if (::fstat(fd, &s) != 0) {
    result = failed();
  } else if (!S_ISREG(s.st_mode)) {
    result = failure(FetchCause::other, "it is not a regular file");
  } else {
    answer.body.resize(max_bytes + 1);
    std::size_t have = 0;
    ssize_t n = 0;
    while (have < answer.body.size() && (n = ::read(fd, answer.body.data() + have, answer.body.size() - have)) > 0)
      have += static_cast<std::size_t>(n);
    answer.body.resize(have);
    if (n < 0) {
      result = failed();
    } else if (have > max_bytes) {
      FetchFailure f = failure(FetchCause::parse, "the file is larger than " + std::to_string(max_bytes) + " bytes");
      f.retryable = false;
      f.oversize_bytes = static_cast<std::uint64_t>(s.st_size);
      result = std::move(f);
    } else {
      result = std::move(answer);
    }
  }
  ::close(fd);
  return result;
}

}  // namespace

// The life of one call: look up, connect, handshake, write, read. The deadline timer's handler owns it; finish() ends
// it.
struct Fetch::Call : std::enable_shared_from_this<Fetch::Call> {
  enum class Phase { lookup, connect, handshake, answer };

  asio::io_context& loop;
  FetchRequest request;
  FetchUrl url;
  HttpFetcher::Done done;
  std::shared_ptr<asio::ssl::context> context;
  asio::steady_timer deadline, next_address;
  Phase phase = Phase::lookup;
  std::optional<Lookup> lookup;
  std::vector<asio::ip::address> addresses;
  std::vector<std::unique_ptr<tcp::socket>> attempts;  // connections under way, by index into addresses
  std::size_t running = 0;
  std::string last_connect_fault = "the name has no usable address";
  std::optional<tcp::socket> plain;
  std::optional<asio::ssl::stream<tcp::socket>> tls;
  std::string head;
  std::optional<ReplyReader> reader;
  std::array<char, 16 * 1024> buffer{};

  Call(asio::io_context& l, FetchRequest r, HttpFetcher::Done d)
      : loop(l), request(std::move(r)), done(std::move(d)), deadline(l), next_address(l) {}

  void finish(FetchResult result) {
    if (!done) return;
    const auto call_back = std::exchange(done, nullptr);
    close();
    call_back(std::move(result));
  }

  void close() noexcept {
    done = nullptr;
    lookup.reset();
    deadline.cancel();
    next_address.cancel();
    Error ignored;
    for (auto& a : attempts)
      if (a) a->close(ignored);
    if (plain) plain->close(ignored);
    if (tls) tls->lowest_layer().close(ignored);
  }

  void expire() {
    static constexpr std::array<std::string_view, 4> kPhases = {"the name was being looked up", "connecting",
                                                                "the TLS handshake", "the answer"};
    finish(failure(phase == Phase::lookup ? FetchCause::dns : FetchCause::timeout,
                   "the time ran out during: " + std::string(kPhases[static_cast<std::size_t>(phase)])));
  }

  void start() {
    deadline.expires_after(request.timeout);
    deadline.async_wait([self = shared_from_this()](Error ec) {
      if (!ec) self->expire();
    });
    Error not_an_address;
    const auto literal = asio::ip::make_address(url.host, not_an_address);
    if (!not_an_address) {
      asio::post(loop, [self = shared_from_this(), literal] { self->looked_up({{literal}, {}}); });
      return;
    }
    lookup.emplace(loop, url.host, [weak = weak_from_this()](LookupResult r) {
      if (const auto self = weak.lock()) self->looked_up(std::move(r));
    });
  }

  void looked_up(LookupResult found) {
    if (!done) return;
    if (found.addresses.empty())
      return finish(failure(FetchCause::dns, "the name cannot be looked up: " + found.error));
    if (url.scheme == FetchUrl::Scheme::http)  // `localhost` may be anything in a hosts file
      std::erase_if(found.addresses, [](const auto& a) { return !a.is_loopback(); });
    addresses = std::move(found.addresses);
    phase = Phase::connect;
    connect_next();
  }

  // Addresses are tried in turn, the next one when the last failed or after a quarter of a second; the first to answer
  // wins.
  void connect_next() {
    if (attempts.size() == addresses.size()) {
      if (running == 0) finish(failure(FetchCause::connect, last_connect_fault));
      return;
    }
    const std::size_t index = attempts.size();
    attempts.push_back(std::make_unique<tcp::socket>(loop));
    ++running;
    attempts[index]->async_connect({addresses[index], url.port},
                                   [self = shared_from_this(), index](Error ec) { self->connected(index, ec); });
    if (attempts.size() == addresses.size()) return;
    next_address.expires_after(kNextAddressAfter);
    next_address.async_wait([self = shared_from_this()](Error ec) {
      if (!ec && self->done && self->phase == Phase::connect) self->connect_next();
    });
  }

  void connected(std::size_t index, Error ec) {
    --running;
    if (!done || phase != Phase::connect) return;
    if (ec) {
      last_connect_fault = "the connection failed: " + ec.message();
      next_address.cancel();
      return connect_next();
    }
    next_address.cancel();
    tcp::socket socket = std::move(*attempts[index]);
    Error ignored;
    for (auto& a : attempts) a->close(ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    if (url.scheme == FetchUrl::Scheme::http) {
      plain.emplace(std::move(socket));
      return send();
    }
    phase = Phase::handshake;
    tls.emplace(std::move(socket), *context);
    expect_host(tls->native_handle(), url.host);
    tls->async_handshake(asio::ssl::stream_base::client, [self = shared_from_this()](Error e) {
      if (!self->done) return;
      if (e) return self->finish(failure(FetchCause::tls, handshake_fault(self->tls->native_handle(), e)));
      self->send();
    });
  }

  void send() {
    phase = Phase::answer;
    bool conditional = false;
    head = "GET " + url.target + " HTTP/1.1\r\nHost: " + url.authority + "\r\nUser-Agent: tandem/" +
           std::string(version()) + "\r\nAccept: */*\r\nConnection: close\r\n";
    for (const auto& [name, value] : request.headers) {
      head += name + ": " + value + "\r\n";
      conditional = conditional || name == "If-None-Match";
    }
    head += "\r\n";
    reader.emplace(request, conditional);
    // A server may answer and close before it has read everything, so that a failed write is no verdict: reading gives
    // it.
    const auto written = [self = shared_from_this()](Error, std::size_t) {
      if (self->done) self->read();
    };
    if (tls)
      asio::async_write(*tls, asio::buffer(head), written);
    else
      asio::async_write(*plain, asio::buffer(head), written);
  }

  void read() {
    const auto got = [self = shared_from_this()](Error ec, std::size_t n) {
      if (self->done) self->received(ec, n);
    };
    if (tls)
      tls->async_read_some(asio::buffer(buffer), got);
    else
      plain->async_read_some(asio::buffer(buffer), got);
  }

  void received(Error ec, std::size_t n) {
    if (n > 0)
      if (auto result = reader->feed({buffer.data(), n})) return finish(std::move(*result));
    if (!ec) return read();
    if (ec == asio::error::eof || ec == asio::ssl::error::stream_truncated)
      return finish(reader->end(ec == asio::error::eof));
    const bool is_tls = ec.category() == asio::error::get_ssl_category();
    finish(failure(is_tls ? FetchCause::tls : FetchCause::other, "the connection broke: " + ec.message()));
  }
};

Fetch& Fetch::operator=(Fetch&& other) noexcept {
  if (this != &other) {
    cancel();
    call_ = std::move(other.call_);
  }
  return *this;
}
Fetch::~Fetch() { cancel(); }
void Fetch::cancel() noexcept {
  if (const auto call = call_.lock()) call->close();
  call_.reset();
}

HttpFetcher::HttpFetcher(asio::io_context& loop) : loop_(loop), trust_(std::make_shared<Trust>()) {}
HttpFetcher::~HttpFetcher() = default;

Fetch HttpFetcher::start(FetchRequest request, Done done) {
  auto call = std::make_shared<Fetch::Call>(loop_, std::move(request), std::move(done));
  const auto later = [&](FetchResult result) {
    asio::post(loop_, [call, result = std::move(result)]() mutable { call->finish(std::move(result)); });
    return Fetch(call);
  };
  auto parsed = parse_fetch_url(call->request.url);
  if (const auto* fault = std::get_if<std::string>(&parsed))
    return later(failure(FetchCause::other, "the URL: " + *fault));
  call->url = std::move(std::get<FetchUrl>(parsed));
  if (call->url.scheme == FetchUrl::Scheme::file)
    return later(read_file(call->url.target, call->request.max_body_bytes));
  if (call->url.scheme == FetchUrl::Scheme::https) {
    std::string error;
    call->context = trust_->context_for(call->request.ca_file, error);
    if (!call->context) return later(failure(FetchCause::tls, error));
  }
  call->start();
  return Fetch(call);
}

FetchResult fetch_blocking(FetchRequest request) {
  asio::io_context loop(1);
  HttpFetcher fetcher(loop);
  FetchResult result = failure(FetchCause::other, "the fetch did not end");
  const Fetch running = fetcher.start(std::move(request), [&](FetchResult r) { result = std::move(r); });
  loop.run();
  return result;
}

}  // namespace tandem::net
