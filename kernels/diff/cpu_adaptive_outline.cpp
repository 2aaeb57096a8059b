// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_adaptive_outline.hpp"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "kernels/cpu/lanes.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/diff/adaptive_outline.hpp"

namespace cudavision::diff::adaptive {
namespace {

/// Not 0 where at_outline() of a block is true: where the blocks around it, which OpenCV clips to the mask, differ.
cv::Mat outline_of(const cv::Mat& mask) {
  cv::Mat most, least;
  cv::dilate(mask, most, cv::Mat());
  cv::erode(mask, least, cv::Mat());
  return most != least;
}

constexpr int most_pixels = 64, side = 2 * voters + 1;  // of a block; voting blocks across and down

/// The mask of a frame whose outline is refined, see refine_outline().
struct Refining {
  const Job& job;
  const cv::Mat &mask, &outline, &unmasked;
  cv::Mat& whole;
  /// Of each voting block, row by row, and each pixel of the block in their middle: nearness across times down. All
  /// blocks have the same.
  float near[side * side][most_pixels];

  int pixels() const { return 1 << 2 * job.log2_scale; }  ///< of a block
};

void set_nearness(Refining& refining) {
  const Job& job = refining.job;
  const int scale = 1 << job.log2_scale;
  for (int v = 0; v < side; ++v)
    for (int u = 0; u < side; ++u)
      for (int pixel = 0; pixel < refining.pixels(); ++pixel)
        refining.near[v * side + u][pixel] =
            mul(nearness(job, pixel % scale, u - voters), nearness(job, pixel / scale, v - voters));
}

/// pixel_changed() for all pixels of block (x, y), N at a time. C: channels.
template <typename T, int C, int N>
CUDAVISION_INLINE void refine_block(const Refining& refining, int x, int y) {
  using Floats = cpu::Lanes<float, N>;
  using Ints = cpu::Lanes<std::int32_t, N>;
  const Job& job = refining.job;
  const int scale = 1 << job.log2_scale, pixels = refining.pixels(), left = x * scale, top = y * scale;
  float samples[3][most_pixels] = {};
  for (int pixel = 0; pixel < pixels; ++pixel) {
    float value[3];
    load_pixel<T>(job, std::min(left + pixel % scale, job.whole_width - 1),
                  std::min(top + pixel / scale, job.whole_height - 1), value);
    for (int c = 0; c < 3; ++c) samples[c][pixel] = value[c];
  }
  std::int32_t changed[most_pixels];
  for (int first = 0; first < pixels; first += N) {
    Floats value[3] = {Floats::load(&samples[0][first]), Floats::load(&samples[1][first]),
                       Floats::load(&samples[2][first])};
    Ints fixed[3];
    to_frame(job, value, fixed);
    Floats votes = 0;
    for (int v = std::max(0, y - voters); v <= std::min(y + voters, job.height - 1); ++v) {
      for (int u = std::max(0, x - voters); u <= std::min(x + voters, job.width - 1); ++u) {
        const std::int16_t* const block = job.frame + job.at(u, v);
        Ints away = 0;
        CUDAVISION_CHANNELS
        for (int c = 0; c < C; ++c) {
          const Ints difference = fixed[c] - Ints(block[c * job.pixels()]);
          away = away + most(difference, 0 - difference);
        }
        const float* const near = refining.near[(v - y + voters) * side + u - x + voters];
        const Floats vote = vote_of(Floats::load(near + first), away);
        votes = refining.mask.ptr(v)[u] ? votes + vote : votes - vote;
      }
    }
    (votes > Floats(0)).store(&changed[first]);
  }
  for (int pixel = 0; pixel < pixels; ++pixel) {
    const int at_x = left + pixel % scale, at_y = top + pixel / scale;
    if (at_x < job.whole_width && at_y < job.whole_height) refining.whole.ptr(at_y)[at_x] = changed[pixel] ? 255 : 0;
  }
}

template <typename T, int N>
CUDAVISION_INLINE void refine_rows(const Refining& refining, int begin, int end) {
  for (int y = begin; y < end; ++y)
    for (int x = 0; x < refining.job.width; ++x) {
      if (!refining.outline.ptr(y)[x] || (!refining.unmasked.empty() && !refining.unmasked.ptr(y)[x])) continue;
      refining.job.channels == 1 ? refine_block<T, 1, N>(refining, x, y) : refine_block<T, 3, N>(refining, x, y);
    }
}
#ifdef CUDAVISION_AVX2
CUDAVISION_AVX2 void refine_wide(const Refining& refining, bool bytes, int begin, int end) {
  bytes ? refine_rows<std::uint8_t, 8>(refining, begin, end) : refine_rows<std::uint16_t, 8>(refining, begin, end);
}
#endif
CUDAVISION_FLAT void refine_narrow(const Refining& refining, bool bytes, int begin, int end) {
  bytes ? refine_rows<std::uint8_t, 4>(refining, begin, end) : refine_rows<std::uint16_t, 4>(refining, begin, end);
}

}  // namespace

void refine_outline(const Job& job, bool bytes, const cv::Mat& mask, const cv::Mat& unmasked, cv::Mat& whole) {
  const cv::Mat outline = outline_of(mask);
  Refining refining{job, mask, outline, unmasked, whole, {}};
  set_nearness(refining);
  const auto refine = CUDAVISION_WIDEST(refine_wide, refine_narrow);
  const double samples = double(cv::countNonZero(outline)) * refining.pixels();
  cpu::for_ranges(job.height, cpu::analysis_work(samples, 10),
                  [&](int begin, int end) { refine(refining, bytes, begin, end); });
}

}  // namespace cudavision::diff::adaptive
