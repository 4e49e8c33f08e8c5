#!/usr/bin/python3
"""Measures tandemd beside the floor and, where they are installed, HAProxy and nginx terminating TLS (docs/performance.md).

Everything compared runs in one sitting, alternating, pinned to core 0; the load runs on core 1. A round in which somebody else
used over 5 % of either core is thrown away. Medians and ratios against floor-asio; a table, and everything as JSON.
"""
import argparse, contextlib, json, os, shutil, signal, socket, statistics, subprocess, sys, tempfile, time

RELAY_CORE, LOAD_CORE = 0, 1
FRAMES = (65536, 16384, 1024)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process, log, seconds=15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None: raise RuntimeError(f"{process.args[3]} ended with {process.returncode}: {log.read_text()[-300:]}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1): return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args[3]} does not listen")


def pinned(core, *command): return ["taskset", "-c", str(core), *map(str, command)]


class Contender:
    """One thing to measure: started on core 0, known by its port and the processes whose CPU counts."""

    def __init__(self, name, work, tools): self.name, self.work, self.tools, self.running, self.port, self.log = name, work, tools, [], free_port(), work / f"{name}.log"

    def run(self, *command, core=RELAY_CORE):
        p = subprocess.Popen(pinned(core, *command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.log, "ab"))
        self.running.append(p); return p

    def stop(self):
        for p in self.running:
            p.terminate()
        for p in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired): p.wait(20)
            if p.poll() is None: p.kill(); p.wait()
        self.running.clear()


class Tandem(Contender):
    def start(self, cert, key, binaries):
        config = {"hostname": "localhost", "listen": [f"127.0.0.1:{self.port}"], "tls": {"certificate": str(cert), "private_key": str(key)},
                  "attest": {"required": False}, "state": {"path": None}, "admin": {"listen": f"127.0.0.1:{free_port()}"},
                  # As 5.2 asks: every limit at its default but the frame rate and the quota, and the rates a single client would meet.
                  "limits": {"messages_per_second": 1000000000, "room_bytes_per_day": "1000TiB", "upgrades_per_minute": 100000000, "sockets_per_client": 1000000}}
        path = self.work / "relay.jsonc"; path.write_text(json.dumps(config))
        p = self.run(binaries / "tandemd", "--config", path); wait_for(self.port, p, self.log); return [p.pid]


class Floor(Contender):
    def start(self, cert, key, binaries):
        p = self.run(self.tools / self.name, "--port", self.port, "--cert", cert, "--key", key, "--bio", "hybrid", "--ws"); wait_for(self.port, p, self.log); return [p.pid]


class Proxy(Contender):
    """A TLS-terminating TCP proxy in front of the plain floor, whose own CPU is not counted (it runs on the load's core)."""

    def start(self, cert, key, binaries):
        behind = free_port()
        floor = self.run(self.tools / "floor", "--port", behind, "--ws", core=LOAD_CORE); wait_for(behind, floor, self.log)
        both = self.work / "both.pem"; both.write_text(cert.read_text() + key.read_text())
        conf = self.work / f"{self.name}.conf"
        if self.name == "haproxy":
            conf.write_text(f"global\n nbthread 1\n maxconn 2000\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\n"
                            f"frontend f\n bind 127.0.0.1:{self.port} ssl crt {both}\n default_backend b\nbackend b\n server s 127.0.0.1:{behind}\n")
            p = self.run("haproxy", "-db", "-f", conf)
        else:
            conf.write_text(f"daemon off; worker_processes 1; error_log stderr; pid {self.work}/nginx.pid; events {{ worker_connections 2000; }}\n"
                            f"http {{ access_log off; server {{ listen 127.0.0.1:{self.port} ssl; ssl_certificate {cert}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;\n"
                            f" location / {{ proxy_pass http://127.0.0.1:{behind}; proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 1h;\n"
                            f"  proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }} }} }}\n")
            p = self.run("nginx", "-p", self.work, "-c", conf)
        wait_for(self.port, p, self.log)
        children = subprocess.run(["pgrep", "-P", str(p.pid)], capture_output=True, text=True).stdout.split()
        return [p.pid, *map(int, children)]


def busy_ticks():
    """Ticks that each of the two cores has been busy."""
    out = {}
    for line in open("/proc/stat"):
        f = line.split()
        if f[0] in (f"cpu{RELAY_CORE}", f"cpu{LOAD_CORE}"): out[f[0]] = sum(map(int, f[1:4])) + sum(map(int, f[6:8]))
    return sum(out.values())


def ticks_of(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            f = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split(); total += int(f[11]) + int(f[12])
    return total


class Bench:
    def __init__(self, options):
        self.o, self.results, self.discarded = options, {}, 0

    def load(self, contender, mode, *options):
        """One run of the load generator. -> its figures, or nothing where the round was disturbed."""
        command = pinned(LOAD_CORE, self.o.tools / "loadgen", mode, "--port", contender.port, "--insecure", "--sni", "localhost", "--json", *options)
        for pid in contender.pids: command += ["--pid", str(pid)]
        ours = [p.pid for p in contender.running] + contender.pids
        wall, busy, own = time.monotonic(), busy_ticks(), ticks_of(set(ours))
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        text, errors = p.communicate(timeout=300)
        usage = os.times(); children = getattr(self, "children", 0); self.children = usage.children_user + usage.children_system
        hz = os.sysconf("SC_CLK_TCK"); wall = time.monotonic() - wall
        others = (busy_ticks() - busy - (ticks_of(set(ours)) - own)) / hz - (self.children - children)
        if p.returncode != 0: raise RuntimeError(f"{contender.name} {mode}: {errors or text}")
        if others > 0.05 * wall * 2 and not self.o.anyway: self.discarded += 1; return None
        return json.loads(text.strip().splitlines()[-1])

    def note(self, figure, name, value): self.results.setdefault(figure, {}).setdefault(name, []).append(value)

    def rounds(self, contenders, what):
        """what(contender) notes its figures and says whether the round counts; A B A B, until each has its rounds."""
        done = {c.name: 0 for c in contenders}; tries = 0
        while min(done.values()) < self.o.rounds and tries < 4 * self.o.rounds:
            tries += 1
            for c in contenders:
                if done[c.name] < self.o.rounds and what(c): done[c.name] += 1
                self.progress(f"{what.__name__} round {min(done.values()) + 1}/{self.o.rounds}: {c.name}")

    def progress(self, text):
        if sys.stderr.isatty(): print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def throughput(self, c):
        for frame in FRAMES:
            r = self.load(c, "throughput", "--rooms", self.o.rooms, "--frame", frame, "--seconds", self.o.seconds, "--warmup", 0.5)
            if r is None: return False
            self.note(f"CPU-s/GB {frame // 1024} KiB", c.name, r["cpu_s_per_GB"]); self.note(f"MB/s {frame // 1024} KiB", c.name, r["MBps"])
        return True

    def handshake(self, c):
        for label, extra in (("full", []), ("resumed", ["--resume"])):
            r = self.load(c, "handshake", "--concurrency", 16, "--seconds", self.o.seconds, *extra)
            if r is None: return False
            self.note(f"ms CPU/admission {label}", c.name, r["cpu_ms_per_admission"])
        return True

    def latency(self, c):
        r = self.load(c, "latency", "--rooms", 16, "--rate", 1000, "--seconds", self.o.seconds)
        if r is None: return False
        for p in ("p50", "p99", "p999"): self.note(f"round trip {p} us", c.name, r[f"{p}_us"])
        return True

    def idle(self, c):
        r = self.load(c, "idle", "--sockets", self.o.sockets, "--hold", 3, "--timeout", 120)
        if r is None: return False
        self.note("KB RSS/parked mac", c.name, r["bytes_per_socket"] / 1000); return True


def table(results, names):
    rows = [("", *names)]
    for figure, by in results.items():
        base = statistics.median(by["floor-asio"]) if "floor-asio" in by else None
        cells = []
        for n in names:
            if n not in by: cells.append("-"); continue
            m = statistics.median(by[n]); cells.append(f"{m:.2f}" + (f" ({m / base:.2f}x)" if base and n != "floor-asio" else ""))
        rows.append((figure, *cells))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths))) for r in rows)


def main():
    import pathlib
    a = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--bin", type=pathlib.Path, required=True, help=argparse.SUPPRESS); a.add_argument("--tools", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    a.add_argument("--rounds", type=int, default=3); a.add_argument("--seconds", type=float, default=4, help="of each run")
    a.add_argument("--rooms", type=int, default=4); a.add_argument("--sockets", type=int, default=9000, help="parked for the memory figure")
    a.add_argument("--only", default="throughput,handshake,latency,idle"); a.add_argument("--against", default="floor-asio,haproxy,nginx")
    a.add_argument("--anyway", action="store_true", help="keep rounds in which others used the cores"); a.add_argument("--json", type=pathlib.Path)
    o = a.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="tandem-bench-")); bench = Bench(o)
    try:
        subprocess.run([o.bin / "tandemctl", "dev-cert", "--out", work], check=True, stdout=subprocess.DEVNULL)
        wanted = [n for n in o.against.split(",") if n.startswith("floor") or shutil.which(n)]
        missing = set(o.against.split(",")) - set(wanted)
        if missing: print(f"not installed, left out: {', '.join(sorted(missing))}", file=sys.stderr)
        everyone = [Tandem("tandemd", work, o.tools), *(Floor(n, work, o.tools) if n.startswith("floor") else Proxy(n, work, o.tools) for n in wanted)]
        print(subprocess.run(pinned(LOAD_CORE, o.tools / "loadgen", "calibrate", "--port", 1), capture_output=True, text=True).stdout.strip())
        for figure in o.only.split(","):
            # A proxy has no admission of its own and no notion of a parked mac: only what it relays is compared.
            these = [c for c in everyone if figure == "throughput" or not isinstance(c, Proxy)]
            for c in these: c.pids = c.start(work / "fullchain.pem", work / "privkey.pem", o.bin)
            try:
                if figure == "idle":
                    for _ in range(o.rounds):  # memory is that of a fresh process
                        for c in these:
                            c.stop(); c.port = free_port(); c.pids = c.start(work / "fullchain.pem", work / "privkey.pem", o.bin)
                            bench.idle(c); bench.progress(f"idle: {c.name}")
                else: bench.rounds(these, getattr(bench, figure))
            finally:
                for c in these: c.stop()
        bench.progress("")
        print(table(bench.results, [c.name for c in everyone]))
        if bench.discarded: print(f"{bench.discarded} disturbed runs were thrown away")
        if o.json: o.json.write_text(json.dumps(bench.results, indent=1) + "\n")
    finally:
        for p in [p for c in locals().get("everyone", []) for p in c.running]:
            with contextlib.suppress(OSError): p.send_signal(signal.SIGTERM)
        shutil.rmtree(work, ignore_errors=True)
    return 0 if bench.results else 1


if __name__ == "__main__":
    sys.exit(main())
