// SPDX-License-Identifier: LGPL-2.1-or-later
// A cache of expected pictures with a size limit.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>

namespace cudavision::soak {

template <typename T>
class Cache {
 public:
  const T* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  /// Adds a value and drops the oldest ones. Values whose keys are a prefix of this key stay, because it was made from
  /// them.
  const T* add(const std::string& key, T value, std::size_t bytes) {
    bytes_ += bytes;
    while (bytes_ > most_bytes && key.compare(0, order_.front().first.size(), order_.front().first) != 0) {
      bytes_ -= order_.front().second;
      values_.erase(order_.front().first);
      order_.pop_front();
    }
    order_.emplace_back(key, bytes);
    return &(values_[key] = std::move(value));
  }

 private:
  static constexpr std::size_t most_bytes = 4 << 20;
  std::map<std::string, T> values_;
  std::deque<std::pair<std::string, std::size_t>> order_;
  std::size_t bytes_ = 0;
};

}  // namespace cudavision::soak
