// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the properties of all elements as generic tools use them, from their GParamSpecs alone: an element accepts
// every value in the range, or names the value that it refuses in one sentence.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/core/status.hpp"
#include "tests/elements/line.hpp"

using namespace cudavision::test;

namespace {

/// Values in the range of properties that also need another setting, or have no effect, as the element's page
/// documents.
struct Documented {
  const char *element, *properties;
  const char* text;    ///< part of the message
  bool error = false;  ///< an error at start; always a warning while playing

  bool of(const std::string& property) const {
    return (" " + std::string(properties) + " ").find(" " + property + " ") != std::string::npos;
  }
};
const Documented documented[] = {
    {"cudaconvolve", "kernel-width kernel-height anchor-x anchor-y", "has no effect: without weights"},
    {"cudaconvolve", "anchor-x anchor-y", "counts as"},
    {"cudaconvolve", "border-value", "has no effect with border=reflect-101"},
    {"cudadiff",
     "learning-rate history variance-threshold light-compensation absorb-time noise-limit shadows shadow-threshold",
     "has no effect with reference=previous"},
    {"cudadiff", "min-area", "cells of a frame: there are no regions"},
    {"cudadiff", "motion-threshold", "is above light-change-ratio"},
    {"cudadiff", "region", "use mask-regions", true},
    {"cudagaussian", "border-value", "has no effect with border=reflect-101"},
    {"cudagaussian", "kernel-size kernel-width kernel-height", "it must be odd", true},
    {"cudagaussian", "sigma sigma-x sigma-y", "is so large that even 255 taps"},
    {"cudahistogram", "overlay-log overlay-opacity", "has no effect with overlay=false"},
    {"cudahistogram", "watch-time", "has no effect with watch=false"},
    {"cudaintegral", "radius", "counts as 16"},
    {"cudaintegral", "radius search-radius sensitivity strength", "has no effect with output=passthrough"},
    {"cudaintegral", "region", "set region=frame", true},
    {"", "region-margin region-shape", "has no effect with region=frame"},
    {"", "cuda-device-id", "runs on the processor"},
};

/// Settings that give an effect to properties for a GstControlSource that have none with the defaults.
struct Needed {
  const char *element, *property, *settings;
};
constexpr Needed needed[] = {
    {"cudablend", "columns", "layout=grid"},
    {"cudablend", "gap", "layout=grid columns=2"},
    {"cudablend", "rows", "layout=grid"},
    {"cudaconvolve", "anchor-x", "preset=sharpen"},
    {"cudaconvolve", "anchor-x", "weights=<1,2,3,4,5,6> kernel-width=2"},
    {"cudaconvolve", "anchor-y", "preset=unsharp"},
    {"cudaconvolve", "bias", "preset=sharpen"},
    {"cudaconvolve", "border-value", "preset=sharpen border=constant"},
    {"cudaconvolve", "divisor", "preset=sharpen"},
    {"cudadiff", "absorb-time", "reference=background threshold=0"},
    {"cudadiff", "history", "reference=mog2"},
    {"cudadiff", "learning-rate", "reference=background"},
    {"cudadiff", "noise-limit", "reference=background threshold=0"},
    {"cudadiff", "learning-rate", "reference=mog2"},
    {"cudadiff", "shadow-threshold", "reference=background shadows=drop"},
    {"cudadiff", "shadow-threshold", "reference=mog2 shadows=drop"},
    {"cudadiff", "threshold", ""},
    {"cudadiff", "threshold", "reference=background"},
    {"cudadiff", "variance-threshold", "reference=mog2"},
    {"cudagaussian", "border-value", "border=constant"},
    {"cudagaussian", "sigma", ""},
    {"cudagaussian", "sigma", "kernel-size=0"},
    {"cudagaussian", "sigma-x", "kernel-size=0"},
    {"cudagaussian", "sigma-y", "kernel-size=0"},
    {"cudahistogram", "overlay-opacity", "overlay=true"},
    {"cudahistogram", "watch-time", "watch=true"},
    {"cudaintegral", "radius", ""},
    {"cudaintegral", "radius", "output=box-mean"},
    {"cudaintegral", "radius", "output=deviation"},
    {"cudaintegral", "radius", "output=nlm search-radius=2"},
    {"cudaintegral", "radius", "output=pixelate"},
    {"cudaintegral", "radius", "output=threshold"},
    {"cudaintegral", "search-radius", "output=nlm radius=1"},
    {"cudaintegral", "sensitivity", "output=threshold"},
    {"cudaintegral", "strength", "output=nlm radius=1"},
};

/// Settings where one removes or limits the effect of another.
struct CutShort {
  const char *element, *settings, *text;  ///< no text: no warning
};
constexpr CutShort cut_short[] = {
    {"cudaconvolve", "weights=<1,2,1> kernel-width=3 kernel-height=1 anchor-x=5",
     "anchor-x counts as 2, the last column of the kernel"},
    {"cudaconvolve", "preset=box kernel-width=15",
     "kernel-width is 15, but has no effect: the kernel of preset=box has 3×3 weights; set weights to choose "
     "another kernel"},
    {"cudaconvolve", "preset=sharpen-5 kernel-height=7",
     "kernel-height is 7, but has no effect: the kernel of preset=sharpen-5 has 5×5 weights; set weights to "
     "choose another kernel"},
    {"cudaconvolve", "preset=custom kernel-width=5",
     "kernel-width is 5, but has no effect: without weights the kernel is the identity; set weights to choose "
     "another kernel"},
    {"cudaconvolve", "preset=custom anchor-y=2",
     "anchor-y is 2, but has no effect: without weights the kernel is the identity; set weights to choose "
     "another kernel"},
    {"cudaconvolve", "preset=sharpen anchor-y=3", "anchor-y counts as 2, the last row of the kernel"},
    {"cudaconvolve", "preset=sharpen anchor-y=2", ""},
    {"cudaconvolve", "weights=<0,1,0,1,2,1,0,1,0> preset=sharpen", "weights has no effect with preset=sharpen"},
    {"cudaconvolve", "preset=sharpen weights=<0,1,0,1,2,1,0,1,0>", ""},
    {"cudaconvolve", "preset=sharpen border-value=9", "border-value has no effect with border=reflect-101"},
    {"cudaconvolve", "preset=sharpen border-value=9 border=fill", ""},
    {"cudagaussian", "border-value=9 border=wrap kernel-size=5 sigma=5",
     "border-value has no effect with border=wrap; kernel-size=5 holds 38 % of the weight of sigma=5: 31 taps "
     "hold 99.8 %"},
    {"cudagaussian", "border-value=9 border=constant", ""},
    {"cudagaussian", "kernel-size=5 sigma=15",
     "kernel-size=5 holds 13 % of the weight of sigma=15: 91 taps hold 99.8 %"},
    {"cudagaussian", "sigma=15 kernel-size=5",
     "kernel-size=5 holds 13 % of the weight of sigma=15: 91 taps hold 99.8 %"},
    {"cudagaussian", "kernel-size=5 sigma=1000",
     "kernel-size=5 holds 0.2 % of the weight of sigma=1000: 255 taps, the maximum, hold 10 %"},
    {"cudagaussian", "kernel-size=255 sigma=1000", "kernel-size=255 holds 10 % of the weight of sigma=1000"},
    {"cudagaussian", "sigma=1000",
     "sigma is so large that even 255 taps, the maximum, hold less than 95 % of its weight"},
    {"cudagaussian", "kernel-size=0 sigma=66",
     "sigma is so large that even 255 taps, the maximum, hold less than 95 % of its weight"},
    {"cudagaussian", "sigma-x=70 kernel-height=3",
     "sigma-x is so large that even 255 taps, the maximum, hold less than 95 % of its weight"},
    {"cudagaussian", "sigma=3 kernel-width=3",
     "kernel-width=3 holds 38 % of the weight of sigma=3: 19 taps hold 99.8 %"},
    {"cudagaussian", "kernel-size=9 sigma=1 sigma-y=5 kernel-width=1",
     "kernel-width=1 holds 38 % of the weight of sigma=1: 7 taps hold 100 %; kernel-size=9 holds 63 % of the "
     "weight of sigma-y=5: 31 taps hold 99.8 %"},
    {"cudagaussian", "", ""},
    {"cudagaussian", "sigma=64", ""},
    {"cudagaussian", "sigma=5", ""},
    {"cudagaussian", "kernel-size=9 sigma=2", ""},
    {"cudagaussian", "kernel-size=31", ""},
    {"cudagaussian", "kernel-size=31 sigma=0.5", ""},
    {"cudahistogram", "overlay-log=true overlay-opacity=0.5 watch-time=3",
     "overlay-opacity, overlay-log have no effect with overlay=false; watch-time has no effect with watch=false"},
    {"cudahistogram", "post-messages=false interval=1000 bins=16 sharpness=true",
     "bins, sharpness have no effect with post-messages=false add-meta=false; interval has no effect with "
     "post-messages=false"},
    {"cudahistogram", "post-messages=false overlay=true bins=16 channels=all", ""},
    {"cudahistogram", "overlay=true overlay-position=400,16,100,100",
     "overlay-position is 400,16,100,100, where nothing is drawn: it lies outside the frame of 320×288"},
    {"cudahistogram", "overlay=true overlay-position=300,16,100,100", ""},
    {"cudaintegral", "radius=5", "radius has no effect with output=passthrough"},
    {"cudaintegral", "output=box-mean sensitivity=0.5 squared=true",
     "squared, sensitivity have no effect with output=box-mean"},
    {"cudaintegral", "output=nlm radius=17 search-radius=1", "radius counts as 16, the largest with output=nlm"},
    {"cudaintegral", "output=threshold radius=17 sensitivity=0.5", ""},
    {"cudaintegral", "squared=true channel=all", ""},
    {"cudadiff", "interval=2", ""},
    {"cudadiff", "reference=background learning-rate=0.5 threshold=3", ""},
    {"cudadiff", "reference=mog2 learning-rate=0.5 variance-threshold=25", ""},
    {"cudadiff", "reference=mog2 history=50", ""},
    {"cudadiff", "reference=median learning-rate=1 threshold=0 shadows=drop shadow-threshold=0.3", ""},
    {"cudadiff", "reference=median threshold=0 noise-limit=20 light-compensation=false absorb-time=3",
     "light-compensation, noise-limit, absorb-time have no effect with reference=median"},
    {"cudadiff", "reference=median history=50 interval=2", "interval, history have no effect with reference=median"},
    {"cudadiff", "learning-rate=-0.5", ""},
    {"cudadiff", "learning-rate=0", "learning-rate has no effect with reference=previous"},
    {"cudadiff", "learning-rate=0.5", "learning-rate has no effect with reference=previous"},
    {"cudadiff", "reference=first interval=2", "interval has no effect with reference=first"},
    {"cudadiff", "reference=background shadows=drop shadow-threshold=0.3", ""},
    {"cudadiff", "reference=background threshold=0 noise-limit=20", ""},
    {"cudadiff", "reference=background threshold=9 noise-limit=20", "noise-limit has no effect with threshold=9"},
    {"cudadiff", "reference=background threshold=0 light-compensation=false", ""},
    {"cudadiff", "reference=background light-compensation=false", "light-compensation has no effect with threshold=15"},
    {"cudadiff", "reference=mog2 light-compensation=false", "light-compensation has no effect with reference=mog2"},
    {"cudadiff", "reference=background shadow-threshold=0.3", "shadow-threshold has no effect with shadows=keep"},
    {"cudadiff", "reference=mog2 shadow-threshold=0.3", "shadow-threshold has no effect with shadows=keep"},
    {"cudadiff", "reference=first shadows=drop shadow-threshold=0.3",
     "shadows, shadow-threshold have no effect with reference=first"},
    {"cudadiff", "reference=mog2 history=50 learning-rate=0.1", "history has no effect with learning-rate=0.1"},
    {"cudadiff", "gain=2 mode=signed", ""},
    {"cudadiff", "output=mask gain=2 mode=signed", "mode, gain have no effect with output=mask"},
    {"cudadiff", "output=overlay gain=2", "gain has no effect with output=overlay"},
    {"cudadiff", "track-min-frames=2 track-hold=0.5 zones=\"a: 0,0 9,0 9,9\" lines=\"a: 0,0 9,9\"", ""},
    {"cudadiff", "track=false track-min-frames=2 track-hold=0.5 zones=\"a: 0,0 9,0 9,9\" lines=\"a: 0,0 9,9\"",
     "track-min-frames, track-hold, zones, lines have no effect with track=false"},
    {"cudadiff", "message-interval=1000000000", ""},
    {"cudadiff", "post-messages=false message-interval=1000000000",
     "message-interval has no effect with post-messages=false"},
    {"cudadiff", "interval=2 history=50 reference=first gain=2 output=passthrough",
     "interval, history have no effect with reference=first; gain has no effect with output=passthrough"},
    {"cudadiff", "shadows=drop", "shadows has no effect with reference=previous"},
    {"cudadiff", "reference=mog2 threshold=3", "threshold has no effect with reference=mog2"},
    {"cudadiff", "reference=background history=50 variance-threshold=25",
     "history, variance-threshold have no effect with reference=background"},
    {"cudadiff", "min-area=361", "min-area is more than the 360 cells of a frame: there are no regions"},
    {"cudadiff", "min-area=360", ""},
    {"cudadiff", "motion-threshold=0.7",
     "motion-threshold is above light-change-ratio: a frame that changes so much does not count as motion"},
    {"cudadiff", "motion-threshold=0.7 light-change-ratio=0", ""},
    {"cudadiff", "forget-after=0.2", ""},  // it is at least three times the usual time between frames
    {"cudadiff", "reference=background threshold=0 absorb-time=5", "still-time has no effect with absorb-time=5"},
    {"cudadiff", "reference=background threshold=0 still-time=300", "still-time has no effect with absorb-time=300"},
    {"cudadiff", "reference=background threshold=0 still-time=300 absorb-time=0", ""},
    {"cudadiff", "post-messages=false lines=\"a: 1,1 9,9\"", "lines has no effect with post-messages=false"},
    {"cudadiff", "post-messages=false zones=\"a: 1,1 9,9 1,9\"", ""},
    {"cudadiff", "post-messages=false attach-roi=false zones=\"a: 1,1 9,9 1,9\"",
     "zones has no effect with post-messages=false attach-roi=false"}};

/// Plays. The test fails at a message that is not documented for this property. Returns whether there was a documented
/// one.
bool plays(Line& line, const Run& run, const std::string& property, bool starting) {
  bool excepted = false;
  for (const Message& message : line.play()) {
    bool known = false;
    for (const Documented& row : documented)
      known |= (!*row.element || run.element == row.element) && row.of(property) &&
               message.text.find(row.text) != std::string::npos && message.is_error == (row.error && starting);
    FAIL_UNLESS(known, "%s: %s (a value that the range allows; if it needs another setting, add it to `documented`)",
                where().c_str(), message.text.c_str());
    excepted = true;
  }
  return excepted;
}

/// An element that does not play. For cudablend, it has a requested pad.
struct Object {
  explicit Object(const Run& run) : element(gst_element_factory_make(run.element.c_str(), nullptr)) {
    gst_object_ref_sink(element);
    pad = gst_element_request_pad_simple(element, "sink_%u");
    EXPECT_EQ(pad != nullptr, run.element == "cudablend");
  }
  ~Object() {
    if (pad) gst_element_release_request_pad(element, pad);
    gst_clear_object(&pad);
    gst_object_unref(element);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  /// Calls f(property, whether the pad has it) for each property of the plugin's classes.
  template <typename F>
  void each(F&& f) const {
    for (bool of_pad : {false, true})
      if (gpointer const object = of_pad ? gpointer(pad) : gpointer(element))
        each_property(object, [&](GParamSpec* spec) {
          if (is_own(spec)) f(spec, of_pad);
        });
  }

  GstElement* element;
  GstPad* pad;
};

/// The writable properties of the plugin's classes, except `backend`, which a test sets, and whether the pad has them.
std::vector<std::pair<GParamSpec*, bool>> properties(const Run& run) {
  std::vector<std::pair<GParamSpec*, bool>> found;
  Object(run).each([&](GParamSpec* spec, bool of_pad) {
    if ((spec->flags & G_PARAM_WRITABLE) && std::strcmp(spec->name, "backend") != 0) found.emplace_back(spec, of_pad);
  });
  EXPECT(!found.empty());
  return found;
}

/// Both ends of the range of a number, or all values of an enum or a boolean, as text.
std::vector<std::string> values(GParamSpec* spec) {
  std::vector<std::string> texts;
  const auto add = [&](auto set, auto... numbers) {
    for (auto number : {numbers...}) {
      g_auto(GValue) value = G_VALUE_INIT;
      g_value_init(&value, spec->value_type);
      set(&value, number);
      g_autofree gchar* text = gst_value_serialize(&value);
      texts.push_back(text);
    }
  };
  if (G_IS_PARAM_SPEC_INT(spec)) add(g_value_set_int, G_PARAM_SPEC_INT(spec)->minimum, G_PARAM_SPEC_INT(spec)->maximum);
  if (G_IS_PARAM_SPEC_UINT(spec))
    add(g_value_set_uint, G_PARAM_SPEC_UINT(spec)->minimum, G_PARAM_SPEC_UINT(spec)->maximum);
  if (G_IS_PARAM_SPEC_UINT64(spec))
    add(g_value_set_uint64, G_PARAM_SPEC_UINT64(spec)->minimum, G_PARAM_SPEC_UINT64(spec)->maximum);
  if (G_IS_PARAM_SPEC_DOUBLE(spec))
    add(g_value_set_double, G_PARAM_SPEC_DOUBLE(spec)->minimum, G_PARAM_SPEC_DOUBLE(spec)->maximum);
  if (G_IS_PARAM_SPEC_BOOLEAN(spec)) texts = {"false", "true"};
  if (G_IS_PARAM_SPEC_ENUM(spec))
    for (guint i = 0; i < G_PARAM_SPEC_ENUM(spec)->enum_class->n_values; ++i)
      texts.push_back(G_PARAM_SPEC_ENUM(spec)->enum_class->values[i].value_nick);
  return texts;
}

/// Whether the element itself checks the values of a number. GObject checks the others.
bool is_open(GParamSpec* spec) { return g_str_has_prefix(G_PARAM_SPEC_TYPE_NAME(spec), "GstCudaVisionParam"); }

/// Values just outside the range of a number, as text.
std::vector<std::string> values_beyond(GParamSpec* spec) {
  std::vector<std::string> texts;
  const auto add = [&](auto* of, auto least, auto most) {
    if (of->minimum > least) texts.push_back(show(of->minimum - 1));
    if (of->maximum < most) texts.push_back(show(of->maximum + 1));
  };
  if (G_IS_PARAM_SPEC_INT(spec)) add(G_PARAM_SPEC_INT(spec), G_MININT, G_MAXINT);
  if (G_IS_PARAM_SPEC_UINT(spec)) add(G_PARAM_SPEC_UINT(spec), 0u, G_MAXUINT);
  if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
    const double least = G_PARAM_SPEC_DOUBLE(spec)->minimum, most = G_PARAM_SPEC_DOUBLE(spec)->maximum;
    for (double value : {least - std::max(1.0, std::abs(least)), most + std::max(1.0, std::abs(most)), std::nan("")})
      texts.push_back(cudavision::number_text(value));
  }
  return texts;
}

}  // namespace

TEST(begins_with_the_defaults_of_its_specs, Each::element) {
  const Object object(run);
  int compared = 0;
  object.each([&](GParamSpec* spec, bool of_pad) {
    if (!(spec->flags & G_PARAM_READABLE)) return;
    at(spec->name);
    g_auto(GValue) value = G_VALUE_INIT;
    g_value_init(&value, spec->value_type);
    g_object_get_property(of_pad ? G_OBJECT(object.pad) : G_OBJECT(object.element), spec->name, &value);
    EXPECT(g_param_value_defaults(spec, &value));
    ++compared;
  });
  EXPECT(compared > 0);
}

TEST(starts_with_every_value_of_every_range, Each::element) {
  for (const auto& [spec, of_pad] : properties(run))
    for (const std::string& value : values(spec)) {
      const std::string setting = std::string(spec->name) + "=" + value;
      at(setting);
      Line line(run);
      set(line.object(of_pad), setting);
      plays(line, run, spec->name, true);
      EXPECT_EQ(value_text(line.object(of_pad), spec), value);
    }
}

TEST(accepts_every_value_of_every_range_while_playing, Each::element) {
  for (const auto& [spec, of_pad] : properties(run)) {
    if (!(spec->flags & GST_PARAM_MUTABLE_PLAYING)) continue;
    for (const std::string& value : values(spec)) {
      const std::string setting = std::string(spec->name) + "=" + value;
      at(setting);
      Line line(run);
      line.pause();
      set(line.object(of_pad), setting);
      if (!plays(line, run, spec->name, false)) EXPECT_EQ(value_text(line.object(of_pad), spec), value);
    }
  }
}

/// Such a value gives an error at start. While playing it gives a warning, and the last good value stays. GObject
/// changes nothing.
TEST(refuses_values_beyond_every_range, Each::element) {
  int refused = 0;
  for (const auto& [spec, of_pad] : properties(run))
    for (const std::string& value : values_beyond(spec)) {
      at(spec->name + ("=" + value));
      if (!is_open(spec)) {
        const Object object(run);
        gpointer const of = of_pad ? gpointer(object.pad) : gpointer(object.element);
        const std::string good = value_text(of, spec);
        // GLib warns. The message is critical from 2.84 on, or earlier.
        _gst_check_expecting_log = TRUE;
        _gst_check_raised_warning = _gst_check_raised_critical = FALSE;
        gst_util_set_object_arg(G_OBJECT(of), spec->name, value.c_str());
        _gst_check_expecting_log = FALSE;
        EXPECT(_gst_check_raised_warning || _gst_check_raised_critical);
        EXPECT_EQ(value_text(of, spec), good);
        continue;
      }
      for (bool playing : {false, true}) {
        Line line(run, "", 2);
        const std::string good = value_text(line.object(of_pad), spec);
        if (playing) line.pause();
        set(line.object(of_pad), spec->name + ("=" + value));
        const std::vector<Message> heard = line.play();
        EXPECT_EQ(heard.size(), 1u);
        EXPECT_EQ(heard[0].is_error, !playing);
        EXPECT_EQ(heard[0].domain, GST_LIBRARY_ERROR);
        EXPECT_CONTAINS(heard[0].text, spec->name + std::string(" is "));
        EXPECT_CONTAINS(heard[0].text, value + ": it must be ");
        if (playing) EXPECT_EQ(value_text(line.object(of_pad), spec), good);
        ++refused;
      }
    }
  EXPECT(refused > 0);
}

TEST(follows_a_control_source_over_every_range, Each::element) {
  int driven = 0;
  for (const auto& [spec, of_pad] : properties(run)) {
    if (!(spec->flags & GST_PARAM_CONTROLLABLE)) continue;
    at(spec->name);
    Line line(run);
    control(line.object(of_pad), spec->name, 0, 1, GST_SECOND, false);
    plays(line, run, spec->name, false);
    ++driven;
  }
  EXPECT(driven > 0);
}

/// Binds properties as keyframes do: 0 and 1 are the ends of the range.
TEST(gives_a_picture_for_every_step_of_a_binding, Each::element) {
  constexpr int frames = 9;
  const Object object(run);
  const bool has_region =
      g_object_class_find_property(G_OBJECT_GET_CLASS(object.element), "region") && run.element != "cudadiff";
  int driven = 0;
  object.each([&](GParamSpec* spec, bool of_pad) {
    const bool number = G_IS_PARAM_SPEC_UINT(spec) || G_IS_PARAM_SPEC_INT(spec) || G_IS_PARAM_SPEC_DOUBLE(spec) ||
                        G_IS_PARAM_SPEC_UINT64(spec);
    if (!number || !(spec->flags & GST_PARAM_CONTROLLABLE)) return;
    // These ranges have values that the element must refuse, such as even numbers of taps.
    if (g_str_has_prefix(spec->name, "kernel-") && (run.element == "cudagaussian" || run.element == "cudaconvolve"))
      return;
    std::vector<std::string> contexts;
    for (const Needed& row : needed)
      if (run.element == row.element && std::string(spec->name) == row.property) contexts.push_back(row.settings);
    if (contexts.empty()) contexts.push_back("");
    for (const std::string& context : contexts)
      for (bool region : {false, true}) {
        if (region && (!has_region || (run.element == "cudaintegral" && context.empty()))) continue;
        if (!region && std::string(spec->name) == "region-margin") continue;
        const std::string settings = context + (region ? " region=roi regions=20,10,60,50" : "");
        at(spec->name + (" with " + settings));
        Line line(run, settings, frames, {128, 96});
        const auto count = [](GstPad*, GstPadProbeInfo*, gpointer counter) {
          ++*static_cast<int*>(counter);
          return GST_PAD_PROBE_OK;
        };
        int pictures = 0;
        g_autoptr(GstPad) src = gst_element_get_static_pad(line.element, "src");
        gst_pad_add_probe(src, GST_PAD_PROBE_TYPE_BUFFER, count, &pictures, nullptr);
        control(line.object(of_pad), spec->name, 0, 1, (frames - 1) * GST_SECOND / 4, false);
        plays(line, run, spec->name, false);
        EXPECT_EQ(pictures, frames);
        ++driven;
      }
  });
  EXPECT(driven > 0);
}

TEST(warns_of_settings_that_others_cut_short, Each::run) {
  for (const CutShort& row : cut_short) {
    if (run.element != row.element) continue;
    at(row.settings);
    Line line(run, row.settings, 3);
    std::string text;
    for (const Message& heard : line.play()) text += (text.empty() ? "" : " / ") + heard.text;
    EXPECT_EQ(text, std::string(row.text));
  }
}

/// A wrong value of one property that all elements have leaves the others unchanged, whichever is set first.
TEST(refuses_only_the_wrong_one_of_the_common_properties, Each::element) {
  for (const char* settings : {"async-depth=2 cuda-device-id=-5", "cuda-device-id=-5 async-depth=2"}) {
    at(settings);
    Line line(run);
    line.pause();
    set(line.element, settings);
    EXPECT_CONTAINS(pop_message(line.bus, GST_MESSAGE_WARNING).text, "cuda-device-id is -5");
    EXPECT_EQ(pop_message(line.bus, GST_MESSAGE_WARNING).text, "");
    EXPECT_EQ(get<guint>(line.element, "async-depth"), 2u);
    EXPECT_EQ(get<gint>(line.element, "cuda-device-id"), -1);
  }
}

TEST(warns_of_a_late_backend_change, Each::element) {
  Line line(run);
  set(line.element, "backend=cpu");
  line.pause();
  EXPECT_EQ(pop_message(line.bus, GST_MESSAGE_WARNING).text, "");
  set(line.element, "backend=cpu");
  EXPECT_EQ(pop_message(line.bus, GST_MESSAGE_WARNING).text, "");
  set(line.element, "backend=cuda");
  const Message warning = pop_message(line.bus, GST_MESSAGE_WARNING);
  EXPECT_EQ(warning.domain, GST_LIBRARY_ERROR);
  EXPECT_CONTAINS(warning.text, "backend was changed");
  EXPECT_CONTAINS(warning.text, "NULL");
  EXPECT_EQ(get_enum(line.element, "active-backend"), "cpu");
  set(line.element, "cuda-device-id=3");
  EXPECT_CONTAINS(pop_message(line.bus, GST_MESSAGE_WARNING).text, "cuda-device-id was changed");
}

TEST(warns_of_a_device_that_auto_cannot_use, Each::element) {
  Line line(run);
  set(line.element, "backend=auto cuda-device-id=2147483647");
  for (int round = 0; round < 2; ++round) {
    line.pause();
    EXPECT_EQ(get_enum(line.element, "active-backend"), "cpu");
    const Message warning = pop_message(line.bus, GST_MESSAGE_WARNING);
    EXPECT_CONTAINS(warning.text, "cuda-device-id is 2147483647");
    EXPECT_EQ(pop_message(line.bus, GST_MESSAGE_WARNING).text, "");
    line.stop();
  }
  set(line.element, "backend=cpu");  // needs no device
  EXPECT_EQ(line.play().size(), 0u);
}

int main() { return run_tests("properties"); }
