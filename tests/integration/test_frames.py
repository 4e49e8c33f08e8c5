"""RFC 6455 to the letter (wire contract 1.2): what is a protocol error, how closes are answered, and that pings are."""
import os
import struct
import time

from derive import new_room
from harness import PROOF_TIME, RelayCase, eventually, main
from wire import BINARY, CLOSE, PING, PONG, SLACK, TEXT, Ended, close_frame, frame, is_closed_within


class ProtocolErrors(RelayCase):
    def setUp(self):
        self.server = self.relay()

    def check(self, data, code=1002, pending=True, half=False):
        """Before admission and in a splice: the sender is closed with the code, its peer hears `peer gone`."""
        if pending:
            end = self.server.connect(new_room())
            end.send_bytes(data)
            self.assertEqual(end.ending().code, code, "before admission")
            end.drop()
        mac, phone = self.server.pair()
        phone.try_send(data)
        self.assertEqual(phone.ending().code, code, "in a splice")
        if half:  # of a message that had begun, its beginning may have gone through
            self.assertEqual(str(mac.ending()), str(Ended(1001, "peer gone")))
        else:
            self.assert_ends(mac, 1001, "peer gone")
        mac.drop(), phone.drop()

    def test_unmasked_frames(self):
        self.check(frame(TEXT, b"{}", mask=False))
        self.check(frame(PING, b"", mask=False), pending=False)

    def test_reserved_bits(self):
        for bits in (1, 2, 4):
            self.check(frame(BINARY, b"x", rsv=bits), pending=bits == 4)

    def test_reserved_opcodes(self):
        for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
            self.check(frame(opcode, b"x"), pending=opcode in (3, 11))

    def test_lengths_that_are_not_minimal(self):
        self.check(frame(TEXT, b"{}", form=16))
        self.check(frame(TEXT, b"{}", form=64), pending=False)
        self.check(frame(BINARY, bytes(126), form=64), pending=False)
        self.check(frame(PING, b"x", form=16), pending=False)

    def test_control_frames_in_fragments_or_oversized(self):
        self.check(frame(PING, b"x", fin=False))
        self.check(frame(PONG, b"x", fin=False), pending=False)
        self.check(frame(CLOSE, struct.pack(">H", 1000), fin=False), pending=False)
        self.check(frame(PING, bytes(126)))
        self.check(frame(CLOSE, struct.pack(">H", 1000) + bytes(124)), pending=False)

    def test_continuations_out_of_turn(self):
        self.check(frame(0, b"x"))
        self.check(frame(BINARY, b"a", fin=False) + frame(BINARY, b"b"), pending=False, half=True)
        self.check(frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"), pending=True, half=True)

    def test_text_before_admission_is_utf8(self):
        for bad in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"{\"v\":1,\"role\":\"mac\xc3\"}"):
            end = self.server.connect(new_room())
            end.text(bad)
            self.assertEqual(end.ending().code, 1007, bad)
            end.drop()

    def test_spliced_text_is_not_looked_at(self):
        mac, phone = self.server.pair()
        phone.text(b"\xff\xfe not utf-8")
        self.assertEqual(mac.receive(), (TEXT, b"\xff\xfe not utf-8"))
        mac.drop(), phone.drop()

    def test_lengths_beyond_all_limits(self):
        self.check(frame(BINARY, b"x" * 100, claims=1 << 32, form=64), 1009)
        self.check(frame(BINARY, b"x" * 100, claims=262145, form=64), 1009)
        for pending in (True, False):
            end = self.server.connect(new_room()) if pending else self.server.admit(new_room(), "mac")
            end.send_bytes(struct.pack(">BBQ", 0x82, 0xFF, 1 << 63) + b"mask")
            self.assertIn(end.ending().code, (1002, 1009))
            end.drop()

    def test_a_total_over_fragments_counts(self):
        mac, phone = self.server.pair()
        phone.send(bytes(30000), fin=False)
        phone.try_send(frame(0, b"x" * 10, fin=False, claims=232145))  # 262,145 in all, said by the header
        self.assert_ends(phone, 1009, "frame too large")
        self.assertEqual(mac.ending().reason, "peer gone")
        mac.drop()


class Closing(RelayCase):
    def setUp(self):
        self.server = self.relay()

    def test_a_close_is_echoed_and_the_peer_told(self):
        for code, reason in ((1000, b""), (1000, b"done"), (1001, b"bye"), (1011, b""), (3000, b"ours"), (4999, "gr\u00fc\u00dfe".encode())):
            mac, phone = self.server.pair()
            phone.send_bytes(close_frame(code, reason))
            self.assertEqual(phone.ending().code, code)
            self.assertTrue(is_closed_within(phone.sock, PROOF_TIME * SLACK), "open after the closing handshake")
            self.assert_ends(mac, 1001, "peer gone")
            phone.drop()

    def test_an_empty_close_is_echoed_empty(self):
        end = self.server.admit(new_room(), "mac")
        end.send_bytes(close_frame())
        fin, opcode, payload = end.next_frame()
        self.assertEqual((fin, opcode, payload), (True, CLOSE, b""))
        end.drop()

    def test_codes_that_may_not_travel(self):
        for code in (0, 1, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535):
            with self.subTest(code):
                end = self.server.admit(new_room(), "mac")
                end.send_bytes(close_frame(code))
                self.assertEqual(end.ending().code, 1002)
                end.drop()

    def test_a_close_of_one_byte_and_a_reason_that_is_not_utf8(self):
        for payload, code in ((b"\x03", 1002), (struct.pack(">H", 1000) + b"\xff\xff", 1007)):
            mac, phone = self.server.pair()
            phone.send_bytes(frame(CLOSE, payload))
            self.assertEqual(phone.ending().code, code)
            self.assert_ends(mac, 1001, "peer gone")
            phone.drop()

    def test_nothing_follows_a_close(self):
        mac, phone = self.server.pair()
        phone.send_bytes(close_frame(1000) + frame(BINARY, b"too late"))
        self.assertEqual(phone.ending().code, 1000)
        self.assert_ends(mac, 1001, "peer gone")
        phone.drop()

    def test_a_close_that_is_not_answered_frees_the_socket(self):
        before = self.server.descriptors()
        end = self.server.connect(new_room())
        end.text("no hello")
        fin, opcode, _ = end.next_frame()
        self.assertEqual((fin, opcode), (True, CLOSE))  # read, and never answered
        eventually(lambda: self.server.descriptors() <= before, 6, what="the descriptor back")
        end.drop()

    def test_what_still_comes_after_a_close_of_ours_does_not_eat_the_reason(self):
        mac, phone = self.server.pair()
        phone.try_send(frame(BINARY, b"", claims=1 << 30, form=64) + os.urandom(400000))
        time.sleep(0.2)
        self.assert_ends(phone, 1009, "frame too large")
        mac.drop()


class Pings(RelayCase):
    def setUp(self):
        self.server = self.relay()

    def test_they_are_answered_before_and_after_admission(self):
        end = self.server.connect(new_room())
        payloads = [b"", b"x", os.urandom(125)]
        for payload in payloads:
            end.ping(payload)
        end.await_pongs(3)
        self.assertEqual(end.pongs, payloads)
        end.text('{"v":1,"role":"mac"}')
        end.message()
        end.ping(b"between")
        end.await_pongs(4)
        end.text("{}")
        end.message()
        end.ping(b"admitted")
        end.await_pongs(5)
        self.assertEqual(end.pongs[3:], [b"between", b"admitted"])
        end.close()

    def test_they_and_stray_pongs_stay_on_their_side(self):
        mac, phone = self.server.pair()
        phone.ping(b"mine")
        phone.send(b"stray", PONG)
        phone.await_pongs(1)
        mac.stays_open(0.3)
        self.assertNotIn(b"mine", mac.pings)
        self.assertNotIn(b"stray", mac.pongs)
        mac.drop(), phone.drop()

    def test_thirty_one_at_once_are_all_answered(self):
        end = self.server.admit(new_room(), "mac")
        wanted = [b"%d" % n for n in range(31)]
        end.send_bytes(b"".join(frame(PING, p) for p in wanted))
        end.await_pongs(31)
        self.assertEqual(end.pongs, wanted)
        end.close()

    def test_of_a_flood_the_newest_is_answered_and_it_costs_no_message_rate(self):
        mac, phone = self.server.pair()
        for at in range(20):
            mac.send_bytes(b"".join(frame(PING, b"%d" % (at * 200 + n)) for n in range(200)))
        mac.ping(b"newest")
        until = time.monotonic() + 5 * SLACK
        while b"newest" not in mac.pongs and time.monotonic() < until:
            try:
                mac.receive(0.2)
            except TimeoutError:
                pass
        self.assertIn(b"newest", mac.pongs)
        self.assert_talk(mac, phone)
        mac.drop(), phone.drop()

    def test_one_inside_a_message_is_answered_before_its_end(self):
        mac, phone = self.server.pair()
        phone.send(b"a" * 10, TEXT, fin=False)
        phone.ping(b"inside")
        phone.await_pongs(1)
        phone.send(b"b" * 10, 0)
        self.assertEqual(mac.receive(), (TEXT, b"a" * 10 + b"b" * 10))
        mac.drop(), phone.drop()


if __name__ == "__main__":
    main()
