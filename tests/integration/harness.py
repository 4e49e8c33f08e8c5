"""Starts the real daemon on loopback and speaks to it as its clients and operator do.

    TANDEM_BIN      folder of tandemd and tandemctl            TANDEM_SOURCE  the checkout
    TANDEM_SLACK    factor on bounds of time and memory (sanitized builds are slower)

Tests read: class X(RelayCase): ... self.relay({config}) ... A daemon that dies, that does not exit 0 when told to stop, or
whose log holds a sanitizer's report, a room name, a client's address or a token fails the test that used it, whatever else the
test found."""
import contextlib
import datetime
import http.client
import http.server
import ipaddress
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from derive import BUCKETS, RoomKey, new_room
from wire import SLACK, Endpoint, Ended, Refused, read_answer, request_bytes

SOURCE = os.environ.get("TANDEM_SOURCE", os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))
BIN = os.environ.get("TANDEM_BIN", os.path.join(SOURCE, "build", "release"))
HOST = "relay1.test"
OTHER = "relay2.test"
MIB = 1 << 20
TROUBLE = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|terminate called|Assertion .* failed|stack smashing")
# What no log may hold, whatever a test did (operations 3.6): room names; 24, 32 or 64 bytes in base64, as tokens, nonces, keys and
# signatures travel; the addresses that tests come from or claim to come from.
LEAK = re.compile(r"\b[0-9a-f]{64}\b|(?<![\w+/.-])(?:[A-Za-z0-9+/]{32}|[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{86}==)(?![\w+/=.-])|"
                  r"\b127\.0\.0\.(?!1\b)\d+|\b203\.0\.113\.\d+|\b198\.51\.100\.\d+")
PROOF_TIME = 3.0  # a bound on what must happen at once, before SLACK


# ---------------------------------------------------------------- certificates, ports, configs
def write_certificate(folder, names, days=30, name="tls"):
    """A self-signed P-256 certificate for these DNS names and addresses. -> (certificate path, key path)"""
    key = ec.generate_private_key(ec.SECP256R1())

    def alternative(text):
        try:
            return x509.IPAddress(ipaddress.ip_address(text))
        except ValueError:
            return x509.DNSName(text)

    now = datetime.datetime.utcnow()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    certificate = (x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=2))
                   .not_valid_after(now + datetime.timedelta(days=days))
                   .add_extension(x509.SubjectAlternativeName([alternative(n) for n in names]), critical=False)
                   .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                   .sign(key, hashes.SHA256()))
    paths = os.path.join(folder, f"{name}-cert.pem"), os.path.join(folder, f"{name}-key.pem")
    with open(paths[0], "wb") as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM))
    with open(os.open(paths[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return paths


def free_port(address="127.0.0.1"):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def layered(base, over):
    """base with over laid on it, objects key by key."""
    out = dict(base)
    for key, value in over.items():
        out[key] = layered(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def eventually(condition, timeout=5.0, every=0.02, what="the condition"):
    """-> the first true value of condition()"""
    until = time.monotonic() + timeout * SLACK
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"{what}: not within {timeout} s")
        time.sleep(every)


def run_together(*jobs):
    """Runs these in threads of their own, to their ends. The first that raised raises here."""
    raised = []

    def go(job):
        try:
            job()
        except BaseException as error:  # noqa: B036, it is raised again below
            raised.append(error)

    threads = [threading.Thread(target=go, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def program(name, *args, timeout=30.0, **how):
    """Runs tandemd or tandemctl to its end. -> CompletedProcess with text"""
    return subprocess.run([os.path.join(BIN, name), *args], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=timeout * SLACK, **how)


# ---------------------------------------------------------------- the daemon
# Hands listening sockets over as systemd does: from descriptor 3 upwards, LISTEN_PID being the process itself.
ACTIVATE = """
import fcntl, os, sys
high = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 100) for fd in sys.argv[1].split(",")]
for at, fd in enumerate(high):
    os.dup2(fd, 3 + at, inheritable=True)
os.environ.update(LISTEN_FDS=str(len(high)), LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Daemon:
    """A running tandemd. Config starts from DEFAULTS: attestation off, memory only, rates that no test meets by accident."""

    DEFAULTS = {
        "attest": {"required": False}, "state": {"path": None}, "log": {"level": "debug"},
        "limits": {"upgrades_per_minute": 1000000, "attests_per_minute": 1000000, "sockets_per_client": 100000},
        "timeouts": {"rendezvous": "0s"},
    }

    def __init__(self, config=None, *, hostname=HOST, names=None, port=None, env=None, args=(), before_exec=None, fds=()):
        self.folder = tempfile.mkdtemp(prefix="tandem-test-")
        self.hostname, self.env, self.args, self.before_exec, self.fds = hostname, env or {}, args, before_exec, tuple(fds)
        self.port, self.admin_port = port or free_port(), free_port()
        self.names = names or (hostname.partition(":")[0], OTHER, "localhost", "127.0.0.1")
        self.certificate, self.key = write_certificate(self.folder, self.names)
        base = layered(self.DEFAULTS, {
            "hostname": hostname, "listen": [f"127.0.0.1:{self.port}"], "admin": {"listen": f"127.0.0.1:{self.admin_port}"},
            "tls": {"certificate": self.certificate, "private_key": self.key}})
        self.config = layered(base, config or {})
        self.config_path = os.path.join(self.folder, "relay.jsonc")
        self.log_path = os.path.join(self.folder, "log")
        self.process, self.expected_exit, self._tls = None, 0, None

    # -- its life
    def write_config(self):
        with open(self.config_path, "w", encoding="utf-8") as file:
            json.dump(self.config, file, indent=1)

    def start(self, ready=True, timeout=15.0):
        self.write_config()
        argv = [os.path.join(BIN, "tandemd"), "--config", self.config_path, *self.args]
        if self.fds:
            argv = ["/usr/bin/python3", "-c", ACTIVATE, ",".join(map(str, self.fds)), *argv]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=self.fds,
                                            env={**os.environ, **self.env}, preexec_fn=self.before_exec)
        if ready:
            def is_ready():
                assert self.process.poll() is None, f"tandemd exited {self.process.returncode}: {self.log()[-1500:]}"
                try:
                    return self.admin("/readyz").status == 200
                except OSError:
                    return False
            eventually(is_ready, timeout, 0.03, f"ready (log: {self.log()[-500:]})")
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=20.0):
        """-> exit status"""
        return self.process.wait(timeout * SLACK)

    def stop(self, timeout=20.0):
        """SIGTERM, and -> exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.wait(timeout)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def finish(self):
        """Stops what still runs, checks how it ended, and removes the folder."""
        try:
            if self.process is None:
                return
            died = self.process.poll()
            try:
                status = self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"tandemd did not stop: {self.log()[-1500:]}") from None
            trouble = TROUBLE.search(self.log())
            assert not trouble, f"the log has {self.log()[trouble.start():trouble.start() + 3000]}"
            leak = LEAK.search(self.log())
            assert not leak, f"the log names {leak[0]}: {self.log()[max(0, leak.start() - 200):leak.end() + 200]}"
            if self.expected_exit is not None:
                assert status == self.expected_exit, f"tandemd {'died' if died is not None else 'stopped'} with {status}: {self.log()[-1500:]}"
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- what the operator sees
    def log(self):
        with contextlib.suppress(OSError), open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()
        return ""

    def admin(self, path, method="GET", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=5 * SLACK)
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer
        finally:
            connection.close()

    def status(self):
        return json.loads(self.admin("/status").text)

    def metric(self, name, **labels):
        """The sum of a family's samples that carry these labels."""
        total, found = 0.0, False
        for line in self.admin("/metrics").text.splitlines():
            match = re.match(r"([a-z_]+)(?:\{(.*)\})? (\S+)$", line)
            if match and match[1] == f"tandem_{name}" and all(f'{k}="{v}"' in (match[2] or "") for k, v in labels.items()):
                total, found = total + float(match[3]), True
        assert found, f"no sample of tandem_{name} {labels}"
        return total

    def rss(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+) kB", file.read())[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # -- what clients do
    @property
    def origin(self):
        return f"https://{self.hostname}"

    def context(self):
        """Verifies the daemon's certificate for real."""
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self.certificate)
            self._tls.set_alpn_protocols(["h2", "http/1.1"])
        return self._tls

    def tcp(self, source=None, receive_buffer=None, timeout=10.0):
        sock = socket.socket()
        sock.settimeout(timeout * SLACK)
        if receive_buffer:  # before connecting, or the window is settled already
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            sock.bind((source, 0))
        sock.connect(("127.0.0.1", self.port))
        return sock

    def tls(self, context=None, name=None, **how):
        sock = self.tcp(**how)
        try:
            return (context or self.context()).wrap_socket(sock, server_hostname=name or self.names[0])
        except BaseException:
            sock.close()
            raise

    def ask(self, *data, source=None):
        """Sends bytes on a fresh connection and reads one response. -> (Answer, socket, what came behind)"""
        sock = self.tls(source=source)
        try:
            for piece in data:
                sock.sendall(piece)
            answer, rest = read_answer(sock)
            return answer, sock, rest
        except BaseException:
            sock.close()
            raise

    def http(self, method, path, room=None, body=b"", headers=(), source=None):
        lines = [("Host", self.hostname), ("Content-Length", len(body)), ("Connection", "close")]
        lines += [("x-relay-room", room)] if room is not None else []
        answer, sock, _ = self.ask(request_bytes(method, path, [*lines, *headers], body), source=source)
        sock.close()
        return answer

    def line(self):
        """An HTTPS connection that stays open: see Line."""
        return Line(self)

    def post(self, path, room, fields=None, body=None, headers=()):
        """-> (status, JSON of the answer, or its text)"""
        data = body if body is not None else json.dumps({} if fields is None else fields).encode()
        answer = self.http("POST", path, room, data, headers)
        try:
            return answer.status, json.loads(answer.body)
        except ValueError:
            return answer.status, answer.body.decode()

    def connect(self, room, source=None, receive_buffer=None, **how):
        sock = self.tls(source=source, receive_buffer=receive_buffer)
        return Endpoint(sock, room, self.hostname, **how)

    def greet(self, room, role, hello=None, **how):
        """Connects and says hello. -> (Endpoint, nonce)"""
        end = self.connect(room, **how)
        end.text(json.dumps({"v": 1, "role": role, **(hello or {})}))
        said = json.loads(end.message())
        assert list(said) == ["nonce"], said
        return end, said["nonce"]

    def join(self, room, role, proof=None, key: RoomKey | None = None, hello=None, **how):
        """The whole admission. -> (Endpoint, result)"""
        end, nonce = self.greet(room, role, hello, **how)
        if key is not None:
            proof = {"sig": key.sign_join(role, nonce, room, self.origin)}
        end.text(json.dumps({} if proof is None else proof))
        return end, json.loads(end.message())

    def admit(self, room, role, **how):
        end, result = self.join(room, role, **how)
        assert result.get("ok") is True, f"{role} was refused: {result}"
        end.token = result.get("registrationToken")
        return end

    def pair(self, room=None, **how):
        """-> (mac, phone), admitted and spliced"""
        room = room or new_room()
        return self.admit(room, "mac", **how), self.admit(room, "phone", **how)

    def establish(self, room=None):
        """A room with a registered verifier and nobody in it. -> (room, RoomKey)"""
        room, key = room or new_room(), RoomKey()
        mac, phone = self.pair(room)
        status, answer = self.post("/register", room, {"registrationToken": phone.token, "verifier": key.verifier})
        assert (status, answer) == (200, {"ok": True}), (status, answer)
        phone.close()
        assert str(mac.ending()) == str(Ended(1001, "peer gone"))
        mac.drop()
        return room, key


class Line:
    """One HTTPS connection, kept alive over many requests: what is asked on it costs no handshake."""

    def __init__(self, relay):
        self.host, self.sock, self._rest = relay.hostname, relay.tls(), b""

    def ask(self, path, room, fields):
        """Sends a POST and does not wait for its answer."""
        body = json.dumps(fields).encode()
        self.sock.sendall(request_bytes("POST", path, [("Host", self.host), ("Content-Length", len(body)), ("x-relay-room", room)], body))

    def answer(self):
        """-> (status, JSON) of the oldest request not answered yet"""
        answer, self._rest = read_answer(self.sock, self._rest)
        return answer.status, json.loads(answer.body)

    def post(self, path, room, fields):
        self.ask(path, room, fields)
        return self.answer()

    def drop(self):
        with contextlib.suppress(OSError):
            self.sock.close()


# ---------------------------------------------------------------- a map server
def shard_map(version, *ranges):
    """shard_map(3, (0, 32767, "a.test"), (32768, 65535, "b.test"))"""
    return {"version": version, "ranges": [{"low": low, "high": high, "host": host} for low, high, host in ranges]}


def whole_ring(version, host=HOST):
    return shard_map(version, (0, BUCKETS - 1, host))


class MapServer:
    """A shard map over loopback HTTP. Set .document (an object, or bytes) to publish; .answer(handler) to misbehave."""

    def __init__(self, document):
        self.document, self.answer, self.requests = document, None, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802, the name is http.server's
                outer.requests += 1
                if outer.answer:
                    outer.answer(self)
                    return
                body = outer.document if isinstance(outer.document, bytes) else json.dumps(outer.document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):  # a relay that stops in the middle of a fetch is no fault of the test's
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/shardmap.json"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


# ---------------------------------------------------------------- the base of every test
class RelayCase(unittest.TestCase):
    """Gives tests daemons that are stopped and judged behind them, and the assertions that all of them need."""

    def relay(self, config=None, *, ready=True, exits=0, **how):
        daemon = Daemon(config, **how)
        daemon.expected_exit = exits
        self.addCleanup(daemon.finish)
        return daemon.start(ready=ready)

    def maps(self, document):
        server = MapServer(document)
        self.addCleanup(server.close)
        return server

    def assert_ends(self, end, code, reason, timeout=5.0):
        ended = end.ending(timeout)
        self.assertEqual((ended.code, ended.reason), (code, reason))
        end.drop()

    def assert_refused(self, end, result, reason):
        """A refused proof: the exact result, and a close with the same words."""
        self.assertEqual(result, {"ok": False, "error": reason})
        self.assert_ends(end, 1008, reason)

    def refusal(self, relay, room, **how):
        """-> the answer to an upgrade that must be refused"""
        try:
            end = relay.connect(room, **how)
        except Refused as refused:
            return refused.answer
        end.drop()
        raise AssertionError("the upgrade was accepted")

    def assert_row(self, answer, status, text, retry=False):
        """A refused upgrade of the entry gate, exactly."""
        self.assertEqual((answer.status, answer.body), (status, text.encode()))
        self.assertTrue(answer.headers.get("content-type", "").startswith("text/plain"), answer)
        self.assertEqual(answer.headers.get("connection", "").lower(), "close", answer)
        self.assertTrue(answer.ended, "the connection stays open behind a refused upgrade")
        if retry:
            self.assertRegex(answer.headers.get("retry-after", ""), r"^[1-9]\d{0,3}$")

    def assert_talk(self, mac, phone):
        """One message each way arrives unchanged."""
        for sender, receiver, opcode in ((mac, phone, 2), (phone, mac, 1)):
            payload = os.urandom(8).hex().encode()
            sender.send(payload, opcode)
            self.assertEqual(receiver.receive(PROOF_TIME), (opcode, payload))


def main():
    # A socket that a failed or finished test leaves to the collector is no fault of the relay's.
    unittest.main(verbosity=2, warnings="ignore")
