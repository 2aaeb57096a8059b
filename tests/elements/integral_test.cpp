// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudaintegral with sums, means and thresholds computed by slow loops, and with cv::integral.
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <opencv2/imgproc.hpp>

#include "gst/meta/integral_meta.h"
#include "tests/elements/harness.hpp"

using namespace cudavision::test;

namespace {

const Size size{61, 43};

/// The luma of a picture: Y, or computed from R, G and B.
cv::Mat luma(const Picture& input, const GstVideoInfo& video) {
  if (!GST_VIDEO_INFO_IS_RGB(&video)) return input[0];
  cv::Mat result(input[0].size(), CV_16U);
  for (int y = 0; y < result.rows; ++y)
    for (int x = 0; x < result.cols; ++x) {
      const float r = 0.299f * input[0].at<guint16>(y, x), g = 0.587f * input[1].at<guint16>(y, x),
                  b = 0.114f * input[2].at<guint16>(y, x);
      result.at<guint16>(y, x) = guint16(r + g + b);
    }
  return result;
}

/// The exact summed-area table, row by row.
std::vector<guint64> sums(const cv::Mat& samples, bool padded, bool squared = false) {
  std::vector<guint64> inclusive, result;
  std::vector<guint64> above(std::size_t(samples.cols), 0);
  for (int y = 0; y < samples.rows; ++y) {
    guint64 row = 0;
    for (int x = 0; x < samples.cols; ++x) {
      const guint64 value = samples.at<guint16>(y, x);
      row += squared ? value * value : value;
      inclusive.push_back(above[std::size_t(x)] += row);
    }
  }
  if (!padded) return inclusive;
  result.assign(std::size_t(samples.cols) + 1, 0);
  for (std::size_t i = 0; i < inclusive.size(); ++i) {
    if (i % std::size_t(samples.cols) == 0) result.push_back(0);
    result.push_back(inclusive[i]);
  }
  return result;
}

template <typename T>
void expect_entries(const guint8* data, const std::vector<guint64>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    T entry;
    std::memcpy(&entry, data + i * sizeof(T), sizeof(T));
    if (!(entry == T(expected[i]))) EXPECT_EQ(show(i) + ": " + show(entry), show(i) + ": " + show(T(expected[i])));
  }
}
void expect_entries(const guint8* data, GstCudaVisionEntryType type, const std::vector<guint64>& expected) {
  switch (type) {
    case GST_CUDA_VISION_ENTRY_TYPE_U32:
      return expect_entries<guint32>(data, expected);
    case GST_CUDA_VISION_ENTRY_TYPE_U64:
      return expect_entries<guint64>(data, expected);
    case GST_CUDA_VISION_ENTRY_TYPE_F32:
      return expect_entries<float>(data, expected);
    case GST_CUDA_VISION_ENTRY_TYPE_F64:
      return expect_entries<double>(data, expected);
  }
}

bool on_device(GstMemory* memory) { return gst_memory_is_type(memory, "gst.cuda.memory"); }

/// Checks that a frame's table is the table of these samples.
void expect_table(GstBuffer* frame, const char* channel, const cv::Mat& samples, bool padded,
                  GstCudaVisionEntryType type, bool squared = false) {
  const GstCudaVisionIntegralMeta* meta = gst_buffer_get_cuda_vision_integral_meta(frame);
  EXPECT(meta);
  EXPECT_EQ(int(meta->layout), int(padded));
  const gint index = gst_cuda_vision_integral_meta_get_channel(meta, channel, squared);
  EXPECT(index >= 0);
  const GstCudaVisionIntegralTable& table = meta->tables[index];
  EXPECT_EQ(on_device(table.memory), where().find("backend=cuda") != std::string::npos);
  EXPECT_EQ(int(table.type), int(type));
  EXPECT_EQ(table.width, samples.cols + padded);
  EXPECT_EQ(table.height, samples.rows + padded);
  GstMapInfo map;
  EXPECT(gst_cuda_vision_integral_meta_map_table(meta, guint(index), &map));
  expect_entries(map.data, type, sums(samples, padded, squared));
  gst_cuda_vision_integral_meta_unmap_table(meta, guint(index), &map);
}

guint count_tables(GstBuffer* frame) { return gst_buffer_get_cuda_vision_integral_meta(frame)->n_tables; }

Buffer copied(const Buffer& frame) { return Buffer(gst_buffer_copy_deep(frame.get())); }

/// The profile sets another output, so tests of tables use these settings.
const std::string tables = "output=passthrough ";

struct TypeName {
  const char* name;
  GstCudaVisionEntryType type, squares;
};
constexpr TypeName types[] = {{"auto", GST_CUDA_VISION_ENTRY_TYPE_U32, GST_CUDA_VISION_ENTRY_TYPE_U64},
                              {"u32", GST_CUDA_VISION_ENTRY_TYPE_U32, GST_CUDA_VISION_ENTRY_TYPE_U64},
                              {"u64", GST_CUDA_VISION_ENTRY_TYPE_U64, GST_CUDA_VISION_ENTRY_TYPE_U64},
                              {"f32", GST_CUDA_VISION_ENTRY_TYPE_F32, GST_CUDA_VISION_ENTRY_TYPE_F64},
                              {"f64", GST_CUDA_VISION_ENTRY_TYPE_F64, GST_CUDA_VISION_ENTRY_TYPE_F64}};

/// Applies f(value, number of samples, sum, sum of squares) to each pixel's window.
/// Only samples inside the picture count.
template <typename F>
cv::Mat windows(const cv::Mat& samples, int rx, int ry, F&& f) {
  cv::Mat result(samples.size(), CV_16U);
  for (int y = 0; y < samples.rows; ++y)
    for (int x = 0; x < samples.cols; ++x) {
      double n = 0, sum = 0, squares = 0;
      for (int j = std::max(y - ry, 0); j <= std::min(y + ry, samples.rows - 1); ++j)
        for (int i = std::max(x - rx, 0); i <= std::min(x + rx, samples.cols - 1); ++i) {
          const double v = samples.at<guint16>(j, i);
          n += 1, sum += v, squares += v * v;
        }
      result.at<guint16>(y, x) = guint16(f(int(samples.at<guint16>(y, x)), n, sum, squares));
    }
  return result;
}
double mean(int, double n, double sum, double) { return std::nearbyint(sum / n); }
double deviation(int, double n, double sum, double squares) {
  return std::nearbyint(std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))));
}

}  // namespace

// Tables
// ---------------------------------------------------------------------------------------------------------------------

TEST(attaches_exact_tables_of_luma, Each::run) {
  for (const std::string& format : formats(run))
    for (bool padded : {false, true}) {
      at(format + (padded ? " padded" : " inclusive"));
      Rig rig(run, tables + (padded ? "layout=padded" : ""));
      rig.caps(caps_text(format, size));
      const Buffer frame = noise(rig.video());
      const Buffer result = rig.push(copied(frame));
      const Picture input = picture(frame.get(), rig.video());
      EXPECT_SAME(picture(result.get(), rig.video()), input);
      EXPECT_EQ(count_tables(result.get()), 1u);
      expect_table(result.get(), "luma", luma(input, rig.video()), padded, GST_CUDA_VISION_ENTRY_TYPE_U32);
    }
}

TEST(supports_every_sum_type, Each::run) {
  for (const TypeName& type : types)
    for (const char* format : {"GRAY8", "NV12", "RGB", "GRAY16_LE"})
      for (bool padded : {false, true}) {
        at(std::string(format) + " " + type.name + (padded ? " padded" : ""));
        Rig rig(run, tables + "squared=true sum-type=" + type.name + (padded ? " layout=padded" : ""));
        rig.caps(caps_text(format, {37, 29}));
        const Buffer frame = noise(rig.video());
        const Buffer result = rig.push(copied(frame));
        const cv::Mat samples = luma(picture(frame.get(), rig.video()), rig.video());
        EXPECT_EQ(count_tables(result.get()), 2u);
        expect_table(result.get(), "luma", samples, padded, type.type);
        expect_table(result.get(), "luma", samples, padded, type.squares, true);
      }
}

TEST(sums_every_channel, Each::run) {
  struct Case {
    const char* format;
    std::vector<const char*> channels;
  };
  for (const Case& c : {Case{"GRAY8", {"Y"}},
                        {"NV12", {"Y", "Cb", "Cr"}},
                        {"NV21", {"Y", "Cb", "Cr"}},
                        {"YV12", {"Y", "Cb", "Cr"}},
                        {"YUY2", {"Y", "Cb", "Cr"}},
                        {"P010_10LE", {"Y", "Cb", "Cr"}},
                        {"BGR", {"R", "G", "B"}},
                        {"xRGB", {"R", "G", "B"}},
                        {"ABGR", {"R", "G", "B", "A"}},
                        {"GBR", {"R", "G", "B"}}}) {
    at(c.format);
    Rig rig(run, tables + "channel=all squared=true layout=padded");
    rig.caps(caps_text(c.format, size));
    const Buffer frame = noise(rig.video());
    const Buffer result = rig.push(copied(frame));
    const Picture input = picture(frame.get(), rig.video());
    EXPECT_EQ(count_tables(result.get()), 2 * c.channels.size());
    for (std::size_t i = 0; i < c.channels.size(); ++i) {
      expect_table(result.get(), c.channels[i], input[i], true, GST_CUDA_VISION_ENTRY_TYPE_U32);
      expect_table(result.get(), c.channels[i], input[i], true, GST_CUDA_VISION_ENTRY_TYPE_U64, true);
    }
  }
}

TEST(chooses_wider_sums_if_narrow_ones_overflow, Each::run) {
  // 4200·4200·255 is larger than 2^32.
  for (const auto& [settings, type] : {std::pair{"sum-type=u32", GST_CUDA_VISION_ENTRY_TYPE_U32},
                                       {"sum-type=auto", GST_CUDA_VISION_ENTRY_TYPE_U64},
                                       {"sum-type=f32", GST_CUDA_VISION_ENTRY_TYPE_F32}}) {
    at(settings);
    Rig rig(run, tables + settings);
    rig.caps(caps_text("GRAY8", {4200, 4200}));
    Buffer frame(gst_buffer_new_allocate(nullptr, 4200 * 4200, nullptr));
    gst_buffer_memset(frame.get(), 0, 255, 4200 * 4200);
    const Buffer result = rig.push(std::move(frame));
    const GstCudaVisionIntegralMeta* meta = gst_buffer_get_cuda_vision_integral_meta(result.get());
    EXPECT_EQ(int(meta->tables[0].type), int(type));
    GstMapInfo map;
    EXPECT(gst_cuda_vision_integral_meta_map_table(meta, 0, &map));
    const guint64 all = 4200ull * 4200 * 255, last = 4200ull * 4200 - 1;
    EXPECT(all > G_MAXUINT32);
    if (type == GST_CUDA_VISION_ENTRY_TYPE_U32) EXPECT_EQ(reinterpret_cast<guint32*>(map.data)[last], guint32(all));
    if (type == GST_CUDA_VISION_ENTRY_TYPE_U64) EXPECT_EQ(reinterpret_cast<guint64*>(map.data)[last], all);
    if (type == GST_CUDA_VISION_ENTRY_TYPE_F32) EXPECT_EQ(reinterpret_cast<float*>(map.data)[last], float(all));
    if (type != GST_CUDA_VISION_ENTRY_TYPE_F32)  // rectangle sums are correct even if entries wrap around
      EXPECT_EQ(gst_cuda_vision_integral_meta_rectangle_sum(meta, 0, &map, 4100, 4100, 100, 100), 100 * 100 * 255.0);
    gst_cuda_vision_integral_meta_unmap_table(meta, 0, &map);
  }
}

TEST(passes_the_same_buffer, Each::run) {
  Rig rig(run, tables);
  rig.caps(caps_text("NV12", size));
  Buffer frame = noise(rig.video());
  GstBuffer* const before = frame.get();
  GstMemory* const memory = gst_buffer_peek_memory(before, 0);
  const Buffer same = rig.push(std::move(frame));
  EXPECT(same.get() == before);
  EXPECT(gst_buffer_peek_memory(same.get(), 0) == memory);
  EXPECT_EQ(gst_buffer_get_n_meta(same.get(), GST_CUDA_VISION_INTEGRAL_META_API_TYPE), 1u);

  // A shared buffer gets no metas. A copy of it, which shares its memory, gets them.
  const Buffer held = noise(rig.video());
  const Buffer result = rig.push(Buffer(gst_buffer_ref(held.get())));
  EXPECT(result.get() != held.get());
  EXPECT(gst_buffer_peek_memory(result.get(), 0) == gst_buffer_peek_memory(held.get(), 0));
  EXPECT(!gst_buffer_get_cuda_vision_integral_meta(held.get()));
  expect_table(result.get(), "luma", picture(held.get(), rig.video())[0], false, GST_CUDA_VISION_ENTRY_TYPE_U32);
}

TEST(keeps_referenced_tables, Each::run) {
  std::vector<Buffer> frames, results;
  GstVideoInfo video;
  {
    Rig rig(run, tables + "squared=true");
    rig.caps(caps_text("GRAY8", size));
    video = rig.video();
    for (unsigned i = 0; i < 6; ++i) {
      frames.push_back(noise(video, i));
      results.push_back(rig.push(copied(frames[i])));
      rig.filter(frames[i]);  // reuses released tables, never referenced ones
    }
  }
  // The element is destroyed.
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const cv::Mat samples = picture(frames[i].get(), video)[0];
    expect_table(results[i].get(), "luma", samples, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
    expect_table(results[i].get(), "luma", samples, false, GST_CUDA_VISION_ENTRY_TYPE_U64, true);
  }
}

TEST(reuses_memory, Each::run) {
  Rig rig(run, tables);
  rig.caps(caps_text("GRAY8", size));
  const auto memory_of = [&] {
    const Buffer result = rig.push(noise(rig.video()));
    return gst_buffer_get_cuda_vision_integral_meta(result.get())->tables[0].memory;
  };
  GstMemory* const first = memory_of();
  for (int i = 0; i < 5; ++i) EXPECT(memory_of() == first);
}

TEST(follows_table_settings, Each::run) {
  Rig rig(run, tables);
  rig.caps(caps_text("NV12", size));
  const Buffer frame = noise(rig.video());
  const Picture input = picture(frame.get(), rig.video());
  const auto now = [&](const char* settings) {
    at(settings);
    set(rig.element(), settings);
    return rig.push(copied(frame));
  };
  expect_table(now("layout=padded").get(), "luma", input[0], true, GST_CUDA_VISION_ENTRY_TYPE_U32);
  expect_table(now("sum-type=f64").get(), "luma", input[0], true, GST_CUDA_VISION_ENTRY_TYPE_F64);
  expect_table(now("channel=all layout=inclusive").get(), "Cb", input[1], false, GST_CUDA_VISION_ENTRY_TYPE_F64);
  expect_table(now("squared=true").get(), "Cr", input[2], false, GST_CUDA_VISION_ENTRY_TYPE_F64, true);
  const Buffer mean_of = now("output=box-mean");
  EXPECT(!gst_buffer_get_cuda_vision_integral_meta(mean_of.get()));
  EXPECT_SAME(picture(mean_of.get(), rig.video()), filtered(run, "output=box-mean", rig.video(), frame));
  expect_table(now("output=passthrough").get(), "Y", input[0], false, GST_CUDA_VISION_ENTRY_TYPE_F64);
}

TEST(makes_tables_of_the_cropped_picture, Each::run) {
  const GstVideoInfo whole = video_info("RGB", {64, 48});
  Buffer frame = noise(whole);
  const Buffer cropped = cut(whole, frame.get(), {6, 4, 37, 29});
  gst_buffer_add_video_meta(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_RGB, 64, 48);
  add_crop(frame.get(), {6, 4, 37, 29});
  Rig rig(run, tables);
  rig.caps(caps_text("RGB", {37, 29}));
  const Buffer result = rig.push(std::move(frame));
  expect_table(result.get(), "luma", luma(picture(cropped.get(), rig.video()), rig.video()), false,
               GST_CUDA_VISION_ENTRY_TYPE_U32);
}

TEST(follows_caps_with_its_tables, Each::run) {
  Rig rig(run, tables);
  for (Size now : {size, Size{5, 3}, Size{1, 1}, Size{128, 2}})
    for (const char* format : {"GRAY8", "I420_10LE", "BGRA"}) {
      at(format + std::string(" ") + show(now.width));
      rig.caps(caps_text(format, now));
      const Buffer frame = noise(rig.video());
      const Buffer result = rig.push(copied(frame));
      expect_table(result.get(), "luma", luma(picture(frame.get(), rig.video()), rig.video()), false,
                   GST_CUDA_VISION_ENTRY_TYPE_U32);
    }
}

// Table streams
// -----------------------------------------------------------------------------------------------------------------

namespace {

std::string table_caps(const std::string& fields = "", const char* feature = nullptr) {
  return "video/x-integral" + (feature ? "(" + std::string(feature) + ")" : "") + (fields.empty() ? "" : "," + fields);
}

/// A rig with a downstream peer that accepts only the caps `wanted`.
struct TableRig : Rig {
  TableRig(const Run& run, const std::string& settings, const std::string& wanted) : Rig(run, tables + settings) {
    want(wanted);
  }
  void want(const std::string& wanted) { gst_harness_set_sink_caps_str(harness(), wanted.c_str()); }
  std::string field(const char* name) const {
    const Caps caps = src_caps();
    const gchar* text = gst_structure_get_string(gst_caps_get_structure(caps.get(), 0), name);
    return text ? text : "";
  }
  int number(const char* name) const {
    int value = -1;
    gst_structure_get_int(gst_caps_get_structure(src_caps().get(), 0), name, &value);
    return value;
  }
  /// Pushes a frame, which must fail, and returns the error.
  Message refusal(const std::string& caps) {
    EXPECT_EQ(error().text, "");
    Rig::caps(caps);
    EXPECT(gst_harness_push(harness(), noise(video()).release()) != GST_FLOW_OK);
    return error();
  }
};

/// Checks that the buffer holds the tables of these components, one after another.
void expect_numbers(GstBuffer* buffer, const Picture& components, bool padded, GstCudaVisionEntryType type) {
  GstMapInfo map;
  EXPECT(gst_buffer_map(buffer, &map, GST_MAP_READ));
  gsize offset = 0;
  for (const cv::Mat& samples : components) {
    const std::vector<guint64> expected = sums(samples, padded);
    EXPECT(map.size >= offset + expected.size() * gst_cuda_vision_entry_type_get_size(type));
    expect_entries(map.data + offset, type, expected);
    offset += expected.size() * gst_cuda_vision_entry_type_get_size(type);
  }
  if (!on_device(gst_buffer_peek_memory(buffer, 0))) EXPECT_EQ(map.size, offset);  // device memory is rounded up
  gst_buffer_unmap(buffer, &map);
}

struct NumberFormat {
  const char* name;
  GstCudaVisionEntryType type;
};
constexpr NumberFormat number_formats[] = {{"U32LE", GST_CUDA_VISION_ENTRY_TYPE_U32},
                                           {"U64LE", GST_CUDA_VISION_ENTRY_TYPE_U64},
                                           {"F32LE", GST_CUDA_VISION_ENTRY_TYPE_F32},
                                           {"F64LE", GST_CUDA_VISION_ENTRY_TYPE_F64}};

}  // namespace

TEST(sends_tables_as_plain_numbers, Each::run) {
  for (const char* feature : {static_cast<const char*>(nullptr), cuda_memory})
    for (const NumberFormat& entry : number_formats)
      for (const char* format : {"GRAY8", "NV12", "BGRx", "I420_10LE"})
        for (bool padded : {false, true}) {
          if (feature && run.backend != "cuda") continue;
          at(std::string(format) + " " + entry.name + (padded ? " padded" : "") + (feature ? " on the device" : ""));
          TableRig rig(run, "",
                       table_caps(std::string("format=") + entry.name + ",layout=" + (padded ? "padded" : "inclusive"),
                                  feature));
          rig.caps(caps_text(format, size));
          for (unsigned i = 0; i < 3; ++i) {
            const Buffer frame = noise(rig.video(), i);
            const Buffer result = rig.push(copied(frame));
            EXPECT_EQ(on_device(gst_buffer_peek_memory(result.get(), 0)), feature != nullptr);
            expect_numbers(result.get(), {luma(picture(frame.get(), rig.video()), rig.video())}, padded, entry.type);
          }
          EXPECT_EQ(rig.number("width"), size.width + padded);
          EXPECT_EQ(rig.number("height"), size.height + padded);
          EXPECT_EQ(rig.number("channels"), 1);
          EXPECT_EQ(rig.field("format"), entry.name);
          EXPECT_EQ(rig.field("layout"), (padded ? "padded" : "inclusive"));
          int rate = 0, per = 0;
          EXPECT(gst_structure_get_fraction(gst_caps_get_structure(rig.src_caps().get(), 0), "framerate", &rate, &per));
          EXPECT(rate == 25 && per == 1);
        }
}

TEST(sends_the_tables_of_opencv, Each::run) {
  TableRig rig(run, "", table_caps("format=U32LE"));
  rig.caps(caps_text("GRAY8", size));
  const Buffer frame = noise(rig.video());
  cv::Mat bytes, table;
  picture(frame.get(), rig.video())[0].convertTo(bytes, CV_8U);
  cv::integral(bytes, table, CV_32S);
  table = table(cv::Rect(1, 1, size.width, size.height)).clone();
  const Buffer result = rig.push(copied(frame));
  EXPECT_EQ(gst_buffer_get_size(result.get()), table.total() * 4);
  EXPECT_EQ(gst_buffer_memcmp(result.get(), 0, table.data, table.total() * 4), 0);
}

TEST(sends_every_channel, Each::run) {
  for (const auto& [format, count] :
       {std::pair{"GRAY8", 1}, {"RGB", 3}, {"xBGR", 3}, {"BGRA", 4}, {"GBR", 3}, {"Y444", 3}, {"ARGB64_LE", 4}})
    for (const char* wanted : {"", "channels=(int)[2,9]", "channels=1"}) {
      at(format + std::string(" ") + wanted);
      if (count == 1 && std::strstr(wanted, "[2")) continue;
      // Caps take precedence over settings.
      TableRig rig(run, *wanted ? "squared=true" : "squared=true channel=all", table_caps(wanted));
      rig.caps(caps_text(format, size));
      const Buffer frame = noise(rig.video());
      const Buffer result = rig.push(copied(frame));
      Picture expected = picture(frame.get(), rig.video());
      expected.resize(std::size_t(count));
      if (std::strstr(wanted, "=1")) expected = {luma(expected, rig.video())};
      EXPECT_EQ(rig.number("channels"), expected.size());
      expect_numbers(result.get(), expected, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
    }
}

TEST(follows_settings_if_caps_leave_a_choice, Each::run) {
  TableRig rig(run, "layout=padded sum-type=f64", table_caps());
  rig.caps(caps_text("RGBA", size));
  const Buffer frame = noise(rig.video());
  const Picture input = picture(frame.get(), rig.video());
  const cv::Mat gray = luma(input, rig.video());
  expect_numbers(rig.push(copied(frame)).get(), {gray}, true, GST_CUDA_VISION_ENTRY_TYPE_F64);
  // Changed settings change the caps while playing.
  set(rig.element(), "layout=inclusive sum-type=u64");
  expect_numbers(rig.push(copied(frame)).get(), {gray}, false, GST_CUDA_VISION_ENTRY_TYPE_U64);
  EXPECT_EQ(rig.field("format"), "U64LE");
  EXPECT_EQ(rig.number("width"), size.width);
  set(rig.element(), "channel=all sum-type=auto");
  expect_numbers(rig.push(copied(frame)).get(), input, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
  EXPECT_EQ(rig.number("channels"), 4);
  // If downstream refuses the type, the element chooses the next type that holds as much.
  rig.want(table_caps("format={U32LE,F64LE}"));
  rig.caps(caps_text("GRAY16_LE", {640, 480}));
  rig.push(noise(rig.video()));
  EXPECT_EQ(rig.field("format"), "F64LE");
}

TEST(asks_upstream_for_the_size_of_the_tables, Each::run) {
  struct Case {
    const char *wanted, *offered;
    bool good;
  };
  for (const Case& c : {Case{"width=101,height=51,layout=padded", "format=NV12,width=100,height=50", true},
                        {"width=101,height=51,layout=padded", "format=NV12,width=101,height=51", false},
                        {"width=101,height=51,layout=inclusive", "format=NV12,width=101,height=51", true},
                        {"width=101,height=51", "format=NV12,width=100,height=50", true},
                        {"width=101,height=51", "format=NV12,width=101,height=51", true},
                        {"width=101,height=51", "format=NV12,width=102,height=51", false},
                        {"width=[50,60]", "format=NV12,width=49,height=9", true},
                        {"width=[50,60]", "format=NV12,width=48,height=9", false},
                        {"width={50,60,[70,80]},layout=padded", "format=NV12,width=59,height=9", true},
                        {"width={50,60,[70,80]},layout=padded", "format=NV12,width=70,height=9", true},
                        {"width={50,60,[70,80]},layout=padded", "format=NV12,width=60,height=9", false},
                        {"channels=3", "format=NV12", false},
                        {"channels=3", "format=RGBx", true},
                        {"channels=4", "format=RGBA", true},
                        {"channels=4", "format=RGB", false}}) {
    at(c.wanted + std::string(" of ") + c.offered);
    const Rig rig(run, tables);
    gst_harness_set_sink_caps_str(rig.harness(), table_caps(c.wanted).c_str());
    const Caps possible(gst_pad_peer_query_caps(rig.harness()->srcpad, nullptr));
    const Caps offered(gst_caps_from_string(("video/x-raw," + std::string(c.offered)).c_str()));
    EXPECT_EQ(bool(gst_caps_can_intersect(possible.get(), offered.get())), c.good);
  }
}

TEST(wraps_numbers_only_if_asked, Each::run) {
  const std::string large = caps_text("GRAY16_LE", {640, 480});
  {
    TableRig rig(run, "", table_caps("format=U32LE"));
    const Message error = rig.refusal(large);
    EXPECT_EQ(error.domain, GST_LIBRARY_ERROR);
    EXPECT_EQ(error.code, int(GST_LIBRARY_ERROR_SETTINGS));
    for (const char* part : {"U32LE", "640×480", "GRAY16_LE", "U64LE", "sum-type=u32"})
      EXPECT_CONTAINS(error.text, part);
  }
  TableRig rig(run, "sum-type=u32", table_caps("format=U32LE"));
  rig.caps(large);
  const Buffer frame = noise(rig.video());
  expect_numbers(rig.push(copied(frame)).get(), picture(frame.get(), rig.video()), false,
                 GST_CUDA_VISION_ENTRY_TYPE_U32);
}

TEST(reports_why_tables_are_impossible, Each::run) {
  for (const auto& [settings, property, value] : {std::tuple{"channel=all", "channel", "NV12"},
                                                  {"output=nlm", "output", "nlm"},
                                                  {"region=outside-roi", "region", "outside-roi"}}) {
    at(settings);
    TableRig rig(run, settings, table_caps());
    const Message error = rig.refusal(caps_text("NV12", size));
    EXPECT_EQ(error.domain, GST_LIBRARY_ERROR);
    EXPECT_CONTAINS(error.text, property);
    EXPECT_CONTAINS(error.text, value);

    at(settings + std::string(" while playing"));
    TableRig playing(run, "", table_caps());
    playing.caps(caps_text("NV12", size));
    const Buffer frame = noise(playing.video());
    const Picture expected = {picture(frame.get(), playing.video())[0]};
    expect_numbers(playing.push(copied(frame)).get(), expected, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
    set(playing.element(), settings);
    expect_numbers(playing.push(copied(frame)).get(), expected, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
    const Message warning = playing.warning();
    EXPECT_EQ(warning.domain, GST_LIBRARY_ERROR);
    EXPECT_CONTAINS(warning.text, value);
  }
}

TEST(reports_that_memory_is_exhausted, Each::run) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // with sanitizers operator new ends the process instead of throwing
#endif
  if (!own_process() || run.backend != "cpu") return;
  const std::string large = caps_text("GRAY8", {16384, 4096});  // a table of 256 MiB or more
  for (const char* settings : {"output=passthrough", "output=box-mean", "output=deviation"}) {
    at(settings);
    Rig rig(run, settings);
    Buffer frame = black(video_info("GRAY8", {16384, 4096}));
    rlimit before, little;
    getrlimit(RLIMIT_AS, &before);
    long pages = 0;
    EXPECT(std::ifstream("/proc/self/statm") >> pages);
    little = {rlim_t(pages * sysconf(_SC_PAGESIZE)) + (rlim_t(150) << 20), before.rlim_max};
    setrlimit(RLIMIT_AS, &little);
    rig.caps(large);
    const GstFlowReturn flow = gst_harness_push(rig.harness(), frame.release());
    setrlimit(RLIMIT_AS, &before);
    EXPECT(flow != GST_FLOW_OK);
    const Message error = rig.error();
    EXPECT_EQ(error.domain, GST_RESOURCE_ERROR);
    EXPECT_CONTAINS(error.text, "memory");
  }
}

TEST(keeps_times_and_drops_video_metas, Each::run) {
  const Caps reference(gst_caps_new_empty_simple("timestamp/x-test"));
  TableRig rig(run, "", table_caps());
  rig.caps(caps_text("NV12", size));
  Buffer frame = noise(rig.video());
  GST_BUFFER_PTS(frame.get()) = 40 * GST_MSECOND;
  GST_BUFFER_DURATION(frame.get()) = 20 * GST_MSECOND;
  GST_BUFFER_OFFSET(frame.get()) = 7;
  gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 3, 4, 10, 12);
  gst_buffer_add_video_meta(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12, guint(size.width),
                            guint(size.height));
  gst_buffer_add_reference_timestamp_meta(frame.get(), reference.get(), 42, 43);
  const Buffer result = rig.push(std::move(frame));
  EXPECT_EQ(GST_BUFFER_PTS(result.get()), 40 * GST_MSECOND);
  EXPECT_EQ(GST_BUFFER_DURATION(result.get()), 20 * GST_MSECOND);
  EXPECT_EQ(GST_BUFFER_OFFSET(result.get()), 7);
  EXPECT(gst_buffer_get_reference_timestamp_meta(result.get(), nullptr));
  EXPECT(!gst_buffer_get_video_region_of_interest_meta_id(result.get(), 0));
  EXPECT(!gst_buffer_get_video_meta(result.get()));
  EXPECT(!gst_buffer_get_cuda_vision_integral_meta(result.get()));
}

TEST(keeps_referenced_buffers, Each::run) {
  std::vector<Buffer> results;
  Picture inputs;
  {
    TableRig rig(run, "", table_caps());
    rig.caps(caps_text("GRAY8", size));
    for (unsigned i = 0; i < 6; ++i) {
      const Buffer frame = noise(rig.video(), i);
      inputs.push_back(picture(frame.get(), rig.video())[0]);
      results.push_back(rig.push(copied(frame)));
      rig.push(copied(frame));
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    expect_numbers(results[i].get(), {inputs[i]}, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
}

TEST(accepts_frames_from_a_neighbour, Each::run) {
  // With CUDA, the frames between the two elements stay on the device.
  const bool cuda = run.backend == "cuda";
  const std::string neighbour = "cudaconvolve backend=" + run.backend + " ! video/x-raw" +
                                (cuda ? "(memory:CUDAMemory)" : "") + " ! cudaintegral backend=" + run.backend;
  for (const char* format : {"NV12", "RGBA"})
    for (const char* wanted : {"video/x-raw", "video/x-integral"}) {
      at(format + std::string(" to ") + wanted);
      GError* error = nullptr;
      Rig rig(gst_parse_bin_from_description(neighbour.c_str(), TRUE, &error));
      EXPECT(!error);
      gst_harness_set_sink_caps_str(rig.harness(), wanted);
      rig.caps(caps_text(format, size));
      for (unsigned i = 0; i < 3; ++i) {
        const Buffer frame = noise(rig.video(), i);
        const Picture input = picture(frame.get(), rig.video());
        const Buffer result = rig.push(copied(frame));
        if (std::strstr(wanted, "raw")) {
          EXPECT_SAME(picture(result.get(), rig.video()), input);
          expect_table(result.get(), "luma", luma(input, rig.video()), false, GST_CUDA_VISION_ENTRY_TYPE_U32);
        } else {
          expect_numbers(result.get(), {luma(input, rig.video())}, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
        }
      }
    }
}

TEST(keeps_its_memory_when_it_leaves_passthrough, Each::run) {
  const bool cuda = run.backend == "cuda";
  const std::string raw = cuda ? "video/x-raw(memory:CUDAMemory)" : "video/x-raw", backend = " backend=" + run.backend;
  GstElement* bin = gst_parse_bin_from_description(
      ("cudaconvolve" + backend + " ! " + raw + " ! cudaintegral name=second" + backend).c_str(), TRUE, nullptr);
  GstElement* second = gst_bin_get_by_name(GST_BIN(bin), "second");
  Rig rig(bin);
  gst_harness_set_sink_caps_str(rig.harness(), raw.c_str());
  rig.caps(caps_text("NV12", size));
  const Buffer frame = noise(rig.video());
  const Picture input = picture(frame.get(), rig.video()),
                mean_of = filtered(run, "output=box-mean", rig.video(), frame);
  for (int i = 0; i < 8; ++i) {
    const bool passes = i / 2 % 2 == 0;
    set(second, passes ? "output=passthrough" : "output=box-mean");
    const Buffer result = rig.push(copied(frame));
    EXPECT_EQ(on_device(gst_buffer_peek_memory(result.get(), 0)), cuda);
    EXPECT_SAME(picture(result.get(), rig.video()), passes ? input : mean_of);
  }
  gst_object_unref(second);
}

TEST(switches_between_video_and_tables, Each::run) {
  TableRig rig(run, "", "video/x-raw");
  rig.caps(caps_text("RGB", size));
  const Buffer frame = noise(rig.video());
  const Picture input = picture(frame.get(), rig.video());
  for (int round = 0; round < 3; ++round) {
    rig.want("video/x-raw");
    gst_harness_push_upstream_event(rig.harness(), gst_event_new_reconfigure());
    const Buffer passed = rig.push(copied(frame));
    EXPECT_SAME(picture(passed.get(), rig.video()), input);
    expect_table(passed.get(), "luma", luma(input, rig.video()), false, GST_CUDA_VISION_ENTRY_TYPE_U32);
    rig.want(table_caps());
    gst_harness_push_upstream_event(rig.harness(), gst_event_new_reconfigure());
    expect_numbers(rig.push(copied(frame)).get(), {luma(input, rig.video())}, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
  }
  // Caps, flush, discont and EOS change nothing.
  rig.caps(caps_text("NV12", {16, 300}));
  Buffer other = noise(rig.video());
  const cv::Mat samples = picture(other.get(), rig.video())[0];
  GST_BUFFER_FLAG_SET(other.get(), GST_BUFFER_FLAG_DISCONT);
  expect_numbers(rig.push(copied(other)).get(), {samples}, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
  flush(rig);
  expect_numbers(rig.push(copied(other)).get(), {samples}, false, GST_CUDA_VISION_ENTRY_TYPE_U32);
  EXPECT(gst_harness_push_event(rig.harness(), gst_event_new_eos()));
}

// Filters
// ---------------------------------------------------------------------------------------------------------------------

TEST(computes_the_mean_of_windows, Each::run) {
  for (int radius : {1, 7, 30, 16384})
    for (const char* format : {"GRAY8", "RGB", "NV12", "Y42B", "GRAY16_LE"}) {
      at(format + std::string(" radius ") + show(radius));
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      const Picture input = picture(frame.get(), video);
      Picture expected;
      for (std::size_t c = 0; c < input.size(); ++c) {
        const int sx = GST_VIDEO_FORMAT_INFO_W_SUB(video.finfo, c), sy = GST_VIDEO_FORMAT_INFO_H_SUB(video.finfo, c);
        expected.push_back(windows(input[c], (radius + sx) >> sx, (radius + sy) >> sy, mean));
      }
      EXPECT_WITHIN(filtered(run, "output=box-mean radius=" + show(radius), video, frame), expected, 0);
    }
}

namespace {

/// The mosaic of a component in a box: blocks of `side` pixels from the corner of the box on;
/// samples outside of it stay.
cv::Mat mosaic(const GstVideoInfo& video, std::size_t c, const cv::Mat& samples, const cv::Rect& box, int side) {
  const int sx = GST_VIDEO_FORMAT_INFO_W_SUB(video.finfo, c), sy = GST_VIDEO_FORMAT_INFO_H_SUB(video.finfo, c);
  const auto block = [&](int x, int y) {
    return cv::Point(int(std::floor(double((x << sx) - box.x) / side)),
                     int(std::floor(double((y << sy) - box.y) / side)));
  };
  cv::Mat result = samples.clone();
  const cv::Rect frame(0, 0, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video));
  for (int y = 0; y < samples.rows; ++y)
    for (int x = 0; x < samples.cols; ++x) {
      const cv::Rect pixels = cv::Rect(x << sx, y << sy, 1 << sx, 1 << sy) & frame;
      if ((pixels & box) != pixels) continue;
      double sum = 0, count = 0;
      for (int j = 0; j < samples.rows; ++j)
        for (int i = 0; i < samples.cols; ++i)
          if (block(i, j) == block(x, y)) sum += samples.at<guint16>(j, i), count += 1;
      result.at<guint16>(y, x) = guint16(std::nearbyint(sum / count));
    }
  return result;
}

}  // namespace

TEST(pixelates_frames_and_regions, Each::run) {
  struct Case {
    const char* settings;
    cv::Rect box;
    int side;
  };
  const cv::Rect whole(0, 0, size.width, size.height);
  for (const Case& c : {Case{"radius=1", whole, 3},
                        // An eighth of 43, rounded up.
                        {"radius=3", whole, 7},
                        {"radius=0", whole, 2 * 6 + 1},
                        {"radius=300", whole, 601},
                        {"radius=3 region=roi", {5, 7, 30, 25}, 7},
                        {"radius=0 region=roi", {5, 7, 30, 25}, 2 * 4 + 1},
                        {"radius=0 region=roi region-margin=0.2", {-1, 2, 42, 35}, 2 * 5 + 1},
                        {"radius=0 region=roi roi-type=none regions=11,9,20,12", {11, 9, 20, 12}, 2 * 2 + 1}})
    for (const char* format : {"GRAY8", "NV12", "YUY2", "BGRA", "GRAY16_LE"}) {
      at(std::string(format) + " " + c.settings);
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 5, 7, 30, 25);
      const Picture input = picture(frame.get(), video);
      Picture expected;
      for (std::size_t i = 0; i < input.size(); ++i)
        expected.push_back(i == 3 ? input[3] : mosaic(video, i, input[i], c.box, c.side));
      EXPECT_SAME(filtered(run, "output=pixelate " + std::string(c.settings), video, frame), expected);
    }
}

TEST(follows_the_size_of_regions_with_its_radius, Each::run) {
  for (const char* output : {"output=box-mean ", "output=pixelate "})
    for (const auto& [box, radius] :
         {std::pair{cv::Rect(3, 4, 40, 33), 5}, {cv::Rect(3, 4, 17, 40), 3}, {cv::Rect(20, 20, 6, 5), 2}}) {
      at(output + show(radius));
      const GstVideoInfo video = video_info("I420", size);
      const Buffer frame = noise(video);
      gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", guint(box.x), guint(box.y), guint(box.width),
                                                   guint(box.height));
      Rig rig(run, output + std::string("region=roi radius=0"));
      rig.caps(caps_text("I420", size));
      const Picture following = rig.filter(frame);
      set(rig.element(), "radius=" + show(radius));
      EXPECT_SAME(rig.filter(frame), following);
      set(rig.element(), "radius=" + show(radius + 1));
      EXPECT(!difference(rig.filter(frame), following, 0).empty());
    }
}

TEST(thresholds_at_the_local_mean, Each::run) {
  for (const char* settings : {"", "radius=2", "radius=15 sensitivity=0.05", "sensitivity=0", "sensitivity=1"})
    for (const char* format : {"GRAY8", "NV12", "BGR", "P010_10LE"}) {
      at(std::string(format) + " " + settings);
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      const Picture input = picture(frame.get(), video);
      const int top = GST_VIDEO_INFO_COMP_DEPTH(&video, 0) == 10 ? 1023 : 255;
      const int radius = std::strstr(settings, "radius=2") ? 2 : std::strstr(settings, "=15") ? 15 : 7;
      const double sensitivity = std::strstr(settings, "0.05")            ? 0.05
                                 : std::strstr(settings, "sensitivity=0") ? 0
                                 : std::strstr(settings, "sensitivity=1") ? 1
                                                                          : 0.15;
      const cv::Mat page = windows(luma(input, video), radius, radius, [&](int p, double n, double sum, double) {
        return double(p) * n < sum * (1 - sensitivity) ? 0 : top;
      });
      Picture expected;
      for (std::size_t c = 0; c < input.size(); ++c)
        expected.push_back(GST_VIDEO_INFO_IS_YUV(&video) && c > 0
                               ? cv::Mat(input[c].size(), CV_16U, cv::Scalar((top + 1) / 2))
                               : page);
      EXPECT_SAME(filtered(run, "output=threshold " + std::string(settings), video, frame), expected);
    }
}

TEST(computes_the_deviation, Each::run) {
  for (int radius : {1, 7})
    for (const char* format : {"GRAY8", "I420", "RGBP"}) {
      at(format + std::string(" radius ") + show(radius));
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      const Picture input = picture(frame.get(), video);
      Picture expected;
      for (std::size_t c = 0; c < input.size(); ++c)
        expected.push_back(GST_VIDEO_INFO_IS_YUV(&video) && c > 0 ? cv::Mat(input[c].size(), CV_16U, cv::Scalar(128))
                                                                  : windows(input[c], radius, radius, deviation));
      EXPECT_WITHIN(filtered(run, "output=deviation radius=" + show(radius), video, frame), expected, 1);
    }
}

TEST(denoises_with_similar_patches, Each::run) {
  // Two halves of different gray, with slight noise.
  const GstVideoInfo video = video_info("GRAY8", {32, 24});
  const Buffer frame = noise(video, 3);
  {
    GstMapInfo map;
    EXPECT(gst_buffer_map(frame.get(), &map, GST_MAP_READWRITE));
    for (gsize i = 0; i < map.size; ++i) map.data[i] = guint8((i % 32 < 16 ? 60 : 180) + map.data[i] % 20);
    gst_buffer_unmap(frame.get(), &map);
  }
  const cv::Mat input = picture(frame.get(), video)[0];
  for (const auto& [settings, patch, search, h] : {std::tuple{"radius=1 search-radius=3 strength=12", 1, 3, 12.0},
                                                   {"radius=2 search-radius=5 strength=40", 2, 5, 40.0}}) {
    at(settings);
    cv::Mat expected(input.size(), CV_16U);
    const auto inside = [&](int x, int y) { return x >= 0 && y >= 0 && x < input.cols && y < input.rows; };
    for (int y = 0; y < input.rows; ++y)
      for (int x = 0; x < input.cols; ++x) {
        double sum = 0, weights = 0;
        for (int oy = -search; oy <= search; ++oy)
          for (int ox = -search; ox <= search; ++ox) {
            if (!inside(x + ox, y + oy)) continue;
            double d = 0, n = 0;
            for (int ky = -patch; ky <= patch; ++ky)
              for (int kx = -patch; kx <= patch; ++kx)
                if (inside(x + kx, y + ky) && inside(x + ox + kx, y + oy + ky)) {
                  const double v =
                      double(input.at<guint16>(y + ky, x + kx)) - input.at<guint16>(y + oy + ky, x + ox + kx);
                  d += v * v, n += 1;
                }
            const double w = std::exp(-d / n / (h * h));
            weights += w, sum += w * input.at<guint16>(y + oy, x + ox);
          }
        expected.at<guint16>(y, x) = guint16(std::nearbyint(sum / weights));
      }
    EXPECT_WITHIN(filtered(run, "output=nlm " + std::string(settings), video, frame), Picture({expected}), 1);
  }
}

TEST(takes_the_largest_radius_there_is_for_greater_ones, Each::run) {
  const GstVideoInfo video = video_info("NV12", {30, 50});
  const Buffer frame = noise(video);
  // A window of this radius has the whole frame.
  for (const char* output : {"box-mean", "threshold", "deviation", "pixelate"})
    EXPECT_SAME(filtered(run, std::string("radius=16384 output=") + output, video, frame),
                filtered(run, std::string("radius=50 output=") + output, video, frame));
  EXPECT_SAME(filtered(run, "output=nlm search-radius=2 radius=17", video, frame),
              filtered(run, "output=nlm search-radius=2 radius=16", video, frame));
}

int main() { return run_tests("integral", "cudaintegral"); }
