// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_adaptive_outline.hpp"

#include <algorithm>
#include <cstring>
#include <opencv2/imgproc.hpp>

#include "kernels/cpu/lanes.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/diff/adaptive_outline.hpp"

namespace cudavision::diff::adaptive {
namespace {

/// Not 0 for blocks where at_outline() is true: where the surrounding blocks differ. OpenCV clips these to the mask.
cv::Mat outline_of(const cv::Mat& mask) {
  cv::Mat most, least;
  cv::dilate(mask, most, cv::Mat());
  cv::erode(mask, least, cv::Mat());
  return most != least;
}

constexpr int most_pixels = 64, side = 2 * voters + 1;  // most_pixels: of a block; side: voting blocks across and down

/// The mask of a frame whose outline is refined; see refine_outline().
struct Refining {
  const Job& job;
  const cv::Mat &mask, &outline, &unmasked;
  cv::Mat& whole;
  const MaskBytes bytes;  ///< of `whole`
  /// For each voting block, row by row, and each pixel of the block in the middle: nearness across times nearness down.
  /// The values are the same for all blocks; values of small blocks are repeated.
  float near[side * side][most_pixels];

  int pixels() const { return 1 << 2 * job.log2_scale; }  ///< pixels of a block
};

void set_nearness(Refining& refining) {
  const Job& job = refining.job;
  const int scale = 1 << job.log2_scale;
  for (int v = 0; v < side; ++v)
    for (int u = 0; u < side; ++u)
      for (int i = 0; i < most_pixels; ++i) {
        const int pixel = i % refining.pixels();
        refining.near[v * side + u][i] =
            mul(nearness(job, pixel % scale, u - voters), nearness(job, pixel / scale, v - voters));
      }
}

/// Loads the samples of the pixels of block (x, y), as load_pixel() does. `samples` holds zeros.
template <typename T>
CUDAVISION_INLINE void load_block(const Refining& refining, int x, int y, float* const (&samples)[3]) {
  const Job& job = refining.job;
  const int scale = 1 << job.log2_scale, left = x * scale, top = y * scale, channels = job.rgb ? 3 : job.channels;
  const bool inside = left + scale <= job.whole_width;
  for (int c = 0; c < channels; ++c) {
    const ChannelView channel = job.inputs[c];
    float* to = samples[c];
    for (int row = top; row < top + scale; ++row) {
      const auto* const from = channel.at(0, std::min(row, job.whole_height - 1) >> channel.shift_y);
      for (int at = left; at < left + scale; ++at) {
        const int column = (inside ? at : std::min(at, job.whole_width - 1)) >> channel.shift_x;
        const T sample = *reinterpret_cast<const T*>(from + std::ptrdiff_t(column) * channel.step);
        *to++ = mul(float(sample_of(sample, job.shift, job.max_value)), sample_step(job));
      }
    }
  }
}
/// Shows the changed pixels of block (x, y).
CUDAVISION_INLINE void show_block(const Refining& refining, int x, int y, const std::int32_t* changed) {
  const Job& job = refining.job;
  const int scale = 1 << job.log2_scale, left = x * scale, top = y * scale;
  const int width = std::min(scale, job.whole_width - left), height = std::min(scale, job.whole_height - top);
  const MaskBytes bytes = refining.bytes;
  for (int row = 0; row < height; ++row) {
    std::uint8_t* const to = refining.whole.ptr(top + row) + left;
    for (int i = 0; i < width; ++i) to[i] = changed[row * scale + i] ? bytes.changed : bytes.unchanged;
  }
}
template <int N>
CUDAVISION_INLINE void to_frame_at(const Job& job, const float (&samples)[3][most_pixels], int first,
                                   cpu::Lanes<std::int32_t, N> (&fixed)[3]) {
  using Floats = cpu::Lanes<float, N>;
  Floats value[3] = {Floats::load(&samples[0][first]), Floats::load(&samples[1][first]),
                     Floats::load(&samples[2][first])};
  to_frame(job, value, fixed);
}

/// pixel_changed() for G × N pixels of block (x, y) from `first`. C: channels.
template <int C, int N, int G>
CUDAVISION_INLINE void refine_pixels(const Refining& refining, int x, int y, const float (&samples)[3][most_pixels],
                                     int first, std::int32_t* changed) {
  using Floats = cpu::Lanes<float, N>;
  using Ints = cpu::Lanes<std::int32_t, N>;
  const Job& job = refining.job;
  Ints fixed[G][3];
  Floats votes[G];
  CUDAVISION_UNROLLED(2)
  for (int g = 0; g < G; ++g) to_frame_at<N>(job, samples, first + g * N, fixed[g]), votes[g] = 0;
  for (int v = std::max(0, y - voters); v <= std::min(y + voters, job.height - 1); ++v) {
    for (int u = std::max(0, x - voters); u <= std::min(x + voters, job.width - 1); ++u) {
      const std::int16_t* const block = job.frame + job.at(u, v);
      const float* const near = refining.near[(v - y + voters) * side + u - x + voters];
      const Ints against = refining.mask.ptr(v)[u] ? 0 : INT32_MIN;  // the sign of the votes
      CUDAVISION_UNROLLED(2)
      for (int g = 0; g < G; ++g) {
        Ints away = 0;
        CUDAVISION_CHANNELS
        for (int c = 0; c < C; ++c) {
          const Ints difference = fixed[g][c] - Ints(block[c * job.pixels()]);
          away = away + most(difference, 0 - difference);
        }
        const Floats vote = vote_of(Floats::load(near + first + g * N), away);
        votes[g] = votes[g] + Floats::of_bits((Ints::of_bits(vote.v) | against).v);
      }
    }
  }
  CUDAVISION_UNROLLED(2)
  for (int g = 0; g < G; ++g) (votes[g] > Floats(0)).store(&changed[first + g * N]);
}
/// pixel_changed() for all pixels of block (x, y), 2 × N at a time. C: channels.
template <typename T, int C, int N>
CUDAVISION_INLINE void refine_block(const Refining& refining, int x, int y) {
  float samples[3][most_pixels] = {};
  load_block<T>(refining, x, y, {samples[0], samples[1], samples[2]});
  std::int32_t changed[most_pixels];
  if (refining.pixels() < 2 * N)
    refine_pixels<C, N, 1>(refining, x, y, samples, 0, changed);
  else
    for (int first = 0; first < refining.pixels(); first += 2 * N)
      refine_pixels<C, N, 2>(refining, x, y, samples, first, changed);
  show_block(refining, x, y, changed);
}

/// Like refine_block(), for `count` blocks of 2 × 2 pixels in row y that lie at least `voters` blocks inside the frame.
/// Their voting blocks lie in columns `base` … `base` + N − 1.
template <typename T, int C, int N>
CUDAVISION_INLINE void refine_group(const Refining& refining, const int (&blocks)[N / 4], int count, int base, int y) {
  using Floats = cpu::Lanes<float, N>;
  using Ints = cpu::Lanes<std::int32_t, N>;
  const Job& job = refining.job;
  float samples[3][most_pixels] = {};
  std::int32_t columns[N] = {}, changed[N];
  for (int i = 0; i < count; ++i) {
    load_block<T>(refining, blocks[i], y, {samples[0] + 4 * i, samples[1] + 4 * i, samples[2] + 4 * i});
    std::fill_n(columns + 4 * i, 4, blocks[i] - voters - base);
  }
  const Ints first = Ints::load(columns);
  Ints fixed[3];
  to_frame_at<N>(job, samples, 0, fixed);
  Floats votes = 0;
  for (int v = std::max(0, y - voters); v <= std::min(y + voters, job.height - 1); ++v) {
    Ints frame[C];
    CUDAVISION_CHANNELS
    for (int c = 0; c < C; ++c)
      frame[c] =
          cpu::Lanes<std::int16_t, N>::load(job.frame + c * job.pixels() + job.at(base, v)).template as<std::int32_t>();
    const Ints mask = cpu::Lanes<std::uint8_t, N>::load(refining.mask.ptr(v) + base).template as<std::int32_t>();
    const Ints against = pick(mask == Ints(0), Ints(INT32_MIN), Ints(0));  // the sign of the votes
    CUDAVISION_UNROLLED(5)
    for (int u = 0; u < side; ++u) {
      const Ints column = first + Ints(u);
      Ints away = 0;
      CUDAVISION_CHANNELS
      for (int c = 0; c < C; ++c) {
        const Ints difference = fixed[c] - frame[c].at(column);
        away = away + most(difference, 0 - difference);
      }
      const Floats vote = vote_of(Floats::load(refining.near[(v - y + voters) * side + u]), away);
      votes = votes + Floats::of_bits((Ints::of_bits(vote.v) | against.at(column)).v);
    }
  }
  (votes > Floats(0)).store(changed);
  for (int i = 0; i < count; ++i) show_block(refining, blocks[i], y, changed + 4 * i);
}

template <typename T, int C, int N>
CUDAVISION_INLINE void refine_row(const Refining& refining, int y) {
  const int width = refining.job.width;
  const std::uint8_t *const outline = refining.outline.ptr(y), *const unmasked = refining.unmasked.empty()
                                                                                     ? nullptr
                                                                                     : refining.unmasked.ptr(y);
  const auto is_refined = [&](int x) CUDAVISION_INLINED { return outline[x] && (!unmasked || unmasked[x]); };
  const bool in_groups = N > 4 && refining.pixels() == 4 && width >= N;
  for (int x = 0; x < width;) {
    std::uint64_t eight = 1;
    if (x + 8 <= width) std::memcpy(&eight, outline + x, 8);
    if (eight == 0 || !is_refined(x)) {
      x += eight == 0 ? 8 : 1;
      continue;
    }
    if constexpr (N > 4) {
      const int base = std::min(x - voters, width - N), end = std::min(base + N, width) - voters;
      int blocks[N / 4], count = 0;
      for (int at = x; in_groups && x >= voters && at < end && count < N / 4; ++at)
        if (is_refined(at)) blocks[count++] = at;
      if (count > 0) {
        refine_group<T, C, N>(refining, blocks, count, base, y);
        x = blocks[count - 1] + 1;
        continue;
      }
    }
    refine_block<T, C, N>(refining, x++, y);
  }
}
template <typename T, int N>
CUDAVISION_INLINE void refine_rows(const Refining& refining, int begin, int end) {
  for (int y = begin; y < end; ++y)
    refining.job.channels == 1 ? refine_row<T, 1, N>(refining, y) : refine_row<T, 3, N>(refining, y);
}
#ifdef CUDAVISION_AVX2
CUDAVISION_AVX512 void refine_widest(const Refining& refining, bool bytes, int begin, int end) {
  bytes ? refine_rows<std::uint8_t, 16>(refining, begin, end) : refine_rows<std::uint16_t, 16>(refining, begin, end);
}
CUDAVISION_AVX2 void refine_wide(const Refining& refining, bool bytes, int begin, int end) {
  bytes ? refine_rows<std::uint8_t, 8>(refining, begin, end) : refine_rows<std::uint16_t, 8>(refining, begin, end);
}
#endif
CUDAVISION_FLAT void refine_narrow(const Refining& refining, bool bytes, int begin, int end) {
  bytes ? refine_rows<std::uint8_t, 4>(refining, begin, end) : refine_rows<std::uint16_t, 4>(refining, begin, end);
}

}  // namespace

void refine_outline(const Job& job, bool bytes, const cv::Mat& mask, const cv::Mat& unmasked, MaskBytes shown,
                    cv::Mat& whole) {
  const cv::Mat outline = outline_of(mask);
  Refining refining{job, mask, outline, unmasked, whole, shown, {}};
  set_nearness(refining);
  const auto refine = CUDAVISION_WIDEST_OF(refine_widest, refine_wide, refine_narrow);
  const double samples = double(cv::countNonZero(outline)) * refining.pixels();
  cpu::for_ranges(job.height, cpu::analysis_work(samples, 4),
                  [&](int begin, int end) { refine(refining, bytes, begin, end); });
}

}  // namespace cudavision::diff::adaptive
