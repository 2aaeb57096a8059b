// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: the work of a backend, and how to make the two backends.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/diff/adaptive.hpp"
#include "kernels/diff/arithmetic.hpp"
#include "kernels/diff/diff.hpp"
#include "kernels/diff/enclosed.hpp"
#include "kernels/diff/mog2.hpp"

namespace cudavision::diff {

/// A rectangle of one channel set, in samples of its grid.
struct Fill {
  int set;
  Rect rect;
};

/// Parameters resolved for a geometry.
struct Plan {
  Geometry geometry, analysis;  ///< geometry of the frames, and of the compared pictures: see Params::analysis_scale
  Params params;
  int threshold = 0;  ///< in sample values
  Show show;
  Shadow shadow;                  ///< shadow rule of a background
  Follow follow;                  ///< how the background follows the frames
  CellGrid cells;                 ///< `unmasked` is set; `changed` is 0
  std::uint64_t unmasked = 0;     ///< unmasked pixels of the frame
  std::uint64_t analysed = 0;     ///< counted pixels of the analysis
  double difference_unit = 1;     ///< unit of the sums of differences, in 8-bit steps
  std::uint32_t light_limit = 0;  ///< if more pixels changed, the light was switched
  std::vector<Rect> masked;       ///< in pixels of the analysis, not empty, inside it
  /// One bit for each pixel of the analysis, the leftmost pixel lowest; 1: counted. Rows of mask_pitch() bytes. Empty
  /// if all pixels are counted.
  std::vector<std::uint32_t> unmasked_bits;

  std::size_t mask_pitch() const { return std::size_t(analysis.width + 511) / 512 * 64; }
  /// Whether samples of this role are compared.
  bool compares(Role role) const;
  bool compares_plane(int plane) const;
  /// Whether only the luma of an RGB picture is compared.
  bool luma_of_rgb() const;
  /// Whether the reference is a background with one value for each sample, which follows the frames.
  bool has_background() const {
    return params.reference == Reference::background || params.reference == Reference::median;
  }
  bool has_mixture() const { return params.reference == Reference::mog2; }
  bool has_adaptive() const { return params.reference == Reference::adaptive; }
  /// Whether a model finds the changed pixels, instead of a threshold, and makes the reference picture.
  bool has_model() const { return has_mixture() || has_adaptive(); }
  /// Whether the first frame is kept and all later frames are compared with it.
  bool keeps_first() const { return params.reference == Reference::first; }
  /// Whether frames are kept and compared with the frames `interval` later.
  bool keeps_previous() const { return params.reference == Reference::previous; }
  std::size_t model_bytes() const;  ///< bytes of the model on the device
  bool scales() const { return params.analysis_scale > 1; }
  int log2_scale() const { return params.analysis_scale == 8 ? 3 : params.analysis_scale / 2; }
  /// Whether samples are compared with the samples of the reference. An adaptive background needs this only to show the
  /// difference.
  bool compares_samples() const { return !has_adaptive() || params.output == Output::difference; }
  /// Whether pixels that show the background in shadow count as unchanged.
  bool drops_shadows() const { return params.drop_shadows && has_background(); }
  bool detects_light() const { return params.light_change_ratio > 0; }
  /// Whether the mask is opened, or is not final until the decision about light. Always true for an adaptive
  /// background.
  bool opens() const { return params.open_radius > 0 || detects_light() || has_adaptive(); }
  bool shows_mask() const { return params.output == Output::mask || params.output == Output::overlay; }
  /// Whether the shown mask is filled (enclosed.hpp) and, if the analysis is smaller than the frame, its outline
  /// refined (adaptive_outline.hpp). The counts do not change: filling the mask between people would join them to one
  /// object.
  bool completes() const { return has_adaptive() && shows_mask(); }
  /// The largest distance between changed pixels that enclose others: four cells, in pixels of the analysis.
  int reach() const { return std::min(4 * params.cell_size / params.analysis_scale, most_reach); }
  /// The minimum age of the reference, in frames, at which the light can be switched again.
  std::uint64_t light_age() const { return has_adaptive() ? adaptive::least_age : 0; }
  bool measures_looks() const { return params.looks != Looks::none; }
};

/// Sample values of a colour, indexed by role.
using RoleValues = std::array<std::uint16_t, role_count>;
RoleValues white_values(const FormatInfo& format);  ///< white in the mask
RoleValues black_values(const FormatInfo& format);
RoleValues tint_values(const FormatInfo& format);  ///< changed pixels become half sample, half tint
RoleValues box_values(const FormatInfo& format);

/// The layout of a picture of the analysis in the memory of a plan: rows begin at multiples of 256 bytes, and at least
/// 64 unused bytes follow each row.
struct FrameLayout {
  std::array<std::size_t, max_planes> offset{};
  std::array<std::ptrdiff_t, max_planes> pitch{};  ///< 0: the plane is not kept
  std::size_t bytes = 0;

  Image at(const Geometry& geometry, void* memory) const;
};
FrameLayout frame_layout(const Plan& plan);

/// The data of one frame for a backend.
struct Frame {
  Image src, dst;
  Image whole;  ///< src at the size of the frame, if src has the size of the analysis
  /// False: nothing differs, and a background or mixture begins. If the light was switched in recent frames, only the
  /// backend knows whether a frame is compared.
  bool compared = false;
  /// The reference picture; planes are null if the plan has a background, and for planes that are not compared.
  Image reference;
  Image keep;                ///< where to copy src to; planes that are not kept are null
  std::uint64_t number = 0;  ///< number of the frame since the last reset: 0, 1, …
  int slot = 0;              ///< slot of the result, less than in_flight
};

/// The findings of a backend for a frame.
struct FrameCounts {
  bool compared = true;
  Cause cause = Cause::none;
  int moved_x = 0, moved_y = 0;  ///< see FrameResult; in pixels of the analysis
  std::uint64_t sum = 0;         ///< sum of the pixels' differences, in Plan::difference_unit
  std::uint64_t changed = 0;     ///< changed pixels
};

/// Checks the parameters and makes a plan. Errors: settings.
Result<Plan> resolve(const Params& params, const Geometry& geometry);
/// The work of Reference::mog2 on a frame. The caller sets its state.
mog2::Job mixture_job(const Plan& plan, const Frame& frame);
/// The work of Reference::adaptive on a frame. The caller sets its state.
adaptive::Job adaptive_job(const Plan& plan, const Frame& frame);
/// `cells`: see Diff::steer().
LearningMap learning_map(const Plan& plan, const Learning* cells);
/// The data for deciding why many pixels of a frame changed.
camera::Rule camera_rule(const Plan& plan, const Frame& frame);
/// The votes of structure.hpp with the pictures of an adaptive background. The state of `job` is set.
StructureJob structure_job(const adaptive::Job& job);
/// How to measure the looks of the pixels of a frame, as far as Params::looks asks for them.
LooksJob looks_job(const Plan& plan, const Frame& frame);
/// The number of compared channels, 1 or 3. The luma of RGB is one channel.
int compared_channels(const Plan& plan);
/// The number of pictures that serve as references: the last frames, the first frame, or the means of a model.
int ring_size(const Params& params);

/// Make the backends. Errors: resource.
Result<std::unique_ptr<Diff>> make_cuda(Plan plan);
Result<std::unique_ptr<Diff>> make_cpu(Plan plan);

}  // namespace cudavision::diff
