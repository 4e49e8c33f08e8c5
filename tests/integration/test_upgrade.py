"""The upgrade of a relay under live pairings (operations 3.3): the listening socket outlives the daemon, as under systemd, so that no
connection is refused, and every pairing is back within seconds. The clients are independent of the project's own: asyncio, and
the client rules of the sharding contract (first wait uniform in [0, 3 s], then in [0, min(30 s, 2^n s)]).

    TANDEM_PAIRINGS   how many (200)
    TANDEM_UPGRADES   how often, one after the other (1)"""
import asyncio
import base64
import json
import os
import random
import socket
import ssl
import struct
import threading
import time

from derive import RoomKey, new_room
from harness import RelayCase, free_port, main
from wire import CLOSE, PING, PONG, SLACK, TEXT, frame, request_bytes, upgrade_headers

PAIRINGS = int(os.environ.get("TANDEM_PAIRINGS", "200"))
UPGRADES = int(os.environ.get("TANDEM_UPGRADES", "1"))


class Closed(Exception):
    pass


class Device:
    """One endpoint of an established pairing that reconnects for ever."""

    def __init__(self, fleet, pairing, role):
        self.fleet, self.pairing, self.role = fleet, pairing, role
        self.live, self.failures, self.admission, self.writer = False, 0, 0, None
        self.heard = None  # (admission of the peer, of ours) of the newest message

    async def run(self):
        while True:
            try:
                await self.attempt()
            except (OSError, EOFError, Closed, asyncio.IncompleteReadError) as error:
                self.fleet.note(error)
            finally:
                self.live = False
                if self.writer:
                    self.writer.close()
                    self.writer = None
            self.failures += 1
            bound = 3 if self.failures == 1 else min(30, 2 ** self.failures)
            await asyncio.sleep(random.uniform(0, bound))

    async def attempt(self):
        reader, self.writer = await asyncio.open_connection("127.0.0.1", self.fleet.port, ssl=self.fleet.context, server_hostname="localhost")
        room = self.pairing.room
        key = base64.b64encode(os.urandom(16)).decode()
        self.writer.write(request_bytes("GET", "/", upgrade_headers(room, self.fleet.host, key)))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise Closed(head.split(b"\r\n")[0].decode())
        self.say({"v": 1, "role": self.role})
        nonce = json.loads(await self.message(reader))["nonce"]
        key = self.pairing.key
        self.say({"sig": key.sign_join(self.role, nonce, room, self.fleet.origin)} if key else {})
        result = json.loads(await self.message(reader))
        if not result["ok"]:
            raise Closed(result["error"])
        self.token = result.get("registrationToken")
        self.live = True
        self.admission += 1
        self.hello()
        while True:
            peer = json.loads(await self.message(reader))["admission"]
            news = self.heard != (peer, self.admission)
            self.heard = (peer, self.admission)
            self.failures = 0  # a splice that carries frames
            if news:
                self.hello()
            self.pairing.look()

    async def message(self, reader):
        whole = b""
        while True:
            first, second = await reader.readexactly(2)
            size = second
            if size == 126:
                size = struct.unpack(">H", await reader.readexactly(2))[0]
            payload = await reader.readexactly(size)
            opcode = first & 15
            if opcode == PING:
                self.writer.write(frame(PONG, payload))
            elif opcode == CLOSE:
                self.writer.write(frame(CLOSE, payload[:2]))
                raise Closed(payload[2:].decode())
            elif opcode < 8:
                whole += payload
                if first & 0x80:
                    return whole

    def say(self, fields):
        self.writer.write(frame(TEXT, json.dumps(fields).encode()))

    def hello(self):
        self.say({"admission": self.admission})


class Pairing:
    def __init__(self, fleet):
        self.room, self.key, self.fleet = new_room(), None, fleet
        self.mac, self.phone = Device(fleet, self, "mac"), Device(fleet, self, "phone")
        self.whole_since = None

    def is_whole(self):
        mac, phone = self.mac, self.phone
        return mac.live and phone.live and mac.heard == (phone.admission, mac.admission) and phone.heard == (mac.admission, phone.admission)

    def look(self):
        if self.whole_since is None and self.is_whole():
            self.whole_since = time.monotonic()


class Fleet:
    def __init__(self, relay, host):
        self.port, self.host, self.origin, self.context = relay.port, host, relay.origin, relay.context()
        self.refused, self.endings, self.pairings = 0, {}, [Pairing(self) for _ in range(PAIRINGS)]

    def note(self, error):
        self.refused += isinstance(error, ConnectionRefusedError)
        why = str(error) if isinstance(error, Closed) else type(error).__name__
        self.endings[why] = self.endings.get(why, 0) + 1

    async def start(self):
        self.tasks = []
        for number, pairing in enumerate(self.pairings):
            self.tasks += [asyncio.create_task(device.run()) for device in (pairing.mac, pairing.phone)]
            if number % 10 == 9:
                await asyncio.sleep(0.1)
        await self.all_whole(60)

    async def all_whole(self, within):
        until = time.monotonic() + within * SLACK
        while any(pairing.whole_since is None for pairing in self.pairings):
            assert time.monotonic() < until, f"{sum(p.whole_since is None for p in self.pairings)} pairings are not back: {self.endings}"
            await asyncio.sleep(0.02)


class Knocker(threading.Thread):
    """Opens a connection every 20 ms from a thread of its own; each must be taken, and answer a handshake in the end."""

    def __init__(self, relay):
        super().__init__(daemon=True)
        self.relay, self.going, self.knocks, self.refused, self.open = relay, True, 0, 0, []

    def run(self):
        while self.going:
            self.knocks += 1
            try:
                self.open.append(socket.create_connection(("127.0.0.1", self.relay.port), 5))
            except OSError:
                self.refused += 1
            time.sleep(0.02)

    def finish(self):
        self.going = False
        self.join()
        answered = 0
        for sock in self.open:
            sock.settimeout(10)
            try:
                self.relay.context().wrap_socket(sock, server_hostname="localhost").close()
                answered += 1
            except (OSError, ssl.SSLError):
                sock.close()
        return answered


class Upgrade(RelayCase):
    def test_pairings_are_back_within_seconds_and_nobody_is_refused(self):
        held = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.addCleanup(held.close)
        port = held.getsockname()[1]
        host = f"localhost:{port}"
        relay = self.relay({"listen": [f"127.0.0.1:{free_port()}"], "log": {"level": "info"}, "state": {"path": "state.db"},
                            "timeouts": {"rendezvous": "2s"}}, hostname=host, port=port, fds=[held.fileno()])
        asyncio.run(self.upgrade(relay, host))

    async def upgrade(self, relay, host):
        fleet = Fleet(relay, host)
        await fleet.start()
        for pairing in fleet.pairings:
            key = RoomKey()
            status, _ = await asyncio.to_thread(relay.post, "/register", pairing.room, {"registrationToken": pairing.phone.token, "verifier": key.verifier})
            self.assertEqual(status, 200)
            pairing.key = key
        late, backs = 0, []
        for _ in range(UPGRADES):
            fleet.endings.clear()
            for pairing in fleet.pairings:
                pairing.whole_since = None
            knocker = Knocker(relay)
            knocker.start()
            began = time.monotonic()
            self.assertEqual(await asyncio.to_thread(relay.stop), 0)
            stopped = time.monotonic() - began
            relay.start(ready=False)
            # A pairing may look whole until it hears of the end: only what follows the restart counts.
            for pairing in fleet.pairings:
                pairing.whole_since = None
                pairing.look()
            await fleet.all_whole(30)
            back = sorted(pairing.whole_since - began for pairing in fleet.pairings)
            answered = await asyncio.to_thread(knocker.finish)
            backs += back
            late += sum(b > 5 * SLACK for b in back)
            print(f"{PAIRINGS} pairings: stopped in {stopped:.2f} s; back p50 {back[len(back) // 2]:.2f} s, "
                  f"p99 {back[-(len(back) // 100) - 1]:.2f} s, last {back[-1]:.2f} s; {sum(b <= 5 for b in back)} within 5 s; "
                  f"{fleet.refused} of the devices' and {knocker.refused} of {knocker.knocks} further connections refused; {fleet.endings}")
            self.assertEqual((fleet.refused, knocker.refused), (0, 0))
            # Who was taken in just before the stop, and had not shaken hands, is closed with everybody else.
            self.assertGreaterEqual(answered, knocker.knocks * 0.8)
        self.assertLessEqual(late, len(backs) // 100)
        self.assertLessEqual(max(backs), 10 * SLACK)
        for task in fleet.tasks:
            task.cancel()
        await asyncio.gather(*fleet.tasks, return_exceptions=True)


if __name__ == "__main__":
    main()
