// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/host.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/luma.hpp"

namespace cudavision::blend {

inline constexpr int max_pads = 64;           ///< most pads of one picture
inline constexpr int max_side = 32768;        ///< largest width and height of Pad::place, in pixels
inline constexpr int max_position = 1 << 24;  ///< largest |x| and |y| of Pad::place, in pixels

/// How a pad is combined with the picture below it. Blend has the formulas. subtract … max are computed on R'G'B'. A
/// new operator of this kind must be listed among them.
enum class Operator : std::uint8_t { source, over, add, subtract, multiply, screen, difference, min, max, average };
/// How a pad is scaled. Blend has the formulas.
enum class Interpolation : std::uint8_t { nearest, bilinear, area };

/// How samples encode R'G'B' of 0–1. Limited range: luma and RGB use 16–235, chroma uses 16–240 around 128, in steps of
/// 2^(depth − 8). Full range: 0 … 2^depth − 1, chroma around 2^(depth − 1). So a change of depth is a shift in limited
/// range, and a factor of (2^to − 1) / (2^from − 1) in full range. Alpha always uses the full range.
struct Color {
  LumaMatrix matrix = LumaMatrix::bt601;  ///< for YUV and gray; not used for RGB
  bool limited = false;
};

/// How GStreamer's compositor divides by 255 in 8-bit formats with alpha. It depends on the version of the ORC library.
enum class Division : std::uint8_t {
  nearest,  ///< rounded to the nearest integer: ORC before 0.4.39
  down,     ///< rounded down: ORC 0.4.39 and newer
};

/// Makes pixels of a pad transparent by their colour.
struct Key {
  enum class Mode : std::uint8_t {
    none,
    color,        ///< pixels that match `color`
    first_pixel,  ///< pixels that match pixel (0, 0) of the pad's picture
  };
  Mode mode = Mode::none;
  std::array<double, 3> color{};  ///< R'G'B', 0–1
  /// 0–255: a pixel matches if no channel differs by more than tolerance / 255; 0: exact match only.
  double tolerance = 0;
  double softness = 0;  ///< 0–255: the pad fades in from tolerance to tolerance + softness
};

/// One picture, its place, and how it is blended.
struct Pad {
  Image src;
  Color color;
  Rect place;  ///< in output pixels; may lie outside the output; width and height 0–32768. Empty: the pad is not shown
  Rect crop;   ///< the part of `src` to show, in its pixels; must lie inside `src`; empty: all of it
  double alpha = 1;  ///< 0–1; 0: the pad is not shown
  Operator op = Operator::over;
  Interpolation interpolation = Interpolation::bilinear;
  Key key;
};

/// The picture below all pads.
struct Background {
  enum class Kind : std::uint8_t {
    checker,  ///< squares of 8 × 8 pixels in two grays, sample values 80 and 160, shifted to the depth
    black,
    white,
    transparent,  ///< black if the output has no alpha
    color,
  };
  Kind kind = Kind::checker;
  std::uint32_t argb = 0xff000000;  ///< the colour, for Kind::color
};

/// How a picture fills a box with another aspect ratio.
enum class SizingPolicy : std::uint8_t {
  none,               ///< stretch the picture to the box
  keep_aspect_ratio,  ///< make the picture as large as the box allows, and centre it
  fill,               ///< fill the box, and crop two sides of the picture
};
struct Fit {
  Rect place, crop;  ///< values for Pad::place and Pad::crop
};
/// Places a picture of width × height pixels in a box. `pixel_aspect`: width ÷ height of one pixel of the picture,
/// relative to the pixels of the output.
Fit fit(const Rect& box, int width, int height, double pixel_aspect, SizingPolicy policy);

struct GridShape {
  int columns, rows;
};
/// The columns and rows of a photo wall of `count` pads. A value of 0 makes the wall as square as possible.
GridShape grid_shape(int count, int columns, int rows);
/// The cells of a photo wall, row by row. Cells have equal sizes and are `gap` pixels apart. width, height: size of the
/// output in pixels. A pad without a cell gets an empty rectangle.
std::vector<Rect> grid_layout(int count, int columns, int rows, int gap, int width, int height);

/// Checks the parameters of a pad. Errors: settings, with the property's name.
Status validate(const Pad& pad);

/// A plan that composes pictures. It is made once for an output and submitted for each frame, on one stream at a time.
/// The format, the size and the number of pads (up to 64) may change from frame to frame.
///
/// Precision. Each pad is scaled, then converted to the colour space of the output by one matrix (equal colour
/// spaces need no conversion and keep the samples exact), then clamped to the output's range. All of this is float32
/// arithmetic on full-size pixels, in the order of the pads. At the end, a subsampled chroma sample becomes the mean of
/// its pixels, and samples are rounded half to even. Padding becomes the largest value.
///
/// Rounding as in GStreamer's compositor. With 8-bit output, `over` and `add` round after each pad, so that many pads
/// give the same result as in compositor: the pad's samples are rounded before blending, and the result after blending.
/// A pad with a soft key is not rounded. Division determines how alpha is rounded.
///
/// Scaling. Output pixel i of a pad shows the source position u = crop.x + (i + ½)·crop.width / place.width; a
/// subsampled plane is read at u / 2.
///   nearest:  the pixel floor(u) and its chroma.
///   bilinear: the two samples whose centres (at half integers) are nearest to u; the edges of the crop repeat.
///   area:     on an axis that shrinks, the mean of all samples that the output pixel covers; on other axes, bilinear.
/// An axis that keeps its size shows the samples unchanged with every interpolation.
///
/// Operators. s: the pad's sample, s_a: its alpha, d and d_a: sample and alpha of the picture below. M: the largest
/// sample value. k: the key's weight, from 0 (the pixel matches the key) to 1. A = floor(M·alpha).
///   source:   d + k·(s − d), and the same formula for alpha, with s_a·A / M as the pad's alpha.
///   average:  d + alpha·k·(s − d), and the same formula for alpha: s_a is blended like a colour; alpha is not rounded.
///   over:     as in compositor. Output without alpha: d + a·(s − d), rounded down, with
///             a = k·(s_a / M)·A / (M + 1), or a = k·s_a / M if alpha = 1. Output with alpha: a = k·s_a·A / M and
///             b = d_a·(M − a) / M, both rounded by Division; the alpha becomes a + b, and the colour becomes
///             (s·a + d·b) / (a + b), or M if a + b = 0. Over an opaque background d_a = M, and the colour is rounded
///             by Division; otherwise it is rounded down.
///   add:      as in compositor: like `over`, except that the alpha becomes min(d_a + a, M).
///   subtract max(d − s, 0), multiply d·s, screen d + s − d·s, difference |d − s|, min, max:
///             computed on R', G' and B' of 0–1 in every output format (gray: on luma). Where d is not fully opaque,
///             the result is mixed with s by d_a / M. It is then blended as by `over`.
///
/// Key. The pad's picture is compared after scaling and before conversion, as R'G'B' in steps of 1/255. The distance is
/// the largest of the three differences, and k = (distance − tolerance) / softness, clamped to 0–1.
class Blend {
 public:
  virtual ~Blend() = default;
  Blend(const Blend&) = delete;
  Blend& operator=(const Blend&) = delete;

  /// Writes every sample of `dst`, which has the plan's geometry. Exception: the byte at the end of packed 4:2:2 rows
  /// of odd width belongs to no pixel. `pads`: from the lowest to the highest. All pictures lie in the backend's
  /// memory; `dst` overlaps no source. Does not wait for CUDA. Errors: settings (a pad's parameters; more than 64
  /// pads), resource (out of memory, or a launch fails).
  virtual Status submit(const Image& dst, const Background& background, const std::vector<Pad>& pads, Queue queue) = 0;

 protected:
  Blend() = default;
};

/// Makes a plan. `color`: the colour encoding of the output. Errors: settings (the size; a backend that is not built
/// in), resource.
Result<std::unique_ptr<Blend>> make(const Geometry& geometry, const Color& color, Backend backend,
                                    Division division = Division::nearest);

}  // namespace cudavision::blend
