// SPDX-License-Identifier: LGPL-2.1-or-later
// Summed-area tables. The frame is divided into tiles. Every tile takes two steps:
//
//   1. sum:    the sums of the tile's rows, of its columns, and of all its samples are written to scratch memory
//              (cuda_sum_tile.cuh).
//   2. write:  a block adds up the sums of the preceding tiles (cuda_add_up.cuh), and writes the tile's entries
//              (cuda_write_tile.cuh).
//
//   frame: tiles of 256 samples × 8 warps · R rows   tile: warps one above the other   lane l of a warp, in each row:
//   +------------+------------+------------+         +--------------------------+
//   | tile (0,0) | tile (1,0) | tile (2,0) |         | warp 0: R rows           |      samples   4l …   4l + 3
//   +------------+------------+------------+         | warp 1: R rows           |      samples 128 + 4l … 128 + 4l + 3
//   | tile (0,1) | tile (1,1) | tile (2,1) |         | …                        |
//   +------------+------------+------------+         +--------------------------+
//
// Padded tables have a zero row and a zero column. The rows of tiles are rows of the table: row y holds the samples of
// row y − 1, and the first row loads zeros. The columns of tiles are samples: the entry of column x is written to x +
// 1. Tiles of padded tables, and of tables whose rows may begin inside a sector of memory, overlap by eight columns
// (cuda_store.cuh).
//
// A frame is one launch. One block does both steps of a tile, or two blocks do one step each (cuda_tables.cu).
//
// Where to change what
//   another sample type    SampleQuad (cuda_quads.cuh): arithmetic; load_rows(), put_quad() (cuda_load.cuh);
//                          tables_kernel() (cuda_tables.cu): its instance
//   another output type    SumType and entry_bytes() (integral.hpp); write_tile() (cuda_write_tile.cuh): entry_bytes
//                          and the branches on job.type; tables_kernel() (cuda_tables.cu) and sum_bytes
//                          (cuda_schedule.cpp): whether it is summed in 32 or 64 bits; cuda_store.cuh, if an entry has
//                          neither 4 nor 8 bytes; cpu.cpp. Other lists are in the order of SumType:
//                          gst/elements/integral*.cpp
//   another function of    SampleQuad::value(), prefix(), sum() and Columns, which can square samples
//     the samples
//   another block shape    Tuning (cuda_tuning.hpp): warps, rows of a warp; max_warp_rows() limits them. The width of
//                          256 is fixed: 32 lanes of two quads
//   one or two blocks      Tuning: apart_from_…, ahead
//     for a tile
//   another format         nothing, if core/format.cpp has it. Exception: interleaved RGB with a depth of 9 to 15 bits.
//                          unpack_pixels() (cuda_load.cuh) computes luma of stored words, so call sample_of() on each
//                          of them there first
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/cuda/overlap.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/integral/cuda_schedule.hpp"

namespace cudavision::integral {
namespace {

/// Sets the fields of a job that depend on the frame: its samples and its table.
void set_frame(SumJob& job, const Image& src, const TableSource& source, const Plane& table) {
  const FormatInfo& format = info(src.geometry.format);
  constexpr Role rgb[] = {Role::red, Role::green, Role::blue};
  job.luma = source.luma;
  for (int c = 0; c < (source.luma ? 3 : 1); ++c) {
    const TableSource from = source.luma ? find_role(format, rgb[c]) : source;
    const ChannelSet& set = format.sets[from.set];
    const Plane& plane = src.planes[set.plane];
    job.src[c] = static_cast<const unsigned char*>(plane.data) + from.channel * format.sample_bytes();
    job.src_pitch[c] = plane.pitch;
    job.step = set.channels * format.sample_bytes();
    job.channel[c] = from.channel;
    const int alignment = set.channels == 4 ? 16 : set.channels == 3 && format.sample_bytes() == 1 ? 4 : 0;
    const bool pixels = alignment > 0 && !set.shares_plane() && aligned_to(plane.data, plane.pitch, alignment);
    job.pixels = pixels ? static_cast<const unsigned char*>(plane.data) : nullptr;
  }
  job.quads = !job.luma && job.step == format.sample_bytes() && aligned_to(job.src[0], job.src_pitch[0], 4 * job.step);
  job.whole_quads = job.width % 4 == 0;
  job.shift = format.shift;
  job.max_value = format.max_value();
  job.dst = static_cast<unsigned char*>(table.data);
  job.dst_pitch = table.pitch;
  const int bytes = entry_bytes(job.type);
  const auto begin = reinterpret_cast<std::uintptr_t>(job.dst) + job.zero_line * bytes,
             step = std::uintptr_t(table.pitch);
  job.row_alignment = begin % 32 == 0 && step % 32 == 0                                ? RowAlignment::aligned
                      : job.overlap && bytes == 4 && begin % 16 == 4 && step % 16 == 4 ? RowAlignment::stepped
                                                                                       : RowAlignment::other;
}

/// Computes all sums of a plan, or all sums of squares.
class TableGroup {
 public:
  Status prepare(const Plan& plan, bool squared) {
    schedule_ = make_schedule(plan, squared);
    if (schedule_.tables.empty()) return {};
    if (Status status = scratch_.allocate(schedule_.scratch_bytes); !status.ok()) return status;
    set_scratch(schedule_, scratch_.data());
    cuda::FillStream fill;
    fill.clear(scratch_.data(), schedule_.scratch_bytes);
    if (Status status = fill.finish(); !status.ok()) return status;
    const auto device = cuda::current_device();
    if (!device.ok()) return device.error();
    overlap_ = device.value().major >= 9 && schedule_.params.ahead == 0;
    kernel_ =
        tables_kernel(schedule_.sample_bytes, squared, schedule_.type, schedule_.rows, schedule_.params.ahead == 0);
    return cuda::load_kernel(kernel_.kernel, "cannot load the kernels for summed-area tables", kernel_.shared_bytes);
  }

  Status submit(const Plan& plan, const Image& src, const std::vector<Plane>& tables, Queue queue) {
    if (schedule_.tables.empty()) return {};
    KernelParams& params = schedule_.params;
    for (int i = 0; i < params.count; ++i) {
      const int table = schedule_.tables[i];
      set_frame(params.jobs[i], src, plan.sources[table], tables[table]);
    }
    return cuda::check(cuda::launch_overlapping(kernel_.kernel, params.blocks(), threads, kernel_.shared_bytes,
                                                overlap_, &params, queue.stream),
                       "cannot launch the summed-area tables");
  }

 private:
  Schedule schedule_;
  TablesKernel kernel_;
  bool overlap_ = false;  ///< whether the device can start a launch before the previous launch has ended
  cuda::DeviceMemory scratch_;
};

class CudaIntegral final : public Integral {
 public:
  explicit CudaIntegral(Plan plan) : Integral(Backend::cuda, plan.tables), plan_(std::move(plan)) {}

  Status prepare() {
    Status status = sums_.prepare(plan_, false);
    return status.ok() ? squares_.prepare(plan_, true) : status;
  }

 private:
  Status compute(const Image& src, const std::vector<Plane>& tables, Queue queue) override {
    Status status = sums_.submit(plan_, src, tables, queue);
    return status.ok() ? squares_.submit(plan_, src, tables, queue) : status;
  }

  const Plan plan_;
  TableGroup sums_, squares_;
};

}  // namespace

Result<std::unique_ptr<Integral>> make_cuda(Plan plan) {
  auto integral = std::make_unique<CudaIntegral>(std::move(plan));
  if (Status status = integral->prepare(); !status.ok()) return status;
  return std::unique_ptr<Integral>(std::move(integral));
}

}  // namespace cudavision::integral
