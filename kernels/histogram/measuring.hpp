// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: code shared by both backends of Sharpness: the pieces of a region, the number of neighbours, and which
// frames are compared.
#pragma once

#include <memory>
#include <vector>

#include "kernels/core/aligned.hpp"
#include "kernels/histogram/sharpness.hpp"

namespace cudavision::histogram {

/// Where the luma of a format comes from.
struct LumaSource {
  bool rgb = false;           ///< whether luma is computed from R, G and B; otherwise it is a channel
  bool three_planes = false;  ///< whether R, G and B are planes
  int set = 0;                ///< the channel set of the luma, or of R, G and B; 0 if they are planes
  int position[3] = {};  ///< positions of R, G and B among the channels of the set, or among the sets; or [0]: position
                         ///< of the luma channel
};
LumaSource luma_source(const FormatInfo& format);

/// The pixels of one submit, and what to do with them.
struct Measuring {
  const Image& src;
  const std::vector<Rect>& pieces;  ///< the pieces of the region, disjoint, in pixels
  bool whole;                       ///< whether the pieces are the whole frame
  bool compare;                     ///< whether to compare with the kept luma
  bool keep;                        ///< whether to keep the luma of the whole frame, after the comparison
  int slot;                         ///< the slot of the result
};

/// The sums that a backend computes, in the order of its results.
enum LumaSum { sum_luma, sum_squares, sum_gradients, sum_differences };
inline constexpr int sum_count = 4;

/// The base of both backends.
class MeasuringPlan : public Sharpness {
 public:
  const Geometry& geometry() const override { return geometry_; }
  Status submit(const Image& src, const Region& region, Queue queue) override;
  void reset() override { any_kept_ = false; }
  LumaSums result(int age) const override;

 protected:
  MeasuringPlan(const SharpnessParams& params, const Geometry& geometry, Backend backend);

  const SharpnessParams& params() const { return params_; }
  const LumaSource& source() const { return source_; }
  /// The pixels of the whole frame.
  const std::vector<Rect>& frame() const { return frame_[std::size_t(source_.set)]; }
  virtual Status measure(const Measuring& work, Queue queue) = 0;
  /// The sums of a slot, in host memory.
  virtual const std::uint64_t* sums_of(int slot) const = 0;

 private:
  /// The results of a frame that are known before its luma is summed up.
  struct Known {
    std::uint64_t pixels = 0, neighbours = 0;
    bool compared = false;
  };
  Known count(const std::vector<Rect>& pieces) const;
  int slot_of(int age) const { return (last_ - age % params_.history + params_.history) % params_.history; }

  const SharpnessParams params_;
  const Geometry geometry_;
  const LumaSource source_;
  SetPieces frame_, pieces_;
  AlignedPicture src_;
  std::vector<Known> known_;  ///< one for each slot
  int last_ = 0;
  bool any_kept_ = false;  ///< whether the luma of the last frame was kept
};

/// Make the backends. The context must be current to make and use CUDA plans. Errors: resource.
Result<std::unique_ptr<Sharpness>> make_sharpness_cuda(const SharpnessParams& params, const Geometry& geometry);
Result<std::unique_ptr<Sharpness>> make_sharpness_cpu(const SharpnessParams& params, const Geometry& geometry);

}  // namespace cudavision::histogram
