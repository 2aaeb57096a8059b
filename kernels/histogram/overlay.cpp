// SPDX-License-Identifier: LGPL-2.1-or-later
// The overlay that draws a histogram into pictures: parameters and plan.
#include <algorithm>
#include <cmath>

#include "kernels/core/backend.hpp"
#include "kernels/core/color.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/histogram/aligned_overlay.hpp"

namespace cudavision::histogram {

Result<OverlayPlan> resolve(const OverlayParams& params, const Plan& histogram) {
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

  const ColorCoding coding(format.format, LumaMatrix::bt601, format.is_yuv());
  const Affine samples = from_rgb(coding);
  const Role first = coding.rgb ? Role::red : Role::luma;
  for (int colour = 0; colour < 8; ++colour)
    for (int c = 0; c < 3; ++c) {
      double sample = samples.m[c][3];
      for (int rgb = 0; rgb < 3; ++rgb) sample += samples.m[c][rgb] * (colour >> rgb & 1);
      plan.values[colour][int(first) + c] = std::uint16_t(std::lround(sample));
    }
  return plan;
}

Rect overlay_rect(const OverlayPlan& plan, const ChannelSet& set) {
  const auto first = [](int begin, int shift) { return subsampled(std::max(begin, 0), shift); };
  const Rect& at = plan.position;
  const int x = first(at.x, set.shift_x),
            x_end = subsampled(std::clamp(at.x + at.width, 0, plan.geometry.width), set.shift_x);
  const int y = first(at.y, set.shift_y),
            y_end = subsampled(std::clamp(at.y + at.height, 0, plan.geometry.height), set.shift_y);
  return {x, y, std::max(0, x_end - x), std::max(0, y_end - y)};
}

Status validate(const OverlayParams& params) {
  const Rect& rect = params.position;
  Status status = check_range("overlay-opacity", params.opacity, 0, 1);
  if (status.ok()) status = check_range("x of overlay-position", rect.x, -65536, 65536);
  if (status.ok()) status = check_range("y of overlay-position", rect.y, -65536, 65536);
  if (status.ok()) status = check_range("width of overlay-position", rect.width, 1, max_frame_side);
  if (status.ok()) status = check_range("height of overlay-position", rect.height, 1, max_frame_side);
  return status;
}

Status AlignedOverlay::submit(const Image& picture, Queue queue) {
  return guarded([&]() -> Status {
    const auto on = picture_.read(picture, queue);
    if (!on.ok()) return on.error();
    const Status status = draw(on.value(), queue);
    return status.ok() ? picture_.finish(picture, queue) : status;
  });
}

Result<std::unique_ptr<Overlay>> make_overlay(const OverlayParams& params, const Histogram& histogram) {
  return guarded([&]() -> Result<std::unique_ptr<Overlay>> {
    const auto& counting = static_cast<const Counting&>(histogram);  // every Histogram is a Counting
    auto plan = resolve(params, counting.plan());
    if (!plan.ok()) return plan.error();
    return on_backend(
        histogram.backend(), [&]() { return make_overlay_cuda(std::move(plan.value()), counting); },
        [&]() { return make_overlay_cpu(std::move(plan.value()), counting); });
  });
}

}  // namespace cudavision::histogram
