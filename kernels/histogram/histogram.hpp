// SPDX-License-Identifier: LGPL-2.1-or-later
// Histograms of frames, their statistics, histogram equalisation, and histograms drawn into pictures.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"
#include "kernels/core/luma.hpp"
#include "kernels/core/region.hpp"

namespace cudavision::histogram {

inline constexpr int max_bins = 65536;
inline constexpr int max_history = 64;
inline constexpr int max_channels = 4;

enum class Channels {
  luma,        ///< "luma"
  components,  ///< "R", "G", "B"; or "Y", "Cb", "Cr"; or "Y" of gray
  all,         ///< luma, then the components
};

struct Params {
  /// 2–65536; they divide the format's range 0 … 2^depth − 1 evenly: sample v is in bin v·bins >> depth.
  int bins = 256;
  Channels channels = Channels::luma;
  LumaMatrix luma = LumaMatrix::bt601;
  int history = 1;  ///< 1–64: number of frames whose results are kept, for a caller with several frames in flight
};

/// Checks the parameters. Errors: settings.
Status validate(const Params& params);

/// The number of samples of one channel in each bin.
struct ChannelCounts {
  const char* name;
  std::vector<std::uint64_t> counts;
};
using Counts = std::vector<ChannelCounts>;

/// A plan that counts the samples of frames. It is made once for a geometry and parameters, and submitted for each
/// frame, on one stream at a time. Luma of RGB is floor(wr·R + wg·G + wb·B) in float32, computed from left to right
/// with every product and sum rounded; it is at most 2^depth − 1. Alpha and padding are not counted.
class Histogram {
 public:
  Histogram() = default;
  virtual ~Histogram() = default;
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  virtual Backend backend() const = 0;
  virtual const Geometry& geometry() const = 0;

  /// Counts one frame of the plan's geometry, in the backend's memory. Every sample in the region is counted once
  /// (region.hpp defines which samples of subsampled chroma are in it). Does not wait for CUDA. Errors: resource (out
  /// of memory, or a launch fails).
  virtual Status submit(const Image& src, const Region& region, Queue queue) = 0;

  /// The counts of the frame submitted `age` submits ago (0 … history − 1). Wait for the queue of that submit first.
  /// The counts are overwritten `history` submits later.
  Counts result(int age = 0) const {
    Counts counts;
    add_result(counts, age);
    return counts;
  }
  /// Adds these counts to `sums`, which holds the counts of other frames or is empty.
  virtual void add_result(Counts& sums, int age = 0) const = 0;
};

/// Makes a plan. Errors: settings (a parameter is out of range, or the backend is not built in), resource.
Result<std::unique_ptr<Histogram>> make(const Params& params, const Geometry& geometry, Backend backend);

/// Statistics of the samples of one channel. Values are in the format's range, 0 … 2^depth − 1. A bin of several values
/// counts as the middle (first + last) / 2, so statistics are exact if bins ≥ 2^depth. Without samples, all fields are
/// 0.
struct Statistics {
  std::uint64_t count = 0;              ///< samples
  double min = 0, max = 0;              ///< values of the lowest and the highest bin that is not empty
  double mean = 0, deviation = 0;       ///< deviation: √(Σ(v − mean)² / count)
  double median = 0, p01 = 0, p99 = 0;  ///< the lowest value that is not exceeded by 50 %, 1 %, 99 % of the samples
  double entropy = 0;                   ///< −Σ p·log2 p over the bins, in bits
  double saturated = 0;                 ///< share of samples in the bins of 0 and of 2^depth − 1, 0–1
};
Statistics statistics(const std::vector<std::uint64_t>& counts, int depth);

/// Histogram equalisation of the luma, by the rule of cv::equalizeHist at any depth. Let P(v) be the number of samples
/// in the region that are at most v, and n₀ the number of samples of the lowest value. Then v becomes round((P(v) − n₀)
/// · (2^depth − 1) / (P(max) − n₀)), in float32, half to even. A picture with a single value is not changed. GRAY8
/// equals cv::equalizeHist bit for bit. In YUV formats only Y is changed. In RGB the change of the luma (of `matrix`)
/// is added to each component, R + lut(y) − y, and the result is saturated; this equals equalising the Y of the
/// picture's YCbCr. Alpha and padding are not changed. Errors: settings (the backend is not built in), resource.
Result<std::unique_ptr<Filter>> make_equalize(LumaMatrix matrix, const Geometry& geometry, Backend backend);

struct OverlayParams {
  Rect position{16, 16, 256, 100};  ///< pixels; the part outside the picture is not drawn
  double opacity = 0.75;            ///< 0–1
  bool log = false;                 ///< whether bars show the logarithm of the counts
};
/// Checks the parameters. Errors: settings.
Status validate(const OverlayParams& params);

/// Draws a histogram into pictures. The height of a bar is its count relative to the largest count of its channel; a
/// column of several bins shows the largest of them. First a black panel is blended with half the opacity, then the
/// bars of luma (white), then the bars of components: Y white, R and Cr red, G green, B and Cb blue. Where bars of
/// several components overlap, their colours are added. Colours in YUV follow BT.601, limited range. A subsampled
/// chroma sample gets the colour of its first pixel. Alpha is not changed.
class Overlay {
 public:
  Overlay() = default;
  virtual ~Overlay() = default;
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;

  /// Draws the counts of the histogram's last submit, which was made on the same queue, into a picture with the
  /// histogram's geometry. Does not wait for CUDA. Errors: resource.
  virtual Status submit(const Image& picture, Queue queue) = 0;
};
/// Makes an overlay. `histogram` must outlive it. Errors: settings (a parameter is out of range), resource.
Result<std::unique_ptr<Overlay>> make_overlay(const OverlayParams& params, const Histogram& histogram);

}  // namespace cudavision::histogram
