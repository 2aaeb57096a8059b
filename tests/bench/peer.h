// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The interface between bench_kernels and a peer library. Peers are in a separate shared object (peers.cu), built on a
// machine with their toolkit and loaded at run time, so the benchmark needs only a driver. The interface is plain C, so
// different compilers may build the two sides.

struct CUstream_st;

struct PeerWork {
  const char* operation;        // "gaussian", "box", "convolve", "integral", "histogram", "absdiff", "alphacomp"
  int width, height, channels;  // an interleaved 8-bit picture
  int taps;                     // width and height of the kernel
  const float* weights;         // in device memory; gaussian: taps of one axis, sum 1; convolve: taps × taps
};

struct PeerPictures {
  const void* src;
  void* dst;
  const void* reference;                      // the second source of absdiff and alphacomp
  int src_pitch, dst_pitch, reference_pitch;  // bytes
};

// A peer's implementation of an operation. bench_kernels times all entries that accept the work and reports the
// fastest.
struct PeerEntry {
  const char* operation;
  const char* name;
  // Submits the work to the stream. Returns 0, the peer's error code, or peer_not_offered.
  int (*submit)(const PeerWork* work, const PeerPictures* pictures, CUstream_st* stream);
};

enum { peer_not_offered = 1 };

// The symbol that the shared object exports: a function that returns its entries. The last entry has a null name.
#define PEER_ENTRIES_SYMBOL "cudavision_peer_entries"
typedef const PeerEntry* (*PeerEntries)();
