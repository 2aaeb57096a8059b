// SPDX-License-Identifier: LGPL-2.1-or-later
// Tuning of the histogram. All times are of one submit on an H200; without other words: GRAY8 of 7680×4320, random samples.
#pragma once

#include <cstdint>

namespace cudavision::histogram {

struct Tuning {
  /// From this number of samples on, the byte kernel is faster than the pixel kernel in spite of clearing and adding up its
  /// counters. 2 M samples: both take 7 µs. 8 M samples: half the time.
  std::int64_t byte_samples = 3 << 20;  // sweep: 1048576 2097152 3145728 8388608
  /// Warps of the byte kernel's only block on a multiprocessor, each with 8 KiB of counters; a multiple of 4. 24.3 µs with 12, 21.2
  /// with 16, 19.7 with 20, 18.9 with 24, 19.0 with 28.
  int byte_warps = 24;  // sweep: 12 16 20 24 28
  /// If the shared memory holds the counters of fewer warps than this, the pixel kernel is used: it takes 26 µs.
  int byte_min_warps = 12;  // sweep: 8 12 16
  /// Chunks of 16 samples that a lane of the byte kernel loads in advance. 23.5 µs with 1, 19.8 with 2, 20.6 with 4.
  int byte_ahead = 2;  // sweep: 1 2 4

  /// Threads of a block of the pixel kernel; with two blocks they fill a multiprocessor's registers. Not measured.
  int pixel_threads = 512;  // sweep: 256 512 1024
  /// Samples that are worth a block of the pixel kernel. 1920×1080: 7.2 µs with 4096 to 16384, 9.2 with 32768.
  int pixel_samples = 8192;  // sweep: 4096 8192 16384 32768
  /// Blocks of the pixel kernel on a multiprocessor, as many as its registers hold. Luma of RGBA: 105 µs with 1, 78 with 2.
  int pixel_blocks = 2;  // sweep: 1 2
  /// Counters of a block of the pixel kernel: if a frame needs fewer, several copies of them reduce conflicts between warps. 1024
  /// and 4096 took the same time.
  int pixel_counters = 4096;  // sweep: 1024 4096

  /// Above this number of entries a kernel of its own gathers the sums into bins, instead of the last block. Not measured.
  int gather_entries = 4096;  // sweep: 1024 4096 16384
  /// Threads of a block of that kernel. Not measured.
  int gather_threads = 256;  // sweep: 128 256 512

  /// Threads of a block of the sharpness kernel, and its blocks on a multiprocessor. Not measured.
  int sharpness_threads = 256;  // sweep: 128 256 512
  int sharpness_blocks = 4;     // sweep: 2 4 8
  /// Rows of its tiles: fewer keep all warps busy with small frames; more read fewer rows twice. Not measured.
  int sharpness_min_rows = 4;   // sweep: 2 4 8
  int sharpness_max_rows = 16;  // sweep: 8 16 32

  /// Threads of a block of the kernels that change pictures: 64 pixels or quads wide. Not measured.
  int picture_threads = 256;  // sweep: 128 256 512
};
inline constexpr Tuning tuning;

}  // namespace cudavision::histogram
