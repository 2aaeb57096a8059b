// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/diff.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

/// `moved`: bytes read and written for each byte of the picture.
Row diff(const std::string& name, Format format, double moved, double must, std::function<void(diff::Params&)> set) {
  diff::Params params;
  params.interval = diff_interval;
  params.borrow = true;
  params.open_radius = 0;
  params.output = diff::Output::mask;
  set(params);
  Row row{"diff-" + name, format,
          operation([=](const Geometry& geometry, Backend backend) { return diff::make(params, geometry, backend); },
                    [](diff::Diff& plan, const Slot& slot, Queue queue) { return plan.submit(slot.src, slot.dst, queue); })};
  row.moved = moved;
  row.must = must;
  if (params.reference == diff::Reference::previous && params.output == diff::Output::difference) row.peer = {"absdiff"};
  return row;
}

/// A row that takes several steps, and so has more time at 1080p.
Row several_steps(Row row) {
  row.must_us_1080p = 15;
  return row;
}

}  // namespace

std::vector<Row> diff_rows() {
  std::vector<Row> list;
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
    list.push_back(diff("mask", format, 3, 1.1, [](diff::Params&) {}));
    list.push_back(diff("absolute", format, 3, 1.1, [](diff::Params& p) { p.output = diff::Output::difference; }));
    list.push_back(diff("mask-open", format, 3, 1.3, [](diff::Params& p) { p.open_radius = 1; }));
    list.push_back(diff("mask-keep", format, 4, 0, [](diff::Params& p) { p.borrow = false; }));
    list.push_back(diff("grid-open", format, 2, 1.3, [](diff::Params& p) { p.output = diff::Output::none, p.open_radius = 1; }));
    list.push_back(diff("background", format, 6, 1.1, [](diff::Params& p) { p.reference = diff::Reference::background; }));
  }
  list.push_back(diff("mask", Format::P010_10LE, 3, 0, [](diff::Params&) {}));
  // A mode of one channel has 12 bytes, which are read and written. Each pixel uses 2 to 5 modes.
  list.push_back(diff("mog2", Format::GRAY8, 3, 40, [](diff::Params& p) { p.reference = diff::Reference::mog2; }));
  list.push_back(several_steps(diff("automatic", Format::NV12, 2, 0, [](diff::Params& p) {
    p.reference = diff::Reference::background, p.threshold = 0, p.drop_shadows = true;
  })));
  // As preset=outdoor at 1080p, but for the size of cells.
  list.push_back(several_steps(diff("outdoor", Format::NV12, 1, 0, [](diff::Params& p) {
    p.reference = diff::Reference::background, p.threshold = 0, p.analysis_scale = 4, p.drop_shadows = true;
    p.light_change_ratio = 0.6, p.open_radius = 1, p.output = diff::Output::none;
  })));
  list.push_back(several_steps(diff("mask-scale-4", Format::NV12, 2, 0, [](diff::Params& p) { p.analysis_scale = 4; })));
  return list;
}

}  // namespace cudavision::bench
