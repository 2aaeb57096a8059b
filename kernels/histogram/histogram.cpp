// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/histogram/histogram.hpp"

#include <algorithm>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/histogram/counting.hpp"

namespace cudavision::histogram {

bool Plan::counts(const ChannelSet& set) const {
  for (int c = 0; c < set.channels; ++c)
    if (set.roles[c] != Role::other && table_of[std::size_t(set.roles[c])] >= 0) return true;
  return rgb_luma && &set == &info(geometry.format).sets[0];
}

Result<Plan> resolve(const Params& params, const Geometry& geometry) {
  if (Status status = validate(params); !status.ok()) return status;
  const FormatInfo& format = info(geometry.format);
  Plan plan;
  plan.geometry = geometry;
  plan.bins = params.bins;
  // Tables of 8-bit samples have an entry for each value, because there are few values. Tables of deeper samples have
  // an entry for each value or for each bin, whichever is fewer.
  plan.fine = format.depth == 8 ? 256 : std::min(params.bins, 1 << format.depth);
  plan.history = params.history;
  plan.weights = luma_weights(params.luma);
  plan.table_of.fill(-1);

  const bool luma = params.channels != Channels::components, components = params.channels != Channels::luma;
  plan.rgb_luma = format.is_rgb() && luma;
  plan.three_planes = plan.rgb_luma && format.is_planar();
  if (plan.rgb_luma) plan.tables = 1;
  const auto add_table = [&](Role role) {
    if (role == Role::luma ? luma || components : components && is_color(role))
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
  if (luma) add_channel("luma", plan.rgb_luma ? 0 : plan.table_of[std::size_t(Role::luma)], 7);
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
      if (format.has(role)) add_channel(name, plan.table_of[std::size_t(role)], colour);
  }
  return plan;
}

Status validate(const Params& params) {
  if (Status status = check_range("bins", params.bins, 2, max_bins); !status.ok()) return status;
  return check_range("history", params.history, 1, max_history);
}

Counting::Counting(Plan plan, Backend backend, bool results)
    : plan_(std::move(plan)), backend_(backend), slots_(results ? plan_.history : 0), src_(backend) {
  region_pieces(plan_.geometry, {}, frame_);
}

Status Counting::submit(const Image& src, const Region& region, Queue queue) {
  return guarded([&]() -> Status {
    const auto from = src_.read(src, queue);
    if (!from.ok()) return from.error();
    if (slots_ > 0) last_ = (last_ + 1) % slots_;
    if (region.mode == Region::Mode::frame) return count(from.value(), frame_, last_, queue);
    region_pieces(plan_.geometry, region, pieces_);
    return count(from.value(), pieces_, last_, queue);
  });
}

void Counting::add_result(Counts& sums, int age) const {
  const std::size_t bins = std::size_t(plan_.bins);
  if (sums.empty())
    for (const char* name : plan_.channels) sums.push_back({name, std::vector<std::uint64_t>(bins)});
  const std::uint32_t* from = slot_counts(((last_ - age) % slots_ + slots_) % slots_);
  for (ChannelCounts& channel : sums)
    for (std::uint64_t& sum : channel.counts) sum += *from++;
}

namespace {

/// Converts to the public Histogram.
Result<std::unique_ptr<Histogram>> as_histogram(Result<std::unique_ptr<Counting>> made) {
  if (!made.ok()) return made.error();
  return std::unique_ptr<Histogram>(std::move(made.value()));
}

}  // namespace

Result<std::unique_ptr<Histogram>> make(const Params& params, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Histogram>> {
    auto plan = resolve(params, unpacked(geometry));
    if (!plan.ok()) return plan.error();
    return on_backend(
        backend, [&]() { return as_histogram(make_cuda(std::move(plan.value()), true)); },
        [&]() { return as_histogram(make_cpu(std::move(plan.value()))); });
  });
}

Result<std::unique_ptr<Filter>> make_equalize(LumaMatrix matrix, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Filter>> {
    Params params;
    params.bins = 1 << info(geometry.format).depth;
    params.luma = matrix;
    auto plan = resolve(params, unpacked(geometry));
    if (!plan.ok()) return plan.error();
    return on_backend(
        backend, [&]() { return make_equalize_cuda(std::move(plan.value())); },
        [&]() { return make_equalize_cpu(std::move(plan.value())); });
  });
}

}  // namespace cudavision::histogram
