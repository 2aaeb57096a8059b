// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"

namespace cudavision::cpu {

/// Memory of one thread at work, kept between frames.
struct Scratch {
  cv::Mat raw, values, floats, result, sums, more;
};

/// A matrix of this size and type in `store`, which grows when it must: strips and sets of changing size do not allocate.
cv::Mat sized(cv::Mat& store, cv::Size size, int type);

inline cv::Rect cv_rect(const Rect& rect) { return {rect.x, rect.y, rect.width, rect.height}; }

/// The whole grid of a channel set, without copying: 8- or 16-bit unsigned, `set.channels` channels. In packed 4:2:2 the
/// channels of Role::other are there too, and are not the caller's to write.
cv::Mat set_mat(const Image& image, const ChannelSet& set);

/// How a channel set's stored words become plain values — samples 0 … 2^depth − 1, channels of Role::other left out — and
/// the way back. Where the words are the values nothing is copied.
class SetAccess {
 public:
  SetAccess() = default;
  SetAccess(const FormatInfo& format, const ChannelSet& set, Border border, const BorderValue& border_value, bool filter_alpha);

  /// The stored words are the values: a filter may write the planes themselves, and read what holds_values().
  bool plain() const { return shift_ == 0 && channels() == stored_channels_; }
  /// Whether all stored words of a part of the frame are values, none of them above the depth.
  bool holds_values(const cv::Mat& stored) const;
  int channels() const { return int(load_.size() / 2); }
  int type() const { return CV_MAKETYPE(depth_, channels()); }
  const cv::Scalar& border_value() const { return border_value_; }

  /// The values of `window`, which may reach beyond the edges: a view of `frame`, or a copy in `scratch`. A stored value above the
  /// depth counts as the greatest one.
  cv::Mat read(const cv::Mat& frame, const Rect& window, Scratch& scratch) const;
  /// Where to put the values of a rectangle: `out` itself, or `scratch`, for write() to bring there.
  cv::Mat target(const cv::Mat& out, Scratch& scratch) const;
  /// Stores values, unless they are there already; then copies the channels that are not filtered from `in`.
  void write(const cv::Mat& values, const cv::Mat& in, cv::Mat out) const;
  /// Copies the stored words of the set's own channels.
  void copy(const cv::Mat& in, cv::Mat out) const;

 private:
  cv::Mat extrapolate(const cv::Mat& frame, const Rect& window, cv::Mat& store) const;

  int depth_ = CV_8U, stored_channels_ = 1, shift_ = 0;
  int max_value_ = 255;
  bool can_exceed_ = false;         ///< see can_exceed_depth
  int unused_end_ = 0;              ///< bytes of Role::other that end a pixel
  std::vector<int> load_, store_;   ///< pairs of channels: stored to value, and back
  std::vector<int> copied_, kept_;  ///< from input to output: the set's own; those not filtered
  Border border_ = Border::replicate;
  cv::Scalar border_value_;  ///< of the values
  cv::Mat border_pixel_;     ///< as stored, 1×1
};

/// What filters on the CPU share: copying, channel sets, strips of rows on several threads.
class CpuFilter : public Filter {
 public:
  CpuFilter(const Geometry& geometry, Border border, const BorderValue& border_value, bool filter_alpha);

 protected:
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) final;
  Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override;

  /// Computes `rect`, not empty, of channel set `index`, whose whole grids are `frame` and `out`.
  virtual void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) = 0;

  const SetAccess& access(int index) const { return access_[std::size_t(index)]; }

  /// Cuts a rectangle of a picture of `channels` channels into strips of rows that stay in the cache, and works on them
  /// with OpenCV's threads. `overlap`: rows that a strip reads beyond itself.
  void for_strips(const Rect& rect, int channels, int overlap, const std::function<void(const Rect&, Scratch&)>& work);

 private:
  std::array<SetAccess, 3> access_;
  std::vector<Scratch> scratch_;
};

}  // namespace cudavision::cpu
