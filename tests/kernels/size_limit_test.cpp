// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests which regions count if there is a largest area (kernels/diff/size_limit.hpp).
#include "kernels/diff/size_limit.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/motion_grids.hpp"

namespace cudavision::test {
namespace {

constexpr int width = 640, height = 480, cell = 16, half_second = 12, max_area = 30;
constexpr Rect truck{200, 160, 256, 128}, person{400, 208, 48, 96};  // 128 and 18 cells
constexpr Rect remnant{208, 176, 64, 48};                            // of the truck

/// Frames with rectangles that changed.
class Scene {
 public:
  /// The boxes of the regions that count in the next frame.
  std::vector<Rect> show(const std::vector<Rect>& rects) { return boxes_of(grid_of(width, height, cell, rects)); }
  std::vector<Rect> boxes_of(const diff::CellGrid& grid) {
    diff::RegionRules rules;
    rules.max_area = max_area;
    std::vector<Rect> boxes;
    for (const diff::MotionRegion& region : diff::find_regions(grid, rules, &limit).kept) boxes.push_back(region.box);
    return boxes;
  }

  diff::SizeLimit limit{half_second};
};

Rect moved(const Rect& rect, int x, int y) { return {rect.x + x, rect.y + y, rect.width, rect.height}; }

struct Way {
  int x, y;  ///< pixels per frame
};

/// Shows a rectangle that moves into the frame, through it, and out of it. Returns the number of frames in which
/// something counts.
int frames_that_count(Scene& scene, const Rect& rect, const Way& way) {
  int count = 0;
  const int steps = 700 / std::max(std::abs(way.x), std::abs(way.y));
  for (int i = -steps; i <= steps; ++i)
    count += !scene
                  .show({moved({(width - rect.width) / 2, (height - rect.height) / 2, rect.width, rect.height},
                               i * way.x, i * way.y)})
                  .empty();
  return count;
}

TEST(SizeLimit, IgnoresLargeObjectsWhereverTheyEnterAndLeave) {
  for (const Way& way : {Way{8, 0}, {-8, 0}, {0, 8}, {0, -8}, {3, 0}, {0, -3}, {20, 0}, {6, 6}}) {
    SCOPED_TRACE(testing::Message() << way.x << ", " << way.y);
    Scene scene;
    EXPECT_EQ(frames_that_count(scene, truck, way), 0);
    EXPECT_GT(frames_that_count(scene, person, way), 20);
  }
}

TEST(SizeLimit, CountsSmallObjectsAtAnEdgeOnceTheyStopGrowing) {
  Scene scene;
  int first = 0;
  for (int i = 1; first == 0 && i < 100; ++i)  // along the lower edge, which cuts it
    if (!scene.show({{100 + 4 * i, height - 16 * std::min(i, 3), 48, 96}}).empty()) first = i;
  EXPECT_GE(first, half_second);
  EXPECT_LE(first, 2 * half_second);
}

TEST(SizeLimit, CountsSmallObjectsInsideTheFrameImmediately) {
  Scene scene;
  EXPECT_EQ(scene.show({person}), std::vector<Rect>{person});
}

TEST(SizeLimit, TreatsMaskedAreasAsEdges) {
  Scene scene;
  for (int i = 0; i < 16; ++i) {
    diff::CellGrid grid = grid_of(width, height, cell, {{160, 160, std::min(16 * (i + 1), 256), 128}});
    for (int y = 0; y < grid.height; ++y)
      for (int x = 0; x < 10; ++x) grid.unmasked[grid.at(x, y)] = 0;
    EXPECT_TRUE(scene.boxes_of(grid).empty()) << i;
  }
}

TEST(SizeLimit, IgnoresTheRemnantsOfALargeRegion) {
  Scene scene;
  for (int i = 0; i < 5; ++i) scene.show({truck});
  const Rect other{400, 240, 48, 32};
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(scene.show({remnant, other}).empty()) << i;
}

TEST(SizeLimit, ForgetsALargestRemnantAfterTenSeconds) {
  Scene scene;
  scene.show({truck});
  int frames = 0;
  while (frames < 1000 && scene.show({remnant}).empty()) ++frames;
  EXPECT_EQ(frames, 20 * half_second);
}

TEST(SizeLimit, CountsWhoLeavesALargeRegion) {
  Scene scene;
  for (int i = 0; i < 5; ++i) scene.show({truck});
  int first = 0;
  for (int i = 1; first == 0 && i < 100; ++i) {
    const Rect walker = moved({176, 192, 32, 80}, -2 * i, 0);
    for (const Rect& box : scene.show({truck, walker}))
      if (box.x < truck.x - cell) first = i;
  }
  EXPECT_GT(first, 0);
}

TEST(SizeLimit, CountsWhoComesWhereALargeRegionWas) {
  Scene scene;
  for (int i = 0; i < 5; ++i) scene.show({truck});
  for (int i = 0; i <= half_second; ++i) scene.show({});
  EXPECT_EQ(scene.show({remnant}).size(), 1u);
}

TEST(SizeLimit, DoesNotTakeANewcomerForARemnant) {
  Scene scene;
  for (int i = 0; i < 5; ++i) scene.show({truck});
  for (int i = 0; i < 5; ++i) scene.show({});
  bool counts = false;  // walks through the place of the truck
  for (int i = 0; i < 60; ++i) counts = !scene.show({moved({208, 160, 32, 96}, 4 * i, 0)}).empty();
  EXPECT_TRUE(counts);
}

TEST(SizeLimit, CountsPeopleWhoMetWhenTheyPart) {
  Scene scene;
  for (int i = 0; i < 60; ++i) {
    // They touch in the middle of the sequence.
    const int gap = std::abs(30 - i) < 5 ? 0 : 4 * (std::abs(30 - i) - 4) + 32;
    const std::vector<Rect> boxes = scene.show({{200 - gap, 160, 48, 96}, {248, 160, 48, 96}});
    EXPECT_EQ(boxes.size(), gap == 0 ? 0u : 2u) << i;
  }
}

TEST(SizeLimit, ForgetsAnotherScene) {
  Scene scene;
  for (int i = 0; i < 5; ++i) scene.show({truck});
  EXPECT_TRUE(scene.show({remnant}).empty());
  scene.limit.reset();
  EXPECT_EQ(scene.show({remnant}).size(), 1u);
}

}  // namespace
}  // namespace cudavision::test
