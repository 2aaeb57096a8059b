// SPDX-License-Identifier: LGPL-2.1-or-later
// Checks the frames that leave a pipeline of filters: each one entered, leaves once and in order, and is a picture for
// settings that were valid, but never for settings older than an earlier frame's.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/soak/cache.hpp"
#include "tests/soak/reference.hpp"
#include "tests/soak/report.hpp"
#include "tests/soak/shapes.hpp"
#include "tests/soak/stream.hpp"

namespace cudavision::soak {

class History {
 public:
  explicit History(const Kind& kind) : kind_(kind), versions_{{0, 0}} {}
  const Kind& kind() const { return kind_; }
  /// New settings may appear from now on …
  void begin(int setting) { versions_.push_back({setting, G_MAXUINT64}); }
  /// … and no frame from number `serial` on may have older ones.
  void finish(guint64 serial) { versions_.back().forced_from = serial; }
  int newest() const { return int(versions_.size()) - 1; }
  /// The oldest version that this frame may have, from `low` on.
  int oldest(int low, guint64 serial) const {
    while (low < newest() && versions_[std::size_t(low) + 1].forced_from <= serial) ++low;
    return low;
  }
  int setting(int version) const { return versions_[std::size_t(version)].setting; }

 private:
  struct Version {
    int setting;
    guint64 forced_from;
  };
  const Kind& kind_;
  std::vector<Version> versions_;
};

/// A frame, flush or EOS that left the source.
struct Entry {
  enum class Type { frame, flush, eos } type;
  guint64 serial = 0;     ///< counts all frames that left the source
  guint64 n = 0;          ///< the frame's number in the stream
  gint64 previous = -1;   ///< the previous frame, if comparing with it makes sense
  GstClockTime time = 0;  ///< running time
};

class Outlet {
 public:
  /// `mutex` guards the histories. Without stages, frames must come out unchanged.
  Outlet(Report& report, const Stream& stream, std::mutex& mutex, std::vector<History*> stages);

  /// Records what the source sent. The caller holds the mutex.
  void enter(const Entry& entry) { entries_.push_back(entry); }
  /// The caller holds the mutex.
  void forget() { entries_.clear(); }

  void flushed();
  void eos();
  void take(GstBuffer* buffer, const GstVideoInfo& video, GstClockTime time);

 private:
  using Versions = std::vector<int>;
  struct Expected {
    Buffer frame;
    std::string samples;
  };
  const Expected& expected(const Entry& entry, const std::vector<int>& settings);
  void compare(const Entry& entry, const std::string& samples, const Versions& newest,
               const std::vector<Versions>& oldest);
  std::string explain(const Entry& entry, const std::string& samples);

  Report& report_;
  const Stream& stream_;
  std::mutex& mutex_;
  const std::vector<History*> stages_;
  std::deque<Entry> entries_;
  std::vector<Versions> possible_;  ///< the versions that the last frame may have had; only the minimal ones
  std::map<std::pair<int, int>, std::unique_ptr<FilterReference>> references_;  ///< by stage and setting
  Cache<Expected> known_;
};

}  // namespace cudavision::soak
