"""A client that is exact about bytes: raw HTTP over TLS, and WebSocket frames made and checked by hand (RFC 6455).

Nothing here is lenient: a relay that masks a frame, sets a reserved bit, starts a message inside another or sends anything
behind its close frame fails the test at once."""
import base64
import contextlib
import hashlib
import os
import select
import socket
import ssl
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
SLACK = float(os.environ.get("TANDEM_SLACK", "1"))


class Ended(Exception):
    """The relay ended a WebSocket; 1006: without a close frame."""

    def __init__(self, code, reason=""):
        super().__init__(f"ended {code} {reason!r}")
        self.code, self.reason = code, reason


class Refused(Exception):
    """An upgrade was answered with something else than 101."""

    def __init__(self, answer):
        super().__init__(f"refused {answer.status} {answer.body[:80]!r}")
        self.answer = answer


class Answer:
    """One HTTP response."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"Answer({self.status}, {self.headers}, {self.body[:200]!r})"


# ---------------------------------------------------------------- HTTP
def request_bytes(method, target, headers, body=b"", version="HTTP/1.1"):
    lines = [f"{method} {target} {version}"] + [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode("latin1") + b"\r\n\r\n" + body


def upgrade_headers(room, host, key=None, without=(), extra=()):
    """The header list of a good upgrade, less those named in `without`, plus `extra` pairs."""
    headers = [("Host", host), ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
               ("Sec-WebSocket-Key", key or base64.b64encode(os.urandom(16)).decode())]
    if room is not None:
        headers.append(("x-relay-room", room))
    dropped = {name.lower() for name in without}
    return [pair for pair in headers if pair[0].lower() not in dropped] + list(extra)


def _more(sock, buffer):
    piece = sock.recv(65536)
    if not piece:
        raise EOFError(f"ended in the middle of a response: {buffer[:200]!r}")
    return buffer + piece


def read_answer(sock, rest=b""):
    """Reads one response from a socket. -> (Answer, what came behind it)"""
    while b"\r\n\r\n" not in rest:
        rest = _more(sock, rest)
    head, _, rest = rest.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split(" ")[1])
    if status == 101 or status == 100:
        return Answer(status, headers, b""), rest
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while True:
            while b"\r\n" not in rest:
                rest = _more(sock, rest)
            size, _, rest = rest.partition(b"\r\n")
            size = int(size, 16)
            while len(rest) < size + 2:
                rest = _more(sock, rest)
            body, rest = body + rest[:size], rest[size + 2:]
            if size == 0:
                return Answer(status, headers, body), rest
    if "content-length" not in headers:
        raise AssertionError(f"a response without a length: {head!r}")
    size = int(headers["content-length"])
    while len(rest) < size:
        rest = _more(sock, rest)
    return Answer(status, headers, rest[:size]), rest[size:]


def is_closed_within(sock, seconds):
    """Whether the other side ends the connection in that time; whatever it still sends is thrown away."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            if not sock.recv(65536):
                return True
        except (socket.timeout, TimeoutError):
            return False
        except OSError:
            return True
    return False


def reset(sock):
    """Ends a connection with RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


# ---------------------------------------------------------------- WebSocket
def masked(payload, key):
    if not payload:
        return b""
    stream = (key * (len(payload) // 4 + 1))[:len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(payload), "big")


def frame(opcode, payload=b"", fin=True, mask=True, rsv=0, key=None, form=None, claims=None):
    """One frame. form: 7, 16 or 64 forces the width of the length; claims: a length that is not the payload's."""
    size = len(payload) if claims is None else claims
    if form is None:
        form = 7 if size < 126 else 16 if size < 65536 else 64
    bit = 0x80 if mask else 0
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    head = {7: lambda: struct.pack(">BB", first, bit | size), 16: lambda: struct.pack(">BBH", first, bit | 126, size),
            64: lambda: struct.pack(">BBQ", first, bit | 127, size)}[form]()
    if not mask:
        return head + payload
    key = os.urandom(4) if key is None else key
    return head + key + masked(payload, key)


def close_frame(code=None, reason=b""):
    return frame(CLOSE, b"" if code is None else struct.pack(">H", code) + reason)


class Endpoint:
    """One WebSocket of a client, on a blocking socket. Pings are answered unless answer_pings is False."""

    def __init__(self, sock, room, host, path="/", extra=(), without=(), version="HTTP/1.1", behind=b"", answer_pings=True):
        self.sock, self.room, self.answer_pings = sock, room, answer_pings
        self.pings, self.pongs, self.closed = [], [], None
        self._buffer, self._parts, self._opcode = b"", [], None
        key = base64.b64encode(os.urandom(16)).decode()
        sock.sendall(request_bytes("GET", path, upgrade_headers(room, host, key, without, extra), version=version) + behind)
        answer, self._buffer = read_answer(sock)
        self.headers = answer.headers
        if answer.status != 101:
            answer.ended = is_closed_within(sock, 2 * SLACK)
            sock.close()
            raise Refused(answer)
        want = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        assert answer.headers.get("sec-websocket-accept") == want, answer
        assert answer.headers.get("upgrade", "").lower() == "websocket", answer
        assert answer.headers.get("connection", "").lower() == "upgrade", answer
        assert "sec-websocket-extensions" not in answer.headers and "sec-websocket-protocol" not in answer.headers, answer

    # -- sending
    def send_bytes(self, data):
        self.sock.sendall(data)

    def send(self, payload, opcode=BINARY, **how):
        self.send_bytes(frame(opcode, payload.encode() if isinstance(payload, str) else payload, **how))

    def text(self, payload, **how):
        self.send(payload, TEXT, **how)

    def ping(self, payload=b""):
        self.send(payload, PING)

    def try_send(self, data):
        """-> whether it all went out; a relay that hung up meanwhile is no error here."""
        try:
            self.send_bytes(data)
            return True
        except OSError:
            return False

    # -- receiving
    def _fill(self, size, until):
        while len(self._buffer) < size:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("nothing more came")
            self.sock.settimeout(left)
            try:
                piece = self.sock.recv(262144)
            except (socket.timeout, TimeoutError):
                raise TimeoutError("nothing more came") from None
            except OSError as error:
                raise Ended(1006, type(error).__name__) from None
            if not piece:
                raise Ended(1006, "end of stream")
            self._buffer += piece

    def next_frame(self, timeout=10.0):
        """-> (fin, opcode, payload)"""
        until = time.monotonic() + timeout * SLACK
        self._fill(2, until)
        first, second = self._buffer[0], self._buffer[1]
        assert not first & 0x70, "a reserved bit from the relay"
        assert not second & 0x80, "a masked frame from the relay"
        size, at = second & 0x7F, 2
        if size == 126:
            self._fill(4, until)
            size, at = struct.unpack_from(">H", self._buffer, 2)[0], 4
            assert size > 125, "a length that is not minimal"
        elif size == 127:
            self._fill(10, until)
            size, at = struct.unpack_from(">Q", self._buffer, 2)[0], 10
            assert size > 65535, "a length that is not minimal"
        self._fill(at + size, until)
        payload, self._buffer = self._buffer[at:at + size], self._buffer[at + size:]
        return bool(first & 0x80), first & 0x0F, payload

    def step(self, timeout=10.0):
        """Takes in one frame. -> (opcode, payload) where it completes a message, else None. Raises Ended at a close."""
        fin, opcode, payload = self.next_frame(timeout)
        assert opcode in (0, TEXT, BINARY, CLOSE, PING, PONG), f"opcode {opcode} from the relay"
        if opcode >= 8:
            assert fin and len(payload) <= 125, "a control frame out of form"
        if opcode == PING:
            self.pings.append(payload)
            if self.answer_pings:
                self.try_send(frame(PONG, payload))
        elif opcode == PONG:
            self.pongs.append(payload)
        elif opcode == CLOSE:
            code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005
            self.closed = Ended(code, payload[2:].decode())
            self.try_send(frame(CLOSE, payload[:2]))
            raise self.closed
        else:
            assert (opcode == 0) == (self._opcode is not None), f"opcode {opcode} out of turn"
            self._opcode = self._opcode if opcode == 0 else opcode
            self._parts.append(payload)
            if fin:
                done = self._opcode, b"".join(self._parts)
                self._opcode, self._parts = None, []
                return done
        return None

    def receive(self, timeout=10.0):
        """The next message. -> (opcode, payload). Raises Ended at a close, TimeoutError where nothing comes."""
        until = time.monotonic() + timeout * SLACK
        while True:
            done = self.step(max(0.001, (until - time.monotonic()) / SLACK))
            if done is not None:
                return done

    def message(self, timeout=10.0):
        return self.receive(timeout)[1]

    def ending(self, timeout=5.0):
        """Reads until a close frame. -> Ended. Messages that come before it are thrown away."""
        until = time.monotonic() + timeout * SLACK
        while True:
            try:
                self.receive(max(0.001, (until - time.monotonic()) / SLACK))
            except Ended as ended:
                return ended
            except TimeoutError:
                raise AssertionError(f"not closed within {timeout} s") from None

    def await_pongs(self, count, timeout=5.0):
        """Reads until that many pongs have come; messages meanwhile are an error."""
        until = time.monotonic() + timeout * SLACK
        while len(self.pongs) < count:
            try:
                got = self.step(max(0.001, (until - time.monotonic()) / SLACK))
            except TimeoutError:
                raise AssertionError(f"{len(self.pongs)} of {count} pongs within {timeout} s") from None
            assert got is None, f"a message instead of a pong: {got[1][:40]!r}"

    def stays_open(self, seconds):
        """Nothing but pings and pongs comes in that time."""
        try:
            got = self.receive(seconds / SLACK)
        except TimeoutError:
            return
        except Ended as ended:
            raise AssertionError(f"should stay open, but {ended}") from None
        raise AssertionError(f"should stay silent, but got {got}")

    # -- leaving
    def close(self, code=1000, timeout=5.0):
        """A clean goodbye: close frame, echo, end. -> the echoed code"""
        self.send_bytes(close_frame(code))
        ended = self.ending(timeout)
        self.sock.close()
        return ended.code

    def drop(self):
        with contextlib.suppress(OSError):
            self.sock.close()


class Pump:
    """Moves messages on an Endpoint without blocking, for flows that have to run beside each other."""

    def __init__(self, endpoint, source=(), reading=True):
        self.end, self.reading, self.closed = endpoint, reading, None
        endpoint.sock.setblocking(False)
        self._source, self._out, self.dry = iter(source), b"", False
        self._in, self._parts, self._opcode = bytearray(endpoint._buffer), [], None
        endpoint._buffer = b""
        self.sent_bytes = self.received_bytes = 0
        self.messages, self.pongs, self._control = [], [], []
        self.keep_messages, self.message_count, self.on_message = True, 0, None

    def fileno(self):
        return self.end.sock.fileno()

    def control(self, data):
        """Sends a control frame at the next boundary of a frame of ours."""
        self._control.append(data)

    def wants_to_write(self):
        if self.closed:
            return False
        if not self._out:
            if self._control:
                self._out = self._control.pop(0)
            elif not self.dry:
                item = next(self._source, None)
                if item is None:
                    self.dry = True
                else:
                    self._out = item
        return bool(self._out)

    def write(self, at_most=1 << 20):
        taken = 0
        while taken < at_most and self.wants_to_write():
            try:
                count = self.end.sock.send(self._out)
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
                break
            except OSError as error:
                self.closed = self.closed or Ended(1006, type(error).__name__)
                break
            taken += count
            self._out = self._out[count:]
        self.sent_bytes += taken
        return taken

    def read(self, at_most=1 << 20):
        taken = 0
        while taken < at_most and not self.closed:
            try:
                piece = self.end.sock.recv(min(65536, at_most - taken))
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                break
            except OSError as error:
                self.closed = Ended(1006, type(error).__name__)
                break
            if not piece:
                self.closed = Ended(1006, "end of stream")
                break
            taken += len(piece)
            self._in += piece
            self._parse()
        self.received_bytes += taken
        return taken

    def _parse(self):
        buffer, at = self._in, 0
        while len(buffer) - at >= 2:
            size, head = buffer[at + 1], 2
            assert not size & 0x80 and not buffer[at] & 0x70, "a masked frame or reserved bits from the relay"
            if size >= 126:
                head = 4 if size == 126 else 10
                if len(buffer) - at < head:
                    break
                size = struct.unpack_from(">H" if head == 4 else ">Q", buffer, at + 2)[0]
            if len(buffer) - at < head + size:
                break
            fin, opcode = buffer[at] & 0x80, buffer[at] & 0x0F
            payload = bytes(buffer[at + head:at + head + size])
            at += head + size
            if opcode == CLOSE:
                code = struct.unpack(">H", payload[:2])[0] if len(payload) >= 2 else 1005
                self.closed = Ended(code, payload[2:].decode())
                break
            if opcode == PING:
                self.control(frame(PONG, payload))
            elif opcode == PONG:
                self.pongs.append((time.monotonic(), payload))
            else:
                assert (opcode == 0) == (self._opcode is not None), f"opcode {opcode} out of turn"
                self._opcode = self._opcode if opcode == 0 else opcode
                self._parts.append(payload)
                if fin:
                    whole = self._opcode, b"".join(self._parts)
                    self._opcode, self._parts = None, []
                    self.message_count += 1
                    if self.keep_messages:
                        self.messages.append(whole)
                    if self.on_message:
                        self.on_message(*whole)
        del buffer[:at]


def pump(pumps, until, timeout=20.0, each=None):
    """Moves bytes until the condition holds."""
    deadline = time.monotonic() + timeout * SLACK
    while not until():
        if time.monotonic() > deadline:
            told = ", ".join(f"sent {p.sent_bytes} received {p.received_bytes} in {p.message_count} messages {p.closed or ''}" for p in pumps)
            raise AssertionError(f"not reached within {timeout} s: {told}")
        live = [p for p in pumps if not p.closed]
        writers = [p for p in live if p.wants_to_write()]
        held = [p for p in live if p.reading and isinstance(p.end.sock, ssl.SSLSocket) and p.end.sock.pending()]
        readable, writable, _ = select.select([p for p in live if p.reading], writers, [], 0 if held else 0.02)
        for p in {*readable, *held}:
            p.read()
        for p in writable:
            p.write()
        if each:
            each()


def push_until_held(p, quiet=1.0, timeout=40.0, each=None):
    """Writes until the relay has taken nothing for `quiet` seconds, or everything was taken."""
    last = start = time.monotonic()
    while time.monotonic() - last < quiet and p.wants_to_write():
        assert time.monotonic() - start < timeout * SLACK, f"still taken in after {timeout} s"
        if p.write(256 * 1024):
            last = time.monotonic()
        else:
            select.select([], [p], [], 0.05)
            time.sleep(0.002)
        if each:
            each()
