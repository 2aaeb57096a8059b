// SPDX-License-Identifier: LGPL-2.1-or-later
// Parameters of the kernels and of their shapes, and the choice of a kernel for a layout.
#pragma once

#include <cstdint>

#include "kernels/diff/camera.hpp"
#include "kernels/diff/cuda_schedule.hpp"
#include "kernels/diff/relight.hpp"

namespace cudavision::diff {

/// What a kernel does with each sample of a word. Masks are all ones or zeros for each sample; colours are samples.
struct Rule {
  std::uint32_t compared = 0, about_middle = 0, copied = 0, white = 0, black = 0, tint = 0;
};

struct View {
  unsigned char* data = nullptr;
  int pitch = 0;
};

/// The state of the reference in device memory. The host clears it at each reset, and never reads it.
struct State {
  unsigned long long began;        ///< number of the frame with which the reference began
  unsigned light;                  ///< whether a Cause other than none cleared the changes of this frame
  unsigned anew;                   ///< adaptive background: whether the next frame restarts the means with this frame
  std::uint64_t kept, held;        ///< sectors that do not restart; see camera::Decision
  camera::Watch watch;             ///< state for an adaptive background
  adaptive::Relight light_change;  ///< adaptive background: for the means in the `kept` sectors
  // Of the current frame; 0 between frames:
  unsigned above, blocks;         ///< changed pixels, and blocks that have added their count
  unsigned empty_cells, cells;    ///< adaptive background: cells without light, and measured cells
  unsigned long long difference;  ///< adaptive background: the sum of the pixels' differences
  unsigned long long compared;    ///< see finish_comparison()
};
/// The results of a frame except the counts, in page-locked host memory; see Sequence::FrameCounts.
struct Verdict {
  std::uint32_t compared;
  Cause cause;
  std::int32_t moved_x, moved_y;  ///< see FrameCounts
  std::uint64_t difference;       ///< the sum of the pixels' differences
};

/// The cells that changed in a frame, in any order; in device memory. Tiles append them, and cuda_looks.cu reads them.
struct CellList {
  std::uint32_t* count = nullptr;  ///< null: there is no list
  std::uint32_t* cells = nullptr;
  /// For each cell, if tiles share cells: the stamp of the last frame that listed it. Otherwise null.
  std::uint32_t* stamps = nullptr;
  int across = 0;  ///< cells in a row of the frame
};

/// A frame whose samples become the reference if the light was switched.
struct Restart {
  struct Plane {
    View src, first, background;  ///< background: twice the bytes of a sample; null: not kept
    int samples = 0, rows = 0;
  };
  Plane planes[3];
  int shift = 0, max = 0;  ///< properties of the format, see sample_of()
};

/// One plane of the frames. Accesses to the caller's pictures (src and dst) stay within their rows. Memory of the plan
/// is accessed in whole strips.
struct PlaneJob {
  View src, reference, keep, dst, background;         ///< background: twice the bytes of a sample
  int row_bytes = 0;                                  ///< bytes of a row that may be accessed
  std::uint8_t src_alignment = 1, dst_alignment = 1;  ///< alignment of every row, up to 16
  bool any_compared = false, any_about_middle = false, any_copied = false;
  Rule rules[8];  ///< for the words of a quad; they repeat along the row
};

/// Parameters of the comparing and the opening kernel. Fields that all threads need come first, in a few cache lines.
struct KernelParams {
  int width = 0, height = 0;
  std::uint32_t threshold = 0;  ///< the threshold, repeated in every sample of a word
  bool count = true;            ///< whether this kernel counts changed pixels
  bool detects_light = false;
  bool begin = false;  ///< whether a background begins
  bool luma_of_rgb = false, reference_is_luma = false;
  bool show_mask = false;          ///< Writes::changed: a mask; false: an overlay
  bool corrects = false;           ///< for the opening kernel: Schedule::corrects
  bool luma_second = false;        ///< packed 4:2:2 begins with chroma
  bool next_starts_early = false;  ///< the next launch may start when all blocks of this one have started
  std::uint8_t shift = 0;          ///< unused low bits of stored words
  std::uint8_t open_radius = 0;
  std::uint8_t log2_scale = 0;  ///< for the opening kernel: a pixel of the analysis is 2^log2_scale pixels a side
  std::uint32_t cell_size = 16, cell_reciprocal = 0;  ///< see cell_of
  int slots_x = 0, slots = 0;
  int tiles_x = 1;       ///< tiles in a row of the launch
  int record_bytes = 0;  ///< bytes of the record of a tile whose cells are counted
  /// One record for each tile whose cells are counted: the stamp of the frame, then slots_x counts for each row of
  /// cells. Tiles without changed pixels store no record.
  unsigned char* records = nullptr;
  std::uint32_t stamp = 0;  ///< stamp of the frame; never 0
  CellList list;
  const unsigned char* unmasked = nullptr;  ///< bits; null: all pixels are counted
  /// Bits of the changed pixels; null: the threshold decides.
  const unsigned char* foreground = nullptr;
  unsigned char* changed = nullptr;  ///< bits for the opening; null: there is none
  /// A byte for each tile. Tiles of the comparison (compared_x across): whether any of their pixels changed before the
  /// opening. Tiles of the opening: whether their part of the final mask is not 0. Null: the opening does not skip
  /// tiles.
  unsigned char *found_tiles = nullptr, *filled_tiles = nullptr;
  int compared_x = 0;
  State* state = nullptr;
  Verdict* verdict = nullptr;     ///< null: another kernel writes it
  unsigned long long number = 0;  ///< number of the frame
  unsigned interval = 1;          ///< number of frames from the restart of a reference to its use
  std::uint32_t light_limit = 0;  ///< if more pixels changed, the light was switched
  unsigned light_age = 0;         ///< minimum age of the reference, in frames
  int bits_pitch = 0;
  /// Strips that end at or before this pixel, in this many rows of tiles, are inside the frame and can be accessed as
  /// aligned words.
  int whole_width = 0, whole_rows = 0;
  PlaneJob planes[3];
  Follow follow;  ///< how the background follows the frames
  Show show;
  bool drops_shadows = false;
  Shadow shadow;
  Restart restart;  ///< used by the opening kernel
  /// Bits of the counted changed pixels of the frame, for later kernels, in rows of final_pitch bytes. Null: not
  /// needed.
  unsigned char* final_mask = nullptr;
  int final_pitch = 0;
  int rgb[3] = {};                  ///< channels of plane 0, or planes, that hold red, green and blue
  Writes writes = Writes::nothing;  ///< for kernels of Writes::chosen
};

/// These kernels take KernelParams and run one block per tile, in a row of blocks.
const void* compare_kernel(const Layout& layout, bool background, Writes writes);
const void* open_kernel(const Layout& layout, Writes writes, bool wide);

}  // namespace cudavision::diff
