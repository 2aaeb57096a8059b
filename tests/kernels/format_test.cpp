// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the format table with the reference's list of formats and with GStreamer's definitions.
#include <gst/video/video.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/layout.hpp"
#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

using reference::Definition;

void expect_component(const Component& c, int plane, int offset, int step, int shift_x, int shift_y,
                      const std::string& what) {
  EXPECT_EQ(c.plane, plane) << what;
  EXPECT_EQ(c.offset, offset) << what;
  EXPECT_EQ(c.step, step) << what;
  EXPECT_EQ(c.shift_x, shift_x) << what;
  EXPECT_EQ(c.shift_y, shift_y) << what;
}

/// GStreamer's definition; nullptr if the installed version lacks the format.
const GstVideoFormatInfo* known_format(const Definition& definition) {
  const GstVideoFormat known = gst_video_format_from_string(definition.name);
  if (known != GST_VIDEO_FORMAT_UNKNOWN) return gst_video_format_get_info(known);
  const std::set<std::string> since_24{"A444", "A444_12LE", "A444_16LE", "GBR_16LE"};
  const bool may_lack = std::string(definition.name) == "GRAY10_LE16" ? !GST_CHECK_VERSION(1, 26, 0)
                        : since_24.count(definition.name)             ? !GST_CHECK_VERSION(1, 24, 0)
                                                                      : false;
  EXPECT_TRUE(may_lack) << definition.name;
  return nullptr;
}

TEST(Formats, ReferenceEqualsGStreamer) {
  for (Format format : all_formats()) {
    const Definition& definition = reference::definition(format);
    const GstVideoFormatInfo* gst = known_format(definition);
    if (!gst) continue;
    const bool rgb = GST_VIDEO_FORMAT_INFO_IS_RGB(gst);
    const Role roles[] = {rgb ? Role::red : Role::luma, rgb ? Role::green : Role::cb, rgb ? Role::blue : Role::cr,
                          Role::alpha};
    unsigned named = 0;
    for (const Component& c : definition.components) named += c.role != Role::padding;
    EXPECT_EQ(GST_VIDEO_FORMAT_INFO_N_COMPONENTS(gst), named) << definition.name;
    for (unsigned i = 0; i < GST_VIDEO_FORMAT_INFO_N_COMPONENTS(gst); ++i) {
      const std::string what = std::string(definition.name) + " component " + std::to_string(i);
      const Component* c = definition.find(roles[i]);
      ASSERT_TRUE(c) << what;
      // For such formats GStreamer's numbers do not say where bits and words are; UnpacksAsGStreamer tests this. VYUY
      // has the numbers of UYVY, although its functions read Cr first.
      if (definition.unpacked || format == Format::VYUY) {
        EXPECT_EQ(c->shift_x, int(gst->w_sub[i])) << what;
        EXPECT_EQ(c->shift_y, int(gst->h_sub[i])) << what;
        EXPECT_EQ(c->fields.empty() ? definition.depth : c->fields[0].bits, int(gst->depth[i])) << what;
        continue;
      }
      // GStreamer's table puts Cr of P010 and P016 at byte 1, although its pack functions write the second word.
      const bool odd_entry = definition.sample_bytes() == 2 && gst->poffset[i] % 2;
      expect_component(*c, gst->plane[i], gst->poffset[i] + odd_entry, gst->pixel_stride[i], gst->w_sub[i],
                       gst->h_sub[i], what);
      EXPECT_EQ(definition.depth, int(gst->depth[i])) << what;
      EXPECT_EQ(definition.shift, int(gst->shift[i])) << what;
    }
  }
}

/// GStreamer unpacks a row of random samples. The upper bits of the results must be equal.
TEST(Formats, UnpacksAsGStreamer) {
  for (Format format : all_formats()) {
    const Definition& definition = reference::definition(format);
    const GstVideoFormatInfo* gst = known_format(definition);
    if (!gst) continue;
    const int width = 24;
    const Picture picture = make_picture({format, width, 1}, 5);
    const Image image = picture.at(const_cast<std::uint8_t*>(picture.bytes().data()));
    gpointer data[GST_VIDEO_MAX_PLANES];
    gint stride[GST_VIDEO_MAX_PLANES];
    for (int i = 0; i < max_planes; ++i) data[i] = image.planes[i].data, stride[i] = gint(image.planes[i].pitch);
    const GstVideoFormatInfo* lines = gst_video_format_get_info(gst->unpack_format);
    const bool wide = lines->depth[0] == 16;
    std::vector<std::uint16_t> line(4 * width);  // A, then Y, Cb, Cr or R, G, B
    gst->unpack_func(gst, GST_VIDEO_PACK_FLAG_NONE, line.data(), data, stride, 0, 0, width);
    const Role roles[] = {Role::alpha, GST_VIDEO_FORMAT_INFO_IS_RGB(gst) ? Role::red : Role::luma,
                          GST_VIDEO_FORMAT_INFO_IS_RGB(gst) ? Role::green : Role::cb,
                          GST_VIDEO_FORMAT_INFO_IS_RGB(gst) ? Role::blue : Role::cr};
    for (int c = 0; c < 4; ++c) {
      const Component* component = definition.find(roles[c]);
      if (!component) continue;
      const Grid samples = picture.read(*component);
      for (int x = 0; x < width; ++x) {
        const int given = wide ? line[4 * x + c] : reinterpret_cast<const std::uint8_t*>(line.data())[4 * x + c];
        const int bits = component->fields.empty() ? definition.depth : component->fields[0].bits;
        EXPECT_EQ(given >> ((wide ? 16 : 8) - bits),
                  samples.at(x >> component->shift_x, 0) >> (definition.depth - bits))
            << definition.name << " component " << c << " pixel " << x;
      }
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
    EXPECT_EQ(row.packing != nullptr, definition.unpacked) << row.name;
    EXPECT_EQ(row.shift, definition.unpacked ? 0 : definition.shift) << row.name;
    EXPECT_EQ(row.planes, definition.components.back().plane + 1) << row.name;
    EXPECT_EQ(row.max_value(), (1 << definition.depth) - 1);
    EXPECT_EQ(row.neutral_chroma(), (row.max_value() + 1) / 2);
    std::size_t samples = 0;
    for (int s = 0; s < row.set_count; ++s) {
      const ChannelSet& set = row.sets[s];
      for (int c = 0; c < set.channels; ++c) {
        if (set.roles[c] == Role::other) continue;
        ++samples;
        const Component* expected = definition.find(set.roles[c]);
        ASSERT_TRUE(expected) << row.name;
        if (row.packing) {  // its sets describe the unpacked picture
          EXPECT_EQ(expected->shift_x, set.shift_x) << row.name;
          EXPECT_EQ(expected->shift_y, set.shift_y) << row.name;
          continue;
        }
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

/// Lists GST_CUDA_FORMATS of each libgstcuda version. Memory of other formats cannot be allocated on a GPU. The table
/// must contain all listed formats.
TEST(Formats, CudaAllocatesTheFormatsOfItsLibrary) {
  const std::vector<std::pair<int, std::vector<const char*>>> lists = {
      {22, {"I420",       "YV12",      "NV12", "NV21", "P010_10LE", "P016_LE", "I420_10LE",
            "Y444",       "Y444_16LE", "BGRA", "RGBA", "RGBx",      "BGRx",    "ARGB",
            "ABGR",       "RGB",       "BGR",  "Y42B", "I422_10LE", "YUY2",    "I422_12LE",
            "RGB10A2_LE", "UYVY",      "RGBP", "BGRP", "GBR",       "GBRA",    "BGR10A2_LE"}},
      {24, {"P012_LE", "I420_12LE", "Y444_10LE", "Y444_12LE", "GBR_10LE", "GBR_12LE", "GBR_16LE"}},
      {26, {"VUYA"}}};
  std::map<std::string, int> since;
  for (const auto& [minor, names] : lists)
    for (const char* name : names) since[name] = minor;
  for (const FormatInfo& row : formats()) {
    const auto at = since.find(row.name);
    EXPECT_EQ(row.cuda_since, at == since.end() ? 0 : at->second) << row.name;
    since.erase(row.name);
  }
  for (const auto& [name, minor] : since) ADD_FAILURE() << name << " of libgstcuda 1." << minor << " is missing";
}

TEST(Formats, ExtentHoldsTheSamples) {
  for (Format format : all_formats())
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

/// A CUDA kernel that computes all sets of a format is built for these channels. It has at most three jobs besides the
/// alpha plane.
TEST(Formats, KernelsHaveTheChannelsOfTheSets) {
  for (const FormatInfo& row : formats()) {
    EXPECT_LE(row.color_sets(), 3) << row.name;
    EXPECT_LE(row.set_count, max_sets) << row.name;
    EXPECT_LE(row.planes, max_planes) << row.name;
    cuda::with_layout(row, [&](auto sample, auto first, auto rest) {
      EXPECT_EQ(int(sizeof(sample)), row.sample_bytes()) << row.name;
      EXPECT_EQ(decltype(first)::value, row.sets[0].channels) << row.name;
      for (int i = 1; i < row.set_count; ++i)
        EXPECT_EQ(decltype(rest)::value, row.sets[i].channels) << row.name << ", set " << i;
    });
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
