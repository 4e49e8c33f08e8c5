"""Soft state (operations 3.2): what survives a restart, a kill, a full disk; what happens to a file that is damaged or newer.

    TANDEM_REGISTRATIONS    how many are answered while kills go on    TANDEM_STORED_ROOMS    how many the file holds at a start
    10000 and 1000000 are the runs of docs/protocol.md"""
import contextlib
import glob
import os
import random
import resource
import signal
import sqlite3
import stat
import sys
import tempfile
import threading
import time

from attestation import Attested, Device, point, sha, trusting
from derive import RoomKey, new_room, tag, unb64
from harness import HOST, MIB, OTHER, MapServer, RelayCase, eventually, main, program, run_together, shard_map, whole_ring
from wire import SLACK

OK = (200, {"ok": True})
REGISTRATIONS = int(os.environ.get("TANDEM_REGISTRATIONS", "200"))
STORED = int(os.environ.get("TANDEM_STORED_ROOMS", "50000"))
ROUND, LINES = 100, 4  # rooms made ready between two kills; connections that register them


class StateCase(RelayCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tandem-test-")
        self.addCleanup(folder.cleanup)
        self.folder, self.path = folder.name, os.path.join(folder.name, "state.db")

    def stateful(self, config=None, **how):
        return self.relay({"state": {"path": self.path}, **(config or {})}, **how)

    def restart(self, server, hard=False):
        if hard:
            server.kill()
        else:
            self.assertEqual(server.stop(), 0)
        server.start()

    def assert_established(self, server, room, key):
        self.assert_refused(*server.join(room, "mac"), "signature required")
        server.admit(room, "mac", key=key).drop()

    def delete(self, server, room, key):
        challenge = server.post("/attest/challenge", room)[1]["challenge"]
        return server.post("/delete", room, {"challenge": challenge, "signature": key.sign_delete(challenge, room, server.origin)})

    def on_disk(self):
        return b"".join(open(path, "rb").read() for path in glob.glob(self.path + "*"))


class Survival(StateCase):
    def test_a_registration_survives_a_stop_and_a_kill(self):
        server = self.stateful()
        room, key = server.establish()
        self.restart(server)
        self.assert_established(server, room, key)
        other, other_key = server.establish()
        self.restart(server, hard=True)
        self.assert_established(server, room, key)
        self.assert_established(server, other, other_key)

    def test_a_deletion_survives_a_kill_and_leaves_no_trace_on_disk(self):
        server = self.stateful()
        room, key = server.establish()
        self.assertIn(unb64(key.verifier), self.on_disk())
        self.assertEqual(self.delete(server, room, key), OK)
        self.restart(server, hard=True)
        server.admit(room, "mac").drop()
        server.establish()
        self.restart(server)
        self.assertNotIn(unb64(key.verifier), self.on_disk())

    def test_the_file_is_private_and_names_no_room(self):
        server = self.stateful()
        room, _ = server.establish()
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertNotIn(bytes.fromhex(room), self.on_disk())
        self.assertNotIn(room.encode(), self.on_disk())
        self.assertIn(bytes.fromhex(tag(room)), self.on_disk())

    def test_kill_dash_nine_at_any_moment_undoes_no_answer(self):
        server, answered, kills = self.stateful({"log": {"level": "warn"}}), [], 0
        while len(answered) < REGISTRATIONS:
            round_ = self.register_until_killed(server)
            kills += 1
            server.start()
            self.assertEqual(self.forgotten(server, round_), [], f"after kill {kills}")
            answered += round_
        self.assertEqual(self.forgotten(server, answered), [], f"after {kills} kills")
        print(f"{len(answered)} answered, {kills} kills ... ", end="", file=sys.stderr)
        for room, key in random.sample(answered, 20):
            self.assert_established(server, room, key)

    def register_until_killed(self, server):
        """Registers rooms over several connections and kills the relay in the middle. -> [(room, key)] answered 200"""
        ready, answered, lock, sent = [], [], threading.Lock(), threading.Semaphore(0)
        for _ in range(ROUND):
            room = new_room()
            mac, phone = server.pair(room)
            ready.append((room, RoomKey(), phone.token))
            phone.drop()
            mac.drop()
        random.shuffle(ready)

        def register(line):
            with contextlib.closing(line.sock), contextlib.suppress(OSError, EOFError):
                while True:
                    with lock:
                        if not ready:
                            return
                        room, key, token = ready.pop()
                    sent.release()
                    status, answer = line.post("/register", room, {"registrationToken": token, "verifier": key.verifier})
                    self.assertEqual((status, answer), OK)
                    answered.append((room, key))

        def kill():
            for _ in range(random.randint(1, ROUND)):
                sent.acquire(timeout=60)
            time.sleep(random.uniform(0, 0.003))  # not always at the same point of a request
            server.kill()

        run_together(kill, *[lambda line=server.line(): register(line) for _ in range(LINES)])
        return answered

    def forgotten(self, server, rooms):
        """Those of these rooms that have no verifier."""
        line = server.line()
        with contextlib.closing(line.sock):
            return [room for room, key in rooms
                    if line.post("/register", room, {"verifier": key.verifier}) != (403, {"ok": False, "error": "already registered"})]

    def test_counters_survive_a_kill(self):
        server = self.stateful(trusting(self.folder))
        client, device, key = Attested(server), Device(), RoomKey()
        room = new_room()
        _, phone = client.pair(room, device)
        self.assertEqual(client.register(room, phone.token, key.verifier, device, counter=9), OK)
        self.restart(server, hard=True)
        room = new_room()
        _, phone = client.pair(room, device)
        self.assertEqual(client.register(room, phone.token, key.verifier, device, counter=9),
                         (403, {"ok": False, "error": "stale assertion"}))
        self.assertEqual(client.register(room, phone.token, key.verifier, device, counter=10), OK)

    def test_a_host_that_lost_its_state_heals_without_a_person(self):
        server = self.stateful(trusting(self.folder))
        client, device, key, room = Attested(server), Device(), RoomKey(), new_room()
        _, phone = client.pair(room, device)
        self.assertEqual(client.register(room, phone.token, key.verifier, device), OK)
        server.stop()
        for path in glob.glob(self.path + "*"):
            os.remove(path)
        server.start()
        mac = server.admit(room, "mac", key=key)  # the signature is ignored: the room is pairing again
        self.assert_refused(*server.join(room, "phone", key=key), "ticket required")
        phone = server.admit(room, "phone", proof={"ticket": client.ticket(room, device)})
        self.assertEqual(client.register(room, phone.token, key.verifier, device), OK)
        self.assert_talk(mac, phone)
        server.admit(room, "mac", key=key).drop()

    def test_memory_only_keeps_a_room_until_the_process_ends(self):
        server = self.relay()
        room, key = server.establish()
        self.assert_established(server, room, key)
        self.assertEqual(self.delete(server, room, key), OK)
        server.admit(room, "mac").drop()


class Privacy(StateCase):
    """docs/protocol.md lists what is stored; this is the same list."""

    TABLES = {"rooms": ["key", "verifier", "registrant", "last_activity"], "counters": ["key", "counter", "used"], "meta": ["name", "value"]}

    def test_the_file_holds_what_is_documented_and_nothing_else(self):
        maps = self.maps(whole_ring(10))
        server = self.stateful({**trusting(self.folder), "shard_map": {"url": maps.url, "poll_interval": "200ms"}})
        client, device, key, room = Attested(server), Device(), RoomKey(), new_room()
        challenge, spare = client.challenge(room), client.ticket(room)
        status, answer = client.attest(room, device, challenge)
        self.assertEqual(status, 200)
        mac, phone = server.admit(room, "mac"), server.admit(room, "phone", proof={"ticket": answer["ticket"]})
        payload = os.urandom(40)
        mac.send(payload)
        self.assertEqual(phone.message(), payload)
        self.assertEqual(client.register(room, phone.token, key.verifier, device, counter=7), OK)
        server.admit(room, "phone", key=key).drop()
        gone, gone_key, gone_device = new_room(), RoomKey(), Device()
        _, other = client.pair(gone, gone_device)
        self.assertEqual(client.register(gone, other.token, gone_key.verifier, gone_device), OK)
        self.assertEqual(self.delete(server, gone, gone_key), OK)
        eventually(lambda: unb64(gone_key.verifier) not in self.on_disk(), 5, 0.1, "the deleted verifier leaves file and log")
        server.stop()

        self.assertEqual(sorted(os.path.basename(p) for p in glob.glob(self.path + "*")), ["state.db"])
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            tables = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            self.assertEqual({t: [c[1] for c in db.execute(f"PRAGMA table_info({t})")] for t in tables}, self.TABLES)
            rooms, counters, meta = [db.execute(f"SELECT * FROM {t}").fetchall() for t in self.TABLES]
        self.assertEqual([row[:3] for row in rooms], [(sha(room.encode())[:30] + bytes.fromhex(room[-4:]), unb64(key.verifier), sha(point(device.key)))])
        self.assertEqual(sorted(row[:2] for row in counters), sorted([(sha(point(device.key)), 7), (sha(point(gone_device.key)), 1)]))
        for when in (rooms[0][3], counters[0][2], counters[1][2]):
            self.assertLess(abs(time.time() - when), 60)
        self.assertEqual(sorted(name for name, _ in meta), ["egress_bytes", "egress_month", "floor"])
        disk = self.on_disk()
        for what, secret in (("room", room), ("challenge", challenge), ("ticket", answer["ticket"]), ("spare ticket", spare),
                             ("token", phone.token), ("deleted room", gone)):
            raw = bytes.fromhex(secret) if len(secret) == 64 else unb64(secret)
            self.assertNotIn(secret.encode(), disk, what)
            self.assertNotIn(raw, disk, what)
        for what, secret in (("public point", point(device.key)[1:33]), ("payload", payload), ("address", b"127.0.0.1")):
            self.assertNotIn(secret, disk, what)


class Retention(StateCase):
    def test_an_idle_room_expires_and_leaves_the_disk_also_while_the_relay_is_down(self):
        server = self.stateful({"timeouts": {"established_idle": "2s", "rendezvous": "0s"}})
        room, key = server.establish()
        server.stop()
        time.sleep(3.2)
        server.start()
        server.admit(room, "mac").drop()
        eventually(lambda: unb64(key.verifier) not in self.on_disk(), 15, 0.1, "the verifier leaves the disk")

    def test_thirty_days_are_counted_by_the_wall_clock_while_the_relay_is_down(self):
        server, day = self.stateful(), 86400
        ages = {31 * day: False, 30 * day + 60: False, 30 * day - 600: True, 0: True, -400 * day: True}  # the last: a clock that ran ahead
        rooms = {age: server.establish() for age in ages}
        server.stop()
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            for age, (_, key) in rooms.items():
                db.execute("UPDATE rooms SET last_activity = ? WHERE verifier = ?", (int(time.time()) - age, unb64(key.verifier)))
            db.commit()
        server.start()
        for age, (room, key) in rooms.items():
            with self.subTest(age=age):
                if ages[age]:
                    self.assert_established(server, room, key)
                else:
                    server.admit(room, "mac").drop()
                    eventually(lambda key=key: unb64(key.verifier) not in self.on_disk(), 10, 0.1, "it leaves the disk")

    def test_sockets_of_a_room_that_expires_are_told(self):
        server = self.stateful({"timeouts": {"established_idle": "2s", "rendezvous": "0s"}})
        room, key = server.establish()
        mac = server.admit(room, "mac", key=key)
        self.assert_ends(mac, 1000, "room expired", 8)
        server.admit(room, "mac").drop()


class Size(StateCase):
    def fill(self, count, key):
        """Stores that many registered rooms, as an earlier run would have. -> a function from a number to a room"""
        def room(n):
            return sha(b"room %d" % n).hex()

        def stored(n):
            return sha(room(n).encode())[:30] + bytes.fromhex(room(n)[-4:]), unb64(key.verifier), bytes(32), int(time.time()) - n % 86400

        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.executemany("INSERT INTO rooms VALUES(?, ?, ?, ?)", map(stored, range(count)))
            db.commit()
        return room

    def timed_join(self, server, room, key):
        begin = time.monotonic()
        server.admit(room, "mac", key=key).drop()
        return time.monotonic() - begin

    def test_a_start_reads_no_rooms_and_nobody_waits_while_half_of_them_are_forgotten(self):
        server_of_maps, key = self.maps(whole_ring(1)), RoomKey()
        server = self.stateful({"log": {"level": "warn"}, "shard_map": {"url": server_of_maps.url, "poll_interval": "200ms", "drain_delay": "1s"}})
        empty = server.rss()
        server.stop()
        room = self.fill(STORED, key)
        begin = time.monotonic()
        server.start()
        ready, grown = time.monotonic() - begin, server.rss() - empty
        self.assertLess(ready, 2 * SLACK)
        self.assertLess(grown, 8 * MIB * SLACK)
        joins = sorted(self.timed_join(server, room(random.randrange(STORED)), key) for _ in range(100))

        server_of_maps.document = shard_map(2, (0, 32767, HOST), (32768, 65535, OTHER))
        ours = [n for n in range(STORED) if int(room(n)[-4:], 16) < 32768]
        meanwhile, left = [], STORED
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            while left > len(ours) and len(meanwhile) < 100000:
                meanwhile.append(self.timed_join(server, room(random.choice(ours)), key))
                if len(meanwhile) % 20 == 0:
                    left = db.execute("SELECT count(*) FROM rooms").fetchone()[0]
        self.assertEqual(left, len(ours))
        self.assertLess(max(meanwhile), 4 * SLACK)
        self.assertLess(server.rss() - empty, 16 * MIB * SLACK)
        print(f"{STORED} rooms: ready after {ready:.2f} s and {grown / MIB:.1f} MiB, join {joins[50] * 1000:.0f} ms at the median; while half "
              f"are forgotten {sorted(meanwhile)[len(meanwhile) // 2] * 1000:.0f} ms, at most {max(meanwhile) * 1000:.0f} ms ... ", end="", file=sys.stderr)


class Trouble(StateCase):
    def assert_degraded(self, server, *words):
        room, key = server.establish()
        self.assert_established(server, room, key)
        eventually(lambda: server.metric("state_errors_total") > 0, 8, 0.1, "state_errors_total")
        for word in words:
            self.assertRegex(server.log(), word)
        self.assertEqual(self.delete(server, room, key), (500, {"ok": False, "error": "state unavailable"}))

    def test_a_damaged_file_is_set_aside_and_kept(self):
        junk = b"no database " * 1000
        with open(self.path, "wb") as file:
            file.write(junk)
        server = self.stateful()
        self.assertRegex(server.log(), "damaged")
        self.assertGreaterEqual(server.metric("state_errors_total"), 1)
        aside = [p for p in glob.glob(self.path + "*") if "damaged" in p]
        self.assertEqual(len(aside), 1)
        with open(aside[0], "rb") as file:
            self.assertEqual(file.read(), junk)
        room, key = server.establish()
        self.restart(server, hard=True)
        self.assert_established(server, room, key)

    def test_a_file_that_was_removed_under_a_running_relay_is_begun_anew_and_no_answer_is_lost(self):
        server = self.stateful()
        server.establish()
        for path in glob.glob(self.path + "*"):
            os.remove(path)
        room, key = server.establish()
        self.assertEqual(server.metric("state_errors_total"), 1)
        self.assertRegex(server.log(), "removed")
        self.restart(server, hard=True)
        self.assert_established(server, room, key)

    def test_an_empty_file_beside_a_log_is_damaged_and_both_are_kept(self):
        server = self.stateful()
        server.establish()
        server.kill()
        with open(self.path + "-wal", "rb") as file:
            log = file.read()
        os.truncate(self.path, 0)
        server.start()
        self.assertRegex(server.log(), "damaged")
        self.assertEqual(server.metric("state_errors_total"), 1)
        aside = [p for p in glob.glob(self.path + "*") if "damaged" in p and p.endswith("-wal")]
        self.assertEqual(len(aside), 1)
        with open(aside[0], "rb") as file:
            self.assertEqual(file.read(), log)

    def test_a_newer_file_refuses_to_start_and_is_left_alone(self):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute("CREATE TABLE future(x)")
            db.execute("PRAGMA user_version = 4711")
            db.commit()
        before = self.on_disk()
        server = self.stateful(ready=False, exits=1)
        self.assertEqual(server.wait(), 1)
        self.assertRegex(server.log(), "newer")
        self.assertEqual(self.on_disk(), before)

    def test_a_missing_folder_degrades_to_memory_and_is_made_good_later(self):
        self.path = os.path.join(self.folder, "later", "state.db")
        server = self.stateful()
        self.assert_degraded(server, "state.db", "memory")
        room, key = server.establish()
        os.mkdir(os.path.dirname(self.path))
        eventually(lambda: os.path.exists(self.path) and self.on_disk(), 10, 0.1, "the state file")
        eventually(lambda: unb64(key.verifier) in self.on_disk(), 5, 0.1, "the verifier on disk")
        self.restart(server, hard=True)
        self.assert_established(server, room, key)

    def test_a_folder_in_its_place_degrades_to_memory(self):
        os.mkdir(self.path)
        self.assert_degraded(self.stateful(), "directory")

    def test_a_full_disk_loses_nothing_that_was_promised(self):
        def small():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (56 * 1024, 56 * 1024))

        server = self.stateful({"log": {"level": "warn"}}, before_exec=small)  # the limit holds for the log file as well
        rooms = []
        while server.metric("state_errors_total") == 0 and len(rooms) < 400:
            rooms.append(server.establish())
        self.assertGreater(server.metric("state_errors_total"), 0, f"never full after {len(rooms)}")
        for room, key in rooms[-3:]:
            self.assert_established(server, room, key)
        server.kill()
        server.before_exec = None
        server.start()
        for room, key in rooms[:-1]:
            self.assert_established(server, room, key)


class Floor(StateCase):
    def setUp(self):
        super().setUp()
        self.map = MapServer(whole_ring(10))
        self.addCleanup(self.map.close)
        self.config = {"shard_map": {"url": self.map.url, "poll_interval": "200ms", "drain_delay": "1s", "boot_timeout": "2s"}}

    def test_an_older_map_is_no_map_after_a_restart_until_the_floor_is_reset(self):
        server = self.stateful(self.config)
        shown = program("tandemctl", "floor", "--config", server.config_path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        eventually(lambda: "10" in program("tandemctl", "floor", "--config", server.config_path).stdout, 5, 0.2, "the floor on disk")
        server.stop()
        self.map.document = whole_ring(9)
        server.start(ready=False)
        self.assertEqual(server.wait(), 1)
        self.assertRegex(server.log(), r"\b9\b")
        reset = program("tandemctl", "floor", "--config", server.config_path, "--reset")
        self.assertEqual(reset.returncode, 0, reset.stderr)
        self.assertIn("next start", reset.stdout)
        server.start()
        self.assertEqual(server.status()["map"]["version"], 9)

    def test_the_floors_own_version_is_adopted_after_a_restart(self):
        server = self.stateful(self.config)
        self.restart(server)
        self.assertEqual(server.status()["map"]["version"], 10)


if __name__ == "__main__":
    main()
