// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/core/aligned.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Which part of a frame is worked on. Outside of it the result is the input, bit for bit.
struct Region {
  enum class Mode { frame, inside, outside };
  Mode mode = Mode::frame;
  std::vector<Rect> rects;  ///< in pixels of the picture; clipped to it; may overlap
};

/// A rectangle for each channel set of a format, in samples of that set's grid.
using SetRects = std::array<Rect, 3>;

/// A plan: made once for a geometry and parameters, submitted often. It keeps what is precomputed. One plan
/// serves one stream at a time.
class Filter {
 public:
  Filter(const Geometry& geometry, Backend backend) : geometry_(geometry), backend_(backend), src_(backend), dst_(backend) {}
  virtual ~Filter() = default;
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  const Geometry& geometry() const { return geometry_; }

  /// Reads `src`, writes every sample of `dst` (packed 4:2:2 of odd width: but the byte that is in no picture).
  /// Both have the plan's geometry, lie in the backend's memory, and do not overlap.
  /// Returns without waiting on CUDA. Errors: resource, when memory is short or a launch fails.
  Status submit(const Image& src, const Image& dst, const Region& region, Queue queue);

 protected:
  /// Comes first of a submit: for what must be known of the whole frame.
  virtual Status begin(const Image&, const Region&, Queue) { return {}; }
  /// Computes the samples in `rects`, from all of `src`.
  virtual Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) = 0;
  /// Copies all of the frame.
  Status copy_frame(const Image& src, const Image& dst, Queue queue) const {
    return detail::copy_picture(backend_, src, dst, queue);
  }
  /// Copies the samples in `rects`, but none of Role::other.
  virtual Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) = 0;

 private:
  Status run(const Image& src, const Image& dst, const Region& region, Queue queue);

  Geometry geometry_;
  Backend backend_;
  detail::AlignedPicture src_, dst_;
};

/// A filter that copies the frame, whatever the region. Errors: settings (a backend not built in).
Result<std::unique_ptr<Filter>> make_copy(const Geometry& geometry, Backend backend);

namespace detail {
Result<std::unique_ptr<Filter>> make_copy_cuda(const Geometry& geometry);
Result<std::unique_ptr<Filter>> make_copy_cpu(const Geometry& geometry);
}  // namespace detail

/// How a rectangle of pixels falls on a subsampled grid.
enum class Coverage {
  inner,  ///< samples whose pixels all lie in the rectangle
  outer,  ///< samples with any pixel in it
};
SetRects set_rects(const Geometry& geometry, const Rect& pixels, Coverage coverage);
/// All samples of all sets.
SetRects whole_frame(const Geometry& geometry);

}  // namespace cudavision
