// SPDX-License-Identifier: LGPL-2.1-or-later
// What the kernels of the difference share: a strip of pixels of any format, where it lies, and what is counted, compared and
// written of it.
#pragma once

#include <cstdint>

#include "kernels/cuda/rows.cuh"
#include "kernels/diff/diff.hpp"

namespace cudavision::cuda::diff {

using cudavision::detail::background_sample;
using cudavision::detail::background_step;
using cudavision::detail::DiffShow;
using detail::deinterleave;
using detail::interleave;

/// A block's tile is 16 rows high, and 32 threads wide: 512 pixels of one byte. A thread works on one strip of 16 bytes a plane, or
/// a few times that. Measured on an H200, GRAY8 with mask: 27.8 µs at 8K and 4.1 µs at 1080p. Before, with four strips a thread,
/// all their loads under way together, and one kernel for all that can be written: 33.4 and 7.8 µs, as 5600 instructions are slow
/// to fetch.
constexpr int tile_rows = 16;
constexpr int max_slots = (512 / diff_min_cell + 2) * (tile_rows / diff_min_cell + 2);
static_assert(512 * tile_rows <= 0xffff, "a tile's count of a cell is a word of 16 bits");

/// How the planes of a format lie to each other, which shapes a kernel. Plane 0 has C0 interleaved channels; two mean packed 4:2:2.
template <typename T_, int C0, int C1, int planes_, int SX, int SY>
struct Shape {
  using T = T_;
  static constexpr int channels0 = C0, channels1 = C1, planes = planes_, shift_x = SX, shift_y = SY;
  static constexpr bool packed_422 = C0 == 2, packed_rgb = C0 >= 3, planar_rgb = planes_ == 3 && SX == 0;  ///< (or 4:4:4)
  static constexpr bool maybe_rgb = packed_rgb || planar_rgb;
  static constexpr int rows = 1 + SY;  ///< of plane 0 a thread works on, for one of the others
  static constexpr int pixels = (C0 == 4 ? 4 : C0 == 2 ? 8 : 16 / int(sizeof(T)));  ///< of a row
  static constexpr int quads = pixels / 4;
  static constexpr int words0 = pixels * C0 * int(sizeof(T)) / 4;
  static constexpr int words1 = (pixels >> SX) * C1 * int(sizeof(T)) / 4;
  static constexpr int words_a_quad = int(sizeof(T));  ///< of one value a pixel
  static constexpr int tile_width = 32 * pixels, threads = 32 * tile_rows / rows;
};

/// Alignment for the widest access to so many words.
constexpr int words_alignment(int words) { return words % 4 == 0 ? 16 : words % 2 == 0 ? 8 : 4; }

/// What samples of a word become, in sample values; masks are all ones or zero for each sample.
struct Rule {
  std::uint32_t compared = 0, about_middle = 0, copied = 0, white = 0, black = 0, tint = 0;
};

struct View {
  unsigned char* data = nullptr;
  std::ptrdiff_t pitch = 0;
};

/// One plane of the frames. Pictures of others are read and written as far as their rows go, the plan's own in whole strips.
struct PlaneJob {
  View src, reference, keep, dst, background;                                  ///< background: words of twice the sample's size
  int row_bytes = 0, reference_bytes = 0;                                      ///< that may be touched
  std::uint8_t src_alignment = 1, reference_alignment = 1, dst_alignment = 1;  ///< of every row, up to 16
  bool any_compared = false, any_about_middle = false, any_copied = false;
  Rule rules[8];  ///< for the words of a quad; they repeat along the row
};

// What all threads need comes first, in few cache lines.
struct Params {
  int width = 0, height = 0;
  std::uint32_t threshold = 0;  ///< in every sample of a word
  bool count = true;            ///< this kernel counts changed pixels
  bool begin = false;           ///< of a background
  bool luma_of_rgb = false, reference_is_luma = false;
  bool show_mask = false;    ///< what changed is shown as a mask, not as an overlay
  bool luma_second = false;  ///< packed 4:2:2 begins with chroma
  std::uint8_t shift = 0;    ///< unused low bits of stored words
  std::uint8_t open_radius = 0;
  std::uint32_t cell_size = 16, cell_reciprocal = 0;  ///< see cell_of
  int slots_x = 0, slots = 0;
  int tiles_x = 1, record_bytes = 0;
  unsigned char* records = nullptr;        ///< one a tile: the sum of differences, then counts of 16 bits, slots_x a row of cells
  const unsigned char* counted = nullptr;  ///< bits; null: all
  const unsigned char* foreground = nullptr;  ///< bits that say what changed, instead of the threshold
  unsigned char* changed = nullptr;           ///< bits for the opening
  std::ptrdiff_t bits_pitch = 0;
  PlaneJob planes[3];
  int rate = 0;
  DiffShow show;
  int rgb[3] = {};  ///< channels of plane 0, or planes, of red, green and blue
};

/// What a kernel writes, besides counts.
enum class Writes { nothing, difference, changed };

/// The words of a thread's pixels: rows of plane 0, and one row of each other plane; `scale` times as many for wider samples.
template <class S, int scale = 1>
struct Strip {
  std::uint32_t first[S::rows][scale * S::words0];
  std::uint32_t rest[S::planes > 1 ? S::planes - 1 : 1][scale * S::words1];
};

/// A row of words in a strip: interleaved channels, whether of plane 0, and the words after which a plane's rules repeat.
template <int C_, bool first_, int period_>
struct Piece {
  static constexpr int C = C_, period = period_;
  static constexpr bool first = first_;
};

/// Calls f(piece, plane, row, of) for each row of words in a strip; of(strip) is that row.
template <class S, typename F>
__device__ __forceinline__ void each_piece(F&& f) {
#pragma unroll
  for (int r = 0; r < S::rows; ++r)
    f(
        Piece<S::channels0, true, S::channels0 * S::words_a_quad>{}, 0, r, [r](auto& strip) -> auto& { return strip.first[r]; });
#pragma unroll
  for (int k = 1; k < S::planes; ++k)
    f(
        Piece<S::channels1, false, S::channels1 * S::words_a_quad>{}, k,
        0, [k](auto& strip) -> auto& { return strip.rest[k - 1]; });
}

// Words at the end of a row, or of planes that are badly aligned. Apart, and not unrolled, as they are rare.
__device__ inline __noinline__ void load_some(const unsigned char* from, int bytes, int alignment, std::uint32_t* words) {
  int i = 0;
  if (alignment >= 4) {
#pragma unroll 1
    for (; i + 4 <= bytes; i += 4) words[i / 4] = *reinterpret_cast<const std::uint32_t*>(from + i);
  }
#pragma unroll 1
  for (; i < bytes; ++i) words[i / 4] |= std::uint32_t(from[i]) << i % 4 * 8;
}
__device__ inline __noinline__ void store_some(unsigned char* to, int bytes, int alignment, const std::uint32_t* words) {
  int i = 0;
  if (alignment >= 4) {
#pragma unroll 1
    for (; i + 4 <= bytes; i += 4) *reinterpret_cast<std::uint32_t*>(to + i) = words[i / 4];
  }
#pragma unroll 1
  for (; i < bytes; ++i) to[i] = (unsigned char)(words[i / 4] >> i % 4 * 8);
}

/// Loads the part of the words that lies in the row; the rest is zero.
template <bool constant, int N>
__device__ __forceinline__ void load_row(const View& view, int row_bytes, int alignment, int byte, int row,
                                         std::uint32_t (&words)[N]) {
  const unsigned char* const at = view.data + row * view.pitch + byte;
  if (byte + 4 * N <= row_bytes && alignment >= words_alignment(N)) {
    detail::load_words<N, words_alignment(N), constant>(at, words);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] = 0;
    if (byte < row_bytes) {
      std::uint32_t some[N] = {};
      load_some(at, min(4 * N, row_bytes - byte), alignment, some);
#pragma unroll
      for (int i = 0; i < N; ++i) words[i] = some[i];
    }
  }
}
template <int N>
__device__ __forceinline__ void store_row(const View& view, int row_bytes, int alignment, int byte, int row,
                                          const std::uint32_t (&words)[N]) {
  unsigned char* const at = view.data + row * view.pitch + byte;
  if (byte + 4 * N <= row_bytes && alignment >= words_alignment(N)) {
    detail::store_words<N, words_alignment(N)>(at, words);
  } else if (byte < row_bytes) {
    std::uint32_t some[N];
#pragma unroll
    for (int i = 0; i < N; ++i) some[i] = words[i];
    store_some(at, min(4 * N, row_bytes - byte), alignment, some);
  }
}
/// The plan's own memory, whose rows are aligned and long enough.
template <int N>
__device__ __forceinline__ void load_own(const View& view, int byte, int row, std::uint32_t (&words)[N]) {
  detail::load_words<N, words_alignment(N), false>(view.data + row * view.pitch + byte, words);
}
template <int N>
__device__ __forceinline__ void store_own(const View& view, int byte, int row, const std::uint32_t (&words)[N]) {
  detail::store_words<N, words_alignment(N)>(view.data + row * view.pitch + byte, words);
}

/// Where the words of a thread lie in a plane.
template <class S, class P>
__device__ __forceinline__ int byte_of(int x) {
  return (P::first ? x : x >> S::shift_x) * P::C * int(sizeof(typename S::T));
}
template <class S, class P>
__device__ __forceinline__ int row_of(int row, int y) {
  return P::first ? y + row : y >> S::shift_y;
}

/// Samples between words as stored and values.
template <class S, int N>
__device__ __forceinline__ void to_values(const Params& p, std::uint32_t (&words)[N]) {
  if constexpr (sizeof(typename S::T) == 2) to_samples(words, p.shift, p.show.max);
}
template <class S, int N>
__device__ __forceinline__ void to_stored(const Params& p, std::uint32_t (&words)[N]) {
  if constexpr (sizeof(typename S::T) == 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] <<= p.shift;  // the low sample has `shift` zero bits on top
  }
}

template <class S>
__device__ __forceinline__ void load_source(const Params& p, int x, int y, Strip<S>& strip) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    auto& words = of(strip);
    if (job.src.data && y + row < p.height) {
      load_row<true>(job.src, job.row_bytes, job.src_alignment, byte_of<S, P>(x), row_of<S, P>(row, y), words);
    } else {
#pragma unroll
      for (auto& word : words) word = 0;
    }
  });
}

/// One value a pixel of the quad from bits: all ones or zero.
template <typename T>
__device__ __forceinline__ void expand_quad(unsigned bits, std::uint32_t (&words)[sizeof(T)]) {
  bits &= 15;
  if constexpr (sizeof(T) == 1) {
    words[0] = (bits * 0x204081u & 0x1010101u) * 0xffu;
  } else {
    words[0] = ((bits & 1) | (bits & 2) << 15) * 0xffffu;
    words[1] = ((bits >> 2 & 1) | (bits >> 2 & 2) << 15) * 0xffffu;
  }
}

/// Neighbouring pixels 2i and 2i + 1 of which any is set.
__device__ __forceinline__ unsigned pairs_of(unsigned bits) {
  const unsigned even = (bits | bits >> 1) & 0x5555;
  return even | even << 1;
}
/// Every other bit of 16, in the low 8.
__device__ __forceinline__ unsigned even_of(unsigned bits) {
  bits &= 0x5555;
  bits = (bits | bits >> 1) & 0x3333;
  bits = (bits | bits >> 2) & 0x0f0f;
  return (bits | bits >> 4) & 0x00ff;
}

/// Selects for byte b of word w of a quad of C interleaved channels that byte of its pixel's value, the values being in two words.
template <typename T, int C>
__device__ constexpr unsigned value_selector(int w) {
  unsigned selector = 0;
  for (int b = 0; b < 4; ++b) {
    const int byte = 4 * w + b, pixel = byte / (C * int(sizeof(T))), at = pixel * int(sizeof(T)) + byte % int(sizeof(T));
    selector |= unsigned(at) << 4 * b;
  }
  return selector;
}

/// Masks for the samples of a row of words, from bits of the strip's pixels. A subsampled sample is set where any of its pixels is.
template <class S, class P, int N>
__device__ __forceinline__ void expand_piece(const Params& p, const unsigned (&rows)[S::rows], int row, std::uint32_t (&mask)[N]) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad;
  unsigned bits = rows[row];
  if constexpr (!P::first) {
    bits = rows[0] | rows[S::rows - 1];
    if (S::shift_x == 1) bits = P::C == 1 ? even_of(pairs_of(bits)) : pairs_of(bits);
  }
  constexpr int C = P::first ? P::C : 1;  // chroma that alternates has as many samples a row as there are pixels
#pragma unroll
  for (int q = 0; q < N / (C * W); ++q) {
    std::uint32_t values[W];
    expand_quad<T>(bits >> 4 * q, values);
    if constexpr (S::packed_422) {
      std::uint32_t chroma[W];
      expand_quad<T>(pairs_of(bits) >> 4 * q, chroma);
      const std::uint32_t even = p.luma_second ? chroma[0] : values[0], odd = p.luma_second ? values[0] : chroma[0];
      mask[2 * q] = __byte_perm(even, odd, 0x5140);
      mask[2 * q + 1] = __byte_perm(even, odd, 0x7362);
    } else {
#pragma unroll
      for (int w = 0; w < C * W; ++w)
        mask[q * C * W + w] = C == 1 ? values[w] : __byte_perm(values[0], values[W - 1], value_selector<T, C>(w));
    }
  }
}

template <typename T>
__device__ __forceinline__ std::uint32_t absolute_difference(std::uint32_t a, std::uint32_t b) {
  return sizeof(T) == 1 ? __vabsdiffu4(a, b) : __vabsdiffu2(a, b);
}
template <typename T>
__device__ __forceinline__ std::uint32_t greater(std::uint32_t a, std::uint32_t b) {
  return sizeof(T) == 1 ? __vmaxu4(a, b) : __vmaxu2(a, b);
}

/// One of a quad's channels, chosen at run time.
template <typename T, int C>
__device__ __forceinline__ int pick(const Quad<T, C>& quad, int channel, int pixel) {
  int value = 0;
#pragma unroll
  for (int c = 0; c < C; ++c)
    if (c == channel) value = quad.sample(c, pixel);
  return value;
}

/// Puts the luma of RGB in place of its channels. `already`: it is there, in red.
template <class S>
__device__ __noinline__ void to_luma(const Params& p, bool already, Strip<S>& strip) {
  using T = typename S::T;
  constexpr bool packed = S::packed_rgb;
  if constexpr (S::maybe_rgb) {
    constexpr int C = packed ? S::channels0 : 3, W = S::words_a_quad;
#pragma unroll
    for (int q = 0; q < S::quads; ++q) {
      Quad<T, C> quad;
      std::uint32_t raw[packed ? C * W : 1];
      if constexpr (packed) {
#pragma unroll
        for (int w = 0; w < C * W; ++w) raw[w] = strip.first[0][q * C * W + w];
        quad = deinterleave<T, C>(raw);
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w) {
          quad.word[0][w] = strip.first[0][q * W + w];
          quad.word[1][w] = strip.rest[0][q * W + w];
          quad.word[2][w] = strip.rest[1][q * W + w];
        }
      }
      std::uint32_t luma[W] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int red = pick(quad, p.rgb[0], j);
        const int value = already ? red : luma_of(red, pick(quad, p.rgb[1], j), pick(quad, p.rgb[2], j));
        luma[j / (4 / W)] |= std::uint32_t(value) << j % (4 / W) * 8 * W;
      }
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int w = 0; w < W; ++w) quad.word[c][w] = luma[w];
      if constexpr (packed) {
        std::uint32_t gray[C * W];
        interleave<T, C>(quad, gray);
#pragma unroll
        for (int w = 0; w < C * W; ++w) {
          const std::uint32_t mask = p.planes[0].rules[w].compared;
          strip.first[0][q * C * W + w] = (gray[w] & mask) | (raw[w] & ~mask);
        }
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w) strip.first[0][q * W + w] = strip.rest[0][q * W + w] = strip.rest[1][q * W + w] = luma[w];
      }
    }
  }
}

/// The greatest byte of each of four words.
__device__ __forceinline__ std::uint32_t greatest_of_four(const std::uint32_t (&words)[4]) {
  std::uint32_t halves[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) halves[i] = __vmaxu2(words[i] & 0xff00ffu, words[i] >> 8 & 0xff00ffu);
  const std::uint32_t low = __vmaxu2(__byte_perm(halves[0], halves[1], 0x5410), __byte_perm(halves[0], halves[1], 0x7632));
  const std::uint32_t high = __vmaxu2(__byte_perm(halves[2], halves[3], 0x5410), __byte_perm(halves[2], halves[3], 0x7632));
  return __byte_perm(low, high, 0x6420);
}

/// The greatest difference among each pixel's channels: words of one value a pixel.
template <class S>
__device__ __forceinline__ void greatest(const Params& p, const Strip<S>& d,
                                         std::uint32_t (&most)[S::rows][S::quads * S::words_a_quad]) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad, C = S::channels0;
#pragma unroll
  for (int r = 0; r < S::rows; ++r) {
#pragma unroll
    for (int q = 0; q < S::quads; ++q) {
      std::uint32_t raw[C * W];
#pragma unroll
      for (int w = 0; w < C * W; ++w) raw[w] = d.first[r][q * C * W + w];
      if constexpr (C == 4 && sizeof(T) == 1) {
        most[r][q] = greatest_of_four(raw);
        continue;
      }
      const Quad<T, C> quad = deinterleave<T, C>(raw);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        std::uint32_t value = quad.word[0][w];
        if constexpr (S::packed_422) {
          const std::uint32_t luma = p.luma_second ? quad.word[1][w] : value, chroma = p.luma_second ? value : quad.word[1][w];
          value = greater<T>(luma, greater<T>(chroma, __byte_perm(chroma, 0, 0x2301)));
        } else {
#pragma unroll
          for (int c = 1; c < C; ++c) value = greater<T>(value, quad.word[c][w]);
        }
        const int at = q * W + w;
        if constexpr (S::planes > 1 && S::shift_x == 0) {
#pragma unroll
          for (int k = 0; k < S::planes - 1; ++k) value = greater<T>(value, d.rest[k][at]);
        } else if constexpr (S::channels1 == 2 && S::planes > 1) {
          const std::uint32_t both = d.rest[0][at];
          value = greater<T>(value, greater<T>(both, __byte_perm(both, 0, sizeof(T) == 1 ? 0x2301 : 0x1032)));
        } else if constexpr (S::planes > 1) {
          const std::uint32_t both = greater<T>(d.rest[0][at / 2], d.rest[1][at / 2]);
          const int low = sizeof(T) == 1 ? 0x1100 : 0x1010, high = sizeof(T) == 1 ? 0x3322 : 0x3232;
          value = greater<T>(value, __byte_perm(both, 0, at % 2 ? high : low));
        }
        most[r][at] = value;
      }
    }
  }
}

/// Bits of a strip's pixels out of a row of bits.
template <class S>
__device__ __forceinline__ unsigned load_bits(const unsigned char* row, int x) {
  if (S::pixels == 16) return *reinterpret_cast<const std::uint16_t*>(row + x / 8);
  return S::pixels == 8 ? row[x / 8] : row[x / 8] >> (x & 4) & 15;
}
/// Every lane of the warp takes part.
template <class S>
__device__ __forceinline__ void store_bits(unsigned char* row, int x, unsigned bits) {
  if (S::pixels == 16) {
    *reinterpret_cast<std::uint16_t*>(row + x / 8) = std::uint16_t(bits);
  } else if (S::pixels == 8) {
    row[x / 8] = (unsigned char)(bits);
  } else {
    bits |= __shfl_down_sync(~0u, bits, 1) << 4;
    if (threadIdx.x % 2 == 0) row[x / 8] = (unsigned char)(bits);
  }
}

template <class S>
__device__ __forceinline__ unsigned bits_in_frame(const Params& p, int x, int y) {
  constexpr unsigned all = (1u << S::pixels) - 1;
  const int left = p.width - x;
  if (left <= 0 || y >= p.height) return 0;
  return left >= S::pixels ? all : (1u << left) - 1;
}

/// Where a block and a thread work: one warp a row of threads.
template <class S>
struct Tile {
  int x0, y0, x, y;

  __device__ __forceinline__ Tile() {
    x0 = blockIdx.x * S::tile_width;
    y0 = blockIdx.y * tile_rows;
    x = x0 + threadIdx.x % 32 * S::pixels;
    y = y0 + threadIdx.x / 32 * S::rows;
  }
};

/// The cell of a coordinate: exact, for coordinates up to 2^14 and cells up to 2^10.
__device__ __forceinline__ int cell_of(const Params& p, int at) { return int(__umulhi(unsigned(at), p.cell_reciprocal)); }

/// Counts changed pixels in shared memory: slot 0 is the sum of differences, then one slot for each part of a cell in the tile.
template <class S>
__device__ __forceinline__ void count_bits(const Params& p, const Tile<S>& tile, int y, unsigned bits, std::uint32_t* slots) {
  if (!bits) return;
  const int cell_x = cell_of(p, tile.x);
  std::uint32_t* slot = slots + 1 + (cell_of(p, y) - cell_of(p, tile.y0)) * p.slots_x + cell_x - cell_of(p, tile.x0);
#pragma unroll 1
  for (int end = (cell_x + 1) * int(p.cell_size) - tile.x;; end += int(p.cell_size), ++slot) {
    const unsigned here = end >= S::pixels ? bits : bits & ((1u << end) - 1);
    if (here) atomicAdd(slot, __popc(here));
    bits &= ~here;
    if (!bits) return;
  }
}
template <class S>
__device__ __forceinline__ void clear_slots(const Params& p, std::uint32_t* slots) {
  for (int i = threadIdx.x; i < p.slots + 2; i += S::threads) slots[i] = 0;
}
__device__ __forceinline__ std::uint32_t* record_of(const Params& p) {
  return reinterpret_cast<std::uint32_t*>(p.records + (std::size_t(blockIdx.y) * p.tiles_x + blockIdx.x) * p.record_bytes);
}
template <class S>
__device__ __forceinline__ void store_counts(const Params& p, const std::uint32_t* slots) {
  for (int i = threadIdx.x; 2 * i < p.slots; i += S::threads) record_of(p)[1 + i] = slots[1 + 2 * i] | slots[2 + 2 * i] << 16;
}

/// The last step of all that is written: channels that are copied, and the way samples are stored.
template <class S, class P, int N>
__device__ __forceinline__ void write_piece(const Params& p, int plane, int row, int x, int y, const std::uint32_t (&v)[N],
                                            std::uint32_t (&out)[N]) {
  const PlaneJob& job = p.planes[plane];
  if (y + row >= p.height) return;
  if (job.any_copied) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t mask = job.rules[i % P::period].copied;
      out[i] = (out[i] & ~mask) | (v[i] & mask);
    }
  }
  to_stored<S>(p, out);
  store_row(job.dst, job.row_bytes, job.dst_alignment, byte_of<S, P>(x), row_of<S, P>(row, y), out);
}

/// Writes the mask or the overlay.
template <class S>
__device__ __forceinline__ void write_changed(const Params& p, int x, int y, const Strip<S>& v, const unsigned (&bits)[S::rows]) {
  using T = typename S::T;
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    const auto& words = of(v);
    constexpr int N = sizeof(words) / 4;
    std::uint32_t mask[N], out[N];
    expand_piece<S, P>(p, bits, row, mask);
    if (p.show_mask) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const Rule& rule = job.rules[i % P::period];
        out[i] = rule.black ^ ((rule.black ^ rule.white) & mask[i]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const std::uint32_t tint = job.rules[i % P::period].tint;
        const std::uint32_t tinted = sizeof(T) == 1 ? __vavgu4(words[i], tint) : __vavgu2(words[i], tint);
        out[i] = (tinted & mask[i]) | (words[i] & ~mask[i]);
      }
    }
    write_piece<S, P>(p, plane, row, x, y, words, out);
  });
}

/// A word of differences with a gain, or squared. Apart, as it is long.
template <typename T>
__device__ __noinline__ std::uint32_t show_word(const Params& p, std::uint32_t v, std::uint32_t r, std::uint32_t about_middle) {
  constexpr int per_word = 4 / int(sizeof(T)), bits = 8 * int(sizeof(T));
  std::uint32_t out = 0;
  for (int j = 0; j < per_word; ++j) {
    const int value = int(T(v >> j * bits)) - int(T(r >> j * bits));
    out |= std::uint32_t(p.show(value, about_middle >> j * bits & 1)) << j * bits;
  }
  return out;
}

/// Writes the difference of v and r, whose size is d.
template <class S>
__device__ __forceinline__ void write_difference(const Params& p, int x, int y, const Strip<S>& v, const Strip<S>& r,
                                                 const Strip<S>& d) {
  using T = typename S::T;
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    const auto& words = of(v);
    const auto &from = of(r), &size = of(d);
    constexpr int N = sizeof(words) / 4;
    std::uint32_t out[N];
    if (!job.any_compared) {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = job.rules[i % P::period].black;
    } else if (p.show.plain && !job.any_about_middle) {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = size[i];
    } else if (sizeof(T) == 1 && p.show.plain) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        // About zero instead of the middle, the saturating difference of signed bytes is what is wanted.
        constexpr std::uint32_t middle = 0x80808080u;
        const std::uint32_t about = __vsubss4(words[i] ^ middle, from[i] ^ middle) ^ middle,
                            mask = job.rules[i % P::period].about_middle;
        out[i] = (about & mask) | (size[i] & ~mask);
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = show_word<T>(p, words[i], from[i], job.rules[i % P::period].about_middle);
    }
    write_piece<S, P>(p, plane, row, x, y, words, out);
  });
}

/// Takes one step of the background of a row of words, and gives what it was in sample values.
template <typename T, int N>
__device__ __forceinline__ void step_background(const Params& p, const std::uint32_t (&v)[N], std::uint32_t (&background)[2 * N],
                                                std::uint32_t (&r)[N]) {
  constexpr int per_word = 4 / int(sizeof(T)), bits = 8 * int(sizeof(T));
#pragma unroll
  for (int i = 0; i < N; ++i) {
    std::uint32_t was = 0;
#pragma unroll
    for (int j = 0; j < per_word; ++j) {
      const int value = T(v[i] >> j * bits);
      std::uint32_t& word = background[2 * i + j * int(sizeof(T)) / 2];
      const int at = sizeof(T) == 1 ? j % 2 * 16 : 0;
      const std::uint32_t mask = sizeof(T) == 1 ? 0xffffu << at : ~0u;
      const std::uint32_t before = p.begin ? std::uint32_t(value) << bits : (word & mask) >> at;
      was |= std::uint32_t(background_sample<T>(before)) << j * bits;
      word = (word & ~mask) | background_step<T>(before, value, p.rate) << at;
    }
    r[i] = was;
  }
}

}  // namespace cudavision::cuda::diff
