// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/histogram/cuda_schedule.hpp"

#include <algorithm>

namespace cudavision::histogram {
namespace {

/// The number of samples in the pieces of one launch.
std::int64_t samples_in(const std::vector<Rect>& pieces, std::size_t from) {
  std::int64_t all = 0;
  for (std::size_t i = from; i < pieces.size() && i - from < max_rects; ++i)
    all += std::int64_t(pieces[i].width) * pieces[i].height;
  return all;
}

/// Sets the pieces of one launch.
void set_rects_of(Share& share, const std::vector<Rect>& pieces, std::size_t from) {
  share.rect_count = from < pieces.size() ? int(std::min<std::size_t>(max_rects, pieces.size() - from)) : 0;
  std::copy_n(pieces.begin() + std::min(from, pieces.size()), share.rect_count, share.rects);
}

}  // namespace

Limits limits_of(int multiprocessors, int shared_limit) {
  Limits limits;
  limits.multiprocessors = multiprocessors;
  limits.shared_bytes = shared_limit - 2048;  // for the static shared memory of the kernels
  limits.pixel_entries = limits.shared_bytes / 4;
  return limits;
}

PixelTables pixel_tables(const Plan& plan, int index, const Limits& limits) {
  const FormatInfo& format = info(plan.geometry.format);
  const ChannelSet& set = format.sets[index];
  PixelTables tables{};
  int first = plan.tables, last = 0;
  const auto base_of = [&](int table) {
    if (table < 0) return -1;
    first = std::min(first, table);
    last = std::max(last, table);
    return table * plan.fine;
  };
  std::fill(std::begin(tables.base), std::end(tables.base), -1);
  tables.luma_base = -1;
  if (plan.three_planes) {
    for (int i = 0; i < 3; ++i) {
      const Role role = format.sets[i].roles[0];
      const int c = int(role) - int(Role::red);
      tables.position[c] = c;
      tables.base[c] = base_of(plan.table_of[std::size_t(role)]);
    }
  } else {
    for (int c = 0; c < set.channels; ++c) {
      const Role role = set.roles[c];
      if (role == Role::other) continue;
      tables.base[c] = base_of(plan.table_of[std::size_t(role)]);
      if (role >= Role::red && role <= Role::blue) tables.position[int(role) - int(Role::red)] = c;
    }
  }
  if (plan.rgb_luma && index == 0) tables.luma_base = base_of(0);
  for (int& base : tables.base)
    if (base >= 0) base -= first * plan.fine;
  tables.first_entry = first * plan.fine;
  tables.entries = (last - first + 1) * plan.fine;
  tables.passes = (tables.entries + limits.pixel_entries - 1) / limits.pixel_entries;
  tables.pass_entries = (tables.entries + tables.passes - 1) / tables.passes;
  tables.by_lane = tables.entries <= limits.shared_bytes / lane_entry_bytes;
  return tables;
}

bool counts_words(const Plan& plan, int set, const Limits& limits) {
  const ChannelSet& channels = info(plan.geometry.format).sets[set];
  return plan.fine == word_values && !plan.three_planes && channels.channels == 1 && plan.counts(channels) &&
         word_counter_bytes <= limits.shared_bytes;
}

WordLaunch schedule_words(const Plan& plan, const Limits& limits, const SetPieces& pieces, std::size_t from) {
  const FormatInfo& format = info(plan.geometry.format);
  std::int64_t parts[3] = {}, all = 0;
  for (int i = 0; i < format.color_sets(); ++i)
    if (counts_words(plan, i, limits)) all += parts[i] = samples_in(pieces[i], from);
  WordLaunch launch;
  for (int i = 0; i < format.color_sets(); ++i) {
    if (parts[i] == 0) continue;
    Share& share = launch.shares[launch.jobs];
    launch.sets[launch.jobs++] = i;
    set_rects_of(share, pieces[i], from);
    const std::int64_t fair = limits.multiprocessors * parts[i] / all;
    const std::int64_t worth = (parts[i] + tuning.word_samples - 1) / tuning.word_samples;
    share.first_block = launch.blocks;
    share.blocks = int(std::max<std::int64_t>(1, std::min(fair, worth)));
    launch.blocks += share.blocks;
  }
  return launch;
}

PixelLaunch schedule_pixels(const Plan& plan, const Limits& limits, const SetPieces& pieces, std::size_t from) {
  const FormatInfo& format = info(plan.geometry.format);
  const int sets = plan.three_planes ? 1 : format.color_sets();
  PixelLaunch launch;
  std::int64_t work[3] = {}, all = 0;  // samples of all channels, by job
  for (int i = 0; i < sets; ++i) {
    if (!plan.counts(format.sets[i]) || counts_words(plan, i, limits)) {
      launch.tables[i].passes = 1;
      continue;
    }
    launch.tables[i] = pixel_tables(plan, i, limits);
    set_rects_of(launch.shares[i], pieces[i], from);
    work[i] = launch.tables[i].entries / plan.fine * samples_in(pieces[i], from);
    all += work[i];
    const std::size_t counters = std::size_t(launch.tables[i].pass_entries) *
                                 (launch.tables[i].by_lane ? lane_entry_bytes : sizeof(std::uint32_t));
    launch.shared_bytes = std::max(launch.shared_bytes, (counters + 15) / 16 * 16);
  }
  launch.any = all > 0;
  for (int i = 0; i < sets; ++i) {
    Share& share = launch.shares[i];
    if (work[i] == 0) {
      if (i == 0) share.first_block = 0, launch.blocks = 1;
      continue;
    }
    const std::int64_t fair = limits.multiprocessors * work[i] / all / launch.tables[i].passes;
    const std::int64_t worth = (work[i] + tuning.pixel_samples - 1) / tuning.pixel_samples;
    share.first_block = launch.blocks;
    share.blocks = int(std::max<std::int64_t>(1, std::min(fair, worth)));
    launch.blocks += share.blocks * launch.tables[i].passes;
  }
  // The kernel finds a block's job by first_block, which must not decrease: an empty job 1 begins where job 2 begins.
  if (launch.shares[1].first_block == INT_MAX) launch.shares[1].first_block = launch.shares[2].first_block;
  return launch;
}

SharpnessLaunch schedule_sharpness(Format format, int multiprocessors, const std::vector<Rect>& pieces,
                                   std::size_t from) {
  const FormatInfo& row = info(format);
  // A job reads three planes of R, G and B together.
  const int channels = row.is_planar_rgb() ? 3 : row.sets[0].channels;
  const int unit = sharpness_unit(channels, row.sample_bytes()), warps = tuning.sharpness_threads / 32;
  const int room = multiprocessors * tuning.sharpness_blocks * warps;  // warps that the device holds
  SharpnessLaunch launch;
  set_rects_of(launch.share, pieces, from);
  const auto units = [&](const Rect& rect) { return (rect.x % 4 + rect.width + unit - 1) / unit; };
  std::int64_t rows = 0;  // rows of units in all rectangles
  for (int i = 0; i < launch.share.rect_count; ++i)
    rows += std::int64_t(units(launch.share.rects[i])) * launch.share.rects[i].height;
  launch.rows = int(std::clamp<std::int64_t>(rows / room, tuning.sharpness_min_rows, tuning.sharpness_max_rows));
  std::int64_t tiles = 0;  // tiles of the largest rectangle, because warps process one rectangle after another
  for (int i = 0; i < launch.share.rect_count; ++i)
    tiles = std::max(tiles,
                     std::int64_t(units(launch.share.rects[i])) * divide_up(launch.share.rects[i].height, launch.rows));
  launch.share.first_block = 0;
  launch.share.blocks =
      int(std::clamp<std::int64_t>((tiles + warps - 1) / warps, 1, multiprocessors * tuning.sharpness_blocks));
  return launch;
}

bool gathers_apart(const Plan& plan) { return plan.tables * std::max(plan.bins, plan.fine) > tuning.gather_entries; }

}  // namespace cudavision::histogram
