// SPDX-License-Identifier: LGPL-2.1-or-later
// The stages of a frame on the device, for the plan in cuda.cpp: functions that load and launch their kernels. All
// errors are of kind resource. Comparing and opening are in cuda_params.cuh. The stages of Reference::adaptive have
// their own headers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/status.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

// ---- Frames at a fraction of their size: cuda_scale.cu --------------------------------------------------------------

/// The channels of a picture, and of the same picture at 1 / 2^log2_scale of its size. Samples are as stored.
struct Scaling {
  struct Channel {
    ChannelView from;  ///< if it has no data, `value` is written
    ChannelView to;
    int width, height;            ///< samples of `to`
    int from_width, from_height;  ///< samples of `from`
    bool copied;                  ///< when enlarging: `from` already has the size of `to`
    unsigned value;               ///< as stored
  };
  Channel channels[4];
  int count = 0;
  int log2_scale = 0;
  int shift = 0, max = 255;  ///< properties of the format; see sample_of()
};

/// The compared channels of `whole`, which has the size of the frame, and of `small`, which has the size of the
/// analysis. When enlarging, also the copied channels of `src`, and black for channels that are not compared.
Scaling scaling_of(const Plan& plan, const Image& small, const Image& whole, bool shrinks, const Image& src);
Status load_scaling(int sample_bytes);
/// `shrinks`: writes the means of blocks (see class Diff); otherwise repeats samples.
Status launch_scaling(const Scaling& job, int sample_bytes, bool shrinks, cudaStream_t stream);

// ---- Mixtures of Gaussians: cuda_mog2.cu ----------------------------------------------------------------------------

Status load_mog2(int sample_bytes, int channels);
/// Updates the mixtures of a frame. Bit x of a row of `foreground` becomes 1 if the pixel is foreground. Rows are
/// `pitch` bytes apart (whole blocks of 512 pixels). `anew`: restarts the mixtures with the frame if the light was
/// switched.
Status launch_mog2(const mog2::Job& job, int sample_bytes, int channels, unsigned char* foreground, int pitch,
                   const State* state, bool anew, cudaStream_t stream);

// ---- The inside of outlines (enclosed.hpp): cuda_enclosed.cu --------------------------------------------------------

/// A mask has one bit per pixel. Its rows are words of 4 bytes; bits beyond the width are 0.
struct Enclosing {
  const unsigned char*
      mask;  ///< mask of the frame: a square of 2^log2_scale bits a side for each pixel of the analysis
  std::ptrdiff_t mask_pitch;
  unsigned char* filled;                 ///< the resulting mask of the analysis, in other memory
  const unsigned char* unmasked;         ///< bits of the analysis where pixels may be added; null: everywhere
  std::ptrdiff_t pitch;                  ///< pitch of filled and unmasked
  int width, height, log2_scale, reach;  ///< properties of the analysis
};

Status load_enclosing();
Status launch_enclosing(const Enclosing& job, cudaStream_t stream);

// ---- The looks of cells: cuda_looks.cu ------------------------------------------------------------------------------

/// The output for a frame: a head, then an entry for each cell that changed, in any order. An entry holds only the
/// fields that the plan measures.
struct LooksHead {
  std::uint32_t count;  ///< number of entries
  std::uint32_t unused[15];
};
struct LooksEntry {
  std::uint32_t cell, unused;
  CellLooks looks;
};
static_assert(sizeof(LooksEntry) == 64 && sizeof(LooksHead) == 64, "entries cross the bus in whole pieces");
/// The size of an entry of a plan in bytes. votes: whether entries have a structure.
constexpr int looks_entry_bytes(bool only_extents, bool votes) {
  return votes ? int(sizeof(LooksEntry)) : only_extents ? 16 : 48;
}
static_assert(offsetof(LooksEntry, looks.pixels) == 16 && offsetof(LooksEntry, looks.structure) == 48);

struct LooksArguments {
  LooksJob job;
  const unsigned char* mask;  ///< bits of the frame: 1 where a pixel changed
  std::ptrdiff_t mask_pitch;  ///< bytes
  int cells_x, cells_y, cell_size;
  const std::uint32_t* cells;  ///< cells to measure, see CellList
  std::uint32_t* count;        ///< number of cells, then a 0, in 8 aligned bytes; the launch sets it to 0
  unsigned char* found;        ///< in page-locked host memory; see LooksHead
  int entry_bytes;             ///< see looks_entry_bytes()
  // Set by launch_looks(). words: the luma of 4 pixels is an aligned word of bytes. pairs: so are their two pairs of Cb
  // and Cr.
  bool words = false, pairs = false;
};

Status load_looks(bool bytes, int cell_size);
/// Measures the cells in the list. `bytes`: whether stored words are bytes. device: the device of the current context.
Status launch_looks(const LooksArguments& arguments, bool bytes, const cuda::Device& device, bool overlaps,
                    cudaStream_t stream);

// ---- Rectangles in the colour of boxes: cuda_boxes.cu ---------------------------------------------------------------

Status load_boxes(int sample_bytes);
Status launch_boxes(const Image& dst, const std::vector<Fill>& fills, cudaStream_t stream);

}  // namespace cudavision::diff
