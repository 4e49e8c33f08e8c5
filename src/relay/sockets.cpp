// Sockets: from the network to their rooms, and a room's wishes back out as effects.
#include "impl.hpp"

#include <cassert>

namespace tandem::relay {
namespace {

constexpr std::size_t kLongestReason = 123;  // RFC 6455 5.5: a control frame holds 125 bytes, two of them the code

}  // namespace

// ---------------------------------------------------------------- events

void Relay::Impl::on(const event::SocketOpened& e) {
  const bool ours = owns(e.room);
  if (stopping || !ours) {  // lost since the gate looked
    const CloseReason reason = ours ? CloseReason::server_shutting_down : CloseReason::reshard;
    observer.observe(observed::UpgradeAccepted{e.room, e.socket});
    emit(effect::Close{e.socket, reason, close_reason_text(reason, e.room)});
    return;
  }
  Entry& entry = room_of(e.room);
  const bool is_new = sockets.emplace(e.socket, Socket{&entry, e.client}).second;
  assert(is_new);
  static_cast<void>(is_new);
  ++sockets_of_client[e.client];
  ensure_loaded(entry);
  in_room(entry, [&](room::Room& r, room::Turn& t) { r.open(e.socket, t); });
}

void Relay::Impl::on(const event::MessageReceived& e) {
  const auto it = sockets.find(e.socket);
  if (it == sockets.end()) return;
  in_room(*it->second.entry, [&](room::Room& r, room::Turn& t) { r.message(e.socket, e.payload, t); });
}

void Relay::Impl::on(const event::SocketEnded& e) {
  const auto it = sockets.find(e.socket);
  if (it == sockets.end()) return;
  Entry& entry = *it->second.entry;
  forget_socket(e.socket);
  in_room(entry, [&](room::Room& r, room::Turn& t) { r.ended(e.socket, t); });
}

void Relay::Impl::on(const event::LimitCrossed& e) {
  const auto it = sockets.find(e.socket);
  if (it == sockets.end()) return;
  in_room(*it->second.entry, [&](room::Room& r, room::Turn& t) { r.limit_crossed(e.socket, e.verdict, t); });
}

void Relay::Impl::on(const event::RoomLoaded& e) {
  // A room may have been forgotten and asked for again: only the newest answer knows what happened in between.
  const auto load = loads.find(e.room);
  if (load == loads.end()) return;
  if (--load->second > 0) return;
  loads.erase(load);
  Entry* entry = registry.find(e.room);
  if (!entry || entry->room.knowledge() != room::Room::Knowledge::loading) return;
  std::optional<room::Registration> stored;
  if (e.stored) stored = room::Registration{e.stored->verifier, e.stored->registrant, e.stored->last_activity};
  ++entry->busy;  // the requests that waited come next
  in_room(*entry, [&](room::Room& r, room::Turn& t) { r.loaded(stored, t); });
  serve_waiting(*entry);
  --entry->busy;
  settle(*entry);
}

void Relay::Impl::on(const event::ShutdownBegun&) {
  stopping = true;
  std::vector<RoomName> rooms;
  rooms.reserve(sockets.size());
  for (const auto& [_, socket] : sockets) rooms.push_back(socket.entry->room.name());
  for (const RoomName& name : rooms) {
    if (Entry* entry = registry.find(name)) {
      in_room(*entry, [](room::Room& r, room::Turn& t) { r.close_all(CloseReason::server_shutting_down, t); });
    }
  }
}

// ---------------------------------------------------------------- the store

void Relay::Impl::ensure_loaded(Entry& entry) {
  if (entry.room.knowledge() != room::Room::Knowledge::unknown) return;
  entry.room.expect_load();
  ++loads[entry.room.name()];
  emit(effect::LoadRoom{entry.room.name()});
}

void Relay::Impl::touch(const RoomName& room, WallTime at) { emit(effect::TouchRoom{room, at}); }

void Relay::Impl::wipe(const RoomName& room) { emit(effect::WipeRoom{0, room}); }

// ---------------------------------------------------------------- effects on sockets

void Relay::Impl::send(SocketId socket, std::string text) { emit(effect::Send{socket, std::move(text)}); }

void Relay::Impl::admit(SocketId socket, Role role, room::Meter& meter) {
  emit(effect::Admit{socket, role, &meter});
  watch_egress();
}

void Relay::Impl::splice(SocketId mac, SocketId phone) { emit(effect::Splice{mac, phone}); }

void Relay::Impl::close(SocketId socket, CloseReason reason) {
  const auto it = sockets.find(socket);
  assert(it != sockets.end());
  emit(effect::Close{socket, reason, close_reason_text(reason, it->second.entry->room.name())});
  forget_socket(socket);
}

void Relay::Impl::forget_socket(SocketId socket) {
  const auto it = sockets.find(socket);
  const auto mine = sockets_of_client.find(it->second.client);
  if (--mine->second == 0) sockets_of_client.erase(mine);
  sockets.erase(it);
}

std::string Relay::Impl::close_reason_text(CloseReason reason, const RoomName& room) const {
  std::string text(close_text(reason));
  if (reason != CloseReason::reshard) return text;
  const std::string_view owner = ownership.owner_of(room.bucket());
  if (!owner.empty() && text.size() + 1 + owner.size() <= kLongestReason) text.append(" ").append(owner);
  return text;
}

}  // namespace tandem::relay
