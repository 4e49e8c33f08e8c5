#!/usr/bin/env python3
"""clang-tidy over src/ of a build, some files at a time; a file that was clean and has not changed since is not read again.
With --seconds it stops starting new files at that time and says how many are left: they come first the next time.

A file's key is the hash of everything that decides its result: .clang-tidy, the compile command, the file and each header of
ours that the compiler saw (ninja keeps the list)."""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time


def headers_seen(build: pathlib.Path, top: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """object file -> headers of this project it was built from"""
    seen, current = {}, None
    out = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        if line and not line[0].isspace():
            current = seen.setdefault(line.split(":")[0], [])
        elif line.strip() and current is not None:
            path = (build / line.strip()).resolve()
            if path.is_relative_to(top) and not path.is_relative_to(build):
                current.append(path)
    return seen


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("build", type=pathlib.Path)
    args.add_argument("-j", type=int, default=2)
    args.add_argument("--only", default="", help="regular expression on the file's path")
    args.add_argument("--seconds", type=float, default=float("inf"))
    args = args.parse_args()
    top, build = pathlib.Path(__file__).resolve().parents[2], args.build.resolve()
    cache = build / "tidy"
    cache.mkdir(exist_ok=True)
    seen = headers_seen(build, top)
    settings = (top / ".clang-tidy").read_bytes()
    digest, work = {}, []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(top / "src") or not re.search(args.only, str(source.relative_to(top))):
            continue
        key = hashlib.sha256(settings + entry["command"].encode())
        for path in sorted({source, *seen.get(entry.get("output", ""), [])}):
            if path not in digest:
                digest[path] = hashlib.sha256(path.read_bytes()).digest() if path.exists() else b""
            key.update(str(path.relative_to(top)).encode() + digest[path])
        mark = cache / key.hexdigest()
        if not mark.exists():
            work.append((source, mark))

    # What changed last is read first: that is where new faults are.
    work.sort(key=lambda job: -job[0].stat().st_mtime)
    started = time.monotonic()

    def tidy(job):
        source, mark = job
        if time.monotonic() - started > args.seconds:
            return source, None
        run = subprocess.run(["clang-tidy-19", "--quiet", "-p", str(build), "--extra-arg=-Wno-unknown-warning-option", str(source)],
                             capture_output=True, text=True)
        if run.returncode == 0:
            mark.touch()
        return source, run

    faults = left = 0
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for done, (source, run) in enumerate(pool.map(tidy, work), 1):
            if run is None:
                left += 1
            elif run.returncode != 0:
                faults += 1
                print(run.stdout + (run.stderr if not run.stdout else ""), flush=True)
            if run and (done % 10 == 0 or done == len(work)):
                print(f"   clang-tidy {done} of {len(work)} files, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if left:
        print(f"   clang-tidy: time is up, {left} files are left for the next run", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
