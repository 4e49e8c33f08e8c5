"""The map console in a real browser: the ring, a draft by typing and by the keyboard, publishing, divergences, history; and what it
refuses to strangers. Skipped where Chromium or python3-websockets is missing. TANDEM_SCREENSHOTS=DIR keeps pictures."""
import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from harness import eventually, main
from map_store import Host, Store, read
from test_status_page import CHROMIUM, FLAGS, Page, websockets

A, B, C, D = (f"relay{i}.example.com" for i in (1, 2, 3, 4))


class ConsoleCase(unittest.TestCase):
    def console(self, store, *args):
        process = store.start("console", "--listen", "127.0.0.1:0", *args)

        def end():
            process.terminate()
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 0)

        self.addCleanup(end)
        return json.loads(process.stdout.readline())["url"]

    def store(self, *hosts):
        s = Store(*hosts)
        self.addCleanup(s.__exit__)
        return s

    @staticmethod
    def ask(url, body=None, **headers):
        """-> (status, JSON or text)"""
        request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers)
        if body is not None and "Content-Type" not in headers:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            status, text = e.code, e.read().decode()
            e.close()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text


class Interface(ConsoleCase):
    def test_makes_the_same_bytes_as_the_command_line(self):
        typed, clicked = self.store(A, B), self.store(A, B)
        url = self.console(clicked)
        steps = (("add", {"op": "add", "host": C}, ("add", C)), ("add", {"op": "add", "host": D, "at": 0, "buckets": 999}, ("add", D, "--at", 0, "--buckets", 999)),
                 ("move", {"op": "move", "low": 65000, "high": 100, "host": B}, ("move", "65000-100", B)), ("remove", {"op": "remove", "host": A}, ("remove", A)),
                 ("rebalance", {"op": "rebalance"}, ("rebalance",)), ("rollback", {"op": "rollback", "version": 2}, ("rollback", 2)))
        for base, (action, edit, command) in enumerate(steps, 1):
            status, answer = self.ask(url + "api/publish", {"base": base, "edits": [edit], "message": "m"})
            self.assertEqual((status, answer["results"][0]["action"]), (200, action), answer)
            typed.ok(*command, "--message", "m")
            self.assertEqual(read(clicked.file), read(typed.file))
        self.assertEqual([h["action"] for h in clicked.all("history")], [h["action"] for h in typed.all("history")])

    def test_previews_without_writing_and_loses_a_race_with_its_draft_kept(self):
        s = self.store(A, B)
        url = self.console(s)
        edits = [{"op": "add", "host": C}, {"op": "move", "low": 0, "high": 9, "host": B}]
        status, answer = self.ask(url + "api/preview", {"base": 1, "edits": edits})
        self.assertEqual((status, answer["results"][0]["published"], answer["results"][0]["moved_buckets"], s.version()), (200, False, 21855, 1))
        s.ok("move", "60000", A, "--by", "eve")
        status, answer = self.ask(url + "api/publish", {"base": 1, "edits": edits})
        self.assertEqual((status, answer["error"], answer["current"]["by"]), (409, "conflict", "eve"))
        self.assertEqual(json.loads(read(answer["draft"]))["version"], 1)
        self.assertEqual(s.version(), 2)

    def test_publishes_in_two_phases(self):
        s = self.store(A, B)
        url = self.console(s, "--poll-interval", "200ms")
        status, answer = self.ask(url + "api/publish", {"base": 1, "edits": [{"op": "move", "low": 0, "high": 99, "host": B}], "two_phase": True})
        self.assertEqual((status, [r["phase"] for r in answer["results"]], s.version()), (200, [1, 2], 3))

    def test_refuses_what_the_command_line_refuses(self):
        url = self.console(self.store(A, B))
        for code, edit in (("host_exists", {"op": "add", "host": A}), ("unknown_host", {"op": "remove", "host": C}), ("invalid_host", {"op": "add", "host": "X"}),
                           ("usage", {"op": "add", "host": C, "at": 5}), ("usage", {"op": "dance"}), ("usage", {"op": "move", "low": 0, "high": 70000, "host": A}),
                           ("usage", {"op": "move", "low": "0", "high": 1, "host": A}), ("usage", 5), ("unknown_version", {"op": "rollback", "version": 9})):
            status, answer = self.ask(url + "api/publish", {"base": 1, "edits": [edit]})
            self.assertEqual((status, answer["error"]), (400, code), edit)

    def test_lets_in_only_who_knows_the_url_and_no_page_of_another_site(self):
        url = self.console(self.store(A, B))
        origin = url.rsplit("/", 2)[0]
        self.assertEqual(self.ask(origin + "/")[0], 404)
        self.assertEqual(self.ask(origin + "/" + "0" * 32 + "/api/state")[0], 404)
        self.assertEqual(self.ask(url, Host="evil.example")[0], 403)
        body = {"base": 1, "edits": [{"op": "rebalance"}]}
        self.assertEqual(self.ask(url + "api/publish", body, Origin="https://evil.example")[0], 403)
        self.assertEqual(self.ask(url + "api/publish", body, **{"Content-Type": "text/plain"})[0], 415)
        self.assertEqual(self.ask(url + "api/publish")[0], 404)
        self.assertEqual(self.store(A, B).refused("console", "--listen", "0.0.0.0:0", code=2)["error"], "usage")


@unittest.skipUnless(CHROMIUM and websockets, "Chromium (package chromium) or python3-websockets is not installed")
class Browser(ConsoleCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tandem-browser-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.browser = subprocess.Popen([CHROMIUM, *FLAGS, "--window-size=1240,1180", f"--user-data-dir={self.folder}", "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end_browser)
        self.port = int(eventually(self.debugging_port, 30, what="the browser"))

    def debugging_port(self):
        try:
            return read(os.path.join(self.folder, "DevToolsActivePort")).splitlines()[0]
        except (OSError, IndexError):
            return None

    def end_browser(self):
        self.browser.terminate()
        try:
            self.browser.wait(20)
        except subprocess.TimeoutExpired:
            self.browser.kill()
            self.browser.wait()

    def drive(self, url, steps):
        async def session():
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json", timeout=20) as answer:
                tab = next(t for t in json.load(answer) if t["type"] == "page")
            async with websockets.connect(tab["webSocketDebuggerUrl"], max_size=1 << 26) as socket:
                page = Page(socket)
                await page.open(url)
                await page.until("document.querySelectorAll('#ring .arc').length > 0")
                await steps(page)
                self.assertEqual(page.complaints(), [])
                for requested in page.requested():
                    self.assertTrue(requested.startswith(url), requested)

        asyncio.run(session())

    @staticmethod
    async def picture(page, name):
        folder = os.environ.get("TANDEM_SCREENSHOTS")
        if folder:
            await page.value("document.getElementById('store').textContent = '/srv/map'")
            shot = await page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
            with open(os.path.join(folder, name + ".png"), "wb") as f:
                f.write(base64.b64decode(shot["data"]))

    def test_drafts_by_typing_and_publishes(self):
        s = self.store()
        s.args = ["--by", "ann"]
        s.ok("init", A, B, C)
        s.ok("add", D, "--message", "a fourth box")

        async def steps(page):
            await page.until("document.querySelectorAll('#history tr').length === 2")
            await self.picture(page, "console")
            await page.value("document.querySelector('#add [name=host]').value = 'relay5.example.com', document.querySelector('#add button').click()")
            await page.until("document.getElementById('forecast').textContent.includes('13107 buckets')")
            await page.until("document.querySelectorAll('#moves tr').length === 2 && document.querySelectorAll('#ring .moved').length > 2")
            await self.picture(page, "console-draft")
            await page.value("document.getElementById('review').click()")
            self.assertEqual(await page.value("document.getElementById('confirm-title').textContent"), "Publish version 3?")
            self.assertEqual(s.version(), 2)
            await page.value("document.getElementById('message').value = 'a fifth', document.getElementById('publish').click()")
            await page.until("document.getElementById('alert').textContent === 'Published version 3.'")
            await page.until("document.querySelectorAll('#history tr').length === 3")
            await page.value("document.querySelector('#history button').click()")
            await page.until("document.getElementById('diff').textContent.includes('13107 buckets')")

        self.drive(self.console(s), steps)
        self.assertEqual((s.version(), s.all("history")[0]["message"]), (3, "a fifth"))

    def test_drafts_by_the_keyboard_alone(self):
        s = self.store(A, B)

        async def steps(page):
            await page.value("document.querySelector('#ring [role=slider][data-at=\"32768\"]').focus()")
            for key in ("ArrowRight", "ArrowRight"):
                await page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
            self.assertEqual(await page.value("document.activeElement.getAttribute('aria-valuenow')"), "32896")
            await page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter")
            await page.until("document.getElementById('forecast').textContent.includes('Moves 128 buckets')")
            self.assertIn("32768-32895", await page.value("document.getElementById('moves').textContent"))
            await page.value("document.getElementById('undo').click()")
            await page.until("document.getElementById('forecast').textContent.includes('No draft')")

        self.drive(self.console(s), steps)
        self.assertEqual(s.version(), 1)

    def test_drafts_by_dragging_a_boundary(self):
        s = self.store(A, B)

        async def steps(page):
            box = json.loads(await page.value("JSON.stringify(document.querySelector('#ring [data-at=\"32768\"]').getBoundingClientRect())"))
            ring = json.loads(await page.value("JSON.stringify(document.getElementById('ring').getBoundingClientRect())"))
            x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            await page.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", buttons=1, clickCount=1)
            # A quarter turn back, to three o'clock: bucket 16384.
            await page.call("Input.dispatchMouseEvent", type="mouseMoved", x=ring["x"] + ring["width"] * 0.87, y=ring["y"] + ring["height"] / 2, button="left", buttons=1)
            await page.call("Input.dispatchMouseEvent", type="mouseReleased", x=ring["x"] + ring["width"] * 0.87, y=ring["y"] + ring["height"] / 2, button="left", clickCount=1)
            await page.until("document.querySelectorAll('#moves tr').length === 1")
            moved = int(await page.value("document.querySelector('#moves .number').textContent"))
            self.assertAlmostEqual(moved, 16384, delta=300)

        self.drive(self.console(s), steps)

    def test_names_each_divergence_and_speaks_to_screen_readers(self):
        s = self.store()
        s.args = ["--by", "ann"]
        s.ok("init", A, B)
        with Host(A, version=1, rooms=120) as a, Host(B, version=0, rooms=80) as b:
            a.draining = 3

            async def steps(page):
                await page.until("document.getElementById('hosts').textContent.includes('stale_map')")
                text = await page.value("document.getElementById('hosts').textContent")
                self.assertIn("draining", text)
                self.assertIn("120 rooms", text)
                await self.picture(page, "console-divergence")
                tree = (await page.call("Accessibility.getFullAXTree"))["nodes"]
                names = {(n["role"]["value"], n.get("name", {}).get("value")) for n in tree if not n.get("ignored") and "role" in n}
                self.assertIn(("slider", f"Boundary between {A} and {B}"), names)
                for heading in ("Draft", "The ring", "History"):
                    self.assertIn(("heading", heading), names)
                unnamed = [n for n in tree if not n.get("ignored") and n.get("role", {}).get("value") in ("button", "textbox", "slider", "combobox", "checkbox") and not n.get("name", {}).get("value")]
                self.assertEqual(unnamed, [])

            self.drive(self.console(s, "--admin", a.admin, "--admin", b.admin), steps)


if __name__ == "__main__":
    main()
