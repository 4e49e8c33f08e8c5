"""What the operator watches (operations 3.4, 3.5): the admin listener, its metrics, and that the dashboard, the alerts and the
drawing in deploy/ and docs/ speak of metrics that exist. promtool, where it is installed, judges them too."""
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import time
import unittest

from harness import HOST, OTHER, SOURCE, RelayCase, eventually, main, shard_map, whole_ring
from wire import SLACK

PROMTOOL = shutil.which("promtool")
RULES = os.path.join(SOURCE, "deploy", "prometheus", "tandem.rules.yml")
RULES_TEST = os.path.join(SOURCE, "deploy", "prometheus", "tandem.rules.test.yml")
DASHBOARD = os.path.join(SOURCE, "deploy", "grafana", "tandem.json")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def metric_names(text):
    return set(re.findall(r"\b(?:tandem|process)_[a-z0-9_]+", text))


def families(scrape):
    """-> {family: type}, and the names of all series"""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", scrape, re.M))
    return types, set(re.findall(r"^([a-z_]+)", re.sub(r"^#.*$", "", scrape, flags=re.M), re.M))


class Metrics(RelayCase):
    def test_a_scrape_is_whole_before_anything_happened(self):
        relay = self.relay()
        scrape = relay.admin("/metrics")
        self.assertEqual(scrape.getheader("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
        types, _ = families(scrape.text)
        helps = dict(re.findall(r"^# HELP (\S+) (.+)$", scrape.text, re.M))
        self.assertEqual(set(types), set(helps))
        self.assertGreaterEqual(len([t for t in types if t.startswith("tandem_")]), 35)
        if PROMTOOL:
            judged = subprocess.run([PROMTOOL, "check", "metrics"], input=scrape.text, capture_output=True, text=True, timeout=20)
            self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)

    def test_rooms_sockets_and_traffic_are_counted(self):
        relay = self.relay()
        mac, phone = relay.pair()
        lone = relay.admit("ab" * 32, "mac")
        self.assertEqual([relay.metric("rooms", state=s) for s in ("spliced", "mac_only", "phone_only", "pending")], [1, 1, 0, 0])
        self.assertEqual(relay.metric("sockets", state="admitted"), 3)
        mac.send(bytes(1000))
        phone.message()
        eventually(lambda: relay.metric("relayed_bytes_total", **{"from": "mac"}) == 1000, what="bytes from the mac")
        self.assertEqual(relay.metric("relayed_messages_total", **{"from": "mac"}), 1)
        self.assertEqual(relay.metric("relayed_bytes_total", **{"from": "phone"}), 0)
        self.assertEqual(relay.metric("admissions_total", role="phone", via="open"), 1)
        status = relay.status()
        self.assertEqual(status["rooms"], {"spliced": 1, "mac_only": 1, "phone_only": 0, "pending": 0})
        self.assertEqual(status["sockets"]["admitted"], 3)
        for end in (mac, phone, lone):
            end.drop()
        eventually(lambda: relay.metric("closes_total") == 3, what="three ends")

    def test_the_certificates_expiry(self):
        relay = self.relay()
        left = relay.metric("certificate_expiry_timestamp_seconds") - time.time()
        self.assertTrue(29 * 86400 < left <= 30 * 86400, left)

    def test_nothing_names_a_room_or_an_address(self):
        relay = self.relay()
        room = "cd" * 32
        end = relay.admit(room, "mac", source="127.0.0.77")
        said = "".join(relay.admin(path).text for path in ("/metrics", "/status", "/"))
        self.assertNotIn(room, said)
        self.assertNotIn("127.0.0.77", said)
        end.drop()


class Admin(RelayCase):
    def test_pages_and_refusals(self):
        relay = self.relay()
        for path in ("/metrics", "/healthz", "/readyz", "/status", "/"):
            self.assertEqual(relay.admin(path).status, 200, path)
        self.assertEqual(relay.admin("/nowhere").status, 404)
        self.assertEqual(relay.admin("/status", method="POST").status, 405)
        for host in ("evil.example", "relay1.test", "192.0.2.1:9464", f"{HOST}:{relay.admin_port}"):
            self.assertEqual(relay.admin("/status", headers={"Host": host}).status, 403, host)
        for host in ("localhost", "127.0.0.1", "[::1]:1"):
            self.assertEqual(relay.admin("/status", headers={"Host": host}).status, 200, host)

    def test_the_public_port_knows_none_of_it(self):
        relay = self.relay()
        for path in ("/metrics", "/status", "/healthz"):
            self.assertEqual(relay.http("GET", path).status, 400, path)

    def test_explain_tells_without_naming_the_room(self):
        relay = self.relay()
        room = "ef" * 32
        mac = relay.admit(room, "mac")
        told = json.loads(relay.admin(f"/explain?room={room}").text)
        self.assertEqual((told["bucket"], told["owner"], told["ours"], told["state"]), (0xEFEF, HOST, True, "mac_only"))
        self.assertRegex(told["tag"], "^[0-9a-f]{8}$")
        self.assertEqual(relay.admin("/explain?room=x").status, 400)
        self.assertNotIn(room, relay.log())
        mac.drop()

    def test_answers_to_the_end_of_a_graceful_stop(self):
        relay = self.relay({"timeouts": {"shutdown": "3s"}})
        mac, phone = relay.pair()
        relay.process.terminate()
        seen = []
        while relay.process.poll() is None:
            try:
                seen.append(relay.admin("/readyz").status)
            except OSError:
                pass
            time.sleep(0.02)
        self.assertEqual(relay.process.returncode, 0)
        # The signal may arrive behind the first question; from then on it is stopping, and says so to the end.
        self.assertEqual(seen[-1], 503)
        self.assertEqual(set(seen[seen.index(503):]), {503}, seen)
        mac.drop()
        phone.drop()

    def test_answers_without_a_descriptor_left(self):
        relay = self.relay(before_exec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        mac, phone = relay.pair()
        held = []
        for _ in range(200):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", relay.port))
            held.append(sock)
        until, spent = time.monotonic() + 2, relay.cpu_seconds()
        while time.monotonic() < until:
            self.assertEqual(relay.admin("/healthz").status, 200)
            self.assertEqual(relay.admin("/metrics").status, 200)
            time.sleep(0.1)
        self.assertLess(relay.cpu_seconds() - spent, 1.5 * SLACK, "it spins")
        mac.text("on we go")
        self.assertEqual(phone.message(), b"on we go")
        for sock in held:
            sock.close()
        mac.drop()
        phone.drop()

    def test_the_drain_is_told_as_it_goes(self):
        maps = self.maps(whole_ring(1))
        relay = self.relay({"shard_map": {"url": maps.url, "poll_interval": "100ms", "drain_delay": "300ms", "eviction_rate": 4}})
        ends = [relay.admit(f"{n:02x}" * 32, "mac") for n in range(4)]
        maps.document = shard_map(2, (0, 65535, OTHER))
        status = eventually(lambda: (s := relay.status())["draining"]["rooms"] == 4 and s, what="four rooms to drain")
        self.assertEqual(status["owned"], {"buckets": 0, "ranges": []})
        self.assertGreater(status["draining"]["expected_end_seconds"], 0.5)
        eventually(lambda: relay.metric("evicted_rooms_total") == 4, what="all evicted")
        self.assertIsNone(relay.status()["draining"]["expected_end_seconds"])
        for end in ends:
            end.drop()


class Deploy(RelayCase):
    def test_every_metric_that_is_named_exists(self):
        types, series = families(self.relay().admin("/metrics").text)
        board = json.loads(read(DASHBOARD))
        expressions = [t["expr"] for p in board["panels"] for t in p.get("targets", [])] + [a["expr"] for a in board["annotations"]["list"]]
        named = metric_names("\n".join(expressions)) | metric_names(json.dumps(board["templating"])) | metric_names(read(RULES))
        self.assertGreater(len(named), 30)
        self.assertEqual(named - series, set())
        shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in named}
        unseen = {name for name in types if name.startswith("tandem_")} - shown - {"tandem_upgrades_total", "tandem_draining_buckets",
                                                                                "tandem_stall_seconds", "tandem_tls_handshake_seconds"}
        self.assertEqual(unseen, set(), "neither on the dashboard nor in an alert")

    def test_the_dashboard_is_well_formed_and_its_panels_do_not_overlap(self):
        board = json.loads(read(DASHBOARD))
        taken = {}
        for panel in board["panels"]:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} lies on {taken.get((x, y))}")
                    taken[x, y] = panel["title"]
        self.assertEqual(len({p["id"] for p in board["panels"]}), len(board["panels"]))

    def test_the_drawing_is_of_this_dashboard(self):
        drawn = subprocess.run(["/usr/bin/python3", os.path.join(SOURCE, "deploy", "grafana", "draw.py"), "--check"], timeout=30)
        self.assertEqual(drawn.returncode, 0, "run deploy/grafana/draw.py")

    @unittest.skipUnless(PROMTOOL, "promtool (package prometheus) is not installed")
    def test_promtool_accepts_the_rules_and_they_fire_when_they_should(self):
        for command in (["check", "rules", RULES], ["test", "rules", RULES_TEST]):
            judged = subprocess.run([PROMTOOL, *command], capture_output=True, text=True, timeout=60)
            self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)


if __name__ == "__main__":
    main()
