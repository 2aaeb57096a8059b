// SPDX-License-Identifier: LGPL-2.1-or-later
// Convolution of 8-bit samples on the matrix units. 128 neighbouring pixels of a row are 16 segments of 8, and with what the
// window adds on each side a matrix of 16 × 16 samples, in half precision, which holds them exactly. Times the 16 × 8 matrix in
// which a row of weights stands shifted by one sample from column to column, it is 128 sums. Weights are one half precision number
// (11 bits) where that is exact or near enough, else the sum of two (22 bits); products are exact, sums are float32. Samples of
// different rows never meet in a matrix, so that no data crosses lanes.
#include <cuda_fp16.h>

#include "kernels/convolve/cuda_fill.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/warp.cuh"

namespace cudavision::cuda::convolve {
namespace {

/// Two neighbouring samples of four in half precision: their bytes become the mantissas of 1024 + sample.
__device__ __forceinline__ std::uint32_t to_halves(std::uint32_t samples, int pair) {
  const std::uint32_t biased = __byte_perm(samples, 0x64646464, pair ? 0x4342 : 0x4140);
  std::uint32_t halves;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(biased), "r"(0x64006400u));
  return halves;
}

/// What a warp has to look at: nothing, as all of its samples lie in the frame, and all of its outputs in the region; both; or also
/// what is rare, and may take long: planes of odd alignment, rows of the border value, pixels that keep their input.
enum class Way { inner, side, general };

/// The pair of outputs at x and x + 1: C · 2 bytes, the lowest first.
template <int C>
struct Pair {
  std::uint32_t word[(C + 1) / 2] = {};

  __device__ __forceinline__ void insert(int pixel, int c, std::uint32_t sample) {
    const int byte = pixel * C + c;
    if (byte % 4 == 0 && (C <= 2 || c == 0))
      word[byte / 4] = sample;  // comes first
    else
      word[byte / 4] = __byte_perm(word[byte / 4], sample, 0x3210 + ((4 - byte % 4) << 4 * (byte % 4)));
  }
  __device__ __forceinline__ void store(unsigned char* at) const {
    if constexpr (C == 1) *reinterpret_cast<std::uint16_t*>(at) = std::uint16_t(word[0]);
    if constexpr (C == 2) *reinterpret_cast<std::uint32_t*>(at) = word[0];
    if constexpr (C == 3) {
      reinterpret_cast<std::uint16_t*>(at)[0] = std::uint16_t(word[0]);
      reinterpret_cast<std::uint16_t*>(at)[1] = std::uint16_t(word[0] >> 16);
      reinterpret_cast<std::uint16_t*>(at)[2] = std::uint16_t(word[1]);
    }
    if constexpr (C == 4) *reinterpret_cast<uint2*>(at) = make_uint2(word[0], word[1]);
  }
};

__device__ __forceinline__ bool lies_in(const Rect& rect, int x, int y) {
  return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

/// Stores a pair with all that may be in its way. Not inlined: rare, or slow for other reasons.
template <int C>
__device__ __noinline__ void store_any_pair(const Job<float>& job, int x, int y, std::uint32_t low, std::uint32_t high) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
  unsigned char* const at = view.dst + y * view.dst_pitch + std::ptrdiff_t(x) * C;
  const unsigned char* const from = view.src + y * view.src_pitch + std::ptrdiff_t(x) * C;
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    if (x + j < view.x0 || x + j >= view.x1) continue;
    const bool outside = !lies_in(whole, x + j, y);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const int byte = j * C + c;
      if (!(view.own >> c & 1)) continue;
      if (!(view.filtered >> c & 1) || (outside && view.border == Border::copy))
        at[byte] = from[byte];
      else
        at[byte] = outside ? view.border_value[c] : (byte < 4 ? low : high) >> byte % 4 * 8;
    }
  }
}

/// Where a thread's outputs go: the pairs at x, x + 64 … of consecutive rows, of which the first `skip` calls store nothing.
template <int C, int H>
class Output {
 public:
  __device__ __forceinline__ Output(const MatrixJob& job, int x, int y, int count, int skip)
      : job_(job),
        x_(x),
        y_(y - skip),
        row_(-skip),
        count_(count),
        src_pitch_(int(job.view.src_pitch)),
        dst_pitch_(int(job.view.dst_pitch)) {
    const SetView& view = job.view;
    const Rect& whole = job.whole;
    const bool fill = view.border == Border::fill, within = y >= whole.y && y + count <= whole.y + whole.height;
    const bool rows = job.pair_aligned && (fill || within) && (C == 4 ? view.src_aligned : view.own == view.filtered);
    shared_ = (C == 2 || C == 4) && view.own != (1u << C) - 1 ? view.own : 0;
    if (C == 2 || C == 4) keep(shared_);
#pragma unroll
    for (int h = 0; h < H; ++h) {
      const int at = x + 64 * h;
      wanted_[h] = at < view.x1 && at + 2 > view.x0;
      const bool inside = at >= whole.x && at + 2 <= whole.x + whole.width;
      plain_[h] = rows && at >= view.x0 && at + 2 <= view.x1 && (fill || inside);
      fills_ = fills_ || (fill && wanted_[h] && !(within && inside));
    }
    to_ = view.dst + (std::int64_t(y_) * dst_pitch_ + std::int64_t(x) * C);
    keep(dst_pitch_);
    if (C == 4 && (view.own & ~view.filtered)) {
#pragma unroll
      for (int c = 0; c < C; ++c)
        if ((view.own & ~view.filtered) >> c & 1) copies_ |= 0xffu << 8 * c;
      from_ = view.src + (std::int64_t(y) * src_pitch_ + std::int64_t(x) * C);
      keep(copies_);
      keep(src_pitch_);
      fetch();
    }
  }
  __device__ __forceinline__ Way way() const {
    bool all = !fills_, none_else = !fills_;
#pragma unroll
    for (int h = 0; h < H; ++h) all = all && plain_[h], none_else = none_else && (plain_[h] || !wanted_[h]);
    return __all_sync(~0u, all) ? Way::inner : __all_sync(~0u, none_else) ? Way::side : Way::general;
  }
  template <Way way>
  __device__ __forceinline__ void store(Pair<C> (&pairs)[H]) {
    const bool now = unsigned(row_) < unsigned(count_);
    if (way == Way::general && fills_ && now) fill(pairs);
    if (C == 4 && copies_ && now) {
#pragma unroll
      for (int h = 0; h < H; ++h) {
        pairs[h].word[0] = (pairs[h].word[0] & ~copies_) | (copied_[h].x & copies_);
        pairs[h].word[(C - 1) / 2] = (pairs[h].word[(C - 1) / 2] & ~copies_) | (copied_[h].y & copies_);
      }
      if (row_ + 1 < count_) from_ += src_pitch_, fetch();
    }
#pragma unroll
    for (int h = 0; h < H; ++h) {
      const bool plain = way == Way::inner || plain_[h];
      if ((C == 2 || C == 4) && shared_) {
#pragma unroll
        for (int byte = 0; byte < 2 * C; ++byte)
          if (now && plain && (shared_ >> byte % C & 1)) (to_ + 64 * C * h)[byte] = pairs[h].word[byte / 4] >> byte % 4 * 8;
      } else if (now && plain) {
        pairs[h].store(to_ + 64 * C * h);
      }
      if (way == Way::general && now && !plain && wanted_[h])
        store_any_pair<C>(job_, x_ + 64 * h, y_, pairs[h].word[0], pairs[h].word[(C - 1) / 2]);
    }
    to_ += dst_pitch_;
    ++row_;
    if (way == Way::general) ++y_;
  }

 private:
  /// Fetches the next row's alpha long before it is stored.
  __device__ __forceinline__ void fetch() {
#pragma unroll
    for (int h = 0; h < H; ++h)
      if (plain_[h]) copied_[h] = __ldg(reinterpret_cast<const uint2*>(from_ + 64 * C * h));
  }

  /// Puts the border value where the window leaves the frame.
  __device__ __forceinline__ void fill(Pair<C> (&pairs)[H]) const {
#pragma unroll
    for (int h = 0; h < H; ++h)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        if (lies_in(job_.whole, x_ + 64 * h + j, y_)) continue;
        const std::uint64_t mask = ((std::uint64_t(1) << 8 * C) - 1) << 8 * C * j;
        const std::uint32_t masks[2] = {std::uint32_t(mask), std::uint32_t(mask >> 32)};
#pragma unroll
        for (int w = 0; w < (C + 1) / 2; ++w) pairs[h].word[w] = (pairs[h].word[w] & ~masks[w]) | (job_.border_words[w] & masks[w]);
      }
  }

  const MatrixJob& job_;
  const unsigned char* from_;
  unsigned char* to_;
  int x_, y_, row_, count_, src_pitch_, dst_pitch_;
  std::uint32_t copies_ = 0;  ///< bytes of a pixel that keep the input
  std::uint32_t shared_;      ///< channels to be stored one by one, for another set lies between them; 0: all together
  uint2 copied_[H];
  bool wanted_[H], plain_[H];
  bool fills_ = false;  ///< some of its pixels take the border value
};

/// What turns sums into samples, in registers.
template <int C>
struct Scaling {
  float scale, before[C], after[C];
  int absolute;

  /// Of C channels from `first` on.
  __device__ __forceinline__ Scaling(const MatrixParams& p, const MatrixJob& job, int first = 0)
      : scale(job.scale), absolute(job.absolute) {
#pragma unroll
    for (int c = 0; c < C; ++c) {
      before[c] = job.before[first + c];
      after[c] = job.after[first + c];
      keep(before[c]);
      keep(after[c]);
    }
    keep(scale);
    keep(absolute);
  }
  /// Sums 0 and 1 of channel c belong to the first pair, 2 and 3 to the second.
  __device__ __forceinline__ void apply(int c, const float (&sums)[4], Pair<C>* pairs) const {
    float values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = fmaf(sums[j], scale, before[c]);
    if (absolute) {
#pragma unroll
      for (int j = 0; j < 4; ++j) values[j] = fabsf(values[j]) + after[c];
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) pairs[j / 2].insert(j % 2, c, to_sample<std::uint8_t>(values[j], 255));
  }
};

/// C channels of a set of a format, K × K weights, and how many pixels across (H times 64) and rows ahead a warp works on.
template <int C_, int K_, int width_, int ahead_>
struct StripShape {
  static constexpr int C = C_, K = K_, width = width_, H = width / 64, ahead = ahead_;
};

/// What a warp's strip needs in shared memory: where rows come from, and the quads that are not in the frame.
template <typename Shape>
struct StripRows {
  static constexpr int C = Shape::C;
  static constexpr int rows =
      strip_most_rows + Shape::K - 1 + 2 * Shape::ahead;  ///< some more than are used: they are loaded ahead
  std::int64_t offset[rows];                              ///< bytes; −1: the border value
  std::uint32_t edges[3][rows][C];
};

/// Each warp goes down a strip of 128 or 256 pixels: every row of samples adds to K rows of sums, the oldest of which is then
/// complete. Weights stay in registers.
template <typename Shape, Matrix kind, Way way>
__device__ __forceinline__ void run_strip(const MatrixParams& p, const MatrixJob& job, const StripRows<Shape>& strip, int x,
                                          int rows, Output<Shape::C, Shape::H>& output) {
  constexpr int C = Shape::C, K = Shape::K, H = Shape::H, M = H / 2;
  constexpr int sets = kind == Matrix::gradient ? 2 : 1, parts = kind == Matrix::single ? 1 : 2;
  constexpr bool general = way == Way::general;
  constexpr int ahead = general ? 1 : Shape::ahead;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, last = view.width & -4;
  const int quad_x = x - 4 + 8 * (lane / 4) + 4 * (lane % 4);
  int edge[H];
  bool inside[H], any_edge = false;
#pragma unroll
  for (int h = 0; h < H; ++h) {
    const int at = quad_x + 64 * h;
    inside[h] = at >= 0 && at < last;
    edge[h] = at < 0 ? 0 : at == last ? 1 : at == last + 4 ? 2 : -1;
    any_edge = any_edge || edge[h] >= 0;
    if (way != Way::inner) keep(edge[h]);
  }
  const bool sides = way != Way::inner && __any_sync(~0u, any_edge);
  const unsigned char* const column = view.src + std::int64_t(quad_x) * C;
  const auto load = [&](int i, std::uint32_t(&raw)[H][C]) {
    const std::int64_t offset = strip.offset[i];
    const unsigned char* from = column + offset;
    keep(from);
#pragma unroll
    for (int h = 0; h < H; ++h) {
      if ((way != Way::inner && !inside[h]) || (general && offset < 0)) continue;
      const unsigned char* const at = from + 64 * C * h;
      if (!general || view.src_aligned) {
        detail::load_words<C, quad_alignment(C, 1)>(at, raw[h]);
      } else {
#pragma unroll
        for (int w = 0; w < C; ++w) raw[h][w] = at[4 * w] | at[4 * w + 1] << 8 | at[4 * w + 2] << 16 | at[4 * w + 3] << 24;
      }
    }
  };

  // Through a pointer: indexed by lanes, the parameters themselves would be read one lane after the other.
  const uint2* fragments = &p.fragments[0][0][lane];
  keep(fragments);
  std::uint32_t weights[2][K][2];
#pragma unroll
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const uint2 fragment = fragments[(part * 7 + k) * 32];
      weights[part][k][0] = fragment.x;
      weights[part][k][1] = fragment.y;
    }
  const Scaling<C> scaling(p, job);
  int filtered = view.filtered;
  keep(filtered);

  float sums[sets][C][M][K][4] = {};  // [k]: of the row that the next row of samples adds weights[k] to
  std::uint32_t raw[ahead][H][C] = {};
#pragma unroll
  for (int a = 0; a < ahead; ++a) load(a, raw[a]);

#pragma unroll 1
  for (int base = 0; base < rows; base += ahead) {
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      const int i = base + a;
      std::uint32_t(&words)[H][C] = raw[a];
      if (general && strip.offset[i] < 0) {
#pragma unroll
        for (int h = 0; h < H; ++h)
#pragma unroll
          for (int w = 0; w < C; ++w) words[h][w] = job.border_words[w];
      }
      if (sides) {
#pragma unroll
        for (int h = 0; h < H; ++h)
          if (edge[h] >= 0) {
#pragma unroll
            for (int w = 0; w < C; ++w) words[h][w] = strip.edges[edge[h]][i][w];
          }
      }
      std::uint32_t samples[C][M][4];
#pragma unroll
      for (int h = 0; h < H; ++h) {
        const Quad<std::uint8_t, C> quad = detail::deinterleave<std::uint8_t, C>(words[h]);
#pragma unroll
        for (int c = 0; c < C; ++c) {
          samples[c][h / 2][h % 2] = to_halves(quad.word[c][0], 0);
          samples[c][h / 2][h % 2 + 2] = to_halves(quad.word[c][0], 1);
        }
      }
      load(i + ahead, raw[a]);

      Pair<C> pairs[H];
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if (C > 1 && !(filtered >> c & 1)) continue;
        float complete[sets][M][4];
        if constexpr (kind == Matrix::pair) {
#pragma unroll
          for (int k = 0; k < K; ++k)
#pragma unroll
            for (int m = 0; m < M; ++m) mma(sums[0][c][m][k], samples[c][m], weights[1][k], sums[0][c][m][k]);
        }
#pragma unroll
        for (int s = 0; s < sets; ++s)
#pragma unroll
          for (int k = K - 1; k >= 0; --k)
#pragma unroll
            for (int m = 0; m < M; ++m)
              mma(k == K - 1 ? complete[s][m] : sums[s][c][m][(k + 1) % K], samples[c][m], weights[s][k], sums[s][c][m][k]);
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int s = 0; s < sets; ++s) sums[s][c][m][0][j] = 0;
            if constexpr (kind == Matrix::gradient) {
              const float u = complete[0][m][j], v = complete[1][m][j];
              // Its error of 2^-23 never reaches a half between the roots of neighbouring integers.
              asm("sqrt.approx.f32 %0, %1;" : "=f"(complete[0][m][j]) : "f"(fmaf(u, u, v * v)));
            }
          }
          scaling.apply(c, complete[0][m], pairs + 2 * m);
        }
      }
      output.template store<way>(pairs);
    }
  }
}

template <typename Shape, Matrix kind>
__device__ __forceinline__ void convolve_strip(const MatrixParams& p, const MatrixJob& job) {
  constexpr int C = Shape::C, K = Shape::K, width = Shape::width;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // The frame's sides take longest, so they go first.
  const int block = blockIdx.x - job.first_block, sides = min(job.tiles_x, 2), others = block - sides * job.tiles_y;
  int tile_x, tile_y;
  if (others < 0) {
    tile_y = block / sides;
    tile_x = block % sides ? job.tiles_x - 1 : 0;
  } else {
    tile_y = others / (job.tiles_x - sides);
    tile_x = others - tile_y * (job.tiles_x - sides) + 1;
  }
  const int x = (view.x0 & -4) + tile_x * width, y = view.y0 + (tile_y * strip_warps + warp) * job.rows;
  const int count = min(job.rows, view.y1 - y), rows = count + K - 1;
  if (count <= 0) return;

  __shared__ StripRows<Shape> strips[strip_warps];
  StripRows<Shape>& strip = strips[warp];
  bool border_row = false;
  for (int i = lane; i < rows + 2 * Shape::ahead; i += 32) {
    const int row = border_index(y - K / 2 + i, view.height, view.border);
    strip.offset[i] = row < 0 ? -1 : row * view.src_pitch;
    border_row = border_row || row < 0;
  }
  // Quads that do not lie in the frame are fetched now, by all lanes: sample by sample one would wait long.
  const int last = view.width & -4;
  if (x == 0 || x + width >= last) {
    for (int i = lane; i < 3 * rows; i += 32) {
      const int e = i / rows, row = i - e * rows, at = e == 0 ? -4 : last + 4 * (e - 1);
      if (at < x - 4 || at > x + width) continue;
      std::uint32_t words[C];
      detail::interleave<std::uint8_t, C>(
          load_quad<std::uint8_t, C>(view, at, border_index(y - K / 2 + row, view.height, view.border)), words);
#pragma unroll
      for (int w = 0; w < C; ++w) strip.edges[e][row][w] = words[w];
    }
  }
  __syncwarp();

  Output<C, Shape::H> output(job, x + 8 * (lane / 4) + 2 * (lane % 4), y, count, K - 1);
  const Way way = output.way();
  if (!view.src_aligned || __any_sync(~0u, border_row) || way == Way::general)
    run_strip<Shape, kind, Way::general>(p, job, strip, x, rows, output);
  else if (x == 0 || x + width >= last || way == Way::side)
    run_strip<Shape, kind, Way::side>(p, job, strip, x, rows, output);
  else
    run_strip<Shape, kind, Way::inner>(p, job, strip, x, rows, output);
}

template <int C0, int C1, int K, Matrix kind>
__global__ void __launch_bounds__(32 * strip_warps, strip_blocks(C1, K)) convolve_strips(const __grid_constant__ MatrixParams p) {
  constexpr int ahead = strip_tuning(C1).rows_ahead;
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  if (C0 != C1 && set == 0)
    convolve_strip<StripShape<C0, K, strip_width(C0, C1), ahead>, kind>(p, p.jobs[0]);
  else
    convolve_strip<StripShape<C1, K, strip_width(C1, C1), ahead>, kind>(p, p.jobs[set]);
}

/// A tile in half precision. Entry i of a row holds the samples 2i and 2i + 1, and those 64 to the right of them: two entries are
/// a lane's four registers of a matrix, in their order.
struct HalfSink {
  std::uint32_t* tile;
  int pitch;  ///< words

  __device__ __forceinline__ void operator()(int row, int quad, const std::uint32_t (&words)[1]) const {
    const std::uint32_t first = to_halves(words[0], 0), second = to_halves(words[0], 1);
    std::uint32_t* const at = tile + row * pitch + 4 * quad;
    if (4 * quad < pitch) at[0] = first, at[2] = second;
    if (quad >= 16) at[-63] = first, at[-61] = second;
  }
};

/// Any size: windows in steps of 16 samples across; down them the rows slide through registers, past R rows of sums.
template <int parts>
__global__ void __launch_bounds__(32 * matrix_tile_warps, 2) convolve_matrix_tile(const __grid_constant__ MatrixParams p) {
  constexpr int R = matrix_tile_rows;
  extern __shared__ uint4 shared_memory[];
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  const MatrixJob& job = p.jobs[set];
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, g = lane / 4, t = lane % 4;
  const int block = blockIdx.x - job.first_block, tile_y = block / job.tiles_x, tile_x = block - tile_y * job.tiles_x;
  const int x = (view.x0 & -4) + tile_x * 128, y = view.y0 + tile_y * warps * R;
  const int steps = matrix_steps(p.width), pitch = matrix_pitch(p.width), rows = warps * R + p.height - 1;
  const int weight_row = matrix_weight_row(p.width);

  std::uint32_t* const tile = reinterpret_cast<std::uint32_t*>(shared_memory);
  std::uint32_t* const weights = tile + rows * pitch;  // [part][parity][height][weight_row]
  int* const row_index = reinterpret_cast<int*>(weights + 2 * parts * p.height * weight_row);
  for (int i = threadIdx.x; i < rows; i += blockDim.x) row_index[i] = border_index(y - p.anchor_y + i, view.height, view.border);
  // Each row of weights amid zeros, 8 before it, twice: pairs of halves that begin at even places, and at odd ones.
  for (int row = warp; row < 2 * parts * p.height; row += warps) {
    const int half = row / p.height, k = row - half * p.height, first = half % 2 - 8;
    const std::uint16_t* from = &p.weights[half / 2][k * p.width];
    keep(from);  // see run_strip
    for (int i = lane; i < weight_row; i += 32) {
      std::uint32_t pair = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int at = first + 2 * i + j;
        if (at >= 0 && at < p.width) pair |= std::uint32_t(from[at]) << 16 * j;
      }
      weights[row * weight_row + i] = pair;
    }
  }

  std::uint32_t packed[4][R] = {};  // indexed by channel at run time: in local memory, read once
#pragma unroll 1
  for (int c = 0; c < view.channels; ++c) {
    if (!(view.filtered >> c & 1)) continue;
    __syncthreads();
    with_channels(view.channels, [&](auto channels) {
      fill_tile<std::uint8_t, channels.value>(view, c, x - p.anchor_x, row_index, matrix_tile_quads(p.width), rows,
                                              HalfSink{tile, pitch});
    });
    __syncthreads();

    float sums[R][4] = {};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const std::uint32_t* const samples = tile + warp * R * pitch + 8 * g + 16 * step + 4 * t;
      const int at = 16 * step + 4 * t - g + 8;  // of the pair of weights that the window's sample 4t meets in output g
      const std::uint32_t* pairs = weights + (at & 1) * p.height * weight_row + at / 2;
      const int next_part = 2 * p.height * weight_row;
      std::uint32_t window[R][4];
      const auto load_row = [&](int i, std::uint32_t(&a)[4]) {
        const uint4 v = *reinterpret_cast<const uint4*>(samples + i * pitch);
        a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
      };
#pragma unroll
      for (int r = 0; r < R - 1; ++r) load_row(r, window[r]);
#pragma unroll 1
      for (int base = 0; base < p.height; base += R) {
#pragma unroll
        for (int u = 0; u < R; ++u) {
          const int k = base + u;
          if (k >= p.height) break;
          load_row(k + R - 1, window[(u + R - 1) % R]);
#pragma unroll
          for (int part = 0; part < parts; ++part) {
            const std::uint32_t b[2] = {pairs[part * next_part], pairs[part * next_part + 1]};
#pragma unroll
            for (int r = 0; r < R; ++r) mma(sums[r], window[(u + r) % R], b, sums[r]);
          }
          pairs += weight_row;
        }
      }
    }
    const Scaling<1> scaling(p, job, c);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      Pair<1> pairs[2];
      scaling.apply(0, sums[r], pairs);
      packed[c][r] = __byte_perm(pairs[0].word[0], pairs[1].word[0], 0x5410);
    }
  }

  const int first = y + warp * R, count = min(R, view.y1 - first);
  if (count <= 0) return;
  with_channels(view.channels, [&](auto channels) {
    constexpr int C = channels.value;
    Output<C, 2> output(job, x + 8 * g + 2 * t, first, count, 0);
    const auto store = [&](auto way) {
#pragma unroll 1
      for (int r = 0; r < count; ++r) {
        Pair<C> pairs[2];
#pragma unroll
        for (int c = 0; c < C; ++c)
#pragma unroll
          for (int j = 0; j < 4; ++j) pairs[j / 2].insert(j % 2, c, packed[c][r] >> 8 * j);
        output.template store<way.value>(pairs);
      }
    };
    if (output.way() == Way::general)
      store(std::integral_constant<Way, Way::general>{});
    else
      store(std::integral_constant<Way, Way::side>{});
  });
}

template <int C0, int C1>
const void* choose(int side, Matrix kind) {
  const auto kernel = [](auto function) { return reinterpret_cast<const void*>(function); };
  if (kind == Matrix::gradient && side == 3) return kernel(convolve_strips<C0, C1, 3, Matrix::gradient>);
  if (kind == Matrix::gradient)
    return side == 5 ? kernel(convolve_strips<C0, C1, 5, Matrix::gradient>) : nullptr;  // anchor in a corner
  const bool pair = kind == Matrix::pair;
  if (side == 3)
    return pair ? kernel(convolve_strips<C0, C1, 3, Matrix::pair>) : kernel(convolve_strips<C0, C1, 3, Matrix::single>);
  if (side == 5)
    return pair ? kernel(convolve_strips<C0, C1, 5, Matrix::pair>) : kernel(convolve_strips<C0, C1, 5, Matrix::single>);
  if (side == 7)
    return pair ? kernel(convolve_strips<C0, C1, 7, Matrix::pair>) : kernel(convolve_strips<C0, C1, 7, Matrix::single>);
  return nullptr;
}

}  // namespace

const void* matrix_strip_kernel(const FormatInfo& format, int side, Matrix kind) {
  const void* function = nullptr;
  with_layout(format, [&](auto sample, auto first, auto rest) {
    if constexpr (sizeof(sample) == 1) function = choose<decltype(first)::value, decltype(rest)::value>(side, kind);
  });
  return function;
}

const void* matrix_tile_kernel(const FormatInfo& format, Matrix kind) {
  if (format.sample_bytes() != 1 || kind == Matrix::gradient) return nullptr;
  return reinterpret_cast<const void*>(kind == Matrix::pair ? convolve_matrix_tile<2> : convolve_matrix_tile<1>);
}

}  // namespace cudavision::cuda::convolve
