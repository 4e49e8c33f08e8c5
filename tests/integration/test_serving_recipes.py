"""The web server recipes of docs/publishing.md, taken from the page itself and run on loopback: what they serve must satisfy
`tandemctl map check --strict`, and a publish must be seen by whoever asks with the last ETag."""
import contextlib
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from harness import SOURCE, free_port, write_certificate
from map_store import Store, read, tool
from wire import SLACK

A, B = "h1.example", "h2.example"
NGINX, CADDY = (shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin") for name in ("nginx", "caddy"))


def recipe(language):
    """The one code block of this language in the page."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", read(os.path.join(SOURCE, "docs", "publishing.md")), re.M | re.S)
    assert len(blocks) == 1, f"{len(blocks)} blocks of {language}"
    return blocks[0]


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text, f"the recipe no longer has {old!r}"
        text = text.replace(old, new)
    return text


class Recipes(unittest.TestCase):
    def setUp(self):
        self.store = self.enterContext(Store(A, B))
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tandem-web-"))
        for folder in (self.folder, self.store.top):  # a web server that gave up root must get in
            os.chmod(folder, 0o755)
        self.certificate, self.key = write_certificate(self.folder, ["localhost", "127.0.0.1"])
        self.port = free_port()
        self.origin = f"https://localhost:{self.port}"
        self.context = ssl.create_default_context(cafile=self.certificate)

    @contextlib.contextmanager
    def running(self, *argv):
        with open(os.path.join(self.folder, "output"), "wb") as output:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder,
                                       env={**os.environ, "HOME": self.folder, "XDG_DATA_HOME": self.folder, "XDG_CONFIG_HOME": self.folder})
        try:
            until = time.monotonic() + 20 * SLACK
            while self.get("/")[0] is None:
                assert process.poll() is None and time.monotonic() < until, read(os.path.join(self.folder, "output"))
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(20 * SLACK)

    def get(self, path, **headers):
        """-> (status, headers, body); a status of None: nobody listens"""
        request = urllib.request.Request(self.origin + path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=10 * SLACK) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers, ""
        except urllib.error.URLError:
            return None, None, ""

    def judge(self):
        checked = tool("map", "check", "--strict", "--json", self.origin + "/shardmap.json", env={"SSL_CERT_FILE": self.certificate})
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        status, headers, body = self.get("/shardmap.json", Accept_Encoding="gzip, br")
        self.assertEqual((status, body), (200, read(self.store.file)), "compressed, or not the map")
        self.assertEqual(headers["Cache-Control"], "max-age=5")
        for path in ("/", "/.tandem/lock", "/history/1.json"):
            self.assertEqual(self.get(path)[0], 404, path)
        for turn in range(4):  # of one size, and in one second but for the tool's care
            tag = self.get("/shardmap.json")[1]["ETag"]
            self.assertEqual(self.get("/shardmap.json", If_None_Match=tag)[0], 304)
            self.store.ok("move", 32767 - turn, B)
            status, headers, body = self.get("/shardmap.json", If_None_Match=tag)
            self.assertEqual((status, body), (200, read(self.store.file)), "a publish was not seen")
            self.assertEqual(headers["Cache-Control"], "max-age=5")

    @unittest.skipUnless(NGINX, "nginx is not installed")
    def test_nginx(self):
        server = replaced(recipe("nginx"), ("listen 443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"), ("    listen [::]:443 ssl;\n", ""),
                          ("/etc/letsencrypt/live/resolver.example.com/fullchain.pem", self.certificate),
                          ("/etc/letsencrypt/live/resolver.example.com/privkey.pem", self.key), ("/srv/map", self.store.folder))
        path = os.path.join(self.folder, "nginx.conf")
        spool = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(path, "w", encoding="utf-8") as file:  # compression is on around the recipe, as it often is
            file.write(f"daemon off; pid {self.folder}/pid; error_log stderr; events {{}}\n"
                       f"http {{ access_log off; gzip on; gzip_types application/json; gzip_min_length 1;\n{spool}{server}}}\n")
        with self.running(NGINX, "-p", self.folder, "-e", "stderr", "-c", path):
            self.judge()

    @unittest.skipUnless(CADDY, "caddy is not installed")
    def test_caddy(self):
        site = replaced(recipe("caddyfile"), ("resolver.example.com {", f"{self.origin} {{\n    tls {self.certificate} {self.key}"),
                        ("/srv/map", self.store.folder))
        path = os.path.join(self.folder, "Caddyfile")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{{\n    admin off\n    auto_https off\n    storage file_system {self.folder}/caddy\n}}\n{site}")
        with self.running(CADDY, "run", "--config", path, "--adapter", "caddyfile"):
            self.judge()


if __name__ == "__main__":
    sys.exit(0 if unittest.main(verbosity=2, warnings="ignore", exit=False).result.wasSuccessful() else 1)
