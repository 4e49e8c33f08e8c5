#!/usr/bin/env bash
# run.sh [--for SECONDS]: a relay on https://localhost:8443 with a development certificate and an embedded one-host map, a simulated
# mac and phone that pair through it, and live figures until Ctrl-C. TANDEM_PORT and TANDEM_ADMIN_PORT choose other ports.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
port=${TANDEM_PORT:-8443} admin_port=${TANDEM_ADMIN_PORT:-9464}
seconds=0
while [ $# -gt 0 ]; do
  case $1 in
    --for) [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "run: --for needs a number of seconds" >&2; exit 2; }; seconds=$2; shift 2 ;;
    *) echo "run: unknown option \"$1\"; there is --for SECONDS" >&2; exit 2 ;;
  esac
done

bin=$PWD/build/release
dir=$PWD/build/run
mkdir -p "$dir/tls"
# A development certificate that is there is used again, unless it ends within a day.
if ! openssl x509 -in "$dir/tls/fullchain.pem" -noout -checkend 86400 >/dev/null 2>&1; then
  rm -f "$dir/tls/fullchain.pem" "$dir/tls/privkey.pem"
  "$bin/tandemctl" dev-cert --out "$dir/tls" >/dev/null
fi

url_path=$(/usr/bin/python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1]))' "$dir/shardmap.json")
printf '{ "version": 1, "ranges": [ { "low": 0, "high": 65535, "host": "localhost:%s" } ] }\n' "$port" >"$dir/shardmap.json"
listen="\"127.0.0.1:$port\""
[ -s /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6 && listen="$listen, \"[::1]:$port\""
# The state starts empty: the map's version is 1 each time, whatever earlier runs have seen.
rm -f "$dir"/state.db*
cat >"$dir/relay.jsonc" <<JSON
{
  // Written by ./dev run. config/relay.jsonc explains every key.
  "hostname": "localhost:$port",
  "listen": [$listen],
  "tls": { "certificate": "tls/fullchain.pem", "private_key": "tls/privkey.pem" },
  "shard_map": { "url": "file://$url_path" },
  "attest": { "required": false },
  "state": { "path": "state.db" },
  "admin": { "listen": "127.0.0.1:$admin_port" }
}
JSON

relay='' guests=''
finish() {
  trap - EXIT INT TERM
  # Ctrl-C reaches the whole group; a signal to this script alone has to be passed on.
  for pid in $guests $relay; do kill -TERM "$pid" 2>/dev/null || true; done
  if [ -n "$relay" ]; then wait "$relay" 2>/dev/null && echo "   relay stopped" >&2; fi
}
trap finish EXIT
trap 'exit 0' INT TERM

"$bin/tandemd" --config "$dir/relay.jsonc" >"$dir/log" 2>&1 &
relay=$!
for _ in $(seq 300); do
  kill -0 "$relay" 2>/dev/null || { relay=''; echo "run: the relay did not start:" >&2; tail -n 3 "$dir/log" >&2; exit 1; }
  "$bin/tandemctl" status --admin "127.0.0.1:$admin_port" --json >/dev/null 2>&1 && break
  sleep 0.1
done

export SSL_CERT_FILE="$dir/tls/fullchain.pem"
echo "== a simulated mac and phone pair through https://localhost:$port"
"$bin/tandemctl" probe "https://localhost:$port" || { echo "run: the probe failed, see $dir/log" >&2; exit 1; }
echo
echo "   relay    https://localhost:$port   (certificate: $dir/tls/fullchain.pem)"
echo "   page     http://127.0.0.1:$admin_port/        figures  http://127.0.0.1:$admin_port/status   log  $dir/log"
echo "   Ctrl-C stops everything."
echo
# A mac and a phone that go on talking, so that there is something to see.
"$bin/tandemctl" bench "https://localhost:$port" --load throughput --rooms 1 --frame 4096 --rate 10 --seconds 604800 >/dev/null 2>&1 &
guests=$!
/usr/bin/python3 cmake/dev/figures.py "http://127.0.0.1:$admin_port" "$seconds" &
figures=$!
guests="$guests $figures"
wait "$figures"
