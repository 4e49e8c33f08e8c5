#include "net/transport.hpp"

#include "tandem/net/openssl_handle.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <openssl/err.h>

namespace tandem::net {

// OpenSSL's way to the socket: reads from what the loop has received, writes into what it will send.
struct TransportBio {
  static int read(BIO* bio, char* out, int size) {
    BIO_clear_retry_flags(bio);
    auto* self = static_cast<Transport*>(BIO_get_data(bio));
    LoopBuffers& b = self->buffers_;
    const std::size_t have = b.reader == self ? b.in_end - b.in_at : 0;
    if (have == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t n = std::min(have, static_cast<std::size_t>(size));
    std::memcpy(out, b.cipher_in.get() + b.in_at, n);
    b.in_at += n;
    return static_cast<int>(n);
  }

  static int write(BIO* bio, const char* data, int size) {
    BIO_clear_retry_flags(bio);
    auto* self = static_cast<Transport*>(BIO_get_data(bio));
    self->put(reinterpret_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size));
    return size;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "loop");
      BIO_meth_set_read(m, &read);
      BIO_meth_set_write(m, &write);
      BIO_meth_set_ctrl(m, &control);
      BIO_meth_set_create(m, &create);
      return m;
    }();
    return made;
  }
};

namespace {

// Records are gathered and sent together: a call of the kernel, with the walk through TCP that it starts, costs more
// than copying a record once more.
constexpr std::size_t kSendAtOnce = 128 * 1024;

}  // namespace

Transport::Transport(Socket socket, LoopBuffers& buffers) : socket_(std::move(socket)), buffers_(buffers) {}

// A closed one may outlive the loop inside one of Asio's handlers.
Transport::~Transport() {
  if (open()) close();
}

void Transport::start_tls(ssl_st* ssl) {
  assert(ssl_ == nullptr);
  ssl_ = ssl;
  BIO* bio = BIO_new(TransportBio::method());
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_, bio, bio);
}

Transport::Status Transport::fill(std::size_t most) {
  buffers_.reader = this;
  buffers_.in_at = buffers_.in_end = 0;
  if (broken_) return Status::failed;
  const ssize_t n =
      ::recv(socket_.native_handle(), buffers_.cipher_in.get(), std::min(most, LoopBuffers::kCipherIn), 0);
  if (n > 0) {
    buffers_.in_end = static_cast<std::size_t>(n);
    return Status::ok;
  }
  if (n == 0) return Status::end;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Status::dry : Status::failed;
}

void Transport::prefill(std::span<const std::uint8_t> bytes) {
  assert(bytes.size() <= LoopBuffers::kCipherIn);
  buffers_.reader = this;
  buffers_.in_at = 0;
  buffers_.in_end = bytes.size();
  std::copy(bytes.begin(), bytes.end(), buffers_.cipher_in.get());
}

std::span<const std::uint8_t> Transport::received() const noexcept {
  if (buffers_.reader != this) return {};
  return {buffers_.cipher_in.get() + buffers_.in_at, buffers_.in_end - buffers_.in_at};
}

Transport::Status Transport::handshake() {
  if (ssl_ == nullptr) return Status::ok;
  ERR_clear_error();
  if (SSL_do_handshake(ssl_) == 1) return Status::ok;
  if (SSL_want_read(ssl_) && BIO_should_read(SSL_get_rbio(ssl_))) return Status::dry;
  ERR_clear_error();
  return Status::failed;
}

Transport::Status Transport::read(std::span<const std::uint8_t>& piece) {
  if (broken_) return Status::failed;
  if (ssl_ == nullptr) {
    piece = received();
    buffers_.in_at = buffers_.in_end;
    return piece.empty() ? Status::dry : Status::ok;
  }
  const int n = SSL_read(ssl_, buffers_.plain.get(), static_cast<int>(LoopBuffers::kPlain));
  if (n > 0) {
    piece = {buffers_.plain.get(), static_cast<std::size_t>(n)};
    return Status::ok;
  }
  // Not SSL_get_error(): it looks at the thread's error queue first, where others may have left something.
  if (SSL_want_read(ssl_) && BIO_should_read(SSL_get_rbio(ssl_))) return Status::dry;
  const bool orderly = (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
  ERR_clear_error();
  return orderly ? Status::end : Status::failed;
}

bool Transport::resumed_session() const { return ssl_ != nullptr && SSL_session_reused(ssl_) == 1; }

void Transport::write(std::span<const std::uint8_t> bytes) {
  if (broken_ || bytes.empty()) return;
  if (ssl_ == nullptr) return put(bytes.data(), bytes.size());
  if (SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0) return;
  ERR_clear_error();  // it never waits: the BIO takes everything. After a fatal alert nothing more can be said
  broken_ = true;
}

void Transport::write(std::string_view text) {
  write(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void Transport::put(const std::uint8_t* data, std::size_t size) {
  if (broken_) return;
  if (pending() != 0) return hold(data, size);
  if (buffers_.writer != this) {
    if (buffers_.writer != nullptr) buffers_.writer->flush();
    buffers_.writer = this;
  }
  buffers_.out.insert(buffers_.out.end(), data, data + size);
  if (buffers_.out.size() >= kSendAtOnce) flush();
}

// Keeps what the kernel does not take yet. The loop lends the memory: taking and giving back such blocks all the time
// would have the allocator ask the kernel for pages again and again.
void Transport::hold(const std::uint8_t* data, std::size_t size) {
  if (pending_.capacity() == 0 && !buffers_.spare.empty()) {
    pending_ = std::move(buffers_.spare.back());
    buffers_.spare.pop_back();
  }
  if (pending_at_ > pending_.size() / 2) {
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(pending_at_));
    pending_at_ = 0;
  }
  pending_.insert(pending_.end(), data, data + size);
}

void Transport::forget_pending() {
  pending_at_ = 0;
  pending_.clear();
  if (pending_.capacity() != 0 && pending_.capacity() <= LoopBuffers::kSpareBytes &&
      buffers_.spare.size() < LoopBuffers::kSpares)
    buffers_.spare.push_back(std::move(pending_));
  std::vector<std::uint8_t>().swap(pending_);
}

void Transport::flush() {
  if (buffers_.writer != this) return;
  buffers_.writer = nullptr;
  std::vector<std::uint8_t>& out = buffers_.out;
  if (!out.empty() && !broken_) {
    const std::size_t done = send_some(out.data(), out.size());
    if (done < out.size() && !broken_) hold(out.data() + done, out.size() - done);
  }
  out.clear();
}

void Transport::resume() {
  if (pending() == 0) return;
  pending_at_ += send_some(pending_.data() + pending_at_, pending());
  if (pending() == 0 || broken_) forget_pending();
}

std::size_t Transport::send_some(const std::uint8_t* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::send(socket_.native_handle(), data + done, size - done, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) broken_ = true;
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  sent_ += done;
  buffers_.sent_bytes += done;
  return done;
}

void Transport::shut_write() {
  if (broken_ || !open()) return;
  assert(pending() == 0);
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_)) {
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  flush();
  forget_pending();  // what the kernel would not take now is lost with the connection: a close_notify, no more
  ::shutdown(socket_.native_handle(), SHUT_WR);
}

void Transport::close() {
  if (buffers_.writer == this) {
    buffers_.writer = nullptr;
    buffers_.out.clear();
  }
  if (buffers_.reader == this) buffers_.reader = nullptr;
  SSL_free(ssl_);
  ssl_ = nullptr;
  forget_pending();
  broken_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

std::uint64_t Transport::written() const noexcept {
  return sent_ + pending() + (buffers_.writer == this ? buffers_.out.size() : 0);
}

std::uint64_t Transport::acknowledged() const {
  const std::uint64_t queued = count(SIOCOUTQ);
  return sent_ - std::min(sent_, queued);
}

bool Transport::is_gone() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (broken_ || ::getsockopt(const_cast<Socket&>(socket_).native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
    return true;
  return info.tcpi_state != TCP_ESTABLISHED;
}

void Transport::bound_receiving(std::uint32_t bytes) {
  const int ask = static_cast<int>(bytes / 2);  // the kernel doubles it
  // Refused, it stays what it was: slower or larger, never wrong.
  ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVBUF, &ask, sizeof ask);
}

std::uint64_t Transport::unread() const { return count(FIONREAD); }

std::uint64_t Transport::count(unsigned long request) const {
  int bytes = 0;
  if (broken_ || ::ioctl(const_cast<Socket&>(socket_).native_handle(), request, &bytes) != 0) return 0;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace tandem::net
