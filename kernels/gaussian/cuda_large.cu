// SPDX-License-Identifier: LGPL-2.1-or-later
// The Gaussian for windows that do not fit into registers. It works like cuda_strip.cu: a warp marches down a segment
// of a strip, 16 rows a step, across and then down. But the matrices and the rings are in shared memory, and the sizes
// of the window are parameters.
//
//   shared memory of a block (LargeLayout):
//     matrix across  [margin + loads groups of 16 samples][byte of a weight][lane][half]   margin: groups of zeros
//     matrix down    [window_groups_y groups of 16 rows][byte of a weight][lane][half]
//     results        [warp] see cuda_store.cuh
//     maps           [warp][samples of its window] positions in the row, for the sides of the frame
//     rings          [warp][window_groups_y groups of 16 rows][4][lane] 16 bytes; holds the bands at first
//
// The blocks of 16 samples of a strip share the matrix across. Block b needs it shifted by b · 16 samples, so it takes
// the fragment that is b · sizeof(T) groups earlier; the margin and the groups after the window are zeros.
#include "kernels/cuda/mma.cuh"
#include "kernels/gaussian/cuda_bands.cuh"
#include "kernels/gaussian/cuda_store.cuh"

namespace cudavision::gaussian {
namespace {

using cuda::mma;

/// The word at byte x of row `row`, sample by sample. The row is mapped: inside the frame, or −1 for border values.
/// `map`: the positions of the word's samples.
template <typename T>
__device__ __noinline__ uint32_t edge_word(const SetJob& job, int row, int x, const int* map) {
  const unsigned char* const from = job.view.src + row * job.view.src_pitch;
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 4 / int(sizeof(T)); ++i) {
    const int byte = row < 0 ? ~int(cuda::border_sample(job.view, x / int(sizeof(T)) + i)) : map[i];
    const uint32_t value = byte < 0 ? ~byte : *reinterpret_cast<const T*>(from + byte);
    word |= value << (i * 8 * int(sizeof(T)));
  }
  return word;
}

/// border_index(), not inlined: the loop rarely needs it, and inlining would cost registers.
__device__ __noinline__ int far_index(int i, int n, Border border) { return border_index(i, n, border); }

/// The words at bytes x, x + 16, x + 32 … of row y. `inside`: no word leaves the row, and all are aligned to 4 bytes;
/// otherwise `map` has the positions of the samples beginning at byte x.
template <typename T, int N>
__device__ __forceinline__ void load_row(const SetJob& job, bool inside, int y, int x, const int* map,
                                         uint32_t (&words)[N]) {
  const SetView& view = job.view;
  const int row = far_index(y, view.height, view.border);
  const unsigned char* const at = view.src + row * view.src_pitch + x;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int byte = x + 16 * j;
    words[j] = 0;
    if (row >= 0 && (inside || (job.unit >= 4 && byte >= 0 && byte + 4 <= job.row_bytes)))
      words[j] = __ldg(reinterpret_cast<const uint32_t*>(at + 16 * j));
    else if (byte > -job.reach - 4 && byte < job.row_end + job.reach)
      words[j] = edge_word<T>(job, row, byte, map + 16 / sizeof(T) * j);
  }
}

/// The steps of a warp. `across`, `down` and `ring` point into shared memory; `ring` points to the lane's first 16
/// bytes.
template <typename T>
struct Large {
  using A = Arithmetic<T>;
  using Layout = LargeLayout<sizeof(T)>;
  static constexpr int loads_ahead = Layout::loads_ahead, blocks = strip_blocks(sizeof(T));

  /// Fills the matrices from the bands. All threads of the block call it.
  static __device__ __forceinline__ void fill(const Bands<T>& bands, const Layout& layout, uint32_t* across,
                                              uint32_t* down) {
    constexpr int apart = sizeof(T) == 1 ? 2 : 8, first = sizeof(T) == 1 ? 4 : 2;  // see planes_of()
    for (int i = threadIdx.x; i < (layout.margin + layout.loads) * A::bytes * 64; i += blockDim.x) {
      const int group = i / (64 * A::bytes) - layout.margin, t = i / 2 % 4;
      across[i] = group >= 0 && group < bands.window_groups_x
                      ? bands.across_word(i / 64 % A::bytes, 16 * group + first * t, apart, i % 2, i / 2 % 32)
                      : 0;
    }
    for (int i = threadIdx.x; i < bands.window_groups_y * A::bytes * 64; i += blockDim.x)
      down[i] = bands.down_word(i / 64 % A::bytes, i / (64 * A::bytes), i % 2, i / 2 % 32);
    __syncthreads();
  }

  /// The planes of a lane's samples of a group: bytes 4t … 4t + 3, or 16-bit samples 2t, 2t + 1, 2t + 8, 2t + 9.
  static __device__ __forceinline__ void planes_of(const SampleRules& rules, const uint32_t* words,
                                                   uint32_t (&planes)[A::bytes]) {
    if constexpr (sizeof(T) == 1) {
      planes[0] = words[0];
    } else {
      uint32_t samples[2] = {words[0], words[1]};
      A::clamp(rules, samples);
      planes[0] = __byte_perm(samples[0], samples[1], 0x6420), planes[1] = __byte_perm(samples[0], samples[1], 0x7531);
    }
  }

  /// The pass across: computes the sums of rows y and y + 8. The lane's words begin at byte x.
  static __device__ __forceinline__ void sum_rows(const SetJob& job, bool inside, int y, int x, const int* map,
                                                  int loads, const uint32_t* across, int lane,
                                                  int (&row_sums)[blocks][2][A::across][4]) {
    constexpr int group_words = sizeof(T);
    uint32_t next[2][loads_ahead * group_words];
    load_row<T>(job, inside, y, x, map, next[0]);
    load_row<T>(job, inside, y + 8, x, map, next[1]);
#pragma unroll 1
    for (int j = 0; j < loads; j += loads_ahead) {
      uint32_t planes[2][loads_ahead][A::bytes];
#pragma unroll
      for (int i = 0; i < 2 * loads_ahead; ++i)
        planes_of(job.rules, &next[i / loads_ahead][i % loads_ahead * group_words],
                  planes[i / loads_ahead][i % loads_ahead]);
      if (j + loads_ahead < loads) {
        const int further = 16 * (j + loads_ahead);  // samples
        load_row<T>(job, inside, y, x + further * group_words, map + further, next[0]);
        load_row<T>(job, inside, y + 8, x + further * group_words, map + further, next[1]);
      }
#pragma unroll
      for (int k = 0; k < loads_ahead; ++k)
#pragma unroll
        for (int b = 0; b < blocks; ++b)
#pragma unroll
          for (int byte = 0; byte < A::bytes; ++byte) {
            const uint2 matrix =
                reinterpret_cast<const uint2*>(across)[((Layout::margin + j + k - b) * A::bytes + byte) * 32 + lane];
            const uint32_t a[2] = {matrix.x, matrix.y};
#pragma unroll
            for (int p = 0; p < A::bytes; ++p) {
              mma(row_sums[b][0][byte + p], a, planes[0][k][p]);
              mma(row_sums[b][1][byte + p], a, planes[1][k][p]);
            }
          }
    }
  }

  /// Stores row sums in slot `slot` of the ring.
  static __device__ __forceinline__ void store_row_sums(const SetJob& job, uint32_t pack,
                                                        const int (&row_sums)[blocks][2][A::across][4], int slot,
                                                        uint4* ring) {
    uint32_t packed[16];
#pragma unroll
    for (int i = 0; i < 2 * blocks; ++i)
      A::split(job.rules, pack, row_sums[i / 2][0], row_sums[i / 2][1], i % 2, &packed[i * A::planes]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      ring[(slot * 4 + i) * 32] = make_uint4(packed[4 * i], packed[4 * i + 1], packed[4 * i + 2], packed[4 * i + 3]);
  }

  /// The pass down: result words of rows g and g + 8, from a full ring whose oldest group is in slot `oldest`.
  static __device__ __forceinline__ void sum_columns(const SetJob& job, int window_groups_y, const uint32_t* down,
                                                     int lane, const uint4* ring, int oldest, uint32_t (&upper)[4],
                                                     uint32_t (&lower)[4]) {
    int sums[4][A::tiles][A::sums][4] = {};
#pragma unroll
    for (int i = 0; i < 16 * A::tiles; ++i)
      sums[i / 4 / A::tiles][i / 4 % A::tiles][A::rounded][i % 4] = job.rules.rounding;
#pragma unroll 1
    for (int d = 0, from = oldest; d < window_groups_y; ++d) {
      uint32_t a[A::bytes][2];
#pragma unroll
      for (int byte = 0; byte < A::bytes; ++byte) {
        const uint2 matrix = reinterpret_cast<const uint2*>(down)[(d * A::bytes + byte) * 32 + lane];
        a[byte][0] = matrix.x, a[byte][1] = matrix.y;
      }
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const uint4 rows = ring[(from * 4 + w) * 32];
        const uint32_t row[4] = {rows.x, rows.y, rows.z, rows.w};
#pragma unroll
        for (int tile = 0; tile < A::tiles; ++tile)
#pragma unroll
          for (int byte = 0; byte < A::bytes; ++byte)
#pragma unroll
            for (int p = 0; p < A::planes; ++p) mma(sums[w][tile][p + byte], a[byte], row[tile * A::planes + p]);
      }
      from = from + 1 < window_groups_y ? from + 1 : 0;
    }
#pragma unroll
    for (int w = 0; w < 4; ++w) A::finish(job.rules, sums[w], upper[w], lower[w]);
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * tuning.large_warps, tuning.large_blocks)
    blur_large(const __grid_constant__ KernelParams params) {
  using L = Large<T>;
  using A = Arithmetic<T>;
  extern __shared__ uint4 shared[];
  unsigned char* const memory = reinterpret_cast<unsigned char*>(shared);

  const int set = find_set(params), window_groups_x = params.window_groups_x, window_groups_y = params.window_groups_y;
  const SetJob& job = params.jobs[set];
  const Segment segment = find_segment(job);
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4;
  const typename L::Layout layout(window_groups_x, window_groups_y, warps);
  uint32_t* const across = reinterpret_cast<uint32_t*>(memory);
  uint32_t* const down = reinterpret_cast<uint32_t*>(memory + layout.down);
  const Bands<T> bands{memory + layout.ring, window_groups_x, window_groups_y};
  bands.fill(params, set, sizeof(T));
  L::fill(bands, layout, across, down);

  uint4* const ring =
      reinterpret_cast<uint4*>(memory + layout.ring + warp * window_groups_y * layout.ring_group) + lane;
  const int window = segment.x - job.lead, x = window + lane % 4 * 4;
  const int radius = params.axes[set][1].radius;
  const bool inside = !segment.edge;
  int* const map = reinterpret_cast<int*>(memory + layout.map) + warp * layout.places;
  if (segment.edge && segment.steps > 0)
    for (int i = lane; i < layout.places; i += 32) map[i] = source_byte(job, window / int(sizeof(T)) + i, sizeof(T));
  __syncwarp();
  const int groups = segment.steps > 0 ? segment.steps + window_groups_y - 1 : 0;
  Store<T, true> store(job, segment.x, segment.y, memory + layout.out + warp * Store<T, true>::size);
  const uint32_t pack = job.kinds[g & 1].pack;
  int slot = 0;  // the slot of the ring that is written next
  for (int q = 0; q < groups; ++q) {
    const int y = segment.y - radius + q * step_rows + g;
    int row_sums[L::blocks][2][A::across][4] = {};
    L::sum_rows(job, inside, y, x, map + (x - window) / int(sizeof(T)), layout.loads, across, lane, row_sums);
    L::store_row_sums(job, pack, row_sums, slot, ring);
    slot = slot + 1 < window_groups_y ? slot + 1 : 0;
    if (q < window_groups_y - 1) continue;  // the ring is not full yet
    uint32_t upper[4], lower[4];
    L::sum_columns(job, window_groups_y, down, lane, ring, slot, upper, lower);
    const auto source = [&](int i) {
      if (store.y + 8 * i >= store.end) return uint4{};
      return __ldg(reinterpret_cast<const uint4*>(job.view.src + (store.y + 8 * i) * job.view.src_pitch + store.x));
    };
    uint4 values[2];
    store.gather(upper, lower, values);
    store.restore_copied(values, source);
    store.template store_rows<false>(values);
  }
}

}  // namespace

Kernel large_kernel(int sample_bytes) { return sample_bytes == 1 ? blur_large<uint8_t> : blur_large<uint16_t>; }

}  // namespace cudavision::gaussian
