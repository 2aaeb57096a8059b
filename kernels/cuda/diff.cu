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

/// Warps of a block, one row (of 4:2:0: two) each at a time. With 4, 8 and 16 rows a tile the time at 8K was the same within 3 %.
constexpr int warps = 4, threads = 32 * warps;
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
  static constexpr int rows = 1 + SY;  ///< of plane 0, for one of the others
  /// Pixels of a row a thread works on: 16 bytes of one channel.
  static constexpr int pixels = (C0 == 4 ? 4 : C0 == 2 ? 8 : 16 / int(sizeof(T)));
  static constexpr int quads = pixels / 4;
  static constexpr int quad_words0 = C0 * int(sizeof(T));
  static constexpr int words0 = pixels * C0 * int(sizeof(T)) / 4;
  static constexpr int words1 = (pixels >> SX) * C1 * int(sizeof(T)) / 4;
  static constexpr int words_a_quad = int(sizeof(T));  ///< of one value a pixel
  static constexpr int tile_width = 32 * pixels;
};

/// Alignment for the widest access to so many words.
constexpr int words_alignment(int words) { return words % 4 == 0 ? 16 : words % 2 == 0 ? 8 : 4; }

struct PlaneView {
  unsigned char* data = nullptr;
  std::ptrdiff_t pitch = 0;
  int row_bytes = 0;  ///< that may be touched
  int alignment = 1;  ///< of every row, up to 16
};

/// Words of a plane, as many as a quad of it has, in sample values: they repeat along the row. Masks are all ones or zero a sample.
struct PlaneRule {
  std::uint32_t compared[8] = {}, about_middle[8] = {}, copied[8] = {};
  std::uint32_t white[8] = {}, black[8] = {}, tint[8] = {};
  bool any_compared = false, any_about_middle = false, any_copied = false;
};

struct Params {
  PlaneView src[3], reference[3], keep[3], dst[3];
  PlaneView background[3];  ///< words of twice the sample's size
  PlaneRule rules[3];
  int width = 0, height = 0;
  int tiles_x = 1;
  int shift = 0;                     ///< unused low bits of stored words
  std::uint32_t threshold = 0;
  DiffShow show;
  bool show_signed = false;
  DiffOutput output = DiffOutput::none;  ///< what this kernel writes
  bool count = true;                     ///< this kernel counts changed pixels
  int rate = 0;
  bool begin = false;                    ///< of a background
  bool luma_of_rgb = false, reference_is_luma = false;
  int rgb[3] = {};                       ///< channels of plane 0, or planes, of red, green and blue
  bool luma_second = false;              ///< packed 4:2:2 begins with chroma
  const unsigned char* counted = nullptr;     ///< bits; null: all
  const unsigned char* foreground = nullptr;  ///< bits that say what changed, instead of the threshold
  unsigned char* changed = nullptr;           ///< bits for the opening
  int bits_pitch = 0;
  int open_radius = 0;
  int cell_size = 16, slots_x = 0, slots = 0;
  unsigned char* records = nullptr;  ///< one a tile: the sum of differences, then counts of 16 bits, slots_x a row of cells
  int record_bytes = 0;
};

/// The words of a thread's pixels: rows of plane 0, and one row of each other plane.
template <class S>
struct Strip {
  std::uint32_t first[S::rows][S::words0];
  std::uint32_t rest[S::planes > 1 ? S::planes - 1 : 1][S::words1];
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

// The ways by single bytes are rare, and must not unroll.
__device__ __noinline__ void load_bytes(const unsigned char* from, int bytes, std::uint32_t* words) {
#pragma unroll 1
  for (int i = 0; i < bytes; ++i) words[i / 4] |= std::uint32_t(from[i]) << i % 4 * 8;
}
__device__ __noinline__ void store_bytes(unsigned char* to, int bytes, const std::uint32_t* words) {
#pragma unroll 1
  for (int i = 0; i < bytes; ++i) to[i] = (unsigned char)(words[i / 4] >> i % 4 * 8);
}

/// Loads the part of the words that lies in the row; the rest is zero.
template <bool constant, int N>
__device__ __forceinline__ void load_row(const PlaneView& view, int byte, int row, std::uint32_t (&words)[N]) {
  const unsigned char* const at = view.data + row * view.pitch + byte;
  const bool whole = byte + 4 * N <= view.row_bytes;
  if (whole && view.alignment >= words_alignment(N)) {
    detail::load_words<N, words_alignment(N), constant>(at, words);
  } else if (words_alignment(N) > 4 && whole && view.alignment >= 4) {
    detail::load_words<N, 4, constant>(at, words);
  } else {
    std::uint32_t some[N] = {};
    if (byte < view.row_bytes) load_bytes(at, min(4 * N, view.row_bytes - byte), some);
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] = some[i];
  }
}

template <int N>
__device__ __forceinline__ void store_row(const PlaneView& view, int byte, int row, const std::uint32_t (&words)[N]) {
  unsigned char* const at = view.data + row * view.pitch + byte;
  const bool whole = byte + 4 * N <= view.row_bytes;
  if (whole && view.alignment >= words_alignment(N)) {
    detail::store_words<N, words_alignment(N)>(at, words);
  } else if (words_alignment(N) > 4 && whole && view.alignment >= 4) {
    detail::store_words<N, 4>(at, words);
  } else if (byte < view.row_bytes) {
    std::uint32_t some[N];
#pragma unroll
    for (int i = 0; i < N; ++i) some[i] = words[i];
    store_bytes(at, min(4 * N, view.row_bytes - byte), some);
  }
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

template <class S, bool constant>
__device__ __forceinline__ void load_strip(const Params& p, const PlaneView* views, int x, int y, Strip<S>& strip) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    auto& words = of(strip);
    if (views[plane].data && y + row < p.height) {
      load_row<constant>(views[plane], byte_of<S, P>(x), row_of<S, P>(row, y), words);
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

/// Masks for the samples of a row of words, from bits of the strip's pixels. A subsampled sample is set where any of its pixels is.
template <class S, class P, int N>
__device__ __forceinline__ void expand_piece(const Params& p, const unsigned (&rows)[S::rows], int row, std::uint32_t (&mask)[N]) {
  using T = typename S::T;
  unsigned bits = rows[row];
  if constexpr (!P::first) {
    bits = rows[0] | rows[S::rows - 1];
    if (S::shift_x == 1) bits = P::C == 1 ? even_of(pairs_of(bits)) : pairs_of(bits);
  }
  const unsigned pairs = S::packed_422 ? pairs_of(bits) : 0;
  constexpr int across = P::first ? P::C : 1;  // chroma that alternates has as many samples a row as there are pixels
#pragma unroll
  for (int q = 0; q < N / (across * S::words_a_quad); ++q) {
    Quad<T, across> quad;
#pragma unroll
    for (int c = 0; c < across; ++c) {
      const bool chroma = S::packed_422 && (c == 1) != p.luma_second;
      expand_quad<T>((chroma ? pairs : bits) >> 4 * q, quad.word[c]);
    }
    std::uint32_t raw[across * S::words_a_quad];
    interleave<T, across>(quad, raw);
#pragma unroll
    for (int w = 0; w < across * S::words_a_quad; ++w) mask[q * across * S::words_a_quad + w] = raw[w];
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
__device__ __forceinline__ void to_luma(const Params& p, bool already, Strip<S>& strip) {
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
          const std::uint32_t mask = p.rules[0].compared[w];
          strip.first[0][q * C * W + w] = (gray[w] & mask) | (raw[w] & ~mask);
        }
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w) strip.first[0][q * W + w] = strip.rest[0][q * W + w] = strip.rest[1][q * W + w] = luma[w];
      }
    }
  }
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

/// Where a block works.
template <class S>
struct Tile {
  int index, x0, y0, x, lane, warp;

  __device__ __forceinline__ explicit Tile(const Params& p) {
    index = blockIdx.x;
    const int tile_y = index / p.tiles_x;
    x0 = (index - tile_y * p.tiles_x) * S::tile_width;
    y0 = tile_y * tile_rows;
    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    x = x0 + lane * S::pixels;
  }
  /// Groups of S::rows rows a warp works on, and the first row of each.
  static constexpr int groups = tile_rows / (warps * S::rows);
  __device__ __forceinline__ int row(int group) const { return y0 + (group * warps + warp) * S::rows; }
};

/// Counts of changed pixels: one slot for each part of a cell that lies in the tile.
template <class S>
struct Counter {
  int cell_x, first_y, first_slot;

  __device__ __forceinline__ Counter(const Params& p, const Tile<S>& tile) {
    cell_x = tile.x / p.cell_size;
    first_y = tile.y0 / p.cell_size;
    first_slot = cell_x - tile.x0 / p.cell_size;
  }
  __device__ __forceinline__ void add(const Params& p, const Tile<S>& tile, int y, unsigned bits, std::uint32_t* slots) const {
    std::uint32_t* slot = slots + (y / p.cell_size - first_y) * p.slots_x + first_slot;
    for (int end = (cell_x + 1) * p.cell_size - tile.x; bits; end += p.cell_size, ++slot) {
      const unsigned here = end >= S::pixels ? bits : bits & ((1u << end) - 1);
      if (here) atomicAdd(slot, __popc(here));
      bits &= ~here;
    }
  }
};

__device__ __forceinline__ std::uint32_t* record_of(const Params& p, int tile) {
  return reinterpret_cast<std::uint32_t*>(p.records + std::size_t(tile) * p.record_bytes);
}
__device__ __forceinline__ void clear_slots(const Params& p, std::uint32_t* slots) {
  for (int i = threadIdx.x; i < p.slots + 1; i += threads) slots[i] = 0;
}
__device__ __forceinline__ void store_slots(const Params& p, int tile, const std::uint32_t* slots) {
  for (int i = threadIdx.x; 2 * i < p.slots; i += threads) record_of(p, tile)[1 + i] = slots[2 * i] | slots[2 * i + 1] << 16;
}

/// The last step of all that is written: channels that are copied, and the way samples are stored.
template <class S, class P, int N>
__device__ __forceinline__ void write_piece(const Params& p, int plane, int row, int x, int y, const std::uint32_t (&v)[N],
                                            std::uint32_t (&out)[N]) {
  const PlaneRule& rule = p.rules[plane];
  if (y + row >= p.height) return;
  if (rule.any_copied) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t mask = rule.copied[i % P::period];
      out[i] = (out[i] & ~mask) | (v[i] & mask);
    }
  }
  to_stored<S>(p, out);
  store_row(p.dst[plane], byte_of<S, P>(x), row_of<S, P>(row, y), out);
}

/// Writes the mask or the overlay.
template <class S>
__device__ __forceinline__ void write_changed(const Params& p, int x, int y, const Strip<S>& v, const unsigned (&bits)[S::rows]) {
  using T = typename S::T;
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneRule& rule = p.rules[plane];
    const auto& words = of(v);
    constexpr int N = sizeof(words) / 4;
    std::uint32_t mask[N], out[N];
    expand_piece<S, P>(p, bits, row, mask);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const int at = i % P::period;
      const std::uint32_t tint = rule.tint[at];
      const std::uint32_t tinted = sizeof(T) == 1 ? __vavgu4(words[i], tint) : __vavgu2(words[i], tint);
      out[i] = p.output == DiffOutput::mask ? rule.black[at] ^ ((rule.black[at] ^ rule.white[at]) & mask[i])
                                            : (tinted & mask[i]) | (words[i] & ~mask[i]);
    }
    write_piece<S, P>(p, plane, row, x, y, words, out);
  });
}

/// Writes the difference of v and r, whose size is d.
template <class S>
__device__ __forceinline__ void write_difference(const Params& p, int x, int y, const Strip<S>& v, const Strip<S>& r, const Strip<S>& d) {
  using T = typename S::T;
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneRule& rule = p.rules[plane];
    constexpr int per_word = 4 / int(sizeof(T)), bits = 8 * int(sizeof(T));
    const auto& words = of(v);
    const auto &from = of(r), &size = of(d);
    constexpr int N = sizeof(words) / 4;
    std::uint32_t out[N];
    if (!rule.any_compared) {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = rule.black[i % P::period];
    } else if (p.show.plain && !rule.any_about_middle) {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = size[i];
    } else if (sizeof(T) == 1 && p.show.plain) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        // About zero instead of the middle, the saturating difference of signed bytes is what is wanted.
        constexpr std::uint32_t middle = 0x80808080u;
        const std::uint32_t about = __vsubss4(words[i] ^ middle, from[i] ^ middle) ^ middle, mask = rule.about_middle[i % P::period];
        out[i] = (about & mask) | (size[i] & ~mask);
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        out[i] = 0;
#pragma unroll
        for (int j = 0; j < per_word; ++j) {
          const int value = int(T(words[i] >> j * bits)) - int(T(from[i] >> j * bits));
          out[i] |= std::uint32_t(p.show(value, rule.about_middle[i % P::period] >> j * bits & 1)) << j * bits;
        }
      }
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

template <class S>
struct BackgroundStrip {
  std::uint32_t first[S::rows][2 * S::words0];
  std::uint32_t rest[S::planes > 1 ? S::planes - 1 : 1][2 * S::words1];
};

/// Groups whose loads are under way together: about 64 bytes a thread of the frame, and as many of the reference.
template <class S, bool background>
constexpr int groups_at_once() {
  constexpr int words = S::rows * S::words0 + (S::planes - 1) * S::words1;
  constexpr int wanted = (background ? 8 : 16) / words;
  return wanted < 1 ? 1 : wanted > Tile<S>::groups ? Tile<S>::groups : wanted;
}

template <class S, bool background>
__global__ void __launch_bounds__(threads) compare(const __grid_constant__ Params p) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad, at_once = groups_at_once<S, background>();
  constexpr unsigned all = (1u << S::pixels) - 1;
  __shared__ std::uint32_t slots[max_slots + 1];
  __shared__ std::uint32_t block_sum;
  const Tile<S> tile(p);
  const Counter<S> counter(p, tile);
  if (p.count) clear_slots(p, slots);
  if (threadIdx.x == 0) block_sum = 0;
  __syncthreads();

  std::uint32_t sum = 0;
#pragma unroll 1
  for (int group = 0; group < Tile<S>::groups; group += at_once) {
    Strip<S> frames[at_once], references[at_once];
    BackgroundStrip<S> backgrounds[background ? at_once : 1];
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const int y = tile.row(group + u);
      load_strip<S, true>(p, p.src, tile.x, y, frames[u]);
      if constexpr (background) {
        each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
          if (p.background[plane].data && y + row < p.height && tile.x < p.width)
            load_row<false>(p.background[plane], 2 * byte_of<S, P>(tile.x), row_of<S, P>(row, y), of(backgrounds[u]));
        });
      } else {
        load_strip<S, false>(p, p.reference, tile.x, y, references[u]);
      }
    }
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      const int y = tile.row(group + u);
      Strip<S>&v = frames[u], &r = references[u];
      unsigned counted[S::rows];
      bool partly = false;
#pragma unroll
      for (int row = 0; row < S::rows; ++row) {
        counted[row] = bits_in_frame<S>(p, tile.x, y + row);
        if (p.counted && counted[row]) counted[row] &= load_bits<S>(p.counted + std::ptrdiff_t(y + row) * p.bits_pitch, tile.x);
        partly = partly || counted[row] != all;
      }
      Strip<S> d;
      each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
            auto &words = of(v), &from = of(r), &size = of(d);
        constexpr int N = sizeof(words) / 4;
        const bool inside = y + row < p.height && tile.x < p.width;
        if (p.keep[plane].data && inside) store_row(p.keep[plane], byte_of<S, P>(tile.x), row_of<S, P>(row, y), words);
        to_values<S>(p, words);
        if constexpr (background) {
          if (p.background[plane].data) {
            auto& state = of(backgrounds[u]);
            step_background<T>(p, words, state, from);
            if (inside) store_row(p.background[plane], 2 * byte_of<S, P>(tile.x), row_of<S, P>(row, y), state);
          }
        } else {
          to_values<S>(p, from);
        }
        const bool compared = p.rules[plane].any_compared && (background || p.reference[plane].data);
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const std::uint32_t mask = compared ? p.rules[plane].compared[i % P::period] : 0;
          from[i] = (from[i] & mask) | (words[i] & ~mask);
        }
        (void)size;
      });
      if (S::maybe_rgb && p.luma_of_rgb) {
        // The overlay needs the picture itself.
        Strip<S> luma = v;
        to_luma<S>(p, false, luma);
        to_luma<S>(p, p.reference_is_luma && p.reference[0].data, r);
        each_piece<S>([&](auto, int, int, auto of) {
          auto& size = of(d);
          constexpr int N = sizeof(size) / 4;
#pragma unroll
          for (int i = 0; i < N; ++i) size[i] = absolute_difference<T>(of(luma)[i], of(r)[i]);
        });
        if (p.output == DiffOutput::difference) v = luma;
      } else {
        each_piece<S>([&](auto, int, int, auto of) {
          auto& size = of(d);
          constexpr int N = sizeof(size) / 4;
#pragma unroll
          for (int i = 0; i < N; ++i) size[i] = absolute_difference<T>(of(v)[i], of(r)[i]);
        });
      }
      if (partly) {  // equal, where not counted
        each_piece<S>([&](auto piece, int plane, int row, auto of) {
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

      std::uint32_t most[S::rows][S::quads * W];
      greatest<S>(p, d, most);
      unsigned changed[S::rows];
#pragma unroll
      for (int row = 0; row < S::rows; ++row) {
        unsigned bits = 0;
#pragma unroll
        for (int q = 0; q < S::quads; ++q) {
          if (partly) {
            std::uint32_t mask[W];
            expand_quad<T>(counted[row] >> 4 * q, mask);
#pragma unroll
            for (int w = 0; w < W; ++w) most[row][q * W + w] &= mask[w];
          }
          if constexpr (sizeof(T) == 1) {
            const std::uint32_t word = most[row][q];
            sum = __dp4a(word, 0x01010101u, sum);
            bits |= __dp4a(__vsetgtu4(word, p.threshold), 0x08040201u, 0u) << 4 * q;
          } else {
#pragma unroll
            for (int w = 0; w < W; ++w) {
              const std::uint32_t word = most[row][q * W + w], low = word & 0xffff, high = word >> 16;
              sum += low + high;
              bits |= (unsigned(low > p.threshold) | unsigned(high > p.threshold) << 1) << (4 * q + 2 * w);
            }
          }
        }
        if (p.foreground && counted[row]) bits = load_bits<S>(p.foreground + std::ptrdiff_t(y + row) * p.bits_pitch, tile.x) & counted[row];
        changed[row] = bits;
        if (p.changed && y + row < p.height) store_bits<S>(p.changed + std::ptrdiff_t(y + row) * p.bits_pitch, tile.x, bits);
        if (p.count) counter.add(p, tile, y + row, bits, slots);
      }
      if (tile.x < p.width) {
        if (p.output == DiffOutput::difference)
          write_difference<S>(p, tile.x, y, v, r, d);
        else if (p.output != DiffOutput::none)
          write_changed<S>(p, tile.x, y, v, changed);
      }
    }
  }

#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  if (tile.lane == 0) atomicAdd(&block_sum, sum);
  __syncthreads();
  if (p.count) store_slots(p, tile.index, slots);
  if (threadIdx.x == 0) *record_of(p, tile.index) = block_sum;
}

/// Opens the mask that compare() left as bits; counts, and shows it.
template <class S>
__global__ void __launch_bounds__(threads) open_mask(const __grid_constant__ Params p) {
  constexpr int words = S::tile_width / 32, pitch = words + 2;  // a word beyond each side: twice the radius is at most 32
  constexpr int most_rows = tile_rows + 4 * diff_max_open_radius;
  __shared__ std::uint32_t a[most_rows * pitch], b[most_rows * pitch];
  __shared__ std::uint32_t slots[max_slots + 1];
  const Tile<S> tile(p);
  const int radius = p.open_radius, rows = tile_rows + 4 * radius, top = tile.y0 - 2 * radius;
  clear_slots(p, slots);

  /// The pixels of word i of a row that lie in the frame.
  const auto in_frame = [&](int y, int i) {
    const int x = tile.x0 + (i - 1) * 32, left = p.width - x;
    return y < 0 || y >= p.height || x < 0 || left <= 0 ? 0 : left >= 32 ? ~0u : (1u << left) - 1;
  };
  const auto each_word = [&](int first_row, int last_row, auto work) {
    for (int at = first_row * pitch + threadIdx.x; at < last_row * pitch; at += threads) work(at, at / pitch, at % pitch);
    __syncthreads();
  };
  // Nothing erodes from beyond the frame, and nothing dilates from there.
  each_word(0, rows, [&](int at, int row, int i) {
    const int y = top + row;
    const std::uint32_t inside = in_frame(y, i);
    std::uint32_t word = ~0u;
    if (inside) word = *reinterpret_cast<const std::uint32_t*>(p.changed + std::ptrdiff_t(y) * p.bits_pitch + (tile.x0 / 8 + (i - 1) * 4)) | ~inside;
    a[at] = word;
  });
  each_word(0, rows, [&](int at, int, int i) {
    const std::uint32_t word = a[at], left = i > 0 ? a[at - 1] : ~0u, right = i < pitch - 1 ? a[at + 1] : ~0u;
    std::uint32_t all = word;
    for (int s = 1; s <= radius; ++s) all &= __funnelshift_l(left, word, s) & __funnelshift_r(word, right, s);
    b[at] = all;
  });
  each_word(radius, rows - radius, [&](int at, int row, int i) {
    std::uint32_t all = in_frame(top + row, i);
    for (int s = -radius; s <= radius; ++s) all &= b[at + s * pitch];
    a[at] = all;
  });
  each_word(radius, rows - radius, [&](int at, int, int i) {
    const std::uint32_t word = a[at], left = i > 0 ? a[at - 1] : 0, right = i < pitch - 1 ? a[at + 1] : 0;
    std::uint32_t any = word;
    for (int s = 1; s <= radius; ++s) any |= __funnelshift_l(left, word, s) | __funnelshift_r(word, right, s);
    b[at] = any;
  });
  each_word(2 * radius, rows - 2 * radius, [&](int at, int, int) {
    std::uint32_t any = 0;
    for (int s = -radius; s <= radius; ++s) any |= b[at + s * pitch];
    a[at] = any;
  });

  const Counter<S> counter(p, tile);
  const bool wanted = p.output == DiffOutput::mask || p.output == DiffOutput::overlay;
  const bool needs_source = p.output == DiffOutput::overlay || p.rules[0].any_copied;
  const int bit = tile.lane * S::pixels;
  for (int group = 0; group < Tile<S>::groups; ++group) {
    const int y = tile.row(group);
    unsigned changed[S::rows];
#pragma unroll
    for (int row = 0; row < S::rows; ++row) {
      const std::uint32_t word = a[(y + row - top) * pitch + 1 + bit / 32];
      changed[row] = word >> bit % 32 & bits_in_frame<S>(p, tile.x, y + row);
      counter.add(p, tile, y + row, changed[row], slots);
    }
    if (!wanted || tile.x >= p.width) continue;
    Strip<S> v{};
    if (needs_source) {
      load_strip<S, true>(p, p.src, tile.x, y, v);
      each_piece<S>([&](auto, int, int, auto of) { to_values<S>(p, of(v)); });
    }
    write_changed<S>(p, tile.x, y, v, changed);
  }
  __syncthreads();
  store_slots(p, tile.index, slots);
}

/// The kernels of a format, and the tiles they cut a frame into.
struct Kernels {
  const void *compare, *compare_background, *open;
  int tile_width;
};
template <class S>
Kernels kernels_of() {
  return {reinterpret_cast<const void*>(compare<S, false>), reinterpret_cast<const void*>(compare<S, true>),
          reinterpret_cast<const void*>(open_mask<S>), S::tile_width};
}
template <typename T>
Kernels choose(const FormatInfo& format) {
  const ChannelSet &first = format.sets[0], &rest = format.sets[1];
  if (first.channels == 4) return kernels_of<Shape<T, 4, 1, 1, 0, 0>>();
  if constexpr (sizeof(T) == 1) {
    if (first.channels == 3) return kernels_of<Shape<T, 3, 1, 1, 0, 0>>();
    if (first.channels == 2) return kernels_of<Shape<T, 2, 1, 1, 0, 0>>();
  }
  if (format.set_count == 1) return kernels_of<Shape<T, 1, 1, 1, 0, 0>>();
  if (format.set_count == 2) return kernels_of<Shape<T, 1, 2, 2, 1, 1>>();
  if (rest.shift_x == 0) return kernels_of<Shape<T, 1, 1, 3, 0, 0>>();
  return rest.shift_y == 0 ? kernels_of<Shape<T, 1, 1, 3, 1, 0>>() : kernels_of<Shape<T, 1, 1, 3, 1, 1>>();
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

PlaneView view_of(const Plane& plane, int row_bytes) {
  PlaneView view;
  view.data = static_cast<unsigned char*>(plane.data);
  view.pitch = plane.pitch;
  view.row_bytes = row_bytes;
  for (view.alignment = 16; !aligned_to(plane.data, plane.pitch, view.alignment);) view.alignment /= 2;
  return view;
}

class CudaDiff final : public Diff {
 public:
  explicit CudaDiff(DiffPlan plan)
      : Diff(std::move(plan)), kernels_(info(geometry().format).sample_bytes() == 1 ? choose<std::uint8_t>(info(geometry().format))
                                                                                   : choose<std::uint16_t>(info(geometry().format))) {}

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
      for (int plane = 0; plane < 3; ++plane)
        if (layout.pitch[plane] > 0) {
          const Plane place{at(model) + 2 * layout.offset[plane], 2 * layout.pitch[plane]};
          params_.background[plane] = view_of(place, int(place.pitch));
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
    const int tiles_y = (geometry().height + tile_rows - 1) / tile_rows;
    blocks_ = params_.tiles_x * tiles_y;
    if (Status status = records_.allocate(std::size_t(blocks_) * params_.record_bytes * params.in_flight); !status.ok()) return status;

    // Asking loads the code now: a launch must not.
    const void* const fill = format.sample_bytes() == 1 ? reinterpret_cast<const void*>(fill_rects<std::uint8_t>)
                                                        : reinterpret_cast<const void*>(fill_rects<std::uint16_t>);
    for (const void* kernel : {background ? kernels_.compare_background : kernels_.compare, kernels_.open, fill}) {
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
    p.threshold = std::uint32_t(plan().threshold) * (format.sample_bytes() == 1 ? 0x1010101u : 1u);
    p.show = plan().show;
    p.rate = plan().rate;
    p.luma_of_rgb = plan().luma_of_rgb();
    p.reference_is_luma = p.luma_of_rgb && params.reference == DiffReference::mog2;
    p.luma_second = format.sets[0].roles[0] == Role::other;
    p.bits_pitch = int(plan().mask_pitch());
    p.open_radius = params.open_radius;
    p.cell_size = params.cell_size;
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
      PlaneRule& rule = params_.rules[set.plane];
      for (int c = 0; c < set.channels; ++c) {
        const Role role = set.roles[c];
        if (role == Role::other) continue;
        if (role == Role::red) params_.rgb[0] = format.set_count == 1 ? c : i;
        if (role == Role::green) params_.rgb[1] = format.set_count == 1 ? c : i;
        if (role == Role::blue) params_.rgb[2] = format.set_count == 1 ? c : i;
        const bool copied = role == Role::alpha || role == Role::padding, compared = plan().compares(role);
        const bool about = !copied && (is_chroma(role) || plan().show.mode == DiffMode::signed_);
        rule.any_copied |= copied;
        rule.any_compared |= compared;
        rule.any_about_middle |= about;
        for (int j = 0; j * set.channels < 16; ++j) {
          const int at = (j * set.channels + c) * bits;
          if (at >= 8 * 32) break;
          const auto put = [&](std::uint32_t* words, unsigned value) { words[at / 32] |= std::uint32_t(value) << at % 32; };
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
    const bool background = params.reference == DiffReference::background, mog2 = params.reference == DiffReference::mog2;
    Params p = params_;
    p.begin = !frame.compared;
    p.records = records_.data() + std::size_t(frame.slot) * blocks_ * p.record_bytes;
    for (int plane = 0; plane < format.planes; ++plane) {
      const int bytes = picture_row_bytes(geometry(), plane);
      const PlaneRule& rule = p.rules[plane];
      if (rule.any_compared || rule.any_copied || params.output == DiffOutput::overlay) p.src[plane] = view_of(frame.src.planes[plane], bytes);
      if (params.output != DiffOutput::none) p.dst[plane] = view_of(frame.dst.planes[plane], bytes);
      if (frame.compared && rule.any_compared && frame.reference.planes[plane].data)
        p.reference[plane] = view_of(frame.reference.planes[plane], params.borrow && !mog2 ? bytes : int(frame.reference.planes[plane].pitch));
      if (frame.keep.planes[plane].data) p.keep[plane] = view_of(frame.keep.planes[plane], int(frame.keep.planes[plane].pitch));
    }

    if (mog2) {
      auto job = cudavision::detail::mixture_job(plan(), frame);
      cudavision::detail::mog2::set_state(job, mixture_);
      Status status = launch_mog2(job, format.sample_bytes(), cudavision::detail::mixture_channels(plan()), foreground_, p.bits_pitch, queue.stream);
      if (!status.ok()) return status;
      if (frame.compared) p.foreground = foreground_;
    }
    const bool open = params.open_radius > 0 && frame.compared, shows_mask = params.output == DiffOutput::mask || params.output == DiffOutput::overlay;
    p.count = !open;
    p.output = open && shows_mask ? DiffOutput::none : params.output;
    if (!open) p.changed = nullptr;
    Status status = launch(background ? kernels_.compare_background : kernels_.compare, p, queue);
    if (!open || !status.ok()) return status;
    p.count = true;
    p.output = shows_mask ? params.output : DiffOutput::none;
    return launch(kernels_.open, p, queue);
  }

  Status launch(const void* kernel, Params& p, Queue queue) const {
    void* arguments[] = {&p};
    return check(cudaLaunchKernel(kernel, dim3(unsigned(blocks_)), dim3(threads), arguments, 0, queue.stream), "cannot launch the difference");
  }

  std::uint64_t collect(int slot, std::vector<std::uint32_t>& changed) const override {
    const Params& p = params_;
    const unsigned char* record = records_.data() + std::size_t(slot) * blocks_ * p.record_bytes;
    const CellGrid& cells = plan().cells;
    std::uint64_t sum = 0;
    for (int tile = 0; tile < blocks_; ++tile, record += p.record_bytes) {
      std::uint32_t of_tile;
      std::memcpy(&of_tile, record, sizeof of_tile);
      sum += of_tile;
      const auto* counts = reinterpret_cast<const std::uint16_t*>(record + 4);
      const int first_x = tile % p.tiles_x * kernels_.tile_width / p.cell_size, first_y = tile / p.tiles_x * tile_rows / p.cell_size;
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
  int blocks_ = 0;
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
