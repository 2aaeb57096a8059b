// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "gst/base/compat.hpp"

namespace cudavision {

/// Makes a CUDA context current in this thread for the lifetime of this object. False if that fails.
class CurrentContext {
 public:
  explicit CurrentContext(GstCudaContext* context) : pushed_(gst_cuda_context_push(context)) {}
  ~CurrentContext() {
    if (pushed_) gst_cuda_context_pop(nullptr);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  explicit operator bool() const { return pushed_; }

 private:
  const bool pushed_;
};

}  // namespace cudavision
