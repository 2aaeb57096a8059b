// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/diff/diff.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// What a diff plan for the background with threshold 0 must find, in double precision, without opening and scale.
class Adaptive {
 public:
  using Mask = std::vector<std::uint8_t>;  ///< 0 or 1 for each pixel

  Adaptive(const diff::Params& params, const Geometry& geometry);

  Mask submit(const Picture& src);
  /// Refines the changed blocks of scale × scale pixels (row-major) of a frame: at the outline, pixels follow the
  /// surrounding blocks that look like them. Where `unmasked` is 0, nothing changed.
  Mask refined(const Picture& src, int scale, const Mask& changed, const Mask& unmasked) const;
  /// Adds the pixels that have a changed pixel on each side, up to `reach` pixels away.
  static Mask with_enclosed(const Mask& changed, int width, int height, int reach);

 private:
  using Values = std::vector<double>;
  struct Expected {
    std::vector<Values> values;  ///< of each channel
    Values gain;
  };
  struct Marks {
    Mask above, raised;  ///< whether the neighbourhood differs by much, and by less
    Mask changed;        ///< above the limit, and not a shadow
  };
  std::vector<Values> read(const Picture& src) const;
  Values measured(const std::vector<Values>& frame, int channel, const Values& gains) const;
  double gain_of(const Values& luma) const;
  Values filled(Values cells, double all) const;
  Values medians(const Values& before) const;
  Values smooth_offsets(const Values& offsets, const Values& gains, const Values& smooth_gains) const;
  double field(const Values& cells, int x, int y) const;
  template <typename Of>
  double around(int radius, int x, int y, Of of) const;
  double spread(int channel, std::size_t i) const;
  void start(const std::vector<Values>& frame);
  Expected expect(const std::vector<Values>& frame) const;
  double unlike_shadow(const std::vector<Values>& frame, const Expected& expected, double dark, std::size_t i) const;
  Marks mark(const std::vector<Values>& frame, const Expected& expected);
  bool turn(int y) const;
  void learn(const std::vector<Values>& frame, const Expected& expected, const Marks& marks);
  void settle(std::size_t i, const Values& value, bool shown, int times);

  const diff::Params params_;
  const int width_, height_, across_, down_;
  int frame_ = 0;
  std::vector<Values> mean_, variance_;
  std::vector<Values> rival_;             ///< another value of the pixel, see settle()
  std::vector<int> stays_, rival_stays_;  ///< how long the mean and the rival were seen, in eighths of a frame
  /// Whether Marks::above was set for the pixel or a neighbour, in the last frame and in the frame before it.
  Mask above_, above_before_;
  Mask strong_;  ///< in the last frame
};

}  // namespace cudavision::reference
