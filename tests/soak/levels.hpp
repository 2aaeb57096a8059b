// SPDX-License-Identifier: LGPL-2.1-or-later
// Checks whether the memory of the process and of the GPU stays constant.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cudavision::soak {

/// Resident memory of this process, in MiB.
double process_memory();
/// Its allocated part in MiB, without the gaps that freed memory leaves; no value if the C library does not report it.
std::optional<double> heap_in_use();
/// Memory in use on GPU 0 by all processes, in MiB; none without a GPU.
std::optional<double> device_memory();

class Levels {
 public:
  explicit Levels(std::string name) : name_(std::move(name)) {}
  void add(double seconds, double mebibytes);
  /// Prints the first, last and largest sample, and the growth of a line fitted to the samples. Returns whether the
  /// growth is at most `bound`.
  bool check(double bound) const;

 private:
  const std::string name_;
  std::vector<double> seconds_, values_;
};

}  // namespace cudavision::soak
