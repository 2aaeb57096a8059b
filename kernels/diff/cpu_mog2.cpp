// SPDX-License-Identifier: LGPL-2.1-or-later
// Mixture::update() of mog2.hpp for groups of 8 pixels at a time. Each operation of a pixel is done in its lane, in the
// same order and with the same rounding, so the bits are the same. Lanes that an `if` in mog2.hpp excludes keep their
// values.
//
//   state of a row      counts   8 bytes for each group
//                       first    mode 0: for each group 8 weights, 8 variances, then 8 means of each channel
//                       weights  of mode 1, then of mode 2, …: 8 floats for each group
//                       shapes   of mode 1, then of mode 2, …: for each group 8 variances, then 8 means of each channel
//
// Most pixels fit their heaviest mode. Then a group reads and writes only that mode, which is contiguous, and the
// weights of its other modes. Memory accesses take most of the time.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/lanes.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/wide.hpp"
#include "kernels/diff/cpu_stages.hpp"

namespace cudavision::diff::mog2 {
namespace {

constexpr int lanes = 8;
constexpr int ahead = 8;    ///< groups after which prefetched numbers are used
constexpr int chunk = 256;  ///< pixels whose samples are gathered at once

using Floats = float __attribute__((vector_size(4 * lanes)));
using Ints = std::int32_t __attribute__((vector_size(4 * lanes)));  ///< as a mask: 0 or −1

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

struct RowLayout {
  RowLayout(int width, int channels)
      : groups(std::size_t(width + lanes - 1) / lanes),
        shape(std::size_t(1 + channels)),
        first(padded(groups * lanes)),
        weights(first + groups * (1 + shape) * sizeof(Floats)),
        shapes(weights + groups * (modes - 1) * sizeof(Floats)),
        bytes(padded(shapes + groups * (modes - 1) * shape * sizeof(Floats))) {}
  std::size_t groups, shape;                  ///< groups in a row; vectors in a mode
  std::size_t first, weights, shapes, bytes;  ///< where they begin; bytes of a row
};

/// The mixtures of a row.
struct Row {
  Row(const RowLayout& layout, unsigned char* data)
      : count(data),
        first(reinterpret_cast<Floats*>(data + layout.first)),
        weight(reinterpret_cast<Floats*>(data + layout.weights)),
        shape(reinterpret_cast<Floats*>(data + layout.shapes)),
        groups(layout.groups),
        shape_vectors(layout.shape) {}
  Floats& weight_of(int mode, std::size_t group) const {
    return mode == 0 ? first[group * (1 + shape_vectors)] : weight[std::size_t(mode - 1) * groups + group];
  }
  Floats* shape_of(int mode, std::size_t group) const {
    return mode == 0 ? first + group * (1 + shape_vectors) + 1
                     : shape + (std::size_t(mode - 1) * groups + group) * shape_vectors;
  }

  unsigned char* count;
  Floats *first, *weight, *shape;
  std::size_t groups, shape_vectors;
};

/// memcpy(), not inlined: where the compiler knows a bound of the size, it would use a slow string instruction.
__attribute__((noinline)) void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

inline bool any(const Ints& mask) { return cpu::any(cpu::Lanes<std::int32_t, lanes>(mask)); }

inline void swap(const Ints& where, Floats& a, Floats& b) {
  const Floats was = a;
  a = where ? b : a;
  b = where ? was : b;
}

/// Whether a byte of `counts` is greater than m, which is less than 128.
inline bool any_above(std::uint64_t counts, int m) {
  constexpr std::uint64_t each = 0x0101010101010101;
  return ((counts + each * std::uint64_t(127 - m)) & each * 128) != 0;
}

/// Moves mode `froms` up in the lanes that have `moved`, past the modes that are lighter than `heavy`; see
/// Mixture::sort(). `from`: the largest of `froms`.
template <int C>
inline void sort(const Row& row, std::size_t group, Floats (&weight)[modes], int from, const Ints& froms,
                 const Ints& moved, const Floats& heavy) {
  Ints rising = moved;
  for (int i = from; i > 0; --i) {
    const Ints here = i <= froms;
    rising &= ~here | ~(heavy < weight[i - 1]);
    const Ints up = rising & here;
    if (!any(up)) continue;
    swap(up, weight[i], weight[i - 1]);
    Floats *const a = row.shape_of(i, group), *const b = row.shape_of(i - 1, group);
    CUDAVISION_UNROLLED(4)
    for (int s = 0; s < 1 + C; ++s) swap(up, a[s], b[s]);
  }
}

/// Updates the mixtures of a group, whose pixels have `count` modes; sets which lanes are background.
template <int C>
inline void update(const Row& row, std::size_t group, const Floats (&value)[C], const Rates& rates,
                   float match_background, Ints& count, Ints& background) {
  const float rate = rates.rate, keep = rates.keep, prune = rates.prune;
  std::uint64_t packed;
  std::memcpy(&packed, row.count + group * lanes, lanes);
  Ints fits = {};
  background = Ints{};
  Floats total = {}, weight[modes];
  int used = 0;  // the largest number of modes of a pixel
  for (; used < modes && any_above(packed, used); ++used) {
    const int m = used;
    const Ints active = m < count;
    const Floats before = row.weight_of(m, group);
    Floats heavy = keep * before + prune;
    const Ints open = active & ~fits;
    Ints matched = {};
    if (m == 0 || any(open)) {
      Floats* const shape = row.shape_of(m, group);
      const Floats variance = shape[0];
      Floats away[C], distance = {};
      CUDAVISION_UNROLLED(4)
      for (int c = 0; c < C; ++c) {
        away[c] = shape[1 + c] - value[c];
        distance = distance + away[c] * away[c];
      }
      background |= open & (total < background_ratio) & (distance < match_background * variance);
      matched = open & (distance < match_mode * variance);
      fits |= matched;
      heavy = matched ? heavy + rate : heavy;
      const Floats k = rate / heavy;
      CUDAVISION_UNROLLED(4)
      for (int c = 0; c < C; ++c) shape[1 + c] = matched ? shape[1 + c] - k * away[c] : shape[1 + c];
      Floats updated = variance + k * (distance - variance);
      updated = updated < least_variance ? Floats{} + least_variance : updated;
      updated = updated > most_variance ? Floats{} + most_variance : updated;
      shape[0] = matched ? updated : variance;
    }
    const Ints gone = active & (heavy < -prune);
    heavy = gone ? Floats{} : heavy;
    count += gone;
    weight[m] = active ? heavy : before;
    total = active ? total + heavy : total;
    if (m > 0 && any(matched)) sort<C>(row, group, weight, m, Ints{} + m, matched, heavy);
  }

  const Floats scale = ((total > 1.1920929e-7f) | (total < -1.1920929e-7f)) ? 1 / total : Floats{};
  for (int m = 0; m < used; ++m) weight[m] = m < count ? weight[m] * scale : weight[m];

  if (const Ints alone = ~fits; rate > 0 && any(alone)) {
    const Ints fresh = count == modes ? Ints{} + (modes - 1) : count;
    count -= alone & (count < modes);
    if (used < modes) weight[used++] = Floats{};
    for (int m = 0; m < used; ++m) {
      weight[m] = (alone & (m < fresh)) ? weight[m] * keep : weight[m];
      const Ints here = alone & (fresh == m);
      if (!any(here)) continue;
      weight[m] = here ? Floats{} + (m == 0 ? 1 : rate) : weight[m];
      Floats* const shape = row.shape_of(m, group);
      // cppcheck-suppress constStatement ; it does not know vectors
      shape[0] = here ? Floats{} + first_variance : shape[0];
      CUDAVISION_UNROLLED(4)
      for (int c = 0; c < C; ++c) shape[1 + c] = here ? value[c] : shape[1 + c];
    }
    sort<C>(row, group, weight, used - 1, fresh, alone, Floats{} + rate);
  }
  for (int m = 0; m < used; ++m) row.weight_of(m, group) = weight[m];
}

/// The mixture of one pixel.
template <int C>
Mixture<C> mixture_of(const Row& row, std::size_t group, int lane, int count) {
  Mixture<C> mixture;
  mixture.count = count;
  for (int m = 0; m < mixture.count; ++m) {
    const Floats* const shape = row.shape_of(m, group);
    mixture.weight[m] = row.weight_of(m, group)[lane];
    mixture.variance[m] = shape[0][lane];
    for (int c = 0; c < C; ++c) mixture.mean[m][c] = shape[1 + c][lane];
  }
  return mixture;
}

/// A row of values of a chunk. Loops over whole chunks have a constant length, so the compiler vectorises them.
template <typename T>
struct alignas(64) Values {
  T at[chunk];

  T& operator[](int i) { return at[i]; }
  const T& operator[](int i) const { return at[i]; }
};
using Numbers = Values<std::int32_t>;
inline Ints& group_of(Numbers& numbers, int i) { return *reinterpret_cast<Ints*>(numbers.at + i); }

/// Rows begin … end.
template <int C>
CUDAVISION_WIDE void update_rows(const Job& job, const Rates& rates, int sample_bytes, unsigned char* state, int begin,
                                 int end, cv::Mat& changed) {
  const RowLayout layout(job.width, C);
  const float step = 1.0f / float(1 << job.extra_bits), steps = float(1 << job.extra_bits), match = job.match;
  const int max_value = job.max_value;
  const bool drop_shadows = job.drop_shadows;
  const int inputs = job.luma_of_rgb ? 3 : C;
  cpu::Rows sources[3], references[3];
  for (int c = 0; c < inputs; ++c) {
    sources[c] = {job.channels[c], sample_bytes, job.shift, job.max_value};
    references[c] = {job.reference[c], sample_bytes, job.shift, job.max_value};
  }
  // Loops over whole chunks also read padding after the end of the row.
  Numbers samples[3], shown[3] = {}, counts, foreground = {};
  Values<std::uint8_t> bytes;
  for (int y = begin; y < end; ++y) {
    const Row row(layout, state + std::size_t(y) * layout.bytes);
    if (job.begin) std::memset(row.count, 0, layout.groups * lanes);
    for (int x = 0; x < job.width; x += chunk) {
      const int count = std::min(chunk, job.width - x), padded_count = (count + lanes - 1) / lanes * lanes;
      for (int c = 0; c < inputs; ++c) {
        sources[c].read_pixels(x, y, count, samples[c].at);
        std::fill(samples[c].at + count, samples[c].at + chunk, 0);
      }
      if (job.luma_of_rgb)
        for (int i = 0; i < chunk; ++i) samples[0][i] = luma_of(samples[0][i], samples[1][i], samples[2][i]);
      std::memset(bytes.at, 0, sizeof bytes);
      copy(bytes.at, row.count + x, std::size_t(padded_count));
      for (int i = 0; i < chunk; ++i) counts[i] = bytes[i];

      for (int i = 0; i < count; i += lanes) {
        const std::size_t group = std::size_t(x + i) / lanes;
        // The shown difference uses the mixture as it was before its update.
        for (int line = 0; line < 3; ++line) __builtin_prefetch(row.shape_of(0, group + ahead) + 2 * line - 1);
        __builtin_prefetch(&row.weight_of(1, group + ahead));
        Ints& modes_used = group_of(counts, i);
        Floats value[C];
        CUDAVISION_UNROLLED(4)
        for (int c = 0; c < C; ++c) {
          const Ints sample = group_of(samples[c], i);
          value[c] = __builtin_convertvector(sample, Floats) * step;
          // Without modes, no mean is stored.
          const Floats mean = modes_used > 0 ? row.shape_of(0, group)[1 + c] : value[c];
          const Ints rounded = __builtin_convertvector(mean * steps + 0.5f, Ints);
          const Ints at_least_0 = rounded < 0 ? Ints{} : rounded;  // a mean may overshoot the sample that it learns
          group_of(shown[c], i) = at_least_0 > max_value ? Ints{} + max_value : at_least_0;
        }
        Ints background;
        update<C>(row, group, value, rates, match, modes_used, background);
        Ints& unlike = group_of(foreground, i) = ~background;
        if (drop_shadows && any(unlike))
          for (int lane = 0; lane < lanes; ++lane) {
            if (!unlike[lane]) continue;
            float one[C];
            for (int c = 0; c < C; ++c) one[c] = value[c][lane];
            if (mixture_of<C>(row, group, lane, modes_used[lane]).in_shadow(one, job)) unlike[lane] = 0;
          }
      }
      for (int i = 0; i < chunk; ++i) bytes[i] = std::uint8_t(counts[i]);
      copy(row.count + x, bytes.at, std::size_t(padded_count));
      for (int i = 0; i < chunk; ++i) bytes[i] = std::uint8_t(foreground[i]);
      copy(changed.ptr(y) + x, bytes.at, std::size_t(count));
      for (int c = 0; c < C; ++c) references[c].write_pixels(x, y, count, shown[c].at);
    }
  }
}

}  // namespace

std::size_t row_state_bytes(int width, int height, int channels) {
  return RowLayout(width, channels).bytes * std::size_t(height) + 64;
}

void update_rows(const Job& job, const Rates& rates, bool bytes, int channels, void* state, int begin, int end,
                 cv::Mat& changed) {
  const auto rows = channels == 1 ? update_rows<1> : update_rows<3>;
  const auto aligned = (reinterpret_cast<std::uintptr_t>(state) + 63) / 64 * 64;
  rows(job, rates, bytes ? 1 : 2, reinterpret_cast<unsigned char*>(aligned), begin, end, changed);
}

}  // namespace cudavision::diff::mog2
