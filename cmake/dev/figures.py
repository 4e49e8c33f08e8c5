#!/usr/bin/env python3
"""figures.py URL SECONDS: the figures of /status once a second, for SECONDS or (0) until stopped. On a terminal one line is
rewritten; elsewhere each is a line of its own."""
import json
import signal
import sys
import time
import urllib.request


def line(status):
    rooms, sockets = status["rooms"], status["sockets"]
    rate = status["throughput"]["bytes_per_second"]
    unit = next((u for u in ((1 << 20, "MiB/s"), (1 << 10, "KiB/s")) if rate >= u[0]), (1, "B/s"))
    return (f"up {status['uptime_seconds']:.0f} s   rooms: {rooms['spliced']} spliced, {rooms['mac_only']} mac only, "
            f"{rooms['phone_only']} phone only, {rooms['pending']} pending   sockets: {sum(sockets.values())}   "
            f"{rate / unit[0]:.1f} {unit[1]}   map v{status['map']['version']}")


def main() -> int:
    url, seconds = sys.argv[1], float(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    until = time.monotonic() + seconds if seconds else float("inf")
    rewriting = sys.stdout.isatty()
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url + "/status", timeout=5) as answer:
                text = line(json.load(answer))
        except OSError as error:
            print(f"run: the relay does not answer: {error}", file=sys.stderr)
            return 1
        print(f"\r\033[2K   {text}" if rewriting else f"   {text}", end="" if rewriting else "\n", flush=True)
        time.sleep(max(0.0, min(1.0, until - time.monotonic())))
    if rewriting:
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
