"""The operator's file, programs and signals (operations 3.1, 3.2, 3.6): --check, reload, logs, status, explain, doctor."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from derive import BUCKETS, new_room, tag
from harness import BIN, HOST, OTHER, RelayCase, SOURCE, eventually, free_port, layered, main, program, whole_ring, write_certificate
from wire import SLACK


class Checked(unittest.TestCase):
    """A folder whose configuration is checked and never started."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tandem-check-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.certificate, self.key = write_certificate(self.folder, (HOST, "localhost"))
        self.config = {"hostname": HOST, "listen": [f"127.0.0.1:{free_port()}"], "attest": {"required": False}, "state": {"path": None},
                       "tls": {"certificate": self.certificate, "private_key": self.key}, "admin": {"listen": f"127.0.0.1:{free_port()}"}}

    def check(self, change=None, text=None, args=(), **how):
        path = os.path.join(self.folder, "relay.jsonc")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text if text is not None else json.dumps(layered(self.config, change or {}), indent=1))
        return program("tandemd", "--config", path, "--check", *args, **how)

    def refused(self, *patterns, **how):
        ran = self.check(**how)
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertEqual(ran.stdout, "")
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
        for pattern in patterns:
            self.assertRegex(ran.stderr, pattern)
        return ran.stderr

    def accepted(self, *patterns, **how):
        ran = self.check(**how)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        for pattern in patterns:
            self.assertRegex(ran.stdout, pattern)
        return ran.stdout

    def test_says_what_it_would_do(self):
        said = self.accepted(HOST, r"direct", r"memory .*sockets", r"TLS .*localhost", re.escape(self.config["listen"][0]))
        self.assertTrue(said.endswith("ok\n"), said)

    def test_a_fault_is_one_line_with_file_line_and_key(self):
        self.refused(r"relay\.jsonc:\d+: limits\.sokets: unknown key; did you mean limits\.sockets", change={"limits": {"sokets": 1}})
        self.refused(r"relay\.jsonc:1: .*comma", text='{"hostname": "a.test",\n}')
        self.refused(r"object", text="[]")
        self.refused(r"duplicate", text='{"log": {},\n "log": {}}')

    def test_certificates_are_judged(self):
        _, other_key = write_certificate(self.folder, (HOST,), name="other")
        self.refused(r"match", change={"tls": {"private_key": other_key}})
        self.refused(re.escape(HOST), r"localhost\.?", change={"hostname": OTHER})
        self.accepted(r"warning: .*localhost", change={"hostname": OTHER, "tls": {"allow_name_mismatch": True}})
        old, old_key = write_certificate(self.folder, (HOST,), days=-1, name="old")
        self.accepted(r"warning: .*expired", change={"tls": {"certificate": old, "private_key": old_key}})
        soon, soon_key = write_certificate(self.folder, (HOST,), days=5, name="soon")
        self.accepted(r"warning: .*expires in", change={"tls": {"certificate": soon, "private_key": soon_key}})
        self.refused(r"missing\.pem", change={"tls": {"certificate": os.path.join(self.folder, "missing.pem")}})

    def test_paths_count_from_the_folder_of_the_file(self):
        self.accepted(change={"tls": {"certificate": os.path.basename(self.certificate), "private_key": os.path.basename(self.key)}}, cwd="/")

    def test_the_store_is_looked_at_and_left_alone(self):
        path = os.path.join(self.folder, "state.db")
        self.accepted(change={"state": {"path": path}})
        self.assertFalse(os.path.exists(path))
        os.mkdir(path)
        self.refused(r"state\.db", r"directory", change={"state": {"path": path}})

    def test_a_low_descriptor_limit_is_a_warning_with_the_number(self):
        import resource
        self.accepted(r"warning: limits\.sockets: .*\b5064\b.*\b300\b", change={"limits": {"sockets": 5000}},
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300)))

    def test_online_fetches_the_map_and_offline_does_not(self):
        path = os.path.join(self.folder, "map.json")
        fleet = {"shard_map": {"url": f"file://{path}"}}
        self.accepted(r"resolved", change=fleet)
        self.refused(r"shard_map\.url", change=fleet, args=("--online",))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(whole_ring(4, OTHER), file)
        self.accepted(r"version 4", rf"owns nothing.*{re.escape(OTHER)}", change=fleet, args=("--online",))

    def test_the_shipped_example_passes_as_an_operator_edits_it(self):
        with open(os.path.join(SOURCE, "config", "relay.jsonc"), encoding="utf-8") as file:
            text = file.read()
        for old, new in (("relay1.example.com\",  ", f"{HOST}\",  "), ("tls/fullchain.pem", self.certificate), ("tls/privkey.pem", self.key),
                         ("/var/lib/tandem/", self.folder + "/")):
            self.assertEqual(text.count(old), 1, old)
            text = text.replace(old, new)
        self.accepted(r"attest\.app_id", text=text)

    def test_usage_errors_exit_2_with_one_line(self):
        for argv in (["--config"], ["--chek"], ["--config", "x", "stray"], ["--config", "x", "--check", "--no-such"]):
            ran = program("tandemd", *argv)
            self.assertEqual(ran.returncode, 2, argv)
            self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)


class Generated(unittest.TestCase):
    def test_both_programs_write_their_man_page_and_completions(self):
        for name in ("tandemd", "tandemctl"):
            for kind, start in (("man", f".TH {name.upper()} 1"), ("bash", "# bash completion"), ("zsh", f"#compdef {name}"), ("fish", "# fish completion")):
                ran = program(name, "--generate", kind)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""), kind)
                self.assertTrue(ran.stdout.startswith(start), ran.stdout[:100])
        bash = program("tandemctl", "--generate", "bash").stdout
        subprocess.run(["bash", "-n"], input=bash, text=True, check=True)

    def test_every_command_of_help_is_in_the_man_page(self):
        commands = re.findall(r"^  ([a-z-]+) ", program("tandemctl", "--help").stdout.partition("Subcommands:")[2], re.M)
        self.assertIn("doctor", commands)
        page = program("tandemctl", "--generate", "man").stdout.replace("\\-", "-")
        for command in commands:
            self.assertIn(f".SS tandemctl {command}\n", page)


class PairCase(RelayCase):
    def pair(self, relay, room=None):
        """A pair that lives until the end of the test. -> (mac, phone)"""
        pair = relay.pair(room)
        for end in pair:
            self.addCleanup(end.drop)
        return pair


class Reloaded(PairCase):
    def reload(self, relay, change, says):
        """Applies a change to the file, sends SIGHUP, and waits for the log to say so. -> the new part of the log"""
        relay.config = layered(relay.config, change)
        relay.write_config()
        before = len(relay.log())
        relay.signal(signal.SIGHUP)
        return eventually(lambda: re.search(says, relay.log()[before:]) and relay.log()[before:], what=f"/{says}/ in the log")

    def test_limits_apply_at_once_and_live_pairs_never_notice(self):
        relay = self.relay()
        mac, phone = self.pair(relay)
        self.reload(relay, {"limits": {"message_bytes": "1KiB", "sockets_per_client": 3}}, r"limits\.message_bytes")
        mac.send(b"x" * 1000)
        self.assertEqual(phone.message(), b"x" * 1000)
        relay.connect(new_room()).drop()

    def test_restart_only_keys_are_named_and_the_rest_applies(self):
        relay = self.relay({"log": {"level": "info"}})
        log = self.reload(relay, {"listen": [f"127.0.0.1:{free_port()}"], "log": {"level": "debug"}}, r"restart")
        self.assertRegex(log, r"listen.*restart|restart.*listen")
        before = len(relay.log())
        self.pair(relay)
        eventually(lambda: "debug: hello" in relay.log()[before:], what="debug lines")

    def test_a_bad_file_is_refused_whole(self):
        relay = self.relay()
        good = dict(relay.config)
        log = self.reload(relay, {"limits": {"sokets": 1, "message_bytes": "1KiB"}}, r"limits\.sokets")
        self.assertNotIn("applied", log)
        mac, phone = self.pair(relay)
        mac.send(b"y" * 5000)
        self.assertEqual(phone.message(), b"y" * 5000)
        relay.config = good

    def test_sigusr2_toggles_debug(self):
        relay = self.relay({"log": {"level": "info"}})
        relay.signal(signal.SIGUSR2)
        eventually(lambda: "toggled" in relay.log(), what="the toggle in the log")
        self.pair(relay)
        eventually(lambda: "debug: hello" in relay.log(), what="debug lines")
        relay.signal(signal.SIGUSR2)
        eventually(lambda: "level=info" in relay.log(), what="the second toggle")
        time.sleep(0.2)
        before = len(relay.log())
        self.pair(relay)
        time.sleep(0.2)
        self.assertNotIn("debug:", relay.log()[before:])


class Logged(PairCase):
    def test_a_room_is_followed_by_its_tag_alone(self):
        relay = self.relay({"log": {"level": "debug"}})
        room = new_room()
        mac, phone = self.pair(relay, room)
        phone.close()
        self.assert_ends(mac, 1001, "peer gone")
        line = eventually(lambda: re.search(rf"^.*closed room={tag(room)} .*role=mac code=1001 reason=\"peer gone\" by=relay.*$", relay.log(), re.M))
        self.assertNotIn(room, relay.log(), line)
        self.assertNotIn("127.0.0.1:4", relay.log().replace(f"127.0.0.1:{relay.port}", "").replace(f"127.0.0.1:{relay.admin_port}", ""))

    def test_json_lines_are_objects(self):
        relay = self.relay({"log": {"level": "debug", "format": "json"}})
        self.pair(relay)
        relay.signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertEqual(relay.stop(), 0)
        lines = relay.log().splitlines()
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.assertLessEqual({"level", "message", "time"}, set(json.loads(line)), line)

    def test_a_full_pipe_on_stderr_stops_nothing(self):
        relay = self.relay()
        reader, writer = os.pipe()
        other = free_port()
        config = layered(relay.config, {"listen": [f"127.0.0.1:{other}"], "admin": {"listen": f"127.0.0.1:{free_port()}"}})
        path = os.path.join(relay.folder, "second.jsonc")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        second = subprocess.Popen([os.path.join(BIN, "tandemd"), "--config", path], stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
        self.addCleanup(lambda: (second.poll() is None and second.kill(), second.wait()))
        os.close(writer)
        self.addCleanup(os.close, reader)
        relay.port, first = other, relay.port  # talk to the one whose log nobody reads
        eventually(lambda: self._answers(relay), 15, what="the second relay")
        for _ in range(150 if SLACK == 1 else 60):
            mac, phone = relay.pair()
            mac.drop()
            phone.drop()
        mac, phone = self.pair(relay)
        mac.text("still here")
        self.assertEqual(phone.message(), b"still here")
        relay.port = first
        second.terminate()
        self.assertEqual(second.wait(20 * SLACK), 0)

    @staticmethod
    def _answers(relay):
        try:
            relay.tcp().close()
            return True
        except OSError:
            return False


class Asked(PairCase):
    def test_status_in_words_and_as_json(self):
        relay = self.relay()
        self.pair(relay)
        ran = program("tandemctl", "status", "--config", relay.config_path)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        for part in (HOST, "direct", f"{BUCKETS} of {BUCKETS} buckets (all)", "1 spliced"):
            self.assertIn(part, ran.stdout)
        for place in (f"127.0.0.1:{relay.admin_port}", f"http://127.0.0.1:{relay.admin_port}/"):
            ran = program("tandemctl", "status", "--json", "--admin", place)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual(json.loads(ran.stdout)["rooms"]["spliced"], 1)
            self.assertEqual(ran.stdout.count("\n"), 1)
        self.assertEqual(program("tandemctl", "status").returncode, 2)
        relay.stop()
        ran = program("tandemctl", "status", "--config", relay.config_path)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, rf"127\.0\.0\.1:{relay.admin_port}.*(refused|connect)")
        self.assertEqual(ran.stderr.count("\n"), 1)

    def test_watch_follows_and_ends_at_sigint(self):
        relay = self.relay()
        watch = subprocess.Popen([os.path.join(BIN, "tandemctl"), "status", "--watch", "--interval", "100ms", "--json", "--config", relay.config_path],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (watch.poll() is None and watch.kill(), watch.communicate()))
        for _ in range(3):
            self.assertEqual(json.loads(watch.stdout.readline())["hostname"], HOST)
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(5 * SLACK), 0)

    def test_explain_finds_each_of_three_reasons_for_mac_offline(self):
        maps = self.maps(whole_ring(3))
        relay = self.relay({"shard_map": {"url": maps.url, "poll_interval": "200ms", "drain_delay": "400ms"}, "limits": {"room_bytes_per_day": "10KiB"}})
        def explained(room, *more):
            ran = program("tandemctl", "explain", room, "--config", relay.config_path, *more)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertNotIn(room, ran.stdout)
            return ran.stdout
        room = new_room()
        self.assertRegex(explained(room), rf"tag {tag(room)}")
        self.assertIn("mac offline", explained(room))                          # nobody is there
        mac, _ = self.pair(relay, room)
        self.assertIn("mac and phone are connected", explained(room))
        mac.send(b"z" * 20000)
        eventually(lambda: "daily quota exceeded" in explained(room), what="the spent quota")
        maps.document = whole_ring(4, OTHER)                                   # another name in the map
        eventually(lambda: relay.status()["map"]["version"] == 4, what="version 4")
        said = explained(new_room())
        self.assertIn(OTHER, said)
        self.assertIn("misdirected", said)
        self.assertEqual(json.loads(explained(room, "--json"))["tag"], tag(room))
        self.assertEqual(program("tandemctl", "explain", "nonsense", "--config", relay.config_path).returncode, 2)

    def test_doctor_is_content_with_a_sound_relay_and_names_each_fault(self):
        port = free_port()
        relay = self.relay(port=port, hostname=f"localhost:{port}", names=("localhost",))
        def doctor(config, *patterns, code=1):
            path = os.path.join(relay.folder, "doctor.jsonc")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            ran = program("tandemctl", "doctor", "--config", path, env={**os.environ, "SSL_CERT_FILE": relay.certificate})
            self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
            for pattern in patterns:
                self.assertRegex(ran.stdout, pattern)
        doctor(relay.config, r"\[ ok \]  certificate .*localhost", r"\[ ok \]  dns", r"\[ ok \]  relay", r"\[ ok \]  served", code=0)
        renewed, key = write_certificate(relay.folder, ("localhost",), days=90, name="renewed")
        doctor(layered(relay.config, {"tls": {"certificate": renewed, "private_key": key}}),
               r"\[FAIL\]  served .*another certificate than .*renewed", r"-> .*not taken")
        other, key = write_certificate(relay.folder, (OTHER,), name="other")
        doctor(layered(relay.config, {"tls": {"certificate": other, "private_key": key}}), rf"\[FAIL\]  certificate .*{OTHER}", r"-> ")
        old, key = write_certificate(relay.folder, ("localhost",), days=-1, name="old")
        doctor(layered(relay.config, {"tls": {"certificate": old, "private_key": key}}), r"\[FAIL\]  certificate .*expired")
        maps = self.maps(whole_ring(2, "localhost:1"))
        doctor(layered(relay.config, {"shard_map": {"url": maps.url}}), r"\[FAIL\]  map .*owns nothing")
        lines = program("tandemctl", "doctor", "--json", "--config", relay.config_path).stdout.splitlines()
        for line in lines:
            self.assertIn(json.loads(line)["result"], ("ok", "warning", "wrong"))


if __name__ == "__main__":
    main()
