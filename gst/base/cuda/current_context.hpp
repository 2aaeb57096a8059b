// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <type_traits>

#include "gst/base/compat.hpp"
#include "gst/base/owned.hpp"

namespace cudavision {

/// Makes a CUDA context current in this thread for the lifetime of this object. Converts to false if that fails.
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

/// Frees a CUDA object with its context current. Holds a reference to the context.
template <auto free>
struct FreeInContext {
  Owned<GstCudaContext> context;

  template <typename T>
  void operator()(T* object) const {
    if (const CurrentContext current(context.get()); current) (void)free(object);
  }
};

/// A CUDA object of a context, such as an event or a stream, which is freed with `free`; or nullptr.
template <typename Handle, auto free>
using InContext = std::unique_ptr<std::remove_pointer_t<Handle>, FreeInContext<free>>;

/// Takes over `handle`, which may be nullptr.
template <auto free, typename Handle>
InContext<Handle, free> in_context(GstCudaContext* context, Handle handle) {
  return {handle, {new_reference(context)}};
}

}  // namespace cudavision
