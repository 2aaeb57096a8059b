// SPDX-License-Identifier: LGPL-2.1-or-later
// For test programs built with -fsanitize=thread. Shows the sanitizer how threads wait for each other in libraries that
// are built without it. These functions replace functions of the libraries, also for the plugin. Include this file in
// one file of a program.
#pragma once
#ifdef __SANITIZE_THREAD__

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <algorithm>
#include <future>
#include <opencv2/core.hpp>
#include <vector>

#define CUDAVISION_VISIBLE __attribute__((visibility("default")))

/// Replaces OpenCV's thread pool with threads that the sanitizer knows, so that it sees races between the parts of a
/// loop. If a part or the start of a thread throws, the others end first.
CUDAVISION_VISIBLE void cv::parallel_for_(const Range& range, const ParallelLoopBody& body, double) {
  const int parts = std::min(range.size(), 3);
  std::vector<std::future<void>> others;
  for (int i = 1; i < parts; ++i)
    others.push_back(std::async(std::launch::async, [&, i] {
      body(Range(range.start + range.size() * i / parts, range.start + range.size() * (i + 1) / parts));
    }));
  if (parts > 0) body(Range(range.start, range.start + range.size() / parts));
  for (std::future<void>& other : others) other.get();
}

#ifdef __G_LIB_H__
/// GLib's locks use futexes, which the sanitizer does not know.
#define CUDAVISION_REAL(name) static const auto real = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))
#define CUDAVISION_LOCK(name, Type)                     \
  extern "C" CUDAVISION_VISIBLE void name(Type* lock) { \
    CUDAVISION_REAL(name);                              \
    real(lock);                                         \
    __tsan_acquire(lock);                               \
  }
#define CUDAVISION_TRYLOCK(name, Type)                      \
  extern "C" CUDAVISION_VISIBLE gboolean name(Type* lock) { \
    CUDAVISION_REAL(name);                                  \
    const gboolean locked = real(lock);                     \
    if (locked) __tsan_acquire(lock);                       \
    return locked;                                          \
  }
#define CUDAVISION_UNLOCK(name, Type)                   \
  extern "C" CUDAVISION_VISIBLE void name(Type* lock) { \
    CUDAVISION_REAL(name);                              \
    __tsan_release(lock);                               \
    real(lock);                                         \
  }
CUDAVISION_LOCK(g_mutex_lock, GMutex)
CUDAVISION_TRYLOCK(g_mutex_trylock, GMutex)
CUDAVISION_UNLOCK(g_mutex_unlock, GMutex)
CUDAVISION_LOCK(g_rec_mutex_lock, GRecMutex)
CUDAVISION_TRYLOCK(g_rec_mutex_trylock, GRecMutex)
CUDAVISION_UNLOCK(g_rec_mutex_unlock, GRecMutex)
CUDAVISION_LOCK(g_rw_lock_reader_lock, GRWLock)
CUDAVISION_TRYLOCK(g_rw_lock_reader_trylock, GRWLock)
CUDAVISION_UNLOCK(g_rw_lock_reader_unlock, GRWLock)
CUDAVISION_LOCK(g_rw_lock_writer_lock, GRWLock)
CUDAVISION_TRYLOCK(g_rw_lock_writer_trylock, GRWLock)
CUDAVISION_UNLOCK(g_rw_lock_writer_unlock, GRWLock)
extern "C" CUDAVISION_VISIBLE void g_cond_wait(GCond* condition, GMutex* mutex) {
  CUDAVISION_REAL(g_cond_wait);
  __tsan_release(mutex);
  real(condition, mutex);
  __tsan_acquire(mutex);
}
extern "C" CUDAVISION_VISIBLE gboolean g_cond_wait_until(GCond* condition, GMutex* mutex, gint64 end_time) {
  CUDAVISION_REAL(g_cond_wait_until);
  __tsan_release(mutex);
  const gboolean signalled = real(condition, mutex, end_time);
  __tsan_acquire(mutex);
  return signalled;
}

/// Every action of a mini object's last owner happens before the actions of its pool or its next owner.
extern "C" CUDAVISION_VISIBLE void gst_mini_object_unref(GstMiniObject* object) {
  CUDAVISION_REAL(gst_mini_object_unref);
  __tsan_release(object);
  real(object);
}
extern "C" CUDAVISION_VISIBLE GstFlowReturn gst_buffer_pool_acquire_buffer(GstBufferPool* pool, GstBuffer** buffer,
                                                                           GstBufferPoolAcquireParams* params) {
  CUDAVISION_REAL(gst_buffer_pool_acquire_buffer);
  const GstFlowReturn flow = real(pool, buffer, params);
  if (flow == GST_FLOW_OK) __tsan_acquire(*buffer);
  return flow;
}
#endif

#endif
