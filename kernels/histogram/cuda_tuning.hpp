// SPDX-License-Identifier: LGPL-2.1-or-later
// Tuning of the histogram. All times are for one submit on an H200; unless a comment says otherwise, of GRAY8 at 7680 ×
// 4320 with random samples.
#pragma once

#include <cstdint>

namespace cudavision::histogram {

struct Tuning {
  /// The threads of a block of a counting kernel, of which a multiprocessor runs one. A prototype took 11.6 µs; 12.5
  /// with two blocks of 512, 13.2 with two of 1024.
  int pixel_threads = 1024;  // sweep: 512 768 1024
  /// Chunks (of up to 16 bytes) that a thread loads in advance. 13.9 µs with 1, 12.5 with 2, 12.7 with 3; luma of RGBA
  /// 41.9, 36.3, 35.4; equalising NV12 44.5, 39.3, 39.0; 65536 bins 45.5, 43.7, 46.8. 1920×1080: 4.7, 4.8, 5.0.
  int chunks_ahead = 2;  // sweep: 1 2 3 4
  /// The pixel kernel uses at most one block per this number of samples. Not measured.
  int pixel_samples = 8192;  // sweep: 4096 8192 16384 32768
  /// The word kernel uses at most one block per this number of samples, because each block adds up to 65536 counters to
  /// the device's sums at its end. GRAY16 at 1920×1080: 16.8 µs with 16384, 16.6 with 24576, 15.8 with 32768, 16.6 with
  /// 49152, 19.4 with 65536.
  int word_samples = 32768;  // sweep: 16384 32768 65536
  /// The number of copies of the device's sums, if there are few sums. 1920×1080: 5.6 µs with 1, 4.8 with 4; no
  /// difference in larger frames.
  int sum_copies = 4;  // sweep: 1 2 4 8

  /// Above this number of entries, a separate kernel gathers the sums into bins, instead of the last block. Not
  /// measured.
  int gather_entries = 4096;  // sweep: 1024 4096 16384
  /// The threads of a block of that kernel. Not measured.
  int gather_threads = 256;  // sweep: 128 256 512

  /// The threads of a block of the equalising kernel, of which a multiprocessor runs one. A prototype took 30.0 µs;
  /// 30.9 with two blocks of 1024, 31.0 with three of 512.
  int equalize_threads = 1024;  // sweep: 512 768 1024

  /// The threads of a block of the sharpness kernel, and its blocks per multiprocessor. Not measured.
  int sharpness_threads = 256;  // sweep: 128 256 512
  int sharpness_blocks = 4;     // sweep: 2 4 8
  /// The rows of a tile of the sharpness kernel. Short tiles keep all warps busy with small frames; tall tiles read
  /// fewer rows twice. Not measured.
  int sharpness_min_rows = 4;   // sweep: 2 4 8
  int sharpness_max_rows = 16;  // sweep: 8 16 32

  /// The number of threads in a block of the kernels that draw. A block is 64 pixels or quads wide. Not measured.
  int picture_threads = 256;  // sweep: 128 256 512
};
inline constexpr Tuning tuning;

}  // namespace cudavision::histogram
