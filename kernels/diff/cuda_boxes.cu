// SPDX-License-Identifier: LGPL-2.1-or-later
// Fills rectangles, the sides of boxes around moving regions.
//
//   grid: a block for each rectangle; its threads process the pixels row by row
#include <algorithm>
#include <iterator>

#include "kernels/diff/cuda_stages.hpp"
#include "kernels/diff/cuda_tuning.hpp"

namespace cudavision::diff {
namespace {

/// Rectangles of one colour.
struct Box {
  unsigned char* data;
  std::ptrdiff_t pitch;
  int width, rows, channels;
  std::uint16_t words[4];  ///< as stored
  std::uint8_t own;        ///< bit c: channel c is written
};
struct Boxes {
  Box boxes[64];  ///< the boxes of one launch
};

template <typename T>
__global__ void fill_boxes(const __grid_constant__ Boxes boxes) {
  const Box& box = boxes.boxes[blockIdx.x];
  for (int at = threadIdx.x; at < box.width * box.rows; at += blockDim.x) {
    const int y = at / box.width, x = at - y * box.width;
    T* const pixel = reinterpret_cast<T*>(box.data + y * box.pitch) + std::ptrdiff_t(x) * box.channels;
    for (int c = 0; c < box.channels; ++c)
      if (box.own >> c & 1) pixel[c] = T(box.words[c]);
  }
}

const void* kernel(int sample_bytes) {
  return sample_bytes == 1 ? reinterpret_cast<const void*>(fill_boxes<std::uint8_t>)
                           : reinterpret_cast<const void*>(fill_boxes<std::uint16_t>);
}

Box box_of(const Image& dst, const Fill& fill) {
  const FormatInfo& format = info(dst.geometry.format);
  const RoleValues values = box_values(format);
  const ChannelSet& set = format.sets[fill.set];
  const Plane& plane = dst.planes[set.plane];
  Box box{};
  box.data = static_cast<unsigned char*>(plane.data) + fill.rect.y * plane.pitch +
             std::ptrdiff_t(fill.rect.x) * set.channels * format.sample_bytes();
  box.pitch = plane.pitch;
  box.width = fill.rect.width;
  box.rows = fill.rect.height;
  box.channels = set.channels;
  for (int c = 0; c < set.channels; ++c) {
    if (set.roles[c] == Role::other) continue;
    box.own |= 1 << c;
    box.words[c] = std::uint16_t(values[std::size_t(set.roles[c])] << format.shift);
  }
  return box;
}

}  // namespace

Status load_boxes(int sample_bytes) {
  return cuda::load_kernel(kernel(sample_bytes), "cannot load the drawing of boxes");
}

Status launch_boxes(const Image& dst, const std::vector<Fill>& fills, cudaStream_t stream) {
  constexpr std::size_t at_once = std::size(Boxes{}.boxes);
  for (std::size_t begin = 0; begin < fills.size(); begin += at_once) {
    Boxes boxes{};
    const int count = int(std::min(at_once, fills.size() - begin));
    for (int i = 0; i < count; ++i) boxes.boxes[i] = box_of(dst, fills[begin + i]);
    void* arguments[] = {&boxes};
    const cudaError_t error = cudaLaunchKernel(kernel(info(dst.geometry.format).sample_bytes()), dim3(unsigned(count)),
                                               dim3(unsigned(tuning.box_threads)), arguments, 0, stream);
    if (Status status = cuda::check(error, "cannot launch the drawing of boxes"); !status.ok()) return status;
  }
  return {};
}

}  // namespace cudavision::diff
