"""App Attest, tickets and attested registration over TLS (wire contract 1.4, 1.6, 1.7): every refusal by its exact text.

    TANDEM_RACES    how often two sockets race for one ticket; TANDEM_RACES=10000 is the run of docs/protocol.md"""
import contextlib
import datetime
import os
import tempfile

import cbor2

from attestation import CA, DEVELOPMENT, ROOT_KEY, VECTOR, Attested, Device, new_key, trusting
from derive import RoomKey, b64, new_room, unb64
from harness import Daemon, RelayCase, main, run_together

OK = (200, {"ok": True})
RACES, RACERS = int(os.environ.get("TANDEM_RACES", "60")), 3
BURSTS, BURST = 6, 8  # a mac's park has eight cycles


def refused(status, error):
    return status, {"ok": False, "error": error}


class AttestCase(RelayCase):
    config = {}

    def setUp(self):
        self.folder = self.temporary_folder()
        self.server = self.relay({**trusting(self.folder), **self.config})
        self.client = Attested(self.server)

    def temporary_folder(self):
        folder = tempfile.TemporaryDirectory(prefix="tandem-test-")
        self.addCleanup(folder.cleanup)
        return folder.name


class Attestation(AttestCase):
    def assert_rejected(self, what, device=None, **how):
        with self.subTest(what):
            self.assertEqual(self.client.attest(self.room, device or Device(), **how), refused(403, "attestation rejected"))

    def setUp(self):
        super().setUp()
        self.room = new_room()

    def test_a_genuine_device_gets_tickets_each_another(self):
        device = Device()
        tickets = {self.client.ticket(self.room, device), self.client.ticket(self.room, device), self.client.ticket(self.room)}
        self.assertEqual(len(tickets), 3)
        self.assertTrue(all(len(unb64(t)) == 24 for t in tickets))

    def test_refusals_before_the_object_is_looked_at(self):
        post = self.server.post
        self.assertEqual(post("/attest", self.room, body=b"[]"), refused(400, "bad json"))
        for fields in ({}, {"challenge": "x"}, {"attestationObject": "x"}, {"challenge": 5, "attestationObject": "x"},
                       {"challenge": "x", "attestationObject": None}):
            self.assertEqual(post("/attest", self.room, fields), refused(400, "missing fields"), fields)
        for challenge in ("", "AAAA", VECTOR["challenge_b64"], b64(os.urandom(32))):
            self.assertEqual(post("/attest", self.room, {"challenge": challenge, "attestationObject": ""}), refused(403, "bad challenge"))

    def test_a_challenge_is_spent_by_the_attempt_and_belongs_to_its_room(self):
        challenge = self.client.challenge(self.room)
        self.assertEqual(self.client.attest(new_room(), Device(), challenge), refused(403, "bad challenge"))
        self.assertEqual(self.client.attest(self.room, Device(), challenge, fmt="none"), refused(403, "attestation rejected"))
        self.assertEqual(self.client.attest(self.room, Device(), challenge), refused(403, "bad challenge"))

    def test_sixteen_challenges_live_in_a_room(self):
        for _ in range(16):
            self.client.challenge(self.room)
        self.assertEqual(self.server.post("/attest/challenge", self.room), refused(429, "too many outstanding challenges"))
        self.client.challenge(new_room())

    def test_sixteen_tickets_live_in_a_room(self):
        device = Device()
        for _ in range(16):
            self.client.ticket(self.room, device)
        self.assertEqual(self.client.attest(self.room, device), refused(429, "too many outstanding tickets"))

    def test_rejects_what_is_wrong_with_the_chain(self):
        past = datetime.datetime(2021, 1, 1)
        self.assert_rejected("one certificate", chain=lambda c: c[:1])
        self.assert_rejected("three", chain=lambda c: [*c, c[1]])
        self.assert_rejected("swapped", chain=lambda c: c[::-1])
        self.assert_rejected("the intermediate twice", chain=lambda c: [CA, CA])
        self.assert_rejected("signed by another", signer=new_key())
        self.assert_rejected("signed by the root", signer=ROOT_KEY)
        self.assert_rejected("expired", end=past)
        self.assert_rejected("not valid yet", start=datetime.datetime(2044, 1, 1))
        self.assert_rejected("junk", chain=lambda c: [b"junk", c[1]])

    def test_rejects_what_is_wrong_with_the_statement(self):
        self.assert_rejected("format", fmt="packed")
        self.assert_rejected("another app", app="TEAMID1234.com.example.other")
        self.assert_rejected("development", aaguid=DEVELOPMENT)
        self.assert_rejected("a counter", counter=1)
        self.assert_rejected("another credential", credential=bytes(32))
        self.assert_rejected("another key", public=new_key().public_key())
        self.assert_rejected("no nonce", extensions=[])
        self.assert_rejected("another nonce", extensions=[b"\x30\x24\xa1\x22\x04\x20" + bytes(32)])
        with self.subTest("made for another origin"):
            challenge = self.client.challenge(self.room)
            body = {"challenge": challenge, "attestationObject": Device().attestation(challenge, "https://elsewhere.test")}
            self.assertEqual(self.server.post("/attest", self.room, body), refused(403, "attestation rejected"))

    def test_hostile_cbor_is_refused_at_once_and_does_no_harm(self):
        for what, raw in (("empty", b""), ("deep", b"\x81" * 40000), ("deep maps", b"\xa1\x61a" * 13000), ("huge", b"\x9b" + b"\xff" * 8),
                          ("huge string", b"\x5b" + b"\xff" * 8), ("indefinite", b"\xbf\xff"), ("junk", os.urandom(20000))):
            with self.subTest(what):
                body = {"challenge": self.client.challenge(self.room), "attestationObject": b64(raw)}
                self.assertEqual(self.server.post("/attest", self.room, body), refused(403, "attestation rejected"))
        self.assert_rejected("trailing", encode=lambda o: cbor2.dumps(o) + b"\0")
        self.client.ticket(self.room)

    def test_the_fixed_vector_is_refused_only_for_its_challenge(self):
        body = {"challenge": VECTOR["challenge_b64"], "attestationObject": VECTOR["attestation_object_b64"]}
        self.assertEqual(self.server.post("/attest", self.room, body), refused(403, "bad challenge"))

    def test_reasons_reach_the_debug_log_and_the_metrics_and_names_do_not(self):
        self.client.attest(self.room, Device(), app="another")
        self.assertIn("wrong_app", self.server.log())
        self.assertEqual(self.server.metric("attest_rejected_total", why="wrong_app"), 1)
        self.assertEqual(self.server.metric("attest_rejected_total"), 1)
        self.assertEqual(self.server.metric("attest_total", result="attestation_rejected"), 1)
        self.assertNotIn(self.room, self.server.log())


class Tickets(AttestCase):
    def test_a_phone_needs_a_ticket_and_a_mac_none(self):
        room = new_room()
        mac = self.server.admit(room, "mac")
        self.assert_refused(*self.server.join(room, "phone"), "ticket required")
        self.assert_refused(*self.server.join(room, "phone", key=RoomKey()), "ticket required")
        for ticket in ("", "x", b64(os.urandom(24))):
            self.assert_refused(*self.server.join(room, "phone", proof={"ticket": ticket}), "bad ticket")
        ticket = self.client.ticket(room)
        phone = self.server.admit(room, "phone", proof={"ticket": ticket})
        self.assert_talk(mac, phone)
        self.assert_refused(*self.server.join(room, "phone", proof={"ticket": ticket}), "bad ticket")

    def test_a_ticket_belongs_to_its_room_and_is_spent_even_without_a_mac(self):
        room, other = new_room(), new_room()
        ticket = self.client.ticket(room)
        self.server.admit(other, "mac")
        self.assert_refused(*self.server.join(other, "phone", proof={"ticket": ticket}), "bad ticket")
        self.assert_refused(*self.server.join(room, "phone", proof={"ticket": ticket}), "mac offline")
        self.server.admit(room, "mac")
        self.assert_refused(*self.server.join(room, "phone", proof={"ticket": ticket}), "bad ticket")

    def race(self, line, device, room):
        """Two sockets of a phone with one ticket, neither waiting for the other. -> what they were told"""
        mac = self.server.admit(room, "mac")
        ticket = Attested(self.server, line).ticket(room, device)
        ends = [self.server.greet(room, "phone")[0] for _ in range(2)]
        for end in ends:
            end.text('{"ticket":"%s"}' % ticket)
        told = [end.message() for end in ends]
        for end, said in zip(ends, told):
            if b'"ok":true' in said:
                self.assert_talk(mac, end)
        for end in (*ends, mac):
            end.drop()
        return told

    def test_of_two_sockets_that_race_one_ticket_one_wins_always(self):
        wrong, raced, rooms = [], [0] * RACERS, iter([new_room() for _ in range(RACES)])

        def racer(at):
            line, device = self.server.line(), Device()
            with contextlib.closing(line.sock):
                for room in rooms:
                    told = self.race(line, device, room)
                    raced[at] += 1
                    won = [said for said in told if b'"ok":true' in said]
                    if len(won) != 1 or told.count(b'{"ok":false,"error":"bad ticket"}') != 1:
                        wrong.append(told)

        run_together(*[lambda at=at: racer(at) for at in range(RACERS)])
        self.assertEqual(wrong, [])
        self.assertEqual(sum(raced), RACES)
        self.assertEqual(self.server.metric("admissions_total", role="phone", via="ticket"), RACES)
        self.assertEqual(self.server.metric("admission_rejects_total", reason="bad_ticket"), RACES)


class Registration(AttestCase):
    def setUp(self):
        super().setUp()
        self.room, self.device, self.key = new_room(), Device(), RoomKey()
        self.mac, self.phone = self.client.pair(self.room, self.device)

    def register(self, device=None, **how):
        return self.client.register(self.room, self.phone.token, self.key.verifier, device or self.device, **how)

    def test_the_attested_key_registers_a_verifier_that_then_lets_both_in(self):
        self.assertEqual(self.register(), OK)
        self.assertEqual(self.register(), refused(403, "already registered"))
        self.assert_refused(*self.server.join(self.room, "mac"), "signature required")
        self.server.admit(self.room, "mac", key=self.key)

    def test_refusals_in_their_order(self):
        post, token = self.server.post, self.phone.token
        self.assertEqual(post("/register", self.room, {"registrationToken": token}), refused(400, "missing verifier"))
        self.assertEqual(post("/register", self.room, {"verifier": b64(bytes(32))}), refused(400, "bad verifier"))
        verifier = {"verifier": self.key.verifier}
        self.assertEqual(post("/register", self.room, verifier), refused(403, "token required"))
        self.assertEqual(post("/register", self.room, {**verifier, "registrationToken": "x"}), refused(403, "bad token"))
        self.assertEqual(post("/register", self.room, {**verifier, "registrationToken": token}), refused(403, "assertion required"))
        asked = {**verifier, "registrationToken": token, "challenge": "x", "assertion": "x"}
        self.assertEqual(post("/register", self.room, asked), refused(403, "bad challenge"))
        self.assertEqual(self.register(), OK)

    def test_a_failed_assertion_spends_the_challenge_and_not_the_token(self):
        for what, how in (("another key", {"key": new_key()}), ("another app", {"app": "x"}), ("not hashed twice", {"short": True}),
                          ("no CBOR", {"encode": lambda o: b"\xff"}), ("trailing", {"encode": lambda o: cbor2.dumps(o) + b"\0"}),
                          ("empty", {"encode": lambda o: b"\xa0"})):
            with self.subTest(what):
                challenge = self.client.challenge(self.room)
                status, answer = self.register(challenge=challenge, **how)
                self.assertEqual(status, 403)
                self.assertRegex(answer["error"], r"^assertion rejected: \S")
                self.assertEqual(self.register(challenge=challenge), refused(403, "bad challenge"))
        self.assertEqual(self.register(), OK)

    def test_counters_only_go_up_over_all_rooms_and_begin_at_one(self):
        self.assertEqual(self.register(counter=0), refused(403, "stale assertion"))
        self.assertEqual(self.register(counter=7), OK)
        other = new_room()
        _, phone = self.client.pair(other, self.device)
        for counter in (7, 6, 1, 0):
            self.assertEqual(self.client.register(other, phone.token, self.key.verifier, self.device, counter=counter),
                             refused(403, "stale assertion"))
        self.assertEqual(self.client.register(other, phone.token, self.key.verifier, self.device, counter=8), OK)

    def test_a_burst_of_registrations_for_one_room_has_one_winner(self):
        lines = [self.server.line() for _ in range(BURST)]
        for at in range(BURSTS):
            with self.subTest(burst=at):
                self.burst(new_room(), Device(), lines)
        for line in lines:
            line.drop()

    def burst(self, room, device, lines):
        """As many registrations of one room as there are lines, all sent before an answer is read."""
        client, mac = Attested(self.server, lines[0]), self.server.admit(room, "mac")
        keys, bodies = [RoomKey() for _ in lines], []
        phones = [self.server.admit(room, "phone", proof={"ticket": client.ticket(room, device)}) for _ in lines]
        for phone, key in zip(phones, keys):
            challenge = client.challenge(room)
            bodies.append({"registrationToken": phone.token, "verifier": key.verifier, "challenge": challenge,
                           "assertion": device.assertion(challenge, self.server.origin)})
        for line, body in zip(lines, bodies):
            line.ask("/register", room, body)
        answers = [line.answer() for line in lines]
        self.assertEqual(answers.count(OK), 1, answers)
        self.assertEqual(answers.count(refused(403, "already registered")), len(lines) - 1, answers)
        won = answers.index(OK)
        self.assert_refused(*self.server.join(room, "mac", key=keys[won - 1]), "bad signature")
        self.server.admit(room, "mac", key=keys[won]).drop()
        for end in (mac, *phones):
            end.drop()


class Modes(AttestCase):
    def test_an_absent_required_means_required_and_no_app_id_rejects_everything(self):
        server = Daemon(trusting(self.folder))
        self.addCleanup(server.finish)
        del server.config["attest"]["required"], server.config["attest"]["app_id"]
        server.start()
        room = new_room()
        server.admit(room, "mac")
        self.assert_refused(*server.join(room, "phone"), "ticket required")
        self.assertEqual(Attested(server).attest(room, Device()), refused(403, "attestation rejected"))
        self.assertIn("app_id", server.log())

    def test_switched_off_there_is_nothing_to_attest(self):
        server = self.relay()
        self.assertEqual(server.post("/attest", new_room(), {}), refused(400, "attestation disabled"))

    def test_a_root_that_cannot_be_read_refuses_to_start(self):
        server = self.relay({"attest": {"required": True, "root_ca": os.path.join(self.folder, "none.pem")}}, ready=False, exits=1)
        self.assertEqual(server.wait(), 1)
        self.assertIn("none.pem", server.log())


if __name__ == "__main__":
    main()
