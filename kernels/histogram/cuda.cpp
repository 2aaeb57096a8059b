// SPDX-License-Identifier: LGPL-2.1-or-later
// Histograms. Two kernels count: one for 16-bit samples with very many entries (cuda_words.cu), one for all other
// samples (cuda_pixels.cu). The last block of a frame, or a separate kernel, gathers the sums into bins.
//
//   frame: sets       blocks: at most one per          device memory                   results
//   +-------+                 multiprocessor
//   | Y     |    ->   count_words    |
//   |       |                        |->  sums [copy][table][entry]  ->  counts [channel][bin]
//   +-------+                        |         gather_entries_of()
//   | Cb Cr |    ->   count_pixels   |
//   +-------+
//
// Where to change what
//   another sample type    pixel_kernel() (cuda_pixels.cu): its instance; Chunk (cuda_chunks.cuh); add() in count_job()
//   another luma           luma_of() (kernels/core/luma.hpp)
//   another result         Gather (cuda_params.cuh): where it goes;
//                          gather_entries_of() (cuda_gather.cuh): bins from entries
//   another channel        resolve() (histogram.cpp): its table; pixel_tables() (cuda_schedule.cpp): where a set counts
//                          it
//   another block shape    Tuning (cuda_tuning.hpp): threads, blocks, loads in advance;
//                          cuda_schedule.cpp divides samples by them
//   which kernel counts    counts_words() (cuda_schedule.cpp)
#include <algorithm>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/overlap.hpp"
#include "kernels/histogram/counting.hpp"
#include "kernels/histogram/cuda_params.cuh"

namespace cudavision::histogram {
namespace {

class CudaHistogram final : public Counting {
 public:
  CudaHistogram(Plan plan, bool results) : Counting(std::move(plan), Backend::cuda, results) {}

  /// The context must be current.
  Status prepare() {
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    const FormatInfo& format = info(geometry().format);
    overlap_ = device.value().major >= 9;
    limits_ = limits_of(device.value().multiprocessors, device.value().shared_limit);
    if (Status status = allocate(); !status.ok()) return status;
    pixel_kernel_ = pixel_kernel(format, plan().three_planes);
    const char* what = "cannot load the histogram kernel";
    if (Status status = cuda::load_kernel(pixel_kernel_, what, limits_.shared_bytes); !status.ok()) return status;
    if (Status status = cuda::load_kernel(gather_kernel(), what); !status.ok()) return status;
    if (Status status = cuda::load_kernel(word_kernel(), what, limits_.shared_bytes); !status.ok()) return status;
    params_.bins = plan().by_value() ? 1 : plan().bins;
    params_.bin_shift = plan().by_value() ? 0 : format.depth;
    params_.weights = plan().weights;
    return {};
  }

  const std::uint32_t* latest() const override { return counts_.data<std::uint32_t>(); }

 private:
  /// Allocates the sums, the counts and the results. The ticket is stored after the sums.
  Status allocate() {
    const int copies = gathers_apart(plan()) ? 1 : tuning.sum_copies, copy_entries = plan().tables * plan().fine;
    const std::size_t sums = std::size_t(copies) * copy_entries, word = sizeof(std::uint32_t);
    if (Status status = sums_.allocate((sums + 1) * word); !status.ok()) return status;
    if (Status status = counts_.allocate(words() * word); !status.ok()) return status;
    if (Status status = results_.allocate(words() * slots() * word); !status.ok()) return status;
    gather_ = {sums_.data<std::uint32_t>(),
               counts_.data<std::uint32_t>(),
               nullptr,
               sums_.data<std::uint32_t>() + sums,
               copies,
               copy_entries,
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
    gather_.host = slots() > 0 ? results_.data<std::uint32_t>() + words() * slot : nullptr;
    std::size_t rects = 0;
    for (int i = 0; i < info(geometry().format).set_count; ++i)
      if (plan().counts(info(geometry().format).sets[i])) rects = std::max(rects, pieces[i].size());
    const bool apart = gathers_apart(plan());
    for (std::size_t from = 0; from == 0 || from < rects; from += max_rects) {
      const bool last = from + max_rects >= rects && !apart;
      const WordLaunch words = schedule_words(plan(), limits_, pieces, from);
      const PixelLaunch pixels = schedule_pixels(plan(), limits_, pieces, from);
      if (words.blocks > 0)
        if (Status status = launch_words(src, words, last && !pixels.any, queue); !status.ok()) return status;
      if (pixels.any || (last && words.blocks == 0))
        if (Status status = launch_pixels(src, pixels, last, queue); !status.ok()) return status;
    }
    if (!apart) return {};
    const int entries = plan().tables * plan().bins;
    const int blocks =
        std::min((entries + tuning.gather_threads - 1) / tuning.gather_threads, limits_.multiprocessors * 8);
    return cuda::check(cuda::launch_overlapping(gather_kernel(), blocks, tuning.gather_threads, 0,
                                                overlap_ && rects > 0, &gather_, queue.stream),
                       "cannot launch the histogram");
  }

  cuda::SetView view(const Image& src, int set) const {
    return cuda::make_view(src, src, set, geometry().grid(info(geometry().format).sets[set]), Border::replicate, {},
                           false);
  }

  /// `gathers`: the last block gathers.
  Status launch_words(const Image& src, const WordLaunch& schedule, bool gathers, Queue queue) {
    const FormatInfo& format = info(geometry().format);
    for (int i = 0; i < 3; ++i) {
      WordJob& job = words_.jobs[i];
      job.share = schedule.shares[i];
      if (i >= schedule.jobs) continue;
      const ChannelSet& set = format.sets[schedule.sets[i]];
      job.view = view(src, schedule.sets[i]);
      job.access = access_bytes(src.planes[set.plane].data, src.planes[set.plane].pitch);
      job.table = plan().table_of[std::size_t(set.roles[0])];
    }
    words_.gather = gather_;
    words_.gather.here = gathers;
    return launch(word_kernel(), schedule.blocks, tuning.pixel_threads, word_counter_bytes, &words_, queue);
  }

  /// `gathers`: the last block gathers.
  Status launch_pixels(const Image& src, const PixelLaunch& schedule, bool gathers, Queue queue) {
    const FormatInfo& format = info(geometry().format);
    for (int i = 0; i < 3; ++i) {
      PixelJob& job = params_.jobs[i];
      job.tables = schedule.tables[i];
      job.share = schedule.shares[i];
      if (job.share.rect_count == 0) continue;
      job.access = 16;
      for (int j = 0; j < (plan().three_planes ? 3 : 1); ++j) {
        const ChannelSet& set = format.sets[i + j];
        job.views[plan().three_planes ? int(set.roles[0]) - int(Role::red) : 0] = view(src, i + j);
        job.access = std::min(job.access, access_bytes(src.planes[set.plane].data, src.planes[set.plane].pitch));
      }
    }
    params_.gather = gather_;
    params_.gather.here = gathers;
    return launch(pixel_kernel_, schedule.blocks, tuning.pixel_threads, schedule.shared_bytes, &params_, queue);
  }

  static Status launch(const void* kernel, int blocks, int threads, std::size_t shared_bytes, void* params,
                       Queue queue) {
    void* arguments[] = {params};
    return cuda::check(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, shared_bytes, queue.stream),
                       "cannot launch the histogram");
  }

  cuda::DeviceMemory sums_, counts_;
  cuda::HostMemory results_;
  Limits limits_;
  bool overlap_ = false;  ///< whether the device can start a launch before the previous one ends
  const void* pixel_kernel_ = nullptr;
  Gather gather_{};
  WordParams words_{};
  PixelParams params_{};
};

}  // namespace

Result<std::unique_ptr<Counting>> make_cuda(Plan plan, bool results) {
  auto histogram = std::make_unique<CudaHistogram>(std::move(plan), results);
  if (Status status = histogram->prepare(); !status.ok()) return status;
  return std::unique_ptr<Counting>(std::move(histogram));
}

}  // namespace cudavision::histogram
