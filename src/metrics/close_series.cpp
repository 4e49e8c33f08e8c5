#include "close_series.hpp"

#include <array>

namespace tandem::metrics {

namespace {

constexpr std::array<std::uint16_t, 11> kKnownClientCodes = {1000, 1001, 1002, 1003, 1005, 1006,
                                                             1007, 1008, 1009, 1010, 1011};

bool is_relays(CloseReason r) { return r < CloseReason::client_close; }

}  // namespace

std::string client_code_label(std::uint16_t code) {
  for (const auto known : kKnownClientCodes)
    if (code == known) return std::to_string(code);
  if (code >= 3000 && code <= 4999) return code < 4000 ? "3xxx" : "4xxx";
  return "other";
}

CloseSeries::CloseSeries(prometheus::Family<prometheus::Counter>& family) {
  const auto add = [&](Initiator by, CloseReason reason, const std::string& code) {
    series_[{by, reason, code}] =
        &family.Add({{"by", std::string(to_string(by))}, {"code", code}, {"reason", std::string(label(reason))}});
  };
  for (int i = 0; i < kCloseReasonCount; ++i) {
    const auto reason = static_cast<CloseReason>(i);
    if (is_relays(reason)) add(Initiator::relay, reason, std::to_string(close_code(reason)));
  }
  add(Initiator::relay, CloseReason::slow_consumer, "1006");  // cut behind a close frame that never left
  add(Initiator::network, CloseReason::keepalive_timeout, "1006");
  for (const auto by : {Initiator::client, Initiator::network})
    for (const auto reason : {CloseReason::end_of_stream, CloseReason::reset}) add(by, reason, "1006");
  for (const auto code : kKnownClientCodes) add(Initiator::client, CloseReason::client_close, std::to_string(code));
  for (const char* code : {"3xxx", "4xxx", "other"}) add(Initiator::client, CloseReason::client_close, code);
  for (const auto by : {Initiator::relay, Initiator::client, Initiator::network})
    other_[by] = &family.Add({{"by", std::string(to_string(by))}, {"code", "other"}, {"reason", "other"}});
}

void CloseSeries::count(const observed::SocketEnded& ended) {
  const std::string code = ended.by == Initiator::client ? client_code_label(ended.code) : std::to_string(ended.code);
  const auto found = series_.find({ended.by, ended.reason, code});
  (found != series_.end() ? found->second : other_.at(ended.by))->Increment();
}

}  // namespace tandem::metrics
