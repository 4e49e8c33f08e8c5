"""The graceful stop (wire contract 1.5, operations 3.3) and the signals around it."""
import itertools
import os
import signal
import socket
import tempfile
import time

from derive import new_room
from harness import PROOF_TIME, RelayCase, eventually, free_port, main
from wire import SLACK, Endpoint, Pump, Refused, frame, push_until_held


class Stop(RelayCase):
    def test_everybody_hears_server_shutting_down(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            relay = self.relay()
            mac, phone = relay.pair()
            parked = relay.admit(new_room(), "mac")
            waiting, _ = relay.greet(new_room(), "mac")
            relay.signal(number)
            for end in (mac, phone, parked, waiting):
                self.assert_ends(end, 1001, "server shutting down")
            self.assertEqual(relay.wait(5), 0)

    def test_what_was_taken_in_is_flushed_first(self):
        relay = self.relay({"limits": {"messages_per_second": 1000000}})
        mac, phone = relay.pair()
        payloads = [os.urandom(2500) for _ in range(20)]
        for payload in payloads:
            mac.send(payload)
        eventually(lambda: relay.metric("relayed_messages_total", **{"from": "mac"}) == 20, what="taken in")
        relay.signal(signal.SIGTERM)
        self.assertEqual([phone.message() for _ in range(20)], payloads)
        self.assert_ends(phone, 1001, "server shutting down")
        mac.drop()

    def test_signals_to_the_last_moment_do_not_change_how_it_ends(self):
        for number in (signal.SIGTERM, signal.SIGHUP) * 5:
            relay = self.relay()
            relay.signal(signal.SIGTERM)
            until = time.monotonic() + 20 * SLACK
            while relay.process.poll() is None:
                self.assertLess(time.monotonic(), until, "still running")
                relay.signal(number)
                time.sleep(0.001)  # without a pause the process does nothing but take signals
            self.assertEqual(relay.process.returncode, 0)

    def test_nobody_new_is_served_and_the_operator_still_is(self):
        relay = self.relay({"timeouts": {"shutdown": "3s"}})
        mute = relay.admit(new_room(), "mac")  # never answers the close, so that the stop takes its time
        idle = relay.tls()
        relay.signal(signal.SIGTERM)
        time.sleep(0.5)
        if relay.process.poll() is None:
            try:
                self.assertEqual(relay.admin("/readyz").status, 503)
                self.assertEqual(relay.admin("/healthz").status, 200)
            except OSError:
                self.assertIsNotNone(relay.process.poll(), "the admin listener went silent before the end")
        with self.assertRaises((OSError, EOFError, Refused)):
            relay.connect(new_room())
        self.assertEqual(relay.wait(3 + 5), 0)
        mute.drop(), idle.close()

    def test_the_dead_hold_it_no_longer_than_configured(self):
        relay = self.relay({"timeouts": {"shutdown": "2s"}, "limits": {"messages_per_second": 1000000}})
        room = new_room()
        mac = relay.admit(room, "mac")
        phone = relay.admit(room, "phone", receive_buffer=32768)
        source = Pump(mac, (frame(2, bytes(65536), key=bytes(4)) for _ in itertools.count()))
        push_until_held(source, 0.5)
        mutes = [relay.admit(new_room(), "mac") for _ in range(5)]
        began = time.monotonic()
        relay.signal(signal.SIGTERM)
        time.sleep(0.2)
        relay.signal(signal.SIGTERM)
        relay.signal(signal.SIGINT)
        self.assertEqual(relay.wait(15), 0)
        self.assertLess(time.monotonic() - began, 2 + 2 * SLACK)
        for end in (mac, phone, *mutes):
            end.drop()

    def test_other_signals_do_no_harm(self):
        relay = self.relay()
        mac, phone = relay.pair()
        for number in (signal.SIGUSR1, signal.SIGPIPE, signal.SIGUSR2, signal.SIGUSR2, signal.SIGHUP):
            relay.signal(number)
            time.sleep(0.1)
            self.assert_talk(mac, phone)
        mac.drop(), phone.drop()

    def test_sigusr2_toggles_debug_lines(self):
        relay = self.relay({"log": {"level": "info"}})

        def grows():
            before = len(relay.log())
            end, _ = relay.join(new_room(), "phone")  # refused: the reason is a line of debug
            end.drop()
            time.sleep(0.3)
            return relay.log()[before:]

        quiet = grows()
        relay.signal(signal.SIGUSR2)
        time.sleep(0.3)
        loud = grows()
        self.assertGreater(len(loud.splitlines()), len(quiet.splitlines()))
        relay.signal(signal.SIGUSR2)
        time.sleep(0.3)
        self.assertEqual(len(grows().splitlines()), len(quiet.splitlines()))


class Activation(RelayCase):
    """Listening sockets that systemd holds: they replace `listen`, and outlive the process."""

    def test_a_client_that_waits_in_the_backlog_is_served_by_the_next_life(self):
        held = socket.socket()
        self.addCleanup(held.close)
        held.bind(("127.0.0.1", 0))
        held.listen(16)
        port = held.getsockname()[1]
        relay = self.relay({"listen": [f"127.0.0.1:{free_port()}"]}, port=port, fds=[held.fileno()])
        self.assert_talk(*relay.pair())
        self.assertEqual(relay.stop(), 0)
        early = socket.create_connection(("127.0.0.1", port), 5)
        early.settimeout(20 * SLACK)
        relay.start()
        sock = relay.context().wrap_socket(early, server_hostname=relay.hostname)
        end = Endpoint(sock, new_room(), relay.hostname)
        end.text('{"v":1,"role":"mac"}')
        self.assertIn(b"nonce", end.message())
        end.drop()

    def test_systemd_is_told(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.settimeout(PROOF_TIME * SLACK)
        relay = self.relay(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})
        seen = []

        def told(word):
            while not any(line.startswith(word) for line in seen):
                seen.extend(listener.recv(65536).decode().splitlines())
            return True

        self.assertTrue(told("READY=1"))
        self.assertTrue(told("WATCHDOG=1"))
        self.assertTrue(told("STATUS="))
        relay.signal(signal.SIGTERM)
        self.assertTrue(told("STOPPING=1"))


class Listening(RelayCase):
    def test_several_addresses_ipv6_among_them(self):
        try:
            six = free_port("::1")
        except OSError:
            self.skipTest("no IPv6 on this machine")
        four, more = free_port(), free_port()
        relay = self.relay({"listen": [f"127.0.0.1:{four}", f"127.0.0.1:{more}", f"[::1]:{six}"]}, port=four)
        for address in (("127.0.0.1", four), ("127.0.0.1", more), ("::1", six)):
            sock = relay.context().wrap_socket(socket.create_connection(address, 5), server_hostname=relay.hostname)
            Endpoint(sock, new_room(), relay.hostname).close()

    def test_a_taken_port_is_one_clear_line(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        relay = self.relay({"log": {"level": "info"}}, port=port, ready=False, exits=1)
        self.assertEqual(relay.wait(5), 1)
        self.assertIn(str(port), relay.log())


if __name__ == "__main__":
    main()
