// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/stream.hpp"

#include <utility>

#include "tests/streams/broken.hpp"
#include "tests/streams/complaints.hpp"
#include "tests/streams/events.hpp"
#include "tests/streams/settings.hpp"

namespace cudavision::fuzz {
namespace {

using namespace streams;

constexpr GstClockTime frame_time = 40 * GST_MSECOND;

GstBuffer* stamped(GstBuffer* buffer, int index) {
  GST_BUFFER_PTS(buffer) = guint(index) * frame_time;
  GST_BUFFER_DURATION(buffer) = frame_time;
  return buffer;
}

/// (transfer full) Copies the picture into a buffer of the pool that the element proposes. Returns NULL if there is no
/// pool or no memory.
GstBuffer* in_proposed_pool(Input& input, const Picture& picture, const std::string& caps_text) {
  g_autoptr(GstCaps) caps = gst_caps_from_string(caps_text.c_str());
  g_autoptr(GstQuery) query = gst_query_new_allocation(caps, TRUE);
  g_autoptr(GstBufferPool) pool = nullptr;
  guint size = 0;
  if (gst_pad_query(input.target(), query) && gst_query_get_n_allocation_pools(query) > 0)
    gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, nullptr, nullptr);
  if (!pool) return nullptr;
  GstBuffer* buffer = nullptr;
  GstStructure* config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps, size, 0, 0);
  if (gst_buffer_pool_set_config(pool, config) && gst_buffer_pool_set_active(pool, TRUE))
    gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr);
  gst_buffer_pool_set_active(pool, FALSE);
  if (buffer) copy_into(buffer, picture);
  return buffer;
}

GstBuffer* draw_frame(Input& input, Random& random, const StreamPlan& plan, int index) {
  const GstVideoInfo video = video_of(plan);
  const Picture picture = draw_picture(random, video);
  GstBuffer* buffer = plan.device ? in_proposed_pool(input, picture, caps_text(plan))
                                  : lay_out(random, picture, Layout(random.below(layout_count)));
  if (!buffer) return nullptr;
  stamped(buffer, index);
  decorate(random, buffer);
  if (!plan.hostile_frames || random.one_in(2)) return buffer;
  if (random.one_in(50)) GST_BUFFER_PTS(buffer) = GST_CLOCK_TIME_NONE;
  if (random.one_in(50)) GST_BUFFER_DURATION(buffer) = GST_CLOCK_TIME_NONE;
  if (!plan.device && random.one_in(5))
    overlap_rows(random, buffer, video);
  else if (!plan.device && random.one_in(6))
    shorten(random, buffer);
  else
    spoil(random, buffer, video);
  if (!plan.device && random.one_in(8)) shorten(random, buffer);
  return buffer;
}

std::string all_bytes(GstBuffer* buffer) {
  std::string bytes(gst_buffer_get_size(buffer), '\0');
  gst_buffer_extract(buffer, 0, bytes.data(), bytes.size());
  return bytes;
}

/// Pushes a frame. Sometimes keeps a reference to it, as a tee does, and then checks that nobody wrote to it.
GstFlowReturn push(Input& input, Random& random, GstBuffer* buffer) {
  if (!random.one_in(3)) return input.push(buffer);
  gst_buffer_ref(buffer);
  const std::string before = all_bytes(buffer);
  const GstFlowReturn flow = input.push(buffer);
  if (all_bytes(buffer) != before) complain("the element wrote to a shared frame");
  gst_buffer_unref(buffer);
  return flow;
}

void flush(Input& input, Random& random) {
  if (random.one_in(4)) input.send(gst_event_new_flush_start());
  input.flush(random.below(2));
}

/// Sends a random event, query or caps, or sets a property. Returns false if the element refused the caps.
bool disturb(Rig& rig, Input& input, Random& random, StreamPlan& plan) {
  switch (random.below(10)) {
    case 0:
      flush(input, random);
      break;
    case 1:
      rig.send_upstream(draw_upstream_event(random));
      break;
    case 2:
      input.query(draw_sink_query(random, video_of(plan)));
      break;
    case 3:
      rig.query_upstream(draw_src_query(random));
      break;
    case 4:
      input.send(draw_segment(random));
      break;
    case 5:
      if (!plan.device) draw_size(random, plan);
      if (!plan.device && random.one_in(2)) std::swap(plan.format, plan.other_format);
      return input.begin(caps_text(plan) + draw_caps_fields(random, plan.hostile_caps));
    case 6:
      if (!random.one_in(4)) break;
      input.send(gst_event_new_eos());
      break;
    case 7: {
      GObject* object = random.below(2) ? G_OBJECT(input.target()) : G_OBJECT(rig.element());
      apply_settings(object, draw_settings(random, object, Mood::bold, 1));
      break;
    }
    default:
      input.send(draw_downstream_event(random));
  }
  return true;
}

}  // namespace

std::string caps_text(const StreamPlan& plan) {
  return std::string("video/x-raw") + (plan.device ? "(memory:CUDAMemory)" : "") + ",format=" + plan.format +
         ",width=" + std::to_string(plan.width) + ",height=" + std::to_string(plan.height);
}

GstVideoInfo video_of(const StreamPlan& plan) {
  GstVideoInfo video;
  gst_video_info_set_format(&video, gst_video_format_from_string(plan.format.c_str()), guint(plan.width),
                            guint(plan.height));
  return video;
}

void draw_size(Random& random, StreamPlan& plan) {
  const auto edge = [&] { return random.pick<int>({15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129}); };
  const auto small = [&] { return random.between(1, 40); };
  switch (random.below(10)) {
    case 0:
      plan.width = plan.height = 1;
      break;
    case 1:
      plan.width = random.between(1, 3), plan.height = random.between(1, 3);
      break;
    case 2:
      plan.width = random.between(200, 700), plan.height = random.between(1, 3);
      break;
    case 3:
      plan.width = random.between(1, 3), plan.height = random.between(100, 300);
      break;
    case 4:
    case 5:
      plan.width = edge(), plan.height = edge();
      break;
    default:
      plan.width = small(), plan.height = small();
  }
  if (random.one_in(200)) {
    // Frames are not larger, because non-local means with its largest search-radius takes seconds for this size.
    plan.width = random.between(200, 500), plan.height = random.between(150, 300);
    plan.frames = 1;
  }
}

void feed(Rig& rig, Input& input, Random random, StreamPlan plan) {
  if (!input.begin(caps_text(plan) + draw_caps_fields(random, plan.hostile_caps))) return;
  for (int i = 0; i < plan.frames && rig.errors() == 0; ++i) {
    if (plan.disturbed && random.one_in(2) && !disturb(rig, input, random, plan)) return;
    GstBuffer* buffer = draw_frame(input, random, plan, i);
    if (!buffer) break;
    const GstFlowReturn flow = push(input, random, buffer);
    if (flow == GST_FLOW_EOS && random.one_in(2))
      flush(input, random);
    else if (flow != GST_FLOW_OK && flow != GST_FLOW_NOT_NEGOTIATED)
      break;
  }
  if (!random.one_in(8) && rig.errors() == 0) input.send(gst_event_new_eos());
}

void feed_pictures(Input& input, Random random, const StreamPlan& plan, const std::vector<Picture>& pictures,
                   Layout layout, bool decorated) {
  if (!input.begin(caps_text(plan) + ",framerate=25/1")) return;
  int index = 0;
  for (const Picture& picture : pictures) {
    // Both generators are forked for every layout, so that the metas do not depend on it.
    Random for_metas = random.fork(), for_layout = random.fork();
    GstBuffer* buffer = stamped(lay_out(for_layout, picture, layout), index++);
    if (decorated) decorate(for_metas, buffer);
    if (input.push(buffer) != GST_FLOW_OK) break;
  }
  input.send(gst_event_new_eos());
}

}  // namespace cudavision::fuzz
