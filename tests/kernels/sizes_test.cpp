// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the usual size of objects at a place.
#include "kernels/track/sizes.hpp"

#include <gtest/gtest.h>

namespace cudavision::test {
namespace {

using track::SizeMap;

constexpr int height = 320;  // bands of 20 rows

/// A map that has seen `times` objects of this size travel four times their width. `lower`: the row below them.
SizeMap seen(int width, int tall, int lower, int times) {
  SizeMap sizes;
  sizes.begin_frame(height);
  for (int i = 0; i < times; ++i) sizes.add({0, lower - tall, width, tall}, 4 * width);
  return sizes;
}

TEST(Sizes, AreKnownAfterSomeObjects) {
  const Rect one{50, 60, 80, 40};
  EXPECT_FALSE(SizeMap().fits(one));
  EXPECT_FALSE(seen(80, 40, 100, 1).fits(one));
  const SizeMap sizes = seen(80, 40, 100, 2);
  EXPECT_TRUE(sizes.fits(one));
  EXPECT_TRUE(sizes.fits({50, 90, 10, 10})) << "a piece";
  EXPECT_FALSE(sizes.fits({50, 60, 100, 40})) << "too wide";
  EXPECT_FALSE(sizes.fits({50, 40, 80, 60})) << "too high";
}

TEST(Sizes, BelongToBandsOfRows) {
  const SizeMap sizes = seen(80, 40, 100, 4);
  for (int lower = 1; lower <= height; ++lower)
    EXPECT_EQ(sizes.fits({0, lower - 1, 1, 1}), lower > 60 && lower <= 120) << lower;
  EXPECT_FALSE(sizes.fits({0, height, 1, 1})) << "below the frame";
}

TEST(Sizes, AreThoseOfWholeObjects) {
  SizeMap sizes = seen(80, 40, 100, 10);
  for (int i = 0; i < 10; ++i) sizes.add({0, 80, 12, 12}, 800);  // pieces, more often than wholes
  sizes.add({0, 60, 170, 40}, 800);                              // two at once
  EXPECT_NEAR(sizes.width_in_row({0, 60, 170, 40}), 80, 6);
}

TEST(Sizes, FollowTheTraffic) {
  SizeMap sizes = seen(80, 40, 100, 100);
  for (int i = 0; i < 100; ++i) sizes.add({0, 80, 40, 20}, 400);
  EXPECT_FALSE(sizes.fits({0, 60, 80, 40}));
  EXPECT_TRUE(sizes.fits({0, 80, 40, 20}));
}

TEST(Sizes, ShowRowsOfObjects) {
  const SizeMap sizes = seen(80, 40, 100, 4);
  EXPECT_EQ(sizes.width_in_row({0, 60, 110, 40}), 0) << "a little wider";
  EXPECT_NEAR(sizes.width_in_row({0, 60, 130, 40}), 80, 6);
  EXPECT_EQ(sizes.width_in_row({0, 30, 200, 70}), 0) << "much higher";
  EXPECT_EQ(SizeMap().width_in_row({0, 60, 200, 40}), 0) << "not known";
}

TEST(Sizes, StartAgainWithAnotherHeight) {
  SizeMap sizes = seen(80, 40, 100, 4);
  sizes.begin_frame(height);
  EXPECT_TRUE(sizes.fits({0, 60, 80, 40}));
  sizes.begin_frame(2 * height);
  EXPECT_FALSE(sizes.fits({0, 60, 80, 40}));
}

}  // namespace
}  // namespace cudavision::test
