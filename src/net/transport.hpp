// One TCP connection, with TLS or without: bytes in, bytes out, over buffers shared by the loop
// (5-performance 5.3.1, 5.3.2).
//
// Reading: fill() receives once, then read() gives decrypted pieces until dry. Writing never fails half-way: write()
// encrypts at once and sends what the kernel takes; the rest is kept (pending()) and goes out with resume(). The caller
// bounds it by not writing while anything is pending. After an error the transport is broken(): it takes what is
// written and forgets it.
#pragma once

#include "net/loop_buffers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

struct ssl_st;

namespace tandem::net {

using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

class Transport {
 public:
  Transport(Socket socket, LoopBuffers& buffers);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] Socket& socket() noexcept { return socket_; }
  // From now on TLS; takes the SSL object. At most once, before the first read() or write().
  void start_tls(ssl_st* ssl);
  [[nodiscard]] bool is_tls() const noexcept { return ssl_ != nullptr; }

  enum class Status : std::uint8_t { ok, dry, end, failed };  // end: FIN or close_notify; failed: reset, or broken TLS

  // One recv of at most `most` bytes; `dry` where there was nothing. Until the next fill() on any transport, read()
  // gives it.
  [[nodiscard]] Status fill(std::size_t most);
  // Instead of fill(): bytes that were received already.
  void prefill(std::span<const std::uint8_t> bytes);
  [[nodiscard]] std::span<const std::uint8_t> received() const noexcept;
  [[nodiscard]] Status handshake();  // ok: done; dry: needs more
  [[nodiscard]] Status read(std::span<const std::uint8_t>& piece);
  [[nodiscard]] bool resumed_session() const;

  void write(std::span<const std::uint8_t> bytes);
  void write(std::string_view text);
  void flush();       // sends what has been coalesced
  void resume();      // sends what was pending: the socket is writable
  void shut_write();  // close_notify and FIN, behind what was written; only while nothing is pending
  void close();       // at once

  [[nodiscard]] bool open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_.size() - pending_at_; }
  // Bytes ever written to the stream (on the wire: encrypted), sent or pending; and how many of them TCP has had
  // acknowledged.
  [[nodiscard]] std::uint64_t written() const noexcept;
  [[nodiscard]] std::uint64_t acknowledged() const;
  [[nodiscard]] std::uint64_t unread() const;  // received by the kernel and not by us
  void bound_receiving(std::uint32_t bytes);   // the kernel's receive buffer, as the kernel counts it
  [[nodiscard]] bool is_gone() const;          // the other side has ended it, though we may not have read so far

 private:
  friend struct TransportBio;
  void put(const std::uint8_t* data, std::size_t size);  // bytes for the wire
  [[nodiscard]] std::uint64_t count(unsigned long request) const;
  void hold(const std::uint8_t* data, std::size_t size);
  void forget_pending();
  [[nodiscard]] std::size_t send_some(const std::uint8_t* data, std::size_t size);

  Socket socket_;
  LoopBuffers& buffers_;
  ssl_st* ssl_ = nullptr;
  std::vector<std::uint8_t> pending_;
  std::size_t pending_at_ = 0;
  std::uint64_t sent_ = 0;
  bool broken_ = false;
};

}  // namespace tandem::net
