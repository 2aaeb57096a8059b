// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/core/filter.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::cuda {

/// What filters on CUDA share: copying. Plans are made and used with their CUDA context current.
class CudaFilter : public Filter {
 public:
  explicit CudaFilter(const Geometry& geometry) : Filter(geometry, Backend::cuda) {}

 protected:
  Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override;
};

}  // namespace cudavision::cuda
