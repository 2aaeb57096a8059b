// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests changes in cudablend while it plays (pads, caps, seeks, settings, threads), and the limits of its properties
// and pads.
#include <atomic>
#include <thread>
#include <tuple>

#include "tests/elements/mixer.hpp"

using namespace cudavision::test;

// Changes -------------------------------------------------------------------------------------------------------------

TEST(changes_properties_while_playing, Each::run) {
  const Size size{40, 30};
  const char* const settings[][2] = {{"background=black", ""},
                                     {"background=white", "alpha=0.5"},
                                     {"background=white", "xpos=12"},
                                     {"interpolation=nearest", "width=30"},
                                     {"layout=grid gap=2", ""},
                                     {"zero-size-is-unscaled=false", "width=0"},
                                     {"layout=manual", "width=30 operator=difference"},
                                     {"layout=manual", "key=color key-color=0x0a141e"}};
  Mixer mixer(run, "", caps_text("RGB", size), {caps_text("RGB", {20, 20}), caps_text("RGB", {20, 20})});
  mixer.play();
  std::string element, pad;
  for (const auto& one : settings) {
    at(one[0] + std::string(" ") + one[1]);
    set(mixer.element(), one[0]), set(mixer.pad(1), one[1]);
    element += std::string(" ") + one[0], pad += std::string(" ") + one[1];
    std::vector<Layer> layers{{caps_text("RGB", {20, 20})}, {caps_text("RGB", {20, 20}), pad}};
    for (int i = 0; i < 2; ++i) mixer.push(i, frame_of(layers[std::size_t(i)], mixer.video(i), unsigned(i + 1), 0));
    EXPECT_SAME(mixer.next().shown(), composed(run, element, caps_text("RGB", size), layers));
  }
}

/// An application changes a property of a pad and a property of the element in turn. No frame shows the second change
/// without the first.
TEST(shows_settings_of_one_moment, Each::run) {
  constexpr int steps = 200, most_frames = 4000;
  Mixer mixer(run, "background=color", caps_text("RGB", {256, 1}), {caps_text("RGB", {1, 1})});
  // reading the settings of many pads takes some time
  for (int i = 1; i < 40; ++i) mixer.end(mixer.add(caps_text("RGB", {1, 1})));
  mixer.play();
  for (bool pad_first : {true, false}) {
    at(pad_first ? "the pad first" : "the element first");
    std::atomic<bool> ends{false};
    const auto change = [&](bool pad, int step) {
      if (pad)
        g_object_set(mixer.pad(0), "xpos", step, nullptr);
      else
        g_object_set(mixer.element(), "background-color", 0xff000000u | guint(step) * 0x010101u, nullptr);
    };
    change(true, 0), change(false, 0);
    std::thread application([&] {
      for (int step = 1; !ends; step = (step + 1) % steps) change(pad_first, step), change(!pad_first, step);
    });
    std::string torn;
    for (int i = 0; i < most_frames && torn.empty(); ++i) {
      mixer.push(0, flat(mixer.video(0), {255, 0, 255}));
      const Picture shown = mixer.next().shown();
      const int background = sample(shown, 1, 255, 0);
      int position = 0;
      while (position < 255 && sample(shown, 0, position, 0) != 255) ++position;
      // the number of changes of the pad without the matching change of the element
      const int ahead = (position - background + steps) % steps;
      if (ahead != 0 && ahead != (pad_first ? 1 : steps - 1))
        torn = "xpos=" + std::to_string(position) + " and background " + std::to_string(background) + " in frame " +
               std::to_string(i);
    }
    ends = true;
    application.join();
    EXPECT_EQ(torn, "");
  }
}

/// Upstream asks for a pool directly after sending caps, before the streaming thread has handled them.
TEST(answers_the_first_allocation_query, Each::run) {
  for (int round = 0; round < 20; ++round) {
    at("round " + std::to_string(round));
    Mixer mixer(run, "", caps_text("NV12", {64, 48}), {caps_text("NV12", {64, 48}), caps_text("NV12", {64, 48})});
    GstPad* pads[] = {mixer.without_source(0), mixer.without_source(1)};
    mixer.play();
    const Caps caps(gst_caps_from_string(caps_text("NV12", {64, 48}).c_str()));
    for (GstPad* pad : pads) {
      EXPECT(gst_pad_send_event(pad, gst_event_new_stream_start("stream")));
      EXPECT(gst_pad_send_event(pad, gst_event_new_caps(caps.get())));
      const Query query(gst_query_new_allocation(caps.get(), TRUE));
      EXPECT(gst_pad_query(pad, query.get()));
      EXPECT(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
      EXPECT(gst_query_find_allocation_meta(query.get(), GST_VIDEO_CROP_META_API_TYPE, nullptr));
      EXPECT_EQ(gst_query_get_n_allocation_pools(query.get()), 1);
      g_autoptr(GstBufferPool) pool = nullptr;
      guint bytes = 0;
      gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, &bytes, nullptr, nullptr);
      EXPECT(pool && bytes >= 64 * 48 * 3 / 2);
      const Query without_caps(gst_query_new_allocation(nullptr, TRUE));
      EXPECT(!gst_pad_query(pad, without_caps.get()));
    }
  }
}

TEST(forgets_caps_without_a_frame_when_it_stops, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGB", {20, 20}), {caps_text("RGB", {20, 20})});
  mixer.add(caps_text("RGB", {20, 20}), "alpha=0");
  // The base class negotiates again at the first frame, and then waits for the second one.
  const auto play_two_frames = [&] {
    mixer.play();
    for (int i = 0; i < 4; ++i) mixer.push(i % 2, flat(mixer.video(i % 2), {10, 20, 30}));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(sample(mixer.next().shown(), 0, 5, 5), 10);
  };
  for (GstState state : {GST_STATE_READY, GST_STATE_NULL}) {
    play_two_frames();
    // The element handles the caps in its own thread. No frame with them follows.
    const Caps other(gst_caps_from_string(caps_text("NV12", {20, 20}).c_str()));
    EXPECT(gst_pad_send_event(mixer.pad(0), gst_event_new_caps(other.get())));
    g_usleep(50000);
    mixer.state(state);
    mixer.rewind();
  }
  play_two_frames();
  EXPECT(mixer.warning(0).text.empty());
}

/// The stream ends downstream while the caps of a pad are queued. It continues after a flush.
TEST(keeps_caps_that_are_queued_at_the_end, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGB", {20, 20}), {caps_text("RGB", {20, 20})});
  static std::atomic<bool> pushes, ends;
  pushes = ends = false;
  g_autoptr(GstPad) src = gst_element_get_static_pad(mixer.element(), "src");
  const auto block = [](GstPad*, GstPadProbeInfo* info, gpointer) {
    if (pushes.exchange(true)) return GST_PAD_PROBE_OK;
    while (!ends) g_usleep(1000);
    gst_clear_buffer(reinterpret_cast<GstBuffer**>(&info->data));
    GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_EOS;
    return GST_PAD_PROBE_HANDLED;
  };
  gst_pad_add_probe(src, GST_PAD_PROBE_TYPE_BUFFER, block, nullptr, nullptr);
  const GstVideoInfo first = mixer.video(0), second = video_info("NV12", {20, 20});
  GstPad* const pad = mixer.play_without_source(0);
  const auto send = [&](GstEvent* event) { gst_pad_send_event(pad, event); };
  const auto push = [&](const GstVideoInfo& video, const std::vector<int>& values, int number) {
    const Buffer frame = timed(flat(video, values), guint64(number) * frame_time);
    return gst_pad_chain(pad, gst_buffer_ref(frame.get()));
  };
  send(new_segment());
  EXPECT_EQ(push(first, {10, 20, 30}, 0), GST_FLOW_OK);
  for (GstClockTime waited = 0; !pushes && waited < patience; waited += GST_MSECOND) g_usleep(1000);
  EXPECT(pushes);
  send(gst_event_new_caps(Caps(gst_video_info_to_caps(&second)).get()));
  ends = true;
  EXPECT(!mixer.pull());
  send(gst_event_new_flush_start());
  send(gst_event_new_flush_stop(TRUE));
  send(new_segment());
  for (int n = 0; n < 3; ++n) EXPECT_EQ(push(second, {235, 128, 128}, n), GST_FLOW_OK);
  EXPECT_EQ(sample(mixer.next().shown(), 0, 5, 5), 255);
}

TEST(waits_for_a_pad_that_comes_while_a_frame_is_composed, Each::run) {
  struct Case {
    Mixer mixer;
    std::atomic<bool> added{false};
  } test{Mixer(run, "layout=grid columns=2 background=black emit-signals=true", caps_text("RGB", {40, 20}))};
  Mixer& mixer = test.mixer;
  mixer.add(caps_text("RGB", {20, 20}));
  // The base class has taken the frames of all pads that it knows.
  const auto selected = [](GstAggregator*, GstSegment*, guint64, guint64, guint64, GstStructure*, gpointer data) {
    Case& test = *static_cast<Case*>(data);
    if (test.added) return;
    test.mixer.add(caps_text("RGB", {20, 20}));
    test.added = true;
  };
  g_signal_connect(
      mixer.element(), "samples-selected",
      GCallback(static_cast<void (*)(GstAggregator*, GstSegment*, guint64, guint64, guint64, GstStructure*, gpointer)>(
          selected)),
      &test);
  mixer.play();
  mixer.push(0, flat(mixer.video(0), {10, 20, 30}));
  for (GstClockTime waited = 0; !test.added && waited < patience; waited += GST_MSECOND) g_usleep(1000);
  EXPECT(test.added);
  mixer.push(1, flat(mixer.video(1), {200, 210, 220}));
  mixer.push(0, flat(mixer.video(0), {10, 20, 30}));
  const Picture shown = mixer.next().shown();
  EXPECT_EQ(sample(shown, 0, 10, 10), 10);
  EXPECT_EQ(sample(shown, 0, 30, 10), 200);
}

TEST(survives_pads_released_by_other_threads, Each::run) {
  for (bool ignore : {false, true}) {
    at(ignore ? "ignore-inactive-pads=true" : "");
    g_autoptr(GstElement) pipeline = gst_pipeline_new(nullptr);
    GstElement* const element = with_shared_context(make_element(run, ignore ? "ignore-inactive-pads=true" : ""), run);
    GstElement* const sink = gst_element_factory_make("fakesink", nullptr);
    g_object_set(sink, "sync", FALSE, "signal-handoffs", TRUE, nullptr);
    static std::atomic<int> frames;
    frames = 0;
    g_signal_connect(sink, "handoff", G_CALLBACK(+[](GstElement*, GstBuffer*, GstPad*, gpointer) { ++frames; }),
                     nullptr);
    gst_bin_add_many(GST_BIN(pipeline), element, sink, nullptr);
    EXPECT(gst_element_link(element, sink));
    struct Source {
      GstElement* bin;
      GstPad* pad;
    };
    const auto add = [&](int number) {
      const std::string text = "videotestsrc is-live=true pattern=" + std::to_string(number % 20) +
                               " ! video/x-raw,format=" + (number % 2 ? "NV12" : "RGBA") +
                               ",width=32,height=24,framerate=200/1";
      Source source{gst_parse_bin_from_description(text.c_str(), TRUE, nullptr),
                    gst_element_request_pad_simple(element, "sink_%u")};
      EXPECT(source.bin && source.pad);
      gst_bin_add(GST_BIN(pipeline), source.bin);
      g_autoptr(GstPad) src = gst_element_get_static_pad(source.bin, "src");
      EXPECT_EQ(gst_pad_link(src, source.pad), GST_PAD_LINK_OK);
      gst_element_sync_state_with_parent(source.bin);
      return source;
    };
    const auto remove = [&](const Source& source) {
      gst_element_set_locked_state(source.bin, TRUE);
      gst_element_release_request_pad(element, source.pad);
      gst_element_set_state(source.bin, GST_STATE_NULL);
      gst_bin_remove(GST_BIN(pipeline), source.bin);
      gst_object_unref(source.pad);
    };
    const Source stays = add(0);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    const auto wait_for_frames = [&](int count) {
      const gint64 late = g_get_monotonic_time() + gint64(patience / 1000);
      for (const int before = frames; frames < before + count; g_usleep(1000)) EXPECT(g_get_monotonic_time() < late);
    };
    // A GstBin that changes its state while elements are added and removed may never reach PLAYING.
    EXPECT_EQ(gst_element_get_state(pipeline, nullptr, nullptr, patience), GST_STATE_CHANGE_SUCCESS);
    wait_for_frames(1);
    std::vector<GstPad*> idle;  // makes the list of pads longer
    for (int i = 0; i < 30; ++i) idle.push_back(gst_element_request_pad_simple(element, "sink_%u"));
    std::vector<std::thread> changers;
    for (int thread = 0; thread < 4; ++thread)
      changers.emplace_back([&, thread] {
        for (int i = 0; i < 100; ++i) {
          const Source one = add(4 * i + thread);
          g_usleep(gulong(i % 3) * 1000);
          remove(one);
        }
      });
    for (std::thread& changer : changers) changer.join();
    for (GstPad* pad : idle) gst_element_release_request_pad(element, pad), gst_object_unref(pad);
    EXPECT_EQ(GST_ELEMENT(element)->numsinkpads, guint16(1));
    wait_for_frames(10);
    gst_element_send_event(pipeline, gst_event_new_eos());
    g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
    bool ended = false;
    while (!ended) {
      g_autoptr(GstMessage) message =
          gst_bus_timed_pop_filtered(bus, patience, GstMessageType(GST_MESSAGE_ERROR | GST_MESSAGE_EOS));
      EXPECT(message);
      EXPECT(GST_MESSAGE_SRC(message) != GST_OBJECT(element));  // a source may report that it is no longer linked
      ended = GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(stays.pad);
  }
}

/// The element waits for a pad without frames until this pad is released. Pads with frames can also be released.
TEST(continues_when_a_pad_is_released, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGBA", {64, 48}), {caps_text("RGBA", {64, 48})});
  mixer.play();
  for (int n = 0; n < 100; ++n) mixer.push(0, flat(mixer.video(0), {10, 20, 30, 255}));
  mixer.end(0);
  GstClockTime expected = 0;
  for (int round = 0; round < 30; ++round) {
    at("round " + std::to_string(round));
    const int added = mixer.add(caps_text(round % 2 ? "NV12" : "RGB", {16, 16}), "xpos=5 ypos=5");
    mixer.skip_to(added, expected);
    for (int n = 0; n < round % 4; ++n) mixer.push(added, noise(mixer.video(added), unsigned(n)));
    if (round % 5 == 0) g_usleep(2000);
    mixer.remove(added);
    const Output output = mixer.next();
    EXPECT_EQ(output.pts, expected);
    EXPECT_EQ(sample(output.shown(), 0, 40, 40), 10);
    expected += frame_time;
  }
  EXPECT_EQ(mixer.rest().size(), 70u);
}

TEST(follows_format_changes, Each::run) {
  const Size size{20, 14};
  Mixer mixer(run, "background=black", caps_text("RGB", {40, 30}));
  for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", size), i ? "xpos=10 ypos=6" : "");
  mixer.play();
  const std::vector<std::string> names = formats(run);
  const auto layers = [&](std::size_t n) {
    return std::vector<Layer>{{caps_text(names[n], size)},
                              {caps_text(names[(n + 7) % names.size()], size), "xpos=10 ypos=6"}};
  };
  for (std::size_t n = 0; n < names.size(); ++n)
    for (int i = 0; i < 2; ++i) {
      const Layer layer = layers(n)[std::size_t(i)];
      mixer.caps_of(i, layer.caps);
      mixer.push(i, frame_of(layer, mixer.video(i), unsigned(i + 1), 0));
    }
  const std::vector<Output> all = mixer.finish();
  EXPECT_EQ(all.size(), names.size());
  for (std::size_t n = 0; n < names.size(); ++n) {
    at(names[n]);
    EXPECT_EQ(all[n].pts, n * frame_time);
    EXPECT_SAME(all[n].shown(), composed(run, "background=black", caps_text("RGB", {40, 30}), layers(n)));
  }
}

/// The pads offer all formats for any downstream caps, and device memory only on the CUDA backend.
TEST(offers_all_formats_on_its_pads, Each::run) {
  const std::vector<std::string> names = formats(run);
  EXPECT(names.size() >= 30);
  Mixer mixer(run, "", caps_text("NV12", {40, 30}), {caps_text("RGB", {20, 14}), caps_text("I420", {20, 14})});
  for (GstState state : {GST_STATE_NULL, GST_STATE_READY, GST_STATE_PLAYING}) {
    at(gst_element_state_get_name(state));
    mixer.state(state);
    if (state == GST_STATE_PLAYING) {
      for (int i = 0; i < 2; ++i) mixer.push(i, noise(mixer.video(i)));
      mixer.next();
    }
    for (int i = 0; i < 2; ++i) {
      const Caps offered(gst_pad_query_caps(mixer.pad(i), nullptr));
      for (const std::string& name : names) {
        const Caps one(gst_caps_from_string(caps_text(name, {333, 7}, ",interlace-mode=progressive").c_str()));
        FAIL_UNLESS(gst_caps_can_intersect(one.get(), offered.get()), "%s: no %s", where().c_str(), name.c_str());
      }
      const Caps device(
          gst_caps_from_string(caps_text("NV12", {64, 48}, ",interlace-mode=progressive", cuda_memory).c_str()));
      EXPECT_EQ(gst_caps_can_intersect(device.get(), offered.get()), run.backend == "cuda");
    }
  }
}

/// From the second caps query of a negotiation on, downstream wants another format, like a capsfilter that is changed
/// during the negotiation.
TEST(negotiates_while_downstream_changes, Each::run) {
  Mixer mixer(run, "", caps_text("NV12", {40, 30}), {caps_text("RGB", {20, 14})});
  std::pair<Mixer*, bool> change{&mixer, false};
  g_autoptr(GstPad) src = gst_element_get_static_pad(mixer.element(), "src");
  gst_pad_add_probe(
      src, GstPadProbeType(GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM | GST_PAD_PROBE_TYPE_PULL),
      [](GstPad*, GstPadProbeInfo* info, gpointer data) {
        auto& [of, changed] = *static_cast<std::pair<Mixer*, bool>*>(data);
        if (GST_QUERY_TYPE(GST_PAD_PROBE_INFO_QUERY(info)) == GST_QUERY_CAPS && !std::exchange(changed, true))
          of->want(caps_text("I420", {40, 30}));
        return GST_PAD_PROBE_OK;
      },
      &change, nullptr);
  mixer.play();
  for (int n = 0; n < 2; ++n) mixer.push(0, noise(mixer.video(0)));
  const Output output = mixer.next();
  EXPECT_EQ(GST_VIDEO_INFO_FORMAT(&output.video), GST_VIDEO_FORMAT_I420);
  EXPECT(change.second);
}

/// Tests the output format where downstream allows several.
TEST(chooses_its_output_format, Each::run) {
  struct Case {
    std::vector<std::string> pads;
    const char *settings, *out, *expected;
  };
  const auto gray = [](int rate) { return rated("GRAY8", {16, 8}, rate); };
  for (const Case& c :
       {Case{{rated("NV12", {64, 48}, 25)}, "", "", "NV12 64x48 25"},
        {{rated("NV12", {64, 48}, 25), rated("RGBA", {32, 24}, 30)}, "", "", "RGBA 64x48 30"},
        {{rated("I420", {64, 48}, 10), rated("P010_10LE", {96, 24}, 15)}, "", "", "I420 96x48 15"},
        {{rated("NV12", {64, 48}, 25), rated("RGBA", {32, 24}, 30)}, "", "video/x-raw,format=I420", "I420 64x48 30"},
        {{rated("GRAY8", {63, 47}, 25)}, "", "video/x-raw,width=100", "GRAY8 100x47 25"},
        {{rated("RGB", {64, 48}, 25), rated("RGB", {30, 50}, 25), rated("RGB", {10, 10}, 25)},
         "layout=grid gap=4",
         "",
         "RGB 132x104 25"},
        // Variable rates come from stills of jpegdec and imagefreeze, and from some cameras. The output has a fixed
        // rate.
        {{gray(0), gray(0)}, "", "", "GRAY8 16x8 25"},
        {{gray(0), gray(10)}, "", "", "GRAY8 16x8 10"},
        {{gray(0), gray(10)}, "", "video/x-raw,framerate=0/1,max-framerate=30/1", "GRAY8 16x8 30"},
        {{gray(10), gray(0)}, "", "video/x-raw,framerate=[0/1,30/1]", "GRAY8 16x8 10"},
        {{gray(0), gray(0)}, "", "video/x-raw,framerate={(fraction)0/1,(fraction)5/1}", "GRAY8 16x8 5"},
        {{gray(0)}, "", "video/x-raw,framerate=[0/1,5/1]", "GRAY8 16x8 5"},
        {{gray(1)}, "", "video/x-raw,framerate={(fraction)0/1,(fraction)50/1}", "GRAY8 16x8 50"}}) {
    at(c.expected + std::string(" ") + c.out);
    std::vector<Layer> layers;
    for (const std::string& pad : c.pads) layers.push_back({pad, "", 2});
    const std::vector<Output> all = play(run, c.settings, c.out, layers);
    EXPECT(!all.empty());
    for (const Output& output : all) {
      const GstVideoInfo& video = output.video;
      EXPECT_EQ(video.fps_d, 1);
      EXPECT_EQ(std::string(GST_VIDEO_INFO_NAME(&video)) + " " + show(video.width) + "x" + show(video.height) + " " +
                    show(video.fps_n),
                std::string(c.expected));
    }
  }
}

TEST(follows_caps_changes_of_downstream, Each::run) {
  Mixer mixer(run, "background=white", caps_text("RGB", {40, 30}), {caps_text("RGB", {20, 14})});
  mixer.play();
  const auto shown = [&] {
    mixer.push(0, flat(mixer.video(0), {100, 50, 20}));
    return mixer.next();
  };
  EXPECT_EQ(shown().video.width, 40);
  for (const auto& [format, size] : {std::pair{"NV12", Size{50, 40}}, {"RGBA", {16, 10}}, {"GRAY16_LE", {31, 33}}}) {
    at(format);
    mixer.want(caps_text(format, size));
    Output output = shown();
    // One frame may have the old caps.
    for (int i = 0; i < 3 && output.video.width != size.width; ++i) output = shown();
    EXPECT_EQ(std::string(GST_VIDEO_INFO_NAME(&output.video)), std::string(format));
    EXPECT_WITHIN(
        output.shown(),
        composed(run, "background=white", caps_text(format, size), {{caps_text("RGB", {20, 14}), "", {100, 50, 20}}}),
        0);
  }
}

TEST(seeks_like_compositor, Each::run) {
  if (!have_compositor()) return;
  const auto times = [](const Run& of, double rate, GstClockTime from, GstClockTime to) {
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(
        (of.element +
         " name=mix background=black sink_1::xpos=16 ! video/x-raw,format=RGB ! appsink name=out sync=false "
         "videotestsrc ! video/x-raw,format=RGB,width=32,height=24,framerate=25/1 ! mix. "
         "videotestsrc pattern=ball ! video/x-raw,format=RGB,width=32,height=24,framerate=10/1 ! mix.")
            .c_str(),
        &error);
    FAIL_UNLESS(!error, "%s", error ? error->message : "");
    g_autoptr(GstElement) mix = gst_bin_get_by_name(GST_BIN(pipeline), "mix");
    if (!of.backend.empty()) set(mix, "backend=" + of.backend);
    with_shared_context(mix, of);
    gst_element_set_state(pipeline, GST_STATE_PAUSED);
    EXPECT_EQ(gst_element_get_state(pipeline, nullptr, nullptr, patience), GST_STATE_CHANGE_SUCCESS);
    EXPECT(gst_element_seek(pipeline, rate, GST_FORMAT_TIME, GstSeekFlags(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE),
                            GST_SEEK_TYPE_SET, gint64(from), GST_SEEK_TYPE_SET, gint64(to)));
    std::vector<GstClockTime> found;
    for (const Sample& one : samples_of(pipeline)) {
      const GstSegment* segment = gst_sample_get_segment(one.get());
      const GstClockTime pts = GST_BUFFER_PTS(gst_sample_get_buffer(one.get()));
      found.push_back(gst_segment_to_stream_time(segment, GST_FORMAT_TIME, pts));
      found.push_back(gst_segment_to_running_time(segment, GST_FORMAT_TIME, pts));
    }
    return found;
  };
  for (const auto& [rate, from, to] : {std::tuple{1.0, 2 * GST_SECOND, 2 * GST_SECOND + 400 * GST_MSECOND},
                                       {2.0, 1 * GST_SECOND, 1 * GST_SECOND + 800 * GST_MSECOND}}) {
    at("rate " + std::to_string(rate));
    const auto actual = times(run, rate, from, to), expected = times(compositor, rate, from, to);
    EXPECT(expected.size() >= 10);
    EXPECT(actual == expected);
  }
}

/// The base class would divide by the framerate of the output, which is not yet known.
TEST(takes_lateness_before_its_caps_are_known, Each::run) {
  Mixer mixer(run, "", "", {caps_text("RGB", {32, 24})});
  mixer.play();
  g_autoptr(GstPad) src = gst_element_get_static_pad(mixer.element(), "src");
  EXPECT(gst_pad_send_event(src, gst_event_new_qos(GST_QOS_TYPE_UNDERFLOW, 0.5, GST_MSECOND, GST_SECOND)));
  mixer.push(0, noise(mixer.video(0)));
  EXPECT_EQ(mixer.finish().size(), 1u);
}

/// The base class would make a segment that ends before it begins, which violates an assertion in GStreamer.
TEST(refuses_a_seek_past_its_stop, Each::run) {
  Mixer mixer(run, "", caps_text("RGB", {32, 24}), {caps_text("RGB", {32, 24})});
  mixer.play();
  mixer.push(0, noise(mixer.video(0)));
  g_autoptr(GstPad) src = gst_element_get_static_pad(mixer.element(), "src");
  EXPECT(!gst_pad_send_event(src, gst_event_new_seek(1, GST_FORMAT_TIME, GST_SEEK_FLAG_NONE, GST_SEEK_TYPE_SET,
                                                     5 * GST_SECOND, GST_SEEK_TYPE_SET, 2 * GST_SECOND)));
  EXPECT_EQ(mixer.finish().size(), 1u);
}

namespace {

/// Coordinates of navigation events.
using Heard = std::vector<std::pair<double, double>>;

void hear(GstPad* pad, Heard& heard) {
  gst_pad_add_probe(
      pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM,
      [](GstPad*, GstPadProbeInfo* info, gpointer data) {
        const GstStructure* structure = gst_event_get_structure(GST_PAD_PROBE_INFO_EVENT(info));
        double x, y;
        if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_NAVIGATION &&
            gst_structure_get(structure, "pointer_x", G_TYPE_DOUBLE, &x, "pointer_y", G_TYPE_DOUBLE, &y, nullptr))
          static_cast<Heard*>(data)->emplace_back(x, y);
        return GST_PAD_PROBE_OK;
      },
      &heard, nullptr);
}

void point(const Mixer& mixer, const Heard& places) {
  for (const auto& [x, y] : places) {
    GstStructure* structure =
        gst_structure_new("application/x-gst-navigation", "event", G_TYPE_STRING, "mouse-move", "button", G_TYPE_INT, 0,
                          "pointer_x", G_TYPE_DOUBLE, x, "pointer_y", G_TYPE_DOUBLE, y, nullptr);
    gst_element_send_event(mixer.element(), gst_event_new_navigation(structure));
  }
}

}  // namespace

/// A pad gets the navigation events over its picture, in the coordinates of that picture. A pad that ends before its
/// caps arrive keeps its cell in the grid, but has no picture.
TEST(passes_navigation_to_the_pad_below_the_pointer, Each::run) {
  for (bool empty : {false, true}) {
    at(empty ? "an empty cell" : "");
    Mixer mixer(run, empty ? "layout=grid columns=2" : "", caps_text("RGB", {100, empty ? 40 : 80}));
    mixer.add(caps_text("RGB", {30, 20}), "xpos=0 ypos=0");
    mixer.add(caps_text("RGB", {50, 40}), "xpos=40 ypos=30 width=20 height=10");
    GstPad* const first = empty ? mixer.without_source(0) : mixer.pad(0);
    Heard heard[2];
    for (int i = 0; i < 2; ++i) hear(mixer.pad(i), heard[i]);
    mixer.play();
    if (empty)
      for (GstEvent* event : {gst_event_new_stream_start("empty"), gst_event_new_eos()})
        EXPECT(gst_pad_send_event(first, event));
    for (int i = empty; i < 2; ++i) mixer.push(i, noise(mixer.video(i))), mixer.end(i);
    EXPECT_EQ(mixer.rest().size(), 1u);
    point(mixer, empty ? Heard{{10, 20}, {60, 20}} : Heard{{45, 32}, {10, 5}, {90, 70}});
    EXPECT((heard[0] == (empty ? Heard{} : Heard{{10, 5}})));
    EXPECT((heard[1] == (empty ? Heard{{10, 20}} : Heard{{12.5, 8}})));
  }
}

TEST(plays_several_times, Each::run) {
  const std::vector<Layer> layers{{caps_text("RGB", {32, 24}), "", 3}, {caps_text("NV12", {16, 16}), "alpha=0.5", 3}};
  Mixer mixer(run, "background=black");
  for (const Layer& layer : layers) mixer.add(layer.caps, layer.pad);
  std::vector<Output> first;
  for (int round = 0; round < 3; ++round) {
    at("round " + std::to_string(round));
    mixer.play();
    mixer.rewind();
    feed(mixer, layers);
    std::vector<Output> all = mixer.rest();
    EXPECT_EQ(all.size(), 3u);
    if (round == 0)
      first = std::move(all);
    else
      expect_same(all, first, 0);
    mixer.state(round == 0 ? GST_STATE_NULL : GST_STATE_READY);
  }
  first.clear();
  mixer.state(GST_STATE_NULL);
}

TEST(continues_after_a_flush, Each::run) {
  Mixer mixer(run, "background=black", caps_text("RGB", {32, 24}), {caps_text("RGB", {32, 24})});
  mixer.play();
  mixer.push(0, flat(mixer.video(0), {100}));
  EXPECT_EQ(mixer.next().pts, GstClockTime(0));
  EXPECT(gst_element_send_event(mixer.pipeline(), gst_event_new_flush_start()));
  EXPECT(gst_element_send_event(mixer.pipeline(), gst_event_new_flush_stop(TRUE)));
  mixer.skip_to(0, 0);
  mixer.push(0, flat(mixer.video(0), {200}));
  const Output output = mixer.next();
  EXPECT_EQ(sample(output.shown(), 0, 3, 3), 200);
  mixer.end(0);
}

// Limits --------------------------------------------------------------------------------------------------------------

TEST(accepts_64_pads_and_no_more, Each::run) {
  Mixer mixer(run, "layout=grid background=black", caps_text("RGB", {64, 64}));
  for (int i = 0; i < max_pads; ++i) mixer.add(caps_text("RGB", {8, 8}));
  EXPECT(!gst_element_request_pad_simple(mixer.element(), "sink_%u"));
  EXPECT_CONTAINS(mixer.warning(patience).text, "64");
  mixer.play();
  for (int i = 0; i < max_pads; ++i) mixer.push(i, flat(mixer.video(i), {i * 4, 255 - i, 50}));
  const std::vector<Output> all = mixer.finish();
  EXPECT_EQ(all.size(), 1u);
  const Picture result = all[0].shown();
  EXPECT_SAME(result, drawn(result, [](int x, int y) {
                const int i = y / 8 * 8 + x / 8;
                return Color{i * 4, 255 - i, 50, 0};
              }));
}

/// The base class frees a pad whose name is already used, but then accesses it.
TEST(refuses_the_name_of_a_pad_that_exists, Each::run) {
  Mixer mixer(run), other(run);
  const auto request = [](const Mixer& from, const char* name) {
    GstElementClass* klass = GST_ELEMENT_GET_CLASS(from.element());
    GstPadTemplate* templ = gst_element_class_get_pad_template(klass, "sink_%u");
    return gst_element_request_pad(from.element(), templ, name, nullptr);
  };
  const auto expect = [&](const char* name, const std::string& expected) {
    at(name ? name : "no name");
    GstPad* pad = request(mixer, name);
    EXPECT(pad);
    EXPECT_EQ(std::string(GST_OBJECT_NAME(pad)), expected);
    EXPECT_EQ(mixer.warning(0).text, "");
    return pad;
  };
  std::vector<GstPad*> pads{expect("sink_3", "sink_3"),
                            expect(nullptr, "sink_4"),
                            expect("sink_0", "sink_0"),
                            expect(nullptr, "sink_5"),
                            expect("sink_4294967295", "sink_4294967295"),
                            expect(nullptr, "sink_6"),
                            expect("sink_2", "sink_2"),
                            expect(nullptr, "sink_7")};
  for (const char* name : {"sink_03", "sink_00", "sink_0000000006"}) {
    at(name);
    EXPECT(!request(mixer, name));
    EXPECT_CONTAINS(mixer.warning(0).text, "is the name of a pad that the element already has");
  }
  at("the same name");
  GstPad* second = nullptr;
  ASSERT_CRITICAL(second = request(mixer, "sink_3"));  // GStreamer declares this undefined
  EXPECT(!second);
  EXPECT_CONTAINS(mixer.warning(0).text, "sink_3 is the name of a pad that the element already has");
  EXPECT_EQ(GST_ELEMENT(mixer.element())->numsinkpads, 8);
  at("a child by its name");
  GObject* child = gst_child_proxy_get_child_by_name(GST_CHILD_PROXY(mixer.element()), "sink_2");
  EXPECT(child == G_OBJECT(pads[6]));
  g_object_unref(child);
  EXPECT_EQ(gst_child_proxy_get_children_count(GST_CHILD_PROXY(mixer.element())), 8u);
  at("a pad of another element");
  g_autoptr(GstPad) same = request(other, "sink_3");
  EXPECT(same);
  gst_element_release_request_pad(other.element(), same);
  at("a name that was released");
  gst_element_release_request_pad(mixer.element(), pads[0]);
  gst_object_unref(pads[0]);
  pads[0] = expect("sink_3", "sink_3");
  for (GstPad* pad : pads) gst_element_release_request_pad(mixer.element(), pad), gst_object_unref(pad);
}

TEST(warns_of_pads_without_a_cell, Each::run) {
  struct Case {
    const char *settings, *text;  ///< no text: no warning
  };
  for (const Case& c : {Case{"layout=grid columns=2 rows=1",
                             "the grid of 2×1 cells shows 2 of 3 pads: set columns or rows to more, or to 0"},
                        Case{"layout=grid columns=2", ""}, Case{"layout=grid", ""}, Case{"columns=1 rows=1", ""},
                        Case{"layout=grid gap=40", ""}}) {
    at(c.settings);
    Mixer mixer(run, c.settings, "video/x-raw,width=32,height=32");
    for (int i = 0; i < 3; ++i) mixer.add(rated("RGB", {16, 8}, 25));
    mixer.play();
    for (int i = 0; i < 3; ++i)
      for (int n = 0; n < 2; ++n) mixer.push(i, noise(mixer.video(i)));
    mixer.next();
    EXPECT_EQ(mixer.warning(0).text, std::string(c.text));
    mixer.finish();
    EXPECT_EQ(mixer.warning(0).text, "");
  }
}

TEST(refuses_a_variable_framerate_downstream, Each::run) {
  const Size size{16, 8};
  const std::string source = rated("GRAY8", size, 25), still = rated("GRAY8", size, 0),
                    sentence = "the framerate downstream is 0/1";
  for (const std::string& second : {source, still}) {
    at("with " + second);
    Mixer mixer(run, "", "video/x-raw,framerate=0/1", {source, second});
    mixer.play();
    for (int input : {0, 1}) mixer.push(input, noise(mixer.video(input))), mixer.end(input);
    EXPECT_CONTAINS(mixer.error(patience).text, sentence);
  }
  at("in the middle of a stream");
  Mixer mixer(run, "", "video/x-raw,framerate=25/1");
  const int input = mixer.add(source);
  mixer.play();
  mixer.push(input, noise(mixer.video(input))), mixer.push(input, noise(mixer.video(input)));
  mixer.next();
  mixer.want("video/x-raw,framerate=0/1");
  std::string text;
  for (int i = 0; i < 100 && text.empty(); ++i) {
    GstFlowReturn flow;
    Buffer frame = noise(mixer.video(input));
    GST_BUFFER_PTS(frame.get()) = GstClockTime(i + 2) * frame_time, GST_BUFFER_DURATION(frame.get()) = frame_time;
    g_signal_emit_by_name(mixer.source(input), "push-buffer", frame.get(), &flow);
    text = mixer.error(patience / 100).text;
  }
  EXPECT_CONTAINS(text, sentence);
}

TEST(continues_when_a_live_source_sends_nothing, Each::run) {
  for (bool ignore : {false, true}) {
    at(ignore ? "ignore-inactive-pads=true" : "");
    GstElement* element =
        gst_element_factory_make_full(run.element.c_str(), "force-live", TRUE, "ignore-inactive-pads", ignore, nullptr);
    EXPECT(element);
    set(element, "backend=" + run.backend);
    Mixer mixer(with_shared_context(element, run), caps_text("RGB", {16, 16}));
    mixer.add(caps_text("RGB", {16, 16}));
    mixer.add(caps_text("RGB", {16, 16}), "xpos=8");  // gets no frames
    mixer.play();
    mixer.push(0, flat(mixer.video(0), {100}));
    // GstVideoAggregator restarts if caps arrive after the first frame was due. The second frame then has the timestamp
    // of the first, as in compositor.
    mixer.next(), mixer.next();
    GstClockTime last = mixer.next().pts;
    for (int i = 0; i < 5; ++i) {
      const Output output = mixer.next();
      EXPECT_EQ(output.pts, last + frame_time);
      last = output.pts;
    }
  }
}

int main() { return run_tests("blend_changes", "cudablend"); }
