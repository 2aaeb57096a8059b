// SPDX-License-Identifier: LGPL-2.1-or-later
// The sharpness of frames, and other sums of luma that show whether a camera works (watch.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/luma.hpp"
#include "kernels/core/region.hpp"

namespace cudavision::histogram {

struct SharpnessParams {
  LumaMatrix luma = LumaMatrix::bt601;
  bool compare = false;  ///< whether to keep a copy of each frame's luma, and compare the next frame with it
  int history = 1;  ///< 1–64: number of frames whose results are kept, for a caller with several frames in flight
};

/// Checks the parameters. Errors: settings.
Status validate(const SharpnessParams& params);

/// Exact sums over the pixels of a region, in values of the format (0 … 2^depth − 1), equal on both backends.
struct LumaSums {
  std::uint64_t pixels = 0;      ///< number of pixels
  std::uint64_t luma = 0;        ///< Σ Y(x, y)
  std::uint64_t squares = 0;     ///< Σ Y(x, y)²
  std::uint64_t neighbours = 0;  ///< number of the differences in `gradients`
  /// Σ |Y(x + 1, y) − Y(x, y)| + |Y(x, y + 1) − Y(x, y)|, without neighbours outside the picture.
  std::uint64_t gradients = 0;
  std::uint64_t differences = 0;  ///< Σ |Y(x, y) − Y(x, y) of the previous frame|
  bool compared = false;          ///< whether there was a previous frame; otherwise differences is 0

  /// Adds the sums of another frame.
  void add(const LumaSums& other);
};

// Values computed from the sums. All are in 8-bit steps (divided by 2^(depth − 8)), and are 0 without pixels.

/// The mean difference between pixels that are neighbours in a row or a column: gradients ÷ neighbours.
double sharpness_of(const LumaSums& sums, int depth);
double mean_of(const LumaSums& sums, int depth);
/// The standard deviation, √(Σ(Y − mean)² / pixels).
double deviation_of(const LumaSums& sums, int depth);
/// The mean difference from the previous frame: differences ÷ pixels.
double difference_of(const LumaSums& sums, int depth);

/// A plan that sums up the luma of frames in one pass. It is made once for a geometry and parameters, and submitted for
/// each frame, on one stream at a time. Luma is computed as in Histogram.
class Sharpness {
 public:
  Sharpness() = default;
  virtual ~Sharpness() = default;
  Sharpness(const Sharpness&) = delete;
  Sharpness& operator=(const Sharpness&) = delete;

  virtual const Geometry& geometry() const = 0;

  /// Sums up the pixels in the region of one frame of the plan's geometry, in the backend's memory. The neighbours of a
  /// pixel need not be in the region. Does not wait for CUDA. Errors: resource (out of memory, or a launch fails).
  virtual Status submit(const Image& src, const Region& region, Queue queue) = 0;

  /// Forgets the kept luma: the next frame is not compared.
  virtual void reset() = 0;

  /// The sums of the frame submitted `age` submits ago (0 … history − 1). Wait for the queue of that submit first. They
  /// are overwritten `history` submits later.
  virtual LumaSums result(int age = 0) const = 0;
};

/// Makes a plan. Errors: settings (a parameter is out of range, or the backend is not built in), resource.
Result<std::unique_ptr<Sharpness>> make_sharpness(const SharpnessParams& params, const Geometry& geometry,
                                                  Backend backend);

}  // namespace cudavision::histogram
