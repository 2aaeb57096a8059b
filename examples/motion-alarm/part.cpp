// SPDX-License-Identifier: LGPL-2.1-or-later
#include "part.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <regex>
#include <utility>
#include <vector>

namespace {

/// Times are often rounded to milliseconds, so a time means the frame whose rounded time it is.
constexpr GstClockTimeDiff rounded = GST_MSECOND / 2;
/// This close to the start, decoding is faster than a seek.
constexpr GstClockTimeDiff near = 2 * GST_SECOND;
/// Some demuxers seek by decoding times, which precede the times of frames.
constexpr GstClockTimeDiff margin = GST_SECOND;

guint64 number_of(const std::string& text) { return text.empty() ? 0 : g_ascii_strtoull(text.c_str(), nullptr, 10); }

guint64 ns_of(guint64 minutes, const std::string& seconds) {
  const auto point = seconds.find('.');
  std::string rest = point == std::string::npos ? "" : seconds.substr(point + 1);
  rest.resize(9, '0');
  return (minutes * 60 + number_of(seconds.substr(0, point))) * GST_SECOND + number_of(rest);
}

std::string words_of(const Time& time) {
  gchar* text = time.in_frames ? g_strdup_printf("frame %" G_GUINT64_FORMAT, time.value)
                               : g_strdup_printf("%g s", double(time.value) / GST_SECOND);
  const std::string words = text;
  g_free(text);
  return words;
}

std::string words_of(const Part& part) {
  std::string words;
  const auto add = [&words](const std::string& text) { words += (words.empty() ? "" : ", ") + text; };
  if (part.start) add("from " + words_of(*part.start));
  if (part.end) add("to " + words_of(*part.end));
  if (part.duration)
    add((part.start ? "" : "the first ") +
        (part.duration->in_frames ? std::to_string(part.duration->value) + " frames" : words_of(*part.duration)));
  return words;
}

/// The stream time of a buffer at a pad; below 0 if it is before the beginning. No value if it has no time.
std::optional<GstClockTimeDiff> stream_time_of(GstPad* pad, GstBuffer* buffer) {
  GstEvent* event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
  if (!event) return {};
  const GstSegment* segment = nullptr;
  gst_event_parse_segment(event, &segment);
  guint64 found = 0;
  const int sign = GST_BUFFER_PTS_IS_VALID(buffer) && segment->format == GST_FORMAT_TIME
                       ? gst_segment_to_stream_time_full(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer), &found)
                       : 0;
  gst_event_unref(event);
  if (sign == 0) return {};
  return sign * GstClockTimeDiff(found);
}

/// The elements in the source before a sink pad.
struct Source {
  bool indexed = false;  ///< there is a demuxer that gives the same times with and without a seek
  bool file = false, demuxer = false;

  explicit Source(GstPad* pad) {
    GstPad* peer = gst_pad_get_peer(pad);
    GstElement* element = peer ? gst_pad_get_parent_element(peer) : nullptr;
    if (peer) gst_object_unref(peer);
    if (element && GST_IS_BIN(element)) {
      GstIterator* all = gst_bin_iterate_recurse(GST_BIN(element));
      gst_iterator_foreach(
          all,
          [](const GValue* value, gpointer self) {
            if (GstElementFactory* factory = gst_element_get_factory(GST_ELEMENT(g_value_get_object(value))))
              static_cast<Source*>(self)->add(factory);
          },
          this);
      gst_iterator_free(all);
    }
    if (element) gst_object_unref(element);
  }

  bool is_raw() const { return file && !demuxer; }

 private:
  void add(GstElementFactory* factory) {
    const char* name = GST_OBJECT_NAME(factory);
    indexed |= !std::strcmp(name, "qtdemux") || !std::strcmp(name, "matroskademux");
    file |= !std::strcmp(name, "filesrc");
    demuxer |= std::strstr(gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS), "Demuxer") != nullptr;
  }
};

}  // namespace

std::optional<Time> time_of(const std::string& text) {
  static const std::regex frames("[0-9]{1,10}"), seconds("([0-9]{1,9}(\\.[0-9]{1,9})?)s|([0-9]{1,9}\\.[0-9]{1,9})"),
      clock("(([0-9]{1,5}):)?([0-9]{1,2}):([0-9]{2}(\\.[0-9]{1,9})?)");
  std::smatch match;
  if (std::regex_match(text, frames)) return Time{true, number_of(text)};
  if (std::regex_match(text, match, seconds)) return Time{false, ns_of(0, match[1].matched ? match[1] : match[3])};
  if (!std::regex_match(text, match, clock) || number_of(match[3]) > 59 || number_of(match[4]) > 59) return {};
  return Time{false, ns_of(number_of(match[2]) * 60 + number_of(match[3]), match[4])};
}

std::optional<Rate> rate_of(const std::string& text) {
  static const std::regex form(R"(([0-9]{1,6})(?:\.([0-9]{1,6})|/([1-9][0-9]{0,5}))?)");
  std::smatch match;
  if (!std::regex_match(text, match, form)) return {};
  Rate rate{number_of(match[1].str() + match[2].str()), match[3].matched ? number_of(match[3]) : 1};
  for (auto digits = match[2].length(); digits > 0; --digits) rate.seconds *= 10;
  if (rate.frames == 0 || rate.frames > 1000 * rate.seconds) return {};
  return rate;
}

std::string error_of(const Part& part) {
  if (part.end && part.duration) return "--end and --duration exclude each other";
  for (const auto& [name, time] : {std::pair{"end", part.end}, {"duration", part.duration}})
    if (time && time->value == 0) return std::string("--") + name + " is 0: there is nothing before it";
  if (part.start && part.end && part.start->in_frames == part.end->in_frames && part.start->value >= part.end->value)
    return "--start (" + words_of(*part.start) + ") must be before --end (" + words_of(*part.end) + ")";
  return {};
}

struct Gate::State {
  const Part part;
  // Used by the thread of the pad.
  guint64 came = 0, passed = 0;
  bool began = false, ended = false;
  std::optional<GstClockTimeDiff> end;
  GstClockTimeDiff reached = 0;          ///< the stream time up to which frames arrived, whether they passed or not
  std::vector<GstClockTimeDiff> places;  ///< the places to seek to, the last one first
  // Shared with the thread that seeks.
  std::mutex mutex;
  gulong block = 0;

  explicit State(const Part& chosen) : part(chosen) {}

  bool by_time(const std::optional<Time>& time) const { return time && !time->in_frames; }

  /// Seeks from the first frame, and again from the beginning if no frame before the start was found.
  GstPadProbeReturn on_block(GstPad* pad, GstBuffer* buffer, const std::shared_ptr<State>& self) {
    const auto when = stream_time_of(pad, buffer);
    const auto start = GstClockTimeDiff(part.start->value);
    const bool first = places.size() == 2;
    if (!when || places.empty() || (first ? *when >= start - near || !Source(pad).indexed : *when <= start)) {
      const std::lock_guard lock(mutex);
      block = 0;
      return GST_PAD_PROBE_REMOVE;
    }
    struct Search {
      std::shared_ptr<State> state;
      GstPad* pad;
      GstClockTimeDiff place;
    };
    auto* search = new Search{self, GST_PAD(gst_object_ref(pad)), places.back()};
    places.pop_back();
    // Another thread seeks, because the seek has to stop this one. Frames wait for the seek.
    GstElement* element = gst_pad_get_parent_element(pad);
    gst_element_call_async(
        element,
        [](GstElement*, gpointer data) {
          auto* search = static_cast<Search*>(data);
          search->state->search(search->pad, search->place);
        },
        search,
        [](gpointer data) {
          auto* search = static_cast<Search*>(data);
          gst_object_unref(search->pad);
          delete search;
        });
    gst_object_unref(element);
    return GST_PAD_PROBE_OK;
  }

  void search(GstPad* pad, GstClockTimeDiff place) {
    const auto flags = GstSeekFlags(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT | GST_SEEK_FLAG_SNAP_BEFORE);
    if (gst_pad_push_event(
            pad, gst_event_new_seek(1, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, place, GST_SEEK_TYPE_NONE, 0)))
      return;
    // A seek is not possible: the earlier frames are decoded and dropped.
    const std::lock_guard lock(mutex);
    if (block) gst_pad_remove_probe(pad, std::exchange(block, 0));
  }

  GstPadProbeReturn on_buffer(GstPad* pad, GstBuffer* buffer) {
    const auto when = stream_time_of(pad, buffer);
    if (!when && (by_time(part.start) || by_time(part.end) || by_time(part.duration))) {
      GstElement* element = gst_pad_get_parent_element(pad);
      GST_ELEMENT_ERROR(element, STREAM, FAILED,
                        ("The frames of the clip have no times; set --rate, its frames per second, or give its part in "
                         "frames."),
                        (nullptr));
      gst_object_unref(element);
      return GST_PAD_PROBE_DROP;
    }
    ++came;
    if (when) {
      const GstClockTimeDiff length = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : 0;
      reached = std::max(reached, *when + length);
    }
    if (!began) {
      if (part.start &&
          (part.start->in_frames ? came <= part.start->value : *when + rounded < GstClockTimeDiff(part.start->value)))
        return GST_PAD_PROBE_DROP;
      began = true;
      if (by_time(part.end)) end = part.end->value;
      if (by_time(part.duration))
        end = part.duration->value + (by_time(part.start) ? part.start->value : part.start ? *when : 0);
    }
    if (is_over(when)) {
      if (!std::exchange(ended, true)) gst_pad_send_event(pad, gst_event_new_eos());
      return GST_PAD_PROBE_DROP;
    }
    return passed++ % (part.skip + 1) == 0 ? GST_PAD_PROBE_OK : GST_PAD_PROBE_DROP;
  }

  bool is_over(const std::optional<GstClockTimeDiff>& when) const {
    if (end) return when && *when + rounded >= *end;
    return (part.end && came > part.end->value) || (part.duration && passed >= part.duration->value);
  }
};

namespace {

/// Gives frames the times of a clip with a frame rate, if they have none or come from a file without a container.
/// In such files, GStreamer gives H.265 times, but always for 25 frames per second.
class Times {
 public:
  explicit Times(const Rate& rate) : rate_(rate) {}

  GstBuffer* timed(GstPad* pad, GstBuffer* buffer) {
    if (!raw_) raw_ = Source(pad).is_raw();
    if (GST_BUFFER_PTS_IS_VALID(buffer) && !*raw_) {
      start_ = GST_BUFFER_PTS(buffer);
      count_ = 1;
      return buffer;
    }
    buffer = gst_buffer_make_writable(buffer);
    GST_BUFFER_PTS(buffer) = start_ + time_of(count_++);
    GST_BUFFER_DURATION(buffer) = time_of(1);
    return buffer;
  }

 private:
  GstClockTime time_of(guint64 count) const {
    return gst_util_uint64_scale(count, GST_SECOND * rate_.seconds, rate_.frames);
  }

  const Rate rate_;
  std::optional<bool> raw_;
  GstClockTime start_ = 0;  ///< the time of a frame
  guint64 count_ = 0;       ///< the number of frames since then
};

}  // namespace

Gate::Gate(GstPad* pad, const Part& part) : state_(std::make_shared<State>(part)) {
  if (part.rate)
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad* pad, GstPadProbeInfo* info, gpointer times) {
          info->data = static_cast<Times*>(times)->timed(pad, GST_PAD_PROBE_INFO_BUFFER(info));
          return GST_PAD_PROBE_OK;
        },
        new Times(*part.rate), [](gpointer times) { delete static_cast<Times*>(times); });
  if (part.is_all()) return;
  using Shared = std::shared_ptr<State>;
  const GDestroyNotify forget = [](gpointer state) { delete static_cast<Shared*>(state); };
  gst_pad_add_probe(
      pad, GST_PAD_PROBE_TYPE_BUFFER,
      [](GstPad* pad, GstPadProbeInfo* info, gpointer state) {
        return (*static_cast<Shared*>(state))->on_buffer(pad, GST_PAD_PROBE_INFO_BUFFER(info));
      },
      new Shared(state_), forget);
  // Frame numbers are counted from the beginning.
  if (!part.start || part.start->in_frames || part.start->value == 0 || (part.end && part.end->in_frames)) return;
  state_->places = {0, std::max<GstClockTimeDiff>(GstClockTimeDiff(part.start->value) - margin, 0)};
  state_->block = gst_pad_add_probe(
      pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER),
      [](GstPad* pad, GstPadProbeInfo* info, gpointer data) {
        const Shared state = *static_cast<Shared*>(data);
        return state->on_block(pad, GST_PAD_PROBE_INFO_BUFFER(info), state);
      },
      new Shared(state_), forget);
}

std::optional<GstClockTime> Gate::over() const {
  return state_->ended ? std::optional(GstClockTime(state_->reached)) : std::nullopt;
}

std::string Gate::why_nothing() const {
  const State& state = *state_;
  if (state.came == 0 || state.passed > 0) return {};
  gchar* ends = state.part.start && state.part.start->in_frames
                    ? g_strdup_printf("%" G_GUINT64_FORMAT " frames", state.came)
                    : g_strdup_printf("frames until %.3f s", double(state.reached) / GST_SECOND);
  const std::string text = "there is no frame in the part (" + words_of(state.part) + "), because the clip has " + ends;
  g_free(ends);
  return text;
}
