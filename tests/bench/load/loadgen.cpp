// The load generator behind ./dev bench: one thread, raw epoll and OpenSSL, lighter than what it measures. Past 500
// lines because it is one program without a library: everything it needs to be trusted stands in one place.
//
// loadgen: load generator and meter for the relay (see docs/performance.md).
// One thread, raw epoll, OpenSSL with custom BIOs over loop-shared buffers, so
// that it costs less CPU than whatever it measures.
//
// It only ever connects to loopback (127.0.0.0/8 or ::1) addresses.
#include <algorithm>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

using u8 = uint8_t;
using u64 = uint64_t;

// ---------------------------------------------------------------- options
struct Opt {
  std::string mode;
  std::string host = "127.0.0.1", sni = "localhost", cafile;
  int port = 0;
  bool insecure = false, plain = false, raw = false, json = false;
  bool tls12 = false;
  std::string cipher = "aes128";
  bool mask_zero = false, verify = false, text = false;
  int rooms = 0, sockets = 1000, concurrency = 0;
  size_t frame = 65536;
  double seconds = 5, warmup = 1, hold = 5, rate = 0;
  size_t window = 0, chunk = 0;
  bool duplex = false, resume = false, no_ws_close = false;
  int src_count = 0, per_ip = 60;
  std::vector<int> pids;
  int cpustat = -1;
  double timeout = 20;
} opt;

[[noreturn]] static void die(const char* f, ...) {
  va_list ap;
  va_start(ap, f);
  fprintf(stderr, "loadgen: ");
  vfprintf(stderr, f, ap);
  fputc('\n', stderr);
  va_end(ap);
  if (opt.json) {
    char b[512];
    va_start(ap, f);
    vsnprintf(b, sizeof b, f, ap);
    va_end(ap);
    std::string s;
    for (char* p = b; *p; ++p) {
      if (*p == '"' || *p == '\\') s += '\\';
      s += (*p < 32) ? ' ' : *p;
    }
    printf("{\"mode\":\"%s\",\"error\":\"%s\"}\n", opt.mode.c_str(), s.c_str());
  }
  fflush(stdout);
  _exit(2);
}

static u64 now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return u64(t.tv_sec) * 1000000000ull + t.tv_nsec;
}

// ---------------------------------------------------------------- proc meters
struct ProcStat {
  double cpu = 0;  // utime+stime, s
  double user = 0, sys = 0;
  long rss_kb = 0;   // VmRSS
  long anon_kb = 0;  // RssAnon
};
static ProcStat proc_stat(int pid) {
  ProcStat r;
  char p[64], b[4096];
  snprintf(p, sizeof p, "/proc/%d/stat", pid);
  FILE* f = fopen(p, "r");
  if (!f) die("no process %d (did the relay die?)", pid);
  size_t n = fread(b, 1, sizeof b - 1, f);
  fclose(f);
  b[n] = 0;
  char* q = strrchr(b, ')');
  if (!q) die("bad /proc/%d/stat", pid);
  unsigned long ut = 0, st = 0;
  sscanf(q + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &ut, &st);
  double hz = sysconf(_SC_CLK_TCK);
  r.user = ut / hz;
  r.sys = st / hz;
  r.cpu = r.user + r.sys;
  snprintf(p, sizeof p, "/proc/%d/status", pid);
  if ((f = fopen(p, "r"))) {
    while (fgets(b, sizeof b, f)) {
      sscanf(b, "VmRSS: %ld", &r.rss_kb);
      sscanf(b, "RssAnon: %ld", &r.anon_kb);
    }
    fclose(f);
  }
  return r;
}
static ProcStat procs() {
  ProcStat s;
  for (int p : opt.pids) {
    ProcStat r = proc_stat(p);
    s.cpu += r.cpu;
    s.user += r.user;
    s.sys += r.sys;
    s.rss_kb += r.rss_kb;
    s.anon_kb += r.anon_kb;
  }
  return s;
}
struct CpuStat {
  double busy = 0, steal = 0, softirq = 0;
};
static CpuStat cpu_stat() {
  CpuStat c;
  if (opt.cpustat < 0) return c;
  FILE* f = fopen("/proc/stat", "r");
  if (!f) return c;
  char b[512], tag[16];
  snprintf(tag, sizeof tag, "cpu%d ", opt.cpustat);
  double hz = sysconf(_SC_CLK_TCK);
  while (fgets(b, sizeof b, f)) {
    if (strncmp(b, tag, strlen(tag))) continue;
    unsigned long us, ni, sy, id, io, ir, so, sl;
    if (sscanf(b + strlen(tag), "%lu %lu %lu %lu %lu %lu %lu %lu", &us, &ni, &sy, &id, &io, &ir, &so, &sl) == 8) {
      c.busy = (us + ni + sy + ir + so) / hz;
      c.steal = sl / hz;
      c.softirq = (ir + so) / hz;
    }
  }
  fclose(f);
  return c;
}
static double self_cpu() {
  rusage r;
  getrusage(RUSAGE_SELF, &r);
  return r.ru_utime.tv_sec + r.ru_utime.tv_usec * 1e-6 + r.ru_stime.tv_sec + r.ru_stime.tv_usec * 1e-6;
}
static long meminfo_kb(const char* key) {
  FILE* f = fopen("/proc/meminfo", "r");
  if (!f) return 0;
  char b[256];
  long v = 0;
  size_t kl = strlen(key);
  while (fgets(b, sizeof b, f))
    if (!strncmp(b, key, kl) && b[kl] == ':') v = atol(b + kl + 1);
  fclose(f);
  return v;
}
static long sockstat_mem_kb() {  // TCP "mem" pages
  FILE* f = fopen("/proc/net/sockstat", "r");
  if (!f) return 0;
  char b[256];
  long v = 0;
  while (fgets(b, sizeof b, f))
    if (!strncmp(b, "TCP:", 4)) {
      char* m = strstr(b, " mem ");
      if (m) v = atol(m + 5);
    }
  fclose(f);
  return v * (sysconf(_SC_PAGESIZE) / 1024);
}

// ---------------------------------------------------------------- loop state
static int ep = -1;
static SSL_CTX* ctx = nullptr;
static constexpr size_t IN_SZ = 256 * 1024, PLAIN_SZ = 64 * 1024;
static u8* g_in;  // ciphertext received for the connection being served
static size_t g_in_off, g_in_len;
static u8* g_plain;            // its plaintext
static std::vector<u8> g_out;  // bytes to send for the connection being served
static BIO_METHOD* g_bm;
static sockaddr_in g_dst;
static SSL_SESSION* g_sess = nullptr;
static u64 g_resumed = 0;

enum St : u8 { S_TCP, S_TLS, S_UPG, S_CHAL, S_OK, S_READY, S_CLOSING, S_DEAD };
static const char* st_name[] = {"tcp connect", "TLS handshake", "upgrade response", "challenge",
                                "admission",   "ready",         "closing",          "dead"};

struct Room;
struct Conn {
  int fd = -1;
  SSL* ssl = nullptr;
  St st = S_TCP;
  char role = 'm';
  bool want_out = false;
  Room* room = nullptr;
  std::string roomhex;
  char key[25];
  // WebSocket parser
  u8 hdr[14];
  u8 hlen = 0, hneed = 2, opcode = 0;
  bool fin = true;
  u64 remain = 0, plen = 0;
  std::string small;  // control payloads, admission messages, http response
  std::vector<u8> pend;
  size_t pend_off = 0;
  // traffic
  u64 sent = 0, rcvd = 0;  // payload bytes
  unsigned variant = 0;
  u64 deadline = 0;
};
struct Room {
  Conn *mac = nullptr, *phone = nullptr;
};

static std::vector<std::unique_ptr<Conn>> conns;  // long-lived (throughput, idle, latency)
static std::vector<Conn*> graveyard;
static u64 g_conn_no = 0;
static unsigned g_frames_rx = 0;

// callbacks of the mode in force
static void (*on_ready)(Conn*) = nullptr;
static void (*on_bytes)(Conn*, size_t) = nullptr;  // payload bytes of data frames
static void (*on_msg)(Conn*) = nullptr;            // small complete message (collect mode)
static void (*on_drained)(Conn*) = nullptr;        // pending output went out
static void (*on_closed)(Conn*) = nullptr;         // peer closed after S_CLOSING
static bool g_collect = false;                     // collect data payloads (latency)

static const char* ssl_err() {
  static char b[256];
  unsigned long e = ERR_peek_last_error();
  if (!e) return "no detail";
  ERR_error_string_n(e, b, sizeof b);
  return b;
}

static int bio_write(BIO*, const char* d, int n) {
  g_out.insert(g_out.end(), (const u8*)d, (const u8*)d + n);
  return n;
}
static int bio_read(BIO* b, char* d, int n) {
  size_t have = g_in_len - g_in_off;
  BIO_clear_retry_flags(b);
  if (!have) {
    BIO_set_retry_read(b);
    return -1;
  }
  size_t k = std::min<size_t>(have, n);
  memcpy(d, g_in + g_in_off, k);
  g_in_off += k;
  return int(k);
}
static long bio_ctrl(BIO*, int cmd, long, void*) { return cmd == BIO_CTRL_FLUSH ? 1 : 0; }
static int bio_create(BIO* b) {
  BIO_set_init(b, 1);
  return 1;
}

static void upd_epoll(Conn* c, bool out) {
  if (c->want_out == out) return;
  c->want_out = out;
  epoll_event e{};
  e.events = EPOLLIN | (out ? unsigned(EPOLLOUT) : 0u);
  e.data.ptr = c;
  if (epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e)) die("epoll_ctl: %s", strerror(errno));
}

static void conn_gone(Conn* c, const char* why);

static void flush(Conn* c) {  // send g_out (and what was pending) for c
  if (c->pend_off < c->pend.size()) {
    c->pend.insert(c->pend.end(), g_out.begin(), g_out.end());
    g_out.clear();
    return;  // EPOLLOUT will continue
  }
  size_t off = 0;
  while (off < g_out.size()) {
    ssize_t k = send(c->fd, g_out.data() + off, g_out.size() - off, MSG_NOSIGNAL);
    if (k < 0) {
      if (errno == EAGAIN) break;
      if (errno == EINTR) continue;
      g_out.clear();
      conn_gone(c, strerror(errno));
      return;
    }
    off += k;
  }
  if (off < g_out.size()) {
    c->pend.assign(g_out.begin() + off, g_out.end());
    c->pend_off = 0;
    upd_epoll(c, true);
  }
  g_out.clear();
}

static void tx(Conn* c, const void* d, size_t n) {  // queue application bytes (into g_out)
  if (!c->ssl) {
    g_out.insert(g_out.end(), (const u8*)d, (const u8*)d + n);
    return;
  }
  while (n) {
    int k = SSL_write(c->ssl, d, int(std::min<size_t>(n, opt.chunk ? opt.chunk : 1 << 30)));
    if (k <= 0) die("SSL_write failed: %s", ssl_err());
    d = (const u8*)d + k;
    n -= k;
  }
}

static size_t ws_header(u8* h, int opcode, u64 n, const u8* mask) {
  size_t o = 0;
  h[o++] = 0x80 | opcode;
  if (n < 126)
    h[o++] = 0x80 | u8(n);
  else if (n < 65536) {
    h[o++] = 0x80 | 126;
    h[o++] = n >> 8;
    h[o++] = n;
  } else {
    h[o++] = 0x80 | 127;
    for (int i = 7; i >= 0; --i) h[o++] = u8(n >> (8 * i));
  }
  memcpy(h + o, mask, 4);
  return o + 4;
}
static u64 rng_s = 88172645463325252ull;
static u64 rng() {
  rng_s ^= rng_s << 13;
  rng_s ^= rng_s >> 7;
  rng_s ^= rng_s << 17;
  return rng_s;
}
static void tx_frame(Conn* c, int opcode, const void* d, size_t n) {  // small frames, masked live
  u8 b[14 + 4096], m[4] = {0, 0, 0, 0};
  if (n > 4096) die("internal: small frame too large");
  if (!opt.mask_zero) {
    u64 r = rng();
    memcpy(m, &r, 4);
  }
  size_t h = ws_header(b, opcode, n, m);
  for (size_t i = 0; i < n; ++i) b[h + i] = ((const u8*)d)[i] ^ m[i & 3];
  tx(c, b, h + n);
}

static std::string b64(const u8* p, size_t n) {
  std::string s(4 * ((n + 2) / 3) + 1, 0);
  int k = EVP_EncodeBlock((u8*)s.data(), p, int(n));
  s.resize(k);
  return s;
}
static std::string accept_key(const char* key) {
  std::string s = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  u8 d[20];
  SHA1((const u8*)s.data(), s.size(), d);
  return b64(d, 20);
}

static void conn_close(Conn* c) {
  if (c->st == S_DEAD) return;
  c->st = S_DEAD;
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
  if (c->ssl) SSL_free(c->ssl);
  c->ssl = nullptr;
  graveyard.push_back(c);
}
static void conn_gone(Conn* c, const char* why) {
  if (c->st == S_DEAD) return;
  if (c->st == S_CLOSING) {
    if (on_closed)
      on_closed(c);
    else
      conn_close(c);
    return;
  }
  die("connection lost in state '%s' (role %s): %s", st_name[c->st], c->role == 'm' ? "mac" : "phone", why);
}

static void start_app(Conn* c) {  // TLS is up: speak
  if (opt.raw) {
    std::string h(1, c->role);
    h += c->roomhex;
    tx(c, h.data(), h.size());
    c->st = S_OK;
  } else {
    u8 k[16];
    u64 a = rng(), b = rng();
    memcpy(k, &a, 8);
    memcpy(k + 8, &b, 8);
    strcpy(c->key, b64(k, 16).c_str());
    std::string r = "GET / HTTP/1.1\r\nHost: " + opt.sni + ":" + std::to_string(opt.port) +
                    "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " + c->key +
                    "\r\nSec-WebSocket-Version: 13\r\nx-relay-room: " + c->roomhex + "\r\n\r\n";
    tx(c, r.data(), r.size());
    c->st = S_UPG;
  }
  flush(c);
}

static void control(Conn* c) {
  if (c->opcode == 9) {
    tx_frame(c, 10, c->small.data(), std::min<size_t>(c->small.size(), 125));
    flush(c);
  } else if (c->opcode == 8) {
    if (c->st == S_CLOSING) {
      conn_gone(c, "close");
      return;
    }
    int code = c->small.size() >= 2 ? (u8(c->small[0]) << 8 | u8(c->small[1])) : 1005;
    die("relay closed the socket in state '%s' (role %s): code %d reason '%s'", st_name[c->st],
        c->role == 'm' ? "mac" : "phone", code, c->small.size() > 2 ? c->small.c_str() + 2 : "");
  }
}

static void message(Conn* c) {  // complete admission message in c->small
  if (c->st == S_CHAL) {
    if (c->small.find("\"nonce\"") == std::string::npos) die("expected a challenge, got: %.200s", c->small.c_str());
    tx_frame(c, 1, "{}", 2);
    c->st = S_OK;
    flush(c);
  } else if (c->st == S_OK) {
    if (c->small.find("\"ok\":true") == std::string::npos) die("not admitted: %.200s", c->small.c_str());
    c->st = S_READY;
    c->small.clear();
    c->small.shrink_to_fit();
    on_ready(c);
  } else if (c->st == S_READY) {
    if (on_msg) on_msg(c);
  }
}

static void hello(Conn* c) {
  const char* h = c->role == 'm' ? "{\"v\":1,\"role\":\"mac\"}" : "{\"v\":1,\"role\":\"phone\"}";
  tx_frame(c, 1, h, strlen(h));
  c->st = S_CHAL;
  flush(c);
}

static std::vector<u8> g_payload;  // expected payload (verify)

static void feed(Conn* c, const u8* p, size_t n) {
  if (opt.raw) {
    if (c->st == S_OK) {
      if (*p != 'k') die("raw forwarder: bad hello answer 0x%02x", *p);
      ++p, --n;
      c->st = S_READY;
      on_ready(c);
    }
    if (n && on_bytes) on_bytes(c, n);
    return;
  }
  if (c->st == S_UPG) {
    c->small.append((const char*)p, n);
    size_t e = c->small.find("\r\n\r\n");
    if (e == std::string::npos) {
      if (c->small.size() > 8192) die("upgrade response too large");
      return;
    }
    std::string head = c->small.substr(0, e + 2), rest = c->small.substr(e + 4);
    if (head.compare(0, 12, "HTTP/1.1 101")) die("upgrade refused: %.300s", c->small.c_str());
    std::string low = head;
    for (auto& ch : low) ch = char(tolower(ch));
    size_t a = low.find("sec-websocket-accept:");
    std::string want = accept_key(c->key);
    if (a == std::string::npos || head.find(want, a) == std::string::npos) die("wrong Sec-WebSocket-Accept");
    c->small.clear();
    hello(c);
    if (!rest.empty() && c->st != S_DEAD) feed(c, (const u8*)rest.data(), rest.size());
    return;
  }
  while (n && c->st != S_DEAD) {
    if (c->hlen < c->hneed) {
      c->hdr[c->hlen++] = *p++;
      --n;
      if (c->hlen == 2) {
        u8 l = c->hdr[1];
        if (l & 0x80) die("relay sent a masked frame");
        if (c->hdr[0] & 0x70) die("relay sent reserved bits");
        c->hneed = l == 126 ? 4 : l == 127 ? 10 : 2;
      }
      if (c->hlen < c->hneed) continue;
      u64 len = c->hdr[1] & 0x7f;
      if (c->hneed == 4)
        len = u64(c->hdr[2]) << 8 | c->hdr[3];
      else if (c->hneed == 10) {
        len = 0;
        for (int i = 2; i < 10; ++i) len = len << 8 | c->hdr[i];
      }
      c->opcode = c->hdr[0] & 15;
      c->fin = c->hdr[0] & 0x80;
      c->remain = c->plen = len;
      if (c->opcode > 2 && c->opcode < 8) die("bad opcode %d", c->opcode);
      bool ctl = c->opcode >= 8;
      if (ctl || c->st != S_READY || g_collect) {
        if (len > 8192)
          die("unexpected large frame (%llu bytes) in state '%s'", (unsigned long long)len, st_name[c->st]);
        c->small.clear();
      } else if (len != opt.frame && c->fin && c->opcode != 0 && c->st == S_READY)
        die("frame of %llu bytes, expected %zu", (unsigned long long)len, opt.frame);
      if (len) continue;
    } else {
      size_t k = std::min<u64>(n, c->remain);
      bool ctl = c->opcode >= 8;
      if (ctl || c->st != S_READY || g_collect)
        c->small.append((const char*)p, k);
      else {
        if (opt.verify && memcmp(p, g_payload.data() + (c->plen - c->remain), k))
          die("payload was altered by the relay");
        c->rcvd += k;
        if (on_bytes) on_bytes(c, k);
      }
      c->remain -= k;
      p += k;
      n -= k;
      if (c->remain) return;
    }
    // frame complete
    c->hlen = 0;
    c->hneed = 2;
    if (c->opcode >= 8)
      control(c);
    else if (c->st != S_READY || g_collect) {
      if (c->st != S_CLOSING) message(c);
    } else
      ++g_frames_rx;
  }
}

static void tls_step(Conn* c) {
  int r = SSL_do_handshake(c->ssl);
  if (r == 1) {
    if (SSL_session_reused(c->ssl)) ++g_resumed;
    start_app(c);
    return;
  }
  int e = SSL_get_error(c->ssl, r);
  if (e != SSL_ERROR_WANT_READ) {
    long v = SSL_get_verify_result(c->ssl);
    die("TLS handshake failed: %s%s%s", ssl_err(), v != X509_V_OK ? " / " : "",
        v != X509_V_OK ? X509_verify_cert_error_string(v) : "");
  }
  flush(c);
}

static void on_readable(Conn* c) {
  ssize_t k = recv(c->fd, g_in, c->ssl || opt.plain ? IN_SZ : IN_SZ, 0);
  if (k < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    conn_gone(c, strerror(errno));
    return;
  }
  if (k == 0) {
    conn_gone(c, "EOF");
    return;
  }
  if (!c->ssl) {
    feed(c, g_in, k);
    return;
  }
  g_in_off = 0;
  g_in_len = k;
  if (c->st == S_TLS) {
    tls_step(c);
    if (c->st == S_TLS || c->st == S_DEAD) return;
  }
  while (c->st != S_DEAD) {
    int r = SSL_read(c->ssl, g_plain, PLAIN_SZ);
    if (r > 0) {
      // feed() may serve other connections' output only (g_out), never g_in
      feed(c, g_plain, r);
      continue;
    }
    int e = SSL_get_error(c->ssl, r);
    if (e == SSL_ERROR_WANT_READ) break;
    if (e == SSL_ERROR_ZERO_RETURN) {
      conn_gone(c, "close_notify");
      return;
    }
    if (c->st == S_CLOSING) {
      conn_gone(c, "tls");
      return;
    }
    die("SSL_read failed in state '%s': %s", st_name[c->st], ssl_err());
  }
}

static void on_writable(Conn* c) {
  if (c->st == S_TCP) {
    int e = 0;
    socklen_t l = sizeof e;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &l);
    if (e) die("connect: %s", strerror(e));
    upd_epoll(c, false);
    if (opt.plain)
      start_app(c);
    else {
      c->st = S_TLS;
      g_in_off = g_in_len = 0;
      tls_step(c);
    }
    return;
  }
  while (c->pend_off < c->pend.size()) {
    ssize_t k = send(c->fd, c->pend.data() + c->pend_off, c->pend.size() - c->pend_off, MSG_NOSIGNAL);
    if (k < 0) {
      if (errno == EAGAIN) return;
      if (errno == EINTR) continue;
      conn_gone(c, strerror(errno));
      return;
    }
    c->pend_off += k;
  }
  c->pend.clear();
  c->pend_off = 0;
  upd_epoll(c, false);
  if (on_drained) on_drained(c);
}

static Conn* dial(char role, const std::string& room) {
  Conn* c = new Conn;
  c->role = role;
  c->roomhex = room;
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (c->fd < 0) die("socket: %s", strerror(errno));
  int one = 1;
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (opt.src_count > 0) {
    setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    setsockopt(c->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    unsigned i = unsigned(g_conn_no % opt.src_count);
    sockaddr_in s{};
    s.sin_family = AF_INET;
    // 127.0.0.2 .. 127.0.0.251, then 127.0.1.2 ...
    s.sin_addr.s_addr = htonl(0x7f000000u + ((i / 250) << 8) + 2 + i % 250);
    if (bind(c->fd, (sockaddr*)&s, sizeof s)) die("bind: %s", strerror(errno));
  }
  ++g_conn_no;
  if (connect(c->fd, (sockaddr*)&g_dst, sizeof g_dst) && errno != EINPROGRESS) die("connect: %s", strerror(errno));
  if (!opt.plain) {
    c->ssl = SSL_new(ctx);
    BIO *r = BIO_new(g_bm), *w = BIO_new(g_bm);
    SSL_set_bio(c->ssl, r, w);
    SSL_set_connect_state(c->ssl);
    SSL_set_tlsext_host_name(c->ssl, opt.sni.c_str());
    if (!opt.insecure) SSL_set1_host(c->ssl, opt.sni.c_str());
    if (opt.resume && g_sess) SSL_set_session(c->ssl, g_sess);
  }
  epoll_event e{};
  e.events = EPOLLIN | EPOLLOUT;
  e.data.ptr = c;
  c->want_out = true;
  if (epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e)) die("epoll add: %s", strerror(errno));
  return c;
}

static std::string new_room() {
  u8 b[32];
  RAND_bytes(b, 32);
  static const char* H = "0123456789abcdef";
  std::string s(64, 0);
  for (int i = 0; i < 32; ++i) s[2 * i] = H[b[i] >> 4], s[2 * i + 1] = H[b[i] & 15];
  return s;
}

static void turn(int timeout_ms) {
  static epoll_event ev[512];
  int n = epoll_wait(ep, ev, 512, timeout_ms);
  if (n < 0 && errno != EINTR) die("epoll_wait: %s", strerror(errno));
  for (int i = 0; i < n; ++i) {
    Conn* c = (Conn*)ev[i].data.ptr;
    if (c->st == S_DEAD) continue;
    if (ev[i].events & EPOLLOUT) on_writable(c);
    if (c->st != S_DEAD && c->st != S_TCP && (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
      on_readable(c);
    else if (c->st == S_TCP && (ev[i].events & (EPOLLHUP | EPOLLERR))) {
      int e = 0;
      socklen_t l = sizeof e;
      getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &l);
      die("connect: %s", strerror(e));
    }
  }
  for (Conn* c : graveyard) delete c;
  graveyard.clear();
}

// ---------------------------------------------------------------- results
struct Json {
  std::string s = "{";
  bool first = true;
  void key(const char* k) {
    if (!first) s += ',';
    first = false;
    s += '"';
    s += k;
    s += "\":";
  }
  void num(const char* k, double v) {
    char b[64];
    snprintf(b, sizeof b, "%.6g", v);
    key(k);
    s += b;
  }
  void str(const char* k, const std::string& v) {
    key(k);
    s += '"' + v + '"';
  }
  void done() {
    if (opt.json) printf("%s}\n", s.c_str());
    fflush(stdout);
  }
};

// ---------------------------------------------------------------- rooms set-up
static int g_ready = 0;
static std::vector<Room> rooms;
static void open_rooms(int n) {
  rooms.assign(n, {});
  static auto rdy = [](Conn*) { ++g_ready; };
  on_ready = [](Conn* c) { rdy(c); };
  u64 limit = now_ns() + u64(opt.timeout * 1e9);
  for (int i = 0; i < n; ++i) {
    std::string hex = new_room();
    for (char role : {'m', 'p'}) {
      int want = g_ready + 1;
      Conn* c = dial(role, hex);
      c->room = &rooms[i];
      (role == 'm' ? rooms[i].mac : rooms[i].phone) = c;
      while (g_ready < want) {
        turn(100);
        if (now_ns() > limit) die("timed out in state '%s' while opening room %d", st_name[c->st], i);
      }
    }
  }
}

// ---------------------------------------------------------------- throughput
static std::vector<std::vector<u8>> g_frames;
static u64 g_rx = 0;
static bool g_run = true;
static void build_frames() {
  g_payload.resize(opt.frame);
  for (size_t i = 0; i < opt.frame; ++i) g_payload[i] = opt.text ? u8('a' + i % 26) : u8(rng());
  int variants = opt.raw ? 1 : opt.mask_zero ? 1 : 4;
  for (int v = 0; v < variants; ++v) {
    std::vector<u8> f;
    if (!opt.raw) {
      u8 h[14], m[4] = {0, 0, 0, 0};
      if (!opt.mask_zero) {
        u64 r = rng() | 0x01010101;
        memcpy(m, &r, 4);
      }
      size_t k = ws_header(h, opt.text ? 1 : 2, opt.frame, m);
      f.assign(h, h + k);
      size_t o = f.size();
      f.resize(o + opt.frame);
      for (size_t i = 0; i < opt.frame; ++i) f[o + i] = g_payload[i] ^ m[i & 3];
    } else
      f = g_payload;
    g_frames.push_back(std::move(f));
  }
}
static bool pump(Conn* c, size_t max_frames) {  // send while the window allows; true if any went out
  Conn* peer = c->role == 'm' ? c->room->phone : c->room->mac;
  if (c->want_out || !g_run) return false;
  bool any = false;
  while (max_frames-- && c->sent + opt.frame - peer->rcvd <= opt.window && g_out.size() < 256 * 1024) {
    auto& f = g_frames[c->variant++ % g_frames.size()];
    tx(c, f.data(), f.size());
    c->sent += opt.frame;
    any = true;
  }
  if (any) flush(c);
  return any;
}
static void throughput() {
  if (!opt.rooms) opt.rooms = 4;
  if (!opt.window) opt.window = std::max<size_t>(512 * 1024, 4 * opt.frame);
  build_frames();
  open_rooms(opt.rooms);
  bool paced = opt.rate > 0;
  if (opt.raw)
    on_bytes = [](Conn* c, size_t n) {
      c->rcvd += n;
      g_rx += n;
    };
  else
    on_bytes = [](Conn*, size_t n) { g_rx += n; };
  if (!paced)
    on_drained = [](Conn* c) {
      if (c->role == 'm' || opt.duplex) pump(c, ~size_t(0));
    };
  auto senders = [&](auto&& f) {
    for (auto& r : rooms) {
      f(r.mac);
      if (opt.duplex) f(r.phone);
    }
  };
  auto fill = [&] { senders([](Conn* c) { pump(c, ~size_t(0)); }); };
  u64 t0 = now_ns(), t_start = t0 + u64(opt.warmup * 1e9), t_end = t_start + u64(opt.seconds * 1e9);
  bool started = false;
  ProcStat p0{};
  CpuStat c0{};
  double s0 = 0;
  u64 rx0 = 0, ts = 0;
  double budget = 0;
  u64 last = t0;
  size_t rr = 0, nsend = rooms.size() * (opt.duplex ? 2 : 1);
  u64 short_ticks = 0, ticks = 0;
  u64 stall_rx = 0, stall_t = t0;
  for (;;) {
    u64 t = now_ns();
    if (!started && t >= t_start) {
      started = true;
      p0 = procs();
      c0 = cpu_stat();
      s0 = self_cpu();
      rx0 = g_rx;
      ts = now_ns();
      short_ticks = ticks = 0;
    }
    if (started && t >= t_end) break;
    if (g_rx != stall_rx)
      stall_rx = g_rx, stall_t = t;
    else if (t - stall_t > u64(opt.timeout * 1e9))
      die("no progress for %g s (a frame was lost, or the relay stalled)", opt.timeout);
    if (paced) {
      budget += opt.rate * 1e6 * (t - last) * 1e-9;
      last = t;
      budget = std::min(budget, std::max(opt.rate * 1e6 * 0.02, 2.0 * opt.frame));
      ++ticks;
      size_t tried = 0;
      while (budget >= opt.frame && tried < nsend) {
        size_t i = rr++ % nsend;
        Conn* c = opt.duplex ? (i & 1 ? rooms[i / 2].phone : rooms[i / 2].mac) : rooms[i].mac;
        if (pump(c, 1))
          budget -= opt.frame, tried = 0;
        else
          ++tried;
      }
      if (budget >= opt.frame) ++short_ticks;
      turn(1);
    } else {
      fill();
      turn(10);
    }
  }
  u64 te = now_ns();
  if (g_rx == rx0) die("no payload arrived in the measured interval");
  ProcStat p1 = procs();
  CpuStat c1 = cpu_stat();
  double s1 = self_cpu(), secs = (te - ts) * 1e-9, bytes = double(g_rx - rx0), gb = bytes / 1e9;
  double mbs = bytes / 1e6 / secs;
  Json j;
  j.str("mode", "throughput");
  j.num("rooms", opt.rooms);
  j.num("frame", opt.frame);
  j.num("seconds", secs);
  j.num("MBps", mbs);
  j.num("frames_per_s", bytes / opt.frame / secs);
  j.num("rate_MBps", opt.rate);
  j.num("behind_pct", ticks ? 100.0 * short_ticks / ticks : 0);
  printf("throughput: %d rooms, %zu-byte frames%s: %.1f MB/s, %.0f frames/s\n", opt.rooms, opt.frame,
         opt.duplex ? ", duplex" : "", mbs, bytes / opt.frame / secs);
  if (!opt.pids.empty()) {
    double cpu = p1.cpu - p0.cpu;
    printf("  relay CPU %.2f s (%.0f%%; user %.2f sys %.2f), %.3f CPU-s/GB, RSS %ld kB\n", cpu, 100 * cpu / secs,
           p1.user - p0.user, p1.sys - p0.sys, cpu / gb, p1.rss_kb);
    j.num("relay_cpu_s", cpu);
    j.num("relay_cpu_pct", 100 * cpu / secs);
    j.num("relay_user_s", p1.user - p0.user);
    j.num("relay_sys_s", p1.sys - p0.sys);
    j.num("cpu_s_per_GB", cpu / gb);
    j.num("cpu_us_per_frame", cpu * 1e6 / (bytes / opt.frame));
    j.num("rss_kB", p1.rss_kb);
  }
  if (opt.cpustat >= 0) {
    printf("  cpu%d busy %.2f s (%.3f s/GB), softirq %.2f s, steal %.2f s\n", opt.cpustat, c1.busy - c0.busy,
           (c1.busy - c0.busy) / gb, c1.softirq - c0.softirq, c1.steal - c0.steal);
    j.num("cpu_busy_s", c1.busy - c0.busy);
    j.num("cpu_busy_s_per_GB", (c1.busy - c0.busy) / gb);
    j.num("cpu_softirq_s", c1.softirq - c0.softirq);
    j.num("cpu_steal_s", c1.steal - c0.steal);
  }
  printf("  loadgen CPU %.2f s (%.0f%%)\n", s1 - s0, 100 * (s1 - s0) / secs);
  j.num("loadgen_cpu_pct", 100 * (s1 - s0) / secs);
  if (paced && bytes / 1e6 / secs < 0.98 * opt.rate)
    fprintf(stderr, "loadgen: warning: the paced rate was not reached (%.1f of %.1f MB/s)\n", mbs, opt.rate);
  j.done();
}

// ---------------------------------------------------------------- idle
static void idle() {
  if (!opt.src_count) opt.src_count = (opt.sockets + opt.per_ip - 1) / opt.per_ip;
  if (!opt.concurrency) opt.concurrency = 32;
  on_ready = [](Conn*) { ++g_ready; };
  ProcStat p0 = procs();
  long slab0 = meminfo_kb("Slab"), avail0 = meminfo_kb("MemAvailable"), sk0 = sockstat_mem_kb();
  double self0 = proc_stat(getpid()).rss_kb;
  u64 t0 = now_ns(), last = t0;
  int opened = 0, seen = 0;
  while (g_ready < opt.sockets) {
    while (opened < opt.sockets && opened - g_ready < opt.concurrency) {
      dial('m', new_room());
      ++opened;
    }
    turn(100);
    u64 t = now_ns();
    if (g_ready != seen) seen = g_ready, last = t;
    if (t - last > u64(opt.timeout * 1e9))
      die("no admission for %g s; %d of %d parked", opt.timeout, g_ready, opt.sockets);
  }
  u64 t1 = now_ns();
  ProcStat pr = procs();
  u64 tend = now_ns() + u64(opt.hold * 1e9);
  while (now_ns() < tend) turn(50);
  ProcStat p1 = procs();
  long slab1 = meminfo_kb("Slab"), avail1 = meminfo_kb("MemAvailable"), sk1 = sockstat_mem_kb();
  double self1 = proc_stat(getpid()).rss_kb, n = opt.sockets;
  double per = (p1.rss_kb - p0.rss_kb) * 1024.0 / n;
  printf("idle: %d parked in %.2f s; relay RSS %ld -> %ld kB: %.0f bytes per socket (anon %.0f)\n", opt.sockets,
         (t1 - t0) * 1e-9, p0.rss_kb, p1.rss_kb, per, (p1.anon_kb - p0.anon_kb) * 1024.0 / n);
  printf("  relay CPU: ramp %.2f s (%.2f ms per socket), idle %.3f s in %.1f s\n", pr.cpu - p0.cpu,
         1e3 * (pr.cpu - p0.cpu) / n, p1.cpu - pr.cpu, opt.hold);
  printf("  kernel, both ends of all legs: slab %+.0f bytes per socket, TCP buffers %+.0f; available memory %+.0f\n",
         (slab1 - slab0) * 1024.0 / n, (sk1 - sk0) * 1024.0 / n, (avail1 - avail0) * 1024.0 / n);
  Json j;
  j.str("mode", "idle");
  j.num("sockets", n);
  j.num("rss_before_kB", p0.rss_kb);
  j.num("rss_after_kB", p1.rss_kb);
  j.num("bytes_per_socket", per);
  j.num("anon_bytes_per_socket", (p1.anon_kb - p0.anon_kb) * 1024.0 / n);
  j.num("ramp_s", (t1 - t0) * 1e-9);
  j.num("ramp_cpu_ms_per_socket", 1e3 * (pr.cpu - p0.cpu) / n);
  j.num("idle_cpu_s", p1.cpu - pr.cpu);
  j.num("hold_s", opt.hold);
  j.num("kernel_slab_bytes_per_socket_all_ends", (slab1 - slab0) * 1024.0 / n);
  j.num("kernel_tcpmem_bytes_per_socket_all_ends", (sk1 - sk0) * 1024.0 / n);
  j.num("memavailable_bytes_per_socket_all", (avail0 - avail1) * 1024.0 / n);
  j.num("loadgen_bytes_per_socket", (self1 - self0) * 1024.0 / n);
  j.done();
}

// ---------------------------------------------------------------- handshake
static u64 g_done = 0, g_closed = 0;
static int g_open = 0;
static std::vector<double> g_adm_us;
static void handshake() {
  if (!opt.concurrency) opt.concurrency = 16;
  if (!opt.src_count) opt.src_count = 250;
  on_ready = [](Conn* c) {
    ++g_done;
    g_adm_us.push_back((now_ns() - c->deadline) * 1e-3);
    c->st = S_CLOSING;
    if (opt.raw || opt.no_ws_close) {
      if (c->ssl) {
        SSL_shutdown(c->ssl);
        flush(c);
      }
      shutdown(c->fd, SHUT_WR);
    } else {
      u8 code[2] = {3, 232};
      tx_frame(c, 8, code, 2);
      flush(c);
    }
  };
  on_closed = [](Conn* c) {
    --g_open;
    ++g_closed;
    conn_close(c);
  };
  u64 t0 = now_ns(), t_start = t0 + u64(opt.warmup * 1e9), t_end = t_start + u64(opt.seconds * 1e9);
  bool started = false;
  ProcStat p0{};
  CpuStat c0{};
  double s0 = 0;
  u64 d0 = 0, r0 = 0, ts = 0, last = t0, seen = 0;
  for (;;) {
    u64 t = now_ns();
    if (!started && t >= t_start) {
      started = true;
      p0 = procs();
      c0 = cpu_stat();
      s0 = self_cpu();
      d0 = g_done;
      r0 = g_resumed;
      ts = now_ns();
      g_adm_us.clear();
    }
    if (started && t >= t_end) break;
    while (g_open < opt.concurrency) {
      Conn* c = dial('m', new_room());
      c->deadline = t;  // (start time)
      ++g_open;
    }
    turn(50);
    if (g_closed != seen) seen = g_closed, last = now_ns();
    if (now_ns() - last > u64(opt.timeout * 1e9)) die("no admission completed for %g s", opt.timeout);
  }
  u64 te = now_ns();
  ProcStat p1 = procs();
  CpuStat c1 = cpu_stat();
  double s1 = self_cpu(), secs = (te - ts) * 1e-9, n = double(g_done - d0), cpu = p1.cpu - p0.cpu;
  std::sort(g_adm_us.begin(), g_adm_us.end());
  auto q = [&](double f) {
    return g_adm_us.empty() ? 0 : g_adm_us[std::min(g_adm_us.size() - 1, size_t(f * g_adm_us.size()))];
  };
  printf("handshake%s: %.0f admissions/s (concurrency %d), resumed %.1f%%, p50 %.2f ms p99 %.2f ms\n",
         opt.resume ? " (resumption)" : "", n / secs, opt.concurrency, n ? 100.0 * (g_resumed - r0) / n : 0,
         q(.5) / 1e3, q(.99) / 1e3);
  Json j;
  j.str("mode", "handshake");
  j.num("per_s", n / secs);
  j.num("concurrency", opt.concurrency);
  j.num("resumed_pct", n ? 100.0 * (g_resumed - r0) / n : 0);
  j.num("p50_ms", q(.5) / 1e3);
  j.num("p99_ms", q(.99) / 1e3);
  if (!opt.pids.empty()) {
    printf("  relay CPU %.2f s (%.0f%%), %.3f CPU-ms per admission, RSS %ld kB\n", cpu, 100 * cpu / secs, 1e3 * cpu / n,
           p1.rss_kb);
    j.num("relay_cpu_s", cpu);
    j.num("relay_cpu_pct", 100 * cpu / secs);
    j.num("cpu_ms_per_admission", 1e3 * cpu / n);
    j.num("rss_kB", p1.rss_kb);
  }
  if (opt.cpustat >= 0) {
    j.num("cpu_busy_s", c1.busy - c0.busy);
    j.num("cpu_busy_ms_per_admission", 1e3 * (c1.busy - c0.busy) / n);
    j.num("cpu_steal_s", c1.steal - c0.steal);
    printf("  cpu%d busy %.3f ms per admission\n", opt.cpustat, 1e3 * (c1.busy - c0.busy) / n);
  }
  printf("  loadgen CPU %.2f s (%.0f%%)\n", s1 - s0, 100 * (s1 - s0) / secs);
  j.num("loadgen_cpu_pct", 100 * (s1 - s0) / secs);
  j.done();
}

// ---------------------------------------------------------------- latency
static std::vector<double> g_rtt;
static bool g_meas = false;
static u64 g_pings = 0, g_pongs = 0;
static void latency() {
  if (!opt.rooms) opt.rooms = 16;
  if (opt.rate <= 0) opt.rate = 2000;
  if (opt.frame == 65536) opt.frame = 200;
  if (opt.frame < 8 || opt.frame > 4096) die("latency: --frame 8..4096");
  if (opt.raw) die("latency needs the WebSocket protocol");
  open_rooms(opt.rooms);
  g_collect = true;
  on_msg = [](Conn* c) {
    if (c->small.size() != opt.frame) die("latency: frame of %zu bytes, expected %zu", c->small.size(), opt.frame);
    if (c->role == 'p') {
      tx_frame(c, 2, c->small.data(), c->small.size());
      flush(c);
    } else {
      u64 t;
      memcpy(&t, c->small.data(), 8);
      ++g_pongs;
      if (g_meas) g_rtt.push_back((now_ns() - t) * 1e-3);
    }
  };
  u8 msg[4096] = {0};
  u64 t0 = now_ns(), t_start = t0 + u64(opt.warmup * 1e9), t_end = t_start + u64(opt.seconds * 1e9);
  double step = 1e9 / opt.rate, next = double(t0);
  bool started = false;
  ProcStat p0{};
  double s0 = 0;
  u64 n0 = 0, k = 0;
  for (;;) {
    u64 t = now_ns();
    if (!started && t >= t_start) {
      started = g_meas = true;
      p0 = procs();
      n0 = g_pongs;
    }
    if (t >= t_end) break;
    int burst = 0;
    while (double(t) >= next && burst++ < 64) {
      u64 due = u64(next);  // the time it should have left: no coordinated omission
      memcpy(msg, &due, 8);
      Conn* c = rooms[k++ % rooms.size()].mac;
      tx_frame(c, 2, msg, opt.frame);
      flush(c);
      ++g_pings;
      next += step;
    }
    turn(0);  // busy poll: keep this side's wake-up time out of the figure
  }
  ProcStat p1 = procs();
  (void)s0;
  std::sort(g_rtt.begin(), g_rtt.end());
  if (g_rtt.empty()) die("latency: no answer came back");
  auto q = [&](double f) { return g_rtt[std::min(g_rtt.size() - 1, size_t(f * g_rtt.size()))]; };
  double sum = 0;
  for (double v : g_rtt) sum += v;
  double cpu = p1.cpu - p0.cpu;
  printf(
      "latency: %d rooms, %.0f round trips/s of %zu bytes: RTT us p50 %.0f p90 %.0f p99 %.0f p99.9 %.0f max %.0f "
      "(n=%zu)\n",
      opt.rooms, opt.rate, opt.frame, q(.5), q(.9), q(.99), q(.999), g_rtt.back(), g_rtt.size());
  Json j;
  j.str("mode", "latency");
  j.num("rooms", opt.rooms);
  j.num("rate", opt.rate);
  j.num("n", double(g_rtt.size()));
  j.num("mean_us", sum / g_rtt.size());
  j.num("p50_us", q(.5));
  j.num("p90_us", q(.9));
  j.num("p99_us", q(.99));
  j.num("p999_us", q(.999));
  j.num("max_us", g_rtt.back());
  j.num("outstanding", double(g_pings - g_pongs));
  if (!opt.pids.empty()) {
    j.num("relay_cpu_pct", 100 * cpu / opt.seconds);
    j.num("cpu_us_per_forward", 1e6 * cpu / (2.0 * (g_pongs - n0)));
    printf("  relay CPU %.0f%%, %.1f us per forwarded frame\n", 100 * cpu / opt.seconds,
           1e6 * cpu / (2.0 * (g_pongs - n0)));
  }
  j.done();
}

// ---------------------------------------------------------------- calibrate
// How fast the machine is right now: AES-128-GCM over 16 KiB records, and a
// bare system call. Shared machines drift by tens of percent; compare only
// figures taken under like calibration.
static void calibrate() {
  EVP_CIPHER_CTX* c = EVP_CIPHER_CTX_new();
  u8 key[16] = {1}, iv[12] = {2};
  std::vector<u8> a(16384), b(16384 + 16);
  EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), nullptr, key, iv);
  int l;
  double best = 0, sum = 0;
  u64 t0 = now_ns(), total = 0;
  while (now_ns() - t0 < 300000000ull) {
    u64 t = now_ns();
    for (int i = 0; i < 500; ++i) {
      EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, iv);
      EVP_EncryptUpdate(c, b.data(), &l, a.data(), int(a.size()));
    }
    best = std::max(best, 500 * 16384.0 / double(now_ns() - t));
    total += 500;
  }
  sum = total * 16384.0 / double(now_ns() - t0);
  u64 t = now_ns();
  for (int i = 0; i < 200000; ++i) getppid();
  double sc = double(now_ns() - t) / 200000;
  printf("calibrate: AES-128-GCM %.2f GB/s (best slice %.2f), system call %.0f ns\n", sum, best, sc);
  Json j;
  j.str("mode", "calibrate");
  j.num("aes_GBps", sum);
  j.num("aes_best_GBps", best);
  j.num("syscall_ns", sc);
  j.done();
}

// ---------------------------------------------------------------- main
static const char* usage =
    "usage: loadgen MODE [options]\n"
    "modes: throughput | idle | handshake | latency | calibrate (needs no target)\n"
    "  --host A --port P --sni NAME      where (loopback only)\n"
    "  --cafile F | --insecure           trust;  --plain: no TLS\n"
    "  --cipher aes128|aes256|chacha     --tls 1.2|1.3 (default 1.3)\n"
    "  --mask random|zero                client mask keys (default random; frames are pre-masked)\n"
    "  --pid N (repeatable)              relay processes to meter;  --cpustat N: also meter that CPU\n"
    "  --seconds S --warmup S --timeout S --json\n"
    "  --src-count K                     spread over K source addresses 127.0.0.2...\n"
    "  --raw                             no WebSocket: 65-byte hello, then a byte stream (floor tools)\n"
    "throughput: --rooms N --frame BYTES [--duplex] [--rate MBps] [--window BYTES] [--text] [--verify]\n"
    "            [--chunk BYTES] (largest TLS record sent; odd sizes exercise the mask phase)\n"
    "idle:       --sockets N [--hold S] [--per-ip K] [--concurrency C]\n"
    "handshake:  --concurrency C [--resume] [--no-ws-close]\n"
    "latency:    --rooms N --rate PER_SECOND [--frame BYTES]\n";

int main(int argc, char** argv) {
  if (argc < 2) {
    fputs(usage, stderr);
    return 1;
  }
  opt.mode = argv[1];
  for (int i = 2; i < argc; ++i) {
    std::string a = argv[i];
    auto val = [&]() -> const char* {
      if (++i >= argc) die("%s needs a value", a.c_str());
      return argv[i];
    };
    if (a == "--host")
      opt.host = val();
    else if (a == "--port")
      opt.port = atoi(val());
    else if (a == "--sni")
      opt.sni = val();
    else if (a == "--cafile")
      opt.cafile = val();
    else if (a == "--insecure")
      opt.insecure = true;
    else if (a == "--plain")
      opt.plain = true;
    else if (a == "--raw")
      opt.raw = true;
    else if (a == "--json")
      opt.json = true;
    else if (a == "--tls")
      opt.tls12 = !strcmp(val(), "1.2");
    else if (a == "--cipher")
      opt.cipher = val();
    else if (a == "--mask")
      opt.mask_zero = !strcmp(val(), "zero");
    else if (a == "--verify")
      opt.verify = true;
    else if (a == "--text")
      opt.text = true;
    else if (a == "--rooms")
      opt.rooms = atoi(val());
    else if (a == "--frame")
      opt.frame = strtoull(val(), nullptr, 10);
    else if (a == "--chunk")
      opt.chunk = strtoull(val(), nullptr, 10);
    else if (a == "--window")
      opt.window = strtoull(val(), nullptr, 10);
    else if (a == "--rate")
      opt.rate = atof(val());
    else if (a == "--seconds")
      opt.seconds = atof(val());
    else if (a == "--warmup")
      opt.warmup = atof(val());
    else if (a == "--hold")
      opt.hold = atof(val());
    else if (a == "--timeout")
      opt.timeout = atof(val());
    else if (a == "--sockets")
      opt.sockets = atoi(val());
    else if (a == "--per-ip")
      opt.per_ip = atoi(val());
    else if (a == "--concurrency")
      opt.concurrency = atoi(val());
    else if (a == "--src-count")
      opt.src_count = atoi(val());
    else if (a == "--duplex")
      opt.duplex = true;
    else if (a == "--resume")
      opt.resume = true;
    else if (a == "--no-ws-close")
      opt.no_ws_close = true;
    else if (a == "--pid") {
      // one pid, or a comma-separated list
      for (char* p = strtok(strdup(val()), ","); p; p = strtok(nullptr, ",")) opt.pids.push_back(atoi(p));
    } else if (a == "--cpustat")
      opt.cpustat = atoi(val());
    else {
      fputs(usage, stderr);
      die("unknown option %s", a.c_str());
    }
  }
  if (opt.mode == "calibrate") {
    calibrate();
    return 0;
  }
  if (opt.port <= 0) die("--port is required");
  if (opt.frame < 1 || opt.frame > (64u << 20)) die("--frame out of range");
  g_dst.sin_family = AF_INET;
  g_dst.sin_port = htons(opt.port);
  if (inet_pton(AF_INET, opt.host.c_str(), &g_dst.sin_addr) != 1) {
    if (opt.host == "localhost")
      inet_pton(AF_INET, "127.0.0.1", &g_dst.sin_addr);
    else
      die("--host must be an IPv4 loopback address");
  }
  if ((ntohl(g_dst.sin_addr.s_addr) >> 24) != 127) die("refusing: %s is not in 127.0.0.0/8", opt.host.c_str());
  if (!opt.plain && !opt.insecure && opt.cafile.empty()) die("give --cafile or --insecure");
  signal(SIGPIPE, SIG_IGN);
  rlimit rl;
  getrlimit(RLIMIT_NOFILE, &rl);
  rl.rlim_cur = rl.rlim_max;
  setrlimit(RLIMIT_NOFILE, &rl);
  if (opt.mode == "idle" && rl.rlim_cur < rlim_t(opt.sockets + 64))
    die("RLIMIT_NOFILE %llu is too low for %d sockets", (unsigned long long)rl.rlim_cur, opt.sockets);
  RAND_bytes((u8*)&rng_s, 8);
  rng_s |= 1;
  g_in = (u8*)malloc(IN_SZ);
  g_plain = (u8*)malloc(PLAIN_SZ);
  g_out.reserve(512 * 1024);
  ep = epoll_create1(EPOLL_CLOEXEC);
  if (!opt.plain) {
    ctx = SSL_CTX_new(TLS_client_method());
    int v = opt.tls12 ? TLS1_2_VERSION : TLS1_3_VERSION;
    SSL_CTX_set_min_proto_version(ctx, v);
    SSL_CTX_set_max_proto_version(ctx, v);
    const char *c13 = nullptr, *c12 = nullptr;
    if (opt.cipher == "aes128")
      c13 = "TLS_AES_128_GCM_SHA256", c12 = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256";
    else if (opt.cipher == "aes256")
      c13 = "TLS_AES_256_GCM_SHA384", c12 = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384";
    else if (opt.cipher == "chacha")
      c13 = "TLS_CHACHA20_POLY1305_SHA256", c12 = "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
    else
      die("unknown cipher %s", opt.cipher.c_str());
    if (!SSL_CTX_set_ciphersuites(ctx, c13) || !SSL_CTX_set_cipher_list(ctx, c12)) die("cipher: %s", ssl_err());
    if (opt.insecure)
      SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, nullptr);
    else {
      if (!SSL_CTX_load_verify_locations(ctx, opt.cafile.c_str(), nullptr)) die("cafile: %s", ssl_err());
      SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
    }
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    if (!opt.raw) SSL_CTX_set_alpn_protos(ctx, (const u8*)"\x08http/1.1", 9);
    if (opt.resume) {
      SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
      SSL_CTX_sess_set_new_cb(ctx, [](SSL*, SSL_SESSION* s) -> int {
        if (g_sess) SSL_SESSION_free(g_sess);
        g_sess = s;
        return 1;
      });
    } else
      SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    g_bm = BIO_meth_new(BIO_TYPE_SOURCE_SINK | 99, "loop");
    BIO_meth_set_write(g_bm, bio_write);
    BIO_meth_set_read(g_bm, bio_read);
    BIO_meth_set_ctrl(g_bm, bio_ctrl);
    BIO_meth_set_create(g_bm, bio_create);
  }
  if (opt.mode == "throughput")
    throughput();
  else if (opt.mode == "idle")
    idle();
  else if (opt.mode == "handshake")
    handshake();
  else if (opt.mode == "latency")
    latency();
  else {
    fputs(usage, stderr);
    die("unknown mode %s", opt.mode.c_str());
  }
  fflush(stdout);
  _exit(0);
}
