// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests packed 4:2:2 whose pairs of pixels do not coincide with the pairs of the frame, and pixels that are unpacked to
// planes.
#include "kernels/core/packed.hpp"

#include "kernels/core/packing.hpp"
#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

class Packed : public OnBackendWithFormat {};

/// The part of `src` from pixel `skipped` on. Chroma begins with the sample of this pixel.
Picture from_pixel(int skipped, const Picture& src, const Geometry& geometry, Layout layout) {
  Picture result(geometry, layout);
  for (const Component& c : result.format().components) {
    const Grid from = src.read(c);
    for (const auto& [x, y] : positions(subsampled(geometry.width, c.shift_x), geometry.height))
      result.write(c, x, y, from.at(x + (skipped >> c.shift_x), y));
  }
  result.fill_padding();
  return result;
}

TEST_P(Packed, ShiftsGroups) {
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 3}, {3, 2}, {63, 5}, {64, 9}, {65, 4}, {1000, 3}, {5, 1500}})
    for (const Layout& layout : layouts) {
      // The whole picture has one more group if the last pixel begins one.
      const Geometry geometry{format, width, height}, whole{format, width + 1, height};
      const Picture src = make_picture(whole, unsigned(width), Data::random, layout),
                    expected = from_pixel(1, src, geometry, layout);
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

/// Rows of UYVY may end with the last V: the byte after it belongs to the next row, or to no row.
TEST_P(Packed, LeavesPaddingBeyondTheRowAlone) {
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

std::vector<Format> formats_with(bool (*property)(const FormatInfo&)) {
  std::vector<Format> found;
  for (const FormatInfo& format : formats())
    if (property(format)) found.push_back(format.format);
  return found;
}
INSTANTIATE_FOR_FORMATS(Packed, formats_with([](const FormatInfo& f) { return is_packed_422(f); }));

class Unpacked : public OnBackendWithFormat {};

/// A copy unpacks and packs a picture: it keeps the samples, clears other bits, and completes the last group of a row.
TEST_P(Unpacked, KeepsSamples) {
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 3}, {3, 2}, {5, 2}, {6, 2}, {7, 5}, {65, 4}, {1000, 3}})
    for (const Layout& layout : layouts)
      for (Data data : {Data::random, Data::words}) {
        const Geometry geometry{format, width, height};
        const Picture src = make_picture(geometry, unsigned(width), data, layout);
        const Picture expected = from_pixel(0, src, geometry, layout);
        auto copy = make_copy(geometry, backend);
        ASSERT_TRUE(copy.ok());
        Job job(backend, src, expected.inverted());
        const Status status = job.submit(*copy.value());
        const Picture actual = job.finish();
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(expected.difference(actual, 0), "") << describe(geometry, layout, layout, {}, data);
      }
}

TEST_P(Unpacked, BeginsInsideAGroup) {
  if (backend != Backend::cpu) return;  // such frames exist only in system memory
  for (int skipped = 1; skipped < info(format).packing->pixels; ++skipped)
    for (int width : {1, 2, 5, 6, 7, 64})
      for (const Layout& layout : layouts) {
        const Geometry geometry{format, width, 3}, whole{format, width + skipped, 3};
        const Picture src = make_picture(whole, unsigned(width), Data::random, layout),
                      expected = from_pixel(skipped, src, geometry, layout);
        Picture from = src, actual = expected.inverted();
        shift_packed({geometry, from.at(from.bytes().data()).planes}, actual.at(actual.bytes().data()), skipped);
        EXPECT_EQ(expected.difference(actual, 0), "") << skipped << " " << describe(geometry, layout, layout, {}, {});
      }
}
INSTANTIATE_FOR_FORMATS(Unpacked, formats_with([](const FormatInfo& f) { return f.packing != nullptr; }));

}  // namespace
}  // namespace cudavision::test
