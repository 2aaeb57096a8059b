// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <utility>

#include "kernels/core/filter.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::cuda {

/// The base of CUDA filters: copies rectangles and shapes. The plan's CUDA context must be current whenever the plan is
/// created or used.
class CudaFilter : public Filter {
 public:
  explicit CudaFilter(const Geometry& geometry, bool filter_alpha = false);

 protected:
  Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override;
  Status copy_outline(const Image& src, const Image& dst, const SetRects& rects, const Outline& outline,
                      Coverage coverage, Queue queue) override;
};

/// Makes a filter and calls its load(), which loads kernels and allocates memory.
template <typename F, typename... Arguments>
Result<std::unique_ptr<Filter>> loaded(Arguments&&... arguments) {
  auto filter = std::make_unique<F>(std::forward<Arguments>(arguments)...);
  if (Status status = filter->load(); !status.ok()) return status;
  return std::unique_ptr<Filter>(std::move(filter));
}

}  // namespace cudavision::cuda
