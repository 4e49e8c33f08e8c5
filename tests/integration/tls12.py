"""A TLS 1.2 client that makes its own records once the handshake is done (RFC 5246), for what no library will send:
handshake messages, alerts and empty records at will."""
import hashlib
import hmac
import os
import ssl
import struct
import tempfile

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ALERT, HANDSHAKE, DATA = 21, 22, 23
CLIENT_HELLO = b"\x01\x00\x00\x00"  # the head of one is enough to ask for a renegotiation


def pseudorandom(secret, label, seed, size):
    seed, out = label + seed, b""
    link = seed
    while len(out) < size:
        link = hmac.new(secret, link, hashlib.sha256).digest()
        out += hmac.new(secret, link + seed, hashlib.sha256).digest()
    return out[:size]


class Tls12:
    def __init__(self, relay, receive_buffer=None):
        context = ssl.create_default_context(cafile=relay.certificate)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        self.sock = relay.tcp(receive_buffer=receive_buffer)
        self._in, out, sent, seen = ssl.MemoryBIO(), ssl.MemoryBIO(), b"", b""
        with tempfile.TemporaryDirectory() as folder:
            context.keylog_filename = os.path.join(folder, "keys")
            self._tls = context.wrap_bio(self._in, out, server_hostname=relay.names[0])
            done = False
            while not done:
                try:
                    self._tls.do_handshake()
                    done = True
                except ssl.SSLWantReadError:
                    pass
                flight = out.read()
                sent += flight
                if flight:
                    self.sock.sendall(flight)
                if not done:
                    piece = self.sock.recv(65536)
                    assert piece, "the handshake was refused"
                    seen += piece
                    self._in.write(piece)
            with open(context.keylog_filename, encoding="ascii") as file:
                words = next(line.split() for line in file if line.startswith("CLIENT_RANDOM"))
        client, server = sent[11:43], seen[11:43]  # record head, handshake head, version; then the random
        assert bytes.fromhex(words[1]) == client
        block = pseudorandom(bytes.fromhex(words[2]), b"key expansion", server + client, 40)
        self._key, self._salt, self._sequence = AESGCM(block[:16]), block[32:36], 1  # record 0 was Finished

    def record(self, kind, payload):
        number = struct.pack(">Q", self._sequence)
        self._sequence += 1
        sealed = self._key.encrypt(self._salt + number, payload, number + struct.pack(">BHH", kind, 0x303, len(payload)))
        return struct.pack(">BHH", kind, 0x303, 8 + len(sealed)) + number + sealed

    def send(self, payload):
        self.sock.sendall(self.record(DATA, payload))

    def receive(self):
        while True:
            try:
                return self._tls.read(65536)
            except ssl.SSLWantReadError:
                piece = self.sock.recv(65536)
                assert piece, "ended"
                self._in.write(piece)

    def drop(self):
        self.sock.close()
