// SPDX-License-Identifier: LGPL-2.1-or-later
// Regions where only the light changed (diff::MotionRegions::light) and stays changed, such as the beam of a lamp, or a
// coloured wall after the camera's exposure changed. They are not objects, so the tracker does not follow them. They
// become background once they have stood still for a second.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/image.hpp"

namespace cudavision::track {

class StillLight {
 public:
  /// Updates with the light of a frame. slack: the smallest distance that counts as movement, in pixels. now: ns; see
  /// Moment.
  void advance(const std::vector<Rect>& boxes, double slack, std::uint64_t now);

  /// The boxes of lasting light, as they are in the last frame.
  const std::vector<Rect>& lasting() const { return lasting_; }

 private:
  struct Place {
    Rect first, box;            // its first box, and its box in the last frame
    std::uint64_t since, last;  // when it was first and last seen
  };

  std::vector<Place> places_;
  std::vector<Rect> lasting_;
};

}  // namespace cudavision::track
