// SPDX-License-Identifier: LGPL-2.1-or-later
// The property async-depth: frames wait in the element while the GPU works on later ones. On the CPU backend no frame
// waits.
#include <algorithm>
#include <functional>

#include "tests/elements/harness.hpp"

using namespace cudavision::test;

namespace {

const Size size{85, 66};
constexpr GstClockTime duration = GST_SECOND / 25;

std::string caps_of(const std::string& format, const std::string& rate = "25/1") {
  return caps_text(format, size, ",framerate=" + rate);
}

gsize bytes_of(const char* format) {
  const GstVideoInfo video = video_info(format, size);
  return GST_VIDEO_INFO_SIZE(&video);
}

/// The output of an element for one frame.
struct Out {
  GstClockTime pts;
  bool discont;
  guint metas;
  Picture picture;
};

/// Counts the metas of a buffer, except those that stay with it when it returns to its pool: GstVideoMeta, and from
/// 1.24 on an empty GstAnalyticsRelationMeta.
guint count_metas(GstBuffer* buffer) {
  guint count = 0;
  gpointer cursor = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta(buffer, &cursor))
    count += !GST_META_FLAG_IS_SET(meta, GST_META_FLAG_POOLED);
  return count;
}

struct Stream {
  Rig rig;
  unsigned sent = 0;
  std::vector<Out> out;

  Stream(const Run& run, const std::string& settings, guint depth)
      : rig(with_shared_context(make_element(run, settings + " async-depth=" + std::to_string(depth)), run)) {
    gst_harness_set_live(rig.harness(), FALSE);  // frames of a live stream wait at most for the latency
  }

  GstFlowReturn send(bool discont = false, Buffer frame = nullptr) {
    if (!frame) frame = noise(rig.video(), sent / 2);
    frame = timed(std::move(frame), sent * duration, duration);
    if (discont) GST_BUFFER_FLAG_SET(frame.get(), GST_BUFFER_FLAG_DISCONT);
    ++sent;
    return gst_harness_push(rig.harness(), frame.release());
  }
  void event(GstEvent* event) { EXPECT(gst_harness_push_event(rig.harness(), event)); }
  /// Ends the stream. Returns the total number of frames.
  std::size_t end() {
    event(gst_event_new_eos());
    return take();
  }
  /// Takes the frames that have come out. Returns their total number.
  std::size_t take() {
    while (GstBuffer* buffer = gst_harness_try_pull(rig.harness())) {
      const Buffer held(buffer);
      out.push_back({GST_BUFFER_PTS(buffer), bool(GST_BUFFER_IS_DISCONT(buffer)), count_metas(buffer),
                     picture(buffer, rig.video())});
    }
    return out.size();
  }
};

void expect_same(const std::vector<Out>& actual, const std::vector<Out>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].pts, expected[i].pts);
    EXPECT_EQ(actual[i].discont, expected[i].discont);
    EXPECT_EQ(actual[i].metas, expected[i].metas);
    EXPECT_SAME(actual[i].picture, expected[i].picture);
  }
}

/// Settings that send frames through different paths of the element.
std::vector<std::string> ways(const Run& run) {
  std::vector<std::string> all{""};
  if (const std::string& passing = profile(run.element).passing; !passing.empty()) all.push_back(passing);
  if (run.element == "cudadiff") all.push_back("output=overlay attach-roi=true");
  if (run.element == "cudahistogram") all.push_back("overlay=true add-meta=true");
  return all;
}

bool waits(const Run& run) { return run.backend == "cuda"; }

}  // namespace

TEST(gives_the_same_frames, Each::run) {
  for (const std::string& settings : ways(run))
    for (const char* format : {"NV12", "RGBA"}) {
      const auto play = [&](guint depth) {
        at(settings + " " + format + " async-depth=" + std::to_string(depth));
        Stream stream(run, settings, depth);
        stream.rig.caps_alone(caps_of(format));
        for (int i = 0; i < 24; ++i) {
          if (i == 13) {  // this frame does not fit its caps
            stream.send(false, Buffer(gst_buffer_new_and_alloc(10)));
            continue;
          }
          EXPECT_EQ(stream.send(i == 7), GST_FLOW_OK);
          if (i % 5 == 0) stream.take();
        }
        EXPECT_EQ(stream.end(), 23);
        return stream.out;
      };
      const std::vector<Out> expected = play(0);
      for (guint depth : {1u, 3u, 8u}) expect_same(play(depth), expected);
    }
}

TEST(holds_as_many_frames, Each::run) {
  for (const std::string& settings : ways(run)) {
    at(settings);
    Stream stream(run, settings, 2);
    stream.rig.caps_alone(caps_of("NV12"));
    const std::size_t depth = waits(run) ? 2 : 0;
    for (std::size_t i = 1; i <= 6; ++i) {
      EXPECT_EQ(stream.send(), GST_FLOW_OK);
      EXPECT_EQ(stream.take(), i - std::min(i, depth));
    }
    set(stream.rig.element(), "async-depth=0");
    EXPECT_EQ(stream.send(), GST_FLOW_OK);
    EXPECT_EQ(stream.take(), 7);
  }
}

TEST(lets_all_frames_out_before_events, Each::run) {
  const std::pair<const char*, std::function<GstEvent*()>> events[] = {
      {"segment", [] { return new_segment([](GstSegment& segment) { segment.base = GST_SECOND; }); }},
      {"gap", [] { return gst_event_new_gap(GST_SECOND, GST_SECOND); }},
      {"tag", [] { return gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "a", nullptr)); }},
      {"custom", [] { return gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, gst_structure_new_empty("a")); }},
      {"eos", [] { return gst_event_new_eos(); }}};
  for (const auto& [name, make] : events) {
    at(name);
    Stream stream(run, "", 4);
    stream.rig.caps_alone(caps_of("NV12"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
    stream.event(make());
    EXPECT_EQ(stream.take(), 3);
  }
}

TEST(lets_all_frames_out_before_new_caps, Each::run) {
  Stream stream(run, "", 4);
  stream.rig.caps_alone(caps_of("NV12"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
  EXPECT_EQ(gst_harness_buffers_in_queue(stream.rig.harness()), waits(run) ? 0 : 3);
  stream.rig.caps_alone(caps_text("RGBA", {40, 30}, ",framerate=25/1"));
  EXPECT_EQ(gst_harness_buffers_in_queue(stream.rig.harness()), 3);
  for (int i = 0; i < 3; ++i) {
    const Buffer frame(gst_harness_try_pull(stream.rig.harness()));
    EXPECT_EQ(gst_buffer_get_size(frame.get()), bytes_of("NV12"));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
  EXPECT_EQ(stream.end(), 3);
}

TEST(drops_frames_at_a_flush, Each::run) {
  Stream stream(run, "", 4);
  stream.rig.caps_alone(caps_of("NV12"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
  const std::size_t before = stream.take();
  EXPECT_EQ(before, waits(run) ? 0 : 3);
  flush(stream.rig);
  EXPECT_EQ(stream.take(), before);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
  EXPECT_EQ(stream.end(), before + 3);
  EXPECT_EQ(stream.out[before].pts, 3 * duration);
}

TEST(reports_its_latency, Each::run) {
  Stream stream(run, "", 3);
  GstHarness* harness = stream.rig.harness();
  gst_harness_set_upstream_latency(harness, 10 * GST_MSECOND);
  stream.rig.caps_alone(caps_of("NV12"));
  EXPECT_EQ(stream.send(), GST_FLOW_OK);
  EXPECT_EQ(gst_harness_query_latency(harness), 10 * GST_MSECOND + (waits(run) ? 3 * duration : 0));
  g_autoptr(GstBus) bus = gst_element_get_bus(stream.rig.element());
  while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_LATENCY)) gst_message_unref(message);
  set(stream.rig.element(), "async-depth=0");
  EXPECT_EQ(stream.send(), GST_FLOW_OK);
  EXPECT_EQ(gst_harness_query_latency(harness), 10 * GST_MSECOND);
  g_autoptr(GstMessage) message = gst_bus_pop_filtered(bus, GST_MESSAGE_LATENCY);
  EXPECT_EQ(bool(message), waits(run));
}

/// Nobody knows when the next frame of a live stream without a framerate arrives.
TEST(does_not_hold_live_frames_without_a_framerate, Each::run) {
  for (bool live : {true, false}) {
    at(live ? "live" : "not live");
    Stream stream(run, "", 2);
    gst_harness_set_live(stream.rig.harness(), live);
    stream.rig.caps_alone(caps_of("NV12", "0/1"));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
    EXPECT_EQ(stream.take(), live || !waits(run) ? 5 : 3);
  }
}

/// If a camera stalls, or is slower than its caps say, no frame arrives to push out the waiting ones.
TEST(lets_live_frames_out_if_no_frame_follows, Each::run) {
  for (const std::string& settings : ways(run)) {
    at(settings);
    Stream stream(run, settings, 3);
    gst_harness_set_live(stream.rig.harness(), TRUE);
    stream.rig.caps_alone(caps_of("NV12"));
    for (unsigned round = 0; round < 3; ++round) {
      for (int i = 0; i < 2; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
      for (int i = 0; i < 2; ++i) {
        const Buffer frame(gst_harness_pull(stream.rig.harness()));  // waits up to a minute
        EXPECT(frame);
        EXPECT_EQ(GST_BUFFER_PTS(frame.get()), (2 * round + unsigned(i)) * duration);
      }
    }
    EXPECT_EQ(stream.end(), 0);
  }
}

/// An application replaces an element while it plays: the thread that sends EOS stops the element when EOS comes out.
/// The waiting frames take longer than their latency.
TEST(can_be_stopped_by_the_thread_that_drains_it, Each::run) {
  Stream stream(run, "", 3);
  gst_harness_set_live(stream.rig.harness(), TRUE);
  stream.rig.caps_alone(caps_of("NV12"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(stream.send(), GST_FLOW_OK);
  const auto passes = [](GstPad*, GstPadProbeInfo* info, gpointer element) {
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER) g_usleep(4 * duration / 1000);
    if (!(info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) ||
        GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) != GST_EVENT_EOS)
      return GST_PAD_PROBE_OK;
    gst_element_set_state(GST_ELEMENT(element), GST_STATE_NULL);
    return GST_PAD_PROBE_DROP;
  };
  g_autoptr(GstPad) src = gst_element_get_static_pad(stream.rig.element(), "src");
  gst_pad_add_probe(src, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM), passes,
                    stream.rig.element(), nullptr);
  gst_harness_push_event(stream.rig.harness(), gst_event_new_eos());
  EXPECT_EQ(stream.take(), 2);
}

/// Waiting frames come from the pool of downstream.
TEST(needs_no_more_frames_than_the_pool_downstream_has, Each::run) {
  for (guint most : {2u, 20u}) {
    at(std::to_string(most) + " frames");
    Stream stream(run, "", 4);
    const guint bytes = guint(bytes_of("NV12"));
    struct Offer {
      GstBufferPool* pool;
      guint bytes, most;
    } offer{gst_video_buffer_pool_new(), bytes, most};
    gst_pad_add_probe(
        stream.rig.harness()->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM,
        [](GstPad*, GstPadProbeInfo* info, gpointer data) {
          GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
          if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return GST_PAD_PROBE_OK;
          const auto* offer = static_cast<Offer*>(data);
          gst_query_add_allocation_pool(query, offer->pool, offer->bytes, 1, offer->most);
          return GST_PAD_PROBE_HANDLED;
        },
        &offer, nullptr);
    stream.rig.caps_alone(caps_of("NV12"));
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(stream.send(), GST_FLOW_OK);
      stream.take();
    }
    EXPECT_EQ(stream.end(), 12);
    gst_object_unref(offer.pool);
  }
}

TEST(blends_the_same_frames, Each::element) {
  if (run.element != "cudablend") return;
  for (bool filtered : {false, true}) {
    const auto text = [&](const std::string& depth) {
      return "cudablend name=b sink_1::alpha=0.5 sink_1::xpos=20 " + depth + " ! video/x-raw,format=RGBA" +
             (filtered ? " ! cudagaussian kernel-size=3 " + depth : std::string()) +
             " ! appsink name=out sync=false videotestsrc num-buffers=30 pattern=ball ! " +
             caps_text("RGBA", {160, 120}) + " ! b. videotestsrc num-buffers=30 pattern=snow ! " +
             caps_text("NV12", {80, 60}) + " ! b.";
    };
    const GstVideoInfo video = video_info("RGBA", {160, 120});
    const std::vector<Picture> expected = frames_of(text("async-depth=0"), video);
    EXPECT_EQ(expected.size(), std::size_t(30));
    for (const char* depth : {"async-depth=1", "async-depth=5"}) {
      at(depth);
      const std::vector<Picture> actual = frames_of(text(depth), video);
      EXPECT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_SAME(actual[i], expected[i]);
    }
  }
}

int main() { return run_tests("async_depth"); }
