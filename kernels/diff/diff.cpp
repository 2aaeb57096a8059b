// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/diff.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {
namespace {

/// Counts the pixels outside the masked regions row by row, because regions may overlap.
void count_unmasked(Plan& plan) {
  const int scale = plan.params.analysis_scale;
  const std::size_t words = plan.mask_pitch() / 4;
  plan.unmasked_bits.assign(words * plan.analysis.height, 0);
  plan.analysed = 0;
  std::fill(plan.cells.unmasked.begin(), plan.cells.unmasked.end(), 0);
  std::vector<bool> row(plan.analysis.width);
  for (int y = 0; y < plan.geometry.height; ++y) {
    if (y % scale == 0) {
      const int at = y / scale;
      std::fill(row.begin(), row.end(), true);
      for (const Rect& rect : plan.masked)
        if (at >= rect.y && at < rect.y + rect.height) std::fill_n(row.begin() + rect.x, rect.width, false);
      for (int x = 0; x < plan.analysis.width; ++x)
        if (row[x]) plan.unmasked_bits[at * words + x / 32] |= 1u << x % 32, ++plan.analysed;
    }
    const std::size_t cell_row = std::size_t(y / plan.cells.cell_size) * plan.cells.width;
    for (int x = 0; x < plan.geometry.width; ++x)
      if (row[x / scale]) ++plan.cells.unmasked[cell_row + x / plan.cells.cell_size];
  }
}

/// The pixels of the analysis that contain pixels of `rect`, which lies in the frame.
Rect analysed(const Rect& rect, int scale) {
  const int x = rect.x / scale, y = rect.y / scale;
  return {x, y, (rect.x + rect.width + scale - 1) / scale - x, (rect.y + rect.height + scale - 1) / scale - y};
}

RoleValues scaled(const FormatInfo& format, std::array<int, role_count> values) {
  RoleValues result{};
  for (int i = 0; i < role_count; ++i)
    result[i] = std::uint16_t(values[i] == 255 ? format.max_value() : values[i] << (format.depth - 8));
  return result;
}

}  // namespace

// Values by role: luma, cb, cr, red, green, blue, alpha, padding; in 8-bit steps, where 255 is the largest sample.
RoleValues white_values(const FormatInfo& format) { return scaled(format, {255, 128, 128, 255, 255, 255, 0, 0}); }
RoleValues black_values(const FormatInfo& format) { return scaled(format, {0, 128, 128, 0, 0, 0, 0, 0}); }
// The tint is red, and boxes are green (BT.601, limited range). Gray pictures have no colour and become brighter.
RoleValues tint_values(const FormatInfo& format) {
  return scaled(format, {format.is_gray() ? 255 : 81, 90, 240, 255, 0, 0, 0, 0});
}
RoleValues box_values(const FormatInfo& format) {
  return scaled(format, {format.is_gray() ? 255 : 145, 54, 34, 0, 255, 0, 255, 255});
}

bool Plan::compares(Role role) const { return is_color(role) && !(params.luma_only && is_chroma(role)); }

bool Plan::compares_plane(int plane) const {
  const FormatInfo& format = info(geometry.format);
  for (int i = 0; i < format.set_count; ++i)
    for (int c = 0; c < format.sets[i].channels; ++c)
      if (format.sets[i].plane == plane && compares(format.sets[i].roles[c])) return true;
  return false;
}

bool Plan::luma_of_rgb() const { return params.luma_only && info(geometry.format).is_rgb(); }

Image FrameLayout::at(const Geometry& geometry, void* memory) const {
  Image image{geometry, {}};
  for (std::size_t plane = 0; plane < pitch.size(); ++plane)
    if (pitch[plane] > 0) image.planes[plane] = {static_cast<unsigned char*>(memory) + offset[plane], pitch[plane]};
  return image;
}

FrameLayout frame_layout(const Plan& plan) {
  FrameLayout layout;
  for (int plane = 0; plane < info(plan.geometry.format).planes; ++plane) {
    if (!plan.compares_plane(plane)) continue;
    const PlaneExtent size = extent(plan.analysis, plane);
    layout.offset[plane] = layout.bytes;
    layout.pitch[plane] = std::ptrdiff_t((size.row_bytes + 64 + 255) / 256 * 256);
    layout.bytes += std::size_t(layout.pitch[plane]) * size.rows;
  }
  return layout;
}

int ring_size(const Params& params) {
  switch (params.reference) {
    case Reference::previous:
      return params.interval;
    case Reference::background:
    case Reference::median:
      break;
    case Reference::first:     // the first frame
    case Reference::mog2:      // the means of the model
    case Reference::adaptive:  // the means of the model
      return 1;
  }
  return 0;
}

int compared_channels(const Plan& plan) {
  const FormatInfo& format = info(plan.geometry.format);
  return plan.params.luma_only || format.is_gray() ? 1 : 3;
}

namespace {

/// Finds the compared channels of two pictures, in the order of the format or, if `in_rgb_order`, as red, green and
/// blue.
void find_channels(const Plan& plan, const Image& src, const Image& reference, bool in_rgb_order,
                   ChannelView (&channels)[3], ChannelView (&references)[3]) {
  const FormatInfo& format = info(plan.geometry.format);
  int count = 0;
  for (int i = 0; i < format.set_count; ++i)
    for (int c = 0; c < format.sets[i].channels; ++c) {
      const Role role = format.sets[i].roles[c];
      if (!plan.compares(role)) continue;
      const int at = in_rgb_order ? int(role) - int(Role::red) : count++;
      channels[at] = channel_of(src, format.sets[i], c);
      references[at] = channel_of(reference, format.sets[i], c);
    }
}

}  // namespace

mog2::Job mixture_job(const Plan& plan, const Frame& frame) {
  const FormatInfo& format = info(plan.geometry.format);
  mog2::Job job;
  find_channels(plan, frame.src, frame.reference, plan.luma_of_rgb(), job.channels, job.reference);
  job.width = plan.analysis.width;
  job.height = plan.analysis.height;
  job.luma_of_rgb = plan.luma_of_rgb();
  job.shift = format.shift;
  job.extra_bits = format.depth - 8;
  job.max_value = format.max_value();
  job.begin = !frame.compared;
  job.number = frame.number;
  job.history = std::uint64_t(plan.params.history);
  job.learning_rate = plan.params.learning_rate;
  job.match = float(plan.params.variance_threshold);
  job.drop_shadows = plan.params.drop_shadows;
  job.shadow_threshold = float(plan.params.shadow_threshold);
  for (int c = 0; c < 3; ++c) job.black[c] = float(plan.shadow.black[c] >> job.extra_bits);
  return job;
}

adaptive::Job adaptive_job(const Plan& plan, const Frame& frame) {
  const FormatInfo& format = info(plan.geometry.format);
  adaptive::Job job;
  job.rgb = format.is_rgb();
  job.channels = compared_channels(plan);
  find_channels(plan, frame.whole, frame.reference, job.rgb, job.inputs, job.reference);
  job.width = plan.analysis.width;
  job.height = plan.analysis.height;
  job.whole_width = plan.geometry.width;
  job.whole_height = plan.geometry.height;
  job.log2_scale = plan.log2_scale();
  job.pitch = adaptive::pitch_of(job.width);
  job.cells_x = adaptive::cells_along(job.width);
  job.cells_y = adaptive::cells_along(job.height);
  job.black = format.is_yuv() ? 16 : 0;
  job.shift = format.shift;
  job.extra_bits = format.depth - 8;
  job.max_value = format.max_value();
  job.begin = !frame.compared;
  job.compensates = plan.params.light_compensation;
  job.drops_shadows = plan.params.drop_shadows;
  job.shows_mean = plan.compares_samples();
  job.shadow_threshold = float(plan.params.shadow_threshold);
  if (plan.params.learning_rate >= 0) job.rate = float(plan.params.learning_rate);
  if (const double limit = plan.params.noise_limit; limit > 0)
    job.most_variance = job.most_steady = float(limit * limit);
  job.number = frame.number;
  return job;
}

LearningMap learning_map(const Plan& plan, const Learning* cells) {
  return {cells, plan.cells.width, plan.params.cell_size, plan.log2_scale()};
}

camera::Rule camera_rule(const Plan& plan, const Frame& frame) {
  return {frame.number, plan.detects_light() ? plan.light_limit : ~0u, std::uint32_t(plan.analysed),
          unsigned(plan.light_age())};
}

StructureJob structure_job(const adaptive::Job& job) {
  return {job.frame, job.expected, job.pitch, job.width, job.height};
}

LooksJob looks_job(const Plan& plan, const Frame& frame) {
  const FormatInfo& format = info(plan.geometry.format);
  LooksJob job;
  job.count = format.is_gray() ? 1 : 3;
  job.rgb = format.is_rgb();
  for (int c = 0; c < job.count; ++c)
    job.channels[c] = channel_of(frame.whole, Role(int(job.rgb ? Role::red : Role::luma) + c));
  job.width = plan.geometry.width;
  job.height = plan.geometry.height;
  job.log2_scale = plan.log2_scale();
  job.shift = format.shift;
  job.extra_bits = format.depth - 8;
  job.max_value = format.max_value();
  job.only_extents = plan.params.looks == Looks::extents;
  // The threshold would be a share of all pixels, not of the counted pixels. If pixels are masked, 0 is right for every
  // cell.
  if (plan.masked.empty()) job.cell_threshold = plan.params.cell_threshold;
  return job;
}

std::size_t Plan::model_bytes() const {
  if (has_adaptive()) return adaptive::state_bytes(analysis.width, analysis.height, adaptive::device_places);
  return mog2::state_bytes(analysis.width, analysis.height, compared_channels(*this));
}

namespace {

/// The background moves at any learning rate above 0.
Follow follow_of(const Params& params, const FormatInfo& format) {
  const int bytes = format.sample_bytes();
  const auto fixed = [](double value, int bits) {
    const int rounded = int(std::lround(std::ldexp(value, bits)));
    return value > 0 ? std::max(rounded, 1) : rounded;
  };
  const double given = params.learning_rate;
  if (params.reference != Reference::median)
    return {fixed(given < 0 ? background_rate : given, background_rate_bits), unlimited_step(bytes)};
  const int bits_of_step = format.depth - 8 + background_bits(bytes);  // an 8-bit step, in the fixed point
  return {1 << background_rate_bits, std::uint32_t(fixed(given < 0 ? median_rate : given, bits_of_step))};
}

}  // namespace

Result<Plan> resolve(const Params& params, const Geometry& geometry) {
  if (Status status = validate(params); !status.ok()) return status;
  const FormatInfo& format = info(geometry.format);
  Plan plan;
  const int scale = params.analysis_scale;
  plan.geometry = plan.analysis = geometry;
  plan.analysis.width = (geometry.width + scale - 1) / scale;
  plan.analysis.height = (geometry.height + scale - 1) / scale;
  plan.analysed = std::uint64_t(plan.analysis.width) * plan.analysis.height;
  plan.params = params;
  if (is_adaptive(params)) plan.params.reference = Reference::adaptive;
  plan.threshold = params.threshold << (format.depth - 8);
  plan.difference_unit = plan.has_adaptive() ? adaptive::fixed_step : std::ldexp(1, 8 - format.depth);
  const bool squared = params.mode == Mode::squared;
  plan.show = {params.mode, params.gain == 1 && !squared, format.max_value(), format.neutral_chroma(),
               std::uint64_t(std::llround(squared ? std::ldexp(params.gain / format.max_value(), 32)
                                                  : std::ldexp(params.gain, 16)))};
  plan.shadow.channels = compared_channels(plan);
  if (!format.is_gray() && !format.is_rgb())
    for (int c = 0; c < 3; ++c) plan.shadow.black[c] = c == 0 ? 16 << (format.depth - 8) : format.neutral_chroma();
  plan.shadow.threshold = plan.threshold;
  plan.shadow.least = int(std::lround(std::ldexp(params.shadow_threshold, shadow_bits)));
  plan.follow = follow_of(params, format);
  plan.cells = CellGrid(geometry.width, geometry.height, params.cell_size);
  plan.cells.analysis_scale = scale;
  for (const Rect& region : params.mask_regions)
    if (const Rect rect = intersection(region, {0, 0, geometry.width, geometry.height}); !rect.empty())
      plan.masked.push_back(analysed(rect, scale));
  if (!plan.masked.empty()) count_unmasked(plan);
  for (std::uint32_t unmasked : plan.cells.unmasked) plan.unmasked += unmasked;
  plan.light_limit = std::uint32_t(params.light_change_ratio * double(plan.analysed));
  return plan;
}

Status validate(const Params& params) {
  Status status = check_range("interval", params.interval, 1, max_interval);
  if (status.ok()) status = check_range("learning-rate", params.learning_rate, -1, 1);
  if (status.ok()) status = check_range("history", params.history, 1, max_history);
  if (status.ok()) status = check_range("variance-threshold", params.variance_threshold, 0, max_variance_threshold);
  if (const int scale = params.analysis_scale; status.ok() && scale != 1 && scale != 2 && scale != 4 && scale != 8)
    status = Status::settings("analysis-scale is " + std::to_string(scale) + ": it must be 1, 2, 4 or 8");
  if (status.ok()) status = check_range("threshold", params.threshold, 0, 255);
  if (status.ok()) status = check_range("noise-limit", params.noise_limit, 0, 255);
  if (status.ok()) status = check_range("shadow-threshold", params.shadow_threshold, 0, 1);
  if (status.ok()) status = check_range("light-change-ratio", params.light_change_ratio, 0, 1);
  if (status.ok()) status = check_range("gain", params.gain, 0, max_gain);
  if (status.ok()) status = check_range("open-radius", params.open_radius, 0, max_open_radius);
  if (status.ok()) status = check_range("cell-size", params.cell_size, min_cell, max_cell);
  if (status.ok()) status = check_range("cell-threshold", params.cell_threshold, 0, 1);
  if (status.ok()) status = check_range("frames in flight", params.in_flight, 1, max_in_flight);
  return status;
}

Result<std::unique_ptr<Diff>> make(const Params& params, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Diff>> {
    auto plan = resolve(params, unpacked(geometry));
    if (!plan.ok()) return plan.error();
    return on_backend(
        backend, [&]() { return make_cuda(std::move(plan.value())); },
        [&]() { return make_cpu(std::move(plan.value())); });
  });
}

}  // namespace cudavision::diff
