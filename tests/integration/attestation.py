"""Mints App Attest objects from the throwaway keys of vectors/appattest_synthetic.json: right but for what a test makes wrong."""
import datetime
import hashlib
import json
import os

import cbor2
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from derive import b64, canonical, unb64
from harness import SOURCE

with open(os.path.join(SOURCE, "tests", "vectors", "appattest_synthetic.json"), encoding="utf-8") as _file:
    VECTOR = json.load(_file)
APP = VECTOR["app_id"]
PRODUCTION, DEVELOPMENT = b"appattest".ljust(16, b"\0"), b"appattestdevelop"
NONCE = x509.ObjectIdentifier("1.2.840.113635.100.8.2")
START, END = datetime.datetime(2020, 1, 1), datetime.datetime(2045, 1, 1)


def sha(data):
    return hashlib.sha256(data).digest()


def private_key(pem):
    return serialization.load_pem_private_key(pem.encode(), None)


ROOT_KEY, CA_KEY = private_key(VECTOR["root_key_pem"]), private_key(VECTOR["intermediate_key_pem"])
CA = unb64(VECTOR["intermediate_der_b64"])


def new_key(curve=ec.SECP256R1):
    return ec.generate_private_key(curve())


def point(key):
    return key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def client_data_hash(challenge, origin):
    return sha(canonical("iterm2-relay-attest", unb64(challenge), origin.encode()))


def certificate(subject, issuer, public, signer, ca=False, extensions=(), start=START, end=END):
    def name(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
    builder = (x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer)).public_key(public)
               .serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)
               .add_extension(x509.BasicConstraints(ca, None), critical=True))
    for value in extensions:
        builder = builder.add_extension(x509.UnrecognizedExtension(NONCE, value), critical=False)
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


class Device:
    """A phone with one App Attest key."""

    def __init__(self):
        self.key, self.counter = new_key(), 0

    def auth_data(self, app=APP, aaguid=PRODUCTION, counter=0, credential=None):
        credential = sha(point(self.key)) if credential is None else credential
        return sha(app.encode()) + b"\x40" + counter.to_bytes(4, "big") + aaguid + len(credential).to_bytes(2, "big") + credential

    def attestation(self, challenge, origin, *, fmt="apple-appattest", chain=lambda c: c, extensions=None, signer=CA_KEY, public=None,
                    start=START, end=END, encode=cbor2.dumps, **auth):
        """-> the attestation object, base64"""
        data = self.auth_data(**auth)
        nonce = sha(data + client_data_hash(challenge, origin))
        extensions = [b"\x30\x24\xa1\x22\x04\x20" + nonce] if extensions is None else extensions
        leaf = certificate("Test Leaf", "Test Attest CA", public or self.key.public_key(), signer, False, extensions, start, end)
        return b64(encode({"fmt": fmt, "attStmt": {"x5c": chain([leaf, CA]), "receipt": b"\0"}, "authData": data}))

    def assertion(self, challenge, origin, *, counter=None, app=APP, key=None, encode=cbor2.dumps, short=False):
        """-> the assertion, base64; the counter goes up by itself. short: signs the message itself, not its hash"""
        if counter is None:
            self.counter += 1
            counter = self.counter
        data = sha(app.encode()) + b"\x40" + counter.to_bytes(4, "big")
        message = data + client_data_hash(challenge, origin)
        signature = (key or self.key).sign(message if short else sha(message), ec.ECDSA(hashes.SHA256()))
        return b64(encode({"signature": signature, "authenticatorData": data}))


class Attested:
    """What a phone and a mac do at a relay that requires attestation. line: what posts, where not the relay itself."""

    def __init__(self, relay, line=None):
        self.relay, self.line = relay, line or relay

    def challenge(self, room):
        status, answer = self.line.post("/attest/challenge", room, {})
        assert status == 200 and answer["ok"] is True, (status, answer)
        return answer["challenge"]

    def attest(self, room, device, challenge=None, **how):
        challenge = challenge or self.challenge(room)
        return self.line.post("/attest", room, {
            "challenge": challenge, "attestationObject": device.attestation(challenge, self.relay.origin, **how)})

    def ticket(self, room, device=None):
        status, answer = self.attest(room, device or Device())
        assert status == 200 and answer["ok"] is True, (status, answer)
        return answer["ticket"]

    def pair(self, room, device=None):
        """-> (mac, phone) admitted by a ticket"""
        ticket = self.ticket(room, device)
        return self.relay.admit(room, "mac"), self.relay.admit(room, "phone", proof={"ticket": ticket})

    def register(self, room, token, verifier, device, challenge=None, **how):
        challenge = challenge or self.challenge(room)
        return self.line.post("/register", room, {
            "registrationToken": token, "verifier": verifier, "challenge": challenge,
            "assertion": device.assertion(challenge, self.relay.origin, **how)})


def trusting(folder):
    """Config of a relay that trusts the throwaway root."""
    path = os.path.join(folder, "attest-root.pem")
    with open(path, "w", encoding="ascii") as file:
        file.write(VECTOR["root_pem"])
    return {"attest": {"required": True, "app_id": APP, "environment": "production", "root_ca": path}}
