// SPDX-License-Identifier: LGPL-2.1-or-later
// Medians in cells, without histograms: the bins of a row of cells lie in memory as they lie in the picture, and a
// median is found by halving its range in 9 steps, in which the bins below the middle are counted;
// a row of a cell is one vector.
#include "kernels/diff/cpu_adaptive_light.hpp"

#include <algorithm>

#include "kernels/cpu/lanes.hpp"

namespace cudavision::diff::adaptive {
namespace {

using cpu::Lanes;

constexpr std::int16_t no_bin = 0x7fff;  ///< of a pixel that does not count

/// The bins of a cell; rows are `pitch` apart.
template <int N>
CUDAVISION_INLINE unsigned count_below(const std::int16_t* cell_bins, int pitch, int bin) {
  using Bins = Lanes<std::int16_t, 2 * N>;
  Bins count(0);
  _Pragma("GCC unroll 16") for (int y = 0; y < cell; ++y) for (int x = 0; x < cell; x += 2 * N) count =
      count - (Bins::load(cell_bins + y * pitch + x) < Bins(bin));
  std::uint64_t words[N / 2], sums = 0;  // of four 16-bit numbers, at most 256
  count.store(words);
  for (std::uint64_t word : words) sums += word;
  return unsigned(sums * 0x0001000100010001u >> 48);
}

/// By value(median) of the bins of a cell that count; empty if there are too few. `guess`: a bin near the median. In
/// most frames the median of the last frame is near, so few steps are needed.
template <int N, typename Value>
CUDAVISION_INLINE float median(const std::int16_t* cell_bins, int pitch, unsigned pixels, int guess, Value value) {
  const unsigned total = count_below<N>(cell_bins, pitch, no_bin);
  if (!enough_in_cell(total, pixels)) return empty;
  const auto below_middle = [&](unsigned count) { return 2 * count < total; };
  constexpr int near = 8;
  int low = std::clamp(guess - near / 2, 0, bins - near), step = near / 2;  // the median is from low to low + 2 step
  unsigned below = count_below<N>(cell_bins, pitch, low), not_above = count_below<N>(cell_bins, pitch, low + near);
  if (!below_middle(below) || below_middle(not_above)) low = 0, step = bins / 2, below = 0, not_above = total;
  for (; step > 0; step /= 2) {
    const unsigned count = count_below<N>(cell_bins, pitch, low + step);
    const bool higher = below_middle(count);  // chosen without branches, because they would be unpredictable
    low = higher ? low + step : low;
    below = higher ? count : below;
    not_above = higher ? not_above : count;
  }
  return value(median_in(low, below, not_above - below, total));
}

/// Samples of a channel of the frame, and means.
struct Samples {
  Samples(const Job& job, int c, int x, int y)
      : fixed(job.frame + c * job.pixels() + job.at(x, y)), mean(job.mean + c * job.pixels() + job.at(x, y)) {}
  template <int N>
  CUDAVISION_INLINE Lanes<float, N> values_at(int i) const {
    return from_fixed(Lanes<std::int16_t, N>::load(fixed + i).template as<std::int32_t>());
  }
  template <int N>
  CUDAVISION_INLINE Lanes<float, N> means_at(int i) const {
    return Lanes<float, N>::load(mean + i);
  }
  const std::int16_t* fixed;
  const float* mean;
};

/// Sets the bins of the gain of the pixels in row y. The bins after the end of the row become no_bin.
template <int N>
CUDAVISION_INLINE void set_gain_bins(const Job& job, int y, std::int16_t* row) {
  const int width = y < job.height ? job.width : 0;
  if (width > 0) {
    const Samples samples(job, 0, 0, y);
    const std::uint8_t* const recent_row = job.recent + job.at(0, y);
    for (int x = 0; x < width; x += N) {
      auto bin = gain_bin(samples.values_at<N>(x), samples.means_at<N>(x));
      const auto recent = Lanes<std::uint8_t, N>::load(recent_row + x);
      if (cpu::any(recent & Lanes<std::uint8_t, N>(int(strong_last))))
        bin = pick(shows_light(recent.template as<std::int32_t>()), bin, Lanes<std::int32_t, N>(no_bin));
      bin.template as<std::int16_t>().store(row + x);
    }
  }
  std::fill(row + width, row + job.cells_x * cell, no_bin);
}

/// Sets the bins of the offset in the rows of a cell; `gain_bins` say which pixels count.
template <int N>
CUDAVISION_INLINE void set_offset_bins(Samples samples, int rows, int pitch, float gain, const std::int16_t* gain_bins,
                                       int gain_pitch, std::int16_t* to) {
  const Lanes<std::int16_t, N> none(no_bin);
  for (int y = 0; y < rows; ++y) {
    CUDAVISION_UNROLLED(4)
    for (int x = 0; x < cell; x += N) {
      const auto bin = offset_bin(samples.values_at<N>(x), samples.means_at<N>(x), gain);
      const auto of_gain = Lanes<std::int16_t, N>::load(gain_bins + x);
      pick(of_gain == none, none, bin.template as<std::int16_t>()).store(to + x);
    }
    samples.fixed += pitch, samples.mean += pitch, gain_bins += gain_pitch, to += cell;
  }
  std::fill_n(to, (cell - rows) * cell, no_bin);
}

template <int N>
CUDAVISION_INLINE void measure(const Job& job, int cell_y, std::vector<std::int16_t>& memory) {
  const int pitch = job.cells_x * cell, top = cell_y * cell, rows = std::min(cell, job.height - top);
  // Of the row of cells; of one cell.
  std::int16_t *const of_row = memory.data(), *const of_offset = of_row + cell * pitch;
  for (int y = 0; y < cell; ++y) set_gain_bins<N>(job, top + y, of_row + y * pitch);
  for (int x = 0; x < job.cells_x; ++x) {
    const std::int16_t* const of_gain = of_row + x * cell;
    const unsigned pixels = unsigned(std::min(cell, job.width - x * cell) * rows);
    const int at = cell_y * job.cells_x + x;
    const auto last = [&](int c) { return job.light[c][at]; };  // in most cells the light of the last frame
    const float gain = job.light[0][at] = median<N>(of_gain, pitch, pixels, bin_of_gain(last(0)), gain_of);
    for (int c = 1; c < job.channels; ++c) {
      const int guess = bin_of_offset(last(c));
      job.light[c][at] = empty;
      if (gain == empty) continue;
      set_offset_bins<N>(Samples(job, c, x * cell, top), rows, job.pitch, gain, of_gain, pitch, of_offset);
      job.light[c][at] = median<N>(of_offset, cell, pixels, guess, offset_of);
    }
  }
}

#ifdef CUDAVISION_AVX2
CUDAVISION_AVX2 void measure_wide(const Job& job, int cell_y, std::vector<std::int16_t>& memory) {
  measure<8>(job, cell_y, memory);
}
#endif
CUDAVISION_FLAT void measure_narrow(const Job& job, int cell_y, std::vector<std::int16_t>& memory) {
  measure<4>(job, cell_y, memory);
}

/// The gain of the frame if no cell has one.
float gain_of_frame(const Job& job) {
  unsigned histogram[bins] = {}, total = 0, pixels = 0;
  for (int y = 0; y < job.height; y += sparse)
    for (int x = 0; x < job.width; x += sparse, ++pixels)
      if (const std::size_t at = job.at(x, y); shows_light(int(job.recent[at])))
        ++histogram[gain_bin(value_of(job, 0, at), job.mean[at])], ++total;
  return enough_in_frame(total, pixels) ? gain_of(median_of(histogram, total)) : 1;
}

/// Fills the cells that are empty, round by round. `none`: the value if all are empty.
void fill(const Job& job, int c, float none) {
  float* const light = job.light[c];
  const int cells = job.cells_x * job.cells_y;
  if (std::all_of(light, light + cells, [](float value) { return value == empty; })) {
    std::fill_n(light, cells, none);
    return;
  }
  while (std::count(light, light + cells, empty) > 0) {
    for (int i = 0; i < cells; ++i)
      job.spare[c][i] =
          filled(job, i % job.cells_x, i / job.cells_x, [&](int x, int y) { return light[y * job.cells_x + x]; });
    std::copy_n(job.spare[c], cells, light);
  }
}

}  // namespace

void measure_cells(const Job& job, int cell_y, std::vector<std::int16_t>& memory) {
  memory.resize(std::size_t(job.cells_x + cell) * cell * cell);
  CUDAVISION_WIDEST(measure_wide, measure_narrow)(job, cell_y, memory);
}

void settle_light(const Job& job, std::vector<float> (&light)[3]) {
  const int cells = job.cells_x * job.cells_y;
  const bool none = std::count(job.light[0], job.light[0] + cells, empty) == cells;
  for (int c = 0; c < job.channels; ++c) fill(job, c, c == 0 && none ? gain_of_frame(job) : 0);
  for (int c = 0; c < job.channels; ++c) {
    light[c].resize(std::size_t(cells + unused));
    for (int y = 0, i = 0; y < job.cells_y; ++y)
      for (int x = 0; x < job.cells_x; ++x, ++i) light[c][std::size_t(i)] = smooth(job, c, x, y);
  }
}

}  // namespace cudavision::diff::adaptive
