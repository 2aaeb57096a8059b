// SPDX-License-Identifier: LGPL-2.1-or-later
// The pipelines of filters, and the settings between which their elements change.
#pragma once

#include <string>
#include <vector>

namespace cudavision::soak {

struct Kind {
  std::string name, factory;
  std::vector<std::string> settings;  ///< each one sets the same properties, and gives the same bits on both backends
};
const Kind& kind(const std::string& name);

struct Shape {
  std::string name;
  /// Kinds; the source feeds the first one. Only the first may depend on the previous frame.
  std::vector<std::string> stages;
  std::string launch;  ///< {0}, {1} …: the stages; {m}: a filter for the kind of memory; {o}: a sink
  std::vector<std::vector<int>> outlets;  ///< for each sink, the stages before it
  bool gray = true;                       ///< accepts formats that are never in CUDA memory
};
const std::vector<Shape>& shapes();

}  // namespace cudavision::soak
