// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/histogram/sharpness.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/histogram/histogram.hpp"
#include "kernels/histogram/measuring.hpp"

namespace cudavision::histogram {

void LumaSums::add(const LumaSums& other) {
  pixels += other.pixels;
  luma += other.luma;
  squares += other.squares;
  neighbours += other.neighbours;
  gradients += other.gradients;
  differences += other.differences;
  compared |= other.compared;
}

namespace {

/// A mean, in 8-bit steps.
double mean(std::uint64_t sum, std::uint64_t number, int depth) {
  return number == 0 ? 0 : std::ldexp(double(sum) / double(number), 8 - depth);
}

}  // namespace

double sharpness_of(const LumaSums& sums, int depth) { return mean(sums.gradients, sums.neighbours, depth); }
double mean_of(const LumaSums& sums, int depth) { return mean(sums.luma, sums.pixels, depth); }
double difference_of(const LumaSums& sums, int depth) { return mean(sums.differences, sums.pixels, depth); }
double deviation_of(const LumaSums& sums, int depth) {
  const double square = mean(sums.squares, sums.pixels, 8), luma = mean(sums.luma, sums.pixels, 8);
  return std::ldexp(std::sqrt(std::max(square - luma * luma, 0.0)), 8 - depth);
}

LumaSource luma_source(const FormatInfo& format) {
  LumaSource source;
  source.rgb = format.is_rgb();
  source.three_planes = format.is_planar_rgb();
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    for (int c = 0; c < set.channels; ++c) {
      const Role role = set.roles[c];
      const bool colour = role >= Role::red && role <= Role::blue;
      if (role != Role::luma && !colour) continue;
      source.position[colour ? int(role) - int(Role::red) : 0] = source.three_planes ? i : c;
      if (!source.three_planes) source.set = i;
    }
  }
  return source;
}

Status validate(const SharpnessParams& params) { return check_range("history", params.history, 1, max_history); }

MeasuringPlan::MeasuringPlan(const SharpnessParams& params, const Geometry& geometry, Backend backend)
    : params_(params),
      geometry_(geometry),
      source_(luma_source(info(geometry.format))),
      src_(backend),
      known_(std::size_t(params.history)) {
  region_pieces(geometry_, {}, frame_);
}

MeasuringPlan::Known MeasuringPlan::count(const std::vector<Rect>& pieces) const {
  Known known;
  for (const Rect& piece : pieces) {
    const auto pixels = [](int width, int height) { return std::uint64_t(width) * std::uint64_t(height); };
    const bool at_right = piece.x + piece.width == geometry_.width,
               at_bottom = piece.y + piece.height == geometry_.height;
    known.pixels += pixels(piece.width, piece.height);
    known.neighbours += pixels(piece.width - at_right, piece.height) + pixels(piece.width, piece.height - at_bottom);
  }
  return known;
}

Status MeasuringPlan::submit(const Image& src, const Region& region, Queue queue) {
  return guarded([&]() -> Status {
    const auto from = src_.read(src, queue);
    if (!from.ok()) return from.error();
    const bool whole = region.mode == Region::Mode::frame;
    if (!whole) region_pieces(geometry_, region, pieces_);
    const std::vector<Rect>& pieces = whole ? frame() : pieces_[std::size_t(source_.set)];
    last_ = (last_ + 1) % params_.history;
    Known& known = known_[std::size_t(last_)] = count(pieces);
    known.compared = any_kept_;
    any_kept_ = false;  // in case this frame fails
    const Status status = measure({from.value(), pieces, whole, known.compared, params_.compare, last_}, queue);
    any_kept_ = status.ok() && params_.compare;
    return status;
  });
}

LumaSums MeasuringPlan::result(int age) const {
  const int slot = slot_of(age);
  const Known& known = known_[std::size_t(slot)];
  const std::uint64_t* const sums = sums_of(slot);
  return {known.pixels,        sums[sum_luma],        sums[sum_squares], known.neighbours,
          sums[sum_gradients], sums[sum_differences], known.compared};
}

Result<std::unique_ptr<Sharpness>> make_sharpness(const SharpnessParams& params, const Geometry& geometry,
                                                  Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Sharpness>> {
    if (Status status = validate(params); !status.ok()) return status;
    return on_backend(
        backend, [&] { return make_sharpness_cuda(params, unpacked(geometry)); },
        [&] { return make_sharpness_cpu(params, unpacked(geometry)); });
  });
}

}  // namespace cudavision::histogram
