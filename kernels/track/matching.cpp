// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/matching.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/track/assignment.hpp"
#include "kernels/track/parts.hpp"

namespace cudavision::track {
namespace {

// Chosen with videos of people walking in front of a fixed camera: forwards and backwards in time, at 5 and 10 frames a
// second, with cells of a half to a tenth of the people's height, and with several references. Halving or doubling any
// constant changes the mean of MOTA and IDF1 by less than 0.03.
constexpr double alone_cost = 3;    ///< cost of an object that gets no part and whose box no part covers
constexpr double join_cost = 1;     ///< cost of such an object if a part covers its whole box
constexpr double looks_cost = 0.1;  ///< cost for each unit of Portrait::unlikeness()
/// Cost for each unit if the object was unseen or shared a part less than `doubt` seconds ago.
constexpr double looks_cost_in_doubt = 0.3;
constexpr double doubt = 0.5;  ///< seconds
constexpr double fragment_share =
    0.5;  ///< a part with at least this share of its cells in a box is a fragment of the object
constexpr double least_share = 0.15;        ///< below this share of the cells of its box, an object is hidden by others
constexpr double least_share_unseen = 0.3;  ///< the same limit if the object was not seen in the last frame
constexpr double stacked_share = 0.5;       ///< least overlap of stacked boxes, as a share of the narrower width
constexpr double reach = 1.5;               ///< largest distance of centres, as a share of the longest side
constexpr double reach_of_new = 1;          ///< added for an object without a speed
constexpr double reach_of_alike = 2;        ///< added for each second unseen, if the looks are alike
constexpr double alike = 2;                 ///< the unlikeness up to which looks are alike
constexpr double likeness = 5;              ///< largest factor between the areas of boxes

constexpr std::uint32_t none = unassigned;

double width_of(const Expected& object) { return object.right - object.left; }
double height_of(const Expected& object) { return object.bottom - object.top; }
double area_of(const Expected& object) { return width_of(object) * height_of(object); }
double area_of(const Rect& box) { return double(box.width) * box.height; }

class Matching {
 public:
  Matching(const std::vector<Expected>& objects, const diff::MotionRegions& found, const diff::Cells& cells,
           std::size_t most, const SizeMap& sizes)
      : objects_(objects), cells_(cells), cell_(cells.cell_size), parts_(find_parts(found, cells, most, sizes)) {
    result_.objects.resize(objects.size());
    most_.resize(objects.size());
    best_.assign(objects.size(), none);
    owners_.resize(parts_.size());
  }

  Matches run() {
    find_pairs();
    find_owners();
    choose_owners();
    for (std::uint32_t part = 0; part < parts_.size(); ++part) {
      if (owners_[part].empty())
        result_.unmatched.push_back(parts_[part]);
      else
        divide(part);
    }
    measure_looks();
    find_fragments();
    return std::move(result_);
  }

 private:
  /// A part with cells in the box of an object.
  struct Inside {
    std::uint32_t part, object;
    int cells;
  };
  /// The share of a part that an object gets.
  struct Share {
    Rect box;
    int area = 0;
    diff::Structure structure{};
  };

  double centre(int cell) const { return (cell + 0.5) * cell_; }
  /// The share of an object's box that a number of cells covers.
  double share_of(const Expected& object, int cells) const { return cells * double(cell_) * cell_ / area_of(object); }

  int cells_in(const Expected& box, const Part& part) const {
    const double slack = cell_ / 2.0;
    return int(std::count_if(part.cells.begin(), part.cells.end(), [&](const PartCell& cell) {
      const double x = centre(cell.x), y = centre(cell.y);
      return x >= box.left - slack && x <= box.right + slack && y >= box.top - slack && y <= box.bottom + slack;
    }));
  }

  /// Intersection over union; 0 if no cell of the part is in the box.
  double overlap(std::uint32_t i, std::uint32_t p) {
    const Expected& object = objects_[i];
    const Rect& box = parts_[p].box;
    const double width = std::min(object.right, double(box.x) + box.width) - std::max(object.left, double(box.x));
    const double height = std::min(object.bottom, double(box.y) + box.height) - std::max(object.top, double(box.y));
    const int cells = width > 0 && height > 0 ? cells_in(object, parts_[p]) : 0;
    if (cells == 0) return 0;
    inside_.push_back({p, i, cells});
    return width * height / (area_of(object) + area_of(box) - width * height);
  }

  /// The distance of the centres, as a share of the reach. Above 1: too far, or too different in size.
  double distance(const Expected& object, const Rect& box, bool looks_alike) const {
    const double ratio = area_of(object) / area_of(box);
    if (ratio > likeness || ratio * likeness < 1) return 2;
    const double across = box.x + box.width / 2.0 - (object.left + object.right) / 2;
    const double down = box.y + box.height / 2.0 - (object.top + object.bottom) / 2;
    const double side = std::max({width_of(object), height_of(object), double(box.width), double(box.height)});
    double sides = reach;
    if (object.frames < 2) sides += reach_of_new;
    if (looks_alike) sides += reach_of_alike * object.unseen;
    return std::sqrt(across * across + down * down) / (sides * side + cell_);
  }

  /// Finds which objects and parts may be assigned to each other and at what cost, and the part that each object
  /// overlaps best.
  void find_pairs() {
    std::vector<ObjectLooks> looks;
    for (const Part& part : parts_) looks.push_back(looks_of_object({&part}, part.box));
    for (std::uint32_t i = 0; i < objects_.size(); ++i) {
      const Expected& object = objects_[i];
      double best = 0, alone = alone_cost;
      for (std::uint32_t p = 0; p < parts_.size(); ++p) {
        const bool known = object.portrait && object.portrait->known() && looks[p].known;
        const bool doubtful = !object.was_seen || object.apart <= doubt;
        const double of_looks =
            known ? (doubtful ? looks_cost_in_doubt : looks_cost) * object.portrait->unlikeness(looks[p]) : 0;
        double cost = of_looks;
        if (const double of_union = overlap(i, p); of_union > 0) {
          cost += 1 - of_union;
          const double covered = std::min(1.0, share_of(object, inside_.back().cells));
          alone = std::min(alone, join_cost * covered + alone_cost * (1 - covered) + of_looks);
          if (of_union > best) best = of_union, best_[i] = p;
        } else {
          // Looks are compared only within the longest reach, because most pairs are farther apart.
          if (object.leaves || distance(object, parts_[p].box, true) > 1) continue;
          const double far = distance(object, parts_[p].box, known && object.portrait->unlikeness(looks[p]) < alike);
          if (far > 1) continue;
          cost += 1 + far;
        }
        pairs_.push_back({i, p, cost});
      }
      alone_.push_back(alone);
    }
  }

  void find_owners() {
    const auto assigned = assign(parts_.size(), pairs_, alone_);
    std::vector<std::uint32_t> holder(parts_.size(), none);
    for (std::uint32_t i = 0; i < objects_.size(); ++i) {
      if (assigned[i] != none) best_[i] = assigned[i], holder[assigned[i]] = i;
      if (best_[i] != none) owners_[best_[i]].push_back(i);
    }
    const auto outranks = [&](const Expected& a, const Expected& b) {
      return !b.confirmed && (a.confirmed || a.frames > b.frames);
    };
    for (const Inside& in : inside_) {
      const Part& part = parts_[in.part];
      const std::uint32_t own = best_[in.object];
      if (own == in.part || in.cells < fragment_share * part.area || (own != none && beside(parts_[own].box, part.box)))
        continue;
      if (const std::uint32_t other = holder[in.part]; other == none || outranks(objects_[in.object], objects_[other]))
        owners_[in.part].push_back(in.object);
    }
    for (auto& owners : owners_) std::sort(owners.begin(), owners.end());
  }

  template <typename F>
  static void remove_if(std::vector<std::uint32_t>& owners, F&& f) {
    owners.erase(std::remove_if(owners.begin(), owners.end(), f), owners.end());
  }

  void choose_owners() {
    for (std::uint32_t part = 0; part < parts_.size(); ++part) {
      auto& owners = owners_[part];
      if (owners.size() < 2) continue;
      const auto confirmed = [&](std::uint32_t i) { return objects_[i].confirmed; };
      const bool some_confirmed = std::any_of(owners.begin(), owners.end(), confirmed);
      const std::uint32_t oldest =
          *std::max_element(owners.begin(), owners.end(), [&](std::uint32_t a, std::uint32_t b) {
            return objects_[a].frames < objects_[b].frames;  // the first of equals
          });
      const auto is_piece = [&](std::uint32_t i) { return some_confirmed ? !confirmed(i) : i != oldest; };
      for (std::uint32_t i : owners)
        if (is_piece(i) && best_[i] == part) result_.objects[i].dropped = true;
      remove_if(owners, is_piece);
    }
    for (auto& owners : owners_) remove_if(owners, [&](std::uint32_t i) { return result_.objects[i].dropped; });
  }

  /// Divides the cells of a part among its owners. Owners that are hidden lose the part.
  void divide(std::uint32_t p) {
    auto& owners = owners_[p];
    const Part& part = parts_[p];
    const bool shared = owners.size() > 1;
    std::vector<Share> shares{{part.box, part.area, part.structure}};
    while (owners.size() > 1) {
      shares.assign(owners.size(), {});
      for (const PartCell& cell : part.cells) add_cell(cell, owners, shares);
      std::size_t hidden = owners.size();
      double least = 1;
      for (std::size_t k = 0; k < owners.size(); ++k) {
        const Expected& object = objects_[owners[k]];
        const double enough = object.was_seen ? least_share : least_share_unseen;
        if (const double share = share_of(object, shares[k].area) / enough; share < least) least = share, hidden = k;
      }
      if (hidden == owners.size()) break;
      owners.erase(owners.begin() + std::ptrdiff_t(hidden));
      shares.assign(1, {part.box, part.area, part.structure});
    }
    for (std::size_t k = 0; k < owners.size(); ++k) {
      const Share& share = shares[k];
      Match& object = result_.objects[owners[k]];
      object.found = true;
      object.shared |= shared;
      object.box = diff::around(object.box, share.box);
      object.area += share.area;
      object.structure.add(share.structure);
      if (share.area > most_[owners[k]]) most_[owners[k]] = share.area, object.score = part.score;
    }
  }

  void add_cell(const PartCell& cell, const std::vector<std::uint32_t>& owners, std::vector<Share>& shares) const {
    std::size_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    Rect covered;
    for (std::size_t k = 0; k < owners.size(); ++k) {
      const Expected& object = objects_[owners[k]];
      const double across = std::abs(2 * centre(cell.x) - object.left - object.right) / width_of(object);
      const double down = std::abs(2 * centre(cell.y) - object.top - object.bottom) / height_of(object);
      if (const double far = std::max(across, down); far < least) least = far, nearest = k;
      const int left = int(std::floor(object.left)), top = int(std::floor(object.top));
      const Rect inside =
          intersection(cell.box, {left, top, int(std::ceil(object.right)) - left, int(std::ceil(object.bottom)) - top});
      covered = diff::around(covered, inside);  // too large if the parts inside meet only at corners
      shares[k].box = diff::around(shares[k].box, inside);
    }
    Share& share = shares[nearest];
    ++share.area;
    if (cell.looks) share.structure.add(cell.looks->structure);
    if (covered.width < cell.box.width || covered.height < cell.box.height || share.box.empty())
      share.box = diff::around(share.box, cell.box);
  }

  /// The combined looks of some parts.
  ObjectLooks looks_of_object(const std::vector<const Part*>& parts, const Rect& box) const {
    ObjectLooksSums sums(box);
    for (const Part* part : parts)
      for (const PartCell& cell : part->cells)
        if (cell.looks) sums.add(*cell.looks, cells_.box(cell.x, cell.y, *cell.looks));
    return sums.result();
  }

  /// Measures the looks of the objects that share no part with others.
  void measure_looks() {
    std::vector<std::vector<const Part*>> parts(objects_.size());
    for (std::uint32_t part = 0; part < parts_.size(); ++part)
      for (std::uint32_t i : owners_[part]) parts[i].push_back(&parts_[part]);
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      Match& object = result_.objects[i];
      if (object.found && !object.shared) object.looks = looks_of_object(parts[i], object.box);
    }
  }

  /// Finds the unconfirmed objects that are above, below or on a confirmed object, up to a cell away.
  void find_fragments() {
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      Match& object = result_.objects[i];
      if (!object.found || objects_[i].confirmed) continue;
      const Rect& a = object.box;
      for (std::size_t k = 0; k < objects_.size() && !object.fragment; ++k) {
        const Rect& b = result_.objects[k].box;
        const Offset offset = offset_of(a, b);
        object.fragment = result_.objects[k].found && objects_[k].confirmed && offset.gap <= cell_ &&
                          offset.overlap >= stacked_share * std::min(a.width, b.width);
      }
    }
  }

  const std::vector<Expected>& objects_;
  const diff::Cells& cells_;
  const int cell_;
  const std::vector<Part> parts_;

  std::vector<PossiblePair> pairs_;                 ///< row: object, column: part
  std::vector<double> alone_;                       ///< for each object, the cost of getting no part
  std::vector<Inside> inside_;                      ///< ordered by objects, then by parts
  std::vector<std::uint32_t> best_;                 ///< for each object, the part that it was assigned to or joins
  std::vector<std::vector<std::uint32_t>> owners_;  ///< for each part, the objects that take it, in order
  std::vector<int> most_;                           ///< for each object, the largest number of its cells in one part
  Matches result_;
};

}  // namespace

Matches match(const std::vector<Expected>& objects, const diff::MotionRegions& found, const diff::Cells& cells,
              std::size_t most, const SizeMap& sizes) {
  return Matching(objects, found, cells, most, sizes).run();
}

}  // namespace cudavision::track
