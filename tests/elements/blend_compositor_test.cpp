// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudablend with GStreamer's compositor on the same frames: properties, pictures, scaling, timing, gaps,
// interlacing.
#include <algorithm>
#include <thread>

#include "tests/elements/mixer.hpp"

using namespace cudavision::test;

// Properties ----------------------------------------------------------------------------------------------------------

TEST(has_every_property_of_compositor, Each::element) {
  if (!have_compositor()) return;
  Mixer own(run), theirs(compositor);
  for (int i = 0; i < 3; ++i) own.add(caps_text("RGB", {8, 8})), theirs.add(caps_text("RGB", {8, 8}));
  const auto compare = [&](gpointer actual, gpointer expected) {
    each_property(expected, [&](GParamSpec* spec) {
      const std::string name = spec->name;
      if (name == "name" || name == "parent" || name == "max-threads" || name == "converter-config" || name == "caps" ||
          name == "template" || name == "direction" || name == "offset")
        return;
      at(name);
      GParamSpec* same_spec = g_object_class_find_property(G_OBJECT_GET_CLASS(actual), spec->name);
      EXPECT(same_spec);
      EXPECT_EQ(value_text(actual, same_spec), value_text(expected, spec));
      if (spec->flags & GST_PARAM_CONTROLLABLE) EXPECT(same_spec->flags & GST_PARAM_CONTROLLABLE);
      if (!G_IS_PARAM_SPEC_ENUM(spec)) return;
      const auto* rows = G_PARAM_SPEC_ENUM(spec)->enum_class;
      for (guint i = 0; i < rows->n_values; ++i) {
        GEnumValue* row =
            g_enum_get_value_by_nick(G_PARAM_SPEC_ENUM(same_spec)->enum_class, rows->values[i].value_nick);
        FAIL_UNLESS(row, "%s: there is no %s", where().c_str(), rows->values[i].value_nick);
        EXPECT_EQ(row->value, rows->values[i].value);  // applications may also use the numbers
      }
    });
  };
  compare(own.element(), theirs.element());
  for (int i = 0; i < 3; ++i) {
    compare(own.pad(i), theirs.pad(i));
    EXPECT_EQ(std::string(GST_OBJECT_NAME(own.pad(i))), GST_OBJECT_NAME(theirs.pad(i)));
  }
}

// Like compositor -----------------------------------------------------------------------------------------------------

TEST(equals_compositor, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGBA", "BGRA", "ARGB", "ABGR", "RGB", "BGR", "RGBx", "I420", "NV12", "Y444", "GRAY8"})
    for (const char* op : {"source", "over", "add"})
      for (const char* background : {"black", "white", "checker", "transparent"}) {
        const bool has_alpha = std::string(format).find('A') != std::string::npos && format != std::string("GRAY8");
        if (!has_alpha && background == std::string("transparent")) continue;
        at(format + std::string(" ") + op + " on " + background);
        const std::string with = std::string("operator=") + op + " ";
        expect_compositor(run, std::string("background=") + background, caps_text(format, {96, 64}),
                          {{caps_text(format, {64, 48})},
                           {caps_text(format, {40, 32}), with + "xpos=30 ypos=10 alpha=0.65"},
                           {caps_text(format, {40, 32}), with + "xpos=70 ypos=40 alpha=1"},
                           {caps_text(format, {40, 32}), with + "xpos=-12 ypos=-6 alpha=0.3"},
                           {caps_text(format, {16, 16}), with + "xpos=2 ypos=2 alpha=0"}},
                          // compositor makes gray from another format in its last step. compositor 1.22 wraps around to
                          // 0 if the sum of alphas exceeds the maximum.
                          format == std::string("GRAY8") ? 2 : 1,
                          background != std::string("transparent") || op != std::string("add"));
      }
}

TEST(equals_compositor_in_order_and_size, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGBA", "BGRA", "RGB", "I420", "NV12"}) {
    at(format);
    const std::vector<int> a{200, 90, 60, 255}, b{60, 150, 200, 255}, c{120, 30, 140, 255};
    const auto flats = [&](const char* pa, const char* pb, const char* pc) {
      return std::vector<Layer>{{caps_text(format, {32, 24}), pa, a},
                                {caps_text(format, {40, 30}), pb, b},
                                {caps_text(format, {16, 60}), pc, c}};
    };
    const std::string out = caps_text(format, {96, 64});
    expect_compositor(run, "background=black", out, flats("zorder=9", "xpos=8 ypos=8 zorder=4", "xpos=20 zorder=5"));
    expect_compositor(run, "background=black", out, flats("zorder=3", "xpos=8 ypos=8 zorder=3", "xpos=20 zorder=3"));
    // Original and scaled sizes. The scaling method has no effect on flat pictures, except that compositor changes some
    // values from 120 to 122.
    const int scaled_tolerance = 3;
    expect_compositor(run, "background=black", out,
                      flats("width=64 height=48", "width=20 xpos=40", "height=20 xpos=60 ypos=10 alpha=0.5"),
                      scaled_tolerance);
    expect_compositor(run, "background=black", out,
                      flats("width=0 height=48", "width=-1 height=0 xpos=40", "xpos=60 width=1000"), scaled_tolerance);
    expect_compositor(run, "background=black zero-size-is-unscaled=false", out,
                      flats("width=0 height=48", "width=-1 xpos=40", "xpos=60 height=0"), scaled_tolerance);
    if (format == std::string("I420") || format == std::string("NV12"))
      continue;  // compositor supports only even positions for these formats
    for (const char* box : {"width=60 height=60", "width=80 height=20", "width=20 height=64", "width=12",
                            "width=49 height=37", "width=7 height=31"}) {
      at(format + std::string(" ") + box);
      const std::string pad = std::string(box) + " sizing-policy=keep-aspect-ratio";
      expect_compositor(run, "background=black", out, flats(pad.c_str(), "alpha=0", "alpha=0"), scaled_tolerance);
      expect_compositor(run, "background=black", out, flats("alpha=0", "alpha=0", pad.c_str()), scaled_tolerance);
    }
  }
}

namespace {

void expect_compositor_that_scales(const Run& run, const char* interpolation, GstVideoResamplerMethod method,
                                   const char* format, Size box, const std::string& pad, int tolerance) {
  at(interpolation + std::string(" ") + format + " to " + std::to_string(box.width) + "x" + std::to_string(box.height));
  const auto played = [&](const Run& of) {
    Mixer mixer(of, "background=black", caps_text(format, {96, 64}));
    const std::vector<Layer> layers{{caps_text(format, {96, 64})},
                                    {caps_text(format, {33, 25}), pad + " width=" + std::to_string(box.width) +
                                                                      " height=" + std::to_string(box.height)}};
    for (const Layer& layer : layers) mixer.add(layer.caps, layer.pad);
    if (of.element == run.element) {
      set(mixer.element(), std::string("interpolation=") + interpolation);
    } else {
      g_autoptr(GstStructure) config = gst_structure_new("GstVideoConverter", GST_VIDEO_CONVERTER_OPT_RESAMPLER_METHOD,
                                                         GST_TYPE_VIDEO_RESAMPLER_METHOD, method, nullptr);
      g_object_set(mixer.pad(1), "converter-config", config, nullptr);
    }
    mixer.play();
    feed(mixer, layers);
    return mixer.rest();
  };
  expect_compositor(run, played, tolerance);
}

}  // namespace

/// With nearest-pixel scaling the pictures are equal. By default compositor uses a cubic filter. Its linear weights
/// have only 6 or 7 bits. When it enlarges the width of 4-byte pixels or planes, it maps the first pixel to the first
/// and the last to the last, so these formats are compared with a changed height only.
TEST(equals_compositor_in_scaling, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGBA", "BGRA", "RGB", "Y444"})
    for (Size box : {Size{64, 48}, {31, 20}, {90, 7}, {12, 60}})
      expect_compositor_that_scales(run, "nearest", GST_VIDEO_RESAMPLER_METHOD_NEAREST, format, box,
                                    "xpos=4 ypos=2 alpha=0.7", 1);
  const auto expect_linear = [&](const char* format, Size box, int tolerance) {
    expect_compositor_that_scales(run, "bilinear", GST_VIDEO_RESAMPLER_METHOD_LINEAR, format, box, "xpos=4 ypos=2",
                                  tolerance);
  };
  for (const char* format : {"RGBA", "BGRA", "RGB", "Y444", "GRAY8"})
    for (int height : {26, 37, 48, 50, 60}) expect_linear(format, {33, height}, 2);
  for (Size box : {Size{64, 48}, {66, 50}, {66, 25}, {90, 60}, {40, 60}, {92, 62}}) expect_linear("RGB", box, 3);
}

TEST(equals_compositor_in_the_size_of_the_output, Each::run) {
  if (!have_compositor()) return;
  for (const char* pads : {"", "xpos=30 ypos=50", "width=200 height=10", "xpos=-10 ypos=-4", "alpha=0 xpos=100"}) {
    at(pads);
    const std::vector<Layer> layers{{caps_text("RGB", {64, 48}), "", {10, 20, 30}},
                                    {caps_text("RGB", {31, 17}), pads, {90, 80, 70}}};
    expect_compositor(run, "", "", layers);
  }
  at("pixels that are not square");
  const std::string wide = ",pixel-aspect-ratio=2/1";
  for (const char* pad : {"", "width=60 height=40 sizing-policy=keep-aspect-ratio", "width=60 height=40"})
    expect_compositor(run, "background=black", caps_text("RGB", {96, 64}, ",pixel-aspect-ratio=1/1"),
                      {{caps_text("RGB", {20, 20}, wide), pad, {255, 0, 0}}});
  // Downstream requires a pixel aspect ratio, which determines the size.
  for (const char* shape : {"2/1", "1/3", "[2/1,4/1]", "{4/3,16/15}"}) {
    at(shape);
    expect_compositor(
        run, "background=black", std::string("video/x-raw,format=RGB,pixel-aspect-ratio=") + shape,
        {{caps_text("RGB", {60, 40}, wide), "", {255, 0, 0}}, {caps_text("RGB", {30, 48}), "", {0, 9, 0}}});
  }
}

TEST(equals_compositor_in_timing, Each::run) {
  if (!have_compositor()) return;
  struct Case {
    const char *name, *settings;
    std::vector<Layer> layers;
  };
  const Size size{32, 24};
  const std::string half = "xpos=8 alpha=0.5";
  for (const Case& c : {
           Case{"one rate", "", {{rated("RGBA", size, 25), "", 5}, {rated("RGBA", size, 25), half, 5}}},
           {"slower above", "", {{rated("RGBA", size, 30), "", 12}, {rated("RGBA", size, 10), half, 4}}},
           {"faster above", "", {{rated("RGBA", size, 10), "", 4}, {rated("RGBA", size, 25), half, 10}}},
           {"rates that share nothing", "", {{rated("RGBA", size, 24), "", 8}, {rated("RGBA", size, 25), half, 8}}},
           {"one ends early", "", {{rated("RGBA", size, 25), "", 8}, {rated("RGBA", size, 25), half, 3}}},
           {"one ends early, and stays",
            "",
            {{rated("RGBA", size, 25), "", 8}, {rated("RGBA", size, 25), half + " repeat-after-eos=true", 3}}},
           {"one begins late",
            "",
            {{rated("RGBA", size, 25), "", 8}, {rated("RGBA", size, 25), half, 3, 3 * frame_time}}},
           {"all begin late",
            "start-time-selection=first",
            {{rated("RGBA", size, 25), "", 4, 2 * frame_time}, {rated("RGBA", size, 25), half, 3, 3 * frame_time}}},
           {"a time to start", "start-time-selection=set start-time=80000000", {{rated("RGBA", size, 25), "", 6}}},
           {"a last frame that fades from view",
            "",
            {{rated("RGBA", size, 25), "", 10},
             {rated("RGBA", size, 5), half + " max-last-buffer-repeat=80000000", 2}}},
           {"of no rate",
            "",
            {{rated("RGBA", size, 25), "", 4}, {rated("RGBA", size, 0), half + " repeat-after-eos=true", 1}}},
       }) {
    at(c.name);
    expect_compositor(run, c.settings, "", c.layers);
  }
  at("a rate asked for");
  expect_compositor(run, "", rated("RGBA", size, 50),
                    {{rated("RGBA", size, 25), "", 4}, {rated("RGBA", size, 10), half, 2}});
}

namespace {

/// Feeds a pad with one item for each letter of a script: '.' a frame, 'u' a frame of unknown duration, '-' a gap
/// event, '?' a gap event of unknown duration, '=' an empty buffer with the GAP flag, 'm' an empty buffer with a
/// missing-data meta, ' ' nothing, and a digit a gap event with the length of that many frames.
void perform(Mixer& mixer, int input, const std::string& script) {
  const GstClockTime step = frame_time;
  GstClockTime time = 0;
  unsigned number = 0;
  for (const char letter : script) {
    const int frames = letter >= '2' && letter <= '9' ? letter - '0' : 1;
    const GstClockTime duration = letter == 'u' || letter == '?' ? GST_CLOCK_TIME_NONE : step * guint64(frames);
    const bool frame = letter == '.' || letter == 'u';
    Buffer buffer = frame ? noise(mixer.video(input), unsigned(100 * input) + number++) : Buffer(gst_buffer_new());
    GST_BUFFER_PTS(buffer.get()) = time;
    GST_BUFFER_DURATION(buffer.get()) = duration;
    if (letter == '=' || letter == 'm')
      GST_BUFFER_FLAG_SET(buffer.get(), GST_BUFFER_FLAG_GAP | GST_BUFFER_FLAG_DROPPABLE);
    if (letter == 'm') EXPECT(gst_buffer_add_custom_meta(buffer.get(), "GstAggregatorMissingDataMeta"));
    if (!frame && letter != '=' && letter != 'm') GST_BUFFER_FLAG_SET(buffer.get(), as_gap_event);
    if (letter != ' ') mixer.push_as_it_is(input, buffer);
    time += step * guint64(frames);
  }
  mixer.end(input);
}

/// Expects the frames of compositor in each case: a script of the lowest pad, or of two pads separated by "/".
void expect_compositor_performing(const Run& run, const std::vector<std::string>& cases,
                                  const std::string& beside = "xpos=8 alpha=0.5") {
  for (const std::string& scripts : cases)
    for (const std::string& above : {std::string(), beside}) {
      const std::size_t slash = scripts.find('/');
      if (slash == std::string::npos && !above.empty()) continue;
      at("'" + scripts + "' " + above);
      expect_compositor(run, [&](const Run& of) {
        Mixer mixer(of, "background=white");
        const bool two = slash != std::string::npos;
        for (int i = 0; i < 1 + two; ++i) mixer.add(caps_text("RGB", {32, 24}), i ? above : "");
        mixer.play();
        perform(mixer, 0, scripts.substr(0, slash));
        if (two) perform(mixer, 1, scripts.substr(slash + 1));
        return mixer.rest();
      });
    }
}

}  // namespace

TEST(equals_compositor_with_gaps, Each::run) {
  if (!have_compositor()) return;
  expect_compositor_performing(  // gap events
      run, {"--....",        "..--..",        "....--",        "----",          ".3.",           "?...",
            "..?...",        "...?",          "....../--....", "....../..--..", "....../....--", "....../------",
            "--..../......", "..--../......", "....--/......", "------/......", "--..../--....", "..--../..--..",
            "....--/....--", "----/----",     ".-.-.-/-.-.-.", "....../.4.",    "....../.9",     "....../..?...",
            "....../?.....", "....../.....?", "....../.  -.."});
  expect_compositor_performing(run, {"......../..   .."}, "xpos=8 max-last-buffer-repeat=0");
  expect_compositor_performing(run, {"==..=.=", "====", "..mm..", "....../==..==", "..==../......", "..==../..==..",
                                     "....../..mm..", "....../.m=-.."});
  for (const char* beside : {"xpos=8 alpha=0.5", "xpos=8 alpha=0.5 max-last-buffer-repeat=40000000"})
    expect_compositor_performing(run,
                                 {"uuuuuu", "..u...", ".....u", "u", "u  u", "....../uuuuuu", "uuuuuu/......",
                                  "uuuuuu/uuuuuu", "....../u  u", "....../u", "u/......", "....../uu.-uu"},
                                 beside);
}

namespace {

/// Waits for a stream format error that contains these texts.
void expect_format_error(Mixer& mixer, const char* pad, const char* part) {
  const Message message = mixer.error(patience);
  EXPECT_EQ(message.domain, GST_STREAM_ERROR);
  EXPECT_EQ(message.code, int(GST_STREAM_ERROR_FORMAT));
  EXPECT_CONTAINS(message.text, pad);
  EXPECT_CONTAINS(message.text, part);
}

}  // namespace

/// compositor posts no error. The source posts one when it sends its next frame, but not in all versions of GStreamer.
TEST(reports_a_frame_without_timestamp, Each::run) {
  for (int good : {0, 2}) {
    at("after " + std::to_string(good) + " frames");
    Mixer mixer(run, "", "", {caps_text("RGB", {32, 24}), caps_text("RGB", {32, 24})});
    for (int round = 0; round < 2; ++round) {
      mixer.play();
      mixer.rewind();
      for (int i = 0; i < 2; ++i)
        for (int n = 0; n < good; ++n) mixer.push(i, noise(mixer.video(i)));
      for (int n = 0; n < good; ++n) EXPECT_EQ(mixer.next().pts, guint64(n) * frame_time);
      for (int n = 0; n < 3; ++n) mixer.push(0, noise(mixer.video(0)));
      for (int n = 0; n < 2; ++n) {
        const Buffer frame = noise(mixer.video(1));
        GST_BUFFER_PTS(frame.get()) = GST_CLOCK_TIME_NONE;
        mixer.push_as_it_is(1, frame);
      }
      expect_format_error(mixer, "sink_1", "timestamp");
      mixer.state(GST_STATE_NULL);
      mixer.forget_messages();
    }
  }
}

/// compositor aborts here.
TEST(reports_a_segment_that_cannot_be_placed_in_time, Each::run) {
  GstSegment bytes;
  gst_segment_init(&bytes, GST_FORMAT_BYTES);
  for (const auto& [segment, part] : {std::pair{gst_event_new_segment(&bytes), "bytes"},
                                      {new_segment([](GstSegment& s) { s.rate = -1; }), "time"},
                                      {new_segment([](GstSegment& s) { s.base = G_MAXUINT64 - 2; }), "time"},
                                      {new_segment([](GstSegment& s) { s.start = G_MAXUINT64 - 2; }), "time"}}) {
    Mixer mixer(run, "", "", {caps_text("RGB", {32, 24})});
    EXPECT(gst_pad_send_event(mixer.play_without_source(0), segment));
    expect_format_error(mixer, "sink_0", part);
  }
}

/// The offset of a pad shifts its frames in time. Frames before time 0 are dropped. compositor aborts at negative
/// offsets.
TEST(honours_pad_offsets, Each::run) {
  for (int offset : {-3, -1, 0, 2, -20}) {
    at("an offset of " + std::to_string(offset) + " frames");
    Mixer mixer(run, "background=black", caps_text("RGB", {32, 24}));
    for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {32, 24}));
    gst_pad_set_offset(mixer.pad(1), offset * gint64(frame_time));
    mixer.play();
    for (int n = 0; n < 8; ++n) {
      mixer.push(0, flat(mixer.video(0), {10}));
      mixer.push(1, flat(mixer.video(1), {100 + n}));
    }
    const std::vector<Output> all = mixer.finish();
    EXPECT_EQ(all.size(), std::size_t(8 + std::max(offset, 0)));
    for (int n = 0; n < int(all.size()); ++n) {
      EXPECT_EQ(all[std::size_t(n)].pts, guint64(n) * frame_time);
      const int shown = n - offset;
      EXPECT_EQ(sample(all[std::size_t(n)].shown(), 0, 3, 3), shown < 0 || shown >= 8 ? 10 : 100 + shown);
    }
    EXPECT(mixer.error(0).text.empty());
  }
}

/// The offset also applies with other rates and segments.
TEST(honours_pad_offsets_in_segments, Each::run) {
  struct Case {
    double rate;
    int before;    // frames before running time 0
    int first;     // the first visible frame, which has running time 0
    unsigned all;  // frames of output
  };
  for (const auto& [rate, before, first, count] :
       {Case{1, 1, 3, 7}, {2, 1, 4, 3}, {-1, 1, 8, 7}, {-1, 7, 2, 1}, {-1, 8, 0, 0}, {-1, 20, 0, 0}}) {
    at("rate " + std::to_string(rate) + ", " + std::to_string(before) + " frames before");
    Mixer mixer(run, "background=black", caps_text("RGB", {32, 24}), {caps_text("RGB", {32, 24})});
    GstPad* const pad = mixer.play_without_source(0);
    if (rate > 0) gst_pad_set_offset(pad, -before * gint64(frame_time));  // in running time
    EXPECT(gst_pad_send_event(pad, new_segment([&, rate = rate, before = before](GstSegment& segment) {
                                segment.rate = rate;
                                segment.start = segment.time = 2 * frame_time, segment.stop = 10 * frame_time;
                                // GStreamer would convert the offset of a pad to another one.
                                if (rate < 0) segment.offset = guint64(before) * frame_time;
                              })));
    std::thread source([&, forwards = rate > 0] {  // pushing a frame waits for the previous one
      for (int i = 0; i < 12; ++i) {
        const int n = forwards ? i : 11 - i;
        const Buffer frame = timed(flat(mixer.video(0), {100 + n}), guint64(n) * frame_time);
        if (gst_pad_chain(pad, gst_buffer_ref(frame.get())) != GST_FLOW_OK) break;
      }
      gst_pad_send_event(pad, gst_event_new_eos());
    });
    const std::vector<Output> all = mixer.rest();
    source.join();
    EXPECT_EQ(all.size(), count);
    if (count > 0) EXPECT_EQ(sample(all[0].shown(), 0, 3, 3), 100 + first);
    EXPECT(mixer.error(0).text.empty());
  }
}

namespace {

constexpr guint field_flags = GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF,
                all_field_flags = field_flags | GST_VIDEO_BUFFER_FLAG_RFF | GST_VIDEO_BUFFER_FLAG_ONEFIELD;

guint flags_of_fields(int number) {
  constexpr guint flags[] = {GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF,
                             GST_VIDEO_BUFFER_FLAG_INTERLACED,
                             GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF | GST_VIDEO_BUFFER_FLAG_RFF,
                             0,
                             GST_VIDEO_BUFFER_FLAG_RFF,
                             GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_ONEFIELD};
  return flags[number % 6];
}

/// Six frames with different field flags, starting with flags_of_fields(first).
Layer of_fields(const std::string& format, Size size, const std::string& mode, const std::string& pad, int first) {
  Layer layer(caps_text(format, size, ",interlace-mode=" + mode), pad, 6);
  layer.draw = [first](const GstVideoInfo& video, int n) {
    Buffer frame = noise(video, unsigned(10 * first + n));
    GST_BUFFER_FLAG_SET(frame.get(), flags_of_fields(first + n));
    return frame;
  };
  return layer;
}

}  // namespace

TEST(equals_compositor_with_interlaced_pads, Each::run) {
  if (!have_compositor()) return;
  for (const char* format : {"RGB", "I420"})
    for (const char* mode : {"interleaved", "mixed", "fields"})
      for (const std::string& out : {std::string(), std::string("progressive"), std::string(mode)}) {
        at(format + std::string(" ") + mode + " to " + out);
        const std::string caps = out.empty() ? "" : "video/x-raw,interlace-mode=" + out;
        const std::vector<Layer> layers{of_fields(format, {32, 24}, mode, "", 0),
                                        of_fields(format, {16, 12}, mode, "xpos=8 ypos=6", 3)};
        const std::vector<Output> actual = play(run, "background=black", caps, layers),
                                  expected = play(compositor, "background=black", caps, layers);
        EXPECT_EQ(actual.size(), 6u);
        expect_same(actual, expected, 1);
        for (std::size_t n = 0; n < actual.size(); ++n) {
          // compositor outputs progressive caps whenever downstream allows, and never sets field flags.
          if (!out.empty()) EXPECT(gst_video_info_is_equal(&actual[n].video, &expected[n].video));
          EXPECT_EQ(std::string(gst_video_interlace_mode_to_string(GST_VIDEO_INFO_INTERLACE_MODE(&actual[n].video))),
                    out.empty() ? mode : out);
          const guint flags = out == "progressive" ? 0 : flags_of_fields(int(n)) & field_flags;
          EXPECT_EQ(GST_BUFFER_FLAGS(actual[n].buffer.get()) & all_field_flags, flags);
        }
      }
}

/// Pads have different interlace modes, from the start or after a change of caps. compositor drops such pads or
/// crashes.
TEST(mixes_interlaced_and_progressive_pads, Each::run) {
  const auto made = [&](const std::string& format, const std::string& below, const std::string& above,
                        const std::string& out) {
    // With these heights, 4:2:0 planes have other offsets when interlaced.
    const auto caps = [&](Size size, const std::string& mode) {
      return caps_text(format, size, ",interlace-mode=" + mode);
    };
    Mixer mixer(run, "background=black", out.empty() ? "" : "video/x-raw,interlace-mode=" + out);
    mixer.add(caps({32, 22}, below));
    mixer.add(caps({16, 10}, above), "alpha=0.5");
    mixer.play();
    for (int round = 0; round < 2; ++round) {
      for (int n = 0; n < 2; ++n)
        for (int i = 0; i < 2; ++i) mixer.push(i, noise(mixer.video(i), unsigned(8 * round + 2 * n + i)));
      if (round == 0) mixer.caps_of(0, caps({32, 18}, above)), mixer.caps_of(1, caps({8, 6}, below));
    }
    return mixer.finish();
  };
  const std::string modes[] = {"progressive", "interleaved", "mixed"};
  for (const char* format : {"RGB", "I420"}) {
    const std::vector<Output> progressive = made(format, modes[0], modes[0], "");
    EXPECT_EQ(progressive.size(), 4u);
    for (const std::string& below : modes)
      for (const std::string& above : modes)
        for (const std::string& out : {std::string(), modes[0], modes[1]}) {
          at(format + std::string(" ") + below + " below " + above + " to " + out);
          const std::vector<Output> all = made(format, below, above, out);
          expect_same(all, progressive, 0);
          for (std::size_t n = 0; n < all.size(); ++n)
            EXPECT_EQ(std::string(gst_video_interlace_mode_to_string(GST_VIDEO_INFO_INTERLACE_MODE(&all[n].video))),
                      !out.empty() ? out
                      : n < 2      ? below
                                   : above);
        }
  }
}

/// New caps do not affect the output before their first frame is due.
TEST(stays_progressive_while_interlaced_frames_wait, Each::run) {
  Mixer mixer(run, "background=black", "video/x-raw,interlace-mode=progressive",
              {caps_text("RGB", {32, 24}, ",interlace-mode=interleaved"), caps_text("RGB", {16, 12})});
  mixer.play();
  mixer.push(1, flat(mixer.video(1), {200}));
  mixer.caps_of(1, caps_text("RGB", {8, 6}, ",interlace-mode=interleaved"));
  mixer.skip_to(1, 5 * frame_time);
  mixer.push(1, flat(mixer.video(1), {200}));
  for (int n = 0; n < 6; ++n) {
    Buffer frame = flat(mixer.video(0), {100});
    GST_BUFFER_FLAG_SET(frame.get(), field_flags);
    mixer.push(0, std::move(frame));
  }
  const std::vector<Output> all = mixer.finish();
  EXPECT_EQ(all.size(), 6u);
  for (const Output& output : all) {
    EXPECT_EQ(GST_BUFFER_FLAGS(output.buffer.get()) & all_field_flags, 0u);
    EXPECT(GST_VIDEO_INFO_INTERLACE_MODE(&output.video) == GST_VIDEO_INTERLACE_MODE_PROGRESSIVE);
  }
}

TEST(passes_the_field_order, Each::run) {
  for (const char* order : {"top-field-first", "bottom-field-first"}) {
    at(order);
    const std::vector<Output> all = play(
        run, "", "", {{caps_text("RGB", {32, 24}, ",interlace-mode=interleaved,field-order=" + std::string(order))}});
    EXPECT_EQ(all.size(), 1u);
    EXPECT_EQ(std::string(gst_video_field_order_to_string(GST_VIDEO_INFO_FIELD_ORDER(&all[0].video))),
              std::string(order));
  }
}

TEST(equals_compositor_through_a_change_of_caps, Each::run) {
  if (!have_compositor()) return;
  for (const char* out : {"", "video/x-raw,format=RGBA,width=80,height=60,framerate=25/1"})
    for (const char* pad : {"xpos=10 ypos=10", "xpos=10 width=20 height=20"}) {
      at(out + std::string(" ") + pad);
      expect_compositor(run, [&](const Run& of) {
        Mixer mixer(of, "background=black", out);
        for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGBA", {32, 24}), i ? pad : "");
        mixer.play();
        for (int n = 0; n < 9; ++n) {
          mixer.push(0, noise(mixer.video(0), unsigned(n)));
          if (n % 3 == 0)
            mixer.caps_of(1, caps_text("RGBA", n == 0 ? Size{16, 16} : n == 3 ? Size{70, 40} : Size{24, 8}));
          mixer.push(1, flat(mixer.video(1), {20 * n, 250 - 20 * n, 100, 200}));
        }
        return mixer.finish();
      });
    }
}

TEST(equals_compositor_with_controlled_properties, Each::run) {
  if (!have_compositor()) return;
  std::vector<Output> made[2];
  const Run runs[2] = {run, compositor};
  for (int r = 0; r < 2; ++r) {
    Mixer mixer(runs[r], "background=black");
    for (int i = 0; i < 2; ++i) mixer.add(caps_text("RGB", {32, 24}), i ? "zorder=3" : "zorder=2");
    control(mixer.pad(1), "alpha", 0, 1, 10 * frame_time, false);
    control(mixer.pad(1), "xpos", 0, 20, 10 * frame_time, true);
    mixer.play();
    for (int i = 0; i < 2; ++i)
      for (int n = 0; n < 11; ++n) mixer.push(i, flat(mixer.video(i), {200 * i, 100, 255 - 200 * i}));
    made[r] = mixer.finish();
  }
  EXPECT_EQ(made[0].size(), 11u);
  expect_same(made[0], made[1], 1);
  // the formula of a cross-fade
  for (std::size_t n = 0; n < 11; ++n)
    EXPECT(std::abs(sample(made[0][n].shown(), 0, 25, 12) - 200 * double(n) / 10) <= 2);
}

int main() { return run_tests("blend_compositor", "cudablend"); }
