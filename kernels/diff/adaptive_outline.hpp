// SPDX-License-Identifier: LGPL-2.1-or-later
// Refines the outline of the mask of Reference::adaptive to the resolution of the frame, where pixels of the analysis
// are blocks of frame pixels:
//
//   blocks   . . # #        pixels of blocks at the outline compare with the blocks around them,
//            . . # #   ->   and follow near blocks that look like them:
//            . # # #        a joint bilateral filter of the mask
//
// J. Kopf, M. Cohen, D. Lischinski, M. Uyttendaele, Joint bilateral upsampling, SIGGRAPH 2007. Only the shown mask is
// refined. Counts use blocks, so results do not depend on the output.
#pragma once

#include "kernels/diff/adaptive.hpp"

namespace cudavision::diff::adaptive {

inline constexpr int voters = 2;  ///< number of blocks examined on each side of the block of a pixel
/// A block does not look like the pixel if the differences of luma, Cb and Cr add up to at least this many 8-bit steps.
inline constexpr int unlike_look = 80;

/// Whether block (x, y) is at the outline of the mask. changed(x, y): whether a block changed.
template <typename Changed>
CUDAVISION_HOST_DEVICE bool at_outline(const Job& job, int x, int y, Changed changed) {
  const bool here = changed(x, y);
  for (int v = y > 0 ? y - 1 : 0; v <= y + 1 && v < job.height; ++v)
    for (int u = x > 0 ? x - 1 : 0; u <= x + 1 && u < job.width; ++u)
      if (changed(u, v) != here) return true;
  return false;
}

/// The weight of a block by its distance along one axis from a pixel. `pixel`: coordinate in the frame.
CUDAVISION_HOST_DEVICE inline float nearness(const Job& job, int pixel, int block) {
  const int scale = 1 << job.log2_scale, twice = 2 * (pixel - block * scale) + 1 - scale;  // to the middle of the block
  const float blocks = mul(float(twice), 0.5f / float(scale)),
              near = most(0, sub(1, mul(mul(blocks, blocks), 1.0f / 16)));
  return mul(near, near);
}

/// Loads the sample of frame pixel (x, y), in 8-bit steps. T: the type of stored words.
template <typename T>
CUDAVISION_HOST_DEVICE void load_pixel(const Job& job, int x, int y, float (&value)[3]) {
  for (int c = 0; c < 3; ++c)
    value[c] = c < job.channels || job.rgb ? mul(mean_of_samples<T, 1>(job, job.inputs[c], x, y), sample_step(job)) : 0;
}

/// Converts samples to the representation of the background, in fixed point.
template <typename F>
CUDAVISION_FORMULA void to_frame(const Job& job, F (&value)[3], IntOf<F> (&fixed)[3]) {
  to_background(job, value);
  CUDAVISION_CHANNELS
  for (int c = 0; c < 3; ++c) fixed[c] = to_fixed(value[c]);
}

/// The weight of the vote of a block. `near`: the product of its nearness across and down; `away`: the sum of the
/// channel differences between block and pixel, in fixed point.
template <typename F>
CUDAVISION_FORMULA F vote_of(F near, IntOf<F> away) {
  const F like = most(F(1), sub(F(unlike_look), from_fixed(away)));
  return mul(near, mul(like, like));
}

/// Whether frame pixel (x, y) changed, judged by its sample. T: the type of stored words.
template <typename T, typename Changed>
CUDAVISION_HOST_DEVICE bool pixel_changed(const Job& job, int x, int y, Changed changed) {
  float value[3];
  int fixed[3];
  load_pixel<T>(job, x, y, value);
  to_frame(job, value, fixed);
  const int block_x = x >> job.log2_scale, block_y = y >> job.log2_scale;
  float votes = 0;
  for (int v = block_y > voters ? block_y - voters : 0; v <= block_y + voters && v < job.height; ++v) {
    for (int u = block_x > voters ? block_x - voters : 0; u <= block_x + voters && u < job.width; ++u) {
      int away = 0;
      for (int c = 0; c < job.channels; ++c) {
        const int difference = fixed[c] - job.frame[c * job.pixels() + job.at(u, v)];
        away += difference < 0 ? -difference : difference;
      }
      const float vote = vote_of(mul(nearness(job, x, u), nearness(job, y, v)), away);
      votes = changed(u, v) ? add(votes, vote) : sub(votes, vote);
    }
  }
  return votes > 0;
}

}  // namespace cudavision::diff::adaptive
