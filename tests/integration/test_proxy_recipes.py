"""The recipes of docs/behind-a-proxy.md, taken from the page itself and run on loopback: through each of them a probe pairs, and
every client keeps limits of its own."""
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

from derive import new_room
from harness import SOURCE, RelayCase, eventually, free_port, main, program
from wire import read_answer, request_bytes, upgrade_headers

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin"
NGINX, HAPROXY = (shutil.which(name, path=PATH) for name in ("nginx", "haproxy"))
STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so"
RATE = 30  # upgrades per minute of one client


def blocks(section):
    """The indented blocks of one section of the page, in order."""
    with open(os.path.join(SOURCE, "docs", "behind-a-proxy.md"), encoding="utf-8") as file:
        text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", file.read(), re.M | re.S)[1]
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip() + "\n" for block in found]


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text, f"the recipe no longer has {old!r}: {text}"
        text = text.replace(old, new)
    return text


class Recipes(RelayCase):
    def behind(self, keys, *pairs):
        """A relay configured as the page says. -> (Daemon, the port of its proxy)"""
        front, back = free_port(), free_port()
        text = replaced("{" + re.sub(r"//.*", "", keys) + "}", *((old, new.format(back=back)) for old, new in pairs))
        wanted = json.loads(text)
        relay = self.relay({**{k: v for k, v in wanted.items() if k != "tls"}, "limits": {"upgrades_per_minute": RATE}}, ready=False,
                           hostname=f"localhost:{front}", port=back, names=("localhost",))
        if wanted.get("tls") == "off":  # takes the place of a section, which is not laid over it
            relay.stop()
            relay.config["tls"] = "off"
            relay.start(ready=False)
        eventually(lambda: "ready" in relay.log(), 10, what="ready")
        return relay, front

    def proxy(self, argv, port):
        running = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        def end():
            running.terminate()
            running.communicate(timeout=15)

        self.addCleanup(end)

        def answers():
            assert running.poll() is None, running.stdout.read().decode()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return True
            except OSError:
                return False

        eventually(answers, 10, 0.05, "the proxy")

    def haproxy(self, relay, port, recipe):
        path = os.path.join(relay.folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write("global\n    maxconn 200\n" + recipe)
        self.proxy([HAPROXY, "-f", path], port)

    def nginx(self, relay, port, kind, recipe):
        path = os.path.join(relay.folder, "nginx.conf")
        load = f"load_module {STREAM};\n" if kind == "stream" else ""
        own = "" if kind == "stream" else "access_log off;\n" + "".join(
            f"{what}_temp_path {relay.folder}/{what};\n" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{load}pid {relay.folder}/nginx.pid;\nerror_log {relay.folder}/nginx.log;\ndaemon off;\nevents {{}}\n{kind} {{\n{own}{recipe}}}\n")
        self.proxy([NGINX, "-c", path], port)

    def upgrade(self, relay, port, source, claim=None):
        """-> the status of one upgrade from this address"""
        sock = socket.create_connection(("127.0.0.1", port), 5, source_address=(source, 0))
        sock = relay.context().wrap_socket(sock, server_hostname="localhost")
        claims = [("X-Forwarded-For", claim)] if claim else []
        sock.sendall(request_bytes("GET", "/", upgrade_headers(new_room(), relay.hostname, extra=claims)))
        status = read_answer(sock)[0].status
        sock.close()
        return status

    def works(self, relay, port):
        done = program("tandemctl", "probe", f"https://localhost:{port}", env={**os.environ, "SSL_CERT_FILE": relay.certificate})
        self.assertEqual(done.returncode, 0, done.stderr + relay.log()[-1500:])
        # Whoever spends its own budget, whatever it claims to be, spends nobody else's.
        spent = [self.upgrade(relay, port, "127.0.0.5", f"203.0.113.{n}") for n in range(RATE + 2)]
        self.assertEqual(spent, [101] * RATE + [429] * 2)
        self.assertEqual(self.upgrade(relay, port, "127.0.0.6"), 101)
        self.assertEqual(relay.status()["hostname"], relay.hostname)

    @unittest.skipUnless(HAPROXY, "haproxy is not installed")
    def test_haproxy_passes_tls_through(self):
        keys, recipe = blocks("Pass TLS through \\(best\\)")[:2]
        relay, port = self.behind(keys, ("0.0.0.0:8443", "127.0.0.1:{back}"), ("192.0.2.10", "127.0.0.1"))
        self.haproxy(relay, port, replaced(recipe, (":443,[::]:443 v4v6", f"127.0.0.1:{port}"), ("192.0.2.20:8443", f"127.0.0.1:{relay.port}")))
        self.works(relay, port)

    @unittest.skipUnless(NGINX and os.path.exists(STREAM), "nginx with its stream module is not installed")
    def test_nginx_passes_tls_through(self):
        keys, _, recipe = blocks("Pass TLS through \\(best\\)")
        relay, port = self.behind(keys, ("0.0.0.0:8443", "127.0.0.1:{back}"), ("192.0.2.10", "127.0.0.1"))
        self.nginx(relay, port, "stream", replaced(recipe, ("listen 443;", f"listen 127.0.0.1:{port};"), ("    listen [::]:443;\n", ""),
                                                   ("192.0.2.20:8443", f"127.0.0.1:{relay.port}")))
        self.works(relay, port)

    @unittest.skipUnless(NGINX, "nginx is not installed")
    def test_nginx_ends_tls(self):
        keys, recipe, _ = blocks("End TLS in the proxy")
        relay, port = self.behind(keys, ("8080", "{back}"))
        self.nginx(relay, port, "http", replaced(recipe, ("443 ssl", f"127.0.0.1:{port} ssl"), ("relay1.example.com", "localhost"),
                                                 ("/etc/nginx/tls/fullchain.pem", relay.certificate), ("/etc/nginx/tls/privkey.pem", relay.key),
                                                 ("8080", str(relay.port))))
        self.works(relay, port)

    @unittest.skipUnless(HAPROXY, "haproxy is not installed")
    def test_haproxy_ends_tls(self):
        keys, _, recipe = blocks("End TLS in the proxy")
        relay, port = self.behind(keys, ("8080", "{back}"))
        pem = os.path.join(relay.folder, "site.pem")
        with open(pem, "wb") as both:
            for path in (relay.certificate, relay.key):
                with open(path, "rb") as file:
                    both.write(file.read())
        self.haproxy(relay, port, replaced(recipe, (":443,[::]:443 v4v6", f"127.0.0.1:{port}"), ("/etc/haproxy/relay1.pem", pem),
                                           ("8080", str(relay.port))))
        self.works(relay, port)


if __name__ == "__main__":
    main()
