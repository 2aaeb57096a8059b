// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares a whole row of pixels at a time:
//
//   other sets   |v − r| of their samples, the larger of Cb and Cr, each twice where they are subsampled
//   first set    |v − r|, the largest of these and the other sets  ->  sum, changed
#include <algorithm>
#include <cstring>

#include "kernels/cpu/lanes.hpp"
#include "kernels/diff/cpu_stages.hpp"

namespace cudavision::diff {
namespace {

using cpu::Lanes;

CUDAVISION_INLINE std::uint8_t difference(std::uint8_t a, std::uint8_t b) {
  return std::uint8_t(a < b ? b - a : a - b);
}

/// Sets the differences of `count` samples.
template <int N>
CUDAVISION_INLINE void subtract(const std::uint8_t* v, const std::uint8_t* r, int count, std::uint8_t* to) {
  using Bytes = Lanes<std::uint8_t, 4 * N>;
  int i = 0;
  for (; i + 4 * N <= count; i += 4 * N) {
    const Bytes a = Bytes::load(v + i), b = Bytes::load(r + i);
    (most(a, b) - least(a, b)).store(to + i);
  }
  for (; i < count; ++i) to[i] = difference(v[i], r[i]);
}
/// Sets `count` numbers to the larger number of each pair.
template <int N>
CUDAVISION_INLINE void join_pairs(int count, std::uint8_t* numbers) {
  using Words = Lanes<std::uint16_t, 2 * N>;
  int i = 0;
  for (; i + 2 * N <= count; i += 2 * N) {
    const Words words = Words::load(numbers + 2 * i);
    most(words & 255, words >> 8).template as<std::uint8_t>().store(numbers + i);
  }
  for (; i < count; ++i) numbers[i] = std::max(numbers[2 * i], numbers[2 * i + 1]);
}
/// Writes each of `count` numbers twice.
template <int N>
CUDAVISION_INLINE void repeat(const std::uint8_t* numbers, int count, std::uint8_t* to) {
  int i = 0;
  for (; i + 2 * N <= count; i += 2 * N) {
    const auto words = Lanes<std::uint8_t, 2 * N>::load(numbers + i).template as<std::uint16_t>();
    (words | words << 8).store(to + 2 * i);
  }
  for (; i < count; ++i) to[2 * i] = to[2 * i + 1] = numbers[i];
}
template <int N>
CUDAVISION_INLINE void take_greatest(const std::uint8_t* numbers, int count, std::uint8_t* to) {
  using Bytes = Lanes<std::uint8_t, 4 * N>;
  int i = 0;
  for (; i + 4 * N <= count; i += 4 * N) most(Bytes::load(to + i), Bytes::load(numbers + i)).store(to + i);
  for (; i < count; ++i) to[i] = std::max(to[i], numbers[i]);
}

/// The samples of the first set; the differences of the other sets, or null; counted pixels, or null; changed pixels.
struct Row {
  const std::uint8_t *v, *r, *others, *unmasked;
  std::uint8_t* changed;
  int width, threshold;
  bool has_model;
};

/// Sets the changed pixels; returns the sum of the differences.
template <int N>
CUDAVISION_INLINE std::uint64_t finish(const Row& given) {
  using Bytes = Lanes<std::uint8_t, 4 * N>;
  using Words = Lanes<std::uint16_t, 2 * N>;
  constexpr int per_sum = 64 * 4 * N;  // bytes whose sums fit in 16 bits
  const Row row = given;
  const Bytes threshold(row.threshold);
  std::uint64_t total = 0;
  int x = 0;
  while (x + 4 * N <= row.width) {
    Words sums(0);
    for (const int end = std::min(row.width, x + per_sum); x + 4 * N <= end; x += 4 * N) {
      const Bytes a = Bytes::load(row.v + x), b = Bytes::load(row.r + x);
      Bytes greatest = most(a, b) - least(a, b);
      if (row.others) greatest = most(greatest, Bytes::load(row.others + x));
      const Bytes unmasked = row.unmasked ? Bytes::load(row.unmasked + x) : Bytes(255);
      greatest = greatest & unmasked;
      if (!row.has_model)
        (greatest > threshold).store(row.changed + x);
      else if (row.unmasked)
        (Bytes::load(row.changed + x) & unmasked).store(row.changed + x);
      const Words words = Words::of_bits(greatest.v);
      sums = sums + (words & 255) + (words >> 8);
    }
    std::uint16_t each[2 * N];
    sums.store(each);
    for (std::uint16_t one : each) total += one;
  }
  for (; x < row.width; ++x) {
    std::uint8_t greatest = difference(row.v[x], row.r[x]);
    if (row.others) greatest = std::max(greatest, row.others[x]);
    const std::uint8_t unmasked = row.unmasked ? row.unmasked[x] : 255;
    greatest &= unmasked;
    row.changed[x] = row.has_model ? row.changed[x] & unmasked : greatest > row.threshold ? 255 : 0;
    total += greatest;
  }
  return total;
}

/// The differences of a row of a set that is not the first.
struct Other {
  const std::uint8_t *v, *r;
  int samples, channels;
  bool first;
};

/// Sets `greatest` or, if this is not the first such set, raises it. `own`: memory for the differences of a row.
template <int N>
CUDAVISION_INLINE void compare_other(const Other& other, std::uint8_t* own, std::uint8_t* greatest) {
  subtract<N>(other.v, other.r, other.samples * other.channels, own);
  if (other.channels == 2) join_pairs<N>(other.samples, own);
  if (!other.first)
    take_greatest<N>(own, other.samples, greatest);
  else
    std::memcpy(greatest, own, std::size_t(other.samples));
}

#ifdef CUDAVISION_AVX2
CUDAVISION_AVX2 std::uint64_t finish_wide(const Row& row) { return finish<8>(row); }
CUDAVISION_AVX2 void other_wide(const Other& other, std::uint8_t* own, std::uint8_t* greatest) {
  compare_other<8>(other, own, greatest);
}
CUDAVISION_AVX2 void repeat_wide(const std::uint8_t* numbers, int count, std::uint8_t* to) {
  repeat<8>(numbers, count, to);
}
#endif
CUDAVISION_FLAT std::uint64_t finish_narrow(const Row& row) { return finish<4>(row); }
CUDAVISION_FLAT void other_narrow(const Other& other, std::uint8_t* own, std::uint8_t* greatest) {
  compare_other<4>(other, own, greatest);
}
CUDAVISION_FLAT void repeat_narrow(const std::uint8_t* numbers, int count, std::uint8_t* to) {
  repeat<4>(numbers, count, to);
}

const std::uint8_t* row_of(const Image& image, std::size_t plane, int y) {
  return static_cast<const std::uint8_t*>(image.planes[plane].data) + y * image.planes[plane].pitch;
}

}  // namespace

bool ByteRows::fit(const Plan& plan) {
  const FormatInfo& format = info(plan.analysis.format);
  if (format.sample_bytes() != 1 || plan.params.output == Output::difference || plan.has_background() ||
      plan.luma_of_rgb() || !plan.compares_samples())
    return false;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (!plan.compares_plane(set.plane)) continue;
    for (int c = 0; c < set.channels; ++c)
      if (!plan.compares(set.roles[c])) return false;
    const bool subsampled = set.shift_x != 0 || set.shift_y != 0;
    if (i == 0 ? subsampled || set.channels != 1 : set.channels > 2 || set.shift_x > 1 || set.shift_y > 1) return false;
    // Subsampled sets are repeated together.
    if (i > 1 && plan.compares_plane(format.sets[1].plane) &&
        (set.shift_x != format.sets[1].shift_x || set.shift_y != format.sets[1].shift_y))
      return false;
  }
  return plan.compares_plane(format.sets[0].plane);
}

ByteRows::ByteRows(const Plan& plan)
    : width_(plan.analysis.width), threshold_(plan.threshold), has_model_(plan.has_model()) {
  const FormatInfo& format = info(plan.analysis.format);
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (plan.compares_plane(set.plane))
      sets_.push_back({std::size_t(set.plane), plan.analysis.grid(set).width, set.channels, set.shift_x, set.shift_y});
  }
}

std::uint64_t ByteRows::compare(const Frame& frame, int begin, int end, const cv::Mat& unmasked,
                                cv::Mat& changed) const {
  const auto finish_row = CUDAVISION_WIDEST(finish_wide, finish_narrow);
  const auto compare_row = CUDAVISION_WIDEST(other_wide, other_narrow);
  const auto repeat_row = CUDAVISION_WIDEST(repeat_wide, repeat_narrow);
  std::vector<std::uint8_t> own(2 * std::size_t(width_) + 2), greatest(own.size()), repeated(own.size());
  std::uint64_t sum = 0;
  for (int y = begin; y < end; ++y) {
    const std::uint8_t* others = nullptr;
    for (std::size_t i = 1; i < sets_.size(); ++i) {
      const Set& set = sets_[i];
      others = set.shift_x ? repeated.data() : greatest.data();
      if (set.shift_y && y > begin && y % 2 == 1) continue;  // the previous row had the same samples
      const int row = y >> set.shift_y;
      compare_row({row_of(frame.src, set.plane, row), row_of(frame.reference, set.plane, row), set.samples,
                   set.channels, i == 1},
                  own.data(), greatest.data());
      if (set.shift_x && i + 1 == sets_.size()) repeat_row(greatest.data(), set.samples, repeated.data());
    }
    const std::size_t plane = sets_[0].plane;
    sum += finish_row({row_of(frame.src, plane, y), row_of(frame.reference, plane, y), others,
                       unmasked.empty() ? nullptr : unmasked.ptr(y), changed.ptr(y), width_, threshold_, has_model_});
  }
  for (const Set& set : sets_) {
    const Plane& keep = frame.keep.planes[set.plane];
    if (!keep.data) continue;
    const std::size_t bytes = std::size_t(set.samples) * set.channels;
    for (int y = begin >> set.shift_y; y < (end + (1 << set.shift_y) - 1) >> set.shift_y; ++y)
      std::memcpy(static_cast<std::uint8_t*>(keep.data) + y * keep.pitch, row_of(frame.src, set.plane, y), bytes);
  }
  return sum;
}

}  // namespace cudavision::diff
