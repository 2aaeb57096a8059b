// SPDX-License-Identifier: LGPL-2.1-or-later
// Both passes are products with banded (Toeplitz) matrices, computed by the integer matrix units, in one kernel.
//
// A warp owns a strip of a plane, 64 bytes wide, and marches down it in steps of 16 rows. Interleaved channels need no unpacking: a
// row is a string of samples in which the taps of a channel lie `channels` samples apart, so the channel count only shapes the
// matrix.
//   across: out[x][row] = Σ A[x][k] · in[k][row]: 16 samples × 8 rows from `GX` groups of 16 bytes of those rows;
//   down:   out[y][x] = Σ B[y][k] · rows[k][x]:  16 rows × 8 samples from `GY` groups of 16 rows.
// The fragments that the first product leaves in a lane are, once packed into bytes, just those that the second one wants there,
// because the order of its summation is free: no data crosses lanes between the passes. Sums of more than 8 bits are split into
// bytes, one product for each, so all is exact. Rows computed once stay in registers (or, for large kernels, in shared memory) as a
// ring.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/gaussian.hpp"

namespace cudavision::cuda {
namespace {

using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

// ---- What the host tells the kernels --------------------------------------------------------------------------------------------

constexpr int strip_bytes = 64;  ///< of a row, computed by one warp
constexpr int step_rows = 16;    ///< computed at a time
constexpr int max_warps = 8;     ///< in a block

/// Times: GRAY8, 7680×4320, 7 taps unless said, on an H200, where a copy of the same bytes takes 18.0 µs.
namespace tuning {

/// Blocks that share a multiprocessor, which sets the registers of a thread. 8 bit, up to 17 taps: 3, 4 and 5 blocks
/// took 30.2, 29.4 and 34.8 µs (from 4 on, registers spill); NV12 of 1920×1080 7.6 µs with 3, 8.5 with 4.
constexpr int resident(int sample_bytes, int gy) { return sample_bytes == 1 && gy == 2 ? 3 : 2; }

/// Groups of rows that a lane holds: with 2, the next is on its way while one is worked on, at the price of registers. RGBA of 7
/// taps (windows of 4 groups): 147 µs with 1, 120 with 2; RGBA of 15 taps (6 groups) 134 and 150; 7 taps 31.9 and 34.1; GRAY16 69.9
/// and 74.6.
constexpr int buffers(int sample_bytes, int gx, int gy) { return sample_bytes == 1 && gx == 4 && gy == 2 ? 2 : 1; }

/// Groups of rows asked into L2 ahead of the one being loaded: 1 tap 29.7 µs without, 26.5 with 2; GRAY16 77 and 70.
constexpr int ahead = 2;

/// Segments at the ends of a row are shorter by this, for their warps take longer and must not finish last: 39.0 µs with 2, 31.9
/// with 3, 26.5 where no strip needs it (1 tap). 5 is as many as still fit beside the others in one wave.
constexpr int edge_share = 5;

constexpr int start_steps = 1;  ///< what a segment's start costs, in steps (estimated)
/// In a segment. RGBA of 3 taps 107.4 µs with 64, 104.4 with 32, of 31 taps 163.8 and 169.9; NV12 36.4 and 36.9.
constexpr int max_steps(int channels, int gy) { return channels == 4 && gy == 2 ? 32 : 64; }

/// Whether results pass L2 by (streaming stores), and leave it to the rows that are read twice: 26.2 µs without, 25.2 with; NV12
/// 38.3 and 36.5; RGBA of 3 and 15 taps 111 and 107, 143 and 132, but of 7 taps, with two buffers, 122 and 135.
constexpr bool streams(int sample_bytes, int gx, int gy) { return buffers(sample_bytes, gx, gy) == 1; }

}  // namespace tuning

/// One axis: weights by distance from the middle. The identity's weight does not fit; see SetJob.
struct Axis {
  int radius;
  uint16_t weights[gaussian_max_taps / 2 + 1];
};

/// How rows beyond the frame are found: row i above it at above + sign · i, below it at below + sign · i, clamped to the frame.
struct Rows {
  int above, below, sign, last, pitch;

  /// Byte offset of row `row`.
  __device__ std::int64_t operator()(int row) const {
    int mapped = row < 0 ? above + sign * row : row;
    mapped = row > last ? below + sign * row : mapped;
    return std::int64_t(min(max(mapped, 0), last)) * pitch;
  }
};

struct SetJob {
  Rows rows;
  SetView view;
  int row_bytes;  ///< of the whole grid
  int x0, x1;     ///< bytes of a row to write: [x0, x1)
  int origin;     ///< byte at which the first strip begins, a multiple of 32
  int stride;     ///< bytes from a sample to its channel's next
  int reach;      ///< radius in bytes
  int pad;        ///< bytes by which a strip's window begins before it, a multiple of 8, at least `reach`
  // Strips whose window leaves the row, at its left and right end, come first, in shorter segments: they take longer.
  int first_block, edge_blocks, left, edges, strips;  ///< left, edges: strips at the left end, at both
  int blocks_x, steps, edge_steps;                    ///< steps: of a segment
  bool words, pairs;                                  ///< source rows are aligned to 4 bytes, to 8
  bool stores;       ///< destination rows are aligned to 8 bytes, and the source's too where they are copied
  bool folds;        ///< `rows` finds all rows that a window needs
  uint32_t keep[2];  ///< bits of 8 bytes that are taken from the source
  uint32_t own;      ///< bit k: byte k of 8 is written (8 bit)
  uint32_t mask;     ///< significant bits of a source word
  uint32_t most;     ///< the greatest samples of a source word, where they are stored; ~0: no word exceeds them
  // An identity axis uses the weight 1 (down, 16 bit: 2¹⁵) and moves the result's bits instead.
  uint32_t pack, out;       ///< 8 bit: byte selectors of row sums and of the result
  uint32_t scale0, scale1;  ///< 16 bit: of the partial row sums
  uint32_t rounding;        ///< 16 bit: of a row sum; 128 at 8 bit. As weights sum to one, the result is rounded by it.
  int final_shift;          ///< 16 bit
};

struct Launch {
  SetJob jobs[3];
  Axis axes[3][2];
  int sets;
  int gx, gy;  ///< groups of 16 bytes and rows, where a kernel does not fix them
};

// ---- The arithmetic of a sample type --------------------------------------------------------------------------------------------
// Lane 4g + t of a warp holds, of a product's result: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).

template <typename T>
struct Arithmetic;

template <>
struct Arithmetic<uint8_t> {
  static constexpr int blocks = 4;  ///< of 16 samples in a strip
  static constexpr int across = 1;  ///< products across, for each block
  static constexpr int planes = 2;  ///< bytes of a row sum
  static constexpr int down = 1;    ///< bytes of a weight
  static constexpr int sums = 2;    ///< products down that differ in the place of their bytes
  static constexpr int tiles = 2;   ///< of 8 samples that share a result word

  /// Sample of a block that row m of the product across stands for: such that a lane's results are neighbours.
  __device__ static int sample(int m) { return (m & 7) / 2 * 4 + (m & 1) + m / 8 * 2; }

  /// Byte planes of the row sums at rows 2t, 2t + 1, 8 + 2t, 9 + 2t of a group.
  __device__ static void split(const SetJob& job, const int (&top)[1][4], const int (&bottom)[1][4], int half, uint32_t* words) {
    const uint32_t a = __byte_perm(top[0][2 * half], top[0][2 * half + 1], job.pack) + 0x00800080;
    const uint32_t b = __byte_perm(bottom[0][2 * half], bottom[0][2 * half + 1], job.pack) + 0x00800080;
    words[0] = __byte_perm(a, b, 0x6420);
    words[1] = __byte_perm(a, b, 0x7531);
  }

  /// Results of two tiles: for rows g and g + 8 a word.
  __device__ static void finish(const SetJob& job, const int (&sum)[2][2][4], uint32_t& upper, uint32_t& lower) {
    uint32_t pair[2][2];
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        pair[i][tile] = __byte_perm(sum[tile][1][2 * i] * 256 + sum[tile][0][2 * i],
                                    sum[tile][1][2 * i + 1] * 256 + sum[tile][0][2 * i + 1], job.out);
    upper = __byte_perm(pair[0][0], pair[0][1], 0x5410);
    lower = __byte_perm(pair[1][0], pair[1][1], 0x5410);
  }
};

template <>
struct Arithmetic<uint16_t> {
  static constexpr int blocks = 2, across = 3, planes = 4, down = 2, sums = 5, tiles = 1;

  __device__ static int sample(int m) { return m; }

  __device__ static uint32_t row_sum(const SetJob& job, const int (&sum)[3][4], int i) {
    return (sum[0][i] * job.scale0 + job.rounding) + sum[1][i] * job.scale1 + sum[2][i] * 65536u;
  }

  __device__ static void split(const SetJob& job, const int (&top)[3][4], const int (&bottom)[3][4], int half, uint32_t* words) {
    const uint32_t a = row_sum(job, top, 2 * half), b = row_sum(job, top, 2 * half + 1);
    const uint32_t c = row_sum(job, bottom, 2 * half), d = row_sum(job, bottom, 2 * half + 1);
    const uint32_t ab = __byte_perm(a, b, 0x5140), cd = __byte_perm(c, d, 0x5140);
    words[0] = __byte_perm(ab, cd, 0x5410);
    words[1] = __byte_perm(ab, cd, 0x7632);
    const uint32_t ab_high = __byte_perm(a, b, 0x7362), cd_high = __byte_perm(c, d, 0x7362);
    words[2] = __byte_perm(ab_high, cd_high, 0x5410);
    words[3] = __byte_perm(ab_high, cd_high, 0x7632);
  }

  __device__ static void finish(const SetJob& job, const int (&sum)[1][5][4], uint32_t& upper, uint32_t& lower) {
    uint32_t value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t carry = sum[0][0][i];
      carry = sum[0][1][i] + (carry >> 8);
      carry = sum[0][2][i] + (carry >> 8);
      carry = sum[0][3][i] + (carry >> 8);
      carry = sum[0][4][i] * 256 + carry;  // the sum over 2²⁴
      value[i] = min(carry >> job.final_shift, uint32_t(job.view.max_value)) << job.view.shift;
    }
    upper = value[0] | value[1] << 16;
    lower = value[2] | value[3] << 16;
  }
};

// ---- Matrices -------------------------------------------------------------------------------------------------------------------

/// Bytes of shared memory that `Bands` needs.
template <typename T>
constexpr int band_bytes(int gx, int gy) {
  using A = Arithmetic<T>;
  return A::across * (16 * gx + 32) + A::down * (16 * gy + 16);
}

/// The bytes of a matrix row, which its other rows repeat shifted: the weights among zeros.
template <typename T>
struct Bands {
  using A = Arithmetic<T>;
  static constexpr int first = 15 * sizeof(T);  ///< a row's position in the band is its sample's distance from the block's last

  uint8_t* const bytes;
  const int gx, gy;

  __device__ uint8_t* across(int product) const { return bytes + product * (16 * gx + 32); }
  __device__ uint8_t* down(int byte) const { return bytes + A::across * (16 * gx + 32) + byte * (16 * gy + 16); }

  /// All threads of the block.
  __device__ void fill(const SetJob& job, const Axis& x, const Axis& y) const {
    for (int i = threadIdx.x; i < band_bytes<T>(gx, gy); i += blockDim.x) bytes[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i <= 2 * x.radius; i += blockDim.x) {
      const unsigned weight = x.weights[abs(i - x.radius)];
      const int at = first + job.pad + (i - x.radius) * job.stride;
      if constexpr (sizeof(T) == 1) {
        across(0)[at] = weight;
      } else {  // low × low; low × high and high × low; high × high
        across(0)[at] = across(1)[at + 1] = weight & 0xff;
        across(1)[at] = across(2)[at + 1] = weight >> 8;
      }
    }
    for (int i = threadIdx.x; i <= 2 * y.radius; i += blockDim.x) {
      const unsigned weight = y.weights[abs(i - y.radius)];
      down(0)[15 + i] = weight & 0xff;
      if (A::down == 2) down(A::down - 1)[15 + i] = weight >> 8;
    }
    __syncthreads();
  }

  /// What lane `lane` holds of a matrix: word `half`, for the bytes of the window from `position` on, or for group `group` of rows.
  __device__ uint32_t across_word(int product, int position, int half, int lane) const {
    const uint8_t* from = across(product) + first + position - A::sample(lane / 4 + 8 * half) * int(sizeof(T));
    return from[0] | from[1] << 8 | from[2] << 16 | uint32_t(from[3]) << 24;
  }
  __device__ uint32_t down_word(int byte, int group, int half, int lane) const {
    const uint8_t* from = down(byte) + 15 + 16 * group + lane % 4 * 2 - (lane / 4 + 8 * half);
    return from[0] | from[1] << 8 | from[8] << 16 | uint32_t(from[9]) << 24;
  }
};

// ---- Reading and writing --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ uint32_t load_word(const unsigned char* at) { return __ldg(reinterpret_cast<const uint32_t*>(at)); }

/// The word at byte x of a row (mapped, or −1), sample by sample.
template <typename T>
__device__ __noinline__ uint32_t edge_word(const SetView& view, int row, int x) {
  constexpr int per_word = 4 / sizeof(T);
  const T* const samples = reinterpret_cast<const T*>(view.src + row * view.src_pitch);
  const int channels = view.channels;
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < per_word; ++i) {
    const int sample = x / int(sizeof(T)) + i;
    int column = sample >= 0 ? sample / channels : -((channels - 1 - sample) / channels);
    const int channel = sample - column * channels;
    column = row < 0 ? -1 : border_index(column, view.width, view.border);
    const uint32_t value = column < 0 ? uint32_t(view.border_value[channel]) << view.shift : samples[column * channels + channel];
    word |= value << (i * 8 * int(sizeof(T)));
  }
  return word;
}

/// A lane's word j of a window: lane 4g + t has 8 bytes of each 32, from byte 8t on.
constexpr int word_at(int j) { return j / 2 * 32 + j % 2 * 4; }

/// A lane's words of rows y and y + 8, which lie in the row, aligned. Rows beyond the frame by no more than its height are found
/// without a division.
template <int N>
__device__ __forceinline__ void load_inside(const Rows& rows, const unsigned char* at, int y, uint32_t (&words)[2][N]) {
  const unsigned char* const from[2] = {at + rows(y), at + rows(y + 8)};
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      const uint2 pair = __ldg(reinterpret_cast<const uint2*>(from[i] + word_at(j)));
      words[i][j] = pair.x, words[i][j + 1] = pair.y;
    }
}

/// border_index, kept out of the loops that seldom need it.
__device__ __noinline__ int far_index(int i, int n, Border border) { return border_index(i, n, border); }

/// Where the samples of a strip's window lie: a byte of the row, or the complement of the border value.
template <typename T>
__device__ void map_window(const SetView& view, int begin, int bytes, int* map) {
  for (int i = threadIdx.x % 32; i < bytes / int(sizeof(T)); i += 32) {
    const int sample = begin / int(sizeof(T)) + i, channels = view.channels;
    const int column = sample >= 0 ? sample / channels : -((channels - 1 - sample) / channels);
    const int channel = sample - column * channels, mapped = border_index(column, view.width, view.border);
    map[i] = mapped < 0 ? ~(view.border_value[channel] << view.shift) : (mapped * channels + channel) * int(sizeof(T));
  }
  __syncwarp();
}

/// The same words, anywhere: `map` stands at the window's sample at x.
template <typename T, int N>
__device__ __forceinline__ void load_anywhere(const SetJob& job, const int* map, int y, int x, uint32_t (&words)[2][N]) {
  constexpr int per_word = 4 / sizeof(T);
  const SetView& view = job.view;
  int row[2] = {y, y + 8};
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (unsigned(row[i]) >= unsigned(view.height)) row[i] = far_index(row[i], view.height, view.border);
  const unsigned char* const at[2] = {view.src + row[0] * view.src_pitch, view.src + row[1] * view.src_pitch};
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int byte = x + word_at(j);
      words[i][j] = 0;
      if (job.words && row[i] >= 0 && byte >= 0 && byte + 4 <= job.row_bytes) words[i][j] = load_word(at[i] + byte);
    }
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int byte = x + word_at(j);
    const bool outside = byte < 0 || byte + 4 > job.row_bytes || !job.words;
    if (!outside && row[0] >= 0 && row[1] >= 0) continue;
    if (byte <= -job.reach - 4 || byte >= job.row_bytes + job.reach) continue;
    if (outside) {
      uint32_t sample[2][per_word];
#pragma unroll
      for (int k = 0; k < per_word; ++k) {
        const int from = map[word_at(j) / int(sizeof(T)) + k];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          sample[i][k] = from < 0 ? ~from : row[i] < 0 ? 0 : __ldg(reinterpret_cast<const T*>(at[i] + from));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        words[i][j] = 0;
#pragma unroll
        for (int k = 0; k < per_word; ++k) words[i][j] |= sample[i][k] << (k * 8 * int(sizeof(T)));
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (row[i] < 0) words[i][j] = edge_word<T>(view, -1, byte);
  }
}

/// Writes the 8 bytes at byte x, a multiple of 8, of row y, as far as they are to be written.
template <typename T>
__device__ __noinline__ void store_edge(const SetJob& job, int y, int x, uint2 value) {
  const SetView& view = job.view;
  if (y >= view.y1) return;
  const unsigned char* const from = view.src + y * view.src_pitch + x;
  unsigned char* const to = view.dst + y * view.dst_pitch + x;
  constexpr int per_word = 4 / sizeof(T);
#pragma unroll
  for (int i = 0; i < 2 * per_word; ++i) {
    const int byte = x + i * int(sizeof(T));
    if (byte < job.x0 || byte >= job.x1) continue;
    const int channel = byte / int(sizeof(T)) % view.channels;
    if (!(view.own >> channel & 1)) continue;
    const T computed = T((i < per_word ? value.x : value.y) >> (i % per_word * 8 * int(sizeof(T))));
    reinterpret_cast<T*>(to)[i] = view.filtered >> channel & 1 ? computed : reinterpret_cast<const T*>(from)[i];
  }
}

/// Writes strips, from above to below.
template <typename T, bool Streams>
struct Store {
  const SetJob& job;
  int x, y;  ///< of the lane's first 8 bytes
  unsigned char* to;
  const unsigned char* from;
  long long to_8, from_8;  ///< eight rows
  bool whole, keeps;       ///< all bytes of its rows are to be written, aligned; and some are copied
  bool shares;             ///< all of its bytes that belong to the set are to be written, but others not
  int end;                 ///< the first row that is not to be written

  __device__ Store(const SetJob& job, int strip_x, int strip_y) : job(job) {
    const int lane = threadIdx.x % 32;
    x = strip_x + 16 * (lane & 1) + (lane & 2) * 4;
    y = strip_y + lane / 4;
    to = job.view.dst + y * job.view.dst_pitch + x;
    from = job.view.src + y * job.view.src_pitch + x;
    const bool covered = strip_x >= job.x0 && strip_x + strip_bytes <= job.x1;
    whole = job.stores && covered;
    keeps = whole && (job.keep[0] | job.keep[1]);
    shares = job.own != 0xff && covered;
    end = kept(job.view.y1);
    to_8 = kept(8 * (long long)(job.view.dst_pitch));
    from_8 = kept(8 * (long long)(job.view.src_pitch));
  }

  /// Writes rows g and g + 8 of a step: lane 4g + t has the words at bytes 16i + 4t.
  __device__ __forceinline__ void step(const uint32_t (&upper)[4], const uint32_t (&lower)[4]) {
    const bool odd = threadIdx.x & 1;
    uint2 pairs[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // Neighbouring lanes swap words, so that each has 8 bytes in a row and four lanes fill whole sectors.
      const uint32_t first = i < 2 ? upper[2 * i] : lower[2 * i - 4], second = i < 2 ? upper[2 * i + 1] : lower[2 * i - 3];
      const uint32_t received = __shfl_xor_sync(~0u, odd ? first : second, 1);
      pairs[i / 2][i % 2] = odd ? make_uint2(received, second) : make_uint2(first, received);
    }
    if (keeps) {
      __syncwarp();  // keeps this a branch: few formats take it
      uint2 source[2][2];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (y + i / 2 * 8 < end) source[i / 2][i % 2] = __ldg(reinterpret_cast<const uint2*>(from + i / 2 * from_8 + i % 2 * 32));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        pairs[i / 2][i % 2].x = (pairs[i / 2][i % 2].x & ~job.keep[0]) | (source[i / 2][i % 2].x & job.keep[0]);
        pairs[i / 2][i % 2].y = (pairs[i / 2][i % 2].y & ~job.keep[1]) | (source[i / 2][i % 2].y & job.keep[1]);
      }
    }
    if (whole) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (y + i / 2 * 8 >= end) continue;
        uint2* const at = reinterpret_cast<uint2*>(to + i / 2 * to_8 + i % 2 * 32);
        if constexpr (Streams)
          __stcs(at, pairs[i / 2][i % 2]);
        else
          *at = pairs[i / 2][i % 2];
      }
    } else if (sizeof(T) == 1 && shares) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int k = 0; k < 8; ++k) {
          const uint2 value = pairs[i / 2][i % 2];
          if (y + i / 2 * 8 < end && job.own >> k & 1) to[i / 2 * to_8 + i % 2 * 32 + k] = (k < 4 ? value.x : value.y) >> k % 4 * 8;
        }
    } else {
#pragma unroll 1
      for (int i = 0; i < 2; ++i) {
        store_edge<T>(job, y + 8 * i, x, i ? pairs[1][0] : pairs[0][0]);
        store_edge<T>(job, y + 8 * i, x + 32, i ? pairs[1][1] : pairs[0][1]);
      }
    }
    to += 2 * to_8;
    from += 2 * from_8;
    y += step_rows;
  }
};

/// The part of a frame that a warp computes.
struct Task {
  int x, y, steps;  ///< byte and row of its strip's upper left corner
  bool edge;

  __device__ Task(const SetJob& job) {
    const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
    int block = blockIdx.x - job.first_block, strip, segment;
    edge = block < job.edge_blocks;
    steps = edge ? job.edge_steps : job.steps;
    if (edge) {
      const int id = block * warps + warp, nth = id % job.edges;
      strip = nth < job.left ? nth : job.strips - job.edges + nth;
      segment = id / job.edges;
    } else {
      block -= job.edge_blocks;
      strip = job.left + block % job.blocks_x * warps + warp;
      segment = block / job.blocks_x;
      if (strip >= job.strips - job.edges + job.left) steps = 0;
    }
    x = job.origin + strip * strip_bytes;
    y = job.view.y0 + segment * steps * step_rows;
    steps = min(steps, (job.view.y1 - y + step_rows - 1) / step_rows);
  }
};

__device__ __forceinline__ int find_set(const Launch& launch) {
  int set = 0;
  while (set + 1 < launch.sets && int(blockIdx.x) >= launch.jobs[set + 1].first_block) ++set;
  return set;
}

// ---- Kernels --------------------------------------------------------------------------------------------------------------------

/// For windows of up to GX groups of 16 bytes and GY groups of 16 rows: matrices and ring in registers.
template <typename T, int GX, int GY>
struct Strip {
  using A = Arithmetic<T>;
  static constexpr int chunks = GX / 2;                                  ///< of 32 bytes, in a block's window
  static constexpr int loads = 2 * (chunks + (sizeof(T) == 1 ? 2 : 1));  ///< words that a lane loads of a row
  static constexpr int tiles = 2 * A::blocks;
  static constexpr int window = 16 * loads;          ///< bytes, of the strip
  static constexpr int shifts = 3 - int(sizeof(T));  ///< 8 bit: every second block begins in the middle of a chunk

  uint32_t across[shifts][A::across][chunks][2][2], down[A::down][GY][2];
  uint32_t ring[GY][tiles * A::planes];  ///< group n of rows is in slot n % GY

  /// Result words `w` of rows g and g + 8, from a full ring.
  template <int Newest>
  __device__ __forceinline__ void columns(const SetJob& job, int w, uint32_t& upper, uint32_t& lower) {
    int sums[A::tiles][A::sums][4] = {};
#pragma unroll
    for (int tile = 0; tile < A::tiles; ++tile) {
      const int at = (w * A::tiles + tile) * A::planes;
#pragma unroll
      for (int byte = 0; byte < A::down; ++byte)
#pragma unroll
        for (int p = 0; p < A::planes; ++p) {
          // The ring stays where it is: the matrix turns.
          constexpr int turn = GY - 1 - Newest;
#pragma unroll
          for (int slot = 0; slot + 1 < GY; slot += 2)
            mma(sums[tile][p + byte], down[byte][(slot + turn) % GY], down[byte][(slot + 1 + turn) % GY], ring[slot][at + p],
                ring[slot + 1][at + p]);
          if (GY % 2) mma(sums[tile][p + byte], down[byte][(GY - 1 + turn) % GY], ring[GY - 1][at + p]);
        }
    }
    A::finish(job, sums, upper, lower);
  }

  /// Takes a group of rows into slot `Newest`.
  template <int Newest>
  __device__ __forceinline__ void take(const SetJob& job, uint32_t (&words)[2][loads]) {
    if (sizeof(T) == 2 && job.most != ~0u) {
#pragma unroll
      for (int i = 0; i < 2 * loads; ++i) words[i / loads][i % loads] = __vminu2(words[i / loads][i % loads] & job.mask, job.most);
    }
    uint32_t shifted[2][loads];  // by half a chunk
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j + 2 < loads; ++j) shifted[i][j] = threadIdx.x & 2 ? words[i][j] : words[i][j + 2];
#pragma unroll
    for (int b = 0; b < A::blocks; ++b) {
      const int shift = b % shifts, chunk = b / shifts;
      int sums[2][A::across][4] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t(&from)[loads] = shift ? shifted[i] : words[i];
#pragma unroll
        for (int p = 0; p < A::across; ++p)
#pragma unroll
          for (int d = 0; d < chunks; ++d)
            mma(sums[i][p], across[shift][p][d][0], across[shift][p][d][1], from[2 * (chunk + d)], from[2 * (chunk + d) + 1]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) A::split(job, sums[0], sums[1], half, &ring[Newest][(2 * b + half) * A::planes]);
    }
  }

  static constexpr int buffers = tuning::buffers(sizeof(T), GX, GY);
  static_assert(GY % buffers == 0);

  /// `words[0]` hold the first group of rows; `load` asks for the next.
  template <typename Stores, typename Load, int... Newest>
  __device__ __forceinline__ void march(const SetJob& job, Stores& store, int steps, uint32_t (&words)[buffers][2][loads],
                                        Load load, std::integer_sequence<int, Newest...>) {
#pragma unroll
    for (int d = 0; d < GY; ++d)
#pragma unroll
      for (int i = 0; i < tiles * A::planes; ++i) ring[d][i] = 0;
    int left = steps + GY - 1, full = 1 - GY;
    const auto turn = [&](auto newest) {
      constexpr int slot = decltype(newest)::value;
      --left;
      if (buffers > 1 && left) load(words[(slot + 1) % buffers]);
      take<slot>(job, words[slot % buffers]);
      if (buffers == 1 && left) load(words[0]);
      if (++full > 0) {
        uint32_t upper[4], lower[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) columns<slot>(job, w, upper[w], lower[w]);
        store.step(upper, lower);
      }
      return left > 0;
    };
    while ((turn(std::integral_constant<int, Newest>{}) && ...)) {
    }
  }
};

template <typename T, int GX, int GY>
__global__ void __launch_bounds__(128, tuning::resident(sizeof(T), GY)) blur(const __grid_constant__ Launch launch) {
  using A = Arithmetic<T>;
  using S = Strip<T, GX, GY>;
  __shared__ uint8_t band_storage[band_bytes<T>(GX, GY)];
  __shared__ int maps[4][S::window / sizeof(T)];
  const int set = find_set(launch);
  const SetJob& given = launch.jobs[set];
  const Task task(given);
  const int lane = threadIdx.x % 32, radius = launch.axes[set][1].radius;

  // The first rows are asked for before all else. A border value lies above and below the frame too.
  const bool inside =
      !task.edge && (given.view.border != Border::constant ||
                     (task.y >= radius && task.y - radius + (task.steps + GY - 1) * step_rows <= given.view.height));
  const int x = task.x - given.pad + lane % 4 * 8;
  int y = task.y - radius + lane / 4;
  const int* const map = maps[threadIdx.x / 32] + lane % 4 * 8 / int(sizeof(T));
  const Rows rows{kept(given.rows.above), kept(given.rows.below), kept(given.rows.sign), kept(given.rows.last),
                  kept(given.rows.pitch)};
  const unsigned char* const at = reinterpret_cast<const unsigned char*>(kept(reinterpret_cast<long long>(given.view.src))) + x;
  const auto load_in = [&](uint32_t(&words)[2][S::loads]) {
    load_inside(rows, at, y, words);
    y += step_rows;
  };
  const auto load_any = [&](uint32_t(&words)[2][S::loads]) {
    load_anywhere<T>(given, map, y, x, words);
    y += step_rows;
  };
  // Rows are brought into L2 some steps before they are loaded: each lane asks for 32 bytes of the strip.
  const int ahead_x = task.x + lane % 2 * 32;
  int ahead_y = task.y - radius + lane / 2 + step_rows;
  const bool ahead = given.folds && ahead_x < given.row_bytes;
  const unsigned char* const ahead_at = at - x + ahead_x;
  const auto prefetch = [&] {
    if (ahead) asm volatile("prefetch.global.L2 [%0];" ::"l"(ahead_at + rows(ahead_y)));
    ahead_y += step_rows;
  };
  const auto load_in_ahead = [&](uint32_t(&words)[2][S::loads]) {
    load_in(words);
    prefetch();
  };
  const auto load_any_ahead = [&](uint32_t(&words)[2][S::loads]) {
    load_any(words);
    prefetch();
  };
  uint32_t words[S::buffers][2][S::loads];
  if (task.steps > 0) {
    if (inside) {
      load_in(words[0]);
      for (int i = 0; i < tuning::ahead; ++i) prefetch();
    } else {
      map_window<T>(given.view, task.x - given.pad, S::window, maps[threadIdx.x / 32]);
      for (int i = 0; i < tuning::ahead; ++i) prefetch();
      load_any(words[0]);
    }
  }

  const Bands<T> bands{band_storage, GX, GY};
  bands.fill(given, launch.axes[set][0], launch.axes[set][1]);
  if (task.steps <= 0) return;
  S strip;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < S::shifts * A::across * S::chunks * 2; ++i) {
      const int shift = i % S::shifts, part = i / S::shifts % 2, chunk = i / S::shifts / 2 % S::chunks,
                p = i / S::shifts / 2 / S::chunks;
      const int position = 32 * chunk + 4 * part + (lane % 4 * 8 + 16 * shift) % 32;
      strip.across[shift][p][chunk][part][half] = bands.across_word(p, position, half, lane);
    }
#pragma unroll
    for (int p = 0; p < A::down; ++p)
#pragma unroll
      for (int d = 0; d < GY; ++d) strip.down[p][d][half] = bands.down_word(p, d, half, lane);
  }
  SetJob job;  // what the arithmetic looks at
  job.pack = kept(given.pack);
  job.out = kept(given.out);
  job.scale0 = kept(given.scale0);
  job.scale1 = kept(given.scale1);
  job.rounding = kept(given.rounding);
  job.mask = kept(given.mask);
  job.most = kept(given.most);
  job.final_shift = kept(given.final_shift);
  job.view.max_value = kept(given.view.max_value);
  job.view.shift = kept(given.view.shift);
  Store<T, tuning::streams(sizeof(T), GX, GY)> store(given, task.x, task.y);
  if (inside)
    strip.march(job, store, task.steps, words, load_in_ahead, std::make_integer_sequence<int, GY>{});
  else
    strip.march(job, store, task.steps, words, load_any_ahead, std::make_integer_sequence<int, GY>{});
}

/// Words at bytes x, x + 16, x + 32 … of row y, anywhere.
template <typename T, int N>
__device__ __forceinline__ void load_row(const SetJob& job, bool inside, int y, int x, uint32_t (&words)[N]) {
  const SetView& view = job.view;
  const int row = far_index(y, view.height, view.border);
  const unsigned char* const at = view.src + row * view.src_pitch + x;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int byte = x + 16 * j;
    words[j] = 0;
    if (row >= 0 && (inside || (job.words && byte >= 0 && byte + 4 <= job.row_bytes)))
      words[j] = load_word(at + 16 * j);
    else if (byte > -job.reach - 4 && byte < job.row_bytes + job.reach)
      words[j] = edge_word<T>(view, row, byte);
  }
}

constexpr int loads_ahead = 4;  ///< groups that the kernel for large windows loads at a time

/// Shared memory of `blur_large`, in bytes from its start: fragments of the matrices, then each warp's ring, then the bands, which
/// are only needed before the ring is (they may lie in it).
template <typename T>
struct LargeLayout {
  using A = Arithmetic<T>;
  static constexpr int margin = (A::blocks - 1) * int(sizeof(T));  ///< zero groups on either side of the matrix across
  static constexpr int fragment = 2 * 32 * 4;
  static constexpr int ring_group = 16 * 32 * 4;

  int loads;  ///< groups to load for a strip, a multiple of loads_ahead
  int down, ring, bands, size;

  __host__ __device__ LargeLayout(int gx, int gy, int warps) {
    loads = (gx + margin + loads_ahead - 1) / loads_ahead * loads_ahead;
    down = (margin + loads) * A::across * fragment;
    ring = down + gy * A::down * fragment;
    bands = ring;
    const int rings = warps * gy * ring_group, band = band_bytes<T>(gx, gy);
    size = ring + (rings > band ? rings : band);
  }
};

/// For any window: matrices and rings in shared memory.
template <typename T>
__global__ void __launch_bounds__(32 * max_warps, 2) blur_large(const __grid_constant__ Launch launch) {
  using A = Arithmetic<T>;
  constexpr int apart = sizeof(T), tiles = 2 * A::blocks;
  extern __shared__ uint4 shared[];
  unsigned char* const memory = reinterpret_cast<unsigned char*>(shared);

  const int set = find_set(launch), gx = launch.gx, gy = launch.gy;
  const SetJob& job = launch.jobs[set];
  const Task task(job);
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4;
  const LargeLayout<T> layout(gx, gy, warps);
  uint32_t* const across = reinterpret_cast<uint32_t*>(memory);              // [margin + group][product][lane][half]
  uint32_t* const down = reinterpret_cast<uint32_t*>(memory + layout.down);  // [group][byte][lane][half]

  const Bands<T> bands{memory + layout.bands, gx, gy};
  bands.fill(job, launch.axes[set][0], launch.axes[set][1]);
  for (int i = threadIdx.x; i < (layout.margin + layout.loads) * A::across * 64; i += blockDim.x) {
    const int group = i / (64 * A::across) - layout.margin;
    across[i] = group >= 0 && group < gx ? bands.across_word(i / 64 % A::across, 16 * group + i / 2 % 4 * 4, i % 2, i / 2 % 32) : 0;
  }
  for (int i = threadIdx.x; i < gy * A::down * 64; i += blockDim.x)
    down[i] = bands.down_word(i / 64 % A::down, i / (64 * A::down), i % 2, i / 2 % 32);
  __syncthreads();

  uint4* const ring = reinterpret_cast<uint4*>(memory + layout.ring + warp * gy * layout.ring_group) + lane;  // [group][4][lane]
  const int x = task.x - job.pad + lane % 4 * 4;
  const int radius = launch.axes[set][1].radius;
  const bool interior = !task.edge;
  const int groups = task.steps > 0 ? task.steps + gy - 1 : 0;
  Store<T, true> store(job, task.x, task.y);
  int slot = 0;  // of the ring, to be written next
  for (int q = 0; q < groups; ++q) {
    const int y = task.y - radius + q * step_rows + g;
    int row_sums[A::blocks][2][A::across][4] = {};
    uint32_t next[2][loads_ahead];
    load_row<T>(job, interior, y, x, next[0]);
    load_row<T>(job, interior, y + 8, x, next[1]);
#pragma unroll 1
    for (int j = 0; j < layout.loads; j += loads_ahead) {
      uint32_t words[2][loads_ahead];
#pragma unroll
      for (int k = 0; k < 2 * loads_ahead; ++k)
        words[k / loads_ahead][k % loads_ahead] = sizeof(T) == 2 && job.most != ~0u
                                                      ? __vminu2(next[k / loads_ahead][k % loads_ahead] & job.mask, job.most)
                                                      : next[k / loads_ahead][k % loads_ahead];
      if (j + loads_ahead < layout.loads) {
        load_row<T>(job, interior, y, x + 16 * (j + loads_ahead), next[0]);
        load_row<T>(job, interior, y + 8, x + 16 * (j + loads_ahead), next[1]);
      }
#pragma unroll
      for (int k = 0; k < loads_ahead; ++k)
#pragma unroll
        for (int b = 0; b < A::blocks; ++b)
#pragma unroll
          for (int p = 0; p < A::across; ++p) {
            const uint2 matrix =
                reinterpret_cast<const uint2*>(across)[((layout.margin + j + k - b * apart) * A::across + p) * 32 + lane];
            const uint32_t a[2] = {matrix.x, matrix.y};
            mma(row_sums[b][0][p], a, words[0][k]);
            mma(row_sums[b][1][p], a, words[1][k]);
          }
    }
    uint32_t packed[16];
#pragma unroll
    for (int i = 0; i < tiles; ++i) A::split(job, row_sums[i / 2][0], row_sums[i / 2][1], i % 2, &packed[i * A::planes]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      ring[(slot * 4 + i) * 32] = make_uint4(packed[4 * i], packed[4 * i + 1], packed[4 * i + 2], packed[4 * i + 3]);
    slot = slot + 1 < gy ? slot + 1 : 0;
    if (q < gy - 1) continue;

    int sums[4][A::tiles][A::sums][4] = {};
#pragma unroll 1
    for (int d = 0, from = slot; d < gy; ++d) {
      uint32_t a[A::down][2];
#pragma unroll
      for (int byte = 0; byte < A::down; ++byte) {
        const uint2 matrix = reinterpret_cast<const uint2*>(down)[(d * A::down + byte) * 32 + lane];
        a[byte][0] = matrix.x, a[byte][1] = matrix.y;
      }
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const uint4 rows = ring[(from * 4 + w) * 32];
        const uint32_t row[4] = {rows.x, rows.y, rows.z, rows.w};
#pragma unroll
        for (int tile = 0; tile < A::tiles; ++tile)
#pragma unroll
          for (int byte = 0; byte < A::down; ++byte)
#pragma unroll
            for (int p = 0; p < A::planes; ++p) mma(sums[w][tile][p + byte], a[byte], row[tile * A::planes + p]);
      }
      from = from + 1 < gy ? from + 1 : 0;
    }
    uint32_t upper[4], lower[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) A::finish(job, sums[w], upper[w], lower[w]);
    store.step(upper, lower);
  }
}

// ---- Host -----------------------------------------------------------------------------------------------------------------------

using Kernel = void (*)(Launch);

struct Class {
  int gx, gy, window;
  Kernel kernel;
};

template <typename T, int GX, int GY>
constexpr Class class_of() {
  return {GX, GY, Strip<T, GX, GY>::window, blur<T, GX, GY>};
}

/// Kernels with their window in registers, the cheapest first.
template <typename T>
std::vector<Class> classes() {
  if constexpr (sizeof(T) == 1)
    return {class_of<T, 2, 2>(), class_of<T, 4, 2>(), class_of<T, 4, 3>(), class_of<T, 6, 2>(), class_of<T, 10, 3>()};
  else
    return {class_of<T, 4, 2>(), class_of<T, 6, 3>()};
}

class GaussianFilter final : public CudaFilter {
 public:
  explicit GaussianFilter(cudavision::detail::GaussianPlan plan) : CudaFilter(plan.geometry), plan_(std::move(plan)) {}

  /// Chooses the kernel and learns what the device holds of it.
  Status prepare() {
    const FormatInfo& format = info(geometry().format);
    const int sample_bytes = format.sample_bytes();
    launch_.sets = format.set_count;
    for (int i = 0; i < format.set_count; ++i) {
      SetJob& job = launch_.jobs[i];
      const auto &x = plan_.sets[i].x, &y = plan_.sets[i].y;
      job.stride = format.sets[i].channels * sample_bytes;
      job.reach = x.radius() * job.stride;
      job.pad = (job.reach + 7) / 8 * 8;
      launch_.gx = std::max(launch_.gx, (job.pad + 16 * sample_bytes + job.reach + 15) / 16);
      launch_.gy = std::max(launch_.gy, (2 * y.radius() + 16 + 15) / 16);
      const bool identity_x = x.radius() == 0, identity_y = y.radius() == 0;
      fill(launch_.axes[i][0], x, 1);
      fill(launch_.axes[i][1], y, sample_bytes == 1 ? 1 : 1 << 15);
      job.pack = identity_x ? 0x4302 : 0x5410;
      job.out = identity_y ? 0x51 : 0x62;
      job.scale0 = identity_x ? 1u << 16 : 1;
      job.scale1 = identity_x ? 1u << 24 : 1u << 8;
      job.final_shift = 8 + format.shift - int(identity_y);
      job.rounding = 1u << (15 + format.shift);
      job.mask = sample_bytes == 1 ? ~0u : ((0xffffu << format.shift) & 0xffffu) * 0x10001u;
      job.most = sample_bytes == 1 ? ~0u : (uint32_t(format.max_value()) << format.shift) * 0x10001u;
    }
    return sample_bytes == 1 ? choose<uint8_t>() : choose<uint16_t>();
  }

 private:
  static void fill(Axis& axis, const cudavision::detail::GaussianAxis& from, int identity) {
    axis.radius = from.radius();
    for (int i = 0; i <= axis.radius; ++i) axis.weights[i] = uint16_t(from.weights[axis.radius + i]);
    if (axis.radius == 0) axis.weights[0] = uint16_t(identity);
  }

  template <typename T>
  Status choose() {
    int device = 0, shared_limit = 0;
    if (Status status = check(cudaGetDevice(&device), "cannot find the device"); !status.ok()) return status;
    if (Status status =
            check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device), "cannot query the device");
        !status.ok())
      return status;
    if (Status status = check(cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                              "cannot query the device");
        !status.ok())
      return status;
    for (const Class& c : classes<T>())
      if (!kernel_ && launch_.gx <= c.gx && launch_.gy <= c.gy) kernel_ = c.kernel, window_ = c.window;
    if (!kernel_) {
      kernel_ = blur_large<T>;
      for (warps_ = max_warps; warps_ > 1 && LargeLayout<T>(launch_.gx, launch_.gy, warps_).size > shared_limit; --warps_) {
      }
      shared_bytes_ = LargeLayout<T>(launch_.gx, launch_.gy, warps_).size;
      window_ = 16 * LargeLayout<T>(launch_.gx, launch_.gy, warps_).loads;
      if (Status status = check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_),
                                "the device lacks the shared memory for a Gaussian of this size");
          !status.ok())
        return status;
    }
    return check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident_, kernel_, 32 * warps_, shared_bytes_),
                 "cannot query the Gaussian kernel");
  }

  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    const int sample_bytes = format.sample_bytes();
    Launch launch = launch_;
    int strips[3] = {}, strip_steps = 0;
    for (int i = 0; i < format.set_count; ++i) {
      SetJob& job = launch.jobs[i];
      job.view = make_view(src, dst, i, rects[i], plan_.border, plan_.border_value, plan_.filter_alpha);
      const SetView& view = job.view;
      job.row_bytes = view.width * job.stride;
      job.x0 = view.x0 * job.stride;
      job.x1 = view.x1 * job.stride;
      job.origin = job.x0 & ~31;
      const unsigned all = (1u << view.channels) - 1;
      job.keep[0] = job.keep[1] = job.own = 0;
      for (int byte = 0; byte < 8; ++byte) {
        job.own |= unsigned(view.own == all || (view.own >> byte % view.channels & 1)) << byte;
        if (view.filtered != all && !(view.filtered >> (byte / sample_bytes % view.channels) & 1))
          job.keep[byte / 4] |= 0xffu << byte % 4 * 8;
      }
      job.rows = {0, 0, 1, view.height - 1, int(view.src_pitch)};
      if (plan_.border == Border::reflect) job.rows.above = -1, job.rows.below = 2 * view.height - 1, job.rows.sign = -1;
      if (plan_.border == Border::reflect_101) job.rows.below = 2 * view.height - 2, job.rows.sign = -1;
      if (plan_.border == Border::wrap) job.rows.above = view.height, job.rows.below = -view.height;
      // Frames that a window leaves by more than their height, and absurd pitches, take the way of the edges.
      job.words = aligned_to(view.src, view.src_pitch, 4);
      job.pairs = aligned_to(view.src, view.src_pitch, 8);
      job.folds = launch.axes[i][1].radius < view.height && job.rows.pitch == view.src_pitch;
      job.stores = view.own == all && aligned_to(view.dst, view.dst_pitch, 8) &&
                   (view.filtered == all || aligned_to(view.src, view.src_pitch, 8));
      if (rects[i].empty()) continue;
      strips[i] = (job.x1 - job.origin + strip_bytes - 1) / strip_bytes;
      strip_steps += strips[i] * steps_of(rects[i]);
    }
    if (strip_steps == 0) return {};

    // Segments as long as possible, for each begins with rows that only fill the ring, but so that no last wave of blocks is thin.
    const int slots = multiprocessors_ * std::max(1, resident_), overhead = launch_.gy - 1 + tuning::start_steps;
    int blocks = 0, steps = 1;
    const int most = tuning::max_steps(launch.jobs[0].view.channels, launch_.gy);
    for (long best = 0, trial = 1; trial <= most; ++trial) {
      const int needed = arrange(launch, rects, strips, int(trial));
      const long cost = (needed + slots - 1) / slots * (trial + overhead);
      if (best == 0 || cost < best) best = cost, steps = int(trial);
      if (needed <= slots) break;
    }
    blocks = arrange(launch, rects, strips, steps);
    kernel_<<<blocks, 32 * warps_, shared_bytes_, queue.stream>>>(launch);
    return check(cudaGetLastError(), "cannot launch the Gaussian");
  }

  /// Cuts the sets into segments of `steps` steps; returns the number of blocks.
  int arrange(Launch& launch, const SetRects& rects, const int (&strips)[3], int steps) const {
    const int edge_steps = std::max(1, steps / tuning::edge_share);
    int blocks = 0;
    for (int i = 0; i < launch.sets; ++i) {
      SetJob& job = launch.jobs[i];
      job.steps = steps;
      job.edge_steps = edge_steps;
      job.first_block = blocks;
      job.strips = strips[i];
      if (!strips[i]) continue;
      // Strip n's window is [begin + 64 n, begin + 64 n + window).
      const int begin = job.origin - job.pad;
      const int fit = begin + window_ <= job.row_bytes ? (job.row_bytes - begin - window_) / strip_bytes + 1 : 0;
      job.left = std::min(strips[i], begin < 0 ? (-begin + strip_bytes - 1) / strip_bytes : 0);
      if (!job.pairs || !job.folds || fit <= job.left) job.left = strips[i];
      job.edges = job.left + std::max(0, strips[i] - std::max(fit, job.left));
      job.edge_blocks = (job.edges * segments(rects[i], edge_steps) + warps_ - 1) / warps_;
      job.blocks_x = (strips[i] - job.edges + warps_ - 1) / warps_;
      blocks += job.edge_blocks + job.blocks_x * segments(rects[i], steps);
    }
    return blocks;
  }

  static int segments(const Rect& rect, int steps) { return (steps_of(rect) + steps - 1) / steps; }
  static int steps_of(const Rect& rect) { return (rect.height + step_rows - 1) / step_rows; }

  cudavision::detail::GaussianPlan plan_;
  Launch launch_{};  ///< what does not depend on the images
  Kernel kernel_ = nullptr;
  int warps_ = 4, shared_bytes_ = 0;
  int window_ = 0;                          ///< bytes that the kernel loads of a row, for a strip
  int multiprocessors_ = 1, resident_ = 1;  ///< resident: blocks on a multiprocessor
};

}  // namespace
}  // namespace cudavision::cuda

namespace cudavision::detail {

Result<std::unique_ptr<Filter>> make_gaussian_cuda(GaussianPlan plan) {
  auto filter = std::make_unique<cuda::GaussianFilter>(std::move(plan));
  if (Status status = filter->prepare(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace cudavision::detail
