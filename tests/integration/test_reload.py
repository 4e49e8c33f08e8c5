"""Reload without loss (operations 3.2): SIGHUP and changed certificates swap what new sockets get, and live ones never notice.

    TANDEM_RELOADS   how many SIGHUPs under traffic (300; the contract's figure is 1,000)"""
import os
import re
import signal
import ssl
import time

from cryptography import x509

from harness import RelayCase, eventually, layered, main, write_certificate
from wire import BINARY, SLACK, Pump, frame, pump

RELOADS = int(os.environ.get("TANDEM_RELOADS", "300"))
IN_FLIGHT = 8  # messages of one direction that may be on their way
SIZES = (20, 700, 5000, 90000)


class Traffic:
    """Numbered messages in both directions of a pairing, a few on their way at any time; every one is checked."""

    def __init__(self, mac, phone):
        self.ends = [Pump(mac), Pump(phone)]
        self.sent, self.heard = [0, 0], [0, 0]
        for side, end in enumerate(self.ends):
            end.keep_messages = False
            end.on_message = lambda opcode, payload, side=side: self.take(side, opcode, payload)

    @staticmethod
    def payload(side, number):
        return number.to_bytes(8, "big") + bytes([side + number & 255]) * SIZES[number % len(SIZES)]

    def take(self, side, opcode, payload):
        assert (opcode, payload) == (BINARY, self.payload(1 - side, self.heard[side])), f"message {self.heard[side]} lost, moved or altered"
        self.heard[side] += 1

    def go_on(self):
        for side, end in enumerate(self.ends):
            assert not end.closed, end.closed
            if not end.wants_to_write() and self.sent[side] - self.heard[1 - side] < IN_FLIGHT:
                end._source, end.dry = iter([frame(BINARY, self.payload(side, self.sent[side]), key=bytes(4))]), False
                self.sent[side] += 1

    def is_all_heard(self):
        return self.sent == self.heard[::-1]

    def drop(self):
        for end in self.ends:
            end.end.drop()


class Reloads(RelayCase):
    def swap(self, source, target):
        os.rename(source, target)

    def presented(self, relay):
        """-> serial number of the certificate that a new handshake is shown"""
        anything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
        sock = relay.tls(context=anything)
        try:
            return x509.load_der_x509_certificate(sock.getpeercert(True)).serial_number
        finally:
            sock.close()

    def serial(self, path):
        with open(path, "rb") as file:
            return x509.load_pem_x509_certificate(file.read()).serial_number

    def test_reloads_under_traffic_lose_no_frame(self):
        relay = self.relay({"log": {"level": "info"}, "limits": {"messages_per_second": 1000000}})
        flows = [Traffic(*relay.pair()) for _ in range(4)]
        ends = [end for flow in flows for end in flow.ends]
        read, done, asked, renewed = len(relay.log()), 0, 0, 0

        def step():
            nonlocal read, done, asked, renewed
            for flow in flows:
                flow.go_on()
            fresh = relay.log()[read:]
            fresh = fresh[:fresh.rfind("\n") + 1]
            read += len(fresh)
            assert "refused" not in fresh, fresh
            done += fresh.count("reloaded")
            if done < asked or asked == RELOADS:
                return
            asked += 1
            # Each changes something, some a certificate as well.
            relay.config = layered(relay.config, {"limits": {"sockets_per_client": 100 + asked, "splice_buffer": f"{32 + asked % 64}KiB"},
                                                  "timeouts": {"stall": f"{30 + asked % 7}s"}, "attest": {"required": asked % 2 == 0}})
            relay.write_config()
            if asked % 25 == 0:
                certificate, key = write_certificate(relay.folder, relay.names, name="next")
                self.swap(key, relay.key), self.swap(certificate, relay.certificate)
                renewed += 1
            relay.signal(signal.SIGHUP)

        began = time.monotonic()
        pump(ends, lambda: done >= RELOADS, timeout=60 + RELOADS, each=step)
        took = time.monotonic() - began
        pump(ends, lambda: all(flow.is_all_heard() for flow in flows), timeout=30)
        self.assertEqual(self.presented(relay), self.serial(relay.certificate))
        messages = sum(sum(flow.heard) for flow in flows)
        print(f"{RELOADS} reloads in {took:.1f} s, {renewed} with a new certificate; {messages} messages of 4 pairings, none lost")
        self.assertGreater(messages, 4 * RELOADS)
        for flow in flows:
            flow.drop()

    def test_a_certificate_is_taken_by_rename_by_symlink_and_in_either_order(self):
        relay = self.relay({"log": {"level": "info"}})
        mac, phone = relay.pair()

        def taken(path):
            eventually(lambda: self.presented(relay) == self.serial(path), 5, 0.1, "the new certificate")
            self.assert_talk(mac, phone)

        def renewed(name):
            return write_certificate(relay.folder, relay.names, name=name)

        certificate, key = renewed("key-first")
        self.swap(key, relay.key)
        time.sleep(1.5)
        self.swap(certificate, relay.certificate)
        taken(relay.certificate)
        before = self.serial(relay.certificate)
        certificate, key = renewed("certificate-first")
        self.swap(certificate, relay.certificate)
        until = time.monotonic() + 6.5  # longer than the relay looks at one change
        while time.monotonic() < until:
            self.assertEqual(self.presented(relay), before)
            time.sleep(0.2)
        self.assertRegex(relay.log(), r"not taken.*tls\.private_key.*match")
        self.swap(key, relay.key)
        taken(relay.certificate)
        # As ACME clients lay it out: both names are links into a folder that is flipped.
        live = os.path.join(relay.folder, "live")
        for number in (1, 2):
            os.mkdir(os.path.join(relay.folder, f"lineage{number}"))
            certificate, key = write_certificate(os.path.join(relay.folder, f"lineage{number}"), relay.names)
            if number == 1:
                os.symlink("lineage1", live)
                for ours, theirs in ((relay.certificate, "tls-cert.pem"), (relay.key, "tls-key.pem")):
                    os.symlink(os.path.join("live", theirs), ours + ".link")
                    self.swap(ours + ".link", ours)
            else:
                os.symlink("lineage2", live + ".new")
                self.swap(live + ".new", live)
            taken(certificate)
        mac.drop(), phone.drop()

    def test_every_bad_certificate_is_answered_in_the_log_also_one_like_the_last(self):
        relay = self.relay({"log": {"level": "info"}})
        before = self.serial(relay.certificate)
        for _ in range(2):
            said = len(relay.log())
            certificate, key = write_certificate(relay.folder, ("elsewhere.test",), name="bad")
            self.swap(key, relay.key), self.swap(certificate, relay.certificate)
            eventually(lambda: "elsewhere.test" in relay.log()[said:], 5, what="a refusal in the log")
        self.assertEqual(self.presented(relay), before)

    def test_a_refusal_names_the_key_of_the_file_that_is_wrong(self):
        relay = self.relay({"log": {"level": "info"}})
        for key in ("certificate", "private_key"):
            old = relay.config["tls"][key]
            relay.config["tls"][key] = "/nowhere.pem"
            relay.write_config()
            said = len(relay.log())
            relay.signal(signal.SIGHUP)
            eventually(lambda: re.search(rf"reload refused.*tls\.{key}: cannot read /nowhere\.pem", relay.log()[said:]), what=key)
            relay.config["tls"][key] = old

    def test_a_host_that_is_renamed_is_told_that_it_needs_a_restart(self):
        relay = self.relay({"log": {"level": "info"}})
        certificate, key = write_certificate(relay.folder, ("renamed.test",), name="renamed")
        old = relay.config
        relay.config = layered(old, {"hostname": "renamed.test", "tls": {"certificate": certificate, "private_key": key}})
        relay.write_config()
        relay.signal(signal.SIGHUP)
        eventually(lambda: re.search(r"reload refused.*renamed\.test.*a new hostname needs a restart", relay.log()), what="a refusal that says so")
        self.assertEqual(self.presented(relay), self.serial(relay.certificate))


if __name__ == "__main__":
    main()
