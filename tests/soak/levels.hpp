// SPDX-License-Identifier: LGPL-2.1-or-later
// Whether the memory of the process and of the GPU stays flat.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cudavision::soak {

/// Resident memory of this process, in MiB.
double process_memory();
/// What of it is allocated now, in MiB, without the holes that freed memory leaves;
/// none if the C library does not tell.
std::optional<double> heap_in_use();
/// Memory in use on GPU 0 by all processes, in MiB; none without a GPU.
std::optional<double> device_memory();

class Levels {
 public:
  explicit Levels(std::string name) : name_(std::move(name)) {}
  void add(double seconds, double mebibytes);
  /// Prints the samples' first, last and greatest value, and the growth of a line fitted to them.
  /// Returns whether it is at most `bound`.
  bool check(double bound) const;

 private:
  const std::string name_;
  std::vector<double> seconds_, values_;
};

}  // namespace cudavision::soak
