"""The entry gate: eight checks in their order, and the strictness of everything before them (wire contract 1.2 and 1.3)."""
import contextlib
import json
import os
import socket
import ssl
import time

from derive import new_room
from harness import HOST, OTHER, PROOF_TIME, RelayCase, main, shard_map
from wire import SLACK, is_closed_within, read_answer, request_bytes, upgrade_headers

POSTS = ("/attest/challenge", "/attest", "/register", "/delete")
OURS, THEIRS = 100, 50000  # a bucket of this host, one of the other's


def half_ring(version=1):
    return shard_map(version, (0, 32767, HOST), (32768, 65535, OTHER))


def post_bytes(path, room, body=b"{}", extra=(), length=None, method="POST"):
    lines = [("Host", HOST)] + ([("x-relay-room", room)] if room else [])
    lines += [("Content-Length", len(body) if length is None else length)] if length is not False else []
    return request_bytes(method, path, [*lines, *extra], body)


class TheRows(RelayCase):
    """Each row of the table, and that it comes before the next."""

    def setUp(self):
        self.server = self.relay()

    def test_1_an_origin_header_is_forbidden_before_all_else(self):
        answer = self.refusal(self.server, "not a room", extra=[("Origin", "https://example.com")])
        self.assert_row(answer, 403, "forbidden")
        self.assert_row(self.refusal(self.server, new_room(), extra=[("origin", "")]), 403, "forbidden")
        answer = self.server.http("POST", "/nowhere", None, b"x", [("Origin", "null")])
        self.assertEqual((answer.status, answer.body), (403, b"forbidden"))

    def test_2_a_room_is_64_lowercase_hex_digits_exactly_once(self):
        good = new_room()
        for room in ("", good[:-1], good + "0", good.upper() if good.upper() != good else "A" * 64, "g" * 64, f"{good[:32]} {good[32:]}"):
            self.assert_row(self.refusal(self.server, room), 400, "bad room")
        self.assert_row(self.refusal(self.server, None), 400, "bad room")
        self.assert_row(self.refusal(self.server, good, extra=[("X-Relay-Room", good)]), 400, "bad room")
        answer = self.server.http("POST", "/nowhere", None)
        self.assertEqual((answer.status, answer.body), (400, b"bad room"))

    def test_4_unknown_paths_and_wrong_methods(self):
        for path in ("/", "/nowhere", "/register/", "/Register", "/attest/challenge/x", "/metrics", "/healthz", "/status"):
            self.assertEqual(self.server.http("POST", path, new_room(), b"{}").status, 404, path)
        for path in POSTS:
            for method in ("GET", "PUT", "DELETE", "OPTIONS", "PATCH"):
                answer = self.server.http(method, path, new_room())
                self.assertEqual(answer.status, 405, f"{method} {path}")
                self.assertIn("POST", answer.headers.get("allow", ""))

    def test_4_a_query_is_no_part_of_the_path(self):
        status, said = self.server.post("/attest/challenge?a=b&c", new_room())
        self.assertEqual((status, said["ok"]), (200, True))

    def test_8_a_body_over_64_kib_is_too_large_declared_or_streamed(self):
        room = new_room()
        filler = b'{"x":"' + b"y" * (65536 - 8) + b'"}'
        self.assertEqual(len(filler), 65536)
        self.assertEqual(self.server.post("/register", room, body=filler)[0], 400)  # read, and lacking a verifier
        for data in (post_bytes("/register", room, length=65537), post_bytes("/register", room, length=1 << 40)):
            answer, sock, _ = self.server.ask(data)
            self.assertEqual((answer.status, answer.body), (413, b"payload too large"))
            self.assertTrue(is_closed_within(sock, PROOF_TIME * SLACK))
            sock.close()
        head = post_bytes("/register", room, b"", [("Transfer-Encoding", "chunked")], length=False)
        chunk = b"4000\r\n" + b"z" * 0x4000 + b"\r\n"
        answer, sock, _ = self.server.ask(head, chunk * 5)
        self.assertEqual((answer.status, answer.body), (413, b"payload too large"))
        sock.close()

    def test_a_chunked_body_is_a_body(self):
        head = post_bytes("/attest/challenge", new_room(), b"", [("Transfer-Encoding", "chunked")], length=False)
        answer, sock, _ = self.server.ask(head, b"2\r\n{}\r\n", b"0\r\n\r\n")
        self.assertEqual((answer.status, json.loads(answer.body)["ok"]), (200, True))
        sock.close()

    def test_any_method_that_upgrades_or_posts_passes_the_gate(self):
        answer = self.server.http("DELETE", "/register", "bad")
        self.assertEqual((answer.status, answer.body), (400, b"bad room"))


class TheOwnershipRow(RelayCase):
    """Row 3: a client with a stale map must hear `misdirected`, and pays for nothing."""

    def test_a_foreign_room_names_its_owner(self):
        maps = self.maps(half_ring())
        relay = self.relay({"shard_map": {"url": maps.url}})
        answer = self.refusal(relay, new_room(THEIRS))
        self.assert_row(answer, 421, "misdirected")
        self.assertEqual(answer.headers.get("x-relay-owner"), OTHER)
        for path in (*POSTS, "/nowhere"):
            for method in ("POST", "GET"):
                answer = relay.http(method, path, new_room(THEIRS), b"{}")
                self.assertEqual((answer.status, answer.body, answer.headers.get("x-relay-owner")), (421, b"misdirected", OTHER))
        relay.pair(new_room(OURS))

    def test_nobodys_room_names_no_owner(self):
        maps = self.maps(shard_map(1, (0, 32767, HOST), (32768, 65535, "nobody.invalid")))
        relay = self.relay({"shard_map": {"url": maps.url}})
        answer = self.refusal(relay, new_room(THEIRS))
        self.assert_row(answer, 421, "misdirected")
        self.assertNotIn("x-relay-owner", answer.headers)

    def test_it_comes_before_the_body_is_read(self):
        maps = self.maps(half_ring())
        relay = self.relay({"shard_map": {"url": maps.url}})
        for extra in ([("Transfer-Encoding", "chunked")], [("Content-Length", "9")], [("Content-Length", "99999999")]):
            started = time.monotonic()
            answer, sock, _ = relay.ask(post_bytes("/register", new_room(THEIRS), b"", extra, length=False))
            self.assertEqual(answer.status, 421)
            self.assertLess(time.monotonic() - started, 1.5 * SLACK, "waited for a body it does not want")
            sock.close()

    def test_it_spends_no_budget(self):
        maps = self.maps(half_ring())
        limits = {"upgrades_per_minute": 4, "attests_per_minute": 4, "sockets_per_client": 100}
        relay = self.relay({"shard_map": {"url": maps.url}, "limits": limits})
        for _ in range(10):
            self.assertEqual(self.refusal(relay, new_room(THEIRS)).status, 421)
            self.assertEqual(relay.http("POST", "/attest/challenge", new_room(THEIRS)).status, 421)
        held = [relay.connect(new_room(OURS)) for _ in range(4)]
        self.assert_row(self.refusal(relay, new_room(OURS)), 429, "rate limited", retry=True)
        self.assertEqual(self.refusal(relay, new_room(THEIRS)).status, 421, "a spent budget hides the owner")
        statuses = [relay.http("POST", "/attest/challenge", new_room(OURS), b"{}").status for _ in range(5)]
        self.assertEqual(statuses, [200, 200, 200, 200, 429])
        for end in held:
            end.drop()


class ClientLimits(RelayCase):
    """Rows 5 to 7."""

    def test_5_upgrades_are_limited_by_client(self):
        relay = self.relay({"limits": {"upgrades_per_minute": 5}})
        for _ in range(5):
            relay.connect(new_room()).drop()
        self.assert_row(self.refusal(relay, new_room()), 429, "rate limited", retry=True)
        relay.connect(new_room(), source="127.0.0.2").drop()  # another client has its own budget
        self.assertEqual(relay.metric("rejects_total", at="upgrade", reason="rate_limited"), 1)

    def test_5_attestation_endpoints_are_limited_and_others_are_not(self):
        relay = self.relay({"limits": {"attests_per_minute": 3}})
        room = new_room()
        statuses = [relay.http("POST", path, room, b"{}").status for path in ("/attest/challenge", "/attest", "/attest/challenge", "/attest")]
        self.assertEqual(statuses, [200, 400, 200, 429])
        answer = relay.http("POST", "/attest/challenge", room, b"{}")
        self.assertEqual((answer.status, answer.body), (429, b"rate limited"))
        self.assertRegex(answer.headers.get("retry-after", ""), r"^[1-9]\d*$")
        self.assertEqual([relay.http("POST", "/register", room, b"{}").status for _ in range(5)], [400] * 5)
        self.assertEqual(relay.http("POST", "/attest/challenge", room, b"{}", source="127.0.0.2").status, 200)

    def test_6_sockets_of_a_client_are_capped(self):
        relay = self.relay({"limits": {"sockets_per_client": 3}})
        held = [relay.connect(new_room()) for _ in range(3)]
        self.assert_row(self.refusal(relay, new_room()), 429, "too many connections", retry=True)
        relay.connect(new_room(), source="127.0.0.2").drop()
        held.pop().close()
        held.append(relay.connect(new_room()))
        for end in held:
            end.drop()

    def test_7_the_box_has_a_ceiling_of_sockets(self):
        relay = self.relay({"limits": {"sockets": 3}})
        held = [relay.connect(new_room()) for _ in range(3)]
        self.assert_row(self.refusal(relay, new_room()), 503, "capacity", retry=True)
        for end in held:
            end.drop()

    def test_7_rooms_have_a_ceiling_that_joins_pass(self):
        relay = self.relay({"limits": {"rooms": 2}})
        rooms = [new_room(), new_room()]
        macs = [relay.admit(room, "mac") for room in rooms]
        self.assert_row(self.refusal(relay, new_room()), 503, "capacity", retry=True)
        phone = relay.admit(rooms[0], "phone")
        self.assert_talk(macs[0], phone)
        for end in (*macs, phone):
            end.drop()

    def test_rows_keep_their_order(self):
        relay = self.relay({"limits": {"upgrades_per_minute": 1, "sockets_per_client": 1, "sockets": 1}})
        held = relay.connect(new_room())
        self.assert_row(self.refusal(relay, "bad"), 400, "bad room")
        self.assert_row(self.refusal(relay, new_room()), 429, "rate limited", retry=True)
        self.assert_row(self.refusal(relay, new_room(), source="127.0.0.2"), 503, "capacity", retry=True)
        held.drop()


class Strictness(RelayCase):
    """Whatever is malformed or could be read in two ways is refused, and nothing behind it is served."""

    def setUp(self):
        self.server = self.relay()

    def refused(self, data, statuses, why):
        """One error at most, then the end; a request pipelined behind it is never answered."""
        answer, sock, rest = self.server.ask(data + post_bytes("/attest/challenge", new_room()))
        self.assertIn(answer.status, statuses, f"{why}: {answer}")
        sock.settimeout(2 * SLACK)
        with contextlib.suppress(OSError):
            while piece := sock.recv(65536):
                rest += piece
        self.assertNotIn(b"HTTP/1.1", rest, f"{why}: something behind it was served")
        sock.close()

    def test_heads_that_are_malformed(self):
        room = new_room()
        good = upgrade_headers(room, HOST)
        head = request_bytes("GET", "/", good)
        cases = {
            "bare LF": head.replace(b"\r\n", b"\n"), "one bare LF": head.replace(b"Upgrade: websocket\r\n", b"Upgrade: websocket\n"),
            "a NUL": head.replace(b"websocket", b"web\0socket"), "a space before a colon": head.replace(b"Upgrade:", b"Upgrade :"),
            "a folded line": head.replace(b"Upgrade: websocket", b"Upgrade:\r\n websocket"), "no colon": head.replace(b"Host:", b"Host"),
            "an empty name": head.replace(b"Host:", b":"), "no version": head.replace(b" HTTP/1.1", b""),
            "HTTP/1.0 upgrade": head.replace(b"HTTP/1.1", b"HTTP/1.0"), "HTTP/2.0": head.replace(b"HTTP/1.1", b"HTTP/2.0"),
            "two spaces": head.replace(b"GET /", b"GET  /"), "garbage": b"\x16\x03\x01\x02\x00\r\n\r\n",
        }
        for why, data in cases.items():
            with self.subTest(why):
                self.refused(data, (400, 426, 431, 501, 505), why)

    def test_bodies_with_two_readings(self):
        room, chunks = new_room(), b"0\r\n\r\n"
        cases = {
            "length and chunked": (post_bytes("/register", room, chunks, [("Transfer-Encoding", "chunked")]), (400,)),
            "two lengths": (post_bytes("/register", room, b"{}", [("Content-Length", "5")]), (400,)),
            "a signed length": (post_bytes("/register", room, b"{}", length="+2"), (400,)),
            "a negative length": (post_bytes("/register", room, b"", length="-1"), (400,)),
            "a hex length": (post_bytes("/register", room, b"", length="0x2"), (400,)),
            "a list of lengths": (post_bytes("/register", room, b"{}", length="2, 3"), (400,)),
            "an endless length": (post_bytes("/register", room, b"", length="9" * 40), (400, 413)),
            "gzip": (post_bytes("/register", room, chunks, [("Transfer-Encoding", "gzip")], length=False), (400, 501)),
            "gzip, chunked": (post_bytes("/register", room, chunks, [("Transfer-Encoding", "gzip, chunked")], length=False), (400, 501)),
            "identity": (post_bytes("/register", room, b"", [("Transfer-Encoding", "identity")], length=False), (400, 501)),
            "a bad chunk size": (post_bytes("/register", room, b"zz\r\n{}\r\n0\r\n\r\n", [("Transfer-Encoding", "chunked")], length=False), (400,)),
        }
        for why, (data, statuses) in cases.items():
            with self.subTest(why):
                self.refused(data, statuses, why)

    def test_a_head_has_at_most_16_kib_and_64_lines(self):
        room = new_room()
        fits = upgrade_headers(room, HOST)
        self.server.connect(new_room(), extra=[("X-Pad", "p" * 15000)]).drop()
        self.server.connect(new_room(), extra=[(f"X-{n}", "v") for n in range(64 - len(fits))]).drop()
        self.refused(request_bytes("GET", "/", fits + [("X-Pad", "p" * 17000)]), (431,), "too long a line")
        self.refused(request_bytes("GET", "/" + "t" * 17000, fits), (400, 414, 431), "too long a target")
        self.refused(request_bytes("GET", "/", fits + [(f"X-{n}", "v") for n in range(65)]), (431,), "too many lines")

    def test_upgrades_that_are_none(self):
        room = new_room()
        for why, without, extra in (("no key", ["Sec-WebSocket-Key"], []), ("no version", ["Sec-WebSocket-Version"], []),
                                    ("version 8", ["Sec-WebSocket-Version"], [("Sec-WebSocket-Version", "8")]),
                                    ("a key of 5 bytes", ["Sec-WebSocket-Key"], [("Sec-WebSocket-Key", "aGVsbG8=")])):
            with self.subTest(why):
                data = request_bytes("GET", "/", upgrade_headers(room, HOST, without=without, extra=extra))
                self.refused(data, (400, 426), why)

    def test_absolute_targets_and_any_path_are_accepted(self):
        for path in ("/", "/anything/at?all=1", f"https://{HOST}/", f"https://{HOST}/x"):
            end = self.server.connect(new_room(), path=path)
            end.close()
        status, said = self.server.post(f"https://{HOST}/attest/challenge", new_room())
        self.assertEqual((status, said["ok"]), (200, True))

    def test_extensions_and_subprotocols_are_never_taken_up(self):
        end = self.server.connect(new_room(), extra=[("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"),
                                                     ("Sec-WebSocket-Protocol", "chat, superchat")])
        end.close()  # Endpoint asserts that neither is in the answer

    def test_a_connection_is_kept_alive_between_requests(self):
        sock, rest = self.server.tls(), b""
        for _ in range(3):
            sock.sendall(post_bytes("/attest/challenge", new_room()))
            answer, rest = read_answer(sock, rest)
            self.assertEqual(answer.status, 200)
        sock.sendall(post_bytes("/attest/challenge", new_room()) * 2)  # pipelined: answered in order
        for _ in range(2):
            answer, rest = read_answer(sock, rest)
            self.assertEqual(answer.status, 200)
        sock.sendall(request_bytes("GET", "/", upgrade_headers(new_room(), HOST)))
        answer, rest = read_answer(sock, rest)
        self.assertEqual(answer.status, 101)
        sock.close()

    def test_what_is_pipelined_behind_a_refused_upgrade_is_never_served(self):
        data = request_bytes("GET", "/", upgrade_headers(new_room(), HOST, extra=[("Origin", "https://example.com")]))
        self.refused(data, (403,), "a refused upgrade")

    def test_connection_close_is_honoured(self):
        answer, sock, _ = self.server.ask(post_bytes("/attest/challenge", new_room(), extra=[("Connection", "close")]))
        self.assertEqual(answer.status, 200)
        self.assertTrue(is_closed_within(sock, PROOF_TIME * SLACK))
        sock.close()


class Deadlines(RelayCase):
    """What does not arrive in time ends the connection: handshake, head, body, and the idle time between requests."""

    def setUp(self):
        self.server = self.relay({"timeouts": {"request": "1s"}})

    def ends_in_time(self, sock, began):
        self.assertTrue(is_closed_within(sock, 3 * SLACK), "still open long after its time")
        self.assertGreater(time.monotonic() - began, 0.8, "ended before its time")
        sock.close()

    def test_a_handshake(self):
        began = time.monotonic()
        self.ends_in_time(self.server.tcp(), began)

    def test_a_head(self):
        began, sock = time.monotonic(), self.server.tls()
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        self.ends_in_time(sock, began)
        self.assertEqual(self.server.metric("rejects_total", reason="timeout"), 1)

    def test_a_head_that_trickles(self):
        began, sock = time.monotonic(), self.server.tls()
        with contextlib.suppress(OSError):
            for byte in b"GET / HTTP/1.1\r\nHost: a-long-name.example\r\n":
                sock.sendall(bytes([byte]))
                time.sleep(0.1)
                if time.monotonic() - began > 4 * SLACK:
                    self.fail("a trickle keeps a connection open")
        sock.close()

    def test_a_body(self):
        began, sock = time.monotonic(), self.server.tls()
        sock.sendall(post_bytes("/register", new_room(), b"{", length=10))
        self.ends_in_time(sock, began)

    def test_an_idle_connection(self):
        sock = self.server.tls()
        sock.sendall(post_bytes("/attest/challenge", new_room()))
        self.assertEqual(read_answer(sock)[0].status, 200)
        self.ends_in_time(sock, time.monotonic())


class Tls(RelayCase):
    def setUp(self):
        self.server = self.relay()

    def test_versions_1_2_and_1_3_and_nothing_older(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=self.server.certificate)
            context.minimum_version = context.maximum_version = version
            with self.server.tls(context) as sock:
                self.assertEqual(sock.version(), version.name.replace("_", "."))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.server.tls(context)

    def test_min_version_1_3_refuses_1_2(self):
        strict = self.relay({"tls": {"min_version": "1.3"}})
        context = ssl.create_default_context(cafile=strict.certificate)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            strict.tls(context)
        strict.tls().close()

    def test_alpn_is_http_1_1(self):
        for offer, chosen in ((["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), (None, None)):
            context = ssl.create_default_context(cafile=self.server.certificate)
            if offer:
                context.set_alpn_protocols(offer)
            with self.server.tls(context) as sock:
                self.assertEqual(sock.selected_alpn_protocol(), chosen)

    def test_sessions_are_resumed(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=self.server.certificate)
            context.maximum_version = version
            first = self.server.tls(context)
            first.sendall(post_bytes("/attest/challenge", new_room()))
            self.assertEqual(read_answer(first)[0].status, 200)  # behind it, tickets have arrived
            session = first.session
            first.close()
            again = context.wrap_socket(self.server.tcp(), server_hostname=HOST, session=session)
            self.assertTrue(again.session_reused, version)
            again.close()

    def test_no_compression(self):
        with self.server.tls() as sock:
            self.assertIsNone(sock.compression())

    def test_close_notify_ends_the_whole_socket(self):
        mac, phone = self.server.pair()
        under = socket.socket(fileno=os.dup(phone.sock.fileno()))  # keeps TCP open below the goodbye of TLS
        phone.sock.settimeout(0.3)
        with contextlib.suppress(OSError, ssl.SSLError):
            phone.sock.unwrap()
        self.assert_ends(mac, 1001, "peer gone")
        under.close()
        phone.drop()

    def test_plain_http_on_the_tls_port_gets_nothing(self):
        sock = self.server.tcp()
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.settimeout(2 * SLACK)
        try:
            self.assertNotIn(b"HTTP/1.1 200", sock.recv(4096))
        except ConnectionError:
            pass
        sock.close()


if __name__ == "__main__":
    main()
