// tandemctl explain: why a join to a room would be refused now, asked of a running relay. For the user's words "the
// phone cannot find my Mac".
#include "tandem/app/admin_read.hpp"
#include "tandem/app/ctl.hpp"
#include "tandem/app/published_map.hpp"
#include "tandem/config/load.hpp"
#include "tandem/config/units.hpp"
#include "tandem/core/authority.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/protocol/pairing_url.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

using nlohmann::json;

struct ExplainOptions {
  AdminPlace place;
  std::string room;
  bool json = false;
};

std::string text(const json& o, const char* key) {
  return o.contains(key) && o[key].is_string() ? o[key].get<std::string>() : "";
}

std::vector<std::string> words(const json& o, const char* key) {
  std::vector<std::string> out;
  if (!o.contains(key) || !o[key].is_array()) return out;
  for (const json& word : o[key]) {
    if (word.is_string()) out.push_back(word.get<std::string>());
  }
  return out;
}

// What a device of the pairing does by itself is no obstacle: an established room wants a signature, a first pairing a
// ticket.
std::string condition(const std::string& refusal) {
  if (refusal == "signature required") return "with a signature by the pairing's key (else: signature required)";
  if (refusal == "ticket required") return "with a ticket, which an attested phone gets (else: ticket required)";
  return "";
}

std::string join_outcome(const std::vector<std::string>& refusals) {
  std::string condition_text, out;
  for (const std::string& refusal : refusals) {
    if (const std::string c = condition(refusal); !c.empty()) {
      condition_text = c;
    } else {
      out += (out.empty() ? "would be refused: " : ", then ") + refusal;
    }
  }
  if (!out.empty()) return out;
  return "would be admitted" + (condition_text.empty() ? "" : " " + condition_text);
}

std::string span(double s) {
  return config::describe_duration(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::max(0.0, s))));
}

// What to do about a refusal, for a person who knows no protocol.
std::string cure(const std::string& refusal, const json& e) {
  if (refusal == "misdirected") {
    const std::string owner = text(e, "owner"), hostname = text(e, "hostname");
    if (owner.empty()) return "no host owns this bucket in the map: publish an owner (tandemctl map move)";
    // A relay of a name that the map does not hold, while the map holds a name that is nearly it.
    if (e.value("owned_buckets", 1u) == 0 && !nearest(hostname, std::vector{owner}).empty()) {
      return "the map gives this relay nothing, and names " + owner + ", which is nearly " + hostname +
             ": one of the two is mistyped (tandemctl doctor, tandemctl map show)";
    }
    return "this room lives on " + owner +
           ": a client that comes here has an old map, or the map is wrong (tandemctl map show)";
  }
  if (refusal == "mac offline")
    return "no mac is parked in this room here: it is off, asleep, offline, or still parked on another host (ask "
           "there)";
  if (refusal == "daily quota exceeded") {
    const json resets = e.value("quota_resets_in_seconds", json());
    return "the room moved its bytes for today (limits.room_bytes_per_day): it opens again by itself" +
           (resets.is_number() ? ", in " + span(resets.get<double>()) : "");
  }
  if (refusal == "capacity")
    return "the box is full or short of memory (limits.sockets, limits.rooms, shed, the monthly budget)";
  if (refusal == "reshard") return "the room is moving to another host: clients follow by themselves";
  return "";
}

double seconds_of(const json& e, const char* pointer) {
  const json::json_pointer at(pointer);
  return e.contains(at) && e.at(at).is_number() ? e.at(at).get<double>() : 0;
}

// What the relay's own polls say, where they fail.
std::string fetch_error(const json& e) {
  const json error = e.value("last_fetch_error", json());
  if (!error.is_object()) return "";
  return "failing for " + span(seconds_of(error, "/seconds")) + ": " + text(error, "cause") + ", " +
         text(error, "detail") + ": this relay may go by an old map, and so does whoever it admits";
}

// The map that is published now, seen from this machine: {"version", "owner"} or {"error"}; null in direct mode.
json published(const std::string& config_file, const RoomName& room) {
  const auto loaded = config::load(config_file);
  const auto* c = std::get_if<config::Config>(&loaded);
  if (c == nullptr || !c->shard_map) return nullptr;
  const auto got = fetch_published(*c->shard_map);
  if (const auto* fault = std::get_if<UnpublishedMap>(&got)) return {{"error", fault->why}};
  const shard::ShardMap& map = std::get<PublishedMap>(got).map;
  const std::string_view owner = map.owner_of(room.bucket());
  return {{"version", map.version().value}, {"owner", owner.empty() ? json() : json(owner)}};
}

std::string describe_published(const json& e) {
  const json p = e.value("published", json());
  if (!p.is_object()) return "";
  if (p.contains("error")) return "cannot be fetched from here: " + text(p, "error");
  const auto there = p.value("version", std::uint64_t{0}),
             here = e.value("/map/version"_json_pointer, std::uint64_t{0});
  if (there == here) return "the same version";
  const std::string owner = text(p, "owner");
  std::string out = "version " + std::to_string(there) + ", owner " + (owner.empty() ? "nobody" : owner);
  if (there < here) return out + ": OLDER than this relay's; does an edge of the map's server lag?";
  return out + ": this relay's map is STALE, and so is whoever is parked here";
}

std::string describe(const json& e) {
  std::string out;
  const auto line = [&](const std::string& what, const std::string& how) {
    out += what + std::string(what.size() < 10 ? 10 - what.size() : 1, ' ') + how + "\n";
  };
  const std::string owner = text(e, "owner"), state = text(e, "state");
  const bool ours = e.value("ours", false), resolved = text(e, "mode") == "resolved";
  line("room", "tag " + text(e, "tag") + ", bucket " + e.value("bucket", json(0)).dump());
  line("relay", text(e, "hostname") + (resolved ? "" : " (direct: owns every room)"));
  if (resolved) {
    line("owner", (owner.empty() ? "nobody" : owner) + (ours ? " (this relay)" : " (not this relay)"));
    line("map", "version " + e.value("/map/version"_json_pointer, json(0)).dump() + ", fetched " +
                    span(seconds_of(e, "/map/age_seconds")) + " ago");
    if (const std::string failing = fetch_error(e); !failing.empty()) line("polls", failing);
    if (const std::string there = describe_published(e); !there.empty()) line("published", there);
  }
  std::string now = state == "none"         ? "nobody is connected"
                    : state == "mac_only"   ? "the mac waits, no phone"
                    : state == "phone_only" ? "a phone, no mac"
                    : state == "spliced"    ? "mac and phone are connected"
                                            : state;
  const json established = e.value("established", json());
  now += established.is_boolean() ? (established.get<bool>() ? "; the pairing is registered" : "; not registered yet")
                                  : "; the state file was not asked";
  if (e.value("draining", false) && state != "none") now += "; draining: it will move to its new owner";
  line("now", now);
  for (const char* role : {"mac", "phone"}) {
    const auto refusals = words(e, (std::string(role) + "_refusals").c_str());
    line(role, join_outcome(refusals));
    for (const std::string& refusal : refusals) {
      if (const std::string advice = cure(refusal, e); !advice.empty()) line("", refusal + ": " + advice);
    }
  }
  return out;
}

std::optional<RoomName> room_of(const std::string& given) {
  if (const auto room = RoomName::parse(given)) return room;
  const auto url = protocol::parse_pairing_url(given);
  if (const auto* pairing = std::get_if<protocol::PairingUrl>(&url)) return pairing->room();
  return std::nullopt;
}

int explain(const ExplainOptions& options) {
  const auto room = room_of(options.room);
  if (!room) return fail("explain: ROOM: expected a room name (64 hex digits, lowercase) or a pairing URL", kUsage);
  const auto address = admin_address(options.place);
  if (const auto* fault = std::get_if<AdminFault>(&address)) return fail("explain: " + fault->message);
  const auto got = admin_json(std::get<std::string>(address), "/explain?room=" + room->hex());
  if (const auto* fault = std::get_if<AdminFault>(&got)) return fail("explain: " + fault->message);
  json answer = std::get<json>(got);
  if (!options.place.config_file.empty()) {
    if (json there = published(options.place.config_file, *room); !there.is_null())
      answer["published"] = std::move(there);
  }
  std::cout << (options.json ? answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n" : describe(answer))
            << std::flush;
  return kOk;
}

}  // namespace

void add_explain(Ctl& ctl) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      ctl.app->add_subcommand("explain", "Ask a running relay why a join to a room would be refused now");
  command->add_option("room", options->room, "A room name, or a pairing URL")->type_name("ROOM")->required();
  add_place_options(*command, options->place);
  command->add_flag("--json", options->json, "Print the relay's answer on one line");
  command->callback([&ctl, options] { ctl.run = [options] { return explain(*options); }; });
}

}  // namespace tandem::app
