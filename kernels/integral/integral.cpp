// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/integral/integral.hpp"

#include <string>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/integral/plan.hpp"

namespace cudavision::integral {
namespace {

Plan resolve(const Params& params, const Geometry& geometry) {
  const FormatInfo& format = info(geometry.format);
  SumType type = params.sum_type;
  if (type == SumType::automatic) {
    // No grid of samples is larger than the frame.
    const std::uint64_t most =
        std::uint64_t(geometry.width) * std::uint64_t(geometry.height) * std::uint64_t(format.max_value());
    type = most <= 0xffffffffu ? SumType::u32 : SumType::u64;
  }
  const bool real = type == SumType::f32 || type == SumType::f64;
  return resolve_tables(geometry, params.layout == TableLayout::padded, table_sources(format, params.channel, true),
                        type, params.squared, real ? SumType::f64 : SumType::u64);
}

}  // namespace

TableSource find_role(const FormatInfo& format, Role role) {
  for (int s = 0; s < format.set_count; ++s)
    for (int c = 0; c < format.sets[s].channels; ++c)
      if (format.sets[s].roles[c] == role) return {false, std::uint8_t(s), std::uint8_t(c)};
  return {};
}

std::vector<TableSource> table_sources(const FormatInfo& format, TableChannel channel, bool alpha) {
  if (channel == TableChannel::luma) {
    if (format.has(Role::luma)) return {find_role(format, Role::luma)};
    return {{true, 0, 0}};
  }
  std::vector<TableSource> sources;
  for (int s = 0; s < format.set_count; ++s)
    for (int c = 0; c < format.sets[s].channels; ++c) {
      const Role role = format.sets[s].roles[c];
      if (role == Role::other || role == Role::padding || (role == Role::alpha && !alpha)) continue;
      sources.push_back({false, std::uint8_t(s), std::uint8_t(c)});
    }
  return sources;
}

Plan resolve_tables(const Geometry& geometry, bool padded, const std::vector<TableSource>& sources, SumType type,
                    bool squared, SumType squared_type) {
  const FormatInfo& format = info(geometry.format);
  Plan plan{geometry, padded, {}, {}};
  for (bool squares : {false, true}) {
    if (squares && !squared) continue;
    for (const TableSource& source : sources) {
      const Rect grid = geometry.grid(format.sets[source.set]);
      const Role role = source.luma ? Role::luma : format.sets[source.set].roles[source.channel];
      plan.tables.push_back({role, squares, squares ? squared_type : type, grid.width + padded, grid.height + padded});
      plan.sources.push_back(source);
    }
  }
  return plan;
}

Status Integral::submit(const Image& src, const std::vector<Plane>& tables, Queue queue) {
  return guarded([&]() -> Status {
    if (tables.size() != tables_.size())
      return Status::settings("the plan has " + std::to_string(tables_.size()) + " tables, not " +
                              std::to_string(tables.size()));
    const auto from = src_.read(src, queue);
    return from.ok() ? compute(from.value(), tables, queue) : from.error();
  });
}

std::vector<TableInfo> describe_tables(const Params& params, const Geometry& geometry) {
  return resolve(params, geometry).tables;
}

Result<std::unique_ptr<Integral>> make(const Params& params, const Geometry& geometry, Backend backend) {
  return guarded([&] {
    Plan plan = resolve(params, unpacked(geometry));
    return on_backend(
        backend, [&]() { return make_cuda(std::move(plan)); }, [&]() { return make_cpu(std::move(plan)); });
  });
}

}  // namespace cudavision::integral
