// SPDX-License-Identifier: LGPL-2.1-or-later
#include "input.hpp"

#include <glib/gstdio.h>
#include <gst/video/video.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "containers.hpp"
#include "json.hpp"
#include "troubles.hpp"
#include "upright.hpp"
#include "uris.hpp"

namespace {

constexpr guint silence = 15;  // seconds after which to give up on a silent HTTP server, plus the interval

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

/// Whether an event is about the light or the camera.
bool is_of_camera(const std::string& event) {
  return event == "light" || event == "scene" || event == "moves" || event == "moved";
}

std::string time_now(const char* format) {
  GDateTime* now = g_date_time_new_now_utc();
  gchar* text = format ? g_date_time_format(now, format) : g_date_time_format_iso8601(now);
  const std::string result = text;
  g_free(text);
  g_date_time_unref(now);
  return result;
}

/// Formats a time as seconds with leading zeros and three decimals, so that names sort by time; an unknown time as the
/// number of the frame.
std::string stamp(GstClockTime time, guint64 number) {
  char text[32];
  if (GST_CLOCK_TIME_IS_VALID(time))
    g_snprintf(text, sizeof text, "%06" G_GUINT64_FORMAT ".%03" G_GUINT64_FORMAT, time / GST_SECOND,
               time % GST_SECOND / GST_MSECOND);
  else
    g_snprintf(text, sizeof text, "frame%06" G_GUINT64_FORMAT, number);
  return text;
}

}  // namespace

bool set_property(GstElement* element, const std::string& name, const std::string& value) {
  GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), name.c_str());
  if (!spec || !(spec->flags & G_PARAM_WRITABLE)) return false;
  GValue parsed = G_VALUE_INIT;
  g_value_init(&parsed, spec->value_type);
  // g_param_value_validate() returns whether it had to change the value.
  const bool good =
      gst_value_deserialize_with_pspec(&parsed, value.c_str(), spec) && !g_param_value_validate(spec, &parsed);
  if (good) g_object_set_property(G_OBJECT(element), name.c_str(), &parsed);
  g_value_unset(&parsed);
  return good;
}

Input::Input(std::string location, std::string name, std::string label, const Settings& settings,
             std::function<void()> ended)
    : location_(std::move(location)),
      name_(std::move(name)),
      label_(std::move(label)),
      settings_(settings),
      ended_(std::move(ended)),
      pipeline_(GST_ELEMENT(gst_object_ref_sink(gst_pipeline_new(nullptr)))) {
  GstBus* bus = gst_element_get_bus(pipeline_.get());
  gst_bus_set_sync_handler(
      bus,
      [](GstBus*, GstMessage* message, gpointer self) {
        if (!gst_message_has_name(message, "cudadiff")) return GST_BUS_PASS;
        static_cast<Input*>(self)->on_event(gst_message_get_structure(message));
        gst_message_unref(message);
        return GST_BUS_DROP;
      },
      this, nullptr);
  gst_bus_add_watch(
      bus,
      [](GstBus*, GstMessage* message, gpointer self) -> gboolean {
        static_cast<Input*>(self)->on_bus(message);
        return G_SOURCE_CONTINUE;
      },
      this);
  gst_object_unref(bus);
}

Input::~Input() { close(); }

void Input::close() {
  if (std::exchange(done_, true)) return;
  gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
  pictures_.reset();
  if (const std::string error = moments_ ? write(moments_->rest()) : ""; !error.empty() && !failed_.exchange(true))
    complain(error);
  if (const std::string lost = losses_ ? losses_->sentence(whole_, gate_ ? gate_->over() : std::nullopt) : "";
      !lost.empty()) {
    complain(lost);
    failed_ = true;
  }
  losses_.reset();
  if (whole_ && !cut_.empty()) {
    complain(cut_);
    failed_ = true;
  }
  GstBus* bus = gst_element_get_bus(pipeline_.get());
  gst_bus_set_sync_handler(bus, nullptr, nullptr, nullptr);
  gst_bus_remove_watch(bus);
  gst_object_unref(bus);
}

void Input::complain(const std::string& text) {
  g_printerr("%s: %s\n", name_.c_str(), without_secrets(text, location_).c_str());
}

void Input::fail(const std::string& text) {
  if (done_) return;
  complain(text);
  failed_ = true;
  stop();
}

void Input::stop() {
  if (done_) return;
  close();
  ended_();
}

GstElement* Input::add(const char* factory) {
  GstElement* element = gst_element_factory_make(factory, nullptr);
  if (element) gst_bin_add(GST_BIN(pipeline_.get()), element);
  return element;
}

/// Adds the element that outputs decoded video. Its pad may appear later. Returns nullptr if the element is not
/// installed.
GstElement* Input::add_source() {
  if (location_ == "test" || starts_with(location_, "test:")) {
    GstElement* source = add("videotestsrc");
    if (!source) return nullptr;
    gst_util_set_object_arg(G_OBJECT(source), "pattern", "ball");
    if (location_ == "test")
      g_object_set(source, "is-live", TRUE, nullptr);
    else if (!set_property(source, "num-buffers", location_.substr(5)) || location_[5] == '-')
      fail("test: needs a number of frames, as in test:60");
    return source;
  }
  GStatBuf status;
  const bool camera =
      starts_with(location_, "/dev/") && g_stat(location_.c_str(), &status) == 0 && S_ISCHR(status.st_mode);
  GstElement* decoder = add(camera ? "decodebin" : "uridecodebin");
  if (!decoder) return nullptr;
  // Do not decode sound.
  GstCaps* video = gst_caps_from_string("video/x-raw(ANY)");
  g_object_set(decoder, "caps", video, "expose-all-streams", FALSE, nullptr);
  gst_caps_unref(video);
  if (camera) {
    GstElement* source = add("v4l2src");
    if (!source) return nullptr;
    g_object_set(source, "device", location_.c_str(), nullptr);
    gst_element_link(source, decoder);
    return decoder;
  }
  add_uri(decoder);
  gchar* path = g_filename_from_uri(opened_uri(location_).c_str(), nullptr, nullptr);
  if (path && g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
    const std::string fault = fault_of(path);
    cut_ = cut_of(path);
    if (fault.empty()) losses_ = std::make_unique<Losses>(pipeline_.get(), decoder, settings_.several);
    if (!fault.empty()) fail(fault);
  }
  g_free(path);
  return decoder;
}

/// Makes a uridecodebin read the location like a camera.
void Input::add_uri(GstElement* decoder) {
  for (const auto& [name, value] : options_of(location_)) {
    gchar* end = nullptr;
    chosen_ |= name == "every";
    if (name == "every")
      every_ = g_ascii_isdigit(value[0]) ? g_ascii_strtod(value.c_str(), &end) : 0;
    else
      any_certificate_ = true;
    if (name == "every" && (!end || *end || !(every_ >= 0.04 && every_ <= 86400)))
      return fail("#every= must be 0.04 to 86400 seconds");
    if (name != "every" && value != "any")
      return fail("#certificate= must be any; without it the certificate is checked");
  }
  g_object_set(decoder, "uri", opened_uri(location_).c_str(), nullptr);
  g_signal_connect_swapped(decoder, "source-setup",
                           G_CALLBACK(+[](Input* self, GstElement* source) { self->on_source(source); }), this);
  g_signal_connect_swapped(decoder, "deep-element-added", G_CALLBACK(+[](Input* self, GstBin*, GstElement* element) {
                             GstElementFactory* factory = gst_element_get_factory(element);
                             if (self->pictures_ && g_str_equal(GST_OBJECT_NAME(factory), "multipartdemux"))
                               self->pictures_->watch_demuxer(element);
                           }),
                           this);
}

void Input::on_source(GstElement* source) {
  const auto has = [source](const char* name) {
    return g_object_class_find_property(G_OBJECT_GET_CLASS(source), name) != nullptr;
  };
  if (any_certificate_ && has("tls-validation-flags")) g_object_set(source, "tls-validation-flags", 0, nullptr);
  if (any_certificate_ && has("ssl-strict")) g_object_set(source, "ssl-strict", FALSE, nullptr);
  // The element gives up on a server that is silent for this time.
  if (chosen_ && g_str_equal(GST_OBJECT_NAME(gst_element_get_factory(source)), "souphttpsrc"))
    g_object_set(source, "timeout", guint(every_) + silence, nullptr);
  const bool http = g_ascii_strncasecmp(location_.c_str(), "http", 4) == 0;
  if (http && has("do-timestamp")) pictures_ = std::make_unique<WebPictures>(source, every_, [this] { become_live(); });
}

void Input::become_live() {
  live_ = true;
  gst_util_set_object_arg(G_OBJECT(queue_), "leaky", "downstream");
  g_object_set(queue_, "max-size-buffers", 2, nullptr);
  g_object_set(sink_, "sync", FALSE, nullptr);
}

void Input::start() {
  GstElement* source = add_source();
  if (failed_) return;
  if (!source) return fail("an element to read it is missing: install GStreamer's base and good plugins");
  queue_ = add("queue");
  GstPad* entrance = gst_element_get_static_pad(queue_, "sink");
  gate_ = std::make_unique<Gate>(entrance, settings_.part);
  gst_object_unref(entrance);
  GstElement* convert = add("videoconvert");  // passes frames through if cudadiff supports their format
  GstPad* shown = gst_element_get_static_pad(convert, "sink");
  keep_upright(shown);
  gst_object_unref(shown);
  diff_ = add("cudadiff");
  sink_ = add("appsink");
  for (const auto& [name, value] : settings_.properties) {
    set_property(diff_, name, value);
    with_objects_ |= name == "preset" || name == "zones" || name == "lines";
  }
  gboolean metas;
  gdouble hold;
  g_object_get(diff_, "attach-roi", &metas, "track-hold", &hold, nullptr);
  shortest_ = std::make_unique<Shortest>(settings_.shortest, hold);
  moments_ = std::make_unique<Moments>(settings_.snapshots.empty() ? Moments::Pictures::none
                                       : settings_.progress        ? Moments::Pictures::of_motion
                                                                   : Moments::Pictures::of_begins,
                                       !metas);
  g_object_set(sink_, "sync", settings_.realtime, "max-buffers", 1, nullptr);
  gst_element_link_many(queue_, convert, diff_, sink_, nullptr);

  if (!gst_element_link(source, queue_)) {  // the pad appears later
    g_signal_connect_swapped(source, "pad-added", G_CALLBACK(+[](Input* self, GstPad* pad) { self->on_pad(pad); }),
                             this);
    g_signal_connect_swapped(source, "no-more-pads", G_CALLBACK(+[](Input* self) { self->on_no_more_pads(); }), this);
  }

  GstAppSinkCallbacks callbacks{};
  callbacks.new_sample = [](GstAppSink* appsink, gpointer self) {
    GstSample* sample = gst_app_sink_pull_sample(appsink);
    if (!sample) return GST_FLOW_FLUSHING;
    auto* input = static_cast<Input*>(self);
    input->flowing_ = true;
    input->write_now(input->moments_->take(sample));
    gst_sample_unref(sample);
    return GST_FLOW_OK;
  };
  callbacks.eos = [](GstAppSink*, gpointer self) {
    auto* input = static_cast<Input*>(self);
    input->write_now(input->moments_->rest());
  };
  gst_app_sink_set_callbacks(GST_APP_SINK(sink_), &callbacks, this, nullptr);

  GstStateChangeReturn change = gst_element_set_state(pipeline_.get(), GST_STATE_PAUSED);
  if (change == GST_STATE_CHANGE_NO_PREROLL) become_live();
  if (change != GST_STATE_CHANGE_FAILURE) change = gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
  // The cause is usually on the bus before this message.
  if (change == GST_STATE_CHANGE_FAILURE)
    GST_ELEMENT_ERROR(pipeline_.get(), CORE, STATE_CHANGE, ("It could not be started."), (nullptr));
}

void Input::drain() {
  if (done_) return;
  drained_ = true;
  if (!flowing_) return stop();
  // Send EOS directly to cudadiff, which works with every kind of source. Do not send it in the main loop, because it
  // waits for the current frame.
  gst_element_call_async(
      diff_,
      [](GstElement* diff, gpointer) {
        GstPad* pad = gst_element_get_static_pad(diff, "sink");
        gst_pad_send_event(pad, gst_event_new_eos());
        gst_object_unref(pad);
      },
      nullptr, nullptr);
}

void Input::on_bus(GstMessage* message) {
  switch (GST_MESSAGE_TYPE(message)) {
    case GST_MESSAGE_ERROR:
      return fail(trouble_of(message));
    case GST_MESSAGE_WARNING:
      return complain(trouble_of(message));
    case GST_MESSAGE_EOS:
      if (const std::string error = gate_->why_nothing(); !error.empty()) return fail(error);
      // The end of a part is not the end of the clip.
      whole_ = !drained_ && !settings_.part.start && !settings_.part.end && !settings_.part.duration;
      return stop();
    default:
      return;
  }
}

void Input::on_pad(GstPad* pad) {
  GstPad* sink = gst_element_get_static_pad(queue_, "sink");
  if (!gst_pad_is_linked(sink)) gst_pad_link(pad, sink);  // use only the first video of a file
  gst_object_unref(sink);
}

void Input::on_no_more_pads() {
  GstPad* sink = gst_element_get_static_pad(queue_, "sink");
  if (!gst_pad_is_linked(sink))
    GST_ELEMENT_ERROR(pipeline_.get(), STREAM, WRONG_TYPE, ("There is no video in it."), (nullptr));
  gst_object_unref(sink);
}

void Input::on_event(const GstStructure* event) {
  const std::string kind = gst_structure_get_string(event, "event");
  const bool of_object = gst_structure_has_field(event, "id");  // enter, leave and cross
  const bool needed = kind == "begin" || kind == "end" || is_of_camera(kind) || settings_.progress ||
                      (settings_.shortest && kind == "motion");
  if (of_object ? !with_objects_ : !needed) return;
  Event line(gst_structure_copy(event));
  if (live_) gst_structure_set(line.get(), "at", G_TYPE_STRING, time_now(nullptr).c_str(), nullptr);
  moments_->add(std::move(line));
}

void Input::write_now(std::vector<Moments::Moment> moments) {
  const std::string error = write(std::move(moments));
  if (!error.empty()) GST_ELEMENT_ERROR(pipeline_.get(), RESOURCE, WRITE, ("%s", error.c_str()), (nullptr));
}

std::string Input::write(std::vector<Moments::Moment> moments) {
  // Many frames may wait for a motion that is long enough, so they wait as JPEG.
  for (auto& moment : moments)
    if (moment.frame) moment.frame = encode(moment.frame.get());
  for (const auto& [event, picture, number] : shortest_->pass(std::move(moments))) {
    if (!settings_.progress && !std::strcmp(gst_structure_get_string(event.get(), "event"), "motion")) continue;
    const std::string file = picture ? save(picture.get(), event_time(event.get()), number) : "";
    if (!file.empty()) gst_structure_set(event.get(), "snapshot", G_TYPE_STRING, file.c_str(), nullptr);
    const std::string line = json_line(name_, event.get());
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fflush(stdout) != 0)
      return std::string("cannot write an event: ") + g_strerror(errno);
  }
  return {};
}

Sample Input::encode(GstSample* sample) {
  // Mapping a frame in GPU memory as system memory makes a copy. Without the caps feature, videoconvert accepts such a
  // frame.
  GstCaps* plain = gst_caps_copy(gst_sample_get_caps(sample));
  gst_caps_set_features_simple(plain, nullptr);
  GstSample* frame = gst_sample_new(gst_sample_get_buffer(sample), plain, nullptr, nullptr);
  GstCaps* jpeg = gst_caps_new_empty_simple("image/jpeg");
  GError* error = nullptr;
  Sample picture(gst_video_convert_sample(frame, jpeg, 10 * GST_SECOND, &error));
  gst_caps_unref(jpeg);
  gst_sample_unref(frame);
  gst_caps_unref(plain);
  if (!picture) miss_snapshot(error);
  g_clear_error(&error);
  return picture;
}

std::string Input::save(GstSample* picture, GstClockTime time, guint64 number) {
  // Snapshots of a clip have the same names in each run. The names of a camera's snapshots have the current time.
  const std::string when = live_ ? time_now("%Y%m%dT%H%M%S.%fZ") : stamp(time, number);
  std::string name = label_ + '-' + when;
  if (!live_ && !names_.insert(name).second) name += '-' + std::to_string(++repeated_);
  gchar* path = g_build_filename(settings_.snapshots.c_str(), (name + ".jpg").c_str(), nullptr);
  std::string file;
  GError* error = nullptr;
  GstMapInfo bytes;
  if (gst_buffer_map(gst_sample_get_buffer(picture), &bytes, GST_MAP_READ)) {
    if (g_file_set_contents(path, reinterpret_cast<const gchar*>(bytes.data), gssize(bytes.size), &error)) file = path;
    gst_buffer_unmap(gst_sample_get_buffer(picture), &bytes);
  }
  g_free(path);
  if (file.empty()) miss_snapshot(error);
  g_clear_error(&error);
  return file;
}

void Input::miss_snapshot(const GError* error) {
  complain(std::string("no snapshot: ") + (error ? error->message : "the picture cannot be read"));
  failed_ = true;
}
