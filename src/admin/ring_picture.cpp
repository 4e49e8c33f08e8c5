#include "tandem/admin/page.hpp"
#include "wording.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace tandem::admin {

namespace {

constexpr double kCentre = 100, kRadius = 80;
constexpr std::uint32_t kSlices = 720;  // half a degree: finer arcs cannot be seen
constexpr std::size_t kMaxExactRanges = 360;
constexpr std::size_t kMaxListed = 24;

struct Arc {
  std::uint32_t low, high;  // inclusive buckets
  std::string host;
};

std::vector<Arc> arcs_of(const shard::ShardMap& map) {
  std::vector<Arc> arcs;
  const auto add = [&](std::uint32_t low, std::uint32_t high, const std::string& host) {
    if (!arcs.empty() && arcs.back().host == host)
      arcs.back().high = high;
    else
      arcs.push_back({low, high, host});
  };
  if (map.ranges().size() <= kMaxExactRanges) {
    for (const auto& r : map.ranges()) add(r.low, r.high, r.host);
    return arcs;
  }
  for (std::uint32_t i = 0; i < kSlices; ++i) {
    const std::uint32_t low = i * kBucketCount / kSlices, end = (i + 1) * kBucketCount / kSlices;
    add(low, end - 1, map.host_of(Bucket{static_cast<std::uint16_t>((low + end) / 2)}));
  }
  return arcs;
}

struct Owner {
  std::string host, colour;
  std::uint64_t buckets = 0;
};

// This host first, then by buckets; those that own nothing at the end, without a colour of their own.
std::vector<Owner> owners_of(const shard::ShardMap& map, const std::string& hostname) {
  std::map<std::string, std::uint64_t> buckets;
  for (const auto& r : map.ranges()) buckets[r.host] += r.high - r.low + 1u;
  std::vector<Owner> owners;
  owners.reserve(buckets.size());
  for (const auto& [host, n] : buckets) owners.push_back({host, {}, n});
  const auto rank = [&](const Owner& o) { return o.host == hostname ? 0 : o.host.ends_with(".invalid") ? 2 : 1; };
  std::sort(owners.begin(), owners.end(), [&](const Owner& a, const Owner& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return a.buckets != b.buckets ? a.buckets > b.buckets : a.host < b.host;
  });
  std::size_t next = 0;
  for (auto& o : owners) {
    const int r = rank(o);
    o.colour = r == 2 ? "none" : r == 0 ? "h0" : "h" + std::to_string(1 + next++ % 7);
  }
  return owners;
}

std::string point(double bucket) {
  const double angle =
      2 * std::numbers::pi * bucket / kBucketCount - std::numbers::pi / 2;  // bucket 0 at the top, clockwise
  return fixed(kCentre + kRadius * std::cos(angle), 2) + ' ' + fixed(kCentre + kRadius * std::sin(angle), 2);
}

std::string drawn(const Arc& arc, const std::string& colour) {
  const double from = arc.low, to = arc.high + 1.0;
  if (to - from >= kBucketCount) return "<circle class=\"arc " + colour + "\" cx=\"100\" cy=\"100\" r=\"80\"/>";
  const char* large = to - from > kBucketCount / 2.0 ? "1" : "0";
  return "<path class=\"arc " + colour + "\" d=\"M" + point(from) + "A80 80 0 " + large + " 1 " + point(to) + "\"/>";
}

}  // namespace

std::string ring_picture(const shard::ShardMap* map, const std::string& hostname) {
  std::vector<Arc> arcs;
  std::vector<Owner> owners;
  if (map != nullptr) {
    arcs = arcs_of(*map);
    owners = owners_of(*map, hostname);
  } else {
    arcs = {{0, kBucketCount - 1, hostname}};
    owners = {{hostname, "h0", kBucketCount}};
  }
  std::map<std::string, std::string> colour;
  std::string words, rows;
  double own = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const auto& o = owners[i];
    const double n = static_cast<double>(o.buckets);
    colour[o.host] = o.colour;
    if (o.host == hostname) own = n;
    if (i >= kMaxListed) continue;
    const std::string share = percent_text(n, kBucketCount);
    words += (i ? ", " : "") + o.host + ' ' + share;
    rows += "<tr><th scope=\"row\"><svg class=\"swatch\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"" +
            o.colour + "\" width=\"10\" height=\"10\"/></svg>" + escaped(o.host) +
            (o.host == hostname ? " (this host)" : "") + (o.colour == "none" ? " (nobody)" : "") + "</th><td>" +
            count_text(o.buckets) + "</td><td>" + share + "</td></tr>";
  }
  if (owners.size() > kMaxListed)
    rows += "<tr><th scope=\"row\">and " + count_text(owners.size() - kMaxListed) + " more</th><td></td><td></td></tr>";
  std::string out =
      "<div class=\"ring\"><svg viewBox=\"0 0 200 200\" role=\"img\" aria-label=\"Ring of 65536 buckets: " +
      escaped(words) + "\">";
  for (const auto& arc : arcs) out += drawn(arc, colour[arc.host]);
  out += "<line class=\"tick\" x1=\"100\" y1=\"4\" x2=\"100\" y2=\"34\"/><text class=\"centre\" x=\"100\" y=\"103\">" +
         percent_text(own, kBucketCount) +
         "</text><text class=\"under\" x=\"100\" y=\"119\">owned by this host</text></svg>";
  return out +
         "<div><table><thead><tr><th scope=\"col\">Host</th><th scope=\"col\">Buckets</th><th "
         "scope=\"col\">Share</th></tr></thead><tbody>" +
         rows + "</tbody></table></div></div>";
}

}  // namespace tandem::admin
