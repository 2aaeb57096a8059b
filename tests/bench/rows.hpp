// SPDX-License-Identifier: LGPL-2.1-or-later
// The rows of bench_kernels. Each operation lists its own in NAME_rows.cpp.
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

/// What is made once for a row: the work on a place of the ring. It owns its plan.
using Operation = std::function<Result<std::function<Status(const Slot&, Queue)>>(const Geometry&, Backend)>;

/// The same work for peers; none where `operation` is null.
struct PeerShape {
  const char* operation = nullptr;
  int taps = 1;
  std::vector<float> weights = {1};
  bool equal_too = false;  ///< how the samples are distributed matters: peers are timed on equal ones as well
};

/// One operation on one format. A new operation adds rows to rows(), and nothing else.
struct Row {
  std::string name;
  Format format;
  Operation make;
  double moved = 2;       ///< bytes read and written for each byte of the picture
  double must = 0;        ///< the mark at 8K: time ÷ copy, or time ÷ floor where there is a floor; 0: none
  double multiplies = 0;  ///< for each filtered sample, where arithmetic is the floor; else 0
  PeerShape peer = {};
  bool only_8k = false;
  int table_bytes = 0;  ///< of an entry, where the result is a table in place of a picture
};

/// So far back that at 8K the L2 cache no longer holds the frame; odd, since of RGBA the ring has two places: it must be the other.
constexpr int diff_interval = 3;

/// An Operation that submits a filter to the whole frame.
inline Operation filter(std::function<Result<std::unique_ptr<Filter>>(const Geometry&, Backend)> make) {
  return [make](const Geometry& geometry, Backend backend) -> Result<std::function<Status(const Slot&, Queue)>> {
    auto plan = make(geometry, backend);
    if (!plan.ok()) return plan.error();
    return std::function<Status(const Slot&, Queue)>(
        [filter = std::shared_ptr<Filter>(std::move(plan.value()))](const Slot& slot, Queue queue) {
          return filter->submit(slot.src, slot.dst, Region{}, queue);
        });
  };
}

#define CUDAVISION_DECLARE(name) std::vector<Row> name##_rows();
CUDAVISION_DECLARE(local)
CUDAVISION_OPERATIONS(CUDAVISION_DECLARE)
#undef CUDAVISION_DECLARE

}  // namespace cudavision::bench
