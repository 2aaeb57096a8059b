// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/matching.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cudavision::diff {
namespace {

// Tried with people who walk in front of a fixed camera, at 10 frames a second, with boxes of about 2 by 6 cells. Half or twice of
// each changes the number of ids by less than a quarter.
constexpr double fragment_share = 0.5;  ///< of the cells of a region in a box, from which it is a fragment of the object
constexpr double least_share = 0.15;    ///< of the cells that the box of an object has, below which others hide it
constexpr double reach = 1.5;           ///< the distance of centres, as a share of the longest side
constexpr double likeness = 5;          ///< the factor between areas of boxes

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

double width_of(const Expected& object) { return object.right - object.left; }
double height_of(const Expected& object) { return object.bottom - object.top; }
double area_of(const Expected& object) { return width_of(object) * height_of(object); }

class Matching {
 public:
  Matching(const std::vector<Expected>& objects, const MotionRegions& found, const Cells& cells, std::size_t most)
      : objects_(objects), found_(found), cells_(cells), cell_(cells.cell_size), count_(std::min(found.kept.size(), most)) {
    sort_runs();
    result_.objects.resize(objects.size());
    bounds_.resize(objects.size());
    owners_.resize(count_);
    taken_.resize(count_);
  }

  Matches run() {
    find_owners();
    choose_owners();
    for (std::uint32_t region = 0; region < count_; ++region)
      if (!owners_[region].empty()) divide(region);
    for (std::size_t i = 0; i < objects_.size(); ++i) settle(i);
    pair_by_centres();
    for (std::uint32_t region = 0; region < count_; ++region)
      if (!taken_[region]) result_.unmatched.push_back(region);
    return std::move(result_);
  }

 private:
  /// Cells of an object, by their first and last column and row.
  struct Bounds {
    int left = std::numeric_limits<int>::max(), top = left, right = -1, bottom = -1, area = 0, most = 0;
  };

  double centre(int cell) const { return (cell + 0.5) * cell_; }
  const CellRun* begin(std::uint32_t region) const { return runs_.data() + first_run_[region]; }
  const CellRun* end(std::uint32_t region) const { return runs_.data() + first_run_[region + 1]; }

  /// Brings the runs into the order of their regions.
  void sort_runs() {
    first_run_.assign(count_ + 1, 0);
    for (const CellRun& run : found_.runs)
      if (run.region < count_) ++first_run_[run.region + 1];
    for (std::size_t i = 0; i < count_; ++i) first_run_[i + 1] += first_run_[i];
    runs_.resize(first_run_[count_]);
    std::vector<std::size_t> next(first_run_.begin(), first_run_.end() - 1);
    for (const CellRun& run : found_.runs)
      if (run.region < count_) runs_[next[run.region]++] = run;
  }

  /// The number of cells of a region in the box of an object, or up to half a cell outside.
  int cells_in(const Expected& box, std::uint32_t region) const {
    const double slack = cell_ / 2.0;
    int cells = 0;
    for (const CellRun* run = begin(region); run != end(region); ++run) {
      if (centre(run->y) < box.top - slack || centre(run->y) > box.bottom + slack) continue;
      // Columns of which the centre is between the sides.
      const double first = std::ceil((box.left - slack) / cell_ - 0.5), last = std::floor((box.right + slack) / cell_ - 0.5);
      const double from = std::max(first, double(run->first)), to = std::min(last, double(run->last));
      if (from <= to) cells += int(to - from) + 1;
    }
    return cells;
  }

  void find_owners() {
    const auto count = std::uint32_t(objects_.size());
    best_.assign(count, none);
    std::vector<double> best_overlap(count, 0);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> fragments;  // region, object
    for (std::uint32_t i = 0; i < count; ++i) {
      const Expected& object = objects_[i];
      for (std::uint32_t region = 0; region < count_; ++region) {
        const Rect& box = found_.kept[region].box;
        const double width = std::min(object.right, double(box.x) + box.width) - std::max(object.left, double(box.x));
        const double height = std::min(object.bottom, double(box.y) + box.height) - std::max(object.top, double(box.y));
        if (width <= 0 || height <= 0) continue;
        const int cells = cells_in(object, region);
        if (cells == 0) continue;
        const double shared = width * height, overlap = shared / (area_of(object) + double(box.width) * box.height - shared);
        if (overlap > best_overlap[i]) best_overlap[i] = overlap, best_[i] = region;
        if (cells >= fragment_share * found_.kept[region].area) fragments.push_back({region, i});
      }
    }
    for (std::uint32_t i = 0; i < count; ++i)
      if (best_[i] != none) owners_[best_[i]].push_back(i);
    for (const auto& [region, object] : fragments)
      if (best_[object] != region) owners_[region].push_back(object);
    for (auto& owners : owners_) std::sort(owners.begin(), owners.end());
  }

  template <typename F>
  static void remove_if(std::vector<std::uint32_t>& owners, F&& f) {
    owners.erase(std::remove_if(owners.begin(), owners.end(), f), owners.end());
  }

  void choose_owners() {
    for (std::uint32_t region = 0; region < count_; ++region) {
      auto& owners = owners_[region];
      if (owners.size() < 2) continue;
      const auto confirmed = [&](std::uint32_t i) { return objects_[i].confirmed; };
      const bool some_confirmed = std::any_of(owners.begin(), owners.end(), confirmed);
      const std::uint32_t oldest = *std::max_element(owners.begin(), owners.end(), [&](std::uint32_t a, std::uint32_t b) {
        return objects_[a].frames < objects_[b].frames;  // the first of equals
      });
      const auto is_part = [&](std::uint32_t i) { return some_confirmed ? !confirmed(i) : i != oldest; };
      for (std::uint32_t i : owners)
        if (is_part(i) && best_[i] == region) result_.objects[i].dropped = true;
      remove_if(owners, is_part);
      const auto was_seen = [&](std::uint32_t i) { return objects_[i].was_seen; };
      if (std::any_of(owners.begin(), owners.end(), was_seen)) remove_if(owners, [&](std::uint32_t i) { return !was_seen(i); });
    }
    for (auto& owners : owners_) remove_if(owners, [&](std::uint32_t i) { return result_.objects[i].dropped; });
  }

  /// Gives each owner of a region its cells.
  void divide(std::uint32_t region) {
    taken_[region] = true;
    auto owners = owners_[region];
    std::vector<Bounds> shares;
    for (;;) {
      shares.assign(owners.size(), {});
      for (const CellRun* run = begin(region); run != end(region); ++run) add_run(*run, owners, shares);
      std::size_t hidden = owners.size();
      double least = least_share;
      for (std::size_t k = 0; k < owners.size() && owners.size() > 1; ++k)
        if (const double share = shares[k].area * double(cell_) * cell_ / area_of(objects_[owners[k]]); share < least)
          least = share, hidden = k;
      if (hidden == owners.size()) break;
      owners.erase(owners.begin() + std::ptrdiff_t(hidden));
    }
    for (std::size_t k = 0; k < owners.size(); ++k) {
      Bounds& all = bounds_[owners[k]];
      const Bounds& share = shares[k];
      all.left = std::min(all.left, share.left), all.top = std::min(all.top, share.top);
      all.right = std::max(all.right, share.right), all.bottom = std::max(all.bottom, share.bottom);
      all.area += share.area;
      Match& object = result_.objects[owners[k]];
      object.shared |= owners.size() > 1;
      if (share.area > all.most) all.most = share.area, object.score = found_.kept[region].score;
    }
  }

  /// Adds the cells of a run to the shares of the owners whose boxes are nearest.
  void add_run(const CellRun& run, const std::vector<std::uint32_t>& owners, std::vector<Bounds>& shares) const {
    const auto add = [&run](Bounds& bounds, int first, int last) {
      bounds.left = std::min(bounds.left, first), bounds.right = std::max(bounds.right, last);
      bounds.top = std::min(bounds.top, run.y), bounds.bottom = std::max(bounds.bottom, run.y);
      bounds.area += last - first + 1;
    };
    if (owners.size() == 1) return add(shares[0], run.first, run.last);
    for (int x = run.first; x <= run.last; ++x) {
      std::size_t nearest = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t k = 0; k < owners.size(); ++k) {
        const Expected& object = objects_[owners[k]];
        const double across = std::abs(2 * centre(x) - object.left - object.right) / width_of(object);
        const double down = std::abs(2 * centre(run.y) - object.top - object.bottom) / height_of(object);
        if (const double distance = std::max(across, down); distance < least) least = distance, nearest = k;
      }
      add(shares[nearest], x, x);
    }
  }

  /// Sets the match of an object that got cells.
  void settle(std::size_t i) {
    const Bounds& bounds = bounds_[i];
    if (bounds.area == 0) return;
    Match& object = result_.objects[i];
    const Rect from = cells_.box(bounds.left, bounds.top), to = cells_.box(bounds.right, bounds.bottom);
    object.found = true;
    object.box = {from.x, from.y, to.x + to.width - from.x, to.y + to.height - from.y};
    object.area = bounds.area;
  }

  void pair_by_centres() {
    struct Pair {
      double distance;
      std::size_t object;
      std::uint32_t region;
    };
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (result_.objects[i].found || result_.objects[i].dropped) continue;
      const Expected& object = objects_[i];
      for (std::uint32_t region = 0; region < count_; ++region) {
        if (taken_[region]) continue;
        const Rect& box = found_.kept[region].box;
        const double across = box.x + box.width / 2.0 - (object.left + object.right) / 2;
        const double down = box.y + box.height / 2.0 - (object.top + object.bottom) / 2;
        const double distance = std::sqrt(across * across + down * down);
        const double side = std::max({width_of(object), height_of(object), double(box.width), double(box.height)});
        const double ratio = area_of(object) / (double(box.width) * box.height);
        if (distance > (object.frames < 2 ? reach + 1 : reach) * side + cell_ || ratio > likeness || ratio * likeness < 1) continue;
        pairs.push_back({distance, i, region});
      }
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.distance < b.distance; });
    for (const Pair& pair : pairs) {
      Match& object = result_.objects[pair.object];
      if (object.found || taken_[pair.region]) continue;
      taken_[pair.region] = true;
      const MotionRegion& region = found_.kept[pair.region];
      object = {true, false, false, region.box, region.area, region.score};
    }
  }

  const std::vector<Expected>& objects_;
  const MotionRegions& found_;
  const Cells& cells_;
  const int cell_;
  const std::size_t count_;  ///< regions that are not ignored

  std::vector<CellRun> runs_;                       ///< in the order of their regions
  std::vector<std::size_t> first_run_;              ///< of each region, and the end
  std::vector<std::uint32_t> best_;                 ///< of each object, the region of the largest overlap
  std::vector<std::vector<std::uint32_t>> owners_;  ///< of each region, the objects that take it, in their order
  std::vector<bool> taken_;
  std::vector<Bounds> bounds_;  ///< of each object
  Matches result_;
};

}  // namespace

Matches match(const std::vector<Expected>& objects, const MotionRegions& found, const Cells& cells, std::size_t most) {
  return Matching(objects, found, cells, most).run();
}

}  // namespace cudavision::diff
