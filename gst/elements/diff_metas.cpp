// SPDX-License-Identifier: LGPL-2.1-or-later
// The metas that cudadiff attaches.
#if CUDAVISION_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>
#endif

#include "gst/base/frame.hpp"
#include "gst/elements/diff_messages.hpp"

namespace cudavision {
namespace {

/// Attaches a region of interest, for a box in pixels of the picture. Returns the structure that describes it, which
/// the meta owns.
GstStructure* attach_roi(GstBuffer* buffer, CropOrigin origin, const Rect& box, int id, double score, int area) {
  auto* roi = gst_buffer_add_video_region_of_interest_meta(
      buffer, "motion", guint(origin.x + box.x), guint(origin.y + box.y), guint(box.width), guint(box.height));
  roi->id = id;
  GstStructure* motion =
      gst_structure_new("motion", "score", G_TYPE_DOUBLE, score, "area", G_TYPE_UINT, guint(area), nullptr);
  gst_video_region_of_interest_meta_add_param(roi, motion);
  return motion;
}

#if CUDAVISION_HAVE_ANALYTICS
/// Attaches detections of type motion and, for each confirmed object, a track that is related to the detection.
class Analytics {
 public:
  Analytics(GstBuffer* buffer, CropOrigin origin, std::size_t count) : buffer_(buffer), origin_(origin) {
    if (count == 0) return;
    meta_ = gst_buffer_get_analytics_relation_meta(buffer);
    if (!meta_) meta_ = gst_buffer_add_analytics_relation_meta(buffer);
  }

  void add(const Rect& box, double score) { add_detection(box, score); }
  void add(const track::TrackedObject& object, const track::Moment& moment) {
    const GstAnalyticsODMtd detection = add_detection(object.box, object.score);
    if (object.id == 0) return;
    const GstClockTime now = GST_BUFFER_PTS(buffer_);
    const auto time_of = [&](const track::Moment& other) {
      const bool later = GST_CLOCK_TIME_IS_VALID(moment.stamp) && GST_CLOCK_TIME_IS_VALID(other.stamp) &&
                         other.stamp > moment.stamp;  // played backwards
      const double past = seconds_between(other, moment) * GST_SECOND + 0.5;
      const bool known = GST_CLOCK_TIME_IS_VALID(now) && past < 0x1p63 && (later || GstClockTime(past) <= now);
      return !known ? GST_CLOCK_TIME_NONE : later ? now + GstClockTime(past) : now - GstClockTime(past);
    };
    GstAnalyticsTrackingMtd track;
    gst_analytics_relation_meta_add_tracking_mtd(meta_, object.id, time_of(object.first), &track);
    gst_analytics_tracking_mtd_update_last_seen(&track, time_of(object.last));
    if (object.held) gst_analytics_tracking_mtd_set_lost(&track);
    gst_analytics_relation_meta_set_relation(meta_, GST_ANALYTICS_REL_TYPE_RELATE_TO, detection.id, track.id);
  }

 private:
  GstAnalyticsODMtd add_detection(const Rect& box, double score) {
    GstAnalyticsODMtd detection;
    gst_analytics_relation_meta_add_od_mtd(meta_, g_quark_from_static_string("motion"), origin_.x + box.x,
                                           origin_.y + box.y, box.width, box.height, gfloat(score), &detection);
    return detection;
  }

  GstBuffer* const buffer_;
  const CropOrigin origin_;
  GstAnalyticsRelationMeta* meta_ = nullptr;
};
#else
/// GStreamer versions before 1.24 have no such metas.
struct Analytics {
  Analytics(GstBuffer*, CropOrigin, std::size_t) {}
  void add(const Rect&, double) {}
  void add(const track::TrackedObject&, const track::Moment&) {}
};
#endif

}  // namespace

void attach_regions(GstBuffer* buffer, const std::vector<diff::MotionRegion>& regions) {
  const CropOrigin origin = crop_origin(buffer);
  Analytics analytics(buffer, origin, regions.size());
  for (const auto& [box, area, score, structure] : regions) {
    attach_roi(buffer, origin, box, 0, score, area);
    analytics.add(box, score);
  }
}

void attach_objects(GstBuffer* buffer, const std::vector<track::TrackedObject>& objects,
                    const std::vector<std::string>& zones, const track::Moment& moment) {
  const CropOrigin origin = crop_origin(buffer);
  Analytics analytics(buffer, origin, objects.size());
  for (const track::TrackedObject& object : objects) {
    GstStructure* motion = attach_roi(buffer, origin, object.box, int(object.id), object.score, object.area);
    gst_structure_set(motion, "id", G_TYPE_UINT, guint(object.id), "age", G_TYPE_DOUBLE,
                      seconds_between(object.first, moment), "confirmed", G_TYPE_BOOLEAN, object.id > 0, "held",
                      G_TYPE_BOOLEAN, object.held, "stopped", G_TYPE_BOOLEAN, object.stopped, nullptr);
    set_names(motion, "zones", names_of(object.zones, zones));
    analytics.add(object, moment);
  }
}

}  // namespace cudavision
