"""The relays that ./dev bench compares, each started on a core of its own."""
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import time

RELAY_CORE, LOAD_CORE = 0, 1


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pinned(core, *command):
    return ["taskset", "-c", str(core), *map(str, command)]


def wait_for(port, process, log, seconds=15):
    program, end = process.args[3], time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{program} ended with {process.returncode}: {log.read_text()[-300:]}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{program} does not listen on port {port}")


class Contender:
    """One thing to measure, known by its port and by the processes whose CPU counts."""

    is_relay = True  # has admissions and parked macs of its own
    needs = ()  # programs, or files, that have to be there
    descriptors = 1  # open files that one client costs

    def __init__(self, name, work, tools):
        self.name, self.work, self.tools = name, work, tools
        self.running, self.pids = [], []
        self.port, self.log = free_port(), work / f"{name}.log"

    def run(self, *command, core=RELAY_CORE, **environment):
        with open(self.log, "ab") as log:
            process = subprocess.Popen(pinned(core, *command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                                       env={**os.environ, **environment})
        self.running.append(process)
        return process

    def resident(self):
        """KiB"""
        return sum(int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) for pid in self.pids)

    def restart(self, *how):
        """A fresh process on a fresh port: memory figures are those of a young heap."""
        self.stop()
        self.port = free_port()
        self.pids = self.start(*how)

    def stop(self):
        for process in self.running:
            process.terminate()
        for process in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
                process.wait()
        self.running.clear()


class Tandem(Contender):
    def start(self, certificate, key, binaries):
        # As 5.2 of the performance targets asks: every limit at its default but the frame rate and the quota, and those that
        # only a single client meets which is a thousand at once.
        limits = {"messages_per_second": 1000000000, "room_bytes_per_day": "1000TiB", "upgrades_per_minute": 100000000,
                  "sockets_per_client": 1000000}
        config = {"hostname": "localhost", "listen": [f"127.0.0.1:{self.port}"],
                  "tls": {"certificate": str(certificate), "private_key": str(key)}, "attest": {"required": False},
                  "state": {"path": None}, "admin": {"listen": f"127.0.0.1:{free_port()}"}, "limits": limits}
        path = self.work / "relay.jsonc"
        path.write_text(json.dumps(config))
        process = self.run(binaries / "tandemd", "--config", path)
        wait_for(self.port, process, self.log)
        return [process.pid]


class Floor(Contender):
    """A relay with nothing around it: no limits, no timers, no bounds on what waits."""

    def start(self, certificate, key, _binaries):
        process = self.run(self.tools / self.name, "--port", self.port, "--cert", certificate, "--key", key, "--bio", "hybrid", "--ws")
        wait_for(self.port, process, self.log)
        return [process.pid]


class Proxy(Contender):
    """HAProxy or nginx: a TLS-terminating proxy in front of the plain floor, whose own CPU is not counted: it runs on the load's core."""

    is_relay = False

    def __init__(self, name, work, tools):
        super().__init__(name, work, tools)
        self.needs = (name,)

    def start(self, certificate, key, _binaries):
        behind = free_port()
        floor = self.run(self.tools / "floor", "--port", behind, "--ws", core=LOAD_CORE)
        wait_for(behind, floor, self.log)
        process = (self.haproxy if self.name == "haproxy" else self.nginx)(certificate, key, behind)
        wait_for(self.port, process, self.log)
        children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
        return [process.pid, *map(int, children)]

    def haproxy(self, certificate, key, behind):
        both = self.work / "both.pem"
        both.write_text(certificate.read_text() + key.read_text())
        path = self.work / "haproxy.conf"
        path.write_text(
            "global\n nbthread 1\n maxconn 2000\n"
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\n"
            f"frontend f\n bind 127.0.0.1:{self.port} ssl crt {both}\n default_backend b\n"
            f"backend b\n server s 127.0.0.1:{behind}\n")
        return self.run("haproxy", "-db", "-f", path)

    def nginx(self, certificate, key, behind):
        path = self.work / "nginx.conf"
        path.write_text(
            f"daemon off; worker_processes 1; error_log stderr; pid {self.work}/nginx.pid; events {{ worker_connections 2000; }}\n"
            f"http {{ access_log off; server {{ listen 127.0.0.1:{self.port} ssl; ssl_certificate {certificate};\n"
            f" ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;\n"
            f" location / {{ proxy_pass http://127.0.0.1:{behind}; proxy_http_version 1.1; proxy_buffering off;\n"
            "  proxy_read_timeout 1h; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; } } }\n")
        return self.run("nginx", "-p", self.work, "-c", path)


class NodeBehindCaddy(Contender):
    """A plain relay of npm's ws, and Caddy that ends TLS for it, both on the relay's core and both counted."""

    needs = ("node", "caddy", "/usr/share/nodejs/ws")
    descriptors = 2

    def start(self, certificate, key, _binaries):
        behind = free_port()
        relay = self.run("node", pathlib.Path(__file__).parent / "load" / "ws_relay.js", behind, NODE_PATH="/usr/share/nodejs")
        wait_for(behind, relay, self.log)
        path = self.work / "Caddyfile"
        path.write_text(
            "{\n admin off\n auto_https off\n servers {\n  protocols h1\n }\n}\n"
            f"https://localhost:{self.port} {{\n bind 127.0.0.1\n tls {certificate} {key}\n reverse_proxy 127.0.0.1:{behind}\n}}\n")
        caddy = self.run("caddy", "run", "--adapter", "caddyfile", "--config", path, HOME=str(self.work))
        wait_for(self.port, caddy, self.log)
        return [relay.pid, caddy.pid]
