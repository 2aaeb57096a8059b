// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

struct CUstream_st;

namespace cudavision {

enum class Backend { cpu, cuda };

/// Where work is submitted. CPU backend: the calling thread does the work before the call returns. CUDA backend: a
/// stream of the current context, which does the work later. The plugin never uses the default stream.
struct Queue {
  CUstream_st* stream = nullptr;
};

}  // namespace cudavision
