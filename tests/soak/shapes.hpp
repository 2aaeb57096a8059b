// SPDX-License-Identifier: LGPL-2.1-or-later
// The pipelines of filters, and the settings among which their elements change.
#pragma once

#include <string>
#include <vector>

namespace cudavision::soak {

struct Kind {
  std::string name, factory;
  std::vector<std::string> settings;  ///< each sets the same properties, and gives the same bits on both backends
};
const Kind& kind(const std::string& name);

struct Shape {
  std::string name;
  /// Kinds; the first one gets the source. Only the first may depend on the frame before.
  std::vector<std::string> stages;
  std::string launch;  ///< {0}, {1} …: the stages; {m}: a filter for the kind of memory; {o}: a sink
  std::vector<std::vector<int>> outlets;  ///< for each sink, the stages on the way to it
  bool gray = true;                       ///< takes formats that are never in CUDA memory
};
const std::vector<Shape>& shapes();

}  // namespace cudavision::soak
