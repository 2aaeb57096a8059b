// SPDX-License-Identifier: LGPL-2.1-or-later
// Unpacks pictures to planes, and packs planes (kernels/core/packing.hpp has the arithmetic of a group). Moves packed
// 4:2:2 whose groups of two pixels do not match the groups of the frame (kernels/core/packed.hpp). Such moves are rare,
// so their kernels are simple.
//
//   ┌─ 128 or 32 groups ─┬ …   A thread has one group of a row. The grid covers the picture. If it has too many rows,
//   │ 2 or 4 rows        │     threads continue further down. fill_ends: a thread has the padding of a row.
#include "kernels/core/packed.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision {
namespace {

template <typename Word, typename Sample, bool packs>
__global__ void move_groups(const __grid_constant__ PackedRows rows) {
  const int group = blockIdx.x * blockDim.x + threadIdx.x;
  if (group >= rows.groups) return;
  for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows.rows; y += gridDim.y * blockDim.y)
    if constexpr (packs)
      pack_group<Word, Sample>(rows, y, group);
    else
      unpack_group<Word, Sample>(rows, y, group);
}

__global__ void shift_all(GroupRows rows) {
  const int group = blockIdx.x * blockDim.x + threadIdx.x;
  if (group >= (rows.width + 1) / 2) return;
  for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < rows.rows; y += gridDim.y * blockDim.y)
    shift_group(rows, y, group);
}

__global__ void fill_ends(GroupRows rows) {
  const int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= rows.rows) return;
  unsigned char* const last = rows.dst + y * rows.dst_pitch + 2 * (rows.width - 1) + rows.luma;
  last[2] = last[0];
}

template <bool packs>
Status move_all(const PackedRows& rows, Queue queue, const char* what) {
  const dim3 block(128, 2), grid(divide_up(rows.groups, 128), min(divide_up(rows.rows, 2), 65535));
  with_packed_types(rows, [&](auto word, auto sample) {
    move_groups<decltype(word), decltype(sample), packs><<<grid, block, 0, queue.stream>>>(rows);
  });
  return cuda::check(cudaGetLastError(), what);
}

}  // namespace

Status unpack_cuda(const PackedRows& rows, Queue queue) {
  return move_all<false>(rows, queue, "cannot launch the unpacking of pixels");
}

Status pack_cuda(const PackedRows& rows, Queue queue) {
  return move_all<true>(rows, queue, "cannot launch the packing of pixels");
}

Status fill_padding_cuda(const GroupRows& rows, Queue queue) {
  fill_ends<<<divide_up(rows.rows, 128), 128, 0, queue.stream>>>(rows);
  return cuda::check(cudaGetLastError(), "cannot launch the filling of padding");
}

Status shift_groups_cuda(const GroupRows& rows, Queue queue) {
  const dim3 block(32, 4), grid(divide_up(divide_up(rows.width, 2), 32), min(divide_up(rows.rows, 4), 65535));
  shift_all<<<grid, block, 0, queue.stream>>>(rows);
  return cuda::check(cudaGetLastError(), "cannot launch the shift of packed pixels");
}

}  // namespace cudavision
