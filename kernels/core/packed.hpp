// SPDX-License-Identifier: LGPL-2.1-or-later
// Packed 4:2:2 (YUY2, UYVY): two pixels share a group of four bytes.
//
//   YUY2, a row of five pixels:   Y0 U0 Y1 V0 │ Y2 U1 Y3 V1 │ Y4 U2 ·· V2      ··: the padding of the row
#pragma once

#include "kernels/core/host_device.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

inline constexpr int group_bytes = 4;

inline bool is_packed_422(const FormatInfo& format) { return format.sets[0].shares_plane(); }

/// The first byte of a group that holds luma: 0 in YUY2, 1 in UYVY. The second luma sample is two bytes later.
inline int first_luma(const FormatInfo& format) { return format.sets[0].roles[0] == Role::luma ? 0 : 1; }

/// The rows that one of the functions below processes. `luma` is first_luma().
struct GroupRows {
  const unsigned char* src;
  unsigned char* dst;
  std::ptrdiff_t src_pitch, dst_pitch;
  int width, rows, luma;
};

/// Packed 4:2:2 of odd width: copies the last luma sample of each row to the padding after it. The output bytes then
/// depend only on the picture. Does nothing for other pictures, or if the pitch ends before that byte.
Status fill_padding(Backend backend, const Image& image, Queue queue);

/// Copies a picture that begins at the second pixel of a group; `from` points to this group. Luma moves by one pixel;
/// the chroma of a group is not moved, as in GStreamer's videocrop. Both pictures are packed 4:2:2 and have the same
/// geometry. Fills the padding. Does not wait for CUDA. Backend::cpu works in every build.
Status shift_groups(Backend backend, const Image& from, const Image& to, Queue queue);

/// One group of shift_groups().
CUDAVISION_HOST_DEVICE inline void shift_group(const GroupRows& rows, int y, int group) {
  const unsigned char* const src = rows.src + y * rows.src_pitch;
  unsigned char* const dst = rows.dst + y * rows.dst_pitch + group_bytes * group;
  for (int i = 0; i < 2; ++i) {
    const int last = rows.width - 1, pixel = 2 * group + i;
    dst[2 * i + rows.luma] = src[2 * ((pixel < last ? pixel : last) + 1) + rows.luma];
    dst[2 * i + 1 - rows.luma] = src[group_bytes * group + 2 * i + 1 - rows.luma];
  }
}

// The functions that the CUDA backend provides for this.
Status fill_padding_cuda(const GroupRows& rows, Queue queue);
Status shift_groups_cuda(const GroupRows& rows, Queue queue);

}  // namespace cudavision
