// SPDX-License-Identifier: LGPL-2.1-or-later
#include "losses.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <regex>
#include <utility>

namespace {

constexpr int ahead_most = 1000;  // a demuxer may be this many samples ahead of the decoder when it skips something
constexpr int reordered = 8;      // a sample may be this many frames ahead of the previous one, in any clip
constexpr GstClockTime exact = GST_MSECOND, longest = 3600 * GST_SECOND;
constexpr std::size_t steps_kept = 63, places_shown = 3;

std::mutex listening;
std::vector<Losses*> listeners;

bool is_one_of(const char* text, std::initializer_list<const char*> all) {
  return text && std::any_of(all.begin(), all.end(), [&](const char* one) { return std::strcmp(one, text) == 0; });
}

std::string seconds(GstClockTime time) {
  char text[32];
  g_snprintf(text, sizeof text, "%.1f", double(time) / GST_SECOND);
  return text;
}

}  // namespace

GstClockTime Stream::step() {
  if (!steps_.empty()) {
    std::vector<GstClockTime> sorted(steps_.begin(), steps_.end());
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    usual_ = sorted[sorted.size() / 2];
  }
  return usual_ ? usual_ : least_;
}

void Stream::on_segment(const GstSegment& segment) {
  if (segment.format != GST_FORMAT_TIME) return;
  if (has_segment_ && (segment.start != segment_.start || segment.base != segment_.base)) {
    pending_.clear();
    latest_ = first_ = none;
  }
  segment_ = segment;
  has_segment_ = true;
}

void Stream::on_first(GstPad* pad) {
  has_caps_ = true;
  GstCaps* caps = gst_pad_get_current_caps(pad);
  if (!caps) return;
  const GstStructure* format = gst_caps_get_structure(caps, 0);
  const char* name = gst_structure_get_name(format);
  matched_ =
      !is_one_of(gst_structure_get_string(format, "interlace-mode"), {"interleaved", "mixed", "fields", "alternate"});
  hides_ = is_one_of(name, {"video/x-vp8"});
  int version = 4;
  gst_structure_get_int(format, "mpegversion", &version);
  if (version == 4 && is_one_of(name, {"video/mpeg", "video/x-divx", "video/x-xvid"})) least_size_ = 9;
  gboolean parsed = FALSE;
  parsed_ = gst_structure_get_boolean(format, "parsed", &parsed) && parsed;
  gst_caps_unref(caps);
}

void Stream::on_sample(GstPad* pad, GstBuffer* buffer) {
  GstClockTime time = GST_BUFFER_PTS(buffer);
  if (time == none || std::find(pending_.begin(), pending_.end(), time) != pending_.end()) {
    ordered_ = false;
    pending_.clear();
    time = GST_BUFFER_DTS(buffer);
  }
  const bool key = !GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT);
  if (!has_caps_) on_first(pad);
  guint8 begin = 0xff;
  if (hides_) gst_buffer_extract(buffer, 0, &begin, 1);
  constexpr guint8 vp8_shown = 0x10;
  if (gst_buffer_get_size(buffer) < least_size_ || GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DECODE_ONLY) ||
      (first_ == none && !key) || !(begin & vp8_shown))
    return;
  if (time == none) {  // a stream without a container
    timeless_ = true;
    if (first_ == none) first_ = 0;
    ++samples_;
    if (key) bad_ = false;
    return;
  }
  if (first_ == none) first_ = time;
  if (latest_ != none) {
    const GstClockTimeDiff ahead = GST_CLOCK_DIFF(latest_, time);
    const GstClockTime most = samples_ > reordered ? jump_ : reordered * least_;
    if (watch_ && least_ && ahead > GstClockTimeDiff(most + least_ / 2)) {
      if (!key) damage();
    } else {
      if (ahead > 0) jump_ = std::max(jump_, GstClockTime(ahead));
      const GstClockTime apart = time > before_ ? time - before_ : before_ - time;
      if (apart) least_ = least_ ? std::min(least_, apart) : apart;
    }
    if (watch_) --watch_;
  }
  latest_ = latest_ == none ? time : std::max(latest_, time);
  before_ = time;
  if (key && bad_ && good_from_ == none) good_from_ = time;
  if (time < first_ || (has_segment_ && (time < segment_.start || (segment_.stop != none && time >= segment_.stop))))
    return;
  ++samples_;
  if (ordered_) pending_.push_back(time);
}

void Stream::damage() {
  if (first_ == none) return;
  bad_ = true;
  good_from_ = none;
}

void Stream::skipped() { watch_ = ahead_most; }

bool Stream::on_frame(GstClockTime time) {
  if (bad_ && first_ != none) {
    if (good_from_ == none || time < good_from_) {
      ++dropped_;
      return false;
    }
    bad_ = false;
  }
  ++good_;
  if (time == none) return true;
  const GstClockTime before = std::exchange(last_, time);
  guint64 lost = 0;
  for (const GstClockTime each : pending_) lost += each + exact < time;
  lost = std::max(lost, std::exchange(dropped_, guint64(0)));
  pending_.erase(
      std::remove_if(pending_.begin(), pending_.end(), [&](GstClockTime each) { return each <= time + exact; }),
      pending_.end());
  if (before == none) {
    opened_ = time;
    head_ = lost;
  } else if (time <= before || (time - before <= usual_ + usual_ / 2 && !lost)) {
    if (time > before) note(time - before);
  } else {
    judge(before, time, lost);
  }
  return true;
}

void Stream::note(GstClockTime passed) {
  steps_.push_back(passed);
  if (steps_.size() > steps_kept) steps_.pop_front();
  if (steps_.size() == 1 || steps_.size() == 3 || good_ % 32 == 0) step();
}

void Stream::judge(GstClockTime before, GstClockTime time, guint64 lost) {
  const GstClockTime passed = time - before, usual = step() ? step() : passed;
  const gint64 slots = passed < longest ? std::llround(double(passed) / usual) - 1 : 0;
  if (watch_ && slots > gint64(lost)) {
    add(before + usual, time, slots, true);
    watch_ = std::min(watch_, 2 * reordered);
  } else if (lost || (slots > 0 && !ordered_)) {
    add(slots > 0 ? before + usual : before, time,
        ordered_ ? lost : std::max<guint64>(lost, std::max<gint64>(slots, 0)), false);
  } else {
    note(passed);
  }
}

GstClockTime Stream::stream_time(GstClockTime time) const {
  const GstClockTime found = has_segment_ ? gst_segment_to_stream_time(&segment_, GST_FORMAT_TIME, time) : time;
  return found == none ? 0 : found;
}

void Stream::add(GstClockTime begin, GstClockTime end, guint64 frames, bool about) {
  if (matched_ || about) spans_.push_back({stream_time(begin), stream_time(end), frames, about});
}

std::vector<Stream::Span> Stream::finish(bool indexed, bool ended) {
  if (timeless_) {
    if (ended && matched_ && parsed_ && samples_ > good_ + 1) return {{0, 0, samples_ - good_, false}};
    return {};
  }
  if (opened_ == none || !matched_) return spans_;
  const GstClockTime usual = step();
  if (first_ != none) {
    const gint64 slots = usual && opened_ > first_ ? std::llround(double(opened_ - first_) / usual) : 0;
    if (!ordered_) head_ = std::max<guint64>(head_, slots);
    if (head_ || (watch_ && slots > 0)) {
      add(first_, opened_, std::max<guint64>(head_, watch_ ? slots : 0), head_ < guint64(slots));
      std::rotate(spans_.begin(), spans_.end() - 1, spans_.end());
    }
  }
  if (ended) {
    guint64 lost = pending_.size();
    if (!ordered_) {
      lost = samples_ > good_ ? samples_ - good_ : 0;
      for (Span& span : spans_) lost -= span.frames = std::min(span.frames, lost);
    }
    if (lost && !ordered_ && !spans_.empty() && latest_ < last_ + usual * 7 / 2)
      spans_.back().frames += lost;
    else if (lost > (indexed ? 0U : 1U))
      add(last_ + usual, std::max(last_, latest_) + usual, lost, false);
  }
  spans_.erase(std::remove_if(spans_.begin(), spans_.end(), [](const Span& span) { return !span.frames; }),
               spans_.end());
  return spans_;
}

void Losses::hear(GstDebugCategory* category, GstDebugLevel, const gchar*, const gchar*, gint, GObject* object,
                  GstDebugMessage* message, gpointer) {
  static const std::regex damaged(
      "conceal|damaged|error while decoding|Error at MB|Error splitting|Could not find ref with POC|CABAC_MAX_BIN|"
      "outside the valid range|overread|first frame is no keyframe");
  static const std::regex skipped("parse error|Invalid EBML|CONTINUITY: Mismatch|section discontinuity");
  const char* name = gst_debug_category_get_name(category);
  if (!is_one_of(name, {"libav", "ebmlread", "matroskademux", "tsdemux", "mpegtspacketizer"})) return;
  const char* text = gst_debug_message_get(message);
  const bool of_decoder = std::strcmp(name, "libav") == 0;
  if (!text || !std::regex_search(text, of_decoder ? damaged : skipped)) return;
  const std::lock_guard all(listening);
  const auto id = std::this_thread::get_id();
  const bool known = std::any_of(listeners.begin(), listeners.end(), [&](Losses* each) {
    const std::lock_guard lock(each->mutex_);
    return each->threads_.count(id) > 0;
  });
  for (Losses* each : listeners) {
    const std::lock_guard lock(each->mutex_);
    if (of_decoder && (known ? each->threads_.count(id) > 0 : !each->single_)) {
      for (Decoder& decoder : each->streams_) decoder.stream.damage();
    } else if (!of_decoder && (!GST_IS_OBJECT(object) ||
                               gst_object_has_as_ancestor(GST_OBJECT(object), GST_OBJECT(each->pipeline_)))) {
      each->skips_ = true;
      for (Decoder& decoder : each->streams_) decoder.stream.skipped();
    }
  }
}

Losses::Losses(GstElement* pipeline, GstElement* decoders, bool single)
    : pipeline_(pipeline), decoders_(GST_ELEMENT(gst_object_ref(decoders))), single_(single) {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!g_getenv("GST_DEBUG")) gst_debug_remove_log_function(nullptr);
    gst_debug_add_log_function(&Losses::hear, nullptr, nullptr);
    gst_debug_set_threshold_for_name("libav", GST_LEVEL_INFO);
    for (const char* name : {"ebmlread", "matroskademux", "tsdemux", "mpegtspacketizer"})
      gst_debug_set_threshold_for_name(name, GST_LEVEL_WARNING);
    gst_debug_set_active(TRUE);
  });
  handler_ = g_signal_connect(decoders_, "deep-element-added",
                              G_CALLBACK(+[](GstBin*, GstBin*, GstElement* element, gpointer self) {
                                static_cast<Losses*>(self)->on_added(element);
                              }),
                              this);
  const std::lock_guard all(listening);
  listeners.push_back(this);
}

Losses::~Losses() {
  {
    const std::lock_guard all(listening);
    listeners.erase(std::remove(listeners.begin(), listeners.end(), this), listeners.end());
  }
  g_signal_handler_disconnect(decoders_, handler_);
  gst_object_unref(decoders_);
  for (auto& [element, parser] : parsers_)
    for (GstBuffer* buffer : parser.early) gst_buffer_unref(buffer);
}

void Losses::on_added(GstElement* element) {
  GstElementFactory* factory = gst_element_get_factory(element);
  if (!factory) return;
  const char* name = GST_OBJECT_NAME(factory);
  const char* kind = gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS);
  GstPad *sink = gst_element_get_static_pad(element, "sink"), *src = gst_element_get_static_pad(element, "src");
  if (is_one_of(name, {"asfdemux", "avidemux", "flvdemux", "matroskademux", "qtdemux"})) {
    const std::lock_guard lock(mutex_);
    indexed_ = true;
    ordered_ = std::strcmp(name, "avidemux") != 0;
  } else if (sink && src && std::strstr(kind, "Parser")) {
    watch_parser(element, sink);
  } else if (sink && src && std::strstr(kind, "Decoder") &&
             (std::strstr(kind, "Video") || std::strstr(kind, "Image"))) {
    if (single_ && g_str_has_prefix(name, "avdec_") &&
        g_object_class_find_property(G_OBJECT_GET_CLASS(element), "max-threads"))
      g_object_set(element, "max-threads", 1, nullptr);
    watch_decoder(sink, src);
  }
  gst_clear_object(&sink);
  gst_clear_object(&src);
}

void Losses::watch_parser(GstElement* element, GstPad* sink) {
  Parser* parser = nullptr;
  {
    const std::lock_guard lock(mutex_);
    parser = &parsers_[element];
    parser->losses = this;
  }
  const auto on_data = [](GstPad* pad, GstPadProbeInfo* info, gpointer data) {
    auto* parser = static_cast<Parser*>(data);
    const std::lock_guard lock(parser->losses->mutex_);
    GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    if (!(info->type & GST_PAD_PROBE_TYPE_BUFFER)) {
      GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
      const GstSegment* segment = nullptr;
      if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT && parser->stream) {
        gst_event_parse_segment(event, &segment);
        parser->stream->on_segment(*segment);
      }
    } else if (parser->stream) {
      parser->stream->on_sample(pad, buffer);
    } else if (parser->losses->indexed_) {
      parser->early.push_back(gst_buffer_ref(buffer));
    } else {
      return GST_PAD_PROBE_REMOVE;  // these are packets, not frames
    }
    return GST_PAD_PROBE_OK;
  };
  gst_pad_add_probe(sink, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM), on_data,
                    parser, nullptr);
}

Losses::Parser* Losses::parser_of(GstPad* sink) {
  Parser* found = nullptr;
  for (GstPad* pad = indexed_ ? gst_pad_get_peer(sink) : nullptr; pad && !found;) {
    GstElement* element = gst_pad_get_parent_element(pad);
    gst_object_unref(pad);
    pad = nullptr;
    if (!element) break;
    if (const auto place = parsers_.find(element); place != parsers_.end()) {
      found = &place->second;
    } else if (GstPad* before = gst_element_get_static_pad(element, "sink")) {
      pad = gst_pad_get_peer(before);
      gst_object_unref(before);
    }
    gst_object_unref(element);
  }
  return found;
}

void Losses::on_first(Decoder& decoder, GstPad* sink) {
  threads_.insert(std::this_thread::get_id());
  if (GstEvent* event = gst_pad_get_sticky_event(sink, GST_EVENT_SEGMENT, 0)) {
    const GstSegment* segment = nullptr;
    gst_event_parse_segment(event, &segment);
    decoder.stream.on_segment(*segment);
    gst_event_unref(event);
  }
  if (Parser* parser = parser_of(sink)) {
    for (GstBuffer* buffer : std::exchange(parser->early, {})) {
      decoder.stream.on_sample(sink, buffer);
      gst_buffer_unref(buffer);
    }
    parser->stream = &decoder.stream;
    return;
  }
  const auto on_sample = [](GstPad* pad, GstPadProbeInfo* info, gpointer data) {
    auto* decoder = static_cast<Decoder*>(data);
    const std::lock_guard lock(decoder->losses->mutex_);
    decoder->stream.on_sample(pad, GST_PAD_PROBE_INFO_BUFFER(info));  // this includes the first sample
    return GST_PAD_PROBE_OK;
  };
  gst_pad_add_probe(sink, GST_PAD_PROBE_TYPE_BUFFER, on_sample, &decoder, nullptr);
}

void Losses::watch_decoder(GstPad* sink, GstPad* src) {
  Decoder* decoder = nullptr;
  {
    const std::lock_guard lock(mutex_);
    streams_.push_back({this, Stream(ordered_, skips_)});
    decoder = &streams_.back();
  }
  const auto on_first = [](GstPad* pad, GstPadProbeInfo*, gpointer data) {
    auto* decoder = static_cast<Decoder*>(data);
    const std::lock_guard lock(decoder->losses->mutex_);
    decoder->losses->on_first(*decoder, pad);
    return GST_PAD_PROBE_REMOVE;
  };
  const auto on_frame = [](GstPad* pad, GstPadProbeInfo* info, gpointer data) {
    auto* decoder = static_cast<Decoder*>(data);
    const std::lock_guard lock(decoder->losses->mutex_);
    constexpr guint64 few = 8;
    if (decoder->stream.good() < few && gst_pad_get_last_flow_return(pad) == GST_FLOW_NOT_LINKED)
      decoder->stream.used = false;  // a track that is not analysed
    return decoder->stream.on_frame(GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info))) ? GST_PAD_PROBE_OK
                                                                                     : GST_PAD_PROBE_DROP;
  };
  gst_pad_add_probe(sink, GST_PAD_PROBE_TYPE_BUFFER, on_first, decoder, nullptr);
  gst_pad_add_probe(src, GST_PAD_PROBE_TYPE_BUFFER, on_frame, decoder, nullptr);
}

std::string Losses::sentence(bool whole, std::optional<GstClockTime> until) {
  const std::lock_guard lock(mutex_);
  guint64 good = 0, lost = 0;
  bool about = false, timed = false;
  std::vector<Stream::Span> spans;
  for (Decoder& decoder : streams_) {
    if (!decoder.stream.used) continue;
    good += decoder.stream.good();
    for (const Stream::Span& span : decoder.stream.finish(indexed_, whole))
      if (!until || span.begin < *until) spans.push_back(span);
  }
  if (spans.empty()) return {};
  std::string where;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    lost += spans[i].frames;
    about |= spans[i].about;
    timed |= spans[i].end > 0;
    const bool last = i + 1 == std::min(spans.size(), places_shown) && spans.size() <= places_shown;
    if (i < places_shown)
      where += (i == 0 ? ", "
                : last ? " and "
                       : ", ") +
               seconds(spans[i].begin) + " to " + seconds(spans[i].end) + " s";
  }
  if (const std::size_t more = spans.size() - std::min(spans.size(), places_shown))
    where += " and " + std::to_string(more) + " more place" + (more > 1 ? "s" : "");
  return (about ? "about " : "") + std::to_string(lost) + " of " + std::to_string(good + lost) +
         " frames could not be read" + (timed ? where : "");
}
