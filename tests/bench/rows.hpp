// SPDX-License-Identifier: LGPL-2.1-or-later
// The rows of bench_kernels. Each operation lists its rows in NAME_rows.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/filter.hpp"
#include "operations.h"
#include "tests/bench/runner.hpp"

namespace cudavision::bench {

/// Makes the work of a row, which runs on one slot of the ring and owns its plan.
using Operation = std::function<Result<std::function<Status(const Slot&, Queue)>>(const Geometry&, Backend)>;

/// The same work for peers. If `operation` is null, no peer can do it.
struct PeerShape {
  const char* operation = nullptr;
  int taps = 1;
  std::vector<float> weights = {1};
  bool equal_too = false;  ///< the distribution of the samples matters, so peers are also timed on equal samples
  /// Whether the second picture of each slot is from the first slot. Otherwise it is from diff_interval slots before.
  bool with_first = false;
};

/// One operation on one format.
struct Row {
  std::string name;
  Format format;
  Operation make;
  Data data = Data::random;
  double moved = 2;          ///< bytes read and written for each byte of the picture
  double must = 0;           ///< the limit at 8K for time ÷ copy, or for time ÷ floor if there is a floor; 0: none
  double must_us = 0;        ///< the limit at 8K in µs; 0: none
  double must_us_1080p = 0;  ///< the limit for one 1080p frame in µs; 0: none
  double multiplies = 0;     ///< multiply-adds for each filtered sample, if arithmetic is the floor; otherwise 0
  PeerShape peer = {};
  bool only_8k = false;
  bool all_sizes = false;  ///< measured at all sizes, for a plot of time against size
  int table_bytes = 0;     ///< bytes of an entry, if the result is a table instead of a picture
};

/// The distance of the reference in frames. At this distance, the L2 cache no longer holds the reference at 8K. It is
/// odd because the ring has two slots for RGBA, and the reference must be in the other one.
constexpr int diff_interval = 3;

/// Makes an Operation. `make(geometry, backend)` returns a plan or an error, `submit(plan, slot, queue)` runs the plan
/// on a slot.
template <typename Make, typename Submit>
Operation operation(Make make, Submit submit) {
  return [=](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
    auto made = make(geometry, backend);
    if (!made.ok()) return made.error();
    return std::function<Status(const Slot&, Queue)>(
        [submit, plan = std::shared_ptr(std::move(made.value()))](const Slot& slot, Queue queue) {
          return submit(*plan, slot, queue);
        });
  };
}

/// Makes an Operation that submits a filter, for the whole frame or a region.
template <typename Make>
Operation filter(Make make, const Region& region = {}) {
  return operation(make, [region](Filter& filter, const Slot& slot, Queue queue) {
    return filter.submit(slot.src, slot.dst, region, queue);
  });
}

#define CUDAVISION_DECLARE(name) std::vector<Row> name##_rows();
CUDAVISION_DECLARE(local)
CUDAVISION_OPERATIONS(CUDAVISION_DECLARE)
#undef CUDAVISION_DECLARE

}  // namespace cudavision::bench
