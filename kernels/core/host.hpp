// SPDX-License-Identifier: LGPL-2.1-or-later
// What the public headers of operations need of the host's classes. nvcc parses each header three times, and device
// code needs only the names.
#pragma once

#ifdef __CUDACC__
#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"

namespace cudavision {
class Filter;
struct Region;
class Status;
template <typename T>
class Result;
}  // namespace cudavision
#else
#include "kernels/core/region.hpp"
#endif
