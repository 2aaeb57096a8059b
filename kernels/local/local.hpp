// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/filter.hpp"
#include "kernels/integral/integral.hpp"

namespace cudavision {

enum class LocalOperation : std::uint8_t {
  box_mean,   ///< the mean of the window
  threshold,  ///< Bradley's adaptive threshold: black or white
  deviation,  ///< the standard deviation of the window
  nlm,        ///< non-local means denoising
};

inline constexpr int local_max_radius = 16384;
inline constexpr int nlm_max_radius = 16;
inline constexpr int nlm_max_search_radius = 32;
inline constexpr double nlm_min_strength = 0.001, nlm_max_strength = 1000;

struct LocalParams {
  LocalOperation operation = LocalOperation::box_mean;
  int radius = 7;  ///< pixels of the full-size planes; the window is 2·radius + 1 wide and high. 0–16384; nlm: of a patch, 0–16
  double sensitivity = 0.15;  ///< threshold: how far below the local mean black begins, 0–1
  int search_radius = 10;     ///< nlm: how far similar patches are looked for, in pixels of the full-size planes, 1–32
  double strength = 10;       ///< nlm: h, in steps of 8 bits, 0.001–1000
};

/// Says what is wrong with parameters, whatever the format, by the names users know: radius, sensitivity, search-radius, strength.
Status validate(const LocalParams& params);

/// Filters of a pixel's surroundings in constant time for any radius, on summed-area tables. A window is what of its
/// (2·rx + 1) × (2·ry + 1) samples lies inside the frame; n is their number, S their sum, Q the sum of their squares. rx and ry are
/// radius, or ceil(radius / 2) along an axis on which a plane is subsampled. Alpha and padding are copied.
///   box-mean:   S / n of every component, rounded half to even.
///   threshold:  of the luma p (of RGB floor(0.299f·R + 0.587f·G + 0.114f·B)) and its window: 0 where p·n < S·(1 − sensitivity), in
///               float64, else the largest value; for Y, or for each of R, G and B. Chroma is neutral.
///               Source: Bradley and Roth, "Adaptive Thresholding Using the Integral Image", 2007.
///   deviation:  √(Q/n − (S/n)²) of Y, or of each of R, G and B, rounded half to even. Chroma is neutral.
///   nlm:        of every component by itself Σ w(o)·v(p + o) / Σ w(o) over the offsets o of at most search-radius (scaled as radius is)
///               along each axis for which p + o is inside the frame; w(o) = exp(−d(o) / h²), where d(o) is the mean of
///               (v(p + k) − v(p + o + k))² over the patch, as far as p + k and p + o + k are inside the frame, in steps of 8 bits
///               squared; h = strength. Source: Buades, Coll and Morel, 2005; the sums by Darbon et al., "Fast nonlocal filtering
///               applied to electron cryomicroscopy", 2008.
/// Errors: settings (bad parameters, a backend not built in), resource.
Result<std::unique_ptr<Filter>> make_local(const LocalParams& params, const Geometry& geometry, Backend backend);

namespace detail {

/// Parameters resolved for a geometry: what a backend computes.
struct LocalPlan {
  Geometry geometry;
  LocalOperation operation = LocalOperation::box_mean;
  struct Radius {
    int x = 0, y = 0;
  };
  std::array<Radius, 3> radius, search;  ///< of each channel set
  double factor = 1;                     ///< 1 − sensitivity
  double scale = 0;                      ///< −1 / h² for differences of samples
  IntegralPlan tables;                   ///< padded; empty for nlm
  /// The table of a channel, or −1: chroma of threshold and deviation, which becomes neutral, and what is not filtered; of its squares where there are any, `squares` tables later.
  std::array<std::array<int, 4>, 3> table_of;
  int squares = 0;
};

LocalPlan resolve(const LocalParams& params, const Geometry& geometry);

Result<std::unique_ptr<Filter>> make_local_cuda(LocalPlan plan);
Result<std::unique_ptr<Filter>> make_local_cpu(LocalPlan plan);

}  // namespace detail
}  // namespace cudavision
