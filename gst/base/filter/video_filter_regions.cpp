// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: metas, and the shapes that form the region of a frame.
//
//   GstVideoRegionOfInterestMeta ─┐  boxes of the uncropped      region-margin    region-shape
//   GstAnalyticsODMtd ────────────┴─ frame, of type roi-type ─▶ grown boxes ──▶ rectangles, ellipses ─┐
//   regions (the property) ───────── shapes in the picture, used as written ──────────────────────────┴─▶ Region: all
#include <cmath>
#include <cstring>
#include <optional>

#include "gst/base/filter/video_filter_private.hpp"
#include "gst/base/shapes.hpp"
#if CUDAVISION_HAVE_ANALYTICS
#include <gst/analytics/analytics.h>
#endif

namespace cudavision::video_filter {

namespace {

/// Calls f(meta) with each GstVideoRegionOfInterestMeta of a buffer.
template <typename F>
void for_each_roi(GstBuffer* buffer, F&& f) {
  gpointer cursor = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(buffer, &cursor, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
    f(reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta));
}

/// A box of an uncropped frame, in pixels of the picture that is cropped at `origin`. The box may extend beyond the
/// picture, and is limited to sizes that no picture exceeds.
Rect in_picture(gint64 x, gint64 y, gint64 width, gint64 height, CropOrigin origin) {
  const auto limited = [](gint64 value) { return int(CLAMP(value, -(1 << 20), 1 << 20)); };
  const int left = limited(x - origin.x), top = limited(y - origin.y);
  return {left, top, limited(x - origin.x + width) - left, limited(y - origin.y + height) - top};
}
/// If a box begins left of or above the frame, detectors write a negative number, which the meta stores modulo 2³².
Rect in_picture(const GstVideoRegionOfInterestMeta* roi, CropOrigin origin) {
  return in_picture(gint(roi->x), gint(roi->y), roi->w, roi->h, origin);
}

/// Calls f(type, box) with the boxes in the metas of a buffer, in pixels of its picture. If a detector adds both kinds
/// of metas, each box comes twice, which does not change the region.
template <typename F>
void for_each_box(GstBuffer* buffer, F&& f) {
  const CropOrigin origin = crop_origin(buffer);
  for_each_roi(buffer, [&](const GstVideoRegionOfInterestMeta* roi) { f(roi->roi_type, in_picture(roi, origin)); });
#if CUDAVISION_HAVE_ANALYTICS
  GstAnalyticsRelationMeta* relations = gst_buffer_get_analytics_relation_meta(buffer);
  gpointer cursor = nullptr;
  GstAnalyticsMtd detection;
  while (relations &&
         gst_analytics_relation_meta_iterate(relations, &cursor, gst_analytics_od_mtd_get_mtd_type(), &detection)) {
    const auto* object = reinterpret_cast<const GstAnalyticsODMtd*>(&detection);
    gint x, y, width, height;
    if (gst_analytics_od_mtd_get_location(object, &x, &y, &width, &height, nullptr))
      f(gst_analytics_od_mtd_get_obj_type(object), in_picture(x, y, width, height, origin));
  }
#endif
}

/// Enlarges a box by a share of its size on every side.
Rect grown(const Rect& box, double margin) {
  const int across = int(std::lround(box.width * margin)), down = int(std::lround(box.height * margin));
  return {box.x - across, box.y - down, box.width + 2 * across, box.height + 2 * down};
}

#if CUDAVISION_HAVE_ANALYTICS
/// Adds a detection to a meta, at its position in the picture that is cropped at `origin`.
bool add_moved_object(GstAnalyticsRelationMeta* meta, const GstAnalyticsODMtd* object, CropOrigin origin,
                      GstAnalyticsODMtd* added) {
  const GQuark type = gst_analytics_od_mtd_get_obj_type(object);
  gint x, y, width, height;
  gfloat confidence;
#if GST_CHECK_VERSION(1, 26, 0)
  gfloat turn;
  gst_analytics_od_mtd_get_oriented_location(object, &x, &y, &width, &height, &turn, &confidence);
  const Rect box = in_picture(x, y, width, height, origin);
  return gst_analytics_relation_meta_add_oriented_od_mtd(meta, type, box.x, box.y, box.width, box.height, turn,
                                                         confidence, added);
#else
  gst_analytics_od_mtd_get_location(object, &x, &y, &width, &height, &confidence);
  const Rect box = in_picture(x, y, width, height, origin);
  return gst_analytics_relation_meta_add_od_mtd(meta, type, box.x, box.y, box.width, box.height, confidence, added);
#endif
}

/// Adds a copy of analytics metadata to the meta of another buffer, as the meta's transform function does.
bool add_copy(GstBuffer* outbuf, GstAnalyticsRelationMeta* meta, GstBuffer* inbuf, const GstAnalyticsMtd& from,
              GstAnalyticsMtd* added) {
  const auto* impl = reinterpret_cast<const GstAnalyticsMtdImpl*>(gst_analytics_mtd_get_mtd_type(&from));
  const gsize size = gst_analytics_mtd_get_size(&from);
  gpointer data = gst_analytics_relation_meta_add_mtd(meta, impl, size, added);
  if (!data) return false;
  if (size) std::memcpy(data, gst_analytics_relation_meta_get_mtd_data(from.meta, from.id), size);
  GstMetaTransformCopy whole{FALSE, 0, gsize(-1)};
  if (impl->mtd_meta_transform) impl->mtd_meta_transform(outbuf, added, inbuf, _gst_meta_transform_copy, &whole);
  return true;
}

/// Adds the contents of an uncropped frame's meta to the buffer of the cropped picture: detections at their positions
/// in the picture, all other metadata unchanged, and the relations between them. The contents must be moved while they
/// are copied: no function moves a detection in a meta.
void add_moved(GstBaseTransform* trans, GstBuffer* outbuf, GstAnalyticsRelationMeta* from, GstBuffer* inbuf) {
  const CropOrigin origin = crop_origin(inbuf);
  const auto length = guint(gst_analytics_relation_get_length(from));
  std::vector<std::optional<guint>> ids(length);  // ids of the metadata in the new meta
  GstAnalyticsRelationMeta* to = gst_buffer_add_analytics_relation_meta(outbuf);
  for (guint id = 0; id < length; ++id) {
    GstAnalyticsMtd mtd, added;
    if (!gst_analytics_relation_meta_get_mtd(from, id, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) continue;
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
#if GST_CHECK_VERSION(1, 26, 0)
    if (type == gst_analytics_segmentation_mtd_get_mtd_type()) {
      GST_WARNING_OBJECT(trans, "a segmentation mask is dropped, because it cannot be moved with the crop");
      continue;
    }
#endif
    const bool is_added = type == gst_analytics_od_mtd_get_mtd_type() ? add_moved_object(to, &mtd, origin, &added)
                                                                      : add_copy(outbuf, to, inbuf, mtd, &added);
    if (is_added) ids[id] = added.id;
  }
  for (guint a = 0; a < length; ++a)
    for (guint b = 0; b < length; ++b) {
      if (!ids[a] || !ids[b]) continue;
      const GstAnalyticsRelTypes relation = gst_analytics_relation_meta_get_relation(from, a, b);
      if (relation != GST_ANALYTICS_REL_TYPE_NONE)
        gst_analytics_relation_meta_set_relation(to, relation, *ids[a], *ids[b]);
    }
}
#endif

}  // namespace

gboolean transform_meta(GstBaseTransform* trans, GstBuffer* outbuf, GstMeta* meta, GstBuffer* inbuf) {
  // Video metas do not apply to tables.
  if (state_of(trans).data) return base_class()->transform_meta(trans, outbuf, meta, inbuf);
  // Format and size stay the same, so all metas stay valid. (The base class drops metas that describe memory.) The
  // exception is the crop: it is applied, and metadata with a position in the frame are moved. copy_metadata() moves
  // regions of interest, because they can be changed later.
  if (meta->info->api == GST_VIDEO_CROP_META_API_TYPE) return FALSE;
#if CUDAVISION_HAVE_ANALYTICS
  if (meta->info->api == GST_ANALYTICS_RELATION_META_API_TYPE && gst_buffer_get_video_crop_meta(inbuf)) {
    add_moved(trans, outbuf, reinterpret_cast<GstAnalyticsRelationMeta*>(meta), inbuf);
    return FALSE;
  }
#endif
  return TRUE;
}

namespace {

/// Moves regions of interest into a picture that is cropped at `origin`. Removes regions outside the picture.
void move_rois(GstBuffer* buffer, CropOrigin origin, const GstVideoInfo& video) {
  const Rect picture{0, 0, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)};
  std::vector<GstMeta*> excluded;
  for_each_roi(buffer, [&](GstVideoRegionOfInterestMeta* roi) {
    const Rect box = in_picture(roi, origin);
    if (intersection(box, picture).empty()) {
      excluded.push_back(&roi->meta);
      return;
    }
    const Rect rect = intersection(box, {0, 0, 1 << 20, 1 << 20});
    roi->x = guint(rect.x), roi->y = guint(rect.y), roi->w = guint(rect.width), roi->h = guint(rect.height);
  });
  for (GstMeta* meta : excluded) gst_buffer_remove_meta(buffer, meta);
}

}  // namespace

gboolean copy_metadata(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer* outbuf) {
  if (!base_class()->copy_metadata(trans, inbuf, outbuf)) return FALSE;
  if (gst_buffer_get_video_crop_meta(inbuf)) move_rois(outbuf, crop_origin(inbuf), state_of(trans).video);
  return TRUE;
}

Region region_of(const FilterState& state, GstBuffer* buffer) {
  const FilterSettings& settings = state.in_use;
  Region region;
  region.mode = settings.region;
  if (region.mode == Region::Mode::frame) return region;
  region.rects = state.own_shapes.rects;
  region.polygons = state.own_shapes.polygons;
  std::vector<Rect>& boxes = settings.region_shape == RegionShape::ellipse ? region.ellipses : region.rects;
  for_each_box(buffer, [&](GQuark type, const Rect& box) {
    const char* name = g_quark_to_string(type);
    if (settings.roi_type.empty() || (name && settings.roi_type == name))
      boxes.push_back(grown(box, settings.region_margin));
  });
  return region;
}

Result<Region> own_shapes(const FilterSettings& settings, const GstVideoInfo& video, bool closed,
                          std::set<std::string>& fitted, std::string& left_out) {
  Region result;
  left_out.clear();
  if (settings.region == Region::Mode::frame) return result;
  const int width = GST_VIDEO_INFO_WIDTH(&video), height = GST_VIDEO_INFO_HEIGHT(&video);
  ShapeFitting fitting(fitted, width, height);
  const auto shapes = fitting.accept("regions", ShapeKind::areas, settings.regions);
  if (!shapes.ok()) return shapes.error();
  left_out = fitting.left_out();
  if (!left_out.empty() && closed)
    return Status::settings(
        fitting.left_out("the frame changed its size, and the area that this covers would be visible"));
  for (const Shape& shape : shapes.value()) {
    if (shape.rectangle) {
      result.rects.push_back(rect_in(shape, width, height));
      continue;
    }
    auto polygon = points_in("regions", shape, width, height);
    if (!polygon.ok()) return polygon.error();
    result.polygons.push_back(std::move(polygon.value()));
  }
  return result;
}

Status check_shapes(const FilterSettings& settings) {
  const auto shapes = parse_shapes("regions", ShapeKind::areas, settings.regions);
  return shapes.ok() ? Status() : shapes.error();
}

std::string unused_shapes(const FilterSettings& settings) {
  if (settings.region != Region::Mode::frame) return {};
  const FilterSettings initial;
  for (const auto& [name, set] : {std::pair{"regions", !settings.regions.empty()},
                                  {"region-margin", settings.region_margin != initial.region_margin},
                                  {"region-shape", settings.region_shape != initial.region_shape}})
    if (set) return std::string(name) + " has no effect with region=frame, where the whole frame is processed";
  return {};
}

}  // namespace cudavision::video_filter
