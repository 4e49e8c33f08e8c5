#!/usr/bin/env bash
# install.sh LOG PACKAGE...: apt-get with one line of progress a package; the whole output goes to LOG. Run as root by ./dev.
set -euo pipefail
log=$1
shift
export DEBIAN_FRONTEND=noninteractive
# Building Tandem must not start a web server or a Prometheus on somebody's machine: services stay off while we install.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod +x $policy
  trap 'rm -f $policy' EXIT
fi
: >"$log"
echo "   reading the package lists" >&2
apt-get update >>"$log" 2>&1 || { tail -n 5 "$log" >&2; exit 1; }
total=$(apt-get install -s -y --no-install-recommends "$@" 2>>"$log" | grep -c '^Inst ' || true)
echo "   $total packages to download and unpack" >&2
status=0
apt-get install -y --no-install-recommends "$@" 2>&1 | tee -a "$log" | awk -v total="$total" '
  /^Get:[0-9]+ / { fetched++; step("fetching", fetched, $5) }
  /^Unpacking / { unpacked++; step("unpacking", unpacked, $2) }
  /^Setting up / { set_up++; step("setting up", set_up, $3) }
  function step(what, n, name) { if (n % 10 == 0 || n == total) { printf "   %s %d of %d (%s)\n", what, n, total, name; fflush() } }
' >&2 || status=$?
if [ $status -ne 0 ]; then
  tail -n 5 "$log" >&2
  exit 1
fi
# The log was written as root; whoever called us owns the build folder.
if [ -n "${SUDO_UID:-}" ]; then chown "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$log"; fi
