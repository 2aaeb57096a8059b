// SPDX-License-Identifier: LGPL-2.1-or-later
// Formats whose pixels are packed in words that the kernels of operations do not read: bit fields (RGB10A2_LE, v210),
// and packed Y'CbCr with layouts other than YUY2. Pictures are unpacked to planes before an operation, and packed after
// it.
//
//   v210, a group of 6 pixels in 4 words:   word 0   ·· V0 Y0 U0     10 bits each, the lowest bits on the right
//                                           word 1   ·· Y2 U2 Y1
//                                           word 2   ·· U4 Y3 V2
//                                           word 3   ·· Y5 V4 Y4
//
// Bits outside the fields are zero in a packed picture. The last group of a row repeats the last sample of each plane.
#pragma once

#include "kernels/core/host_device.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// The geometry that operations process: the unpacked picture's geometry, or `geometry` itself if it is not packed.
inline Geometry unpacked(const Geometry& geometry) {
  const Packing* packing = info(geometry.format).packing;
  return {packing ? packing->unpacked : geometry.format, geometry.width, geometry.height};
}

/// The packed and the unpacked picture, as plain numbers for device code.
struct PackedRows {
  Packing packing;
  unsigned char* packed;
  std::ptrdiff_t pitch;
  Plane planes[max_planes];
  int width[max_planes];      ///< samples in a row
  int per_group[max_planes];  ///< samples in a group
  int groups, rows;           ///< size of the picture
  int sample_bytes, max;      ///< bytes of a sample in the planes; the largest sample
  bool words_aligned;         ///< words of the packed picture are aligned to their size
};

/// `packed` has a packed format; `planes` has the geometry unpacked(packed.geometry).
PackedRows packed_rows(const Image& packed, const Image& planes);

/// Convert all samples. Neither function waits for CUDA.
Status unpack(Backend backend, const Image& packed, const Image& planes, Queue queue);
Status pack(Backend backend, const Image& planes, const Image& packed, Queue queue);

/// Copies a picture that begins `skipped` pixels after the start of a group; `from` points to this group. Subsampled
/// chroma begins with the sample of the first pixel, as in GStreamer's videocrop. Runs on the CPU, in every build.
void shift_packed(const Image& from, const Image& to, int skipped);

// The arithmetic of one group, for both backends.

template <typename Word>
CUDAVISION_HOST_DEVICE inline unsigned load_packed_word(const unsigned char* at, bool aligned) {
  if (aligned) return *reinterpret_cast<const Word*>(at);
  unsigned word = 0;
  for (unsigned i = 0; i < sizeof(Word); ++i) word |= unsigned(at[i]) << 8 * i;
  return word;
}
template <typename Word>
CUDAVISION_HOST_DEVICE inline void store_packed_word(unsigned char* at, bool aligned, unsigned word) {
  if (aligned)
    *reinterpret_cast<Word*>(at) = Word(word);
  else
    for (unsigned i = 0; i < sizeof(Word); ++i) at[i] = static_cast<unsigned char>(word >> 8 * i);
}

template <typename Word, typename Sample>
CUDAVISION_HOST_DEVICE inline void unpack_group(const PackedRows& rows, int y, int group) {
  const Packing& packing = rows.packing;
  const unsigned char* const words = rows.packed + y * rows.pitch + std::ptrdiff_t(group) * packing.group_bytes();
  int next[max_planes] = {group * rows.per_group[0], group * rows.per_group[1], group * rows.per_group[2],
                          group * rows.per_group[3]};
  for (int i = 0; i < packing.field_count; ++i) {
    const Packing::Field field = packing.fields[i];
    const int x = next[field.plane]++;
    if (x >= rows.width[field.plane]) continue;
    const unsigned most = (1u << field.bits) - 1;
    unsigned sample = load_packed_word<Word>(words + field.word * sizeof(Word), rows.words_aligned) >> field.bit & most;
    if (most < unsigned(rows.max)) sample = (sample * unsigned(rows.max) + most / 2) / most;
    const Plane& plane = rows.planes[field.plane];
    reinterpret_cast<Sample*>(static_cast<unsigned char*>(plane.data) + y * plane.pitch)[x] = Sample(sample);
  }
}

template <typename Word, typename Sample>
CUDAVISION_HOST_DEVICE inline void pack_group(const PackedRows& rows, int y, int group) {
  const Packing& packing = rows.packing;
  unsigned char* const words = rows.packed + y * rows.pitch + std::ptrdiff_t(group) * packing.group_bytes();
  int next[max_planes] = {group * rows.per_group[0], group * rows.per_group[1], group * rows.per_group[2],
                          group * rows.per_group[3]};
  int at = 0;
  unsigned word = 0;
  for (int i = 0; i < packing.field_count; ++i) {
    const Packing::Field field = packing.fields[i];
    if (field.word != at) {
      store_packed_word<Word>(words + at * sizeof(Word), rows.words_aligned, word);
      at = field.word;
      word = 0;
    }
    const int x = next[field.plane]++, last = rows.width[field.plane] - 1;
    const Plane& plane = rows.planes[field.plane];
    unsigned sample = reinterpret_cast<const Sample*>(static_cast<const unsigned char*>(plane.data) +
                                                      y * plane.pitch)[x < last ? x : last];
    const unsigned most = (1u << field.bits) - 1;
    if (most < unsigned(rows.max)) sample = (sample * most + unsigned(rows.max) / 2) / unsigned(rows.max);
    word |= (sample < most ? sample : most) << field.bit;
  }
  store_packed_word<Word>(words + at * sizeof(Word), rows.words_aligned, word);
}

/// Calls f with a value of the word type and a value of the sample type.
template <typename F>
auto with_packed_types(const PackedRows& rows, F&& f) {
  if (rows.packing.word_bytes == 1) return f(std::uint8_t(), std::uint8_t());
  return rows.packing.word_bytes == 2 ? f(std::uint16_t(), std::uint16_t()) : f(std::uint32_t(), std::uint16_t());
}

/// Convert the rows [begin, end) on the CPU. Available in every build.
void unpack_rows(const PackedRows& rows, int begin, int end);
void pack_rows(const PackedRows& rows, int begin, int end);

// The functions that each backend provides for this.
Status unpack_cpu(const PackedRows& rows);
Status pack_cpu(const PackedRows& rows);
Status unpack_cuda(const PackedRows& rows, Queue queue);
Status pack_cuda(const PackedRows& rows, Queue queue);

}  // namespace cudavision
