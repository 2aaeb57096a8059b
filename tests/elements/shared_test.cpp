// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the behaviour that all elements of the plugin share, for each of them on each backend that works on this
// machine.
#include <gst/video/gstvideotimecode.h>
#include <gst/video/video-anc.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "tests/elements/line.hpp"
#include "tests/kernels/reference/picture.hpp"

using namespace cudavision::test;

namespace {

const Size small{37, 29};

}  // namespace

TEST(every_filter_has_a_profile, Each::element) {
  g_autoptr(GstElement) element = gst_element_factory_make(run.element.c_str(), nullptr);
  if (GST_IS_BASE_TRANSFORM(element) && profile(run.element).element.empty())
    fail("%s has no row in tests/elements/profiles.hpp", run.element.c_str());
}

// Caps ----------------------------------------------------------------------------------------------------------------

TEST(accepts_every_format_and_size, Each::run) {
  const std::vector<std::string> names = formats(run);
  int known = 0;  // a GStreamer older than the list of formats lacks the others
  for (int i = 0; i < cudavision::format_count; ++i)
    known += gst_video_format_from_string(cudavision::reference::definition(cudavision::Format(i)).name) !=
             GST_VIDEO_FORMAT_UNKNOWN;
  EXPECT_EQ(names.size(), known);
  for (const std::string& format : names)
    for (Size size : {Size{1, 1}, Size{3, 2000}, Size{385, 289}}) {
      const std::string caps = caps_text(format, size);
      at(caps);
      Rig rig(run, "", caps);
      const Buffer result = rig.push(noise(rig.video()));
      EXPECT(gst_buffer_get_size(result.get()) >= GST_VIDEO_INFO_SIZE(&rig.video()));
      const Caps wanted(gst_caps_from_string(caps.c_str()));
      EXPECT(gst_caps_is_equal(rig.src_caps().get(), wanted.get()));
      picture(result.get(), rig.video());  // fails if it cannot be read or unused bits are set
    }
}

TEST(accepts_8k, Each::run) {
  Rig rig(run, "", caps_text("NV12", {7680, 4320}));
  Buffer frame(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&rig.video()), nullptr));
  gst_buffer_memset(frame.get(), 0, 128, GST_VIDEO_INFO_SIZE(&rig.video()));
  EXPECT_EQ(gst_buffer_get_size(rig.push(std::move(frame)).get()), 7680 * 4320 * 3 / 2);
}

TEST(follows_caps_changes, Each::run) {
  Rig rig(run);
  for (const std::string& format : formats(run))
    for (Size size : {Size{64, 48}, small}) {
      at(caps_text(format, size));
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      rig.caps(caps_of(video));
      EXPECT_SAME(rig.filter(frame), filtered(run, "", video, frame));
    }
}

TEST(passes_caps_fields, Each::run) {
  for (const char* more :
       {",colorimetry=bt709,chroma-site=mpeg2,pixel-aspect-ratio=4/3,interlace-mode=progressive",
        ",colorimetry=bt601,chroma-site=jpeg,pixel-aspect-ratio=1/"
        "1,interlace-mode=interleaved,field-order=top-field-first",
        ",colorimetry=2:3:5:1,multiview-mode=side-by-side,multiview-flags=right-view-first/left-flipped"}) {
    at(more);
    Rig rig(run);
    const std::string caps = caps_text("NV12", {64, 48}, more);
    rig.caps(caps);
    const Buffer result = rig.push(noise(rig.video()));
    const Caps wanted(gst_caps_from_string(caps.c_str()));
    EXPECT(gst_caps_is_subset(rig.src_caps().get(), wanted.get()));
  }
}

/// Frames with single fields need caps for single fields.
TEST(refuses_caps_of_no_raw_video, Each::run) {
  Rig rig(run);
  gst_harness_set_src_caps_str(rig.harness(), caps_text("NV12", {64, 48}, ",interlace-mode=alternate").c_str());
  EXPECT_EQ(gst_harness_push(rig.harness(), noise(video_info("NV12", {64, 48})).release()), GST_FLOW_NOT_NEGOTIATED);
  const Message error = rig.error();
  EXPECT_EQ(error.domain, GST_STREAM_ERROR);
  EXPECT_EQ(error.code, int(GST_STREAM_ERROR_FORMAT));
  EXPECT_CONTAINS(error.text, "do not describe raw video");
}

namespace {

/// Pushes frames that do not fit their caps. The element drops them with one warning in total. The next good frame
/// passes.
void expect_dropped(const Run& run, const std::string& format, const std::function<void(Buffer&)>& spoil) {
  Rig rig(run, "", caps_text(format, {64, 48}));
  const Picture expected = rig.filter(noise(rig.video()));
  const guint before = gst_harness_buffers_received(rig.harness());
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) {
      Buffer frame = noise(rig.video());
      spoil(frame);
      EXPECT_EQ(gst_harness_push(rig.harness(), frame.release()), GST_FLOW_OK);
      EXPECT_EQ(rig.warning().text.empty(), i > 0);
    }
    EXPECT_EQ(gst_harness_buffers_received(rig.harness()), before + guint(round));
    EXPECT_SAME(rig.filter(noise(rig.video())), expected);
  }
  EXPECT_EQ(rig.error().text, "");
}

Buffer too_small(const Rig& rig) {
  Buffer frame = noise(rig.video());
  gst_buffer_set_size(frame.get(), gssize(gst_buffer_get_size(frame.get()) / 2));
  return frame;
}

GstVideoMeta* add_meta(Buffer& frame, const GstVideoInfo& video) {
  gsize offset[GST_VIDEO_MAX_PLANES];
  gint stride[GST_VIDEO_MAX_PLANES];
  std::copy(std::begin(video.offset), std::end(video.offset), offset);
  std::copy(std::begin(video.stride), std::end(video.stride), stride);
  return gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&video),
                                        guint(GST_VIDEO_INFO_WIDTH(&video)), guint(GST_VIDEO_INFO_HEIGHT(&video)),
                                        GST_VIDEO_INFO_N_PLANES(&video), offset, stride);
}

const char* const layouts[] = {"GRAY8", "NV12", "RGBA64_LE", "YUY2"};

}  // namespace

TEST(drops_buffers_smaller_than_their_caps, Each::run) {
  for (const char* format : layouts) {
    at(format);
    expect_dropped(run, format, [](Buffer& frame) {
      gst_buffer_set_size(frame.get(), gssize(gst_buffer_get_size(frame.get()) / 2));
    });
    expect_dropped(run, format, [](Buffer& frame) {
      const GstClockTime pts = GST_BUFFER_PTS(frame.get());
      frame.reset(gst_buffer_new());
      GST_BUFFER_PTS(frame.get()) = pts;
    });
    // a crop that begins inside the frame and ends outside
    expect_dropped(run, format, [](Buffer& frame) { add_crop(frame.get(), {16, 8, 64, 48}); });
  }
}

TEST(ends_a_stream_of_frames_that_do_not_fit, Each::run) {
  Rig rig(run, "", caps_text("NV12", {64, 48}));
  const auto push = [&](Buffer frame) { return gst_harness_push(rig.harness(), frame.release()); };
  for (int i = 0; i < 29; ++i) EXPECT_EQ(push(too_small(rig)), GST_FLOW_OK);
  rig.filter(noise(rig.video()));
  for (int i = 0; i < 29; ++i) EXPECT_EQ(push(too_small(rig)), GST_FLOW_OK);
  EXPECT_EQ(rig.error().text, "");
  EXPECT_EQ(push(too_small(rig)), GST_FLOW_ERROR);
  const Message error = rig.error();
  EXPECT_EQ(error.domain, GST_STREAM_ERROR);
  EXPECT_CONTAINS(error.text, "30 frames in a row do not fit their caps: ");
  EXPECT_CONTAINS(error.text, "it has 2304 bytes and needs 4608, in rows of 64 bytes");
}

/// A short stream ends before enough frames for an error have arrived.
TEST(says_at_the_end_that_no_frame_fitted, Each::run) {
  for (bool one_fits : {false, true}) {
    Rig rig(run);
    rig.caps_alone(caps_text("NV12", {64, 48}));
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(gst_harness_push(rig.harness(), (one_fits && i == 1 ? noise(rig.video()) : too_small(rig)).release()),
                GST_FLOW_OK);
    EXPECT(gst_harness_push_event(rig.harness(), gst_event_new_eos()));
    EXPECT_EQ(rig.error().text.empty(), one_fits);
  }
}

TEST(drops_frames_with_a_wrong_meta, Each::run) {
  for (const char* format : layouts) {
    const GstVideoInfo video = video_info(format, {64, 48});
    const auto lie = [&](const char* what, void (*change)(GstVideoMeta*)) {
      at(std::string(format) + " " + what);
      expect_dropped(run, format, [&](Buffer& frame) { change(add_meta(frame, video)); });
    };
    lie("stride beyond the buffer", [](GstVideoMeta* meta) { meta->stride[0] *= 2; });
    lie("greatest stride", [](GstVideoMeta* meta) { meta->stride[0] = G_MAXINT; });
    lie("least stride", [](GstVideoMeta* meta) { meta->stride[0] = G_MININT; });
    // rows before the start of the buffer
    lie("negative stride", [](GstVideoMeta* meta) { meta->stride[0] = -meta->stride[0]; });
    lie("offset beyond the buffer", [](GstVideoMeta* meta) { meta->offset[0] = gsize(1) << 40; });
    lie("offset that wraps", [](GstVideoMeta* meta) { meta->offset[0] = G_MAXSIZE - 63; });
    lie("no planes", [](GstVideoMeta* meta) { meta->n_planes = 0; });
    lie("many planes", [](GstVideoMeta* meta) { meta->n_planes = 1000; });
    lie("another format", [](GstVideoMeta* meta) { meta->format = GST_VIDEO_FORMAT_BGR; });
    lie("no format", [](GstVideoMeta* meta) { meta->format = GST_VIDEO_FORMAT_UNKNOWN; });
    lie("a smaller size", [](GstVideoMeta* meta) { meta->width = 63; });
    lie("no size", [](GstVideoMeta* meta) { meta->width = meta->height = 0; });
  }
}

TEST(reads_rows_that_share_memory_or_run_upwards, Each::run) {
  for (const std::string& format : formats(run)) {
    const GstVideoInfo video = video_info(format, {38, 30});
    const Buffer bytes = noise(video);
    const auto laid_out = [&](int (*stride)(int), bool upwards) {
      Buffer frame = copied(bytes);
      GstVideoMeta* meta = add_meta(frame, video);
      for (guint p = 0; p < meta->n_planes; ++p) {
        const int rows = int(
            p == 0 ? 30u
                   : guint(GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(video.finfo, p == 2 && meta->n_planes == 3 ? 1 : p, 30)));
        meta->stride[p] = stride(video.stride[p]);
        if (upwards) meta->offset[p] = video.offset[p] + gsize(rows - 1) * gsize(video.stride[p]);
      }
      return frame;
    };
    /// The picture in GStreamer's default layout.
    const auto plain = [&](GstBuffer* frame) {
      GstVideoMeta* meta = gst_buffer_get_video_meta(frame);
      Buffer result = noise(video, 2);
      GstMapInfo from, to;
      EXPECT(gst_buffer_map(frame, &from, GST_MAP_READ) && gst_buffer_map(result.get(), &to, GST_MAP_WRITE));
      for (guint p = 0; p < meta->n_planes; ++p) {
        const gsize end = p + 1 < meta->n_planes ? video.offset[p + 1] : GST_VIDEO_INFO_SIZE(&video);
        const int rows = int((end - video.offset[p]) / gsize(video.stride[p]));
        const int row = std::min(video.stride[p], std::max(std::abs(meta->stride[p]), video.stride[p]));
        for (int y = 0; y < rows; ++y) {
          const gint64 at = gint64(meta->offset[p]) + gint64(y) * meta->stride[p];
          if (at >= 0 && at + row <= gint64(from.size))
            std::copy_n(from.data + at, row, to.data + video.offset[p] + gsize(y) * gsize(video.stride[p]));
        }
      }
      gst_buffer_unmap(frame, &from);
      gst_buffer_unmap(result.get(), &to);
      return result;
    };
    struct Layout {
      const char* name;
      int (*stride)(int);
      bool upwards;
    };
    for (const Layout& layout : {Layout{"one row for all", [](int) { return 0; }, false},
                                 Layout{"rows that overlap", [](int) { return 2; }, false},
                                 Layout{"upwards", [](int stride) { return -stride; }, true}}) {
      at(format + " " + layout.name);
      Rig rig(run, "", caps_of(video));
      const Buffer frame = laid_out(layout.stride, layout.upwards);
      const Buffer expected = plain(frame.get());
      EXPECT_SAME(rig.filter(frame), filtered(run, "", video, expected));
    }
  }
}

TEST(puts_cuda_memory_first, Each::element) {
  if (formats(run, cuda_memory).empty()) return;
  // The query that cudaupload sends, with system memory first. caps_test.cpp tests other elements between them.
  const Caps asked(gst_caps_from_string(
      "video/x-raw,format=NV12,width=64,height=48;video/x-raw(memory:CUDAMemory),format=NV12,width=64,height=48;"
      "video/x-raw,format=RGBA,width=64,height=48;video/x-raw(memory:CUDAMemory),format=RGBA,width=64,height=48"));
  for (const char* after : {"fakesink", "videoconvert"}) {
    at(std::string(after) + " after");
    g_autoptr(GstElement) pipeline =
        gst_parse_launch(("identity name=first ! " + run.element + " ! " + after).c_str(), nullptr);
    g_autoptr(GstElement) first = gst_bin_get_by_name(GST_BIN(pipeline), "first");
    g_autoptr(GstPad) src = gst_element_get_static_pad(first, "src");
    const Caps answer(gst_pad_peer_query_caps(src, asked.get()));
    EXPECT_EQ(gst_caps_get_size(answer.get()), 4u);
    for (guint i = 0; i < 4; ++i) {
      const bool cuda = gst_caps_features_contains(gst_caps_get_features(answer.get(), i), cuda_memory);
      EXPECT_EQ(cuda, i < 2);
      EXPECT_EQ(std::string(gst_structure_get_string(gst_caps_get_structure(answer.get(), i), "format")),
                i % 2 ? "RGBA" : "NV12");
    }
  }
}

TEST(offers_no_cuda_memory_on_the_cpu, Each::run) {
  if (run.backend != "cpu") return;
  const auto offers_cuda = [](GstPad* pad) {
    const Caps caps(gst_pad_query_caps(pad, nullptr));
    for (guint i = 0; i < gst_caps_get_size(caps.get()); ++i)
      if (gst_caps_features_contains(gst_caps_get_features(caps.get(), i), cuda_memory)) return true;
    return false;
  };
  GstElement* element = make_element(run);
  for (GstState state : {GST_STATE_NULL, GST_STATE_READY, GST_STATE_PAUSED, GST_STATE_PLAYING}) {
    gst_element_set_state(element, state);
    for (const char* name : {"sink", "src"}) {
      g_autoptr(GstPad) pad = gst_element_get_static_pad(element, name);
      at(name + std::string(" in ") + gst_element_state_get_name(state));
      EXPECT(!offers_cuda(pad));
    }
  }
  gst_element_set_state(element, GST_STATE_NULL);
  gst_object_unref(gst_object_ref_sink(element));
}

TEST(offers_a_pool_and_metas_upstream, Each::run) {
  Rig rig(run, "", caps_text("NV12", small));
  const Query query(gst_query_new_allocation(gst_caps_from_string(caps_text("NV12", small).c_str()), TRUE));
  EXPECT(gst_pad_peer_query(rig.harness()->srcpad, query.get()));
  EXPECT(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
  EXPECT(gst_query_find_allocation_meta(query.get(), GST_VIDEO_CROP_META_API_TYPE, nullptr));
  EXPECT(gst_query_get_n_allocation_pools(query.get()) > 0);
  g_autoptr(GstBufferPool) pool = nullptr;
  gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, nullptr, nullptr, nullptr);
  EXPECT(pool);
  // frames from the pool work like any other
  EXPECT(gst_buffer_pool_set_active(pool, TRUE));
  GstBuffer* frame;
  EXPECT_EQ(gst_buffer_pool_acquire_buffer(pool, &frame, nullptr), GST_FLOW_OK);
  const Buffer tight = noise(rig.video());
  copy_frame(tight.get(), frame, rig.video());
  EXPECT_SAME(picture(rig.push(Buffer(frame)).get(), rig.video()), rig.filter(tight));
  gst_buffer_pool_set_active(pool, FALSE);
}

// Properties ----------------------------------------------------------------------------------------------------------

TEST(follows_properties_with_the_next_frame, Each::run) {
  const Profile& p = profile(run.element);
  if (p.first.empty()) return;
  for (const char* format : {"GRAY8", "NV12", "RGBA"}) {
    at(format);
    const GstVideoInfo video = video_info(format, small);
    const Buffer frame = noise(video);
    const Picture first = filtered(run, p.first, video, frame), second = filtered(run, p.second, video, frame);
    EXPECT(!difference(first, second, 0).empty());
    Rig rig(run, p.first, caps_of(video));
    for (int round = 0; round < 3; ++round) {
      EXPECT_SAME(rig.filter(frame), first);
      set(rig.element(), p.second);
      EXPECT_SAME(rig.filter(frame), second);
      set(rig.element(), p.first);
    }
    EXPECT_EQ(rig.warning().text, "");
  }
}

TEST(sets_several_properties_at_once, Each::run) {
  const Profile& p = profile(run.element);
  if (p.first.empty()) return;
  const GstVideoInfo video = video_info("GRAY8", small);
  const Buffer frame = noise(video);
  const Picture first = filtered(run, p.first, video, frame), second = filtered(run, p.second, video, frame);
  Rig rig(run, p.first, caps_of(video));
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (int i = 0; !done; ++i) set(rig.element(), i % 2 ? p.first : p.second);
  });
  bool either = true, seen[2] = {};
  for (int i = 0; either && (i < 300 || !seen[0] || !seen[1]);
       ++i) {  // until the thread has had its turn; gst-check limits the time
    const Picture result = rig.filter(frame);
    const bool is_second = difference(result, second, 0).empty();
    seen[is_second] = true;
    either = is_second || difference(result, first, 0).empty();
  }
  done = true;
  setter.join();
  EXPECT(either);
}

TEST(ignores_unfinished_settings, Each::run) {
  const Profile& p = profile(run.element);
  if (p.first.empty()) return;
  // If the profile has a single property, nothing follows the first setting.
  const std::size_t end = std::min(p.second.find(' '), p.second.size());
  const Buffer frame = noise(video_info("GRAY8", small)), larger = noise(video_info("GRAY8", {64, 48}));
  Rig rig(run, p.first, caps_text("GRAY8", small));
  EXPECT_SAME(rig.filter(frame), filtered(run, p.first, rig.video(), frame));
  g_object_freeze_notify(G_OBJECT(rig.element()));  // as g_object_set() does
  set(rig.element(), p.second.substr(0, end));
  EXPECT_SAME(rig.filter(frame), filtered(run, p.first, rig.video(), frame));
  rig.caps(caps_text("GRAY8", {64, 48}));  // a new plan with the earlier settings
  EXPECT_SAME(rig.filter(larger), filtered(run, p.first, rig.video(), larger));
  set(rig.element(), p.second.substr(end));
  g_object_thaw_notify(G_OBJECT(rig.element()));
  EXPECT_SAME(rig.filter(larger), filtered(run, p.second, rig.video(), larger));
}

TEST(follows_a_control_source, Each::run) {
  const Profile& p = profile(run.element);
  if (p.controlled.empty()) return;
  const GstVideoInfo video = video_info("GRAY8", small);
  const Buffer frame = noise(video);
  Rig rig(run, "", caps_of(video));
  control(rig.element(), p.controlled.c_str(), p.from, p.to, GST_SECOND, true);
  for (int quarter = 0; quarter <= 4; ++quarter) {
    GST_BUFFER_PTS(frame.get()) = guint64(quarter) * GST_SECOND / 4;
    const std::string setting = p.controlled + "=" + std::to_string(p.from + (p.to - p.from) * quarter / 4);
    at(setting);
    EXPECT_SAME(rig.filter(frame), filtered(run, setting, video, frame));
  }
}

TEST(reports_bad_settings_at_start, Each::run) {
  const std::vector<BadSetting> all = bad_settings(run.element);
  for (const BadSetting& bad : all) {
    at(bad.settings);
    Line line(run, "", 2, {64, 48});
    set(line.element, profile(run.element).needs);
    const auto restart = [&](const std::string& settings) {
      set(line.element, settings);
      const std::vector<Message> heard = line.play();
      line.stop();
      return heard;
    };
    const std::vector<Message> heard = restart(bad.settings);
    EXPECT_EQ(heard.size(), 1u);
    const Message& error = heard[0];
    EXPECT(error.is_error);
    EXPECT_EQ(error.domain, GST_LIBRARY_ERROR);
    EXPECT_EQ(error.code, int(GST_LIBRARY_ERROR_SETTINGS));
    EXPECT_CONTAINS(error.text, bad.property);
    EXPECT_CONTAINS(error.text, bad.value);
    EXPECT_EQ(std::count(error.text.begin(), error.text.end(), '\n'), 0);
    if (&bad != &all[0]) continue;
    for (int round = 0; round < 2; ++round) {  // it recovers
      EXPECT_EQ(restart(profile(run.element).first).size(), 0u);
      EXPECT_EQ(restart(bad.settings).size(), 1u);
    }
  }
}

TEST(warns_of_bad_settings_while_playing, Each::run) {
  const Profile& p = profile(run.element);
  const GstVideoInfo video = video_info("NV12", small);
  const Buffer frame = noise(video);
  const std::vector<BadSetting> all = bad_settings(run.element);
  for (const BadSetting& bad : all) {
    at(bad.settings);
    Rig rig(run, p.first, caps_of(video));
    const Picture good = rig.filter(frame);
    EXPECT_EQ(rig.warning().text, "");
    const std::string name = bad.settings.substr(0, bad.settings.find('='));
    GParamSpec* const spec = g_object_class_find_property(G_OBJECT_GET_CLASS(rig.element()), name.c_str());
    const std::string before = value_text(rig.element(), spec);
    set(rig.element(), bad.settings);
    EXPECT_SAME(rig.filter(frame), good);
    EXPECT_EQ(value_text(rig.element(), spec), before);
    const Message warning = rig.warning();
    EXPECT_EQ(warning.domain, GST_LIBRARY_ERROR);
    EXPECT_EQ(warning.code, int(GST_LIBRARY_ERROR_SETTINGS));
    EXPECT_CONTAINS(warning.text, bad.property);
    EXPECT_CONTAINS(warning.text, bad.value);
    EXPECT_SAME(rig.filter(frame), good);
    EXPECT_EQ(rig.warning().text, "");
    EXPECT_EQ(rig.error().text, "");
    if (&bad == &all[0]) {  // also when caps change
      const GstVideoInfo other = video_info("RGB", {64, 48});
      rig.caps(caps_of(other));
      EXPECT_SAME(rig.filter(noise(other)), filtered(run, p.first, other, noise(other)));
      rig.caps(caps_of(video));
      while (!rig.warning().text.empty()) {  // cudadiff discards its first frame
      }
    }
    set(rig.element(), p.second);
    EXPECT_SAME(rig.filter(frame), filtered(run, p.second, video, frame));
    EXPECT_EQ(rig.warning().text, "");
  }
}

TEST(accepts_settings_while_it_reverts_bad_ones, Each::run) {
  const Profile& its = profile(run.element);
  const std::vector<BadSetting> bad = bad_settings(run.element);
  if (bad.empty()) return;
  const GstVideoInfo video = video_info("NV12", small);
  const Buffer frame = noise(video);
  Rig rig(run, its.first, caps_of(video));
  rig.filter(frame);
  std::string second = its.second;
  const auto mend = [](GstBus*, GstMessage* message, gpointer settings) {
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING)
      set(GST_MESSAGE_SRC(message), *static_cast<std::string*>(settings));
    return GST_BUS_PASS;
  };
  gst_bus_set_sync_handler(GST_ELEMENT_BUS(rig.element()), mend, &second, nullptr);
  set(rig.element(), bad[0].settings);
  EXPECT_SAME(rig.filter(frame), filtered(run, its.second, video, frame));
  EXPECT_CONTAINS(rig.warning().text, bad[0].property);
  EXPECT_EQ(rig.warning().text, "");
  gst_bus_set_sync_handler(GST_ELEMENT_BUS(rig.element()), nullptr, nullptr, nullptr);
}

// Transport -----------------------------------------------------------------------------------------------------------

TEST(passes_events_and_latency, Each::run) {
  Rig rig(run);
  GstHarness* h = rig.harness();
  rig.caps(caps_text("NV12", small));
  const auto next = [&](GstEventType type) {
    Event event(gst_harness_try_pull_event(h));
    while (event && GST_EVENT_TYPE(event.get()) != type) event.reset(gst_harness_try_pull_event(h));
    return event;
  };
  EXPECT(next(GST_EVENT_SEGMENT));
  const Buffer frame = noise(rig.video());
  rig.filter(frame);

  for (GstEvent* sent : {gst_event_new_gap(GST_SECOND, GST_SECOND),
                         gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "a title", nullptr)),
                         gst_event_new_flush_start(), gst_event_new_flush_stop(TRUE),
                         new_segment([](GstSegment& segment) { segment.start = segment.time = 5 * GST_SECOND; })}) {
    at(GST_EVENT_TYPE_NAME(sent));
    const Event held(gst_event_ref(sent));
    EXPECT(gst_harness_push_event(h, sent));
    EXPECT(next(GST_EVENT_TYPE(sent)) == held);  // the event itself
  }
  GST_BUFFER_PTS(frame.get()) = 5 * GST_SECOND;
  rig.filter(frame);

  EXPECT(gst_harness_push_upstream_event(h, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 1.0, -1000, GST_SECOND)));
  Event event;
  for (event.reset(gst_harness_try_pull_upstream_event(h)); event && GST_EVENT_TYPE(event.get()) != GST_EVENT_QOS;)
    event.reset(gst_harness_try_pull_upstream_event(h));
  EXPECT(event);

  gst_harness_set_upstream_latency(h, 10 * GST_MSECOND);
  EXPECT_EQ(gst_harness_query_latency(h), 10 * GST_MSECOND);

  const guint before = gst_harness_buffers_received(h);
  EXPECT(gst_harness_push_event(h, gst_event_new_eos()));
  EXPECT(next(GST_EVENT_EOS));
  EXPECT_EQ(gst_harness_buffers_received(h), before);
}

/// Elements that make pictures skip late frames, as stock video filters do. Elements that report on each frame do not.
TEST(leaves_out_late_frames_by_default, Each::run) {
  const bool reports = run.element == "cudadiff" || run.element == "cudahistogram";
  for (const char* settings : {"", "qos=true", "qos=false"}) {
    at(settings);
    Rig rig(run, settings, caps_text("GRAY8", small));
    rig.filter(noise(rig.video()));
    // Frames before now + 2 · 400 ms are late.
    gst_harness_push_upstream_event(rig.harness(),
                                    gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 2.0, 400 * GST_MSECOND, GST_SECOND));
    const guint before = gst_harness_buffers_received(rig.harness());
    for (GstClockTime time : {GST_SECOND, 3 * GST_SECOND}) {
      Buffer frame = noise(rig.video());
      GST_BUFFER_PTS(frame.get()) = time;
      EXPECT_EQ(gst_harness_push(rig.harness(), frame.release()), GST_FLOW_OK);
    }
    const bool on = *settings ? g_str_equal(settings, "qos=true") : !reports;
    EXPECT_EQ(gst_harness_buffers_received(rig.harness()) - before, on ? 1u : 2u);
  }
}

TEST(works_with_segments_in_other_formats, Each::run) {
  const GstVideoInfo video = video_info("NV12", small);
  const Buffer frame = noise(video);
  for (GstFormat format : {GST_FORMAT_BYTES, GST_FORMAT_DEFAULT}) {
    at(gst_format_get_name(format));
    Rig rig(run, "", caps_of(video));
    GstSegment segment;
    gst_segment_init(&segment, format);
    gst_harness_push_event(rig.harness(), gst_event_new_segment(&segment));
    EXPECT_SAME(rig.filter(frame), filtered(run, "", video, frame));
  }
}

TEST(keeps_times_and_flags, Each::run) {
  Rig rig(run, "", caps_text("NV12", small));
  for (guint64 i = 0; i < 5; ++i) {
    Buffer frame = noise(rig.video());
    GstBuffer* in = frame.get();
    GST_BUFFER_PTS(in) = i * 40 * GST_MSECOND;
    GST_BUFFER_DTS(in) = i * 40 * GST_MSECOND + 1;
    GST_BUFFER_DURATION(in) = 40 * GST_MSECOND;
    GST_BUFFER_OFFSET(in) = 100 + i;
    GST_BUFFER_OFFSET_END(in) = 101 + i;
    const guint flags = guint(GST_BUFFER_FLAG_MARKER) | GST_BUFFER_FLAG_CORRUPTED | GST_VIDEO_BUFFER_FLAG_INTERLACED |
                        GST_VIDEO_BUFFER_FLAG_TFF | (i == 0 ? GST_BUFFER_FLAG_DISCONT : 0);
    GST_BUFFER_FLAG_SET(in, flags);
    const Buffer result = rig.push(std::move(frame));
    EXPECT_EQ(GST_BUFFER_PTS(result.get()), i * 40 * GST_MSECOND);
    EXPECT_EQ(GST_BUFFER_DTS(result.get()), i * 40 * GST_MSECOND + 1);
    EXPECT_EQ(GST_BUFFER_DURATION(result.get()), 40 * GST_MSECOND);
    EXPECT_EQ(GST_BUFFER_OFFSET(result.get()), 100 + i);
    EXPECT_EQ(GST_BUFFER_OFFSET_END(result.get()), 101 + i);
    EXPECT_EQ(GST_BUFFER_FLAGS(result.get()) & flags, flags);
    EXPECT_EQ(bool(GST_BUFFER_FLAG_IS_SET(result.get(), GST_BUFFER_FLAG_DISCONT)), i == 0);
  }
}

// Metas ---------------------------------------------------------------------------------------------------------------

TEST(keeps_metas, Each::run) {
  const gchar* no_tags[] = {nullptr};
  static const GstMetaInfo* custom = gst_meta_register_custom("CudaVisionTestMeta", no_tags, nullptr, nullptr, nullptr);
  const Caps reference(gst_caps_new_empty_simple("timestamp/x-test"));
  Rig rig(run, "", caps_text("NV12", small));
  Buffer frame = noise(rig.video());
  GstBuffer* in = frame.get();
  auto* roi = gst_buffer_add_video_region_of_interest_meta(in, "face", 3, 4, 10, 12);
  roi->id = 7;
  gst_video_region_of_interest_meta_add_param(
      roi, gst_structure_new("detection", "confidence", G_TYPE_DOUBLE, 0.75, nullptr));
  GstVideoTimeCode* code = gst_video_time_code_new(25, 1, nullptr, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, 3, 4, 0);
  gst_buffer_add_video_time_code_meta(in, code);
  gst_video_time_code_free(code);
  const guint8 caption[] = {0x80, 0x20, 0x41};
  gst_buffer_add_video_caption_meta(in, GST_VIDEO_CAPTION_TYPE_CEA608_S334_1A, caption, sizeof caption);
  gst_buffer_add_video_afd_meta(in, 1, GST_VIDEO_AFD_SPEC_ATSC_A53, GST_VIDEO_AFD_4_3_FULL_14_9_CENTER);
  gst_buffer_add_reference_timestamp_meta(in, reference.get(), 42, 43);
  gst_structure_set(gst_custom_meta_get_structure(gst_buffer_add_custom_meta(in, "CudaVisionTestMeta")), "answer",
                    G_TYPE_INT, 42, nullptr);

  const Buffer result = rig.push(std::move(frame));
  GstBuffer* out = result.get();
  for (GType api : {GType(GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE), GType(GST_VIDEO_TIME_CODE_META_API_TYPE),
                    GType(GST_VIDEO_CAPTION_META_API_TYPE), GType(GST_VIDEO_AFD_META_API_TYPE),
                    GType(GST_REFERENCE_TIMESTAMP_META_API_TYPE), custom->api}) {
    at(g_type_name(api));
    EXPECT_EQ(gst_buffer_get_n_meta(out, api), 1u);
  }
  auto* roi_out = gst_buffer_get_video_region_of_interest_meta_id(out, 7);
  EXPECT(roi_out && box_of(roi_out) == cv::Rect(3, 4, 10, 12));
  EXPECT_EQ(Told(gst_video_region_of_interest_meta_get_param(roi_out, "detection")).number("confidence"), 0.75);
  EXPECT_EQ(
      Told(gst_custom_meta_get_structure(gst_buffer_get_custom_meta(out, "CudaVisionTestMeta"))).integer("answer"), 42);
}

/// Crops of each parity on each side, which begin and end inside groups of subsampled pixels, up to the last pixel of
/// the frame. They move from frame to frame. Regions of interest move and shrink with the picture.
TEST(honours_crops_of_each_parity, Each::run) {
  for (const std::string& format : formats(run)) {
    const GstVideoInfo whole = video_info(format, {40, 32});
    for (Size size : {Size{36, 28}, {37, 28}, {36, 29}, {37, 29}})
      for (bool spread_out : {false, true}) {
        Rig rig(run), still(run);
        for (Rig* each : {&rig, &still}) each->caps(caps_text(format, size));
        for (int parity = 0; parity < 4; ++parity) {
          const GstVideoRectangle part{(parity & 1) + 2, (parity >> 1) + 2, size.width, size.height};
          at(format + " at " + show(part.x) + "," + show(part.y) + " of " + show(part.w) + "x" + show(part.h) +
             (spread_out ? " spread out" : ""));
          Buffer frame = noise(whole, unsigned(parity));
          const Buffer cropped = cut(whole, frame.get(), part);
          if (spread_out)
            frame = spread(whole, frame.get(), 0xee);
          else
            add_meta(frame, whole);
          add_crop(frame.get(), part);
          gst_buffer_add_video_region_of_interest_meta(frame.get(), "inside", 16, 10, 8, 6);
          gst_buffer_add_video_region_of_interest_meta(frame.get(), "across", 0, 0, 8, 8);
          GST_BUFFER_PTS(frame.get()) = GST_BUFFER_PTS(cropped.get()) = GstClockTime(parity) * 40 * GST_MSECOND;
          const Picture expected = still.filter(cropped);
          const Buffer result = rig.push(std::move(frame));
          EXPECT_SAME(picture(result.get(), rig.video()), expected);
          EXPECT_EQ(rig.warning().text, "");
          EXPECT(!gst_buffer_get_video_crop_meta(result.get()));
          const auto rois = rois_of(result.get());
          EXPECT(rois.size() >= 2);
          EXPECT_EQ(box_of(rois[0]), cv::Rect(16 - part.x, 10 - part.y, 8, 6));
          EXPECT_EQ(box_of(rois[1]), cv::Rect(0, 0, 8 - part.x, 8 - part.y));
        }
      }
  }
}

// Backends and states -------------------------------------------------------------------------------------------------

TEST(reports_the_active_backend, Each::run) {
  Rig rig(run);
  EXPECT_EQ(get_enum(rig.element(), "active-backend"), run.backend);
}

TEST(works_without_a_device, Each::element) {
  // The driver reads this variable when this process first uses it.
  if (!own_process()) return;
  g_setenv("CUDA_VISIBLE_DEVICES", "", TRUE);
  g_autoptr(GstElement) element = make_element(run);
  gst_object_ref_sink(element);
  g_autoptr(GstBus) bus = gst_bus_new();
  gst_element_set_bus(element, bus);
  EXPECT_EQ(get_enum(element, "active-backend"), "auto");

  set(element, "backend=cuda");
  EXPECT_EQ(gst_element_set_state(element, GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  const Message error = pop_message(bus, GST_MESSAGE_ERROR);
  EXPECT_EQ(error.domain, GST_RESOURCE_ERROR);
  EXPECT_EQ(error.code, int(GST_RESOURCE_ERROR_NOT_FOUND));
  EXPECT_CONTAINS(error.text, "backend=cpu");

  set(element, "backend=auto");
  int notified = 0;
  g_signal_connect(element, "notify::active-backend", G_CALLBACK(+[](GObject*, GParamSpec*, int* count) { ++*count; }),
                   &notified);
  EXPECT_EQ(gst_element_set_state(element, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  EXPECT_EQ(get_enum(element, "active-backend"), "cpu");
  EXPECT_EQ(notified, 1);
  EXPECT_EQ(pop_message(bus, GST_MESSAGE_ERROR).text, "");
  gst_element_set_state(element, GST_STATE_NULL);
  EXPECT_EQ(get_enum(element, "active-backend"), "auto");
  gst_element_set_bus(element, nullptr);
}

TEST(reports_that_downstream_needs_cuda_memory, Each::element) {
  if (!own_process()) return;
  g_setenv("CUDA_VISIBLE_DEVICES", "", TRUE);
  // In a build without CUDA the base class of mixers fails before it asks the element.
  if (run.element == "cudablend" && formats(run, cuda_memory).empty()) return;
  for (const char* backend : {"auto", "cpu"}) {
    at(backend);
    g_autoptr(GstElement) pipeline = gst_parse_launch(
        ("videotestsrc ! " + run.element + " name=element ! capsfilter name=caps ! fakesink").c_str(), nullptr);
    GstElement *element = gst_bin_get_by_name(GST_BIN(pipeline), "element"),
               *filter = gst_bin_get_by_name(GST_BIN(pipeline), "caps");
    set(element, "backend=" + std::string(backend));
    set(filter, "caps=video/x-raw(memory:CUDAMemory)");  // linking with these caps fails without CUDA
    gst_object_unref(filter);
    gst_object_unref(element);
    g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    const Message error = pop_message(bus, GST_MESSAGE_ERROR, 10 * GST_SECOND);
    EXPECT_CONTAINS(error.text, "memory:CUDAMemory only");
    EXPECT_CONTAINS(error.text, std::string(backend) == "cpu" ? "backend=cpu" : "CUDA");
    gst_element_set_state(pipeline, GST_STATE_NULL);
  }
}

/// The log reports frames that cross the bus to the GPU. On the CPU there are none.
TEST(says_nothing_of_the_bus_on_the_cpu, Each::run) {
  if (run.backend != "cpu") return;
  LineCount starts("running on the processor"), copies("across the bus");
  const GstVideoInfo video = video_info("NV12", small);
  filtered(run, "", video, noise(video));
  EXPECT(starts.take() > 0);
  EXPECT_EQ(copies.take(), 0);
}

TEST(has_default_name_of_its_factory, Each::element) {
  g_autoptr(GstElement) element = gst_element_factory_make(run.element.c_str(), nullptr);
  gst_object_ref_sink(element);
  const std::string name = GST_OBJECT_NAME(element);
  EXPECT_EQ(name.substr(0, run.element.size()), run.element);
  const std::string number = name.substr(run.element.size());
  EXPECT(!number.empty() && number.find_first_not_of("0123456789") == std::string::npos);
}

TEST(cycles_through_states_with_frames, Each::run) {
  const std::string caps[] = {caps_text("NV12", small), caps_text("RGBA", {64, 48}), caps_text("I420_10LE", {5, 4}),
                              caps_text("NV12", {320, 240})};
  Line line(run, profile(run.element).needs, 2);
  for (int i = 0; i < 20; ++i) {
    line.caps(caps[i / 2 % 4]);  // repeats caps, and changes them
    for (const Message& message : line.play()) EXPECT(!message.is_error);
    line.stop();
  }
  set(line.part("source"), "num-buffers=-1");
  for (int i = 0; i < 20; ++i) {  // stopped at a random point
    gst_element_set_state(line.pipeline, GST_STATE_PLAYING);
    g_usleep(gulong(i) * 500);
    line.stop();
    EXPECT_EQ(pop_message(line.bus, GST_MESSAGE_ERROR).text, "");
  }
}

TEST(runs_in_parallel, Each::run) {
  const GstVideoInfo video = video_info("NV12", {128, 96});
  const Buffer frames[] = {noise(video, 1), noise(video, 2)};
  Picture expected[2];
  for (int i = 0; i < 2; ++i) expected[i] = filtered(run, "", video, frames[i]);
  Rig first(run), second(run);
  Rig* rigs[] = {&first, &second};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    rigs[i]->caps(caps_of(video));
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) EXPECT_SAME(rigs[i]->filter(frames[i]), expected[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int main() { return run_tests("shared"); }
