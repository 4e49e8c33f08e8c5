"""Clients that others wrote pair through the relay: Debian's python3-websockets and npm's ws (Debian's node-ws). And the
derivations that these tests use are held against the fixed vectors."""
import asyncio
import json
import os
import shutil
import ssl
import subprocess
import unittest

import derive
from derive import RoomKey, new_room
from harness import RelayCase, main
from wire import SLACK

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")


def vector(name):
    with open(os.path.join(VECTORS, name), encoding="utf-8") as file:
        loaded = json.load(file)
    return loaded if isinstance(loaded, list) else [loaded]


class Derivations(unittest.TestCase):
    def test_canonical(self):
        for case in vector("canonical.json"):
            fields = [bytes.fromhex(field) for field in case["fields_hex"]]
            self.assertEqual(derive.canonical(case["domain"], *fields).hex(), case["encoded_hex"])

    def test_rooms(self):
        for case in vector("rooms.json"):
            room = derive.room_name(bytes.fromhex(case["rs_hex"]), case["pid"])
            self.assertEqual((room, int(room[-4:], 16)), (case["room"], case["bucket"]))

    def test_joins(self):
        for case in vector("joins.json"):
            key = RoomKey(bytes.fromhex(case["room_secret_hex"]))
            self.assertEqual(key.verifier, case["verifier_b64"])
            for role in ("mac", "phone"):
                self.assertEqual(key.sign_join(role, case["nonce_b64"], case["room"], case["origin"]), case[role]["sig_b64"])


class PythonWebsockets(RelayCase):
    def test_it_pairs_registers_rejoins_and_echoes(self):
        try:
            import websockets  # noqa: PLC0415, optional
        except ImportError:
            self.skipTest("python3-websockets is not installed")
        relay = self.relay()
        context = ssl.create_default_context(cafile=relay.certificate)
        room, key = new_room(), RoomKey()

        async def join(role, signed):
            ws = await websockets.connect(f"wss://127.0.0.1:{relay.port}/", ssl=context, server_hostname=relay.hostname,
                                          extra_headers={"x-relay-room": room}, max_size=1 << 20, open_timeout=10 * SLACK)
            await ws.send(json.dumps({"v": 1, "role": role}))
            nonce = json.loads(await ws.recv())["nonce"]
            await ws.send(json.dumps({"sig": key.sign_join(role, nonce, room, relay.origin)} if signed else {}))
            return ws, json.loads(await ws.recv())

        async def session():
            mac, said = await join("mac", False)
            self.assertEqual(said, {"ok": True})
            phone, said = await join("phone", False)
            answer = relay.post("/register", room, {"registrationToken": said["registrationToken"], "verifier": key.verifier})
            self.assertEqual(answer, (200, {"ok": True}))
            await phone.close()
            with self.assertRaises(websockets.ConnectionClosed) as ended:
                await mac.recv()
            self.assertEqual((ended.exception.rcvd.code, ended.exception.rcvd.reason), (1001, "peer gone"))
            mac, said = await join("mac", True)
            self.assertEqual(said, {"ok": True})
            phone, said = await join("phone", True)
            self.assertTrue(said["ok"])
            for size in (0, 1, 125, 126, 65535, 65536, 262144):
                payload = os.urandom(size)
                await mac.send(payload)
                self.assertEqual(await phone.recv(), payload)
                text = "\u00e4" * (size // 2)
                await phone.send(text)
                self.assertEqual(await mac.recv(), text)
            await asyncio.wait_for(await mac.ping(), 5 * SLACK)
            await phone.close()
            await mac.close()

        asyncio.run(asyncio.wait_for(session(), 60 * SLACK))


class NodeWs(RelayCase):
    def test_it_pairs_registers_rejoins_and_echoes(self):
        node = shutil.which("node") or shutil.which("nodejs")
        env = {**os.environ, "NODE_PATH": "/usr/share/nodejs"}
        if not node or subprocess.run([node, "-e", "require('ws')"], env=env, capture_output=True, check=False).returncode:
            self.skipTest("Debian's node-ws is not installed")
        relay = self.relay()
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ws_client.js")
        run = subprocess.run([node, script, str(relay.port), relay.certificate, relay.hostname, new_room(), os.urandom(32).hex()],
                             env=env, capture_output=True, text=True, timeout=60 * SLACK, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        said = json.loads(run.stdout)
        self.assertEqual(said["register"], [200, {"ok": True}])
        self.assertEqual(said["peer"], [1001, "peer gone"])
        self.assertEqual(said["echoes"], [True] * 7)
        self.assertEqual(said["pong"], "hello")


if __name__ == "__main__":
    main()
