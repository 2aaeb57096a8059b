// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/filter.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/outline.hpp"

namespace cudavision {
namespace {

int clipped_end(int begin, int extent) {
  return extent > 0 ? int(std::min<long>(long(begin) + extent, 1 << 30)) : begin;
}

class Copy final : public Filter {
 public:
  Copy(const Geometry& geometry, Backend backend) : Filter(geometry, backend, true) {}

 private:
  Status begin(const Image&, const Region& region, Queue) override {
    copied_ = region.mode == Region::Mode::inside;
    return {};
  }
  Status filter(const Image& src, const Image& dst, const SetRects&, Queue queue) override {
    return copied_ ? Status() : copy_frame(src, dst, queue);
  }
  Status copy_rects(const Image&, const Image&, const SetRects&, Queue) override { return {}; }
  Status copy_outline(const Image&, const Image&, const SetRects&, const Outline&, Coverage, Queue) override {
    return {};
  }

  bool copied_ = false;  ///< whether Filter copies the frame itself
};

}  // namespace

std::pair<int, int> samples_of(int begin, int end, int length, int shift, Coverage coverage) {
  begin = std::clamp(begin, 0, length);
  end = std::clamp(end, 0, length);
  if (begin >= end) return {0, 0};
  const int last = subsampled(length, shift);
  if (coverage == Coverage::outer) return {begin >> shift, subsampled(end, shift)};
  return {subsampled(begin, shift), end == length ? last : end >> shift};
}

SetRects set_rects(const Geometry& geometry, const Rect& pixels, Coverage coverage) {
  SetRects rects;
  const FormatInfo& format = info(geometry.format);
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    const auto [x0, x1] =
        samples_of(pixels.x, clipped_end(pixels.x, pixels.width), geometry.width, set.shift_x, coverage);
    const auto [y0, y1] =
        samples_of(pixels.y, clipped_end(pixels.y, pixels.height), geometry.height, set.shift_y, coverage);
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

/// The rectangles to pass to filter().
SetRects Filter::computed(SetRects rects) const {
  if (copies_alpha_) rects[std::size_t(info(geometry_.format).alpha_set())] = {};
  return rects;
}

Status Filter::run(const Image& src, const Image& dst, const Region& region, Queue queue) {
  if (region.mode == Region::Mode::inside && region.empty()) return copy_frame(src, dst, queue);
  if (Status status = find_shapes(region); !status.ok()) return status;
  if (Status status = begin(src, region, queue); !status.ok()) return status;
  if (region.mode == Region::Mode::inside) {
    const Status status = copy_frame(src, dst, queue);
    return status.ok() ? filter_parts(src, dst, parts_, queue) : status;
  }
  box_ = {0, 0, geometry_.width, geometry_.height};
  if (copies_alpha_)
    if (Status status = copy_picture(backend_, src, dst, queue, info(geometry_.format).planes - 1); !status.ok())
      return status;
  const Status status = filter(src, dst, computed(whole_frame(geometry_)), queue);
  return status.ok() && region.mode == Region::Mode::outside ? restore_inside(src, dst, queue) : status;
}

Status Filter::find_shapes(const Region& region) {
  parts_.clear();
  if (region.mode == Region::Mode::frame) return {};
  for (const Rect& rect : region.rects) parts_.push_back({near_frame(rect)});
  for (const Rect& box : region.ellipses) parts_.push_back({near_frame(box), nullptr, true});
  for (const Polygon& polygon : region.polygons) {
    if (polygon.size() > max_outline_corners)
      return Status::settings("a polygon has " + std::to_string(polygon.size()) + " corners: at most " +
                              std::to_string(max_outline_corners) + " are allowed");
    parts_.push_back({near_frame(box_around(polygon)), &polygon, true});
  }
  const auto side = [](const Part& part) { return std::min(part.box.width, part.box.height); };
  std::stable_sort(parts_.begin(), parts_.end(), [&](const Part& a, const Part& b) { return side(a) < side(b); });
  return {};
}

Status Filter::filter_parts(const Image& src, const Image& dst, const std::vector<Part>& parts, Queue queue) {
  for (const Part& part : parts) {
    const SetRects rects = computed(set_rects(geometry_, part.box, Coverage::inner));
    box_ = part.box;
    Status status;
    if (!part.cut) {
      status = filter(src, dst, rects, queue);
    } else {
      const auto picture = part_.allocate(geometry_);
      if (!picture.ok()) return picture.error();
      status = filter(src, picture.value(), rects, queue);
      if (status.ok())
        status = copy_outline(picture.value(), dst, rects, {part.box, part.polygon}, Coverage::inner, queue);
    }
    if (!status.ok()) return status;
  }
  return {};
}

Status Filter::restore_inside(const Image& src, const Image& dst, Queue queue) {
  for (const Part& part : parts_) {
    const SetRects rects = set_rects(geometry_, part.box, Coverage::outer);
    const Status status = part.cut ? copy_outline(src, dst, rects, {part.box, part.polygon}, Coverage::outer, queue)
                                   : copy_rects(src, dst, rects, queue);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace cudavision
