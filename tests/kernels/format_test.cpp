// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the format table, the reference's list of formats and GStreamer's definitions.
#include <gst/video/video.h>

#include <algorithm>

#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

using reference::Component;
using reference::Definition;

const Component* find(const Definition& definition, Role role) {
  for (const Component& component : definition.components)
    if (component.role == role) return &component;
  return nullptr;
}

void expect_component(const Component& c, int plane, int offset, int step, int shift_x, int shift_y,
                      const std::string& what) {
  EXPECT_EQ(c.plane, plane) << what;
  EXPECT_EQ(c.offset, offset) << what;
  EXPECT_EQ(c.step, step) << what;
  EXPECT_EQ(c.shift_x, shift_x) << what;
  EXPECT_EQ(c.shift_y, shift_y) << what;
}

TEST(Formats, ReferenceEqualsGStreamer) {
  for (Format format : all_formats()) {
    const Definition& definition = reference::definition(format);
    const GstVideoFormat known = gst_video_format_from_string(definition.name);
    ASSERT_NE(known, GST_VIDEO_FORMAT_UNKNOWN) << definition.name;
    const GstVideoFormatInfo* gst = gst_video_format_get_info(known);
    const bool rgb = GST_VIDEO_FORMAT_INFO_IS_RGB(gst);
    const Role roles[] = {rgb ? Role::red : Role::luma, rgb ? Role::green : Role::cb, rgb ? Role::blue : Role::cr,
                          Role::alpha};
    unsigned named = 0;
    for (const Component& c : definition.components) named += c.role != Role::padding;
    EXPECT_EQ(GST_VIDEO_FORMAT_INFO_N_COMPONENTS(gst), named) << definition.name;
    for (unsigned i = 0; i < GST_VIDEO_FORMAT_INFO_N_COMPONENTS(gst); ++i) {
      const std::string what = std::string(definition.name) + " component " + std::to_string(i);
      const Component* c = find(definition, roles[i]);
      ASSERT_TRUE(c) << what;
      // GStreamer's table says byte 1 for Cr of P010 and P016, although its pack functions write the second word.
      const bool odd_entry = definition.sample_bytes() == 2 && gst->poffset[i] % 2;
      expect_component(*c, gst->plane[i], gst->poffset[i] + odd_entry, gst->pixel_stride[i], gst->w_sub[i],
                       gst->h_sub[i], what);
      EXPECT_EQ(definition.depth, int(gst->depth[i])) << what;
      EXPECT_EQ(definition.shift, int(gst->shift[i])) << what;
    }
  }
}

TEST(Formats, TableEqualsReference) {
  for (Format format : all_formats()) {
    const Definition& definition = reference::definition(format);
    const FormatInfo& row = info(format);
    EXPECT_EQ(row.format, format);
    EXPECT_STREQ(row.name, definition.name);
    EXPECT_EQ(find_format(definition.name), &row);
    EXPECT_EQ(row.depth, definition.depth) << row.name;
    EXPECT_EQ(row.shift, definition.shift) << row.name;
    EXPECT_EQ(row.planes, definition.components.back().plane + 1) << row.name;
    EXPECT_EQ(row.max_value(), (1 << definition.depth) - 1);
    EXPECT_EQ(row.neutral_chroma(), (row.max_value() + 1) / 2);
    std::size_t samples = 0;
    for (int s = 0; s < row.set_count; ++s) {
      const ChannelSet& set = row.sets[s];
      for (int c = 0; c < set.channels; ++c) {
        if (set.roles[c] == Role::other) continue;
        ++samples;
        const Component* expected = find(definition, set.roles[c]);
        ASSERT_TRUE(expected) << row.name;
        expect_component(*expected, set.plane, c * row.sample_bytes(), set.channels * row.sample_bytes(), set.shift_x,
                         set.shift_y,
                         std::string(row.name) + " set " + std::to_string(s) + " channel " + std::to_string(c));
      }
    }
    EXPECT_EQ(samples, definition.components.size()) << row.name;
  }
  EXPECT_EQ(find_format("nv12"), nullptr);
  EXPECT_EQ(find_format(""), nullptr);
}

/// The list of libgstcuda 1.22, to which 1.24 adds a format. Memory of other formats cannot be allocated on a GPU.
TEST(Formats, CudaAllocatesThoseOfItsLibrary) {
  for (const FormatInfo& row : formats()) {
    const std::string name = row.name;
    const bool never = name == "GRAY8" || name == "GRAY16_LE" || name == "xRGB" || name == "xBGR" ||
                       name == "RGBA64_LE" || name == "ARGB64_LE";
    EXPECT_EQ(row.cuda_since, never ? 0 : name == "Y444_10LE" ? 24 : 22) << name;
  }
}

TEST(Formats, ExtentHoldsTheSamples) {
  for (Format format : all_formats()) {
    for (int size = 1; size < 9; ++size) {
      const Geometry geometry{format, size, 9 - size};
      const Image tight = Picture(geometry).at(nullptr);
      for (const Component& c : reference::definition(format).components) {
        const PlaneExtent plane = extent(geometry, c.plane);
        EXPECT_EQ(std::ptrdiff_t(plane.row_bytes), tight.planes[c.plane].pitch)
            << info(format).name << " width " << size;
        EXPECT_EQ(plane.rows, (geometry.height + (1 << c.shift_y) - 1) >> c.shift_y) << info(format).name;
      }
    }
  }
}

TEST(Formats, SubsampledLengthsRoundUp) {
  for (int length = 1; length < 40; ++length) {
    EXPECT_EQ(subsampled(length, 0), length);
    EXPECT_EQ(subsampled(length, 1), length / 2 + length % 2);
    EXPECT_EQ(subsampled(length, 2), length / 4 + (length % 4 != 0));
  }
}

}  // namespace
}  // namespace cudavision::test
