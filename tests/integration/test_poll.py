"""How the shard map is fetched (sharding 2.3): at boot, over real TLS, through every fault of an origin, and what is said of it."""
import contextlib
import json
import os
import re
import socket
import ssl
import statistics
import tempfile
import threading
import time

from harness import OTHER, RelayCase, eventually, main, shard_map, whole_ring, write_certificate
from wire import SLACK

CAUSES = ("dns", "timeout", "connect", "tls", "http_4xx", "http_5xx", "http_other", "parse", "other")


def answer(body=b"", status="200 OK", headers=(), length=True):
    """The bytes of one HTTP answer."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", *headers] + ([f"Content-Length: {len(body)}"] if length else [])
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Origin:
    """A server that decides every byte. .reply: bytes, or a function of (request head, socket) that answers by itself."""

    def __init__(self, reply, tls=None, port=0):
        self.reply, self.heads, self.times = reply, [], []
        self._lock, self._context = threading.Lock(), None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*tls)
        self._socket = socket.create_server(("127.0.0.1", port), backlog=64)
        self.port = self._socket.getsockname()[1]
        self._up = True
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, host="127.0.0.1", path="/shardmap.json"):
        return f"{'https' if self._context else 'http'}://{host}:{self.port}{path}"

    def _accept(self):
        while self._up:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        try:
            peer.settimeout(20)
            if self._context:
                peer = self._context.wrap_socket(peer, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head:
                data = peer.recv(4096)
                if not data:
                    return
                head += data
            with self._lock:
                self.heads.append(head.decode("latin1"))
                self.times.append(time.monotonic())
            if callable(self.reply):
                self.reply(head, peer)
            else:
                peer.sendall(self.reply)
        except OSError:
            pass
        finally:
            peer.close()

    def close(self):
        self._up = False
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def hang(_, peer):
    peer.recv(1)


class Polling(RelayCase):
    def origin(self, reply, **how):
        made = Origin(reply, **how)
        self.addCleanup(made.close)
        return made

    def polling(self, url, shard=None, config=None, **how):
        timing = {"url": url, "poll_interval": "100ms", "drain_delay": "200ms", "fetch_timeout": "300ms", "boot_timeout": "10s"}
        return self.relay({"shard_map": {**timing, **(shard or {})}, **(config or {})}, **how)

    def errors(self, relay, cause):
        return relay.metric("shard_map_fetch_errors_total", cause=cause)

    def all_errors(self, relay):
        return {cause: self.errors(relay, cause) for cause in CAUSES}

    def fails_by(self, relay, cause, what, kind=None):
        """Two further polls fail by this cause and by no other; nothing else changes."""
        before = self.all_errors(relay)
        eventually(lambda: self.errors(relay, cause) >= before[cause] + 2, 8, 0.03, f"{what}: counted as {cause}")
        now = self.all_errors(relay)
        self.assertEqual({c for c in CAUSES if now[c] > before[c]}, {cause}, what)
        error = relay.status()["last_fetch_error"]
        self.assertEqual(error["cause"], cause, what)
        if kind:
            self.assertEqual(error["kind"], kind, what)
        self.assertEqual((relay.metric("shard_map_version"), relay.metric("owned_buckets"), relay.metric("draining_rooms")),
                         (1, 65536, 0), what)
        return error


class Boot(Polling):
    def test_listens_only_once_a_map_is_held(self):
        gate = threading.Event()

        def wait(_, peer):
            gate.wait(20)
            peer.sendall(answer(whole_ring(1)))

        origin = self.origin(wait)
        relay = self.polling(origin.url(), {"fetch_timeout": "15s", "boot_timeout": "30s"}, ready=False)
        eventually(lambda: origin.heads, what="a first fetch")
        ready = eventually(lambda: self.readiness(relay), what="the admin listener")
        self.assertEqual(ready.status, 503)
        self.assertIn("map", ready.text)
        self.assertEqual(relay.admin("/healthz").status, 200)
        with socket.socket() as probe:
            self.assertNotEqual(probe.connect_ex(("127.0.0.1", relay.port)), 0)
        gate.set()
        eventually(lambda: relay.admin("/readyz").status == 200, what="ready")
        relay.tcp().close()
        self.assertEqual(relay.metric("shard_map_adopted_total"), 1)

    def readiness(self, relay):
        try:
            return relay.admin("/readyz")
        except OSError:
            return None

    def test_tries_again_on_any_failure(self):
        origin = self.origin(answer(b"", "404 Not Found"))
        relay = self.polling(origin.url(), ready=False)
        eventually(lambda: len(origin.heads) >= 3, what="three tries")
        gaps = [b - a for a, b in zip(origin.times, origin.times[1:])]
        self.assertGreater(gaps[0], 0.2)
        self.assertGreater(gaps[1], gaps[0] * 1.5)
        origin.reply = answer(whole_ring(4))
        eventually(lambda: relay.admin("/readyz").status == 200, what="ready")
        self.assertEqual(relay.metric("shard_map_version"), 4)

    def test_gives_up_naming_the_cause(self):
        cases = ((answer(b"", "403 Forbidden"), "http_4xx|403"), (answer(b"{"), "malformed"), (hang, "time"), (b"", "other|ended"))
        for reply, words in cases:
            with self.subTest(words):
                origin = self.origin(reply)
                relay = self.polling(origin.url(), {"boot_timeout": "800ms"}, ready=False, exits=1)
                begun = time.monotonic()
                self.assertEqual(relay.wait(10), 1)
                self.assertLess(time.monotonic() - begun, 5 * SLACK)
                self.assertRegex(relay.log(), words)

    def test_names_what_it_cannot_verify(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        pair = write_certificate(folder, ["other.test"], name="origin")
        origin = self.origin(answer(whole_ring(1)), tls=pair)
        relay = self.polling(origin.url(), {"boot_timeout": "800ms", "ca_file": pair[0]}, ready=False, exits=1)
        self.assertEqual(relay.wait(10), 1)
        self.assertRegex(relay.log(), r"(?i)tls.*mismatch|mismatch")


class Transport(Polling):
    def test_over_https_by_name_and_address_with_a_ca_file_of_its_own(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        pair = write_certificate(folder, ["localhost", "127.0.0.1"], name="origin")
        for host in ("localhost", "127.0.0.1"):
            origin = self.origin(answer(whole_ring(1)), tls=pair)
            relay = self.polling(origin.url(host, "/maps/a?b=%2F"), {"ca_file": pair[0]})
            self.assertEqual(relay.metric("shard_map_version"), 1)
            head = origin.heads[0]
            self.assertTrue(head.startswith("GET /maps/a?b=%2F HTTP/1.1\r\n"), head)
            self.assertIn(f"\r\nHost: {host}:{origin.port}\r\n", head)
            self.assertNotRegex(head, "(?i)accept-encoding")

    def test_by_the_systems_authorities_where_no_ca_file_is_given(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        pair = write_certificate(folder, ["127.0.0.1"], name="origin")
        origin = self.origin(answer(whole_ring(1)), tls=pair)
        relay = self.polling(origin.url(), env={"SSL_CERT_FILE": pair[0]})
        self.assertEqual(relay.metric("shard_map_version"), 1)

    def test_from_a_local_file(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "map.json")

        def write(document):
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump(document, file)
            os.rename(path + ".new", path)

        write(whole_ring(1))
        relay = self.polling(f"file://{path}")
        write(whole_ring(2, OTHER))
        eventually(lambda: relay.metric("shard_map_version") == 2, what="adopted")
        os.remove(path)
        eventually(lambda: self.errors(relay, "other") >= 1, what="counted")
        self.assertEqual(relay.metric("shard_map_version"), 2)

    def test_every_attempt_on_a_fresh_connection_and_none_at_once(self):
        origin = self.origin(answer(whole_ring(1)))
        relay = self.polling(origin.url())
        origin.reply = hang
        before = len(origin.heads)
        eventually(lambda: self.errors(relay, "timeout") >= 2, what="two failed polls")
        self.assertGreaterEqual(len(origin.heads) - before, 6)
        gaps = [b - a for a, b in zip(origin.times[before:], origin.times[before + 1:])]
        self.assertGreater(min(gaps), 0.28, "an attempt began before the last one's time was over")

    def test_the_interval_is_kept_within_a_tenth(self):
        origin = self.origin(answer(whole_ring(1)))
        self.polling(origin.url(), {"poll_interval": "200ms", "drain_delay": "400ms"})
        eventually(lambda: len(origin.times) >= 25, 20 * SLACK, what="24 polls")
        gaps = [b - a for a, b in zip(origin.times[1:], origin.times[2:])]
        self.assertAlmostEqual(statistics.median(gaps), 0.2, delta=0.03 * SLACK)
        self.assertGreater(max(gaps) - min(gaps), 0.005, "no jitter at all")

    def test_a_retry_that_helps_is_no_error(self):
        origin = self.origin(answer(whole_ring(1)))
        relay = self.polling(origin.url())
        turn = iter(range(10 ** 6))
        origin.reply = lambda _, peer: peer.sendall(answer(whole_ring(1)) if next(turn) % 3 == 2 else answer(b"", "503 Busy"))
        before = self.all_errors(relay)
        eventually(lambda: relay.metric("shard_map_fetch_retries_total") >= 4, what="absorbed retries")
        self.assertEqual(self.all_errors(relay), before)

    def test_an_etag_is_sent_back_and_304_is_a_success(self):
        def reply(head, peer):
            known = b'If-None-Match: "one"\r\n' in head
            peer.sendall(answer(b"", "304 Not Modified", length=False) if known else answer(whole_ring(1), headers=['ETag: "one"']))

        origin = self.origin(reply)
        relay = self.polling(origin.url())
        eventually(lambda: len(origin.heads) >= 5, what="polls")
        self.assertTrue(all('If-None-Match: "one"' in head for head in origin.heads[1:]))
        self.assertLess(relay.metric("shard_map_age_seconds"), 1.0 * SLACK)
        self.assertEqual(sum(self.all_errors(relay).values()), 0)


class Faults(Polling):
    def test_each_is_counted_under_its_cause_and_changes_nothing(self):
        good = json.dumps(whole_ring(2, OTHER)).encode()
        size = f"{len(good):x}\r\n".encode()
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        cases = [
            ("redirect", answer(b"", "302 Found", ["Location: /other"]), "http_other", None),
            ("no content", answer(b"", "204 No Content", length=False), "http_other", None),
            ("partial", answer(good, "206 Partial Content"), "http_other", None),
            ("unasked 304", answer(b"", "304 Not Modified", length=False), "http_other", None),
            ("gone", answer(b"", "410 Gone"), "http_4xx", None),
            ("busy", answer(b"", "503 Busy"), "http_5xx", None),
            ("compressed", answer(good, headers=["Content-Encoding: gzip"]), "other", None),
            ("cut", answer(good)[:-20], "other", None),
            ("cut chunks", chunked + size + good + b"\r\n", "other", None),
            ("bad chunk size", chunked + b"zz\r\n" + good + b"\r\n0\r\n\r\n", "other", None),
            ("negative length", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + good, "other", None),
            ("no HTTP", b"hello\r\n\r\n", "other", None),
            ("nothing", b"", "other", None),
            ("silence", hang, "timeout", None),
            ("empty", answer(b""), "parse", "malformed"),
            ("no JSON", answer(b"<html>"), "parse", "malformed"),
            ("short", b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + good, "parse", "malformed"),
            ("too large", answer(good + b" " * (1 << 20)), "parse", "too_large"),
            ("a gap", answer(shard_map(2, (0, 100, OTHER), (102, 65535, OTHER))), "parse", "gap_or_overlap"),
            ("no ranges", answer({"version": 2, "ranges": []}), "parse", "empty_ranges"),
            ("negative version", answer({**whole_ring(2), "version": -1}), "parse", "negative_version"),
            ("bad host", answer(whole_ring(2, "https://x.test")), "parse", "invalid_host"),
            ("bad range", answer(shard_map(2, (5, 4, OTHER))), "parse", "invalid_range"),
        ]
        origin = self.origin(answer(whole_ring(1)))
        relay = self.polling(origin.url())
        mac, phone = relay.pair()
        for what, reply, cause, kind in cases:
            with self.subTest(what):
                origin.reply = reply
                error = self.fails_by(relay, cause, what, kind)
                if what == "a gap":
                    self.assertEqual(error["value"], "101")
        mac.text("still here")
        self.assertEqual(phone.message(), b"still here")
        origin.close()
        self.fails_by(relay, "connect", "refused")
        mac.drop()
        phone.drop()

    def test_four_hundreds_and_refused_maps_are_asked_for_once_a_poll(self):
        origin = self.origin(answer(whole_ring(1)))
        relay = self.polling(origin.url(), {"poll_interval": "300ms", "drain_delay": "600ms"})
        for reply, cause in ((answer(b"", "404 Not Found"), "http_4xx"), (answer(b"{}"), "parse")):
            origin.reply = reply
            eventually(lambda: self.errors(relay, cause) >= 1, what="a failed poll")
            hits, polls = len(origin.heads), self.errors(relay, cause)
            eventually(lambda: self.errors(relay, cause) >= polls + 4, what="failed polls")
            self.assertLessEqual(len(origin.heads) - hits, self.errors(relay, cause) - polls + 1)

    def test_a_refused_maps_etag_is_never_sent(self):
        origin = self.origin(answer(whole_ring(1), headers=['ETag: "good"']))
        relay = self.polling(origin.url())
        origin.reply = answer(b"{}", headers=['ETag: "bad"'])
        self.fails_by(relay, "parse", "refused")
        self.assertFalse([head for head in origin.heads if '"bad"' in head])
        self.assertIn('If-None-Match: "good"', origin.heads[-1])

    def test_a_name_that_does_not_resolve_blocks_nobody(self):
        relay = self.polling("https://no-such-host.invalid/map.json", {"boot_timeout": "2s", "fetch_timeout": "1s"}, ready=False, exits=1)
        eventually(lambda: self.answers(relay), what="the admin listener")
        self.assertEqual(relay.wait(10), 1)
        self.assertIn("dns", relay.log())

    def answers(self, relay):
        try:
            return relay.admin("/healthz").status == 200
        except OSError:
            return False


class Said(Polling):
    def test_a_streak_is_one_line_and_its_end_another(self):
        origin = self.origin(answer(whole_ring(1)))
        relay = self.polling(origin.url(), config={"log": {"level": "info"}})
        before = len(relay.log())
        origin.reply = answer(b"", "500 Oops")
        eventually(lambda: self.errors(relay, "http_5xx") >= 6, what="a streak")
        lines = [line for line in relay.log()[before:].splitlines() if re.search(r"http_5xx|500|fetch", line)]
        self.assertEqual(len(lines), 1, lines)
        before = len(relay.log())
        polls = self.errors(relay, "http_5xx")
        origin.reply = answer(whole_ring(1))
        eventually(lambda: "recovered" in relay.log()[before:], what="a recovery line")
        line = [line for line in relay.log()[before:].splitlines() if "recovered" in line][0]
        self.assertTrue(any(polls <= int(n) <= polls + 3 for n in re.findall(r"\d+", line)), (polls, line))

    def test_status_names_the_latest_refusal_and_keeps_it_behind_a_recovery(self):
        origin = self.origin(answer(whole_ring(1)))
        relay = self.polling(origin.url())
        self.assertIsNone(relay.status()["last_fetch_error"])
        origin.reply = answer(b"", "503 Busy")
        self.fails_by(relay, "http_5xx", "busy")
        origin.reply = answer(whole_ring(2, "Upper.test"))
        error = self.fails_by(relay, "parse", "a bad host", "invalid_host")
        self.assertIn("Upper.test", error["value"])
        self.assertGreaterEqual(error["polls"], 4)
        self.assertGreater(error["seconds"], 0)
        origin.reply = answer(whole_ring(1))
        eventually(lambda: relay.status()["last_fetch_error"] is None, what="recovered")
        self.assertEqual(relay.status()["recovered_fetch_error"]["kind"], "invalid_host")

    def test_the_age_grows_while_polls_fail(self):
        origin = self.origin(answer(whole_ring(1)))
        relay = self.polling(origin.url())
        origin.reply = answer(b"", "503 Busy")
        eventually(lambda: relay.metric("shard_map_age_seconds") > 1, what="an age of a second")
        self.assertEqual(relay.admin("/readyz").status, 200)
        origin.reply = answer(whole_ring(1))
        eventually(lambda: relay.metric("shard_map_age_seconds") < 0.5, what="young again")


if __name__ == "__main__":
    main()
