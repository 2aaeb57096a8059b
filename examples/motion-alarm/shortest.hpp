// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "moments.hpp"
#include "part.hpp"

/// Returns events in order, once their motion or visit is known to be long enough. Drops the events of shorter ones.
/// Other events only wait for earlier events. ../shortest.py does the same for Python programs.
class Shortest {
 public:
  /// hold: the property track-hold of cudadiff. An object that has not left was seen at most this many seconds ago.
  Shortest(std::optional<Time> least, double hold) : least_(least), hold_(hold) {}

  std::vector<Moments::Moment> pass(std::vector<Moments::Moment> moments);

 private:
  /// A motion or a visit; all times in seconds.
  struct Held {
    double began, last;
    std::optional<bool> kept;
  };
  using Key = std::pair<guint, std::string>;  ///< the id of an object and a zone; 0 is motion

  void add(Moments::Moment moment);
  bool lasts(double seconds, double frame_time) const;

  const std::optional<Time> least_;
  const double hold_;
  std::map<Key, std::shared_ptr<Held>> open_;
  std::deque<std::pair<Moments::Moment, std::shared_ptr<Held>>> queue_;
};
