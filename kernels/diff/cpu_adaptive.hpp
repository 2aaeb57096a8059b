// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive on the CPU backend.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/diff/adaptive_relight.hpp"
#include "kernels/diff/cpu_adaptive_light.hpp"
#include "kernels/diff/cpu_adaptive_samples.hpp"
#include "kernels/diff/cpu_adaptive_strip.hpp"

namespace cudavision::diff::adaptive {

/// Runs the steps of adaptive.hpp, and holds the memory between them.
class CpuSteps {
 public:
  /// Updates the background with a frame of 8-bit samples or, if not `bytes`, 16-bit samples. `began`: the number of
  /// the frame with which the background began. Sets changed pixels that are counted to 255; where `unmasked` is 0,
  /// pixels are not counted, and an empty `unmasked` counts all. Returns the sum of the differences of the counted
  /// pixels; see Plan::difference_unit.
  std::uint64_t update(const Job& job, bool bytes, std::uint64_t began, const cv::Mat& unmasked, cv::Mat& changed);

 private:
  /// Prepares the samples of the frame and the strips, and measures the light.
  void prepare(const Job& job, bool bytes);

  struct Thread {
    SampleRows samples;
    LightRow light;
    Strip strip;
  };
  std::vector<Thread> threads_;
  std::vector<float> light_[3];  ///< light of the cells
};

/// Restarts the means with the frame of the last update, except in kept sectors, where the means move to the new light.
void begin_anew(const Job& job, const camera::Decision& decision, const Relight& light);

}  // namespace cudavision::diff::adaptive
