// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides how a frame is launched: which kernel, and which blocks. Plain C++, in every build, tested without a GPU.
#pragma once

#include <optional>
#include <vector>

#include "kernels/blend/cuda_tuning.hpp"
#include "kernels/blend/plan.hpp"

namespace cudavision::blend {

// ---- Any layers: compose_tiles, compose_direct_tiles, compose_simple_parts
// ----------------------------------------------------------------

inline constexpr int tile_width = 32 * tuning.columns, strip_height = tuning.warps * tuning.rows;

/// Blocks of a kernel, each a tile of tile_width × tile_height pixels.
struct TileGrid {
  int across, down;
  int tile_width, tile_height;  ///< multiples of blend::tile_width and strip_height
};
TileGrid tile_grid(int width, int height, int most_strips = tuning.most_strips);  ///< the grid of compose_tiles
TileGrid direct_tile_grid(int width, int height,
                          int wanted_blocks = tuning.wanted_direct_blocks);  ///< the grid of compose_direct_tiles

/// compose_direct_tiles composes the tiles whose layers can all be laid over bytes; compose_tiles composes the other
/// tiles. `across` is 0 if a kernel has no work. Each tile of compose_tiles lies in a tile of compose_direct_tiles.
struct ComposeLaunch {
  TileGrid pixels, direct;
};
ComposeLaunch schedule_compose(const Target& target, const std::vector<Layer>& layers);

/// The planes of a part that a block writes.
enum class Planes : std::uint8_t { all, luma, chroma };

/// A rectangle of the output that shows the same layers everywhere. It is cut into tiles, one for each block. Adjacent
/// parts with equal rows of tiles form a band. Blocks are numbered along the rows of the whole band, so that pads with
/// the same picture share the cache.
struct OutputPart {
  std::uint64_t layers, whole;  ///< bit l: layer l is visible in the part; covers the whole part
  Rect rect;
  int begin;            ///< the first block of the band
  std::int16_t across;  ///< tiles in a row of the band
  std::int16_t column;  ///< tiles in a row of the band before this part
  std::int16_t tile_width, tile_height;
  bool covered;  ///< whether the lowest of the layers hides everything below it
  /// scaled, copied: composed by compose_simple_parts. edges: chroma samples that an edge divides, composed by
  /// compose_simple_parts. mixed: composed by compose_direct_tiles. searched: like mixed, but each block searches for
  /// the layers of its tile.
  enum class Kind : std::uint8_t { scaled, edges, copied, mixed, searched } kind;
  Planes planes;
};
/// Where the tiles of a part begin. Copied tiles begin at chunks of 16 bytes.
CUDAVISION_HOST_DEVICE inline int first_tile(const OutputPart& part) {
  return part.kind == OutputPart::Kind::copied ? part.rect.x / tuning.copy_step * tuning.copy_step : part.rect.x;
}
static_assert(sizeof(OutputPart) == 48, "kernel arguments hold many of them");
inline constexpr int most_parts = 192;
/// The parts of a frame. The first parts belong to compose_simple_parts: they show one layer, or pixels blended over a
/// copied layer. The other parts belong to compose_direct_tiles.
///
/// The blocks of compose_simple_parts are numbered in this order: first the blocks that scale, then the blocks that
/// copy. They start in another order: blocks that scale wait for instructions, and should run at the same time as
/// blocks that copy, which wait for memory.
struct Parts {
  int simple, count;         ///< number of parts of compose_simple_parts, and of all parts
  int blocks, other_blocks;  ///< blocks of compose_simple_parts, and of compose_direct_tiles
  int scaled;                ///< blocks of compose_simple_parts that scale
  std::uint32_t mixing;  ///< as long as blocks that scale are left, this share of the starting blocks scales, in 2^−32
  OutputPart part[most_parts];
};

/// Cuts the output of a direct launch into parts. If compose_tiles also has tiles, or if there are too many parts, the
/// output is one part of compose_direct_tiles, whose blocks search for their layers.
void schedule_parts(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch, Parts& parts);

// ---- Two pictures of one 8-bit format: mix_…, operate_… -------------------------------------------------------------

/// A plane of both pictures and of the output. Its rows are aligned to 16 bytes.
struct PairPlane {
  const std::uint8_t *above, *below;
  std::uint8_t* dst;
  std::ptrdiff_t above_pitch, below_pitch, dst_pitch;
  int row_bytes, rows;
  int chunks;  ///< chunks of 16 bytes in a row
  int begin;   ///< number of chunks in all planes before this one
};

/// Parameters of a pair kernel.
struct PairJob {
  PairPlane planes[max_planes];
  int plane_count;
  int total;     ///< number of threads with work: one for each chunk
  float weight;  ///< weight of the upper picture
  bool swapped;  ///< Cr before Cb
  Layer layer;   ///< the upper picture; for pixels of four bytes, `key` has the order of the colour bytes in the pixel
};

/// How pixels of four bytes are mixed. One byte is alpha or padding.
enum class PixelMix {
  all,             ///< average: alpha is mixed like a colour
  padded,          ///< format without alpha
  padded_down,     ///< format without alpha, rounded down: over
  source,          ///< the key chooses the upper or the lower pixel
  on_opaque,       ///< over by the upper pixel's alpha, on an opaque background
  on_opaque_down,  ///< like on_opaque, rounded down
  over,            ///< over, by the alphas of both pixels
};

struct PairLaunch {
  enum class Kernel {
    planes,     ///< mix_planes: one weight for all samples, or gray with a key
    pixels,     ///< mix_pixels: pixels of four bytes
    keyed_420,  ///< mix_keyed_420: NV12 and NV21 with a key, even size
    operate_gray,
    operate_pixels,
    operate_420,  ///< with an operator on R', G' and B', without a key
  };
  Kernel kernel;
  bool keyed, down;  ///< down: results are rounded down
  PixelMix mix;      ///< for `pixels`
  int fourth;        ///< for `pixels`: the byte that is alpha or padding, 0 or 3
  PairJob job;
};

/// The launch for a frame that shows two pictures with the output's 8-bit format, colours and size, of which the lower
/// one is unchanged, or only one such picture. No value for other frames, which compose_tiles composes.
std::optional<PairLaunch> schedule_pair(const Geometry& geometry, const Target& target,
                                        const std::vector<Layer>& layers);

}  // namespace cudavision::blend
