"""A store in a temporary folder and the publishing tool on it, for the tests of `tandemctl map`."""
import contextlib
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading

from harness import BIN

TOOL = os.path.join(BIN, "tandemctl")
BUCKETS = 65536


def tool(*args, stdin=None, env=None, timeout=60):
    return subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=timeout, input=stdin,
                          stdin=subprocess.DEVNULL if stdin is None else None,
                          env={**os.environ, "TANDEM_STORE": "", "EDITOR": "", "VISUAL": "", **(env or {})})


def read(path):
    with open(path) as f:
        return f.read()


def owners(document):
    """The map as a list of hosts, or an AssertionError: every map a reader can see must be a partition."""
    out = [None] * BUCKETS
    for r in document["ranges"]:
        for b in range(r["low"], r["high"] + 1):
            assert out[b] is None, f"bucket {b} twice"
            out[b] = r["host"]
    assert None not in out, f"bucket {out.index(None)} has no owner"
    return out


class Store:
    def __init__(self, *hosts, args=()):
        self.top = tempfile.mkdtemp(prefix="tandem-map-")
        self.folder = os.path.join(self.top, "store")
        self.file = os.path.join(self.folder, "shardmap.json")
        self.args = list(args)
        if hosts:
            self.ok("init", *hosts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top, ignore_errors=True)

    def line(self, *args, yes=True, json_out=True):
        return ["map", "--store", self.folder, *self.args, *(["--yes"] if yes else []), *(["--json"] if json_out else []), *args]

    def run(self, *args, yes=True, json_out=True, **kw):
        return tool(*self.line(*args, yes=yes, json_out=json_out), **kw)

    def all(self, *args, **kw):
        p = self.run(*args, **kw)
        assert p.returncode == 0, (args, p.returncode, p.stderr, p.stdout)
        return [json.loads(line) for line in p.stdout.splitlines()]

    def ok(self, *args, **kw):
        return self.all(*args, **kw)[-1]

    def refused(self, *args, code=1, **kw):
        """-> the error object; the last line on stderr says the same to people."""
        p = self.run(*args, **kw)
        assert p.returncode == code, (args, p.returncode, p.stderr, p.stdout)
        error = json.loads(p.stdout.splitlines()[-1])
        assert error["ok"] is False and error["error"] and p.stderr.startswith("tandemctl: ") or "\ntandemctl: " in p.stderr or "] tandemctl: " in p.stderr, p
        return error

    def start(self, *args, yes=True):
        return subprocess.Popen([TOOL, *map(str, self.line(*args, yes=yes))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, "TANDEM_STORE": "", "EDITOR": "", "VISUAL": ""})

    def map(self):
        with open(self.file) as f:
            return json.load(f)

    def version(self):
        return self.map()["version"]

    def write(self, name, content):
        path = os.path.join(self.top, name)
        with open(path, "w") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def script(self, name, body):
        path = self.write(name, "#!/bin/sh\n" + body + "\n")
        os.chmod(path, 0o755)
        return path


class Origin:
    """An HTTP server whose answer is what `reply(path)` gives: (status, headers, body)."""

    def __init__(self, reply):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                status, headers, body = reply(self.path)
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Host(Origin):
    """What a relay's admin endpoint says; change the attributes, or set `down`."""

    def __init__(self, name, version=1, rooms=0):
        self.name, self.held, self.rooms, self.draining, self.down, self.ranges, self.age, self.error = name, version, rooms, 0, False, None, 1.0, None
        super().__init__(self.reply)

    def reply(self, path):
        if self.down:
            return 503, [], b""
        if path == "/metrics":
            text = (f"# TYPE tandem_rooms gauge\ntandem_rooms{{state=\"spliced\"}} {self.rooms}\ntandem_rooms{{state=\"mac_only\"}} 0\n"
                    f"tandem_rooms{{state=\"phone_only\"}} 0\ntandem_rooms{{state=\"pending\"}} 1000\n"
                    f"tandem_shard_map_version {self.held}\ntandem_draining_rooms {self.draining}\n")
            return 200, [("Content-Type", "text/plain; version=0.0.4")], text.encode()
        status = {"hostname": self.name, "mode": "resolved", "map": {"version": self.held, "floor": self.held, "age_seconds": self.age},
                  "draining": {"buckets": 1 if self.draining else 0, "rooms": self.draining, "next_eviction_seconds": None, "expected_end_seconds": None},
                  "rooms": {"spliced": self.rooms, "mac_only": 0, "phone_only": 0, "pending": 1000}, "last_fetch_error": self.error}
        if self.ranges is not None:
            status["owned"] = {"buckets": sum(h - l + 1 for l, h in self.ranges), "ranges": self.ranges}
        return 200, [("Content-Type", "application/json")], json.dumps(status).encode()

    @property
    def admin(self):
        return f"{self.name}={self.url}"


@contextlib.contextmanager
def watched(path):
    """Reads the served file all the while. -> the versions seen; a torn map or a falling version fails."""
    versions, faults, stop = [], [], threading.Event()

    def loop():
        while not stop.wait(0.0005):
            try:
                with open(path, "rb") as f:
                    document = json.loads(f.read())
                if not versions or versions[-1] != document["version"]:
                    owners(document)
                    if versions and document["version"] < versions[-1]:
                        faults.append(f"{versions[-1]} fell to {document['version']}")
                    versions.append(document["version"])
            except (OSError, ValueError, AssertionError) as e:
                faults.append(repr(e))

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield versions
    finally:
        stop.set()
        thread.join(5)
    assert not faults, faults[:3]
