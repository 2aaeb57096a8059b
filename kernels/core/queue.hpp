// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

struct CUstream_st;

namespace cudavision {

enum class Backend { cpu, cuda };

/// Where work is submitted: the calling thread (CPU backend: done on return), or a CUDA stream of the current
/// context (CUDA backend: done when the stream gets there). Never the default stream in the plugin.
struct Queue {
  CUstream_st* stream = nullptr;
};

}  // namespace cudavision
