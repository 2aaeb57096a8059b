// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/size_limit.hpp"

#include <algorithm>

namespace cudavision::diff {
namespace {

/// Frames after which the place of a thing that is not too large is forgotten. Regions at the threshold flicker.
constexpr std::uint64_t short_memory = 3;
/// How long the largest remnant of a thing that was too large is ignored, in half seconds.
constexpr std::uint64_t longest_remnant = 20;

/// Whether a cell of the run is at the edge of the frame or of a masked area.
bool touches_edge(const CellGrid& grid, const CellRun& run) {
  const auto ends = [&](int x, int y) {
    return x < 0 || y < 0 || x >= grid.width || y >= grid.height || grid.unmasked[grid.at(x, y)] == 0;
  };
  if (ends(run.first - 1, run.y) || ends(run.last + 1, run.y)) return true;
  for (int x = run.first; x <= run.last; ++x)
    if (ends(x, run.y - 1) || ends(x, run.y + 1)) return true;
  return false;
}

}  // namespace

void SizeLimit::reset() {
  things_.clear();
  marks_.clear();
}

/// Forgets what was not seen for a long time, and that remnants were too large.
void SizeLimit::forget() {
  for (auto it = things_.begin(); it != things_.end();) {
    const Thing& thing = it->second;
    const bool ended =
        thing.state == State::too_large
            ? frame_ - thing.was_too_large > longest_remnant * half_second_ || frame_ - thing.seen > half_second_
            : frame_ - thing.seen > short_memory;
    it = ended ? things_.erase(it) : std::next(it);
  }
}

/// The thing that covered a marked cell; nullptr: none, or it was there too long ago.
SizeLimit::Thing* SizeLimit::thing_at(const Mark& mark) {
  const auto found = things_.find(mark.id);
  if (found == things_.end()) return nullptr;
  const std::uint64_t memory = found->second.state == State::too_large ? half_second_ : short_memory;
  return frame_ - mark.frame <= memory ? &found->second : nullptr;
}

/// The id of the thing of this kind that has the most cells; 0: none.
std::uint64_t SizeLimit::most_of(const Overlap& overlap, bool too_large) const {
  std::uint64_t best = 0;
  int most = 0;
  for (const auto& [id, cells] : overlap)
    if ((things_.at(id).state == State::too_large) == too_large && cells > most) best = id, most = cells;
  return best;
}

/// Whether a region that is too large is several things that count, and hardly anything else.
bool SizeLimit::is_meeting(const Overlap& overlap, int area) const {
  int things = 0, known = 0;
  for (const auto& [id, cells] : overlap)
    if (things_.at(id).state == State::counts) ++things, known += cells;
  return things > 1 && 2 * known >= area;
}

void SizeLimit::advance(const CellGrid& grid, const std::vector<CellRun>& runs, int max_area,
                        std::vector<Region>& regions) {
  ++frame_;
  if (regions.empty()) return;
  if (marks_.size() != grid.changed.size()) reset(), marks_.resize(grid.changed.size());
  forget();

  std::vector<Overlap> overlaps(regions.size());
  std::vector<bool> at_edge(regions.size());
  for (const CellRun& run : runs) {
    for (int x = run.first; x <= run.last; ++x)
      if (const Mark& mark = marks_[grid.at(x, run.y)]; thing_at(mark)) ++overlaps[run.region][mark.id];
    if (touches_edge(grid, run)) at_edge[run.region] = true;
  }
  // The region that has the most of each thing.
  std::map<std::uint64_t, std::uint32_t> heirs;
  for (std::uint32_t i = 0; i < regions.size(); ++i)
    for (const auto& [id, cells] : overlaps[i])
      if (const auto [heir, is_first] = heirs.try_emplace(id, i); !is_first && cells > overlaps[heir->second][id])
        heir->second = i;

  struct Owner {
    std::uint64_t id;
    bool spreads;  // whether it takes all cells of the region, or keeps those that it had
  };
  std::vector<Owner> owners(regions.size());
  for (std::uint32_t i = 0; i < regions.size(); ++i) {
    Region& region = regions[i];
    const std::uint64_t large = most_of(overlaps[i], true), small = most_of(overlaps[i], false);
    const bool remains = large != 0 && 2 * overlaps[i][large] > region.area;
    if (region.area <= max_area && remains) {
      region.counts = false;
      owners[i] = {large, heirs[large] == i && frame_ - things_[large].seen <= short_memory};
    } else if (region.area > max_area && large == 0 && is_meeting(overlaps[i], region.area)) {
      region.counts = false;
      owners[i] = {0, false};
      for (const auto& [id, cells] : overlaps[i]) things_.at(id).seen = frame_;
    } else {
      const bool too_large = region.area > max_area;
      const std::uint64_t known = too_large && large != 0 ? large : small;
      owners[i] = {known != 0 ? known : ++last_id_, true};
    }
  }
  for (std::uint32_t i = 0; i < regions.size(); ++i) {
    Region& region = regions[i];
    if (!owners[i].spreads) continue;
    const auto [entry, is_new] = things_.try_emplace(owners[i].id, Thing{State::waits, 0, frame_, frame_});
    Thing& thing = entry->second;
    thing.seen = frame_;
    if (region.area > thing.largest) thing.largest = region.area, thing.grew = frame_;
    if (region.area > max_area) thing.state = State::too_large, thing.was_too_large = frame_;
    if (thing.state == State::waits && !(at_edge[i] && frame_ - thing.grew < half_second_)) thing.state = State::counts;
    region.counts = thing.state == State::counts;
  }
  for (const CellRun& run : runs)
    for (int x = run.first; x <= run.last; ++x) {
      Mark& mark = marks_[grid.at(x, run.y)];
      const Owner& owner = owners[run.region];
      if (owner.spreads)
        mark = {owner.id, frame_};
      else if (thing_at(mark) && (owner.id == 0 || owner.id == mark.id))
        mark.frame = frame_;
    }
}

}  // namespace cudavision::diff
