// The yardstick behind ./dev bench: what a relay costs with nothing around it. Past 500 lines because it is one program
// without a library, compiled twice (raw epoll, Asio).
//
// floor: the practical limits a relay can be held against, in one small program.
//   raw  (default): 65-byte hello (role + room), answer 'k', then bytes are
//                   spliced to the other side of the room. No WebSocket.
//   --ws           : the relay's protocol in open mode, with nothing around it
//                    (no limits, no storage, no keepalive, no close semantics).
// With --cert/--key it speaks TLS on both legs; without, plain TCP.
// --bio direct  : OpenSSL reads from and writes to the socket itself
// --bio shared  : loop-shared ciphertext buffers (one recv, one send per wake)
// --bio hybrid  : shared for reads; big records are sent directly, small ones coalesced
// Built with -DFLOOR_ASIO the same code runs on a Boost.Asio io_context, each
// socket re-armed with async_wait: what the Asio reactor itself costs.
// Not a server: no time-outs, no hardening. Loopback only.
#include <algorithm>
#include <arpa/inet.h>
#include <errno.h>
#include <functional>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#ifdef FLOOR_ASIO
#include <optional>

#include <boost/asio.hpp>
namespace asio = boost::asio;
using asio::ip::tcp;
static asio::io_context io(1);
#endif
using u8 = uint8_t;
using u64 = uint64_t;

static int ep;
static SSL_CTX* ctx;
static BIO_METHOD* bm;
static bool ws = false, release = true;
enum { DIRECT, SHARED, HYBRID } bio = HYBRID;
static size_t IN = 128 * 1024;
static u8 *gin, *gplain;
static size_t gin_off, gin_len;
static std::vector<u8> gout, gfwd;

enum St : u8 { HELLO, UPG, WHELLO, PROOF, ON, DEAD };
struct Conn {
#ifdef FLOOR_ASIO
  std::optional<tcp::socket> sock;
  bool rarm = false, warm = false;
#endif
  int fd = -1;
  SSL* ssl = nullptr;
  Conn* peer = nullptr;
  u8 st = HELLO;
  char role = 0;
  bool out = false, in = true;
  u8 hlen = 0, hneed = 2, op = 0, mpos = 0;
  u8 hdr[14];
  u64 remain = 0;
  std::vector<u8> pend;
  size_t pend_off = 0;
  std::string acc;  // before admission
  u8 room[32];
};
static std::unordered_map<std::string, Conn*> parked;
static std::vector<Conn*> dead;
static void readable(Conn* c);
#ifdef FLOOR_ASIO
static void writable(Conn* c);
static void maybe_free(Conn* c) {
  if (c->st == DEAD && !c->rarm && !c->warm) dead.push_back(c);
}
static void arm(Conn* c) {
  if (c->st == DEAD) return;
  if (c->in && !c->rarm) {
    c->rarm = true;
    c->sock->async_wait(tcp::socket::wait_read, [c](boost::system::error_code) {
      c->rarm = false;
      if (c->st == DEAD) return maybe_free(c);
      if (c->in) readable(c);
      arm(c);
    });
  }
  if (c->out && !c->warm) {
    c->warm = true;
    c->sock->async_wait(tcp::socket::wait_write, [c](boost::system::error_code) {
      c->warm = false;
      if (c->st == DEAD) return maybe_free(c);
      writable(c);
      arm(c);
    });
  }
}
#endif

static void ev(Conn* c, bool in, bool out) {
  if (c->in == in && c->out == out) return;
  c->in = in;
  c->out = out;
#ifdef FLOOR_ASIO
  arm(c);
  return;
#endif
  epoll_event e{};
  e.events = (in ? unsigned(EPOLLIN) : 0u) | (out ? unsigned(EPOLLOUT) : 0u);
  e.data.ptr = c;
  epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e);
}
static void kill_conn(Conn* c) {
  if (c->st == DEAD) return;
  c->st = DEAD;
#ifdef FLOOR_ASIO
  boost::system::error_code ec;
  c->sock->close(ec);
  maybe_free(c);
#else
  close(c->fd);
  dead.push_back(c);
#endif
  if (c->ssl) SSL_free(c->ssl);
  c->ssl = nullptr;
  if (c->role == 'm') {
    auto i = parked.find(std::string((char*)c->room, 32));
    if (i != parked.end() && i->second == c) parked.erase(i);
  }
  if (c->peer) {
    c->peer->peer = nullptr;
    kill_conn(c->peer);
  }
}
static int bwrite(BIO* b, const char* d, int n) {
  Conn* c = (Conn*)BIO_get_data(b);
  int off = 0;
  if (bio != SHARED && gout.empty() && c->pend.empty() && (bio == DIRECT || n >= 8192)) {
    ssize_t k = send(c->fd, d, n, MSG_NOSIGNAL);
    if (k > 0) off = int(k);
  }
  if (off < n) gout.insert(gout.end(), (const u8*)d + off, (const u8*)d + n);
  return n;
}
static int bread(BIO* b, char* d, int n) {
  BIO_clear_retry_flags(b);
  if (bio == DIRECT) {
    Conn* c = (Conn*)BIO_get_data(b);
    ssize_t k = recv(c->fd, d, n, 0);
    if (k < 0 && errno == EAGAIN) BIO_set_retry_read(b);
    return int(k);
  }
  size_t have = gin_len - gin_off;
  if (!have) {
    BIO_set_retry_read(b);
    return -1;
  }
  size_t k = std::min<size_t>(have, n);
  memcpy(d, gin + gin_off, k);
  gin_off += k;
  return int(k);
}
static void flush(Conn* c) {
  if (!c->pend.empty()) {
    c->pend.insert(c->pend.end(), gout.begin(), gout.end());
    gout.clear();
    return;
  }
  size_t o = 0;
  while (o < gout.size()) {
    ssize_t k = send(c->fd, gout.data() + o, gout.size() - o, MSG_NOSIGNAL);
    if (k < 0) {
      if (errno == EAGAIN) break;
      gout.clear();
      kill_conn(c);
      return;
    }
    o += k;
  }
  if (o < gout.size()) {
    c->pend.assign(gout.begin() + o, gout.end());
    c->pend_off = 0;
    ev(c, c->in, true);
    if (c->peer) ev(c->peer, false, c->peer->out);  // backpressure
  }
  gout.clear();
}
static void tx(Conn* c, const void* d, size_t n) {
  if (!n) return;
  if (c->ssl) {
    if (SSL_write(c->ssl, d, int(n)) <= 0) kill_conn(c);
  } else if (bio != SHARED && gout.empty() && c->pend.empty()) {
    ssize_t k = send(c->fd, d, n, MSG_NOSIGNAL);
    size_t o = k > 0 ? k : 0;
    gout.insert(gout.end(), (const u8*)d + o, (const u8*)d + n);
  } else
    gout.insert(gout.end(), (const u8*)d, (const u8*)d + n);
}
static void text(Conn* c, const std::string& s) {
  u8 b[512];
  b[0] = 0x81;
  b[1] = u8(s.size());
  memcpy(b + 2, s.data(), s.size());
  tx(c, b, s.size() + 2);
  flush(c);
}
static std::string b64(const u8* p, size_t n) {
  std::string s(4 * ((n + 2) / 3) + 1, 0);
  s.resize(EVP_EncodeBlock((u8*)s.data(), p, int(n)));
  return s;
}
static bool admit(Conn* c) {
  std::string k((char*)c->room, 32);
  if (c->role == 'm') {
    parked[k] = c;
    return true;
  }
  auto i = parked.find(k);
  if (i == parked.end()) return false;
  c->peer = i->second;
  i->second->peer = c;
  return true;
}
static void set_room(Conn* c, const char* h) {
  auto x = [](char ch) { return ch <= '9' ? ch - '0' : ch - 'a' + 10; };
  for (int i = 0; i < 32; ++i) c->room[i] = u8(x(h[2 * i]) << 4 | x(h[2 * i + 1]));
}
static void unmask(u8* dst, const u8* s, size_t n, const u8* mask, unsigned pos) {
  u8 m[4] = {mask[pos & 3], mask[(pos + 1) & 3], mask[(pos + 2) & 3], mask[(pos + 3) & 3]};
  u64 k;
  memcpy(&k, m, 4);
  memcpy((u8*)&k + 4, m, 4);
  size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    u64 a[4];
    memcpy(a, s + i, 32);
    a[0] ^= k, a[1] ^= k, a[2] ^= k, a[3] ^= k;
    memcpy(dst + i, a, 32);
  }
  for (; i < n; ++i) dst[i] = s[i] ^ m[i & 3];
}
static void fwd_out(Conn* c) {
  if (c->peer && !gfwd.empty()) tx(c->peer, gfwd.data(), gfwd.size());
  gfwd.clear();
}
static void frames(Conn* c, u8* p, size_t n) {
  while (n && c->st != DEAD) {
    if (c->hlen < c->hneed) {
      c->hdr[c->hlen++] = *p++;
      --n;
      if (c->hlen == 2) c->hneed = ((c->hdr[1] & 127) == 126 ? 4 : (c->hdr[1] & 127) == 127 ? 10 : 2) + 4;
      if (c->hlen < c->hneed) continue;
      u64 len = c->hdr[1] & 127;
      if (c->hneed == 8) len = u64(c->hdr[2]) << 8 | c->hdr[3];
      if (c->hneed == 14) {
        len = 0;
        for (int i = 2; i < 10; ++i) len = len << 8 | c->hdr[i];
      }
      c->remain = len;
      c->op = c->hdr[0] & 15;
      c->mpos = 0;
      if (c->st == ON && c->op < 3) {  // server header: the same, unmasked
        u8 h[10];
        memcpy(h, c->hdr, c->hneed - 4);
        h[1] &= 127;
        gfwd.insert(gfwd.end(), h, h + c->hneed - 4);
      }
      if (len) continue;
    } else {
      size_t k = std::min<u64>(n, c->remain);
      const u8* m = c->hdr + c->hneed - 4;
      if (c->st == ON && c->op < 3) {
        size_t o = gfwd.size();
        gfwd.resize(o + k);
        unmask(gfwd.data() + o, p, k, m, c->mpos);
        if (gfwd.size() >= 16384) fwd_out(c);
      } else {
        size_t o = c->acc.size();
        c->acc.resize(o + k);
        unmask((u8*)c->acc.data() + o, p, k, m, c->mpos);
      }
      c->mpos = (c->mpos + k) & 3;
      c->remain -= k;
      p += k;
      n -= k;
      if (c->remain) continue;
    }
    c->hlen = 0;
    c->hneed = 2;
    if (c->op == 8) {
      u8 f[4] = {0x88, 2, 3, 232};
      tx(c, f, 4);
      if (c->ssl && c->st != DEAD) SSL_shutdown(c->ssl);
      flush(c);
      kill_conn(c);
      return;
    }
    if (c->st == WHELLO) {
      c->role = c->acc.find("phone") != std::string::npos ? 'p' : 'm';
      u8 nn[32];
      RAND_bytes(nn, 32);
      c->st = PROOF;
      text(c, "{\"nonce\":\"" + b64(nn, 32) + "\"}");
    } else if (c->st == PROOF) {
      if (!admit(c)) {
        kill_conn(c);
        return;
      }
      c->st = ON;
      text(c, "{\"ok\":true}");
    }
    std::string().swap(c->acc);
  }
}
static void feed(Conn* c, u8* p, size_t n) {
  if (c->st == ON && !ws) {
    if (c->peer) tx(c->peer, p, n);
    return;
  }
  if (c->st >= WHELLO) {
    frames(c, p, n);
    return;
  }
  c->acc.append((char*)p, n);
  if (!ws) {
    if (c->acc.size() < 65) return;
    c->role = c->acc[0];
    set_room(c, c->acc.c_str() + 1);
    std::string().swap(c->acc);
    if (!admit(c)) {
      kill_conn(c);
      return;
    }
    c->st = ON;
    tx(c, "k", 1);
    flush(c);
    return;
  }
  size_t e = c->acc.find("\r\n\r\n");
  if (e == std::string::npos) return;
  // The proxies in front may re-case header names.
  std::string low = c->acc;
  for (auto& ch : low) ch = char(tolower(ch));
  size_t a = low.find("x-relay-room: "), b = low.find("sec-websocket-key: ");
  if (a == std::string::npos || b == std::string::npos) {
    kill_conn(c);
    return;
  }
  set_room(c, low.c_str() + a + 14);
  std::string key = c->acc.substr(b + 19, 24) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  u8 d[20];
  SHA1((u8*)key.data(), key.size(), d);
  std::string r =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
      b64(d, 20) + "\r\n\r\n";
  tx(c, r.data(), r.size());
  c->st = WHELLO;
  std::string().swap(c->acc);
  flush(c);
}
static void readable(Conn* c) {
  if (!c->ssl) {
    ssize_t k = recv(c->fd, gin, IN, 0);
    if (k <= 0) {
      if (k < 0 && errno == EAGAIN) return;
      kill_conn(c);
      return;
    }
    feed(c, gin, k);
  } else {
    if (bio != DIRECT) {
      ssize_t k = recv(c->fd, gin, IN, 0);
      if (k <= 0) {
        if (k < 0 && errno == EAGAIN) return;
        kill_conn(c);
        return;
      }
      gin_off = 0;
      gin_len = k;
    }
    if (!SSL_is_init_finished(c->ssl)) {
      int r = SSL_do_handshake(c->ssl);
      if (r != 1 && SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ) {
        gout.clear();
        kill_conn(c);
        return;
      }
      flush(c);
      if (r != 1) return;
    }
    while (c->st != DEAD) {
      int r = SSL_read(c->ssl, gplain, 65536);
      if (r > 0) {
        feed(c, gplain, r);
        if (bio == DIRECT && c->peer && !gout.empty()) break;  // peer is full
        continue;
      }
      if (SSL_get_error(c->ssl, r) == SSL_ERROR_WANT_READ) break;
      gout.clear();
      kill_conn(c);
      return;
    }
  }
  if (c->st != DEAD && c->peer) {
    fwd_out(c);
    if (c->peer) flush(c->peer);
  }
  gfwd.clear();
}
static void writable(Conn* c) {
  while (c->pend_off < c->pend.size()) {
    ssize_t k = send(c->fd, c->pend.data() + c->pend_off, c->pend.size() - c->pend_off, MSG_NOSIGNAL);
    if (k < 0) {
      if (errno != EAGAIN) kill_conn(c);
      break;
    }
    c->pend_off += k;
  }
  if (c->st == DEAD) return;
  if (c->pend_off == c->pend.size()) {
    std::vector<u8>().swap(c->pend);
    ev(c, c->in, false);
    if (c->peer) {
      ev(c->peer, true, c->peer->out);
      readable(c->peer);  // what it already decrypted or buffered
    }
  }
}
static Conn* adopt(int fd) {
  Conn* c = new Conn;
  c->fd = fd;
  c->st = ws ? UPG : HELLO;
  if (ctx) {
    c->ssl = SSL_new(ctx);
    BIO* b = BIO_new(bm);
    BIO_set_data(b, c);
    SSL_set_bio(c->ssl, b, b);
    SSL_set_accept_state(c->ssl);
  }
  return c;
}
static void reap() {
  for (Conn* c : dead) delete c;
  dead.clear();
}
int main(int argc, char** argv) {
  int port = 0;
  const char *cert = nullptr, *key = nullptr;
  for (int i = 1; i < argc; ++i) {
    std::string a = argv[i];
    auto v = [&] { return ++i < argc ? argv[i] : (char*)""; };
    if (a == "--port")
      port = atoi(v());
    else if (a == "--cert")
      cert = v();
    else if (a == "--key")
      key = v();
    else if (a == "--ws")
      ws = true;
    else if (a == "--keep-buffers")
      release = false;
    else if (a == "--in")
      IN = strtoul(v(), nullptr, 10);
    else if (a == "--bio") {
      std::string s = v();
      bio = s == "direct" ? DIRECT : s == "shared" ? SHARED : HYBRID;
    } else {
      fprintf(stderr, "floor: unknown option %s\n", a.c_str());
      return 1;
    }
  }
  signal(SIGPIPE, SIG_IGN);
  rlimit rl;
  getrlimit(RLIMIT_NOFILE, &rl);
  rl.rlim_cur = rl.rlim_max;
  setrlimit(RLIMIT_NOFILE, &rl);
  gin = (u8*)malloc(IN);
  gplain = (u8*)malloc(65536);
  gout.reserve(512 * 1024);
  gfwd.reserve(64 * 1024);
  if (cert) {
    ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1) {
      fprintf(stderr, "floor: certificate\n");
      return 1;
    }
    SSL_CTX_set_mode(ctx, release ? SSL_MODE_RELEASE_BUFFERS : 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    if (bio == DIRECT) {
      SSL_CTX_set_read_ahead(ctx, 1);
      SSL_CTX_set_default_read_buffer_len(ctx, 65536);
    }
    bm = BIO_meth_new(BIO_TYPE_SOURCE_SINK | 99, "loop");
    BIO_meth_set_write(bm, bwrite);
    BIO_meth_set_read(bm, bread);
    BIO_meth_set_ctrl(bm, [](BIO*, int cmd, long, void*) -> long { return cmd == BIO_CTRL_FLUSH; });
    BIO_meth_set_create(bm, [](BIO* b) {
      BIO_set_init(b, 1);
      return 1;
    });
  }
#ifdef FLOOR_ASIO
  tcp::acceptor acc(io, {asio::ip::address_v4::loopback(), (unsigned short)port});
  acc.listen(4096);
  std::function<void()> next = [&] {
    acc.async_accept([&](boost::system::error_code e, tcp::socket s) {
      if (!e) {
        s.set_option(tcp::no_delay(true));
        s.native_non_blocking(true);
        Conn* c = adopt(s.native_handle());
        c->sock.emplace(std::move(s));
        arm(c);
      }
      next();
    });
  };
  next();
  while (io.run_one()) reap();
#else
  ep = epoll_create1(0);
  int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in s{};
  s.sin_family = AF_INET;
  s.sin_port = htons(port);
  s.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(l, (sockaddr*)&s, sizeof s) || listen(l, 4096)) {
    perror("floor: bind");
    return 1;
  }
  epoll_event e{};
  e.events = EPOLLIN;
  epoll_ctl(ep, EPOLL_CTL_ADD, l, &e);
  static epoll_event evs[256];
  for (;;) {
    int n = epoll_wait(ep, evs, 256, -1);
    for (int i = 0; i < n; ++i) {
      Conn* c = (Conn*)evs[i].data.ptr;
      if (!c) {
        int fd;
        while ((fd = accept4(l, nullptr, nullptr, SOCK_NONBLOCK)) >= 0) {
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
          c = adopt(fd);
          epoll_event x{};
          x.events = EPOLLIN;
          x.data.ptr = c;
          epoll_ctl(ep, EPOLL_CTL_ADD, fd, &x);
        }
        continue;
      }
      if (c->st == DEAD) continue;
      if (evs[i].events & EPOLLOUT) writable(c);
      if (c->st != DEAD && c->in && (evs[i].events & ~unsigned(EPOLLOUT))) readable(c);
    }
    reap();
  }
#endif
}
