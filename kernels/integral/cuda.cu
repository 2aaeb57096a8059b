// SPDX-License-Identifier: LGPL-2.1-or-later
// Summed-area tables in two steps for each tile of the frame: the first sums its rows and columns, the second writes the table,
//   S(x, y) = S(x, y − 1) + left(y) + the tile's row up to x,
// where left(y) is what lies left of the tile in its row, and the row above the tile is all that lies left above it and what lies
// above its columns, added up. The second step adds up what the first has left behind for the tiles before its own, a few words in
// L2 for each of its rows and columns. A large frame is one launch, in which the first step is some tiles ahead of the second:
// their samples are still in L2 then, reading and writing overlap, and what a tile waits for has long begun. (One step with
// decoupled look-back, after Merrill and Garland, 2016, took longer: there each tile waits for the one before.) A small frame is
// two launches.
#include <algorithm>

#include "kernels/core/luma.hpp"
#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/integral/cuda_tuning.hpp"
#include "kernels/integral/integral.hpp"

namespace cudavision {
namespace cuda::integral {
using cudavision::detail::IntegralPlan;
using cudavision::detail::TableSource;

namespace {

constexpr int max_jobs = 4;
constexpr int threads = 32 * warps;

/// How rows of entries of four bytes, without the zero column, lie to words of 16 bytes.
enum class Lie : std::uint8_t {
  aligned,  ///< all begin with one
  stepped,  ///< each begins an entry further behind one than the row before, row 0 one entry: padded tables whose rows are tight
  other,
};

/// One table: where it comes from, where it goes, and the sums of its tiles.
struct Job {
  const unsigned char* src[3];  ///< the first sample; of red, green and blue for luma
  std::ptrdiff_t src_pitch[3];
  unsigned char* dst;
  std::ptrdiff_t dst_pitch;
  const unsigned char* pixels;  ///< the first pixel, where four pixels of four samples are words of 16 bytes; else nullptr
  int place[3];                 ///< in such a pixel
  int step;                     ///< bytes from sample to sample
  bool quads;                   ///< samples lie side by side, four in an aligned word
  bool whole;                   ///< and rows end with a whole word
  int shift, max_value;         ///< unused low bits of samples; what greater ones count as
  unsigned char* kept;          ///< where the first step puts samples that lie otherwise, as the second reads them; else nullptr
  std::ptrdiff_t kept_pitch;
  int width, height;  ///< samples
  int pad;            ///< 1 for a zero row and column
  int tiles_x, tiles_y, first_tile;
  SumType type;
  bool luma;
  Lie lie;
  void *rows, *columns;   ///< of Line: a row of the frame in a column of tiles; a column of the frame in a row of tiles
  std::uint64_t* totals;  ///< of tiles
  unsigned* summed;       ///< tiles that are summed, of each row of tiles
};

struct Params {
  Job jobs[max_jobs];
  Job again[max_jobs];  ///< the same as the second step finds them
  int count;            ///< jobs
  int tiles;            ///< of all jobs
  int ahead;            ///< tiles that are summed before the first is written; at least a row of them
  int first_block;      ///< of this launch
  bool apart;           ///< the steps are two launches: all tiles are summed before the first is written
  int rows;             ///< of tiles, of all jobs
  unsigned* begun;      ///< tiles that wait no longer; behind it each job's `summed`
  bool interleave;      ///< all jobs have the same tiles: those of one place go together, as they read the same samples
};

/// Four neighbouring samples, packed, and the arithmetic on them. Line holds the sum of any row or column.
template <typename T, bool squared>
struct Four {
  using Line = std::conditional_t<sizeof(T) == 2 && squared, std::uint64_t, std::uint32_t>;
  const std::uint32_t (&words)[sizeof(T)];
  __device__ __forceinline__ explicit Four(const std::uint32_t (&from)[sizeof(T)]) : words(from) {}

  __device__ __forceinline__ Line value(int j) const {
    const std::uint32_t sample = sizeof(T) == 1 ? words[0] >> 8 * j & 0xff : words[j / 2 % sizeof(T)] >> j % 2 * 16 & 0xffff;
    return squared ? Line(sample) * sample : sample;
  }

  /// `start` and the first j + 1.
  __device__ __forceinline__ void prefix(Line start, Line (&sums)[4]) const {
    if constexpr (sizeof(T) == 1) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t first = 0xffffffffu >> (24 - 8 * j);
        sums[j] = squared ? __dp4a(words[0] & first, words[0], start) : __dp4a(words[0], 0x01010101u & first, start);
      }
    } else {
      sums[0] = start + value(0);
#pragma unroll
      for (int j = 1; j < 4; ++j) sums[j] = sums[j - 1] + value(j);
    }
  }
  __device__ __forceinline__ Line sum() const {
    if constexpr (sizeof(T) == 1)
      return __dp4a(words[0], squared ? words[0] : 0x01010101u, 0u);
    else
      return value(0) + value(1) + value(2) + value(3);
  }

  /// Sums of each of the four down a warp's rows. Bytes go two in a word, as 16 × 255 fit 16 bits.
  struct Columns {
    static constexpr bool pairs = sizeof(T) == 1 && !squared;
    Line sums[pairs ? 2 : 4] = {};

    __device__ __forceinline__ void add(const Four& four) {
      if constexpr (pairs) {
        sums[0] += four.words[0];  // even bytes, and 256 times the odd
        sums[1] += __byte_perm(four.words[0], 0, 0x4341);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] += four.value(j);
      }
    }
    template <typename Lines>
    __device__ __forceinline__ Lines sums_of() const {
      const Line even = sums[0] - (sums[1] << 8);
      Lines lines;
#pragma unroll
      for (int j = 0; j < 4; ++j) lines.of[j] = pairs ? (j % 2 ? sums[1] : even) >> j / 2 * 16 & 0xffff : sums[pairs ? 0 : j];
      return lines;
    }
  };
};

/// For each of two quads in each of N rows the sum of the lanes before this one, the second quad after all of the first.
template <typename T, bool squared, int N, typename Line>
__device__ __forceinline__ void exclusive_sums(const Line (&own)[N][2], int lane, Line (&before)[N][2]) {
  if constexpr (sizeof(T) == 1 && !squared) {  // 32 × 4 × 255 fit 16 bits: both at once
    std::uint32_t sums[N];
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = own[n][0] | own[n][1] << 16;
    warp_scan(sums, lane);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      before[n][0] = (sums[n] & 0xffff) - own[n][0];
      before[n][1] = (sums[n] >> 16) - own[n][1] + (__shfl_sync(~0u, sums[n], 31) & 0xffff);
    }
  } else {
    Line sums[2 * N];
#pragma unroll
    for (int n = 0; n < 2 * N; ++n) sums[n] = own[n / 2][n % 2];
    warp_scan(sums, lane);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      before[n][0] = sums[2 * n] - own[n][0];
      before[n][1] = sums[2 * n + 1] - own[n][1] + __shfl_sync(~0u, sums[2 * n], 31);
    }
  }
}

/// The tile of a block.
struct Tile {
  int job, x, y;
};
__device__ __forceinline__ Tile tile_of_block(const Params& p, int number) {
  Tile tile{0, 0, 0};
  if (p.interleave) {
    tile.job = number % p.count;
    number /= p.count;
  } else {
    while (tile.job + 1 < p.count && number >= p.jobs[tile.job + 1].first_tile) ++tile.job;
    number -= p.jobs[tile.job].first_tile;
  }
  tile.y = number / p.jobs[tile.job].tiles_x;
  tile.x = number - tile.y * p.jobs[tile.job].tiles_x;
  return tile;
}

/// What a lane of a warp holds of its R rows: two quads of each, 128 samples from each other, zeros outside of the frame.
template <typename T, int R>
struct Words {
  std::uint32_t of[R][2][sizeof(T)];
};

/// Fetches them where samples do not lie side by side, or not at aligned addresses, or where the frame ends within a quad.
template <typename T, int R>
__device__ __noinline__ void gather(const Job& job, int x, int y, Words<T, R>& words) {
  constexpr int per_word = 4 / sizeof(T);
  using Pixel = std::conditional_t<sizeof(T) == 1, std::uint32_t, uint2>;
  const auto put = [&](int r, int q, const T(&samples)[4]) {
#pragma unroll
    for (int w = 0; w < int(sizeof(T)); ++w) {
      std::uint32_t word = 0;
#pragma unroll
      for (int j = 0; j < per_word; ++j) word |= std::uint32_t(samples[w * per_word + j]) << 8 * int(sizeof(T)) * j;
      words.of[r][q][w] = word;
    }
  };
  if (job.pixels) {  // of four samples: as words
    constexpr int together = 2;
#pragma unroll 1
    for (int r = 0; r < R; r += together) {
      Pixel pixels[together][2][4];
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int q = 0; q < 2; ++q) {
          const int row = y + r + i, at = x + 128 * q;
          const auto* const from = reinterpret_cast<const Pixel*>(job.pixels + row * job.src_pitch[0]) + at;
          const bool inside = row >= 0 && row < job.height;
          if (inside && at + 4 <= job.width) {
#pragma unroll
            for (int v = 0; v < int(sizeof(T)); ++v)
              reinterpret_cast<uint4*>(pixels[i][q])[v] = __ldg(reinterpret_cast<const uint4*>(from) + v);
          } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) pixels[i][q][j] = inside && at + j < job.width ? __ldg(from + j) : Pixel{};
          }
        }
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int q = 0; q < 2; ++q) {
          T samples[4];
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const auto sample = [&](int c) {
              const int place = job.place[c];
              if constexpr (sizeof(T) == 1)
                return int(pixels[i][q][j] >> 8 * place & 0xff);
              else
                return int((place < 2 ? pixels[i][q][j].x : pixels[i][q][j].y) >> place % 2 * 16 & 0xffff);
            };
            samples[j] = T(job.luma ? luma_of(sample(0), sample(1), sample(2)) : sample(0));
          }
          put(r + i, q, samples);
        }
    }
    return;
  }
#pragma unroll 2
  for (int r = 0; r < R; ++r) {
    const int row = y + r;
    const bool inside = row >= 0 && row < job.height;
    T parts[2][4][3] = {};
#pragma unroll
    for (int q = 0; q < 2; ++q)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = x + 128 * q + j;
        if (!inside || column >= job.width) continue;
#pragma unroll
        for (int c = 0; c < 3; ++c)
          if (c == 0 || job.luma)
            parts[q][j][c] =
                __ldg(reinterpret_cast<const T*>(job.src[c] + row * job.src_pitch[c] + std::ptrdiff_t(column) * job.step));
      }
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      T samples[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        samples[j] = job.luma ? T(luma_of(parts[q][j][0], parts[q][j][1], parts[q][j][2])) : parts[q][j][0];
      put(r, q, samples);
    }
  }
}

/// Fetches the samples from column `x` (a multiple of 256) and row `y` on.
template <typename T, int R>
__device__ __forceinline__ void fetch(const Job& job, int x, int y, int lane, Words<T, R>& words) {
  using Vector = std::conditional_t<sizeof(T) == 1, std::uint32_t, uint2>;
  const int own_x = x + 4 * lane;
  if (job.quads && (job.whole || x + tile_width <= job.width)) {
    const unsigned char* at = job.src[0] + y * job.src_pitch[0] + std::ptrdiff_t(own_x) * sizeof(T);
    const bool inside[2] = {own_x < job.width, own_x + 128 < job.width};
#pragma unroll
    for (int r = 0; r < R; ++r, at += job.src_pitch[0]) {
      const bool row_inside = unsigned(y + r) < unsigned(job.height);
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        Vector vector{};
        if (row_inside && inside[q]) vector = *reinterpret_cast<const Vector*>(at + q * 128 * sizeof(T));
        if constexpr (sizeof(T) == 1)
          words.of[r][q][0] = vector;
        else
          words.of[r][q][0] = vector.x, words.of[r][q][1] = vector.y;
      }
    }
  } else {
    Words<T, R> gathered;  // in local memory
    gather<T, R>(job, own_x, y, gathered);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int w = 0; w < int(sizeof(T)); ++w) words.of[r][q][w] = gathered.of[r][q][w];
  }
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q) to_samples(words.of[r][q], job.shift, job.max_value);
  }
}

/// Puts them where the second step reads them.
template <typename T, int R>
__device__ __forceinline__ void keep(const Job& job, int x, int y, const Words<T, R>& words) {
  using Vector = std::conditional_t<sizeof(T) == 1, std::uint32_t, uint2>;
  unsigned char* at = job.kept + y * job.kept_pitch + std::ptrdiff_t(x) * sizeof(T);
#pragma unroll
  for (int r = 0; r < R; ++r, at += job.kept_pitch)
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      if (y + r < 0 || y + r >= job.height || x + 128 * q >= job.width) continue;
      Vector vector;
      if constexpr (sizeof(T) == 1)
        vector = words.of[r][q][0];
      else
        vector = make_uint2(words.of[r][q][0], words.of[r][q][1]);
      *reinterpret_cast<Vector*>(at + q * 128 * sizeof(T)) = vector;
    }
}

/// Writes a warp's row of entries of eight bytes, of which `count` exist: through shared memory, so that lanes write side by side.
template <typename Out, typename Acc>
__device__ __forceinline__ void store_row(int count, unsigned char* row, int lane, const Acc (&sums)[8], void* buffer) {
  struct alignas(16) Pair {
    Out of[2];
  };
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i) static_cast<Pair*>(buffer)[2 * lane + i] = {Out(sums[4 * q + 2 * i]), Out(sums[4 * q + 2 * i + 1])};
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = 128 * q + 32 * i + lane;
      if (column < count) reinterpret_cast<Out*>(row)[column] = static_cast<Out*>(buffer)[32 * i + lane];
    }
  }
}

/// The same for entries of four bytes in a whole tile's row that begins `shift` entries (a constant where this is inlined) behind a
/// word of 16 bytes: words are stored whole, their first entries being those of the lane before; the ends of the row one by one.
__device__ __forceinline__ void store_quads(int shift, bool inside, std::uint32_t* row, int lane, const std::uint32_t (&sums)[8]) {
  std::uint32_t entries[2][4];
#pragma unroll
  for (int q = 0; q < 2; ++q)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t own = sums[4 * q + (4 + j - shift) % 4];
      entries[q][j] = j < shift ? __shfl_sync(~0u, own, (lane + 31) % 32) : own;
    }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < shift && lane == 0) entries[1][j] = entries[0][j];
  if (!inside) return;
#pragma unroll
  for (int q = 0; q < 2; ++q)
    if (shift == 0 || q == 1 || lane > 0)
      __stcs(reinterpret_cast<uint4*>(row + 128 * q + 4 * lane - shift),
             make_uint4(entries[q][0], entries[q][1], entries[q][2], entries[q][3]));
  if (shift == 0) return;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (j < shift && lane == 31) row[tile_width - shift + j] = sums[8 - shift + j];
    if (j >= shift && lane == 0) row[j - shift] = sums[j - shift];
  }
}

/// Any row of entries of four bytes.
__device__ __forceinline__ void store_row(int count, std::uint32_t* row, int lane, const std::uint32_t (&sums)[8]) {
  const int shift = int(reinterpret_cast<std::uintptr_t>(row) / 4 % 4);
  if (count < tile_width) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int first = 128 * q + 4 * lane;
      if (shift == 0 && first + 4 <= count) {
        __stcs(reinterpret_cast<uint4*>(row + first), make_uint4(sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]));
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (first + j < count) row[first + j] = sums[4 * q + j];
      }
    }
    return;
  }
  switch (shift) {
    case 0:
      return store_quads(0, true, row, lane, sums);
    case 1:
      return store_quads(1, true, row, lane, sums);
    case 2:
      return store_quads(2, true, row, lane, sums);
    default:
      return store_quads(3, true, row, lane, sums);
  }
}

/// Four neighbouring sums.
template <typename Line>
struct alignas(16) Lines {
  Line of[4];
  __device__ __forceinline__ void operator+=(const Lines& other) {
#pragma unroll
    for (int j = 0; j < 4; ++j) of[j] += other.of[j];
  }
};

template <typename T, typename Line, typename Acc, int R>
struct Shared {
  std::uint32_t words[warps][R][sizeof(T)][tile_width / 4];  ///< of samples
  Lines<Line> columns[warps][tile_width / 4], above[threads * 4 / tile_width][tile_width / 4];
  Acc starts[warps], corners[warps];
  std::uint64_t totals[warps];
};

/// The first step: sums of a tile's rows and columns.
template <bool squared, typename T, typename Line, typename Acc, int R>
__device__ __forceinline__ void sum_lines(const Params& p, const Job& job, const Tile& tile, Shared<T, Line, Acc, R>& shared) {
  using Samples = Four<T, squared>;
  auto& column_sums = shared.columns;
  auto& totals = shared.totals;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int y = (tile.y * warps + warp) * R;
  Words<T, R> words;
  fetch(job, tile.x * tile_width, y - job.pad, lane, words);
  if (job.kept) keep(job, tile.x * tile_width + 4 * lane, y - job.pad, words);

  typename Samples::Columns columns[2];
  Line own = 0;  // the sum of row `lane`
  std::uint64_t total = 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const Samples first(words.of[r][0]), second(words.of[r][1]);
    columns[0].add(first);
    columns[1].add(second);
    const Line sum = warp_sum(Line(first.sum() + second.sum()));
    if (lane == r) own = sum;
    total += sum;
  }
  if (lane < R) static_cast<Line*>(job.rows)[std::ptrdiff_t(tile.x) * job.tiles_y * warps * R + y + lane] = own;
#pragma unroll
  for (int q = 0; q < 2; ++q) column_sums[warp][q * 32 + lane] = columns[q].template sums_of<Lines<Line>>();
  if (lane == 0) totals[warp] = total;
  __syncthreads();
  if (threadIdx.x < tile_width) {
    Line sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += column_sums[w][threadIdx.x / 4].of[threadIdx.x % 4];
    static_cast<Line*>(job.columns)[(std::ptrdiff_t(tile.y) * job.tiles_x + tile.x) * tile_width + threadIdx.x] = sum;
  }
  if (threadIdx.x == 0) {
    total = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) total += totals[w];
    job.totals[tile.y * job.tiles_x + tile.x] = total;
  }
  if (p.apart) return;
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(job.summed + tile.y) : "memory");
}

/// The sum of what `load` gives for first, first + step, … below end, N of them in flight.
template <typename Value, int N, typename Load>
__device__ __forceinline__ Value sum_every(int first, int step, int end, Load load) {
  Value sum{};
#pragma unroll 1
  for (int i = first; i < end; i += N * step) {
    Value some[N];
#pragma unroll
    for (int n = 0; n < N; ++n) some[n] = i + n * step < end ? load(i + n * step) : Value{};
#pragma unroll
    for (int n = 0; n < N; ++n) sum += some[n];
  }
  return sum;
}

/// Until a row of tiles and all above it are summed.
__device__ __forceinline__ void wait_for_rows(const Params& p, const Job& job, int last) {
  if (p.apart) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    return;
  }
  if (threadIdx.x < 32) {
    for (int row = threadIdx.x; row <= last; row += 32) {
      unsigned summed;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(summed) : "l"(job.summed + row) : "memory");
      while (summed < unsigned(job.tiles_x));
    }
  }
  __syncthreads();
}

/// The second step: the tile's part of the table.
template <bool squared, typename T, typename Line, typename Acc, int R>
__device__ __forceinline__ void write_tile(const Params& p, const Job& job, const Tile& tile, Shared<T, Line, Acc, R>& shared) {
  using Samples = Four<T, squared>;
  constexpr int quads = tile_width / 4, groups = threads / quads;  // of threads that share the tiles above
  auto& column_sums = shared.columns;
  auto& above = shared.above;
  auto& starts = shared.starts;
  auto& corners = shared.corners;

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = tile.x * tile_width, y = (tile.y * warps + warp) * R;
  Words<T, R> words;
  if (job.kept) wait_for_rows(p, job, tile.y);
  fetch(job, x, y - job.pad, lane, words);
  if (!job.kept) wait_for_rows(p, job, tile.y);
  unsigned begun = 0;
  if (!p.apart && threadIdx.x == 0) begun = atomicAdd(p.begun, 1);

  // What lies left of row lane % R: lanes share the tiles.
  const std::ptrdiff_t height = std::ptrdiff_t(job.tiles_y) * warps * R;
  const Line* const rows_left = static_cast<const Line*>(job.rows) + y + lane % R;
  Line left = sum_every<Line, 8>(lane / R, 32 / R, tile.x, [&](int i) { return __ldcg(rows_left + i * height); });
#pragma unroll
  for (int d = R; d < 32; d *= 2) left += __shfl_xor_sync(~0u, left, d);
  {  // What lies above each column, and left above the tile.
    const int group = threadIdx.x / quads, quad = threadIdx.x % quads;
    const auto* const columns = static_cast<const Lines<Line>*>(job.columns) + tile.x * quads + quad;
    above[group][quad] =
        sum_every<Lines<Line>, 4>(group, groups, tile.y, [&](int i) { return columns[std::ptrdiff_t(i) * job.tiles_x * quads]; });

    Acc corner = 0;
    for (int j = lane; j < tile.x; j += 32)
      corner += sum_every<Acc, 4>(warp, warps, tile.y, [&](int i) { return Acc(__ldcg(job.totals + i * job.tiles_x + j)); });
    corner = warp_sum(corner);
    const Acc own = warp_sum(lane < R ? Acc(left) : Acc(0));
    if (lane == 0) corners[warp] = corner, starts[warp] = own;
  }
  {
    typename Samples::Columns columns[2];
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        columns[q].add(Samples(words.of[r][q]));
#pragma unroll
        for (int w = 0; w < int(sizeof(T)); ++w) shared.words[warp][r][w][q * 32 + lane] = words.of[r][q][w];
      }
#pragma unroll
    for (int q = 0; q < 2; ++q) column_sums[warp][q * 32 + lane] = columns[q].template sums_of<Lines<Line>>();
  }
  __syncthreads();

  // The row above this warp's: S(x, y − 1).
  Acc sums[8] = {};
  {
    const auto add = [&](const Lines<Line>* lines) {
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const Lines<Line> one = lines[q * 32 + lane];
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[4 * q + j] += one.of[j];
      }
    };
#pragma unroll
    for (int g = 0; g < groups; ++g) add(above[g]);
#pragma unroll 1
    for (int w = 0; w < warp; ++w) add(column_sums[w]);
    Acc edge = 0;
    if (lane < warps) edge = corners[lane] + (lane < warp ? starts[lane] : Acc(0));
    edge = warp_sum(edge);
#pragma unroll
    for (int i = 1; i < 8; ++i)
      if (i != 4) sums[i] += sums[i - 1];
    const Acc own[2] = {sums[3], sums[7]};
    Acc ends[2] = {own[0], own[1]};
    warp_scan(ends, lane);
    const Acc before[2] = {edge + ends[0] - own[0], edge + __shfl_sync(~0u, ends[0], 31) + ends[1] - own[1]};
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += before[i / 4];
  }

  const int rows = min(R, job.height + job.pad - y), count = job.width - x;
  constexpr bool eight = sizeof(Acc) == 8;
  const int entry_bytes = eight && job.type != SumType::f32 ? 8 : 4;
  unsigned char* out = job.dst + y * job.dst_pitch;
  if (job.pad && x == 0 && lane < rows) {  // the zero column
    if (entry_bytes == 8)
      *reinterpret_cast<std::uint64_t*>(out + lane * job.dst_pitch) = 0;
    else
      *reinterpret_cast<std::uint32_t*>(out + lane * job.dst_pitch) = 0;
  }
  out += std::ptrdiff_t(x + job.pad) * entry_bytes;
  // Calls store for each row of the warp, with its number in a group of `together` rows, whose sums over lanes are made at once.
  const auto all_rows = [&](auto number, auto store) {
    constexpr int together = decltype(number)::value;
#pragma unroll 1
    for (int first = 0; first < rows; first += together) {
      std::uint32_t words[together][2][sizeof(T)];
      Line own[together][2], before[together][2];
#pragma unroll
      for (int r = 0; r < together; ++r)
#pragma unroll
        for (int q = 0; q < 2; ++q) {
#pragma unroll
          for (int w = 0; w < int(sizeof(T)); ++w) words[r][q][w] = shared.words[warp][first + r][w][q * 32 + lane];
          own[r][q] = Samples(words[r][q]).sum();
        }
      exclusive_sums<T, squared>(own, lane, before);
#pragma unroll
      for (int r = 0; r < together; ++r, out += job.dst_pitch) {
        const Line start = __shfl_sync(~0u, left, first + r);
#pragma unroll
        for (int q = 0; q < 2; ++q) {
          Line prefix[4];
          Samples(words[r][q]).prefix(before[r][q] + start, prefix);
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[4 * q + j] += prefix[j];
        }
        store(r, first + r < rows);
      }
    }
  };
  constexpr std::integral_constant<int, 2> two;
  constexpr std::integral_constant<int, 4> four;
  const auto entries = [&] { return reinterpret_cast<std::uint32_t*>(out); };
  if constexpr (eight) {
    __syncthreads();
    void* const own = column_sums[warp];
    if (job.type == SumType::f32) {
      all_rows(two, [&](int, bool inside) {
        std::uint32_t rounded[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) rounded[i] = __float_as_uint(float(sums[i]));
        if (inside) store_row(count, entries(), lane, rounded);
      });
    } else {
      all_rows(two, [&](int, bool inside) {
        if (!inside) return;
        if (job.type == SumType::u64)
          store_row<std::uint64_t>(count, out, lane, sums, own);
        else
          store_row<double>(count, out, lane, sums, own);
      });
    }
  } else if (job.lie == Lie::aligned && count >= tile_width) {
    all_rows(four, [&](int, bool inside) { store_quads(0, inside, entries(), lane, sums); });
  } else if (job.lie == Lie::stepped && count >= tile_width) {
    all_rows(four, [&](int r, bool inside) { store_quads((1 + r) % 4, inside, entries(), lane, sums); });
  } else {
    all_rows(two, [&](int, bool inside) {
      if (inside) store_row(count, entries(), lane, sums);
    });
  }
  if (!p.apart && threadIdx.x == 0 && begun == unsigned(p.tiles - 1))  // nobody waits any more
    for (int i = 0; i <= p.rows; ++i) p.begun[i] = 0;
}

/// Both steps of all tiles: `ahead` first steps, then a first and a second in turn, then the other second ones. What a block waits
/// for are blocks before it, and these have begun: blocks begin in the order of their numbers, as CUB's scans rely on too.
template <typename T, bool squared, typename Acc, int R>
__global__ void __launch_bounds__(threads, min_blocks(sizeof(T), sizeof(Acc), R)) sum_tables(const __grid_constant__ Params p) {
  using Line = typename Four<T, squared>::Line;
  __shared__ Shared<T, Line, Acc, R> shared;
  const int block = p.first_block + blockIdx.x, later = block - p.ahead, alternate = 2 * (p.tiles - p.ahead);
  const bool first = later < 0 || (later < alternate && later % 2 == 0);
  const Tile tile = tile_of_block(p, later < 0            ? block
                                     : later >= alternate ? block - p.tiles
                                     : first              ? p.ahead + later / 2
                                                          : later / 2);
  if (first) {
#if __CUDA_ARCH__ >= 900
    if (p.apart) asm volatile("griddepcontrol.launch_dependents;");
#endif
    sum_lines<squared>(p, p.jobs[tile.job], tile, shared);
  } else {
    write_tile<squared>(p, p.again[tile.job], tile, shared);
  }
}

/// The tables of one launch: all sums, or all squares.
class Pass {
 public:
  Status prepare(const IntegralPlan& plan, bool squared) {
    const FormatInfo& format = info(plan.geometry.format);
    const int sample_bytes = format.sample_bytes();
    SumType type = SumType::u32;
    long area = 0;
    for (std::size_t i = 0; i < plan.tables.size(); ++i) {
      const TableInfo& table = plan.tables[i];
      if (table.squared != squared) continue;
      tables_[params_.count++] = int(i);
      type = table.type;
      area += long((table.width + tile_width - 1) / tile_width) * ((table.height + 63) / 64);
    }
    if (params_.count == 0) return {};
    const int warp_rows = choose(sample_bytes, squared, type, area), tile_height = warps * warp_rows;
    const std::size_t line = squared && sample_bytes == 2 ? 8 : 4;
    std::size_t bytes = 0;
    params_.interleave = true;
    std::array<std::size_t, max_jobs> begins{};
    for (int i = 0; i < params_.count; ++i) {
      const TableInfo& table = plan.tables[tables_[i]];
      Job& job = params_.jobs[i];
      job.pad = plan.padded;
      job.width = table.width - job.pad;
      job.height = table.height - job.pad;
      job.type = table.type;
      job.tiles_x = (job.width + tile_width - 1) / tile_width;
      job.tiles_y = (table.height + tile_height - 1) / tile_height;
      job.first_tile = params_.tiles;
      params_.tiles += job.tiles_x * job.tiles_y;
      params_.rows += job.tiles_y;
      params_.interleave = params_.interleave && job.tiles_x == params_.jobs[0].tiles_x && job.tiles_y == params_.jobs[0].tiles_y;
      begins[i] = bytes;
      bytes +=
          (std::size_t(job.tiles_x) * job.tiles_y * (line * (tile_height + tile_width) + sizeof(std::uint64_t)) + 15) / 16 * 16;
      const TableSource& source = plan.sources[tables_[i]];
      if (!source.luma && format.sets[source.set].channels == 1) continue;
      job.kept_pitch = (job.width + 15) / 16 * 16 * sample_bytes;
      bytes += std::size_t(job.kept_pitch) * job.height;
    }
    params_.apart = in_two_launches(area, type == SumType::u32 ? 4 : 8);
    params_.ahead = params_.apart ? params_.tiles : tiles_ahead(params_.tiles, params_.jobs[0].kept_pitch > 0);
    for (int i = 0; i < params_.count; ++i)
      params_.ahead = std::max(params_.ahead, params_.jobs[i].tiles_x * (params_.interleave ? params_.count : 1));
    params_.ahead = std::min(params_.ahead, params_.tiles);
    const std::size_t counters = bytes;
    bytes += sizeof(unsigned) * (params_.rows + 1);
    if (Status status = scratch_.allocate(bytes); !status.ok()) return status;
    FillStream fill;
    params_.begun = reinterpret_cast<unsigned*>(scratch_.data() + counters);
    fill.clear(params_.begun, bytes - counters);
    if (Status status = fill.finish(); !status.ok()) return status;
    unsigned* summed = params_.begun + 1;
    for (int i = 0; i < params_.count; ++i) {
      Job& job = params_.jobs[i];
      const std::size_t tiles = std::size_t(job.tiles_x) * job.tiles_y;
      auto* const at = static_cast<unsigned char*>(scratch_.data()) + begins[i];
      job.summed = summed;
      summed += job.tiles_y;
      job.columns = at;
      job.rows = at + tiles * tile_width * line;
      job.totals = reinterpret_cast<std::uint64_t*>(at + tiles * (tile_width + tile_height) * line);
      if (job.kept_pitch > 0) job.kept = at + (tiles * (line * (tile_height + tile_width) + sizeof(std::uint64_t)) + 15) / 16 * 16;
    }
    return load();
  }

  Status submit(const IntegralPlan& plan, const Image& src, const std::vector<Plane>& tables, Queue queue) {
    if (params_.count == 0) return {};
    const FormatInfo& format = info(plan.geometry.format);
    for (int i = 0; i < params_.count; ++i) {
      Job& job = params_.jobs[i];
      const TableSource& source = plan.sources[tables_[i]];
      const Plane& table = tables[tables_[i]];
      job.luma = source.luma;
      constexpr Role rgb[] = {Role::red, Role::green, Role::blue};
      for (int c = 0; c < (source.luma ? 3 : 1); ++c) {
        const TableSource from = source.luma ? cudavision::detail::find_role(format, rgb[c]) : source;
        const ChannelSet& set = format.sets[from.set];
        job.src[c] = static_cast<const unsigned char*>(src.planes[set.plane].data) + from.channel * format.sample_bytes();
        job.src_pitch[c] = src.planes[set.plane].pitch;
        job.step = set.channels * format.sample_bytes();
        job.place[c] = from.channel;
        const Plane& plane = src.planes[set.plane];
        job.pixels = set.channels == 4 && !set.shares_plane() && aligned_to(plane.data, plane.pitch, 16)
                         ? static_cast<const unsigned char*>(plane.data)
                         : nullptr;
      }
      job.quads = !job.luma && job.step == format.sample_bytes() && aligned_to(job.src[0], job.src_pitch[0], 4 * job.step);
      job.whole = job.width % 4 == 0;
      job.shift = format.shift;
      job.max_value = format.max_value();
      job.dst = static_cast<unsigned char*>(table.data);
      job.dst_pitch = table.pitch;
      const auto begin = reinterpret_cast<std::uintptr_t>(job.dst) / 4 + job.pad, step = std::uintptr_t(table.pitch) / 4;
      job.lie = begin % 4 == 0 && step % 4 == 0 ? Lie::aligned : begin % 4 == 1 && step % 4 == 1 ? Lie::stepped : Lie::other;
    }
    for (int i = 0; i < params_.count; ++i) {
      Job& job = params_.again[i] = params_.jobs[i];
      if (!job.kept) continue;
      job.src[0] = job.kept;
      job.src_pitch[0] = job.kept_pitch;
      job.quads = job.whole = true;
      job.shift = 0;
      job.max_value = 0xffff;
    }
    if (!params_.apart) return launch(0, 2 * params_.tiles, false, queue);
    // The second step may start, and fetch samples, while the first ends.
    const Status status = launch(0, params_.tiles, false, queue);
    return status.ok() ? launch(params_.tiles, params_.tiles, overlap_, queue) : status;
  }

 private:
  template <typename T, bool squared, typename Acc>
  int choose(long area) {
    constexpr int most = most_rows(sizeof(T), squared, sizeof(Acc));
    const int rows = std::min(warp_rows(area), most);
    const auto set = [&](auto constant) {
      constexpr int R = decltype(constant)::value;
      kernel_ = reinterpret_cast<const void*>(&sum_tables<T, squared, Acc, R>);
      return R;
    };
    if (rows <= 4) return set(std::integral_constant<int, 4>());
    return rows <= 8 ? set(std::integral_constant<int, std::min(8, most)>()) : set(std::integral_constant<int, most>());
  }
  /// Chooses the kernels; returns the rows of a warp.
  int choose(int sample_bytes, bool squared, SumType type, long area) {
    const auto of = [&](auto sample) {
      using T = decltype(sample);
      return squared                ? choose<T, true, std::uint64_t>(area)
             : type == SumType::u32 ? choose<T, false, std::uint32_t>(area)
                                    : choose<T, false, std::uint64_t>(area);
    };
    return sample_bytes == 1 ? of(std::uint8_t()) : of(std::uint16_t());
  }

  Status launch(int first_block, int blocks, bool early, Queue queue) {
    params_.first_block = first_block;
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = queue.stream;
    config.attrs = &overlap;
    config.numAttrs = early;
    void* arguments[] = {&params_};
    return check(cudaLaunchKernelExC(&config, kernel_, arguments), "cannot launch the summed-area tables");
  }

  /// Loads the kernel, as a launch must not.
  Status load() {
    int device = 0, major = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaFuncAttributes attributes;
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel_);
    overlap_ = major >= 9;
    return check(error, "cannot load the kernels for summed-area tables");
  }

  Params params_{};
  int tables_[max_jobs] = {};  ///< of the plan, by job
  const void* kernel_ = nullptr;
  bool overlap_ = false;  ///< the device can start a second launch early
  DeviceMemory scratch_;
};

class CudaIntegral final : public Integral {
 public:
  explicit CudaIntegral(IntegralPlan plan) : Integral(plan.geometry, Backend::cuda, plan.tables), plan_(std::move(plan)) {}

  Status prepare() {
    Status status = sums_.prepare(plan_, false);
    return status.ok() ? squares_.prepare(plan_, true) : status;
  }

 private:
  Status compute(const Image& src, const std::vector<Plane>& tables, Queue queue) override {
    Status status = sums_.submit(plan_, src, tables, queue);
    return status.ok() ? squares_.submit(plan_, src, tables, queue) : status;
  }

  const IntegralPlan plan_;
  Pass sums_, squares_;
};

}  // namespace
}  // namespace cuda::integral

namespace detail {

Result<std::unique_ptr<Integral>> make_integral_cuda(IntegralPlan plan) {
  auto integral = std::make_unique<cuda::integral::CudaIntegral>(std::move(plan));
  if (Status status = integral->prepare(); !status.ok()) return status;
  return std::unique_ptr<Integral>(std::move(integral));
}

}  // namespace detail
}  // namespace cudavision
