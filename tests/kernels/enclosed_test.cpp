// SPDX-License-Identifier: LGPL-2.1-or-later
// What changed pixels enclose (kernels/diff/enclosed.hpp), against a slow search along rows and columns.
#include "kernels/diff/enclosed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

struct Mask {
  int width, height;
  std::vector<bool> pixels;
  bool at(int x, int y) const {
    return x >= 0 && y >= 0 && x < width && y < height && pixels[std::size_t(y) * width + x];
  }
};

bool enclosed(const Mask& mask, int reach, int x, int y) {
  bool left = false, right = false, up = false, down = false;
  for (int away = 1; away <= reach; ++away) {
    left = left || mask.at(x - away, y);
    right = right || mask.at(x + away, y);
    up = up || mask.at(x, y - away);
    down = down || mask.at(x, y + away);
  }
  return left && right && up && down;
}

/// The word of the mask that begins at pixel (32·word_x, y).
std::uint32_t word_of(const Mask& mask, int word_x, int y) {
  std::uint32_t word = 0;
  for (int i = 0; i < 32; ++i) word |= std::uint32_t(mask.at(32 * word_x + i, y)) << i;
  return word;
}

TEST(DiffEnclosed, EqualsSearch) {
  Random random(1);
  std::size_t added = 0;
  for (const auto& [width, height] : {std::pair{1, 1}, {31, 7}, {32, 40}, {33, 33}, {100, 60}, {200, 3}}) {
    for (int reach : {1, 2, 3, 7, 12, 31, 32}) {
      for (int share : {2, 15, 50}) {
        Mask mask{width, height, {}};
        for (int i = 0; i < width * height; ++i) mask.pixels.push_back(random.between(0, 99) < share);
        for (int y = 0; y < height; ++y) {
          for (int word_x = 0; 32 * word_x < width; ++word_x) {
            const std::uint32_t filled = diff::filled_word(
                reach, y, height - 1 - y, [&](int dx, int dy) { return word_of(mask, word_x + dx, y + dy); });
            std::uint32_t expected = word_of(mask, word_x, y);
            for (int i = 0; i < 32; ++i) expected |= std::uint32_t(enclosed(mask, reach, 32 * word_x + i, y)) << i;
            ASSERT_EQ(filled, expected) << width << "×" << height << ", reach " << reach << ", at " << 32 * word_x
                                        << "," << y;
            added += filled != word_of(mask, word_x, y);
          }
        }
      }
    }
  }
  EXPECT_GT(added, 1000u);
}

}  // namespace
}  // namespace cudavision::test
