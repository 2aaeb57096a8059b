// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/integral/integral.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

/// The table of luma. `tight`: without padding between rows.
Row integral(std::string name, integral::SumType type, integral::TableLayout layout, bool tight, Format format,
             double must) {
  integral::Params params;
  params.sum_type = type;
  params.layout = layout;
  Row row{
      std::move(name), format,
      operation([=](const Geometry& geometry, Backend backend) { return integral::make(params, geometry, backend); },
                [tight](integral::Integral& plan, const Slot& slot, Queue queue) {
                  const std::ptrdiff_t row_bytes =
                      std::ptrdiff_t(plan.tables()[0].width) * plan.tables()[0].entry_bytes();
                  const std::ptrdiff_t pitch = tight ? row_bytes : (row_bytes + 511) / 512 * 512;
                  return plan.submit(slot.src, {{slot.dst.planes[0].data, pitch}}, queue);
                })};
  row.table_bytes = type == integral::SumType::u32 || type == integral::SumType::f32 ? 4 : 8;
  row.must = must;
  // In YUV formats only luma is read.
  const FormatInfo& i = info(format);
  const double pixel = i.planes > 1 ? 1.5 * i.sample_bytes() : i.sets[0].channels * i.sample_bytes();
  row.moved = (row.table_bytes + (i.planes > 1 ? i.sample_bytes() : pixel)) / pixel;
  if (type == integral::SumType::u32 && format == Format::GRAY8) row.peer = {"integral"};
  return row;
}

}  // namespace

std::vector<Row> integral_rows() {
  std::vector<Row> list;
  for (auto [format, must] :
       {std::pair(Format::GRAY8, 1.15), {Format::NV12, 1.15}, {Format::RGBA, 1.3}, {Format::GRAY16_LE, 1.25}})
    list.push_back(
        integral("integral-u32", integral::SumType::u32, integral::TableLayout::inclusive, false, format, must));
  list.push_back(
      integral("integral-u32", integral::SumType::u32, integral::TableLayout::inclusive, false, Format::RGB, 0));
  list.push_back(
      integral("integral-u32-padded", integral::SumType::u32, integral::TableLayout::padded, true, Format::GRAY8, 1.2));
  for (auto [name, type] :
       {std::pair("integral-u64", integral::SumType::u64), {"integral-f32", integral::SumType::f32}})
    list.push_back(integral(name, type, integral::TableLayout::inclusive, false, Format::GRAY8, 0));
  return list;
}

}  // namespace cudavision::bench
