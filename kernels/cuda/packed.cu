// SPDX-License-Identifier: LGPL-2.1-or-later
// Packed 4:2:2 whose groups of two pixels do not match the groups of the frame (kernels/core/packed.hpp). This is rare,
// so both kernels are simple: a thread copies one group, or the padding of one row.
//
//   shift_all   ┌─ 32 groups ─┬ …   A block has 4 rows.      fill_ends   ┌ 128 rows   A thread copies one byte.
//               │ 4 rows      │     Threads continue                     │ a block
#include "kernels/core/packed.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision {
namespace {

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

}  // namespace

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
