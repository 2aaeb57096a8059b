// SPDX-License-Identifier: LGPL-2.1-or-later
// Classifies changed pixels by their structure: an object, a ghost, or only light.
//
//           frame     expected    mask
//  object    /|        ___         /|      at the outline of the mask, the frame has an edge
//  ghost     ___       /|          /|      … the background has it: something went away that the background still shows
//  light     /\/|      /\/\        /|      inside, frame and background have the same edges
//
// Pixels near the outline vote for the picture with the stronger edge. Changed pixels vote for the same structure or
// another one. The luma of Reference::adaptive is compared: the samples of the frame, and the values expected under the
// light of the frame. All numbers are integers. Ghosts by their outline: A. Bayona, J. SanMiguel, J. Martínez,
// Comparative evaluation of stationary foreground object detection algorithms based on background subtraction
// techniques, AVSS 2009. Light by its texture: A. Sanin, C. Sanderson, B. Lovell, Shadow detection: a survey and
// comparative evaluation of recent methods, Pattern Recognition 2012.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/host_device.hpp"

namespace cudavision::diff {

/// Numbers of pixels.
struct Structure {
  /// Pixels near the outline: with the stronger edge in the frame, and with the stronger edge in the background.
  std::uint32_t edges, reference_edges;
  /// Changed pixels: with the edges of the background, and with other edges. Pixels without edges do not count.
  std::uint32_t same, other;

  CUDAVISION_HOST_DEVICE void add(const Structure& from) {
    edges += from.edges;
    reference_edges += from.reference_edges;
    same += from.same;
    other += from.other;
  }
};

/// The difference of the neighbours of a pixel across and down, in 8-bit steps.
struct Gradient {
  int x, y;

  CUDAVISION_HOST_DEVICE int size() const {
    const int across = x < 0 ? -x : x, down = y < 0 ? -y : y;
    return across > down ? across : down;
  }
};

/// The pictures of the analysis, of width × height pixels, row-major with rows of `pitch` numbers.
struct StructureJob {
  const std::int16_t* frame = nullptr;     ///< luma in 1/128 of 8-bit steps; null: there are no votes
  const std::uint8_t* expected = nullptr;  ///< luma in 8-bit steps
  int pitch = 0, width = 0, height = 0;

  static constexpr int outline = 2;      ///< radius: near the outline, some of 5 × 5 pixels changed and some did not
  static constexpr int least_edge = 8;   ///< difference by which an edge must be stronger
  static constexpr int least_size = 12;  ///< least size of a gradient that shows structure

  /// Adds the votes of pixel (x, y). changed(x, y): whether a pixel changed.
  template <typename Changed>
  CUDAVISION_HOST_DEVICE void vote(int x, int y, Changed changed, Structure& votes) const {
    vote(x, y, near_outline(x, y, changed), changed(x, y), votes);
  }
  /// Does the same if the caller knows whether the pixel is near the outline, and whether it changed.
  CUDAVISION_HOST_DEVICE void vote(int x, int y, bool near, bool here, Structure& votes) const {
    if (!near && !here) return;
    const Gradient a = frame_gradient(x, y), b = expected_gradient(x, y);
    const int size = a.size(), reference_size = b.size(), most = size > reference_size ? size : reference_size;
    if (here && most >= least_size) ++(2 * Gradient{a.x - b.x, a.y - b.y}.size() <= most ? votes.same : votes.other);
    if (!near) return;
    votes.edges += size > reference_size + least_edge;
    votes.reference_edges += reference_size > size + least_edge;
  }

  /// The gradients at a pixel. Beyond the border, the pictures are repeated.
  CUDAVISION_HOST_DEVICE Gradient frame_gradient(int x, int y) const {
    return gradient(x, y, [this](std::size_t at) {
      const int luma = frame[at] >> 7;
      return luma < 0 ? 0 : luma;
    });
  }
  CUDAVISION_HOST_DEVICE Gradient expected_gradient(int x, int y) const {
    return gradient(x, y, [this](std::size_t at) { return int(expected[at]); });
  }

 private:
  template <typename Changed>
  CUDAVISION_HOST_DEVICE bool near_outline(int x, int y, Changed changed) const {
    const bool here = changed(x, y);
    for (int v = y - outline < 0 ? 0 : y - outline; v <= y + outline && v < height; ++v)
      for (int u = x - outline < 0 ? 0 : x - outline; u <= x + outline && u < width; ++u)
        if (changed(u, v) != here) return true;
    return false;
  }
  template <typename At>
  CUDAVISION_HOST_DEVICE Gradient gradient(int x, int y, At at) const {
    const int left = x > 0 ? x - 1 : x, right = x + 1 < width ? x + 1 : x;
    const int top = y > 0 ? y - 1 : y, bottom = y + 1 < height ? y + 1 : y;
    const auto index = [this](int u, int v) { return std::size_t(v) * pitch + u; };
    return {at(index(right, y)) - at(index(left, y)), at(index(x, bottom)) - at(index(x, top))};
  }
};

}  // namespace cudavision::diff
