// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/sequence.hpp"

#include <algorithm>

#include "kernels/core/guard.hpp"

namespace cudavision::diff {

Status Sequence::submit(const Image& src, const Image& dst, Queue queue) {
  return guarded([&] { return run(src, dst, queue); });
}

Status Sequence::run(const Image& src, const Image& dst, Queue queue) {
  const Params& params = plan_.params;
  const bool previous = plan_.keeps_previous();
  Frame frame;
  const bool writes = params.output != Output::none;
  const auto from = src_.read(src, queue), to = writes ? dst_.write(dst) : Result<Image>(Image{});
  if (!from.ok()) return from.error();
  if (!to.ok()) return to.error();
  frame.src = frame.whole = from.value();
  frame.dst = to.value();
  frame.number = number_;
  frame.compared = number_ >= (previous ? std::uint64_t(params.interval) : 1);
  frame.slot = int(ticket_ % std::uint64_t(params.in_flight));
  // The ring is used cyclically: this frame replaces the frame that is `interval` frames older.
  const Image* const place = plan_.has_background() ? nullptr : &ring_[previous ? number_ % ring_.size() : 0];
  if (place && (frame.compared || plan_.has_model())) frame.reference = *place;
  if (previous || (plan_.keeps_first() && number_ == 0)) frame.keep = *place;

  if (Status status = compute(frame, queue); !status.ok()) return status;
  if (writes)
    if (Status status = dst_.finish(dst, queue); !status.ok()) return status;
  compared_[std::size_t(frame.slot)] = frame.compared;
  ++number_;
  ++ticket_;
  return {};
}

bool Sequence::continue_from(Diff& other) {
  auto* const before = dynamic_cast<Sequence*>(&other);
  return before && take_over(*before);
}

bool Sequence::take_over(Sequence& previous) {
  const Geometry &here = geometry(), &there = previous.geometry();
  const Params &ours = plan_.params, &theirs = previous.plan_.params;
  if (here.format != there.format || here.width != there.width || here.height != there.height ||
      ours.reference != theirs.reference || ring_size(ours) != ring_size(theirs) ||
      ours.analysis_scale != theirs.analysis_scale)
    return false;
  if (ours.luma_only != theirs.luma_only) {  // of RGB, all channels are kept, except in models
    const FormatInfo& format = info(here.format);
    if (!format.is_gray() && (!format.is_rgb() || plan_.has_model())) return false;
  }
  if (!swap_reference(previous)) return false;
  ring_.swap(previous.ring_);
  number_ = previous.number_;
  return true;
}

const FrameResult& Sequence::result(std::uint64_t ticket) {
  if (result_.changed > 0) std::fill(result_.cells.changed.begin(), result_.cells.changed.end(), 0u);
  result_.unmasked = plan_.unmasked;
  result_.changed = 0;
  result_.changed_ratio = result_.mean_difference = 0;
  result_.cause = Cause::none;
  result_.moved_x = result_.moved_y = 0;
  const int slot = ticket == 0 ? 0 : int((ticket - 1) % std::uint64_t(plan_.params.in_flight));
  result_.compared = ticket > 0 && compared_[std::size_t(slot)];
  if (!result_.compared || result_.unmasked == 0) return result_;
  const FrameCounts found = collect(slot, result_.cells.changed);
  if (found.changed > 0 && plan_.measures_looks()) {
    result_.cells.looks.resize(result_.cells.changed.size());
    collect_looks(slot, result_.cells.looks);
  }
  result_.compared = found.compared;
  result_.cause = found.cause;
  result_.moved_x = found.moved_x * plan_.params.analysis_scale;
  result_.moved_y = found.moved_y * plan_.params.analysis_scale;
  result_.changed = found.changed;
  result_.changed_ratio = double(found.changed) / double(result_.unmasked);
  result_.mean_difference = double(found.sum) / double(plan_.analysed) * plan_.difference_unit;
  return result_;
}

Status Sequence::draw_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue) {
  return guarded([&] { return fill_boxes(dst, regions, queue); });
}

Status Sequence::fill_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue) {
  const int line = std::max(2, std::min(plan_.geometry.width, plan_.geometry.height) / 360);
  std::vector<Fill> fills;
  for (const MotionRegion& region : regions) {
    const Rect& box = region.box;
    const int across = std::min(line, box.width), down = std::min(line, box.height);
    for (const Rect& rect :
         {Rect{box.x, box.y, box.width, down}, Rect{box.x, box.y + box.height - down, box.width, down},
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

}  // namespace cudavision::diff
