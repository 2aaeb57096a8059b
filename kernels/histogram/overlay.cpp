// SPDX-License-Identifier: LGPL-2.1-or-later
// The overlay that draws a histogram into pictures: parameters and plan.
#include <algorithm>
#include <cmath>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/histogram/plan.hpp"

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

  const bool gray = format.set_count == 1 && format.sets[0].channels == 1;
  for (int colour = 0; colour < 8; ++colour) {
    const double red = colour & 1, green = colour >> 1 & 1, blue = colour >> 2 & 1;
    const double y = 0.299 * red + 0.587 * green + 0.114 * blue;
    const auto set = [&](Role role, double of_255) {
      const double full = of_255 / 255 * format.max_value(), video = of_255 * (1 << (format.depth - 8));
      const bool rgb = role == Role::red || role == Role::green || role == Role::blue || gray;
      plan.values[colour][std::size_t(role)] = std::uint16_t(std::lround(rgb ? full : video));
    };
    set(Role::red, 255 * red);
    set(Role::green, 255 * green);
    set(Role::blue, 255 * blue);
    set(Role::luma, gray ? 255 * y : 16 + 219 * y);
    set(Role::cb, 128 + 224 * (blue - y) / 1.772);
    set(Role::cr, 128 + 224 * (red - y) / 1.402);
  }
  return plan;
}

Rect overlay_rect(const OverlayPlan& plan, const ChannelSet& set) {
  const auto first = [](int begin, int shift) { return subsampled(std::max(begin, 0), shift); };
  const Rect& at = plan.position;
  const int x = first(at.x, set.shift_x), x_end = subsampled(std::clamp(at.x + at.width, 0, plan.geometry.width), set.shift_x);
  const int y = first(at.y, set.shift_y), y_end = subsampled(std::clamp(at.y + at.height, 0, plan.geometry.height), set.shift_y);
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

Status Overlay::submit(const Image& picture, Queue queue) {
  return guarded([&]() -> Status {
    const auto on = picture_.read(picture, queue);
    if (!on.ok()) return on.error();
    const Status status = draw(on.value(), queue);
    return status.ok() ? picture_.finish(picture, queue) : status;
  });
}

Result<std::unique_ptr<Overlay>> make_overlay(const OverlayParams& params, const Histogram& histogram) {
  return guarded([&]() -> Result<std::unique_ptr<Overlay>> {
    auto plan = resolve(params, histogram.plan());
    if (!plan.ok()) return plan.error();
    return on_backend(
        histogram.backend(), [&]() { return make_overlay_cuda(std::move(plan.value()), histogram); },
        [&]() { return make_overlay_cpu(std::move(plan.value()), histogram); });
  });
}

}  // namespace cudavision::histogram
