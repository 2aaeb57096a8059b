// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/stream.hpp"

#include <gst/base/gstpushsrc.h>

#include <algorithm>
#include <atomic>

namespace cudavision::soak {

using streams::Picture;
using streams::Random;

int usable_height(int height) {
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  return minor < 24 ? height & ~1 : height;
}

Stream::Stream(std::uint64_t seed, const std::vector<std::string>& formats, const std::vector<Size>& sizes,
               guint64 length)
    : seed_(seed), length_(length), run_(guint64(Random(seed).between(20, 80))) {
  Random random(seed);
  for (const std::string& format : formats)
    for (const Size& size : sizes) {
      GstVideoInfo video;
      gst_video_info_init(&video);
      gst_video_info_set_format(&video, gst_video_format_from_string(format.c_str()), guint(size.width),
                                guint(size.height));
      video.fps_n = frames_per_second, video.fps_d = 1;
      for (int i = 0; i < pictures_per_caps; ++i) pictures_.push_back(streams::draw_picture(random, video));
    }
}

int Stream::caps_at(guint64 n) const {
  return Random(seed_, n / run_).below(int(pictures_.size()) / pictures_per_caps);
}
int Stream::picture_at(guint64 n) const { return Random(~seed_, n).below(pictures_per_caps); }

GstBuffer* wrap(const Picture& picture) {
  auto* bytes = const_cast<char*>(picture.bytes.data());  // GStreamer does not write to read-only memory
  const gsize size = picture.bytes.size();
  return gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, bytes, size, 0, size, nullptr, nullptr);
}

namespace {

struct Source {
  GstPushSrc parent;
  const Stream* stream;
  std::atomic<guint64> next;
  int caps;  ///< of the last frame; −1: none
  std::uint64_t seed;
};
struct SourceClass {
  GstPushSrcClass parent;
};

G_DEFINE_TYPE(Source, soak_source, GST_TYPE_PUSH_SRC)

Source* self_of(gpointer object) { return static_cast<Source*>(object); }

gboolean start(GstBaseSrc* base) {
  self_of(base)->caps = -1;
  self_of(base)->next = 0;
  return TRUE;
}

gboolean is_seekable(GstBaseSrc*) { return TRUE; }

gboolean do_seek(GstBaseSrc* base, GstSegment* segment) {
  self_of(base)->next = number_of(segment->position);
  return TRUE;
}

gboolean negotiate(GstBaseSrc* base) {
  Source* self = self_of(base);
  const int number = self->stream->caps_at(std::min(self->next.load(), self->stream->length() - 1));
  g_autoptr(GstCaps) caps = gst_video_info_to_caps(&self->stream->video(number));
  const gboolean accepted = gst_base_src_set_caps(base, caps);
  self->caps = accepted ? number : -1;  // a flushing pad does not keep them
  return accepted;
}

GstFlowReturn from_pool(GstBaseSrc* base, const Picture& picture, GstBuffer** buffer) {
  const GstFlowReturn flow =
      GST_BASE_SRC_CLASS(soak_source_parent_class)->alloc(base, 0, guint(GST_VIDEO_INFO_SIZE(&picture.video)), buffer);
  return flow != GST_FLOW_OK || streams::copy_into(*buffer, picture) ? flow : GST_FLOW_ERROR;
}

GstFlowReturn create(GstPushSrc* push, GstBuffer** buffer) {
  Source* self = self_of(push);
  GstBaseSrc* base = GST_BASE_SRC(push);
  const guint64 n = self->next;
  if (n >= self->stream->length()) return GST_FLOW_EOS;
  if (self->stream->caps_at(n) != self->caps && !gst_base_src_negotiate(base))
    return GST_PAD_IS_FLUSHING(GST_BASE_SRC_PAD(base)) ? GST_FLOW_FLUSHING : GST_FLOW_NOT_NEGOTIATED;
  const Picture& picture = self->stream->at(n);
  Random random(self->seed, n / 32);  // runs of frames from one kind of memory
  switch (random.below(4)) {
    case 0:
      *buffer = gst_buffer_new_memdup(picture.bytes.data(), picture.bytes.size());
      break;
    case 1:
      *buffer = wrap(picture);
      break;
    case 2:
      *buffer = streams::lay_out(
          random, picture, random.pick({streams::Layout::padded, streams::Layout::apart, streams::Layout::bottom_up}));
      break;
    default:
      if (const GstFlowReturn flow = from_pool(base, picture, buffer); flow != GST_FLOW_OK) return flow;
  }
  GST_BUFFER_PTS(*buffer) = n * frame_time;
  GST_BUFFER_DURATION(*buffer) = frame_time;
  self->next = n + 1;
  return GST_FLOW_OK;
}

void soak_source_class_init(SourceClass* klass) {
  auto* element = GST_ELEMENT_CLASS(klass);
  gst_element_class_set_static_metadata(element, "Source of the soak", "Source/Video", "Sends known pictures",
                                        "cudavision");
  g_autoptr(GstCaps) any = gst_caps_new_empty_simple("video/x-raw");
  gst_element_class_add_pad_template(element, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, any));
  auto* base = GST_BASE_SRC_CLASS(klass);
  base->start = start;
  base->is_seekable = is_seekable;
  base->do_seek = do_seek;
  base->negotiate = negotiate;
  GST_PUSH_SRC_CLASS(klass)->create = create;
}

void soak_source_init(Source* self) { gst_base_src_set_format(GST_BASE_SRC(self), GST_FORMAT_TIME); }

}  // namespace

GstElement* new_source(const Stream& stream, std::uint64_t seed) {
  auto* source = GST_ELEMENT(g_object_new(soak_source_get_type(), nullptr));
  self_of(source)->stream = &stream;
  self_of(source)->seed = seed;
  return source;
}

guint64 position_of(GstElement* source) { return self_of(source)->next; }

}  // namespace cudavision::soak
