// SPDX-License-Identifier: LGPL-2.1-or-later
// A CUDA context that belongs to the application. Include harness.hpp first.
#pragma once

#include "gst/base/compat.hpp"

namespace cudavision::test {

/// (transfer full)
inline GstCudaContext* new_context() {
  EXPECT(gst_cuda_load_library());
  GstCudaContext* context = gst_cuda_context_new(0);
  EXPECT(context);
  return context;
}

inline void give(GstElement* element, GstCudaContext* context) {
  GstContext* message = gst_context_new_cuda_context(context);
  gst_element_set_context(element, message);
  gst_context_unref(message);
}

}  // namespace cudavision::test
