#include "tandem/admin/page.hpp"

#include "page_assets.hpp"
#include "tandem/core/base64.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/version.hpp"
#include "wording.hpp"

#include <algorithm>

namespace tandem::admin {

namespace {

constexpr auto kCertificateWarning = std::chrono::hours(24 * 14);
constexpr Duration kMapOld = std::chrono::minutes(1);  // six polls of the default interval

struct Headline {
  std::string words, mood;
};

Headline headline(const Status& s) {
  if (s.relay.stopping) return {"Stopping", "warn"};
  if (s.not_ready) return {"Not ready: " + *s.not_ready, "bad"};
  if (s.relay.shedding) return {"Shedding: memory is short, new rooms are refused", "warn"};
  if (s.fetch_failing) return {"Serving, but the shard map cannot be fetched", "warn"};
  if (s.relay.resolved && s.relay.owned_buckets == 0)
    return {"Owns nothing: the map gives this host no bucket", "warn"};
  if (s.relay.draining.rooms > 0) return {"Ready, draining", "good"};
  return {"Ready", "good"};
}

std::string section(const char* id, const char* title, const std::string& content, const char* classes = "") {
  return std::string("<section id=\"") + id + "\" class=\"" + classes + "\" data-live aria-labelledby=\"" + id +
         "-title\"><h2 id=\"" + id + "-title\">" + title + "</h2>" + content + "</section>\n";
}

std::string row(const std::string& name, const std::string& value) {
  return "<tr><th scope=\"row\">" + name + "</th><td>" + value + "</td></tr>";
}

std::string rooms(const Status& s) {
  const auto& r = s.relay.rooms;
  return "<p class=\"big\">" + count_text(r.spliced) + " <span class=\"soft\">spliced</span></p><table><tbody>" +
         row("mac waits for its phone", count_text(r.mac_only)) +
         row("phone without its mac", count_text(r.phone_only)) + row("nobody admitted yet", count_text(r.pending)) +
         row("sockets admitted", count_text(s.relay.sockets.admitted)) +
         row("sockets not admitted yet", count_text(s.relay.sockets.pending)) +
         row("connections in TLS or HTTP", count_text(s.handshaking)) + "</tbody></table>";
}

std::string throughput(const Status& s) {
  const double peak = s.last_hour.empty() ? 0 : *std::max_element(s.last_hour.begin(), s.last_hour.end());
  std::string out = "<p class=\"big\">" + bytes_text(s.bytes_per_second) + "<span class=\"soft\">/s</span></p>";
  if (s.last_hour.size() < 2)
    out += "<p class=\"soft\">The curve of the last hour begins after two minutes.</p>";
  else {
    const double top = std::max(peak, 1.0);
    std::string path = "M0 40";
    for (std::size_t i = 0; i < s.last_hour.size(); ++i)
      path += "L" + fixed(static_cast<double>(i), 0) + ' ' + fixed(40 - 38 * s.last_hour[i] / top, 1);
    const std::string last = fixed(static_cast<double>(s.last_hour.size() - 1), 0);
    out += "<svg class=\"spark\" viewBox=\"0 0 " + last +
           " 40\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Throughput of the last " +
           std::to_string(s.last_hour.size()) + " minutes, at most " + bytes_text(peak) +
           " a second\"><line x1=\"0\" y1=\"40\" x2=\"" + last + "\" y2=\"40\"/><path d=\"" + path + "L" + last +
           " 40Z\"/></svg>";
    out += "<p class=\"soft\">last " + std::to_string(s.last_hour.size()) + " min, peak " + bytes_text(peak) + "/s</p>";
  }
  return out + "<table><tbody>" + row("sent this month", bytes_text(static_cast<double>(s.relay.egress_bytes_month))) +
         "</tbody></table>";
}

std::string drain(const Status& s) {
  const auto& d = s.relay.draining;
  if (d.buckets == 0 && d.rooms == 0) return "<p>Nothing drains.</p>";
  const std::uint64_t began = std::max(s.drain_began_with, d.rooms), gone = began - d.rooms;
  std::string out = "<p class=\"big\">" + count_text(d.rooms) + " <span class=\"soft\">rooms left</span></p>";
  out += "<progress max=\"" + std::to_string(std::max<std::uint64_t>(began, 1)) + "\" value=\"" + std::to_string(gone) +
         "\" aria-label=\"Rooms evicted\">" + percent_text(static_cast<double>(gone), static_cast<double>(began)) +
         "</progress>";
  out += "<table><tbody>" + row("evicted so far", count_text(gone)) + row("buckets with rooms", count_text(d.buckets));
  out +=
      row("next eviction", d.next_eviction ? "in " + duration_text(*d.next_eviction) : "when the map names an owner");
  out += row("expected end", d.expected_end ? "in " + duration_text(*d.expected_end) : "not known");
  return out + "</tbody></table>";
}

std::string map_part(const Status& s) {
  if (!s.relay.resolved) return "<p>Direct mode: this host owns every bucket and fetches no map.</p>";
  if (!s.relay.has_map) return "<p class=\"bad\">No map yet.</p>";
  std::string out = "<p class=\"big\"><span class=\"soft\">version</span> " + std::to_string(s.relay.version.value) +
                    "</p><table><tbody>";
  out += row("last successful poll", std::string(s.map_age > kMapOld ? "<span class=\"warn\">" : "<span>") +
                                         duration_text(s.map_age) + " ago</span>");
  out += row("newest version seen", std::to_string(s.relay.floor.value));
  out += row("owned buckets", count_text(s.relay.owned_buckets)) + "</tbody></table>";
  if (const auto& f = s.fetch_failing)
    out += "<p class=\"bad\">Fetching fails (" + escaped(f->cause) + "): " + escaped(f->detail) + ". " +
           std::to_string(f->polls) + " polls, " + duration_text(f->lasted) + ".</p>";
  return out;
}

std::string certificate(const Status& s) {
  if (!s.certificate_expiry) return "<p>No certificate: TLS is off.</p>";
  const auto left = *s.certificate_expiry - s.now;
  const char* mood = left <= left.zero() ? "bad" : left < kCertificateWarning ? "warn" : "good";
  const std::string words =
      left <= left.zero() ? "expired " + duration_text(-left) + " ago" : "expires in " + duration_text(left);
  return std::string("<p class=\"big ") + mood + "\">" + words + "</p>";
}

std::string hash_of(std::string_view text) { return "'sha256-" + base64_encode(sha256(bytes_of(text))) + "'"; }

}  // namespace

const std::string& page_policy() {
  static const std::string kPolicy =
      "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'; style-src " +
      hash_of(kPageStyle) + "; script-src " + hash_of(kPageScript);
  return kPolicy;
}

std::string status_page(const Status& s) {
  const Headline head = headline(s);
  const std::string host = escaped(s.hostname);
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(head.words) + " - " + host +
      "</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<link rel=\"icon\" href=\"data:,\"><noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript><style>";
  out += kPageStyle;
  out += "</style></head><body>\n<header><h1>" + host +
         "</h1><div id=\"state\" role=\"status\" data-live><p class=\"state " + head.mood + "\">" +
         escaped(head.words) + "</p></div><p id=\"link\" class=\"bad\" role=\"alert\"></p></header>\n<main>\n";
  out += section("ring", "Who owns what",
                 s.relay.resolved && !s.map ? "<p>No map yet.</p>" : ring_picture(s.map.get(), s.hostname), "wide");
  out += section("rooms", "Rooms", rooms(s)) + section("throughput", "Throughput", throughput(s)) +
         section("drain", "Draining", drain(s));
  out += section("map", "Shard map", map_part(s)) + section("certificate", "Certificate", certificate(s));
  out += "</main>\n<footer><p id=\"foot\" data-live>Tandem " + std::string(version()) + " (" + std::string(commit()) +
         "), up " + duration_text(s.uptime) +
         "</p><p>The same for machines: <a href=\"/status\">/status</a>, <a "
         "href=\"/metrics\">/metrics</a></p></footer>\n<script>";
  out += kPageScript;
  return out + "</script></body></html>\n";
}

}  // namespace tandem::admin
