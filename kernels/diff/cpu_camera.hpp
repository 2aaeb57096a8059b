// SPDX-License-Identifier: LGPL-2.1-or-later
// The team of camera.hpp on the CPU: one thread.
#pragma once

#include "kernels/diff/camera.hpp"

namespace cudavision::diff {

struct OneThread {
  bool first() const { return true; }
  void wait() const {}
  template <typename Work>
  void each(int across, int down, Work work) const {
    for (int j = 0; j < down; ++j)
      for (int i = 0; i < across; ++i) work(i, j);
  }
  void add(std::uint32_t& to, std::uint32_t value) const { to += value; }
  camera::Sums sum(camera::Sums own) const { return own; }
};

}  // namespace cudavision::diff
