// SPDX-License-Identifier: LGPL-2.1-or-later
// Pipelines of filters: each frame is followed from the source to each sink.
#include <stdexcept>

#include "tests/soak/filter_check.hpp"
#include "tests/soak/lane.hpp"

namespace cudavision::soak {
namespace {

using streams::Random;

Stream new_stream(Random random, bool gray) {
  std::vector<std::string> formats{"NV12", "RGBA", "I420", "P010_10LE", "BGRx", "Y444"};
  if (gray) formats.insert(formats.end(), {"GRAY8", "RGB", "YUY2"});
  std::vector<std::string> chosen{random.pick(formats)};
  if (const std::string second = random.pick(formats); second != chosen[0]) chosen.push_back(second);
  std::vector<Stream::Size> sizes{{random.between(24, 320), usable_height(random.between(24, 180))}, {320, 180}};
  if (random.one_in(2)) sizes.push_back({random.between(24, 48), usable_height(random.between(24, 48))});
  return Stream(random.bits(), chosen, sizes, guint64(random.between(400, 1500)));
}

class FilterLane : public Lane {
 public:
  FilterLane(const Shape& shape, std::uint64_t seed, const Options& options)
      : Lane(shape.name, seed, options), stream_(new_stream(random_.fork(), shape.gray)) {
    for (const std::string& stage : shape.stages) histories_.emplace_back(kind(stage));
    build(shape);
  }
  ~FilterLane() override { disown(); }

 private:
  void build(const Shape& shape) {
    std::string launch = shape.launch;
    const auto replace = [&](const std::string& what, const std::string& with) {
      const std::size_t at = launch.find(what);
      if (at != std::string::npos) launch.replace(at, what.size(), with);
      return at != std::string::npos;
    };
    for (std::size_t i = 0; i < shape.stages.size(); ++i) {
      const Kind& stage = histories_[i].kind();
      const std::string name = " name=e" + std::to_string(i);
      replace("{" + std::to_string(i) + "}",
              options_.twin ? "identity" + name
                            : stage.factory + name + " backend=" + options_.backend + " " + stage.settings[0]);
    }
    int memories = 0, sinks = 0;
    while (replace("{m}", "capsfilter caps-change-mode=delayed name=m" + std::to_string(memories))) ++memories;
    while (replace("{o}", "fakesink sync=false name=o" + std::to_string(sinks))) ++sinks;
    Lane::launch(launch);
    for (int i = 0; i < memories; ++i) add_memory_filter(find("m" + std::to_string(i)));
    for (int i = 0; i < int(shape.stages.size()); ++i) elements_.push_back(find("e" + std::to_string(i)));
    source_ = new_source(stream_, random_.bits());
    gst_bin_add(GST_BIN(pipeline()), source_);
    gst_element_link(source_, elements_[0]);
    add_probe(source_, "src", sent, this);
    for (int i = 0; i < sinks; ++i) {
      std::vector<History*> stages;
      for (const int stage : shape.outlets[std::size_t(i)])
        if (!options_.twin) stages.push_back(&histories_[std::size_t(stage)]);
      outlets_.push_back(std::make_unique<Exit>(*this, stages));
      watch(find("o" + std::to_string(i)), *outlets_.back());
    }
  }

  struct Exit : Arrivals {
    Exit(FilterLane& of, const std::vector<History*>& stages)
        : lane(of), outlet(of.report_, of.stream_, of.mutex_, stages) {}
    void arrive(GstBuffer* frame, const GstVideoInfo& video, GstClockTime time) override {
      outlet.take(frame, video, time);
    }
    void arrive(GstEventType event) override {
      if (event == GST_EVENT_FLUSH_STOP) outlet.flushed();
      if (event != GST_EVENT_EOS) return;
      outlet.eos();
      if (++lane.ends_ % int(lane.outlets_.size()) == 0) lane.ended();
    }
    FilterLane& lane;
    Outlet outlet;
  };

  void enter(const Entry& entry) {
    for (auto& exit : outlets_) exit->outlet.enter(entry);
  }

  static GstPadProbeReturn sent(GstPad*, GstPadProbeInfo* info, gpointer data) {
    FilterLane& self = *static_cast<FilterLane*>(data);
    const std::lock_guard<std::mutex> lock(self.mutex_);
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
      GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
      Entry entry{Entry::Type::frame, self.serial_++, number_of(GST_BUFFER_PTS(buffer)), -1, 0};
      const bool follows =
          self.previous_ >= 0 && self.stream_.caps_at(entry.n) == self.stream_.caps_at(guint64(self.previous_));
      if (follows) entry.previous = self.previous_;
      entry.time = gst_segment_to_running_time(&self.segment_, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
      self.previous_ = gint64(entry.n);
      self.enter(entry);
    } else {
      GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
      if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) gst_event_copy_segment(event, &self.segment_);
      if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) self.enter({Entry::Type::eos});
      if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
        self.previous_ = -1;
        self.enter({Entry::Type::flush});
      }
    }
    return GST_PAD_PROBE_OK;
  }

  void seek(guint64 n) override {
    report_.act("flushing seek to frame " + std::to_string(n));
    ends_ = 0;
    const Interruption interruption(*this);
    send_seek(n, GST_SEEK_FLAG_FLUSH);
  }
  void send_seek(guint64 n, GstSeekFlags flags) {
    // a bin would send it once for each sink
    if (!gst_element_send_event(source_, gst_event_new_seek(1, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET,
                                                            gint64(n * frame_time), GST_SEEK_TYPE_NONE, -1)))
      report_.fail("a seek failed");
  }

  void change_setting(std::istream& numbers) {
    const std::size_t i = std::size_t(next(numbers, elements_.size()));
    const std::vector<std::string>& settings = histories_[i].kind().settings;
    const int setting = int(next(numbers, settings.size()));
    report_.act("e" + std::to_string(i) + ": " + settings[std::size_t(setting)]);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      histories_[i].begin(setting);
    }
    if (!options_.twin) set(elements_[i], settings[std::size_t(setting)]);
    const std::lock_guard<std::mutex> lock(mutex_);
    histories_[i].finish(serial_);
  }

  std::string choose() override {
    switch (random_.below(10)) {
      case 0:
        return "seek-on" + number_below(stream_.length());
      case 1:
        return "flushes" + number_below(stream_.length());
      case 2: {
        const std::string element = number_below(elements_.size());
        return "depth" + element + number_below(5);
      }
      default: {
        const std::size_t i = std::size_t(random_.below(int(elements_.size())));
        return "set " + std::to_string(i) + number_below(histories_[i].kind().settings.size());
      }
    }
  }

  void perform(const std::string& name, std::istream& numbers) override {
    if (name == "set") return change_setting(numbers);
    if (name == "depth") return turn(elements_[std::size_t(next(numbers, elements_.size()))], numbers);
    const guint64 n = next(numbers, stream_.length());
    if (name == "seek-on") {
      if (ends_ != 0) return;
      report_.act("seek without flush to frame " + std::to_string(n));
      send_seek(n, GST_SEEK_FLAG_NONE);
    } else if (name == "flushes") {
      report_.act("two flushes");
      {
        const Interruption interruption(*this);
        gst_element_send_event(source_, gst_event_new_flush_start());
        gst_element_send_event(source_, gst_event_new_flush_stop(TRUE));
      }
      flushed_twice();
      // Without a seek after this, basesrc sometimes does not restart (seen with GStreamer 1.22).
      seek(n);
    } else {
      throw std::runtime_error("unknown");
    }
  }

  void forget() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& exit : outlets_) exit->outlet.forget();
    previous_ = -1;
    ends_ = 0;
  }
  guint64 length() const override { return stream_.length(); }

  const Stream stream_;
  std::vector<GstElement*> elements_;
  GstElement* source_ = nullptr;
  std::deque<History> histories_;
  std::vector<std::unique_ptr<Exit>> outlets_;
  std::atomic<int> ends_{0};
  std::mutex mutex_;  // guards the following members and the histories
  guint64 serial_ = 0;
  gint64 previous_ = -1;
  GstSegment segment_{};
};

}  // namespace

std::unique_ptr<Lane> new_filter_lane(int index, std::uint64_t seed, const Options& options) {
  return std::make_unique<FilterLane>(shapes()[std::size_t(index) % shapes().size()], seed, options);
}

}  // namespace cudavision::soak
