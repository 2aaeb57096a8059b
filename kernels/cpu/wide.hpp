// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Compiles a function and everything inlined into it twice: for any x86-64 processor, and for AVX2. The version is
// chosen when the library is loaded. The thread sanitizer gets only one version, because the function that chooses
// would call the sanitizer before it is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define CUDAVISION_WIDE __attribute__((flatten, target_clones("avx2", "default")))
#else
#define CUDAVISION_WIDE
#endif
