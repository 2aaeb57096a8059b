// SPDX-License-Identifier: LGPL-2.1-or-later
// The Gaussian for windows that fit in registers: both passes in one kernel, on the integer matrix units.
//
// A block computes a segment: its warps process adjacent strips of 64 bytes and move down together, 16 rows per step.
// Example: 17 taps down (radius 8), so the ring has GY = 2 groups of 16 rows.
//
//   step   1. rows in the tile, across   ring (slot 0, slot 1)   2. rows copied   3. down, store: rows written
//    0     y −  8 … y +  7               group 0   –             group 3          none: the first GY − 1 steps only
//    1     y +  8 … y + 23               group 0   group 1       group 4          y      … y + 15     fill the ring
//    2     y + 24 … y + 39               group 2   group 1       group 5          y + 16 … y + 31
//
//   tile   (shared memory; `rows`, a RowRing)   groups of rows: of the window, and the next groups, which are being
//                                               copied. The first groups_ahead groups are copied before step 0
//   ring   (registers; in Samples and Pixels)   row sums of the last GY groups
//
//   across: out[x][row] = Σ A[x][k] · in[k][row], 16 elements × 8 rows per product, from GX groups of 16 elements
//   down:   out[y][x] = Σ B[y][k] · rows[k][x], 16 rows × 8 elements per product, from the GY groups of 16 rows in it
//   GX, GY: window_groups_x and window_groups_y of the KernelShape (cuda_schedule.hpp, which also explains `lead` and
//           `reach`). A and B are in cuda_bands.cuh
//
//   elements: samples of any format (cuda_samples.cuh), or pixels of four bytes, which need fewer products
//             (cuda_pixels.cuh)
//
// cuda.cpp lists where to change what.
//
// No data crosses lanes between the passes. The first product leaves fragments in a lane. Packed into bytes, these are
// the fragments that the second product needs in this lane, because its terms may be summed in any order. All
// arithmetic is exact.
#include <utility>

#include "kernels/cuda/overlap.hpp"
#include "kernels/cuda/row_ring.cuh"
#include "kernels/gaussian/cuda_pixels.cuh"
#include "kernels/gaussian/cuda_samples.cuh"

namespace cudavision::gaussian {
namespace {

/// Calls turn(std::integral_constant<int, n>{}) with n = 0 … Period − 1, repeatedly, until it returns false.
template <typename Turn, int... N>
__device__ __forceinline__ void repeat(Turn turn, std::integer_sequence<int, N...>) {
  while ((turn(std::integral_constant<int, N>{}) && ...)) {
  }
}

/// The rows of a tile; see kernels/cuda/row_ring.cuh.
template <typename Sample>
struct Rows {
  using T = Sample;
  using Job = SetJob;
  static constexpr bool skips_edges = false, plain_sides = false;

  __device__ __forceinline__ static int source_byte(const SetJob& job, int byte) {
    return gaussian::source_byte(job, byte / int(sizeof(T)), int(sizeof(T)));
  }
};

template <typename Strip>
__global__ void __launch_bounds__(32 * tuning.strip_warps, Strip::blocks_resident)
    blur_strip(const __grid_constant__ KernelParams params) {
  using T = typename Strip::T;
  using Out = Store<T, tuning.stream_stores>;
  constexpr StripLayout layout = Strip::layout;
  constexpr int GY = Strip::groups_down, ahead = tuning.groups_ahead, slots = layout.slots;
  extern __shared__ uint4 shared[];
  unsigned char* const memory = reinterpret_cast<unsigned char*>(shared);
  cuda::let_next_start();
  const int set = find_set(params);
  const SetJob& job = params.jobs[set];
  Segment block(job.schedule, blockIdx.x, 0, 1);
  block.set_position(job.origin, job.view.y0, job.view.y1, strip_bytes * tuning.strip_warps);
  if (block.steps <= 0) return;
  const int lane = threadIdx.x % 32, radius = params.axes[set][1].radius;
  const int groups = block.steps + GY - 1;

  const int limit = min(block.y + block.steps * step_rows, job.view.y1) + radius;
  constexpr int strips = strip_bytes * tuning.strip_warps;
  const int begin = (block.x - job.lead) & ~31, strip_column = block.x - begin;  // 32: a sector of the L2 cache
  const cuda::RowColumns columns(job, begin, strip_column - job.reach,
                                 min(block.x + strips, job.row_end) + job.reach - begin);
  const cuda::RowRing<Rows<T>, tuning.strip_warps, step_rows, strips, layout.pitch> rows(
      job, columns, strip_column, radius, block.y - radius, limit, memory, memory + layout.map);
  const bool sides = rows.has_sides();
  if (sides) rows.make_map();
  const Bands<T> bands{memory + layout.bands, Strip::groups_across, GY};
  bands.fill(params, set, Strip::element_bytes);  // synchronises the block
  cuda::wait_for_previous();
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (i < groups) rows.template copy<false>(i, i);
    cuda::commit();
  }
  Strip strip(job, bands, reinterpret_cast<uint2*>(memory + layout.down + threadIdx.x / 32 * layout.down_size), lane);
  const int x = block.x + int(threadIdx.x) / 32 * strip_bytes;
  Out store(job, x, block.y, memory + layout.out + threadIdx.x / 32 * Out::size);
  const bool active = x < job.x1;

  const int column = x - begin;
  const unsigned char* const lane_rows = memory + lane / 4 * Strip::pitch + column - job.lead + Strip::first_byte(lane);
  int group = 0, slot = 0, next_slot = ahead % slots;
  const auto source = [&](int i) {
    const int offset = radius + lane / 4 + 8 * i, back = GY - 1 - offset / step_rows;
    const int from = slot >= back ? slot - back : slot - back + slots;
    return *reinterpret_cast<const uint4*>(memory + (from * step_rows + offset % step_rows) * Strip::pitch + column +
                                           store.first_byte());
  };
  // `plain`: the block needs no special cases (see RowRing::plain()). This keeps the loop of most blocks short.
  const auto march = [&](auto plain) {
    constexpr bool is_plain = decltype(plain)::value;
    const auto turn = [&](auto newest) {
      constexpr int at = decltype(newest)::value;
      cuda::wait<ahead - 1>();
      __syncthreads();
      if (!is_plain && sides) {
        rows.fill(group, slot);
        __syncthreads();
      }
      if (is_plain || active) strip.template sum_across<at>(lane_rows + slot * (step_rows * Strip::pitch));
      if (group + ahead < groups) rows.template copy<is_plain>(group + ahead, next_slot);
      cuda::commit();
      __syncwarp();  // lanes that copied no row, or a row outside the frame, rejoin the other lanes for the products
      next_slot = next_slot + 1 < slots ? next_slot + 1 : 0;
      if ((is_plain || active) && group >= GY - 1) {
        uint4 values[2];
        strip.template results<at>(store, source, values);
        store.template store_rows<is_plain>(values);
      }
      slot = slot + 1 < slots ? slot + 1 : 0;
      return ++group < groups;
    };
    repeat(turn, std::make_integer_sequence<int, GY>{});
  };
  const bool stores_whole = store.whole && job.stores_16;
  if (__syncthreads_and(stores_whole) && rows.plain())
    march(std::true_type{});
  else
    march(std::false_type{});
}

template <std::size_t... I>
Kernel byte_kernel(int shape, std::index_sequence<I...>) {
  constexpr Kernel kernels[] = {
      blur_strip<Samples<uint8_t, byte_shapes[I].window_groups_x, byte_shapes[I].window_groups_y>>...};
  return kernels[shape];
}

template <std::size_t... I>
Kernel word_kernel(int shape, std::index_sequence<I...>) {
  constexpr Kernel kernels[] = {
      blur_strip<Samples<uint16_t, word_shapes[I].window_groups_x, word_shapes[I].window_groups_y>>...};
  return kernels[shape];
}

template <int Channels, std::size_t... I>
Kernel pixel_kernel(int shape, std::index_sequence<I...>) {
  constexpr Kernel kernels[] = {
      blur_strip<Pixels<Channels, pixel_shapes[I].window_groups_x, pixel_shapes[I].window_groups_y>>...};
  return kernels[shape];
}

}  // namespace

Kernel strip_kernel(int element_bytes, int channels, int shape) {
  if (element_bytes == pixel_bytes) {
    constexpr auto all = std::make_index_sequence<pixel_shapes.size()>();
    return channels == 3 ? pixel_kernel<3>(shape, all) : pixel_kernel<4>(shape, all);
  }
  return element_bytes == 1 ? byte_kernel(shape, std::make_index_sequence<byte_shapes.size()>())
                            : word_kernel(shape, std::make_index_sequence<word_shapes.size()>());
}

}  // namespace cudavision::gaussian
