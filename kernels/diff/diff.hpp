// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/filter.hpp"
#include "kernels/diff/arithmetic.hpp"
#include "kernels/diff/mog2.hpp"
#include "kernels/diff/motion.hpp"

namespace cudavision {

inline constexpr int diff_max_interval = 64, diff_max_open_radius = 16, diff_max_in_flight = 16;
inline constexpr int diff_min_cell = 4, diff_max_cell = 1024;
inline constexpr double diff_max_gain = 256;

enum class DiffReference : std::uint8_t {
  previous,    ///< the frame `interval` before
  first,       ///< the first frame
  background,  ///< the running average of the frames before
  mog2,        ///< a mixture of Gaussians for each pixel
};
enum class DiffOutput : std::uint8_t {
  difference,  ///< how far samples are from the reference
  mask,        ///< white where a pixel changed, else black
  overlay,     ///< the picture, with changed pixels tinted
  none,        ///< nothing: the destination is not looked at
};

struct DiffParams {
  DiffReference reference = DiffReference::previous;
  int interval = 1;             ///< frames back, 1–64, for DiffReference::previous
  double learning_rate = 0.02;  ///< of the background, 0–1: its share of the new frame, in steps of 2^−15
  DiffOutput output = DiffOutput::difference;
  DiffMode mode = DiffMode::absolute;
  int threshold = 15;  ///< 0–255, in 8-bit steps: a pixel changed where its difference is greater. Not for DiffReference::mog2
  double gain = 1;     ///< 0–256, on the difference shown, in steps of 2^−16
  bool luma_only = false;          ///< only luma is compared, and shown: of RGB that of luma_of()
  int open_radius = 1;             ///< 0–16: the mask is opened with a square of 2·radius + 1 pixels; 0: not
  int cell_size = 16;              ///< pixels, 4–1024
  std::vector<Rect> mask_regions;  ///< in pixels, clipped to the frame: what lies in them never changes, and is not counted
  bool borrow = false;  ///< frames stay where they are, unchanged, for as long as the plan compares with them (previous: until the
                        ///< frame `interval` later is done; first: until reset()), so that it keeps no copies of its own
  int in_flight = 1;    ///< results kept, 1–16: that of a frame is lost when so many more were submitted
};

/// What is wrong with parameters, whatever the format.
Status validate(const DiffParams& params);

/// What was found in a frame.
struct DiffResult {
  bool compared = false;       ///< false: there was nothing to compare with yet, and nothing changed
  std::uint64_t changed = 0;   ///< pixels, after opening
  std::uint64_t counted = 0;   ///< pixels outside of the masked regions
  double changed_ratio = 0;    ///< changed ÷ counted
  double mean_difference = 0;  ///< of the pixels counted, in 8-bit steps; a pixel's difference is the largest of its channels'
  CellGrid cells;
};

namespace detail {

/// Rectangle of one channel set, in its samples.
struct DiffFill {
  int set;
  Rect rect;
};

/// Parameters resolved for a geometry.
struct DiffPlan {
  Geometry geometry;
  DiffParams params;
  int threshold = 0;  ///< in sample values
  DiffShow show;
  int rate = 0;               ///< of the background, see background_step
  CellGrid cells;             ///< `counted` is right, nothing changed
  std::uint64_t counted = 0;  ///< pixels
  std::vector<Rect> masked;   ///< not empty, inside the frame
  /// One bit a pixel, the leftmost lowest, 1: counted. Rows of mask_pitch() bytes. Empty where all pixels are.
  std::vector<std::uint32_t> counted_bits;

  std::size_t mask_pitch() const { return std::size_t(geometry.width + 511) / 512 * 64; }
  /// Whether samples of this role take part in the comparison.
  bool compares(Role role) const;
  bool compares_plane(int plane) const;
  /// RGB of which only luma is compared.
  bool luma_of_rgb() const;
};

/// Samples shown, by role.
using RoleValues = std::array<std::uint16_t, role_count>;
RoleValues white_values(const FormatInfo& format);  ///< of the mask
RoleValues black_values(const FormatInfo& format);
RoleValues tint_values(const FormatInfo& format);  ///< half of what a changed pixel becomes
RoleValues box_values(const FormatInfo& format);

/// How a frame is kept in a plan's own memory: rows from a multiple of 256 bytes, with at least 64 bytes behind each.
struct FrameLayout {
  std::array<std::size_t, 3> offset{};
  std::array<std::ptrdiff_t, 3> pitch{};  ///< 0: the plane is not kept
  std::size_t bytes = 0;

  Image at(const Geometry& geometry, void* memory) const;
};
FrameLayout frame_layout(const DiffPlan& plan);

/// One frame's work for a backend.
struct DiffFrame {
  Image src, dst;
  bool compared = false;     ///< false: nothing differs, and a model is begun anew
  Image reference;           ///< to compare with; its planes are null for DiffReference::background, and where not compared
  Image keep;                ///< where to copy src to; its planes are null where it need not be kept
  std::uint64_t number = 0;  ///< since the reference was begun: 0, 1, …
  int slot = 0;              ///< of the result, below in_flight
};

}  // namespace detail

/// A plan that compares each frame with a reference, and counts what changed: made once, submitted often, on one stream at a time.
///
/// A pixel's difference is the largest among its channels of |sample − reference|; a subsampled chroma sample counts for each of
/// the pixels that it covers; alpha and padding are not compared. The pixel changed where that is greater than the threshold,
/// scaled to the depth by a shift, and (open_radius > 0) where it outlasts an opening of the mask as cv::morphologyEx does it
/// (beyond the frame nothing is eroded or dilated). Both backends give the same bits.
///
/// Shown is, of the difference d with its gain g and the greatest sample M: g·|d|; about mid-gray 2^(depth−1) + g·d; or g·d²/M;
/// each rounded half up in magnitude, and saturated. Chroma is shown with its sign about its neutral value, in every mode.
/// Alpha and padding are copied from the source; what is masked or not compared is shown as equal.
/// The overlay shows (sample + tint + 1) / 2 where a pixel changed; subsampled chroma where any of its pixels did.
///
/// The background is kept in fixed point, 8.8 bits for 8-bit samples and else 16.16: see background_step. DiffReference::mog2 is
/// the mixture of up to 5 Gaussians of Z. Zivkovic (see mog2.hpp), of luma or of all channels; the difference shown, and
/// its mean, are then against the mean of each pixel's heaviest Gaussian.
class Diff {
 public:
  virtual ~Diff() = default;
  Diff(const Diff&) = delete;
  Diff& operator=(const Diff&) = delete;

  const Geometry& geometry() const { return plan_.geometry; }

  /// Compares `src` and writes every sample of `dst` (packed 4:2:2 of odd width: but the byte that is in no picture), or nothing
  /// for DiffOutput::none. Both have the plan's geometry, lie in the backend's memory, and do not overlap. Returns without waiting
  /// on CUDA. Errors: resource, when memory is short or a launch fails.
  Status submit(const Image& src, const Image& dst, Queue queue);
  /// The next frame begins the reference anew: it is compared with nothing.
  void reset() { number_ = 0; }
  /// Takes over from `previous` what frames are compared with, so that new settings do not begin the reference anew: the next
  /// frame is compared as `previous` would have done. For a plan that was just made, on the same device; the caller has waited
  /// for all work of `previous`, which is only fit to be destroyed afterwards. Tickets begin anew. Returns false, and changes
  /// neither plan, where backend, geometry, reference, its interval, borrow, or the channels that are kept differ.
  bool continue_from(Diff& previous);

  /// Names the frame last submitted; 0: none yet.
  std::uint64_t ticket() const { return ticket_; }
  /// What was found in a frame, once the caller has waited until its work is done; `ticket` is one of the in_flight last ones.
  DiffResult result(std::uint64_t ticket) const;
  DiffResult result() const { return result(ticket_); }

  /// Draws a frame around each region into `dst`, a picture of the plan's geometry. Returns without waiting on CUDA. Errors: resource.
  Status draw_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue);

 protected:
  Diff(detail::DiffPlan plan, Backend backend)
      : plan_(std::move(plan)), src_(backend), dst_(backend), reference_(backend), compared_(std::size_t(plan_.params.in_flight)) {}
  const detail::DiffPlan& plan() const { return plan_; }

  /// Pictures that the backend keeps for references, as many as ring_size(); with `borrow` of no memory.
  std::vector<Image> ring_;

  virtual Status compute(const detail::DiffFrame& frame, Queue queue) = 0;
  /// Swaps what is kept for reference, but for ring_, with a plan that keeps the same; returns false where that is of another
  /// backend.
  virtual bool swap_reference(Diff& other) = 0;
  /// Adds the changed pixels of each cell; returns the sum of the pixels' differences, in sample values.
  virtual std::uint64_t collect(int slot, std::vector<std::uint32_t>& changed) const = 0;
  /// Fills rectangles with the colour of boxes.
  virtual Status fill(const Image& dst, const std::vector<detail::DiffFill>& fills, Queue queue) = 0;

 private:
  Status run(const Image& src, const Image& dst, Queue queue);
  Status fill_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue);

  const detail::DiffPlan plan_;
  detail::AlignedPicture src_, dst_, reference_;
  std::vector<bool> compared_;  ///< by slot
  std::uint64_t number_ = 0, ticket_ = 0;
};

/// Errors: settings (bad parameters, or a backend not built in), resource.
Result<std::unique_ptr<Diff>> make_diff(const DiffParams& params, const Geometry& geometry, Backend backend);

namespace detail {

Result<DiffPlan> resolve(const DiffParams& params, const Geometry& geometry);
/// The work of DiffReference::mog2 on a frame of this number, of mixture_channels(): its state is not set.
mog2::Job mixture_job(const DiffPlan& plan, const DiffFrame& frame);
int mixture_channels(const DiffPlan& plan);
/// Frames that a plan keeps for reference.
int ring_size(const DiffParams& params);

Result<std::unique_ptr<Diff>> make_diff_cuda(DiffPlan plan);
Result<std::unique_ptr<Diff>> make_diff_cpu(DiffPlan plan);

}  // namespace detail
}  // namespace cudavision
