// SPDX-License-Identifier: LGPL-2.1-or-later
// Counting. Two kernels: one for planes of single bytes, whose counters are private to a lane, so that neither many equal samples
// nor unlucky ones get into each other's way; one for everything else, with atomics in shared memory. Blocks add what they counted
// to sums in device memory; whoever is last gathers those into bins, hands them out, and leaves zeros for the next frame.
#include <algorithm>
#include <climits>

#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/histogram/histogram.hpp"

namespace cudavision {
namespace cuda::histogram {
namespace {

using cudavision::detail::HistogramPlan;

// Shapes, with what was measured on an H200 beside them (time of one submit; where nothing else is said GRAY8 of 7680×4320,
// random).
/// Samples from which the byte kernel is worth the clearing and summing of its counters: at 2 M samples both took 7 µs, at 8 M it
/// was faster by half.
constexpr std::int64_t byte_samples = 3 << 20;
/// Warps of its one block on a multiprocessor: a multiple of 4, each with 8 KiB of counters. 12: 24.3 µs, 16: 21.2, 20: 19.7,
/// 24: 18.9, 28: 19.0. Atomics take 26 µs; devices whose shared memory holds fewer than `byte_least_warps` use them.
constexpr int byte_warps = 24, byte_least_warps = 12;
/// Chunks of 16 samples a lane loads ahead. 1: 23.5 µs, 2: 19.8, 4: 20.6.
constexpr int byte_ahead = 2;
constexpr int byte_warp_bytes = 32 * 256;  ///< of counters

/// Threads of a block of the other kernel, and how few samples are worth one: 1920×1080 took 7.2 µs with 4096 to 16384, 9.2 with
/// 32768.
constexpr int pixel_threads = 512;
constexpr int pixel_samples = 8192;
/// Blocks of it on a multiprocessor: as many as its registers hold. RGBA's luma: 1: 105 µs, 2: 78.
constexpr int pixel_blocks = 2;
/// Counters it spreads over copies, against conflicts between its warps; 1024 and 4096 made no difference.
constexpr int pixel_counters = 4096;
/// Entries from which the sums are gathered by a kernel of its own, not by the last block.
constexpr int gather_entries = 4096;
constexpr int gather_threads = 256;

constexpr int most_rects = 32;  ///< of a set in one launch

/// How sums become results.
struct Gather {
  std::uint32_t* sums;    ///< [table][fine]; zero between frames
  std::uint32_t* counts;  ///< [channel][bin], on the device
  std::uint32_t* host;    ///< the same in page-locked memory, or null
  unsigned* ticket;       ///< blocks that are done; zero between launches
  int tables, fine, bins, channels, depth;
  bool by_value;  ///< entries are values, not bins
  bool here;      ///< the last block of this launch gathers
  std::uint8_t table[histogram_max_channels];
};

/// What some blocks count.
struct Share {
  int first_block = INT_MAX, blocks = 1;
  int rect_count = 0;
  Rect rects[most_rects];
};

struct ByteJob {
  const unsigned char* data;
  std::ptrdiff_t pitch;
  int table;
  Share share;
};
struct ByteParams {
  ByteJob jobs[3];
  Gather gather;
};

struct PixelJob {
  SetView views[3];  ///< of the set; or of three planes that are read together
  int base[4];       ///< by channel: where its table begins among the job's entries; −1: not counted
  int luma_base;     ///< of luma made of R, G, B; or −1
  int position[3];   ///< of R, G, B among the channels
  int first_entry;   ///< in the sums
  int entries;       ///< of all its tables
  int pass_entries;  ///< that a block counts: it passes over the others
  int passes;
  Share share;
};
struct PixelParams {
  PixelJob jobs[3];
  int bins, bin_shift;  ///< entry = sample · bins >> bin_shift
  int copies;
  LumaWeights weights;
  Gather gather;
};

#ifdef __CUDACC__

__device__ void gather_entries_of(const Gather& g, int thread, int threads) {
  for (int i = thread; i < g.tables * g.bins; i += threads) {
    const int table = i / g.bins, bin = i - table * g.bins;
    const int begin = g.by_value ? cudavision::detail::first_value(bin, g.bins, g.depth) : bin;
    const int end = g.by_value ? cudavision::detail::first_value(bin + 1, g.bins, g.depth) : bin + 1;
    std::uint32_t* const sums = g.sums + std::size_t(table) * g.fine;
    std::uint32_t sum = 0;
    for (int entry = begin; entry < end; ++entry) {
      sum += __ldcg(sums + entry);
      sums[entry] = 0;
    }
    for (int c = 0; c < g.channels; ++c) {
      if (g.table[c] != table) continue;
      const std::size_t at = std::size_t(c) * g.bins + bin;
      g.counts[at] = sum;
      if (g.host) g.host[at] = sum;
    }
  }
}

__global__ void __launch_bounds__(gather_threads) gather_all(const __grid_constant__ Gather gather) {
  gather_entries_of(gather, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

/// Ends a block that has added to the sums.
__device__ __forceinline__ void block_done(const Gather& gather) {
  if (!gather.here) return;
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned before;  // wraps to zero; publishes what the block added, and shows the last one what all did
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(gather.ticket), "r"(gridDim.x - 1)
                 : "memory");
    last = before == gridDim.x - 1;
  }
  __syncthreads();
  if (last) gather_entries_of(gather, threadIdx.x, blockDim.x);
}

/// Places of a rectangle cut into rows of `width` units, taken in turn by `stride` workers.
struct Walk {
  int x, y, step_x, step_y, width;

  __device__ Walk(unsigned first, unsigned stride, unsigned units) : width(int(units)) {
    y = int(first / units);
    x = int(first - unsigned(y) * units);
    step_y = int(stride / units);
    step_x = int(stride - unsigned(step_y) * units);
  }
  __device__ __forceinline__ void next() {
    x += step_x;
    y += step_y;
    if (x >= width) {
      x -= width;
      ++y;
    }
  }
};

/// Access to shared memory by 32-bit addresses: through pointers the compiler takes two instructions more for each.
__device__ __forceinline__ std::uint32_t load_counter(unsigned address) {
  std::uint32_t count;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(count) : "r"(address));
  return count;
}
__device__ __forceinline__ void store_counter(unsigned address, std::uint32_t count) {
  asm volatile("st.shared.u8 [%0], %1;" ::"r"(address), "r"(count));
}
__device__ __forceinline__ void increment_shared(unsigned address) { asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(address)); }

/// In the order of the program: the compiler would move loads that are to be under way behind work that needs them not.
__device__ __forceinline__ uint4 load_chunk(const unsigned char* from) {
  uint4 chunk;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
               : "l"(from));
  return chunk;
}

/// Where a value's counter is: bytes, [group of 4 warps][value][lane][warp], so that a lane's lie in its own bank; `own` is its
/// first.
__device__ __forceinline__ unsigned counter_of(std::uint32_t value, unsigned own) {
  unsigned address;  // as one multiply-add; the compiler would take two instructions
  asm("mad.lo.u32 %0, %1, 128, %2;" : "=r"(address) : "r"(value), "r"(own));
  return address;
}

/// Counts 16 samples. Counters that wrap to zero leave 256 in `wide`.
__device__ __forceinline__ void count_chunk(const uint4& chunk, unsigned own, std::uint32_t* wide) {
  const std::uint32_t words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
  std::uint32_t now[16], any = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const unsigned address = counter_of(__byte_perm(words[i / 4], 0, 0x4440 + i % 4), own);
    now[i] = load_counter(address) + 1;
    store_counter(address, now[i]);
    any |= now[i];
  }
  if (any & 256) {
#pragma unroll
    for (int i = 0; i < 16; ++i)
      if (now[i] & 256) atomicAdd(wide + (words[i / 4] >> (i % 4 * 8) & 255), 256u);
  }
}

__global__ void __launch_bounds__(byte_warps * 32, 1) count_bytes(const __grid_constant__ ByteParams params) {
  extern __shared__ uint4 shared[];
  __shared__ std::uint32_t wide[256];
  const int threads = blockDim.x, thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const unsigned own = unsigned(__cvta_generic_to_shared(shared)) + warp / 4 * (256 * 128) + lane * 4 + warp % 4;
  const int block = int(blockIdx.x);
  const ByteJob& job = params.jobs[(block >= params.jobs[1].share.first_block) + (block >= params.jobs[2].share.first_block)];
  const unsigned first = unsigned(block - job.share.first_block) * threads + thread, stride = unsigned(job.share.blocks) * threads;

  bool cleared = false;
  const auto clear = [&] {
    for (int i = thread; i < threads / 32 * 512; i += threads) shared[i] = make_uint4(0, 0, 0, 0);
    for (int i = thread; i < 256; i += threads) wide[i] = 0;
    __syncthreads();
    cleared = true;
  };
  for (int r = 0; r < job.share.rect_count; ++r) {
    const Rect rect = job.share.rects[r];
    const unsigned char* const rows = job.data + rect.y * job.pitch;
    const int begin = (rect.x + 15) & ~15, end = (rect.x + rect.width) & ~15;  // of whole chunks
    // A lane's chunks: how many are left, where the next is, and how to go on from one to the next.
    const unsigned width = unsigned(max(end - begin, 0)) / 16, chunks = width * unsigned(rect.height);
    Walk walk(first, stride, max(width, 1u));
    int left = first < chunks ? int((chunks - first + stride - 1) / stride) : 0, x = walk.x;
    const unsigned char* next = rows + walk.y * job.pitch + begin + std::ptrdiff_t(x) * 16;
    const std::ptrdiff_t step = walk.step_y * job.pitch + std::ptrdiff_t(walk.step_x) * 16,
                         wrap = job.pitch - std::ptrdiff_t(walk.width) * 16;
    uint4 ahead[byte_ahead];
    const auto load = [&] {
#pragma unroll
      for (int i = 0; i < byte_ahead; ++i) {
        if (i >= left) break;
        ahead[i] = load_chunk(next);
        next += step;
        x += walk.step_x;
        if (x >= walk.width) x -= walk.width, next += wrap;
      }
    };
    load();
    if (!cleared) clear();  // while the first loads are under way
    while (left > 0) {
      uint4 now[byte_ahead];
#pragma unroll
      for (int i = 0; i < byte_ahead; ++i) now[i] = ahead[i];
      const int count = left;
      left -= byte_ahead;
      load();
#pragma unroll
      for (int i = 0; i < byte_ahead; ++i)
        if (i < count) count_chunk(now[i], own, wide);
    }
    // The samples before and after, one by one.
    const int head = min(begin, rect.x + rect.width) - rect.x, tail = begin <= end ? rect.x + rect.width - end : 0;
    if (head + tail > 0) {
      for (Walk walk(first, stride, unsigned(head + tail)); walk.y < rect.height; walk.next()) {
        const int x = walk.x < head ? rect.x + walk.x : end + walk.x - head;
        atomicAdd(wide + rows[walk.y * job.pitch + x], 1u);
      }
    }
  }
  __syncthreads();

  // A value's row of counters to each thread; the rows' words are taken from another bank by each lane.
  for (int i = thread; i < 256 * (threads / 128); i += threads) {
    const uint4* const row = shared + i * 8;
    std::uint32_t sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const uint4 words = row[(k + lane) % 8];
      sum = __dp4a(words.x, 0x01010101u, sum);
      sum = __dp4a(words.y, 0x01010101u, sum);
      sum = __dp4a(words.z, 0x01010101u, sum);
      sum = __dp4a(words.w, 0x01010101u, sum);
    }
    if (sum > 0) atomicAdd(wide + i % 256, sum);
  }
  __syncthreads();
  std::uint32_t* const sums = params.gather.sums + std::size_t(job.table) * params.gather.fine;
  for (int i = thread; i < 256; i += threads)
    if (wide[i] > 0) atomicAdd(sums + i, wide[i]);
  block_done(params.gather);
}

/// The words of the channel at a position known only when running.
template <typename T, int C>
__device__ __forceinline__ std::uint32_t word_at(const Quad<T, C>& quad, int position, int k) {
  std::uint32_t word = quad.word[0][k];
#pragma unroll
  for (int c = 1; c < C; ++c) word = position == c ? quad.word[c][k] : word;
  return word;
}

template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ Quad<T, C> load_pixels(const PixelJob& job, int x, int y) {
  if constexpr (!ThreePlanes) {
    return load_quad<T, C>(job.views[0], x, y);
  } else {
    Quad<T, C> quad;
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const Quad<T, 1> plane = load_quad<T, 1>(job.views[c], x, y);
#pragma unroll
      for (int k = 0; k < int(sizeof(T)); ++k) quad.word[c][k] = plane.word[0][k];
    }
    return quad;
  }
}

template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ void count_job(const PixelParams& params, const PixelJob& job, std::uint32_t* shared) {
  // Quads a thread loads at once: some 16 bytes.
  constexpr int quads = C * sizeof(T) >= 4 ? 1 : 4 / (C * int(sizeof(T)));
  const int threads = blockDim.x, thread = threadIdx.x, warp = thread / 32, lane = thread % 32, warps = threads / 32;
  const int worker = (int(blockIdx.x) - job.share.first_block) / job.passes;
  const int pass = (int(blockIdx.x) - job.share.first_block) - worker * job.passes;
  const unsigned first_entry = unsigned(pass) * unsigned(job.pass_entries);
  const unsigned entries = min(unsigned(job.pass_entries), unsigned(job.entries) - first_entry);
  const int copies = params.copies;
  for (unsigned i = thread; i < entries * copies; i += threads) shared[i] = 0;
  __syncthreads();

  // The jobs' description lies where reading it in the inner loop would cost; so what is needed there is read here.
  const unsigned counters = unsigned(__cvta_generic_to_shared(shared + warp % copies * entries));
  const bool all_entries = job.passes == 1;
  int base[C];
#pragma unroll
  for (int c = 0; c < C; ++c) base[c] = job.base[c];
  const int luma_base = C >= 3 ? job.luma_base : -1;
  const int position[3] = {job.position[0], job.position[1], job.position[2]};
  const LumaWeights weights = params.weights;
  const std::uint32_t bins = params.bins, max_value = job.views[0].max_value;
  const int shift = params.bin_shift;
  // The entry of a sample; 8-bit ones are always counted by value.
  const auto entry_of = [&](std::uint32_t sample) { return sizeof(T) == 1 ? sample : sample * bins >> shift; };
  // Counts four samples, or those that the mask has.
  const auto add = [&](int table, const std::uint32_t(&samples)[4], unsigned mask) {
    if (all_entries && mask == 15) {
      const unsigned at = counters + table * 4;
#pragma unroll
      for (int j = 0; j < 4; ++j) increment_shared(at + entry_of(samples[j]) * 4);
      return;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const unsigned entry = unsigned(table) + entry_of(samples[j]) - first_entry;
      if (entry < entries && (mask >> j & 1)) increment_shared(counters + entry * 4);
    }
  };
  for (int r = 0; r < job.share.rect_count; ++r) {
    const Rect rect = job.share.rects[r];
    const int begin = rect.x & ~3, end = rect.x + rect.width;
    const auto count_quad = [&](const Quad<T, C>& quad, int x) {
      unsigned mask = 15;
      if (x < rect.x) mask &= 15u << (rect.x - x);
      if (x + 4 > end) mask &= 15u >> (x + 4 - end);
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if (base[c] < 0) continue;
        const std::uint32_t samples[4] = {quad.sample(c, 0), quad.sample(c, 1), quad.sample(c, 2), quad.sample(c, 3)};
        add(base[c], samples, mask);
      }
      if (C >= 3 && luma_base >= 0) {
        Quad<T, 3> rgb;
#pragma unroll
        for (int c = 0; c < 3; ++c)
#pragma unroll
          for (int k = 0; k < int(sizeof(T)); ++k) rgb.word[c][k] = ThreePlanes ? quad.word[c][k] : word_at(quad, position[c], k);
        std::uint32_t samples[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) samples[j] = luma_of(rgb.sample(0, j), rgb.sample(1, j), rgb.sample(2, j), weights, max_value);
        add(luma_base, samples, mask);
      }
    };
    constexpr int unit = 32 * 4 * quads;
    Walk walk(unsigned(worker * warps + warp), unsigned(job.share.blocks * warps), unsigned(end - begin + unit - 1) / unit);
    // What is loaded is counted while the next loads are under way.
    Quad<T, C> held[quads];
    int held_left = end;
    for (bool any = true; any;) {
      Quad<T, C> fresh[quads];
      const int left = begin + walk.x * unit + lane * 4;
      any = walk.y < rect.height;
      if (any) {
#pragma unroll
        for (int q = 0; q < quads; ++q)
          if (left + q * 128 < end) fresh[q] = load_pixels<T, C, ThreePlanes>(job, left + q * 128, rect.y + walk.y);
#pragma unroll
        for (int q = 0; q < quads; ++q)
#pragma unroll
          for (int c = 0; c < C; ++c)
#pragma unroll
            for (int k = 0; k < int(sizeof(T)); ++k)
              asm volatile("" : "+r"(fresh[q].word[c][k]));  // loads stay before the counting
        walk.next();
      }
#pragma unroll
      for (int q = 0; q < quads; ++q)
        if (held_left + q * 128 < end) count_quad(held[q], held_left + q * 128);
#pragma unroll
      for (int q = 0; q < quads; ++q) held[q] = fresh[q];
      held_left = left;
    }
  }
  __syncthreads();
  std::uint32_t* const sums = params.gather.sums + job.first_entry + first_entry;
  for (unsigned i = thread; i < entries; i += threads) {
    std::uint32_t sum = 0;
    for (int copy = 0; copy < copies; ++copy) sum += shared[copy * entries + i];
    if (sum > 0) atomicAdd(sums + i, sum);
  }
}

template <typename T, int First, int Rest, bool ThreePlanes>
__global__ void __launch_bounds__(pixel_threads, pixel_blocks) count_pixels(const __grid_constant__ PixelParams params) {
  extern __shared__ uint4 shared[];
  std::uint32_t* const counters = reinterpret_cast<std::uint32_t*>(shared);
  const int block = int(blockIdx.x);
  if (First == Rest || block < params.jobs[1].share.first_block)
    count_job<T, First, ThreePlanes>(
        params,
        params.jobs[First == Rest ? (block >= params.jobs[1].share.first_block) + (block >= params.jobs[2].share.first_block) : 0],
        counters);
  else
    count_job<T, Rest, ThreePlanes>(params, params.jobs[1], counters);
  block_done(params.gather);
}

#endif  // __CUDACC__

const void* pixel_kernel(const FormatInfo& format, bool three_planes) {
  if (three_planes) return reinterpret_cast<const void*>(&count_pixels<std::uint8_t, 3, 3, true>);
  return with_layout(format, [](auto sample, auto first, auto rest) {
    return reinterpret_cast<const void*>(&count_pixels<decltype(sample), decltype(first)::value, decltype(rest)::value, false>);
  });
}

class CudaHistogram final : public Histogram {
 public:
  CudaHistogram(HistogramPlan plan, bool results) : Histogram(std::move(plan), Backend::cuda, results) {}

  /// With the context current.
  Status prepare() {
    int device = 0, shared_limit = 0;
    Status status = check(cudaGetDevice(&device), "cannot use the CUDA device");
    const auto keep = [&](Status next) {
      if (status.ok()) std::swap(status, next);
    };
    const auto ask = [&](int& value, cudaDeviceAttr attribute) {
      keep(check(cudaDeviceGetAttribute(&value, attribute, device), "cannot ask the CUDA device what it has"));
    };
    ask(processors_, cudaDevAttrMultiProcessorCount);
    ask(shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    shared_limit -= 2048;  // for what kernels hold besides
    const std::size_t sums = std::size_t(plan().tables) * plan().fine, word = sizeof(std::uint32_t);
    keep(sums_.allocate((sums + 1) * word));
    keep(counts_.allocate(words() * word));
    keep(results_.allocate(words() * slots() * word));
    if (!status.ok()) return status;
    FillStream stream;
    stream.clear(sums_.data(), (sums + 1) * word);
    stream.clear(counts_.data(), words() * word);
    keep(stream.finish());

    const FormatInfo& format = info(geometry().format);
    byte_warps_ = std::min(byte_warps, shared_limit / byte_warp_bytes / 4 * 4);
    if (format.depth > 8) byte_warps_ = 0;
    if (byte_warps_ < byte_least_warps) byte_warps_ = 0;
    if (byte_warps_ > 0)
      keep(check(cudaFuncSetAttribute(count_bytes, cudaFuncAttributeMaxDynamicSharedMemorySize, byte_warps_ * byte_warp_bytes),
                 "cannot load the histogram kernel"));

    pixel_kernel_ = pixel_kernel(format, plan().three_planes);
    pixel_limit_ = shared_limit / 4;
    keep(check(cudaFuncSetAttribute(pixel_kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_limit),
               "cannot load the histogram kernel"));
    // Asking loads the code now: a launch must not.
    cudaFuncAttributes attributes;
    keep(check(cudaFuncGetAttributes(&attributes, gather_all), "cannot load the histogram kernel"));

    gather_ = {sums_.data<std::uint32_t>(),
               counts_.data<std::uint32_t>(),
               nullptr,
               sums_.data<std::uint32_t>() + sums,
               plan().tables,
               plan().fine,
               plan().bins,
               int(plan().channels.size()),
               format.depth,
               plan().by_value() && plan().bins != plan().fine,
               false,
               {}};
    std::copy(plan().table.begin(), plan().table.end(), gather_.table);
    params_.bins = plan().by_value() ? 1 : plan().bins;
    params_.bin_shift = plan().by_value() ? 0 : format.depth;
    params_.weights = plan().weights;
    return status;
  }

  const std::uint32_t* latest() const override { return counts_.data<std::uint32_t>(); }

 private:
  const std::uint32_t* slot_counts(int slot) const override { return results_.data<std::uint32_t>() + words() * slot; }

  Status count(const Image& src, const SetPieces& pieces, int slot, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    gather_.host = slots() > 0 ? results_.data<std::uint32_t>() + words() * slot : nullptr;
    bool by_bytes[3] = {};
    std::size_t rects = 0;
    for (int i = 0; i < format.set_count; ++i) {
      if (!plan().counts(format.sets[i])) continue;
      by_bytes[i] = takes_bytes(src, i, pieces[i]);
      rects = std::max(rects, pieces[i].size());
    }
    const bool own_gather = plan().tables * std::max(plan().bins, plan().fine) > gather_entries;
    for (std::size_t from = 0; from == 0 || from < rects; from += most_rects) {
      const bool last = from + most_rects >= rects && !own_gather;
      const bool pixels = set_pixel_jobs(src, pieces, from, by_bytes);
      if (set_byte_jobs(src, pieces, from, by_bytes))
        if (Status status = launch_bytes(last && !pixels, queue); !status.ok()) return status;
      if (pixels || (last && byte_blocks_ == 0))
        if (Status status = launch_pixels(last, queue); !status.ok()) return status;
    }
    if (!own_gather) return {};
    const int entries = plan().tables * plan().bins;
    gather_all<<<std::min((entries + gather_threads - 1) / gather_threads, processors_ * 8), gather_threads, 0, queue.stream>>>(
        gather_);
    return check(cudaGetLastError(), "cannot launch the histogram");
  }

  /// Whether the byte kernel can count the set, and is worth it.
  bool takes_bytes(const Image& src, int index, const std::vector<Rect>& pieces) const {
    const ChannelSet& set = info(geometry().format).sets[index];
    const Plane& plane = src.planes[set.plane];
    if (byte_warps_ == 0 || set.channels > 1 || plan().three_planes || !aligned_to(plane.data, plane.pitch, 16)) return false;
    return samples(pieces, 0, pieces.size()) >= byte_samples;
  }

  static std::int64_t samples(const std::vector<Rect>& pieces, std::size_t from, std::size_t to) {
    std::int64_t all = 0;
    for (std::size_t i = from; i < std::min(to, pieces.size()); ++i) all += std::int64_t(pieces[i].width) * pieces[i].height;
    return all;
  }

  /// The pieces from `from` on, as many as fit.
  static void set_rects_of(Share& share, const std::vector<Rect>& pieces, std::size_t from) {
    share.rect_count = from < pieces.size() ? int(std::min<std::size_t>(most_rects, pieces.size() - from)) : 0;
    std::copy_n(pieces.begin() + std::min(from, pieces.size()), share.rect_count, share.rects);
  }

  bool set_byte_jobs(const Image& src, const SetPieces& pieces, std::size_t from, const bool (&by_bytes)[3]) {
    const FormatInfo& format = info(geometry().format);
    std::int64_t all = 0;
    for (int i = 0; i < format.set_count; ++i)
      if (by_bytes[i]) all += samples(pieces[i], from, from + most_rects);
    byte_blocks_ = 0;
    int jobs = 0;
    for (int i = 0; i < format.set_count; ++i) {
      const std::int64_t part = by_bytes[i] ? samples(pieces[i], from, from + most_rects) : 0;
      if (part == 0) continue;
      ByteJob& job = bytes_.jobs[jobs++];
      const Plane& plane = src.planes[format.sets[i].plane];
      job.data = static_cast<const unsigned char*>(plane.data);
      job.pitch = plane.pitch;
      job.table = plan().table_of[std::size_t(format.sets[i].roles[0])];
      set_rects_of(job.share, pieces[i], from);
      job.share.first_block = byte_blocks_;
      job.share.blocks = int(std::max<std::int64_t>(1, processors_ * part / all));
      byte_blocks_ += job.share.blocks;
    }
    for (; jobs < 3; ++jobs) bytes_.jobs[jobs].share.first_block = INT_MAX;
    return byte_blocks_ > 0;
  }

  Status launch_bytes(bool gathers, Queue queue) {
    bytes_.gather = gather_;
    bytes_.gather.here = gathers;
    count_bytes<<<byte_blocks_, byte_warps_ * 32, byte_warps_ * byte_warp_bytes, queue.stream>>>(bytes_);
    return check(cudaGetLastError(), "cannot launch the histogram");
  }

  /// Whether there is anything to count.
  bool set_pixel_jobs(const Image& src, const SetPieces& pieces, std::size_t from, const bool (&by_bytes)[3]) {
    const FormatInfo& format = info(geometry().format);
    const int sets = plan().three_planes ? 1 : format.set_count;
    std::int64_t all = 0;
    int entries = 1;
    for (int i = 0; i < sets; ++i) {
      PixelJob& job = params_.jobs[i];
      job.share = {};
      job.share.first_block =
          i == 0 ? 0 : INT_MAX;  // the first job stands for itself even when it is empty: kernels are shaped by it
      if (!plan().counts(format.sets[i]) || by_bytes[i]) {
        job.entries = job.pass_entries = 0;
        job.passes = 1;
        continue;
      }
      set_pixel_job(job, src, i);
      set_rects_of(job.share, pieces[i], from);
      all += job.entries / plan().fine * samples(pieces[i], from, from + most_rects);
      entries = std::max(entries, job.pass_entries);
    }
    params_.copies = std::clamp(pixel_counters / entries, 1, 8);
    pixel_shared_ = std::size_t(entries) * params_.copies * sizeof(std::uint32_t);
    // Blocks by samples; each multiprocessor has room for some.
    const int room = std::clamp(int(std::size_t(pixel_limit_) * 4 / (pixel_shared_ + 1024)), 1, pixel_blocks) * processors_;
    pixel_blocks_ = 0;
    for (int i = 0; i < sets; ++i) {
      PixelJob& job = params_.jobs[i];
      const std::int64_t part =
          job.entries / plan().fine * samples(pieces[i], from, from + most_rects);  // work: samples of all its channels
      const bool any = job.share.rect_count > 0 && part > 0;
      if (!any) {
        if (i == 0) job.share.blocks = 1, pixel_blocks_ = 1;
        continue;
      }
      const std::int64_t share = room * part / std::max<std::int64_t>(all, 1) / job.passes,
                         worth = (part + pixel_samples - 1) / pixel_samples;
      job.share.first_block = pixel_blocks_;
      job.share.blocks = int(std::max<std::int64_t>(1, std::min(share, worth)));
      pixel_blocks_ += job.share.blocks * job.passes;
    }
    // Later jobs begin no earlier than those before them.
    for (int i = 2; i > 0; --i) {
      if (i >= sets) params_.jobs[i].share.first_block = INT_MAX;
      if (i == 1 && params_.jobs[1].share.first_block == INT_MAX && params_.jobs[2].share.first_block != INT_MAX)
        params_.jobs[1].share.first_block = params_.jobs[2].share.first_block;
    }
    return all > 0;
  }

  void set_pixel_job(PixelJob& job, const Image& src, int index) const {
    const FormatInfo& format = info(geometry().format);
    const ChannelSet& set = format.sets[index];
    const auto view = [&](int i) { return make_view(src, src, i, geometry().grid(format.sets[i]), Border::replicate, {}, false); };
    const int fine = plan().fine;
    int first = plan().tables, last = 0;
    const auto base_of = [&](int table) {
      if (table < 0) return -1;
      first = std::min(first, table);
      last = std::max(last, table);
      return table * fine;
    };
    std::fill(std::begin(job.base), std::end(job.base), -1);
    std::fill(std::begin(job.position), std::end(job.position), 0);
    job.luma_base = -1;
    if (plan().three_planes) {
      for (int i = 0; i < 3; ++i) {
        const Role role = format.sets[i].roles[0];
        const int c = int(role) - int(Role::red);
        job.views[c] = view(i);
        job.position[c] = c;
        job.base[c] = base_of(plan().table_of[std::size_t(role)]);
      }
    } else {
      job.views[0] = view(index);
      for (int c = 0; c < set.channels; ++c) {
        const Role role = set.roles[c];
        if (role == Role::other) continue;
        job.base[c] = base_of(plan().table_of[std::size_t(role)]);
        if (role >= Role::red && role <= Role::blue) job.position[int(role) - int(Role::red)] = c;
      }
    }
    if (plan().rgb_luma && index == 0) job.luma_base = base_of(0);
    for (int& base : job.base)
      if (base >= 0) base -= first * fine;
    job.first_entry = first * fine;
    job.entries = (last - first + 1) * fine;
    job.passes = (job.entries + pixel_limit_ - 1) / pixel_limit_;
    job.pass_entries = (job.entries + job.passes - 1) / job.passes;
  }

  Status launch_pixels(bool gathers, Queue queue) {
    params_.gather = gather_;
    params_.gather.here = gathers;
    void* arguments[] = {&params_};
    return check(cudaLaunchKernel(pixel_kernel_, dim3(pixel_blocks_), dim3(pixel_threads), arguments, pixel_shared_, queue.stream),
                 "cannot launch the histogram");
  }

  DeviceMemory sums_, counts_;
  HostMemory results_;
  int processors_ = 1, byte_warps_ = 0, byte_blocks_ = 0, pixel_blocks_ = 0;
  int pixel_limit_ = 0;  ///< counters in the shared memory of a block
  std::size_t pixel_shared_ = 0;
  const void* pixel_kernel_ = nullptr;
  Gather gather_{};
  ByteParams bytes_{};
  PixelParams params_{};
};

}  // namespace
}  // namespace cuda::histogram

namespace detail {

Result<std::unique_ptr<Histogram>> make_histogram_cuda(HistogramPlan plan, bool results) {
  auto histogram = std::make_unique<cuda::histogram::CudaHistogram>(std::move(plan), results);
  if (Status status = histogram->prepare(); !status.ok()) return status;
  return std::unique_ptr<Histogram>(std::move(histogram));
}

}  // namespace detail
}  // namespace cudavision
