// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the library of metas. They need neither the plugin nor a backend.
#include <gst/video/video.h>

#include <string>
#include <tuple>
#include <vector>

#include "gst/base/owned.hpp"
#include "gst/meta/cudavision.h"

// included last, because its macro fail() breaks C++ headers
#include <gst/check/gstcheck.h>

namespace {

using Buffer = cudavision::Owned<GstBuffer>;
using Memories = std::vector<cudavision::Owned<GstMemory>>;

constexpr guint bins = 256;

struct Histogram {
  std::vector<std::vector<guint64>> counts;
  std::vector<GstCudaVisionHistogramChannel> channels;

  explicit Histogram(const std::vector<const char*>& names) : counts(names.size()), channels(names.size()) {
    for (std::size_t c = 0; c < names.size(); ++c) {
      counts[c].assign(bins, c);
      counts[c][c + 7] = G_GUINT64_CONSTANT(5000000000);
      GstCudaVisionHistogramChannel& channel = channels[c];
      channel.name = names[c];
      channel.counts = counts[c].data();
      channel.count = bins * c;
      gdouble value = 10. * double(c);
      for (gdouble* figure : {&channel.min, &channel.max, &channel.mean, &channel.deviation, &channel.median,
                              &channel.p01, &channel.p99, &channel.entropy, &channel.saturated})
        *figure = ++value;
    }
  }
};

Buffer buffer_with_histogram() {
  Buffer buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
  const Histogram made({"luma", "R", "G", "B"});  // freed when this returns: the meta keeps a copy
  fail_unless(gst_buffer_add_cuda_vision_histogram_meta(buffer.get(), bins, 8, 4, made.channels.data()));
  return buffer;
}

void check_histogram(GstBuffer* buffer) {
  const Histogram made({"luma", "R", "G", "B"});
  const GstCudaVisionHistogramMeta* meta = gst_buffer_get_cuda_vision_histogram_meta(buffer);
  fail_unless(meta);
  fail_unless_equals_int(meta->bins, bins);
  fail_unless_equals_int(meta->depth, 8);
  fail_unless_equals_int(meta->n_channels, 4);
  for (guint c = 0; c < 4; ++c) {
    const GstCudaVisionHistogramChannel &actual = meta->channels[c], &expected = made.channels[c];
    fail_unless_equals_string(actual.name, expected.name);
    fail_unless(gst_cuda_vision_histogram_meta_get_channel(meta, expected.name) == &actual);
    fail_unless(std::vector<guint64>(actual.counts, actual.counts + bins) == made.counts[c]);
    fail_unless_equals_uint64(actual.count, expected.count);
    for (auto figure : {&GstCudaVisionHistogramChannel::min, &GstCudaVisionHistogramChannel::max,
                        &GstCudaVisionHistogramChannel::mean, &GstCudaVisionHistogramChannel::deviation,
                        &GstCudaVisionHistogramChannel::median, &GstCudaVisionHistogramChannel::p01,
                        &GstCudaVisionHistogramChannel::p99, &GstCudaVisionHistogramChannel::entropy,
                        &GstCudaVisionHistogramChannel::saturated})
      fail_unless_equals_float(actual.*figure, expected.*figure);
  }
  fail_unless(!gst_cuda_vision_histogram_meta_get_channel(meta, "Y"));
}

constexpr guint samples_wide = 3, samples_high = 2;
constexpr guint8 samples[samples_high][samples_wide] = {{1, 2, 3}, {4, 5, 255}};

/// The summed-area table of the samples or their squares, with `start` added to each entry. A large `start` makes
/// entries wrap around.
template <typename Entry>
GstMemory* table_memory(bool padded, bool squared, Entry start = 0) {
  const guint pad = padded, width = samples_wide + pad, height = samples_high + pad;
  GstMemory* memory = gst_allocator_alloc(nullptr, width * height * sizeof(Entry), nullptr);
  GstMapInfo map;
  fail_unless(gst_memory_map(memory, &map, GST_MAP_WRITE));
  auto* entries = reinterpret_cast<Entry*>(map.data);
  for (guint y = 0; y < height; ++y)
    for (guint x = 0; x < width; ++x) {
      Entry sum = start;
      for (guint j = 0; j < y + 1 - pad; ++j)
        for (guint i = 0; i < x + 1 - pad; ++i) sum += Entry(squared ? samples[j][i] * samples[j][i] : samples[j][i]);
      entries[y * width + x] = sum;
    }
  gst_memory_unmap(memory, &map);
  return memory;
}

GstCudaVisionIntegralTable table(const char* channel, bool squared, GstCudaVisionEntryType type, bool padded,
                                 GstMemory* memory) {
  GstCudaVisionIntegralTable made{};
  made.channel = channel;
  made.squared = squared;
  made.type = type;
  made.width = samples_wide + padded;
  made.height = samples_high + padded;
  made.memory = memory;
  return made;
}

/// Makes a buffer with tables of sums in every type, and one of squares.
Buffer buffer_with_tables(bool padded, Memories& memories) {
  for (GstMemory* memory :
       {table_memory<guint32>(padded, false), table_memory<guint64>(padded, false), table_memory<gfloat>(padded, false),
        table_memory<gdouble>(padded, false), table_memory<guint64>(padded, true)})
    memories.emplace_back(memory);
  const GstCudaVisionIntegralTable tables[] = {
      table("luma", false, GST_CUDA_VISION_ENTRY_TYPE_U32, padded, memories[0].get()),
      table("R", false, GST_CUDA_VISION_ENTRY_TYPE_U64, padded, memories[1].get()),
      table("G", false, GST_CUDA_VISION_ENTRY_TYPE_F32, padded, memories[2].get()),
      table("A", false, GST_CUDA_VISION_ENTRY_TYPE_F64, padded, memories[3].get()),
      table("luma", true, GST_CUDA_VISION_ENTRY_TYPE_U64, padded, memories[4].get())};
  Buffer buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
  const auto layout = padded ? GST_CUDA_VISION_TABLE_LAYOUT_PADDED : GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE;
  const GstCudaVisionIntegralMeta* meta =
      gst_buffer_add_cuda_vision_integral_meta(buffer.get(), layout, G_N_ELEMENTS(tables), tables);
  fail_unless(meta);
  fail_unless(meta == gst_buffer_get_cuda_vision_integral_meta(buffer.get()));
  fail_unless(meta->layout == layout);
  fail_unless_equals_int(meta->n_tables, G_N_ELEMENTS(tables));
  return buffer;
}

void check_sums(const GstCudaVisionIntegralMeta* meta) {
  for (guint index = 0; index < meta->n_tables; ++index) {
    GstMapInfo map;
    fail_unless(gst_cuda_vision_integral_meta_map_table(meta, index, &map));
    for (guint y0 = 0; y0 <= samples_high; ++y0)
      for (guint y1 = y0; y1 <= samples_high; ++y1)
        for (guint x0 = 0; x0 <= samples_wide; ++x0)
          for (guint x1 = x0; x1 <= samples_wide; ++x1) {
            gdouble expected = 0;
            for (guint y = y0; y < y1; ++y)
              for (guint x = x0; x < x1; ++x)
                expected += meta->tables[index].squared ? samples[y][x] * samples[y][x] : samples[y][x];
            fail_unless_equals_float(
                gst_cuda_vision_integral_meta_rectangle_sum(meta, index, &map, x0, y0, x1 - x0, y1 - y0), expected);
          }
    gst_cuda_vision_integral_meta_unmap_table(meta, index, &map);
  }
}

void check_nick(GType type, gint value, const char* nick) {
  auto* enums = static_cast<GEnumClass*>(g_type_class_ref(type));
  fail_unless_equals_string(g_enum_get_value(enums, value)->value_nick, nick);
  g_type_class_unref(enums);
}

}  // namespace

GST_START_TEST(histogram_keeps_the_added_values) {
  check_histogram(buffer_with_histogram().get());
  g_autoptr(GstBuffer) bare = gst_buffer_new();
  fail_unless(!gst_buffer_get_cuda_vision_histogram_meta(bare));
  fail_unless(!gst_buffer_get_cuda_vision_integral_meta(bare));
}
GST_END_TEST

GST_START_TEST(histogram_outlives_the_buffer_in_copies) {
  Buffer buffer = buffer_with_histogram();
  const Buffer copies[] = {Buffer(gst_buffer_copy(buffer.get())), Buffer(gst_buffer_copy_deep(buffer.get()))};
  fail_unless(gst_buffer_get_cuda_vision_histogram_meta(copies[0].get()) !=
              gst_buffer_get_cuda_vision_histogram_meta(buffer.get()));
  buffer.reset();
  for (const Buffer& copy : copies) check_histogram(copy.get());
}
GST_END_TEST

/// In these cases no meta of a buffer may be copied.
GST_START_TEST(metas_are_dropped_when_the_picture_changes) {
  Memories memories;
  const Buffer histogram = buffer_with_histogram(), tables = buffer_with_tables(false, memories);
  for (GstBuffer* buffer : {histogram.get(), tables.get()}) {
    g_autoptr(GstBuffer) region = gst_buffer_copy_region(buffer, GST_BUFFER_COPY_ALL, 8, 16);
    gpointer state = nullptr;
    fail_unless(!gst_buffer_iterate_meta(region, &state));
    GstVideoMetaTransform scale{};
    const GstMeta* meta = gst_buffer_iterate_meta(buffer, &(state = nullptr));
    fail_unless(!meta->info->transform_func(region, const_cast<GstMeta*>(meta), buffer,
                                            gst_video_meta_transform_scale_get_quark(), &scale));
    fail_unless(!gst_buffer_iterate_meta(region, &(state = nullptr)));
  }
}
GST_END_TEST

GST_START_TEST(several_metas_are_found_in_turn) {
  const Buffer owner = buffer_with_histogram();
  GstBuffer* const buffer = owner.get();
  const Histogram second({"Y"});
  fail_unless(gst_buffer_add_cuda_vision_histogram_meta(buffer, bins, 8, 1, second.channels.data()));
  std::string names;
  gpointer state = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(buffer, &state, GST_CUDA_VISION_HISTOGRAM_META_API_TYPE))
    names += reinterpret_cast<GstCudaVisionHistogramMeta*>(meta)->channels[0].name;
  fail_unless_equals_string(names.c_str(), "lumaY");
  gst_buffer_remove_meta(buffer, GST_META_CAST(gst_buffer_get_cuda_vision_histogram_meta(buffer)));
  fail_unless_equals_string(gst_buffer_get_cuda_vision_histogram_meta(buffer)->channels[0].name, "Y");
}
GST_END_TEST

GST_START_TEST(metas_are_known_by_name_and_tags) {
  for (const GstMetaInfo* info : {GST_CUDA_VISION_HISTOGRAM_META_INFO, GST_CUDA_VISION_INTEGRAL_META_INFO})
    for (const char* tag : {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_SIZE_STR, GST_META_TAG_VIDEO_COLORSPACE_STR})
      fail_unless(gst_meta_api_type_has_tag(info->api, g_quark_from_string(tag)));
  fail_unless(gst_meta_get_info("GstCudaVisionHistogramMeta") == GST_CUDA_VISION_HISTOGRAM_META_INFO);
  fail_unless(gst_meta_get_info("GstCudaVisionIntegralMeta") == GST_CUDA_VISION_INTEGRAL_META_INFO);
  // Any code can add an empty meta with gst_buffer_add_meta().
  g_autoptr(GstBuffer) buffer = gst_buffer_new();
  gst_buffer_add_meta(buffer, GST_CUDA_VISION_HISTOGRAM_META_INFO, nullptr);
  gst_buffer_add_meta(buffer, GST_CUDA_VISION_INTEGRAL_META_INFO, nullptr);
  g_autoptr(GstBuffer) copy = gst_buffer_copy(buffer);
  fail_unless_equals_int(gst_buffer_get_cuda_vision_histogram_meta(copy)->n_channels, 0);
  fail_unless_equals_int(gst_buffer_get_cuda_vision_integral_meta(copy)->n_tables, 0);
}
GST_END_TEST

GST_START_TEST(tables_are_found_by_channel) {
  Memories memories;
  const Buffer buffer = buffer_with_tables(true, memories);
  const GstCudaVisionIntegralMeta* meta = gst_buffer_get_cuda_vision_integral_meta(buffer.get());
  fail_unless_equals_int(gst_cuda_vision_integral_meta_get_channel(meta, "luma", FALSE), 0);
  fail_unless_equals_int(gst_cuda_vision_integral_meta_get_channel(meta, "luma", TRUE), 4);
  fail_unless_equals_int(gst_cuda_vision_integral_meta_get_channel(meta, "A", FALSE), 3);
  fail_unless_equals_int(gst_cuda_vision_integral_meta_get_channel(meta, "A", TRUE), -1);
  fail_unless_equals_int(gst_cuda_vision_integral_meta_get_channel(meta, "B", FALSE), -1);
  for (guint i = 0; i < meta->n_tables; ++i) fail_unless(meta->tables[i].memory == memories[i].get());
}
GST_END_TEST

GST_START_TEST(tables_map_and_sum_in_every_type_and_layout) {
  Memories memories;
  Buffer buffer = buffer_with_tables(__i__ == 1, memories);
  check_sums(gst_buffer_get_cuda_vision_integral_meta(buffer.get()));
  // A copy keeps the memories after the buffer and the references of this test are gone.
  Buffer copy(gst_buffer_copy(buffer.get()));
  buffer.reset();
  static int freed;
  freed = 0;
  const int count = int(memories.size());
  for (auto& memory : memories) {
    fail_unless_equals_int(GST_MINI_OBJECT_REFCOUNT_VALUE(memory.get()), 2);  // of this test, and one for all copies
    gst_mini_object_weak_ref(
        GST_MINI_OBJECT_CAST(memory.get()), [](gpointer, GstMiniObject*) { ++freed; }, nullptr);
  }
  memories.clear();
  check_sums(gst_buffer_get_cuda_vision_integral_meta(copy.get()));
  fail_unless_equals_int(freed, 0);
  copy.reset();
  fail_unless_equals_int(freed, count);
}
GST_END_TEST

GST_START_TEST(sums_are_correct_after_wrapping) {
  g_autoptr(GstMemory) memory = table_memory<guint32>(true, false, 0xffffffff - 3);
  const GstCudaVisionIntegralTable luma = table("luma", false, GST_CUDA_VISION_ENTRY_TYPE_U32, true, memory);
  g_autoptr(GstBuffer) buffer = gst_buffer_new();
  check_sums(gst_buffer_add_cuda_vision_integral_meta(buffer, GST_CUDA_VISION_TABLE_LAYOUT_PADDED, 1, &luma));
}
GST_END_TEST

GST_START_TEST(enums_have_nicks_and_sizes) {
  check_nick(GST_TYPE_CUDA_VISION_TABLE_LAYOUT, GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE, "inclusive");
  check_nick(GST_TYPE_CUDA_VISION_TABLE_LAYOUT, GST_CUDA_VISION_TABLE_LAYOUT_PADDED, "padded");
  const struct {
    GstCudaVisionEntryType type;
    const char* nick;
    gsize size;
  } types[] = {{GST_CUDA_VISION_ENTRY_TYPE_U32, "u32", sizeof(guint32)},
               {GST_CUDA_VISION_ENTRY_TYPE_U64, "u64", sizeof(guint64)},
               {GST_CUDA_VISION_ENTRY_TYPE_F32, "f32", sizeof(gfloat)},
               {GST_CUDA_VISION_ENTRY_TYPE_F64, "f64", sizeof(gdouble)}};
  for (const auto& entry : types) {
    check_nick(GST_TYPE_CUDA_VISION_ENTRY_TYPE, entry.type, entry.nick);
    fail_unless(gst_cuda_vision_entry_type_get_size(entry.type) == entry.size);
  }
}
GST_END_TEST

GST_START_TEST(misuse_is_refused) {
  GstBuffer* buffer = gst_buffer_new();
  Histogram made({"luma"});
  const auto add_histogram = [&](guint count, guint depth, guint channels) {
    return gst_buffer_add_cuda_vision_histogram_meta(buffer, count, depth, channels, made.channels.data());
  };
  const guint many_bins = GST_CUDA_VISION_HISTOGRAM_MAX_BINS + 1, many = GST_CUDA_VISION_HISTOGRAM_MAX_CHANNELS + 1;
  for (const auto& [count, depth, channels] :
       {std::tuple{1u, 8u, 1u}, {many_bins, 8, 1}, {bins, 0, 1}, {bins, 17, 1}, {bins, 8, 0}, {bins, 8, many}})
    ASSERT_CRITICAL(fail_unless(!add_histogram(count, depth, channels)));
  made.channels[0].counts = nullptr;
  ASSERT_CRITICAL(fail_unless(!add_histogram(bins, 8, 1)));

  GstMemory* memory = table_memory<guint32>(false, false);
  const GstCudaVisionIntegralTable good = table("luma", false, GST_CUDA_VISION_ENTRY_TYPE_U32, false, memory);
  GstCudaVisionIntegralTable bad = good;
  const auto add_table = [&](guint tables) {
    return gst_buffer_add_cuda_vision_integral_meta(buffer, GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE, tables, &bad);
  };
  ASSERT_CRITICAL(fail_unless(!add_table(0)));
  using Table = GstCudaVisionIntegralTable;
  for (void (*spoil)(Table&) : {+[](Table& t) { t.type = GST_CUDA_VISION_ENTRY_TYPE_U64; },  // the memory is too small
                                +[](Table& t) { t.height = G_MAXUINT; }, +[](Table& t) { t.memory = nullptr; },
                                +[](Table& t) { t.channel = nullptr; }}) {
    bad = good;
    spoil(bad);
    ASSERT_CRITICAL(fail_unless(!add_table(1)));
  }
  bad = good;

  const GstCudaVisionIntegralMeta* meta = add_table(1);
  GstMapInfo map;
  ASSERT_CRITICAL(fail_unless(!gst_cuda_vision_integral_meta_map_table(meta, 1, &map)));
  fail_unless(gst_cuda_vision_integral_meta_map_table(meta, 0, &map));
  ASSERT_CRITICAL(gst_cuda_vision_integral_meta_rectangle_sum(meta, 0, &map, 1, 0, samples_wide, 1));
  ASSERT_CRITICAL(gst_cuda_vision_integral_meta_rectangle_sum(meta, 0, &map, 0, G_MAXUINT, 1, G_MAXUINT));
  gst_cuda_vision_integral_meta_unmap_table(meta, 0, &map);

  GstBuffer* shared = gst_buffer_ref(buffer);
  ASSERT_CRITICAL(fail_unless(!add_table(1)));
  gst_buffer_unref(shared);
  gst_buffer_unref(buffer);
  fail_unless_equals_int(GST_MINI_OBJECT_REFCOUNT_VALUE(memory), 1);
  gst_memory_unref(memory);
}
GST_END_TEST

static Suite* meta_suite() {
  Suite* suite = suite_create("meta");
  TCase* tcase = tcase_create("meta");
  suite_add_tcase(suite, tcase);
  tcase_add_test(tcase, histogram_keeps_the_added_values);
  tcase_add_test(tcase, histogram_outlives_the_buffer_in_copies);
  tcase_add_test(tcase, metas_are_dropped_when_the_picture_changes);
  tcase_add_test(tcase, several_metas_are_found_in_turn);
  tcase_add_test(tcase, metas_are_known_by_name_and_tags);
  tcase_add_test(tcase, tables_are_found_by_channel);
  tcase_add_loop_test(tcase, tables_map_and_sum_in_every_type_and_layout, 0, 2);
  tcase_add_test(tcase, sums_are_correct_after_wrapping);
  tcase_add_test(tcase, enums_have_nicks_and_sizes);
  tcase_add_test(tcase, misuse_is_refused);
  return suite;
}

GST_CHECK_MAIN(meta)
