"""The status page in a real browser: it is drawn, lives without reloading, fits a phone, has dark and light, speaks to a screen
reader, loads nothing from elsewhere and works with scripts off. Skipped where Chromium (package chromium) or python3-websockets
is not installed."""
import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

from harness import HOST, OTHER, RelayCase, eventually, main, shard_map
from wire import SLACK

try:
    import websockets
except ImportError:
    websockets = None

CHROMIUM = shutil.which("chromium")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage", "--remote-debugging-port=0",
         "--no-proxy-server")


class Page:
    """One tab, spoken to by the DevTools protocol; events are kept."""

    def __init__(self, socket):
        self.socket, self.next, self.events = socket, 0, []

    async def call(self, method, **params):
        self.next += 1
        await self.socket.send(json.dumps({"id": self.next, "method": method, "params": params}))
        while True:
            said = json.loads(await asyncio.wait_for(self.socket.recv(), 30 * SLACK))
            if said.get("id") == self.next:
                assert "error" not in said, said
                return said["result"]
            self.events.append(said)

    async def value(self, expression):
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, expression, timeout=15):
        for _ in range(int(timeout * SLACK / 0.1)):
            if await self.value(expression):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"never true: {expression}; the page says {await self.value('document.body.innerText')!r:.800}")

    async def open(self, url):
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && !!document.getElementById('ring')")

    def requested(self):
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        return [e["params"] for e in self.events if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")]


@unittest.skipUnless(CHROMIUM and websockets, "Chromium (package chromium) or python3-websockets is not installed")
class StatusPage(RelayCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tandem-browser-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.browser = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(self.end_browser)
        port_file = os.path.join(self.folder, "DevToolsActivePort")
        self.port = int(eventually(lambda: self.first_line(port_file), 30, what="the browser"))

    @staticmethod
    def first_line(path):
        if not os.path.exists(path):
            return ""
        with open(path, encoding="ascii") as file:
            return file.readline().strip()

    def end_browser(self):
        self.browser.terminate()
        try:
            self.browser.wait(10)
        except subprocess.TimeoutExpired:
            self.browser.kill()
            self.browser.wait()

    def with_page(self, relay, script):
        def tab():
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json/list", timeout=10) as answer:
                return next((t["webSocketDebuggerUrl"] for t in json.load(answer) if t["type"] == "page"), None)

        async def run():
            async with websockets.connect(eventually(tab, 20, 0.1, "a tab"), max_size=None) as socket:
                page = Page(socket)
                await page.open(f"http://127.0.0.1:{relay.admin_port}/")
                await script(page)
                self.assertEqual(page.complaints(), [])
                self.assertEqual({u for u in page.requested() if not u.startswith((f"http://127.0.0.1:{relay.admin_port}/", "data:", "about:"))}, set())

        asyncio.run(run())

    def sharded(self):
        maps = self.maps(shard_map(3, (0, 32767, HOST), (32768, 65535, OTHER)))
        return maps, self.relay({"shard_map": {"url": maps.url, "poll_interval": "100ms", "drain_delay": "300ms", "eviction_rate": 0.5}})

    def test_it_lives_without_being_loaded_again(self):
        maps, relay = self.sharded()

        async def script(page):
            await page.value("window.mark = 'the same document'")
            self.assertIn("50.0 %", await page.value("document.getElementById('ring').innerText"))
            self.assertTrue((await page.value("document.getElementById('rooms').innerText")).startswith("Rooms"))
            ends = [relay.admit("01" * 32, "mac"), relay.admit("01" * 32, "phone"), relay.admit("02" * 32, "mac")]
            await page.until("/1\\s+spliced/.test(document.getElementById('rooms').innerText)")
            maps.document = shard_map(4, (0, 99, HOST), (100, 65535, OTHER))
            await page.until("!!document.querySelector('#drain progress')")
            self.assertIn("rooms left", await page.value("document.getElementById('drain').innerText"))
            self.assertIn("expected end", await page.value("document.getElementById('drain').innerText"))
            await page.until("/version\\s+4/.test(document.getElementById('map').innerText)")
            await page.until("document.title.startsWith('Ready')")
            self.assertEqual(await page.value("window.mark"), "the same document")
            for end in ends:
                end.drop()

        self.with_page(relay, script)

    def test_it_says_so_when_the_relay_is_gone(self):
        relay = self.relay()

        async def script(page):
            relay.stop()
            await page.until("document.getElementById('link').innerText.includes('does not answer')", 30)
            page.events.clear()  # the failed requests themselves

        self.with_page(relay, script)

    def test_it_fits_a_phone_and_knows_dark_and_light(self):
        _, relay = self.sharded()

        async def script(page):
            backs = {}
            for scheme in ("light", "dark"):
                await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                backs[scheme] = await page.value("getComputedStyle(document.body).backgroundColor")
            self.assertNotEqual(backs["light"], backs["dark"])
            for width in (320, 390, 1200):
                await page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=2, mobile=width < 600)
                self.assertLessEqual(await page.value("document.documentElement.scrollWidth"), width, f"{width} pixels wide")
            smallest = await page.value("Math.min(...[...document.querySelectorAll('td, th, p')].map(e => parseFloat(getComputedStyle(e).fontSize)))")
            self.assertGreaterEqual(smallest, 12)

        self.with_page(relay, script)

    def test_a_screen_reader_finds_names_and_roles(self):
        _, relay = self.sharded()

        async def script(page):
            tree = (await page.call("Accessibility.getFullAXTree"))["nodes"]
            said = {(n["role"]["value"], n.get("name", {}).get("value", "")) for n in tree if not n.get("ignored")}
            roles = {}
            for role, name in said:
                roles.setdefault(role, set()).add(name)
            self.assertTrue(any(name.startswith("Ring of 65536 buckets: relay1.test 50.0 %") for name in roles.get("image", set()) | roles.get("img", set())), roles)
            for title in ("Who owns what", "Rooms", "Throughput", "Draining", "Shard map", "Certificate"):
                self.assertIn(title, roles["heading"])
                self.assertIn(title, roles["region"])
            self.assertIn("status", roles)
            self.assertIn("alert", roles)
            self.assertIn("main", roles)
            self.assertEqual(await page.value("document.documentElement.lang"), "en")

        self.with_page(relay, script)

    def test_it_says_everything_with_scripts_off(self):
        _, relay = self.sharded()
        end = relay.admit("03" * 32, "mac")

        async def script(page):
            await page.call("Emulation.setScriptExecutionDisabled", value=True)
            await page.call("Page.reload")
            await asyncio.sleep(1)
            await page.call("Emulation.setScriptExecutionDisabled", value=False)
            text = await page.value("document.body.innerText")
            for words in (HOST, OTHER, "50.0 %", "mac waits for its phone", "Nothing drains", "expires in"):
                self.assertIn(words, text)

        self.with_page(relay, script)
        end.drop()


if __name__ == "__main__":
    main()
