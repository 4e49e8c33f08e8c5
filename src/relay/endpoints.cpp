// The POST endpoints (1-wire 1.6). /attest goes to the worker and comes back; /register and /delete wait for the room's
// verifier where it is not in memory, and for the store before a 200.
#include "impl.hpp"
#include "tandem/protocol/attest.hpp"
#include "tandem/protocol/derivation.hpp"

#include <algorithm>
#include <cassert>

namespace tandem::relay {
namespace {

using protocol::Answer;

std::string_view path_label(Endpoint e) {
  switch (e) {
    case Endpoint::attest_challenge: return "attest_challenge";
    case Endpoint::attest: return "attest";
    case Endpoint::register_: return "register";
    case Endpoint::delete_: return "delete";
  }
  return {};
}

std::uint32_t seconds_until(TimePoint when, TimePoint now) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, std::chrono::ceil<seconds>(when - now).count()));
}

std::optional<Ed25519PublicKey> decode_verifier(const std::string& text) {
  const auto bytes = base64_decode(text);
  Ed25519PublicKey key;
  if (!bytes || bytes->size() != key.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), key.begin());
  if (!ed25519_is_valid_key(key)) return std::nullopt;
  return key;
}

}  // namespace

// ---------------------------------------------------------------- answers

void Relay::Impl::answer(RequestId id, Endpoint endpoint, Answer a, std::string body, std::uint32_t retry_after) {
  if (endpoint == Endpoint::attest) {
    observer.observe(observed::Attest{label(a), {}});
  } else {
    observer.observe(observed::Endpoint{path_label(endpoint), label(a)});
  }
  if (id.value != 0) emit(effect::Reply{id, status(a), std::move(body), retry_after});
}

void Relay::Impl::refuse(RequestId id, Endpoint endpoint, Answer a, std::string_view detail) {
  answer(id, endpoint, a, protocol::refusal_body(a, detail));
}

// The bucket went while the request was under way: what row 3 of the gate would have said.
void Relay::Impl::misdirect(RequestId id, Endpoint endpoint, const RoomName& room) {
  constexpr Answer kAnswer = Answer::misdirected;
  refuse(id, endpoint, kAnswer);
  if (id.value != 0) std::get<effect::Reply>(effects.back()).owner = ownership.owner_of(room.bucket());
}

// ---------------------------------------------------------------- events

void Relay::Impl::on(const event::RequestReceived& e) {
  if (!owns(e.room)) return misdirect(e.request, e.endpoint, e.room);
  if (e.endpoint == Endpoint::attest_challenge) return challenge(e.request, e.room);
  auto fields = protocol::parse_endpoint_body(e.body);
  if (!fields) return refuse(e.request, e.endpoint, Answer::bad_json);
  if (e.endpoint == Endpoint::attest) return attest(e.request, e.room, *fields);
  Request request{e.room, e.endpoint, std::move(*fields), {}};
  if (e.endpoint == Endpoint::register_) {
    if (!request.fields.verifier) return refuse(e.request, e.endpoint, Answer::missing_verifier);
    const auto verifier = decode_verifier(*request.fields.verifier);
    if (!verifier) return refuse(e.request, e.endpoint, Answer::bad_verifier);
    request.verifier = *verifier;
  }
  wait_for_load(e.request, std::move(request));
}

void Relay::Impl::on(const event::RequestGone& e) { static_cast<void>(abandon(e.request)); }

bool Relay::Impl::is_expected(RequestId id) const {
  return waiting.contains(id) || attesting.contains(id) || write_of_request.contains(id);
}

// -> what it asked for; nothing where it was answered already.
std::optional<Endpoint> Relay::Impl::abandon(RequestId id) {
  if (attesting.erase(id) > 0) return Endpoint::attest;
  if (const auto write = write_of_request.find(id); write != write_of_request.end()) {
    Write& w = writes.at(write->second);
    w.request = {};
    write_of_request.erase(write);
    return w.endpoint;
  }
  auto node = waiting.extract(id);
  if (!node) return std::nullopt;
  const RoomName& room = node.mapped().room;
  const auto in_line = waiting_in_room.find(room);
  std::erase(in_line->second, id);
  if (in_line->second.empty()) waiting_in_room.erase(in_line);
  Entry* entry = registry.find(room);
  --entry->busy;
  settle(*entry);
  return node.mapped().endpoint;
}

// The store or the worker has not answered in time. A registration that is in memory stands, as beside a broken disk;
// everything else is to come again.
void Relay::Impl::advance_requests() {
  while (!expected.empty() && expected.front().first + settings.request <= now.mono) {
    const RequestId id = expected.front().second;
    expected.pop_front();
    const bool stands = write_of_request.contains(id);
    const auto endpoint = abandon(id);
    if (!endpoint) continue;
    if (*endpoint == Endpoint::attest) {
      answer(id, *endpoint, Answer::capacity, protocol::refusal_body(Answer::capacity), 1);
      continue;
    }
    observer.observe(observed::StateError{"the store does not answer"});
    if (stands && *endpoint == Endpoint::register_) {
      answer(id, *endpoint, Answer::ok, protocol::ok_body());
    } else {
      refuse(id, *endpoint, Answer::state_unavailable);
    }
  }
}

// ---------------------------------------------------------------- waiting for the room

void Relay::Impl::wait_for_load(RequestId id, Request request) {
  Entry& entry = room_of(request.room);
  ensure_loaded(entry);
  ++entry.busy;
  waiting_in_room[request.room].push_back(id);
  waiting.emplace(id, std::move(request));
  expect_answer(id);
  if (entry.room.knowledge() == room::Room::Knowledge::known) serve_waiting(entry);
  settle(entry);
}

// The caller settles.
void Relay::Impl::serve_waiting(Entry& entry) {
  const auto line = waiting_in_room.find(entry.room.name());
  if (line == waiting_in_room.end()) return;
  const std::vector<RequestId> ids = std::move(line->second);
  waiting_in_room.erase(line);
  for (const RequestId id : ids) {
    const auto node = waiting.extract(id);
    const Request& request = node.mapped();
    if (request.endpoint == Endpoint::register_) {
      register_verifier(id, entry, request);
    } else {
      delete_room(id, entry, request);
    }
    --entry.busy;
  }
}

void Relay::Impl::refuse_waiting(const RoomName& room) {
  const auto line = waiting_in_room.find(room);
  if (line == waiting_in_room.end()) return;
  const std::vector<RequestId> ids = std::move(line->second);
  waiting_in_room.erase(line);
  Entry* entry = registry.find(room);
  for (const RequestId id : ids) {
    const auto node = waiting.extract(id);
    misdirect(id, node.mapped().endpoint, room);
    --entry->busy;
  }
}

// ---------------------------------------------------------------- /attest/challenge, /attest

void Relay::Impl::challenge(RequestId id, const RoomName& room) {
  Entry& entry = room_of(room);
  auto& challenges = entry.room.secrets().challenges;
  challenges.purge(now.mono);
  if (challenges.is_full()) {
    const Answer a = Answer::too_many_outstanding_challenges;
    answer(id, Endpoint::attest_challenge, a, protocol::refusal_body(a),
           seconds_until(challenges.next_expiry(), now.mono));
  } else {
    answer(id, Endpoint::attest_challenge, Answer::ok,
           protocol::challenge_body(challenges.issue({}, random, now.mono)));
  }
  settle(entry);
}

bool Relay::Impl::spend_challenge(Entry& entry, const std::string& text, Bytes& challenge) {
  auto bytes = base64_decode(text);
  if (!bytes || !entry.room.secrets().challenges.spend(*bytes, now.mono)) return false;
  challenge = std::move(*bytes);
  return true;
}

void Relay::Impl::attest(RequestId id, const RoomName& room, const protocol::EndpointFields& fields) {
  constexpr Endpoint kHere = Endpoint::attest;
  if (!settings.attest_required) return refuse(id, kHere, Answer::attestation_disabled);
  if (!fields.challenge || !fields.attestation_object) return refuse(id, kHere, Answer::missing_fields);
  Entry& entry = room_of(room);
  Bytes challenge;
  if (!spend_challenge(entry, *fields.challenge, challenge)) {
    refuse(id, kHere, Answer::bad_challenge);
  } else if (auto object = base64_decode(*fields.attestation_object); !object || !settings.attest_configured) {
    reject_attestation(id, label(object ? protocol::AttestFault::not_configured : protocol::AttestFault::bad_base64));
  } else {
    attesting.emplace(id, room);
    expect_answer(id);
    emit(effect::VerifyAttestation{id, protocol::client_data_hash(challenge, policy.origin), std::move(*object)});
  }
  settle(entry);
}

// why: for the log alone; the wire has one text for all.
void Relay::Impl::reject_attestation(RequestId id, std::string_view why) {
  constexpr Answer kAnswer = Answer::attestation_rejected;
  observer.observe(observed::Attest{label(kAnswer), why});
  emit(effect::Reply{id, status(kAnswer), protocol::refusal_body(kAnswer), 0});
}

void Relay::Impl::on(const event::AttestationVerified& e) {
  const auto it = attesting.find(e.request);
  if (it == attesting.end()) return;
  const RoomName room = it->second;
  attesting.erase(it);
  constexpr Endpoint kHere = Endpoint::attest;
  if (!owns(room)) return misdirect(e.request, kHere, room);
  if (!e.key && e.why == event::kAttestationBusy) {
    return answer(e.request, kHere, Answer::capacity, protocol::refusal_body(Answer::capacity), 1);
  }
  if (!e.key) return reject_attestation(e.request, e.why);
  Entry& entry = room_of(room);
  auto& tickets = entry.room.secrets().tickets;
  tickets.purge(now.mono);
  if (tickets.is_full()) {
    const Answer a = Answer::too_many_outstanding_tickets;
    answer(e.request, kHere, a, protocol::refusal_body(a), seconds_until(tickets.next_expiry(), now.mono));
  } else {
    const auto ticket = tickets.issue(keys.intern(*e.key), random, now.mono);
    answer(e.request, kHere, Answer::ok, protocol::ticket_body(ticket));
  }
  settle(entry);
}

// ---------------------------------------------------------------- /register, /delete: the room is known; the caller
// settles

void Relay::Impl::register_verifier(RequestId id, Entry& entry, const Request& request) {
  constexpr Endpoint kHere = Endpoint::register_;
  const auto& f = request.fields;
  if (entry.room.registration()) return refuse(id, kHere, Answer::already_registered);
  if (!f.registration_token) return refuse(id, kHere, Answer::token_required);
  const auto token = base64_decode(*f.registration_token);
  auto& tokens = entry.room.secrets().tokens;
  const room::AttestedKeyPtr* found = token ? tokens.find(*token, now.mono) : nullptr;
  if (!found) return refuse(id, kHere, Answer::bad_token);
  const room::AttestedKeyPtr key = *found;
  std::optional<std::uint32_t> counter;
  if (settings.attest_required) {
    if (!key) return refuse(id, kHere, Answer::token_not_attested);
    if (!f.challenge || !f.assertion) return refuse(id, kHere, Answer::assertion_required);
    Bytes challenge;
    if (!spend_challenge(entry, *f.challenge, challenge)) return refuse(id, kHere, Answer::bad_challenge);
    const auto assertion = base64_decode(*f.assertion);
    if (!assertion) return refuse(id, kHere, Answer::assertion_rejected, to_string(protocol::AttestFault::bad_base64));
    const auto verified = protocol::verify_assertion(*assertion, key->point, settings.app_id,
                                                     protocol::client_data_hash(challenge, policy.origin));
    if (!verified) return refuse(id, kHere, Answer::assertion_rejected, to_string(verified.error()));
    if (*verified <= key->counter) return refuse(id, kHere, Answer::stale_assertion);
    key->counter = *verified;
    counter = *verified;
  }
  static_cast<void>(tokens.spend(*token, now.mono));

  room::Registration registration{request.verifier, std::nullopt, now.wall};
  if (key) registration.registrant = key->id;
  room::Turn turn = turn_for(request.room);
  entry.room.establish(registration, turn);
  ++entry.busy;
  writes[++last_write_id] = {id, request.room, kHere};
  write_of_request[id] = last_write_id;
  emit(effect::StoreRoom{
      last_write_id, request.room, {registration.verifier, registration.registrant, now.wall}, counter});
}

void Relay::Impl::delete_room(RequestId id, Entry& entry, const Request& request) {
  constexpr Endpoint kHere = Endpoint::delete_;
  const auto& f = request.fields;
  if (!entry.room.registration()) return refuse(id, kHere, Answer::not_established);
  if (!f.challenge || !f.signature) return refuse(id, kHere, Answer::signature_required);
  Bytes challenge;
  if (!spend_challenge(entry, *f.challenge, challenge)) return refuse(id, kHere, Answer::bad_challenge);
  const auto signature = base64_decode(*f.signature);
  const Bytes transcript = protocol::delete_transcript(challenge, request.room, policy.origin);
  if (!signature || !ed25519_verify(entry.room.registration()->verifier, transcript, *signature)) {
    return refuse(id, kHere, Answer::bad_signature);
  }
  observer.observe(observed::RoomDeleted{request.room});
  room::Turn turn = turn_for(request.room);
  entry.room.wipe(CloseReason::room_deleted, turn);
  ++entry.busy;
  writes[++last_write_id] = {id, request.room, kHere};
  write_of_request[id] = last_write_id;
  emit(effect::WipeRoom{last_write_id, request.room});
}

void Relay::Impl::on(const event::Stored& e) {
  const auto it = writes.find(e.id);
  if (it == writes.end()) return;
  const Write write = it->second;
  writes.erase(it);
  write_of_request.erase(write.request);
  Entry* entry = registry.find(write.room);
  assert(entry && entry->busy > 0);
  --entry->busy;
  // A write that failed still counts in the store's memory, for as long as the process lives.
  if (e.ok || write.endpoint == Endpoint::register_) {
    answer(write.request, write.endpoint, Answer::ok, protocol::ok_body());
  } else {
    refuse(write.request, write.endpoint, Answer::state_unavailable);
  }
  settle(*entry);
}

}  // namespace tandem::relay
