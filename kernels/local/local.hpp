// SPDX-License-Identifier: LGPL-2.1-or-later
// Filters that use the neighbourhood of each pixel: the public contract.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/host.hpp"

namespace cudavision::local {

enum class Operation : std::uint8_t {
  box_mean,   ///< the mean of the window
  threshold,  ///< Bradley's adaptive threshold: black or white
  deviation,  ///< the standard deviation of the window
  nlm,        ///< non-local means denoising
  pixelate,   ///< a mosaic: the mean of a block
};

inline constexpr int max_radius = max_frame_side;
inline constexpr int min_following_radius = 2;  ///< smallest radius that follows a region
inline constexpr int nlm_max_radius = 16;
inline constexpr int nlm_max_search_radius = 32;
inline constexpr double nlm_min_strength = 0.001, nlm_max_strength = 1000;

struct Params {
  Operation operation = Operation::box_mean;
  /// Pixels of the full-size planes, 0–16384 (nlm: of a patch, 0–16); a window or a block has 2·radius + 1 pixels a
  /// side. With 0, the radius of box_mean and pixelate follows the region (see make()).
  int radius = 7;
  double sensitivity = 0.15;  ///< threshold: samples further below the local mean than this fraction become black; 0–1
  int search_radius = 10;  ///< nlm: the largest distance of compared patches, in pixels of the full-size planes, 1–32
  double strength = 10;    ///< nlm: h, in steps of 8-bit samples, 0.001–1000
};

/// Checks the parameters that do not depend on the format. Messages use the property names: radius, sensitivity,
/// search-radius, strength. Errors: settings.
Status validate(const Params& params);

/// Makes a filter that uses the neighbourhood of each pixel. The time of all operations except nlm hardly depends on
/// the radius: window sums follow from the sums of adjacent windows, or from summed-area tables. The window of a sample
/// has (2·rx + 1) × (2·ry + 1) samples. Only its part inside the frame counts: n samples with the sum S and the sum of
/// squares Q. rx and ry are radius, or ceil(radius / 2) along an axis on which the plane is subsampled. Alpha and
/// padding are copied.
///   box-mean:   S / n of every component, rounded half to even.
///   pixelate:   S / n of a block instead of a window. Blocks are squares of 2·radius + 1 pixels. They are adjacent
///               and begin at the upper left corner of the region's box, or of the frame if all of it is filtered.
///               Only the part of a block inside the frame counts. A subsampled sample belongs to the block of its
///               first pixel. With radius 0, box-mean and pixelate use an eighth of the shorter side of the region's
///               box, rounded up, but at least min_following_radius; no side counts as longer than the frame's. So a
///               region looks the same at any distance.
///   threshold:  0 if p·n < S·(1 − sensitivity), in float64, otherwise the largest value; p is the luma (of RGB
///               floor(0.299f·R + 0.587f·G + 0.114f·B)). The result is written to Y, or to each of R, G and B; chroma
///               becomes neutral. Source: Bradley and Roth, "Adaptive Thresholding Using the Integral Image", 2007.
///   deviation:  √(Q/n − (S/n)²) of Y, or of each of R, G and B, rounded half to even. Chroma becomes neutral.
///   nlm:        Σ w(o)·v(p + o) / Σ w(o), for each component separately. The sums are over the offsets o of at most
///               search-radius along each axis (scaled like radius), for which p + o is inside the frame.
///               w(o) = exp(−d(o) / h²), h = strength; d(o) is the mean of (v(p + k) − v(p + o + k))² over the k of
///               the patch for which both samples are inside the frame, in squared steps of 8-bit samples.
///               Source: Buades, Coll and Morel, 2005; the sums by Darbon et al., "Fast nonlocal filtering applied to
///               electron cryomicroscopy", 2008.
/// Errors: settings (bad parameters, or a backend that is not built in), resource.
Result<std::unique_ptr<Filter>> make(const Params& params, const Geometry& geometry, Backend backend);

}  // namespace cudavision::local
