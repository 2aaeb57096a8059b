// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <vector>

#include "kernels/core/aligned.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/polygon.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// The part of a frame that a filter changes. Outside this part, the result equals the input, bit for bit.
struct Region {
  enum class Mode { frame, inside, outside };
  Mode mode = Mode::frame;
  std::vector<Rect> rects = {};     ///< in pixels of the picture; may overlap each other and extend beyond the picture
  std::vector<Rect> ellipses = {};  ///< the boxes that the ellipses fill; same rules as `rects`
  std::vector<Polygon> polygons = {};  ///< with at most max_outline_corners corners each

  /// Whether there are no shapes.
  bool empty() const { return rects.empty() && ellipses.empty() && polygons.empty(); }
};
/// The maximum number of corners of a polygon. It is limited because the corners are launch arguments.
inline constexpr int max_outline_corners = 256;

/// Which samples of a subsampled grid belong to a shape in pixels.
enum class Coverage {
  inner,  ///< samples whose pixels all lie in the shape
  outer,  ///< samples with at least one pixel in the shape
};
struct Outline;  // kernels/core/outline.hpp

/// A plan is made once for a geometry and parameters, and submitted for each frame. It holds all values that can be
/// computed beforehand. One plan serves one stream at a time.
class Filter {
 public:
  /// `filter_alpha`: whether filter() computes an alpha plane. Otherwise the base class copies the plane, and filter()
  /// gets an empty rectangle for it.
  Filter(const Geometry& geometry, Backend backend, bool filter_alpha = false)
      : geometry_(geometry),
        backend_(backend),
        copies_alpha_(!filter_alpha && info(geometry.format).alpha_set() >= 0),
        src_(backend),
        dst_(backend),
        part_(backend) {}
  virtual ~Filter() = default;
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  const Geometry& geometry() const { return geometry_; }

  /// Reads `src` and writes every sample of `dst`, and its padding (see fill_padding). Both pictures have the plan's
  /// geometry, lie in the backend's memory, and do not overlap. Does not wait for CUDA. If a filter depends on the
  /// boxes of shapes (see box()), the box with the longest shorter side wins where shapes overlap. Errors: resource
  /// (out of memory, or a launch fails), settings (a polygon with too many corners).
  Status submit(const Image& src, const Image& dst, const Region& region, Queue queue);

 protected:
  /// Called first in each submit(), for work that needs the whole frame.
  virtual Status begin(const Image&, const Region&, Queue) { return {}; }
  /// A shape of a region.
  struct Part {
    Rect box;  ///< the box around the shape; may extend beyond the picture, by at most max_frame_side
    const Polygon* polygon = nullptr;  ///< nullptr: a rectangle or an ellipse
    bool cut = false;                  ///< the shape is an ellipse or a polygon in its box
  };
  /// Computes the samples in `rects`; may read all of `src`.
  virtual Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) = 0;
  /// Computes the samples in these shapes in order: where shapes overlap, the last one wins. A filter that computes
  /// several shapes in one launch overrides this.
  virtual Status filter_parts(const Image& src, const Image& dst, const std::vector<Part>& parts, Queue queue);
  /// Copies the whole frame.
  Status copy_frame(const Image& src, const Image& dst, Queue queue) const {
    return copy_picture(backend_, src, dst, queue);
  }
  /// Copies the samples in `rects`, except samples of Role::other.
  virtual Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) = 0;
  /// Copies the samples in `rects` that belong to the shape, except samples of Role::other.
  virtual Status copy_outline(const Image& src, const Image& dst, const SetRects& rects, const Outline& outline,
                              Coverage coverage, Queue queue) = 0;
  /// For filter(): the box of the shape being computed, or the whole picture, in pixels. It may extend beyond the
  /// picture, by at most max_frame_side.
  const Rect& box() const { return box_; }

 private:
  Status run(const Image& src, const Image& dst, const Region& region, Queue queue);
  SetRects computed(SetRects rects) const;
  Status find_shapes(const Region& region);
  Status restore_inside(const Image& src, const Image& dst, Queue queue);

  Geometry geometry_;
  Backend backend_;
  bool copies_alpha_;
  AlignedPicture src_, dst_, part_;  ///< part_: the box of an ellipse or a polygon, before the shape is cut out of it
  Rect box_;
  std::vector<Part> parts_;  ///< parts of the region, kept to reuse the memory
};

/// A filter that copies the frame and ignores the region. Errors: settings (a backend that is not built in).
Result<std::unique_ptr<Filter>> make_copy(const Geometry& geometry, Backend backend);

/// The samples that belong to the pixels [begin, end) along one axis of `length` pixels, as a range [begin, end). The
/// last sample may cover fewer pixels.
std::pair<int, int> samples_of(int begin, int end, int length, int shift, Coverage coverage);
/// The samples that belong to a rectangle of pixels.
SetRects set_rects(const Geometry& geometry, const Rect& pixels, Coverage coverage);
/// All samples of all sets.
SetRects whole_frame(const Geometry& geometry);

}  // namespace cudavision
