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

/// The part of a frame that a filter changes. Outside of it the result equals the input, bit for bit.
struct Region {
  enum class Mode { frame, inside, outside };
  Mode mode = Mode::frame;
  std::vector<Rect> rects;  ///< in pixels of the picture; clipped to it; may overlap
};

/// A rectangle for each channel set of a format, in samples of that set's grid.
using SetRects = std::array<Rect, 3>;

/// A plan: made once for a geometry and parameters, submitted for each frame. It holds what can be computed beforehand. One plan
/// serves one stream at a time.
class Filter {
 public:
  Filter(const Geometry& geometry, Backend backend) : geometry_(geometry), backend_(backend), src_(backend), dst_(backend) {}
  virtual ~Filter() = default;
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  const Geometry& geometry() const { return geometry_; }

  /// Reads `src` and writes every sample of `dst` (exception: the byte at the end of packed 4:2:2 rows of odd width, which belongs
  /// to no pixel). Both have the plan's geometry, lie in the backend's memory, and do not overlap. Does not wait for CUDA.
  /// Errors: resource (out of memory, or a launch fails).
  Status submit(const Image& src, const Image& dst, const Region& region, Queue queue);

 protected:
  /// Called first in each submit, for work that needs the whole frame.
  virtual Status begin(const Image&, const Region&, Queue) { return {}; }
  /// Computes the samples in `rects`; may read all of `src`.
  virtual Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) = 0;
  /// Copies the whole frame.
  Status copy_frame(const Image& src, const Image& dst, Queue queue) const { return copy_picture(backend_, src, dst, queue); }
  /// Copies the samples in `rects`, except those of Role::other.
  virtual Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) = 0;

 private:
  Status run(const Image& src, const Image& dst, const Region& region, Queue queue);

  Geometry geometry_;
  Backend backend_;
  AlignedPicture src_, dst_;
};

/// A filter that copies the frame and ignores the region. Errors: settings (a backend that is not built in).
Result<std::unique_ptr<Filter>> make_copy(const Geometry& geometry, Backend backend);

/// Which samples of a subsampled grid belong to a rectangle of pixels.
enum class Coverage {
  inner,  ///< samples whose pixels all lie in the rectangle
  outer,  ///< samples with at least one pixel in it
};
SetRects set_rects(const Geometry& geometry, const Rect& pixels, Coverage coverage);
/// All samples of all sets.
SetRects whole_frame(const Geometry& geometry);

}  // namespace cudavision
