// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/histogram/histogram.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision {
namespace detail {

bool HistogramPlan::counts(const ChannelSet& set) const {
  for (int c = 0; c < set.channels; ++c)
    if (set.roles[c] != Role::other && table_of[std::size_t(set.roles[c])] >= 0) return true;
  return rgb_luma && &set == &info(geometry.format).sets[0];
}

Result<HistogramPlan> resolve(const HistogramParams& params, const Geometry& geometry) {
  if (Status status = validate(params); !status.ok()) return status;
  const FormatInfo& format = info(geometry.format);
  HistogramPlan plan;
  plan.geometry = geometry;
  plan.bins = params.bins;
  // Values of 8 bits are always counted singly: there are few. Deeper ones where the bins are no fewer.
  plan.fine = format.depth == 8 ? 256 : std::min(params.bins, 1 << format.depth);
  plan.history = params.history;
  plan.weights = luma_weights(params.luma);
  plan.table_of.fill(-1);

  const bool luma = params.channels != HistogramChannels::components, components = params.channels != HistogramChannels::luma;
  bool rgb = true;
  std::array<bool, role_count> present{};
  for (int i = 0; i < format.set_count; ++i) {
    for (int c = 0; c < format.sets[i].channels; ++c) {
      const Role role = format.sets[i].roles[c];
      if (role == Role::other) continue;
      present[std::size_t(role)] = true;
      if (role == Role::luma) rgb = false;
    }
  }
  plan.rgb_luma = rgb && luma;
  plan.three_planes = plan.rgb_luma && format.set_count == 3;
  if (plan.rgb_luma) plan.tables = 1;
  const auto add_table = [&](Role role) {
    if (role == Role::luma ? luma || components : components && role < Role::alpha)
      plan.table_of[std::size_t(role)] = std::int8_t(plan.tables++);
  };
  if (plan.three_planes) {
    for (Role role : {Role::red, Role::green, Role::blue}) add_table(role);
  } else {
    for (int i = 0; i < format.set_count; ++i)
      for (int c = 0; c < format.sets[i].channels; ++c)
        if (format.sets[i].roles[c] != Role::other) add_table(format.sets[i].roles[c]);
  }

  const auto add_channel = [&](const char* name, int table, int colour) {
    plan.table[plan.channels.size()] = std::uint8_t(table);
    plan.colour[plan.channels.size()] = std::uint8_t(colour);
    plan.channels.push_back(name);
  };
  if (luma) add_channel("luma", rgb ? 0 : plan.table_of[std::size_t(Role::luma)], 7);
  if (components) {
    struct Component {
      Role role;
      const char* name;
      int colour;
    };
    for (const auto& [role, name, colour] : {Component{Role::luma, "Y", 7},
                                             {Role::cb, "Cb", 4},
                                             {Role::cr, "Cr", 1},
                                             {Role::red, "R", 1},
                                             {Role::green, "G", 2},
                                             {Role::blue, "B", 4}})
      if (present[std::size_t(role)]) add_channel(name, plan.table_of[std::size_t(role)], colour);
  }
  return plan;
}

Result<OverlayPlan> resolve(const HistogramOverlayParams& params, const HistogramPlan& histogram) {
  if (Status status = validate(params); !status.ok()) return status;
  const FormatInfo& format = info(histogram.geometry.format);
  OverlayPlan plan;
  plan.geometry = histogram.geometry;
  plan.position = params.position;
  plan.channels = int(histogram.channels.size());
  plan.bins = histogram.bins;
  plan.log = params.log;
  plan.opacity = int(std::lround(params.opacity * 256));
  plan.colour = histogram.colour;
  for (int c = 0; c < plan.channels; ++c)
    if (plan.colour[c] == 7) plan.luma |= std::uint8_t(1 << c);

  const bool gray = format.set_count == 1 && format.sets[0].channels == 1;
  for (int colour = 0; colour < 8; ++colour) {
    const double red = colour & 1, green = colour >> 1 & 1, blue = colour >> 2 & 1;
    const double y = 0.299 * red + 0.587 * green + 0.114 * blue;
    const auto set = [&](Role role, double of_255) {
      const double full = of_255 / 255 * format.max_value(), video = of_255 * (1 << (format.depth - 8));
      const bool rgb = role == Role::red || role == Role::green || role == Role::blue || gray;
      plan.values[colour][std::size_t(role)] = std::uint16_t(std::lround(rgb ? full : video));
    };
    set(Role::red, 255 * red);
    set(Role::green, 255 * green);
    set(Role::blue, 255 * blue);
    set(Role::luma, gray ? 255 * y : 16 + 219 * y);
    set(Role::cb, 128 + 224 * (blue - y) / 1.772);
    set(Role::cr, 128 + 224 * (red - y) / 1.402);
  }
  return plan;
}

Rect overlay_rect(const OverlayPlan& plan, const ChannelSet& set) {
  const auto first = [](int begin, int shift) { return subsampled(std::max(begin, 0), shift); };
  const Rect& at = plan.position;
  const int x = first(at.x, set.shift_x), x_end = subsampled(std::clamp(at.x + at.width, 0, plan.geometry.width), set.shift_x);
  const int y = first(at.y, set.shift_y), y_end = subsampled(std::clamp(at.y + at.height, 0, plan.geometry.height), set.shift_y);
  return {x, y, std::max(0, x_end - x), std::max(0, y_end - y)};
}

}  // namespace detail

Status validate(const HistogramParams& params) {
  if (Status status = check_range("bins", params.bins, 2, histogram_max_bins); !status.ok()) return status;
  return check_range("history", params.history, 1, histogram_max_history);
}

Status validate(const HistogramOverlayParams& params) {
  const Rect& rect = params.position;
  Status status = check_range("overlay-opacity", params.opacity, 0, 1);
  if (status.ok()) status = check_range("x of overlay-position", rect.x, -65536, 65536);
  if (status.ok()) status = check_range("y of overlay-position", rect.y, -65536, 65536);
  if (status.ok()) status = check_range("width of overlay-position", rect.width, 1, 16384);
  if (status.ok()) status = check_range("height of overlay-position", rect.height, 1, 16384);
  return status;
}

Histogram::Histogram(detail::HistogramPlan plan, Backend backend, bool results)
    : plan_(std::make_unique<const detail::HistogramPlan>(std::move(plan))),
      backend_(backend),
      slots_(results ? plan_->history : 0),
      src_(backend) {
  region_pieces(plan_->geometry, {}, frame_);
}

const Geometry& Histogram::geometry() const { return plan_->geometry; }
int Histogram::bins() const { return plan_->bins; }
const std::vector<const char*>& Histogram::channels() const { return plan_->channels; }
int Histogram::slots() const { return slots_; }
std::size_t Histogram::words() const { return plan_->channels.size() * std::size_t(plan_->bins); }

Status Histogram::submit(const Image& src, const Region& region, Queue queue) {
  return guarded([&]() -> Status {
    const auto from = src_.read(src, queue);
    if (!from.ok()) return from.error();
    if (slots_ > 0) last_ = (last_ + 1) % slots_;
    if (region.mode == Region::Mode::frame) return count(from.value(), frame_, last_, queue);
    region_pieces(plan_->geometry, region, pieces_);
    return count(from.value(), pieces_, last_, queue);
  });
}

Status HistogramOverlay::submit(const Image& picture, Queue queue) {
  return guarded([&]() -> Status {
    const auto on = picture_.read(picture, queue);
    if (!on.ok()) return on.error();
    const Status status = draw(on.value(), queue);
    return status.ok() ? picture_.finish(picture, queue) : status;
  });
}

HistogramCounts Histogram::result(int age) const {
  HistogramCounts counts;
  add_result(counts, age);
  return counts;
}

void Histogram::add_result(HistogramCounts& sums, int age) const {
  const std::size_t bins = std::size_t(plan_->bins);
  if (sums.empty())
    for (const char* name : plan_->channels) sums.push_back({name, std::vector<std::uint64_t>(bins)});
  const std::uint32_t* from = slot_counts(((last_ - age) % slots_ + slots_) % slots_);
  for (ChannelCounts& channel : sums)
    for (std::uint64_t& sum : channel.counts) sum += *from++;
}

HistogramStatistics statistics(const std::vector<std::uint64_t>& counts, int depth) {
  HistogramStatistics all;
  const int bins = int(counts.size());
  const auto value = [&](int bin) {
    return (detail::first_value(bin, bins, depth) + detail::first_value(bin + 1, bins, depth) - 1) / 2.0;
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
    std::uint64_t rank;  ///< the sample of this place in order, from 1
    double* value;
  };
  const auto ceil_part = [&](std::uint64_t part, std::uint64_t of) {
    return all.count / of * part + (all.count % of * part + of - 1) / of;
  };
  const Quantile quantiles[] = {{ceil_part(1, 100), &all.p01}, {ceil_part(1, 2), &all.median}, {ceil_part(99, 100), &all.p99}};
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
  if (lowest == highest) all.entropy = 0;  // and not −0
  all.deviation = std::sqrt(squares / count);
  const int top = int(std::uint64_t((1 << depth) - 1) * unsigned(bins) >> depth);
  all.saturated = double(counts[0] + (top > 0 ? counts[top] : 0)) / count;
  return all;
}

Result<std::unique_ptr<Histogram>> make_histogram(const HistogramParams& params, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Histogram>> {
    auto plan = detail::resolve(params, geometry);
    if (!plan.ok()) return plan.error();
    return detail::on_backend(
        backend, [&]() { return detail::make_histogram_cuda(std::move(plan.value()), true); },
        [&]() { return detail::make_histogram_cpu(std::move(plan.value())); });
  });
}

Result<std::unique_ptr<Filter>> make_equalize(LumaMatrix matrix, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Filter>> {
    HistogramParams params;
    params.bins = 1 << info(geometry.format).depth;
    params.luma = matrix;
    auto plan = detail::resolve(params, geometry);
    if (!plan.ok()) return plan.error();
    return detail::on_backend(
        backend, [&]() { return detail::make_equalize_cuda(std::move(plan.value())); },
        [&]() { return detail::make_equalize_cpu(std::move(plan.value())); });
  });
}

Result<std::unique_ptr<HistogramOverlay>> make_histogram_overlay(const HistogramOverlayParams& params, const Histogram& histogram) {
  return guarded([&]() -> Result<std::unique_ptr<HistogramOverlay>> {
    auto plan = detail::resolve(params, histogram.plan());
    if (!plan.ok()) return plan.error();
    return detail::on_backend(
        histogram.backend(), [&]() { return detail::make_histogram_overlay_cuda(std::move(plan.value()), histogram); },
        [&]() { return detail::make_histogram_overlay_cpu(std::move(plan.value()), histogram); });
  });
}

}  // namespace cudavision
