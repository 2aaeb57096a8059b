// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the tables and pictures of cudaintegral with the results of its plans.
#include "kernels/integral/integral.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <tuple>

#include "gst/meta/integral_meta.h"
#include "kernels/local/local.hpp"
#include "tests/elements/plans.hpp"

using namespace cudavision;
using namespace cudavision::test;
using integral::SumType;
using integral::TableChannel;
using integral::TableLayout;

namespace {

const Size size{61, 43};

GstCudaVisionEntryType entry_type(SumType type) {
  return type == SumType::u32   ? GST_CUDA_VISION_ENTRY_TYPE_U32
         : type == SumType::u64 ? GST_CUDA_VISION_ENTRY_TYPE_U64
         : type == SumType::f32 ? GST_CUDA_VISION_ENTRY_TYPE_F32
                                : GST_CUDA_VISION_ENTRY_TYPE_F64;
}

/// One table of a plan, without padding between rows.
struct Table {
  integral::TableInfo info;
  std::vector<guint8> bytes;
};
/// The tables that the plan makes from a frame: the sums, then the squares, each in the order Y, Cb, Cr or R, G, B, A.
std::vector<Table> planned_tables(const integral::Params& params, const GstVideoInfo& video, const Buffer& frame) {
  const auto plan = made(integral::make(params, geometry_of(video), Backend::cpu));
  std::vector<Table> tables;
  std::vector<Plane> planes;
  for (const integral::TableInfo& info : plan->tables()) {
    const gsize pitch = gsize(info.width * info.entry_bytes());
    tables.push_back({info, std::vector<guint8>(pitch * gsize(info.height))});
    planes.push_back({tables.back().bytes.data(), std::ptrdiff_t(pitch)});
  }
  expect_ok(plan->submit(Mapped(frame, video).image(), planes, {}));
  std::stable_sort(tables.begin(), tables.end(), [](const Table& a, const Table& b) {
    return std::tuple(a.info.squared, a.info.role) < std::tuple(b.info.squared, b.info.role);
  });
  return tables;
}

bool on_device(GstMemory* memory) { return gst_memory_is_type(memory, "gst.cuda.memory"); }

/// Checks that a meta of `result` has the tables that the plan makes from `frame`. `channels`: their names.
void expect_tables(const Buffer& result, const integral::Params& params, const GstVideoInfo& video, const Buffer& frame,
                   const std::vector<const char*>& channels = {"luma"}) {
  const GstCudaVisionIntegralMeta* meta = gst_buffer_get_cuda_vision_integral_meta(result.get());
  EXPECT(meta);
  EXPECT_EQ(int(meta->layout), int(params.layout));
  const std::vector<Table> expected = planned_tables(params, video, frame);
  EXPECT_EQ(meta->n_tables, expected.size());
  EXPECT_EQ(expected.size(), channels.size() * (params.squared ? 2 : 1));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [info, bytes] = expected[i];
    const gint index = gst_cuda_vision_integral_meta_get_channel(meta, channels[i % channels.size()], info.squared);
    EXPECT(index >= 0);
    const GstCudaVisionIntegralTable& table = meta->tables[index];
    EXPECT_EQ(on_device(table.memory), where().find("backend=cuda") != std::string::npos);
    EXPECT_EQ(int(table.type), int(entry_type(info.type)));
    EXPECT_EQ(table.width, info.width);
    EXPECT_EQ(table.height, info.height);
    GstMapInfo map;
    EXPECT(gst_cuda_vision_integral_meta_map_table(meta, guint(index), &map));
    EXPECT(std::memcmp(map.data, bytes.data(), bytes.size()) == 0);
    gst_cuda_vision_integral_meta_unmap_table(meta, guint(index), &map);
  }
}

/// The profile sets another output, so tests of tables use these settings.
const std::string tables = "output=passthrough ";

}  // namespace

// Tables --------------------------------------------------------------------------------------------------------------

TEST(attaches_the_tables_of_its_plan, Each::run) {
  for (const auto& [settings, params] :
       {std::pair{"", integral::Params{}}, {"layout=padded squared=true", {TableLayout::padded, {}, true}}}) {
    Rig rig(run, tables + settings);
    for (const std::string& format : formats(run))
      for (const Size& now : {size, Size{5, 3}, Size{1, 1}, Size{128, 2}}) {
        at(format + " " + settings + " " + show(now.width));
        rig.caps(caps_text(format, now));
        const Buffer frame = noise(rig.video());
        const Buffer result = rig.push(copied(frame));
        EXPECT_SAME(picture(result.get(), rig.video()), picture(frame.get(), rig.video()));
        expect_tables(result, params, rig.video(), frame);
      }
  }
}

TEST(supports_every_sum_type, Each::run) {
  for (const auto& [name, type] : {std::pair{"auto", SumType::automatic},
                                   {"u32", SumType::u32},
                                   {"u64", SumType::u64},
                                   {"f32", SumType::f32},
                                   {"f64", SumType::f64}})
    for (const char* format : {"GRAY8", "RGB", "GRAY16_LE"}) {
      at(std::string(format) + " " + name);
      Rig rig(run, tables + "squared=true sum-type=" + name, caps_text(format, {37, 29}));
      const Buffer frame = noise(rig.video());
      expect_tables(rig.push(copied(frame)), {TableLayout::inclusive, type, true}, rig.video(), frame);
    }
}

TEST(sums_every_channel, Each::run) {
  const std::vector<const char*> yuv{"Y", "Cb", "Cr"}, rgb{"R", "G", "B"}, rgba{"R", "G", "B", "A"};
  struct Case {
    const char* format;
    std::vector<const char*> channels;
  };
  for (const auto& [format, channels] :
       {Case{"GRAY8", {"Y"}}, Case{"NV12", yuv}, Case{"NV21", yuv}, Case{"YV12", yuv}, Case{"YUY2", yuv},
        Case{"P010_10LE", yuv}, Case{"BGR", rgb}, Case{"xRGB", rgb}, Case{"ABGR", rgba}, Case{"GBR", rgb}}) {
    at(format);
    Rig rig(run, tables + "channel=all squared=true layout=padded", caps_text(format, size));
    const Buffer frame = noise(rig.video());
    expect_tables(rig.push(copied(frame)), {TableLayout::padded, SumType::automatic, true, TableChannel::all},
                  rig.video(), frame, channels);
  }
}

TEST(passes_the_same_buffer, Each::run) {
  Rig rig(run, tables, caps_text("NV12", size));
  Buffer frame = noise(rig.video());
  GstBuffer* const before = frame.get();
  GstMemory* const memory = gst_buffer_peek_memory(before, 0);
  const Buffer same = rig.push(std::move(frame));
  EXPECT(same.get() == before);
  EXPECT(gst_buffer_peek_memory(same.get(), 0) == memory);
  EXPECT_EQ(gst_buffer_get_n_meta(same.get(), GST_CUDA_VISION_INTEGRAL_META_API_TYPE), 1u);

  // Metas are not added to a shared buffer, but to a copy that shares its memory.
  const Buffer held = noise(rig.video());
  const Buffer result = rig.push(Buffer(gst_buffer_ref(held.get())));
  EXPECT(result.get() != held.get());
  EXPECT(gst_buffer_peek_memory(result.get(), 0) == gst_buffer_peek_memory(held.get(), 0));
  EXPECT(!gst_buffer_get_cuda_vision_integral_meta(held.get()));
  expect_tables(result, {}, rig.video(), held);
}

TEST(reuses_memory, Each::run) {
  Rig rig(run, tables, caps_text("GRAY8", size));
  const auto memory_of = [&] {
    const Buffer result = rig.push(noise(rig.video()));
    return gst_buffer_get_cuda_vision_integral_meta(result.get())->tables[0].memory;
  };
  GstMemory* const first = memory_of();
  for (int i = 0; i < 5; ++i) EXPECT(memory_of() == first);
}

TEST(follows_table_settings, Each::run) {
  Rig rig(run, tables, caps_text("NV12", size));
  const Buffer frame = noise(rig.video());
  integral::Params params;
  const auto expect = [&](const char* settings, const std::vector<const char*>& channels) {
    at(settings);
    set(rig.element(), settings);
    expect_tables(rig.push(copied(frame)), params, rig.video(), frame, channels);
  };
  params.layout = TableLayout::padded;
  expect("layout=padded", {"luma"});
  params.sum_type = SumType::f64;
  expect("sum-type=f64", {"luma"});
  params.layout = TableLayout::inclusive, params.channel = TableChannel::all;
  expect("channel=all layout=inclusive", {"Y", "Cb", "Cr"});
  params.squared = true;
  expect("squared=true", {"Y", "Cb", "Cr"});
  at("output=box-mean");
  set(rig.element(), "output=box-mean");
  const Buffer mean_of = rig.push(copied(frame));
  EXPECT(!gst_buffer_get_cuda_vision_integral_meta(mean_of.get()));
  EXPECT_SAME(picture(mean_of.get(), rig.video()), planned(local::Params{}, rig.video(), frame));
  expect("output=passthrough", {"Y", "Cb", "Cr"});
}

TEST(makes_tables_of_the_cropped_picture, Each::run) {
  const GstVideoInfo whole = video_info("RGB", {64, 48});
  Buffer frame = noise(whole);
  const Buffer cropped = cut(whole, frame.get(), {6, 4, 37, 29});
  add_crop(frame.get(), whole, {6, 4, 37, 29});
  Rig rig(run, tables, caps_text("RGB", {37, 29}));
  expect_tables(rig.push(std::move(frame)), {}, rig.video(), cropped);
}

// Table streams -------------------------------------------------------------------------------------------------------

namespace {

std::string table_caps(const std::string& fields = "", const char* feature = nullptr) {
  return "video/x-integral" + (feature ? "(" + std::string(feature) + ")" : "") + (fields.empty() ? "" : "," + fields);
}

/// A rig with a downstream peer that accepts only the caps `wanted`.
struct TableRig : Rig {
  TableRig(const Run& run, const std::string& settings, const std::string& wanted, const std::string& caps = "")
      : Rig(run, tables + settings) {
    want(wanted);
    if (!caps.empty()) this->caps(caps);
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
  /// Pushes a frame, which must fail. Returns the error.
  Message refusal(const std::string& caps) {
    EXPECT_EQ(error().text, "");
    Rig::caps(caps);
    EXPECT(gst_harness_push(harness(), noise(video()).release()) != GST_FLOW_OK);
    return error();
  }
};

/// Checks that the buffer holds the tables that the plan makes from `frame`, one after another.
void expect_numbers(const Buffer& buffer, const integral::Params& params, const GstVideoInfo& video,
                    const Buffer& frame) {
  GstMapInfo map;
  EXPECT(gst_buffer_map(buffer.get(), &map, GST_MAP_READ));
  gsize offset = 0;
  for (const auto& [info, bytes] : planned_tables(params, video, frame)) {
    EXPECT(map.size >= offset + bytes.size());
    EXPECT(std::memcmp(map.data + offset, bytes.data(), bytes.size()) == 0);
    offset += bytes.size();
  }
  if (!on_device(gst_buffer_peek_memory(buffer.get(), 0))) EXPECT_EQ(map.size, offset);  // device memory is rounded up
  gst_buffer_unmap(buffer.get(), &map);
}

integral::Params params_of(TableLayout layout, SumType type, TableChannel channel = TableChannel::luma) {
  return {layout, type, false, channel};
}

}  // namespace

TEST(sends_tables_as_plain_numbers, Each::run) {
  for (const char* feature : {static_cast<const char*>(nullptr), cuda_memory})
    for (const auto& [entry, type] :
         {std::pair{"U32LE", SumType::u32}, {"U64LE", SumType::u64}, {"F32LE", SumType::f32}, {"F64LE", SumType::f64}})
      for (const char* format : {"GRAY8", "NV12", "BGRx", "I420_10LE"})
        for (TableLayout layout : {TableLayout::inclusive, TableLayout::padded}) {
          if (feature && run.backend != "cuda") continue;
          const bool padded = layout == TableLayout::padded;
          const std::string name = padded ? "padded" : "inclusive";
          at(std::string(format) + " " + entry + " " + name + (feature ? " on the device" : ""));
          TableRig rig(run, "", table_caps("format=" + std::string(entry) + ",layout=" + name, feature),
                       caps_text(format, size));
          for (unsigned i = 0; i < 3; ++i) {
            const Buffer frame = noise(rig.video(), i);
            const Buffer result = rig.push(copied(frame));
            EXPECT_EQ(on_device(gst_buffer_peek_memory(result.get(), 0)), feature != nullptr);
            expect_numbers(result, params_of(layout, type), rig.video(), frame);
          }
          EXPECT_EQ(rig.number("width"), size.width + padded);
          EXPECT_EQ(rig.number("height"), size.height + padded);
          EXPECT_EQ(rig.number("channels"), 1);
          EXPECT_EQ(rig.field("format"), entry);
          EXPECT_EQ(rig.field("layout"), name);
          int rate = 0, per = 0;
          EXPECT(gst_structure_get_fraction(gst_caps_get_structure(rig.src_caps().get(), 0), "framerate", &rate, &per));
          EXPECT(rate == 25 && per == 1);
        }
}

TEST(sends_every_channel, Each::run) {
  for (const auto& [format, count] :
       {std::pair{"GRAY8", 1}, {"RGB", 3}, {"xBGR", 3}, {"BGRA", 4}, {"GBR", 3}, {"Y444", 3}, {"ARGB64_LE", 4}})
    for (const char* wanted : {"", "channels=(int)[2,9]", "channels=1"}) {
      at(format + std::string(" ") + wanted);
      if (count == 1 && std::strstr(wanted, "[2")) continue;
      // Caps take precedence over settings.
      TableRig rig(run, *wanted ? "squared=true" : "squared=true channel=all", table_caps(wanted),
                   caps_text(format, size));
      const Buffer frame = noise(rig.video());
      const Buffer result = rig.push(copied(frame));
      const bool one = count == 1 || std::strstr(wanted, "=1");
      EXPECT_EQ(rig.number("channels"), one ? 1 : count);
      expect_numbers(result,
                     params_of(TableLayout::inclusive, SumType::u32, one ? TableChannel::luma : TableChannel::all),
                     rig.video(), frame);
    }
}

TEST(follows_settings_if_caps_leave_a_choice, Each::run) {
  TableRig rig(run, "layout=padded sum-type=f64", table_caps(), caps_text("RGBA", size));
  const Buffer frame = noise(rig.video());
  expect_numbers(rig.push(copied(frame)), params_of(TableLayout::padded, SumType::f64), rig.video(), frame);
  // Changed settings change the caps while playing.
  set(rig.element(), "layout=inclusive sum-type=u64");
  expect_numbers(rig.push(copied(frame)), params_of(TableLayout::inclusive, SumType::u64), rig.video(), frame);
  EXPECT_EQ(rig.field("format"), "U64LE");
  EXPECT_EQ(rig.number("width"), size.width);
  set(rig.element(), "channel=all sum-type=auto");
  expect_numbers(rig.push(copied(frame)), params_of(TableLayout::inclusive, SumType::u32, TableChannel::all),
                 rig.video(), frame);
  EXPECT_EQ(rig.number("channels"), 4);
  // If downstream refuses the type, the element chooses the next type that can hold the sums.
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
  TableRig rig(run, "sum-type=u32", table_caps("format=U32LE"), large);
  const Buffer frame = noise(rig.video());
  expect_numbers(rig.push(copied(frame)), params_of(TableLayout::inclusive, SumType::u32), rig.video(), frame);
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
    TableRig playing(run, "", table_caps(), caps_text("NV12", size));
    const Buffer frame = noise(playing.video());
    expect_numbers(playing.push(copied(frame)), {}, playing.video(), frame);
    set(playing.element(), settings);
    expect_numbers(playing.push(copied(frame)), {}, playing.video(), frame);
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
  TableRig rig(run, "", table_caps(), caps_text("NV12", size));
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

TEST(keeps_referenced_tables, Each::run) {
  for (bool sends : {false, true}) {
    at(sends ? "in buffers" : "in metas");
    std::vector<Buffer> frames, results;
    GstVideoInfo video;
    {
      TableRig rig(run, "", sends ? table_caps() : "video/x-raw", caps_text("GRAY8", size));
      video = rig.video();
      for (unsigned i = 0; i < 6; ++i) {
        frames.push_back(noise(video, i));
        results.push_back(rig.push(copied(frames[i])));
        rig.push(copied(frames[i]));  // reuses released tables, never referenced ones
      }
    }
    // The element is destroyed.
    for (std::size_t i = 0; i < frames.size(); ++i)
      if (sends)
        expect_numbers(results[i], {}, video, frames[i]);
      else
        expect_tables(results[i], {}, video, frames[i]);
  }
}

TEST(keeps_its_memory_when_it_leaves_passthrough, Each::run) {
  const bool cuda = run.backend == "cuda";
  const std::string raw = cuda ? "video/x-raw(memory:CUDAMemory)" : "video/x-raw", backend = " backend=" + run.backend;
  GstElement* bin = gst_parse_bin_from_description(
      ("cudaconvolve" + backend + " ! " + raw + " ! cudaintegral name=second" + backend).c_str(), TRUE, nullptr);
  g_autoptr(GstElement) second = gst_bin_get_by_name(GST_BIN(bin), "second");
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
}

TEST(switches_between_video_and_tables, Each::run) {
  TableRig rig(run, "", "video/x-raw", caps_text("RGB", size));
  const Buffer frame = noise(rig.video());
  for (int round = 0; round < 3; ++round) {
    rig.want("video/x-raw");
    gst_harness_push_upstream_event(rig.harness(), gst_event_new_reconfigure());
    const Buffer passed = rig.push(copied(frame));
    EXPECT_SAME(picture(passed.get(), rig.video()), picture(frame.get(), rig.video()));
    expect_tables(passed, {}, rig.video(), frame);
    rig.want(table_caps());
    gst_harness_push_upstream_event(rig.harness(), gst_event_new_reconfigure());
    expect_numbers(rig.push(copied(frame)), {}, rig.video(), frame);
  }
  // Caps, flush, discont and EOS change nothing.
  rig.caps(caps_text("NV12", {16, 300}));
  Buffer other = noise(rig.video());
  GST_BUFFER_FLAG_SET(other.get(), GST_BUFFER_FLAG_DISCONT);
  expect_numbers(rig.push(copied(other)), {}, rig.video(), other);
  flush(rig);
  expect_numbers(rig.push(copied(other)), {}, rig.video(), other);
  EXPECT(gst_harness_push_event(rig.harness(), gst_event_new_eos()));
}

// Filters -------------------------------------------------------------------------------------------------------------

TEST(filters_like_its_plan, Each::run) {
  using local::Operation;
  struct Case {
    const char* settings;
    local::Params params;
    Rect region = {};  ///< empty: the whole frame
  };
  for (const Case& c :
       {Case{"output=box-mean", {Operation::box_mean}},
        {"output=box-mean radius=16384", {Operation::box_mean, 16384}},
        {"output=box-mean radius=0 region=roi", {Operation::box_mean, 0}, {5, 7, 30, 25}},
        {"output=threshold", {Operation::threshold}},
        {"output=threshold radius=15 sensitivity=0.05", {Operation::threshold, 15, 0.05}},
        {"output=deviation radius=1", {Operation::deviation, 1}},
        {"output=nlm radius=2 search-radius=5 strength=40", {Operation::nlm, 2, 0, 5, 40}},
        {"output=nlm radius=17 search-radius=2", {Operation::nlm, 16, 0, 2}},  // the largest radius of patches
        {"output=pixelate radius=3", {Operation::pixelate, 3}},
        {"output=pixelate radius=0", {Operation::pixelate, 0}},
        {"output=pixelate radius=3 region=roi", {Operation::pixelate, 3}, {5, 7, 30, 25}},
        {"output=pixelate radius=0 region=roi", {Operation::pixelate, 0}, {5, 7, 30, 25}},
        {"output=pixelate radius=0 region=roi region-margin=0.2", {Operation::pixelate, 0}, {-1, 2, 42, 35}},
        {"output=pixelate radius=0 region=roi roi-type=none regions=11,9,20,12",
         {Operation::pixelate, 0},
         {11, 9, 20, 12}}})
    for (const char* format : {"GRAY8", "NV12", "YUY2", "BGRA", "GRAY16_LE"}) {
      at(std::string(format) + " " + c.settings);
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 5, 7, 30, 25);
      Region region;
      if (!c.region.empty()) region = {Region::Mode::inside, {c.region}};
      const bool rounds = c.params.operation == Operation::deviation || c.params.operation == Operation::nlm;
      EXPECT_WITHIN(filtered(run, c.settings, video, frame), planned(c.params, video, frame, region), rounds ? 1 : 0);
    }
}

int main() { return run_tests("integral", "cudaintegral"); }
