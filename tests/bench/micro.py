"""The microbenchmarks (X_bench.cpp): one line each, and an exponent where there are three sizes."""
import json
import subprocess

from contenders import RELAY_CORE, pinned
from report import exponent

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def readable(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def run(binaries, progress):
    """-> {benchmark: [(size or None, value, text)]}; the value is seconds of CPU, or the counter where there is one."""
    found = {}
    for program in sorted(binaries.glob("*_bench")):
        progress(f"microbenchmarks: {program.name}")
        done = subprocess.run(pinned(RELAY_CORE, program, "--benchmark_format=json", "--benchmark_min_time=0.3"),
                              capture_output=True, text=True, check=True)
        for one in json.loads(done.stdout)["benchmarks"]:
            if one.get("error_occurred"):
                raise RuntimeError(f"{program.name} {one['name']}: {one['error_message']}")
            name, _, size = one["name"].replace("/iterations:1", "").partition("/")
            counted = "bytes" in one
            value = one["bytes"] if counted else one["cpu_time"] * SECONDS[one["time_unit"]]
            found.setdefault(name, []).append((int(size) if size else None, value, f"{value:.0f} B" if counted else readable(value)))
    return found


def lines(found):
    for name, points in found.items():
        values = ", ".join(text + (f" at {size:,}" if size else "") for size, _, text in points)
        sized = [(size, value) for size, value, _ in points if size]
        grows = f"; exponent {exponent(sized):.2f}" if len(sized) >= 3 else ""
        yield f"{name.replace('_', ' ')}: {values}{grows}"
