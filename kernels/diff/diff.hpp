// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/host.hpp"
#include "kernels/diff/learning.hpp"
#include "kernels/diff/motion.hpp"

namespace cudavision::diff {

inline constexpr int max_interval = 64, max_open_radius = 16, max_in_flight = 16;
inline constexpr int min_cell = 4, max_cell = 1024;
inline constexpr int max_history = 1000000;
inline constexpr double max_gain = 256, max_variance_threshold = 100000, background_rate = 0.02;
/// The automatic step of Reference::median. It is slow enough that a lasting difference of 60 steps stays above the
/// default threshold of 15 for 180 frames, and that an object that stays for less than 60 frames leaves no mark. It is
/// fast enough to follow light that changes by 6 steps a second at 25 frames a second. In noise with a standard
/// deviation of 2 steps, the error is about half a step.
inline constexpr double median_rate = 0.25;

enum class Reference : std::uint8_t {
  previous,    ///< the frame `interval` frames earlier
  first,       ///< the first frame
  background,  ///< the running average of the earlier frames
  mog2,        ///< a mixture of Gaussians for each pixel
  median,      ///< the running approximate median of earlier frames: each sample moves by at most one step per frame
  // cudadiff does not offer the following references.
  adaptive,  ///< replaces `background` if threshold is 0: running mean and variance, and light (see adaptive.hpp)
};
/// How the difference is shown.
enum class Mode : std::uint8_t {
  absolute,  ///< |d|
  signed_,   ///< d, relative to mid-gray
  squared,   ///< d² divided by the largest sample, which leaves the largest difference unchanged
};
enum class Output : std::uint8_t {
  difference,  ///< the difference between samples and reference
  mask,        ///< white for changed pixels, black for others
  overlay,     ///< the picture, with changed pixels tinted
  none,        ///< nothing; the destination is not used
};

/// Why no pixel of a frame counts as changed and the reference restarts. In each case too many pixels changed at once.
enum class Cause : std::uint8_t {
  none,
  light,  ///< the light was switched; references other than Reference::adaptive report every cause as `light`
  moved,  ///< the camera moves, or has just moved; only with Reference::adaptive
  scene,  ///< another scene began; only with Reference::adaptive
};

/// What is measured for the changed pixels of cells; see CellLooks. Values that are not measured are 0.
enum class Looks : std::uint8_t {
  none,     ///< FrameResult::cells has no looks
  extents,  ///< positions; with Reference::adaptive also the structure of cells that move
  all,      ///< positions, and all looks of cells that move
};

/// The defaults are cudadiff's, except for `looks`.
struct Params {
  Reference reference = Reference::previous;
  int interval = 1;  ///< for Reference::previous: 1–64 frames
  /// Reference::background and mog2: share of the new frame, 0–1; for a background in steps of 2^−15. −1 to below 0:
  /// automatic, which is background_rate for a background, 0.01 for an adaptive background, and the larger of 1 /
  /// (2·frames) and 1 / history for a mixture. Reference::median: the largest change of a sample of the background per
  /// frame, 0–1 8-bit steps, in units of 2^−8 for 8-bit samples and of 2^−16 of a sample for deeper ones; automatic:
  /// median_rate. 0: the background does not change.
  double learning_rate = -1;
  int history = 500;  ///< frames, 1–1000000; Reference::mog2 only
  /// Reference::mog2 only: a pixel is foreground above this squared distance, in variances; 0–100000.
  double variance_threshold = 16;
  Output output = Output::difference;
  Mode mode = Mode::absolute;
  int analysis_scale = 1;  ///< 1, 2, 4 or 8: frames are compared at their size divided by this
  /// A pixel changed if its difference is larger; 0–255, in 8-bit steps. Not for Reference::mog2. 0: see is_adaptive();
  /// with references other than Reference::background, every difference counts.
  int threshold = 15;
  bool light_compensation = true;  ///< Reference::adaptive: changes with the light do not count
  /// Reference::adaptive: largest standard deviation of the noise of a pixel, 0–255 8-bit steps; 0: any.
  double noise_limit = 0;
  bool drop_shadows = false;  ///< whether pixels in shadow count as unchanged; Reference::background, mog2 and median
  double shadow_threshold = 0.5;  ///< lowest brightness of a shadow, as a share of the background, 0–1
  /// If more than this share of the counted pixels changed at once, before opening, the light was switched or the scene
  /// was cut; 0–1, 0: off. Unless it is 0, Reference::adaptive also detects changes of light or camera that affect
  /// fewer pixels, from the edges of the picture: see camera.hpp.
  double light_change_ratio = 0.6;
  double gain = 1;         ///< factor of the shown difference, 0–256, in steps of 2^−16
  bool luma_only = false;  ///< whether only luma is compared and shown; for RGB, the result of luma_of()
  int open_radius = 1;     ///< 0–16: opens the mask with a square of 2·radius + 1 compared pixels a side; 0: off
  int cell_size = 16;      ///< pixels, 4–1024
  std::vector<Rect> mask_regions;  ///< in pixels, clipped to the frame: their pixels never change and are not counted
  Looks looks = Looks::none;
  double cell_threshold = RegionRules().cell_threshold;  ///< which cells move, for `looks`: 0–1; see RegionRules
  int in_flight = 1;                                     ///< results that are kept, 1–16; older results are lost
};

/// Whether the parameters ask for a background with threshold 0. Such a background becomes Reference::adaptive, whose
/// threshold follows from the noise of each pixel. Only this function decides what a threshold of 0 means.
inline bool is_adaptive(const Params& params) {
  return params.reference == Reference::background && params.threshold == 0;
}

/// Checks the parameters that do not depend on the format. Errors: settings.
Status validate(const Params& params);

/// The result of a frame.
struct FrameResult {
  bool compared = false;  ///< false: there was no reference yet, so nothing changed
  /// Unless it is Cause::none, nothing changed, and the reference restarts with this frame. For Cause::moved, it
  /// restarts with this frame or with the last frame of the movement.
  Cause cause = Cause::none;
  int moved_x = 0, moved_y = 0;  ///< Cause::moved: shift of the picture to the right and down, in pixels
  std::uint64_t changed = 0;     ///< changed pixels, after opening
  std::uint64_t unmasked = 0;    ///< pixels outside the masked regions
  double changed_ratio = 0;      ///< changed ÷ counted
  double mean_difference = 0;    ///< mean of the counted pixels' differences, in 8-bit steps
  CellGrid cells;
};

/// Compares each frame with a reference and counts changed pixels. A plan is made once and submitted for each frame, on
/// one stream at a time.
///
/// The difference of a pixel is the largest |sample − reference| of its channels. A subsampled chroma sample counts for
/// each pixel that it covers; alpha and padding are not compared. A pixel changed if its difference is larger than the
/// threshold (scaled to the depth of the format) and, for open_radius > 0, if it remains after the mask is opened as by
/// cv::morphologyEx (pixels beyond the frame neither erode nor dilate). Both backends give the same bits.
///
/// Output::difference shows the difference d with the gain g and the largest sample M as g·|d| (absolute), 2^(depth−1)
/// + g·d (signed_) or g·d²/M (squared); the magnitude is rounded half up, and the result saturates. Every mode shows
/// chroma with its sign, relative to its neutral value. Alpha and padding are copied from the source. Samples that are
/// masked or not compared are shown as equal. Output::overlay shows (sample + tint + 1) / 2 for changed pixels; a
/// subsampled chroma sample is tinted if any of its pixels changed.
///
/// With drop_shadows, a pixel is unchanged if OpenCV's rule finds that it shows the background in shadow: see Shadow in
/// arithmetic.hpp, and mog2.hpp. The shown difference and its mean still include it.
///
/// With an analysis_scale s above 1, frames of ceil(size / s) pixels are compared. Their samples are the means of s × s
/// samples of each plane, rounded half up; blocks at the right and bottom edges end with the frame. In the results and
/// the output, each compared pixel represents its s × s pixels, except at the outline of the mask that
/// Reference::adaptive shows: see adaptive_outline.hpp. Masked regions grow to whole compared pixels.
///
/// Reference::adaptive also shows pixels that are enclosed by changed pixels, without counting them: see enclosed.hpp.
///
/// light_change_ratio: if a larger share of a frame changed, the output shows the difference, but no pixel counts as
/// changed. The reference restarts: the frame becomes the first frame, a background or mixture begins with it, and
/// comparison with a previous frame resumes `interval` frames later.
///
/// Reference::background and median are stored in fixed point: 8.8 bits for 8-bit samples, 16.16 bits for deeper ones
/// (see background_step in arithmetic.hpp). Reference::mog2 is Z. Zivkovic's mixture of up to 5 Gaussians (see
/// mog2.hpp), of luma or of all channels; the shown difference and its mean are relative to the mean of the heaviest
/// Gaussian of each pixel.
class Diff {
 public:
  Diff() = default;
  virtual ~Diff() = default;
  Diff(const Diff&) = delete;
  Diff& operator=(const Diff&) = delete;

  virtual const Geometry& geometry() const = 0;

  /// Compares `src`, and writes every sample of `dst` (packed 4:2:2 of odd width: all except the byte that is in no
  /// picture); for Output::none, `dst` is not used. Both have the geometry of the plan, lie in the memory of the
  /// backend, and do not overlap. Does not wait for CUDA. Errors: resource (out of memory, or a launch fails).
  virtual Status submit(const Image& src, const Image& dst, Queue queue) = 0;
  /// Sets what the background of Reference::adaptive may learn, beginning with the next frame: a Learning for each cell
  /// of CellGrid, or an empty list for Learning::usual in all cells. Other references ignore it.
  virtual void steer(const std::vector<Learning>& cells) = 0;
  /// Forgets the reference: the next frame has no reference.
  virtual void reset() = 0;
  /// Takes over the reference of `previous`, so that new settings do not lose it: the next frame is compared as
  /// `previous` would have compared it. Call it on a new plan on the same device, after all work of `previous` is done.
  /// Afterwards, `previous` may only be destroyed. Tickets restart. Returns false and changes neither plan if backend,
  /// geometry, reference, its interval or the kept channels differ.
  virtual bool continue_from(Diff& previous) = 0;

  /// The number of the last submitted frame; 0: none yet.
  virtual std::uint64_t ticket() const = 0;
  /// The result of a frame whose work the caller has waited for. `ticket` is one of the last `in_flight` tickets. The
  /// returned reference is valid until the next call.
  virtual const FrameResult& result(std::uint64_t ticket) = 0;
  const FrameResult& result() { return result(ticket()); }

  /// Draws a frame around each region into `dst` (in the plan's geometry). Does not wait for CUDA. Errors: resource.
  virtual Status draw_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue) = 0;
};

/// Makes a plan. Errors: settings (bad parameters, or a backend that is not built in), resource.
Result<std::unique_ptr<Diff>> make(const Params& params, const Geometry& geometry, Backend backend);

}  // namespace cudavision::diff
