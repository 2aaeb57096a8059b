// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums scale × scale samples, in rows of words that hold two samples each:
//
//   a row of the frame   |s s|s s|s s|s s|…
//   words                |s+s|s+s|s+s|s+s|s+s|…      added over all rows of the block
//   pairs of words       |s+s+s+s|s+s+s+s|…      for scales of 4 and more
//
// Only blocks inside the frame are summed in this way. Other pixels use mean_of_samples() of adaptive.hpp.
#include "kernels/diff/cpu_adaptive_samples.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/lanes.hpp"
#include "kernels/diff/adaptive_settle.hpp"

namespace cudavision::diff::adaptive {
namespace {

using cpu::Lanes;

/// Holds sums of 8 × 8 samples.
template <typename T>
using Sum = std::conditional_t<sizeof(T) == 1, std::uint16_t, std::uint32_t>;
/// How many numbers of type T fit in a vector of N floats.
template <typename T, int N>
inline constexpr int fitting = N * 4 / int(sizeof(T));

/// The samples in the low or, if `high`, in the high halves of words.
template <typename T, int M>
CUDAVISION_INLINE Lanes<Sum<T>, M> samples_in(const Job& job, Lanes<Sum<T>, M> words, bool high) {
  constexpr int bits = 8 * sizeof(T);
  const auto stored = high ? words >> bits : words & Sum<T>((1u << bits) - 1);
  if constexpr (sizeof(T) == 1) {
    return stored;
  } else {
    const auto value = (stored >> job.shift).template as<std::int32_t>();
    return least(value, Lanes<std::int32_t, M>(job.max_value)).template as<Sum<T>>();
  }
}

/// Sets `count` sums or, if not `first`, adds to them. Adds the samples of a row or, if `pairs`, pairs of them.
template <int N, typename T>
CUDAVISION_INLINE void add_row(const Job& job, const T* from, int step, int count, bool pairs, bool first,
                               Sum<T>* sums) {
  constexpr int M = fitting<Sum<T>, N>;
  using Words = Lanes<Sum<T>, M>;
  const auto put = [&](int i, Words words)
                       CUDAVISION_INLINED { (first ? words : Words::load(sums + i) + words).store(sums + i); };
  int i = 0;
  if (step == 1 && pairs) {
    for (; i + M <= count; i += M) {
      const Words words = Words::load(from + 2 * i);
      put(i, samples_in<T, M>(job, words, false) + samples_in<T, M>(job, words, true));
    }
  } else if (step == 1) {
    for (; i + M <= count; i += M) {
      const auto words = Lanes<T, M>::load(from + i).template as<Sum<T>>();
      put(i, samples_in<T, M>(job, words, false));
    }
  } else if (step == 2) {
    for (; i + M < count; i += M) put(i, samples_in<T, M>(job, Words::load(from + 2 * i), false));
  } else if (sizeof(T) == 1 && step == 4) {
    for (; i + M < count; i += M / 2) {
      const auto words = Lanes<std::uint32_t, M / 2>::load(from + 4 * i) & 255u;
      using Half = Lanes<std::uint16_t, M / 2>;
      const Half half = words.template as<std::uint16_t>();
      (first ? half : Half::load(sums + i) + half).store(sums + i);
    }
  }
  const auto sample = [&](int at) CUDAVISION_INLINED {
    return Sum<T>(sample_of(from[std::ptrdiff_t(at) * step], job.shift, job.max_value));
  };
  for (; i < count; ++i) {
    const Sum<T> sum = pairs ? Sum<T>(sample(2 * i) + sample(2 * i + 1)) : sample(i);
    sums[i] = first ? sum : Sum<T>(sums[i] + sum);
  }
}

/// Sets each of `count` sums to the sum of two adjacent sums.
template <int N, typename S>
CUDAVISION_INLINE void add_pairs(int count, S* sums) {
  int i = 0;
  if constexpr (sizeof(S) == 2)
    for (; i + N <= count; i += N) {
      const auto words = Lanes<std::uint32_t, N>::load(sums + 2 * i);
      ((words & 0xffffu) + (words >> 16)).template as<std::uint16_t>().store(sums + i);
    }
  for (; i < count; ++i) sums[i] = S(sums[2 * i] + sums[2 * i + 1]);
}

/// How the samples of a channel make up a pixel.
struct Blocks {
  int across, down;  ///< numbers of samples in a pixel
  bool twice;        ///< whether a sample covers two pixels of a row

  Blocks(const Job& job, const ChannelView& channel) {
    const int scale = 1 << job.log2_scale;
    across = std::max(1, scale >> channel.shift_x), down = std::max(1, scale >> channel.shift_y);
    twice = scale >> channel.shift_x == 0;
  }
};

/// Sets the sums of the samples of `count` pixels of row y, inside the frame. Pixels that share samples share one sum.
template <int N, typename T>
CUDAVISION_INLINE void sum_row(const Job& job, const ChannelView& channel, const Blocks& blocks, int y, int count,
                               Sum<T>* sums) {
  const int step = channel.step / int(sizeof(T));
  const bool pairs = step == 1 && blocks.across > 1;
  const int samples = blocks.twice ? (count + 1) / 2 : count;
  const unsigned char* row = channel.at(0, (y << job.log2_scale) >> channel.shift_y);
  for (int dy = 0; dy < blocks.down; ++dy, row += channel.pitch)
    add_row<N>(job, reinterpret_cast<const T*>(row), step,
               pairs ? samples * blocks.across / 2 : samples * blocks.across, pairs, dy == 0, sums);
  for (int width = pairs ? blocks.across / 2 : blocks.across; width > 1; width /= 2)
    add_pairs<N>(samples * width / 2, sums);
}

/// Sets the values of `count` pixels from their sums.
template <int N, typename S>
CUDAVISION_INLINE void mean_of_row(const Job& job, const Blocks& blocks, int count, const S* sums, float* values) {
  const float share = 1.0f / float(blocks.across * blocks.down), step = sample_step(job);
  int i = 0;
  if (!blocks.twice)
    for (; i + N <= count; i += N) {
      const auto sum = Lanes<S, N>::load(sums + i).template as<std::int32_t>();
      mul(mul(to_float(sum), Lanes<float, N>(share)), Lanes<float, N>(step)).store(values + i);
    }
  for (; i < count; ++i) values[i] = mul(mul(float(sums[blocks.twice ? i / 2 : i]), share), step);
}

/// Sets `count` samples of the frame from sums of 8-bit luma, Cb or Cr. Their means have at most 6 fractional bits, so
/// integers give the same numbers as to_background() and to_fixed().
template <int N>
CUDAVISION_INLINE void fix_row(const Job& job, int channel, const Blocks& blocks, int count, const std::uint16_t* sums,
                               std::int16_t* to) {
  using Fixed = Lanes<std::int16_t, 2 * N>;
  int shift = 7;  // bits to shift for Fixed
  for (int samples = blocks.across * blocks.down; samples > 1; samples /= 2) --shift;
  const auto zero = std::int16_t(channel == 0 ? int(job.black) << 7 : 128 << 7);
  const std::int16_t lowest = channel == 0 ? 0 : INT16_MIN;
  int i = 0;
  if (!blocks.twice)
    for (; i + 2 * N <= count; i += 2 * N)
      most((Fixed::load(sums + i) << shift) - Fixed(zero), Fixed(lowest)).store(to + i);
  for (; i < count; ++i) to[i] = std::max(lowest, std::int16_t((sums[blocks.twice ? i / 2 : i] << shift) - zero));
}

/// Sets the samples of row y of the frame, beginning with sample `first`, from the values. If `first` is 0, also sets
/// the padding after the row.
template <int N, int channels>
CUDAVISION_INLINE void store_row(const Job& job, int y, int first, const std::vector<float> (&values)[3]) {
  const int inputs = job.rgb ? 3 : channels, width = job.width;
  const Job work = job;
  const float* from[3];
  std::int16_t* to[channels];
  for (int c = 0; c < 3; ++c) from[c] = values[c < inputs ? c : 0].data();
  for (int c = 0; c < channels; ++c) to[c] = job.frame + c * job.pixels() + job.at(0, y);
  const auto store = [&](auto number, int x) CUDAVISION_INLINED {
    using F = decltype(number);
    F value[3];
    CUDAVISION_CHANNELS
    for (int c = 0; c < 3; ++c) value[c] = F::load(from[c] + x);
    to_background(work, value);
    CUDAVISION_CHANNELS
    for (int c = 0; c < channels; ++c) to_fixed(value[c]).template as<std::int16_t>().store(to[c] + x);
  };
  if (first == 0)
    for (int x = 0; x < width; x += N) store(Lanes<float, N>(0.0f), x);
  else
    for (int x = first; x < width; ++x) store(Lanes<float, 1>(0.0f), x);
}

/// Initialises the means with row y of the frame.
template <int N>
CUDAVISION_INLINE void begin_row(const Job& job, int y) {
  for (int c = 0; c < job.channels; ++c)
    for (int x = 0; x < job.width; x += N) {
      const std::size_t i = c * job.pixels() + job.at(x, y);
      from_fixed(Lanes<std::int16_t, N>::load(job.frame + i).template as<std::int32_t>()).store(job.next_mean + i);
      Lanes<float, N>(first_variance(c)).store(job.next_variance + i);
    }
  std::fill_n(job.recent + job.at(0, y), job.pitch, std::uint8_t(0));
  for (int x = 0; x < job.pitch; ++x) restart_counts(job, job.at(x, y));
}

template <typename T>
void show_means(const Job& job, int y) {
  for (int x = 0; x < job.width; ++x) {
    float mean[3] = {};
    for (int c = 0; c < job.channels; ++c)
      mean[c] = (job.begin ? job.next_mean : job.mean)[c * job.pixels() + job.at(x, y)];
    show_mean<T>(job, x, y, mean);
  }
}

/// Whether the samples of a pixel form a block, and at most two pixels of a row share a sample.
bool has_blocks(const ChannelView& channel) { return channel.shift_x <= 1 && channel.shift_y <= channel.shift_x; }

template <int N, typename T>
CUDAVISION_INLINE void prepare(const Job& job, int y, SampleRows& rows) {
  const int scale = 1 << job.log2_scale, inputs = job.rgb ? 3 : job.channels;
  const bool in_frame = (y + 1) * scale <= job.whole_height;
  const bool exact = sizeof(T) == 1 && !job.rgb && std::all_of(job.inputs, job.inputs + inputs, has_blocks);
  auto* const sums = reinterpret_cast<Sum<T>*>(rows.sums.data());
  int first = 0;  // the first sample that is computed from values: fix_row() sets the samples before it
  for (int c = 0; c < inputs; ++c) {
    const ChannelView& channel = job.inputs[c];
    const Blocks blocks(job, channel);
    const int whole = in_frame && has_blocks(channel) ? job.whole_width >> job.log2_scale : 0;
    float* const values = rows.values[c].data();
    sum_row<N, T>(job, channel, blocks, y, whole, sums);
    if constexpr (sizeof(T) == 1)
      if (exact) fix_row<N>(job, c, blocks, whole, sums, job.frame + c * job.pixels() + job.at(0, y));
    if (!exact) mean_of_row<N>(job, blocks, whole, sums, values);
    with_scale(job.log2_scale, [&](auto of_scale) {
      for (int x = whole; x < job.width; ++x)
        values[x] = mul(mean_of_samples<T, of_scale>(job, channel, x, y), sample_step(job));
    });
    if (exact) first = whole;
  }
  job.channels == 1 ? store_row<N, 1>(job, y, first, rows.values) : store_row<N, 3>(job, y, first, rows.values);
  if (job.begin) begin_row<N>(job, y);
  if (job.shows_mean) show_means<T>(job, y);
}

#ifdef CUDAVISION_AVX2
CUDAVISION_AVX512 void prepare_widest(const Job& job, bool bytes, int y, SampleRows& rows) {
  bytes ? prepare<16, std::uint8_t>(job, y, rows) : prepare<16, std::uint16_t>(job, y, rows);
}
CUDAVISION_AVX2 void prepare_wide(const Job& job, bool bytes, int y, SampleRows& rows) {
  bytes ? prepare<8, std::uint8_t>(job, y, rows) : prepare<8, std::uint16_t>(job, y, rows);
}
#endif
CUDAVISION_FLAT void prepare_narrow(const Job& job, bool bytes, int y, SampleRows& rows) {
  bytes ? prepare<4, std::uint8_t>(job, y, rows) : prepare<4, std::uint16_t>(job, y, rows);
}

}  // namespace

void prepare_row(const Job& job, bool bytes, int y, SampleRows& rows) {
  rows.sums.resize(std::size_t(job.whole_width) + 1);
  for (std::vector<float>& values : rows.values) values.resize(std::size_t(job.pitch));
  CUDAVISION_WIDEST_OF(prepare_widest, prepare_wide, prepare_narrow)(job, bytes, y, rows);
}

}  // namespace cudavision::diff::adaptive
