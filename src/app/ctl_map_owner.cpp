// tandemctl owner, and map owner: whose is this room?
#include "tandem/app/ctl.hpp"
#include "tandem/app/map_command.hpp"
#include "tandem/app/map_source.hpp"
#include "tandem/protocol/pairing_url.hpp"

#include <CLI/CLI.hpp>

namespace tandem::app {

namespace {

struct Owned {
  RoomName room;
  std::string mode;
  std::optional<std::string> host;  // nothing: nobody, or not known
  std::optional<MapVersion> version;
};

void look_up(Owned& owned, const shard::ShardMap& map) {
  const std::string_view host = map.owner_of(owned.room.bucket());
  if (!host.empty()) owned.host = std::string(host);
  owned.version = map.version();
}

Owned of_pairing_url(MapCommand& c, const std::string& text) {
  const auto parsed = protocol::parse_pairing_url(text);
  if (const auto* fault = std::get_if<protocol::PairingUrlFault>(&parsed))
    throw MapError("usage",
                   fault->parameter + ": " + fault->message +
                       (fault->parameter.starts_with("re") ? " (v=1 carries relay=, v=2 carries resolver=)" : ""),
                   {{"parameter", fault->parameter}, {"value", fault->value}}, kWrong);
  const auto& url = std::get<protocol::PairingUrl>(parsed);
  Owned owned{url.room(), url.resolved ? "resolved" : "direct", {}, {}};
  if (!url.resolved) {
    owned.host = url.host();
  } else if (c.store) {
    look_up(owned, c.store->current());
  } else {
    look_up(owned, parse_map(url.where, fetch_map(url.where).body));
  }
  return owned;
}

}  // namespace

int map_owner(MapCommand& c, const std::string& room_or_url) {
  Owned owned;
  if (room_or_url.find("://") != std::string::npos || room_or_url.starts_with("iterm2:")) {
    owned = of_pairing_url(c, room_or_url);
  } else {
    const auto room = RoomName::parse(room_or_url);
    if (!room)
      throw MapError("usage", "ROOM: " + room_or_url + " is neither 64 lowercase hex digits nor a pairing URL",
                     {{"value", room_or_url}}, kUsage);
    owned = {*room, "store", {}, {}};
    if (c.store) look_up(owned, c.store->current());
  }
  const unsigned bucket = owned.room.bucket().value;
  OrderedJson out{
      {"ok", true}, {"room", owned.room.hex()}, {"tag", owned.room.tag()}, {"bucket", bucket}, {"mode", owned.mode}};
  out["host"] = owned.host ? OrderedJson(*owned.host) : OrderedJson(nullptr);
  out["origin"] = owned.host ? OrderedJson("https://" + *owned.host) : OrderedJson(nullptr);
  out["version"] = owned.version ? OrderedJson(owned.version->value) : OrderedJson(nullptr);
  c.out.result(out, "room    " + owned.room.hex() + "\ntag     " + owned.room.tag() + "\nbucket  " +
                        std::to_string(bucket) + "\nhost    " +
                        (owned.host      ? *owned.host
                         : owned.version ? "nobody"
                                         : "unknown; name a store with --store") +
                        (owned.version ? " (map version " + std::to_string(owned.version->value) + ")" : "") + "\n");
  return kOk;
}

void add_owner(Ctl& ctl) {
  auto arguments = std::make_shared<MapArguments>();
  auto room = std::make_shared<std::string>();
  CLI::App* command = ctl.app->add_subcommand("owner", "Whose is a room: its bucket, host and tag");
  command->add_option("room", *room, "A room name (64 hex digits) or a pairing URL")
      ->required()
      ->type_name("ROOM|PAIRING-URL");
  add_map_options(*command, *arguments);
  command->callback([&ctl, arguments, room] {
    ctl.run = [arguments, room] {
      return run_map_command(*arguments, [&](MapCommand& c) { return map_owner(c, *room); });
    };
  });
}

}  // namespace tandem::app
