// SPDX-License-Identifier: LGPL-2.1-or-later
// One kernel reads the frames once: difference, threshold, what is shown, the reference for later, and counts of changed pixels a
// cell. Where the mask is opened, the first kernel leaves it as bits, and a second one opens, counts, and shows it.
//
// The frame is cut into tiles of one block each. What a tile counts goes to a record of its own in page-locked host memory, stored
// there by the kernel: no counter is shared, none must be cleared, and no copy waits behind the kernel. The host sums the records.
#include <algorithm>
#include <cstring>

#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/diff/cuda_kernels.cuh"
#include "kernels/diff/cuda_mog2.hpp"
#include "kernels/diff/diff.hpp"

namespace cudavision {
namespace cuda::diff {
namespace {

using cudavision::detail::DiffFill;
using cudavision::detail::DiffFrame;
using cudavision::detail::DiffPlan;
using cudavision::detail::RoleValues;

/// Compares a tile: all but the opening of the mask, in one read of the frames.
template <class S, bool background, Writes writes>
__global__ void __launch_bounds__(S::threads) compare(const __grid_constant__ Params p) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad;
  constexpr unsigned all = (1u << S::pixels) - 1;
  __shared__ std::uint32_t slots[max_slots + 2];
  const Tile<S> tile;
  const int x = tile.x, y = tile.y;
  const bool across = x < p.width;

  Strip<S> v, r;
  Strip<S, background ? 2 : 1> state;
  load_source<S>(p, x, y, v);
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    const bool inside = across && y + row < p.height;
    if constexpr (background) {
      if (job.background.data && inside) load_own(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
    } else {
      if (job.reference.data && inside)
        load_row<false>(job.reference, job.reference_bytes, job.reference_alignment, byte_of<S, P>(x), row_of<S, P>(row, y), of(r));
    }
  });
  clear_slots<S>(p, slots);
  unsigned counted[S::rows];
  bool partly = false;
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    counted[row] = bits_in_frame<S>(p, x, y + row);
    if (p.counted && counted[row]) counted[row] &= load_bits<S>(p.counted + (y + row) * p.bits_pitch, x);
    partly = partly || counted[row] != all;
  }
  __syncthreads();

  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    auto &words = of(v), &from = of(r);
    constexpr int N = sizeof(words) / 4;
    const bool inside = across && y + row < p.height;
    if (job.keep.data && inside) store_own(job.keep, byte_of<S, P>(x), row_of<S, P>(row, y), words);
    to_values<S>(p, words);
    if constexpr (background) {
      if (job.background.data) {
        step_background<T>(p, words, of(state), from);
        if (inside) store_own(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
      }
    } else {
      to_values<S>(p, from);
    }
    const bool compared = job.any_compared && (background || job.reference.data);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t mask = compared ? job.rules[i % P::period].compared : 0;
      from[i] = (from[i] & mask) | (words[i] & ~mask);
    }
  });
  Strip<S> d;
  const auto set_difference = [&](const Strip<S>& frame) {
    each_piece<S>([&](auto, int, int, auto of) {
      auto& size = of(d);
      constexpr int N = sizeof(size) / 4;
#pragma unroll
      for (int i = 0; i < N; ++i) size[i] = absolute_difference<T>(of(frame)[i], of(r)[i]);
    });
  };
  if (S::maybe_rgb && p.luma_of_rgb) {
    Strip<S> luma = v, reference = r;
    to_luma<S>(p, false, luma);
    to_luma<S>(p, p.reference_is_luma && p.planes[0].reference.data, reference);
    r = reference;
    set_difference(luma);
    if (writes == Writes::difference) v = luma;  // the overlay needs the picture itself
  } else {
    set_difference(v);
  }
  if (partly) {  // equal, where not counted
    each_piece<S>([&](auto piece, int, int row, auto of) {
      using P = decltype(piece);
      auto &words = of(v), &from = of(r), &size = of(d);
      constexpr int N = sizeof(words) / 4;
      std::uint32_t mask[N];
      expand_piece<S, P>(p, counted, row, mask);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        from[i] = (from[i] & mask[i]) | (words[i] & ~mask[i]);
        size[i] &= mask[i];
      }
    });
  }

  std::uint32_t most[S::rows][S::quads * W], sum = 0;
  greatest<S>(p, d, most);
  unsigned changed[S::rows];
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    unsigned bits = 0;
    if (partly) {
#pragma unroll
      for (int q = 0; q < S::quads; ++q) {
        std::uint32_t mask[W];
        expand_quad<T>(counted[row] >> 4 * q, mask);
#pragma unroll
        for (int w = 0; w < W; ++w) most[row][q * W + w] &= mask[w];
      }
    }
#pragma unroll
    for (int q = 0; q < S::quads; ++q) {
      if constexpr (sizeof(T) == 1) {
        const std::uint32_t word = most[row][q];
        sum = __dp4a(word, 0x01010101u, sum);
        bits |= __dp4a(__vsetgtu4(word, p.threshold), 0x08040201u, 0u) << 4 * q;
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w) {
          const std::uint32_t word = most[row][q * W + w], low = word & 0xffff, high = word >> 16;
          sum += low + high;
          bits |= (unsigned(low > (p.threshold & 0xffff)) | unsigned(high > (p.threshold & 0xffff)) << 1) << (4 * q + 2 * w);
        }
      }
    }
    if (p.foreground && counted[row]) bits = load_bits<S>(p.foreground + (y + row) * p.bits_pitch, x) & counted[row];
    changed[row] = bits;
    if (p.changed && y + row < p.height) store_bits<S>(p.changed + (y + row) * p.bits_pitch, x, bits);
    if (p.count) count_bits<S>(p, tile, y + row, bits, slots);
  }
  if (across) {
    if constexpr (writes == Writes::difference) write_difference<S>(p, x, y, v, r, d);
    if constexpr (writes == Writes::changed) write_changed<S>(p, x, y, v, changed);
  }

#if __CUDA_ARCH__ >= 800
  sum = __reduce_add_sync(~0u, sum);
#else
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
#endif
  if (threadIdx.x % 32 == 0 && sum) atomicAdd(&slots[0], sum);
  __syncthreads();
  if (p.count) store_counts<S>(p, slots);
  if (threadIdx.x == 0) *record_of(p) = slots[0];
}

/// Opens the mask that compare() left as bits; counts, and shows it.
template <class S, Writes writes>
__global__ void __launch_bounds__(S::threads) open_mask(const __grid_constant__ Params p) {
  constexpr int pitch = S::tile_width / 32 + 2;  // words: one beyond each side, as twice the radius is at most 32
  constexpr int most_rows = tile_rows + 4 * diff_max_open_radius, at_once = S::threads / pitch;  // rows
  __shared__ std::uint32_t a[most_rows * pitch], b[most_rows * pitch];
  __shared__ std::uint32_t slots[max_slots + 2];
  const Tile<S> tile;
  const int radius = p.open_radius, rows = tile_rows + 4 * radius, top = tile.y0 - 2 * radius;
  clear_slots<S>(p, slots);

  // A thread stays in one column of words.
  const int row0 = threadIdx.x / pitch, column = threadIdx.x % pitch, word_x = tile.x0 + (column - 1) * 32, left = p.width - word_x;
  const std::uint32_t in_frame = word_x < 0 || left <= 0 ? 0 : left >= 32 ? ~0u : (1u << left) - 1;
  const auto each_row = [&](int first, int last, auto work) {
    if (row0 < at_once)
      for (int row = first + row0; row < last; row += at_once) work(row, row * pitch + column);
    __syncthreads();
  };
  // Nothing erodes from beyond the frame, and nothing dilates from there.
  each_row(0, rows, [&](int row, int at) {
    const int y = top + row;
    a[at] = in_frame && y >= 0 && y < p.height
                ? *reinterpret_cast<const std::uint32_t*>(p.changed + y * p.bits_pitch + word_x / 8) | ~in_frame
                : ~0u;
  });
  const bool before_first = column == 0, after_last = column == pitch - 1;
  each_row(0, rows, [&](int, int at) {
    const std::uint32_t word = a[at], before = before_first ? ~0u : a[at - 1], after = after_last ? ~0u : a[at + 1];
    std::uint32_t kept = word;
    for (int s = 1; s <= radius; ++s) kept &= __funnelshift_l(before, word, s) & __funnelshift_r(word, after, s);
    b[at] = kept;
  });
  each_row(radius, rows - radius, [&](int row, int at) {
    std::uint32_t kept = unsigned(top + row) < unsigned(p.height) ? in_frame : 0;
    for (int s = -radius; s <= radius; ++s) kept &= b[at + s * pitch];
    a[at] = kept;
  });
  each_row(radius, rows - radius, [&](int, int at) {
    const std::uint32_t word = a[at], before = before_first ? 0 : a[at - 1], after = after_last ? 0 : a[at + 1];
    std::uint32_t grown = word;
    for (int s = 1; s <= radius; ++s) grown |= __funnelshift_l(before, word, s) | __funnelshift_r(word, after, s);
    b[at] = grown;
  });
  each_row(2 * radius, rows - 2 * radius, [&](int, int at) {
    std::uint32_t grown = 0;
    for (int s = -radius; s <= radius; ++s) grown |= b[at + s * pitch];
    a[at] = grown;
  });

  const int bit = tile.x - tile.x0;
  unsigned changed[S::rows];
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    const int y = tile.y + row;
    changed[row] = a[(y - top) * pitch + 1 + bit / 32] >> bit % 32 & bits_in_frame<S>(p, tile.x, y);
    count_bits<S>(p, tile, y, changed[row], slots);
  }
  if constexpr (writes == Writes::changed) {
    if (tile.x < p.width) {
      Strip<S> v{};
      if (!p.show_mask || p.planes[0].any_copied) {
        load_source<S>(p, tile.x, tile.y, v);
        each_piece<S>([&](auto, int, int, auto of) { to_values<S>(p, of(v)); });
      }
      write_changed<S>(p, tile.x, tile.y, v, changed);
    }
  }
  __syncthreads();
  store_counts<S>(p, slots);
}

/// The kernels of a plan, and the tiles they cut a frame into.
struct Kernels {
  const void* compare = nullptr;  ///< takes Params, as does `open`
  const void* open = nullptr;     ///< null: the mask is not opened
  int tile_width = 0, threads = 0;
};
template <class S, bool background>
const void* compare_of(Writes writes) {
  if (writes == Writes::nothing) return reinterpret_cast<const void*>(compare<S, background, Writes::nothing>);
  if (writes == Writes::difference) return reinterpret_cast<const void*>(compare<S, background, Writes::difference>);
  return reinterpret_cast<const void*>(compare<S, background, Writes::changed>);
}
template <class S>
Kernels kernels_of(const DiffParams& params) {
  const bool shows_changed = params.output == DiffOutput::mask || params.output == DiffOutput::overlay,
             opens = params.open_radius > 0;
  const Writes writes = params.output == DiffOutput::difference ? Writes::difference
                        : shows_changed && !opens               ? Writes::changed
                                                                : Writes::nothing;
  Kernels kernels;
  kernels.compare = params.reference == DiffReference::background ? compare_of<S, true>(writes) : compare_of<S, false>(writes);
  if (opens) {
    kernels.open = shows_changed ? reinterpret_cast<const void*>(open_mask<S, Writes::changed>)
                                 : reinterpret_cast<const void*>(open_mask<S, Writes::nothing>);
  }
  kernels.tile_width = S::tile_width;
  kernels.threads = S::threads;
  return kernels;
}
template <typename T>
Kernels choose(const FormatInfo& format, const DiffParams& params) {
  const ChannelSet &first = format.sets[0], &rest = format.sets[1];
  if (first.channels == 4) return kernels_of<Shape<T, 4, 1, 1, 0, 0>>(params);
  if constexpr (sizeof(T) == 1) {
    if (first.channels == 3) return kernels_of<Shape<T, 3, 1, 1, 0, 0>>(params);
    if (first.channels == 2) return kernels_of<Shape<T, 2, 1, 1, 0, 0>>(params);
  }
  if (format.set_count == 1) return kernels_of<Shape<T, 1, 1, 1, 0, 0>>(params);
  if (format.set_count == 2) return kernels_of<Shape<T, 1, 2, 2, 1, 1>>(params);
  if (rest.shift_x == 0) return kernels_of<Shape<T, 1, 1, 3, 0, 0>>(params);
  return rest.shift_y == 0 ? kernels_of<Shape<T, 1, 1, 3, 1, 0>>(params) : kernels_of<Shape<T, 1, 1, 3, 1, 1>>(params);
}

/// Rectangles of one colour.
struct Fill {
  unsigned char* data;
  std::ptrdiff_t pitch;
  int width, rows, channels;
  std::uint16_t words[4];  ///< as stored
  std::uint8_t own;        ///< bit c: channel c is written
};
struct Fills {
  Fill fills[64];
};

template <typename T>
__global__ void fill_rects(const __grid_constant__ Fills fills) {
  const Fill& fill = fills.fills[blockIdx.x];
  for (int at = threadIdx.x; at < fill.width * fill.rows; at += blockDim.x) {
    const int y = at / fill.width, x = at - y * fill.width;
    T* const pixel = reinterpret_cast<T*>(fill.data + y * fill.pitch) + std::ptrdiff_t(x) * fill.channels;
    for (int c = 0; c < fill.channels; ++c)
      if (fill.own >> c & 1) pixel[c] = T(fill.words[c]);
  }
}

/// Bytes of a row of a plane that belong to the picture.
int picture_row_bytes(const Geometry& geometry, int plane) {
  const FormatInfo& format = info(geometry.format);
  int bytes = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (set.plane != plane) continue;
    int last = set.channels;
    while (set.roles[last - 1] == Role::other) --last;
    bytes = std::max(bytes, ((geometry.grid(set).width - 1) * set.channels + last) * format.sample_bytes());
  }
  return bytes;
}

View view_of(const Plane& plane) { return {static_cast<unsigned char*>(plane.data), plane.pitch}; }
std::uint8_t alignment_of(const Plane& plane) {
  int alignment = 16;
  while (!aligned_to(plane.data, plane.pitch, alignment)) alignment /= 2;
  return std::uint8_t(alignment);
}

class CudaDiff final : public Diff {
 public:
  explicit CudaDiff(DiffPlan plan)
      : Diff(std::move(plan), Backend::cuda),
        kernels_(info(geometry().format).sample_bytes() == 1
                     ? choose<std::uint8_t>(info(geometry().format), this->plan().params)
                     : choose<std::uint16_t>(info(geometry().format), this->plan().params)) {}

  /// With the context current.
  Status prepare() {
    const FormatInfo& format = info(geometry().format);
    const DiffParams& params = this->plan().params;
    const std::size_t bits_bytes = plan().mask_pitch() * geometry().height;
    const bool background = params.reference == DiffReference::background, mog2 = params.reference == DiffReference::mog2;
    const auto layout = cudavision::detail::frame_layout(plan());

    // Two blocks of memory: the ring and the mixture or the background, which another plan may take over; and bits.
    std::size_t kept = 0, bits = 0;
    const auto take = [](std::size_t& block, std::size_t bytes) { return std::exchange(block, block + (bytes + 255) / 256 * 256); };
    const int frames = params.borrow && !mog2 ? 0 : cudavision::detail::ring_size(params);
    std::vector<std::size_t> ring;
    for (int i = 0; i < frames; ++i) ring.push_back(take(kept, layout.bytes));
    const int channels = cudavision::detail::mixture_channels(plan());
    const std::size_t model_bytes =
        mog2 ? cudavision::detail::mog2::state_bytes(geometry().width, geometry().height, channels) : 2 * layout.bytes;
    const std::size_t model = background || mog2 ? take(kept, model_bytes) : 0;
    const std::size_t counted = plan().counted_bits.empty() ? 0 : take(bits, bits_bytes);
    const std::size_t changed = params.open_radius > 0 ? take(bits, bits_bytes) : 0;
    const std::size_t foreground = mog2 ? take(bits, bits_bytes) : 0;
    if (Status status = kept_.allocate(kept); !status.ok()) return status;
    if (Status status = bits_.allocate(bits); !status.ok()) return status;

    ring_.resize(std::size_t(cudavision::detail::ring_size(params)));
    for (int i = 0; i < frames; ++i) ring_[i] = layout.at(geometry(), kept_.data() + ring[i]);
    if (background) {
      for (int plane = 0; plane < 3; ++plane) {
        if (layout.pitch[plane] > 0)
          params_.planes[plane].background = {kept_.data() + model + 2 * layout.offset[plane], 2 * layout.pitch[plane]};
      }
    }
    if (mog2) mixture_ = kept_.data() + model;
    if (!plan().counted_bits.empty()) params_.counted = bits_.data() + counted;
    if (params.open_radius > 0) params_.changed = bits_.data() + changed;
    if (mog2) foreground_ = bits_.data() + foreground;
    if (kept + bits > 0) {
      FillStream stream;  // what pads rows is read, though it counts for nothing
      if (kept > 0) stream.clear(kept_.data(), kept);
      if (bits > 0) stream.clear(bits_.data(), bits);
      if (params_.counted) stream.upload(bits_.data() + counted, plan().counted_bits.data(), bits_bytes);
      if (Status status = stream.finish(); !status.ok()) return status;
    }

    set_params();
    tiles_y_ = (geometry().height + tile_rows - 1) / tile_rows;
    if (Status status = records_.allocate(frame_records() * params.in_flight); !status.ok()) return status;

    // Asking loads the code now: a launch must not.
    const void* const fill = format.sample_bytes() == 1 ? reinterpret_cast<const void*>(fill_rects<std::uint8_t>)
                                                        : reinterpret_cast<const void*>(fill_rects<std::uint16_t>);
    for (const void* kernel : {kernels_.compare, kernels_.open, fill}) {
      if (!kernel) continue;
      cudaFuncAttributes attributes;
      if (Status status = check(cudaFuncGetAttributes(&attributes, kernel), "cannot load the difference kernel"); !status.ok())
        return status;
    }
    return mog2 ? load_mog2(format.sample_bytes(), channels) : Status();
  }

 private:
  void set_params() {
    const FormatInfo& format = info(geometry().format);
    const DiffParams& params = plan().params;
    Params& p = params_;
    p.width = geometry().width;
    p.height = geometry().height;
    p.tiles_x = (p.width + kernels_.tile_width - 1) / kernels_.tile_width;
    p.shift = format.shift;
    p.threshold = std::uint32_t(plan().threshold) * (format.sample_bytes() == 1 ? 0x1010101u : 0x10001u);
    p.show = plan().show;
    p.show_mask = params.output == DiffOutput::mask;
    p.rate = plan().rate;
    p.luma_of_rgb = plan().luma_of_rgb();
    p.reference_is_luma = p.luma_of_rgb && params.reference == DiffReference::mog2;
    p.luma_second = format.sets[0].roles[0] == Role::other;
    p.bits_pitch = std::ptrdiff_t(plan().mask_pitch());
    p.open_radius = std::uint8_t(params.open_radius);
    p.cell_size = std::uint32_t(params.cell_size);
    p.cell_reciprocal = std::uint32_t(((1ull << 32) + p.cell_size - 1) / p.cell_size);
    p.slots_x = slots(kernels_.tile_width);
    p.slots = p.slots_x * slots(tile_rows);
    p.record_bytes = (4 + 2 * p.slots + 31) / 32 * 32;
    set_rules(format);
  }

  /// Most cells that so many neighbouring pixels of a tile lie in.
  int slots(int pixels) const {
    const int cell = plan().params.cell_size;
    return pixels % cell == 0 ? pixels / cell : (pixels + cell - 2) / cell + 1;
  }

  void set_rules(const FormatInfo& format) {
    const RoleValues white = cudavision::detail::white_values(format), black = cudavision::detail::black_values(format),
                     tint = cudavision::detail::tint_values(format);
    const int bits = 8 * format.sample_bytes();
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      PlaneJob& job = params_.planes[set.plane];
      job.row_bytes = picture_row_bytes(geometry(), set.plane);
      for (int c = 0; c < set.channels; ++c) {
        const Role role = set.roles[c];
        if (role == Role::other) continue;
        if (role == Role::red) params_.rgb[0] = format.set_count == 1 ? c : i;
        if (role == Role::green) params_.rgb[1] = format.set_count == 1 ? c : i;
        if (role == Role::blue) params_.rgb[2] = format.set_count == 1 ? c : i;
        const bool copied = role == Role::alpha || role == Role::padding, compared = plan().compares(role);
        const bool about = !copied && (is_chroma(role) || plan().show.mode == DiffMode::signed_);
        job.any_copied |= copied;
        job.any_compared |= compared;
        job.any_about_middle |= about;
        for (int j = 0; j * set.channels < 16; ++j) {
          const int at = (j * set.channels + c) * bits;
          if (at >= 8 * 32) break;
          Rule& rule = job.rules[at / 32];
          const auto put = [&](std::uint32_t& word, unsigned value) { word |= std::uint32_t(value) << at % 32; };
          const unsigned all = (1u << bits) - 1;
          put(rule.copied, copied ? all : 0);
          put(rule.compared, compared ? all : 0);
          put(rule.about_middle, about ? all : 0);
          put(rule.white, white[std::size_t(role)]);
          put(rule.black, black[std::size_t(role)]);
          put(rule.tint, tint[std::size_t(role)]);
        }
      }
    }
  }

  bool swap_reference(Diff& other) override {
    auto* const previous = dynamic_cast<CudaDiff*>(&other);
    if (!previous) return false;
    kept_.swap(previous->kept_);
    std::swap(mixture_, previous->mixture_);
    for (std::size_t plane = 0; plane < std::size(params_.planes); ++plane)
      std::swap(params_.planes[plane].background, previous->params_.planes[plane].background);
    return true;
  }

  Status compute(const DiffFrame& frame, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    const DiffParams& params = plan().params;
    Params p = params_;
    p.begin = !frame.compared;
    p.records = records_.data() + frame_records() * std::size_t(frame.slot);
    for (int plane = 0; plane < format.planes; ++plane) {
      PlaneJob& job = p.planes[plane];
      const Plane &src = frame.src.planes[plane], &dst = frame.dst.planes[plane], &reference = frame.reference.planes[plane];
      if (job.any_compared || job.any_copied || params.output == DiffOutput::overlay) {
        job.src = view_of(src);
        job.src_alignment = alignment_of(src);
      }
      if (params.output != DiffOutput::none) {
        job.dst = view_of(dst);
        job.dst_alignment = alignment_of(dst);
      }
      if (frame.compared && job.any_compared && reference.data) {
        const bool own = !params.borrow || params.reference == DiffReference::mog2;
        job.reference = view_of(reference);
        job.reference_alignment = alignment_of(reference);
        job.reference_bytes = own ? int(reference.pitch) : job.row_bytes;
      }
      job.keep = view_of(frame.keep.planes[plane]);
    }

    if (params.reference == DiffReference::mog2) {
      auto job = cudavision::detail::mixture_job(plan(), frame);
      cudavision::detail::mog2::set_state(job, mixture_);
      Status status = launch_mog2(job, format.sample_bytes(), cudavision::detail::mixture_channels(plan()), foreground_,
                                  int(p.bits_pitch), queue.stream);
      if (!status.ok()) return status;
      if (frame.compared) p.foreground = foreground_;
    }
    p.count = !kernels_.open;
    Status status = launch(kernels_.compare, p, queue);
    return kernels_.open && status.ok() ? launch(kernels_.open, p, queue) : status;
  }

  Status launch(const void* kernel, Params& p, Queue queue) const {
    void* arguments[] = {&p};
    return check(cudaLaunchKernel(kernel, dim3(unsigned(p.tiles_x), unsigned(tiles_y_)), dim3(unsigned(kernels_.threads)),
                                  arguments, 0, queue.stream),
                 "cannot launch the difference");
  }

  std::size_t frame_records() const { return std::size_t(params_.tiles_x) * tiles_y_ * params_.record_bytes; }

  std::uint64_t collect(int slot, std::vector<std::uint32_t>& changed) const override {
    const Params& p = params_;
    const unsigned char* record = records_.data() + frame_records() * std::size_t(slot);
    const CellGrid& cells = plan().cells;
    std::uint64_t sum = 0;
    const int cell = plan().params.cell_size;
    for (int tile = 0; tile < p.tiles_x * tiles_y_; ++tile, record += p.record_bytes) {
      std::uint32_t of_tile;
      std::memcpy(&of_tile, record, sizeof of_tile);
      sum += of_tile;
      const auto* counts = reinterpret_cast<const std::uint16_t*>(record + 4);
      const int first_x = tile % p.tiles_x * kernels_.tile_width / cell, first_y = tile / p.tiles_x * tile_rows / cell;
      const int across = std::min(p.slots_x, cells.width - first_x), down = std::min(p.slots / p.slots_x, cells.height - first_y);
      for (int y = 0; y < down; ++y) {
        std::uint32_t* const row = &changed[std::size_t(first_y + y) * cells.width + first_x];
        for (int x = 0; x < across; ++x) row[x] += counts[y * p.slots_x + x];
      }
    }
    return sum;
  }

  Status fill(const Image& dst, const std::vector<DiffFill>& fills, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    const RoleValues values = cudavision::detail::box_values(format);
    constexpr std::size_t at_once = std::size(Fills{}.fills);
    for (std::size_t begin = 0; begin < fills.size(); begin += at_once) {
      Fills job{};
      const int count = int(std::min(at_once, fills.size() - begin));
      for (int i = 0; i < count; ++i) {
        const DiffFill& from = fills[begin + i];
        const ChannelSet& set = format.sets[from.set];
        const Plane& plane = dst.planes[set.plane];
        Fill& to = job.fills[i];
        to.data = static_cast<unsigned char*>(plane.data) + from.rect.y * plane.pitch +
                  std::ptrdiff_t(from.rect.x) * set.channels * format.sample_bytes();
        to.pitch = plane.pitch;
        to.width = from.rect.width;
        to.rows = from.rect.height;
        to.channels = set.channels;
        for (int c = 0; c < set.channels; ++c) {
          if (set.roles[c] == Role::other) continue;
          to.own |= 1 << c;
          to.words[c] = std::uint16_t(values[std::size_t(set.roles[c])] << format.shift);
        }
      }
      if (format.sample_bytes() == 1)
        fill_rects<std::uint8_t><<<count, 256, 0, queue.stream>>>(job);
      else
        fill_rects<std::uint16_t><<<count, 256, 0, queue.stream>>>(job);
      if (Status status = check(cudaGetLastError(), "cannot launch the drawing of boxes"); !status.ok()) return status;
    }
    return {};
  }

  const Kernels kernels_;
  DeviceMemory kept_, bits_;
  HostMemory records_;
  Params params_;
  int tiles_y_ = 0;
  unsigned char *foreground_ = nullptr, *mixture_ = nullptr;
};

}  // namespace
}  // namespace cuda::diff

namespace detail {

Result<std::unique_ptr<Diff>> make_diff_cuda(DiffPlan plan) {
  auto made = std::make_unique<cuda::diff::CudaDiff>(std::move(plan));
  if (Status status = made->prepare(); !status.ok()) return status;
  return std::unique_ptr<Diff>(std::move(made));
}

}  // namespace detail
}  // namespace cudavision
