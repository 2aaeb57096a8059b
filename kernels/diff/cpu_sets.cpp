// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstring>

#include "kernels/diff/cpu_stages.hpp"

namespace cudavision::diff {
namespace {

cv::Scalar scalar(const ChannelSet& set, const RoleValues& values) {
  cv::Scalar result;
  for (int c = 0, at = 0; c < set.channels; ++c)
    if (set.roles[c] != Role::other) result[at++] = values[std::size_t(set.roles[c])];
  return result;
}

/// The rows begin … end of a picture, as a rectangle in the grid of a set.
cv::Rect strip_of(const Geometry& picture, int index, int begin, int end) {
  const ChannelSet& set = info(picture.format).sets[index];
  const int from = begin >> set.shift_y, to = subsampled(end, set.shift_y);
  return {0, from, picture.grid(set).width, to - from};
}

}  // namespace

FrameSets::FrameSets(const Plan& plan) : plan_(plan), format_(info(plan.geometry.format)) {
  const int type = format_.sample_bytes() == 1 ? CV_16U : CV_32S;
  for (int i = 0; i < format_.set_count; ++i) {
    const ChannelSet& set = format_.sets[i];
    access_[i] = cpu::SetAccess(format_, set, Border::replicate, {}, false);
    for (int c = 0; c < access_[i].channels(); ++c)
      if (plan_.compares(role(i, c))) compared_channels_[i].push_back(c);
    compared_[i] = !compared_channels_[i].empty();
    white_[i] = scalar(set, white_values(format_));
    black_[i] = scalar(set, black_values(format_));
    tint_[i] = scalar(set, tint_values(format_));
    const Rect grid = plan_.analysis.grid(set);
    if (plan_.has_background() && compared_[i])
      background_[i].create(grid.height, grid.width, CV_MAKETYPE(type, access_[i].channels()));
  }
  if (!plan_.masked.empty()) {
    cv::Mat unmasked(plan_.analysis.height, plan_.analysis.width, CV_8U, cv::Scalar(255));
    for (const Rect& rect : plan_.masked) unmasked(cpu::cv_rect(rect)).setTo(0);
    for (int i = 0; i < format_.set_count; ++i)
      unmasked_[i] = any_of(unmasked, format_.sets[i].shift_x, format_.sets[i].shift_y);
  }
  if (ByteRows::fit(plan_) && !plan_.drops_shadows()) bytes_.emplace(plan_);
  if (plan_.params.output != Output::mask) return;
  const auto varies = [&](int i) { return white_[i] != black_[i]; };
  int varying = 0;
  for (int i = 0; i < format_.set_count; ++i) varying += varies(i);
  for (int i = 0; i < format_.set_count && varying == 1; ++i)
    if (varies(i) && access_[i].plain() && access_[i].type() == CV_8UC1) mask_set_ = i;
}

cv::Mat FrameSets::mask_plane(const Image& dst) const {
  return mask_set_ < 0 ? cv::Mat() : cpu::set_mat(dst, format_.sets[mask_set_]);
}

MaskBytes FrameSets::mask_bytes() const {
  return mask_set_ < 0 ? MaskBytes() : MaskBytes{uchar(black_[mask_set_][0]), uchar(white_[mask_set_][0])};
}

Role FrameSets::role(int index, int value) const {
  return format_.sets[index].roles[access_[index].stored_channel(value)];
}

cv::Mat FrameSets::values(int index, const Image& image, const cv::Rect& rect, cpu::Scratch& scratch) const {
  const cv::Mat frame = cpu::set_mat(image, format_.sets[index]);
  return access_[index].read(frame, {rect.x, rect.y, rect.width, rect.height}, scratch);
}

void FrameSets::shrink_frame(const Image& src, const Image& to) const {
  for (int i = 0; i < format_.set_count; ++i) {
    if (!compared_[i]) continue;
    const ChannelSet& set = format_.sets[i];
    const Rect grid = plan_.geometry.grid(set);
    cpu::Scratch scratch, small_scratch;
    cv::Mat out = cpu::set_mat(to, set), small = access_[i].target(out, small_scratch);
    shrink(values(i, src, {0, 0, grid.width, grid.height}, scratch), plan_.params.analysis_scale, small);
    access_[i].write(small, out, out);
  }
}

void FrameSets::enlarge_difference(const Image& from, const Frame& frame) const {
  for (int i = 0; i < format_.set_count; ++i) {
    const ChannelSet& set = format_.sets[i];
    const Rect grid = plan_.geometry.grid(set), small = plan_.analysis.grid(set);
    const cv::Mat in = cpu::set_mat(frame.src, set);
    cv::Mat out = cpu::set_mat(frame.dst, set);
    cpu::Scratch scratch, small_scratch;
    cv::Mat shown = access_[i].target(out, scratch);
    if (compared_[i])
      enlarged(values(i, from, {0, 0, small.width, small.height}, small_scratch), plan_.params.analysis_scale,
               {grid.width, grid.height})
          .copyTo(shown);
    else
      shown.setTo(black_[i]);
    access_[i].write(shown, in, out);
  }
}

void FrameSets::restart(const Image& src, const Image* first) {
  for (int i = 0; i < format_.set_count; ++i) {
    if (!compared_[i]) continue;
    const ChannelSet& set = format_.sets[i];
    const cv::Mat from = cpu::set_mat(src, set);
    if (first && first->planes[set.plane].data) access_[i].copy(from, cpu::set_mat(*first, set));
    if (background_[i].empty()) continue;
    cpu::Scratch scratch;
    const cv::Mat v = values(i, src, {0, 0, from.cols, from.rows}, scratch);
    cv::Mat was(v.size(), v.type());
    step_background(v, background_[i], was, true, plan_.follow);
  }
}

std::uint64_t FrameSets::compare(const Frame& frame, int begin, int end, cv::Mat& all_changed) const {
  if (bytes_ && frame.compared) return bytes_->compare(frame, begin, end, unmasked_[0], all_changed);
  const Params& params = plan_.params;
  cpu::Scratch scratch[max_sets], reference_scratch[max_sets];
  cv::Mat v[max_sets], r[max_sets];
  for (int i = 0; i < format_.set_count; ++i) {
    if (!compared_[i]) continue;
    const cv::Rect rect = strip_of(plan_.analysis, i, begin, end);
    v[i] = r[i] = values(i, frame.src, rect, scratch[i]);
    if (plan_.has_background()) {
      r[i] = cv::Mat(v[i].size(), v[i].type());
      step_background(v[i], background_[i](rect), r[i], !frame.compared, plan_.follow);
    } else if (frame.compared) {
      r[i] = values(i, frame.reference, rect, reference_scratch[i]);
    }
  }
  if (plan_.luma_of_rgb()) {
    const bool already = plan_.has_mixture() && frame.compared;
    const cv::Mat luma = luma_of_sets(format_, v, false), reference = luma_of_sets(format_, r, already);
    for (int i = 0; i < format_.set_count; ++i) {
      v[i] = repeated(luma, access_[i].channels());
      r[i] = repeated(reference, access_[i].channels());
    }
  }

  cv::Mat most;  // the largest difference over the channels of each pixel
  for (int i = 0; i < format_.set_count; ++i) {
    const ChannelSet& set = format_.sets[i];
    const cv::Rect rect = strip_of(plan_.analysis, i, begin, end);
    cv::Mat difference, excluded;
    if (!unmasked_[i].empty()) excluded = unmasked_[i](rect) == 0;
    if (compared_[i]) {
      cv::absdiff(v[i], r[i], difference);
      if (!excluded.empty()) difference.setTo(0, excluded);
      const cv::Mat of_set =
          at_pixels(greatest(difference, compared_channels_[i]), set, {plan_.analysis.width, end - begin});
      most = most.empty() ? of_set : cv::max(most, of_set);
    }
    if (params.output == Output::difference && (compared_[i] || !plan_.scales())) {
      const cv::Mat in = cpu::set_mat(frame.src, set)(rect);
      cv::Mat out = cpu::set_mat(frame.dst, set)(rect);
      cv::Mat shown = access_[i].target(out, scratch[i]);
      const bool about_middle = is_chroma(role(i, 0)) || plan_.show.mode == Mode::signed_;
      if (!compared_[i])
        shown.setTo(black_[i]);
      else if (plan_.show.plain && !about_middle)
        difference.copyTo(shown);
      else
        show_difference(plan_.show, v[i], r[i], shown, about_middle);
      if (!excluded.empty())
        shown.setTo(plan_.show.mode == Mode::signed_ ? cv::Scalar::all(plan_.show.middle) : black_[i], excluded);
      access_[i].write(shown, in, out);
    }
    if (frame.keep.planes[set.plane].data)
      access_[i].copy(cpu::set_mat(frame.src, set)(rect), cpu::set_mat(frame.keep, set)(rect));
  }
  if (!unmasked_[0].empty()) most.setTo(0, unmasked_[0].rowRange(begin, end) == 0);
  cv::Mat changed = all_changed.rowRange(begin, end);
  if (!plan_.has_model() || !frame.compared)
    cv::compare(most, plan_.threshold, changed, cv::CMP_GT);
  else if (!unmasked_[0].empty())
    changed.setTo(0, unmasked_[0].rowRange(begin, end) == 0);
  if (plan_.drops_shadows() && frame.compared) clear_shadows(plan_.shadow, format_, compared_channels_, v, r, changed);
  return std::uint64_t(cv::sum(most)[0]);
}

void FrameSets::show_changed(const Frame& frame, const cv::Mat& mask, int begin, int end) const {
  for (int i = 0; i < format_.set_count; ++i) {
    if (mask.empty() && i == mask_set_) continue;
    const ChannelSet& set = format_.sets[i];
    const cv::Rect rect = strip_of(plan_.geometry, i, begin, end);
    const bool plain = plan_.params.output == Output::mask, uniform = plain && white_[i] == black_[i];  // chroma of YUV
    const cv::Mat changed = uniform ? cv::Mat() : any_of(mask.rowRange(begin, end), set.shift_x, set.shift_y);
    const cv::Mat in = cpu::set_mat(frame.src, set)(rect);
    cv::Mat out = cpu::set_mat(frame.dst, set)(rect);
    cpu::Scratch scratch, source_scratch;
    cv::Mat shown = access_[i].target(out, scratch);
    if (uniform) {
      shown.setTo(black_[i]);
    } else if (plain && shown.type() == CV_8UC1) {
      show_mask(changed, uchar(black_[i][0]), uchar(white_[i][0]), shown);
    } else if (plain) {
      shown.setTo(black_[i]);
      shown.setTo(white_[i], changed);
    } else {
      values(i, frame.src, rect, source_scratch).copyTo(shown);
      tint(changed, tint_[i], shown);
    }
    access_[i].write(shown, in, out);
  }
}

void FrameSets::fill(const Image& dst, const std::vector<Fill>& fills) const {
  const RoleValues colour = box_values(format_);
  for (const Fill& one : fills) {
    const ChannelSet& set = format_.sets[one.set];
    const Plane& plane = dst.planes[set.plane];
    const int bytes = format_.sample_bytes();
    for (int y = one.rect.y; y < one.rect.y + one.rect.height; ++y)
      for (int x = one.rect.x; x < one.rect.x + one.rect.width; ++x)
        for (int c = 0; c < set.channels; ++c) {
          if (set.roles[c] == Role::other) continue;
          const std::uint16_t word = std::uint16_t(colour[std::size_t(set.roles[c])] << format_.shift);
          // Little-endian: the first bytes of the word are its low bytes.
          std::memcpy(static_cast<char*>(plane.data) + y * plane.pitch + (std::ptrdiff_t(x) * set.channels + c) * bytes,
                      &word, std::size_t(bytes));
        }
  }
}

}  // namespace cudavision::diff
