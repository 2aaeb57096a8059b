// SPDX-License-Identifier: LGPL-2.1-or-later
#include "web_pictures.hpp"

#include <algorithm>
#include <utility>

namespace {

using namespace std::string_literals;

const std::string begins[] = {"\xff\xd8\xff"s, "\x89PNG"s};  // the first bytes of JPEG and PNG
const std::string next = "\xff\xd9\xff\xd8"s;                // a JPEG ends and another one begins
constexpr int most_joints = 1;                               // more joints mean that the answer never ends
constexpr std::size_t largest = 64 << 20;                    // maximum number of bytes of a picture

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Whether a part is a picture. Camera-specific names of JPEG become GStreamer's name.
bool is_picture(GstPad* pad) {
  GstCaps* caps = gst_pad_get_current_caps(pad);
  const std::string name = caps ? gst_structure_get_name(gst_caps_get_structure(caps, 0)) : "";
  gst_clear_caps(&caps);
  const bool jpeg = ends_with(name, "jpeg") || ends_with(name, "jpg");
  if (jpeg && name != "image/jpeg") {
    caps = gst_caps_new_empty_simple("image/jpeg");
    gst_pad_push_event(pad, gst_event_new_caps(caps));
    gst_caps_unref(caps);
  }
  return jpeg || name.rfind("image/", 0) == 0 || name.rfind("video/", 0) == 0;
}

}  // namespace

WebPictures::WebPictures(GstElement* source, double every, std::function<void()> live)
    : source_(GST_ELEMENT(gst_object_ref(source))), every_(every), live_(std::move(live)) {
  GstPad* pad = gst_element_get_static_pad(source, "src");
  gst_pad_add_probe(
      pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
      [](GstPad* from, GstPadProbeInfo* info, gpointer self) {
        return static_cast<WebPictures*>(self)->on_source(from, info);
      },
      this, nullptr);
  gst_object_unref(pad);
}

WebPictures::~WebPictures() {
  if (timer_ && g_main_context_find_source_by_id(nullptr, timer_)) g_source_remove(timer_);
  gst_object_unref(source_);
}

void WebPictures::begin() {
  if (began_) return;
  began_ = g_get_monotonic_time();
  live_();
}

/// (transfer full) The buffer with its time of arrival. The time of the pipeline's clock is unknown before the first
/// picture, and wrong while the pipeline starts.
GstBuffer* WebPictures::stamped(GstBuffer* buffer) const {
  buffer = gst_buffer_make_writable(buffer);
  GST_BUFFER_PTS(buffer) = GstClockTime(g_get_monotonic_time() - began_) * GST_USECOND;
  return buffer;
}

GstPadProbeReturn WebPictures::on_source(GstPad* pad, GstPadProbeInfo* info) {
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) return on_data(info);
  const GstEventType kind = GST_EVENT_TYPE(gst_pad_probe_info_get_event(info));
  if (kind == GST_EVENT_STREAM_START) {
    data_.clear();
    joints_ = 0;
    asked_ = g_get_monotonic_time();
  }
  return kind == GST_EVENT_EOS && !data_.empty() ? on_end(pad) : GST_PAD_PROBE_OK;
}

GstPadProbeReturn WebPictures::on_data(GstPadProbeInfo* info) {
  GstBuffer* buffer = gst_pad_probe_info_get_buffer(info);
  if (endless_) {
    info->data = stamped(buffer);
    return GST_PAD_PROBE_OK;
  }
  const gsize size = gst_buffer_get_size(buffer), before = data_.size();
  data_.resize(before + size);
  gst_buffer_extract(buffer, 0, data_.data() + before, size);
  if (before == 0) {
    if (std::none_of(std::begin(begins), std::end(begins), [this](auto& each) { return data_.rfind(each, 0) == 0; })) {
      data_.clear();
      return began_ ? GST_PAD_PROBE_OK : GST_PAD_PROBE_REMOVE;
    }
    begin();
  }
  joints_ += data_.find(next, before < next.size() ? 0 : before + 1 - next.size()) != std::string::npos;
  if (joints_ <= most_joints && data_.size() <= largest) return GST_PAD_PROBE_DROP;
  endless_ = true;
  GstBuffer* all = gst_buffer_new_memdup(data_.data(), data_.size());
  data_.clear();
  gst_buffer_unref(buffer);
  info->data = stamped(all);
  return GST_PAD_PROBE_OK;
}

/// A picture is complete. The stream does not end: the next picture is requested when it is due.
GstPadProbeReturn WebPictures::on_end(GstPad* pad) {
  GstPad* peer = gst_pad_get_peer(pad);  // the pad itself is at its end
  const GstFlowReturn flow = gst_pad_chain(peer, stamped(gst_buffer_new_memdup(data_.data(), data_.size())));
  gst_object_unref(peer);
  if (flow == GST_FLOW_FLUSHING || flow == GST_FLOW_EOS) return GST_PAD_PROBE_DROP;
  const gint64 due = asked_ + gint64(every_ * G_USEC_PER_SEC), now = g_get_monotonic_time();
  timer_ = g_timeout_add(
      guint(std::max(gint64(0), due - now) / 1000),
      [](gpointer self) -> gboolean {
        static_cast<WebPictures*>(self)->ask();
        return G_SOURCE_REMOVE;
      },
      this);
  return GST_PAD_PROBE_DROP;
}

/// Restarts the source. Called in the main loop, like the end of the pipeline.
void WebPictures::ask() {
  gst_element_set_state(source_, GST_STATE_READY);
  gst_element_sync_state_with_parent(source_);
}

/// By default a multipartdemux announces more pads, and decodebin waits seconds for them.
void WebPictures::watch_demuxer(GstElement* demuxer) {
  g_signal_connect_swapped(demuxer, "pad-added",
                           G_CALLBACK(+[](WebPictures* self, GstPad* pad) { self->on_part(pad); }), this);
  g_signal_connect_after(demuxer, "pad-added", G_CALLBACK(+[](GstElement* from, GstPad* pad, gpointer) {
                           if (is_picture(pad)) gst_element_no_more_pads(from);
                         }),
                         nullptr);
}

void WebPictures::on_part(GstPad* pad) {
  const bool picture = is_picture(pad);
  if (picture) begin();
  GstPadProbeCallback stamp = [](GstPad*, GstPadProbeInfo* info, gpointer self) {
    GstBuffer* buffer = gst_pad_probe_info_get_buffer(info);
    if (!GST_BUFFER_PTS_IS_VALID(buffer)) info->data = static_cast<WebPictures*>(self)->stamped(buffer);
    return GST_PAD_PROBE_OK;
  };
  // Sound is dropped.
  GstPadProbeCallback drop = [](GstPad*, GstPadProbeInfo*, gpointer) { return GST_PAD_PROBE_DROP; };
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, picture ? stamp : drop, this, nullptr);
}
