// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/blend/arithmetic.hpp"
#include "kernels/core/aligned.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/luma.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

inline constexpr int blend_max_pads = 64, blend_max_side = 32768, blend_max_position = 1 << 24;

/// How samples become R'G'B' of 0–1. Limited range: luma and RGB of 16–235, chroma of 16–240 about 128, in steps of 2^(depth − 8);
/// full range: 0 … 2^depth − 1, chroma about 2^(depth − 1). So a change of depth is a shift in limited range, and else a factor of
/// (2^to − 1) / (2^from − 1). Alpha is of full range.
struct BlendColor {
  LumaMatrix matrix = LumaMatrix::bt601;  ///< of YUV and gray; not looked at for RGB
  bool limited = false;
};

/// How GStreamer's compositor divides by 255 in 8-bit formats with alpha: as the ORC library does that it computes with.
enum class BlendDivision : std::uint8_t {
  nearest,  ///< to the nearest whole number: ORC before 0.4.39
  down,     ///< rounded down: since then
};

/// What of a pad is taken for transparent.
struct BlendKey {
  enum class Mode : std::uint8_t {
    none,
    color,        ///< what is like `color`
    first_pixel,  ///< what is like the picture's pixel (0, 0)
  };
  Mode mode = Mode::none;
  std::array<double, 3> color{};  ///< R'G'B', 0–1
  double tolerance = 0;           ///< 0–255: how far R', G' or B' may be from the key, in steps of 1/255; 0: only the same
  double softness = 0;            ///< 0–255: over so many steps more, the pad fades in
};

/// One picture, and how it is laid over what is below.
struct BlendPad {
  Image src;
  BlendColor color;
  Rect place;        ///< in pixels of the output, in part or wholly outside; 0–32768 wide and high. Empty: the pad does not show
  Rect crop;         ///< what of `src` is shown, in its pixels, inside of it; empty: all
  double alpha = 1;  ///< 0–1; 0: the pad does not show
  BlendOperator op = BlendOperator::over;
  Interpolation interpolation = Interpolation::bilinear;
  BlendKey key;
};

/// What lies below all pads.
struct BlendBackground {
  enum class Kind : std::uint8_t {
    checker,  ///< squares of 8 × 8, gray of the sample values 80 and 160, shifted to the depth
    black,
    white,
    transparent,  ///< black where the output has no alpha
    color,
  };
  Kind kind = Kind::checker;
  std::uint32_t argb = 0xff000000;
};

enum class SizingPolicy : std::uint8_t {
  none,               ///< stretched to the box
  keep_aspect_ratio,  ///< as large as fits, in the middle
  fill,               ///< fills the box, and is cropped at two sides
};
struct BlendFit {
  Rect place, crop;
};
/// Where in a box a picture of width × height pixels goes, and what of it. `pixel_aspect`: width ÷ height of its pixels, as seen in
/// those of the output.
BlendFit fit(const Rect& box, int width, int height, double pixel_aspect, SizingPolicy policy);

/// Columns and rows of the photo wall for `count` pads; of what is 0, as square as fits.
struct GridShape {
  int columns, rows;
};
GridShape grid_shape(int count, int columns, int rows);
/// The photo wall: cells of equal size for `count` pads, row by row, `gap` pixels apart, in an output of width × height. Pads for
/// which there is no cell get an empty one.
std::vector<Rect> grid_layout(int count, int columns, int rows, int gap, int width, int height);

/// What is wrong with a pad, by the names users know.
Status validate(const BlendPad& pad);

/// A plan that composes pictures: made once for an output, submitted often, on one stream at a time. Pads are of any format, size,
/// number (up to 64) and change from frame to frame.
///
/// Each pad's samples are scaled, then taken to the colour space of the output by one matrix (none where the colours are the same:
/// then nothing changes) and clamped to its range. All is done in float32 on full-size pixels, in the order of the pads; in the end
/// a subsampled chroma sample is the mean of its pixels, and samples are rounded half to even. Padding becomes the greatest value.
/// At 8 bit source, over and add leave whole numbers, as GStreamer's compositor does, so that many pads make the same as there: a
/// pad's samples are rounded before, and what comes of over and add after; unless a soft key fades the pad. BlendDivision says how
/// alpha is rounded.
///
/// Scaling. Output pixel i of a pad shows the picture at u = crop.x + (i + ½)·crop.width / place.width, and a
/// subsampled plane at u / 2.
///   nearest:  the pixel floor(u) and its chroma.
///   bilinear: between the two samples whose centres, at half integers, are next to u; the crop's edges repeat.
///   area:     the mean over what the output pixel covers, on an axis that is made smaller; else bilinear.
/// On an axis on which it has its own size a pad shows its samples, whatever the interpolation.
///
/// Operators, of a pad's sample s, its own alpha s_a and what is below, d and d_a. M is the largest sample, k the weight of the
/// key, from 0 where the pad is like it to 1, and A = floor(M·alpha).
///   source:   d + k·(s − d), and the same of alpha, the pad's being s_a·A / M.
///   average:  d + alpha·k·(s − d), and the same of alpha: the pad's own is but a sample, and alpha is not rounded.
///   over:     as compositor does it. For an output without alpha d + a·(s − d), rounded down; a = k·(s_a / M)·A / (M + 1), or
///             k·s_a / M for alpha = 1. For one with alpha a = k·s_a·A / M and b = d_a·(M − a) / M, both rounded as
///             BlendDivision says: the colour is (s·a + d·b) / (a + b), or M where the alpha, a + b, becomes 0. Over an opaque
///             background d_a = M, and the colour is rounded as BlendDivision says; else down.
///   add:      compositor's too: over, but alpha is min(d_a + a, M).
///   subtract max(d − s, 0), multiply d·s, screen d + s − d·s, difference |d − s|, min, max: of R', G' and B' of 0–1, whatever the
///             output's format (gray: of its luma). The result is laid over as by `over`, as far as d is opaque; else s is.
///
/// The key compares the pad's picture, after scaling and before conversion, as R'G'B' in steps of 1/255, by the greatest of the
/// three differences. The weight k is (difference − tolerance) / softness, clamped to 0–1.
class Blend {
 public:
  virtual ~Blend() = default;
  Blend(const Blend&) = delete;
  Blend& operator=(const Blend&) = delete;

  const Geometry& geometry() const { return geometry_; }

  /// Writes every sample of `dst`, which has the plan's geometry (packed 4:2:2 of odd width: but the byte that is in no picture);
  /// pads come from below to above. All lie in the backend's memory; `dst` overlaps none of the sources. Returns without waiting on
  /// CUDA. Errors: settings (a pad's parameters; more than 64 pads), resource, when memory is short or a launch fails.
  Status submit(const Image& dst, const BlendBackground& background, const std::vector<BlendPad>& pads, Queue queue);

 protected:
  Blend(const Geometry& geometry, const BlendColor& color, BlendDivision division, Backend backend);

  virtual Status compute(const detail::BlendTarget& target, const std::vector<detail::BlendLayer>& layers, Queue queue) = 0;

 private:
  const Geometry geometry_;
  const BlendColor color_;
  const BlendDivision division_;
  detail::BlendTarget target_;
  std::vector<detail::BlendLayer> layers_;

  Status run(const Image& dst, const BlendBackground& background, const std::vector<BlendPad>& pads, Queue queue);
  Result<Image> aligned_source(std::size_t pad, const Image& src, Queue queue);

  struct Source {
    Geometry geometry;
    std::unique_ptr<detail::AlignedPicture> picture;
  };
  const Backend backend_;
  detail::AlignedPicture dst_;
  std::vector<Source> sources_;  ///< by pad
};

/// `color`: of the output. Errors: settings (the size; a backend not built in), resource.
Result<std::unique_ptr<Blend>> make_blend(const Geometry& geometry, const BlendColor& color, Backend backend,
                                          BlendDivision division = BlendDivision::nearest);

namespace detail {

/// All channels of a set's plane as they lie, from its first sample on: the plane, as if it had but one.
BlendChannel whole_plane(const FormatInfo& format, const ChannelSet& set, const BlendChannel (&channels)[4]);

Result<std::unique_ptr<Blend>> make_blend_cuda(const Geometry& geometry, const BlendColor& color, BlendDivision division);
Result<std::unique_ptr<Blend>> make_blend_cpu(const Geometry& geometry, const BlendColor& color, BlendDivision division);

}  // namespace detail
}  // namespace cudavision
