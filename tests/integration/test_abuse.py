"""Hostile and broken clients, many at once: the relay stays up, fair and bounded, and gives everything back afterwards."""
import contextlib
import os
import random
import resource
import socket
import ssl
import threading
import time

from derive import new_room
from harness import HOST, MIB, RelayCase, eventually, main
from tls12 import CLIENT_HELLO, HANDSHAKE, Tls12
from wire import BINARY, PING, SLACK, TEXT, Ended, Refused, close_frame, frame, request_bytes, reset, upgrade_headers

QUICK = {"timeouts": {"request": "2s", "admission": "3s"}, "limits": {"messages_per_second": 1000000}}
SEED = int(os.environ.get("TANDEM_SEED", "1"))


class Hostile(RelayCase):
    def assert_healthy(self, relay):
        self.assertIsNone(relay.process.poll(), relay.log()[-1000:])
        self.assertEqual(relay.admin("/healthz").status, 200)
        began = time.monotonic()
        mac, phone = relay.pair()
        self.assert_talk(mac, phone)
        self.assertLess(time.monotonic() - began, 2 * SLACK)
        mac.drop(), phone.drop()

    def assert_gives_back(self, relay, descriptors):
        eventually(lambda: relay.descriptors() <= descriptors, 12, what=f"descriptors back at {descriptors} (now {relay.descriptors()})")


class OneAtATime(Hostile):
    def setUp(self):
        self.server = self.relay(QUICK)
        self.assert_healthy(self.server)
        time.sleep(0.2)
        self.descriptors = self.server.descriptors()

    def tearDown(self):
        self.assert_healthy(self.server)
        self.assert_gives_back(self.server, self.descriptors)

    def raw(self, data):
        sock = self.server.tcp()
        with contextlib.suppress(OSError):
            sock.sendall(data)
        return sock

    def test_garbage_instead_of_tls(self):
        rnd = random.Random(SEED)
        socks = [self.raw(rnd.randbytes(rnd.randrange(1, 3000))) for _ in range(50)]
        socks += [self.raw(b"\x16\x03\x01\xff\xff" + b"x" * 1000), self.raw(b"\x16\x03\x01\x00\x00" * 100), self.raw(b"\x80\x2e\x01\x00\x02")]
        for sock in socks:
            sock.close()

    def test_a_hello_byte_by_byte_is_a_hello(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = self.server.context().wrap_bio(incoming, outgoing, server_hostname=HOST)
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        sock = self.server.tcp()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in outgoing.read():
            sock.sendall(bytes([byte]))
        while True:
            incoming.write(sock.recv(65536))
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
        sock.close()

    def test_resets_at_every_stage(self):
        for _ in range(10):
            sock = self.server.tcp()
            reset(sock)
            sock = self.server.tls()
            reset(sock)
            sock = self.server.tls()
            sock.sendall(b"GET / HT")
            reset(sock)
            reset(self.server.connect(new_room()).sock)
            reset(self.server.greet(new_room(), "phone")[0].sock)
            mac, phone = self.server.pair()
            phone.send_bytes(frame(BINARY, bytes(70000), key=bytes(4))[:30000])
            reset(phone.sock)
            mac.ending()
            reset(mac.sock)

    def test_half_closed_sockets(self):
        for _ in range(5):
            end = self.server.connect(new_room())
            end.sock.shutdown(socket.SHUT_WR)
            sock = self.server.tcp()
            sock.shutdown(socket.SHUT_WR)
            eventually(lambda sock=sock: self.ended(sock), what="a half-closed connection ended")
            end.drop()

    def ended(self, sock):
        sock.settimeout(0.2)
        try:
            return not sock.recv(4096)
        except (socket.timeout, TimeoutError):
            return False
        except OSError:
            return True

    def test_clients_that_never_read(self):
        """Answers to pings, refusals and responses stay bounded though nobody takes them."""
        base = self.server.rss()
        ends = [self.server.connect(new_room(), receive_buffer=4096) for _ in range(5)]
        block = b"".join(frame(PING, b"p" * 100, key=bytes(4)) for _ in range(500))
        for end in ends:
            end.sock.settimeout(0.3)
            for _ in range(20):
                with contextlib.suppress(OSError):
                    end.send_bytes(block)
        self.assertLess(self.server.rss() - base, 6 * MIB * SLACK)
        for end in ends:
            end.drop()

    def test_pipelined_requests_nobody_reads(self):
        base = self.server.rss()
        sock = self.server.tls(receive_buffer=4096)
        sock.settimeout(0.5)
        room = new_room()
        block = request_bytes("POST", "/delete", [("Host", HOST), ("x-relay-room", room), ("Content-Length", 2)], b"{}") * 200
        with contextlib.suppress(OSError):
            for _ in range(50):
                sock.sendall(block)
        self.assertLess(self.server.rss() - base, 4 * MIB * SLACK)
        sock.close()

    def test_renegotiations_that_nobody_hears_refused(self):
        """Each is refused by an alert; who does not take the alerts is read no further."""
        for admitted in (False, True):
            client = Tls12(self.server, receive_buffer=4096)
            client.send(request_bytes("GET", "/", upgrade_headers(new_room(), HOST)))
            self.assertIn(b" 101 ", client.receive())
            if admitted:
                client.send(frame(TEXT, b'{"v":1,"role":"mac"}') + frame(TEXT, b"{}"))
                while b'"ok":true' not in client.receive():
                    pass
            base, sent = self.server.rss(), 0
            client.sock.settimeout(0.5)
            until = time.monotonic() + 8 * SLACK
            with contextlib.suppress(OSError):
                while time.monotonic() < until:
                    client.sock.sendall(b"".join(client.record(HANDSHAKE, CLIENT_HELLO) for _ in range(1000)))
                    sent += 1000
            self.assertGreater(sent, 5000, "too few to mean anything")
            self.assertLess(self.server.rss() - base, 4 * MIB * SLACK, f"after {sent} renegotiations")
            client.drop()

    def test_endless_heads_bodies_and_messages(self):
        base = self.server.rss()
        for data in (b"GET / HTTP/1.1\r\nX: " + b"x" * MIB, b"GET /" + b"y" * MIB,
                     request_bytes("POST", "/register", [("Host", HOST), ("x-relay-room", new_room()), ("Transfer-Encoding", "chunked")], b"fffff\r\n" + b"z" * MIB)):
            sock = self.server.tls()
            with contextlib.suppress(OSError):
                sock.sendall(data)
            sock.close()
        end = self.server.connect(new_room())
        end.try_send(frame(TEXT, b"", fin=False) + frame(0, b"", fin=False) * 20000)
        end.drop()
        self.assertLess(self.server.rss() - base, 4 * MIB * SLACK)

    def test_claims_cost_nothing_until_they_are_paid(self):
        ends = [self.server.connect(new_room()) for _ in range(100)]
        mac, phone = self.server.pair()
        base = self.server.rss()
        for end in ends:
            end.send_bytes(frame(TEXT, b"", claims=8192, form=16))
        mac.send_bytes(frame(BINARY, b"", claims=262144, form=64))
        time.sleep(0.3)
        self.assertLess(self.server.rss() - base, 3 * MIB * SLACK)
        for end in (*ends, mac, phone):
            end.drop()

    def test_json_of_every_bad_kind(self):
        deep = "[" * 4000
        for text in (deep, '{"a":' * 1000, '{"v":1e999,"role":"mac"}', '{"v":1,"role":"\\ud800"}', "\u0000", '{"v":1,"role":"mac"}\u0000', "nul", "-", '"'):
            end = self.server.connect(new_room())
            end.text(text)
            self.assertEqual((end.ending().reason), "bad hello", text[:40])
            end.drop()
        for body in (b"[" * 60000, b'{"verifier":' * 5000, b'{"verifier":"' + b"\\u0000" * 5000 + b'"}'):
            self.assertIn(self.server.post("/register", new_room(), body=body)[0], (400,))


class Exhausted(Hostile):
    def test_out_of_descriptors_it_neither_spins_nor_forgets(self):
        relay = self.relay({"log": {"level": "info"}}, before_exec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        mac, phone = relay.pair()
        self.assert_talk(mac, phone)
        flood = []
        for _ in range(150):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", relay.port))
            flood.append(sock)
        time.sleep(0.5)
        began, cpu = time.monotonic(), relay.cpu_seconds()
        while time.monotonic() - began < 3:
            self.assertEqual(relay.admin("/healthz").status, 200)
            self.assert_talk(mac, phone)
            time.sleep(0.2)
        self.assertLess((relay.cpu_seconds() - cpu) / (time.monotonic() - began), 0.5 * SLACK)
        for sock in flood:
            sock.close()

        def served():
            with contextlib.suppress(OSError, EOFError, Refused, Ended, AssertionError):
                a, b = relay.pair()
                a.drop(), b.drop()
                return True
            return False

        eventually(served, 10, 0.3, "service resumed")
        self.assertLess(len(relay.log()), 200000, "the log was flooded")
        mac.drop(), phone.drop()

    def test_a_closed_log_pipe_kills_nothing(self):
        relay = self.relay()
        read, write = os.pipe()
        real = relay
        real.stop()
        real.process = None
        import subprocess  # noqa: PLC0415
        from harness import BIN  # noqa: PLC0415
        real.process = subprocess.Popen([os.path.join(BIN, "tandemd"), "--config", real.config_path], stdin=subprocess.DEVNULL, stdout=write, stderr=write)
        os.close(write)

        def ready():
            with contextlib.suppress(OSError):
                return real.admin("/readyz").status == 200

        eventually(ready, 10, what="ready")
        os.close(read)
        for _ in range(5):
            self.assert_healthy(real)


class ManyAtOnce(Hostile):
    def session(self, rnd):
        """The bytes of a session with up to three things wrong."""
        role = rnd.choice(["mac", "phone"])
        parts = [request_bytes("GET", "/", upgrade_headers(new_room(), HOST)), frame(TEXT, b'{"v":1,"role":"%s"}' % role.encode()), frame(TEXT, b"{}")]
        for _ in range(rnd.randrange(6)):
            parts.append(frame(rnd.choice((0, 1, 2, 9, 10)), rnd.randbytes(rnd.choice((0, 1, 125, 126, 4096, 70000))), fin=rnd.random() < 0.8))
        parts.append(close_frame(rnd.choice((1000, 1001, 1005, 3000, 77)), b"bye"))
        for _ in range(rnd.randrange(4)):
            at = rnd.randrange(len(parts))
            data = bytearray(parts[at])
            spot = rnd.randrange(len(data)) if data else 0
            what = rnd.randrange(6)
            if what == 0 and data:
                data[spot] ^= 1 << rnd.randrange(8)
            elif what == 1:
                del data[spot:spot + rnd.randrange(1, 30)]
            elif what == 2:
                data[spot:spot] = rnd.randbytes(rnd.randrange(1, 40))
            elif what == 3:
                data = data * 2
            elif what == 4:
                del data[spot:]
            else:
                data[:0] = frame(rnd.randrange(16), rnd.randbytes(rnd.randrange(130)), fin=rnd.random() < 0.5, mask=rnd.random() < 0.9)
            parts[at] = bytes(data)
        return b"".join(parts)

    def attack(self, relay, seed, until, tally):
        rnd = random.Random(seed)
        while time.monotonic() < until:
            with contextlib.suppress(OSError, EOFError):
                sock = relay.tls() if rnd.random() < 0.9 else relay.tcp()
                sock.settimeout(1)
                with contextlib.suppress(OSError):
                    sock.sendall(self.session(rnd))
                    if rnd.random() < 0.4:
                        sock.settimeout(0.02)
                        sock.recv(65536)
                tally[0] += 1
                (reset if rnd.random() < 0.3 else lambda s: s.close())(sock)

    def test_established_splices_lose_nothing_meanwhile(self):
        relay = self.relay(QUICK)
        pairs = [relay.pair() for _ in range(20)]
        self.assert_healthy(relay)
        base, tally, until = relay.descriptors(), [0], time.monotonic() + 12
        attackers = [threading.Thread(target=self.attack, args=(relay, SEED * 100 + n, until, tally), daemon=True) for n in range(4)]
        for thread in attackers:
            thread.start()
        rounds = 0
        while time.monotonic() < until:
            for mac, phone in pairs:
                self.assert_talk(mac, phone)
            rounds += 1
        for thread in attackers:
            thread.join(20 * SLACK)
        self.assertGreater(tally[0], 100, "too few attacks to mean anything")
        self.assertGreater(rounds, 3)
        self.assert_healthy(relay)
        self.assert_gives_back(relay, base)
        for mac, phone in pairs:
            self.assert_talk(mac, phone)
            mac.drop(), phone.drop()
        eventually(lambda: relay.metric("rooms") == 0, 10, what="no room left")

    def test_churn_gives_memory_back(self):
        relay = self.relay(QUICK)

        def churn(count):
            rooms = list(range(count))
            faults = []

            def work():
                while True:
                    try:
                        at = rooms.pop()
                    except IndexError:
                        return
                    try:
                        mac, phone = relay.pair()
                        phone.send(b"x" * (at % 3000))
                        mac.message()
                        way = at % 4
                        if way == 0:
                            phone.close()
                        elif way == 1:
                            reset(phone.sock), reset(mac.sock)
                        elif way == 2:
                            phone.try_send(frame(3))
                        mac.drop(), phone.drop()
                    except Exception as fault:  # noqa: BLE001, told below
                        faults.append(f"{at}: {fault!r}")

            threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120 * SLACK)
            self.assertEqual(faults, [])

        churn(200)
        time.sleep(0.5)
        base, descriptors = relay.rss(), relay.descriptors()
        churn(1000)
        self.assert_gives_back(relay, descriptors)
        self.assertLess(relay.rss() - base, 8 * MIB * SLACK * SLACK)
        eventually(lambda: relay.metric("rooms") == 0, 10, what="no room left")
        self.assert_healthy(relay)


if __name__ == "__main__":
    main()
