"""Admission, slots, registration and deletion with attestation off (wire contract 1.4 and 1.6): each rule by its exact words."""
import json
import os
import threading
import time

from derive import RoomKey, b64, new_room, unb64
from harness import PROOF_TIME, RelayCase, eventually, main
from wire import BINARY, SLACK, frame, reset


class Hello(RelayCase):
    def setUp(self):
        self.server = self.relay()

    def test_a_nonce_of_32_bytes_comes_whatever_the_state_of_the_room(self):
        empty, (established, _) = new_room(), self.server.establish()
        seen = set()
        for room in (empty, established):
            for role in ("mac", "phone"):
                end, nonce = self.server.greet(room, role)
                self.assertEqual(len(unb64(nonce)), 32)
                seen.add(nonce)
                end.drop()
        self.assertEqual(len(seen), 4)

    def test_bad_hellos_close_without_a_message(self):
        for text in ("", "{", "[]", "null", '"mac"', "{}", '{"v":1}', '{"role":"mac"}', '{"v":2,"role":"mac"}', '{"v":"1","role":"mac"}',
                     '{"v":1,"role":"tablet"}', '{"v":1,"role":"Mac"}', '{"v":1,"role":5}', '{"v":1.5,"role":"mac"}',
                     '{"v":1,"v":1,"role":"mac"}', '{"v":1,"role":"mac"} x', '{"v":1,"role":"mac",}'):
            with self.subTest(text):
                end = self.server.connect(new_room())
                end.text(text)
                self.assert_ends(end, 1008, "bad hello")

    def test_unknown_fields_are_ignored_and_binary_is_as_good_as_text(self):
        end = self.server.connect(new_room())
        end.send(json.dumps({"v": 1, "role": "mac", "extra": {"a": [1, None]}}), BINARY)
        self.assertIn("nonce", json.loads(end.message()))
        end.send('{"future":true}', BINARY)
        self.assertEqual(json.loads(end.message()), {"ok": True})
        end.close()

    def test_control_messages_have_8_kib(self):
        pad = lambda text, size: text[:-1] + " " * (size - len(text)) + text[-1]  # noqa: E731
        end = self.server.connect(new_room())
        end.text(pad('{"v":1,"role":"mac"}', 8192))
        end.message()
        end.text(pad("{}", 8193))
        self.assert_ends(end, 1009, "frame too large")
        end = self.server.connect(new_room())
        end.send_bytes(frame(1, b"{", claims=8193, form=16))  # the header alone says it
        self.assert_ends(end, 1009, "frame too large")

    def test_an_unadmitted_socket_has_its_time(self):
        quick = self.relay({"timeouts": {"admission": "1s"}})
        silent, (greeted, _) = quick.connect(new_room()), quick.greet(new_room(), "mac")
        admitted = quick.admit(new_room(), "mac")
        began = time.monotonic()
        self.assert_ends(silent, 1008, "admission timeout", 3)
        self.assertGreater(time.monotonic() - began, 0.5)
        self.assert_ends(greeted, 1008, "admission timeout", 3)
        admitted.stays_open(0.3)
        admitted.close()

    def test_a_fifth_unadmitted_socket_closes_the_oldest(self):
        room = new_room()
        mac = self.server.admit(room, "mac")
        waiting = [self.server.greet(room, "phone")[0] for _ in range(4)]
        for end in waiting:
            end.stays_open(0.1)
        late = self.server.connect(room)
        self.assert_ends(waiting[0], 1008, "too many pending")
        for end in (*waiting[1:], late, mac):
            end.stays_open(0.1)
            end.drop()


class Proof(RelayCase):
    def setUp(self):
        self.server = self.relay()

    def test_malformed_proofs_are_bad_proofs(self):
        for text in ("", "{", "[]", "null", "1", '"sig"', '{"sig":"a","sig":"b"}', "{} {}", "{}\0"):
            with self.subTest(text):
                end, _ = self.server.greet(new_room(), "mac")
                end.text(text)
                self.assert_refused(end, json.loads(end.message()), "bad proof")

    def test_an_open_room_admits_a_mac_whatever_it_signs(self):
        for proof in ({}, {"sig": "nonsense"}, {"ticket": "none"}):
            end, result = self.server.join(new_room(), "mac", proof)
            self.assertEqual(result, {"ok": True})
            end.close()

    def test_a_phone_gets_a_registration_token(self):
        mac, phone = self.server.pair()
        self.assertEqual(len(unb64(phone.token)), 24)
        self.assertIsNone(mac.token)
        self.assert_talk(mac, phone)
        mac.drop(), phone.drop()

    def test_a_phone_without_a_mac_hears_mac_offline(self):
        end, result = self.server.join(new_room(), "phone")
        self.assert_refused(end, result, "mac offline")
        self.assertEqual(self.server.metric("phone_no_mac_total"), 1)

    def test_an_established_room_wants_a_signature(self):
        room, key = self.server.establish()
        for role in ("mac", "phone"):
            for proof in ({}, {"ticket": b64(os.urandom(24))}, {"sig": 5}, {"sig": None}):
                end, result = self.server.join(room, role, proof)
                self.assert_refused(end, result, "signature required")
        mac, result = self.server.join(room, "mac", key=key)
        self.assertEqual(result, {"ok": True})
        phone, result = self.server.join(room, "phone", key=key)
        self.assertEqual((result["ok"], len(unb64(result["registrationToken"]))), (True, 24))
        self.assert_talk(mac, phone)
        mac.drop(), phone.drop()

    def test_a_signature_is_good_for_its_key_role_nonce_room_and_origin_alone(self):
        room, key = self.server.establish()
        other, _ = self.server.establish()
        origin = self.server.origin

        def says(role, sign):
            end, nonce = self.server.greet(room, role)
            end.text(json.dumps({"sig": sign(nonce)}))
            return end, json.loads(end.message())

        flipped = lambda sig: b64(bytes([unb64(sig)[0] ^ 1]) + unb64(sig)[1:])  # noqa: E731
        wrong = {
            "another key": lambda n: RoomKey().sign_join("mac", n, room, origin),
            "another role": lambda n: key.sign_join("phone", n, room, origin),
            "another nonce": lambda n: key.sign_join("mac", b64(os.urandom(32)), room, origin),
            "another room": lambda n: key.sign_join("mac", n, other, origin),
            "another origin": lambda n: key.sign_join("mac", n, room, "https://relay2.test"),
            "an origin with a slash": lambda n: key.sign_join("mac", n, room, origin + "/"),
            "one bit": lambda n: flipped(key.sign_join("mac", n, room, origin)),
            "one byte less": lambda n: b64(unb64(key.sign_join("mac", n, room, origin))[:-1]),
            "no padding": lambda n: key.sign_join("mac", n, room, origin).rstrip("="),
            "a delete's": lambda n: key.sign_delete(n, room, origin),
            "nothing": lambda n: "",
        }
        for why, sign in wrong.items():
            with self.subTest(why):
                end, result = says("mac", sign)
                self.assert_refused(end, result, "bad signature")

    def test_the_host_header_has_no_say_in_the_origin(self):
        room, key = self.server.establish()
        end = self.server.connect(room, without=["Host"], extra=[("Host", "evil.example")])
        end.text('{"v":1,"role":"mac"}')
        nonce = json.loads(end.message())["nonce"]
        end.text(json.dumps({"sig": key.sign_join("mac", nonce, room, self.server.origin)}))
        self.assertEqual(json.loads(end.message()), {"ok": True})
        end.close()

    def test_forty_proofs_in_ten_seconds_and_no_more(self):
        room, key = self.server.establish()
        other = self.server.establish()[0]
        for _ in range(38):  # establishing it took two
            end, result = self.server.join(room, "mac", {"sig": "bad"})
            self.assertEqual(result["error"], "bad signature")
            end.drop()
        end, result = self.server.join(room, "mac", key=key)
        self.assert_refused(end, result, "rate limited")
        end, result = self.server.join(other, "mac", {"sig": "bad"})
        self.assert_refused(end, result, "bad signature")

    def test_everything_in_one_write_loses_nothing(self):
        room = new_room()
        mac = self.server.admit(room, "mac")
        phone = self.server.connect(room, behind=frame(1, b'{"v":1,"role":"phone"}') + frame(1, b"{}") + frame(2, b"one") + frame(1, b"two"))
        self.assertIn("nonce", json.loads(phone.message()))
        self.assertTrue(json.loads(phone.message())["ok"])
        self.assertEqual([mac.receive(), mac.receive()], [(2, b"one"), (1, b"two")])
        mac.drop(), phone.drop()


class Slots(RelayCase):
    def setUp(self):
        self.server = self.relay()

    def test_a_newcomer_displaces_and_the_peer_is_left_alone(self):
        for role in ("mac", "phone"):
            room = new_room()
            mac, phone = self.server.pair(room)
            old, peer = (mac, phone) if role == "mac" else (phone, mac)
            new = self.server.admit(room, role)
            self.assert_ends(old, 1000, "displaced")
            peer.stays_open(0.2)
            self.assert_talk(new, peer)
            new.drop(), peer.drop()

    def test_what_the_displaced_sends_reaches_nobody(self):
        room = new_room()
        mac, phone = self.server.pair(room)
        newer = self.server.admit(room, "phone")
        for _ in range(5):
            phone.try_send(frame(2, b"from the grave"))
        newer.send(b"alive")
        self.assertEqual(mac.message(), b"alive")
        self.assert_ends(phone, 1000, "displaced")
        mac.stays_open(0.2)
        mac.drop(), newer.drop()

    def test_non_displacing_finds_the_slot_occupied(self):
        room = new_room()
        mac, phone = self.server.pair(room)
        for role in ("mac", "phone"):
            for _ in range(10):  # it spends no cycle of the pairing
                end, result = self.server.join(room, role, hello={"nonDisplacing": True})
                self.assert_refused(end, result, "slot occupied")
        self.assert_talk(mac, phone)
        phone.close()
        self.assert_ends(mac, 1001, "peer gone")
        end, result = self.server.join(room, "mac", hello={"nonDisplacing": True})
        self.assertEqual(result, {"ok": True})
        end.close()

    def test_the_ninth_phone_of_a_park_tears_the_room_down(self):
        room = new_room()
        mac = self.server.admit(room, "mac")
        phones = []
        for _ in range(8):
            phones.append(self.server.admit(room, "phone"))
        ninth, _ = self.server.greet(room, "phone")
        waiting, _ = self.server.greet(room, "phone")
        ninth.text("{}")
        for end in (ninth, mac, phones[-1], waiting):
            self.assert_ends(end, 1000, "pairing cycle cap")
        for end in phones[:-1]:
            self.assert_ends(end, 1000, "displaced")

    def test_a_new_park_gives_new_cycles(self):
        room = new_room()
        mac = self.server.admit(room, "mac")
        ends = [self.server.admit(room, "phone") for _ in range(8)]
        newer = self.server.admit(room, "mac")
        ends += [self.server.admit(room, "phone") for _ in range(8)]
        self.assert_talk(newer, ends[-1])
        for end in (mac, newer, *ends):
            end.drop()

    def test_an_established_room_has_no_cycles(self):
        room, key = self.server.establish()
        mac = self.server.admit(room, "mac", key=key)
        ends = [self.server.admit(room, "phone", key=key) for _ in range(12)]
        self.assert_talk(mac, ends[-1])
        for end in (mac, *ends):
            end.drop()


class Rendezvous(RelayCase):
    def setUp(self):
        self.server = self.relay({"timeouts": {"rendezvous": "2s"}})

    def held(self, room, **how):
        end, _ = self.server.greet(room, "phone", **how)
        end.text("{}")
        return end

    def test_a_phone_is_held_for_its_mac(self):
        room = new_room()
        phone = self.held(room)
        phone.stays_open(0.4)
        mac = self.server.admit(room, "mac")
        result = json.loads(phone.message(PROOF_TIME))
        self.assertTrue(result["ok"])
        self.assert_talk(mac, phone)
        mac.drop(), phone.drop()

    def test_and_no_longer_than_its_time(self):
        began, phone = time.monotonic(), self.held(new_room())
        result = json.loads(phone.message(5))
        took = time.monotonic() - began
        self.assert_refused(phone, result, "mac offline")
        self.assertGreater(took, 1.8)
        self.assertLess(took, 3.1 * SLACK)

    def test_the_newest_held_phone_wins(self):
        room = new_room()
        older, newer = self.held(room), self.held(room)
        mac = self.server.admit(room, "mac")
        self.assertTrue(json.loads(newer.message(PROOF_TIME))["ok"])
        self.assert_ends(older, 1000, "displaced")
        self.assert_talk(mac, newer)
        mac.drop(), newer.drop()

    def test_a_held_phone_that_leaves_is_missed_at_once_whatever_it_sent(self):
        server = self.relay({"timeouts": {"rendezvous": "10s"}})
        for behind in (b"", frame(BINARY, b"early"), frame(BINARY, bytes(8000)) * 30):
            for leave in (lambda end: end.drop(), lambda end: reset(end.sock)):
                phone, _ = server.greet(new_room(), "phone")
                phone.text("{}")
                phone.send_bytes(behind)
                eventually(lambda: server.metric("sockets", state="pending") == 1, what="a held phone")
                leave(phone)
                eventually(lambda: server.metric("sockets", state="pending") == 0, 1.5, what=f"the end noticed behind {len(behind)} bytes")

    def test_what_a_held_phone_has_sent_arrives(self):
        room = new_room()
        phone = self.held(room)
        messages = [os.urandom(7000) for _ in range(30)]
        sender = threading.Thread(target=lambda: [phone.send(m) for m in messages])
        sender.start()
        time.sleep(0.3)
        mac = self.server.admit(room, "mac")
        self.assertEqual([mac.message() for _ in messages], messages)
        sender.join()
        self.assertTrue(json.loads(phone.message())["ok"])
        self.assert_talk(mac, phone)
        mac.drop(), phone.drop()

    def test_a_held_phone_counts_as_unadmitted(self):
        room = new_room()
        held = [self.held(room) for _ in range(4)]
        late = self.server.connect(room)
        self.assert_ends(held[0], 1008, "too many pending")
        for end in (*held, late):
            end.drop()


class Endpoints(RelayCase):
    """POST /attest/challenge, /register and /delete without attestation."""

    def setUp(self):
        self.server = self.relay()

    def says(self, path, room, fields, status, error):
        self.assertEqual(self.server.post(path, room, fields), (status, {"ok": False, "error": error}))

    def challenge(self, room):
        status, said = self.server.post("/attest/challenge", room)
        self.assertEqual((status, said["ok"], len(unb64(said["challenge"]))), (200, True, 32))
        return said["challenge"]

    def test_a_challenge_ignores_its_body(self):
        for body in (b"", b"nonsense", b"{}", b"\xff\xfe"):
            status, said = self.server.post("/attest/challenge", new_room(), body=body)
            self.assertEqual((status, said["ok"]), (200, True))

    def test_sixteen_challenges_are_outstanding_at_most(self):
        room = new_room()
        for _ in range(16):
            self.challenge(room)
        self.says("/attest/challenge", room, {}, 429, "too many outstanding challenges")
        self.challenge(new_room())

    def test_bodies_that_are_no_objects(self):
        for path in ("/register", "/delete"):
            for body in (b"", b"{", b"[]", b"null", b"7", b'"x"', b"{}{}", b'{"a":1,"a":2}', b"\xff", b'{"verifier":"\xff"}'):
                with self.subTest((path, body)):
                    self.assertEqual(self.server.post(path, new_room(), body=body), (400, {"ok": False, "error": "bad json"}))

    def test_attestation_is_disabled(self):
        for fields in ({}, {"challenge": "x", "attestationObject": "y"}):
            self.says("/attest", new_room(), fields, 400, "attestation disabled")

    def test_registering_answers_in_order(self):
        room = new_room()
        mac, phone = self.server.pair(room)
        good = RoomKey().verifier
        low_order = b64(bytes(32))
        self.says("/register", room, {}, 400, "missing verifier")
        self.says("/register", room, {"verifier": 7}, 400, "missing verifier")
        for bad in ("", "x", b64(bytes(31)), b64(bytes(33)), good.rstrip("="), good + "\n", good.replace("=", "=="), low_order,
                    b64(b"\x02" + bytes(31)), b64(b"\xff" * 32), b64(b"\x01" + bytes(31))):
            self.says("/register", room, {"verifier": bad, "registrationToken": phone.token}, 400, "bad verifier")
        self.says("/register", room, {"verifier": good}, 403, "token required")
        self.says("/register", room, {"verifier": good, "registrationToken": None}, 403, "token required")
        self.says("/register", room, {"verifier": good, "registrationToken": ""}, 403, "bad token")
        self.says("/register", room, {"verifier": good, "registrationToken": b64(os.urandom(24))}, 403, "bad token")
        other_mac, other = self.server.pair()
        self.says("/register", room, {"verifier": good, "registrationToken": other.token}, 403, "bad token")
        self.assertEqual(self.server.post("/register", room, {"verifier": good, "registrationToken": phone.token}), (200, {"ok": True}))
        self.says("/register", room, {"verifier": good, "registrationToken": phone.token}, 403, "already registered")
        self.says("/register", room, {"verifier": RoomKey().verifier}, 403, "already registered")
        self.assert_talk(mac, phone)
        for end in (mac, phone, other_mac, other):
            end.drop()

    def test_the_oldest_of_seventeen_tokens_goes(self):
        room, key = new_room(), RoomKey()
        macs, phones = [], []
        for at in range(17):
            if at % 8 == 0:
                macs.append(self.server.admit(room, "mac"))
            phones.append(self.server.admit(room, "phone"))
        self.says("/register", room, {"verifier": key.verifier, "registrationToken": phones[0].token}, 403, "bad token")
        self.assertEqual(self.server.post("/register", room, {"verifier": key.verifier, "registrationToken": phones[1].token})[0], 200)
        for end in (*macs, *phones):
            end.drop()

    def test_deleting_answers_in_order_and_wipes(self):
        room, key = new_room(), RoomKey()
        self.says("/delete", room, {"challenge": "x", "signature": "y"}, 403, "not established")
        room, key = self.server.establish(room)
        for fields in ({}, {"challenge": self.challenge(room)}, {"signature": "y"}, {"challenge": 1, "signature": 2}):
            self.says("/delete", room, fields, 403, "signature required")
        self.says("/delete", room, {"challenge": b64(os.urandom(32)), "signature": "y"}, 403, "bad challenge")
        spent = self.challenge(room)
        self.says("/delete", room, {"challenge": spent, "signature": b64(bytes(64))}, 403, "bad signature")
        signature = key.sign_delete(spent, room, self.server.origin)
        self.says("/delete", room, {"challenge": spent, "signature": signature}, 403, "bad challenge")
        foreign = self.challenge(new_room())
        signature = key.sign_delete(foreign, room, self.server.origin)
        self.says("/delete", room, {"challenge": foreign, "signature": signature}, 403, "bad challenge")
        mac, phone = self.server.pair(room, key=key)
        pending, _ = self.server.greet(room, "phone")
        challenge = self.challenge(room)
        signature = key.sign_delete(challenge, room, self.server.origin)
        self.assertEqual(self.server.post("/delete", room, {"challenge": challenge, "signature": signature}), (200, {"ok": True}))
        self.assert_ends(mac, 1000, "room deleted")
        self.assert_ends(phone, 1000, "room deleted")
        pending.ending()
        again, result = self.server.join(room, "mac")  # an open room once more
        self.assertEqual(result, {"ok": True})
        again.close()

    def test_base64_is_strict(self):
        room, key = self.server.establish()
        challenge = self.challenge(room)
        signature = key.sign_delete(challenge, room, self.server.origin)
        for bent in (signature.rstrip("="), signature + "=", signature + "\n", " " + signature, signature[:-4]):
            self.assertEqual(self.server.post("/delete", room, {"challenge": challenge, "signature": bent})[0], 403)
            challenge = self.challenge(room)
            signature = key.sign_delete(challenge, room, self.server.origin)


class AttestationOn(RelayCase):
    """What a phone hears that brings no ticket; the rest of attestation has its own tests."""

    def test_a_phone_of_a_pairing_room_needs_a_ticket(self):
        relay = self.relay({"attest": {"required": True, "app_id": "TEAMID.example.app"}})
        room = new_room()
        mac = relay.admit(room, "mac")
        for proof, reason in (({}, "ticket required"), ({"sig": "x"}, "ticket required"), ({"ticket": ""}, "bad ticket"),
                              ({"ticket": b64(os.urandom(24))}, "bad ticket")):
            end, result = relay.join(room, "phone", proof)
            self.assert_refused(end, result, reason)
        mac.stays_open(0.1)
        mac.drop()


if __name__ == "__main__":
    main()
