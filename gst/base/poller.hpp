// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <memory>

namespace cudavision {

/// An object that a thread of the plugin polls every millisecond, because GPU work may end after the streaming thread
/// has continued. There is one such thread for each purpose. It exists while it has objects, and sleeps while none is
/// busy.
class Polled {
 public:
  enum class Purpose {
    references,  ///< runs only code of this plugin, so that references to buffers are dropped in time
    reports,     ///< may run code of the application, such as handlers of messages
  };
  /// `poll` is called in that thread while this object is busy; returns whether it is still busy. It must not throw.
  Polled(Purpose purpose, std::function<bool()> poll);
  /// Waits until `poll` has returned.
  ~Polled();
  Polled(const Polled&) = delete;
  Polled& operator=(const Polled&) = delete;

  /// Makes this object busy. For any thread.
  void wake();

  struct Entry;

 private:
  const Purpose purpose_;
  const std::shared_ptr<Entry> entry_;
};

}  // namespace cudavision
