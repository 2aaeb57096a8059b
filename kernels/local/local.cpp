// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/local.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {

Status validate(const Params& params) {
  if (params.operation == Operation::nlm && params.radius > nlm_max_radius)
    return Status::settings("radius is " + std::to_string(params.radius) + ": it must be 0 to " +
                            std::to_string(nlm_max_radius) + " for nlm");
  Status status = check_range("radius", params.radius, 0, max_radius);
  if (status.ok()) status = check_range("sensitivity", params.sensitivity, 0, 1);
  if (status.ok()) status = check_range("search-radius", params.search_radius, 1, nlm_max_search_radius);
  if (status.ok()) status = check_range("strength", params.strength, nlm_min_strength, nlm_max_strength);
  return status;
}

namespace {

using integral::TableSource;

/// The channels that need a table.
std::vector<TableSource> find_sources(Operation operation, const FormatInfo& format) {
  const integral::TableChannel channel =
      operation == Operation::threshold ? integral::TableChannel::luma : integral::TableChannel::all;
  std::vector<TableSource> sources = integral::table_sources(format, channel, false);
  const auto is_from_chroma = [&](const TableSource& source) {
    return is_chroma(format.sets[source.set].roles[source.channel]);
  };
  if (makes_neutral(operation))
    sources.erase(std::remove_if(sources.begin(), sources.end(), is_from_chroma), sources.end());
  return sources;
}

/// The radius, if it follows the region, for a box of the region.
int following_radius(const Geometry& geometry, const Rect& box) {
  const int side = std::min({box.width, box.height, geometry.width, geometry.height});
  return std::max(divide_up(side, 8), min_following_radius);
}

bool follows(Operation operation, int radius) {
  return radius == 0 && (operation == Operation::box_mean || operation == Operation::pixelate);
}

}  // namespace

Window window_of(const Plan& plan, int set, const Rect& box) {
  const ChannelSet& channels = info(plan.geometry.format).sets[set];
  const int pixels = follows(plan.operation, plan.pixels) ? following_radius(plan.geometry, box) : plan.pixels;
  const int side = plan.operation == Operation::pixelate ? 2 * pixels + 1 : 0;
  const auto axis = [&](int origin, int shift) { return Axis{subsampled(pixels, shift), side, origin, shift}; };
  return {axis(box.x, channels.shift_x), axis(box.y, channels.shift_y)};
}

Plan resolve(const Params& params, const Geometry& geometry) {
  const FormatInfo& format = info(geometry.format);
  Plan plan;
  plan.geometry = geometry;
  plan.operation = params.operation;
  plan.factor = 1 - params.sensitivity;
  const double step = std::ldexp(params.strength, format.depth - 8);
  plan.scale = -1 / (step * step);
  plan.pixels = params.radius;
  const int radius = follows(params.operation, params.radius)
                         ? following_radius(geometry, {0, 0, geometry.width, geometry.height})
                         : params.radius;
  for (auto& channels : plan.table_of) channels.fill(-1);
  double most = 0;  // the largest sum of any window
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    const Rect grid = geometry.grid(set);
    plan.radius[i] = {subsampled(radius, set.shift_x), subsampled(radius, set.shift_y)};
    plan.search[i] = {subsampled(params.search_radius, set.shift_x), subsampled(params.search_radius, set.shift_y)};
    most = std::max(most, double(std::min(2 * plan.radius[i].x + 1, grid.width)) *
                              std::min(2 * plan.radius[i].y + 1, grid.height) * format.max_value());
  }
  if (params.operation == Operation::nlm) return plan;

  const std::vector<TableSource> sources = find_sources(params.operation, format);
  for (std::size_t t = 0; t < sources.size(); ++t) {
    if (!sources[t].luma) {
      plan.table_of[sources[t].set][sources[t].channel] = int(t);
      continue;
    }
    for (Role role : {Role::red, Role::green, Role::blue}) {
      const TableSource at = integral::find_role(format, role);
      plan.table_of[at.set][at.channel] = int(t);
    }
  }
  plan.squares = int(sources.size());
  plan.tables =
      integral::resolve_tables(geometry, true, sources, most < 0x1p32 ? integral::SumType::u32 : integral::SumType::u64,
                               params.operation == Operation::deviation, integral::SumType::u64);
  return plan;
}

Result<std::unique_ptr<Filter>> make(const Params& params, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Filter>> {
    if (Status status = validate(params); !status.ok()) return status;
    Plan plan = resolve(params, unpacked(geometry));
    return on_backend(
        backend,
        [&]() {
          if (plan.operation == Operation::nlm) return make_nlm_cuda(std::move(plan));
          return plan.operation == Operation::pixelate ? make_mosaic_cuda(std::move(plan))
                                                       : make_box_cuda(std::move(plan));
        },
        [&]() { return make_cpu(std::move(plan)); });
  });
}

}  // namespace cudavision::local
