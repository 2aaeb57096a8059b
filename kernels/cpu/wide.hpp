// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The loops once for any processor of the architecture and once for those with wider vectors, chosen when the library is loaded.
// Not for the thread sanitizer: the function that chooses would call it before it is loaded.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CUDAVISION_WIDE __attribute__((flatten, target_clones("avx2", "default")))
#else
#define CUDAVISION_WIDE
#endif
