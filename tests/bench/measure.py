#!/usr/bin/python3
"""Measures tandemd beside the floor and, where they are installed, HAProxy and nginx terminating TLS, and a relay made of npm's ws
behind Caddy (docs/performance.md).

Everything compared runs in one sitting, alternating, pinned to core 0; the load runs on core 1. A round in which somebody else
used over 5 % of either core is thrown away. Medians and ratios against floor-asio; a table, and everything as JSON.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import figures
import micro
from contenders import LOAD_CORE, Floor, NodeBehindCaddy, Proxy, Tandem, pinned
from report import growth, table
from sitting import Sitting

CONTENDERS = {"floor-asio": Floor, "floor": Floor, "haproxy": Proxy, "nginx": Proxy, "node+caddy": NodeBehindCaddy}


def options():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tools", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of each run")
    parser.add_argument("--rooms", type=int, default=4)
    parser.add_argument("--sockets", type=int, default=9000, help="parked for the memory figure; also a ninth and twice as many")
    parser.add_argument("--only", default=",".join([*figures.ALL, "micro"]), help="the figures, by name: %(default)s")
    parser.add_argument("--against", default="floor-asio,haproxy,nginx,node+caddy", help="of " + ", ".join(CONTENDERS))
    parser.add_argument("--anyway", action="store_true", help="keep rounds in which others used the cores")
    parser.add_argument("--json", type=pathlib.Path, help="a file for every single value")
    given = parser.parse_args()
    given.only, given.against = given.only.split(","), given.against.split(",")
    for name in given.only:
        if name not in figures.ALL and name != "micro":
            parser.error(f"no figure '{name}'; there are {', '.join([*figures.ALL, 'micro'])}")
    for name in given.against:
        if name not in CONTENDERS:
            parser.error(f"nothing called '{name}' to compare with; there are {', '.join(CONTENDERS)}")
    return given


def compared(name, everyone):
    """Who takes part in a figure."""
    if name in figures.FOR_PROXIES:
        return everyone
    return [c for c in everyone if c.is_relay and not (name in figures.FOR_OURS and c.name == "node+caddy")]


def measure(sitting, name, everyone):
    those = compared(name, everyone)
    for contender in those:
        contender.restart(*sitting.options.start)
    # What is parked is parked the same way each time: one run has all there is to know.
    sitting.rounds(those, name, figures.ALL[name], 1 if name == "idle" else sitting.options.rounds)
    for contender in those:
        contender.stop()


def main():
    given = options()
    work = pathlib.Path(tempfile.mkdtemp(prefix="tandem-bench-"))
    given.start = (work / "fullchain.pem", work / "privkey.pem", given.bin)
    sitting, everyone, small = Sitting(given), [], {}
    try:
        subprocess.run([given.bin / "tandemctl", "dev-cert", "--out", work], check=True, stdout=subprocess.DEVNULL)
        everyone = [Tandem("tandemd", work, given.tools)]
        for contender in [CONTENDERS[n](n, work, given.tools) for n in given.against]:
            if missing := [p for p in contender.needs if not shutil.which(p) and not pathlib.Path(p).is_dir()]:
                print(f"{contender.name} is left out: {', '.join(missing)} not installed", file=sys.stderr)
            else:
                everyone.append(contender)
        calibration = pinned(LOAD_CORE, given.tools / "loadgen", "calibrate", "--port", 1)
        print(subprocess.run(calibration, capture_output=True, text=True).stdout.strip(), flush=True)
        for name in given.only:
            if name == "micro":
                small = micro.run(given.bin, sitting.progress)
            else:
                measure(sitting, name, everyone)
    except KeyboardInterrupt:
        print("\nstopped; so far:", file=sys.stderr)
    finally:
        for contender in everyone:
            contender.stop()
        shutil.rmtree(work, ignore_errors=True)
        sitting.progress("")
        print(table(sitting.results, [c.name for c in everyone]))
        for line in [*growth(sitting.results), *micro.lines(small)]:
            print(line)
        if sitting.discarded:
            print(f"{sitting.discarded} disturbed runs were thrown away")
        if given.json:
            given.json.write_text(json.dumps({"figures": sitting.results, "micro": small}, indent=1) + "\n")
    return 0 if sitting.results or small else 1


if __name__ == "__main__":
    sys.exit(main())
