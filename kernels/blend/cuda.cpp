// SPDX-License-Identifier: LGPL-2.1-or-later
// The CUDA backend: one launch per frame, or two or three if several kernels compose parts of the frame.
//
//   frame ──► schedule_pair() ─────┬─ two pictures of one 8-bit format ────────────► mix_pair()         cuda_pair.cu
//              │                   └─ … with an operator on R', G', B' ────────────► operate_pair()     cuda_operate.cu
//              ▼ anything else
//             schedule_compose() ──┬─ pictures of the output's format ─► schedule_parts()
//                                  │        parts that one picture covers ─────────► compose_simple() cuda_parts.cu │
//                                  other parts ───────────────────────────► compose_direct()       cuda_direct.cu └─
//                                  other tiles ─────────────────────────────────► compose_pixels()   cuda_compose.cu
//
// Where to change what
//   another operator         Operator in blend.hpp (its place decides operates_on_rgb()); operate(), or lay_pixel(),
//                            and with_operator() in arithmetic.hpp, which both backends use; set_blending() in
//                            resolve.cpp, if it can hide the pads below; operator_choices in gst/elements/blend.cpp
//   another format           nothing, if core/format.cpp has it
//   another sample type      Channels and PackedPixels in cuda_read.cuh read it, find_weights() in cuda_lay.cuh
//                            compares it with the key, store() and write() in cuda_write.cuh store it, copy_layer() in
//                            cuda_copy.cuh copies it; kernels/cpu/rows.cpp
//   another scaling          Sampling in plan.hpp, set_sampling() in resolve.cpp, sampling.hpp, read() in
//                            cuda_read.cuh, and a struct in cuda_sampler.cuh
//   another block shape      cuda_tuning.hpp; make_grid() in cuda_schedule.cpp, set_tiles() in cuda_parts.cpp
//   which kernel runs        schedule_pair() and schedule_compose() in cuda_schedule.cpp, kind_of() in cuda_parts.cpp,
//                            is_direct() in resolve.cpp and cuda_visible.cuh
//   colours and ranges       kernels/core/color.cpp
#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cuda_launch.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::blend {
namespace {

class CudaComposer final : public Composer {
 public:
  CudaComposer(const Geometry& geometry, bool overlaps) : geometry_(geometry), overlaps_(overlaps) {}

  Status submit(const Target& target, const std::vector<Layer>& layers, Queue queue) override {
    if (const auto pair = schedule_pair(geometry_, target, layers)) {
      operates_on_rgb(pair->job.layer.op) ? operate_pair(*pair, target, queue) : mix_pair(*pair, queue);
    } else {
      const ComposeLaunch launch = schedule_compose(target, layers);
      if (launch.direct.across) {
        schedule_parts(target, layers, launch, parts_);
        if (parts_.other_blocks) compose_direct(target, layers, launch, parts_, queue);
        if (parts_.blocks) compose_simple(target, layers, launch, parts_, overlaps_ && parts_.other_blocks, queue);
      }
      if (launch.pixels.across) compose_pixels(target, layers, launch, queue);
    }
    return cuda::check(cudaGetLastError(), "cannot launch the blending");
  }

 private:
  const Geometry geometry_;
  const bool overlaps_;  ///< whether the device can start a launch before the previous one has ended
  Parts parts_{};        ///< parts of the frame that is being submitted
};

}  // namespace

Result<std::unique_ptr<Composer>> make_cuda(const Geometry& geometry) {
  const auto device = cuda::current_device();
  if (!device.ok()) return device.error();
  return std::unique_ptr<Composer>(std::make_unique<CudaComposer>(geometry, device.value().major >= 9));
}

}  // namespace cudavision::blend
