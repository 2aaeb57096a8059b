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

#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "../luma.hpp"
#include "filter.hpp"
#include "integral_tuning.hpp"
#include "memory.hpp"

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
  int step;           ///< bytes from sample to sample
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
  __device__ unsigned state(Word word) const { return (unsigned(word) & 0xfffc) == tag ? unsigned(word) & 3 : 0; }
};

/// Adds up what `count` tiles before this one published: N chains at once, `apart` words from each other; `before`: words from a tile to
/// the one before it. `last` is the nearest.
template <int N, typename Line>
__device__ __forceinline__ void look_back(const Word* last, std::ptrdiff_t before, int apart, int count, Epoch epoch, Line (&sums)[N]) {
  bool done[N];
#pragma unroll
  for (int n = 0; n < N; ++n) sums[n] = 0, done[n] = count == 0;
  for (int first = 0; first < count; first += look_back_batch) {
    Word words[look_back_batch][N];
#pragma unroll
    for (int i = 0; i < look_back_batch; ++i)
#pragma unroll
      for (int n = 0; n < N; ++n) words[i][n] = load_word(last - min(first + i, count - 1) * before + n * apart);
    bool all = true;
#pragma unroll
    for (int i = 0; i < look_back_batch; ++i)
#pragma unroll
      for (int n = 0; n < N; ++n) {
        if (done[n] || first + i >= count) continue;
        while (epoch.state(words[i][n]) == 0) words[i][n] = load_word(last - (first + i) * before + n * apart);
        sums[n] += Line(words[i][n] >> 16);
        done[n] = epoch.state(words[i][n]) == inclusive;
      }
#pragma unroll
    for (int n = 0; n < N; ++n) all = all && done[n];
    if (all) break;
  }
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

/// Inclusive sums over the lanes.
template <typename Value>
__device__ __forceinline__ Value warp_scan(Value value, int lane) {
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const Value other = __shfl_up_sync(~0u, value, d);
    if (lane >= d) value += other;
  }
  return value;
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

  /// The sums of the first j + 1.
  __device__ __forceinline__ void prefix(Line (&sums)[4]) const {
    if constexpr (sizeof(T) == 1) {
      sums[0] = value(0);
#pragma unroll
      for (int j = 1; j < 4; ++j) {
        const std::uint32_t first = 0xffffffffu >> (24 - 8 * j);
        sums[j] = squared ? __dp4a(words[0] & first, words[0], 0u) : __dp4a(words[0], 0x01010101u & first, 0u);
      }
    } else {
      sums[0] = value(0);
#pragma unroll
      for (int j = 1; j < 4; ++j) sums[j] = sums[j - 1] + value(j);
    }
  }
  __device__ __forceinline__ Line sum() const {
    Line sums[4];
    prefix(sums);
    return sums[3];
  }
};

/// For each of two quads the sum of the lanes before this one, the second after all of the first.
template <typename T, bool squared, typename Line>
__device__ __forceinline__ void exclusive_sums(Line first, Line second, int lane, Line (&before)[2]) {
  if constexpr (sizeof(T) == 1 && !squared) {  // 32 × 4 × 255 fit 16 bits: both at once
    const std::uint32_t sums = warp_scan(first | second << 16, lane);
    before[0] = (sums & 0xffff) - first;
    before[1] = (sums >> 16) - second + (__shfl_sync(~0u, sums, 31) & 0xffff);
  } else {
    const Line left = warp_scan(first, lane), right = warp_scan(second, lane);
    before[0] = left - first;
    before[1] = right - second + __shfl_sync(~0u, left, 31);
  }
}

/// What all threads of a block know of their tile.
struct Tile {
  int job, x, y, index;  ///< index among the job's
  Epoch epoch;
};

__device__ __forceinline__ Tile take_tile(const Params& p) {
  const Word ticket = atomicAdd(p.ticket, Word(1)), launch = ticket / Word(p.tiles);
  int number = int(ticket - launch * Word(p.tiles));
  Tile tile;
  tile.epoch.tag = (unsigned(launch) + 1) << 2 & 0xfffc;
  tile.job = 0;
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
  if (job.luma || job.step != sample_bytes) return 0;
  return int(reinterpret_cast<std::uintptr_t>(job.src[0] + y * job.src_pitch[0] + std::ptrdiff_t(x) * sample_bytes) & 15);
}

/// Brings a row of a tile, samples x … x + 255, to shared memory; zeros for what is outside of the frame. Ends before the copies do.
template <typename T>
__device__ __forceinline__ void stage_row(const Job& job, int x, int y, int lane, unsigned char* stage) {
  if (y < 0 || y >= job.height) {
    for (int at = lane * 16; at < stage_pitch(sizeof(T)); at += 32 * 16) *reinterpret_cast<uint4*>(stage + at) = uint4{};
    return;
  }
  if (!job.luma && job.step == sizeof(T)) {
    const unsigned char* const row = job.src[0] + y * job.src_pitch[0];
    const std::ptrdiff_t begin = std::ptrdiff_t(x) * sizeof(T) - misalignment(job, sizeof(T), x, y);
    for (int chunk = lane; chunk < stage_pitch(sizeof(T)) / 16; chunk += 32) {
      const std::ptrdiff_t at = begin + 16 * chunk, left = job.width * std::ptrdiff_t(sizeof(T)) - at;
      const bool any = left > 0 && at > -16;
      __pipeline_memcpy_async(stage + 16 * chunk, any ? row + at : row - (reinterpret_cast<std::uintptr_t>(row) & 15), 16,
                              any ? 16 - min(16, int(left < 16 ? left : 16)) : 16);
    }
    return;
  }
#pragma unroll 4
  for (int column = lane; column < tile_width; column += 32) {
    T value = 0;
    if (x + column >= 0 && x + column < job.width) {
      const std::ptrdiff_t at = std::ptrdiff_t(x + column) * job.step;
      const auto sample = [&](int i) { return *reinterpret_cast<const T*>(job.src[i] + y * job.src_pitch[i] + at); };
      value = job.luma ? T(luma_of(sample(0), sample(1), sample(2))) : sample(0);
    }
    reinterpret_cast<T*>(stage)[column] = value;
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

template <typename T, bool squared, typename Acc>
__global__ void __launch_bounds__(threads) sum_tiles(const __grid_constant__ Params p) {
  using Samples = Four<T, squared>;
  using Line = typename Samples::Line;
  constexpr int pitch = stage_pitch(sizeof(T));
  extern __shared__ __align__(16) unsigned char shared[];  // the tile's samples, then a row of entries for each warp where needed
  __shared__ Tile shared_tile;
  __shared__ __align__(16) Line column_sums[warps][tile_width], above[tile_width];
  __shared__ Line row_sums[max_tile_height], left[max_tile_height];
  __shared__ Acc shared_corner;

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warp_rows = p.warp_rows, tile_height = warps * warp_rows;
  if (threadIdx.x == 0) shared_tile = take_tile(p);
  __syncthreads();
  const Tile tile = shared_tile;
  const Epoch epoch = tile.epoch;
  const Job& job = p.jobs[tile.job];
  const int x = tile.x * tile_width, y = tile.y * tile_height;  // of the table
  const int from_x = x - job.pad, from_y = y - job.pad;         // of the frame
  unsigned char* const stage = shared + warp * warp_rows * pitch;

  // The samples; each warp stages its own rows.
  for (int r = 0; r < warp_rows; ++r) stage_row<T>(job, from_x, from_y + warp * warp_rows + r, lane, stage + r * pitch);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  if (from_x < 0) {  // the zero column: a copy may have brought what lies before the row
    for (int r = lane; r < warp_rows; r += 32)
      *reinterpret_cast<T*>(stage + r * pitch + misalignment(job, sizeof(T), from_x, from_y + warp * warp_rows + r)) = 0;
    __syncwarp();
  }

  // Sums of the tile's rows and columns.
  Line columns[8] = {};
#pragma unroll 4
  for (int r = 0; r < warp_rows; ++r) {
    const int at = misalignment(job, sizeof(T), from_x, from_y + warp * warp_rows + r) + lane * 4 * int(sizeof(T));
    Samples quads[2];
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      quads[q].load(stage + r * pitch, at + q * 128 * int(sizeof(T)), p.shift);
#pragma unroll
      for (int j = 0; j < 4; ++j) columns[4 * q + j] += quads[q].value(j);
    }
    const Line sum = warp_sum(Line(quads[0].sum() + quads[1].sum()));
    if (lane == 0) row_sums[warp * warp_rows + r] = sum;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) column_sums[warp][i / 4 * 128 + lane * 4 + i % 4] = columns[i];
  __syncthreads();

  // Half of the warps look to the left, then up along the corners; half look up, two columns a thread.
  if (threadIdx.x < threads / 2) {
    const int row = threadIdx.x;
    Line sums[1] = {0};
    if (row < tile_height) {
      Word* const entry = job.rows + std::ptrdiff_t(tile.index) * tile_height + row;
      if (tile.x + 1 < job.tiles_x) store_word(entry, epoch.pack(row_sums[row], tile.x == 0 ? inclusive : aggregate));
      look_back<1>(entry - tile_height, tile_height, 0, tile.x, epoch, sums);
      if (tile.x > 0 && tile.x + 1 < job.tiles_x) store_word(entry, epoch.pack(sums[0] + row_sums[row], inclusive));
      left[row] = sums[0];
    }
    asm volatile("bar.sync 1, %0;" ::"n"(threads / 2) : "memory");
    if (warp == 0) {
      std::uint64_t sum = 0, corner = 0;
      if (tile.x > 0) {
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
    const bool last = tile.y + 1 == job.tiles_y;
#pragma unroll
    for (int n = 0; n < 2; ++n)
      if (!last) store_word(entry + n * threads / 2, epoch.pack(own[n], tile.y == 0 ? inclusive : aggregate));
    look_back<2>(entry - before, before, threads / 2, tile.y, epoch, sums);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      if (tile.y > 0 && !last) store_word(entry + n * threads / 2, epoch.pack(sums[n] + own[n], inclusive));
      above[column + n * threads / 2] = sums[n];
    }
  }
  __syncthreads();

  // The row above this warp's: S(x, y − 1).
  Acc sums[8];
  {
    Acc higher[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) higher[i] = above[i / 4 * 128 + lane * 4 + i % 4];
    for (int w = 0; w < warp; ++w)
#pragma unroll
      for (int i = 0; i < 8; ++i) higher[i] += column_sums[w][i / 4 * 128 + lane * 4 + i % 4];
    Acc start = 0;
    for (int r = lane; r < warp * warp_rows; r += 32) start += left[r];
    start = warp_sum(start) + shared_corner;
#pragma unroll
    for (int i = 1; i < 8; ++i)
      if (i != 4) higher[i] += higher[i - 1];
    const Acc first = warp_scan(higher[3], lane), second = warp_scan(higher[7], lane);
    const Acc before[2] = {start + first - higher[3], start + __shfl_sync(~0u, first, 31) + second - higher[7]};
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = higher[i] + before[i / 4];
  }

  const int rows = min(warp_rows, job.height + job.pad - y - warp * warp_rows);
  const bool wide = sizeof(Acc) == 4 && job.wide && x + tile_width <= job.width + job.pad;
  unsigned char* const buffer = shared + tile_height * pitch + warp * (tile_width * (sizeof(Acc) == 4 ? 4 : 8));
  unsigned char* out = job.dst + (y + warp * warp_rows) * job.dst_pitch;
#pragma unroll 2
  for (int r = 0; r < rows; ++r, out += job.dst_pitch) {
    const int row = warp * warp_rows + r;
    const int at = misalignment(job, sizeof(T), from_x, from_y + row) + lane * 4 * int(sizeof(T));
    Line prefixes[2][4], before[2];
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      Samples quad;
      quad.load(stage + r * pitch, at + q * 128 * int(sizeof(T)), p.shift);
      quad.prefix(prefixes[q]);
    }
    exclusive_sums<T, squared>(prefixes[0][3], prefixes[1][3], lane, before);
    const Line start = left[row];
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += Line(prefixes[i / 4][i % 4] + (before[i / 4] + start));
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
    stage_bytes_ = std::size_t(tile_height) * stage_pitch(sample_bytes);
    buffer_bytes_ = std::size_t(threads) * 8 * (type == SumType::u32 ? 4 : 8);
    return check(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, int(stage_bytes_ + buffer_bytes_)),
                 "cannot load the kernel for summed-area tables");
  }

  Status submit(const IntegralPlan& plan, const Image& src, const std::vector<Plane>& tables, Queue queue) {
    if (params_.count == 0) return {};
    const FormatInfo& format = info(plan.geometry.format);
    bool direct = true;  // no row goes through shared memory
    for (int i = 0; i < params_.count; ++i) {
      Job& job = params_.jobs[i];
      const TableSource& source = plan.sources[tables_[i]];
      const Plane& table = tables[tables_[i]];
      job.luma = source.luma;
      constexpr Role rgb[] = {Role::red, Role::green, Role::blue};
      for (int c = 0; c < (source.luma ? 3 : 1); ++c) {
        const TableSource from = source.luma ? detail::find_role(format, rgb[c]) : source;
        const ChannelSet& set = format.sets[from.set];
        job.src[c] = static_cast<const unsigned char*>(src.planes[set.plane].data) + from.channel * format.sample_bytes();
        job.src_pitch[c] = src.planes[set.plane].pitch;
        job.step = set.channels * format.sample_bytes();
      }
      job.dst = static_cast<unsigned char*>(table.data);
      job.dst_pitch = table.pitch;
      job.wide = job.type == SumType::u32 && ((reinterpret_cast<std::uintptr_t>(table.data) | std::uintptr_t(table.pitch)) & 15) == 0;
      direct = direct && job.wide && (job.width + job.pad) % tile_width == 0;
    }
    void* arguments[] = {&params_};
    return check(cudaLaunchKernel(kernel_, dim3(params_.tiles), dim3(threads), arguments, stage_bytes_ + (direct ? 0 : buffer_bytes_),
                                  queue.stream),
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
  std::size_t stage_bytes_ = 0, buffer_bytes_ = 0;
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
