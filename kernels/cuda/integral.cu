// SPDX-License-Identifier: LGPL-2.1-or-later
// Summed-area tables in two passes over the frame: the first sums the rows and columns of tiles, the second writes the table, with
//   S(x, y) = S(x, y − 1) + left(y) + the tile's row up to x,
// where left(y) is what lies left of the tile in its row, and the row above the tile is all that lies left above it and what lies
// above its columns, added up. The second pass adds up what the first has left behind for the tiles before its own, a few words in L2
// for each of its rows and columns, so that no block waits for another; some of the samples it still finds in L2. One pass with
// decoupled look-back (tiles by ticket, after Merrill and Garland, 2016) reads them once, but took longer: its chains of waiting stand
// before the writing, and hold the registers and shared memory that others would write with.
#include "../integral.hpp"

#include <algorithm>

#include "../luma.hpp"
#include "filter.hpp"
#include "integral_tuning.hpp"
#include "memory.hpp"
#include "pixels.cuh"

namespace cudavision {
namespace cuda::integral {
using cudavision::detail::IntegralPlan;
using cudavision::detail::TableSource;

namespace {

constexpr int max_jobs = 4;
constexpr int threads = 32 * warps;

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
  int shift;                    ///< unused low bits of samples
  unsigned char* kept;          ///< where the first pass puts samples that lie otherwise, as the second reads them; else nullptr
  std::ptrdiff_t kept_pitch;
  int width, height;  ///< samples
  int pad;            ///< 1 for a zero row and column
  int tiles_x, tiles_y, first_tile;
  SumType type;
  bool luma;
  bool wide;  ///< entries are stored as words of 16 bytes
  void *rows, *columns;   ///< of Line: a row of the frame in a column of tiles; a column of the frame in a row of tiles
  std::uint64_t* totals;  ///< of tiles
};

struct Params {
  Job jobs[max_jobs];
  int count;        ///< jobs
  int tiles;        ///< of all jobs
  bool interleave;  ///< all jobs have the same tiles: those of one place go together, as they read the same samples
};

template <typename Value>
__device__ __forceinline__ Value warp_sum(Value value) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Value) == 4) {
    value = __reduce_add_sync(~0u, value);
  } else
#endif
  {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
  }
  return value;
}

/// Inclusive sums over the lanes, of N values at once.
template <int N, typename Value>
__device__ __forceinline__ void warp_scan(Value (&values)[N], int lane) {
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    Value others[N];
#pragma unroll
    for (int n = 0; n < N; ++n) others[n] = __shfl_up_sync(~0u, values[n], d);
#pragma unroll
    for (int n = 0; n < N; ++n) values[n] += lane >= d ? others[n] : Value(0);
  }
}

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
        sums[0] += __byte_perm(four.words[0], 0, 0x4240);
        sums[1] += __byte_perm(four.words[0], 0, 0x4341);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] += four.value(j);
      }
    }
    template <typename Lines>
    __device__ __forceinline__ Lines sums_of() const {
      Lines lines;
#pragma unroll
      for (int j = 0; j < 4; ++j) lines.of[j] = pairs ? sums[j % 2] >> j / 2 * 16 & 0xffff : sums[pairs ? 0 : j];
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
            parts[q][j][c] = __ldg(reinterpret_cast<const T*>(job.src[c] + row * job.src_pitch[c] + std::ptrdiff_t(column) * job.step));
      }
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      T samples[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) samples[j] = job.luma ? T(luma_of(parts[q][j][0], parts[q][j][1], parts[q][j][2])) : parts[q][j][0];
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
      const bool row_inside = y + r >= 0 && y + r < job.height;
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
    const std::uint32_t mask = (0xffffu >> job.shift) * 0x10001u;
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int w = 0; w < int(sizeof(T)); ++w) words.of[r][q][w] = words.of[r][q][w] >> job.shift & mask;
  }
}

/// Puts them where the second pass reads them.
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

/// Writes a warp's row of entries, whose first is x of the table: through shared memory, so that lanes write side by side.
template <typename Out, typename Acc>
__device__ __forceinline__ void store_row(const Job& job, int x, unsigned char* row, int lane, const Acc (&sums)[8], unsigned char* buffer) {
  auto* const entries = reinterpret_cast<Out*>(buffer);
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 8; ++i) entries[i / 4 * 128 + lane * 4 + i % 4] = Out(sums[i]);
  __syncwarp();
  const int width = job.width + job.pad;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int column = lane + 32 * i;
    if (x + column < width) reinterpret_cast<Out*>(row)[x + column] = entries[column];
  }
}

/// Four neighbouring sums.
template <typename Line>
struct alignas(16) Lines {
  Line of[4];
};

/// The first pass: sums of each tile's rows and columns.
template <typename T, bool squared, int R>
__global__ void __launch_bounds__(threads) sum_lines(const __grid_constant__ Params p) {
  using Samples = Four<T, squared>;
  using Line = typename Samples::Line;
  __shared__ Lines<Line> column_sums[warps][tile_width / 4];
  __shared__ std::uint64_t totals[warps];
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Tile tile = tile_of_block(p, blockIdx.x);
  const Job& job = p.jobs[tile.job];
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
  Line sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += column_sums[w][threadIdx.x / 4].of[threadIdx.x % 4];
  static_cast<Line*>(job.columns)[(std::ptrdiff_t(tile.y) * job.tiles_x + tile.x) * tile_width + threadIdx.x] = sum;
  if (threadIdx.x == 0) {
    total = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) total += totals[w];
    job.totals[tile.y * job.tiles_x + tile.x] = total;
  }
}

/// The second pass: the table.
template <typename T, bool squared, typename Acc, int R>
__global__ void __launch_bounds__(threads, min_blocks(sizeof(T), sizeof(Acc))) sum_tiles(const __grid_constant__ Params p) {
  using Samples = Four<T, squared>;
  using Line = typename Samples::Line;
  constexpr int quads = tile_width / 4, groups = threads / quads;  // of threads that share the tiles above
  extern __shared__ __align__(16) unsigned char shared[];          // a row of entries for each warp, where needed
  __shared__ Lines<Line> column_sums[warps][quads], above[groups][quads];
  __shared__ Acc starts[warps], corners[warps];

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Tile tile = tile_of_block(p, blockIdx.x);
  const Job& job = p.jobs[tile.job];
  const int x = tile.x * tile_width, y = (tile.y * warps + warp) * R;
  Words<T, R> words;
  const auto wait = [] {  // for the first pass
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  };
  if (job.kept) wait();
  fetch(job, x, y - job.pad, lane, words);
  wait();

  // What lies left of row lane % R: lanes share the tiles.
  Line left = 0;
  {
    const std::ptrdiff_t height = std::ptrdiff_t(job.tiles_y) * warps * R;
    const Line* rows = static_cast<const Line*>(job.rows) + y + lane % R + lane / R * height;
#pragma unroll 4
    for (int i = lane / R; i < tile.x; i += 32 / R, rows += 32 / R * height) left += *rows;
#pragma unroll
    for (int d = R; d < 32; d *= 2) left += __shfl_xor_sync(~0u, left, d);
  }
  {  // What lies above each column, and left above the tile.
    const int group = threadIdx.x / quads, quad = threadIdx.x % quads;
    const std::ptrdiff_t row = std::ptrdiff_t(job.tiles_x) * quads;
    const auto* columns = static_cast<const Lines<Line>*>(job.columns) + tile.x * quads + quad + group * row;
    Lines<Line> sum{};
#pragma unroll 4
    for (int i = group; i < tile.y; i += groups, columns += groups * row) {
      const Lines<Line> one = *columns;
#pragma unroll
      for (int j = 0; j < 4; ++j) sum.of[j] += one.of[j];
    }
    above[group][quad] = sum;

    Acc corner = 0;
#pragma unroll 4
    for (int i = warp; i < tile.y; i += warps)
#pragma unroll 1
      for (int j = lane; j < tile.x; j += 32) corner += Acc(job.totals[i * job.tiles_x + j]);
    corner = warp_sum(corner);
    const Acc own = warp_sum(lane < R ? Acc(left) : Acc(0));
    if (lane == 0) corners[warp] = corner, starts[warp] = own;
  }
  {
    typename Samples::Columns columns[2];
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q) columns[q].add(Samples(words.of[r][q]));
#pragma unroll
    for (int q = 0; q < 2; ++q) column_sums[warp][q * 32 + lane] = columns[q].template sums_of<Lines<Line>>();
  }
  __syncthreads();

  // The row above this warp's: S(x, y − 1); and the entry left of it.
  Acc sums[8] = {}, edge;
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
    edge = 0;
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

  const int rows = min(R, job.height + job.pad - y);
  const bool wide = sizeof(Acc) == 4 && job.wide && x + tile_width <= job.width + job.pad;
  unsigned char* out = job.dst + y * job.dst_pitch;
  // The eight entries of a row of the table, from the sums of row r.
  const auto next_row = [&](const Line(&before)[2], int r, Acc(&entries)[8]) {
    const Line start = __shfl_sync(~0u, left, r);
    edge += start;
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      Line prefix[4];
      Samples(words.of[r][q]).prefix(before[q] + start, prefix);
#pragma unroll
      for (int j = 0; j < 4; ++j) entries[4 * q + j] = sums[4 * q + j] += prefix[j];
    }
    if (!job.pad) return;
    // One to the right.
    const Acc ends[2] = {__shfl_sync(~0u, sums[3], (lane + 31) % 32), __shfl_sync(~0u, sums[7], (lane + 31) % 32)};
#pragma unroll
    for (int i = 7; i > 0; --i)
      if (i != 4) entries[i] = entries[i - 1];
    entries[0] = lane > 0 ? ends[0] : edge;
    entries[4] = lane > 0 ? ends[1] : ends[0];
  };
  const auto all_rows = [&](auto store) {
    constexpr int together = sizeof(T) == 1 && !squared ? 4 : 2;  // rows whose sums over lanes are made at once
#pragma unroll
    for (int first = 0; first < R; first += together) {
      Line own[together][2], before[together][2];
#pragma unroll
      for (int r = 0; r < together; ++r)
#pragma unroll
        for (int q = 0; q < 2; ++q) own[r][q] = Samples(words.of[first + r][q]).sum();
      exclusive_sums<T, squared>(own, lane, before);
#pragma unroll
      for (int r = 0; r < together; ++r, out += job.dst_pitch) {
        Acc entries[8];
        next_row(before[r], first + r, entries);
        if (first + r < rows) store(entries);
      }
    }
  };
  if (wide) {
    all_rows([&](const Acc(&e)[8]) {
      auto* const to = reinterpret_cast<uint4*>(out) + x / 4 + lane;
      to[0] = make_uint4(std::uint32_t(e[0]), std::uint32_t(e[1]), std::uint32_t(e[2]), std::uint32_t(e[3]));
      to[32] = make_uint4(std::uint32_t(e[4]), std::uint32_t(e[5]), std::uint32_t(e[6]), std::uint32_t(e[7]));
    });
    return;
  }
  unsigned char* const buffer = shared + warp * (tile_width * (sizeof(Acc) == 4 ? 4 : 8));
  all_rows([&](const Acc(&e)[8]) {
    if constexpr (sizeof(Acc) == 4)
      store_row<std::uint32_t>(job, x, out, lane, e, buffer);
    else if (job.type == SumType::u64)
      store_row<std::uint64_t>(job, x, out, lane, e, buffer);
    else if (job.type == SumType::f64)
      store_row<double>(job, x, out, lane, e, buffer);
    else
      store_row<float>(job, x, out, lane, e, buffer);
  });
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
      job.tiles_x = (table.width + tile_width - 1) / tile_width;
      job.tiles_y = (table.height + tile_height - 1) / tile_height;
      job.first_tile = params_.tiles;
      params_.tiles += job.tiles_x * job.tiles_y;
      params_.interleave = params_.interleave && job.tiles_x == params_.jobs[0].tiles_x && job.tiles_y == params_.jobs[0].tiles_y;
      begins[i] = bytes;
      bytes += (std::size_t(job.tiles_x) * job.tiles_y * (line * (tile_height + tile_width) + sizeof(std::uint64_t)) + 15) / 16 * 16;
      const TableSource& source = plan.sources[tables_[i]];
      if (!source.luma && format.sets[source.set].channels == 1) continue;
      job.kept_pitch = (job.width + 15) / 16 * 16 * sample_bytes;
      bytes += std::size_t(job.kept_pitch) * job.height;
    }
    if (Status status = scratch_.allocate(bytes); !status.ok()) return status;
    for (int i = 0; i < params_.count; ++i) {
      Job& job = params_.jobs[i];
      const std::size_t tiles = std::size_t(job.tiles_x) * job.tiles_y;
      auto* const at = static_cast<unsigned char*>(scratch_.data()) + begins[i];
      job.columns = at;
      job.rows = at + tiles * tile_width * line;
      job.totals = reinterpret_cast<std::uint64_t*>(at + tiles * (tile_width + tile_height) * line);
      if (job.kept_pitch > 0) job.kept = at + (tiles * (line * (tile_height + tile_width) + sizeof(std::uint64_t)) + 15) / 16 * 16;
    }
    buffer_bytes_ = std::size_t(threads) * 8 * (type == SumType::u32 ? 4 : 8);
    return load();
  }

  Status submit(const IntegralPlan& plan, const Image& src, const std::vector<Plane>& tables, Queue queue) {
    if (params_.count == 0) return {};
    const FormatInfo& format = info(plan.geometry.format);
    bool direct = true;  // no row of entries goes through shared memory
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
        job.pixels = set.channels == 4 && !set.shares_plane() && aligned_to(plane.data, plane.pitch, 16) ? static_cast<const unsigned char*>(plane.data)
                                                                                                       : nullptr;
      }
      job.quads = !job.luma && job.step == format.sample_bytes() && aligned_to(job.src[0], job.src_pitch[0], 4 * job.step);
      job.whole = job.width % 4 == 0;
      job.shift = format.shift;
      job.dst = static_cast<unsigned char*>(table.data);
      job.dst_pitch = table.pitch;
      job.wide = job.type == SumType::u32 && aligned_to(table.data, table.pitch, 16);
      direct = direct && job.wide && (job.width + job.pad) % tile_width == 0;
    }
    const char* const what = "cannot launch the summed-area tables";
    Params second = params_;
    for (int i = 0; i < second.count; ++i) {
      Job& job = second.jobs[i];
      if (!job.kept) continue;
      job.src[0] = job.kept;
      job.src_pitch[0] = job.kept_pitch;
      job.quads = job.whole = true;
      job.shift = 0;
    }
    void *first_arguments[] = {&params_}, *second_arguments[] = {&second};
    const dim3 grid(params_.tiles), block(threads);
    if (Status status = check(cudaLaunchKernel(lines_, grid, block, first_arguments, 0, queue.stream), what); !status.ok()) return status;
    // The second pass may start, and fetch samples, while the first ends.
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = direct ? 0 : buffer_bytes_;
    config.stream = queue.stream;
    config.attrs = &early;
    config.numAttrs = overlap_ ? 1 : 0;
    return check(cudaLaunchKernelExC(&config, tiles_, second_arguments), what);
  }

 private:
  template <typename T, bool squared, typename Acc>
  int choose(long area) {
    constexpr int most = most_rows(sizeof(T), sizeof(Acc));
    const int rows = std::min(warp_rows(area), most);
    const auto set = [&](auto constant) {
      constexpr int R = decltype(constant)::value;
      lines_ = reinterpret_cast<const void*>(&sum_lines<T, squared, R>);
      tiles_ = reinterpret_cast<const void*>(&sum_tiles<T, squared, Acc, R>);
      return R;
    };
    if (rows <= 4) return set(std::integral_constant<int, 4>());
    return rows <= 8 ? set(std::integral_constant<int, 8>()) : set(std::integral_constant<int, most>());
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

  /// Loads the kernels, as a launch must not.
  Status load() {
    int device = 0, major = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    for (const void* kernel : {lines_, tiles_}) {
      cudaFuncAttributes attributes;
      if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
    }
    overlap_ = major >= 9;
    return check(error, "cannot load the kernels for summed-area tables");
  }

  Params params_{};
  int tables_[max_jobs] = {};  ///< of the plan, by job
  const void *lines_ = nullptr, *tiles_ = nullptr;
  std::size_t buffer_bytes_ = 0;
  bool overlap_ = false;  ///< the device can start the second pass early
  DeviceMemory scratch_;
};

class CudaIntegral final : public Integral {
 public:
  explicit CudaIntegral(IntegralPlan plan) : Integral(plan.geometry, plan.tables), plan_(std::move(plan)) {}

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
