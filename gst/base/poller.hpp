// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <memory>

namespace cudavision {

/// Something that a thread of the plugin looks at once in a millisecond, for what the GPU does after the streaming thread has gone on.
/// The thread serves all objects of this class. It exists while there are any, and sleeps while none is busy.
class Polled {
 public:
  /// `poll` is called in that thread while this object is busy, and returns whether it still is. It must not throw.
  explicit Polled(std::function<bool()> poll);
  /// Waits until `poll` has returned.
  ~Polled();
  Polled(const Polled&) = delete;
  Polled& operator=(const Polled&) = delete;

  /// Makes this object busy. For any thread.
  void wake();

  struct Entry;

 private:
  const std::shared_ptr<Entry> entry_;
};

}  // namespace cudavision
