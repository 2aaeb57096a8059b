// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the search for enclosed pixels (kernels/diff/enclosed.hpp) with the slow search of the reference along rows
// and columns.
#include "kernels/diff/enclosed.hpp"

#include <gtest/gtest.h>

#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/adaptive.hpp"

namespace cudavision::test {
namespace {

struct Mask {
  int width, height;
  reference::Adaptive::Mask pixels;

  /// The word that begins at pixel (32 · word_x, y).
  std::uint32_t word(int word_x, int y) const {
    std::uint32_t word = 0;
    for (int i = 0; i < 32 && y >= 0 && y < height; ++i)
      if (const int x = 32 * word_x + i; x >= 0 && x < width)
        word |= std::uint32_t(pixels[std::size_t(y) * width + x]) << i;
    return word;
  }
};

TEST(DiffEnclosed, EqualsSearch) {
  Random random(1);
  std::size_t added = 0;
  for (const auto& [width, height] : {std::pair{1, 1}, {31, 7}, {32, 40}, {33, 33}, {100, 60}, {200, 3}})
    for (int reach : {1, 2, 3, 7, 12, 31, 32})
      for (int share : {2, 15, 50}) {
        Mask mask{width, height, {}};
        for (int i = 0; i < width * height; ++i) mask.pixels.push_back(random.between(0, 99) < share);
        const Mask all{width, height, reference::Adaptive::with_enclosed(mask.pixels, width, height, reach)};
        for (int y = 0; y < height; ++y)
          for (int word_x = 0; 32 * word_x < width; ++word_x) {
            const std::uint32_t filled = diff::filled_word(
                reach, y, height - 1 - y, [&](int dx, int dy) { return mask.word(word_x + dx, y + dy); });
            ASSERT_EQ(filled, all.word(word_x, y))
                << width << "×" << height << ", reach " << reach << ", at " << 32 * word_x << "," << y;
            added += filled != mask.word(word_x, y);
          }
      }
  EXPECT_GT(added, 1000u);
}

}  // namespace
}  // namespace cudavision::test
