// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the votes of pixels for an object or a ghost (kernels/diff/structure.hpp).
#include "kernels/diff/structure.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/diff/cpu_stages.hpp"
#include "kernels/diff/motion.hpp"
#include "tests/kernels/positions.hpp"

namespace cudavision::test {
namespace {

using namespace diff;

constexpr int width = 80, height = 60;

/// The pictures of StructureJob, and a mask.
struct Pictures {
  std::vector<std::int16_t> frame = std::vector<std::int16_t>(std::size_t(width) * height);
  std::vector<std::uint8_t> expected = std::vector<std::uint8_t>(frame.size()), mask = expected;

  StructureJob job() const { return {frame.data(), expected.data(), width, width, height}; }
  bool changed(int x, int y) const { return mask[std::size_t(y) * width + std::size_t(x)] != 0; }
  Structure votes(const Rect& box) const {
    Structure votes{};
    for (const auto& [x, y] : positions(box))
      job().vote(
          x, y, [this](int u, int v) { return changed(u, v); }, votes);
    return votes;
  }
  Structure votes() const { return votes({0, 0, width, height}); }
};

/// A plain box stands in front of a pattern, in the frame (an object) or in the background (a ghost). The mask is
/// larger than the box by a pixel on each side.
template <typename Pattern>
Pictures plain_before(Pattern pattern, const Rect& box, bool ghost) {
  Pictures pictures;
  for (int y = 0, at = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, ++at) {
      const int with = contains(box, x, y) ? 100 : pattern(x, y), without = pattern(x, y);
      pictures.frame[std::size_t(at)] = std::int16_t((ghost ? without : with) << 7);
      pictures.expected[std::size_t(at)] = std::uint8_t(ghost ? with : without);
      pictures.mask[std::size_t(at)] = contains({box.x - 1, box.y - 1, box.width + 2, box.height + 2}, x, y);
    }
  return pictures;
}

TEST(Structure, KnowsPlainThingsBeforeAPattern) {
  int (*const patterns[])(int, int) = {
      [](int, int) { return 150; },
      [](int x, int y) { return (x + y) / 4 % 2 ? 170 : 130; },
      [](int x, int y) { return (x + 2 * y) / 6 % 2 ? 170 : 130; },
      [](int x, int y) { return (2 * x - y + 99) / 7 % 2 ? 170 : 130; },
      [](int x, int y) { return 130 + (x * 7919 + y * 104729 + x * y * 31) % 31; },
  };
  for (const auto pattern : patterns)
    for (const Rect box : {Rect{30, 20, 20, 24}, Rect{21, 7, 11, 40}, Rect{0, 10, 17, 50}}) {
      const Structure object = plain_before(pattern, box, false).votes(),
                      ghost = plain_before(pattern, box, true).votes();
      EXPECT_GT(object.edges, 10 * object.reference_edges) << box.x;
      EXPECT_EQ(ghost.edges, object.reference_edges) << "frame and background have changed their roles";
      EXPECT_EQ(ghost.reference_edges, object.edges);
    }
}

/// The stripes that a pole hides meet its outline at a right angle. The background has more edges there than the frame.
TEST(Structure, IgnoresEdgesThatMeetTheOutline) {
  const auto stripes = [](int, int y) { return y / 3 % 2 ? 160 : 100; };
  const Structure pole = plain_before(stripes, {30, 0, 9, height}, false).votes();
  EXPECT_GT(pole.edges, 40u);
  EXPECT_EQ(pole.reference_edges, 0u);
}

TEST(Structure, VotesOnlyAtTheOutline) {
  const auto flat = [](int, int) { return 60; };
  const Pictures pictures = plain_before(flat, {30, 20, 20, 24}, false);
  EXPECT_EQ(pictures.votes({34, 24, 12, 16}).edges, 0u);
  EXPECT_GT(pictures.votes().edges, 80u);
  EXPECT_EQ(pictures.votes().reference_edges, 0u);
}

TEST(Structure, KnowsNeitherUpNorDown) {
  const auto pattern = [](int x, int y) { return 40 + (x * 7919 + y * 104729 + x * y * 31) % 31 * 4; };
  const Pictures one = plain_before(pattern, {0, 13, 17, 31}, true);
  for (const bool across : {false, true}) {
    Pictures flipped;
    for (const auto& [x, y] : positions(width, height)) {
      const std::size_t from = std::size_t(y) * width + std::size_t(x);
      const std::size_t to = across ? std::size_t(y) * width + std::size_t(width - 1 - x)
                                    : std::size_t(height - 1 - y) * width + std::size_t(x);
      flipped.frame[to] = one.frame[from], flipped.expected[to] = one.expected[from];
      flipped.mask[to] = one.mask[from];
    }
    const Structure a = one.votes(), b = flipped.votes();
    EXPECT_EQ(a.edges, b.edges);
    EXPECT_EQ(a.reference_edges, b.reference_edges);
    EXPECT_EQ(a.same, b.same);
  }
}

/// The CPU sums the mask by columns.
TEST(Structure, IsTheSameOfACell) {
  std::mt19937 random(7);
  Pictures pictures;
  for (std::size_t i = 0; i < pictures.frame.size(); ++i) {
    pictures.frame[i] = std::int16_t(random() % (200 << 7)), pictures.expected[i] = std::uint8_t(random() % 200);
    pictures.mask[i] = random() % 30 == 0 || (i % width / 9 + i / width / 7) % 2 == 0 ? 255 : 0;
  }
  const Cells cells{width, height, 16, 1};
  std::vector<std::uint32_t> changed(5 * 4, 256);
  LooksJob job{};
  job.width = width, job.height = height, job.only_extents = true, job.structure = pictures.job();
  std::vector<CellLooks> looks;
  measure_looks(job, true, cv::Mat(height, width, CV_8U, pictures.mask.data()), cells, changed, looks);
  for (const auto& [x, y] : positions(5, 4)) {
    const Structure one = pictures.votes(cells.box(x, y)), other = looks.at(std::size_t(y) * 5 + x).structure;
    EXPECT_GT(one.edges, 0u);
    EXPECT_EQ(one.edges, other.edges) << x << " " << y;
    EXPECT_EQ(one.reference_edges, other.reference_edges) << x << " " << y;
    EXPECT_EQ(one.same, other.same) << x << " " << y;
    EXPECT_EQ(one.other, other.other) << x << " " << y;
  }
}

}  // namespace
}  // namespace cudavision::test
