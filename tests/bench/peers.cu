// SPDX-License-Identifier: LGPL-2.1-or-later
// NPP (CUDA 12.9 and newer: the functions that take a stream context) and CUB as peers of bench_kernels. To compile it
// alone:
//   nvcc -O2 -arch=native -shared -Xcompiler -fPIC -cudart static peers.cu -o libcudavision-bench-npp.so
//     -lnppial -lnppif -lnppist -lnppc
#include <cuda_runtime_api.h>
#include <nppcore.h>
#include <nppi_arithmetic_and_logical_operations.h>
#include <nppi_filtering_functions.h>
#include <nppi_statistics_functions.h>

#include <cub/device/device_histogram.cuh>

#include "tests/bench/peer.h"

namespace {

NppStreamContext context_of(cudaStream_t stream) {
  static const NppStreamContext device = [] {
    NppStreamContext ctx{};
    cudaDeviceProp prop;
    if (cudaGetDevice(&ctx.nCudaDeviceId) != cudaSuccess ||
        cudaGetDeviceProperties(&prop, ctx.nCudaDeviceId) != cudaSuccess)
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

// The arguments that all filters share.
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

// Selects the function for one or four channels. Other numbers are not offered.
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
    return function(c.src, c.src_pitch, c.size, c.origin, c.dst, c.dst_pitch, c.size, mask, NPP_BORDER_REPLICATE,
                    c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiFilterGaussBorder_8u_C1R_Ctx); },
      [&] { return call(nppiFilterGaussBorder_8u_C4R_Ctx); });
}

int gauss_advanced(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  const auto call = [&](auto function) {
    return function(c.src, c.src_pitch, c.size, c.origin, c.dst, c.dst_pitch, c.size, w->taps, w->weights,
                    NPP_BORDER_REPLICATE, c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiFilterGaussAdvancedBorder_8u_C1R_Ctx); },
      [&] { return call(nppiFilterGaussAdvancedBorder_8u_C4R_Ctx); });
}

int box(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  if (w->channels != 1) return peer_not_offered;
  const Call c(*w, *p, stream);
  return nppiFilterBoxBorder_8u_C1R_Ctx(c.src, c.src_pitch, c.size, c.origin, c.dst, c.dst_pitch, c.size, c.kernel,
                                        c.anchor, NPP_BORDER_REPLICATE, c.ctx);
}

int filter32f_border(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  const auto call = [&](auto function) {
    return function(c.src, c.src_pitch, c.size, c.origin, c.dst, c.dst_pitch, c.size, w->weights, c.kernel, c.anchor,
                    NPP_BORDER_REPLICATE, c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiFilterBorder32f_8u_C1R_Ctx); },
      [&] { return call(nppiFilterBorder32f_8u_C4R_Ctx); });
}

// Has no border handling: computes only pixels whose window is inside the picture.
int filter32f(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  const NppiSize inner{w->width - w->taps + 1, w->height - w->taps + 1};
  const int half = w->taps / 2;
  const auto call = [&](auto function) {
    return function(c.src + half * c.src_pitch + half * w->channels, c.src_pitch,
                    c.dst + half * c.dst_pitch + half * w->channels, c.dst_pitch, inner, w->weights, c.kernel, c.anchor,
                    c.ctx);
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

// |src − reference|, including alpha.
int absolute_difference(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  const Call c(*w, *p, stream);
  const auto call = [&](auto function) {
    return function(c.src, c.src_pitch, static_cast<const Npp8u*>(p->reference), p->reference_pitch, c.dst, c.dst_pitch,
                    c.size, c.ctx);
  };
  return by_channels(
      w->channels, [&] { return call(nppiAbsDiff_8u_C1R_Ctx); }, [&] { return call(nppiAbsDiff_8u_C4R_Ctx); });
}

// The operator `over` for two pictures with alpha.
int alpha_composition(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  if (w->channels != 4) return peer_not_offered;
  const Call c(*w, *p, stream);
  return nppiAlphaComp_8u_AC4R_Ctx(c.src, c.src_pitch, static_cast<const Npp8u*>(p->reference), p->reference_pitch,
                                   c.dst, c.dst_pitch, c.size, NPPI_OP_ALPHA_OVER, c.ctx);
}

// Scratch memory on the device. A peer chooses its size for each picture size. The first call for a size allocates it
// and is not timed.
class Scratch {
 public:
  // `ask` writes the number of bytes to its argument and returns an error code.
  template <typename Ask>
  int prepare(const PeerWork& work, Ask ask) {
    if (work.width == width_ && work.height == height_) return 0;
    width_ = height_ = 0;
    cudaFree(data_);
    data_ = nullptr;
    if (const int error = int(ask(bytes_))) return error;
    if (const int error = int(cudaMalloc(&data_, bytes_ + 1)))
      return error;  // never 0 bytes: CUB would treat a null pointer as a size query
    width_ = work.width;
    height_ = work.height;
    return 0;
  }
  void* data() const { return data_; }
  size_t& bytes() { return bytes_; }

 private:
  int width_ = 0, height_ = 0;
  void* data_ = nullptr;  // freed when the process ends
  size_t bytes_ = 0;
};

// 256 counts, written to the start of the destination.
constexpr int levels = 257;

// Before CUDA 12 the size was an int.
template <typename Size>
NppStatus npp_histogram_bytes(NppStatus (*ask)(NppiSize, int, Size*, NppStreamContext), const Call& c, size_t& bytes) {
  Size size = 0;
  const NppStatus status = ask(c.size, levels, &size, c.ctx);
  bytes = size_t(size);
  return status;
}

int npp_histogram(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  if (w->channels != 1) return peer_not_offered;
  static Scratch scratch;
  const Call c(*w, *p, stream);
  const auto ask = [&](size_t& bytes) {
    return npp_histogram_bytes(nppiHistogramEvenGetBufferSize_8u_C1R_Ctx, c, bytes);
  };
  if (const int error = scratch.prepare(*w, ask)) return error;
  return nppiHistogramEven_8u_C1R_Ctx(c.src, c.src_pitch, c.size, static_cast<Npp32s*>(p->dst), levels, 0, levels - 1,
                                      static_cast<Npp8u*>(scratch.data()), c.ctx);
}

int cub_histogram(const PeerWork* w, const PeerPictures* p, CUstream_st* stream) {
  if (w->channels != 1) return peer_not_offered;
  static Scratch scratch;
  const auto count = [&](void* memory, size_t& bytes) {  // without memory it returns the number of bytes
    return cub::DeviceHistogram::HistogramEven(memory, bytes, static_cast<const unsigned char*>(p->src),
                                               static_cast<int*>(p->dst), levels, 0, levels - 1, w->width, w->height,
                                               size_t(p->src_pitch), stream);
  };
  if (const int error = scratch.prepare(*w, [&](size_t& bytes) { return count(nullptr, bytes); })) return error;
  return count(scratch.data(), scratch.bytes());
}

const PeerEntry entries[] = {
    {"gaussian", "gauss", gauss_fixed},
    {"gaussian", "gaussAdv", gauss_advanced},
    {"box", "box", box},
    {"convolve", "32fBorder", filter32f_border},
    {"convolve", "32f", filter32f},
    {"integral", "integral", integral},
    {"absdiff", "absdiff", absolute_difference},
    {"alphacomp", "alphacomp", alpha_composition},
    {"histogram", "npp", npp_histogram},
    {"histogram", "cub", cub_histogram},
    {nullptr, nullptr, nullptr},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const PeerEntry* cudavision_peer_entries() { return entries; }
