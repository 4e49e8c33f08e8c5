#!/usr/bin/env bash
# package-test.sh FOLDER: installs the package of FOLDER in a clean Debian root, edits it, serves, upgrades, removes and purges it.
# Needs root and debootstrap. The root has no init: the daemon is started as the unit's command line does.
set -euo pipefail
packages=$(cd "$1" && pwd)
[ "$(id -u)" -eq 0 ] || { echo "package-test: needs root" >&2; exit 1; }
deb=$(find "$packages" -maxdepth 1 -name 'tandem_*.deb' | sort | tail -n 1)
[ -n "$deb" ] || { echo "package-test: no package in $packages" >&2; exit 1; }

root=$(mktemp -d /tmp/tandem-root.XXXXXX)
daemon=''
finish() {
  if [ -n "$daemon" ]; then kill -TERM "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; fi
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$root"
}
trap finish EXIT
fail() { echo "package-test: $*" >&2; exit 1; }
ok() { echo "   $*"; }
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
# shellcheck disable=SC2016  # dpkg's own variables
installed() { inside dpkg-query -W -f='${db:Status-Status}' tandem 2>/dev/null | grep -qx installed; }

# The packages of the clean root come from wherever this machine gets its own.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | grep -v security | head -n 1)
echo "== a clean root"
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$packages/debootstrap.log" 2>&1 || fail "debootstrap failed, see $packages/debootstrap.log"
mount -t proc proc "$root/proc"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"
[ -s "$root/etc/hosts" ] || printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
# What the package does to the root must be seen, manual pages included.
rm -f "$root/etc/dpkg/dpkg.cfg.d/docker"
{ grep -lsE 'Acquire::https?' /etc/apt/apt.conf.d/* || true; } | xargs -r cp -t "$root/etc/apt/apt.conf.d/"  # a proxy, where there is one
cp -r /usr/local/share/ca-certificates "$root/usr/local/share/" 2>/dev/null || true

echo "== install"
cp "$deb" "$root/tandem.deb"
inside apt-get install -y --no-install-recommends /tandem.deb >"$packages/install.log" 2>&1 || fail "installing failed, see $packages/install.log"
installed || fail "not installed"
for file in /usr/bin/tandemd /usr/bin/tandemctl /usr/lib/systemd/system/tandemd.service /usr/lib/systemd/system/tandemd.socket \
  /etc/tandem/relay.jsonc /usr/share/tandem/relay.schema.json /usr/share/man/man1/tandemd.1.gz /usr/share/man/man1/tandemctl.1.gz \
  /usr/share/bash-completion/completions/tandemctl /usr/share/zsh/vendor-completions/_tandemctl \
  /usr/share/fish/vendor_completions.d/tandemctl.fish /usr/share/doc/tandem/copyright /usr/share/doc/tandem/troubleshooting.md; do
  [ -s "$root$file" ] || fail "missing: $file"
done
inside getent group tandem-tls >/dev/null || fail "no group tandem-tls"
[ "$(inside stat -c '%a %G' /etc/tandem/tls)" = "750 tandem-tls" ] || fail "/etc/tandem/tls is $(inside stat -c '%a %G' /etc/tandem/tls)"
inside tandemd --version >/dev/null || fail "tandemd does not run"
ok "files, group and folders are there"

echo "== edit and serve"
# The root shares this machine's network: ports that nobody uses.
read -r port admin_port < <(/usr/bin/python3 -c '
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in held))')
inside tandemctl dev-cert --out /etc/tandem/tls >/dev/null
config="$root/etc/tandem/relay.jsonc"
# The two lines of the README, and the ports.
sed -i -e "s/\"hostname\": \"[^\"]*\"/\"hostname\": \"localhost:$port\"/" -e 's/"required": true/"required": false/' \
  -e "s/\"listen\": \[\"0.0.0.0:443\", \"\[::\]:443\"\]/\"listen\": [\"127.0.0.1:$port\"]/" -e "s/127.0.0.1:9464/127.0.0.1:$admin_port/" "$config"
install -d -m 0700 "$root/var/lib/tandem"
inside tandemd --config /etc/tandem/relay.jsonc --check >/dev/null || fail "--check refuses the edited configuration"
# As the unit's LimitNOFILE says.
(ulimit -n 1048576 2>/dev/null || true; exec chroot "$root" /usr/bin/tandemd --config /etc/tandem/relay.jsonc) >"$packages/daemon.log" 2>&1 &
daemon=$!
for _ in $(seq 50); do inside tandemctl status --config /etc/tandem/relay.jsonc >/dev/null 2>&1 && break; sleep 0.1; done
inside env SSL_CERT_FILE=/etc/tandem/tls/fullchain.pem tandemctl probe "https://localhost:$port" >/dev/null || fail "the probe failed, see $packages/daemon.log"
inside env SSL_CERT_FILE=/etc/tandem/tls/fullchain.pem tandemctl doctor --config /etc/tandem/relay.jsonc | tee "$packages/doctor.log" || fail "doctor found something"
# All green. Whether this machine synchronises its clock, and how many descriptors it grants, is no matter of the package.
machine=' clock '
(ulimit -n 1048576) 2>/dev/null || machine=' (clock|descriptors) '
if grep -vE "$machine" "$packages/doctor.log" | grep -E '^\[(warn|FAIL)'; then fail "doctor is not content"; fi
ok "a pair talks through it"
kill -TERM "$daemon"
wait "$daemon" || fail "the daemon did not stop cleanly"
daemon=''

echo "== upgrade"
work=$(mktemp -d "$root/tmp/next.XXXXXX")
dpkg-deb -R "$deb" "$work/tree"
sed -i 's/^Version: .*/&+next/' "$work/tree/DEBIAN/control"
dpkg-deb --root-owner-group -b "$work/tree" "$root/next.deb" >/dev/null
before=$(sha256sum <"$config")
inside apt-get install -y /next.deb >>"$packages/install.log" 2>&1 || fail "upgrading failed, see $packages/install.log"
[ "$(sha256sum <"$config")" = "$before" ] || fail "the upgrade changed the operator's configuration"
# shellcheck disable=SC2016
inside dpkg-query -W -f='${Version}' tandem | grep -q '+next$' || fail "the version did not change"
ok "the operator's configuration is untouched"

echo "== remove, purge"
inside dpkg --remove tandem >>"$packages/install.log" 2>&1 || fail "removing failed"
[ ! -e "$root/usr/bin/tandemd" ] || fail "tandemd is still there"
[ -e "$config" ] || fail "removing took the configuration"
inside dpkg --purge tandem >>"$packages/install.log" 2>&1 || fail "purging failed"
[ ! -e "$config" ] || fail "the configuration survived a purge"
[ ! -e "$root/var/lib/tandem" ] || fail "the state survived a purge"
[ -s "$root/etc/tandem/tls/privkey.pem" ] || fail "the purge deleted the operator's key"
ok "removed; the operator's certificate is left alone"
