"""Limits, proxies, shedding (operations 3.2): each at its edge. Rates and caps of the entry gate are in test_gate.py."""
import os
import socket
import struct
import time

from derive import new_room
from harness import RelayCase, eventually, main
from wire import SLACK, Endpoint, Pump, Refused, frame, pump

BUDGET = 4


def forwarded(*chains):
    return [("X-Forwarded-For", chain) for chain in chains]


class Proxies(RelayCase):
    """Who a client is: same budget, same client."""

    def trusting(self, trust, **proxy):
        return self.relay({"proxy": {"trust": trust, **proxy}, "limits": {"upgrades_per_minute": BUDGET}})

    def spend(self, relay, extra, source=None):
        """-> whether one more upgrade of this client passes"""
        try:
            relay.connect(new_room(), extra=extra, source=source).drop()
            return True
        except Refused as refused:
            self.assertEqual((refused.answer.status, refused.answer.body), (429, b"rate limited"))
            return False

    def assert_same(self, relay, *heads):
        for at in range(BUDGET):
            self.assertTrue(self.spend(relay, heads[at % len(heads)]), f"upgrade {at + 1}")
        for extra in heads:
            self.assertFalse(self.spend(relay, extra), f"{extra} has a budget of its own")

    def test_without_trust_headers_say_nothing(self):
        relay = self.trusting("none")
        self.assert_same(relay, forwarded("203.0.113.1"), [("CF-Connecting-IP", "203.0.113.2")], [])
        self.assertTrue(self.spend(relay, [], source="127.0.0.9"))

    def test_the_right_most_hop_of_all_lines(self):
        relay = self.trusting("forwarded_for")
        self.assert_same(relay, forwarded("203.0.113.1"), forwarded("198.51.100.7, 203.0.113.1"), forwarded("198.51.100.8", " 203.0.113.1 "))
        self.assertTrue(self.spend(relay, forwarded("203.0.113.2")))
        self.assertTrue(self.spend(relay, []))

    def test_hops_count_from_the_right(self):
        relay = self.trusting("forwarded_for", hops=2)
        self.assert_same(relay, forwarded("198.51.100.1, 203.0.113.1, 10.0.0.1"), forwarded("203.0.113.1, 10.0.0.2"), forwarded("203.0.113.1", "10.0.0.3"))
        self.assert_same(relay, forwarded("203.0.113.5"), forwarded("203.0.113.5, 10.0.0.1"))  # a chain of one is its right-most entry

    def test_what_is_no_address_is_the_socket(self):
        relay = self.trusting("forwarded_for")
        self.assert_same(relay, [], forwarded("unknown"), forwarded(""), forwarded("203.0.113.1:x"), forwarded("999.0.0.1"))

    def test_a_mapped_address_is_ipv4_and_ipv6_counts_by_64(self):
        relay = self.trusting("forwarded_for")
        self.assert_same(relay, forwarded("203.0.113.1"), forwarded("::ffff:203.0.113.1"))
        self.assert_same(relay, forwarded("2001:db8:1:2::1"), forwarded("2001:db8:1:2:ffff::9"))
        self.assertTrue(self.spend(relay, forwarded("2001:db8:1:3::1")))

    def test_cloudflare_names_its_client(self):
        relay = self.trusting("cloudflare")
        self.assert_same(relay, [("CF-Connecting-IP", "203.0.113.1")], [("CF-Connecting-IP", "203.0.113.1"), *forwarded("203.0.113.9")])
        self.assertTrue(self.spend(relay, [("CF-Connecting-IP", "203.0.113.2")]))

    def test_only_trusted_addresses_are_believed(self):
        relay = self.trusting("forwarded_for", **{"from": ["127.0.0.1/32"]})
        self.assertTrue(all(self.spend(relay, forwarded(f"203.0.113.{n}")) for n in range(2 * BUDGET)))
        for at in range(BUDGET):
            self.assertTrue(self.spend(relay, forwarded(f"198.51.100.{at}"), source="127.0.0.2"))
        self.assertFalse(self.spend(relay, forwarded("198.51.100.99"), source="127.0.0.2"), "a stranger named its own client")


class ProxyProtocol(RelayCase):
    V2 = b"\r\n\r\n\x00\r\nQUIT\n"

    def setUp(self):
        self.server = self.relay({"proxy": {"trust": "proxy_protocol"}, "limits": {"upgrades_per_minute": BUDGET}})

    def v2(self, command, family, body):
        return self.V2 + struct.pack(">BBH", 0x20 | command, family, len(body)) + body

    def upgrade(self, header, split=False):
        """-> 101, 429, or None where the relay hung up unanswered"""
        sock = self.server.tcp()
        try:
            for piece in ([header[i:i + 1] for i in range(len(header))] if split else [header]):
                sock.sendall(piece)
            secured = self.server.context().wrap_socket(sock, server_hostname=self.server.hostname)
            Endpoint(secured, new_room(), self.server.hostname).drop()
            return 101
        except Refused as refused:
            return refused.answer.status
        except OSError:
            return None
        finally:
            sock.close()

    def test_both_versions_name_the_client(self):
        one = b"PROXY TCP4 203.0.113.1 192.0.2.1 4000 443\r\n"
        two = self.v2(1, 0x11, socket.inet_aton("203.0.113.1") + socket.inet_aton("192.0.2.1") + struct.pack(">HH", 4000, 443))
        self.assertEqual([self.upgrade(one), self.upgrade(two), self.upgrade(one, split=True), self.upgrade(two, split=True)], [101] * 4)
        self.assertEqual([self.upgrade(one), self.upgrade(two)], [429, 429])
        six = b"PROXY TCP6 2001:db8::1 2001:db8::2 4000 443\r\n"
        self.assertEqual([self.upgrade(six) for _ in range(BUDGET + 1)], [101] * BUDGET + [429])

    def test_local_and_unknown_mean_the_socket(self):
        headers = [self.v2(0, 0, b""), b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN 1.2.3.4 5.6.7.8 1 2\r\n", self.v2(1, 0, b"")]
        self.assertEqual([self.upgrade(h) for h in headers], [101] * 4)
        self.assertEqual([self.upgrade(h) for h in headers], [429] * 4)

    def test_a_missing_or_broken_header_closes_unanswered(self):
        ends = socket.inet_aton("203.0.113.1") + socket.inet_aton("192.0.2.1") + struct.pack(">HH", 4000, 443)
        for bad in (b"", b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 203.0.113.1 192.0.2.1 4000\r\n", b"PROXY TCP4 203.0.113.1 192.0.2.1 4000 443\n",
                    b"PROXY TCP4 2001:db8::1 192.0.2.1 4000 443\r\n", b"PROXY TCP4 203.0.113.1 192.0.2.1 70000 443\r\n",
                    b"PROXY TCP4 0203.0.113.1 192.0.2.1 4000 443\r\n", b"proxy TCP4 203.0.113.1 192.0.2.1 4000 443\r\n",
                    b"PROXY " + b"x" * 200 + b"\r\n", self.V2 + struct.pack(">BBH", 0x31, 0x11, 12) + ends,
                    self.v2(1, 0x11, ends[:8]), self.v2(5, 0x11, ends)):
            with self.subTest(bad):
                self.assertIsNone(self.upgrade(bad))


class PlainBehindAProxy(RelayCase):
    def test_tls_off_on_loopback(self):
        relay = self.relay({"tls": "off", "proxy": {"trust": "forwarded_for"}})
        room = new_room()
        ends = []
        for role in ("mac", "phone"):
            end = Endpoint(relay.tcp(), room, relay.hostname, extra=forwarded("203.0.113.1"))
            end.text('{"v":1,"role":"%s"}' % role)
            end.message()
            end.text("{}")
            self.assertIn(b'"ok":true', end.message().replace(b" ", b""))
            ends.append(end)
        self.assert_talk(*ends)
        for end in ends:
            end.drop()


class Pacing(RelayCase):
    """Bandwidth limits slow the reader down and drop nothing."""

    def rate(self, relay, pairs, seconds):
        """Floods all pairs. -> bytes a second that arrived, pair by pair, the first second (a burst is allowed) left out"""
        pumps, sinks = [], []
        for mac, phone in pairs:
            source = Pump(mac, (frame(2, bytes(16384), key=bytes(4)) for _ in range(100000)))
            sink = Pump(phone)
            sink.keep_messages = False
            pumps += [source, sink]
            sinks.append(sink)
        began = time.monotonic()
        pump(pumps, lambda: time.monotonic() - began > 2, 10)
        start = [sink.received_bytes for sink in sinks]
        mark = time.monotonic()
        pump(pumps, lambda: time.monotonic() - mark > seconds, 20)
        took = time.monotonic() - mark
        self.assertFalse([p for p in pumps if p.closed])
        return [(sink.received_bytes - at) / took for sink, at in zip(sinks, start)]

    def test_a_room_has_its_share(self):
        relay = self.relay({"limits": {"room_bytes_per_second": "512KiB", "messages_per_second": 1000000}})
        rates = self.rate(relay, [relay.pair(), relay.pair()], 4)
        for rate in rates:
            self.assertLess(rate, 1.3 * 512 * 1024)
            self.assertGreater(rate, 0.6 * 512 * 1024 / SLACK)

    def test_the_box_has_its_share_and_starves_nobody(self):
        relay = self.relay({"limits": {"box_bytes_per_second": "1MiB", "messages_per_second": 1000000}})
        rates = self.rate(relay, [relay.pair() for _ in range(4)], 5)
        self.assertLess(sum(rates), 1.3 * (1 << 20))
        self.assertGreater(sum(rates), 0.6 * (1 << 20) / SLACK)
        self.assertGreater(min(rates), sum(rates) / 4 / 4, rates)


class Egress(RelayCase):
    def test_the_alert_speaks_at_80_and_100_percent_and_refuses_nothing(self):
        relay = self.relay({"limits": {"box_egress_per_month": "1MiB"}, "log": {"level": "info"}})
        mac, phone = relay.pair()

        def move(count):
            for _ in range(count):
                mac.send(bytes(100000))
                phone.message()

        move(5)
        time.sleep(0.3)
        self.assertNotIn("egress", relay.log())
        move(4)
        eventually(lambda: any("egress" in line and "80 %" in line for line in relay.log().splitlines()), what="80 %")
        move(3)
        eventually(lambda: any("egress" in line and "100 %" in line for line in relay.log().splitlines()), what="100 %")
        relay.connect(new_room()).drop()
        self.assertGreaterEqual(relay.metric("egress_bytes_month"), 1200000)
        mac.drop(), phone.drop()

    def test_a_hard_budget_refuses_new_rooms_alone(self):
        relay = self.relay({"limits": {"box_egress_per_month": {"limit": "256KiB", "hard": True}}})
        room = new_room()
        mac, phone = relay.pair(room)
        for _ in range(4):
            mac.send(bytes(100000))
            phone.message()
        eventually(lambda: not self.passes(relay, new_room()), what="a refusal")
        self.assert_row(self.refusal(relay, new_room()), 503, "capacity", retry=True)
        newer = relay.admit(room, "phone")
        self.assert_talk(mac, newer)
        for end in (mac, phone, newer):
            end.drop()

    def passes(self, relay, room):
        try:
            relay.connect(room).drop()
            return True
        except Refused:
            return False


class Shedding(RelayCase):
    """Memory pressure, told through a file as the kernel writes it."""

    def setUp(self):
        self.pressure = f"/tmp/tandem-pressure-{os.getpid()}-{id(self)}"
        self.press(0)
        self.addCleanup(os.unlink, self.pressure)
        self.server = self.relay({"shed": {"memory_pressure": 20, "resume_below": 10, "pressure_file": self.pressure}, "log": {"level": "info"}})

    def press(self, percent):
        with open(self.pressure + ".new", "w", encoding="ascii") as file:
            for kind, value in (("some", percent), ("full", percent / 2)):
                file.write(f"{kind} avg10={value:.2f} avg60=0.00 avg300=0.00 total=0\n")
        os.rename(self.pressure + ".new", self.pressure)

    def passes(self, room):
        try:
            self.server.connect(room).drop()
            return True
        except Refused as refused:
            self.assertEqual((refused.answer.status, refused.answer.body), (503, b"capacity"))
            return False

    def test_new_rooms_then_the_unadmitted_then_whole_rooms_and_back_by_hysteresis(self):
        pairs = [self.server.pair() for _ in range(3)]
        waiting, _ = self.server.greet(new_room(), "mac")
        self.press(50)
        eventually(lambda: not self.passes(new_room()), 10, 0.2, "new rooms refused")
        self.assert_ends(waiting, 1001, "shedding", 10)
        self.assertEqual(self.server.metric("shedding"), 1)
        for mac, phone in pairs:
            self.assert_ends(mac, 1001, "shedding", 20)
            self.assert_ends(phone, 1001, "shedding", 20)
        self.press(15)  # below the upper mark, above the lower: it goes on
        time.sleep(2.5)
        self.assertFalse(self.passes(new_room()))
        self.press(5)
        eventually(lambda: self.passes(new_room()), 10, 0.2, "service resumed")
        self.assertEqual(self.server.metric("shedding"), 0)
        self.assert_talk(*self.server.pair())

    def test_pressure_below_the_mark_sheds_nothing(self):
        mac, phone = self.server.pair()
        self.press(19)
        time.sleep(2.5)
        self.assertTrue(self.passes(new_room()))
        self.assert_talk(mac, phone)
        mac.drop(), phone.drop()


if __name__ == "__main__":
    main()
