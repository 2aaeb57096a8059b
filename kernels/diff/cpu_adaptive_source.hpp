// SPDX-License-Identifier: LGPL-2.1-or-later
// The data that a strip of Reference::adaptive reads for a row: the frame, its background and the light.
#pragma once

#include "kernels/cpu/lanes.hpp"
#include "kernels/diff/cpu_adaptive_light.hpp"
#include "kernels/diff/cpu_adaptive_strip.hpp"

namespace cudavision::diff::adaptive {

using cpu::Lanes;

/// The source data of a strip, N pixels at a time.
template <int channels, int N>
struct StripSource {
  using F = Lanes<float, N>;
  using Int = Lanes<std::int32_t, N>;
  using Words = Lanes<std::int16_t, N>;
  using Pixels = Pixel<channels, F>;

  Strip& strip;
  const Job& job;
  const std::vector<float> (&cells)[3];

  static constexpr int ring_index(int y) { return y & (Strip::Rows::kept - 1); }
  static CUDAVISION_INLINE Int as_ints(const std::int16_t* from) {
    return Words::load(from).template as<std::int32_t>();
  }

  /// A row of the frame, its background and its light.
  struct Source {
    const std::int16_t* value[channels];
    const float *mean[channels], *variance[channels];
    const float* light[channels];
  };
  /// Means for channels below 3, variances for channels from 3.
  const float* model(int c, int y) const {
    if (y >= strip.begin_ && y < strip.end_) return job.mean + c * job.pixels() + job.at(0, y);
    const int side = y < strip.begin_ ? 0 : 1, i = side == 0 ? y - strip.begin_ + Strip::reach : y - strip.end_;
    return &strip.beyond_[(std::size_t(side * 6 + c) * Strip::reach + std::size_t(i)) * std::size_t(job.pitch)];
  }
  Source source(int y) const {
    Source row;
    for (int c = 0; c < channels; ++c) {
      row.value[c] = job.frame + c * job.pixels() + job.at(0, y);
      row.mean[c] = model(c, y), row.variance[c] = model(3 + c, y);
      row.light[c] = &strip.light_[ring_index(y)][std::size_t(c) * job.pitch];
    }
    return row;
  }
  static CUDAVISION_INLINE Pixels load(const Source& row, int x) {
    Pixels pixels;
    CUDAVISION_CHANNELS
    for (int c = 0; c < channels; ++c) {
      pixels.value[c] = from_fixed(as_ints(row.value[c] + x));
      pixels.mean[c] = F::load(row.mean[c] + x), pixels.variance[c] = F::load(row.variance[c] + x);
    }
    return pixels;
  }

  /// Sets the light of row y: interpolates between rows of cells, then between the centres of cells.
  CUDAVISION_INLINE void mix_light(int y) const {
    const Between down = between(y, job.cells_y);
    const int across = job.cells_x;
    // Entry i + 1 begins at the centre of cell i. Entry 0 is before the first centre.
    float *const light = strip.rises_.data(), *const rise = light + across + 1 + unused;
    for (int c = 0; c < channels; ++c) {
      if (job.compensates) {
        const float *const first = &cells[c][std::size_t(down.first * across)],
                           *const second = &cells[c][std::size_t(down.second * across)];
        for (int x = 0; x < across; x += N)
          mixed(F::load(first + x), F::load(second + x), F(down.weight)).store(light + 1 + x);
      } else {
        std::fill_n(light + 1, across, float(c == 0));
      }
      light[0] = light[1];
      for (int x = 0; x < across; x += N) (F::load(light + 1 + x) - F::load(light + x)).store(rise + x);
      rise[across] = 0;
      float* const pixels = &strip.light_[ring_index(y)][std::size_t(c) * job.pitch];
      for (int i = 0, x = -half; x < job.width; ++i, x += cell) {
        if (x >= 0) along_half(light[i], rise[i], 0, pixels + x);
        if (x + half < job.width) along_half(light[i], rise[i], half, pixels + x + half);
      }
    }
  }
  static constexpr int half = cell / 2;
  /// The light of half a cell: the pixels that begin `first` pixels after its centre.
  static CUDAVISION_INLINE void along_half(float light, float rise, int first, float* pixels) {
    alignas(32) static constexpr float weights[cell] = {
        0.5f / 16, 1.5f / 16, 2.5f / 16,  3.5f / 16,  4.5f / 16,  5.5f / 16,  6.5f / 16,  7.5f / 16,
        8.5f / 16, 9.5f / 16, 10.5f / 16, 11.5f / 16, 12.5f / 16, 13.5f / 16, 14.5f / 16, 15.5f / 16};
    constexpr int some = N < half ? N : half;
    using Some = Lanes<float, some>;
    CUDAVISION_UNROLLED(2)
    for (int i = 0; i < half; i += some)
      along(Some(light), Some(rise), Some::load(weights + first + i)).store(pixels + i);
  }
  /// The light of the pixels beginning at x.
  static CUDAVISION_INLINE Light<F> light_at(const Source& row, int x) {
    Light<F> light;
    light.gain = F::load(row.light[0] + x);
    CUDAVISION_CHANNELS
    for (int c = 1; c < channels; ++c) light.offset[c] = F::load(row.light[c] + x);
    return light;
  }
};

}  // namespace cudavision::diff::adaptive
