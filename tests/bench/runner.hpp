// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/backend.hpp"
#include "kernels/core/border.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision::bench {

/// The contents of the pictures in the ring. `random`: random samples. `equal`: all samples equal, the worst case for
/// histograms. `motion`: one random picture, where each slot changes one of `motion_bands` bands by 32 in 8-bit steps,
/// so a sixteenth of the samples differs between two slots, and the mean of the ring is close to the picture.
enum class Data { random, equal, motion };
constexpr int motion_bands = 32;
/// Word i of all pictures. A picture has `period` words of samples of `sample_bytes`. The hash is Chris Wellons'
/// lowbias32.
CUDAVISION_HOST_DEVICE inline std::uint32_t word_of(Data data, std::size_t i, std::size_t period, int sample_bytes) {
  if (data == Data::equal) return 0x77777777u;
  const std::size_t slot = i / period, at = i % period, band = at * motion_bands / period;
  std::uint32_t x = std::uint32_t(data == Data::random ? i : at) + 1;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  x ^= x >> 16;
  if (data == Data::motion && band == slot * 5 % motion_bands) x ^= sample_bytes == 1 ? 0x20202020u : 0x20002000u;
  return x;
}

struct Slot {
  Image src, dst;
};

struct Timing {
  double us = 0;       ///< median time of one submit
  int samples = 0;     ///< number of samples behind the median
  int per_sample = 1;  ///< submits in each sample
  bool graph = false;  ///< timed as the replay of a captured graph
};

/// Submits the work for slot `index` of the ring.
using Work = std::function<Status(int index, Queue queue)>;

/// The limits of a measurement: it takes samples until `us` µs have passed, but at least `least` and at most `most`.
struct Budget {
  int most = 100, least = 100;
  double us = 0;
};

/// Holds a ring of pictures in the memory of one backend, and measures time.
class Runner {
 public:
  virtual ~Runner() = default;

  /// Divides the pools, which are larger than any cache, into a ring of pictures and fills the sources. `dst_bytes`:
  /// the minimum size of each destination, if that is more than a picture.
  virtual Status prepare(const Geometry& geometry, Data data, std::size_t dst_bytes = 0) = 0;
  const std::vector<Slot>& slots() const { return slots_; }

  /// Times `work` on slots 0 to ring − 1 in turn.
  virtual Result<Timing> time(const Work& work, int ring, const Budget& budget) = 0;

  /// Times a copy that reads and writes `bytes`, with the system's function (cudaMemcpyAsync, memcpy) or a plain
  /// kernel.
  virtual Result<Timing> copy(std::size_t bytes) = 0;
  virtual Result<Timing> copy_kernel(std::size_t bytes) = 0;

  /// Copies values to the memory of the backend, where they stay until the next call. Returns nullptr if there is no
  /// room.
  virtual const float* upload(const std::vector<float>& values) = 0;
  /// The budget for rows of this project.
  virtual Budget budget() const = 0;
  virtual std::string device() const = 0;

 protected:
  /// Fills slots_ with pictures in two pools of `pool_bytes`.
  Status lay_out(const Geometry& geometry, std::byte* src, std::byte* dst, std::size_t pool_bytes,
                 std::size_t dst_bytes);

  std::vector<Slot> slots_;
  std::size_t picture_bytes_ = 0;  ///< distance between the sources of consecutive slots, a multiple of 512
};

/// The number of bytes of a picture's samples, without row padding.
std::size_t payload(const Geometry& geometry);
double median(std::vector<double> values);

Result<std::unique_ptr<Runner>> make_cpu_runner();
Result<std::unique_ptr<Runner>> make_cuda_runner();

}  // namespace cudavision::bench
