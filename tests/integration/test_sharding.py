"""Ownership over the wire (sharding 2.1 to 2.6): refusing, adopting, draining, the floor, identity. How maps are fetched is
in test_poll.py."""
import os
import socket
import tempfile
import time

from derive import BUCKETS, new_room
from harness import HOST, OTHER, PROOF_TIME, RelayCase, eventually, main, program, shard_map, whole_ring
from wire import SLACK, Ended, Pump, pump

THIRD = "relay3.test"
OURS, UPPER = 100, 50000
DELAY = 0.4


def half(version, owner=OTHER):
    return shard_map(version, (0, 32767, HOST), (32768, BUCKETS - 1, owner))


class Sharded(RelayCase):
    def start(self, document, *, state=None, how=None, **shard):
        self.server_of_maps = self.maps(document)
        config = {"shard_map": {"url": self.server_of_maps.url, "poll_interval": "100ms", "drain_delay": "400ms", "eviction_rate": 100, **shard}}
        if state:
            config["state"] = {"path": state}
        return self.relay(config, **(how or {}))

    def publish(self, relay, document):
        self.server_of_maps.document = document
        eventually(lambda: relay.status()["map"]["version"] == document["version"], what="adopted")
        return time.monotonic()

    def owner_of(self, relay, bucket):
        """-> None where this host admits, else the named owner ("" for nobody)"""
        end = None
        try:
            end = relay.connect(new_room(bucket))
        except Exception as refused:  # noqa: BLE001, the answer is looked at
            answer = getattr(refused, "answer", None)
            self.assertIsNotNone(answer, refused)
            self.assertEqual((answer.status, answer.body), (421, b"misdirected"))
            return answer.headers.get("x-relay-owner", "")
        end.drop()
        return None


class Ownership(Sharded):
    def test_the_edges_of_ranges(self):
        relay = self.start(shard_map(1, (0, 99, OTHER), (100, 199, HOST), (200, 200, THIRD), (201, 201, HOST), (202, BUCKETS - 1, OTHER)))
        owners = [self.owner_of(relay, b) for b in (0, 99, 100, 199, 200, 201, 202, 65535)]
        self.assertEqual(owners, [OTHER, OTHER, None, None, THIRD, None, OTHER, OTHER])
        self.assertEqual(relay.metric("owned_buckets"), 101)
        self.assertEqual(relay.status()["owned"], {"buckets": 101, "ranges": [[100, 199], [201, 201]]})

    def test_direct_mode_owns_everything(self):
        relay = self.relay()
        self.assertEqual([self.owner_of(relay, b) for b in (0, 65535)], [None, None])
        self.assertEqual(relay.status()["mode"], "direct")

    def test_a_map_without_this_host_is_loud_and_keeps_it_up(self):
        relay = self.start(shard_map(1, (0, BUCKETS - 1, "relay1.text")))
        self.assertEqual(self.owner_of(relay, 5), "relay1.text")
        self.assertIn("owns nothing", relay.log())
        self.assertIn("relay1.text", relay.log())

    def test_a_wrong_certificate_is_refused(self):
        relay = self.relay(hostname="relay9.test", names=("relay8.test",), ready=False, exits=1)
        self.assertEqual(relay.wait(5), 1)
        self.assertIn("relay9.test", relay.log())
        tolerated = self.relay({"tls": {"allow_name_mismatch": True}}, hostname="relay9.test", names=("relay8.test",))
        self.assertEqual(tolerated.status()["hostname"], "relay9.test")


class Adopting(Sharded):
    def test_only_greater_versions_are_taken(self):
        relay = self.start(half(5))
        self.server_of_maps.document = whole_ring(4, OTHER)
        eventually(lambda: relay.metric("shard_map_ignored_total", why="older") >= 1, what="older counted")
        self.server_of_maps.document = whole_ring(5, OTHER)
        eventually(lambda: relay.metric("shard_map_ignored_total", why="equal_differs") >= 1, what="equal counted")
        self.assertEqual((relay.status()["map"]["version"], self.owner_of(relay, OURS)), (5, None))
        self.publish(relay, whole_ring(6))
        self.assertIsNone(self.owner_of(relay, UPPER))

    def test_acquired_at_once_relinquished_at_once(self):
        relay = self.start(half(1))
        self.publish(relay, whole_ring(2))
        mac, phone = relay.pair(new_room(UPPER))
        self.publish(relay, half(3))
        self.assertEqual(self.owner_of(relay, UPPER), OTHER)
        self.assert_talk(mac, phone)  # it lives until its turn
        mac.drop(), phone.drop()

    def test_unadmitted_sockets_of_lost_buckets_go_at_once(self):
        relay = self.start(whole_ring(1), drain_delay="30s")
        room = new_room(UPPER)
        silent, (greeted, _) = relay.connect(room), relay.greet(room, "phone")
        kept, _ = relay.greet(new_room(OURS), "mac")
        self.publish(relay, half(2))
        self.assert_ends(silent, 4421, f"reshard {OTHER}")
        self.assert_ends(greeted, 4421, f"reshard {OTHER}")
        kept.stays_open(0.2)
        kept.drop()

    def test_the_floor_survives_a_restart(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.db")
            relay = self.start(half(7), state=path)
            self.assertEqual(relay.stop(), 0)
            self.server_of_maps.document = whole_ring(6)
            relay.config["shard_map"]["boot_timeout"] = "1s"
            relay.start(ready=False)
            self.assertEqual(relay.wait(6), 1, "an older map was taken after a restart")
            self.server_of_maps.document = half(7)
            relay.start()
            self.assertEqual(relay.status()["map"]["version"], 7)
            relay.stop()


    def test_the_floor_survives_a_kill(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.db")
            relay = self.start(half(7), state=path, boot_timeout="1s")
            self.publish(relay, half(8))
            time.sleep(0.25)  # the disk's, not that of a batch
            relay.kill()
            self.server_of_maps.document = whole_ring(7)
            relay.expected_exit = None
            relay.start(ready=False)
            self.assertEqual(relay.wait(6), 1, "an older map was taken after a crash")
            self.assertIn("8", relay.log().splitlines()[-1])

    def test_a_reset_of_the_floor_takes_effect_at_the_next_start(self):
        with tempfile.TemporaryDirectory() as folder:
            relay = self.start(half(2 ** 53 - 1), state=os.path.join(folder, "state.db"))
            time.sleep(0.25)
            reset = program("tandemctl", "floor", "--config", relay.config_path, "--reset")
            self.assertEqual(reset.returncode, 0, reset.stderr)
            self.assertIn("next start", reset.stdout)
            self.server_of_maps.document = whole_ring(3)
            eventually(lambda: relay.metric("shard_map_ignored_total", why="older") >= 1, what="still refused by this process")
            self.assertEqual(relay.stop(), 0)
            relay.start()
            self.assertEqual(relay.status()["map"]["version"], 3)


class Draining(Sharded):
    def watched(self, ends):
        """Reads all of them at once. -> [(time, code, reason)] in the order given"""
        pumps = [Pump(end) for end in ends]
        when = {}

        def note():
            for p in pumps:
                if p.closed and p not in when:
                    when[p] = time.monotonic()
            return len(when) == len(pumps)

        pump(pumps, note, 30)
        return [(when[p], p.closed.code, p.closed.reason) for p in pumps]

    def test_rooms_wait_then_go_evenly_with_both_sockets_together(self):
        rooms, rate = 12, 10
        relay = self.start(whole_ring(1), eviction_rate=rate)
        pairs = [relay.pair(new_room(UPPER + n)) for n in range(rooms)]
        kept = relay.pair(new_room(OURS))
        adopted = self.publish(relay, half(2))
        seen = self.watched([end for pair in pairs for end in pair])
        times = sorted(seen[at][0] for at in range(0, 2 * rooms, 2))
        for at in range(0, 2 * rooms, 2):
            self.assertEqual(seen[at][1:], (4421, f"reshard {OTHER}"))
            self.assertEqual(seen[at + 1][1:], (4421, f"reshard {OTHER}"))
            self.assertLess(abs(seen[at][0] - seen[at + 1][0]), 0.05 * SLACK)
        # A busy machine tells of an end late, never early: none goes before its turn, and the spacing in the middle is even.
        for turn, at in enumerate(times):
            self.assertGreater(at - adopted, DELAY + turn / rate - 0.25)
        gaps = sorted(b - a for a, b in zip(times, times[1:]))
        self.assertAlmostEqual(gaps[len(gaps) // 2], 1 / rate, delta=0.5 / rate)
        self.assertLess(times[-1] - adopted, DELAY + rooms / rate + 0.5 * SLACK)
        self.assertEqual([seen[at][0] for at in range(0, 2 * rooms, 2)], times, "not in the order of their creation")
        self.assert_talk(*kept)
        self.assertEqual(relay.metric("evicted_rooms_total"), rooms)
        self.assertEqual(relay.metric("draining_rooms"), 0)

    def test_a_lone_mac_is_a_room(self):
        relay = self.start(whole_ring(1))
        mac = relay.admit(new_room(UPPER), "mac")
        self.publish(relay, half(2))
        self.assert_ends(mac, 4421, f"reshard {OTHER}")

    def test_a_bucket_that_comes_back_never_moved(self):
        relay = self.start(whole_ring(1), drain_delay="1s")
        mac, phone = relay.pair(new_room(UPPER))
        self.publish(relay, half(2))
        self.publish(relay, whole_ring(3))
        time.sleep(1.5)
        self.assert_talk(mac, phone)
        self.assertEqual(relay.metric("evicted_rooms_total"), 0)
        mac.drop(), phone.drop()

    def test_nobodys_rooms_stay_until_somebody_owns_them(self):
        relay = self.start(whole_ring(1))
        mac, phone = relay.pair(new_room(UPPER))
        waiting, _ = relay.greet(new_room(UPPER), "mac")
        self.publish(relay, half(2, "nobody.invalid"))
        self.assert_ends(waiting, 4421, "reshard")
        self.assertEqual(self.owner_of(relay, UPPER), "")
        time.sleep(3 * DELAY)
        self.assert_talk(mac, phone)
        adopted = self.publish(relay, half(3))
        seen = self.watched([mac, phone])
        self.assertGreater(seen[0][0] - adopted, DELAY - 0.25)
        self.assertEqual(seen[0][1:], (4421, f"reshard {OTHER}"))

    def test_another_owner_starts_the_wait_again_and_the_same_does_not(self):
        for again, restarts in ((half(3, THIRD), True), (shard_map(3, (0, 99, THIRD), (100, 32767, HOST), (32768, BUCKETS - 1, OTHER)), False)):
            relay = self.start(whole_ring(1), drain_delay="1500ms")
            mac, phone = relay.pair(new_room(UPPER))
            first = self.publish(relay, half(2))
            time.sleep(0.8)
            second = self.publish(relay, again)
            seen = self.watched([mac, phone])[0]
            if restarts:
                self.assertGreater(seen[0] - second, 1.5 - 0.3)
                self.assertEqual(seen[2], f"reshard {THIRD}")
            else:
                self.assertLess(seen[0] - first, 1.5 + 0.5 * SLACK)
                self.assertEqual(seen[2], f"reshard {OTHER}")

    def test_a_long_owner_is_left_out_of_the_reason(self):
        long = ".".join(["a" * 60] * 2) + ".example"
        relay = self.start(whole_ring(1))
        mac, phone = relay.pair(new_room(UPPER))
        self.publish(relay, half(2, long))
        self.assert_ends(mac, 4421, "reshard")
        self.assert_ends(phone, 4421, "reshard")

    def test_a_drained_room_is_forgotten(self):
        relay = self.start(whole_ring(1))
        room, key = relay.establish(new_room(UPPER))
        mac, phone = relay.pair(room, key=key)
        self.publish(relay, half(2))
        self.watched([mac, phone])
        self.publish(relay, whole_ring(3))
        end, result = relay.join(room, "mac")
        self.assertEqual(result, {"ok": True}, "its verifier is still known")
        end.drop()

    def test_no_frame_is_lost_before_the_close(self):
        relay = self.start(whole_ring(1))
        mac, phone = relay.pair(new_room(UPPER))
        self.publish(relay, half(2))
        sent = 0
        try:
            while True:
                mac.send(b"%d" % sent)
                sent += 1
                time.sleep(0.01)
                phone_got = int(phone.message(PROOF_TIME))
                self.assertEqual(phone_got, sent - 1)
        except (Ended, OSError) as ended:
            if isinstance(ended, Ended):
                self.assertEqual((ended.code, ended.reason), (4421, f"reshard {OTHER}"))
        self.assertGreater(sent, 3)
        mac.drop(), phone.drop()

    def test_a_map_that_gives_nothing_drains_to_empty_and_the_host_stays(self):
        relay = self.start(whole_ring(1))
        pairs = [relay.pair(new_room(b)) for b in (1, 30000, 65535)]
        self.publish(relay, whole_ring(2, OTHER))
        seen = self.watched([end for pair in pairs for end in pair])
        self.assertEqual({s[1] for s in seen}, {4421})
        self.assertEqual(relay.admin("/readyz").status, 200)
        self.publish(relay, whole_ring(3))
        self.assert_talk(*relay.pair(new_room(1)))


class BadMaps(Sharded):
    def test_a_bad_map_changes_nothing_and_says_its_kind(self):
        relay = self.start(half(1))
        mac, phone = relay.pair(new_room(OURS))
        for document, kind in ((b"{", "malformed"), (shard_map(2, (0, 1, HOST)), "gap_or_overlap"), (shard_map(-1, (0, 65535, HOST)), "negative_version"),
                               ({"version": 2, "ranges": []}, "empty_ranges"), (shard_map(2, (0, 65535, "A.test")), "invalid_host"),
                               (shard_map(2, (0, 65536, HOST)), "invalid_range")):
            self.server_of_maps.document = document
            eventually(lambda: (relay.status()["last_fetch_error"] or {}).get("kind") == kind, what=kind)
        self.assertEqual(relay.status()["map"]["version"], 1)
        self.assertEqual([self.owner_of(relay, b) for b in (OURS, UPPER)], [None, OTHER])
        self.assert_talk(mac, phone)
        self.publish(relay, half(2))
        self.assertIsNone(relay.status()["last_fetch_error"])
        mac.drop(), phone.drop()

    def test_the_configuration_is_checked_at_boot(self):
        for shard, word in (({"drain_delay": "150ms"}, "drain_delay"), ({"eviction_rate": 0}, "eviction_rate")):
            maps = self.maps(whole_ring(1))
            relay = self.relay({"shard_map": {"url": maps.url, "poll_interval": "100ms", **shard}}, ready=False, exits=1)
            self.assertEqual(relay.wait(5), 1)
            self.assertIn(word, relay.log())

    def test_no_map_no_listener(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/shardmap.json"
            relay = self.relay({"shard_map": {"url": url, "boot_timeout": "2s"}}, ready=False, exits=1)
            eventually(lambda: relay.admin("/readyz").status == 503 if self.admin_up(relay) else False, what="not ready, and saying so")
            with self.assertRaises(OSError):
                relay.tcp(timeout=1)
            self.assertEqual(relay.wait(6), 1)
            self.assertIn("connect", relay.log())

    def admin_up(self, relay):
        try:
            relay.admin("/readyz")
            return True
        except OSError:
            return False


if __name__ == "__main__":
    main()
