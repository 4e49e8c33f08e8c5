#!/usr/bin/python3
"""Measures tandemd beside the floor and, where they are installed, HAProxy and nginx terminating TLS (docs/performance.md).

Everything compared runs in one sitting, alternating, pinned to core 0; the load runs on core 1. A round in which somebody else
used over 5 % of either core is thrown away. Medians and ratios against floor-asio; a table, and everything as JSON.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from contenders import LOAD_CORE, RELAY_CORE, Floor, Proxy, Tandem, pinned

FRAMES = (65536, 16384, 1024)
MANY_ROOMS = 500
STORM_CLIENTS = 1000


def busy_ticks():
    """Ticks that the two cores have been busy, together."""
    busy = 0
    with open("/proc/stat", encoding="ascii") as stat:
        for line in stat:
            name, *fields = line.split()
            if name in (f"cpu{RELAY_CORE}", f"cpu{LOAD_CORE}"):
                busy += sum(map(int, fields[0:3])) + sum(map(int, fields[5:7]))
    return busy


def ticks_of(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total


class Bench:
    """Each figure is a method that takes a contender, notes what it measured, and says whether the round counts."""

    def __init__(self, options):
        self.options, self.results, self.discarded, self.children = options, {}, 0, 0.0

    # ---- one run of the load generator

    def command(self, contender, mode, *options):
        command = pinned(LOAD_CORE, self.options.tools / "loadgen", mode, "--port", contender.port, "--insecure",
                         "--sni", "localhost", "--json", *options)
        for pid in contender.pids:
            command += ["--pid", str(pid)]
        return command

    def load(self, contender, mode, *options, meanwhile=None):
        """-> its figures, or nothing where the round was disturbed."""
        ours = {p.pid for p in contender.running} | set(contender.pids)
        wall, busy, own = time.monotonic(), busy_ticks(), ticks_of(ours)
        process = subprocess.Popen(self.command(contender, mode, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if meanwhile:
            meanwhile()
        text, errors = process.communicate(timeout=300)
        usage, before = os.times(), self.children
        self.children = usage.children_user + usage.children_system
        ticks = busy_ticks() - busy - (ticks_of(ours) - own)
        others = ticks / os.sysconf("SC_CLK_TCK") - (self.children - before)
        if process.returncode != 0:
            raise RuntimeError(f"{contender.name} {mode}: {errors or text}")
        if others > 0.05 * (time.monotonic() - wall) * 2 and not self.options.anyway:
            self.discarded += 1
            return None
        return json.loads(text.strip().splitlines()[-1])

    def note(self, figure, contender, value):
        self.results.setdefault(figure, {}).setdefault(contender.name, []).append(value)

    # ---- the figures

    def relayed(self, contender, label, frame, rooms, *more):
        figures = self.load(contender, "throughput", "--rooms", rooms, "--frame", frame, "--seconds", self.options.seconds,
                            "--warmup", 0.5, *more)
        if figures:
            self.note(f"CPU-s/GB {label}", contender, figures["cpu_s_per_GB"])
            self.note(f"MB/s {label}", contender, figures["MBps"])
        return figures is not None

    def throughput(self, contender):
        return all([self.relayed(contender, f"{frame // 1024} KiB", frame, self.options.rooms) for frame in FRAMES])

    def duplex(self, contender):
        return self.relayed(contender, "16 KiB, both ways", 16384, self.options.rooms, "--duplex")

    def many(self, contender):
        return all([self.relayed(contender, f"16 KiB, {n} rooms", 16384, n) for n in (1, MANY_ROOMS // 10, MANY_ROOMS)])

    def handshake(self, contender):
        for label, extra in (("full", []), ("resumed", ["--resume"])):
            figures = self.load(contender, "handshake", "--concurrency", 16, "--seconds", self.options.seconds, *extra)
            if figures is None:
                return False
            self.note(f"ms CPU/admission {label}", contender, figures["cpu_ms_per_admission"])
        return True

    def latency(self, contender):
        figures = self.load(contender, "latency", "--rooms", 16, "--rate", 1000, "--seconds", self.options.seconds)
        if figures is None:
            return False
        for part in ("p50", "p99", "p999"):
            self.note(f"round trip {part} us", contender, figures[f"{part}_us"])
        return True

    def storm(self, contender):
        """The longest round trip of live splices while many clients come at once. They share the load's core, so it is a bound."""

        def reconnect():
            time.sleep(1)
            subprocess.run(self.command(contender, "handshake", "--concurrency", STORM_CLIENTS, "--seconds", 2),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120)

        figures = self.load(contender, "latency", "--rooms", 16, "--rate", 200, "--seconds", 6, meanwhile=reconnect)
        if figures is None:
            return False
        self.note(f"longest round trip us while {STORM_CLIENTS} connect", contender, figures["max_us"])
        return True

    def idle(self, contender):
        for sockets in (self.options.sockets // 9, self.options.sockets // 3, self.options.sockets):
            contender.restart(*self.options.start)
            figures = self.load(contender, "idle", "--sockets", sockets, "--hold", 3, "--timeout", 120)
            if figures is None:
                return False
            self.note(f"KB RSS/parked mac, {sockets}", contender, figures["bytes_per_socket"] / 1000)
        return True

    # ---- rounds

    def rounds(self, contenders, figure):
        """A B A B, until each has its rounds or nobody has come to rest in four times as many."""
        measure, done, tries = getattr(self, figure), {c.name: 0 for c in contenders}, 0
        while min(done.values()) < self.options.rounds and tries < 4 * self.options.rounds:
            tries += 1
            for contender in contenders:
                self.progress(f"{figure} round {min(done.values()) + 1} of {self.options.rounds}: {contender.name}")
                if done[contender.name] < self.options.rounds and measure(contender):
                    done[contender.name] += 1

    @staticmethod
    def progress(text):
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def table(results, names):
    rows = [("", *names)]
    for figure, by_name in results.items():
        base = statistics.median(by_name["floor-asio"]) if "floor-asio" in by_name else None
        cells = []
        for name in names:
            median = statistics.median(by_name[name]) if name in by_name else None
            ratio = f" ({median / base:.2f}x)" if median is not None and base and name != "floor-asio" else ""
            cells.append("-" if median is None else f"{median:.2f}{ratio}")
        rows.append((figure, *cells))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths)))
                     for row in rows)


def options():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tools", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of each run")
    parser.add_argument("--rooms", type=int, default=4)
    parser.add_argument("--sockets", type=int, default=9000, help="parked for the memory figure")
    parser.add_argument("--only", default="throughput,duplex,many,handshake,latency,storm,idle", help="the figures, by name")
    parser.add_argument("--against", default="floor-asio,haproxy,nginx")
    parser.add_argument("--anyway", action="store_true", help="keep rounds in which others used the cores")
    parser.add_argument("--json", type=pathlib.Path, help="a file for every single value")
    given = parser.parse_args()
    for figure in given.only.split(","):
        if not callable(getattr(Bench, figure, None)):
            parser.error(f"no figure '{figure}'")
    return given


def main():
    given = options()
    work = pathlib.Path(tempfile.mkdtemp(prefix="tandem-bench-"))
    given.start = (work / "fullchain.pem", work / "privkey.pem", given.bin)
    bench, everyone = Bench(given), []
    try:
        subprocess.run([given.bin / "tandemctl", "dev-cert", "--out", work], check=True, stdout=subprocess.DEVNULL)
        named = given.against.split(",")
        wanted = [n for n in named if n.startswith("floor") or shutil.which(n)]
        if missing := sorted(set(named) - set(wanted)):
            print(f"not installed, left out: {', '.join(missing)}", file=sys.stderr)
        everyone = [Tandem("tandemd", work, given.tools)]
        everyone += [(Floor if n.startswith("floor") else Proxy)(n, work, given.tools) for n in wanted]
        calibration = pinned(LOAD_CORE, given.tools / "loadgen", "calibrate", "--port", 1)
        print(subprocess.run(calibration, capture_output=True, text=True).stdout.strip())
        for figure in given.only.split(","):
            # A proxy has no admission of its own and no notion of a parked mac: only what it relays is compared.
            those = [c for c in everyone if c.is_relay or figure == "throughput"]
            for contender in those:
                contender.pids = contender.start(*given.start)
            bench.rounds(those, figure)
            for contender in those:
                contender.stop()
        bench.progress("")
        print(table(bench.results, [c.name for c in everyone]))
        if bench.discarded:
            print(f"{bench.discarded} disturbed runs were thrown away")
        if given.json:
            given.json.write_text(json.dumps(bench.results, indent=1) + "\n")
    finally:
        for contender in everyone:
            contender.stop()
        shutil.rmtree(work, ignore_errors=True)
    return 0 if bench.results else 1


if __name__ == "__main__":
    sys.exit(main())
