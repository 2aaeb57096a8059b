// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests motion-alarm with events that arrive late and from another thread, as from cudadiff with attach-roi=false on a
// GPU. The lines must still be in order, and each `begin` must have its picture. An element with the name of cudadiff
// makes this possible without a GPU. With -Db_sanitize=thread, the two threads must not race.
#include <glib/gstdio.h>
#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <mutex>
#include <thread>

#include "examples/motion-alarm/input.hpp"
#include "tests/elements/expect.hpp"

using cudavision::test::expect;

namespace {

constexpr int frames = 30;
constexpr std::size_t most_late = 8;

/// Posts the events of frames from a separate thread.
class Poster {
 public:
  explicit Poster(GstElement* element) : element_(element), thread_([this] { run(); }) {}
  ~Poster() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Adds a frame. Waits until at most `left` frames have no event.
  void add(GstClockTime time) {
    std::unique_lock lock(mutex_);
    times_.push_back(time);
    changed_.notify_all();
    changed_.wait(lock, [this] { return times_.size() <= most_late; });
  }
  void finish() {
    std::unique_lock lock(mutex_);
    hurries_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return times_.empty(); });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (int number = 0;; ++number) {
      // The first frames get their events as late as possible, the others as soon as this thread runs.
      changed_.wait(lock, [&] {
        return ended_ || (!times_.empty() && (hurries_ || number >= frames / 2 || times_.size() > most_late));
      });
      if (times_.empty()) return;
      const GstClockTime time = times_.front();
      lock.unlock();
      if (number % 5 == 0) post(time, "begin");
      if (number % 5 == 3) post(time, "end");
      lock.lock();
      times_.pop_front();
      changed_.notify_all();
    }
  }
  void post(GstClockTime time, const char* event) {
    gst_element_post_message(
        element_,
        gst_message_new_element(GST_OBJECT(element_),
                                gst_structure_new("cudadiff", "timestamp", G_TYPE_UINT64, time, "stream-time",
                                                  G_TYPE_UINT64, time, "event", G_TYPE_STRING, event, nullptr)));
  }

  GstElement* const element_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<GstClockTime> times_;
  bool ended_ = false, hurries_ = false;
  std::thread thread_;
};

struct Late {
  GstBaseTransform parent;
  int number;
  Poster* poster;
};
struct LateClass {
  GstBaseTransformClass parent_class;
};
G_DEFINE_TYPE(Late, late, GST_TYPE_BASE_TRANSFORM)

void late_init(Late*) {}
void late_class_init(LateClass* klass) {
  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  g_autoptr(GstCaps) caps = gst_caps_from_string("video/x-raw, format=(string)GRAY8");
  gst_element_class_add_pad_template(element, gst_pad_template_new("sink", GST_PAD_SINK, GST_PAD_ALWAYS, caps));
  gst_element_class_add_pad_template(element, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_element_class_set_static_metadata(element, "late", "Filter", "events that come late", "cudavision");
  G_OBJECT_CLASS(klass)->set_property = [](GObject*, guint, const GValue*, GParamSpec*) {};
  G_OBJECT_CLASS(klass)->get_property = [](GObject*, guint, GValue* value, GParamSpec*) {
    g_value_set_boolean(value, FALSE);
  };
  g_object_class_install_property(
      G_OBJECT_CLASS(klass), 1,
      g_param_spec_boolean("attach-roi", "", "", TRUE, GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS)));
  GstBaseTransformClass* trans = GST_BASE_TRANSFORM_CLASS(klass);
  trans->start = [](GstBaseTransform* self) -> gboolean {
    reinterpret_cast<Late*>(self)->poster = new Poster(GST_ELEMENT(self));
    return TRUE;
  };
  trans->stop = [](GstBaseTransform* self) -> gboolean {
    delete reinterpret_cast<Late*>(self)->poster;
    return TRUE;
  };
  trans->sink_event = [](GstBaseTransform* self, GstEvent* event) -> gboolean {
    if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) reinterpret_cast<Late*>(self)->poster->finish();
    return GST_BASE_TRANSFORM_CLASS(late_parent_class)->sink_event(self, event);
  };
  // the brightness of each frame encodes its number
  trans->transform_ip = [](GstBaseTransform* trans, GstBuffer* buffer) {
    Late* self = reinterpret_cast<Late*>(trans);
    gst_buffer_memset(buffer, 0, guint8(8 * self->number++), gsize(-1));
    self->poster->add(GST_BUFFER_PTS(buffer));
    return GST_FLOW_OK;
  };
}

/// The brightness in the middle of a picture; −1 if it cannot be read.
int brightness_of(const std::string& file) {
  GstElement* pipeline = gst_parse_launch(
      "filesrc name=source ! jpegdec ! videoconvert ! video/x-raw, format=GRAY8, width=320, height=240 ! appsink "
      "name=sink",
      nullptr);
  GstElement* source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
  GstElement* sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
  g_object_set(source, "location", file.c_str(), nullptr);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstSample* picture = gst_app_sink_pull_sample(GST_APP_SINK(sink));
  guint8 value = 0;
  const bool read = picture && gst_buffer_extract(gst_sample_get_buffer(picture), 120 * 320 + 160, &value, 1) == 1;
  if (picture) gst_sample_unref(picture);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  for (GstElement* element : {source, sink, pipeline}) gst_object_unref(element);
  return read ? value : -1;
}

/// Runs the clip, with its lines in a file. Returns the lines.
std::vector<std::string> lines_of_run(const std::string& folder) {
  const std::string file = folder + "/lines";
  std::fflush(stdout);
  const int kept = dup(STDOUT_FILENO);
  if (!std::freopen(file.c_str(), "w", stdout)) return {};
  Settings settings;
  settings.properties = {{"attach-roi", "false"}};
  settings.snapshots = folder;
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  {
    Input input("test:" + std::to_string(frames), "clip", "clip", settings, [loop] { g_main_loop_quit(loop); });
    input.start();
    g_main_loop_run(loop);
    std::fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    expect(!input.failed(), "the input failed");
  }
  g_main_loop_unref(loop);
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

int main(int argc, char** argv) {
  gst_init(&argc, &argv);
  for (const char* factory : {"videotestsrc", "videoconvert", "appsink", "jpegenc", "jpegdec"})
    if (GstElementFactory* found = gst_element_factory_find(factory))
      gst_object_unref(found);
    else
      return std::printf("skipped: there is no element %s\n", factory), 77;
  gst_element_register(nullptr, "cudadiff", GST_RANK_NONE, late_get_type());

  g_autofree gchar* folder = g_dir_make_tmp("motion-alarm-XXXXXX", nullptr);
  const std::vector<std::string> lines = lines_of_run(folder);
  expect(lines.size() == 12, std::to_string(lines.size()) + " lines, and not 12");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const int number = int(i / 2) * 5 + (i % 2 ? 3 : 0);
    expect(lines[i].find(i % 2 ? "\"end\"" : "\"begin\"") != std::string::npos,
           "line " + std::to_string(i) + " is " + lines[i]);
    if (i % 2) continue;
    const auto begin = lines[i].find("\"snapshot\": \"");
    expect(begin != std::string::npos, "no picture in " + lines[i]);
    if (begin == std::string::npos) continue;
    const std::string file = lines[i].substr(begin + 13, lines[i].find('"', begin + 13) - begin - 13);
    const int value = brightness_of(file);
    expect(std::abs(value - 8 * number) <= 3, "the picture of frame " + std::to_string(number) + " is of brightness " +
                                                  std::to_string(value) + ": another frame");
    g_unlink(file.c_str());
  }
  g_unlink((std::string(folder) + "/lines").c_str());
  g_rmdir(folder);
  return cudavision::test::exit_status();
}
