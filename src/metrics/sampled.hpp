// The families that are read at the scrape instead of being counted: gauges, and the data path's own counters.
#pragma once

#include "process_sample.hpp"
#include "tandem/metrics/metrics.hpp"

#include <vector>

#include <prometheus/metric_family.h>

namespace tandem::metrics {

[[nodiscard]] std::vector<prometheus::MetricFamily> sampled_families(const Sample& sample,
                                                                     const ProcessSample& process);

}  // namespace tandem::metrics
