"""One sitting of ./dev bench: the load generator, rounds that alternate, and the values that came of it."""
import contextlib
import json
import os
import subprocess
import sys
import time

from contenders import LOAD_CORE, RELAY_CORE, pinned

LONGEST_RUN = 300  # seconds


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


def cpu_of_children():
    """Of those that ended and were waited for."""
    usage = os.times()
    return usage.children_user + usage.children_system


class Sitting:
    def __init__(self, options):
        self.options, self.results, self.discarded = options, {}, 0

    def note(self, figure, contender, value):
        self.results.setdefault(figure, {}).setdefault(contender.name, []).append(value)

    def command(self, contender, mode, *options):
        command = pinned(LOAD_CORE, self.options.tools / "loadgen", mode, "--port", contender.port, "--insecure",
                         "--sni", "localhost", "--json", *options)
        for pid in contender.pids:
            command += ["--pid", str(pid)]
        return command

    def load(self, contender, mode, *options, beside=None):
        """-> the figures of a run of the load generator, or None where the round was disturbed. `beside` runs meanwhile."""
        ours = {p.pid for p in contender.running} | set(contender.pids)
        wall, busy, own, children = time.monotonic(), busy_ticks(), ticks_of(ours), cpu_of_children()
        with subprocess.Popen(self.command(contender, mode, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                if beside:
                    beside()
                text, errors = process.communicate(timeout=LONGEST_RUN)
            except BaseException:
                process.kill()
                raise
        ticks = busy_ticks() - busy - (ticks_of(ours) - own)
        others = ticks / os.sysconf("SC_CLK_TCK") - (cpu_of_children() - children)
        if process.returncode != 0:
            raise RuntimeError(f"{contender.name} {mode}: {(errors or text).strip()}")
        if others > 0.05 * (time.monotonic() - wall) * 2 and not self.options.anyway:
            self.discarded += 1
            return None
        return json.loads(text.strip().splitlines()[-1])

    def beside(self, contender, mode, *options):
        """A second load while another runs: -> its figures."""
        done = subprocess.run(self.command(contender, mode, *options), capture_output=True, text=True, check=False, timeout=LONGEST_RUN)
        if done.returncode != 0:
            raise RuntimeError(f"{contender.name} {mode}: {(done.stderr or done.stdout).strip()}")
        return json.loads(done.stdout.strip().splitlines()[-1])

    def rounds(self, contenders, name, measure, count):
        """A B A B, until each has its rounds, or four times as many were tried on a machine that does not come to rest.
        `measure` notes what it found and says whether the round counts. Who fails takes no further part in the figure."""
        done, tries = {c.name: 0 for c in contenders}, 0
        while done and min(done.values()) < count and tries < 4 * count:
            tries += 1
            for contender in [c for c in contenders if done.get(c.name, count) < count]:
                self.progress(f"{name}: round {min(done.values()) + 1} of {count}, {contender.name}")
                try:
                    done[contender.name] += bool(measure(self, contender))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    del done[contender.name]
                    print(f"\n{name}: {contender.name} failed and is left out: {error}", file=sys.stderr, flush=True)

    @staticmethod
    def progress(text):
        """On a terminal one line that changes; elsewhere a line for each figure is enough."""
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif text.endswith("tandemd") and ": round 1 " in text:
            print(f"   {text.partition(':')[0]} ...", file=sys.stderr, flush=True)
