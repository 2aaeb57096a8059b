// SPDX-License-Identifier: LGPL-2.1-or-later
// One kernel reads the frames once: difference, threshold, what is shown, the reference for later, and counts of changed pixels a
// cell. Where the mask is opened, the first kernel leaves it as bits, and a second one opens, counts, and shows it.
//
// The frame is cut into tiles of one block each. What a tile counts goes to a record of its own in page-locked host memory, stored
// there by the kernel: no counter is shared, none must be cleared, and no copy waits behind the kernel. The host sums the records.
#include "../diff.hpp"

#include <algorithm>
#include <cstring>

#include "diff.hpp"
#include "filter.hpp"
#include "memory.hpp"
#include "pixels.cuh"

namespace cudavision {
namespace cuda::diff {
namespace {

using detail::interleave;
using detail::deinterleave;
using cudavision::detail::background_sample;
using cudavision::detail::background_step;
using cudavision::detail::DiffFill;
using cudavision::detail::DiffFrame;
using cudavision::detail::DiffPlan;
using cudavision::detail::DiffShow;
using cudavision::detail::RoleValues;

/// A block's tile is 16 rows high, and 32 threads wide: 512 pixels of one byte. Its threads each work on 16 bytes, or a few times
/// that; with 4 rows a thread the time at 8K was 10 to 20 % more: code that is unrolled so far does not stay in the caches.
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
  View src, reference, keep, dst, background;  ///< background: words of twice the sample's size
  int row_bytes = 0, reference_bytes = 0;      ///< that may be touched
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
  bool show_mask = false;       ///< what changed is shown as a mask, not as an overlay
  bool luma_second = false;     ///< packed 4:2:2 begins with chroma
  std::uint8_t shift = 0;       ///< unused low bits of stored words
  std::uint8_t open_radius = 0;
  std::uint32_t cell_size = 16, cell_reciprocal = 0;  ///< see cell_of
  int slots_x = 0, slots = 0;
  int tiles_x = 1, record_bytes = 0;
  unsigned char* records = nullptr;  ///< one a tile: the sum of differences, then counts of 16 bits, slots_x a row of cells
  const unsigned char* counted = nullptr;     ///< bits; null: all
  const unsigned char* foreground = nullptr;  ///< bits that say what changed, instead of the threshold
  unsigned char* changed = nullptr;           ///< bits for the opening
  std::ptrdiff_t bits_pitch = 0;
  PlaneJob planes[3];
  int rate = 0;
  DiffShow show;
  int rgb[3] = {};              ///< channels of plane 0, or planes, of red, green and blue
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
    f(Piece<S::channels0, true, S::channels0 * S::words_a_quad>{}, 0, r, [r](auto& strip) -> auto& { return strip.first[r]; });
#pragma unroll
  for (int k = 1; k < S::planes; ++k)
    f(Piece<S::channels1, false, S::channels1 * S::words_a_quad>{}, k, 0, [k](auto& strip) -> auto& { return strip.rest[k - 1]; });
}

// Words at the end of a row, or of planes that are badly aligned. Apart, and not unrolled, as they are rare.
__device__ __noinline__ void load_some(const unsigned char* from, int bytes, int alignment, std::uint32_t* words) {
  int i = 0;
  if (alignment >= 4) {
#pragma unroll 1
    for (; i + 4 <= bytes; i += 4) words[i / 4] = *reinterpret_cast<const std::uint32_t*>(from + i);
  }
#pragma unroll 1
  for (; i < bytes; ++i) words[i / 4] |= std::uint32_t(from[i]) << i % 4 * 8;
}
__device__ __noinline__ void store_some(unsigned char* to, int bytes, int alignment, const std::uint32_t* words) {
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
__device__ __forceinline__ void load_row(const View& view, int row_bytes, int alignment, int byte, int row, std::uint32_t (&words)[N]) {
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
__device__ __forceinline__ void store_row(const View& view, int row_bytes, int alignment, int byte, int row, const std::uint32_t (&words)[N]) {
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
  if constexpr (sizeof(typename S::T) == 2) {
    const std::uint32_t mask = (0xffffu >> p.shift) * 0x10001u;
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] = words[i] >> p.shift & mask;
  }
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
__device__ __forceinline__ void greatest(const Params& p, const Strip<S>& d, std::uint32_t (&most)[S::rows][S::quads * S::words_a_quad]) {
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
__device__ __forceinline__ void write_difference(const Params& p, int x, int y, const Strip<S>& v, const Strip<S>& r, const Strip<S>& d) {
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
        const std::uint32_t about = __vsubss4(words[i] ^ middle, from[i] ^ middle) ^ middle, mask = job.rules[i % P::period].about_middle;
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

template <class S, bool background, Writes writes>
__global__ void __launch_bounds__(S::threads) compare(const __grid_constant__ Params p) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad;
  constexpr unsigned all = (1u << S::pixels) - 1;
  __shared__ std::uint32_t slots[max_slots + 2];
  const Tile<S> tile;
  const int x = tile.x, y = tile.y;
  const bool across = x < p.width;

  Strip<S> v, r;
  Strip<S, background ? 2 : 1> state;
  load_source<S>(p, x, y, v);
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    const bool inside = across && y + row < p.height;
    if constexpr (background) {
      if (job.background.data && inside) load_own(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
    } else {
      if (job.reference.data && inside)
        load_row<false>(job.reference, job.reference_bytes, job.reference_alignment, byte_of<S, P>(x), row_of<S, P>(row, y), of(r));
    }
  });
  clear_slots<S>(p, slots);
  unsigned counted[S::rows];
  bool partly = false;
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    counted[row] = bits_in_frame<S>(p, x, y + row);
    if (p.counted && counted[row]) counted[row] &= load_bits<S>(p.counted + (y + row) * p.bits_pitch, x);
    partly = partly || counted[row] != all;
  }
  __syncthreads();

  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    auto &words = of(v), &from = of(r);
    constexpr int N = sizeof(words) / 4;
    const bool inside = across && y + row < p.height;
    if (job.keep.data && inside) store_own(job.keep, byte_of<S, P>(x), row_of<S, P>(row, y), words);
    to_values<S>(p, words);
    if constexpr (background) {
      if (job.background.data) {
        step_background<T>(p, words, of(state), from);
        if (inside) store_own(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
      }
    } else {
      to_values<S>(p, from);
    }
    const bool compared = job.any_compared && (background || job.reference.data);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t mask = compared ? job.rules[i % P::period].compared : 0;
      from[i] = (from[i] & mask) | (words[i] & ~mask);
    }
  });
  Strip<S> d;
  const auto set_difference = [&](const Strip<S>& frame) {
    each_piece<S>([&](auto, int, int, auto of) {
      auto& size = of(d);
      constexpr int N = sizeof(size) / 4;
#pragma unroll
      for (int i = 0; i < N; ++i) size[i] = absolute_difference<T>(of(frame)[i], of(r)[i]);
    });
  };
  if (S::maybe_rgb && p.luma_of_rgb) {
    Strip<S> luma = v, reference = r;
    to_luma<S>(p, false, luma);
    to_luma<S>(p, p.reference_is_luma && p.planes[0].reference.data, reference);
    r = reference;
    set_difference(luma);
    if (writes == Writes::difference) v = luma;  // the overlay needs the picture itself
  } else {
    set_difference(v);
  }
  if (partly) {  // equal, where not counted
    each_piece<S>([&](auto piece, int, int row, auto of) {
      using P = decltype(piece);
      auto &words = of(v), &from = of(r), &size = of(d);
      constexpr int N = sizeof(words) / 4;
      std::uint32_t mask[N];
      expand_piece<S, P>(p, counted, row, mask);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        from[i] = (from[i] & mask[i]) | (words[i] & ~mask[i]);
        size[i] &= mask[i];
      }
    });
  }

  std::uint32_t most[S::rows][S::quads * W], sum = 0;
  greatest<S>(p, d, most);
  unsigned changed[S::rows];
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    unsigned bits = 0;
    if (partly) {
#pragma unroll
      for (int q = 0; q < S::quads; ++q) {
        std::uint32_t mask[W];
        expand_quad<T>(counted[row] >> 4 * q, mask);
#pragma unroll
        for (int w = 0; w < W; ++w) most[row][q * W + w] &= mask[w];
      }
    }
#pragma unroll
    for (int q = 0; q < S::quads; ++q) {
      if constexpr (sizeof(T) == 1) {
        const std::uint32_t word = most[row][q];
        sum = __dp4a(word, 0x01010101u, sum);
        bits |= __dp4a(__vsetgtu4(word, p.threshold), 0x08040201u, 0u) << 4 * q;
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w) {
          const std::uint32_t word = most[row][q * W + w], low = word & 0xffff, high = word >> 16;
          sum += low + high;
          bits |= (unsigned(low > (p.threshold & 0xffff)) | unsigned(high > (p.threshold & 0xffff)) << 1) << (4 * q + 2 * w);
        }
      }
    }
    if (p.foreground && counted[row]) bits = load_bits<S>(p.foreground + (y + row) * p.bits_pitch, x) & counted[row];
    changed[row] = bits;
    if (p.changed && y + row < p.height) store_bits<S>(p.changed + (y + row) * p.bits_pitch, x, bits);
    if (p.count) count_bits<S>(p, tile, y + row, bits, slots);
  }
  if (across) {
    if constexpr (writes == Writes::difference) write_difference<S>(p, x, y, v, r, d);
    if constexpr (writes == Writes::changed) write_changed<S>(p, x, y, v, changed);
  }

#if __CUDA_ARCH__ >= 800
  sum = __reduce_add_sync(~0u, sum);
#else
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
#endif
  if (threadIdx.x % 32 == 0 && sum) atomicAdd(&slots[0], sum);
  __syncthreads();
  if (p.count) store_counts<S>(p, slots);
  if (threadIdx.x == 0) *record_of(p) = slots[0];
}

/// Opens the mask that compare() left as bits; counts, and shows it.
template <class S, Writes writes>
__global__ void __launch_bounds__(S::threads) open_mask(const __grid_constant__ Params p) {
  constexpr int pitch = S::tile_width / 32 + 2;  // words: one beyond each side, as twice the radius is at most 32
  constexpr int most_rows = tile_rows + 4 * diff_max_open_radius, at_once = S::threads / pitch;  // rows
  __shared__ std::uint32_t a[most_rows * pitch], b[most_rows * pitch];
  __shared__ std::uint32_t slots[max_slots + 2];
  const Tile<S> tile;
  const int radius = p.open_radius, rows = tile_rows + 4 * radius, top = tile.y0 - 2 * radius;
  clear_slots<S>(p, slots);

  // A thread stays in one column of words.
  const int row0 = threadIdx.x / pitch, column = threadIdx.x % pitch, word_x = tile.x0 + (column - 1) * 32, left = p.width - word_x;
  const std::uint32_t in_frame = word_x < 0 || left <= 0 ? 0 : left >= 32 ? ~0u : (1u << left) - 1;
  const auto each_row = [&](int first, int last, auto work) {
    if (row0 < at_once)
      for (int row = first + row0; row < last; row += at_once) work(row, row * pitch + column);
    __syncthreads();
  };
  // Nothing erodes from beyond the frame, and nothing dilates from there.
  each_row(0, rows, [&](int row, int at) {
    const int y = top + row;
    a[at] = in_frame && y >= 0 && y < p.height
                ? *reinterpret_cast<const std::uint32_t*>(p.changed + y * p.bits_pitch + word_x / 8) | ~in_frame
                : ~0u;
  });
  const bool before_first = column == 0, after_last = column == pitch - 1;
  each_row(0, rows, [&](int, int at) {
    const std::uint32_t word = a[at], before = before_first ? ~0u : a[at - 1], after = after_last ? ~0u : a[at + 1];
    std::uint32_t kept = word;
    for (int s = 1; s <= radius; ++s) kept &= __funnelshift_l(before, word, s) & __funnelshift_r(word, after, s);
    b[at] = kept;
  });
  each_row(radius, rows - radius, [&](int row, int at) {
    std::uint32_t kept = unsigned(top + row) < unsigned(p.height) ? in_frame : 0;
    for (int s = -radius; s <= radius; ++s) kept &= b[at + s * pitch];
    a[at] = kept;
  });
  each_row(radius, rows - radius, [&](int, int at) {
    const std::uint32_t word = a[at], before = before_first ? 0 : a[at - 1], after = after_last ? 0 : a[at + 1];
    std::uint32_t grown = word;
    for (int s = 1; s <= radius; ++s) grown |= __funnelshift_l(before, word, s) | __funnelshift_r(word, after, s);
    b[at] = grown;
  });
  each_row(2 * radius, rows - 2 * radius, [&](int, int at) {
    std::uint32_t grown = 0;
    for (int s = -radius; s <= radius; ++s) grown |= b[at + s * pitch];
    a[at] = grown;
  });

  const int bit = tile.x - tile.x0;
  unsigned changed[S::rows];
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    const int y = tile.y + row;
    changed[row] = a[(y - top) * pitch + 1 + bit / 32] >> bit % 32 & bits_in_frame<S>(p, tile.x, y);
    count_bits<S>(p, tile, y, changed[row], slots);
  }
  if constexpr (writes == Writes::changed) {
    if (tile.x < p.width) {
      Strip<S> v{};
      if (!p.show_mask || p.planes[0].any_copied) {
        load_source<S>(p, tile.x, tile.y, v);
        each_piece<S>([&](auto, int, int, auto of) { to_values<S>(p, of(v)); });
      }
      write_changed<S>(p, tile.x, tile.y, v, changed);
    }
  }
  __syncthreads();
  store_counts<S>(p, slots);
}

/// The kernels of a plan, and the tiles they cut a frame into.
struct Kernels {
  const void* compare = nullptr;  ///< takes Params, as does `open`
  const void* open = nullptr;     ///< null: the mask is not opened
  int tile_width = 0, threads = 0;
};
template <class S, bool background>
const void* compare_of(Writes writes) {
  if (writes == Writes::nothing) return reinterpret_cast<const void*>(compare<S, background, Writes::nothing>);
  if (writes == Writes::difference) return reinterpret_cast<const void*>(compare<S, background, Writes::difference>);
  return reinterpret_cast<const void*>(compare<S, background, Writes::changed>);
}
template <class S>
Kernels kernels_of(const DiffParams& params) {
  const bool shows_changed = params.output == DiffOutput::mask || params.output == DiffOutput::overlay, opens = params.open_radius > 0;
  const Writes writes = params.output == DiffOutput::difference ? Writes::difference : shows_changed && !opens ? Writes::changed : Writes::nothing;
  Kernels kernels;
  kernels.compare = params.reference == DiffReference::background ? compare_of<S, true>(writes) : compare_of<S, false>(writes);
  if (opens) {
    kernels.open = shows_changed ? reinterpret_cast<const void*>(open_mask<S, Writes::changed>)
                                 : reinterpret_cast<const void*>(open_mask<S, Writes::nothing>);
  }
  kernels.tile_width = S::tile_width;
  kernels.threads = S::threads;
  return kernels;
}
template <typename T>
Kernels choose(const FormatInfo& format, const DiffParams& params) {
  const ChannelSet &first = format.sets[0], &rest = format.sets[1];
  if (first.channels == 4) return kernels_of<Shape<T, 4, 1, 1, 0, 0>>(params);
  if constexpr (sizeof(T) == 1) {
    if (first.channels == 3) return kernels_of<Shape<T, 3, 1, 1, 0, 0>>(params);
    if (first.channels == 2) return kernels_of<Shape<T, 2, 1, 1, 0, 0>>(params);
  }
  if (format.set_count == 1) return kernels_of<Shape<T, 1, 1, 1, 0, 0>>(params);
  if (format.set_count == 2) return kernels_of<Shape<T, 1, 2, 2, 1, 1>>(params);
  if (rest.shift_x == 0) return kernels_of<Shape<T, 1, 1, 3, 0, 0>>(params);
  return rest.shift_y == 0 ? kernels_of<Shape<T, 1, 1, 3, 1, 0>>(params) : kernels_of<Shape<T, 1, 1, 3, 1, 1>>(params);
}

/// Rectangles of one colour.
struct Fill {
  unsigned char* data;
  std::ptrdiff_t pitch;
  int width, rows, channels;
  std::uint16_t words[4];  ///< as stored
  std::uint8_t own;        ///< bit c: channel c is written
};
struct Fills {
  Fill fills[64];
};

template <typename T>
__global__ void fill_rects(const __grid_constant__ Fills fills) {
  const Fill& fill = fills.fills[blockIdx.x];
  for (int at = threadIdx.x; at < fill.width * fill.rows; at += blockDim.x) {
    const int y = at / fill.width, x = at - y * fill.width;
    T* const pixel = reinterpret_cast<T*>(fill.data + y * fill.pitch) + std::ptrdiff_t(x) * fill.channels;
    for (int c = 0; c < fill.channels; ++c)
      if (fill.own >> c & 1) pixel[c] = T(fill.words[c]);
  }
}

/// Bytes of a row of a plane that belong to the picture.
int picture_row_bytes(const Geometry& geometry, int plane) {
  const FormatInfo& format = info(geometry.format);
  int bytes = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (set.plane != plane) continue;
    int last = set.channels;
    while (set.roles[last - 1] == Role::other) --last;
    bytes = std::max(bytes, ((geometry.grid(set).width - 1) * set.channels + last) * format.sample_bytes());
  }
  return bytes;
}

View view_of(const Plane& plane) {
  return {static_cast<unsigned char*>(plane.data), plane.pitch};
}
std::uint8_t alignment_of(const Plane& plane) {
  int alignment = 16;
  while (!aligned_to(plane.data, plane.pitch, alignment)) alignment /= 2;
  return std::uint8_t(alignment);
}

class CudaDiff final : public Diff {
 public:
  explicit CudaDiff(DiffPlan plan)
      : Diff(std::move(plan)),
        kernels_(info(geometry().format).sample_bytes() == 1 ? choose<std::uint8_t>(info(geometry().format), this->plan().params)
                                                             : choose<std::uint16_t>(info(geometry().format), this->plan().params)) {}

  /// With the context current.
  Status prepare() {
    const FormatInfo& format = info(geometry().format);
    const DiffParams& params = this->plan().params;
    const std::size_t bits_bytes = plan().mask_pitch() * geometry().height;
    const bool background = params.reference == DiffReference::background, mog2 = params.reference == DiffReference::mog2;
    const auto layout = cudavision::detail::frame_layout(plan());

    // One block of memory: the ring or the background, bits, the mixture.
    std::size_t total = 0;
    const auto take = [&](std::size_t bytes) { return std::exchange(total, total + (bytes + 255) / 256 * 256); };
    const int frames = params.borrow && !mog2 ? 0 : cudavision::detail::ring_size(params);
    std::vector<std::size_t> ring;
    for (int i = 0; i < frames; ++i) ring.push_back(take(layout.bytes));
    const std::size_t model = background ? take(2 * layout.bytes) : 0;
    const std::size_t counted = plan().counted_bits.empty() ? 0 : take(bits_bytes);
    const std::size_t changed = params.open_radius > 0 ? take(bits_bytes) : 0;
    const std::size_t foreground = mog2 ? take(bits_bytes) : 0;
    const int channels = cudavision::detail::mixture_channels(plan());
    const std::size_t mixture = mog2 ? take(cudavision::detail::mog2::state_bytes(geometry().width, geometry().height, channels)) : 0;
    if (Status status = memory_.allocate(total); !status.ok()) return status;
    const auto at = [&](std::size_t offset) { return memory_.data() + offset; };

    ring_.resize(std::size_t(cudavision::detail::ring_size(params)));
    for (int i = 0; i < frames; ++i) ring_[i] = layout.at(geometry(), at(ring[i]));
    if (background) {
      for (int plane = 0; plane < 3; ++plane) {
        if (layout.pitch[plane] > 0)
          params_.planes[plane].background = {at(model) + 2 * layout.offset[plane], 2 * layout.pitch[plane]};
        }
    }
    if (!plan().counted_bits.empty()) {
      params_.counted = at(counted);
      if (Status status = check(cudaMemcpy(at(counted), plan().counted_bits.data(), bits_bytes, cudaMemcpyHostToDevice),
                                "cannot upload the masked regions");
          !status.ok())
        return status;
    }
    if (params.open_radius > 0) params_.changed = at(changed);
    if (mog2) {
      foreground_ = at(foreground);
      mixture_ = at(mixture);
    }

    set_params();
    tiles_y_ = (geometry().height + tile_rows - 1) / tile_rows;
    if (Status status = records_.allocate(frame_records() * params.in_flight); !status.ok()) return status;

    // Asking loads the code now: a launch must not.
    const void* const fill = format.sample_bytes() == 1 ? reinterpret_cast<const void*>(fill_rects<std::uint8_t>)
                                                        : reinterpret_cast<const void*>(fill_rects<std::uint16_t>);
    for (const void* kernel : {kernels_.compare, kernels_.open, fill}) {
      if (!kernel) continue;
      cudaFuncAttributes attributes;
      if (Status status = check(cudaFuncGetAttributes(&attributes, kernel), "cannot load the difference kernel"); !status.ok()) return status;
    }
    return mog2 ? load_mog2(format.sample_bytes(), channels) : Status();
  }

 private:
  void set_params() {
    const FormatInfo& format = info(geometry().format);
    const DiffParams& params = plan().params;
    Params& p = params_;
    p.width = geometry().width;
    p.height = geometry().height;
    p.tiles_x = (p.width + kernels_.tile_width - 1) / kernels_.tile_width;
    p.shift = format.shift;
    p.threshold = std::uint32_t(plan().threshold) * (format.sample_bytes() == 1 ? 0x1010101u : 0x10001u);
    p.show = plan().show;
    p.show_mask = params.output == DiffOutput::mask;
    p.rate = plan().rate;
    p.luma_of_rgb = plan().luma_of_rgb();
    p.reference_is_luma = p.luma_of_rgb && params.reference == DiffReference::mog2;
    p.luma_second = format.sets[0].roles[0] == Role::other;
    p.bits_pitch = std::ptrdiff_t(plan().mask_pitch());
    p.open_radius = std::uint8_t(params.open_radius);
    p.cell_size = std::uint32_t(params.cell_size);
    p.cell_reciprocal = std::uint32_t(((1ull << 32) + p.cell_size - 1) / p.cell_size);
    p.slots_x = slots(kernels_.tile_width);
    p.slots = p.slots_x * slots(tile_rows);
    p.record_bytes = (4 + 2 * p.slots + 31) / 32 * 32;
    set_rules(format);
  }

  /// Most cells that so many neighbouring pixels of a tile lie in.
  int slots(int pixels) const {
    const int cell = plan().params.cell_size;
    return pixels % cell == 0 ? pixels / cell : (pixels + cell - 2) / cell + 1;
  }

  void set_rules(const FormatInfo& format) {
    const RoleValues white = cudavision::detail::white_values(format), black = cudavision::detail::black_values(format),
                     tint = cudavision::detail::tint_values(format);
    const int bits = 8 * format.sample_bytes();
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      PlaneJob& job = params_.planes[set.plane];
      job.row_bytes = picture_row_bytes(geometry(), set.plane);
      for (int c = 0; c < set.channels; ++c) {
        const Role role = set.roles[c];
        if (role == Role::other) continue;
        if (role == Role::red) params_.rgb[0] = format.set_count == 1 ? c : i;
        if (role == Role::green) params_.rgb[1] = format.set_count == 1 ? c : i;
        if (role == Role::blue) params_.rgb[2] = format.set_count == 1 ? c : i;
        const bool copied = role == Role::alpha || role == Role::padding, compared = plan().compares(role);
        const bool about = !copied && (is_chroma(role) || plan().show.mode == DiffMode::signed_);
        job.any_copied |= copied;
        job.any_compared |= compared;
        job.any_about_middle |= about;
        for (int j = 0; j * set.channels < 16; ++j) {
          const int at = (j * set.channels + c) * bits;
          if (at >= 8 * 32) break;
          Rule& rule = job.rules[at / 32];
          const auto put = [&](std::uint32_t& word, unsigned value) { word |= std::uint32_t(value) << at % 32; };
          const unsigned all = (1u << bits) - 1;
          put(rule.copied, copied ? all : 0);
          put(rule.compared, compared ? all : 0);
          put(rule.about_middle, about ? all : 0);
          put(rule.white, white[std::size_t(role)]);
          put(rule.black, black[std::size_t(role)]);
          put(rule.tint, tint[std::size_t(role)]);
        }
      }
    }
  }

  Status compute(const DiffFrame& frame, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    const DiffParams& params = plan().params;
    Params p = params_;
    p.begin = !frame.compared;
    p.records = records_.data() + frame_records() * std::size_t(frame.slot);
    for (int plane = 0; plane < format.planes; ++plane) {
      PlaneJob& job = p.planes[plane];
      const Plane &src = frame.src.planes[plane], &dst = frame.dst.planes[plane], &reference = frame.reference.planes[plane];
      if (job.any_compared || job.any_copied || params.output == DiffOutput::overlay) {
        job.src = view_of(src);
        job.src_alignment = alignment_of(src);
      }
      if (params.output != DiffOutput::none) {
        job.dst = view_of(dst);
        job.dst_alignment = alignment_of(dst);
      }
      if (frame.compared && job.any_compared && reference.data) {
        const bool own = !params.borrow || params.reference == DiffReference::mog2;
        job.reference = view_of(reference);
        job.reference_alignment = alignment_of(reference);
        job.reference_bytes = own ? int(reference.pitch) : job.row_bytes;
      }
      job.keep = view_of(frame.keep.planes[plane]);
    }

    if (params.reference == DiffReference::mog2) {
      auto job = cudavision::detail::mixture_job(plan(), frame);
      cudavision::detail::mog2::set_state(job, mixture_);
      Status status = launch_mog2(job, format.sample_bytes(), cudavision::detail::mixture_channels(plan()), foreground_, int(p.bits_pitch), queue.stream);
      if (!status.ok()) return status;
      if (frame.compared) p.foreground = foreground_;
    }
    p.count = !kernels_.open;
    Status status = launch(kernels_.compare, p, queue);
    return kernels_.open && status.ok() ? launch(kernels_.open, p, queue) : status;
  }

  Status launch(const void* kernel, Params& p, Queue queue) const {
    void* arguments[] = {&p};
    return check(cudaLaunchKernel(kernel, dim3(unsigned(p.tiles_x), unsigned(tiles_y_)), dim3(unsigned(kernels_.threads)), arguments, 0, queue.stream),
                 "cannot launch the difference");
  }

  std::size_t frame_records() const { return std::size_t(params_.tiles_x) * tiles_y_ * params_.record_bytes; }

  std::uint64_t collect(int slot, std::vector<std::uint32_t>& changed) const override {
    const Params& p = params_;
    const unsigned char* record = records_.data() + frame_records() * std::size_t(slot);
    const CellGrid& cells = plan().cells;
    std::uint64_t sum = 0;
    const int cell = plan().params.cell_size;
    for (int tile = 0; tile < p.tiles_x * tiles_y_; ++tile, record += p.record_bytes) {
      std::uint32_t of_tile;
      std::memcpy(&of_tile, record, sizeof of_tile);
      sum += of_tile;
      const auto* counts = reinterpret_cast<const std::uint16_t*>(record + 4);
      const int first_x = tile % p.tiles_x * kernels_.tile_width / cell, first_y = tile / p.tiles_x * tile_rows / cell;
      const int across = std::min(p.slots_x, cells.width - first_x), down = std::min(p.slots / p.slots_x, cells.height - first_y);
      for (int y = 0; y < down; ++y) {
        std::uint32_t* const row = &changed[std::size_t(first_y + y) * cells.width + first_x];
        for (int x = 0; x < across; ++x) row[x] += counts[y * p.slots_x + x];
      }
    }
    return sum;
  }

  Status fill(const Image& dst, const std::vector<DiffFill>& fills, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    const RoleValues values = cudavision::detail::box_values(format);
    constexpr std::size_t at_once = std::size(Fills{}.fills);
    for (std::size_t begin = 0; begin < fills.size(); begin += at_once) {
      Fills job{};
      const int count = int(std::min(at_once, fills.size() - begin));
      for (int i = 0; i < count; ++i) {
        const DiffFill& from = fills[begin + i];
        const ChannelSet& set = format.sets[from.set];
        const Plane& plane = dst.planes[set.plane];
        Fill& to = job.fills[i];
        to.data = static_cast<unsigned char*>(plane.data) + from.rect.y * plane.pitch +
                  std::ptrdiff_t(from.rect.x) * set.channels * format.sample_bytes();
        to.pitch = plane.pitch;
        to.width = from.rect.width;
        to.rows = from.rect.height;
        to.channels = set.channels;
        for (int c = 0; c < set.channels; ++c) {
          if (set.roles[c] == Role::other) continue;
          to.own |= 1 << c;
          to.words[c] = std::uint16_t(values[std::size_t(set.roles[c])] << format.shift);
        }
      }
      if (format.sample_bytes() == 1)
        fill_rects<std::uint8_t><<<count, 256, 0, queue.stream>>>(job);
      else
        fill_rects<std::uint16_t><<<count, 256, 0, queue.stream>>>(job);
      if (Status status = check(cudaGetLastError(), "cannot launch the drawing of boxes"); !status.ok()) return status;
    }
    return {};
  }

  const Kernels kernels_;
  DeviceMemory memory_;
  HostMemory records_;
  Params params_;
  int tiles_y_ = 0;
  unsigned char *foreground_ = nullptr, *mixture_ = nullptr;
};

}  // namespace
}  // namespace cuda::diff

namespace detail {

Result<std::unique_ptr<Diff>> make_diff_cuda(DiffPlan plan) {
  auto made = std::make_unique<cuda::diff::CudaDiff>(std::move(plan));
  if (Status status = made->prepare(); !status.ok()) return status;
  return std::unique_ptr<Diff>(std::move(made));
}

}  // namespace detail
}  // namespace cudavision
