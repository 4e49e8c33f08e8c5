"""The publishing tool as its operator sees it: edits, the single writer, uploads, phases, drains, checks."""
import contextlib
import gzip
import http.client
import json
import os
import random
import re
import shlex
import ssl
import stat
import threading
import time
import unittest
import urllib.error
import urllib.request

from harness import main, write_certificate
from map_store import TOOL, Host, Origin, Store, owners, read, tool, watched
from wire import SLACK

A, B, C = "a.example", "b.example", "c.example"
NOBODY = "nobody.invalid"


def document(version, *ranges):
    out = {"ranges": [{"low": low, "high": high, "host": host} for low, high, host in ranges]}
    return out if version is None else {"version": version, **out}


class Editing(unittest.TestCase):
    def test_walks_one_two_three_two_hosts(self):
        with Store(A) as s:
            s.ok("add", B)
            third = s.ok("add", C)
            self.assertEqual([(r["low"], r["high"], r["host"]) for r in s.map()["ranges"]], [(0, 21844, A), (21845, 43689, C), (43690, 65535, B)])
            self.assertEqual((third["base"], third["version"], third["moved_buckets"], third["convergence_seconds"]), (2, 3, 21845, 20.0))
            self.assertIsNone(third["rooms_affected"])
            s.ok("remove", C)
            self.assertEqual([(r["low"], r["high"], r["host"]) for r in s.map()["ranges"]], [(0, 43689, A), (43690, 65535, B)])

    def test_refuses_in_one_line_and_with_a_code(self):
        with Store(A, B) as s:
            for code, exit_code, args in (("host_exists", 1, ("add", A)), ("unknown_host", 1, ("remove", "a.exampel")), ("unknown_host", 1, ("move", "1", C)),
                                          ("invalid_host", 2, ("add", "A.example")), ("invalid_host", 2, ("add", NOBODY)), ("invalid_range", 2, ("move", "1-70000", A)),
                                          ("invalid_range", 1, ("add", C, "--buckets", 65535)), ("unknown_version", 1, ("rollback", 9)), ("usage", 2, ("add", C, "--at", 5)),
                                          ("already_initialised", 1, ("init", A)), ("fetch_failed", 1, ("publish", "/none.json"))):
                error = s.refused(*args, code=exit_code)
                self.assertEqual(error["error"], code, args)
            self.assertEqual(s.refused("remove", "a.exampel")["nearest"], A)
            s.ok("remove", B)
            self.assertEqual(s.refused("remove", A)["error"], "last_host")
            self.assertEqual(s.version(), 2)

    def test_writes_nothing_when_dry(self):
        with Store(A, B) as s:
            before = sorted(os.listdir(os.path.join(s.folder, "history"))), os.stat(s.file).st_ino
            result = s.ok("--dry-run", "add", C)
            self.assertEqual((result["published"], result["version"], result["moved_buckets"]), (False, 2, 21845))
            self.assertEqual((sorted(os.listdir(os.path.join(s.folder, "history"))), os.stat(s.file).st_ino), before)
        with Store() as s:
            s.ok("--dry-run", "init", A)
            self.assertFalse(os.path.exists(s.folder))

    def test_serves_a_new_readable_file_each_time(self):
        with Store(A, B) as s:
            before = os.stat(s.file)
            old_mask = os.umask(0o077)
            try:
                s.ok("move", "5", B)
            finally:
                os.umask(old_mask)
            after = os.stat(s.file)
            self.assertNotEqual(before.st_ino, after.st_ino)
            self.assertEqual(stat.S_IMODE(after.st_mode), 0o644)

    def test_gives_each_map_a_second_of_its_own(self):
        """nginx and Caddy make an ETag of size and second: two maps of one ETag would be one map to every relay."""
        with Store(A, B) as s:
            begun, seconds = time.time(), [int(os.stat(s.file).st_mtime)]
            for _ in range(4):
                s.ok("move", "5", B if s.version() % 2 else A)
                seconds.append(int(os.stat(s.file).st_mtime))
            self.assertEqual(sorted(set(seconds)), seconds)
            with Host(A, version=5) as a:  # and what has just been published is not older or younger than that
                age = s.ok("status", "--admin", a.admin)["age_seconds"]
            self.assertLessEqual(age, time.time() - begun + 1)
            os.utime(s.file, (begun - 50, begun - 50))
            s.ok("move", "5", B if s.version() % 2 else A)
            self.assertLess(abs(os.stat(s.file).st_mtime - time.time()), 5)

    def test_publishes_drafts_from_the_current_version_alone(self):
        with Store(A, B) as s:
            self.assertEqual(s.refused("publish", s.write("d", document(7, (0, 65535, A))))["error"], "conflict")
            bad = s.refused("publish", s.write("d", document(7, (0, 100, A), (102, 65535, B))))
            self.assertEqual((bad["error"], bad["kind"], bad["value"]), ("invalid_map", "gap_or_overlap", "101"))
            self.assertEqual(s.ok("publish", s.write("d", document(1, (0, 9, A), (10, 65535, A))))["version"], 2)
            self.assertEqual(len(s.map()["ranges"]), 1, "adjacent ranges are merged")
            self.assertEqual(s.ok("publish", "-", stdin=json.dumps(document(None, (0, 65535, B))))["version"], 3)
            self.assertFalse(s.ok("publish", s.write("d", document(3, (0, 65535, B))))["published"])

    def test_rolls_forward(self):
        with Store(A) as s:
            s.ok("add", B, "--message", "two", "--by", "ann")
            s.ok("add", C)
            back = s.ok("rollback")
            self.assertEqual((back["version"], back["of"], back["action"]), (4, 2, "rollback"))
            self.assertEqual(s.ok("rollback", 1)["version"], 5)
            history = s.all("history")
            self.assertEqual([h["version"] for h in history], [5, 4, 3, 2, 1])
            self.assertEqual((history[3]["by"], history[3]["message"], history[3]["moved_buckets"]), ("ann", "two", 32768))
            self.assertEqual([h["version"] for h in s.all("history", "--limit", 2)], [5, 4])
            self.assertEqual(s.ok("show", "--version", 2)["version"], 2)

    def test_ignores_and_overwrites_a_history_entry_that_was_never_published(self):
        with Store(A, B) as s:
            ahead = os.path.join(s.folder, "history", "2.json")
            with open(ahead, "w") as f:
                json.dump({**document(2, (0, 65535, C)), "by": "ghost"}, f)
            self.assertEqual([h["version"] for h in s.all("history")], [1])
            self.assertEqual(s.refused("rollback", 2)["error"], "unknown_version")
            s.ok("move", "0-9", B, "--by", "real")
            self.assertEqual(s.all("history")[0]["by"], "real")


class Asking(unittest.TestCase):
    def test_publishes_only_on_a_clear_yes(self):
        with Store(A, B) as s:
            for answer in ("n\n", "", "Y es\n", "no\n"):
                error = s.refused("add", C, yes=False, stdin=answer)
                self.assertEqual(error["error"], "not_confirmed")
            p = s.run("add", C, yes=False, json_out=False, stdin="y\n")
            self.assertEqual(p.returncode, 0, p.stderr)
            for words in ("21845 buckets", "rooms affected: unknown", "converge"):
                self.assertIn(words, p.stdout)
            self.assertIn("Publish version 2? [y/N] ", p.stderr)

    def test_suggests_smaller_parts_for_a_large_move(self):
        with Store(A, B) as s:
            self.assertIn("smaller parts", s.run("--dry-run", "move", "0-32767", B).stderr)
            self.assertNotIn("smaller parts", s.run("--dry-run", "move", "0-99", B).stderr)

    def test_forecasts_from_what_the_losing_hosts_report(self):
        with Store(A, B) as s, Host(A, rooms=101) as a, Host(B, rooms=7) as b:
            result = s.ok("--dry-run", "move", "0-8191", C, "--new", "--admin", a.admin, "--admin", b.admin)
            self.assertEqual((result["rooms_affected"], result["convergence_seconds"]), (26, 22.6))
            a.down = True
            self.assertIsNone(s.ok("--dry-run", "move", "0-8191", C, "--new", "--admin", a.admin)["rooms_affected"])

    def test_keeps_the_draft_of_an_answer_that_came_too_late(self):
        with Store(A, B) as s:
            p = s.start("add", C, yes=False)
            seen = ""
            while "[y/N]" not in seen:
                seen += p.stderr.read(1)
            s.ok("move", "7-9", B, "--by", "eve")
            out, err = p.communicate("y\n", timeout=20)
            error = json.loads(out.splitlines()[-1])
            self.assertEqual((p.returncode, error["error"], error["current"]["by"]), (1, "conflict", "eve"))
            self.assertEqual(error["changed"], [{"low": 7, "high": 9, "from": A, "to": B}])
            self.assertIn(error["draft"], err)
            with open(error["draft"]) as f:
                draft = json.load(f)
            self.assertEqual((draft["version"], owners(draft).count(C)), (1, 21845))


class Editor(unittest.TestCase):
    def editor(self, s, body):
        return {"EDITOR": s.script("editor", body)}

    def drafts(self, s):
        return os.listdir(os.path.join(s.folder, ".tandem", "drafts"))

    def test_publishes_what_was_edited_and_forgets_the_draft(self):
        with Store(A, B) as s:
            result = s.ok("edit", env=self.editor(s, "sed -i 's/32767/40000/; s/32768/40001/' \"$1\""))
            self.assertEqual((result["action"], result["version"], result["moved_buckets"]), ("edit", 2, 7233))
            self.assertEqual(self.drafts(s), [])

    def test_takes_an_editor_with_arguments(self):
        with Store(A, B) as s:
            s.script("editor", "test \"$1\" = -x && sed -i 's/32767/40000/; s/32768/40001/' \"$2\"")
            self.assertTrue(s.ok("edit", env={"VISUAL": f"{s.top}/editor -x"})["published"])

    def test_does_nothing_when_nothing_changed(self):
        with Store(A, B) as s:
            self.assertFalse(s.ok("edit", env=self.editor(s, ":"))["published"])
            self.assertEqual(self.drafts(s), [])
            self.assertEqual(s.refused("edit", env=self.editor(s, "exit 3"))["error"], "not_confirmed")
            self.assertEqual(self.drafts(s), [])

    def test_keeps_work_that_could_not_be_published(self):
        with Store(A, B) as s:
            error = s.refused("edit", env=self.editor(s, "sed -i 's/32767/40000/' \"$1\""))
            self.assertEqual((error["error"], error["kind"]), ("invalid_map", "gap_or_overlap"))
            self.assertIn("40000", read(error["draft"]))
            error = s.refused("edit", yes=False, stdin="n\n", env=self.editor(s, "sed -i 's/a.example/c.example/' \"$1\""))
            self.assertEqual(error["error"], "not_confirmed")
            self.assertIn(C, read(error["draft"]))

    def test_does_not_hold_the_lock_while_the_editor_is_open(self):
        with Store(A, B) as s:
            error = s.refused("edit", env=self.editor(s, f"{shlex.quote(str(TOOL))} map --store {shlex.quote(str(s.folder))} --yes --by eve move 5-6 {B} >/dev/null || exit 9; sed -i 's/b.example/c.example/' \"$1\""))
            self.assertEqual((error["error"], error["current"]["by"]), ("conflict", "eve"))
            self.assertTrue(os.path.exists(error["draft"]))

    def test_needs_an_editor(self):
        with Store(A, B) as s:
            self.assertEqual(s.refused("edit", code=2)["error"], "usage")


class OneWriter(unittest.TestCase):
    def test_loses_no_edit_of_twenty_concurrent_publishers(self):
        writers, each = 20, 50
        with Store(A, B) as s:
            faults = []

            def publish(writer):
                for i in range(each):
                    bucket = writer * each + i
                    p = s.run("move", bucket, C, "--new", "--by", f"w{writer}", "--lock-timeout", "120s", timeout=300)
                    if p.returncode != 0:
                        faults.append(p.stderr)

            with watched(s.file) as versions:
                threads = [threading.Thread(target=publish, args=(w,)) for w in range(writers)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
            self.assertEqual(faults, [])
            self.assertEqual(s.version(), 1 + writers * each)
            self.assertEqual(owners(s.map())[: writers * each], [C] * (writers * each))
            self.assertEqual([h["version"] for h in s.all("history")], list(range(1 + writers * each, 0, -1)))
            self.assertEqual(versions, sorted(versions))

    def test_leaves_a_whole_map_and_a_true_history_when_killed(self):
        with Store(A, B) as s:
            begun = time.monotonic()
            for i in range(4):
                s.ok("move", i, B)
            whole = (time.monotonic() - begun) / 4
            killed = 0
            with watched(s.file):
                for i in range(120):
                    p = s.start("move", f"{100 + i}", C, "--new")
                    time.sleep(random.uniform(0.2, 1.1) * whole)
                    killed += p.poll() is None
                    p.kill()
                    p.communicate()
            self.assertGreater(killed, 10)
            version = s.version()
            self.assertEqual([h["version"] for h in s.all("history")], list(range(version, 0, -1)))
            for h in s.all("history"):
                self.assertEqual(s.ok("show", "--version", h["version"])["version"], h["version"])
            self.assertEqual(s.ok("move", "60000", A)["version"], version + 1)

    def test_says_who_holds_the_lock(self):
        with Store(A, B) as s:
            s.ok("publish", "--again")
            slow = s.script("up", "sleep 3")
            with open(os.path.join(s.folder, ".tandem", "store.json"), "w") as f:
                json.dump({"upload": [slow]}, f)
            p = s.start("move", "1", B, "--by", "bob")
            deadline = time.monotonic() + 10 * SLACK
            while s.version() < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            error = s.refused("move", "2", B, "--lock-timeout", "100ms")
            self.assertEqual(error["error"], "locked")
            self.assertIn("bob", error["message"])
            self.assertEqual(s.ok("show")["version"], 2, "readers do not wait")
            p.communicate()


class Uploading(unittest.TestCase):
    def with_upload(self, body):
        s = Store()
        self.addCleanup(s.__exit__)
        script = s.script("up", body)
        s.ok("init", A, B, "--upload", json.dumps([script, "{file}", s.top]))
        return s

    def test_runs_after_each_publish_with_file_and_version(self):
        s = self.with_upload('cp "$1" "$2/cdn.json"; echo "$TANDEM_VERSION" >> "$2/log"; echo chatter')
        self.assertTrue(s.ok("move", "5", B)["uploaded"])
        self.assertEqual(read(os.path.join(s.top, "log")).split(), ["1", "2"])
        self.assertEqual(read(os.path.join(s.top, "cdn.json")), read(s.file))

    def test_tells_written_from_uploaded_and_uploads_again(self):
        s = self.with_upload('test ! -e "$2/broken" || exit 3')
        s.write("broken", "")
        error = s.refused("move", "5", B)
        self.assertEqual((error["error"], error["version"]), ("not_uploaded", 2))
        self.assertIn("written, not uploaded", error["message"])
        self.assertIn("status 3", error["message"])
        self.assertEqual(s.version(), 2)
        self.assertIn("not_uploaded", [w["code"] for w in s.ok("show")["warnings"]])
        self.assertEqual(s.run("check", "--strict").returncode, 1)
        self.assertEqual(s.refused("publish", "--again")["error"], "not_uploaded")
        os.unlink(os.path.join(s.top, "broken"))
        self.assertEqual(s.ok("publish", "--again"), {"ok": True, "action": "upload", "version": 2, "uploaded": True})
        self.assertEqual(s.ok("check")["warnings"], [])

    def test_stops_an_upload_that_takes_too_long(self):
        s = self.with_upload('test "$TANDEM_VERSION" = 1 || sleep 60')
        begun = time.monotonic()
        self.assertEqual(s.refused("move", "5", B, "--upload-timeout", "300ms")["error"], "not_uploaded")
        self.assertLess(time.monotonic() - begun, 5 * SLACK)

    def test_names_a_command_that_is_not_there(self):
        s = self.with_upload(":")
        with open(os.path.join(s.folder, ".tandem", "store.json"), "w") as f:
            json.dump({"upload": ["no-such-command-here", "{file}"]}, f)
        self.assertIn("no-such-command-here", s.refused("move", "5", B)["message"])

    def test_refuses_a_command_out_of_form(self):
        for bad in ("rclone {file}", "[]", '{"a":1}', '["x",1]', '[""]'):
            with Store() as s:
                self.assertEqual(s.refused("init", A, "--upload", bad, code=2)["error"], "usage", bad)
                self.assertFalse(os.path.exists(s.file))


class Phases(unittest.TestCase):
    def test_goes_on_at_once_when_every_host_has_adopted(self):
        with Store(A, B) as s, Host(A, version=99) as a, Host(B, version=99) as b:
            begun = time.monotonic()
            one, two = s.all("--two-phase", "move", "0-99", B, "--poll-interval", "60s", "--admin", a.admin, "--admin", b.admin)
            self.assertLess(time.monotonic() - begun, 20 * SLACK)
            self.assertEqual([(r["phase"], r["version"], r["moves"][0]["to"], r["moved_buckets"]) for r in (one, two)], [(1, 2, NOBODY, 100), (2, 3, B, 100)])
            self.assertEqual(s.ok("show", "--version", 2)["unowned_buckets"], 100)
            self.assertEqual(two["warnings"], [])

    def test_waits_two_polls_where_one_host_cannot_be_asked(self):
        with Store(A, B) as s, Host(A, version=99) as a:
            begun = time.monotonic()
            s.all("--two-phase", "add", C, "--poll-interval", "500ms", "--admin", a.admin)
            self.assertGreaterEqual(time.monotonic() - begun, 1.0)
            self.assertEqual(owners(s.map()).count(C), 21845)

    def test_names_the_host_that_lags_behind(self):
        with Store(A, B) as s, Host(A, version=1) as a, Host(B, version=99) as b:
            two = s.all("--two-phase", "move", "0-99", B, "--poll-interval", "200ms", "--admin", a.admin, "--admin", b.admin)[-1]
            self.assertTrue(any(A in w["message"] for w in two["warnings"]), two)

    def test_keeps_what_somebody_else_published_between_the_phases(self):
        with Store(A, B) as s:
            p = s.start("--two-phase", "move", "0-99", B, "--poll-interval", "1s")
            deadline = time.monotonic() + 10 * SLACK
            while s.version() < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            s.ok("move", "50-59", C, "--new")
            s.ok("move", "60000", A)
            p.communicate(timeout=60)
            self.assertEqual(p.returncode, 0)
            now = owners(s.map())
            self.assertEqual((now[0], now[50], now[99], now[60000]), (B, C, B, A))

    def test_says_where_it_stands_when_interrupted(self):
        with Store(A, B) as s:
            p = s.start("--two-phase", "move", "0-99", B, "--poll-interval", "30s")
            deadline = time.monotonic() + 10 * SLACK
            while s.version() < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.5)
            p.terminate()
            _, err = p.communicate(timeout=20)
            self.assertEqual(p.returncode, 1, err)
            self.assertIn("move 0-99 b.example", err)
            self.assertIn("unowned_buckets", [w["code"] for w in s.ok("check")["warnings"]])

    def test_previews_both_phases_when_dry(self):
        with Store(A, B) as s:
            results = s.all("--two-phase", "--dry-run", "move", "0-99", B)
            self.assertEqual([(r["phase"], r["version"], r["published"]) for r in results], [(1, 2, False), (2, 3, False)])
            self.assertEqual(s.version(), 1)

    def test_follows_a_drain_to_its_end(self):
        with Store(A, B, C) as s, Host(B, rooms=5) as b:
            b.draining = 3

            def let_go():
                time.sleep(0.6)
                b.held, b.draining = 2, 2
                time.sleep(0.6)
                b.draining = 0

            threading.Thread(target=let_go, daemon=True).start()
            first, last = s.all("drain", B, "--admin", b.admin)
            self.assertEqual((first["action"], first["hosts"][B]["after"]), ("drain", 0))
            self.assertEqual((last["action"], last["host"], last["rooms_left"]), ("drained", B, 0))
            self.assertGreaterEqual(last["seconds"], 1.0)

    def test_foretells_the_end_of_a_drain_from_what_is_left(self):
        with Store(A, B, C) as s, Host(B, rooms=5) as b:
            def adopt_late():
                time.sleep(1.6)
                b.held, b.draining = 2, 4
                time.sleep(1)
                b.draining = 0

            threading.Thread(target=adopt_late, daemon=True).start()
            p = s.run("drain", B, "--admin", b.admin, "--drain-delay", "0s", "--eviction-rate", "1")
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertIn("waits to adopt version 2", p.stderr)
            self.assertEqual(set(re.findall(r"4 rooms left, about (\d+) s to go", p.stderr)), {"4"}, p.stderr)

    def test_gives_up_a_drain_in_time(self):
        with Store(A, B, C) as s, Host(B, version=9) as b:
            b.draining = 4
            error = s.refused("drain", B, "--admin", b.admin, "--timeout", "500ms")
            self.assertEqual((error["error"], error["rooms_left"]), ("drain_timeout", 4))
            self.assertEqual(s.version(), 2)


class Checking(unittest.TestCase):
    def check(self, headers, body=None, *args):
        body = json.dumps(document(3, (0, 65535, A))).encode() if body is None else body
        with Origin(lambda _: (200, headers, body)) as o:
            p = tool("map", "check", o.url + "/shardmap.json", "--json", *args)
        return p.returncode, json.loads(p.stdout)

    def codes(self, headers, body=None, *args):
        return [w["code"] for w in self.check(headers, body, *args)[1]["warnings"]]

    def test_warns_of_caching_that_outlives_a_poll(self):
        self.assertEqual(self.codes([("Cache-Control", "max-age=5")]), [])
        self.assertEqual(self.codes([("Cache-Control", "public, max-age=5, s-maxage=60")]), ["cache_ttl_too_long"])
        self.assertEqual(self.codes([("Cache-Control", "max-age=10")]), ["cache_ttl_too_long"])
        self.assertEqual(self.codes([("Cache-Control", "max-age=10")], None, "--poll-interval", "11s"), [])
        self.assertEqual(self.codes([("Cache-Control", "no-store")]), [])
        self.assertEqual(self.codes([("Cache-Control", "public")]), ["cache_control_missing"])
        self.assertEqual(self.codes([("Cache-Control", "max-age=" + "9" * 30)]), ["cache_ttl_too_long"])
        self.assertEqual(self.codes([("Cache-Control", "max-age=-1")]), ["cache_control_missing"])
        self.assertEqual(self.codes([]), ["cache_control_missing"])
        self.assertEqual(self.check([], None, "--strict")[0], 1)

    def test_warns_of_a_compressed_answer(self):
        headers = [("Cache-Control", "max-age=5"), ("Content-Encoding", "gzip")]
        whole = json.dumps(document(3, (0, 65535, A))).encode()
        self.assertEqual(self.codes(headers, gzip.compress(whole)), ["content_encoding"])
        code, error = self.check(headers, b"not gzip")
        self.assertEqual((code, error["error"], error["cause"]), (1, "fetch_failed", "other"))

    def test_warns_of_ranges_that_could_be_one_and_of_nobody(self):
        body = json.dumps(document(3, (0, 9, A), (10, 99, A), (100, 65535, NOBODY))).encode()
        self.assertEqual(self.codes([("Cache-Control", "max-age=5")], body), ["unowned_buckets", "unmerged_ranges"])

    def test_names_the_cause_of_a_failed_fetch(self):
        for status, cause in ((404, "http_4xx"), (503, "http_5xx"), (302, "http_other")):
            with Origin(lambda _, status=status: (status, [("Location", "/x")], b"")) as o:
                error = json.loads(tool("map", "check", o.url, "--json").stdout)
                self.assertEqual((error["error"], error["cause"]), ("fetch_failed", cause))
        error = json.loads(tool("map", "check", "http://198.51.100.7/shardmap.json", "--json").stdout)
        self.assertEqual(error["error"], "fetch_failed")

    def test_serves_over_tls_what_check_approves_of(self):
        with Store(A, B) as s:
            certificate, key = write_certificate(s.top, ["localhost", "127.0.0.1"])
            p = s.start("serve", "--listen", "127.0.0.1:0", "--certificate", certificate, "--private-key", key)
            try:
                url = json.loads(p.stdout.readline())["url"]
                self.assertTrue(url.startswith("https://"))
                checked = tool("map", "check", "--strict", "--json", url, env={"SSL_CERT_FILE": certificate})
                self.assertEqual(checked.returncode, 0, checked.stdout)
                context = ssl.create_default_context(cafile=certificate)
                first = urllib.request.urlopen(url, context=context, timeout=20)
                self.assertEqual(first.read().decode(), read(s.file))
                self.assertEqual(first.headers["Cache-Control"], "max-age=5")
                again = urllib.request.Request(url, headers={"If-None-Match": first.headers["ETag"]})
                with self.assertRaises(urllib.error.HTTPError) as unchanged:
                    urllib.request.urlopen(again, context=context, timeout=20)
                self.assertEqual(unchanged.exception.code, 304)
                s.ok("move", "5", B)
                self.assertEqual(json.load(urllib.request.urlopen(again, context=context, timeout=20))["version"], 2)
                with self.assertRaises(urllib.error.HTTPError):
                    urllib.request.urlopen(url.replace("shardmap.json", "history/1.json"), context=context, timeout=20)
            finally:
                p.terminate()
                p.communicate(timeout=20)
            self.assertEqual(p.returncode, 0)
            self.assertEqual(s.refused("serve", "--listen", "0.0.0.0:0", code=2)["error"], "usage")


    def test_serves_on_beside_many_who_keep_their_connection(self):
        with Store(A, B) as s, contextlib.ExitStack() as open_ones:
            p = s.start("serve", "--listen", "127.0.0.1:0")
            try:
                url = json.loads(p.stdout.readline())["url"]
                place = url.split("/")[2]
                for _ in range(300):
                    waiting = http.client.HTTPConnection(place, timeout=20)
                    open_ones.callback(waiting.close)
                    waiting.request("GET", "/shardmap.json")
                    self.assertEqual(waiting.getresponse().read().decode(), read(s.file))
                self.assertEqual(tool("map", "check", "--strict", url).returncode, 0)
            finally:
                p.terminate()
                p.communicate(timeout=20)
            self.assertEqual(p.returncode, 0)

    def test_takes_up_a_renewed_certificate_whichever_file_comes_first(self):
        with Store(A, B) as s:
            pair = write_certificate(s.top, ["localhost", "127.0.0.1"])
            new = write_certificate(s.top, ["localhost", "127.0.0.1"], name="new")
            p = s.start("serve", "--listen", "127.0.0.1:0", "--certificate", pair[0], "--private-key", pair[1])
            try:
                url = json.loads(p.stdout.readline())["url"]
                place = ("127.0.0.1", int(url.split(":")[2].split("/")[0]))
                seen = [ssl.get_server_certificate(place)]
                for new_file, old_file in zip(new, pair):  # the certificate, then its key
                    os.replace(new_file, old_file)
                    seen.append(ssl.get_server_certificate(place))
                self.assertEqual(seen[0], seen[1], "a certificate without its key was taken")
                self.assertNotEqual(seen[1], seen[2], "the renewed pair was not taken")
            finally:
                p.terminate()
                p.communicate(timeout=20)


class Fleet(unittest.TestCase):
    def status(self, s, *hosts):
        args = [x for h in hosts for x in ("--admin", h.admin)]
        p = s.run("status", "--poll-interval", "1s", "--drain-delay", "1s", *args)
        view = json.loads(p.stdout)
        return p.returncode, {h["host"]: [d["code"] for d in h["divergences"]] for h in view["hosts"]}

    def test_names_each_divergence(self):
        with Store(A, B) as s, Host(A) as a, Host(B) as b:
            a.ranges, b.ranges = [[0, 32767]], [[32768, 65535]]
            self.assertEqual(self.status(s, a, b), (0, {A: [], B: []}))
            a.held = 0
            b.down = True
            self.assertEqual(self.status(s, a, b)[1], {A: ["stale_map"], B: ["unreachable"]})
            a.held, b.down, b.draining = 1, False, 2
            a.ranges = [[0, 5]]
            self.assertEqual(self.status(s, a, b)[1], {A: ["owns_unpublished"], B: ["draining"]})
            a.ranges, b.draining = [[0, 32767]], 0
            a.error, a.age = {"cause": "timeout", "polls": 4, "seconds": 40.0}, 42.0
            self.assertEqual(self.status(s, a, b), (1, {A: ["fetch_failing"], B: []}))
            a.error = None
            view = json.loads(s.run("status", "--admin", f"{C}={a.url}").stdout)
            self.assertIn("identity_mismatch", [d["code"] for d in view["hosts"][0]["divergences"]])

    def test_fails_once_a_divergence_lasts_longer_than_convergence(self):
        with Store(A, B) as s, Host(A, version=0) as a:
            self.assertEqual(self.status(s, a)[0], 0, "just published")
            time.sleep(3.2)
            self.assertEqual(self.status(s, a)[0], 1)


class Owner(unittest.TestCase):
    ROOM = "0f" * 30 + "8000"
    KEY = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA"

    def url(self, version, **more):
        query = {"v": version, "proto": "Noise_XK_25519_ChaChaPoly_BLAKE2s", "rs": self.KEY, "pid": "p%20%C3%A9", **more}
        return "iterm2://pair?" + "&".join(f"{k}={v}" for k, v in query.items() if v is not None)

    def test_answers_alike_in_both_places(self):
        with Store(A, B) as s:
            here = s.ok("owner", self.ROOM)
            self.assertEqual((here["bucket"], here["host"], here["origin"], here["mode"], here["version"]), (32768, B, f"https://{B}", "store", 1))
            self.assertEqual(json.loads(tool("owner", self.ROOM, "--store", s.folder, "--json").stdout), here)
        bare = json.loads(tool("owner", self.ROOM, "--json").stdout)
        self.assertEqual((bare["host"], bare["origin"], bare["version"]), (None, None, None))

    def test_reads_pairing_urls_of_both_kinds(self):
        direct = json.loads(tool("owner", "--json", self.url(1, relay="https://r.example:8443")).stdout)
        self.assertEqual((direct["mode"], direct["host"], direct["version"]), ("direct", "r.example:8443", None))
        with Origin(lambda _: (200, [], json.dumps(document(5, (0, 65535, C))).encode())) as o:
            resolved = json.loads(tool("owner", "--json", self.url(2, resolver=o.url + "/m")).stdout)
        self.assertEqual((resolved["mode"], resolved["host"], resolved["version"], resolved["room"]), ("resolved", C, 5, direct["room"]))

    def test_names_the_parameter_that_is_wrong(self):
        for parameter, url in (("relay", self.url(1)), ("relay", self.url(1, relay="http://r.example")), ("relay", self.url(2, relay="https://r.example")),
                               ("v", self.url(3, relay="https://r.example")), ("proto", self.url(1, relay="https://r.example", proto="x")), ("rs", self.url(1, relay="https://r.example", rs="AQ"))):
            p = tool("owner", "--json", url)
            self.assertEqual(p.returncode, 1, url)
            self.assertRegex(p.stderr, rf"\b{parameter}\b")


class Usage(unittest.TestCase):
    def test_exits_two_for_what_it_cannot_understand(self):
        with Store(A, B) as s:
            for args in ((), ("nonsense",), ("add",), ("add", C, "extra"), ("--nonsense", "show"), ("add", C, "--buckets", "0"), ("move", "1-2-3", B), ("move", "1", B, "--lock-timeout", "soon"),
                         ("move", "1", B, "--eviction-rate", "0"), ("move", "1", B, "--admin", "nothing"), ("publish",), ("owner", "xyz"), ("status",)):
                self.assertEqual(s.run(*args).returncode, 2, args)
            self.assertEqual(s.version(), 1)
        p = tool("map", "show")
        self.assertEqual((p.returncode, "--store" in p.stderr), (2, True))

    def test_gives_programs_the_value_that_is_wrong(self):
        with Store(A, B) as s:
            for args, value in ((("add", C, "--at", "x"), "x"), (("add", C, "--at", "5"), "5"), (("add", C, "--buckets", "0"), "0"), (("nonsense",), "nonsense"),
                                (("--nonsense=3", "show"), "--nonsense"), (("add", C, "extra"), "extra"), (("add",), ""), (("show", "--version", "y"), "y"),
                                (("move", "1", B, "--lock-timeout", "soon"), "soon"), (("--eviction-rate", "-1", "show"), "-1"), (("history", "--limit", "z"), "z"),
                                (("drain", B, "--timeout", "q"), "q"), (("diff",), "")):
                error = s.refused(*args, code=2)
                self.assertEqual((error["error"], error.get("value")), ("usage", value), (args, error))

    def test_takes_options_after_the_command_and_the_store_from_the_environment(self):
        with Store(A, B) as s:
            p = tool("map", "show", "--json", env={"TANDEM_STORE": s.folder})
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            show = json.loads(p.stdout)
            self.assertEqual(show["hosts"], [{"host": A, "buckets": 32768, "arcs": 1}, {"host": B, "buckets": 32768, "arcs": 1}])

    def test_names_a_store_that_is_not_there_in_one_line(self):
        p = tool("map", "--store", "/nonexistent/x", "add", C, "--yes")
        self.assertEqual((p.returncode, len(p.stderr.splitlines())), (1, 1))
        self.assertIn("/nonexistent/x", p.stderr)


if __name__ == "__main__":
    main()
