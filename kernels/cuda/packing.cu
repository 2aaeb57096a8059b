// SPDX-License-Identifier: LGPL-2.1-or-later
// Unpacks pictures to planes and packs them (kernels/core/packing.hpp, which has the arithmetic of a group).
//
//   ┌─ 128 groups ─┬ …   A block has 128 groups of two rows, a thread one group. The grid covers the picture. If it has
//   │ 2 rows       │     too many rows, threads continue further down.
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

}  // namespace cudavision
