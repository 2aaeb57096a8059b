// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cmath>

#include "kernels/histogram/arithmetic.hpp"

namespace cudavision::histogram {

Statistics statistics(const std::vector<std::uint64_t>& counts, int depth) {
  Statistics all;
  const int bins = int(counts.size());
  const auto value = [&](int bin) {
    return (first_value(bin, bins, depth) + first_value(bin + 1, bins, depth) - 1) / 2.0;
  };
  int lowest = -1, highest = 0;
  double sum = 0;
  for (int bin = 0; bin < bins; ++bin) {
    if (counts[bin] == 0) continue;
    if (lowest < 0) lowest = bin;
    highest = bin;
    all.count += counts[bin];
    sum += double(counts[bin]) * value(bin);
  }
  if (all.count == 0) return all;
  const double count = double(all.count);
  all.min = value(lowest);
  all.max = value(highest);
  all.mean = sum / count;

  struct Quantile {
    std::uint64_t rank;  ///< position among the sorted samples, counted from 1
    double* value;
  };
  const auto ceil_part = [&](std::uint64_t part, std::uint64_t of) {
    return all.count / of * part + (all.count % of * part + of - 1) / of;
  };
  const Quantile quantiles[] = {
      {ceil_part(1, 100), &all.p01}, {ceil_part(1, 2), &all.median}, {ceil_part(99, 100), &all.p99}};
  const Quantile* next = quantiles;
  std::uint64_t below = 0;
  double squares = 0;
  for (int bin = lowest; bin <= highest; ++bin) {
    if (counts[bin] == 0) continue;
    below += counts[bin];
    for (; next != std::end(quantiles) && below >= next->rank; ++next) *next->value = value(bin);
    squares += double(counts[bin]) * (value(bin) - all.mean) * (value(bin) - all.mean);
    const double p = double(counts[bin]) / count;
    all.entropy -= p * std::log2(p);
  }
  if (lowest == highest) all.entropy = 0;  // avoids −0
  all.deviation = std::sqrt(squares / count);
  const int top = int(std::uint64_t((1 << depth) - 1) * unsigned(bins) >> depth);
  all.saturated = double(counts[0] + (top > 0 ? counts[top] : 0)) / count;
  return all;
}

}  // namespace cudavision::histogram
