// SPDX-License-Identifier: LGPL-2.1-or-later
// Summed-area tables in one pass over the frame: each sample is read once, each entry written once.
//
// The table is cut into tiles, one block each. A block takes the next tile by a ticket, so that all tiles before its own are at work
// or done whatever the order of launch, and waiting for them must end. It publishes the sums of its tile's rows and columns, looks
// back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016; in two dimensions as Emoto, Funasaka,
// Tokura, Honda, Nakano and Ito, 2018) to the left for what lies left of each of its rows and up for what lies above each of its
// columns, publishes the totals, and then has
//   S(x, y) = S(x, y − 1) + left(y) + the tile's row up to x,
// where the row above the tile is the corner + the prefix sums of what lies above the columns, and the corner, S left above the tile,
// is the sum of all left(y) of the tiles above: a third look-back.
// Every published word carries its value and in its low bits the number of the launch and a state: no fences, nothing to be reset.
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
using Word = unsigned long long;  ///< what tiles publish: 48 bits of value, 14 of the launch, 2 of state

namespace {

constexpr int max_jobs = 4;
constexpr int threads = 32 * warps;

/// One table: where it comes from, where it goes, and what its tiles tell each other.
struct Job {
  const unsigned char* src[3];  ///< the first sample; of red, green and blue for luma
  std::ptrdiff_t src_pitch[3];
  unsigned char* dst;
  std::ptrdiff_t dst_pitch;
  const unsigned char* pixels;  ///< the first pixel, where pixels of four samples can be read as words; else nullptr
  int place[3];                 ///< in such a pixel
  int step;                     ///< bytes from sample to sample
  unsigned low_bits, low_mask;  ///< of the first sample's address, and what of it counts: 15, or 0 where samples do not lie side by side
  int width, height;  ///< samples
  int pad;            ///< 1 for a zero row and column
  int tiles_x, tiles_y, first_tile;
  SumType type;
  bool luma;
  bool wide;  ///< entries are stored as words of 16 bytes
  Word *rows, *columns, *corners;  ///< a tile's entries lie together; of corners the low and the high 32 bits
};

struct Params {
  Job jobs[max_jobs];
  int count;        ///< jobs
  int tiles;        ///< of all jobs
  bool interleave;  ///< all jobs have the same tiles: take those of one place together, as they read the same samples
  int shift;        ///< unused low bits of stored samples
  int warp_rows;
  Word* ticket;
};

/// Tile heights are at most this, a thread for each row in half of the block.
constexpr int max_tile_height = threads / 2;

/// Bytes of a staged row: 16 more, as it starts at an aligned address.
constexpr int stage_pitch(int sample_bytes) { return tile_width * sample_bytes + 16; }

constexpr unsigned aggregate = 1, inclusive = 2;

__device__ __forceinline__ Word load_word(const Word* at) {
  Word value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
__device__ __forceinline__ void store_word(Word* at, Word value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

/// The launch and the states of its words.
struct Epoch {
  unsigned tag;
  __device__ Word pack(Word value, unsigned state) const { return value << 16 | tag | state; }
  /// 0: not published in this launch.
  __device__ unsigned state(Word word) const {
    const unsigned state = (unsigned(word) ^ tag) & 0xffff;
    return state < 4 ? state : 0;
  }
};

/// Adds up what `count` tiles before this one published: N chains at once, `apart` words from each other; `before`: words from a tile to
/// the one before it. `last` is the nearest.
template <int N, typename Line>
__device__ __forceinline__ void look_back(const Word* last, std::ptrdiff_t before, int apart, int count, Epoch epoch, Line (&sums)[N]) {
  bool done[N];
#pragma unroll
  for (int n = 0; n < N; ++n) sums[n] = 0, done[n] = false;
  for (int first = 0; first < count; first += look_back_batch) {
    Line part[N];
    bool ends[N], missing;
    do {  // all of them again: what is missing comes within one more round trip
      Word words[look_back_batch][N];
#pragma unroll
      for (int i = 0; i < look_back_batch; ++i)
#pragma unroll
        for (int n = 0; n < N; ++n) words[i][n] = load_word(last - min(first + i, count - 1) * before + n * apart);
      missing = false;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        part[n] = 0;
        bool open = !done[n];
#pragma unroll
        for (int i = 0; i < look_back_batch; ++i) {
          const unsigned state = epoch.state(words[i][n]);
          const bool counts = open & (first + i < count);
          missing |= counts & (state == 0);
          part[n] += counts ? Line(words[i][n] >> 16) : Line(0);
          open &= state != inclusive;
        }
        ends[n] = !open;
      }
    } while (missing);
    bool all = true;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      sums[n] += part[n];
      done[n] = ends[n];
      all = all && done[n];
    }
    if (all) break;
  }
}

/// Starts to copy the first `bytes` of 16 from an aligned address to shared memory, and zeros after them.
__device__ __forceinline__ void start_copy(unsigned char* to, const unsigned char* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(bytes)
               : "memory");
#else
  for (int i = 0; i < 16; ++i) to[i] = i < bytes ? from[i] : 0;
#endif
}
__device__ __forceinline__ void finish_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

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

/// Four neighbouring samples as they are stored, and the arithmetic on them. Line holds the sum of any row or column.
template <typename T, bool squared>
struct Four {
  using Line = std::conditional_t<sizeof(T) == 2 && squared, std::uint64_t, std::uint32_t>;
  std::uint32_t words[sizeof(T)];

  /// `at` has any alignment that holds a sample.
  __device__ __forceinline__ void load(const unsigned char* stage, int at, int shift) {
    const auto* aligned = reinterpret_cast<const std::uint32_t*>(stage) + at / 4;
    std::uint32_t raw[sizeof(T) + 1];
#pragma unroll
    for (int i = 0; i <= int(sizeof(T)); ++i) raw[i] = aligned[i];
#pragma unroll
    for (int i = 0; i < int(sizeof(T)); ++i) words[i] = __funnelshift_r(raw[i], raw[i + 1], at % 4 * 8);
    if (sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < int(sizeof(T)); ++i) words[i] = words[i] >> shift & (0xffffu >> shift) * 0x10001u;
    }
  }

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
    __device__ __forceinline__ Line sum(int j) const {
      if constexpr (pairs) return sums[j % 2] >> j / 2 * 16 & 0xffff;
      return sums[j];
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

/// What all threads of a block know of their tile.
struct Tile {
  int job;          ///< −1: there is no tile left
  int x, y, index;  ///< index among the job's
  Epoch epoch;
};

/// Takes the next ticket. Its word counts the tickets of a launch in its low half, the launches in its high half; each block asks until
/// it gets none, and the last to ask starts the count anew.
__device__ __forceinline__ Tile take_tile(const Params& p) {
  const Word ticket = atomicAdd(p.ticket, Word(1));
  const unsigned taken = unsigned(ticket);
  if (taken == unsigned(p.tiles) + gridDim.x - 1) atomicAdd(p.ticket, (Word(1) << 32) - (taken + 1));
  Tile tile;
  tile.job = taken < unsigned(p.tiles) ? 0 : -1;
  if (tile.job < 0) return tile;
  int number = int(taken);
  tile.epoch.tag = (unsigned(ticket >> 32) + 1) << 2 & 0xfffc;
  if (p.interleave) {
    tile.job = number % p.count;
    number /= p.count;
  } else {
    while (tile.job + 1 < p.count && number >= p.jobs[tile.job + 1].first_tile) ++tile.job;
    number -= p.jobs[tile.job].first_tile;
  }
  const Job& job = p.jobs[tile.job];
  const int group = number / (super_rows * job.tiles_x), top = group * super_rows, rows = min(super_rows, job.tiles_y - top);
  number -= top * job.tiles_x;
  tile.x = number / rows;
  tile.y = top + number % rows;
  tile.index = tile.y * job.tiles_x + tile.x;
  return tile;
}

/// Where in its staged row a tile's row begins.
__device__ __forceinline__ int misalignment(const Job& job, int sample_bytes, int x, int y) {
  return int((job.low_bits + unsigned(y) * unsigned(job.src_pitch[0]) + unsigned(x * sample_bytes)) & job.low_mask);
}

/// Brings rows of a tile to shared memory where samples do not lie side by side as they are needed: x … x + 255, zeros for what is
/// outside of the frame.
template <typename T>
__device__ __noinline__ void gather_rows(const Job& job, int x, int y, int rows, int lane, unsigned char* stage) {
  constexpr int pitch = stage_pitch(sizeof(T)), columns = tile_width / 32;
  using Pixel = std::conditional_t<sizeof(T) == 1, std::uint32_t, uint2>;
  if (job.pixels) {  // whole pixels of four samples
    constexpr int together = 4 / sizeof(T);
    for (int r = 0; r < rows; r += together) {
      Pixel pixels[together][columns];
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int k = 0; k < columns; ++k) {
          const int column = x + lane + 32 * k, row = y + r + i;
          pixels[i][k] = Pixel{};
          if (column >= 0 && column < job.width && row >= 0 && row < job.height)
            pixels[i][k] = __ldg(reinterpret_cast<const Pixel*>(job.pixels + row * job.src_pitch[0]) + column);
        }
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int k = 0; k < columns; ++k) {
          const auto sample = [&](int c) {
            const int place = job.place[c];
            if constexpr (sizeof(T) == 1)
              return int(pixels[i][k] >> 8 * place & 0xff);
            else
              return int((place < 2 ? pixels[i][k].x : pixels[i][k].y) >> place % 2 * 16 & 0xffff);
          };
          reinterpret_cast<T*>(stage + (r + i) * pitch)[lane + 32 * k] = T(job.luma ? luma_of(sample(0), sample(1), sample(2)) : sample(0));
        }
    }
    return;
  }
  for (int r = 0; r < rows; ++r) {
    const int row = y + r;
    T samples[columns][3];
#pragma unroll
    for (int k = 0; k < columns; ++k) {
      const int column = x + lane + 32 * k;
      const bool inside = column >= 0 && column < job.width && row >= 0 && row < job.height;
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        samples[k][c] = 0;
        if (inside && (c == 0 || job.luma))
          samples[k][c] = __ldg(reinterpret_cast<const T*>(job.src[c] + row * job.src_pitch[c] + std::ptrdiff_t(column) * job.step));
      }
    }
#pragma unroll
    for (int k = 0; k < columns; ++k)
      reinterpret_cast<T*>(stage + r * pitch)[lane + 32 * k] =
          job.luma ? T(luma_of(samples[k][0], samples[k][1], samples[k][2])) : samples[k][0];
  }
}

/// The same of any samples; where they lie side by side it ends before the copies do.
template <typename T>
__device__ __forceinline__ void stage_rows(const Job& job, int x, int y, int rows, int lane, unsigned char* stage) {
  constexpr int chunks = stage_pitch(sizeof(T)) / 16;
  if (!job.low_mask) {
    gather_rows<T>(job, x, y, rows, lane, stage);
    return;
  }
#pragma unroll 2
  for (int i = lane; i < rows * chunks; i += 32) {
    const int r = i / chunks, chunk = i - r * chunks, row_y = y + r;
    const bool inside = row_y >= 0 && row_y < job.height;
    const int begin = x * int(sizeof(T)) - misalignment(job, sizeof(T), x, row_y) + 16 * chunk;
    const int left = job.width * int(sizeof(T)) - begin;
    const bool any = inside && left > 0 && begin > -16;
    const unsigned char* const from = job.src[0] + (inside ? row_y : 0) * job.src_pitch[0] + begin;
    // Nothing is read from where there is nothing, but the address must be one.
    start_copy(stage + i * 16, any ? from : reinterpret_cast<const unsigned char*>(reinterpret_cast<std::uintptr_t>(job.src[0]) & ~std::uintptr_t(15)),
               any ? min(left, 16) : 0);
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

/// Rows whose sums over lanes a warp makes at once.
template <typename T, bool squared>
inline constexpr int rows_at_once = sizeof(T) == 1 && !squared ? 4 : 2;

template <typename T, bool squared, typename Acc>
__global__ void __launch_bounds__(threads, min_blocks(sizeof(Acc))) sum_tiles(const __grid_constant__ Params p) {
  using Samples = Four<T, squared>;
  using Line = typename Samples::Line;
  constexpr int pitch = stage_pitch(sizeof(T));
  extern __shared__ __align__(16) unsigned char shared[];  // samples of this tile and the next, then a row of entries for each warp
  __shared__ Tile tiles[2];
  __shared__ __align__(16) Line column_sums[warps][tile_width], above[tile_width];
  __shared__ Line row_sums[max_tile_height], left[max_tile_height];
  __shared__ Acc shared_corner;

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_rows = p.warp_rows, tile_height = warps * warp_rows;
  unsigned char* const buffer = shared + 2 * tile_height * pitch + warp * (tile_width * (sizeof(Acc) == 4 ? 4 : 8));
  // Each warp brings its own rows, and alone reads them.
  const auto start_loading = [&](const Tile& tile, int which) {
    const Job& job = p.jobs[tile.job];
    stage_rows<T>(job, tile.x * tile_width - job.pad, tile.y * tile_height + warp * warp_rows - job.pad, warp_rows, lane,
                  shared + (which * tile_height + warp * warp_rows) * pitch);
  };

  if (threadIdx.x == 0) tiles[0] = take_tile(p);
  __syncthreads();
  if (tiles[0].job < 0) return;
  start_loading(tiles[0], 0);

  for (int which = 0; tiles[which].job >= 0; which ^= 1) {
    const Tile tile = tiles[which];
    const Epoch epoch = tile.epoch;
    const Job& job = p.jobs[tile.job];
    const int x = tile.x * tile_width, y = tile.y * tile_height + warp * warp_rows;  // of the table, the warp's first entry
    const int from_x = x - job.pad, from_y = y - job.pad;                            // of the frame
    unsigned char* const stage = shared + (which * tile_height + warp * warp_rows) * pitch;
    if (threadIdx.x == 0) tiles[which ^ 1] = take_tile(p);

    finish_copies();
    __syncwarp();
    if (from_x < 0) {  // the zero column: a copy may have brought what lies before the row
      for (int r = lane; r < warp_rows; r += 32) *reinterpret_cast<T*>(stage + r * pitch + misalignment(job, sizeof(T), from_x, from_y + r)) = 0;
      __syncwarp();
    }

    // Sums of the tile's rows and columns.
    {
      typename Samples::Columns columns[2];
#pragma unroll 4
      for (int r = 0; r < warp_rows; ++r) {
        const int at = misalignment(job, sizeof(T), from_x, from_y + r) + lane * 4 * int(sizeof(T));
        Line sum = 0;
#pragma unroll
        for (int q = 0; q < 2; ++q) {
          Samples quad;
          quad.load(stage + r * pitch, at + q * 128 * int(sizeof(T)), p.shift);
          columns[q].add(quad);
          sum += quad.sum();
        }
        sum = warp_sum(sum);
        if (lane == 0) row_sums[warp * warp_rows + r] = sum;
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) column_sums[warp][i / 4 * 128 + lane * 4 + i % 4] = columns[i / 4].sum(i % 4);
    }
    __syncthreads();

    // Half of the warps look to the left, then up along the corners; half look up, two columns a thread. What the next tile needs is
    // on its way meanwhile.
    if (threadIdx.x < threads / 2) {
      const int row = threadIdx.x;
      Word* const entry = job.rows + std::ptrdiff_t(tile.index) * tile_height + row;
      const bool mine = row < tile_height, more = tile.x + 1 < job.tiles_x;
      const Line own = mine ? row_sums[row] : 0;
      if (mine && more) store_word(entry, epoch.pack(own, tile.x == 0 ? inclusive : aggregate));
      if (tiles[which ^ 1].job >= 0) start_loading(tiles[which ^ 1], which ^ 1);
      if (mine) {
        Line sums[1];
        look_back<1>(entry - tile_height, tile_height, 0, tile.x, epoch, sums);
        if (tile.x > 0 && more) store_word(entry, epoch.pack(sums[0] + own, inclusive));
        left[row] = sums[0];
      }
      asm volatile("bar.sync 1, %0;" ::"n"(threads / 2) : "memory");
      if (warp == 0) {
        std::uint64_t sum = 0, corner = 0;
        if (tile.x > 0) {
#pragma unroll 1
          for (int r = lane; r < tile_height; r += 32) sum += left[r];
          sum = warp_sum(sum);
          Word* const entry = job.corners + 2 * std::ptrdiff_t(tile.index);
          const auto publish = [&](std::uint64_t value, unsigned state) {
            if (lane < 2) store_word(entry + lane, epoch.pack(value >> 32 * lane & 0xffffffffu, state));
          };
          publish(sum, tile.y == 0 ? inclusive : aggregate);
          for (int first = 1; first <= tile.y; first += 32) {
            const int back = first + lane;
            Word low = 0, high = 0;
            bool whole = false;
            if (back <= tile.y) {
              const Word* const at = entry - 2 * std::ptrdiff_t(back) * job.tiles_x;
              // The two words of an entry may be of different states for a moment.
              do low = load_word(at), high = load_word(at + 1);
              while (epoch.state(low) == 0 || epoch.state(low) != epoch.state(high));
              whole = epoch.state(low) == inclusive;
            }
            const unsigned ends = __ballot_sync(~0u, whole);
            const bool counted = back <= tile.y && (ends == 0 || lane < __ffs(int(ends)));
            corner += warp_sum(counted ? std::uint64_t((high >> 16 << 32) + (low >> 16)) : std::uint64_t(0));
            if (ends) break;
          }
          if (tile.y > 0) publish(corner + sum, inclusive);
        }
        if (lane == 0) shared_corner = Acc(corner);
      }
    } else {
      const int column = threadIdx.x - threads / 2;
      Line own[2] = {0, 0}, sums[2];
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int w = 0; w < warps; ++w) own[n] += column_sums[w][column + n * threads / 2];
      Word* const entry = job.columns + std::ptrdiff_t(tile.index) * tile_width + column;
      const std::ptrdiff_t before = std::ptrdiff_t(job.tiles_x) * tile_width;
      const bool more = tile.y + 1 < job.tiles_y;
#pragma unroll
      for (int n = 0; n < 2; ++n)
        if (more) store_word(entry + n * threads / 2, epoch.pack(own[n], tile.y == 0 ? inclusive : aggregate));
      if (tiles[which ^ 1].job >= 0) start_loading(tiles[which ^ 1], which ^ 1);
      look_back<2>(entry - before, before, threads / 2, tile.y, epoch, sums);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        if (tile.y > 0 && more) store_word(entry + n * threads / 2, epoch.pack(sums[n] + own[n], inclusive));
        above[column + n * threads / 2] = sums[n];
      }
    }
    __syncthreads();

    // The row above this warp's: S(x, y − 1).
    Acc sums[8];
    {
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i] = above[i / 4 * 128 + lane * 4 + i % 4];
#pragma unroll 1
      for (int w = 0; w < warp; ++w)
#pragma unroll
        for (int i = 0; i < 8; ++i) sums[i] += column_sums[w][i / 4 * 128 + lane * 4 + i % 4];
      Acc start = 0;
#pragma unroll 1
      for (int r = lane; r < warp * warp_rows; r += 32) start += left[r];
      start = warp_sum(start) + shared_corner;
#pragma unroll
      for (int i = 1; i < 8; ++i)
        if (i != 4) sums[i] += sums[i - 1];
      const Acc own[2] = {sums[3], sums[7]};
      Acc ends[2] = {own[0], own[1]};
      warp_scan(ends, lane);
      const Acc before[2] = {start + ends[0] - own[0], start + __shfl_sync(~0u, ends[0], 31) + ends[1] - own[1]};
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i] += before[i / 4];
    }

    const int rows = min(warp_rows, job.height - from_y);
    const bool wide = sizeof(Acc) == 4 && job.wide && x + tile_width <= job.width + job.pad;
    unsigned char* out = job.dst + y * job.dst_pitch;
    constexpr int together = rows_at_once<T, squared>;
#pragma unroll 1
    for (int first = 0; first < rows; first += together) {
      Samples quads[together][2];
      Line own[together][2], before[together][2];
#pragma unroll
      for (int r = 0; r < together; ++r) {
        const int at = misalignment(job, sizeof(T), from_x, from_y + first + r) + lane * 4 * int(sizeof(T));
#pragma unroll
        for (int q = 0; q < 2; ++q) {
          quads[r][q].load(stage + (first + r) * pitch, at + q * 128 * int(sizeof(T)), p.shift);
          own[r][q] = quads[r][q].sum();
        }
      }
      exclusive_sums<T, squared>(own, lane, before);
#pragma unroll
      for (int r = 0; r < together; ++r, out += job.dst_pitch) {
        const Line start = left[warp * warp_rows + first + r];
#pragma unroll
        for (int q = 0; q < 2; ++q) {
          Line prefix[4];
          quads[r][q].prefix(before[r][q] + start, prefix);
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[4 * q + j] += prefix[j];
        }
        if (first + r >= rows) break;
        if (wide) {
          auto* const to = reinterpret_cast<uint4*>(reinterpret_cast<std::uint32_t*>(out) + x) + lane;
          to[0] = make_uint4(std::uint32_t(sums[0]), std::uint32_t(sums[1]), std::uint32_t(sums[2]), std::uint32_t(sums[3]));
          to[32] = make_uint4(std::uint32_t(sums[4]), std::uint32_t(sums[5]), std::uint32_t(sums[6]), std::uint32_t(sums[7]));
        } else if constexpr (sizeof(Acc) == 4) {
          store_row<std::uint32_t>(job, x, out, lane, sums, buffer);
        } else {
          if (job.type == SumType::u64)
            store_row<std::uint64_t>(job, x, out, lane, sums, buffer);
          else if (job.type == SumType::f64)
            store_row<double>(job, x, out, lane, sums, buffer);
          else
            store_row<float>(job, x, out, lane, sums, buffer);
        }
      }
    }
    __syncthreads();
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
    params_.shift = format.shift;
    params_.warp_rows = warp_rows(sample_bytes, area);
    const int tile_height = warps * params_.warp_rows;
    std::size_t words = 1;
    params_.interleave = true;
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
      words += std::size_t(job.tiles_x) * job.tiles_y * (tile_height + tile_width + 2);
    }
    if (Status status = scratch_.allocate(words * sizeof(Word), "for summed-area tables"); !status.ok()) return status;
    Word* at = params_.ticket = static_cast<Word*>(scratch_.data());
    ++at;
    for (int i = 0; i < params_.count; ++i) {
      Job& job = params_.jobs[i];
      const std::size_t tiles = std::size_t(job.tiles_x) * job.tiles_y;
      job.columns = at;
      job.rows = job.columns + tiles * tile_width;
      job.corners = job.rows + tiles * tile_height;
      at = job.corners + 2 * tiles;
    }
    choose(sample_bytes, squared, type);
    shared_bytes_ = std::size_t(2) * tile_height * stage_pitch(sample_bytes) + threads * 8 * (type == SumType::u32 ? 4 : 8);
    // The most that the device has, whatever this plan needs: other plans set the same kernel's limit too.
    const char* const what = "cannot load the kernel for summed-area tables";
    int device = 0, processors = 0, limit = 0, resident = 0;
    cudaFuncAttributes attributes;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel_);
    if (error == cudaSuccess)
      error = cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, limit - int(attributes.sharedSizeBytes));
    if (error == cudaSuccess) error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel_, threads, shared_bytes_);
    blocks_ = std::min(params_.tiles, processors * std::max(resident, 1));
    return check(error, what);
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
        job.pixels = set.channels == 4 && !set.shares_plane() && aligned_to(plane.data, plane.pitch, job.step) ? static_cast<const unsigned char*>(plane.data) : nullptr;
      }
      job.low_bits = unsigned(reinterpret_cast<std::uintptr_t>(job.src[0]));
      job.low_mask = !job.luma && job.step == format.sample_bytes() ? 15 : 0;
      job.dst = static_cast<unsigned char*>(table.data);
      job.dst_pitch = table.pitch;
      job.wide = job.type == SumType::u32 && aligned_to(table.data, table.pitch, 16);
    }
    void* arguments[] = {&params_};
    return check(cudaLaunchKernel(kernel_, dim3(blocks_), dim3(threads), arguments, shared_bytes_, queue.stream),
                 "cannot launch the summed-area tables");
  }

 private:
  void choose(int sample_bytes, bool squared, SumType type) {
    const bool small = type == SumType::u32;
    const auto of = [&](auto sample) -> const void* {
      using T = decltype(sample);
      if (squared) return reinterpret_cast<const void*>(&sum_tiles<T, true, std::uint64_t>);
      if (small) return reinterpret_cast<const void*>(&sum_tiles<T, false, std::uint32_t>);
      return reinterpret_cast<const void*>(&sum_tiles<T, false, std::uint64_t>);
    };
    kernel_ = sample_bytes == 1 ? of(std::uint8_t()) : of(std::uint16_t());
  }

  Params params_{};
  int tables_[max_jobs] = {};  ///< of the plan, by job
  const void* kernel_ = nullptr;
  std::size_t shared_bytes_ = 0;
  int blocks_ = 0;  ///< as many as the device holds at once, at most
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
