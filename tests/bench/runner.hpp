// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/backend.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision::bench {

/// What the pictures hold: random samples, or all of them equal (the skewed set).
enum class Data { random, equal };

/// Pictures of one place in the ring.
struct Slot {
  Image src, dst;
};

struct Timing {
  double us = 0;       ///< median time of one submit
  int samples = 0;     ///< that the median is of
  int per_sample = 1;  ///< submits in each sample
  bool graph = false;  ///< timed as a captured graph's replay
};

/// Submits the work on place `index` of the ring.
using Work = std::function<Status(int index, Queue queue)>;

/// How long a measurement may take: as many samples as fit, between the two bounds.
struct Budget {
  int most = 100, least = 100;
  double us = 0;
};

/// Memory of one backend that holds a ring of pictures, and the clock beside it.
class Runner {
 public:
  virtual ~Runner() = default;

  /// Lays a ring of pictures over the pools, and fills the sources. A pool is at least pool_bytes large, more than any cache.
  /// `dst_bytes`: what each destination has room for from its first plane on, where that is more than a picture.
  virtual Status prepare(const Geometry& geometry, Data data, std::size_t dst_bytes = 0) = 0;
  const std::vector<Slot>& slots() const { return slots_; }

  /// Times `work` over `ring` places in turn.
  virtual Result<Timing> time(const Work& work, int ring, const Budget& budget) = 0;

  /// A copy that reads `bytes` and writes `bytes`: the system's own (cudaMemcpyAsync, memcpy), and a plain kernel.
  virtual Result<Timing> copy(std::size_t bytes) = 0;
  virtual Result<Timing> copy_kernel(std::size_t bytes) = 0;

  /// Memory of the backend that holds these values until the next call; nullptr when there is none.
  virtual const float* upload(const std::vector<float>& values) = 0;
  /// What a row of ours is measured with.
  virtual Budget budget() const = 0;
  /// What it ran on, for the record.
  virtual std::string device() const = 0;

 protected:
  /// Fills slots_ with pictures in two pools of this size.
  Status lay_out(const Geometry& geometry, std::byte* src, std::byte* dst, std::size_t pool_bytes, std::size_t dst_bytes);

  std::vector<Slot> slots_;
};

/// Bytes of a picture's samples, without what pads its rows.
std::size_t payload(const Geometry& geometry);
double median(std::vector<double> values);

Result<std::unique_ptr<Runner>> make_cpu_runner();
Result<std::unique_ptr<Runner>> make_cuda_runner();

}  // namespace cudavision::bench
