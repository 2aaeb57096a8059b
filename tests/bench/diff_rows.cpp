// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/diff.hpp"
#include "tests/bench/rows.hpp"

namespace cudavision::bench {
namespace {

/// The name of a row: what it does besides counting and showing, and what it omits.
std::string differs_by(const diff::Params& params) {
  std::string text;
  if (params.looks == diff::Looks::extents) text += "-extents";
  if (params.looks == diff::Looks::all) text += "-looks";
  if (params.reference == diff::Reference::first) text += "-first";  // keeps only the first frame
  if (params.open_radius == 0) text += "-no-open";
  if (params.light_change_ratio == 0) text += "-no-light";
  return text;
}

void bare(diff::Params& params) { params.open_radius = 0, params.light_change_ratio = 0; }

/// Uses the defaults of cudadiff without tracking, a mask as the output, and the changes of `set`. A sixteenth of the
/// samples differs from the previous frame, and half of that from a background (Data::motion). `moved`: bytes read and
/// written for each byte of the picture.
Row diff(const std::string& name, Format format, double moved, double must,
         std::function<void(diff::Params&)> set = {}) {
  diff::Params params;
  params.interval = diff_interval;
  params.output = diff::Output::mask;
  if (set) set(params);
  Row row{"diff-" + name + differs_by(params), format,
          operation(
              [=](const Geometry& geometry, Backend backend) { return diff::make(params, geometry, backend); },
              [](diff::Diff& plan, const Slot& slot, Queue queue) { return plan.submit(slot.src, slot.dst, queue); })};
  row.data = Data::motion;
  row.moved = moved;
  row.must = must;
  if (params.output == diff::Output::difference && differs_by(params) == "-first-no-open-no-light") {
    row.peer = {"absdiff"};
    row.peer.with_first = true;
  }
  return row;
}

/// A row with several steps, which therefore has more time at 1080p.
Row several_steps(Row row) {
  row.must_us_1080p = 15;
  return row;
}

}  // namespace

std::vector<Row> diff_rows() {
  std::vector<Row> list;
  const auto difference = [](diff::Params& p) { p.output = diff::Output::difference; };
  const auto passthrough = [](diff::Params& p) { p.output = diff::Output::none; };
  const auto first = [](diff::Params& p) { p.reference = diff::Reference::first; };
  const auto background = [](diff::Params& p) { p.reference = diff::Reference::background; };
  const auto median = [](diff::Params& p) { p.reference = diff::Reference::median; };
  const auto mog2 = [](diff::Params& p) { p.reference = diff::Reference::mog2; };
  const auto automatic = [](diff::Params& p) {
    p.reference = diff::Reference::background, p.threshold = 0, p.drop_shadows = true;
  };
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
    list.push_back(several_steps(diff("difference", format, 4, 0, difference)));
    list.push_back(several_steps(diff("mask", format, 4, 0)));
    list.push_back(several_steps(diff("passthrough", format, 3, 0, passthrough)));
    list.push_back(several_steps(diff("background", format, 6, 0, background)));
    list.push_back(several_steps(diff("median", format, 6, 0, median)));
    // parts of that work
    list.push_back(diff("difference", format, 3, 1.1, [=](diff::Params& p) { bare(p), difference(p), first(p); }));
    list.push_back(diff("mask", format, 3, 1.1, [=](diff::Params& p) { bare(p), first(p); }));
    list.push_back(diff("mask", format, 3, 1.3, [=](diff::Params& p) { p.light_change_ratio = 0, first(p); }));
    list.push_back(diff("mask", format, 4, 0, bare));
    list.push_back(diff("passthrough", format, 2, 1.3,
                        [=](diff::Params& p) { p.light_change_ratio = 0, first(p), passthrough(p); }));
    // the additional cost of showing regions, and of following objects
    list.push_back(several_steps(
        diff("passthrough", format, 3, 0, [=](diff::Params& p) { passthrough(p), p.looks = diff::Looks::extents; })));
    list.push_back(several_steps(
        diff("passthrough", format, 3, 0, [=](diff::Params& p) { passthrough(p), p.looks = diff::Looks::all; })));
    list.push_back(diff("background", format, 6, 1.1, [=](diff::Params& p) { bare(p), background(p); }));
  }
  list.push_back(diff("mask", Format::P010_10LE, 3, 0, [=](diff::Params& p) { bare(p), first(p); }));
  // A mode of one channel has 12 bytes, which are read and written. Each pixel uses one or two modes.
  list.push_back(diff("mog2", Format::GRAY8, 3, 0, mog2));
  list.push_back(diff("mog2", Format::GRAY8, 3, 40, [=](diff::Params& p) { bare(p), mog2(p); }));
  list.push_back(several_steps(diff("automatic-shadows", Format::NV12, 2, 0, automatic)));
  list.push_back(
      several_steps(diff("automatic-shadows", Format::NV12, 2, 0, [=](diff::Params& p) { bare(p), automatic(p); })));
  // Like preset=outdoor output=passthrough at 1080p, except for the size of cells.
  list.push_back(several_steps(diff("outdoor", Format::NV12, 1, 0,
                                    [=](diff::Params& p) { automatic(p), passthrough(p), p.analysis_scale = 4; })));
  list.push_back(several_steps(diff("outdoor", Format::NV12, 1, 0, [=](diff::Params& p) {
    automatic(p), passthrough(p), p.analysis_scale = 4, p.looks = diff::Looks::all;
  })));
  list.push_back(
      several_steps(diff("mask-scale-4", Format::NV12, 2, 0, [](diff::Params& p) { p.analysis_scale = 4; })));
  list.push_back(
      several_steps(diff("mask-scale-4", Format::NV12, 2, 0, [](diff::Params& p) { bare(p), p.analysis_scale = 4; })));
  return list;
}

}  // namespace cudavision::bench
