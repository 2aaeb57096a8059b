// SPDX-License-Identifier: LGPL-2.1-or-later
// How kernels read and write the pixels of a channel set: formats, borders, alignment, rectangles. Kernels only
// compute.
//
// A quad is four neighbouring pixels whose first x is a multiple of 4. In memory its channels are interleaved; in
// registers it is held as planar words, one channel after the other. For RGB of 8 bits (T = uint8_t, C = 3), byte 0 is
// the lowest byte of a word:
//
//   memory              R0 G0 B0 R1 │ G1 B1 R2 G2 │ B2 R3 G3 B3         three words of interleaved samples
//                                   load_quad() ▼ ▲ store_quad()
//   quad.word[0][0]     R0 R1 R2 R3                                     channel 0
//   quad.word[1][0]     G0 G1 G2 G3                                     channel 1
//   quad.word[2][0]     B0 B1 B2 B3                                     channel 2
//
// Samples of 16 bits need two words per channel. NV12 chroma of 16 bits (T = uint16_t, C = 2):
//
//   memory              U0 V0 │ U1 V1 │ U2 V2 │ U3 V3
//   quad.word[0][0..1]  U0 U1 │ U2 U3
//   quad.word[1][0..1]  V0 V1 │ V2 V3
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/border.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/sample.hpp"
#include "kernels/cuda/layout.hpp"

namespace cudavision::cuda {

/// One channel set of a source and a destination frame, passed to kernels by value.
struct SetView {
  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  std::ptrdiff_t src_pitch = 0, dst_pitch = 0;  ///< bytes
  int width = 0, height = 0;           ///< size of the whole grid, in pixels of the set (`channels` samples each)
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< the rectangle to write: [x0, x1) × [y0, y1)
  int max_value = 255;                 ///< results saturate at this value; larger stored values count as it
  int shift = 0;                       ///< unused low bits of stored words
  std::uint8_t channels = 1;
  std::uint8_t filtered = 1;  ///< bit c: channel c is computed
  std::uint8_t own = 1;       ///< bit c: channel c is written; own channels that are not filtered are copied
  bool src_aligned = false, dst_aligned = false;  ///< quads can be accessed as words (see quad_alignment)
  Border border = Border::constant;
  std::uint16_t border_value[4] = {};  ///< border value of each channel
};

/// The samples of a quad as planar words: word[c][k] holds 4 / sizeof(T) neighbouring samples of channel c, the
/// leftmost one in the lowest bits.
template <typename T, int C>
struct Quad {
  std::uint32_t word[C][sizeof(T)];

  __device__ T sample(int c, int j) const {
    constexpr int per_word = 4 / sizeof(T);
    return T(word[c][j / per_word] >> (j % per_word * 8 * int(sizeof(T))));
  }
};

/// The alignment of quads in bytes: the largest power of two, up to 16, that divides the size of a quad.
constexpr int quad_alignment(int channels, int sample_bytes) {
  const int bytes = 4 * channels * sample_bytes, lowest = bytes & -bytes;
  return lowest < 16 ? lowest : 16;
}

/// The view of channel set `index` for writing `rect`, in pixels of the set's grid.
inline SetView make_view(const Image& src, const Image& dst, int index, const Rect& rect, Border border,
                         const BorderValue& border_value, bool filter_alpha) {
  const FormatInfo& format = info(src.geometry.format);
  const ChannelSet& set = format.sets[index];
  const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
  const Rect grid = src.geometry.grid(set);
  const int alignment = quad_alignment(set.channels, format.sample_bytes());

  SetView view;
  view.src = static_cast<const unsigned char*>(from.data);
  view.dst = static_cast<unsigned char*>(to.data);
  view.src_pitch = from.pitch;
  view.dst_pitch = to.pitch;
  view.width = grid.width;
  view.height = grid.height;
  view.x0 = rect.x;
  view.y0 = rect.y;
  view.x1 = rect.x + rect.width;
  view.y1 = rect.y + rect.height;
  view.max_value = format.max_value();
  view.shift = format.shift;
  view.channels = set.channels;
  view.filtered = view.own = 0;
  for (int c = 0; c < set.channels; ++c) {
    const Role role = set.roles[c];
    if (role == Role::other) continue;
    view.own |= 1 << c;
    if (filter_alpha || is_color(role)) view.filtered |= 1 << c;
    view.border_value[c] = border_value[std::size_t(role)];
  }
  view.src_aligned = aligned_to(from.data, from.pitch, alignment);
  view.dst_aligned = aligned_to(to.data, to.pitch, alignment);
  view.border = border;
  return view;
}

#ifdef __CUDACC__

/// Converts the two stored 16-bit words in a register to samples (see sample_of). to_samples() converts N registers,
/// and does nothing if the format uses all 16 bits.
__device__ __forceinline__ std::uint32_t samples_of(std::uint32_t words, int shift, int max_value) {
  const std::uint32_t mask = (0xffffu >> shift) * 0x10001u;
  return __vminu2(words >> shift & mask, std::uint32_t(max_value) * 0x10001u);
}
template <int N>
__device__ __forceinline__ void to_samples(std::uint32_t (&words)[N], int shift, int max_value) {
  if (max_value == 0xffff) return;
#pragma unroll
  for (int i = 0; i < N; ++i) words[i] = samples_of(words[i], shift, max_value);
}

/// The word made of bytes b0 … b3 of `words`. The indices are compile-time constants after unrolling.
template <int N>
__device__ __forceinline__ std::uint32_t gather(const std::uint32_t (&words)[N], int b0, int b1, int b2, int b3) {
  const int w0 = b0 / 4, w1 = b1 / 4, w2 = b2 / 4, w3 = b3 / 4;
  if (w1 == w0 && w3 == w2) {  // at most two source words: one permutation is enough
    return __byte_perm(words[w0], words[w2], (b0 % 4) | (b1 % 4) << 4 | (4 + b2 % 4) << 8 | (4 + b3 % 4) << 12);
  }
  const std::uint32_t low = __byte_perm(words[w0], words[w1], (b0 % 4) | (4 + b1 % 4) << 4);
  const std::uint32_t high = __byte_perm(words[w2], words[w3], (b2 % 4) | (4 + b3 % 4) << 4);
  return __byte_perm(low, high, 0x5410);
}

/// The position in the interleaved quad of byte k of planar word w of channel c.
template <typename T, int C>
__device__ constexpr int interleaved_byte(int c, int w, int k) {
  const int byte = 4 * w + k, pixel = byte / int(sizeof(T));
  return (pixel * C + c) * int(sizeof(T)) + byte % int(sizeof(T));
}

/// The position in the planar words of byte b of the interleaved quad.
template <typename T, int C>
__device__ constexpr int planar_byte(int b) {
  const int sample = b / int(sizeof(T));
  return (sample % C) * 4 * int(sizeof(T)) + sample / C * int(sizeof(T)) + b % int(sizeof(T));
}

template <typename T, int C>
__device__ __forceinline__ Quad<T, C> deinterleave(const std::uint32_t (&raw)[C * sizeof(T)]) {
  Quad<T, C> quad;
#pragma unroll
  for (int c = 0; c < C; ++c)
#pragma unroll
    for (int w = 0; w < int(sizeof(T)); ++w)
      quad.word[c][w] = C == 1 ? raw[w]
                               : gather(raw, interleaved_byte<T, C>(c, w, 0), interleaved_byte<T, C>(c, w, 1),
                                        interleaved_byte<T, C>(c, w, 2), interleaved_byte<T, C>(c, w, 3));
  return quad;
}

template <typename T, int C>
__device__ __forceinline__ void interleave(const Quad<T, C>& quad, std::uint32_t (&raw)[C * sizeof(T)]) {
  std::uint32_t planar[C * sizeof(T)];
#pragma unroll
  for (int i = 0; i < C * int(sizeof(T)); ++i) planar[i] = quad.word[i / sizeof(T)][i % sizeof(T)];
#pragma unroll
  for (int i = 0; i < C * int(sizeof(T)); ++i)
    raw[i] = C == 1 ? planar[i]
                    : gather(planar, planar_byte<T, C>(4 * i), planar_byte<T, C>(4 * i + 1),
                             planar_byte<T, C>(4 * i + 2), planar_byte<T, C>(4 * i + 3));
}

/// Loads the words of a quad with the widest accesses that its alignment allows. `constant`: this memory is not written
/// while the kernel runs.
template <int N, int Alignment, bool constant = true>
__device__ __forceinline__ void load_words(const unsigned char* from, std::uint32_t (&raw)[N]) {
  using Vector = std::conditional_t<Alignment == 16, uint4, std::conditional_t<Alignment == 8, uint2, std::uint32_t>>;
  constexpr int per = sizeof(Vector) / 4;
#pragma unroll
  for (int i = 0; i < N / per; ++i) {
    const Vector* const at = reinterpret_cast<const Vector*>(from) + i;
    const Vector v = constant ? __ldg(at) : *at;
    if constexpr (per == 4) {
      raw[4 * i] = v.x, raw[4 * i + 1] = v.y, raw[4 * i + 2] = v.z, raw[4 * i + 3] = v.w;
    } else if constexpr (per == 2) {
      raw[2 * i] = v.x, raw[2 * i + 1] = v.y;
    } else {
      raw[i] = v;
    }
  }
}

template <int N, int Alignment>
__device__ __forceinline__ void store_words(unsigned char* to, const std::uint32_t (&raw)[N]) {
  using Vector = std::conditional_t<Alignment == 16, uint4, std::conditional_t<Alignment == 8, uint2, std::uint32_t>>;
  constexpr int per = sizeof(Vector) / 4;
#pragma unroll
  for (int i = 0; i < N / per; ++i) {
    Vector v;
    if constexpr (per == 4) {
      v = make_uint4(raw[4 * i], raw[4 * i + 1], raw[4 * i + 2], raw[4 * i + 3]);
    } else if constexpr (per == 2) {
      v = make_uint2(raw[2 * i], raw[2 * i + 1]);
    } else {
      v = raw[i];
    }
    reinterpret_cast<Vector*>(to)[i] = v;
  }
}

/// The sample of a row of `width` pixels that replaces `sample`, which may lie outside the row; −1: the border value
/// replaces it. Samples are counted from the start of the row, over all channels.
__device__ __forceinline__ int source_sample(int sample, int channels, int width, Border border) {
  const int pixel = sample >= 0 ? sample / channels : -((channels - 1 - sample) / channels);
  const int from = border_index(pixel, width, border);
  return from < 0 ? -1 : sample + (from - pixel) * channels;
}

/// The stored border value of a sample that is counted in this way.
__device__ __forceinline__ std::uint32_t border_sample(const SetView& view, int sample) {
  const int channels = view.channels, channel = sample % channels;
  return std::uint32_t(view.border_value[channel < 0 ? channel + channels : channel]) << view.shift;
}

/// Reads pixels x … x + 3 of row `row` and converts stored words to samples. x: a multiple of 4, may lie outside the
/// grid. row: the result of border_index(), inside the grid or −1 for the border value.
template <typename T, int C>
__device__ __forceinline__ Quad<T, C> load_quad(const SetView& view, int x, int row) {
  Quad<T, C> quad;
  if (view.src_aligned && row >= 0 && x >= 0 && x + 4 <= view.width) {
    std::uint32_t raw[C * sizeof(T)];
    load_words<C * sizeof(T), quad_alignment(C, sizeof(T))>(
        view.src + row * view.src_pitch + std::ptrdiff_t(x) * (C * sizeof(T)), raw);
    quad = deinterleave<T, C>(raw);
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int c = 0; c < C; ++c) to_samples(quad.word[c], view.shift, view.max_value);
    }
    return quad;
  }
#pragma unroll
  for (int c = 0; c < C; ++c)
#pragma unroll
    for (int w = 0; w < int(sizeof(T)); ++w) quad.word[c][w] = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int column = row < 0 ? -1 : border_index(x + j, view.width, view.border);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const std::uint32_t value =
          column < 0 ? view.border_value[c]
                     : std::uint32_t(sample_of(
                           reinterpret_cast<const T*>(view.src + row * view.src_pitch)[std::ptrdiff_t(column) * C + c],
                           view.shift, view.max_value));
      constexpr int per_word = 4 / sizeof(T);
      quad.word[c][j / per_word] |= value << (j % per_word * 8 * int(sizeof(T)));
    }
  }
  return quad;
}

/// Writes pixels x … x + 3 of row y that lie in the view's rectangle. x: a multiple of 4. Filtered channels are taken
/// from `quad`, which is saturated. Own channels that are not filtered are copied from the source. Channels of other
/// sets are not written.
template <typename T, int C>
__device__ __forceinline__ void store_quad(const SetView& view, int x, int y, Quad<T, C> quad) {
  if (y < view.y0 || y >= view.y1 || x >= view.x1 || x + 4 <= view.x0) return;
  if (view.own & ~view.filtered) {
    const Quad<T, C> source = load_quad<T, C>(view, x, y);
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int w = 0; w < int(sizeof(T)); ++w)
        if (!(view.filtered >> c & 1)) quad.word[c][w] = source.word[c][w];
  }
  constexpr unsigned all = (1u << C) - 1;
  unsigned char* const row = view.dst + y * view.dst_pitch;
  if (view.dst_aligned && view.own == all && x >= view.x0 && x + 4 <= view.x1) {
    if (sizeof(T) == 2) {
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        // The low sample has `shift` zero bits at the top.
        for (int w = 0; w < int(sizeof(T)); ++w) quad.word[c][w] <<= view.shift;
    }
    std::uint32_t raw[C * sizeof(T)];
    interleave<T, C>(quad, raw);
    store_words<C * sizeof(T), quad_alignment(C, sizeof(T))>(row + std::ptrdiff_t(x) * (C * sizeof(T)), raw);
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (x + j < view.x0 || x + j >= view.x1) continue;
#pragma unroll
    for (int c = 0; c < C; ++c)
      if (view.own >> c & 1)
        reinterpret_cast<T*>(row)[std::ptrdiff_t(x + j) * C + c] = T(quad.sample(c, j) << view.shift);
  }
}

#endif  // __CUDACC__

}  // namespace cudavision::cuda
