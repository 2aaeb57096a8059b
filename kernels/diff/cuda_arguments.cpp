// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cuda_arguments.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernels/core/image.hpp"

namespace cudavision::diff {
namespace {

std::uint8_t alignment_of(const Plane& plane) {
  int alignment = 16;
  while (!aligned_to(plane.data, plane.pitch, alignment)) alignment /= 2;
  return std::uint8_t(alignment);
}

/// Sets the rules for the samples of a set in the words of its plane.
void set_rules(KernelParams& p, const Plan& plan, int index) {
  const FormatInfo& format = info(plan.geometry.format);
  const RoleValues white = white_values(format), black = black_values(format), tint = tint_values(format);
  const int bits = 8 * format.sample_bytes();
  const unsigned all = (1u << bits) - 1;
  const ChannelSet& set = format.sets[index];
  PlaneJob& job = p.planes[set.plane];
  job.row_bytes = picture_row_bytes(plan.geometry, set.plane);
  for (int c = 0; c < set.channels; ++c) {
    const Role role = set.roles[c];
    if (role == Role::other) continue;
    for (int rgb = 0; rgb < 3; ++rgb)
      if (int(role) == int(Role::red) + rgb) p.rgb[rgb] = format.is_planar() ? index : c;
    const bool copied = !is_color(role), compared = plan.compares(role);
    const bool about = !copied && (is_chroma(role) || plan.show.mode == Mode::signed_);
    job.any_copied |= copied;
    job.any_compared |= compared;
    job.any_about_middle |= about;
    for (int j = 0; j * set.channels < 16; ++j) {
      const int at = (j * set.channels + c) * bits;
      if (at >= 8 * 32) break;
      Rule& rule = job.rules[at / 32];
      const auto put = [&](std::uint32_t& word, unsigned value) { word |= std::uint32_t(value) << at % 32; };
      put(rule.copied, copied ? all : 0);
      put(rule.compared, compared ? all : 0);
      put(rule.about_middle, about ? all : 0);
      put(rule.white, white[std::size_t(role)]);
      put(rule.black, black[std::size_t(role)]);
      put(rule.tint, tint[std::size_t(role)]);
    }
  }
}

/// Sets the addresses of a plane of the frame. Planes that the kernels do not need stay null.
void set_plane(PlaneJob& job, const Plan& plan, const Frame& frame, int plane) {
  const Params& params = plan.params;
  const Plane &src = frame.src.planes[plane], &dst = frame.dst.planes[plane],
              &reference = frame.reference.planes[plane];
  if (job.any_compared || job.any_copied || params.output == Output::overlay) {
    job.src = view_of(src);
    job.src_alignment = alignment_of(src);
  }
  if (params.output != Output::none) {
    job.dst = view_of(dst);
    job.dst_alignment = alignment_of(dst);
  }
  if (frame.compared && job.any_compared) job.reference = view_of(reference);
  job.keep = view_of(frame.keep.planes[plane]);
}

}  // namespace

View view_of(const Plane& plane) { return {static_cast<unsigned char*>(plane.data), int(plane.pitch)}; }

KernelParams params_of(const Plan& plan, const Schedule& schedule) {
  const FormatInfo& format = info(plan.geometry.format);
  const Params& params = plan.params;
  KernelParams p;
  p.width = plan.analysis.width;
  p.height = plan.analysis.height;
  p.tiles_x = p.compared_x = schedule.analysis.x;
  p.writes = schedule.compare;
  p.corrects = schedule.corrects;
  p.slots_x = schedule.frame.slots_x;
  p.slots = schedule.frame.slots;
  p.record_bytes = schedule.frame.record_bytes;
  p.count = !schedule.opens;
  p.shift = format.shift;
  p.threshold = std::uint32_t(plan.threshold) * (format.sample_bytes() == 1 ? 0x1010101u : 0x10001u);
  p.show = plan.show;
  p.show_mask = params.output == Output::mask;
  p.detects_light = plan.detects_light();
  p.light_limit = plan.light_limit;
  p.light_age = unsigned(plan.light_age());
  p.interval = plan.keeps_previous() ? unsigned(params.interval) : 1;
  p.drops_shadows = plan.drops_shadows();
  p.shadow = plan.shadow;
  p.follow = plan.follow;
  p.luma_of_rgb = plan.luma_of_rgb();
  p.reference_is_luma = p.luma_of_rgb && plan.has_mixture();
  p.luma_second = format.sets[0].roles[0] == Role::other;
  p.bits_pitch = int(plan.mask_pitch());
  p.open_radius = std::uint8_t(params.open_radius);
  p.cell_size = std::uint32_t(params.cell_size);
  p.cell_reciprocal = schedule.cell_reciprocal;
  for (int i = 0; i < format.color_sets(); ++i) set_rules(p, plan, i);
  return p;
}

void set_planes(KernelParams& p, const Plan& plan, const Layout& l, const Frame& frame) {
  const int pixels = strip_pixels(l.channels0, l.sample_bytes);
  int strips = p.width / pixels;
  for (int plane = 0; plane < l.planes; ++plane) {
    PlaneJob& job = p.planes[plane];
    set_plane(job, plan, frame, plane);
    const int channels = plane ? l.channels1 : l.channels0, shift = plane ? l.shift_x : 0;
    const int strip_bytes = (pixels >> shift) * channels * l.sample_bytes;
    const auto limit = [&](const View& view, int row_bytes, int alignment) {
      if (view.data) strips = alignment < strip_alignment(strip_bytes) ? 0 : std::min(strips, row_bytes / strip_bytes);
    };
    limit(job.src, job.row_bytes, job.src_alignment);
    limit(job.dst, job.row_bytes, job.dst_alignment);
  }
  p.whole_width = strips * pixels;
  p.whole_rows = p.height / tuning.tile_rows;
}

Restart restart_of(const Plan& plan, const KernelParams& p, const Image& src, const std::vector<Image>& ring) {
  const FormatInfo& format = info(plan.geometry.format);
  Restart restart;
  restart.shift = format.shift;
  restart.max = format.max_value();
  for (std::size_t plane = 0; plane < std::size(restart.planes); ++plane) {
    const PlaneJob& job = p.planes[plane];
    if (!job.any_compared) continue;
    const View first = plan.keeps_first() ? view_of(ring[0].planes[plane]) : View{};
    restart.planes[plane] = {view_of(src.planes[plane]), first, job.background, job.row_bytes / format.sample_bytes(),
                             extent(plan.analysis, int(plane)).rows};
  }
  return restart;
}

FrameCounts collect_records(const Plan& plan, const Schedule& s, const unsigned char* tile, std::uint32_t stamp,
                            std::vector<std::uint32_t>& changed) {
  const CellGrid& cells = plan.cells;
  const int cell = plan.params.cell_size;
  const int slots_x = s.frame.slots_x, slots_y = s.frame.slots / slots_x;
  Verdict verdict;
  std::memcpy(&verdict, tile + s.verdict_offset(), sizeof verdict);
  FrameCounts found{verdict.compared != 0, verdict.cause, verdict.moved_x, verdict.moved_y, verdict.difference};
  for (int tile_y = 0; tile_y < s.frame.y; ++tile_y) {
    const int first_y = Schedule::first_cell(tile_y, s.frame.rows, cell),
              down = std::min(slots_y, cells.height - first_y);
    for (int tile_x = 0; tile_x < s.frame.x; ++tile_x, tile += s.frame.record_bytes) {
      std::uint32_t stored;
      std::memcpy(&stored, tile, sizeof stored);
      if (stored != stamp) continue;  // nothing changed, as in most tiles of most videos
      const auto* counts = reinterpret_cast<const std::uint16_t*>(tile + sizeof stored);
      const int first_x = s.frame.first_x[std::size_t(tile_x)], across = std::min(slots_x, cells.width - first_x);
      for (int y = 0; y < down; ++y) {
        std::uint32_t* const row = &changed[std::size_t(first_y + y) * cells.width + first_x];
        for (int x = 0; x < across; ++x) {
          row[x] += counts[y * slots_x + x];
          found.changed += counts[y * slots_x + x];
        }
      }
    }
  }
  return found;
}

}  // namespace cudavision::diff
