#!/usr/bin/env bash
# ./dev bench: builds the release programs and the load tools, then measures (see docs/performance.md and measure.py --help).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$top/build/bench
mkdir -p "$out"
"$top/dev" build
# The microbenchmarks are built only here.
cmake -S "$top" --preset release -DTANDEM_BENCH=ON >"$out/configure.log" 2>&1 || { cat "$out/configure.log" >&2; exit 1; }
cmake --build "$top/build/release" -j "${TANDEM_JOBS:-$(nproc)}" --target microbenchmarks
for tool in loadgen floor floor-asio; do
  source=$here/load/${tool%-asio}.cpp
  [ "$out/$tool" -nt "$source" ] && continue
  echo "building $tool"
  flags=
  [ "$tool" = floor-asio ] && flags="-DFLOOR_ASIO -DBOOST_ASIO_DISABLE_THREADS"
  # shellcheck disable=SC2086  # the flags are words
  ${CXX:-g++} -std=c++20 -O2 -g $flags -o "$out/$tool" "$source" -lssl -lcrypto
done
exec /usr/bin/python3 "$here/measure.py" --bin "$top/build/release" --tools "$out" "$@"
