// SPDX-License-Identifier: LGPL-2.1-or-later
// For builds without CUDA.
#include "gst/frames/cuda_use.hpp"
#include "gst/frames/maker.hpp"

namespace cudavision::frames {
namespace {

Status none() { return Status::resource("this build of cudavision has no CUDA"); }

}  // namespace

bool is_cuda_memory(GstMemory*) { return false; }
Result<std::unique_ptr<CudaUse>> CudaUse::make(GstMemory*) { return none(); }
Result<GstContext*> primary_context(int) { return none(); }
int drain(int) { return 0; }
Result<std::unique_ptr<Maker>> Maker::make(const Geometry&, int) { return none(); }

}  // namespace cudavision::frames
