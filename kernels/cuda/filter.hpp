// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/core/filter.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::cuda {

/// The base of CUDA filters: copies rectangles and shapes. Plans are made and used while their CUDA context is current.
class CudaFilter : public Filter {
 public:
  explicit CudaFilter(const Geometry& geometry);

 protected:
  Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override;
  Status copy_outline(const Image& src, const Image& dst, const SetRects& rects, const Outline& outline, Coverage coverage,
                      Queue queue) override;
};

}  // namespace cudavision::cuda
