// SPDX-License-Identifier: LGPL-2.1-or-later
// A pipeline with cudablend, whose pads are added and removed. All sources have the same timestamps, so output n shows
// frame n of each pad.
#include <algorithm>
#include <deque>
#include <sstream>
#include <stdexcept>

#include "tests/soak/cache.hpp"
#include "tests/soak/lane.hpp"
#include "tests/soak/reference.hpp"
#include "tests/soak/stream.hpp"

namespace cudavision::soak {
namespace {

using streams::Random;

constexpr int tolerance = 1;  ///< between the backends

const std::vector<std::string> mixer_settings{"background=black layout=manual interpolation=bilinear",
                                              "background=checker layout=grid interpolation=nearest",
                                              "background=white layout=manual interpolation=nearest"};
const std::vector<std::string> pad_settings{"xpos=0 ypos=0 width=-1 height=-1 alpha=1 operator=over",
                                            "xpos=40 ypos=-8 width=100 height=60 alpha=0.5 operator=over",
                                            "xpos=31 ypos=17 width=-1 height=-1 alpha=0.65 operator=average",
                                            "xpos=-20 ypos=30 width=80 height=-1 alpha=1 operator=add"};

/// The requested picture: the settings of the mixer, and the settings of each pad by the number of its stream.
struct Scene {
  std::string settings;
  std::map<int, std::string> pads;
  guint64 forced_from = 0;  ///< frames from here on must not show an older scene
};

class MixerLane : public Lane, public Arrivals {
 public:
  MixerLane(std::uint64_t seed, const Options& options) : Lane("blend", seed, options) {
    const guint64 length = guint64(random_.between(300, 1000));
    for (int i = random_.between(2, 4); i > 0; --i) {
      const std::vector<std::string> formats{random_.pick<std::string>({"NV12", "RGBA"}),
                                             random_.pick<std::string>({"I420", "BGRx", "P010_10LE"})};
      streams_.emplace_back(
          random_.bits(), formats,
          std::vector<Stream::Size>{{random_.between(16, 240), usable_height(random_.between(16, 160))}}, length);
    }
    scenes_.push_back({mixer_settings[0], {}, 0});
    const std::string format = random_.pick<std::string>({"NV12", "RGBA", "I420"});
    // GStreamer's mixer accepts every format with AYUV; with other formats it may refuse transparent ones.
    const std::string fields = ",format=" + (options.twin ? "AYUV" : format) +
                               ",width=240,height=" + std::to_string(usable_height(161)) +
                               ",framerate=" + std::to_string(frames_per_second) + "/1";
    const std::string mixer = options.twin
                                  ? "compositor name=mixer background=black"
                                  : "cudablend name=mixer backend=" + options.backend + " " + mixer_settings[0];
    const std::string launch = mixer + " ! capsfilter caps-change-mode=delayed name=m0 caps=video/x-raw(ANY)" + fields +
                               " ! fakesink name=o0 sync=false";
    Lane::launch(launch);
    mixer_ = find("mixer");
    add_memory_filter(find("m0"), fields);
    watch(find("o0"), *this);
    for (int i = 0; i < int(streams_.size()); ++i) add_pad(i, random_.pick(pad_settings), random_.bits());
    low_ = newest();
  }
  ~MixerLane() override {
    for (Input& input : inputs_) gst_object_unref(input.pad);
    disown();
  }

 private:
  struct Input {
    int stream;
    GstPad* pad;
    GstElement* source;
  };

  int newest() const { return oldest_kept_ + int(scenes_.size()) - 1; }

  /// Changes the scene with `apply`.
  template <typename F>
  void change(Scene scene, F&& apply) {
    scene.forced_from = G_MAXUINT64;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (; oldest_kept_ < low_; ++oldest_kept_) scenes_.pop_front();  // no later frame may show these
      scenes_.push_back(std::move(scene));
    }
    guint64 sent = 0;
    apply(sent);
    const std::lock_guard<std::mutex> lock(mutex_);
    scenes_.back().forced_from = sent;
  }
  guint64 sent() const {
    guint64 most = 0;
    for (const Input& input : inputs_) most = std::max(most, position_of(input.source));
    return most;
  }

  /// Sets the properties that the mixer has: GStreamer's mixer has fewer.
  void set_on_mixer(gpointer object, const std::string& settings) const {
    if (!options_.twin) return set(object, settings);
    std::istringstream words(settings);
    for (std::string word; words >> word;)
      for (const char* known : {"xpos=", "ypos=", "alpha=", "zorder=", "background="})
        if (word.rfind(known, 0) == 0) set(object, word);
  }

  /// `seed`: of the source.
  void add_pad(int stream, const std::string& look, std::uint64_t seed) {
    Scene scene = scenes_.back();
    const std::string& settings = scene.pads[stream] = look + " zorder=" + std::to_string(stream);
    report_.act("a pad for stream " + std::to_string(stream) + ": " + settings);
    change(scene, [&](guint64& shown) {
      GstPad* pad = gst_element_request_pad_simple(mixer_, "sink_%u");
      set_on_mixer(pad, settings);
      GstElement* source = new_source(streams_[std::size_t(stream)], seed);
      gst_bin_add(GST_BIN(pipeline()), source);
      gst_element_link_pads(source, "src", mixer_, GST_PAD_NAME(pad));
      shown = sent();
      gst_element_set_state(source, GST_STATE_READY);
      // The segment begins where the segments of other sources begin, so that equal timestamps are equal running times.
      gst_element_send_event(source, gst_event_new_seek(1, GST_FORMAT_TIME, GST_SEEK_FLAG_NONE, GST_SEEK_TYPE_SET,
                                                        gint64(segment_ * frame_time), GST_SEEK_TYPE_NONE, -1));
      gst_element_sync_state_with_parent(source);
      inputs_.push_back({stream, pad, source});
    });
  }

  void remove_pad(std::size_t index) {
    const Input input = inputs_[index];
    report_.act("the pad of stream " + std::to_string(input.stream) + " goes");
    Scene scene = scenes_.back();
    scene.pads.erase(input.stream);
    change(scene, [&](guint64& shown) {
      // The source may push into the removed pad and post an error, after which the pipeline would not follow flushes.
      gst_element_set_bus(input.source, nullptr);
      gst_element_release_request_pad(mixer_, input.pad);
      shown = sent();
      inputs_.erase(inputs_.begin() + std::ptrdiff_t(index));
      gst_element_set_locked_state(
          // the pipeline may be changing to PLAYING after a flush, in its own thread
          input.source, TRUE);
      gst_element_set_state(input.source, GST_STATE_NULL);
      gst_bin_remove(GST_BIN(pipeline()), input.source);
      gst_object_unref(input.pad);
    });
  }

  std::string choose() override {
    switch (random_.below(6)) {
      case 0:
        if (inputs_.size() > 1) return "remove" + number_below(inputs_.size());
        break;
      case 1:
        for (int i = 0; i < int(streams_.size()); ++i)
          if (!scenes_.back().pads.count(i)) {
            const std::string look = number_below(pad_settings.size());
            return "add " + std::to_string(i) + look + " " + std::to_string(random_.bits() >> 1);
          }
        break;
      case 2:
        return "mixer" + number_below(mixer_settings.size());
      case 3:
        return "depth" + number_below(5);
    }
    const std::string input = number_below(inputs_.size());
    return "pad" + input + number_below(pad_settings.size());
  }

  void perform(const std::string& name, std::istream& numbers) override {
    if (name == "remove" && inputs_.size() > 1) return remove_pad(std::size_t(next(numbers, inputs_.size())));
    if (name == "depth") return turn(mixer_, numbers);
    Scene scene = scenes_.back();
    if (name == "add") {
      const int stream = int(next(numbers, streams_.size()));
      const std::string& look = pad_settings[std::size_t(next(numbers, pad_settings.size()))];
      const std::uint64_t seed = next(numbers);
      if (scene.pads.count(stream)) throw std::runtime_error("the stream has a pad");
      add_pad(stream, look, seed);
    } else if (name == "mixer") {
      scene.settings = mixer_settings[std::size_t(next(numbers, mixer_settings.size()))];
      report_.act(scene.settings);
      change(scene, [&](guint64& shown) {
        set_on_mixer(mixer_, scene.settings);
        shown = sent();
      });
    } else if (name == "pad") {
      const Input& input = inputs_[std::size_t(next(numbers, inputs_.size()))];
      const std::string settings =
          pad_settings[std::size_t(next(numbers, pad_settings.size()))] + " zorder=" + std::to_string(input.stream);
      scene.pads[input.stream] = settings;
      report_.act("stream " + std::to_string(input.stream) + ": " + settings);
      change(scene, [&](guint64& shown) {
        set_on_mixer(input.pad, settings);
        shown = sent();
      });
    } else {
      throw std::runtime_error("unknown");
    }
  }

  void seek(guint64 n) override {
    // GStreamer's aggregator flushes pad by pad, while its thread continues. If this thread is handling the EOS of a
    // pad, the pad is still at EOS after the flush. Until the flush reaches the pads, even a busy machine composes at
    // most this many frames.
    constexpr guint64 near_the_end = 200;
    if (sent() + near_the_end >= length() && !at_eos()) return;
    report_.act("flushing seek to frame " + std::to_string(n));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      segment_ = n;
    }
    const Interruption interruption(*this);
    if (!gst_element_seek(pipeline(), 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, GST_SEEK_TYPE_SET,
                          gint64(n * frame_time), GST_SEEK_TYPE_NONE, -1))
      report_.fail("a seek failed");
  }

  bool at_eos() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return over_;
  }

  void forget() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    segment_ = next_ = 0;
    over_ = false;
    low_ = newest();
  }
  guint64 length() const override { return streams_[0].length(); }

  void arrive(GstEventType type) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (type == GST_EVENT_FLUSH_STOP) {
      next_ = segment_;
      over_ = false;
      low_ = newest();
    } else if (type == GST_EVENT_EOS && !std::exchange(over_, true)) {
      if (next_ != length())
        report_.fail("EOS came before frame " + std::to_string(next_) + " of " + std::to_string(length()));
      ended();
    }
  }

  void arrive(GstBuffer* buffer, const GstVideoInfo& video, GstClockTime) override {
    report_.deliver();
    const guint64 n = number_of(GST_BUFFER_PTS(buffer));
    int low;
    std::vector<Scene> scenes;  // the scenes that this frame may show, the newest first
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (over_) return;
      if (GST_BUFFER_PTS(buffer) != next_ * frame_time || n >= length()) {
        report_.fail("frame " + std::to_string(n) + " came out instead of " + std::to_string(next_));
        next_ = n + 1;
        return;
      }
      ++next_;
      while (low_ < newest() && scenes_[std::size_t(low_ + 1 - oldest_kept_)].forced_from <= n) ++low_;
      low = low_;
      scenes.assign(scenes_.begin() + (low - oldest_kept_), scenes_.end());
    }
    const auto samples = streams::samples_of(buffer, video);
    if (!samples) return report_.fail("frame " + std::to_string(n) + " does not hold the picture of its caps");
    if (report_.spoils()) return report_.fail("frame " + std::to_string(n) + " is wrong: the fault that was put in");
    if (options_.twin) return;  // another mixer, other samples
    std::string wrong;
    for (std::size_t i = 0; i < scenes.size(); ++i) {
      const std::string difference = differs(*samples, expected(scenes[i], n, video));
      if (difference.empty()) {
        const std::lock_guard<std::mutex> lock(mutex_);
        low_ = std::max(low_, low + int(i));
        return;
      }
      wrong = difference;
    }
    std::string tried;
    for (const Scene& scene : scenes)
      tried += "\n  scene from frame " + std::to_string(scene.forced_from) + describe(scene);
    report_.fail("frame " + std::to_string(n) + " is wrong, from the newest scene " + wrong + tried);
  }

  static std::string differs(const std::string& samples, const std::string& expected) {
    if (samples == expected) return {};
    if (samples.size() != expected.size()) return "in its size";
    return difference(samples, expected, tolerance);
  }
  static std::string describe(const Scene& scene) {
    std::string text = "; " + scene.settings;
    for (const auto& [stream, settings] : scene.pads) text += "; stream " + std::to_string(stream) + ": " + settings;
    return text;
  }

  const std::string& expected(const Scene& scene, guint64 n, const GstVideoInfo& video) {
    std::string key = describe(scene);
    for (const auto& [number, settings] : scene.pads) {
      const Stream& stream = streams_[std::size_t(number)];
      key += ";" + std::to_string(stream.caps_at(n)) + "/" + std::to_string(stream.picture_at(n));
    }
    if (const std::string* known = known_.find(key)) return *known;
    std::vector<Buffer> frames;
    std::vector<MixerInput> inputs;
    for (const auto& [number, settings] : scene.pads) {
      const streams::Picture& picture = streams_[std::size_t(number)].at(n);
      frames.emplace_back(wrap(picture));
      inputs.push_back({settings, picture.video, frames.back().get()});
    }
    const Buffer blended = blend(scene.settings, inputs, video);
    const auto samples = blended ? streams::samples_of(blended.get(), video) : std::nullopt;
    return *known_.add(key, samples.value_or(""), GST_VIDEO_INFO_SIZE(&video));
  }

  std::deque<Stream> streams_;
  GstElement* mixer_ = nullptr;
  std::vector<Input> inputs_;
  Cache<std::string> known_;
  std::mutex mutex_;  // guards the following members
  std::deque<Scene> scenes_;
  int oldest_kept_ = 0;             // the number of the first scene
  int low_ = 0;                     // the oldest scene that the next frame may show
  guint64 segment_ = 0, next_ = 0;  // the first frame of the segment, and the next one expected
  bool over_ = false;               // EOS came, and no flush since. A new pad may restart GStreamer's aggregator
};

}  // namespace

std::unique_ptr<Lane> new_mixer_lane(std::uint64_t seed, const Options& options) {
  return std::make_unique<MixerLane>(seed, options);
}

}  // namespace cudavision::soak
