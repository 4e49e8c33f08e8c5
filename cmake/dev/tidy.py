#!/usr/bin/env python3
"""clang-tidy over the rooms of a build, as they are compiled: a dozen files at once, so that the headers of libraries are
read once for all of them. What was clean and has not changed since is not read again.

The key of what was clean is the hash of everything that decides the result: .clang-tidy, the compile command, and each file
of ours that the compiler saw (ninja keeps the list, so the build comes first)."""
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
    args.add_argument("--only", default="", help="regular expression on the object's path, as tandem_relay")
    args = args.parse_args()
    top, build = pathlib.Path(__file__).resolve().parents[2], args.build.resolve()
    cache = build / "tidy"
    cache.mkdir(exist_ok=True)
    seen = headers_seen(build, top)
    settings = (top / ".clang-tidy").read_bytes()
    digest, work = {}, []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source, output = pathlib.Path(entry["file"]), re.search(r" -o (\S+)", entry["command"])[1]
        ours = source.is_relative_to(top / "src") or "Unity" in source.parts
        if not ours or not re.match(r"CMakeFiles/tandem", output) or not re.search(args.only, output):
            continue
        if output not in seen:
            sys.exit(f"tidy: {output} was not built: cmake --build {args.build} first")
        key = hashlib.sha256(settings + entry["command"].encode())
        for path in sorted({source, *seen[output]}):
            if path not in digest:
                digest[path] = hashlib.sha256(path.read_bytes()).digest() if path.exists() else b""
            key.update(str(path.relative_to(top)).encode() + digest[path])
        mark = cache / key.hexdigest()
        if not mark.exists():
            work.append((source, mark))

    def tidy(job):
        source, mark = job
        run = subprocess.run(["clang-tidy-19", "--quiet", "-p", str(build), str(source)], capture_output=True, text=True)
        if run.returncode == 0:
            mark.touch()
        return run

    if not seen:
        sys.exit("tidy: nothing was built")
    faults, started = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for done, run in enumerate(pool.map(tidy, work), 1):
            if run.returncode != 0:
                faults += 1
                print(run.stdout + (run.stderr if not run.stdout else ""), flush=True)
            if done % 5 == 0 or done == len(work):
                print(f"   clang-tidy {done} of {len(work)}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
