#include "tandem/admin/page.hpp"

#include "sample_status.hpp"

#include <regex>
#include <set>

#include <gtest/gtest.h>

namespace tandem::admin {
namespace {

using test::sample_map;
using test::sample_status;

// Every tag that opens is closed, in order; void and self-closed ones aside.
void expect_well_formed(const std::string& html) {
  static const std::regex kTag(R"(<(/?)([a-z][a-z0-9]*)([^<>]*?)(/?)>)");
  static const std::set<std::string> kVoid = {"meta", "link", "br", "input"};
  std::vector<std::string> open;
  std::string text = std::regex_replace(html, std::regex("<script>[^]*</script>"), "");
  for (std::sregex_iterator it(text.begin(), text.end(), kTag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if ((*it)[4].length() > 0 || kVoid.contains(name)) continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << "</" << name << ">";
    ASSERT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

bool page_has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(StatusPage, IsWellFormedInEveryState) {
  auto s = sample_status();
  expect_well_formed(status_page(s));
  s.fetch_failing = FetchFault{"tls", "", "", "<b>", 3, seconds(31)};
  s.not_ready = "no map <yet>";
  s.map = nullptr;
  expect_well_formed(status_page(s));
  s = Status{};
  expect_well_formed(status_page(s));
}

TEST(StatusPage, SaysItsNumbersWithoutAnyScript) {
  const std::string page = status_page(sample_status());
  for (const char* part : {"relay1.test", "Ready, draining", "relay2.test", "50.0 %", ">12 <", "1.2 MiB", "in 0.3 s",
                           "expires in 40 d", "value=\"6\"", "max=\"8\""})
    EXPECT_TRUE(page_has(page, part)) << part;
}

TEST(StatusPage, LoadsNothingFromElsewhere) {
  const std::string page = status_page(sample_status());
  EXPECT_FALSE(page_has(page, "http://"));
  EXPECT_FALSE(page_has(page, "https://"));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(\s(src|style|on[a-z]+)=)")));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"(href="(?!data:,|/status|/metrics))")));
}

TEST(StatusPage, HasTextForThosesWhoDoNotSeeIt) {
  const std::string page = status_page(sample_status());
  EXPECT_TRUE(page_has(page, "<html lang=\"en\">"));
  EXPECT_TRUE(page_has(page, "role=\"img\" aria-label=\"Ring of 65536 buckets: relay1.test 50.0 %, relay2.test"));
  EXPECT_TRUE(page_has(page, "role=\"status\""));
  EXPECT_TRUE(page_has(page, "aria-label=\"Rooms evicted\""));
  EXPECT_TRUE(page_has(page, "prefers-color-scheme:dark"));
  EXPECT_TRUE(page_has(page, "width=device-width"));
}

TEST(StatusPage, EscapesWhatCameFromElsewhere) {
  auto s = sample_status();
  s.fetch_failing = FetchFault{"parse", "malformed", "", "<script>alert(1)</script>", 3, seconds(31)};
  s.hostname = "<i>x\"";
  const std::string page = status_page(s);
  EXPECT_FALSE(page_has(page, "<script>alert"));
  EXPECT_TRUE(page_has(page, "&lt;script&gt;"));
  EXPECT_FALSE(page_has(page, "<i>"));
}

TEST(StatusPage, PicksTheHeadlineByWhatMattersMost) {
  auto s = sample_status();
  s.relay.draining = {};
  EXPECT_TRUE(page_has(status_page(s), "<title>Ready - relay1.test</title>"));
  s.relay.owned_buckets = 0;
  EXPECT_TRUE(page_has(status_page(s), "<title>Owns nothing"));
  s.fetch_failing = FetchFault{};
  EXPECT_TRUE(page_has(status_page(s), "<title>Serving, but the shard map cannot be fetched"));
  s.relay.shedding = true;
  EXPECT_TRUE(page_has(status_page(s), "<title>Shedding"));
  s.not_ready = "no listener";
  EXPECT_TRUE(page_has(status_page(s), "<title>Not ready: no listener"));
  s.relay.stopping = true;
  EXPECT_TRUE(page_has(status_page(s), "<title>Stopping"));
}

TEST(RingPicture, DrawsOneArcARangeAndACircleForOneOwner) {
  const auto count = [](const std::string& svg, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = svg.find(part, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const auto three = sample_map(MapVersion{1}, {{0, 9, "a.test"}, {10, 99, "b.test"}, {100, 65535, "a.test"}});
  EXPECT_EQ(count(ring_picture(three.get(), "b.test"), "<path class=\"arc"), 3u);
  EXPECT_EQ(count(ring_picture(nullptr, "a.test"), "<circle class=\"arc h0\""), 1u);
}

TEST(RingPicture, StaysSmallForTheLargestMap) {
  std::vector<shard::Range> ranges;
  for (std::uint32_t b = 0; b < kBucketCount; ++b)
    ranges.push_back(
        {static_cast<std::uint16_t>(b), static_cast<std::uint16_t>(b), "h" + std::to_string(b % 100) + ".test"});
  const auto map = sample_map(MapVersion{1}, std::move(ranges));
  EXPECT_LT(ring_picture(map.get(), "h1.test").size(), 150000u);
}

}  // namespace
}  // namespace tandem::admin
