// SPDX-License-Identifier: LGPL-2.1-or-later
// GstAnalyticsRelationMeta, which GStreamer has from 1.24 on.
#pragma once

#include "tests/elements/harness.hpp"

#if CUDAVISION_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>

namespace cudavision::test {

/// A whole meta as text: its detections, tracks and classes in order, then the relations.
inline std::string text_of(GstBuffer* buffer) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  const guint length = meta ? guint(gst_analytics_relation_get_length(meta)) : 0;
  std::ostringstream text;
  for (guint id = 0; id < length; ++id) {
    GstAnalyticsMtd mtd;
    EXPECT(gst_analytics_relation_meta_get_mtd(meta, id, GST_ANALYTICS_MTD_TYPE_ANY, &mtd));
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
    if (type == gst_analytics_od_mtd_get_mtd_type()) {
      gint x, y, width, height;
      gfloat turn = 0, confidence;
#if GST_CHECK_VERSION(1, 26, 0)
      EXPECT(gst_analytics_od_mtd_get_oriented_location(&mtd, &x, &y, &width, &height, &turn, &confidence));
#else
      EXPECT(gst_analytics_od_mtd_get_location(&mtd, &x, &y, &width, &height, &confidence));
#endif
      text << g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&mtd)) << ' ' << x << ',' << y << ' ' << width << "×"
           << height << " turned " << turn << ' ' << confidence;
    } else if (type == gst_analytics_tracking_mtd_get_mtd_type()) {
      guint64 track;
      GstClockTime first, last;
      gboolean lost;
      EXPECT(gst_analytics_tracking_mtd_get_info(&mtd, &track, &first, &last, &lost));
      text << "track " << track << " since " << first << " seen " << last << (lost ? " lost" : "");
    } else if (type == gst_analytics_cls_mtd_get_mtd_type()) {
      text << g_quark_to_string(gst_analytics_cls_mtd_get_quark(&mtd, 0)) << ' '
           << gst_analytics_cls_mtd_get_level(&mtd, 0);
    } else {
      text << gst_analytics_mtd_type_get_name(type);
    }
    text << "; ";
  }
  for (guint a = 0; a < length; ++a)
    for (guint b = 0; b < length; ++b)
      if (const int relation = gst_analytics_relation_meta_get_relation(meta, a, b))
        text << a << '-' << relation << '-' << b << ' ';
  return text.str();
}

}  // namespace cudavision::test
#endif
