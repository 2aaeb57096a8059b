// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/diff/diff.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// The defaults without the search for switches of the light, because tests change most of a picture at once.
inline diff::Params without_light() {
  diff::Params params;
  params.light_change_ratio = 0;
  return params;
}

/// What the plan of diff::make() must give, pixel by pixel, for all references except mog2.
class Diff {
 public:
  Diff(const diff::Params& params, const Geometry& geometry) : params_(params), geometry_(geometry) {}

  /// The expected diff::CellLooks.
  struct Looks {
    int left = 1 << 20, top = 1 << 20, right = -1, bottom = -1;
    std::int64_t pixels = 0, luma = 0, luma_squares = 0, cb = 0, cr = 0;
    std::uint64_t columns = 0;

    bool operator==(const diff::CellLooks& o) const {
      return left == o.left && top == o.top && right == o.right && bottom == o.bottom && pixels == o.pixels &&
             luma == o.luma && luma_squares == std::int64_t(o.luma_squares) && cb == o.cb && cr == o.cr &&
             columns == o.columns;
    }
  };
  struct Step {
    Picture out;  ///< the expected contents of dst; meaningless for diff::Output::none
    bool compared = false, light = false;
    std::vector<std::uint8_t> mask;  ///< one per pixel, 0 or 1
    std::vector<std::uint32_t> cells_changed, cells_unmasked;
    std::vector<Looks> cells_looks;
    std::uint64_t sum = 0;       ///< of the differences of the pixels, in sample values
    std::uint64_t analysed = 0;  ///< counted pixels, at the size of the analysis
  };
  Step submit(const Picture& src, Layout layout = {});
  void reset() { past_.clear(), background_.clear(), shrunk_.reset(); }

 private:
  using Values = std::map<Role, Grid>;
  Step submit_shrunk(const Picture& src, Layout layout);
  std::optional<Values> follow(const Values& now, const Definition& format);
  void drop_shadows(Step& step, const Values& a, const Values& b, const Definition& format) const;
  int shown(int d, int sample, Role role, int max) const;
  void measure_looks(Step& step, const Values& now) const;
  void count_and_show(Step& step, const Values& now, const std::vector<std::uint8_t>& unmasked) const;
  static std::int64_t one(const Definition& format) { return format.depth == 8 ? 256 : 65536; }  ///< of the background
  Values read(const Picture& picture) const;

  const diff::Params params_;
  const Geometry geometry_;
  std::deque<Values> past_;  ///< the oldest first
  std::map<Role, std::vector<std::int64_t>> background_;
  std::shared_ptr<Diff> shrunk_;  ///< for analysis_scale > 1
};

/// The picture with frames drawn around these regions.
Picture with_boxes(const Picture& picture, const std::vector<diff::MotionRegion>& regions);

}  // namespace cudavision::reference
