// SPDX-License-Identifier: LGPL-2.1-or-later
// Histograms. Two kernels count: one for large planes of bytes (cuda_bytes.cu), one for all other samples (cuda_pixels.cu). The
// last block of a frame, or a kernel of its own (cuda_gather.cu), gathers the sums into bins.
//
//   frame: sets       blocks                           device memory            results
//   +-------+
//   | Y     |    ->   count_bytes:   one block a    |
//   |       |         multiprocessor                |->  sums [table][entry]  ->  counts [channel][bin]
//   +-------+                                       |         gather_entries_of()
//   | Cb Cr |    ->   count_pixels:  blocks by      |
//   +-------+         number of samples
//
// Where to change what
//   another sample type    pixel_kernel() (cuda_pixels.cu): its instance; Quad (kernels/cuda/rows.cuh); entry_of() in count_job()
//   another luma           luma_of() (kernels/core/luma.hpp)
//   another result         Gather (cuda_params.cuh): where it goes; gather_entries_of() (cuda_gather.cuh): bins from entries
//   another channel        resolve() (histogram.cpp): its table; pixel_tables() (cuda_schedule.cpp): where a set counts it
//   another block shape    Tuning (cuda_tuning.hpp): threads, blocks, loads in advance; cuda_schedule.cpp divides samples by them
//   which kernel counts    counts_bytes() (cuda_schedule.cpp)
#include <algorithm>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/histogram/counting.hpp"
#include "kernels/histogram/cuda_kernels.hpp"
#include "kernels/histogram/cuda_params.cuh"

namespace cudavision::histogram {
namespace {

class CudaHistogram final : public Counting {
 public:
  CudaHistogram(Plan plan, bool results) : Counting(std::move(plan), Backend::cuda, results) {}

  /// With the context current.
  Status prepare() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    const FormatInfo& format = info(geometry().format);
    limits_ = limits_of(format, device.value().multiprocessors, device.value().shared_limit);
    if (Status status = allocate(); !status.ok()) return status;
    pixel_kernel_ = pixel_kernel(format, plan().three_planes);
    const char* what = "cannot load the histogram kernel";
    if (Status status = cuda::load_kernel(pixel_kernel_, what, limits_.shared_bytes); !status.ok()) return status;
    if (Status status = cuda::load_kernel(gather_kernel(), what); !status.ok()) return status;
    if (limits_.byte_warps > 0)
      if (Status status = cuda::load_kernel(byte_kernel(), what, limits_.byte_warps * byte_warp_bytes); !status.ok()) return status;
    params_.bins = plan().by_value() ? 1 : plan().bins;
    params_.bin_shift = plan().by_value() ? 0 : format.depth;
    params_.weights = plan().weights;
    return {};
  }

  const std::uint32_t* latest() const override { return counts_.data<std::uint32_t>(); }

 private:
  /// Allocates the sums, the counts and the results. The ticket follows the sums.
  Status allocate() {
    const std::size_t sums = std::size_t(plan().tables) * plan().fine, word = sizeof(std::uint32_t);
    if (Status status = sums_.allocate((sums + 1) * word); !status.ok()) return status;
    if (Status status = counts_.allocate(words() * word); !status.ok()) return status;
    if (Status status = results_.allocate(words() * slots() * word); !status.ok()) return status;
    gather_ = {sums_.data<std::uint32_t>(),
               counts_.data<std::uint32_t>(),
               nullptr,
               sums_.data<std::uint32_t>() + sums,
               plan().tables,
               plan().fine,
               plan().bins,
               int(plan().channels.size()),
               info(geometry().format).depth,
               plan().by_value() && plan().bins != plan().fine,
               false,
               {}};
    std::copy(plan().table.begin(), plan().table.end(), gather_.table);
    cuda::FillStream stream;
    stream.clear(sums_.data(), (sums + 1) * word);
    stream.clear(counts_.data(), words() * word);
    return stream.finish();
  }

  const std::uint32_t* slot_counts(int slot) const override { return results_.data<std::uint32_t>() + words() * slot; }

  Status count(const Image& src, const SetPieces& pieces, int slot, Queue queue) override {
    const FormatInfo& format = info(geometry().format);
    gather_.host = slots() > 0 ? results_.data<std::uint32_t>() + words() * slot : nullptr;
    bool by_bytes[3] = {};
    std::size_t rects = 0;
    for (int i = 0; i < format.set_count; ++i) {
      if (!plan().counts(format.sets[i])) continue;
      const Plane& plane = src.planes[format.sets[i].plane];
      by_bytes[i] = aligned_to(plane.data, plane.pitch, 16) && counts_bytes(plan(), i, pieces[i], limits_);
      rects = std::max(rects, pieces[i].size());
    }
    const bool apart = gathers_apart(plan());
    for (std::size_t from = 0; from == 0 || from < rects; from += max_rects) {
      const bool last = from + max_rects >= rects && !apart;
      const ByteLaunch bytes = schedule_bytes(plan(), limits_, pieces, from, by_bytes);
      const PixelLaunch pixels = schedule_pixels(plan(), limits_, pieces, from, by_bytes);
      if (bytes.blocks > 0)
        if (Status status = launch_bytes(src, bytes, last && !pixels.any, queue); !status.ok()) return status;
      if (pixels.any || (last && bytes.blocks == 0))
        if (Status status = launch_pixels(src, pixels, last, queue); !status.ok()) return status;
    }
    if (!apart) return {};
    const int entries = plan().tables * plan().bins;
    const int blocks = std::min((entries + tuning.gather_threads - 1) / tuning.gather_threads, limits_.multiprocessors * 8);
    return launch(gather_kernel(), blocks, tuning.gather_threads, 0, &gather_, queue);
  }

  /// `gathers`: the last block gathers.
  Status launch_bytes(const Image& src, const ByteLaunch& schedule, bool gathers, Queue queue) {
    const FormatInfo& format = info(geometry().format);
    for (int i = 0; i < 3; ++i) {
      ByteJob& job = bytes_.jobs[i];
      job.share = schedule.shares[i];
      if (i >= schedule.jobs) continue;
      const ChannelSet& set = format.sets[schedule.sets[i]];
      job.data = static_cast<const unsigned char*>(src.planes[set.plane].data);
      job.pitch = src.planes[set.plane].pitch;
      job.table = plan().table_of[std::size_t(set.roles[0])];
    }
    bytes_.gather = gather_;
    bytes_.gather.here = gathers;
    return launch(byte_kernel(), schedule.blocks, limits_.byte_warps * 32, std::size_t(limits_.byte_warps) * byte_warp_bytes,
                  &bytes_, queue);
  }

  /// `gathers`: the last block gathers.
  Status launch_pixels(const Image& src, const PixelLaunch& schedule, bool gathers, Queue queue) {
    const FormatInfo& format = info(geometry().format);
    const auto view = [&](int i) {
      return cuda::make_view(src, src, i, geometry().grid(format.sets[i]), Border::replicate, {}, false);
    };
    for (int i = 0; i < 3; ++i) {
      PixelJob& job = params_.jobs[i];
      job.tables = schedule.tables[i];
      job.share = schedule.shares[i];
      if (job.share.rect_count > 0 && !plan().three_planes) job.views[0] = view(i);
    }
    if (plan().three_planes)
      for (int i = 0; i < 3; ++i) params_.jobs[0].views[int(format.sets[i].roles[0]) - int(Role::red)] = view(i);
    params_.copies = schedule.copies;
    params_.gather = gather_;
    params_.gather.here = gathers;
    return launch(pixel_kernel_, schedule.blocks, tuning.pixel_threads, schedule.shared_bytes, &params_, queue);
  }

  static Status launch(const void* kernel, int blocks, int threads, std::size_t shared_bytes, void* params, Queue queue) {
    void* arguments[] = {params};
    return cuda::check(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, shared_bytes, queue.stream),
                       "cannot launch the histogram");
  }

  cuda::DeviceMemory sums_, counts_;
  cuda::HostMemory results_;
  Limits limits_;
  const void* pixel_kernel_ = nullptr;
  Gather gather_{};
  ByteParams bytes_{};
  PixelParams params_{};
};

}  // namespace

Result<std::unique_ptr<Counting>> make_cuda(Plan plan, bool results) {
  auto histogram = std::make_unique<CudaHistogram>(std::move(plan), results);
  if (Status status = histogram->prepare(); !status.ok()) return status;
  return std::unique_ptr<Counting>(std::move(histogram));
}

}  // namespace cudavision::histogram
