// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of any size, for all sample types: a block loads a tile of one channel into shared memory, as float32. Each
// thread computes 4 × R results in registers while it moves down the rows of samples.
//
//        |<- 128 results + the window ->|
//        +------------------------------+ -
//   warp |  lane i: results 4i … 4i + 3 | R = tile_rows(wide)
//    0   |          of R rows           | -      direct:   each lane sums the window of its results, 4 columns of
//   warp |                              |                  weights at a time
//    …   |  height − 1 more rows        |        two_pass: all lanes sum the rows of the tile into `across` (shared),
//        +------------------------------+                  then each lane sums down
//   shared memory: the tile | two_pass: across, 128 sums per row | source row of each row
//
// Channels are computed one after another. Their results are kept packed until all channels are stored together.
//
// Where to change what:
//   another border         "Walks" in CONTRIBUTING.md; one whose pixels are not computed:
//                          store_result() in cuda_results.cuh
//   another sample type    FloatSink below, to_sample() in cuda_results.cuh, cuda_fill.cuh; tile_kernel() at the end
//   another block shape    cuda_tuning.hpp (tile_…); shared memory: tile_bytes in cuda_schedule.hpp
#include "kernels/convolve/cuda_fill.cuh"
#include "kernels/convolve/cuda_results.cuh"

namespace cudavision::convolve {
namespace {

__device__ __forceinline__ void load_four(const float* from, float (&values)[4]) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  values[0] = v.x, values[1] = v.y, values[2] = v.z, values[3] = v.w;
}
__device__ __forceinline__ void load_four(const double* from, double (&values)[4]) {
  const double2 a = reinterpret_cast<const double2*>(from)[0], b = reinterpret_cast<const double2*>(from)[1];
  values[0] = a.x, values[1] = a.y, values[2] = b.x, values[3] = b.y;
}
__device__ __forceinline__ void load_four(const float* from, double (&values)[4]) {
  float floats[4];
  load_four(from, floats);
#pragma unroll
  for (int j = 0; j < 4; ++j) values[j] = floats[j];
}
__device__ __forceinline__ void store_four(float* to, const float (&v)[4]) {
  *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
}
__device__ __forceinline__ void store_four(double* to, const double (&v)[4]) {
  reinterpret_cast<double2*>(to)[0] = make_double2(v[0], v[1]);
  reinterpret_cast<double2*>(to)[1] = make_double2(v[2], v[3]);
}

/// Writes a tile in float32.
template <typename T>
struct FloatSink {
  float* tile;
  int pitch;

  __device__ __forceinline__ void operator()(int row, int quad, const std::uint32_t (&words)[sizeof(T)]) const {
    constexpr int n = sizeof(T);
    float values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      constexpr int per_word = 4 / n;
      const int byte = j % per_word * n, selector = n == 1 ? 0x7440 | byte : 0x7400 | (byte + 1) << 4 | byte;
      // The conversion is the same as in sample() of cuda_small.cu.
      values[j] = __uint_as_float(__byte_perm(words[j / per_word], 0x4b000000, selector)) - 8388608.0f;
    }
    store_four(tile + row * pitch + 4 * quad, values);
  }
};

/// sums[r][j] += Σ weights[k][n] · tile[r + k][j + n] for k < height and n < N. The rows slide through registers: each
/// row is loaded once for R rows of sums, and each weight once for 4·R sums.
template <int N, int R, typename In, typename Acc>
__device__ __forceinline__ void slide(Acc (&sums)[R][4], const In* tile, int pitch, const Acc* weights, int stride,
                                      int height) {
  constexpr int span = N > 1 ? 8 : 4;
  Acc window[R][span];
  const auto load_row = [&](int i, Acc(&row)[span]) {
#pragma unroll
    for (int part = 0; part < span / 4; ++part) {
      Acc four[4];
      load_four(tile + i * pitch + 4 * part, four);
#pragma unroll
      for (int j = 0; j < 4; ++j) row[4 * part + j] = four[j];
    }
  };
#pragma unroll
  for (int r = 0; r < R - 1; ++r) load_row(r, window[r]);
#pragma unroll 1
  for (int base = 0; base < height; base += R) {
#pragma unroll
    for (int u = 0; u < R; ++u) {
      const int k = base + u;
      if (k >= height) break;
      load_row(k + R - 1, window[(u + R - 1) % R]);
      Acc w[N];
#pragma unroll
      for (int n = 0; n < N; ++n) w[n] = weights[k * stride + n];
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[r][j] = multiply_add(w[n], window[(u + r) % R][j + n], sums[r][j]);
    }
  }
}

/// Applies all weights, four columns at a time.
template <int R>
__device__ __forceinline__ void sum_window(float (&sums)[R][4], const float* tile, int pitch, const float* weights,
                                           int stride, int width, int height) {
  int k = 0;
#pragma unroll 1
  for (; k + 4 <= width; k += 4) slide<4>(sums, tile + k, pitch, weights + k, stride, height);
  switch (width - k) {
    case 1:
      return slide<1>(sums, tile + k, pitch, weights + k, stride, height);
    case 2:
      return slide<2>(sums, tile + k, pitch, weights + k, stride, height);
    case 3:
      return slide<3>(sums, tile + k, pitch, weights + k, stride, height);
  }
}
/// In float64, the windows of four columns would not fit in registers. Two quads of each row are held, and replaced
/// quad by quad.
template <int R>
__device__ __forceinline__ void sum_window(double (&sums)[R][4], const float* tile, int pitch, const double* weights,
                                           int stride, int width, int height) {
#pragma unroll 1
  for (int k = 0; k < height; ++k) {
    double near[R][4];
#pragma unroll
    for (int r = 0; r < R; ++r) load_four(tile + (k + r) * pitch, near[r]);
#pragma unroll 1
    for (int base = 0; base < width; base += 4) {
      double far[R][4];
#pragma unroll
      for (int r = 0; r < R; ++r) load_four(tile + (k + r) * pitch + base + 4, far[r]);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (base + n >= width) break;
        const double w = weights[k * stride + base + n];
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            sums[r][j] = fma(w, j + n < 4 ? near[r][(j + n) % 4] : far[r][(j + n) % 4], sums[r][j]);
      }
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int j = 0; j < 4; ++j) near[r][j] = far[r][j];
    }
  }
}

/// Computes four sums along a row of the tile. The weights are padded with zeros to whole quads.
template <typename Acc>
__device__ __forceinline__ void sum_row(Acc (&sums)[4], const float* tile, const Acc* weights, int width) {
  Acc window[8], far[4];
  load_four(tile, far);
#pragma unroll 2
  for (int k = 0; k < width; k += 4) {
#pragma unroll
    for (int j = 0; j < 4; ++j) window[j] = far[j];
    load_four(tile + k + 4, far);
#pragma unroll
    for (int j = 0; j < 4; ++j) window[j + 4] = far[j];
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = multiply_add(weights[k + n], window[j + n], sums[j]);
  }
}

template <typename T, typename Acc, bool two_pass, typename P>
__global__ void __launch_bounds__(32 * tuning.tile_warps, 16 / tuning.tile_warps)
    convolve_tile(const __grid_constant__ P p) {
  constexpr int R = tile_rows(sizeof(Acc) == 8), n = sizeof(T);
  extern __shared__ float4 shared_memory[];
  float* const tile = reinterpret_cast<float*>(shared_memory);

  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  const TileJob<Acc>& job = p.jobs[set];
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const Place place = tile_place(blockIdx.x - job.first_block, job.tiles_x);
  const int x = (view.x0 & -4) + place.x * tile_width, y = view.y0 + place.y * warps * R;
  const int pitch = tile_pitch(p.width), rows = warps * R + p.height - 1;

  Acc* const across = reinterpret_cast<Acc*>(tile + rows * pitch);
  int* const row_index = reinterpret_cast<int*>(across + (two_pass ? rows * tile_width : 0));
  for (int i = threadIdx.x; i < rows; i += blockDim.x)
    row_index[i] = border_index(y - p.anchor_y + i, view.height, view.border);

  std::uint32_t packed[4][R][n] = {};  // indexed by channel at run time, so in local memory; read once
#pragma unroll 1
  for (int c = 0; c < view.channels; ++c) {
    if (!(view.filtered >> c & 1)) continue;
    __syncthreads();
    with_channels<T>(view.channels, [&](auto channels) {
      fill_tile<T, channels.value>(view, c, x - p.anchor_x, row_index, pitch / 4, rows, FloatSink<T>{tile, pitch});
    });
    __syncthreads();
    Acc sums[R][4] = {};
    if constexpr (two_pass) {
      for (int row = warp; row < rows; row += warps) {
        Acc four[4] = {};
        sum_row(four, tile + row * pitch + 4 * lane, p.weights, p.width);
        store_four(across + row * tile_width + 4 * lane, four);
      }
      __syncthreads();
      slide<1>(sums, across + warp * R * tile_width + 4 * lane, tile_width, p.weights + column_at, 1, p.height);
    } else {
      sum_window(sums, tile + warp * R * pitch + 4 * lane, pitch, p.weights, p.stride, p.width, p.height);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      std::uint32_t samples[4];
      finish<T>(job, c, sums[r], samples);
      if constexpr (n == 1) {
        packed[c][r][0] = samples[0] | samples[1] << 8 | samples[2] << 16 | samples[3] << 24;
      } else {
        packed[c][r][0] = samples[0] | samples[1] << 16;
        packed[c][r][n - 1] = samples[2] | samples[3] << 16;
      }
    }
  }
  with_channels<T>(view.channels, [&](auto channels) {
    constexpr int C = channels.value;
#pragma unroll 1
    for (int r = 0; r < R; ++r) {
      Quad<T, C> quad;
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int w = 0; w < n; ++w) quad.word[c][w] = packed[c][r][w];
      store_result<T, C>(job, x + 4 * lane, y + warp * R + r, quad);
    }
  });
}

template <typename T, typename Acc>
const void* choose(bool two_pass) {
  return two_pass ? reinterpret_cast<const void*>(convolve_tile<T, Acc, true, TwoPassParams<Acc>>)
                  : reinterpret_cast<const void*>(convolve_tile<T, Acc, false, DirectParams<Acc>>);
}

}  // namespace

const void* tile_kernel(const FormatInfo& format, bool two_pass, bool wide) {
  if (format.sample_bytes() == 1)
    return wide ? choose<std::uint8_t, double>(two_pass) : choose<std::uint8_t, float>(two_pass);
  return wide ? choose<std::uint16_t, double>(two_pass) : choose<std::uint16_t, float>(two_pass);
}

}  // namespace cudavision::convolve
