// SPDX-License-Identifier: LGPL-2.1-or-later
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")  // vectorises the loops
#endif
#include "kernels/cpu/rows.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/wide.hpp"

namespace cudavision::cpu {
namespace {

constexpr int at_once = 512;  ///< numbers in the buffers of functions

/// Calls f(words, step) with the stored words starting at (x, y). The step, the distance in words from one sample to
/// the next, is a constant.
template <typename T, typename F>
void with_words(const Rows& rows, int x, int y, F f) {
  T* const words = reinterpret_cast<T*>(rows.channel.at(x, y));
  switch (rows.channel.step / int(sizeof(T))) {
    case 1:
      return f(words, std::integral_constant<int, 1>());
    case 2:
      return f(words, std::integral_constant<int, 2>());
    case 3:
      return f(words, std::integral_constant<int, 3>());
    default:
      return f(words, std::integral_constant<int, 4>());
  }
}
template <typename F>
void with_words(const Rows& rows, int x, int y, F f) {
  rows.sample_bytes == 1 ? with_words<std::uint8_t>(rows, x, y, f) : with_words<std::uint16_t>(rows, x, y, f);
}

/// Calls put(i, sample) for `count` samples starting at (x, y).
template <typename Put>
void for_samples(const Rows& rows, int x, int y, int count, Put put) {
  const int shift = rows.shift, max = rows.max;
  with_words(rows, x, y, [&](const auto* words, auto step) {
    for (int i = 0; i < count; ++i) put(i, sample_of(words[i * step()], shift, max));
  });
}
/// Stores sample(i) for `count` samples.
template <typename Sample>
void store_samples(const Rows& rows, int x, int y, int count, Sample sample) {
  const int shift = rows.shift;
  with_words(rows, x, y, [&](auto* words, auto step) {
    using T = std::remove_reference_t<decltype(*words)>;
    for (int i = 0; i < count; ++i) words[i * step()] = T(sample(i) << shift);
  });
}

CUDAVISION_WIDE void read_ints(const Rows& rows, int x, int y, int count, int* __restrict to) {
  for_samples(rows, x, y, count, [to](int i, int sample) { to[i] = sample; });
}
CUDAVISION_WIDE void read_floats(const Rows& rows, int x, int y, int count, float* __restrict to) {
  for_samples(rows, x, y, count, [to](int i, int sample) { to[i] = float(sample); });
}
CUDAVISION_WIDE void add_floats(const Rows& rows, int x, int y, int count, float weight, float* __restrict to) {
  for_samples(rows, x, y, count, [to, weight](int i, int sample) { to[i] += weight * float(sample); });
}
/// Writes each sample that covers some of the `count` pixels 2^shift times.
CUDAVISION_WIDE void repeat(const int* samples, int shift, int count, int* __restrict to) {
  if (shift == 1) {
    for (int i = 0; i < count / 2; ++i) to[2 * i] = to[2 * i + 1] = samples[i];
    if (count % 2) to[count - 1] = samples[count / 2];
  } else {
    for (int i = 0; i < count; ++i) to[i] = samples[i >> shift];
  }
}
template <int Shift>
CUDAVISION_WIDE void write_every(const Rows& rows, int x, int y, int count, const int* __restrict from) {
  store_samples(rows, x, y, count, [from](int i) { return from[i << Shift]; });
}
CUDAVISION_WIDE void write_floats(const Rows& rows, int x, int y, int count, const float* __restrict from) {
  constexpr float bias = 0x1.8p23f;  // adjacent floats around it differ by 1
  store_samples(rows, x, y, count, [from](int i) { return int((from[i] + bias) - bias); });
}
CUDAVISION_WIDE void make_luma(const LumaWeights& given, int max, int count, const int* green, const int* blue,
                               int* __restrict red) {
  const LumaWeights weights = given;
  for (int i = 0; i < count; ++i) red[i] = luma_of(red[i], green[i], blue[i], weights, max);
}

}  // namespace

void Rows::read(int x, int y, int count, int* to) const { read_ints(*this, x, y, count, to); }
void Rows::read(int x, int y, int count, float* to) const { read_floats(*this, x, y, count, to); }
void Rows::add(int x, int y, int count, float weight, float* to) const { add_floats(*this, x, y, count, weight, to); }
void Rows::write(int x, int y, int count, const float* from) const { write_floats(*this, x, y, count, from); }

void Rows::read_pixels(int x, int y, int count, int* to) const {
  const int shift = channel.shift_x, row = y >> channel.shift_y;
  if (shift == 0) return read(x, row, count, to);
  int samples[at_once];
  for (int done = 0; done < count; done += at_once) {
    const int now = std::min(count - done, at_once);
    read((x + done) >> shift, row, subsampled(now, shift), samples);
    repeat(samples, shift, now, to + done);
  }
}

void Rows::write_pixels(int x, int y, int count, const int* from) const {
  const int shift = channel.shift_x;
  if (!channel.is_first(x, y)) return;
  const auto write = shift == 0 ? write_every<0> : shift == 1 ? write_every<1> : write_every<2>;
  write(*this, x >> shift, y >> channel.shift_y, subsampled(count, shift), from);
}

LumaRows::LumaRows(const Image& image, const LumaWeights& weights)
    : first_(rows_of(image, Role::red)), weights_(weights) {
  if (first_.channel.data)
    green_ = rows_of(image, Role::green), blue_ = rows_of(image, Role::blue);
  else
    first_ = rows_of(image, Role::luma);
}

void LumaRows::read(int x, int y, int count, int* to) const {
  first_.read(x, y, count, to);
  if (!green_.channel.data) return;
  int green[at_once], blue[at_once];
  for (int done = 0; done < count; done += at_once) {
    const int now = std::min(count - done, at_once);
    green_.read(x + done, y, now, green);
    blue_.read(x + done, y, now, blue);
    make_luma(weights_, first_.max, now, green, blue, to + done);
  }
}

}  // namespace cudavision::cpu
