// SPDX-License-Identifier: LGPL-2.1-or-later
// Packed 4:2:2 whose groups of two pixels are not those of the frame.
#include "kernels/core/packed.hpp"

#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

using reference::Component;

class Packed : public testing::TestWithParam<BackendAnd<Format>> {};

/// The picture from the second pixel of `src` on: luma from the next pixel, chroma from the same group.
Picture from_second_pixel(const Picture& src, const Geometry& geometry, Layout layout) {
  Picture result(geometry, layout);
  for (const Component& c : result.format().components) {
    const reference::Grid from = src.read(c);
    for (int y = 0; y < geometry.height; ++y)
      for (int x = 0; x < subsampled(geometry.width, c.shift_x); ++x)
        result.write(c, x, y, from.at(c.role == Role::luma ? x + 1 : x, y));
  }
  result.fill_padding();
  return result;
}

TEST_P(Packed, ShiftsGroups) {
  const auto [backend, format] = GetParam();
  SKIP_UNLESS_AVAILABLE(backend);
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 3}, {3, 2}, {63, 5}, {64, 9}, {65, 4}, {1000, 3}, {5, 1500}})
    for (const Layout& layout : layouts) {
      // One more group than the picture has, if its last pixel begins one.
      const Geometry geometry{format, width, height}, whole{format, width + 1, height};
      const Picture src = make_picture(whole, unsigned(width), Data::random, layout),
                    expected = from_second_pixel(src, geometry, layout);
      Job job(backend, src, expected.inverted());
      const Status status = job.submit([&](const Image& from, const Image& to, Queue queue) {
        return shift_groups(backend, {to.geometry, from.planes}, to, queue);
      });
      const Picture actual = job.finish();
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(expected.difference(actual, 0), "") << describe(geometry, layout, layout, {}, Data::random);
    }
}

TEST_P(Packed, FillsPadding) {
  const auto [backend, format] = GetParam();
  SKIP_UNLESS_AVAILABLE(backend);
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 3}, {3, 2}, {65, 4}, {64, 4}, {5, 1500}})
    for (const Layout& layout : layouts) {
      const Picture src = make_picture({format, width, height}, unsigned(width), Data::random, layout);
      Picture expected = src;
      expected.fill_padding();
      Job job(backend, src, src);
      const Status status =
          job.submit([&](const Image&, const Image& to, Queue queue) { return fill_padding(backend, to, queue); });
      const Picture actual = job.finish();
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(actual.bytes() == expected.bytes()) << describe({format, width, height}, layout, layout, {}, {});
    }
}

/// Rows of UYVY may end with the last V: the byte behind it belongs to the next row, or to nobody.
TEST_P(Packed, LeavesPaddingBeyondTheRowAlone) {
  const auto [backend, format] = GetParam();
  SKIP_UNLESS_AVAILABLE(backend);
  if (format != Format::UYVY) return;
  const Picture src = make_picture({format, 5, 4}, 1);
  Job job(backend, src, src);
  const Status status = job.submit([&](const Image&, const Image& to, Queue queue) {
    Image narrow = to;
    narrow.planes[0].pitch = 11;
    return fill_padding(backend, narrow, queue);
  });
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(job.finish().bytes() == src.bytes());
}

INSTANTIATE_FOR_FORMATS(Packed, (std::vector{Format::YUY2, Format::UYVY}));

}  // namespace
}  // namespace cudavision::test
