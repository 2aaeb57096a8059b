// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/packed.hpp"

#include "kernels/core/backend.hpp"

namespace cudavision {
namespace {

GroupRows rows_of(const Image& from, const Image& to) {
  const Plane &src = from.planes[0], &dst = to.planes[0];
  return {static_cast<const unsigned char*>(src.data),
          static_cast<unsigned char*>(dst.data),
          src.pitch,
          dst.pitch,
          to.geometry.width,
          to.geometry.height,
          first_luma(info(to.geometry.format))};
}

}  // namespace

Status fill_padding(Backend backend, const Image& image, Queue queue) {
  const FormatInfo& format = info(image.geometry.format);
  if (!is_packed_422(format) || image.geometry.width % 2 == 0) return {};
  const GroupRows rows = rows_of(image, image);
  if (2 * rows.width + rows.luma >= rows.dst_pitch) return {};
  return on_backend(
      backend, [&] { return fill_padding_cuda(rows, queue); },
      [&] {
        unsigned char* last = rows.dst + 2 * (rows.width - 1) + rows.luma;
        for (int y = 0; y < rows.rows; ++y, last += rows.dst_pitch) last[2] = last[0];
        return Status();
      });
}

Status shift_groups(Backend backend, const Image& from, const Image& to, Queue queue) {
  const GroupRows rows = rows_of(from, to);
  if (backend == Backend::cuda)
    return on_backend(
        backend, [&] { return shift_groups_cuda(rows, queue); }, [] { return Status(); });
  for (int y = 0; y < rows.rows; ++y)
    for (int group = 0; group < divide_up(rows.width, 2); ++group) shift_group(rows, y, group);
  return {};
}

}  // namespace cudavision
