// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/filter.hpp"

#include <algorithm>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision {
namespace {

/// The range [begin, end) of samples on one axis of a subsampled grid. A sample at the edge of the frame may cover fewer pixels.
std::pair<int, int> cover(int begin, int end, int length, int shift, Coverage coverage) {
  begin = std::clamp(begin, 0, length);
  end = std::clamp(end, 0, length);
  if (begin >= end) return {0, 0};
  const int last = subsampled(length, shift);
  if (coverage == Coverage::outer) return {begin >> shift, subsampled(end, shift)};
  return {subsampled(begin, shift), end == length ? last : end >> shift};
}

int clipped_end(int begin, int extent) { return extent > 0 ? int(std::min<long>(long(begin) + extent, 1 << 30)) : begin; }

class Copy final : public Filter {
 public:
  using Filter::Filter;

 private:
  Status begin(const Image&, const Region& region, Queue) override {
    copied_ = region.mode == Region::Mode::inside;
    return {};
  }
  Status filter(const Image& src, const Image& dst, const SetRects&, Queue queue) override {
    return copied_ ? Status() : copy_frame(src, dst, queue);
  }
  Status copy_rects(const Image&, const Image&, const SetRects&, Queue) override { return {}; }

  bool copied_ = false;  ///< whether Filter copies the frame itself
};

}  // namespace

SetRects set_rects(const Geometry& geometry, const Rect& pixels, Coverage coverage) {
  SetRects rects;
  const FormatInfo& format = info(geometry.format);
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    const auto [x0, x1] = cover(pixels.x, clipped_end(pixels.x, pixels.width), geometry.width, set.shift_x, coverage);
    const auto [y0, y1] = cover(pixels.y, clipped_end(pixels.y, pixels.height), geometry.height, set.shift_y, coverage);
    rects[i] = {x0, y0, std::max(0, x1 - x0), std::max(0, y1 - y0)};
  }
  return rects;
}

SetRects whole_frame(const Geometry& geometry) {
  return set_rects(geometry, {0, 0, geometry.width, geometry.height}, Coverage::outer);
}

Result<std::unique_ptr<Filter>> make_copy(const Geometry& geometry, Backend backend) {
  const auto make = [&]() -> Result<std::unique_ptr<Filter>> {
    return std::unique_ptr<Filter>(std::make_unique<Copy>(geometry, backend));
  };
  return guarded([&] { return on_backend(backend, make, make); });
}

Status Filter::submit(const Image& src, const Image& dst, const Region& region, Queue queue) {
  return guarded([&]() -> Status {
    const auto from = src_.read(src, queue), to = dst_.write(dst);
    if (!from.ok()) return from.error();
    if (!to.ok()) return to.error();
    const Status status = run(from.value(), to.value(), region, queue);
    return status.ok() ? dst_.finish(dst, queue) : status;
  });
}

Status Filter::run(const Image& src, const Image& dst, const Region& region, Queue queue) {
  if (region.mode == Region::Mode::inside && region.rects.empty()) return copy_frame(src, dst, queue);
  if (Status status = begin(src, region, queue); !status.ok()) return status;
  switch (region.mode) {
    case Region::Mode::frame:
      return filter(src, dst, whole_frame(geometry_), queue);
    case Region::Mode::inside: {
      Status status = copy_frame(src, dst, queue);
      for (const Rect& rect : region.rects) {
        if (!status.ok()) break;
        status = filter(src, dst, set_rects(geometry_, rect, Coverage::inner), queue);
      }
      return status;
    }
    case Region::Mode::outside: {
      Status status = filter(src, dst, whole_frame(geometry_), queue);
      for (const Rect& rect : region.rects) {
        if (!status.ok()) break;
        status = copy_rects(src, dst, set_rects(geometry_, rect, Coverage::outer), queue);
      }
      return status;
    }
  }
  return {};
}

}  // namespace cudavision
