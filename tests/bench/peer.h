// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What bench_kernels knows of a peer library. Peers live in a shared object of their own (peers.cu), built where the peers'
// toolkit is and opened at run time, so that the benchmark itself runs with a driver alone. Plain C, so that the two sides may
// come from different compilers.

struct CUstream_st;

struct PeerWork {
  const char* operation;        // "gaussian", "convolve", "integral", "histogram", "absdiff", "alphacomp"
  int width, height, channels;  // of an interleaved 8-bit picture
  int taps;                     // of one side of the kernel, which is square
  const float* weights;         // device memory: gaussian: taps of one axis, sum 1; convolve: taps × taps
};

struct PeerPictures {
  const void* src;
  void* dst;
  const void* reference;                      // absdiff, alphacomp: the other source
  int src_pitch, dst_pitch, reference_pitch;  // bytes
};

// One way in which a peer does an operation; bench_kernels times all that accept the work and quotes the fastest.
struct PeerEntry {
  const char* operation;
  const char* name;
  // 0: submitted to the stream; otherwise the peer's error code, or peer_not_offered.
  int (*submit)(const PeerWork* work, const PeerPictures* pictures, CUstream_st* stream);
};

enum { peer_not_offered = 1 };

// Symbol that the shared object exports: its entries, ended by one with a null name.
#define PEER_ENTRIES_SYMBOL "cudavision_peer_entries"
typedef const PeerEntry* (*PeerEntries)();
