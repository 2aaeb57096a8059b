// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/cpu/filter.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/core/luma.hpp"
#include "kernels/core/outline.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/core/sample.hpp"
#include "kernels/cpu/threads.hpp"

namespace cudavision::cpu {
namespace {

/// Samples of a strip. With 2^18, the 32-bit sums of a strip take about 1 MiB. The time of Sobel on 1080p differs by
/// less than 10 % from 2^16 to 2^19. Smaller strips are slower, because neighbouring strips read some rows twice.
constexpr int strip_samples = 1 << 18;

bool short_rows(const cv::Mat& mat) { return mat.step[0] < mat.cols * mat.elemSize(); }

/// Copies channels; `pairs` holds (from, to). Rows too short for OpenCV (see set_mat) are copied one by one.
void mix(const cv::Mat& from, const cv::Mat& to, const std::vector<int>& pairs) {
  if (pairs.empty()) return;
  const int rows = short_rows(from) || short_rows(to) ? 1 : from.rows;
  for (int y = 0; y < from.rows; y += rows) {
    const cv::Mat in = from.rowRange(y, y + rows);
    cv::Mat out = to.rowRange(y, y + rows);
    cv::mixChannels(&in, 1, &out, 1, pairs.data(), pairs.size() / 2);
  }
}

template <typename T>
void fill_luma(const cv::Mat& red, const cv::Mat& green, const cv::Mat& blue, cv::Mat& luma) {
  for (int y = 0; y < luma.rows; ++y) {
    const T *r = red.ptr<T>(y), *g = green.ptr<T>(y), *b = blue.ptr<T>(y);
    T* to = luma.ptr<T>(y);
    for (int x = 0; x < luma.cols; ++x) to[x] = T(luma_of(r[x], g[x], b[x]));
  }
}

bool contains(const cv::Mat& frame, const Rect& rect) {
  return rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= frame.cols && rect.y + rect.height <= frame.rows;
}

}  // namespace

cv::Mat sized(cv::Mat& store, cv::Size size, int type) {
  const int bytes = size.area() * int(CV_ELEM_SIZE(type));
  if (store.cols < bytes) store.create(1, bytes, CV_8U);
  return cv::Mat(size, type, store.data);
}

cv::Mat set_mat(const Image& image, const ChannelSet& set) {
  const Rect grid = image.geometry.grid(set);
  const int depth = info(image.geometry.format).sample_bytes() == 1 ? CV_8U : CV_16U;
  const Plane& plane = image.planes[set.plane];
  const std::size_t pitch = std::size_t(plane.pitch),
                    row = std::size_t(grid.width) * set.channels * (depth == CV_8U ? 1 : 2);
  // A row of UYVY of odd width may end with its last V, one byte before the end that OpenCV assumes. Nothing reads or
  // writes that byte.
  cv::Mat mat(grid.height, grid.width, CV_MAKETYPE(depth, set.channels), plane.data, pitch < row ? row + 1 : pitch);
  mat.step[0] = pitch;
  return mat;
}

void make_luma(const cv::Mat& red, const cv::Mat& green, const cv::Mat& blue, cv::Mat& luma) {
  luma.create(red.size(), red.type());
  red.depth() == CV_8U ? fill_luma<std::uint8_t>(red, green, blue, luma)
                       : fill_luma<std::uint16_t>(red, green, blue, luma);
}

SetAccess::SetAccess(const FormatInfo& format, const ChannelSet& set, Border border, const BorderValue& border_value,
                     bool filter_alpha)
    : depth_(format.sample_bytes() == 1 ? CV_8U : CV_16U),
      stored_channels_(set.channels),
      shift_(format.shift),
      max_value_(format.max_value()),
      can_exceed_(can_exceed_depth(format)),
      border_(border) {
  while (set.roles[stored_channels_ - 1 - unused_end_] == Role::other) ++unused_end_;
  cv::Scalar stored;
  for (int c = 0; c < set.channels; ++c) {
    const Role role = set.roles[c];
    if (role == Role::other) continue;
    const int value = channels();
    load_.insert(load_.end(), {c, value});
    store_.insert(store_.end(), {value, c});
    copied_.insert(copied_.end(), {c, c});
    if (!filter_alpha && !is_color(role)) kept_.insert(kept_.end(), {c, c});
    border_value_[value] = border_value[std::size_t(role)];
    stored[c] = border_value_[value] * (1 << shift_);
  }
  border_pixel_ = cv::Mat(1, 1, CV_MAKETYPE(depth_, stored_channels_), stored);
}

/// cv::copyMakeBorder does not fit: it extrapolates from the given matrix, but a strip may need rows from elsewhere in
/// the frame.
cv::Mat SetAccess::extrapolate(const cv::Mat& frame, const Rect& window, cv::Mat& store) const {
  cv::Mat out = sized(store, {window.width, window.height}, frame.type());
  const std::size_t pixel = frame.elemSize(), used = pixel - unused_end_;
  const int inside_begin = std::clamp(-window.x, 0, window.width);
  const int inside_end = std::clamp(frame.cols - window.x, inside_begin, window.width);
  for (int y = 0; y < window.height; ++y) {
    const int from_y = border_index(window.y + y, frame.rows, border_);
    const uchar* from = from_y < 0 ? nullptr : frame.ptr(from_y);
    uchar* to = out.ptr(y);
    const auto copy_pixels = [&](int begin, int end) {
      for (int x = begin; x < end; ++x) {
        const int from_x = border_index(window.x + x, frame.cols, border_);
        std::memcpy(to + x * pixel, from && from_x >= 0 ? from + from_x * pixel : border_pixel_.data, used);
      }
    };
    copy_pixels(0, inside_begin);
    if (from && inside_begin < inside_end)
      std::memcpy(to + inside_begin * pixel, from + (window.x + inside_begin) * pixel,
                  (inside_end - inside_begin) * pixel - unused_end_);
    else
      copy_pixels(inside_begin, inside_end);
    copy_pixels(inside_end, window.width);
  }
  return out;
}

bool SetAccess::holds_values(const cv::Mat& stored) const {
  if (!plain()) return false;
  if (!can_exceed_) return true;
  const int row_words = stored.cols * stored.channels(), row_groups = row_words / 4;
  const std::uint64_t above = 0x0001000100010001u * (0xffffu & ~unsigned(max_value_));
  std::uint64_t bits = 0;
  for (int y = 0; y < stored.rows && !(bits & above); ++y) {
    const std::uint16_t* const row = stored.ptr<std::uint16_t>(y);
    for (int i = 0; i < row_groups; ++i) {
      std::uint64_t four;
      std::memcpy(&four, row + 4 * i, sizeof four);
      bits |= four;
    }
    for (int i = 4 * row_groups; i < row_words; ++i) bits |= row[i];
  }
  return !(bits & above);
}

cv::Mat SetAccess::read(const cv::Mat& frame, const Rect& window, Scratch& scratch) const {
  const cv::Mat stored = contains(frame, window) ? frame(cv_rect(window)) : extrapolate(frame, window, scratch.raw);
  if (holds_values(stored)) return stored;
  cv::Mat values = sized(scratch.values, stored.size(), type());
  if (shift_ > 0) {
    const double step = 1.0 / (1 << shift_);
    stored.convertTo(values, depth_, step, 0.5 * step - 0.5);  // rounds down, whatever the unused bits hold
  } else if (plain()) {
    cv::min(stored, max_value_, values);
  } else {
    mix(stored, values, load_);
  }
  return values;
}

cv::Mat SetAccess::target(const cv::Mat& out, Scratch& scratch) const {
  return plain() ? out : sized(scratch.result, out.size(), type());
}

void SetAccess::write(const cv::Mat& values, const cv::Mat& in, cv::Mat out) const {
  if (shift_ > 0)
    values.convertTo(out, depth_, 1 << shift_);
  else if (!plain())
    mix(values, out, store_);
  else if (values.data != out.data)
    values.copyTo(out);
  mix(in, out, kept_);
}

void SetAccess::copy(const cv::Mat& in, cv::Mat out) const {
  if (channels() == stored_channels_)
    in.copyTo(out);
  else
    mix(in, out, copied_);
}

CpuFilter::CpuFilter(const Geometry& geometry, Border border, const BorderValue& border_value, bool filter_alpha)
    : Filter(geometry, Backend::cpu, filter_alpha), scratch_(std::size_t(std::max(1, cv::getNumThreads()))) {
  const FormatInfo& format = info(geometry.format);
  for (int i = 0; i < format.set_count; ++i)
    access_[i] = SetAccess(format, format.sets[i], border, border_value, filter_alpha);
}

Status CpuFilter::filter(const Image& src, const Image& dst, const SetRects& rects, Queue) {
  const FormatInfo& format = info(geometry().format);
  for (int i = 0; i < format.set_count; ++i) {
    if (rects[i].empty()) continue;
    cv::Mat out = set_mat(dst, format.sets[i]);
    filter_set(i, set_mat(src, format.sets[i]), out, rects[i]);
  }
  return {};
}

Status CpuFilter::copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue) {
  const FormatInfo& format = info(geometry().format);
  for (int i = 0; i < format.set_count; ++i) {
    if (rects[i].empty()) continue;
    const cv::Rect rect = cv_rect(rects[i]);
    access_[i].copy(set_mat(src, format.sets[i])(rect), set_mat(dst, format.sets[i])(rect));
  }
  return {};
}

Status CpuFilter::copy_outline(const Image& src, const Image& dst, const SetRects& rects, const Outline& outline,
                               Coverage coverage, Queue) {
  const FormatInfo& format = info(geometry().format);
  std::vector<Span> spans;
  for (int i = 0; i < format.set_count; ++i) {
    const cv::Mat from = set_mat(src, format.sets[i]), to = set_mat(dst, format.sets[i]);
    for (int y = rects[i].y; y < rects[i].y + rects[i].height; ++y) {
      row_spans(geometry(), format.sets[i], outline, coverage, y, spans);
      for (const Span& span : spans) {
        const cv::Rect row(span.begin, y, span.end - span.begin, 1);
        access_[i].copy(from(row), to(row));
      }
    }
  }
  return {};
}

void CpuFilter::for_strips(const Rect& rect, int channels, int overlap, double nanoseconds,
                           const std::function<void(const Rect&, Scratch&)>& work) {
  const int rows = std::clamp(std::max(strip_samples / (rect.width * channels), 2 * overlap), 1, rect.height);
  const int strips = (rect.height + rows - 1) / rows;
  const int jobs = parts_of(picture_work(double(rect.width) * rect.height * channels, nanoseconds),
                            std::min(strips, int(scratch_.size())));
  for_parts(jobs, [&](int job) {
    for (int strip = begin_of_part(job, jobs, strips); strip < begin_of_part(job + 1, jobs, strips); ++strip) {
      const int begin = begin_of_part(strip, strips, rect.height), end = begin_of_part(strip + 1, strips, rect.height);
      work({rect.x, rect.y + begin, rect.width, end - begin}, scratch_[std::size_t(job)]);
    }
  });
}

}  // namespace cudavision::cpu

namespace cudavision {

Status copy_picture_cpu(const Image& from, const Image& to, int first_plane) {
  for (int plane = first_plane; plane < info(from.geometry.format).planes; ++plane) {
    const PlaneExtent size = extent(from.geometry, plane);
    const Plane &source = from.planes[plane], &target = to.planes[plane];
    const std::size_t bytes = copied_row(size, source, target);
    for (int y = 0; y < size.rows; ++y)
      std::memcpy(static_cast<char*>(target.data) + y * target.pitch,
                  static_cast<const char*>(source.data) + y * source.pitch, bytes);
  }
  return {};
}

namespace {
cpu::Work work_of(const PackedRows& rows) {
  return cpu::picture_work(double(rows.rows) * std::accumulate(rows.width, rows.width + max_planes, 0), 0.5);
}
}  // namespace

Status unpack_cpu(const PackedRows& rows) {
  cpu::for_ranges(rows.rows, work_of(rows), [&](int begin, int end) { unpack_rows(rows, begin, end); });
  return {};
}

Status pack_cpu(const PackedRows& rows) {
  cpu::for_ranges(rows.rows, work_of(rows), [&](int begin, int end) { pack_rows(rows, begin, end); });
  return {};
}

Result<std::shared_ptr<void>> picture_memory_cpu(std::size_t bytes) {
  return std::shared_ptr<void>(new unsigned char[bytes],
                               [](void* data) { delete[] static_cast<unsigned char*>(data); });
}

}  // namespace cudavision
