"""tandemctl's own commands: usage, dev-cert, pair, probe, bench (operations 3.1)."""
import base64
import hashlib
import json
import os
import re
import shutil
import socket
import ssl
import stat
import tempfile
import threading
import time

from cryptography import x509

from derive import room_name
from harness import SLACK, RelayCase, free_port, main, program, whole_ring, write_certificate


class Silence:
    """A port that accepts and never says a word; or answers every connection with `words` and closes."""

    def __init__(self, words=None):
        self.words, self.kept = words, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            if self.words is None:
                self.kept.append(peer)
                continue
            peer.settimeout(2)
            try:
                peer.recv(4096)
                peer.sendall(self.words)
            except OSError:
                pass
            peer.close()

    def close(self):
        self.listener.close()
        for peer in self.kept:
            peer.close()


class CtlCase(RelayCase):
    def folder(self):
        path = tempfile.mkdtemp(prefix="tandem-ctl-")
        self.addCleanup(shutil.rmtree, path, True)
        return path

    def one_line(self, finished, code, *patterns):
        """It failed as it should: this exit code, one line on stderr that says all of these."""
        self.assertEqual(finished.returncode, code, finished.stderr)
        lines = [line for line in finished.stderr.splitlines() if line.strip()]
        self.assertEqual(len(lines), 1, finished.stderr)
        for pattern in patterns:
            self.assertRegex(lines[0], pattern)

    def probed_relay(self, config=None, **how):
        """A relay that is what its origin says, so that a probe's signatures hold. -> (relay, origin)"""
        port = free_port()
        return self.relay(config, hostname=f"localhost:{port}", port=port, **how), f"https://localhost:{port}"

    def probe(self, origin, trusted, *args):
        return program("tandemctl", "probe", origin, *args, env={**os.environ, "SSL_CERT_FILE": trusted})


class Usage(CtlCase):
    def test_a_wrong_command_line_exits_2_with_one_line_that_helps(self):
        for args, patterns in ((["stauts"], ["stauts", "status"]), (["dev-crt"], ["dev-cert"]), (["--no-such"], ["--no-such"]),
                               (["probe"], ["required"]), (["probe", "ftp://x"], ["ftp://x"]), (["pair", "--confg", "x"], ["--config"]),
                               (["dev-cert", "stray"], ["stray"]), (["bench", "https://relay.example.com"], ["loopback|this machine"])):
            self.one_line(program("tandemctl", *args), 2, *patterns)

    def test_no_arguments_is_usage_and_help_is_not(self):
        bare = program("tandemctl")
        self.assertEqual((bare.returncode, bare.stdout), (2, ""))
        self.assertIn("probe", bare.stderr)
        for args in (["--help"], ["probe", "--help"]):
            helped = program("tandemctl", *args)
            self.assertEqual((helped.returncode, helped.stderr), (0, ""))
        self.assertRegex(program("tandemctl", "--version").stdout, r"^tandemctl \d+\.\d+\.\d+")

    def test_with_json_an_error_is_an_object_as_well(self):
        failed = program("tandemctl", "dev-cert", "--json", "--out", "/proc/no/such")
        self.one_line(failed, 1, "/proc/no/such")
        self.assertEqual(json.loads(failed.stdout)["ok"], False)


class DevCert(CtlCase):
    def test_writes_a_certificate_that_serves_localhost(self):
        folder = os.path.join(self.folder(), "new")
        made = program("tandemctl", "dev-cert", "--out", folder, "--name", "relay1.test", "--name", "192.0.2.1")
        self.assertEqual(made.returncode, 0, made.stderr)
        certificate, key = os.path.join(folder, "fullchain.pem"), os.path.join(folder, "privkey.pem")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        with open(certificate, "rb") as file:
            parsed = x509.load_pem_x509_certificate(file.read())
        self.assertLessEqual((parsed.not_valid_after - parsed.not_valid_before).days, 825)
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        self.assertEqual(set(names.get_values_for_type(x509.DNSName)), {"localhost", "relay1.test"})
        self.assertEqual({str(a) for a in names.get_values_for_type(x509.IPAddress)}, {"127.0.0.1", "::1", "192.0.2.1"})
        server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=certificate)
        server.load_cert_chain(certificate, key)
        ours, theirs = socket.socketpair()

        def serve():
            with server.wrap_socket(theirs, server_side=True) as served:
                served.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        wrapped = client.wrap_socket(ours, server_hostname="localhost")
        wrapped.sendall(b"x")
        thread.join(5)
        wrapped.close()

    def test_overwrites_nothing(self):
        for there in ("fullchain.pem", "privkey.pem"):
            folder = self.folder()
            with open(os.path.join(folder, there), "w", encoding="ascii") as file:
                file.write("precious")
            self.one_line(program("tandemctl", "dev-cert", "--out", folder), 1, re.escape(there), "exists")
            self.assertEqual(os.listdir(folder), [there])


class Pair(CtlCase):
    def write_config(self, **more):
        folder = self.folder()
        certificate, key = write_certificate(folder, ("relay1.test",))
        path = os.path.join(folder, "relay.jsonc")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"hostname": "relay1.test:8443", "tls": {"certificate": certificate, "private_key": key}, **more}, file)
        return path

    def minted(self, path):
        shown = program("tandemctl", "pair", "--config", path, "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)

    def test_prints_a_url_a_qr_code_and_the_tag(self):
        shown = program("tandemctl", "pair", "--config", self.write_config())
        self.assertEqual(shown.returncode, 0, shown.stderr)
        url = re.search(r"iterm2://pair\?\S+", shown.stdout).group(0)
        self.assertIn("v=1", url)
        self.assertIn("relay=https://relay1.test:8443", url)
        self.assertRegex(shown.stdout, "[▀▄█]{2}")
        self.assertRegex(shown.stdout, r"tag [0-9a-f]{8}")

    def test_mints_what_its_url_says_and_never_the_same_twice(self):
        path = self.write_config()
        first, second = self.minted(path), self.minted(path)
        self.assertNotEqual(first["room"], second["room"])
        self.assertRegex(first["pid"], "^[0-9a-f]{32}$")
        self.assertEqual(first["tag"], hashlib.sha256(first["room"].encode()).hexdigest()[:8])
        self.assertEqual(first["bucket"], int(first["room"][-4:], 16))
        rs = re.search(r"rs=([^&]+)", first["url"]).group(1)
        self.assertEqual(room_name(base64.urlsafe_b64decode(rs + "=="), first["pid"]), first["room"])

    def test_names_the_map_where_a_map_decides(self):
        path = self.write_config(shard_map={"url": "https://resolver.example.com/shardmap.json"})
        url = self.minted(path)["url"]
        self.assertIn("v=2", url)
        self.assertIn("resolver=https://resolver.example.com/shardmap.json", url)
        self.assertNotIn("relay=", url)

    def test_a_config_that_is_wrong_is_told_in_one_line(self):
        self.one_line(program("tandemctl", "pair", "--config", self.write_config(nonsense=1)), 1, "nonsense")


class Probe(CtlCase):
    def test_drives_a_pairing_through_and_leaves_nothing_behind(self):
        relay, origin = self.probed_relay()
        for url in (origin, origin.replace("https:", "wss:") + "/"):
            done = self.probe(url, relay.certificate)
            self.assertEqual(done.returncode, 0, done.stderr)
            for step in ("mac", "phone", "regist", "signature", "1 B", "64 KiB", "256 KiB", "deleted"):
                self.assertIn(step, done.stdout)
            self.assertGreaterEqual(len(re.findall(r"\d ms", done.stdout)), 10)
        self.assertEqual(sum(relay.status()["rooms"].values()), 0)

    def test_json_is_one_object_a_line_and_the_last_sums_up(self):
        relay, origin = self.probed_relay()
        done = self.probe(origin, relay.certificate, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        *steps, summary = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertTrue(summary["ok"])
        self.assertTrue(all(step["ok"] and step["ms"] >= 0 for step in steps), steps)

    def test_says_what_attestation_keeps_it_from(self):
        relay, origin = self.probed_relay({"attest": {"required": True, "app_id": "TEAMID.example"}})
        done = self.probe(origin, relay.certificate)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "demands attestation")
        self.assertRegex(done.stdout, r"skipped\s+phone: pairs")

    def test_finds_a_room_of_this_host_in_a_fleet(self):
        port = free_port()
        host = f"localhost:{port}"
        maps = self.maps({"version": 3, "ranges": [{"low": 0, "high": 49151, "host": "other.test"},
                                                   {"low": 49152, "high": 65535, "host": host}]})
        relay = self.relay({"shard_map": {"url": maps.url}}, hostname=host, port=port)
        self.assertEqual(self.probe(f"https://{host}", relay.certificate).returncode, 0)

    def test_names_what_is_wrong_and_what_to_do(self):
        relay, origin = self.probed_relay()
        stranger, _ = write_certificate(self.folder(), ("localhost",), name="stranger")
        self.one_line(self.probe(origin, stranger), 1, "certificate", "SSL_CERT_FILE")
        named, _ = self.probed_relay(names=("elsewhere.test",), config={"tls": {"allow_name_mismatch": True}})
        self.one_line(self.probe(f"https://localhost:{named.port}", named.certificate), 1, "certificate|host")
        self.one_line(self.probe(f"https://127.0.0.1:{relay.port}", relay.certificate), 1, "signature", "hostname")
        self.one_line(self.probe(f"https://localhost:{free_port()}", relay.certificate), 1, "refused", "running")
        self.one_line(self.probe("https://no-such-host.invalid", relay.certificate), 1, "no-such-host.invalid", "DNS")

    def test_gives_up_within_15_seconds_whatever_hangs(self):
        for words in (None, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"):
            port = Silence(words)
            self.addCleanup(port.close)
            began = time.monotonic()
            self.one_line(program("tandemctl", "probe", f"https://localhost:{port.port}"), 1, "TLS")
            self.assertLess(time.monotonic() - began, 15)


class Bench(CtlCase):
    def test_measures_each_load_and_reports_no_fault(self):
        relay, origin = self.probed_relay()
        done = program("tandemctl", "bench", origin, "--json", "--seconds", "0.5", "--sockets", "60", "--rooms", "2", timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = {row["load"]: row for row in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(set(rows), {"parked", "throughput", "handshakes"})
        self.assertEqual(rows["parked"]["sockets"], 60)
        self.assertGreater(rows["throughput"]["messages_per_second"], 10)
        self.assertGreater(rows["handshakes"]["per_second"], 1)
        relay.stop()

    def test_stays_below_the_limits_that_a_relay_has_by_default(self):
        relay, origin = self.probed_relay({"limits": {"upgrades_per_minute": 120, "sockets_per_client": 64}})
        done = program("tandemctl", "bench", origin, "--seconds", "0.5", "--sockets", "200", timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        relay.stop()

    def row(self, origin, *args, timeout=90):
        done = program("tandemctl", "bench", origin, "--json", *args, timeout=timeout)
        row = json.loads(done.stdout.splitlines()[0])
        # A sanitizer keeps freed memory back: only a plain build tells whether the relay does.
        faults = [f for f in row.get("faults", []) if SLACK == 1 or "resident memory grew" not in f]
        self.assertEqual((faults, done.returncode), ([], 1 if row.get("faults") else 0), done.stdout + done.stderr)
        return row

    def test_streams_keep_their_pace_beside_a_hostile_crowd(self):
        relay, origin = self.probed_relay({"timeouts": {"request": "2s", "admission": "3s"}})
        row = self.row(origin, "--load", "hostile", "--seconds", "4", "--rooms", "4", "--rate", "20", "--frame", "1024", "--attackers", "66")
        self.assertGreaterEqual(row["kept"], 0.9)
        self.assertGreater(row["attackers_opened"], 66)
        relay.stop()

    def test_churn_leaves_nothing_behind(self):
        relay, origin = self.probed_relay()
        row = self.row(origin, "--load", "churn", "--connections", "3000", "--admin", f"127.0.0.1:{relay.admin_port}")
        self.assertLess(row["ratio"], 1.05)
        relay.stop()

    def test_churn_wants_to_see_the_relays_memory(self):
        self.one_line(program("tandemctl", "bench", "https://localhost:1", "--load", "churn"), 2, "--admin")

    def test_a_soak_moves_rooms_where_it_may_write_the_map(self):
        path, port = os.path.join(self.folder(), "map.json"), free_port()
        host, origin = f"localhost:{port}", f"https://localhost:{port}"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(whole_ring(5, host), file)
        relay = self.relay({"shard_map": {"url": f"file://{path}", "poll_interval": "500ms", "drain_delay": "1s", "eviction_rate": 1000}}, hostname=host, port=port)
        row = self.row(origin, "--load", "soak", "--seconds", "18", "--rooms", "8", "--map", path, "--admin", f"127.0.0.1:{relay.admin_port}")
        self.assertGreaterEqual(row["reshards"], 2)
        self.assertGreater(row["sockets_moved_away"], 0)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["ranges"]), 1, "the ring is whole again")
        relay.stop()

    def test_a_soak_brings_the_relay_back_to_its_baseline(self):
        relay, origin = self.probed_relay()
        row = self.row(origin, "--load", "soak", "--seconds", "6", "--rooms", "12", "--admin", f"127.0.0.1:{relay.admin_port}")
        self.assertGreater(row["splices"], 12)
        self.assertGreater(row["messages"], 100)
        relay.stop()


if __name__ == "__main__":
    main()
