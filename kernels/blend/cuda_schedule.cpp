// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/blend/cuda_schedule.hpp"

#include <algorithm>

#include "kernels/blend/arithmetic.hpp"

namespace cudavision::blend {

namespace {

/// Divides the output into tiles of up to `most_strips` strips, as long as at least `wanted_blocks` blocks remain.
TileGrid make_grid(int width, int height, int tile_width, int most_strips, int wanted_blocks) {
  const int across = divide_up(width, tile_width), rows = divide_up(height, strip_height);
  int strips = most_strips;
  while (strips > 1 && across * divide_up(rows, strips) < wanted_blocks) strips /= 2;
  return {across, divide_up(rows, strips), tile_width, strips * strip_height};
}

}  // namespace

TileGrid tile_grid(int width, int height, int most_strips) {
  return make_grid(width, height, tile_width, most_strips, tuning.wanted_blocks);
}

TileGrid direct_tile_grid(int width, int height, int wanted_blocks) {
  return make_grid(width, height, tuning.direct_width, tuning.direct_strips, wanted_blocks);
}

ComposeLaunch schedule_compose(const Target& target, const std::vector<Layer>& layers) {
  const auto any = [&](auto&& test) { return std::any_of(layers.begin(), layers.end(), test); };
  const bool odd = any([](const Layer& layer) { return !layer.even_edges; });
  const auto is_other = [&](const Layer& layer) { return !layer.direct && (odd || !layer.copies); };
  // A second launch saves time only if the first launch keeps enough tiles.
  std::int64_t others = 0;
  for (const Layer& layer : layers)
    if (is_other(layer)) others += std::int64_t(layer.visible.width) * layer.visible.height;
  const bool some = any([](const Layer& layer) { return layer.direct || layer.copies; }) &&
                    others <= std::int64_t(target.width) * target.height * tuning.most_others;
  ComposeLaunch launch{};
  int strips = tuning.most_strips;
  if (some) {
    launch.direct = direct_tile_grid(target.width, target.height,
                                     target.packed.data ? tuning.wanted_pixel_blocks : tuning.wanted_direct_blocks);
    strips = std::min(strips, launch.direct.tile_height / strip_height);
  }
  if (!some || others) launch.pixels = tile_grid(target.width, target.height, strips);
  return launch;
}

namespace {

bool is_over(const Layer& layer) { return layer.op == Operator::over || layer.op == Operator::add; }

/// Finds the two layers. A picture that hides everything is mixed with itself.
bool find_pair(const Geometry& geometry, const Target& target, const std::vector<Layer>& layers, const Layer*& above,
               const Layer*& below) {
  const FormatInfo& format = info(geometry.format);
  const auto fills = [&](const Layer& layer) {
    return layer.format == format.format && layer.identity && layer.unscaled && layer.crop.x == 0 &&
           layer.crop.y == 0 && layer.place.x == 0 && layer.place.y == 0 && layer.crop.width == target.width &&
           layer.crop.height == target.height;
  };
  if (layers.empty() || (!layers.back().hides && layers.size() == 1)) return false;
  above = &layers.back();
  below = above->hides ? above : &layers[layers.size() - 2];
  if (!below->hides || !fills(*below) || !fills(*above)) return false;
  if (below != above && target.alpha && below->op == Operator::source && below->opacity != 1) return false;
  const bool over = above->op == Operator::over || (above->op == Operator::add && !target.alpha);
  if (!over && above->op != Operator::source && above->op != Operator::average && !operates_on_rgb(above->op))
    return false;
  // Rows of packed 4:2:2 of odd width end with a byte that belongs to no pixel and must not be written.
  return !(format.sets[0].shares_plane() && target.width % 2);
}

/// Sets the planes. Returns false if a plane is not aligned.
bool set_planes(const Geometry& geometry, const Target& target, const Layer& above, const Layer& below, PairJob& job) {
  const FormatInfo& format = info(geometry.format);
  job.plane_count = format.planes;
  for (int i = 0; i < format.set_count; ++i) {  // both sets of packed 4:2:2 give the same plane
    const ChannelSet& set = format.sets[i];
    const ChannelView a = whole_plane(format, set, above.channels), b = whole_plane(format, set, below.channels),
                      d = whole_plane(format, set, target.channels);
    const PlaneExtent size = extent(geometry, set.plane);
    const int row_bytes = int(size.row_bytes);
    job.planes[set.plane] = {
        a.data, b.data, d.data, a.pitch, b.pitch, d.pitch, row_bytes, size.rows, (row_bytes + 15) / 16, 0};
  }
  for (int p = 0; p < job.plane_count; ++p) {
    PairPlane& plane = job.planes[p];
    if (!aligned_to(plane.above, plane.above_pitch, 16) || !aligned_to(plane.below, plane.below_pitch, 16) ||
        !aligned_to(plane.dst, plane.dst_pitch, 16))
      return false;
    plane.begin = job.total;
    job.total += plane.chunks * plane.rows;
  }
  return true;
}

PixelMix pixel_mix(const Target& target, const Layer& above, bool down) {
  if (!target.alpha) return down ? PixelMix::padded_down : PixelMix::padded;
  if (is_over(above) && above.opaque_below) return down ? PixelMix::on_opaque_down : PixelMix::on_opaque;
  if (is_over(above)) return PixelMix::over;
  return above.op == Operator::source ? PixelMix::source : PixelMix::all;
}

/// The kernel for an operator on R', G' and B'; no value if no such kernel fits these pictures.
std::optional<PairLaunch::Kernel> operating_kernel(const Target& target, const Layer& above, bool pixels,
                                                   bool even_nv) {
  using Kernel = PairLaunch::Kernel;
  const Matrices matrices = matrices_of(target);
  if (above.keyed || matrices == Matrices::any) return {};
  if (target.gray) return Kernel::operate_gray;
  if (pixels && matrices == Matrices::equal) return Kernel::operate_pixels;
  if (even_nv) return Kernel::operate_420;
  return {};
}

}  // namespace

std::optional<PairLaunch> schedule_pair(const Geometry& geometry, const Target& target,
                                        const std::vector<Layer>& layers) {
  using Kernel = PairLaunch::Kernel;
  const FormatInfo& format = info(geometry.format);
  const Layer *above = nullptr, *below = nullptr;
  if (format.depth > 8 || !find_pair(geometry, target, layers, above, below)) return {};
  const bool pixels = format.sets[0].channels == 4, nv = format.is_semi_planar() && format.is_420();
  if (format.alpha_set() >= 0) return {};
  const bool even_nv = nv && target.width % 2 == 0 && target.height % 2 == 0, operates = operates_on_rgb(above->op);
  const auto operating = operates ? operating_kernel(target, *above, pixels, even_nv) : std::nullopt;
  if (operates ? !operating : above->keyed && !pixels && !even_nv && !target.gray) return {};
  PairLaunch launch{};
  PairJob& job = launch.job;
  if (!set_planes(geometry, target, *above, *below, job)) return {};
  job.layer = *above;
  job.weight = above->op == Operator::source && !target.alpha ? 1 : above->opacity;
  job.swapped = nv && target.channels[2].data < target.channels[1].data;
  launch.keyed = above->keyed;
  launch.down = is_over(*above) && above->color_bias < 0;
  launch.fourth = pixels ? target.packed.order[3] : 0;
  if (operating) {
    launch.kernel = *operating;
    if (launch.kernel == Kernel::operate_420) job.total -= job.planes[1].begin;  // one thread for each chunk of chroma
  } else if (pixels) {
    launch.kernel = Kernel::pixels;
    launch.mix = pixel_mix(target, *above, launch.down);
    for (int c = 0; c < 3; ++c) job.layer.key[target.packed.order[c] - (launch.fourth == 0)] = above->key[c];
  } else if (above->keyed && nv) {
    launch.kernel = Kernel::keyed_420;
    job.total -= job.planes[1].begin;  // one thread for each chunk of chroma
  }
  return launch;
}

}  // namespace cudavision::blend
