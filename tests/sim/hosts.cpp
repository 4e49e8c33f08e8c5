// Hosts: their processes, shells, stores and polls, and the invariants that are checked after every call into a relay.
#include "sim/sim.hpp"

#include <algorithm>
#include <cstdio>

namespace tandem::sim {
namespace {

constexpr Duration kPoll = seconds(3);

// One line of a trace.
std::string describe(const Host& h, TimePoint now, const relay::Effect& effect) {
  namespace fx = relay::effect;
  char head[64];
  std::snprintf(head, sizeof head, "%12.6f %s/%lu ", to_seconds(now.time_since_epoch()) - 3600, h.name.c_str(), h.life);
  const auto of = [&](SocketId id) {
    const auto it = h.connections.find(id);
    std::string text = std::to_string(id.value);
    if (it == h.connections.end()) return text;
    return text + (it->second->endpoint < 0 ? " (stranger" : " (endpoint " + std::to_string(it->second->endpoint)) +
           ", room " + it->second->room.tag() + ")";
  };
  std::string line = head;
  if (const auto* s = std::get_if<fx::Send>(&effect)) return line + "send " + of(s->socket) + " " + s->text;
  if (const auto* a = std::get_if<fx::Admit>(&effect))
    return line + "admit " + of(a->socket) + " " + std::string(to_string(a->role));
  if (const auto* sp = std::get_if<fx::Splice>(&effect)) return line + "splice " + of(sp->mac) + " " + of(sp->phone);
  if (const auto* c = std::get_if<fx::Close>(&effect)) return line + "close " + of(c->socket) + " " + c->text;
  if (const auto* r = std::get_if<fx::Reply>(&effect))
    return line + "reply " + std::to_string(r->status) + " " + r->body;
  if (const auto* l = std::get_if<fx::LoadRoom>(&effect)) return line + "load " + l->room.tag();
  if (const auto* st = std::get_if<fx::StoreRoom>(&effect))
    return line + "store " + st->room.tag() + (h.store_works ? "" : " (fails)");
  if (const auto* w = std::get_if<fx::WipeRoom>(&effect)) return line + "wipe " + w->room.tag();
  if (const auto* b = std::get_if<fx::WipeBuckets>(&effect))
    return line + "wipe " + std::to_string(b->buckets.size()) + " buckets";
  if (std::get_if<fx::SweepIdle>(&effect)) return line + "sweep";
  return line + "effect " + std::to_string(effect.index());
}

}  // namespace

void Host::observe(const Observed& what) {
  if (const auto* e = std::get_if<observed::RoomEvicted>(&what)) {
    evictions.push_back(sim->now_);
    ++sim->report_.evictions;
    const auto lost = lost_at.find(e->room.bucket().value);
    sim->expect(lost != lost_at.end() && sim->now_ - lost->second >= sim->settings_.drain_delay,
                "drain: a room was evicted before its bucket's wait was over");
    while (!evictions.empty() && sim->now_ - evictions.front() >= seconds(1)) evictions.pop_front();
    sim->expect(static_cast<double>(evictions.size()) <= sim->settings_.eviction_rate + 1,
                "drain: faster than the rate");
  } else if (std::get_if<observed::Admitted>(&what)) {
    ++sim->report_.admissions;
  }
}

bool Host::has_sockets(const RoomName& room) const {
  return std::any_of(connections.begin(), connections.end(), [&](const auto& c) { return c.second->room == room; });
}

void Host::socket_left(const RoomName& room) {
  if (!stored_no_more.contains(room) || has_sockets(room)) return;
  stored_no_more.erase(room);
  established.erase(room);
}

// ---------------------------------------------------------------- processes

void Sim::boot(Host& h) {
  if (h.up) return;
  h.up = true;
  ++h.life;
  relay::Settings s = settings_;
  s.hostname = h.name;
  if (plant_ == Plant::drain_early) s.drain_delay /= 10;
  if (plant_ == Plant::drain_fast) s.eviction_rate *= 100;
  h.random = std::make_unique<SeededRandom>(random_.next());
  h.relay = std::make_unique<relay::Relay>(s, *h.random, h);
  h.map = nullptr;
  h.lost_at.clear();
  h.evictions.clear();
  h.established.clear();
  h.stored_no_more.clear();
  for (const auto& [room, stored] : h.store.rooms) h.established[room] = stored.verifier;
  h.tick_at = kNever;
  if (h.store.floor) feed(h, relay::event::FloorLoaded{*h.store.floor});
  tick(h);
  poll(h, h.life);
}

void Sim::kill(Host& h) {
  ++report_.kills;
  h.up = false;
  ++h.life;
  h.relay.reset();
  for (const RoomName& room : h.store.unsaved) h.store.rooms.erase(room);
  h.store.unsaved.clear();
  for (auto& [id, c] : h.connections) {
    c->open = false;
    c->meter = nullptr;
    send_end_down(c, CloseReason::reset);
  }
  h.connections.clear();
}

void Sim::poll(Host& h, std::uint64_t life) {
  if (h.life != life || !h.up) return;
  if (quiet_ || chance(0.9)) feed_map(h, edge_map());
  if (!leaving_) after(kPoll + some(milliseconds(500)), [this, &h, life] { poll(h, life); });
}

void Sim::feed_map(Host& h, const std::shared_ptr<const shard::ShardMap>& map) {
  // The adoption rule, once more: greater than the newest seen; as the first map of a life, the floor's own version
  // too.
  const MapVersion version = map->version();
  const bool adopt = h.map ? version > h.map->version() : !h.store.floor || version >= *h.store.floor;
  if (adopt) {
    for (std::uint16_t b = 1000; b < 1006; ++b) {
      const std::string& owner = map->host_of(Bucket{b});
      if (owner == h.name) {
        h.lost_at.erase(b);
      } else if (!h.map || h.map->host_of(Bucket{b}) != owner) {
        h.lost_at[b] = now_;
      }
    }
    h.map = map;
    if (plant_ == Plant::hide_map && version.value % 3 == 0) return;
  }
  feed(h, relay::event::MapReceived{map});
  if (plant_ == Plant::hide_map) return;
  const bool adopted = h.relay->last_map_outcome().kind == relay::MapOutcome::Kind::adopted;
  expect(adopted == adopt,
         "maps: version " + std::to_string(version.value) + " was " + (adopted ? "" : "not ") + "adopted");
}

// ---------------------------------------------------------------- calls

void Sim::feed(Host& h, const relay::Event& event) {
  if (h.store_works) h.store.unsaved.clear();  // a disk that works again takes what memory held
  if (plant_ == Plant::leak_socket && std::get_if<relay::event::SocketEnded>(&event) && chance(0.2)) return;
  perform(h, h.relay->handle(event, now_of(h)));
}

void Sim::tick(Host& h) {
  if (!h.up) return;
  perform(h, h.relay->advance(now_of(h)));
}

void Sim::perform(Host& h, relay::Effects effects) {
  for (relay::Effect& e : effects) perform_one(h, e);
  check(h);
  const TimePoint due = h.relay->next_deadline();
  if (due < h.tick_at) {
    h.tick_at = due;
    at(due, [this, &h, due, life = h.life] {
      if (h.life != life || h.tick_at != due) return;
      h.tick_at = kNever;
      tick(h);
    });
  }
}

void Sim::perform_one(Host& h, relay::Effect& effect) {
  namespace fx = relay::effect;
  if (trace_) std::printf("%s\n", describe(h, now_, effect).c_str());
  const auto connection = [&](SocketId id) -> const std::shared_ptr<Connection>& {
    const auto it = h.connections.find(id);
    expect(it != h.connections.end(), "effects: one for a socket that is gone");
    return it->second;
  };
  const auto answer_later = [&](relay::Event event) {
    after(some(milliseconds(chance(0.02) ? 3000 : 20)), [this, &h, life = h.life, event = std::move(event)] {
      if (h.life == life) feed(h, event);
    });
  };
  if (auto* e = std::get_if<fx::Send>(&effect)) {
    const auto& c = connection(e->socket);
    expect(!c->admitted, "effects: a message to an admitted socket");
    if (e->text.starts_with("{\"nonce\"")) {
      if (plant_ == Plant::weak_random && chance(0.1))
        e->text = "{\"nonce\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}";
      expect(nonces_.insert(e->text).second, "secrets: a nonce was used twice");
    }
    if (plant_ == Plant::admit_refused && e->text.starts_with("{\"ok\":false") && chance(0.3)) {
      relay::Effect admit = fx::Admit{e->socket, Role::phone, nullptr};
      perform_one(h, admit);
      return;
    }
    send_down(c, e->text);
  } else if (auto* a = std::get_if<fx::Admit>(&effect)) {
    const auto& c = connection(a->socket);
    expect(!c->admitted, "admission: twice");
    expect(h.map && h.map->host_of(c->room.bucket()) == h.name,
           "ownership: a room was admitted that the map gives to another");
    const bool stranger = c->endpoint < 0;
    expect(!stranger || !h.established.contains(c->room), "admission: a stranger in an established room");
    expect(!stranger || a->role == Role::mac || !attested_, "admission: a stranger's phone without a ticket");
    expect(a->meter != nullptr, "admission: without a meter, or of a refused socket");
    c->admitted = true;
    c->role = a->role;
    c->meter = a->meter;
    at(now_, [this, c] {  // what waited behind the proof, once all effects are performed
      for (std::string& text : std::exchange(c->held, {})) deliver_up(c, std::move(text));
    });
  } else if (auto* s = std::get_if<fx::Splice>(&effect)) {
    std::shared_ptr<Connection> mac = connection(s->mac), phone = connection(s->phone);
    if (plant_ == Plant::cross_splice && chance(0.3)) {
      for (auto& [id, other] : h.connections) {
        if (other->admitted && other->role == Role::mac && other->room != mac->room) mac = other;
      }
    }
    expect(mac->admitted && phone->admitted && mac->role == Role::mac && phone->role == Role::phone,
           "splice: of whom?");
    expect(mac->room == phone->room, "splice: across rooms");
    mac->peer = phone->id;
    phone->peer = mac->id;
  } else if (auto* u = std::get_if<fx::Unsplice>(&effect)) {
    connection(u->socket)->peer = {};
  } else if (auto* cl = std::get_if<fx::Close>(&effect)) {
    close(h, *cl);
  } else if (auto* r = std::get_if<fx::Reply>(&effect)) {
    const auto it = requests_.find(r->request);
    expect(it != requests_.end(), "requests: answered twice, or never asked");
    after(some(milliseconds(80)), [then = it->second, status = r->status, body = r->body] { then(status, body); });
    requests_.erase(it);
  } else if (auto* l = std::get_if<fx::LoadRoom>(&effect)) {
    if (plant_ == Plant::lose_loads) return;
    const auto it = h.store.rooms.find(l->room);
    answer_later(
        relay::event::RoomLoaded{l->room, it == h.store.rooms.end() ? std::nullopt : std::optional(it->second)});
  } else if (auto* st = std::get_if<fx::StoreRoom>(&effect)) {
    h.established[st->room] = st->stored.verifier;
    h.stored_no_more.erase(st->room);
    const bool works = h.store_works;
    if (plant_ != Plant::forget_stored) h.store.rooms[st->room] = st->stored;
    if (!works) h.store.unsaved.insert(st->room);
    answer_later(relay::event::Stored{st->id, works});
  } else if (auto* w = std::get_if<fx::WipeRoom>(&effect)) {
    h.established.erase(w->room);
    h.store.rooms.erase(w->room);
    if (w->id != 0) answer_later(relay::event::Stored{w->id, true});
  } else if (auto* wb = std::get_if<fx::WipeBuckets>(&effect)) {
    const std::set<Bucket> gone(wb->buckets.begin(), wb->buckets.end());
    const auto moved = [&](const auto& kv) { return gone.contains(kv.first.bucket()); };
    std::erase_if(h.store.rooms, moved);
    for (auto it = h.established.begin(); it != h.established.end();) {
      const bool lives = moved(*it) && h.has_sockets(it->first);
      if (lives) h.stored_no_more.insert(it->first);  // established until it empties, or is evicted
      it = moved(*it) && !lives ? h.established.erase(it) : std::next(it);
    }
  } else if (auto* t = std::get_if<fx::TouchRoom>(&effect)) {
    if (const auto it = h.store.rooms.find(t->room); it != h.store.rooms.end()) it->second.last_activity = t->at;
  } else if (auto* f = std::get_if<fx::StoreFloor>(&effect)) {
    h.store.floor = f->floor;
  } else if (auto* sw = std::get_if<fx::SweepIdle>(&effect)) {
    // A clock that had jumped when the process started expires by what it says; a room in memory answers for itself.
    std::erase_if(h.store.rooms, [&](const auto& kv) {
      if (kv.second.last_activity >= sw->before) return false;
      if (!h.has_sockets(kv.first)) h.established.erase(kv.first);
      return true;
    });
  } else if (auto* v = std::get_if<fx::VerifyAttestation>(&effect)) {
    relay::AttestedKey key;
    key.id = sha256(v->object);
    answer_later(relay::event::AttestationVerified{v->request, key, {}});
  }
}

void Sim::close(Host& h, const relay::effect::Close& e) {
  if (plant_ == Plant::keep_displaced && e.reason == CloseReason::displaced) return;
  const auto it = h.connections.find(e.socket);
  expect(it != h.connections.end(), "effects: a close of a socket that is gone");
  const std::shared_ptr<Connection> c = it->second;
  std::string text = e.text;
  if (plant_ == Plant::mute_close && chance(0.2)) text.clear();
  expect(!text.empty() && text.size() <= 123 && close_code(e.reason) != 1006, "close: without a reason");
  expect(text.starts_with(close_text(e.reason)), "close: the text is not the reason's");
  if (trace_)
    std::printf("%12.6f %s closes %lu: %s\n", to_seconds(now_.time_since_epoch()), h.name.c_str(), e.socket.value,
                text.c_str());
  h.connections.erase(it);
  h.socket_left(c->room);
  c->open = false;
  c->meter = nullptr;
  if (const auto peer = h.connections.find(c->peer); peer != h.connections.end()) {
    if (peer->second->peer == c->id) peer->second->peer = {};
  }
  send_end_down(c, e.reason);
}

// ---------------------------------------------------------------- the invariants of a host

void Sim::check(Host& h) {
  expect(h.relay->is_consistent(), "consistency: the relay at " + h.name);
  std::map<std::pair<RoomName, Role>, SocketId> slots;
  std::map<RoomName, int> pending;
  for (const auto& [id, c] : h.connections) {
    if (!c->admitted) {
      expect(++pending[c->room] <= 4, "slots: a fifth un-admitted socket");
      continue;
    }
    expect(slots.emplace(std::pair(c->room, c->role), id).second,
           "slots: two " + std::string(to_string(c->role)) + "s in a room at " + h.name);
  }
  for (const auto& [slot, id] : slots) {
    const auto other_one = slots.find({slot.first, other(slot.second)});
    const SocketId expected = other_one == slots.end() ? SocketId{} : other_one->second;
    expect(h.connections.at(id)->peer == expected,
           "splice: an admitted socket has another peer than its room's other end");
    expect(slot.second == Role::mac || expected.value != 0, "slots: a phone without a mac");
  }
}

// ---------------------------------------------------------------- the shell's inputs

std::shared_ptr<Connection> Sim::upgrade(Host& h, const RoomName& room, const ClientKey& client, int endpoint) {
  if (!h.up || !h.relay->check_owner(room).ours) return nullptr;
  if (h.relay->charge(relay::RequestKind::upgrade, room, client, now_of(h)).refused) return nullptr;
  auto c = std::make_shared<Connection>();
  c->id = SocketId{++next_socket_};
  c->host = h.index;
  c->life = h.life;
  c->endpoint = endpoint;
  c->room = room;
  c->client = client;
  h.connections.emplace(c->id, c);
  feed(h, relay::event::SocketOpened{c->id, room, client});
  return c;
}

void Sim::deliver_up(const std::shared_ptr<Connection>& c, std::string text) {
  Host& h = *hosts_[static_cast<std::size_t>(c->host)];
  if (h.life != c->life || !c->open || c->deaf) return;
  if (!c->admitted) {
    if (c->given_to_core >= 2) {
      c->held.push_back(std::move(text));  // behind an undecided proof
      return;
    }
    ++c->given_to_core;
    feed(h, relay::event::MessageReceived{c->id, text});
    return;
  }
  const room::Verdict v = c->meter->account(text.size(), 1, now_);
  if (v != room::Verdict::ok) return feed(h, relay::event::LimitCrossed{c->id, v});
  const auto peer = h.connections.find(c->peer);
  if (peer == h.connections.end()) return;
  expect(peer->second->admitted && peer->second->room == c->room,
         "frames: forwarded between rooms, or before admission");
  ++report_.frames;
  h.relay->count_egress(text.size());
  send_down(peer->second, std::move(text));
}

void Sim::end_up(const std::shared_ptr<Connection>& c) {
  Host& h = *hosts_[static_cast<std::size_t>(c->host)];
  if (h.life != c->life || !c->open) return;
  c->open = false;
  c->meter = nullptr;
  h.connections.erase(c->id);
  h.socket_left(c->room);
  if (const auto peer = h.connections.find(c->peer); peer != h.connections.end()) peer->second->peer = {};
  feed(h, relay::event::SocketEnded{c->id});
}

void Sim::post(Host& h, const RoomName& room, relay::Endpoint endpoint, const std::string& body, OnAnswer then) {
  if (!h.up || !h.relay->check_owner(room).ours) {
    after(some(milliseconds(50)), [then] { then(421, {}); });
    return;
  }
  const RequestId id{++next_request_};
  requests_[id] = std::move(then);
  feed(h, relay::event::RequestReceived{id, room, endpoint, body});
}

}  // namespace tandem::sim
