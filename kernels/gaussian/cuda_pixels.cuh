// SPDX-License-Identifier: LGPL-2.1-or-later
// The computation of a warp on a strip whose elements are pixels of four bytes; see cuda_strip.cu for the steps. The
// channels are separated, so that the weights of a channel are adjacent, without zeros between them.
//
//   lane 4g + t   reads from the tile   rows g, g + 8 of the group: pixels 4t … 4t + 3 of each 16 of the window
//                 splits them           into a word for each channel, with its bytes of the four pixels
//                 holds in the ring     rows 2t, 2t + 1, 2t + 8, 2t + 9: pixels sample(g) and sample(g + 8), each
//                                       channel by itself
//                 has as results        rows g, g + 8: pixels 4t … 4t + 3 of the strip, which are 16 adjacent bytes
//
// The kernel does not compute a copied channel, such as alpha. At most one channel is copied: the first or the last
// byte of a pixel.
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/cuda_bands.cuh"
#include "kernels/gaussian/cuda_store.cuh"

namespace cudavision::gaussian {

using cuda::mma;

/// The matrices and the ring of a warp, in registers. The window has up to GX groups of 16 pixels and GY groups of 16
/// rows. Channels: the number of computed channels; 3: the fourth channel is copied.
template <int Channels, int GX, int GY>
struct Pixels {
  using T = uint8_t;
  using A = Arithmetic<T>;
  static constexpr int groups_across = GX, groups_down = GY, element_bytes = pixel_bytes,
                       blocks_resident = min_blocks(1, GY);
  static constexpr StripLayout layout{pixel_bytes, GX, GY};
  static constexpr int pitch = layout.pitch;

  uint32_t across[GX][2];
  /// [slot][…]: group n of rows is in slot n % GY; pixels sample(g), sample(g + 8); byte planes of a row sum.
  uint32_t ring[GY][Channels][2][2];
  const uint2* down;           ///< the lane's words of the matrix down, as in Samples
  int start[4];                ///< initial values of the first sum of a result
  uint32_t pack;               ///< __byte_perm selectors. pack: row sums
  uint32_t first, second;      ///< the channels computed first and second, and the others, from two pixels
  uint32_t pair, last, whole;  ///< results: two channels, the last two channels, a pixel

  __device__ __forceinline__ Pixels(const SetJob& job, const Bands<T>& bands, uint2* fragments, int lane)
      : ring{}, down(fragments + lane) {
    const int t = lane % 4;
    const bool begins = Channels == 3 && (job.copied_bits[0] & 1);  // the copied channel is the first one
    first = cuda::warp_uniform(begins ? 0x6251 : 0x5140);
    second = cuda::warp_uniform(begins ? 0x0073 : 0x7362);
    pack = cuda::warp_uniform(job.kinds[0].pack);
    pair = cuda::warp_uniform(job.rules.out);
    last = cuda::warp_uniform(Channels == 4 ? job.rules.out : (job.rules.out & 15) | (begins ? 0x40 : 0x70));
    whole = cuda::warp_uniform(begins ? 0x4105 : 0x5410);
#pragma unroll
    for (int& value : start) value = bands.rounding();
#pragma unroll
    for (int i = 0; i < 2 * GX; ++i) across[i / 2][i % 2] = bands.across_word(0, i / 2 * 16 + t * 4, 2, i % 2, lane);
#pragma unroll
    for (int i = 0; i < GY; ++i) fragments[i * 32 + lane] = bands.down_fragment(0, i, lane);
  }

  /// The lane's first byte in a row of the window.
  __device__ static int first_byte(int lane) { return lane % 4 * 16; }

  /// The pass across: stores a group of rows in slot `Newest` of the ring. `at`: the lane's first byte of row g.
  template <int Newest>
  __device__ __forceinline__ void sum_across(const unsigned char* at) {
    int sums[Channels][2][1][4] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      uint32_t data[Channels][GX];
#pragma unroll
      for (int d = 0; d < GX; ++d) {
        const uint4 pixels = *reinterpret_cast<const uint4*>(at + 8 * pitch * i + 64 * d);
        const uint32_t a = __byte_perm(pixels.x, pixels.y, first), b = __byte_perm(pixels.z, pixels.w, first);
        const uint32_t c = __byte_perm(pixels.x, pixels.y, second), e = __byte_perm(pixels.z, pixels.w, second);
        data[0][d] = __byte_perm(a, b, 0x5410);
        data[1][d] = __byte_perm(a, b, 0x7632);
        data[2][d] = __byte_perm(c, e, 0x5410);
        if constexpr (Channels == 4) data[3][d] = __byte_perm(c, e, 0x7632);
      }
#pragma unroll
      for (int channel = 0; channel < Channels; ++channel) {
#pragma unroll
        for (int d = 0; d + 1 < GX; d += 2)
          mma(sums[channel][i][0], across[d], across[d + 1], data[channel][d], data[channel][d + 1]);
        if (GX % 2) mma(sums[channel][i][0], across[GX - 1], data[channel][GX - 1]);
      }
    }
#pragma unroll
    for (int channel = 0; channel < Channels; ++channel)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        A::split({}, pack, sums[channel][0], sums[channel][1], half, ring[Newest][channel][half]);
  }

  /// The pass down: the lane's 16 bytes of rows g and g + 8, from a full ring. source(i): see Store::restore_copied().
  template <int Newest, typename Out, typename Source>
  __device__ __forceinline__ void results(const Out&, Source source, uint4 (&values)[2]) const {
    uint32_t matrix[GY][2], pixels[2][4];
    load_down<GY, Newest>(down, matrix);
    if constexpr (Channels == 3) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint4 from = source(i);
        pixels[i][0] = from.x, pixels[i][1] = from.y, pixels[i][2] = from.z, pixels[i][3] = from.w;
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t value[4][4];  // by channel; pixels 2 · half, 2 · half + 1 of row g, then of row g + 8
#pragma unroll
      for (int channel = 0; channel < Channels; ++channel) {
        int sums[2][4];
#pragma unroll
        for (int plane = 0; plane < 2; ++plane) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[plane][i] = plane == A::rounded ? start[i] : 0;
#pragma unroll
          for (int slot = 0; slot + 1 < GY; slot += 2)
            mma(sums[plane], matrix[slot], matrix[slot + 1], ring[slot][channel][half][plane],
                ring[slot + 1][channel][half][plane]);
          if (GY % 2) mma(sums[plane], matrix[GY - 1], ring[GY - 1][channel][half][plane]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) value[channel][i] = sums[1][i] * 256 + sums[0][i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        uint32_t& pixel = pixels[i / 2][2 * half + i % 2];
        if constexpr (Channels == 3) value[3][i] = pixel;
        pixel = __byte_perm(__byte_perm(value[0][i], value[1][i], pair), __byte_perm(value[2][i], value[3][i], last),
                            whole);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) values[i] = make_uint4(pixels[i][0], pixels[i][1], pixels[i][2], pixels[i][3]);
  }
};

}  // namespace cudavision::gaussian
