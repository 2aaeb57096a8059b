// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests how regions are divided into parts, and what objects look like.
#include "kernels/track/parts.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/kernels/motion_grids.hpp"

namespace cudavision::test {
namespace {

using namespace diff;
using namespace track;
using Cell = std::pair<int, int>;  // x, y

// Parts
// ---------------------------------------------------------------------------------------------------------------------

/// The boxes of the parts as text: "x,y w×h; ". `scale`: pixels of the frame per pixel of the analysis. Figures and
/// `cell` are in pixels of the analysis.
std::string parts_of(const std::vector<Figure>& figures, int cell = 16, bool looks = true, int scale = 1,
                     const SizeMap& sizes = {}) {
  CellGrid grid = painted(640, 480, cell, figures);
  if (!looks) grid.looks.clear();
  grid.frame_width *= scale, grid.frame_height *= scale, grid.cell_size *= scale, grid.analysis_scale = scale;
  std::string text;
  RegionRules rules;
  rules.cell_threshold = 0.1;
  const MotionRegions found = find_regions(grid, rules);
  for (const Part& part : find_parts(found, grid, found.kept.size(), sizes))
    text += std::to_string(part.box.x) + "," + std::to_string(part.box.y) + " " + std::to_string(part.box.width) + "x" +
            std::to_string(part.box.height) + "; ";
  return text;
}

TEST(Parts, ArePeopleSideBySide) {
  const Figure one{{100, 100, 30, 80}}, two{{136, 104, 28, 76}}, three{{168, 98, 30, 80}};
  EXPECT_EQ(parts_of({one}), "100,100 30x80; ");
  // Vertically, cells that two parts share count for both.
  EXPECT_EQ(parts_of({one, two}), "100,100 30x80; 136,100 28x80; ");
  EXPECT_EQ(parts_of({one, two}, 16, false), "96,96 80x96; ");  // whole cells
  EXPECT_EQ(parts_of({one, two, three}), "100,100 30x80; 136,98 28x82; 168,98 30x82; ");
  EXPECT_EQ(parts_of({one, two}, 8), "100,100 30x80; 136,104 28x76; ");
  EXPECT_EQ(parts_of({one, two}, 8, true, 4), "400,400 120x320; 544,416 112x304; ");
  EXPECT_EQ(parts_of({one, two}, 200), "100,100 32x80; 136,100 28x80; ");  // one bit covers four columns
  EXPECT_EQ(parts_of({{{100, 100, 20, 40}}, {{140, 100, 20, 40}}}), "100,100 20x40; 140,100 20x40; ");  // far apart
  // two people hold hands
  EXPECT_EQ(parts_of({one, two, {{120, 140, 30, 6}}}), "100,100 33x80; 133,100 31x80; ");
}

TEST(Parts, AreNotPiecesOfOneThing) {
  // head and body
  EXPECT_EQ(parts_of({{{100, 100, 40, 30}}, {{100, 136, 40, 60}}}), "100,100 40x96; ");
  // a car with a hole
  EXPECT_EQ(parts_of({{{100, 100, 50, 50}}, {{156, 100, 60, 50}}}), "100,100 116x50; ");
  // a person with a dog
  EXPECT_EQ(parts_of({{{100, 100, 30, 80}}, {{136, 150, 28, 30}}}), "100,100 64x80; ");
  // a person with a stick
  EXPECT_EQ(parts_of({{{100, 100, 30, 80}}, {{134, 100, 8, 80}}}), "100,100 42x80; ");
  // legs apart
  EXPECT_EQ(parts_of({{{100, 100, 44, 40}}, {{100, 140, 18, 40}}, {{126, 140, 18, 40}}}), "100,100 44x80; ");
}

/// Cars that follow each other are one region if a shadow links them. They are divided where the usual size is known.
TEST(Parts, AreObjectsOfTheUsualSizeInARow) {
  SizeMap sizes;
  sizes.begin_frame(480);
  for (int i = 0; i < 20; ++i) sizes.add({0, 100, 80, 48}, 80);
  const auto parts = [&](const std::vector<Figure>& figures) { return parts_of(figures, 8, true, 1, sizes); };
  const Figure one{{100, 100, 80, 48}}, two{{192, 100, 80, 48}}, link{{180, 132, 12, 12}}, three{{284, 100, 80, 48}};
  EXPECT_EQ(parts({one, two, link}), "100,100 86x48; 186,100 86x48; ");
  EXPECT_EQ(parts({one, two, three, link, {{272, 132, 12, 12}}}), "100,100 86x48; 186,100 92x48; 278,100 86x48; ");
  EXPECT_EQ(parts_of({one, two, link}, 8), "100,100 172x48; ") << "no size is known";
  EXPECT_EQ(parts({{{100, 100, 172, 48}}}), "100,100 172x48; ") << "a long vehicle";
  EXPECT_EQ(parts({one, {{192, 100, 20, 48}}, link}), "100,100 112x48; ") << "with a piece of another one";
  EXPECT_EQ(parts({{{100, 50, 80, 98}}, {{192, 50, 80, 98}}, link}), "100,50 172x98; ") << "higher";
  EXPECT_EQ(parts({{{100, 300, 80, 48}}, {{192, 300, 80, 48}}, {{180, 332, 12, 12}}}), "100,300 172x48; ")
      << "where no size is known";
  EXPECT_EQ(parts({{{100, 60, 30, 84}}, {{136, 60, 30, 84}}, {{170, 60, 30, 84}}}),
            "100,60 30x84; 136,60 30x84; 170,60 30x84; ")
      << "people side by side";
}

/// A gap is not a part, and does not make a sliver beside it wide enough.
TEST(Parts, AreNotGaps) {
  for (int gap = 3; gap < 26; ++gap)
    EXPECT_EQ(parts_of({{{98, 97, 4, 14}}, {{102 + gap, 97, 4, 14}}}),
              "98,97 4x14; " + std::to_string(102 + gap) + ",97 4x14; ")
        << gap;
  const Figure one{{100, 100, 20, 80}}, sliver{{160, 100, 2, 80}}, two{{163, 100, 20, 80}};
  EXPECT_EQ(parts_of({one, two}, 64), "100,100 20x80; 163,100 20x80; ");
  EXPECT_EQ(parts_of({one, sliver, two}, 64), "100,100 83x80; ");
}

/// Each cell of a region is in one part, and the boxes of the parts cover the changed pixels.
TEST(Parts, HaveAllCells) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  int divided = 0;
  SizeMap sizes;
  sizes.begin_frame(200);
  for (int round = 0; round < 400; ++round) {
    if (round == 200)
      for (int lower = 10; lower < 200; lower += 10) sizes.add({0, lower - 10, 40, 60}, 4000);
    std::vector<Figure> figures;
    for (int i = below(8); i > 0; --i) figures.push_back({{below(250), below(150), 10 + below(40), 20 + below(90)}});
    const int cell = 4 + below(30);
    const CellGrid grid = painted(300, 200, cell, figures);
    RegionRules rules;
    rules.cell_threshold = 0;
    const MotionRegions found = find_regions(grid, rules);
    const std::size_t most = std::size_t(below(4)) == 0 ? found.kept.size() / 2 : found.kept.size();
    std::set<Cell> cells;
    std::vector<Part> parts = find_parts(found, grid, most, sizes);
    for (const Part& part : parts) {
      EXPECT_EQ(part.area, int(part.cells.size()));
      EXPECT_GT(part.area, 0);
      for (const PartCell& at : part.cells) {
        EXPECT_TRUE(cells.insert({at.x, at.y}).second);
        EXPECT_EQ(intersection(at.box, part.box), at.box);
      }
    }
    std::size_t expected = 0;
    for (std::size_t i = 0; i < most; ++i) expected += std::size_t(found.kept[i].area);
    EXPECT_EQ(cells.size(), expected);
    divided += parts.size() > most;
    if (most < found.kept.size()) continue;
    for (const Figure& figure : figures)
      for (const auto& at : positions(intersection(figure.rect, {0, 0, 300, 200})))
        ASSERT_TRUE(
            std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return contains(part.box, at.x, at.y); }));
  }
  EXPECT_GT(divided, 20);
}

// ObjectLooks
// -------------------------------------------------------------------------------------------------------------------

TEST(ObjectLooks, AreMeansAndSpreadsOfTheHalves) {
  // The upper half is 80 and 120 side by side, and the lower half is 60.
  const std::vector<Figure> figures{
      {{100, 100, 20, 40}, {80, 5, -9}}, {{120, 100, 20, 40}, {120, 5, -9}}, {{100, 140, 40, 40}, {60, -20, 30}}};
  const double expected[] = {100, 20, 5, -9, 60, 0, -20, 30};
  for (int cell : {4, 10, 20}) {
    const ObjectLooks seen = looks_of_object(painted(300, 200, cell, figures), {100, 100, 40, 80});
    ASSERT_TRUE(seen.known);
    for (std::size_t k = 0; k < 8; ++k) EXPECT_NEAR(seen.values[k], expected[k], 1e-9) << cell << " " << k;
  }
  // nothing in the lower half
  EXPECT_FALSE(looks_of_object(painted(300, 200, 10, {figures[0]}), {100, 100, 40, 80}).known);
  EXPECT_FALSE(looks_of_object(painted(300, 200, 10, {}), {100, 100, 40, 80}).known);
}

TEST(ObjectLooks, DifferInUnitsOfTheirSpread) {
  const auto looks = [](int luma, int cb, int cr = 0) {
    return looks_of_object(painted(300, 200, 10, {{{100, 100, 40, 80}, {luma, cb, cr}}}), {100, 100, 40, 80});
  };
  Portrait steady, restless;
  EXPECT_FALSE(steady.known());
  for (int i = 0; i < 50; ++i) {
    steady.learn(looks(100, 0));
    restless.learn(looks(i % 2 ? 70 : 130, 0));
  }
  EXPECT_TRUE(steady.known());
  EXPECT_NEAR(steady.unlikeness(looks(100, 0)), 0, 1e-9);
  // 8 steps of luma in both halves are one unit each, and so are 2 steps of chroma.
  EXPECT_NEAR(steady.unlikeness(looks(108, 0)), 2 * 1 / 8.0, 1e-9);
  EXPECT_NEAR(steady.unlikeness(looks(100, 2)), 2 * 1 / 8.0, 1e-9);
  EXPECT_NEAR(steady.unlikeness(looks(100, 0, -2)), 2 * 1 / 8.0, 1e-9);
  EXPECT_NEAR(steady.unlikeness(looks(255, 100)), 4 * 16 / 8.0, 1e-9);  // the limit
  EXPECT_LT(restless.unlikeness(looks(130, 0)), 0.5);
  EXPECT_GT(steady.unlikeness(looks(130, 0)), 2);
}

}  // namespace
}  // namespace cudavision::test
