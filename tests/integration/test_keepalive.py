"""Keepalive (wire contract 1.5): a ping each interval, and who is taken for dead."""
import time

from derive import new_room
from harness import RelayCase, main
from wire import PONG, SLACK, Ended, frame

INTERVAL = 1.0


class Keepalive(RelayCase):
    def setUp(self):
        self.server = self.relay({"timeouts": {"keepalive": "1s", "admission": "30s"}})

    def collect(self, end, seconds):
        """Reads for a while. -> the Ended that came, or None"""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                end.receive(left / SLACK)
            except TimeoutError:
                return None
            except Ended as ended:
                return ended
        return None

    def test_every_socket_is_pinged_each_interval(self):
        admitted = self.server.admit(new_room(), "mac")
        waiting, _ = self.server.greet(new_room(), "mac")
        until = time.monotonic() + 3.6
        while time.monotonic() < until:  # both answer in time
            self.assertIsNone(self.collect(admitted, 0.1))
            self.assertIsNone(self.collect(waiting, 0.1))
        for end in (admitted, waiting):
            self.assertIn(len(end.pings), (3, 4) if SLACK == 1 else (2, 3, 4))
        admitted.drop(), waiting.drop()

    def test_a_mute_socket_is_dropped_and_its_peer_told(self):
        room = new_room()
        mac = self.server.admit(room, "mac")
        phone = self.server.admit(room, "phone", answer_pings=False)
        began = time.monotonic()
        ended = self.collect(mac, 6 * SLACK)
        took = time.monotonic() - began
        self.assertEqual(str(ended), str(Ended(1001, "peer gone")))
        self.assertGreater(took, 0.9 * INTERVAL)
        self.assertLess(took, 3.2 * INTERVAL * SLACK)
        self.assertEqual(self.server.metric("keepalive_timeouts_total"), 1)
        mac.drop(), phone.drop()

    def test_any_byte_is_a_sign_of_life(self):
        ends = [(self.server.admit(new_room(), "mac", answer_pings=False), data)
                for data in (frame(2, b"x"), frame(PONG, b"unasked"), frame(9, b"mine"), None)]
        slow = frame(2, b"one byte at a time, for as long as it takes")
        until, at = time.monotonic() + 4.5, 0
        while time.monotonic() < until:
            for end, data in ends:
                end.send_bytes(slow[at:at + 1] if data is None else data)
            at += 1
            time.sleep(0.4)
        for end, _ in ends:
            self.assertIsNone(self.collect(end, 0.1))
            end.drop()


if __name__ == "__main__":
    main()
