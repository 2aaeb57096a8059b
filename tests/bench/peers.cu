// SPDX-License-Identifier: LGPL-2.1-or-later
// NPP (CUDA 12.9 and newer: the functions that take a stream context) as a peer of bench_kernels. By itself:
//   nvcc -O2 -shared -Xcompiler -fPIC -cudart static npp.cpp -o libcudavision-bench-npp.so -lnppif -lnppist -lnppc
#include <cuda_runtime_api.h>
#include <nppcore.h>
#include <nppi_filtering_functions.h>
#include <nppi_statistics_functions.h>

#include "peer.h"

namespace {

NppStreamContext context_of(cudaStream_t stream) {
  static const NppStreamContext device = [] {
    NppStreamContext ctx{};
    cudaDeviceProp prop;
    if (cudaGetDevice(&ctx.nCudaDeviceId) != cudaSuccess || cudaGetDeviceProperties(&prop, ctx.nCudaDeviceId) != cudaSuccess)
      return ctx;
    ctx.nMultiProcessorCount = prop.multiProcessorCount;
    ctx.nMaxThreadsPerMultiProcessor = prop.maxThreadsPerMultiProcessor;
    ctx.nMaxThreadsPerBlock = prop.maxThreadsPerBlock;
    ctx.nSharedMemPerBlock = prop.sharedMemPerBlock;
    ctx.nCudaDevAttrComputeCapabilityMajor = prop.major;
    ctx.nCudaDevAttrComputeCapabilityMinor = prop.minor;
    return ctx;
  }();
  NppStreamContext ctx = device;
  ctx.hStream = stream;
  cudaStreamGetFlags(stream, &ctx.nStreamFlags);
  return ctx;
}

// The arguments that every filter shares.
struct Call {
  Call(const PeerWork& work, const PeerPictures& pictures, cudaStream_t stream)
      : src(static_cast<const Npp8u*>(pictures.src)),
        dst(static_cast<Npp8u*>(pictures.dst)),
        src_pitch(pictures.src_pitch),
        dst_pitch(pictures.dst_pitch),
        size{work.width, work.height},
        kernel{work.taps, work.taps},
        anchor{work.taps / 2, work.taps / 2},
        ctx(context_of(stream)) {}

  const Npp8u* src;
  Npp8u* dst;
  int src_pitch, dst_pitch;
  NppiSize size, kernel;
  NppiPoint anchor, origin{0, 0};
  NppStreamContext ctx;
};

// Picks the function for one or four channels; anything else is not offered.
template <typename C1, typename C4>
int by_channels(int channels, C1 c1, C4 c4) {
  return channels == 1 ? int(c1()) : channels == 4 ? int(c4()) : int(peer_not_offered);
}

int gauss_fixed(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  NppiMaskSize mask;
  switch (w->taps) {
    case 3:
      mask = NPP_MASK_SIZE_3_X_3;
      break;
    case 5:
      mask = NPP_MASK_SIZE_5_X_5;
      break;
    case 7:
      mask = NPP_MASK_SIZE_7_X_7;
      break;
    case 15:
      mask = NPP_MASK_SIZE_15_X_15;
      break;
    default:
      return peer_not_offered;
  }
  const Call c(*w, *p, stream);
  const auto call = [&](auto function) {
    return function(c.src, c.src_pitch, c.size, c.origin, c.dst, c.dst_pitch, c.size, mask, NPP_BORDER_REPLICATE, c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiFilterGaussBorder_8u_C1R_Ctx); }, [&] { return call(nppiFilterGaussBorder_8u_C4R_Ctx); });
}

int gauss_advanced(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  const auto call = [&](auto function) {
    return function(c.src, c.src_pitch, c.size, c.origin, c.dst, c.dst_pitch, c.size, w->taps, w->weights, NPP_BORDER_REPLICATE,
                    c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiFilterGaussAdvancedBorder_8u_C1R_Ctx); },
      [&] { return call(nppiFilterGaussAdvancedBorder_8u_C4R_Ctx); });
}

int filter32f_border(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  const auto call = [&](auto function) {
    return function(c.src, c.src_pitch, c.size, c.origin, c.dst, c.dst_pitch, c.size, w->weights, c.kernel, c.anchor,
                    NPP_BORDER_REPLICATE, c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiFilterBorder32f_8u_C1R_Ctx); }, [&] { return call(nppiFilterBorder32f_8u_C4R_Ctx); });
}

// Without border handling: only the pixels whose window lies inside.
int filter32f(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  const NppiSize inner{w->width - w->taps + 1, w->height - w->taps + 1};
  const int half = w->taps / 2;
  const auto call = [&](auto function) {
    return function(c.src + half * c.src_pitch + half * w->channels, c.src_pitch, c.dst + half * c.dst_pitch + half * w->channels,
                    c.dst_pitch, inner, w->weights, c.kernel, c.anchor, c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiFilter32f_8u_C1R_Ctx); }, [&] { return call(nppiFilter32f_8u_C4R_Ctx); });
}

// (width + 1) × (height + 1) sums of bytes.
int integral(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  if (w->channels != 1) return peer_not_offered;
  const int pitch = ((w->width + 1) * 4 + 511) / 512 * 512;
  return nppiIntegral_8u32s_C1R_Ctx(c.src, c.src_pitch, static_cast<Npp32s*>(p->dst), pitch, c.size, 0, c.ctx);
}

const PeerEntry entries[] = {
    {"gaussian", "gauss", gauss_fixed},
    {"gaussian", "gaussAdv", gauss_advanced},
    {"convolve", "32fBorder", filter32f_border},
    {"convolve", "32f", filter32f},
    {"integral", "integral", integral},
    {nullptr, nullptr, nullptr},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const PeerEntry* cudavision_peer_entries() {
  return entries;
}
