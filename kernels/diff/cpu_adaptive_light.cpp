// SPDX-License-Identifier: LGPL-2.1-or-later
// Computes medians in cells without histograms. The bins of a row of cells are stored as in the picture, so a row of a
// cell is one vector. A median is tested at its bin in the last frame. If it moved, its range is halved in at most 9
// steps, each of which counts the bins below the middle.
#include "kernels/diff/cpu_adaptive_light.hpp"

#include <algorithm>

#include "kernels/cpu/lanes.hpp"

namespace cudavision::diff::adaptive {
namespace {

using cpu::Lanes;

constexpr std::int16_t no_bin = 0x7fff;  ///< marks a pixel that does not count

/// Adds to `counts` the numbers of bins of a cell that are below `first`, `first` + 1, …; rows are `pitch` apart.
template <int most, int limits>
CUDAVISION_INLINE void count_below(const std::int16_t* cell_bins, int pitch, int first, unsigned (&counts)[limits]) {
  constexpr int N = most < cell / 2 ? most : cell / 2;
  using Bins = Lanes<std::int16_t, 2 * N>;
  Bins count[limits];
  for (Bins& one : count) one = 0;
  _Pragma("GCC unroll 16") for (int y = 0; y < cell; ++y) for (int x = 0; x < cell; x += 2 * N) {
    const Bins here = Bins::load(cell_bins + y * pitch + x);
    CUDAVISION_UNROLLED(2)
    for (int i = 0; i < limits; ++i) count[i] = count[i] - (here < Bins(first + i));
  }
  CUDAVISION_UNROLLED(2)
  for (int i = 0; i < limits; ++i) {
    std::uint64_t words[N / 2], sums = 0;  // each holds four 16-bit numbers, at most 256
    count[i].store(words);
    for (std::uint64_t word : words) sums += word;
    counts[i] = unsigned(sums * 0x0001000100010001u >> 48);
  }
}
template <int N>
CUDAVISION_INLINE unsigned count_below(const std::int16_t* cell_bins, int pitch, int bin) {
  unsigned count[1];
  count_below<N>(cell_bins, pitch, bin, count);
  return count[0];
}

/// Returns value(m) for the median m of the `total` bins of a cell that count. `guess`: a bin near the median. In nine
/// of ten cells the median is in the same bin as in the last frame, which needs one count.
template <int N, typename Value>
CUDAVISION_INLINE float median(const std::int16_t* cell_bins, int pitch, unsigned total, int guess, Value value) {
  const auto below_middle = [&](unsigned count) { return 2 * count < total; };
  unsigned counts[2];
  count_below<N>(cell_bins, pitch, guess, counts);
  if (below_middle(counts[0]) && !below_middle(counts[1]))
    return value(median_in(guess, counts[0], counts[1] - counts[0], total));
  constexpr int near = 8;
  int low = std::clamp(guess - near / 2, 0, bins - near), step = near / 2;  // the median is from low to low + 2 step
  unsigned below = count_below<N>(cell_bins, pitch, low), not_above = count_below<N>(cell_bins, pitch, low + near);
  if (!below_middle(below) || below_middle(not_above)) low = 0, step = bins / 2, below = 0, not_above = total;
  for (; step > 0; step /= 2) {
    const unsigned count = count_below<N>(cell_bins, pitch, low + step);
    const bool higher = below_middle(count);  // without branches, because they would be unpredictable
    low = higher ? low + step : low;
    below = higher ? count : below;
    not_above = higher ? not_above : count;
  }
  return value(median_in(low, below, not_above - below, total));
}

/// The samples of a channel of the frame, and its means.
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

/// Sets the gain bins of the pixels in row y. The bins after the end of the row become no_bin.
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

/// Sets the offset bins of channel c in row y, in cells that have a gain. `gain_bins` show which pixels count.
template <int N>
CUDAVISION_INLINE void set_offset_bins(const Job& job, int c, int y, const float* gains, const std::int16_t* gain_bins,
                                       std::int16_t* row) {
  const Lanes<std::int16_t, N> none(no_bin);
  if (y >= job.height) {
    std::fill_n(row, job.cells_x * cell, no_bin);
    return;
  }
  const Samples samples(job, c, 0, y);
  for (int i = 0; i < job.cells_x; ++i) {
    const float gain = gains[i];
    if (gain == empty) continue;
    CUDAVISION_UNROLLED(4)
    for (int at = 0; at < cell; at += N) {
      const int x = i * cell + at;
      const auto bin = offset_bin(samples.values_at<N>(x), samples.means_at<N>(x), gain);
      const auto of_gain = Lanes<std::int16_t, N>::load(gain_bins + x);
      pick(of_gain == none, none, bin.template as<std::int16_t>()).store(row + x);
    }
  }
}

template <int N>
CUDAVISION_INLINE void measure(const Job& job, int cell_y, LightRow& memory) {
  const int pitch = job.cells_x * cell, top = cell_y * cell, rows = std::min(cell, job.height - top);
  const int first = cell_y * job.cells_x;
  std::int16_t *const gain_bins = memory.gains.data(), *const offset_bins = memory.offsets.data();
  for (int y = 0; y < cell; ++y) set_gain_bins<N>(job, top + y, gain_bins + y * pitch);
  float* const gains = job.light[0] + first;
  unsigned* const totals = memory.totals.data();
  for (int x = 0; x < job.cells_x; ++x) {
    const std::int16_t* const of_gain = gain_bins + x * cell;
    const unsigned total = totals[x] = count_below<N>(of_gain, pitch, no_bin);
    const bool enough = enough_in_cell(total, unsigned(std::min(cell, job.width - x * cell) * rows));
    // In most cells the light is near the light of the last frame.
    gains[x] = enough ? median<N>(of_gain, pitch, total, bin_of_gain(gains[x]), gain_of) : empty;
  }
  for (int c = 1; c < job.channels; ++c) {
    for (int y = 0; y < cell; ++y)
      set_offset_bins<N>(job, c, top + y, gains, gain_bins + y * pitch, offset_bins + y * pitch);
    float* const offsets = job.light[c] + first;
    for (int x = 0; x < job.cells_x; ++x)
      offsets[x] = gains[x] == empty
                       ? empty
                       : median<N>(offset_bins + x * cell, pitch, totals[x], bin_of_offset(offsets[x]), offset_of);
  }
}

#ifdef CUDAVISION_AVX2
CUDAVISION_AVX512 void measure_widest(const Job& job, int cell_y, LightRow& memory) {
  measure<16>(job, cell_y, memory);
}
CUDAVISION_AVX2 void measure_wide(const Job& job, int cell_y, LightRow& memory) { measure<8>(job, cell_y, memory); }
#endif
CUDAVISION_FLAT void measure_narrow(const Job& job, int cell_y, LightRow& memory) { measure<4>(job, cell_y, memory); }

/// The gain of the frame, for the case that no cell has a gain.
float gain_of_frame(const Job& job) {
  unsigned histogram[bins] = {}, total = 0, pixels = 0;
  for (int y = 0; y < job.height; y += sparse)
    for (int x = 0; x < job.width; x += sparse, ++pixels)
      if (const std::size_t at = job.at(x, y); shows_light(int(job.recent[at])))
        ++histogram[gain_bin(value_of(job, 0, at), job.mean[at])], ++total;
  return enough_in_frame(total, pixels) ? gain_of(median_of(histogram, total)) : 1;
}

/// Fills empty cells, repeatedly. `none`: the value if all cells are empty.
void fill(const Job& job, int c, float none) {
  float* const light = job.light[c];
  const int cells = job.cells_x * job.cells_y;
  if (std::all_of(light, light + cells, [](float value) { return value == empty; })) {
    std::fill_n(light, cells, none);
    return;
  }
  while (std::find(light, light + cells, empty) != light + cells) {
    for (int i = 0; i < cells; ++i)
      job.spare[c][i] =
          filled(job, i % job.cells_x, i / job.cells_x, [&](int x, int y) { return light[y * job.cells_x + x]; });
    std::copy_n(job.spare[c], cells, light);
  }
}

/// Sets the gains of the cells in row y to smooth().
void smooth_gains(const Job& job, int y, float* gains) {
  using F = Lanes<float, 4>;
  const auto row = [&](int at) { return job.light[0] + std::clamp(at, 0, job.cells_y - 1) * job.cells_x; };
  const float* const rows[3] = {row(y - 1), row(y), row(y + 1)};
  int x = 0;
  const auto one = [&] { gains[x] = smooth(job, 0, x, y), ++x; };
  if (x < job.cells_x) one();
  for (; x + F::count < job.cells_x; x += F::count)
    median_of_nine<F>([&](int dx, int dy) CUDAVISION_INLINED {
      return F::load(rows[dy + 1] + x + dx);
    }).store(gains + x);
  while (x < job.cells_x) one();
}

}  // namespace

void measure_cells(const Job& job, int cell_y, LightRow& memory) {
  const std::size_t cells = std::size_t(job.cells_x);
  memory.gains.resize(cells * cell * cell), memory.offsets.resize(cells * cell * cell), memory.totals.resize(cells);
  CUDAVISION_WIDEST_OF(measure_widest, measure_wide, measure_narrow)(job, cell_y, memory);
}

void settle_light(const Job& job, std::vector<float> (&light)[3]) {
  const int cells = job.cells_x * job.cells_y;
  const bool none = std::count(job.light[0], job.light[0] + cells, empty) == cells;
  for (int c = 0; c < job.channels; ++c) fill(job, c, c == 0 && none ? gain_of_frame(job) : 0);
  for (int c = 0; c < job.channels; ++c) light[c].resize(std::size_t(cells + unused));
  for (int y = 0; y < job.cells_y; ++y) smooth_gains(job, y, &light[0][std::size_t(y * job.cells_x)]);
  for (int c = 1; c < job.channels; ++c)
    for (int y = 0, i = 0; y < job.cells_y; ++y)
      for (int x = 0; x < job.cells_x; ++x, ++i)
        light[c][std::size_t(i)] = smooth_offset(job, c, x, y, light[0][std::size_t(i)]);
}

}  // namespace cudavision::diff::adaptive
