// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: the parameters of a backend, resolved for a geometry.
#pragma once

#include "kernels/histogram/histogram.hpp"

namespace cudavision::histogram {

/// Samples are counted in tables of `fine` entries. The tables of one channel set are adjacent; the table of luma
/// computed from RGB is the first.
struct Plan {
  Geometry geometry;
  int bins = 256;
  int fine = 256;  ///< entries of a table: 2^depth (one for each value), or `bins`
  int history = 1;
  bool rgb_luma = false;      ///< whether table 0 counts luma computed from R, G and B
  bool three_planes = false;  ///< whether R, G and B are planes, which are read together for their luma
  LumaWeights weights{};
  std::array<std::int8_t, role_count> table_of{};  ///< [role]: index of the table; −1: not counted
  int tables = 0;
  std::vector<const char*> channels;                ///< channel names
  std::array<std::uint8_t, max_channels> table{};   ///< index of the table of each channel
  std::array<std::uint8_t, max_channels> colour{};  ///< overlay colour of each channel: bit 0 red, 1 green, 2 blue

  /// Whether the entries of a table are values, which are gathered into bins.
  bool by_value() const { return fine == 1 << info(geometry.format).depth; }
  /// Whether any sample of the set is counted.
  bool counts(const ChannelSet& set) const;
};
/// Checks the parameters and makes a plan. Errors: settings (see validate()).
Result<Plan> resolve(const Params& params, const Geometry& geometry);

/// The overlay of a histogram. Passed to CUDA kernels by value.
struct OverlayPlan {
  Geometry geometry;
  Rect position;  ///< as in the parameters, not clipped
  int channels = 1, bins = 256;
  bool log = false;
  int opacity = 256;  ///< 0–256
  std::array<std::uint8_t, max_channels> colour{};
  std::uint8_t luma = 0;                     ///< bit c: channel c is luma, which is drawn below the other channels
  std::uint16_t values[8][role_count] = {};  ///< [colour: bit 0 red, 1 green, 2 blue][role]: the sample
};
/// Checks the parameters and makes a plan. Errors: settings (see validate()).
Result<OverlayPlan> resolve(const OverlayParams& params, const Plan& plan);
/// The samples of a set whose first pixel is both in the overlay and in the picture.
Rect overlay_rect(const OverlayPlan& plan, const ChannelSet& set);

/// Make the backends. The context must be current to make and use CUDA plans. Errors: resource.
Result<std::unique_ptr<Filter>> make_equalize_cuda(Plan plan);
Result<std::unique_ptr<Filter>> make_equalize_cpu(Plan plan);

}  // namespace cudavision::histogram
