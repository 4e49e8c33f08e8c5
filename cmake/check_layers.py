#!/usr/bin/env python3
"""Fails when a room includes a room it may not see, or a library that its row of docs/architecture.md does not name."""
import pathlib
import re
import sys

MAY = {
    "core": [], "protocol": ["core"], "shard": ["core"], "room": ["core", "protocol"],
    "relay": ["core", "protocol", "shard", "room"], "net": ["core", "protocol", "relay"],
    "state": ["core", "protocol", "shard", "room", "relay"],
    "metrics": ["core", "protocol", "shard", "room", "relay", "net"],
    "admin": ["core", "protocol", "shard", "room", "relay", "net"],
    "poll": ["core", "protocol", "shard", "room", "relay", "net"],
    "config": ["core"], "log": ["core"], "client": ["core", "protocol", "shard", "net"],
}
PURE = ["core", "protocol", "shard", "room", "relay"]
# What the pure half must never include: sockets, files, clocks, threads, logs, random devices.
IMPURE = re.compile(r"boost/(asio|beast)|spdlog|sqlite3|<(thread|mutex|fstream|iostream|filesystem|random|future|"
                    r"condition_variable|sys/|unistd|netinet|arpa)|openssl/(ssl|rand|bio)\b")
CLOCKS = re.compile(r"(steady_clock|system_clock|high_resolution_clock)\s*::\s*now|\bgettimeofday\b|\bclock_gettime\b|\btime\s*\(\s*(nullptr|NULL|0)\s*\)")


def main(top: pathlib.Path) -> int:
    faults = []
    for base in ("include/tandem", "src"):
        for path in sorted((top / base).rglob("*.[ch]pp")):
            parts = path.relative_to(top / base).parts
            room = parts[0]
            if room not in MAY:
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                where = f"{path.relative_to(top)}:{number}"
                found = re.match(r'\s*#\s*include\s*[<"](?:tandem/)?(\w+)/', line)
                if found and found[1] in [*MAY, "app"] and found[1] != room and found[1] not in MAY[room]:
                    faults.append(f"{where}: {room}/ may not include {found[1]}/ (it may include: {', '.join(MAY[room]) or 'none'})")
                if room in PURE and re.match(r"\s*#\s*include", line) and IMPURE.search(line):
                    faults.append(f"{where}: the pure half may not include {line.split('include')[1].strip()}")
                if room in PURE and CLOCKS.search(line):
                    faults.append(f"{where}: the pure half may not read a clock; take the time as an argument")
                if path.suffix == ".hpp" and "boost/beast" in line and line.lstrip().startswith("#include"):
                    faults.append(f"{where}: Beast stays behind .cpp files")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
