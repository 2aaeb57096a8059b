// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <type_traits>

#include "backends.h"  // made by the build: CUDAVISION_CUDA and CUDAVISION_CPU are 1 or 0
#include "kernels/core/filter.hpp"

namespace cudavision {

/// Whether this build contains the backend. A device may still be missing.
constexpr bool built_with(Backend backend) { return backend == Backend::cuda ? CUDAVISION_CUDA : CUDAVISION_CPU; }

/// Calls the function of the chosen backend, or returns a settings error if the build does not contain it. No other
/// code chooses a backend.
template <typename Cuda, typename Cpu>
std::invoke_result_t<Cuda> on_backend(Backend backend, [[maybe_unused]] Cuda cuda, [[maybe_unused]] Cpu cpu) {
#if CUDAVISION_CUDA
  if (backend == Backend::cuda) return cuda();
#endif
#if CUDAVISION_CPU
  if (backend == Backend::cpu) return cpu();
#endif
  return Status::settings(backend == Backend::cuda ? "this build has no CUDA backend"
                                                   : "this build has no CPU backend");
}

}  // namespace cudavision
