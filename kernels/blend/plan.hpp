// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: the parameters of a backend, and the two backends. resolve.cpp turns the public parameters of each frame
// into a Target and a list of Layers, which a Composer composes. Device code reads these structs as kernel parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/blend/blend.hpp"
#include "kernels/core/color.hpp"
#include "kernels/core/sample.hpp"

namespace cudavision::blend {

/// A picture of four interleaved samples per pixel, aligned so that each pixel is one word.
struct Packed {
  std::uint8_t* data = nullptr;  ///< nullptr: the picture is of another kind
  std::uint8_t order[4] = {};    ///< position of each component in the pixel; the last one is alpha or padding
};

/// The component of a role: Y, Cb, Cr or R, G, B, then alpha; −1: none.
constexpr int component_of(Role role) {
  switch (role) {
    case Role::luma:
    case Role::red:
      return 0;
    case Role::cb:
    case Role::green:
      return 1;
    case Role::cr:
    case Role::blue:
      return 2;
    case Role::alpha:
      return 3;
    case Role::padding:
    case Role::other:
      break;
  }
  return -1;
}

/// An Affine in float32, for the backends.
struct Matrix {
  float m[3][4];

  CUDAVISION_HOST_DEVICE float row(int c, float x, float y, float z) const {
    return m[c][0] * x + (m[c][1] * y + (m[c][2] * z + m[c][3]));
  }
};

/// Maps output pixel i of a pad to a position in a plane, along one axis: start + i · step, in units of 2^-32 samples.
/// `start` and `step` are rounded up by less than one unit, so the error grows with i but never reaches the next
/// sample.
struct Axis {
  std::int64_t start, step;
  int low, high;  ///< first and last sample that are shown
  /// Linear: the value of one unit of (position >> 8). 0: the axis keeps its size and shows its samples unchanged.
  float weight;
  float per;  ///< area: 1 / samples that one output pixel covers; 0: the axis does not shrink
};

/// The samples that form a pixel: one, two along each axis, or all samples that the pixel covers.
enum class Sampling : std::uint8_t { point, linear, area };

/// The data of a visible pad that sampling and copying need.
struct LayerPicture {
  ChannelView channels[4];
  Packed packed;
  Rect place, crop;         ///< never empty
  Rect visible;             ///< the part of `place` inside the output; never empty
  Axis across[2], down[2];  ///< [0]: full-size planes, [1]: subsampled planes
  float opacity;            ///< factor for the pad's own alpha; `average`: weight of the sample
  /// Added to colours and to alpha before they are rounded: 0, or down_bias to round down.
  float color_bias, alpha_bias;
  Format format;
  std::uint8_t sample_bytes, shift;
  std::uint16_t max;  ///< the largest sample; larger stored values count as the largest
  Sampling sampling;
  bool opaque_below;  ///< whether the picture below counts as opaque
  bool hides;         ///< whether the layer hides everything below it
  bool copies;        ///< whether it hides, and its stored samples equal the output's
  /// Whether it has 8-bit samples in the output's format and colours, to be laid over composed bytes.
  bool direct;
  bool even_edges;  ///< whether the edges of `visible` lie between chroma samples of the output, or at its sides
};

/// One visible pad, resolved for the output.
struct Layer : LayerPicture {
  Matrix to_target;             ///< matrix to samples of the output
  Matrix to_key;                ///< matrix to R'G'B' of 0–255
  float key[3];                 ///< the key's colour as R'G'B' of 0–255
  float key_scale, key_offset;  ///< the key's weight is distance · scale − offset, clamped to 0–1
  float rounding;         ///< round_bias if alpha and colours are rounded after each pad, as in compositor; otherwise 0
  float alpha_scale;      ///< factor from the pad's alpha to the output's alpha
  float neutral, opaque;  ///< samples that replace missing chroma and missing alpha
  Operator op;
  bool identity;  ///< whether to_target changes nothing
  bool keyed, first_pixel;
  bool unscaled;
  bool rounds_samples;  ///< whether samples are rounded before blending, because they were scaled or converted
};

/// The output, and the background below all pads.
struct Target {
  ChannelView channels[4];
  ChannelView padding;
  Packed packed;
  int width, height;
  std::uint8_t sample_bytes, shift;
  std::uint8_t shift_x, shift_y;  ///< log2 of the chroma subsampling
  bool gray, alpha;
  float max, per_max;       ///< the largest sample, and 1 / max
  Matrix to_rgb, from_rgb;  ///< matrices between samples and R'G'B' of 0–1
  /// Checker: the colour of every second square; equal to background without a checker.
  float background[4], checker[4];
};

/// All interleaved channels of a set as one channel: it starts at the first sample of the set, and steps by whole
/// pixels.
ChannelView whole_plane(const FormatInfo& format, const ChannelSet& set, const ChannelView (&channels)[4]);

/// Sets the fields that depend only on the output's format and size.
Target make_target(const Geometry& geometry, const ColorCoding& out);
/// Sets the fields that change with each frame: addresses and background.
void set_frame(const Image& dst, const ColorCoding& out, const Background& background, Target& target);
/// Resolves a valid pad whose picture lies at `src`. Returns false if the pad is not visible.
bool resolve(const Pad& pad, const Image& src, const ColorCoding& out, const Target& target, Division division,
             Layer& layer);

/// A backend. One Composer serves one stream at a time.
class Composer {
 public:
  virtual ~Composer() = default;

  /// Composes the layers, the lowest first, and writes every sample of the target. Does not wait for CUDA. Errors:
  /// resource.
  virtual Status submit(const Target& target, const std::vector<Layer>& layers, Queue queue) = 0;
};

/// Make the backends. `geometry`: geometry of the output.
Result<std::unique_ptr<Composer>> make_cuda(const Geometry& geometry);
Result<std::unique_ptr<Composer>> make_cpu(const Geometry& geometry);

}  // namespace cudavision::blend
