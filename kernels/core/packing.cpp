// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/packing.hpp"

#include <vector>

#include "kernels/core/backend.hpp"

namespace cudavision {

PackedRows packed_rows(const Image& packed, const Image& planes) {
  const FormatInfo& format = info(planes.geometry.format);
  PackedRows rows{};
  rows.packing = *info(packed.geometry.format).packing;
  rows.packed = static_cast<unsigned char*>(packed.planes[0].data);
  rows.pitch = packed.planes[0].pitch;
  for (int i = 0; i < format.set_count; ++i) {
    rows.planes[i] = planes.planes[i];
    rows.width[i] = planes.geometry.grid(format.sets[i]).width;
  }
  for (int i = 0; i < rows.packing.field_count; ++i) ++rows.per_group[rows.packing.fields[i].plane];
  rows.groups = divide_up(packed.geometry.width, rows.packing.pixels);
  rows.rows = packed.geometry.height;
  rows.sample_bytes = format.sample_bytes();
  rows.max = format.max_value();
  rows.words_aligned = aligned_to(rows.packed, rows.pitch, rows.packing.word_bytes);
  return rows;
}

void unpack_rows(const PackedRows& rows, int begin, int end) {
  with_packed_types(rows, [&](auto word, auto sample) {
    for (int y = begin; y < end; ++y)
      for (int group = 0; group < rows.groups; ++group) unpack_group<decltype(word), decltype(sample)>(rows, y, group);
  });
}

void pack_rows(const PackedRows& rows, int begin, int end) {
  with_packed_types(rows, [&](auto word, auto sample) {
    for (int y = begin; y < end; ++y)
      for (int group = 0; group < rows.groups; ++group) pack_group<decltype(word), decltype(sample)>(rows, y, group);
  });
}

void shift_packed(const Image& from, const Image& to, int skipped) {
  Geometry wide = unpacked(to.geometry);
  const FormatInfo& format = info(wide.format);
  wide.width += skipped;
  wide.height = 1;
  std::vector<std::vector<std::uint16_t>> memory;
  Image row{wide, {}}, shown{unpacked(to.geometry), {}};
  shown.geometry.height = 1;
  for (int i = 0; i < format.set_count; ++i) {
    memory.emplace_back(std::size_t(wide.grid(format.sets[i]).width));
    row.planes[i] = {memory.back().data(), std::ptrdiff_t(2 * memory.back().size())};
    shown.planes[i] = {static_cast<unsigned char*>(row.planes[i].data) +
                           std::ptrdiff_t(skipped >> format.sets[i].shift_x) * format.sample_bytes(),
                       row.planes[i].pitch};
  }
  const auto row_of = [](const Image& picture, int width, int y) {
    const Plane& plane = picture.planes[0];
    return Image{{picture.geometry.format, width, 1},
                 {Plane{static_cast<unsigned char*>(plane.data) + y * plane.pitch, plane.pitch}}};
  };
  for (int y = 0; y < to.geometry.height; ++y) {
    unpack_rows(packed_rows(row_of(from, wide.width, y), row), 0, 1);
    pack_rows(packed_rows(row_of(to, to.geometry.width, y), shown), 0, 1);
  }
}

Status unpack(Backend backend, const Image& packed, const Image& planes, Queue queue) {
  const PackedRows rows = packed_rows(packed, planes);
  return on_backend(
      backend, [&] { return unpack_cuda(rows, queue); }, [&] { return unpack_cpu(rows); });
}

Status pack(Backend backend, const Image& planes, const Image& packed, Queue queue) {
  const PackedRows rows = packed_rows(packed, planes);
  return on_backend(
      backend, [&] { return pack_cuda(rows, queue); }, [&] { return pack_cpu(rows); });
}

}  // namespace cudavision
