"""The splice (wire contract 1.5): same bytes, same boundaries, nothing lost, little standing, memory bounded."""
import itertools
import os
import signal
import socket
import struct
import subprocess
import time

from derive import new_room
from harness import MIB, PROOF_TIME, RelayCase, eventually, main
from wire import BINARY, PING, SLACK, TEXT, Ended, Pump, frame, pump, push_until_held, reset

FAST = {"limits": {"messages_per_second": 1000000}}
SEND_BUFFER = 256 * 1024


def numbered(count, size, seed):
    """`count` payloads of `size` bytes, each telling its stream and place."""
    body = struct.pack(">I", seed) * (size // 4 + 1)
    for at in range(count):
        yield (struct.pack(">II", seed, at) + body)[:size]


class InOrder:
    """Holds each arrival against the stream that was sent."""

    def __init__(self, payloads, opcode=BINARY):
        self.expected, self.opcode, self.count = iter(payloads), opcode, 0

    def __call__(self, opcode, payload):
        want = next(self.expected, None)
        assert opcode == self.opcode and payload == want, f"message {self.count} came altered, lost or out of order"
        self.count += 1


def frames(payloads, opcode=BINARY):
    key = bytes(4)  # masking with zeros: python is slow at it, and the relay unmasks all the same
    return (frame(opcode, payload, key=key) for payload in payloads)


def quiet(pump_):
    pump_.keep_messages = False
    return pump_


class Content(RelayCase):
    def setUp(self):
        self.server = self.relay(FAST)

    def test_every_size_at_the_edges_of_headers_both_ways(self):
        mac, phone = self.server.pair()
        for size in (0, 1, 3, 4, 5, 7, 8, 9, 125, 126, 127, 4095, 4096, 16383, 16384, 16385, 65535, 65536, 65537, 262143, 262144):
            for sender, receiver, opcode in ((mac, phone, BINARY), (phone, mac, TEXT)):
                payload = (os.urandom(997) * (size // 997 + 1))[:size]
                sender.send(payload, opcode)
                self.assertEqual(receiver.receive(), (opcode, payload), size)
        mac.drop(), phone.drop()

    def test_fragments_are_one_message_whatever_the_cuts(self):
        mac, phone = self.server.pair()
        for sizes in ([1, 1], [0, 5], [5, 0], [0, 0, 0], [100, 70000, 3], [1] * 60, [65536, 131072, 65535], [262144, 0]):
            parts = [os.urandom(size) for size in sizes]
            for at, part in enumerate(parts):
                mac.send(part, 0 if at else TEXT, fin=at == len(parts) - 1)
            self.assertEqual(phone.receive(), (TEXT, b"".join(parts)), sizes)
        mac.drop(), phone.drop()

    def test_masks_and_chunks_of_every_alignment(self):
        mac, phone = self.server.pair()
        payload = bytes(range(256)) * 40
        for cut in range(1, 40):
            data = frame(BINARY, payload, key=os.urandom(4))
            for at in range(0, len(data), cut * 97 + 1):
                mac.send_bytes(data[at:at + cut * 97 + 1])
            self.assertEqual(phone.message(), payload, cut)
        mac.drop(), phone.drop()

    def test_streams_both_ways_lose_nothing(self):
        mac, phone = self.server.pair()
        there, back = InOrder(numbered(600, 30011, 1)), InOrder(numbered(3000, 997, 2))
        a, b = quiet(Pump(mac, frames(numbered(600, 30011, 1)))), quiet(Pump(phone, frames(numbered(3000, 997, 2))))
        a.on_message, b.on_message = back, there
        pump([a, b], lambda: (there.count, back.count) == (600, 3000) or a.closed or b.closed, 60)
        self.assertIsNone(a.closed), self.assertIsNone(b.closed)
        mac.drop(), phone.drop()

    def test_rooms_do_not_mix(self):
        pairs = [self.server.pair() for _ in range(8)]
        for n in range(50):
            for at, (mac, phone) in enumerate(pairs):
                mac.send(b"%d.%d" % (at, n))
        for at, (mac, phone) in enumerate(pairs):
            self.assertEqual([phone.message() for _ in range(50)], [b"%d.%d" % (at, n) for n in range(50)])
            mac.drop(), phone.drop()

    def test_without_a_peer_messages_vanish(self):
        room = new_room()
        mac = self.server.admit(room, "mac")
        for _ in range(10):
            mac.send(b"x" * 100)
        mac.stays_open(0.3)
        phone = self.server.admit(room, "phone")
        mac.send(b"now")
        self.assertEqual(phone.message(), b"now")
        mac.drop(), phone.drop()

    def test_metrics_count_whole_messages_and_their_bytes(self):
        mac, phone = self.server.pair()
        mac.send(b"a" * 100, TEXT, fin=False), mac.send(b"b" * 50, 0)
        phone.send(b"c" * 7)
        phone.message(), mac.message()
        self.assertEqual(self.server.metric("relayed_messages_total", **{"from": "mac"}), 1)
        self.assertEqual(self.server.metric("relayed_bytes_total", **{"from": "mac"}), 150)
        self.assertEqual(self.server.metric("relayed_bytes_total", **{"from": "phone"}), 7)
        mac.drop(), phone.drop()


class Leaving(RelayCase):
    def setUp(self):
        self.server = self.relay(FAST)

    def test_the_peer_of_whoever_leaves_in_whatever_way_is_told(self):
        ways = {"a close": lambda e: e.send_bytes(frame(8, b"\x03\xe8")), "a FIN": lambda e: e.sock.close(), "a RST": lambda e: reset(e.sock),
                "a protocol error": lambda e: e.send_bytes(frame(3))}
        for why, leave in ways.items():
            for leaver in ("mac", "phone"):
                with self.subTest(f"{leaver}: {why}"):
                    mac, phone = self.server.pair()
                    gone, left = (mac, phone) if leaver == "mac" else (phone, mac)
                    leave(gone)
                    self.assert_ends(left, 1001, "peer gone", 2)
                    gone.drop()

    def test_what_was_sent_before_leaving_arrives(self):
        mac, phone = self.server.pair()
        for n in range(20):
            phone.send(b"%d" % n)
        phone.sock.close()
        self.assertEqual([mac.message() for _ in range(20)], [b"%d" % n for n in range(20)])
        self.assert_ends(mac, 1001, "peer gone")

    def test_half_a_message_is_ended_and_never_glued_to_the_next(self):
        for whole in (False, True):  # as one frame cut short, and as fragments without an end
            room = new_room()
            mac, phone = self.server.pair(room)
            if whole:
                phone.send(b"h" * 1000, fin=False)
            else:
                phone.send_bytes(frame(BINARY, b"h" * 100000, key=bytes(4))[:60000])
            time.sleep(0.2)
            newer = self.server.admit(room, "phone")
            newer.send(b"whole")
            got = mac.message()
            if got != b"whole":
                self.assertTrue(set(got) == {ord("h")}, got[:40])
                self.assertEqual(mac.message(), b"whole")
            mac.drop(), newer.drop(), phone.drop()

    def test_a_displaced_receiver_gets_no_rest_and_the_newcomer_no_half(self):
        room = new_room()
        mac, phone = self.server.pair(room)
        data = frame(BINARY, b"r" * 200000, key=bytes(4))
        mac.send_bytes(data[:100000])
        time.sleep(0.2)
        newer = self.server.admit(room, "phone")
        mac.send_bytes(data[100000:])
        mac.send(b"next")
        self.assertEqual(newer.message(), b"next")
        mac.drop(), newer.drop(), phone.drop()


class Limits(RelayCase):
    def test_messages_of_256_kib_pass_and_a_byte_more_does_not(self):
        relay = self.relay()
        mac, phone = relay.pair()
        mac.send(bytes(262144))
        self.assertEqual(len(phone.message()), 262144)
        mac.send_bytes(frame(BINARY, b"", claims=262145, form=64))
        self.assert_ends(mac, 1009, "frame too large")
        self.assert_ends(phone, 1001, "peer gone")

    def test_500_messages_a_second_of_a_room(self):
        relay = self.relay()
        mac, phone = relay.pair()
        mac.send_bytes(b"".join(frame(BINARY, b"%d" % n, key=bytes(4)) for n in range(400)))
        self.assertEqual([phone.message() for _ in range(400)], [b"%d" % n for n in range(400)])
        time.sleep(1.2)
        mac.try_send(b"".join(frame(BINARY, b"x", key=bytes(4)) for _ in range(1200)))
        self.assert_ends(mac, 1008, "frame rate exceeded")
        self.assert_ends(phone, 1001, "peer gone")

    def test_a_quota_closes_the_room_and_keeps_it_closed(self):
        relay = self.relay({"limits": {"room_bytes_per_day": "100KiB"}})
        room = new_room()
        mac, phone = relay.pair(room)
        mac.send(bytes(60000))
        phone.message()
        phone.send(bytes(60000))
        self.assert_ends(phone, 1008, "daily quota exceeded")
        self.assert_ends(mac, 1008, "daily quota exceeded")
        again, _ = relay.greet(room, "mac")
        again.text("{}")
        try:
            again.message()
            again.send(b"x")
        except Ended as ended:
            self.assertEqual((ended.code, ended.reason), (1008, "daily quota exceeded"))
        else:
            self.assert_ends(again, 1008, "daily quota exceeded")
        self.assertEqual(relay.metric("quota_exceeded_total"), 1)
        self.assert_talk(*relay.pair())

    def test_a_quota_counts_what_no_peer_takes(self):
        relay = self.relay({"limits": {"room_bytes_per_day": "100KiB"}})
        mac = relay.admit(new_room(), "mac")
        mac.send(bytes(60000))
        mac.stays_open(0.2)
        mac.send(bytes(60000))
        self.assert_ends(mac, 1008, "daily quota exceeded")


class Backpressure(RelayCase):
    def held_pair(self, relay, receive_buffer=65536):
        room = new_room()
        mac = relay.admit(room, "mac")
        phone = relay.admit(room, "phone", receive_buffer=receive_buffer)
        mac.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        return mac, phone

    def test_64_mib_at_a_peer_that_does_not_read(self):
        """The daemon grows by less than 8 MiB, another room is not held up, and every byte arrives in the end."""
        relay = self.relay(FAST)
        mac, phone = self.held_pair(relay)
        others = relay.pair()
        self.assert_talk(*others)
        count, size = 64 * 16, 65536
        base = top = relay.rss()

        def watch():
            nonlocal top
            top = max(top, relay.rss())

        check = InOrder(numbered(count, size, 3))
        source, sink = quiet(Pump(mac, frames(numbered(count, size, 3)))), quiet(Pump(phone, reading=False))
        sink.on_message = check
        push_until_held(source, each=watch)
        self.assertFalse(source.dry, "64 MiB were taken in though nobody reads")
        self.assertLess(source.sent_bytes, 8 * MIB)
        self.assert_talk(*others)
        sink.reading = True
        pump([source, sink], lambda: check.count == count or sink.closed or source.closed, 60, watch)
        self.assertIsNone(sink.closed), self.assertIsNone(source.closed)
        self.assertLess(top - base, 8 * MIB * SLACK, "grew by more than 8 MiB")
        for end in (mac, phone, *others):
            end.drop()

    def test_ten_stalled_rooms_stay_small_together(self):
        relay = self.relay(FAST)
        pairs = [self.held_pair(relay) for _ in range(10)]
        self.assert_talk(*pairs[0])
        base = relay.rss()
        for mac, _ in pairs:
            push_until_held(quiet(Pump(mac, frames(numbered(200, 262144, 4)))), 0.4)
        self.assertLess(relay.rss() - base, 8 * MIB * SLACK)
        for mac, phone in pairs:
            mac.drop(), phone.drop()

    def test_a_ping_of_the_flooder_at_a_slow_reader_is_answered_within_four_seconds(self):
        """A reader at 1 Mbit/s; what stands in the relay ahead of the ping is at most three seconds of it."""
        relay = self.relay(FAST)
        mac, phone = self.held_pair(relay, 32768)
        mac.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)  # what lies in our own kernel is not the relay's
        source, sink = quiet(Pump(mac, frames(numbered(4000, 16384, 5)))), quiet(Pump(phone, reading=False))
        rate, step = 125000, 6250  # bytes a second, and 50 ms of it
        began, asked, worst = time.monotonic(), None, 0.0
        budget = 0.0
        while time.monotonic() - began < 14:
            now = time.monotonic()
            budget = min((now - began) * rate - sink.received_bytes, 4 * step)
            if budget >= 1024:
                sink.read(int(budget))
            source.write(65536)
            source.read()
            sink.write()
            if asked is None and now - began > 3:
                source.control(frame(PING, b"p%d" % len(source.pongs)))
                asked, waiting_for = now, len(source.pongs) + 1
            if asked is not None:
                worst = max(worst, now - asked)
                if len(source.pongs) >= waiting_for:
                    asked = None
            self.assertIsNone(source.closed), self.assertIsNone(sink.closed)
            time.sleep(0.005)
        self.assertGreater(len(source.pongs), 1, "no ping was answered at all")
        self.assertLess(worst, 4 * max(1, SLACK / 2))
        mac.drop(), phone.drop()

    def test_a_stalled_reader_is_closed_as_slow_and_its_peer_told(self):
        relay = self.relay({"limits": {"messages_per_second": 1000000}, "timeouts": {"stall": "2s", "keepalive": "30s"}})
        mac, phone = self.held_pair(relay)
        source = quiet(Pump(mac, frames(itertools.cycle([bytes(65536)]))))
        began = time.monotonic()
        push_until_held(source, 0.5)
        while not source.closed and time.monotonic() - began < 12 * SLACK:
            source.read()
            source.write()
            time.sleep(0.02)
        took = time.monotonic() - began
        self.assertEqual(str(source.closed), str(Ended(1001, "peer gone")))
        self.assertGreater(took, 1.9)
        eventually(lambda: relay.metric("stalls_total") == 1, what="counted")
        phone.drop(), mac.drop()

    def test_a_slow_reader_is_not_a_stalled_one(self):
        relay = self.relay({"limits": {"messages_per_second": 1000000}, "timeouts": {"stall": "1s", "keepalive": "1s"}})
        mac, phone = self.held_pair(relay, 32768)
        source, sink = quiet(Pump(mac, frames(itertools.cycle([bytes(65536)])))), quiet(Pump(phone, reading=False))
        push_until_held(source, 0.3)
        until = time.monotonic() + 6
        while time.monotonic() < until:
            sink.read(12000)
            sink.write()
            source.write()
            source.read()
            self.assertIsNone(sink.closed), self.assertIsNone(source.closed)
            time.sleep(0.2)
        mac.drop(), phone.drop()

    def test_what_was_sent_while_a_reader_paused_counts_for_the_time_it_was_sent_in(self):
        """A steady sender below the rate is not too fast because its backlog is read at once."""
        relay = self.relay({"limits": {"messages_per_second": 100}})
        mac, phone = self.held_pair(relay)
        pace, began, sent = 80, time.monotonic(), 0
        source, sink = quiet(Pump(mac)), quiet(Pump(phone, reading=False))
        while (now := time.monotonic() - began) < 12 or source.wants_to_write():
            while sent < min(now, 8) * pace:
                source.control(frame(BINARY, struct.pack(">I", sent) * 500))
                sent += 1
            source.write(), source.read(), sink.write()
            sink.reading = sink.reading or now > 8
            if sink.reading:
                sink.read()
            self.assertIsNone(source.closed), self.assertIsNone(sink.closed)
            time.sleep(0.002)
        eventually(lambda: (sink.read(), sink.message_count == sent)[1], what="all of it")
        mac.drop(), phone.drop()

    def test_a_control_frame_finds_a_boundary_inside_a_large_message(self):
        relay = self.relay(FAST)
        mac, phone = relay.pair()
        data = frame(BINARY, bytes(200000), key=bytes(4))
        mac.send_bytes(data[:150000])
        time.sleep(0.2)
        phone.ping(b"amid")
        fin, opcode, payload = True, None, b""
        got = 0
        until = time.monotonic() + PROOF_TIME * SLACK
        while opcode != 10 and time.monotonic() < until:
            fin, opcode, payload = phone.next_frame(PROOF_TIME)
            got += len(payload) if opcode in (0, BINARY) else 0
        self.assertEqual((opcode, payload), (10, b"amid"))
        mac.send_bytes(data[150000:])
        while got < 200000:
            fin, opcode, payload = phone.next_frame(PROOF_TIME)
            self.assertEqual(opcode, BINARY if got == 0 else 0)
            got += len(payload)
        self.assertEqual((got, fin), (200000, True))
        mac.drop(), phone.drop()


class FastSources(RelayCase):
    """A source that fills the larger receive buffer in 20 ms has it, and nobody is left with what it let in for long. The sizes are
    such that any machine relays fast enough."""
    SMALL, LARGE = 64 * 1024, 256 * 1024
    LIMITS = {"messages_per_second": 1000000000, "socket_buffer": "64KiB", "fast_socket_buffer": "256KiB", "room_bytes_per_day": None}

    def start(self):
        self.server = self.relay({"limits": self.LIMITS})
        self.room, self.sent, self.flowing = new_room(), 0, True
        self.mac = self.server.admit(self.room, "mac")
        self.source = quiet(Pump(self.mac, self.flood()))

    def join(self, **how):
        phone = self.server.admit(self.room, "phone", **how)
        return phone, quiet(Pump(phone))

    def flood(self):
        while True:
            while not self.flowing:
                yield None
            self.sent += 1
            yield frame(BINARY, struct.pack(">I", self.sent) * 16384, key=bytes(4))

    def socket_of_the_mac(self):
        """-> how large its receive buffer in the relay may be, and what stands in it."""
        line = subprocess.run(["ss", "-tmnH", "src", f"127.0.0.1:{self.server.port}", "dst", f"127.0.0.1:{self.mac.sock.getsockname()[1]}"],
                              capture_output=True, text=True, check=True).stdout
        return int(line.partition(",rb")[2].partition(",")[0]), int(line.split()[1])

    def make_fast(self, sink):
        until = time.monotonic() + 20 * SLACK
        while self.socket_of_the_mac()[0] != self.LARGE:
            self.assertLess(time.monotonic(), until, "never had the larger buffer")
            end = time.monotonic() + 0.2
            pump([self.source, sink], lambda end=end: time.monotonic() > end or self.source.closed or sink.closed)

    def assert_little_stands(self, sink, seconds=3):
        """While a slow reader reads, no more is let in than the small buffer takes. What a busy machine had not read before is
        given a second to pass; what the large one lets in would be there for longer."""
        sink.reading, began = False, time.monotonic()
        while (now := time.monotonic() - began) < seconds:
            self.source.write(), self.source.read()
            sink.read(2000), sink.write()
            self.assertIsNone(self.source.closed), self.assertIsNone(sink.closed)
            if now > 1:
                self.assertLess(self.socket_of_the_mac()[1], self.SMALL * 1.5)  # the kernel lets the last segment in whole
            time.sleep(0.05)

    def test_it_is_had_until_the_reader_stops_and_nothing_is_lost(self):
        self.start()
        phone, sink = self.join()
        self.assertEqual(self.socket_of_the_mac()[0], self.SMALL)
        self.make_fast(sink)
        sink.reading = False
        push_until_held(self.source, 0.3)
        eventually(lambda: self.socket_of_the_mac()[0] == self.SMALL, what="the smaller buffer again")
        sink.reading, self.flowing, self.source.dry = True, False, True
        pump([self.source, sink], lambda: sink.message_count == self.sent or self.source.closed or sink.closed)
        self.assertIsNone(self.source.closed), self.assertIsNone(sink.closed)
        self.mac.drop(), phone.drop()

    def test_a_slow_newcomer_has_nothing_of_the_peer_before(self):
        self.start()
        phone, sink = self.join()
        self.make_fast(sink)
        newer, slow = self.join(receive_buffer=16384)
        self.assert_little_stands(slow)
        self.mac.drop(), phone.drop(), newer.drop()

    def test_who_floods_alone_is_not_fast(self):
        self.start()
        end = time.monotonic() + 1
        while time.monotonic() < end:
            self.source.write()
        newer, slow = self.join(receive_buffer=16384)
        self.assert_little_stands(slow)
        self.mac.drop(), newer.drop()

    def test_it_is_not_had_behind_a_pause(self):
        self.start()
        phone, sink = self.join(receive_buffer=16384)  # what lies between must not take the larger buffer at full speed
        self.make_fast(sink)
        pump([self.source, sink], lambda: not self.source._out)
        self.flowing, end = False, time.monotonic() + 3
        pump([self.source, sink], lambda: time.monotonic() > end)
        self.flowing, self.source.dry = True, False
        self.assert_little_stands(sink)
        self.mac.drop(), phone.drop()

    def test_a_reload_takes_it_away(self):
        self.start()
        phone, sink = self.join()
        self.make_fast(sink)
        self.server.config["limits"]["fast_socket_buffer"] = "64KiB"
        self.server.write_config()
        self.server.signal(signal.SIGHUP)
        eventually(lambda: self.socket_of_the_mac()[0] == self.SMALL, what="the smaller buffer again")
        self.mac.drop(), phone.drop()


if __name__ == "__main__":
    main()
