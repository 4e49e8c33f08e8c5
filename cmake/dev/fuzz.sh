#!/usr/bin/env bash
# fuzz.sh TARGET|all SECONDS: each target on its seeds and on what earlier runs found; two at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=$1 seconds=$2
[[ $seconds =~ ^[0-9]+$ ]] || { echo "fuzz: SECONDS is a whole number, not \"$seconds\"" >&2; exit 2; }
targets=()
for program in build/fuzz/*_fuzz; do
  [ -x "$program" ] && targets+=("$(basename "$program" _fuzz)")
done
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no targets were built" >&2; exit 1; }
if [ "$target" != all ]; then
  [ -x "build/fuzz/${target%_fuzz}_fuzz" ] || { echo "fuzz: no target \"$target\"; there are: ${targets[*]}" >&2; exit 2; }
  targets=("${target%_fuzz}")
fi
mkdir -p build/fuzz/crashes build/fuzz/log

fuzz_one() {
  local name=$1 corpus="build/fuzz/corpus/$1" seeds="tests/fuzz/seeds/$1" log="build/fuzz/log/$1.log"
  mkdir -p "$corpus"
  local dirs=("$corpus")
  [ -d "$seeds" ] && dirs+=("$seeds")
  if "build/fuzz/${name}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/crashes/$name-" "${dirs[@]}" >"$log" 2>&1; then
    echo "   $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
  else
    echo "   $name: FAILED, see $log" >&2
    tail -n 40 "$log" >&2
    return 1
  fi
}
export -f fuzz_one
export seconds
# shellcheck disable=SC2016  # expanded by the bash that xargs starts
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P 2 bash -c 'fuzz_one "$0"'
