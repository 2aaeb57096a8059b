// SPDX-License-Identifier: LGPL-2.1-or-later
// Classifies changed pixels by their structure: an object, a ghost, or only light.
//
//           frame     expected    mask
//  object    /|        ___         /|      at the outline of the mask, the frame has an edge
//  ghost     ___       /|          /|      … the background has an edge: the background still shows something that left
//  light     /\/|      /\/\        /|      inside the mask, frame and background have the same edges
//
// Pixels at the outline vote for the picture with the stronger edge along the outline. Its strength is the gradient's
// component across the outline minus half of the component along it. So a pattern whose edges meet the outline at any
// angle gives few votes. Changed pixels vote for the same structure or another structure. Two luma pictures of
// Reference::adaptive are compared: the frame, and the values expected under the light of the frame. All numbers are
// integers. Ghosts by their outline: A. Bayona, J. SanMiguel, J. Martínez, Comparative evaluation of stationary
// foreground object detection algorithms based on background subtraction techniques, AVSS 2009. Light by its texture:
// A. Sanin, C. Sanderson, B. Lovell, Shadow detection: a survey and comparative evaluation of recent methods, Pattern
// Recognition 2012.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/host_device.hpp"

namespace cudavision::diff {

/// Numbers of pixels.
struct Structure {
  /// Pixels at the outline: edge stronger in the frame, and edge stronger in the background.
  std::uint32_t edges, reference_edges;
  /// Changed pixels: with the edges of the background, and with other edges. Pixels without edges are not counted.
  std::uint32_t same, other;

  CUDAVISION_HOST_DEVICE void add(const Structure& from) {
    edges += from.edges;
    reference_edges += from.reference_edges;
    same += from.same;
    other += from.other;
  }
};

/// The differences between the neighbours of a pixel across and down, in 8-bit steps.
struct Gradient {
  int x, y;

  CUDAVISION_HOST_DEVICE int size() const {
    const int across = x < 0 ? -x : x, down = y < 0 ? -y : y;
    return across > down ? across : down;
  }
};

/// The direction across the outline of the mask at a pixel. It is the sum of the offsets of the surrounding pixels (5 ×
/// 5) that differ from the pixel: changed around an unchanged pixel, and the reverse. It is long where the outline is
/// straight and next to the pixel.
struct Across {
  int x, y;

  /// Whether the pixel is at the outline and the direction is clear: a straight outline beside the pixel gives 15.
  CUDAVISION_HOST_DEVICE bool is_clear() const { return x * x + y * y > 12 * 12; }
  /// The length, overestimated by at most 8 %.
  CUDAVISION_HOST_DEVICE int length() const {
    const int a = x < 0 ? -x : x, b = y < 0 ? -y : y;
    return a > b ? a + (3 * b >> 3) : b + (3 * a >> 3);
  }
  /// The strength of an edge along the outline in a picture with this gradient, 0 or more: 2 · length() · (component of
  /// the gradient across the outline − half of the component along it).
  CUDAVISION_HOST_DEVICE int edge(const Gradient& gradient) const {
    const int across = gradient.x * x + gradient.y * y, along = gradient.y * x - gradient.x * y;
    const int strength = 2 * (across < 0 ? -across : across) - (along < 0 ? -along : along);
    return strength < 0 ? 0 : strength;
  }
};

/// The pictures of the analysis: width × height pixels, row-major, with rows of `pitch` numbers.
struct StructureJob {
  const std::int16_t* frame = nullptr;     ///< luma in 1/128 of 8-bit steps; null: there are no votes
  const std::uint8_t* expected = nullptr;  ///< luma in 8-bit steps
  int pitch = 0, width = 0, height = 0;

  static constexpr int outline = 2;      ///< radius of the square of pixels that Across uses: 5 × 5
  static constexpr int least_edge = 12;  ///< difference by which an edge must be stronger, in 8-bit steps
  static constexpr int least_size = 12;  ///< smallest size of a gradient that shows structure

  /// Adds the votes of pixel (x, y). changed(x, y): whether a pixel changed.
  template <typename Changed>
  CUDAVISION_HOST_DEVICE void vote(int x, int y, Changed changed, Structure& votes) const {
    vote(x, y, across(x, y, changed), changed(x, y), votes);
  }
  /// Adds the votes for a known direction across the outline. `here`: whether the pixel changed.
  CUDAVISION_HOST_DEVICE void vote(int x, int y, const Across& across, bool here, Structure& votes) const {
    const bool clear = across.is_clear();
    if (!clear && !here) return;
    const Gradient a = frame_gradient(x, y), b = expected_gradient(x, y);
    const int size = a.size(), reference_size = b.size(), most = size > reference_size ? size : reference_size;
    if (here && most >= least_size) ++(2 * Gradient{a.x - b.x, a.y - b.y}.size() <= most ? votes.same : votes.other);
    if (!clear) return;
    const int edge = across.edge(a), reference_edge = across.edge(b), least = 2 * least_edge * across.length();
    votes.edges += edge > reference_edge + least;
    votes.reference_edges += reference_edge > edge + least;
  }

  /// The gradients at a pixel. Pixels beyond the border repeat the edge.
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
  CUDAVISION_HOST_DEVICE Across across(int x, int y, Changed changed) const {
    const bool here = changed(x, y);
    Across sum{0, 0};
    for (int v = y - outline < 0 ? 0 : y - outline; v <= y + outline && v < height; ++v)
      for (int u = x - outline < 0 ? 0 : x - outline; u <= x + outline && u < width; ++u)
        if (changed(u, v) != here) sum.x += u - x, sum.y += v - y;
    return sum;
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
