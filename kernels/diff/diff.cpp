// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/diff.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision {
namespace {

bool is_rgb(const FormatInfo& format) {
  for (const ChannelSet& set : format.sets)
    if (std::find(set.roles.begin(), set.roles.end(), Role::red) != set.roles.end()) return true;
  return false;
}

bool is_gray(const FormatInfo& format) { return format.set_count == 1 && format.sets[0].channels == 1; }

Rect clipped(const Rect& rect, const Geometry& geometry) {
  const auto axis = [](int begin, int extent, int length) {
    const int from = std::clamp(begin, 0, length);
    return std::pair(from, int(std::clamp<long>(long(begin) + extent, from, length)) - from);
  };
  const auto [x, width] = axis(rect.x, rect.width, geometry.width);
  const auto [y, height] = axis(rect.y, rect.height, geometry.height);
  return {x, y, width, height};
}

/// Takes what is masked out of the plan's counts, row by row: rectangles may overlap.
void count_unmasked(detail::DiffPlan& plan) {
  const Geometry& geometry = plan.geometry;
  const std::size_t words = plan.mask_pitch() / 4;
  plan.counted_bits.assign(words * geometry.height, 0);
  std::fill(plan.cells.counted.begin(), plan.cells.counted.end(), 0);
  std::vector<bool> row(geometry.width);
  for (int y = 0; y < geometry.height; ++y) {
    std::fill(row.begin(), row.end(), true);
    for (const Rect& rect : plan.masked)
      if (y >= rect.y && y < rect.y + rect.height) std::fill_n(row.begin() + rect.x, rect.width, false);
    const std::size_t cell_row = std::size_t(y / plan.cells.cell_size) * plan.cells.width;
    for (int x = 0; x < geometry.width; ++x) {
      if (!row[x]) continue;
      plan.counted_bits[y * words + x / 32] |= 1u << x % 32;
      ++plan.cells.counted[cell_row + x / plan.cells.cell_size];
    }
  }
}

detail::RoleValues scaled(const FormatInfo& format, std::array<int, role_count> values) {
  detail::RoleValues result{};
  for (int i = 0; i < role_count; ++i)
    result[i] = std::uint16_t(values[i] == 255 ? format.max_value() : values[i] << (format.depth - 8));
  return result;
}

}  // namespace

namespace detail {

// By role: luma, cb, cr, red, green, blue, alpha, padding; in 8-bit steps.
RoleValues white_values(const FormatInfo& format) { return scaled(format, {255, 128, 128, 255, 255, 255, 0, 0}); }
RoleValues black_values(const FormatInfo& format) { return scaled(format, {0, 128, 128, 0, 0, 0, 0, 0}); }
// Red and green of BT.601 in limited range; gray pictures, which have no colour, brighten.
RoleValues tint_values(const FormatInfo& format) { return scaled(format, {is_gray(format) ? 255 : 81, 90, 240, 255, 0, 0, 0, 0}); }
RoleValues box_values(const FormatInfo& format) {
  return scaled(format, {is_gray(format) ? 255 : 145, 54, 34, 0, 255, 0, 255, 255});
}

bool DiffPlan::compares(Role role) const {
  if (role == Role::alpha || role == Role::padding || role == Role::other) return false;
  return !params.luma_only || !is_chroma(role);
}

bool DiffPlan::compares_plane(int plane) const {
  const FormatInfo& format = info(geometry.format);
  for (int i = 0; i < format.set_count; ++i)
    for (int c = 0; c < format.sets[i].channels; ++c)
      if (format.sets[i].plane == plane && compares(format.sets[i].roles[c])) return true;
  return false;
}

bool DiffPlan::luma_of_rgb() const { return params.luma_only && is_rgb(info(geometry.format)); }

Image FrameLayout::at(const Geometry& geometry, void* memory) const {
  Image image{geometry, {}};
  for (std::size_t plane = 0; plane < 3; ++plane)
    if (pitch[plane] > 0) image.planes[plane] = {static_cast<unsigned char*>(memory) + offset[plane], pitch[plane]};
  return image;
}

FrameLayout frame_layout(const DiffPlan& plan) {
  FrameLayout layout;
  for (int plane = 0; plane < info(plan.geometry.format).planes; ++plane) {
    if (!plan.compares_plane(plane)) continue;
    const PlaneExtent size = extent(plan.geometry, plane);
    layout.offset[plane] = layout.bytes;
    layout.pitch[plane] = std::ptrdiff_t((size.row_bytes + 64 + 255) / 256 * 256);
    layout.bytes += std::size_t(layout.pitch[plane]) * size.rows;
  }
  return layout;
}

int ring_size(const DiffParams& params) {
  switch (params.reference) {
    case DiffReference::previous:
      return params.interval;
    case DiffReference::background:
      return 0;
    default:  // the first frame; the means of the mixture
      return 1;
  }
}

int mixture_channels(const DiffPlan& plan) {
  const FormatInfo& format = info(plan.geometry.format);
  return plan.params.luma_only || is_gray(format) ? 1 : 3;
}

mog2::Job mixture_job(const DiffPlan& plan, const DiffFrame& frame) {
  const FormatInfo& format = info(plan.geometry.format);
  mog2::Job job;
  int count = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    for (int c = 0; c < set.channels; ++c) {
      const Role role = set.roles[c];
      if (!plan.compares(role)) continue;
      // Red, green and blue become luma in this order; else the order is the format's.
      const int at = plan.luma_of_rgb() ? int(role) - int(Role::red) : count++;
      const std::ptrdiff_t offset = std::ptrdiff_t(c) * format.sample_bytes();
      const Plane &src = frame.src.planes[set.plane], &reference = frame.reference.planes[set.plane];
      job.channels[at] = {static_cast<const unsigned char*>(src.data) + offset,
                          static_cast<unsigned char*>(reference.data) + offset,
                          src.pitch,
                          reference.pitch,
                          set.channels,
                          set.shift_x,
                          set.shift_y};
    }
  }
  job.width = plan.geometry.width;
  job.height = plan.geometry.height;
  job.luma_of_rgb = plan.luma_of_rgb();
  job.shift = format.shift;
  job.extra_bits = format.depth - 8;
  job.max_value = format.max_value();
  job.begin = !frame.compared;
  mog2::set_rate(job, frame.number);
  return job;
}

Result<DiffPlan> resolve(const DiffParams& params, const Geometry& geometry) {
  if (Status status = validate(params); !status.ok()) return status;
  const FormatInfo& format = info(geometry.format);
  DiffPlan plan;
  plan.geometry = geometry;
  plan.params = params;
  plan.threshold = params.threshold << (format.depth - 8);
  const bool squared = params.mode == DiffMode::squared;
  plan.show = {
      params.mode, params.gain == 1 && !squared, format.max_value(), format.neutral_chroma(),
      std::uint64_t(std::llround(squared ? std::ldexp(params.gain / format.max_value(), 32) : std::ldexp(params.gain, 16)))};
  plan.rate = int(std::lround(std::ldexp(params.learning_rate, background_rate_bits)));
  if (plan.rate == 0 && params.learning_rate > 0) plan.rate = 1;
  plan.cells = CellGrid(geometry.width, geometry.height, params.cell_size);
  for (const Rect& region : params.mask_regions)
    if (const Rect rect = clipped(region, geometry); !rect.empty()) plan.masked.push_back(rect);
  if (!plan.masked.empty()) count_unmasked(plan);
  for (std::uint32_t counted : plan.cells.counted) plan.counted += counted;
  return plan;
}

}  // namespace detail

Status validate(const DiffParams& params) {
  Status status = check_range("interval", params.interval, 1, diff_max_interval);
  if (status.ok()) status = check_range("learning-rate", params.learning_rate, 0, 1);
  if (status.ok()) status = check_range("threshold", params.threshold, 0, 255);
  if (status.ok()) status = check_range("gain", params.gain, 0, diff_max_gain);
  if (status.ok()) status = check_range("open-radius", params.open_radius, 0, diff_max_open_radius);
  if (status.ok()) status = check_range("cell-size", params.cell_size, diff_min_cell, diff_max_cell);
  if (status.ok()) status = check_range("frames in flight", params.in_flight, 1, diff_max_in_flight);
  return status;
}

Status Diff::submit(const Image& src, const Image& dst, Queue queue) {
  return guarded([&] { return run(src, dst, queue); });
}

Status Diff::run(const Image& src, const Image& dst, Queue queue) {
  const DiffParams& params = plan_.params;
  const bool previous = params.reference == DiffReference::previous, background = params.reference == DiffReference::background;
  detail::DiffFrame frame;
  const bool writes = params.output != DiffOutput::none;
  const auto from = src_.read(src, queue), to = writes ? dst_.write(dst) : Result<Image>(Image{});
  if (!from.ok()) return from.error();
  if (!to.ok()) return to.error();
  frame.src = from.value();
  frame.dst = to.value();
  frame.number = number_;
  frame.compared = number_ >= (previous ? std::uint64_t(params.interval) : 1);
  frame.slot = int(ticket_ % std::uint64_t(params.in_flight));
  Image* const place = background ? nullptr : &ring_[previous ? std::size_t(number_ % std::uint64_t(params.interval)) : 0];
  if (place && (frame.compared || params.reference == DiffReference::mog2)) {
    const auto reference = reference_.read(*place, queue);  // borrowed, it may lie anywhere
    if (!reference.ok()) return reference.error();
    frame.reference = reference.value();
  }
  const bool keep = previous || (params.reference == DiffReference::first && number_ == 0);
  if (keep && !params.borrow) frame.keep = *place;

  if (Status status = compute(frame, queue); !status.ok()) return status;
  if (writes)
    if (Status status = dst_.finish(dst, queue); !status.ok()) return status;
  if (keep && params.borrow) *place = src;
  compared_[std::size_t(frame.slot)] = frame.compared;
  ++number_;
  ++ticket_;
  return {};
}

bool Diff::continue_from(Diff& previous) {
  const Geometry &here = geometry(), &there = previous.geometry();
  const DiffParams &ours = plan_.params, &theirs = previous.plan_.params;
  if (here.format != there.format || here.width != there.width || here.height != there.height ||
      ours.reference != theirs.reference || ours.borrow != theirs.borrow || detail::ring_size(ours) != detail::ring_size(theirs))
    return false;
  if (ours.luma_only != theirs.luma_only) {  // of RGB all is kept, but in mixtures
    const FormatInfo& format = info(here.format);
    if (!is_gray(format) && (!is_rgb(format) || ours.reference == DiffReference::mog2)) return false;
  }
  if (!swap_reference(previous)) return false;
  ring_.swap(previous.ring_);
  number_ = previous.number_;
  return true;
}

DiffResult Diff::result(std::uint64_t ticket) const {
  DiffResult result;
  result.cells = plan_.cells;
  result.counted = plan_.counted;
  if (ticket == 0) return result;
  const int slot = int((ticket - 1) % std::uint64_t(plan_.params.in_flight));
  result.compared = compared_[std::size_t(slot)];
  if (!result.compared || result.counted == 0) return result;
  const std::uint64_t sum = collect(slot, result.cells.changed);
  for (std::uint32_t changed : result.cells.changed) result.changed += changed;
  result.changed_ratio = double(result.changed) / double(result.counted);
  result.mean_difference = std::ldexp(double(sum) / double(result.counted), 8 - info(plan_.geometry.format).depth);
  return result;
}

Status Diff::draw_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue) {
  return guarded([&] { return fill_boxes(dst, regions, queue); });
}

Status Diff::fill_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue) {
  const int line = std::max(2, std::min(plan_.geometry.width, plan_.geometry.height) / 360);
  std::vector<detail::DiffFill> fills;
  for (const MotionRegion& region : regions) {
    const Rect& box = region.box;
    const int across = std::min(line, box.width), down = std::min(line, box.height);
    for (const Rect& rect : {Rect{box.x, box.y, box.width, down}, Rect{box.x, box.y + box.height - down, box.width, down},
                             Rect{box.x, box.y, across, box.height}, Rect{box.x + box.width - across, box.y, across, box.height}}) {
      const SetRects rects = set_rects(plan_.geometry, rect, Coverage::outer);
      for (int i = 0; i < info(plan_.geometry.format).set_count; ++i)
        if (!rects[i].empty()) fills.push_back({i, rects[i]});
    }
  }
  if (fills.empty()) return {};
  const auto picture = dst_.read(dst, queue);
  if (!picture.ok()) return picture.error();
  const Status status = fill(picture.value(), fills, queue);
  return status.ok() ? dst_.finish(dst, queue) : status;
}

Result<std::unique_ptr<Diff>> make_diff(const DiffParams& params, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Diff>> {
    auto plan = detail::resolve(params, geometry);
    if (!plan.ok()) return plan.error();
    return detail::on_backend(
        backend, [&]() { return detail::make_diff_cuda(std::move(plan.value())); },
        [&]() { return detail::make_diff_cpu(std::move(plan.value())); });
  });
}

}  // namespace cudavision
