// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/diff.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace cudavision::reference {
namespace {

bool chroma(Role role) { return role == Role::cb || role == Role::cr; }
bool carried(Role role) { return role == Role::alpha || role == Role::padding; }

/// 8-bit steps in the range of the format; 255 is its maximum.
int scaled(const Definition& format, int value) {
  return value == 255 ? format.max_value() : value << (format.depth - 8);
}

int luma_of_rgb(int r, int g, int b) { return luma(LumaMatrix::bt601, r, g, b); }

/// A colour for a YUV, RGB or gray picture.
int colour(const Definition& format, Role role, const std::vector<int>& yuv, const std::vector<int>& red_green_blue) {
  if (format.components.size() == 1) return format.max_value();
  const int value = role == Role::luma ? yuv[0]
                    : role == Role::cb ? yuv[1]
                    : role == Role::cr ? yuv[2]
                                       : red_green_blue[int(role) - int(Role::red)];
  return scaled(format, value);
}

/// Minimum or maximum of the mask within `radius` along one axis; positions outside the frame do not count.
std::vector<std::uint8_t> extreme(const std::vector<std::uint8_t>& mask, int width, int height, int radius, bool across,
                                  bool most) {
  std::vector<std::uint8_t> out(mask.size());
  for (const auto& [x, y] : positions(width, height)) {
    int value = most ? 0 : 1;
    for (int s = -radius; s <= radius; ++s) {
      const int at_x = across ? x + s : x, at_y = across ? y : y + s;
      if (at_x < 0 || at_y < 0 || at_x >= width || at_y >= height) continue;
      const int other = mask[std::size_t(at_y) * width + at_x];
      value = most ? std::max(value, other) : std::min(value, other);
    }
    out[std::size_t(y) * width + x] = std::uint8_t(value);
  }
  return out;
}

bool any_pixel(const std::vector<std::uint8_t>& mask, const Geometry& size, const Component& c, int x, int y) {
  bool any = false;
  for (const auto& [px, py] : c.pixels(x, y, size)) any = any || mask[std::size_t(py) * size.width + px];
  return any;
}

/// 1 for each position outside the rectangles.
std::vector<std::uint8_t> outside_of(const std::vector<Rect>& rects, int width, int height) {
  std::vector<std::uint8_t> outside;
  for (const auto& place : positions(width, height))
    outside.push_back(
        std::none_of(rects.begin(), rects.end(), [&](const Rect& rect) { return contains(rect, place.x, place.y); }));
  return outside;
}

}  // namespace

Diff::Values Diff::read(const Picture& picture) const {
  Values values;
  for (const Component& c : picture.format().components) values.emplace(c.role, picture.read(c));
  return values;
}

/// Compares the means of blocks, and repeats the results.
Diff::Step Diff::submit_shrunk(const Picture& src, Layout layout) {
  const int s = params_.analysis_scale, width = geometry_.width, height = geometry_.height;
  const Geometry small{geometry_.format, (width + s - 1) / s, (height + s - 1) / s};
  if (!shrunk_) {
    diff::Params params = params_;
    params.analysis_scale = 1;
    params.mask_regions.clear();
    for (const Rect& r : params_.mask_regions) {
      const long left = std::max(r.x, 0), top = std::max(r.y, 0), right = std::min(long(r.x) + r.width, long(width)),
                 bottom = std::min(long(r.y) + r.height, long(height));
      if (left < right && top < bottom)
        params.mask_regions.push_back(
            {int(left / s), int(top / s), int((right - 1) / s - left / s + 1), int((bottom - 1) / s - top / s + 1)});
    }
    shrunk_ = std::make_shared<Diff>(params, small);
  }
  const Values now = read(src);
  Picture means(small);
  for (const Component& c : src.format().components) {
    const Grid& from = now.at(c.role);
    means.change(c, [&](int x, int y, int) {
      double sum = 0, count = 0;
      for (const auto& [px, py] :
           Positions(x * s, y * s, std::min((x + 1) * s, from.width), std::min((y + 1) * s, from.height)))
        sum += from.at(px, py), ++count;
      return int(std::floor(sum / count + 0.5));
    });
  }
  const Step inner = shrunk_->submit(means);
  Step step{Picture(geometry_, layout), inner.compared, inner.light, {}, {}, {}, {}, inner.sum, inner.analysed};
  const std::vector<std::uint8_t> counts = outside_of(shrunk_->params_.mask_regions, small.width, small.height);
  std::vector<std::uint8_t> unmasked;
  for (const auto& [x, y] : positions(width, height)) {
    const std::size_t at = std::size_t(y / s) * small.width + x / s;
    step.mask.push_back(inner.mask[at]);
    unmasked.push_back(counts[at]);
  }
  for (const Component& c : src.format().components) {
    if (params_.output != diff::Output::difference) break;
    Grid shown = now.at(c.role);
    const Grid from = inner.out.read(c);
    for (int y = 0; y < shown.height && !carried(c.role); ++y)
      for (int x = 0; x < shown.width; ++x) shown.at(x, y) = from.at(x / s, y / s);
    step.out.write(c, shown);
  }
  count_and_show(step, now, unmasked);
  return step;
}

/// Returns the picture to compare the frame with, if there is one, and then updates it with the frame.
std::optional<Diff::Values> Diff::follow(const Values& now, const Definition& format) {
  const std::int64_t one = Diff::one(format);
  // Rounds the background to samples, then moves it towards the frame: state = moved(state, sample).
  const auto background = [&](const auto& moved) -> std::optional<Values> {
    const bool empty = background_.empty();
    Values before = now;
    for (auto& [role, grid] : before) {
      std::vector<std::int64_t>& state = background_[role];
      if (empty)
        for (int value : grid.values) state.push_back(value * one);
      for (std::size_t i = 0; i < state.size(); ++i) {
        const std::int64_t sample = grid.values[i] * one;
        grid.values[i] = int(std::floor(double(state[i]) / double(one) + 0.5));
        state[i] = moved(state[i], sample);
      }
    }
    return empty ? std::nullopt : std::optional(before);
  };
  switch (params_.reference) {
    case diff::Reference::previous: {
      std::optional<Values> before;
      if (int(past_.size()) == params_.interval) before = past_.front(), past_.pop_front();
      past_.push_back(now);
      return before;
    }
    case diff::Reference::first:
      if (!past_.empty()) return past_.front();
      past_.push_back(now);
      return std::nullopt;
    case diff::Reference::median: {
      const double steps = params_.learning_rate < 0 ? 0.25 : params_.learning_rate;  // in 8-bit steps
      const std::int64_t most =
          std::max<std::int64_t>(std::llround(steps * (1 << (format.depth - 8)) * double(one)), steps > 0);
      return background([&](std::int64_t state, std::int64_t sample) {
        return std::max(state - most, std::min(state + most, sample));
      });
    }
    case diff::Reference::background: {
      const double learning_rate = params_.learning_rate < 0 ? 0.02 : params_.learning_rate;
      const std::int64_t rate = std::max<std::int64_t>(std::llround(learning_rate * 32768), learning_rate > 0);
      return background([&](std::int64_t state, std::int64_t sample) {
        const std::int64_t away = sample - state, size = (std::abs(away) * rate + 32767) / 32768;
        return state + (away < 0 ? -size : size);
      });
    }
    case diff::Reference::mog2:
    case diff::Reference::adaptive:
      break;
  }
  throw std::logic_error("this is no reference for models");
}

/// Removes shadow pixels from the mask. A shadow is a · background within the tolerance of the threshold. `a`, `b`: the
/// compared values of the frame and of the background.
void Diff::drop_shadows(Step& step, const Values& a, const Values& b, const Definition& format) const {
  const int width = geometry_.width, max = format.max_value();
  const bool yuv = !format.is_rgb() && format.components.size() > 1;
  for (std::size_t i = 0; i < step.mask.size(); ++i) {
    const int x = int(i) % width, y = int(i) / width;
    std::vector<std::pair<long double, long double>> pairs;  // of the frame and of the background
    for (const Component& c : format.components) {
      if (carried(c.role) || (params_.luma_only && (chroma(c.role) || c.role == Role::green || c.role == Role::blue)))
        continue;
      const int black = !yuv ? 0 : chroma(c.role) ? (max + 1) / 2 : 16 << (format.depth - 8);
      pairs.emplace_back(a.at(c.role).at(x >> c.shift_x, y >> c.shift_y) - black,
                         b.at(c.role).at(x >> c.shift_x, y >> c.shift_y) - black);
    }
    long double along = 0, size = 0;
    for (const auto& [sample, lit] : pairs) along += sample * lit, size += lit * lit;
    bool shadow = size > 0 && along <= size && along * 32768 >= std::llround(params_.shadow_threshold * 32768) * size;
    for (const auto& [sample, lit] : pairs)  // |a · lit − sample| ≤ threshold · a, times size
      shadow = shadow && std::abs(along * lit - sample * size) <= (params_.threshold << (format.depth - 8)) * along;
    if (shadow) step.mask[i] = 0;
  }
}

/// The value shown for a difference d of a component. `sample` is from the frame.
int Diff::shown(int d, int sample, Role role, int max) const {
  if (carried(role)) return sample;
  const int middle = (max + 1) / 2;
  long double size = std::abs(d);
  if (params_.mode == diff::Mode::squared)  // the gain in steps of 2^-32 of its quotient
    size = std::floor(size * size * std::llround(params_.gain / max * 4294967296.0) / 4294967296.0L + 0.5L);
  else
    size = std::floor(size * std::llround(params_.gain * 65536) / 65536 + 0.5L);
  const int limited = int(std::min<long double>(size, max));
  if (chroma(role) || params_.mode == diff::Mode::signed_)
    return std::clamp(middle + (d < 0 ? -limited : limited), 0, max);
  return limited;
}

Diff::Step Diff::submit(const Picture& src, Layout layout) {
  if (params_.analysis_scale > 1) return submit_shrunk(src, layout);
  const Definition& format = src.format();
  const int width = geometry_.width, height = geometry_.height, max = format.max_value();
  Step step{Picture(geometry_, layout), {}, {}, {}, {}, {}, {}, 0, 0};
  const Values now = read(src);
  const std::int64_t one = Diff::one(format);

  const std::optional<Values> reference = follow(now, format);
  step.compared = reference.has_value();

  // The pixels that count, and the chroma samples with at least one such pixel.
  const std::vector<std::uint8_t> unmasked = outside_of(params_.mask_regions, width, height);
  Values a = now, b = reference.value_or(now);
  if (params_.luma_only && format.is_rgb()) {
    const auto luma = [](Values& v) {
      Grid &r = v.at(Role::red), &g = v.at(Role::green), &bl = v.at(Role::blue);
      for (std::size_t i = 0; i < r.values.size(); ++i)
        r.values[i] = g.values[i] = bl.values[i] = luma_of_rgb(r.values[i], g.values[i], bl.values[i]);
    };
    luma(a), luma(b);
  }

  // The difference of a pixel, and the value shown.
  std::vector<int> most(unmasked.size());
  for (const Component& c : format.components) {
    const Grid &from = a.at(c.role), &to = b.at(c.role);
    Grid picture(from.width, from.height);
    const bool looked_at = !carried(c.role) && !(params_.luma_only && chroma(c.role));
    for (int y = 0; y < height && looked_at; ++y)
      for (int x = 0; x < width; ++x) {
        const int size = std::abs(from.at(x >> c.shift_x, y >> c.shift_y) - to.at(x >> c.shift_x, y >> c.shift_y));
        int& pixel = most[std::size_t(y) * width + x];
        if (unmasked[std::size_t(y) * width + x]) pixel = std::max(pixel, size);
      }
    for (const auto& [x, y] : positions(from)) {
      const int d = looked_at && any_pixel(unmasked, geometry_, c, x, y) ? from.at(x, y) - to.at(x, y) : 0;
      picture.at(x, y) = shown(d, now.at(c.role).at(x, y), c.role, max);
    }
    if (params_.output == diff::Output::difference) step.out.write(c, picture);
  }

  step.mask.resize(most.size());
  for (std::size_t i = 0; i < most.size(); ++i) {
    step.mask[i] = unmasked[i] && most[i] > params_.threshold << (format.depth - 8);
    step.sum += std::uint64_t(most[i]);
    step.analysed += unmasked[i];
  }
  const bool follows = params_.reference == diff::Reference::background || params_.reference == diff::Reference::median;
  if (params_.drop_shadows && follows && step.compared) drop_shadows(step, a, b, format);
  if (params_.light_change_ratio > 0) {
    const auto total = [](const std::vector<std::uint8_t>& mask) {
      return double(std::count(mask.begin(), mask.end(), 1));
    };
    step.light = total(step.mask) > std::floor(params_.light_change_ratio * total(unmasked));
  }
  if (step.light) {
    std::fill(step.mask.begin(), step.mask.end(), std::uint8_t(0));
    if (!follows) past_ = {now};
    for (auto& [role, state] : background_)
      for (std::size_t i = 0; i < state.size(); ++i) state[i] = now.at(role).values[i] * one;
  }
  for (bool dilate : {false, true})
    for (bool across : {true, false})
      step.mask = extreme(step.mask, width, height, params_.open_radius, across, dilate);

  count_and_show(step, now, unmasked);
  return step;
}

/// Adds each changed pixel of the analysis to the cells of all its pixels in the frame.
void Diff::measure_looks(Step& step, const Values& now) const {
  const Definition& format = step.out.format();
  const int s = params_.analysis_scale, width = geometry_.width, height = geometry_.height, cell = params_.cell_size;
  if (params_.looks == diff::Looks::none) return;
  step.cells_looks.assign(step.cells_changed.size(), {});
  for (int y = 0; y * s < height; ++y)
    for (int x = 0; x * s < width; ++x) {
      if (!step.mask[std::size_t(y * s) * width + x * s]) continue;
      const int px = std::min(x * s + s / 2, width - 1), py = std::min(y * s + s / 2, height - 1);
      std::map<Role, int> samples;
      for (const Component& c : format.components)
        samples[c.role] = now.at(c.role).at(px >> c.shift_x, py >> c.shift_y) / (1 << (format.depth - 8));
      int luma = samples[Role::luma], cb = 0, cr = 0;
      if (format.is_rgb()) {
        luma = luma_of_rgb(samples[Role::red], samples[Role::green], samples[Role::blue]);
        cb = int(std::floor((samples[Role::blue] - luma) * 144 / 256.0));
        cr = int(std::floor((samples[Role::red] - luma) * 183 / 256.0));
      } else if (format.components.size() > 1) {
        cb = samples[Role::cb] - 128, cr = samples[Role::cr] - 128;
      }
      for (int cell_y = y * s / cell; cell_y <= std::min((y + 1) * s - 1, height - 1) / cell; ++cell_y)
        for (int cell_x = x * s / cell; cell_x <= std::min((x + 1) * s - 1, width - 1) / cell; ++cell_x) {
          Looks& looks = step.cells_looks[std::size_t(cell_y) * ((width - 1) / cell + 1) + cell_x];
          looks.left = std::min(looks.left, x), looks.right = std::max(looks.right, x);
          looks.top = std::min(looks.top, y), looks.bottom = std::max(looks.bottom, y);
          ++looks.pixels;
          // A cell has 64 bits for its columns from first to last. Each bit stands for 2^n columns.
          const int first = cell_x * cell / s, last = (std::min((cell_x + 1) * cell, width) - 1) / s;
          int columns_of_bit = 1;
          while (columns_of_bit * 64 < last - first + 1) columns_of_bit *= 2;
          looks.columns |= std::uint64_t(1) << (x - first) / columns_of_bit;
          looks.luma += luma, looks.luma_squares += luma * luma, looks.cb += cb, looks.cr += cr;
        }
    }
  // For cells that do not move, only the extent is known, unless more is requested. Where pixels are not counted, all
  // cells count as moving.
  const bool all_counted = std::accumulate(step.cells_unmasked.begin(), step.cells_unmasked.end(), std::uint64_t(0)) ==
                           std::uint64_t(width) * height;
  for (std::size_t i = 0; i < step.cells_looks.size(); ++i) {
    const bool moves = !all_counted || step.cells_changed[i] >= params_.cell_threshold * step.cells_unmasked[i];
    Looks& looks = step.cells_looks[i];
    if (params_.looks == diff::Looks::extents || !moves) looks = {looks.left, looks.top, looks.right, looks.bottom};
  }
}

void Diff::count_and_show(Step& step, const Values& now, const std::vector<std::uint8_t>& unmasked) const {
  const Definition& format = step.out.format();
  const int width = geometry_.width, height = geometry_.height, max = format.max_value(), middle = (max + 1) / 2;
  const int cells_x = (width - 1) / params_.cell_size + 1, cells_y = (height - 1) / params_.cell_size + 1;
  step.cells_changed.resize(std::size_t(cells_x) * cells_y);
  step.cells_unmasked.resize(step.cells_changed.size());
  for (const auto& [x, y] : positions(width, height)) {
    const std::size_t cell = std::size_t(y / params_.cell_size) * cells_x + x / params_.cell_size,
                      at = std::size_t(y) * width + x;
    step.cells_changed[cell] += step.mask[at];
    step.cells_unmasked[cell] += unmasked[at];
  }

  measure_looks(step, now);
  if (params_.output == diff::Output::mask || params_.output == diff::Output::overlay) {
    for (const Component& c : format.components) {
      Grid shown = now.at(c.role);
      for (const auto& [x, y] : positions(shown)) {
        if (carried(c.role)) continue;
        const bool changed = any_pixel(step.mask, geometry_, c, x, y);
        if (params_.output == diff::Output::mask)
          shown.at(x, y) = chroma(c.role) ? middle : changed ? max : 0;
        else if (changed)
          shown.at(x, y) = (shown.at(x, y) + colour(format, c.role, {81, 90, 240}, {255, 0, 0}) + 1) / 2;
      }
      step.out.write(c, shown);
    }
  }
}

Picture with_boxes(const Picture& picture, const std::vector<diff::MotionRegion>& regions) {
  Picture out = picture;
  const Definition& format = picture.format();
  const int width = picture.geometry().width, height = picture.geometry().height,
            line = std::max(2, std::min(width, height) / 360);
  for (const Component& c : format.components)
    for (const diff::MotionRegion& region : regions) {
      const Rect& box = region.box;
      for (const auto& [x, y] : positions(box)) {
        const bool edge =
            x < box.x + line || y < box.y + line || x >= box.x + box.width - line || y >= box.y + box.height - line;
        if (edge)
          out.write(c, x >> c.shift_x, y >> c.shift_y,
                    carried(c.role) ? format.max_value() : colour(format, c.role, {145, 54, 34}, {0, 255, 0}));
      }
    }
  return out;
}

}  // namespace cudavision::reference
