"""What both endpoints derive from what they share: room names, keys, signatures. Written from the wire contract, and held
against the fixed vectors by test_independent_clients.py."""
import base64
import hashlib
import os
import struct

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

BUCKETS = 65536
ROLE_BYTE = {"mac": b"\x01", "phone": b"\x02"}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unb64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def canonical(domain: str, *fields: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in (domain.encode(), *fields))


def room_name(rs: bytes, pid: str) -> str:
    return hashlib.sha256(canonical("iterm2-room", rs, pid.encode())).hexdigest()


def new_room(bucket: int | None = None) -> str:
    """A room nobody has used; in this bucket where one is named."""
    tail = os.urandom(2) if bucket is None else struct.pack(">H", bucket)
    return (os.urandom(30) + tail).hex()


def tag(room: str) -> str:
    """What logs call a room."""
    return hashlib.sha256(room.encode()).hexdigest()[:8]


class RoomKey:
    """The secret of a pairing, its verifier, and the two signatures made with it."""

    def __init__(self, secret: bytes | None = None):
        self.secret = os.urandom(32) if secret is None else secret
        seed = HKDF(hashes.SHA256(), 32, salt=None, info=b"relay-auth-ed25519").derive(self.secret)
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = b64(self._key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))

    def sign_join(self, role: str, nonce: str, room: str, origin: str) -> str:
        return b64(self._key.sign(canonical("iterm2-relay-join", b"\x01", ROLE_BYTE[role], unb64(nonce), room.encode(), origin.encode())))

    def sign_delete(self, challenge: str, room: str, origin: str) -> str:
        return b64(self._key.sign(canonical("iterm2-relay-delete", b"\x01", unb64(challenge), room.encode(), origin.encode())))
