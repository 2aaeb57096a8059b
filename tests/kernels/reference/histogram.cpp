// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace cudavision::reference {
namespace {

const Component full_size{Role::luma, 0, 0, 1, 0, 0};

std::vector<std::uint64_t> count(const Grid& grid, int bins, int depth, const Picture& src, const Region& region,
                                 const Component& c) {
  std::vector<std::uint64_t> counts(bins);
  for (const auto& [x, y] : positions(grid))
    if (in_region(region, src.geometry(), c, x, y)) ++counts[std::uint64_t(grid.at(x, y)) * bins >> depth];
  return counts;
}

}  // namespace

histogram::Counts count(const histogram::Params& params, const Picture& src, const Region& region) {
  const Definition& format = src.format();
  histogram::Counts all;
  if (params.channels != histogram::Channels::components)
    all.push_back({"luma", count(luma(params.luma, src), params.bins, format.depth, src, region, full_size)});
  if (params.channels == histogram::Channels::luma) return all;
  const std::vector<std::pair<Role, const char*>> names = {{Role::luma, "Y"}, {Role::cb, "Cb"},   {Role::cr, "Cr"},
                                                           {Role::red, "R"},  {Role::green, "G"}, {Role::blue, "B"}};
  for (const auto& [role, name] : names)
    if (const Component* c = format.find(role))
      all.push_back({name, count(src.read(*c), params.bins, format.depth, src, region, *c)});
  return all;
}

histogram::LumaSums luma_sums(LumaMatrix matrix, const Picture& src, const Region& region, const Picture* before) {
  const Grid y = luma(matrix, src);
  std::optional<Grid> old;
  if (before) old = luma(matrix, *before);
  histogram::LumaSums sums;
  sums.compared = before != nullptr;
  for (const auto& [column, row] : positions(y)) {
    if (!in_region(region, src.geometry(), full_size, column, row)) continue;
    const int value = y.at(column, row);
    const auto neighbour = [&](int x, int y_of) {
      if (x >= y.width || y_of >= y.height) return;
      ++sums.neighbours;
      sums.gradients += std::uint64_t(std::abs(y.at(x, y_of) - value));
    };
    neighbour(column + 1, row);
    neighbour(column, row + 1);
    ++sums.pixels;
    sums.luma += std::uint64_t(value);
    sums.squares += std::uint64_t(value) * std::uint64_t(value);
    if (old) sums.differences += std::uint64_t(std::abs(old->at(column, row) - value));
  }
  return sums;
}

Picture equalize(LumaMatrix matrix, const Picture& src, const Region& region, Layout layout) {
  const Definition& format = src.format();
  const Grid y = luma(matrix, src);
  const auto counts = count(y, 1 << format.depth, format.depth, src, region, full_size);
  std::vector<int> to(counts.size());
  std::int64_t total = 0, sum = 0, lowest = 0;
  for (std::uint64_t n : counts) {
    if (lowest == 0) lowest = std::int64_t(n);
    total += std::int64_t(n);
  }
  const volatile float scale = float(format.max_value()) / float(total - lowest);
  for (std::size_t v = 0; v < to.size(); ++v) {
    sum += std::int64_t(counts[v]);
    const volatile float scaled = float(std::max<std::int64_t>(sum - lowest, 0)) * scale;
    to[v] = lowest == total ? int(v) : std::min(int(std::nearbyint(scaled)), format.max_value());
  }
  Picture out = filtered(src, region, false, layout, [&](const Grid& in, const Component& c) {
    Grid grid = in;
    for (std::size_t i = 0; i < grid.values.size(); ++i)
      if (c.role == Role::luma)
        grid.values[i] = to[in.values[i]];
      else if (!c.is_chroma())
        grid.values[i] = std::clamp(in.values[i] + to[y.values[i]] - y.values[i], 0, format.max_value());
    return grid;
  });
  for (const Component& c : format.components)
    if (c.is_chroma())
      for (const auto& [x, y] : positions(src.read(c))) out.copy(c, x, y, src);
  return out;
}

void draw(const histogram::OverlayParams& params, const histogram::Counts& counts, Picture& picture) {
  const Definition& format = picture.format();
  const Rect& at = params.position;
  const int bins = int(counts[0].counts.size()), opacity = int(std::lround(params.opacity * 256));
  const auto logarithm = [](std::uint64_t n) {  // in units of 2^−16, linear between powers of two
    std::uint64_t power = 1, exponent = 0;
    while (power * 2 <= n) power *= 2, ++exponent;
    return exponent * 65536 + (n - power) * 65536 / power;
  };
  const auto blend = [](int below, int above, int part) { return (below * (256 - part) + above * part + 128) / 256; };
  struct Colour {
    double red, green, blue;
  };
  const auto sample_of = [&](const Colour& colour, Role role) {
    const double y = 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue;
    const bool gray = format.components.size() == 1;
    const double step = 1 << (format.depth - 8), top = format.max_value();
    switch (role) {
      case Role::red:
        return int(std::lround(top * colour.red));
      case Role::green:
        return int(std::lround(top * colour.green));
      case Role::blue:
        return int(std::lround(top * colour.blue));
      case Role::luma:
        return int(std::lround(gray ? top * y : (16 + 219 * y) * step));
      case Role::cb:
        return int(std::lround((128 + 224 * (colour.blue - y) / 1.772) * step));
      default:
        return int(std::lround((128 + 224 * (colour.red - y) / 1.402) * step));
    }
  };
  const std::map<std::string, Colour> colours = {
      {"R", {1, 0, 0}}, {"G", {0, 1, 0}}, {"B", {0, 0, 1}}, {"Cb", {0, 0, 1}}, {"Cr", {1, 0, 0}}};

  std::vector<std::vector<int>> heights;
  for (const histogram::ChannelCounts& channel : counts) {
    const std::uint64_t largest = *std::max_element(channel.counts.begin(), channel.counts.end());
    std::vector<int>& of_columns = heights.emplace_back();
    for (int x = 0; x < at.width; ++x) {
      const std::int64_t begin = std::int64_t(x) * bins / at.width,
                         end = std::max(begin + 1, std::int64_t(x + 1) * bins / at.width);
      std::uint64_t count = 0;
      for (std::int64_t bin = begin; bin < end; ++bin) count = std::max(count, channel.counts[bin]);
      const std::uint64_t part = params.log ? logarithm(count + 1) : count,
                          whole = params.log ? logarithm(largest + 1) : largest;
      of_columns.push_back(whole == 0 ? 0 : int((part * at.height + whole / 2) / whole));
    }
  }
  for (const Component& c : format.components) {
    if (!c.is_color()) continue;
    const Grid grid = picture.read(c);
    for (const auto& [x, y] : positions(grid)) {
      const int column = (x << c.shift_x) - at.x, row = (y << c.shift_y) - at.y;
      if (column < 0 || row < 0 || column >= at.width || row >= at.height) continue;
      int sample = grid.at(x, y);
      sample = blend(sample, sample_of({0, 0, 0}, c.role), opacity / 2);
      bool luma = false;
      std::optional<Colour> sum;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        if (heights[i][column] < at.height - row) continue;
        const auto colour = colours.find(counts[i].name);
        if (colour == colours.end()) {
          luma = true;
          continue;
        }
        if (!sum) sum = Colour{0, 0, 0};
        *sum = {std::max(sum->red, colour->second.red), std::max(sum->green, colour->second.green),
                std::max(sum->blue, colour->second.blue)};
      }
      if (luma) sample = blend(sample, sample_of({1, 1, 1}, c.role), opacity);
      if (sum) sample = blend(sample, sample_of(*sum, c.role), opacity);
      picture.write(c, x, y, sample);
    }
  }
}

histogram::Statistics statistics(const std::vector<std::uint64_t>& counts, int depth) {
  const int bins = int(counts.size()), values = 1 << depth;
  std::vector<double> samples;
  histogram::Statistics all;
  for (int bin = 0; bin < bins; ++bin) {
    int first = -1, last = -1;
    for (int v = 0; v < values; ++v) {
      if (std::int64_t(v) * bins / values != bin) continue;
      if (first < 0) first = v;
      last = v;
    }
    for (std::uint64_t i = 0; i < counts[bin]; ++i) {
      samples.push_back((first + last) / 2.0);
      all.saturated += first == 0 || last == values - 1;
    }
  }
  all.count = samples.size();
  if (samples.empty()) return all;
  const double n = double(samples.size());
  all.saturated /= n;
  for (double v : samples) all.mean += v / n;
  for (double v : samples) all.deviation += (v - all.mean) * (v - all.mean) / n;
  all.deviation = std::sqrt(all.deviation);
  all.min = samples.front();
  all.max = samples.back();
  all.median = samples[(samples.size() + 1) / 2 - 1];
  all.p01 = samples[(samples.size() + 99) / 100 - 1];
  all.p99 = samples[(samples.size() * 99 + 99) / 100 - 1];
  for (std::uint64_t count : counts)
    if (count > 0) all.entropy += double(count) / n * std::log2(n / double(count));
  return all;
}

}  // namespace cudavision::reference
