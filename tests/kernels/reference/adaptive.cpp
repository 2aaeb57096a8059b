// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/adaptive.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::reference {
namespace {

constexpr double none = -1e9;

/// The median of values counted in 512 bins of width `step` from `least`, interpolated within its bin.
double binned_median(const std::vector<double>& values, double least, double step) {
  std::vector<int> bins(512);
  for (double value : values) ++bins[std::size_t(std::clamp(int(std::floor((value - least) / step)), 0, 511))];
  double below = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] > 0 && below + bins[i] >= double(values.size()) / 2)
      return least + step * (double(i) + (double(values.size()) / 2 - below) / bins[i]);
    below += bins[i];
  }
  return 0;
}

}  // namespace

Adaptive::Adaptive(const diff::Params& params, const Geometry& geometry)
    : params_(params),
      width_(geometry.width),
      height_(geometry.height),
      across_((geometry.width + 15) / 16),
      down_((geometry.height + 15) / 16) {}

/// Luma above black, and chroma relative to neutral, for each pixel in 8-bit steps.
std::vector<Adaptive::Values> Adaptive::read(const Picture& src) const {
  const Definition& format = src.format();
  std::vector<Values> planes;
  for (const Component& c : format.components) {
    if (!c.is_color()) continue;
    const Grid grid = src.read(c);
    Values plane;
    for (const auto& [x, y] : positions(width_, height_))
      plane.push_back(grid.at(x >> c.shift_x, y >> c.shift_y) / double(1 << (format.depth - 8)));
    for (double& value : plane)
      if (c.is_chroma())
        value -= 128;
      else if (c.role == Role::luma && format.components.size() > 1)
        value = std::max(0.0, value - 16);
    // the order is red, green, blue, or luma, Cb, Cr
    const std::size_t at = c.role == Role::green || c.role == Role::cb  ? 1
                           : c.role == Role::blue || c.role == Role::cr ? 2
                                                                        : 0;
    planes.resize(std::max(planes.size(), at + 1));
    planes[at] = plane;
  }
  if (format.is_rgb()) {
    for (std::size_t i = 0; i < planes[0].size(); ++i) {
      const double red = planes[0][i], green = planes[1][i], blue = planes[2][i],
                   luma = 0.299 * red + 0.587 * green + 0.114 * blue;
      planes[0][i] = luma, planes[1][i] = 0.564 * (blue - luma), planes[2][i] = 0.713 * (red - luma);
    }
  }
  if (params_.luma_only) planes.resize(1);
  return planes;
}

/// Measures the light of each cell: the gain (channel 0), or the chroma offset under this gain.
Adaptive::Values Adaptive::measured(const std::vector<Values>& frame, int channel, const Values& gains) const {
  const auto value = [&](std::size_t i, int cell) {
    const double now = frame[std::size_t(channel)][i], mean = mean_[std::size_t(channel)][i];
    return channel == 0 ? (now + 4) / (mean + 4) : now - gains[std::size_t(cell)] * mean;
  };
  const double least = channel == 0 ? 0 : -64, step = channel == 0 ? 1.0 / 128 : 0.25;
  Values cells;
  for (int cell = 0; cell < across_ * down_; ++cell) {
    Values values;
    int area = 0;
    for (int y = cell / across_ * 16; y < std::min(height_, cell / across_ * 16 + 16); ++y)
      for (int x = cell % across_ * 16; x < std::min(width_, cell % across_ * 16 + 16); ++x, ++area) {
        const std::size_t i = std::size_t(y) * width_ + x;
        if (!strong_[i]) values.push_back(value(i, cell));
      }
    const bool enough = !values.empty() && double(values.size()) >= area / 2.0;
    cells.push_back(enough ? binned_median(values, least, step) : none);
  }
  return cells;
}

double Adaptive::gain_of(const Values& luma) const {
  Values values;
  int looked_at = 0;
  for (int y = 0; y < height_; y += 4)
    for (int x = 0; x < width_; x += 4, ++looked_at)
      if (const std::size_t i = std::size_t(y) * width_ + x; !strong_[i])
        values.push_back((luma[i] + 4) / (mean_[0][i] + 4));
  return double(values.size()) > looked_at / 8.0 ? binned_median(values, 0, 1.0 / 128) : 1;
}

/// Fills unmeasured cells from their neighbours. `all` is the value if no cell was measured.
Adaptive::Values Adaptive::filled(Values cells, double all) const {
  if (std::all_of(cells.begin(), cells.end(), [](double cell) { return cell == none; }))
    return Values(cells.size(), all);
  for (bool left = true; left;) {
    left = false;
    const Values before = cells;
    for (int cell = 0; cell < across_ * down_; ++cell) {
      if (before[std::size_t(cell)] != none) continue;
      Values near;
      for (int other = 0; other < across_ * down_; ++other)
        if (std::abs(other % across_ - cell % across_) <= 1 && std::abs(other / across_ - cell / across_) <= 1 &&
            before[std::size_t(other)] != none)
          near.push_back(before[std::size_t(other)]);
      double sum = 0;
      for (double one : near) sum += one;
      if (near.empty())
        left = true;
      else
        cells[std::size_t(cell)] = sum / double(near.size());
    }
  }
  return cells;
}

Adaptive::Values Adaptive::medians(const Values& before) const {
  Values cells = before;
  for (int cell = 0; cell < across_ * down_; ++cell) {
    Values near;
    for (int dy : {-1, 0, 1})
      for (int dx : {-1, 0, 1})
        near.push_back(before[std::size_t(std::clamp(cell / across_ + dy, 0, down_ - 1) * across_ +
                                          std::clamp(cell % across_ + dx, 0, across_ - 1))]);
    std::sort(near.begin(), near.end());
    cells[std::size_t(cell)] = near[4];
  }
  return cells;
}

/// Smooths the offsets of chroma: the median of 3 × 3 cells where the gain of the cell differs from its own median by
/// more than a tenth.
Adaptive::Values Adaptive::smooth_offsets(const Values& offsets, const Values& gains,
                                          const Values& smooth_gains) const {
  const Values smooth = medians(offsets);
  Values cells = offsets;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (std::abs(gains[i] - smooth_gains[i]) > 0.1 * smooth_gains[i]) cells[i] = smooth[i];
  return cells;
}

double Adaptive::field(const Values& cells, int x, int y) const {
  const double fx = std::max(0.0, (x + 0.5) / 16 - 0.5), fy = std::max(0.0, (y + 0.5) / 16 - 0.5);
  double sum = 0;
  for (int dy : {0, 1})
    for (int dx : {0, 1}) {
      const double wx = dx ? fx - std::floor(fx) : 1 - fx + std::floor(fx),
                   wy = dy ? fy - std::floor(fy) : 1 - fy + std::floor(fy);
      sum += wx * wy *
             cells[std::size_t(std::min(int(fy) + dy, down_ - 1) * across_ + std::min(int(fx) + dx, across_ - 1))];
    }
  return sum;
}

template <typename Of>
double Adaptive::around(int radius, int x, int y, Of of) const {
  double sum = 0;
  int count = 0;
  for (int ny = std::max(0, y - radius); ny <= std::min(height_ - 1, y + radius); ++ny)
    for (int nx = std::max(0, x - radius); nx <= std::min(width_ - 1, x + radius); ++nx)
      sum += of(std::size_t(ny) * width_ + nx), ++count;
  return sum / count;
}

double Adaptive::spread(int channel, std::size_t i) const { return std::max(6.0, variance_[std::size_t(channel)][i]); }

Adaptive::Mask Adaptive::with_enclosed(const Mask& changed, int width, int height, int reach) {
  const auto seen = [&](int x, int y, int dx, int dy) {
    for (int away = 1; away <= reach; ++away) {
      x += dx, y += dy;
      if (x < 0 || y < 0 || x >= width || y >= height) return false;
      if (changed[std::size_t(y) * width + x]) return true;
    }
    return false;
  };
  Mask all = changed;
  for (const auto& [x, y] : positions(width, height))
    if (seen(x, y, -1, 0) && seen(x, y, 1, 0) && seen(x, y, 0, -1) && seen(x, y, 0, 1))
      all[std::size_t(y) * width + x] = 1;
  return all;
}

Adaptive::Mask Adaptive::refined(const Picture& src, int scale, const Mask& changed, const Mask& unmasked) const {
  const std::vector<Values> frame = read(src);
  const int across = (width_ + scale - 1) / scale, down = (height_ + scale - 1) / scale;
  const auto near = [&](int block, int radius) {
    const int u = block % across, v = block / across;
    return Positions(std::max(0, u - radius), std::max(0, v - radius), std::min(across, u + radius + 1),
                     std::min(down, v + radius + 1));
  };
  std::vector<Values> looks(frame.size(), Values(std::size_t(across) * down, 0));
  for (int block = 0; block < across * down; ++block)
    for (std::size_t k = 0; k < frame.size(); ++k) {
      int count = 0;
      for (int y = block / across * scale; y < std::min(height_, (block / across + 1) * scale); ++y)
        for (int x = block % across * scale; x < std::min(width_, (block % across + 1) * scale); ++x, ++count)
          looks[k][std::size_t(block)] += frame[k][std::size_t(y) * width_ + x];
      looks[k][std::size_t(block)] /= count;
    }
  Mask mask;
  for (const auto& [x, y] : positions(width_, height_)) {
    const int block = y / scale * across + x / scale;
    bool same = true;
    for (const auto& [u, v] : near(block, 1))
      same = same && changed[std::size_t(v * across + u)] == changed[std::size_t(block)];
    if (same || !unmasked[std::size_t(block)]) {
      mask.push_back(changed[std::size_t(block)]);
      continue;
    }
    double votes[2] = {0, 0};
    for (const auto& [u, v] : near(block, 2)) {
      double away = 0;
      for (std::size_t k = 0; k < frame.size(); ++k)
        away += std::abs(frame[k][std::size_t(y) * width_ + x] - looks[k][std::size_t(v * across + u)]);
      const double dx = (x + 0.5) / scale - u - 0.5, dy = (y + 0.5) / scale - v - 0.5;
      const double closeness = std::pow(1 - dx * dx / 16, 2) * std::pow(1 - dy * dy / 16, 2);
      votes[changed[std::size_t(v * across + u)]] += closeness * std::pow(std::max(1.0, 80 - away), 2);
    }
    mask.push_back(votes[1] > votes[0]);
  }
  return mask;
}

void Adaptive::start(const std::vector<Values>& frame) {
  const std::size_t pixels = frame[0].size();
  mean_ = frame;
  for (std::size_t k = 0; k < frame.size(); ++k) variance_.emplace_back(pixels, k ? 4 : 9);
  above_.assign(pixels, 0);
  above_before_ = strong_ = above_;
  rival_.assign(frame.size(), Values(pixels));
  stays_.assign(pixels, 8), rival_stays_.assign(pixels, 0);
}

/// The expected appearance of the background in the light of this frame.
Adaptive::Expected Adaptive::expect(const std::vector<Values>& frame) const {
  const int channels = int(frame.size());
  std::vector<Values> cells{Values(std::size_t(across_) * down_, 1)};
  for (int k = 1; k < channels; ++k) cells.emplace_back(cells[0].size(), 0);
  if (params_.light_compensation) {
    const Values gains = measured(frame, 0, {});
    const Values all_gains = filled(gains, gain_of(frame[0]));
    cells[0] = medians(all_gains);
    for (int k = 1; k < channels; ++k)
      cells[std::size_t(k)] = smooth_offsets(filled(measured(frame, k, gains), 0), all_gains, cells[0]);
  }
  Expected expected{frame, Values(frame[0].size())};
  for (std::size_t i = 0; i < frame[0].size(); ++i) {
    const int x = int(i) % width_, y = int(i) / width_;
    expected.gain[i] = field(cells[0], x, y);
    const double luma = expected.gain[i] * (mean_[0][i] + 4) - 4;
    if (luma > 203 && frame[0][i] > 203) continue;
    expected.values[0][i] = luma;
    for (std::size_t k = 1; k < frame.size(); ++k)
      expected.values[k][i] = expected.gain[i] * mean_[k][i] + field(cells[k], x, y);
  }
  return expected;
}

/// How unlike a shadow pixel i is, at most 10. `dark`: its share of the expected light.
double Adaptive::unlike_shadow(const std::vector<Values>& frame, const Expected& expected, double dark,
                               std::size_t i) const {
  double sum = 0;
  for (std::size_t k = 0; k < frame.size(); ++k) {
    const double off = frame[k][i] - dark * expected.values[k][i];
    const double low = k == 0 ? -0.04 * expected.values[0][i] : k == 1 ? 0 : -16 * (1 - dark);
    const double high = k == 0 ? 0.04 * expected.values[0][i] : k == 1 ? 16 * (1 - dark) : 0;
    const double away = off - std::clamp(off, low, high);
    sum += away * away / std::max(6.0, dark * dark * spread(int(k), i));
  }
  return std::min(sum, 10.0);
}

Adaptive::Marks Adaptive::mark(const std::vector<Values>& frame, const Expected& expected) {
  const std::size_t pixels = frame[0].size();
  Values evidence(pixels), unlike(pixels, 10);
  for (std::size_t i = 0; i < pixels; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < frame.size(); ++k) {
      const double away = frame[k][i] - expected.values[k][i];
      sum += away * away / spread(int(k), i);
    }
    evidence[i] = std::min(sum, 11.0);
  }
  Marks marks{Mask(pixels), Mask(pixels), Mask(pixels)};
  const double noise = 1 + 1.0 / frame_;  // includes the noise of a mean of this many frames
  const auto of = [](const Values& values) { return [&values](std::size_t i) { return values[i]; }; };
  for (std::size_t i = 0; i < pixels; ++i) {
    const int x = int(i) % width_, y = int(i) / width_;
    const double near = around(2, x, y, of(evidence));
    marks.above[i] = near > 6 * noise;
    marks.raised[i] = near > 4 * noise;
    strong_[i] = near > 8 * noise;
    const double dark = (around(2, x, y, of(frame[0])) + 1) / (around(2, x, y, of(expected.values[0])) + 1);
    if (dark >= params_.shadow_threshold && dark < 0.97 && expected.values[0][i] > 30)
      unlike[i] = unlike_shadow(frame, expected, dark, i);
  }
  for (std::size_t i = 0; i < pixels; ++i)
    marks.changed[i] =
        marks.above[i] && !(params_.drop_shadows && around(1, int(i) % width_, int(i) / width_, of(unlike)) <= 4);
  return marks;
}

/// Whether row y learns in this frame where nothing was seen: once in each group of four frames. The row's place in the
/// group moves by one from group to group, and by one more after four groups.
bool Adaptive::turn(int y) const {
  const int group = frame_ / 4, place = frame_ % 4;
  return (std::min(y, height_ - 1 - y) + place + group + group / 4) % 4 == 0;
}

/// In the first 600 frames, the mean of a pixel has a rival. Each frame adds to the one that it shows and subtracts an
/// eighth from the other. A rival that was seen longer replaces the mean, unless the mean was seen for 50 frames.
/// `shown`: whether the frame shows the mean. `times`: the number of frames for which this one counts.
void Adaptive::settle(std::size_t i, const Values& value, bool shown, int times) {
  int &own = stays_[i], &other = rival_stays_[i];
  bool rival = !shown && other > 0;
  for (std::size_t k = 0; k < value.size(); ++k) rival &= std::abs(value[k] - rival_[k][i]) <= (k ? 4 : 8);
  if (own < 400) own = std::clamp(own + (shown ? 8 : -1) * times, 0, 16000);
  other = std::clamp(other + (rival ? 8 : -1) * times, 0, 16000);
  const bool fresh = !shown && !rival && other == 0;
  if (fresh) other = 8 * times;
  for (std::size_t k = 0; k < value.size(); ++k)
    if (fresh)
      rival_[k][i] = value[k];
    else if (rival)
      rival_[k][i] += (value[k] - rival_[k][i]) / 4;
  if (other <= own || own >= 400) return;
  std::swap(own, other);
  for (std::size_t k = 0; k < value.size(); ++k) {
    std::swap(mean_[k][i], rival_[k][i]);
    variance_[k][i] = std::max(k ? 4.0 : 9.0, std::min(100.0, variance_[k][i]));
  }
}

/// Updates the means and variances with the frame.
void Adaptive::learn(const std::vector<Values>& frame, const Expected& expected, const Marks& marks) {
  const auto any_near = [&](const Mask& mask, std::size_t i) {
    return around(1, int(i) % width_, int(i) / width_, [&](std::size_t j) { return mask[j]; }) > 0;
  };
  for (std::size_t i = 0; i < frame[0].size(); ++i) {
    const bool near_above = any_near(marks.above, i);
    const bool blinked = frame_ >= 50 && !near_above && above_[i] && !above_before_[i];
    const bool nothing = !marks.raised[i] && !near_above && !above_[i] && !above_before_[i];
    above_before_[i] = above_[i], above_[i] = near_above;
    const double least = params_.learning_rate < 0 ? 0.01 : params_.learning_rate;
    const double usual = std::max(1.0 / (frame_ + 1), least);
    const bool slow = frame_ >= 50 && any_near(marks.changed, i);
    const bool by_turn = nothing && frame_ >= 50 && usual <= 1.0 / 16;
    if (by_turn && !turn(int(i) / width_)) continue;
    const double times = by_turn ? 4 : 1;
    Values value(frame.size());
    bool shown = true;
    for (std::size_t k = 0; k < frame.size(); ++k) {
      const double away = frame[k][i] - expected.values[k][i];
      value[k] = mean_[k][i] + away / std::max(expected.gain[i], 0.25);
      shown &= away * away <= std::max(k ? 16.0 : 64.0, std::min(144.0, variance_[k][i]));
    }
    const bool settles = frame_ <= 600, mature = stays_[i] >= 400;
    const double of_noise = settles && mature ? least : frame_ >= 50 ? usual : std::max(usual, 0.05);
    const double of_variance = slow ? 0.0001 : times * of_noise;
    double rate = times * (settles ? least : usual);
    if (settles && shown) rate = std::max(rate, 8.0 / (stays_[i] + 8));
    if (settles && !shown && !mature) rate = 0;
    if (slow) rate = 0.001;
    for (std::size_t k = 0; k < frame.size(); ++k) {
      double& variance = variance_[k][i];
      const double away = frame[k][i] - expected.values[k][i];
      const double square = std::min(away * away, 16 * spread(int(k), i));
      mean_[k][i] += rate * away / std::max(expected.gain[i], 0.25);
      const bool grows = marks.raised[i] && !near_above && square > variance;
      if (blinked)
        variance = 4 * spread(int(k), i);
      else
        variance += (grows ? std::max(of_variance, 0.2) : of_variance) * (square - variance);
      if (params_.noise_limit > 0) variance = std::min(variance, params_.noise_limit * params_.noise_limit);
    }
    mean_[0][i] = std::max(mean_[0][i], -3.0);
    if (settles) settle(i, value, shown, int(times));
  }
}

Adaptive::Mask Adaptive::submit(const Picture& src) {
  const std::vector<Values> frame = read(src);
  Marks marks;
  marks.changed.assign(frame[0].size(), 0);
  if (frame_ == 0) {
    start(frame);
  } else {
    const Expected expected = expect(frame);
    marks = mark(frame, expected);
    learn(frame, expected, marks);
  }
  ++frame_;
  return with_enclosed(marks.changed, width_, height_, std::min(32, 4 * params_.cell_size));
}

}  // namespace cudavision::reference
