// tandemctl explain: why a join to a room would be refused now, asked of a running relay. For the user's words "the
// phone cannot find my Mac".
#include "tandem/app/admin_read.hpp"
#include "tandem/app/ctl.hpp"
#include "tandem/config/units.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/protocol/pairing_url.hpp"

#include <iostream>
#include <memory>

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

// What to do about a refusal, for a person who knows no protocol.
std::string cure(const std::string& refusal, const json& e) {
  if (refusal == "misdirected") {
    const std::string owner = text(e, "owner");
    return owner.empty() ? "no host owns this bucket in the map: publish an owner (tandemctl map move)"
                         : "this room lives on " + owner +
                               ": a client that comes here has an old map, or the map is wrong (tandemctl map show)";
  }
  if (refusal == "mac offline")
    return "no mac is parked in this room here: it is off, asleep, offline, or still parked on another host";
  if (refusal == "daily quota exceeded")
    return "the room moved its bytes for today (limits.room_bytes_per_day): it opens again by itself";
  if (refusal == "capacity")
    return "the box is full or short of memory (limits.sockets, limits.rooms, shed, the monthly budget)";
  if (refusal == "reshard") return "the room is moving to another host: clients follow by themselves";
  return "";
}

std::string describe(const json& e) {
  std::string out;
  const auto line = [&](const std::string& what, const std::string& how) {
    out += what + std::string(what.size() < 9 ? 9 - what.size() : 1, ' ') + how + "\n";
  };
  const std::string owner = text(e, "owner"), state = text(e, "state");
  const bool ours = e.value("ours", false), resolved = text(e, "mode") == "resolved";
  line("room", "tag " + text(e, "tag") + ", bucket " + e.value("bucket", json(0)).dump());
  line("relay", text(e, "hostname") + (resolved ? "" : " (direct: owns every room)"));
  if (resolved) {
    line("owner", (owner.empty() ? "nobody" : owner) + (ours ? " (this relay)" : " (not this relay)"));
    const double age = e.value("/map/age_seconds"_json_pointer, 0.0);
    line("map",
         "version " + e.value("/map/version"_json_pointer, json(0)).dump() + ", fetched " +
             config::describe_duration(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(age))) +
             " ago");
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
  if (!room) return fail("explain: ROOM: expected a room name (64 hex digits, lowercase) or a pairing URL");
  const auto address = admin_address(options.place);
  if (const auto* fault = std::get_if<AdminFault>(&address)) return fail("explain: " + fault->message);
  const auto got = admin_json(std::get<std::string>(address), "/explain?room=" + room->hex());
  if (const auto* fault = std::get_if<AdminFault>(&got)) return fail("explain: " + fault->message);
  const json& answer = std::get<json>(got);
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
