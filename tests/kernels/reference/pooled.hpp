// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/diff/diff.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// What a diff plan for the background with threshold 0 must find, in double precision; without opening and scale.
class Pooled {
 public:
  Pooled(const diff::Params& params, const Geometry& geometry);

  /// The changed pixels, 0 or 1 for each.
  std::vector<std::uint8_t> submit(const Picture& src);
  /// The changed pixels of a frame whose blocks of scale × scale pixels changed or did not (row-major): pixels of the
  /// blocks at the outline follow the blocks around them that look like them. Where `counted` is 0, nothing changed.
  std::vector<std::uint8_t> refined(const Picture& src, int scale, const std::vector<std::uint8_t>& changed,
                                    const std::vector<std::uint8_t>& counted) const;

 private:
  using Values = std::vector<double>;
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

  std::vector<std::uint8_t> with_enclosed(const std::vector<std::uint8_t>& changed) const;

  const diff::Params params_;
  const int width_, height_, across_, down_;
  int frame_ = 0;
  std::vector<Values> mean_, variance_;
  /// The pixel or one beside it, in the last frame and in the frame before.
  std::vector<std::uint8_t> above_, above_before_;
  std::vector<std::uint8_t> strong_;  ///< in the last frame
};

}  // namespace cudavision::reference
