// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"
#include "kernels/core/luma.hpp"
#include "kernels/core/region.hpp"

namespace cudavision {

inline constexpr int histogram_max_bins = 65536;
inline constexpr int histogram_max_history = 64;
inline constexpr int histogram_max_channels = 4;

enum class HistogramChannels {
  luma,        ///< "luma"
  components,  ///< "R", "G", "B"; or "Y", "Cb", "Cr"; or "Y" of gray
  all,         ///< luma, then the components
};

struct HistogramParams {
  int bins = 256;  ///< 2–65536; the format's range 0 … 2^depth − 1 is split evenly: a sample v is in bin v·bins >> depth
  HistogramChannels channels = HistogramChannels::luma;
  LumaMatrix luma = LumaMatrix::bt601;
  int history = 1;  ///< 1–64: results of so many frames are kept, for a caller with several in flight
};

/// What is wrong with parameters, whatever the format.
Status validate(const HistogramParams& params);

/// How many samples of one channel are in each bin.
struct ChannelCounts {
  const char* name;
  std::vector<std::uint64_t> counts;
};
using HistogramCounts = std::vector<ChannelCounts>;

namespace detail {
struct HistogramPlan;
}

/// Counts the samples of frames. A plan: made once for a geometry and parameters, submitted often; one plan serves one stream at a
/// time. Luma of RGB is floor(wr·R + wg·G + wb·B) in float32, each product and sum rounded, left to right, at most 2^depth − 1.
/// Alpha and padding are never counted.
class Histogram {
 public:
  virtual ~Histogram() = default;
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  Backend backend() const { return backend_; }
  const Geometry& geometry() const;
  int bins() const;
  const std::vector<const char*>& channels() const;

  /// Counts one frame, of the plan's geometry, in the backend's memory. A sample counts once if it is in the region (region.hpp
  /// says which subsampled chroma is). The counts of a channel add up to its samples in the region, exactly. Returns without
  /// waiting on CUDA. Errors: resource, when memory is short or a launch fails.
  Status submit(const Image& src, const Region& region, Queue queue);

  /// The counts of the frame submitted `age` submits ago (0 … history − 1), in the order of channels(). To be called once that
  /// submit's queue has been waited for, and before its place is taken, `history` submits later.
  HistogramCounts result(int age = 0) const;
  /// Adds them to those of other frames; to nothing, where `sums` is empty.
  void add_result(HistogramCounts& sums, int age = 0) const;

  /// The last frame's counts where the backend keeps them (device memory on CUDA), [channel][bin]: for work on the same queue.
  virtual const std::uint32_t* latest() const = 0;

  const detail::HistogramPlan& plan() const { return *plan_; }

 protected:
  Histogram(detail::HistogramPlan plan, Backend backend, bool results);

  /// Words of one frame's counts.
  std::size_t words() const;
  /// Counts these samples, and leaves the counts in latest() and `slot` of the results (none: do not).
  virtual Status count(const Image& src, const SetPieces& pieces, int slot, Queue queue) = 0;
  /// Host memory of a slot's counts, [channel][bin].
  virtual const std::uint32_t* slot_counts(int slot) const = 0;
  int slots() const;

 private:
  const std::unique_ptr<const detail::HistogramPlan> plan_;
  const Backend backend_;
  const int slots_;
  SetPieces frame_, pieces_;
  detail::AlignedPicture src_;
  int last_ = 0;
};

/// Errors: settings (bad parameters, or a backend not built in), resource.
Result<std::unique_ptr<Histogram>> make_histogram(const HistogramParams& params, const Geometry& geometry, Backend backend);

/// What a channel's counts say of its samples. Values are the format's own, 0 … 2^depth − 1; a bin of several values stands for the
/// middle of them (first + last) / 2, so that with bins ≥ 2^depth all is exact. Of no samples everything is 0.
struct HistogramStatistics {
  std::uint64_t count = 0;              ///< samples
  double min = 0, max = 0;              ///< of the lowest and the highest bin that is not empty
  double mean = 0, deviation = 0;       ///< deviation: √(Σ(v − mean)² / count)
  double median = 0, p01 = 0, p99 = 0;  ///< the lowest value that ½, 1 %, 99 % of the samples do not exceed
  double entropy = 0;                   ///< −Σ p·log2 p over the bins, in bits
  double saturated = 0;                 ///< share of samples, 0–1, in the bins of 0 and of 2^depth − 1
};
HistogramStatistics statistics(const std::vector<std::uint64_t>& counts, int depth);

/// Histogram equalisation of the luma, by cv::equalizeHist's rule at any depth: with P(v) the samples of the region up to v and n₀
/// those of the lowest value that occurs, v becomes round((P(v) − n₀) · (2^depth − 1) / (P(max) − n₀)) in float32, half to even; a
/// picture of one value stays. GRAY8 equals cv::equalizeHist bit for bit; YUV formats change in Y alone. RGB is shifted by what its
/// luma (of `matrix`) changes, R + lut(y) − y and so on, saturated: what equalising Y of its YCbCr does. Alpha and padding stay.
/// Errors: settings (a backend not built in), resource.
Result<std::unique_ptr<Filter>> make_equalize(LumaMatrix matrix, const Geometry& geometry, Backend backend);

struct HistogramOverlayParams {
  Rect position{16, 16, 256, 100};  ///< pixels; clipped to the picture; what does not fit is not drawn
  double opacity = 0.75;            ///< 0–1
  bool log = false;                 ///< heights by the logarithm of the counts
};
Status validate(const HistogramOverlayParams& params);

/// Draws a histogram into pictures. A bar's height is its count by the largest of its channel; a column that stands for several
/// bins shows the largest. Where bars of luma (white) and of components (Y white, R and Cr red, G green, B and Cb blue; where
/// several lie over each other the sum of their colours) are, they are blended over the picture, on a panel blended towards black
/// with half the opacity. Colours of YUV are BT.601's of limited range; subsampled chroma looks at the first of its pixels. Alpha
/// stays.
class HistogramOverlay {
 public:
  virtual ~HistogramOverlay() = default;
  HistogramOverlay(const HistogramOverlay&) = delete;
  HistogramOverlay& operator=(const HistogramOverlay&) = delete;

  /// Draws the counts of the histogram's last submit, made on the same queue, into a picture of the histogram's geometry. Does not
  /// wait on CUDA. Errors: resource.
  Status submit(const Image& picture, Queue queue);

 protected:
  explicit HistogramOverlay(Backend backend) : picture_(backend) {}
  virtual Status draw(const Image& picture, Queue queue) = 0;

 private:
  detail::AlignedPicture picture_;
};
/// `histogram` must live as long. Errors: settings, resource.
Result<std::unique_ptr<HistogramOverlay>> make_histogram_overlay(const HistogramOverlayParams& params, const Histogram& histogram);

namespace detail {

/// Parameters resolved for a geometry: what a backend computes. Samples are counted in tables, of `fine` entries each: of single
/// values where `fine` is 2^depth, otherwise of bins. Tables of one channel set follow each other, luma of RGB is the first.
struct HistogramPlan {
  Geometry geometry;
  int bins = 256, fine = 256;
  int history = 1;
  bool rgb_luma = false;      ///< table 0 counts luma made of R, G and B
  bool three_planes = false;  ///< … which are planes: one job reads all of them
  LumaWeights weights{};
  std::array<std::int8_t, role_count> table_of{};  ///< by role; −1: not counted
  int tables = 0;
  std::vector<const char*> channels;                          ///< names
  std::array<std::uint8_t, histogram_max_channels> table{};   ///< of each channel
  std::array<std::uint8_t, histogram_max_channels> colour{};  ///< of each channel when drawn: bit 0 red, 1 green, 2 blue

  /// Whether the fine entries are values, to be gathered into bins.
  bool by_value() const { return fine == 1 << info(geometry.format).depth; }
  bool counts(const ChannelSet& set) const;
};
Result<HistogramPlan> resolve(const HistogramParams& params, const Geometry& geometry);

/// The values of a bin are [first_value(bin), first_value(bin + 1)).
CUDAVISION_HOST_DEVICE inline int first_value(int bin, int bins, int depth) {
  return int(((std::uint64_t(bin) << depth) + unsigned(bins) - 1) / unsigned(bins));
}

/// `results`: keep counts where result() finds them.
Result<std::unique_ptr<Histogram>> make_histogram_cuda(HistogramPlan plan, bool results);
Result<std::unique_ptr<Histogram>> make_histogram_cpu(HistogramPlan plan);
Result<std::unique_ptr<Filter>> make_equalize_cuda(HistogramPlan plan);
Result<std::unique_ptr<Filter>> make_equalize_cpu(HistogramPlan plan);

/// The equalising value of a sample: `below` samples are less or equal, of `total`; `lowest` have the lowest value.
CUDAVISION_HOST_DEVICE inline int equalized(int value, std::uint32_t below, std::uint32_t lowest, std::uint32_t total,
                                            int max_value) {
  if (lowest == total) return value;
  if (below <= lowest) return 0;
  const float scale = float(max_value) / float(int(total - lowest));
  const float scaled = float(int(below - lowest)) * scale;
#ifdef __CUDA_ARCH__
  return min(__float2int_rn(scaled), max_value);
#else
  return std::min(int(__builtin_rintf(scaled)), max_value);
#endif
}

/// An overlay resolved for a histogram.
struct OverlayPlan {
  Geometry geometry;
  Rect position;  ///< as asked for
  int channels = 1, bins = 256;
  bool log = false;
  int opacity = 256;  ///< of 256
  std::array<std::uint8_t, histogram_max_channels> colour{};
  std::uint8_t luma = 0;                     ///< bit c: channel c is luma, drawn below the others
  std::uint16_t values[8][role_count] = {};  ///< samples of a colour of red, green, blue bits
};
Result<OverlayPlan> resolve(const HistogramOverlayParams& params, const HistogramPlan& plan);

/// Heights are in pixels, by integers alone, so that the backends agree. A logarithm: binary, in 2^-16, linear between powers of
/// two.
CUDAVISION_HOST_DEVICE inline std::uint32_t log2_fixed(std::uint32_t n) {
  int exponent = 0;
  for (std::uint32_t m = n; m > 1; m >>= 1) ++exponent;
  return std::uint32_t(exponent) << 16 | std::uint32_t((std::uint64_t(n) << 16 >> exponent) & 0xffff);
}
CUDAVISION_HOST_DEVICE inline int bar_height(std::uint32_t count, std::uint32_t largest, int height, bool log) {
  if (largest == 0) return 0;
  const std::uint64_t part = log ? log2_fixed(count + 1) : count, whole = log ? log2_fixed(largest + 1) : largest;
  return int((part * unsigned(height) + whole / 2) / whole);
}
/// The bins of column x are [first_bin(x), max(first_bin(x) + 1, first_bin(x + 1))).
CUDAVISION_HOST_DEVICE inline int first_bin(int x, int bins, int width) { return int(std::int64_t(x) * bins / width); }

CUDAVISION_HOST_DEVICE inline int blend(int below, int above, int opacity) {
  return (below * (256 - opacity) + above * opacity + 128) >> 8;
}

/// The channels whose bar is at a pixel of the overlay, by bits; `heights` is [channel][column].
CUDAVISION_HOST_DEVICE inline unsigned covering_bars(const OverlayPlan& plan, const std::uint16_t* heights, int x, int y) {
  unsigned covering = 0;
  for (int c = 0; c < plan.channels; ++c)
    covering |= unsigned(heights[c * plan.position.width + x] >= plan.position.height - y) << c;
  return covering;
}
/// The samples of a set whose first pixel is in the overlay and in the picture.
Rect overlay_rect(const OverlayPlan& plan, const ChannelSet& set);

/// A sample of role `role` under the overlay: `covering` has bit c where channel c's bar is.
CUDAVISION_HOST_DEVICE inline int overlaid(const OverlayPlan& plan, int sample, int role, unsigned covering) {
  sample = blend(sample, plan.values[0][role], plan.opacity / 2);
  if (covering & plan.luma) sample = blend(sample, plan.values[7][role], plan.opacity);
  int colour = 0;
  for (int c = 0; c < plan.channels; ++c)
    if (covering & ~plan.luma & 1u << c) colour |= plan.colour[c];
  return colour ? blend(sample, plan.values[colour][role], plan.opacity) : sample;
}

Result<std::unique_ptr<HistogramOverlay>> make_histogram_overlay_cuda(OverlayPlan plan, const Histogram& histogram);
Result<std::unique_ptr<HistogramOverlay>> make_histogram_overlay_cpu(OverlayPlan plan, const Histogram& histogram);

}  // namespace detail
}  // namespace cudavision
