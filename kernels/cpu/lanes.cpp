// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/cpu/lanes.hpp"

#include <algorithm>
#include <atomic>

namespace cudavision::cpu {
namespace {

int lanes_of_processor() {
#ifdef CUDAVISION_AVX512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2"))
    return 16;
  if (__builtin_cpu_supports("avx2")) return 8;
#endif
  return 4;
}

std::atomic<int> limit{16};

}  // namespace

int most_lanes() {
  static const int of_processor = lanes_of_processor();
  return std::min(of_processor, limit.load(std::memory_order_relaxed));
}
void limit_lanes(int most) { limit = most; }

}  // namespace cudavision::cpu
