// SPDX-License-Identifier: LGPL-2.1-or-later
// The CUDA backend: one launch per frame, or two if lay_tiles composes some tiles and compose_tiles the others.
//
//   frame ──► schedule_pair() ─────┬─ two pictures of one 8-bit format ────────────► mix_pair()         cuda_pair.cu
//              │                   └─ … with an operator on R', G', B' ────────────► operate_pair()     cuda_operate.cu
//              ▼ anything else
//             schedule_compose() ──┬─ tiles of pictures of the output's format ────► lay_direct()       cuda_direct.cu
//                                  └─ other tiles ─────────────────────────────────► compose_pixels()   cuda_compose.cu
//
// Where to change what
//   another operator         Operator in blend.hpp (its place decides operates_on_rgb()); operate(), or lay_pixel(), and
//                            with_operator() in arithmetic.hpp, which both backends use; set_blending() in resolve.cpp, if it can
//                            hide the pads below; operator_choices in gst/elements/blend.cpp
//   another format           nothing, if core/format.cpp has it
//   another sample type      Channels and PackedPixels in cuda_read.cuh read it, find_weights() in cuda_color.cuh compares
//                            it with the key, store() and write() in cuda_write.cuh store it,
//                            copy_layer() in cuda_copy.cuh copies it; load() and with_step() in cpu_rows.cpp
//   another scaling          Sampling in plan.hpp, set_sampling() in resolve.cpp, sampling.hpp, read() in cuda_read.cuh, and a struct
//                            in cuda_sampler.cuh
//   another block shape      cuda_tuning.hpp; make_grid() in cuda_schedule.cpp
//   which kernel runs        schedule_pair() and schedule_compose() in cuda_schedule.cpp, is_direct() in resolve.cpp and
//                            cuda_visible.cuh
//   colors and ranges        kernels/core/color.cpp
#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cuda_launch.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::blend {
namespace {

class CudaComposer final : public Composer {
 public:
  explicit CudaComposer(const Geometry& geometry) : geometry_(geometry) {}

  Status submit(const Target& target, const std::vector<Layer>& layers, Queue queue) override {
    if (const auto pair = schedule_pair(geometry_, target, layers)) {
      operates_on_rgb(pair->job.layer.op) ? operate_pair(*pair, target, queue) : mix_pair(*pair, queue);
    } else {
      const ComposeLaunch launch = schedule_compose(target, layers);
      if (launch.direct.across) lay_direct(target, layers, launch, queue);
      if (launch.pixels.across) compose_pixels(target, layers, launch, queue);
    }
    return cuda::check(cudaGetLastError(), "cannot launch the blending");
  }

 private:
  const Geometry geometry_;
};

}  // namespace

Result<std::unique_ptr<Composer>> make_cuda(const Geometry& geometry) {
  return std::unique_ptr<Composer>(std::make_unique<CudaComposer>(geometry));
}

}  // namespace cudavision::blend
