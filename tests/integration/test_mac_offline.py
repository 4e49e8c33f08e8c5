"""Three staged faults behind one complaint, "the phone cannot find my Mac", each followed by docs/troubleshooting.md alone: the
commands it names, in its order, and what they must say for a stranger to see the answer."""
import json
import os
import re

from derive import tag
from harness import RelayCase, eventually, free_port, main, program, shard_map, whole_ring
from wire import Ended, Refused

HALF = 32768


class MacOffline(RelayCase):
    def host(self, maps, **limits):
        """A relay of a fleet, by a map of its own. -> Daemon"""
        port = free_port()
        return self.relay({"shard_map": {"url": maps.url, "poll_interval": "300ms", "drain_delay": "600ms", "fetch_timeout": "100ms"},
                           "log": {"level": "info"}, "limits": limits}, hostname=f"localhost:{port}", port=port)

    def run_ctl(self, *args, code=0, relay=None):
        ran = program("tandemctl", *args, env={**os.environ, **({"SSL_CERT_FILE": relay.certificate} if relay else {})})
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    def doctor(self, relay, code=0):
        return self.run_ctl("doctor", "--config", relay.config_path, code=code, relay=relay)

    def explain(self, url, relay):
        return self.run_ctl("explain", url, "--config", relay.config_path)

    def pairing(self, relay):
        """-> (pairing URL, room), minted on a host of the fleet"""
        minted = json.loads(self.run_ctl("pair", "--config", relay.config_path, "--json"))
        return minted["url"], minted["room"]

    def map_is(self, relay, version):
        eventually(lambda: relay.status()["map"]["version"] == version, what=f"version {version}")

    def test_a_mac_is_parked_elsewhere_by_a_stale_map(self):
        stuck, maps = self.maps(whole_ring(1)), self.maps(whole_ring(1))
        old, new = self.host(stuck), self.host(maps)
        stuck.document = maps.document = whole_ring(2, old.hostname)
        self.map_is(old, 2), self.map_is(new, 2)
        url, room = self.pairing(new)
        # Everything moves to the new host; the old one cannot fetch any more, and the mac was parked there before.
        mac = old.admit(room, "mac")

        def broken(handler):
            handler.send_response(500)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        stuck.answer = broken
        maps.document = whole_ring(3, new.hostname)
        self.map_is(new, 3)
        phone, result = new.join(room, "phone")
        self.assertEqual(result, {"ok": False, "error": "mac offline"})
        phone.drop()
        eventually(lambda: old.status()["last_fetch_error"], what="a failing fetch")

        # First, always: the doctor, here on the host the user's phone goes to. Nothing is wrong there.
        self.doctor(new)
        # 1. whose room is it
        owner = self.run_ctl("owner", url)
        self.assertIn(tag(room), owner)
        self.assertIn(f"{new.hostname} (map version 3)", owner)
        # 2. explain, on that host
        said = self.explain(url, new)
        self.assertRegex(said, r"published +the same version")
        self.assertRegex(said, r"nobody is connected")
        self.assertRegex(said, r"mac offline: .*another host")
        # The table says: the tag, in the log of every host; the newest `admitted ... role=mac` is where it is.
        self.assertNotIn("role=mac", "".join(line for line in new.log().splitlines() if tag(room) in line))
        self.assertRegex(old.log(), rf"admitted room={tag(room)} .*role=mac")
        # And there: explain and the doctor say why.
        said = self.explain(url, old)
        self.assertRegex(said, r"the mac waits")
        self.assertRegex(said, r"map +version 2")
        self.assertRegex(said, r"polls +failing for .*http_5xx.*old map")
        self.assertRegex(self.doctor(old, code=1), r"\[FAIL\]  relay +cannot fetch its map: http_5xx")
        # Where only the relay's polls fail, the map as it is published shows it at once.
        relay_config = dict(old.config, shard_map=dict(old.config["shard_map"], url=maps.url))
        path = os.path.join(old.folder, "asked.jsonc")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(relay_config, file)
        self.assertRegex(self.run_ctl("explain", url, "--config", path),
                         rf"published +version 3, owner {re.escape(new.hostname)}: this relay's map is STALE")
        mac.drop()

    def test_the_map_has_a_mistyped_host(self):
        maps = self.maps(whole_ring(1))
        relay = self.host(maps)
        mistyped = relay.hostname.replace("localhost", "loclhost")
        maps.document = shard_map(2, (0, HALF - 1, mistyped), (HALF, 65535, "other.test"))
        self.map_is(relay, 2)
        url, room = self.pairing(relay)
        while int(room[-4:], 16) >= HALF:  # one whose host is the mistyped one
            url, room = self.pairing(relay)
        with self.assertRaises(Refused) as refused:
            relay.connect(room)
        self.assertEqual(refused.exception.answer.status, 421)

        doctor = self.doctor(relay, code=1)
        self.assertRegex(doctor, rf"\[FAIL\]  map .*names no {relay.hostname}.*nearest name in it is {mistyped}")
        self.assertIn(mistyped, self.run_ctl("owner", url))
        said = self.explain(url, relay)
        self.assertRegex(said, rf"owner +{mistyped} \(not this relay\)")
        self.assertRegex(said, rf"{mistyped}, which is nearly {relay.hostname}: one of the two is mistyped")

    def test_the_quota_is_exhausted(self):
        maps = self.maps(whole_ring(1))
        relay = self.host(maps, room_bytes_per_day="20KiB")
        maps.document = whole_ring(2, relay.hostname)
        self.map_is(relay, 2)
        url, room = self.pairing(relay)
        mac, phone = relay.pair(room)
        mac.send(bytes(30000))
        for end in (mac, phone):
            self.assert_ends(end, 1008, "daily quota exceeded")
        with self.assertRaises(Ended):
            relay.join(room, "phone")

        self.doctor(relay)
        self.assertIn(relay.hostname, self.run_ctl("owner", url))
        said = self.explain(url, relay)
        for role in ("mac", "phone"):
            self.assertRegex(said, rf"{role} +would be refused: daily quota exceeded")
        self.assertRegex(said, r"limits\.room_bytes_per_day.*opens again by itself, in 23 h 59 min")
        self.assertRegex(relay.log(), rf"daily quota exceeded room={tag(room)}")


if __name__ == "__main__":
    main()
