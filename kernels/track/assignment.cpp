// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/assignment.hpp"

#include <functional>
#include <queue>
#include <utility>

namespace cudavision::track {
namespace {

/// Shortest augmenting paths (R. Jonker and A. Volgenant, "A shortest augmenting path algorithm for dense and sparse
/// linear assignment problems", Computing 38, 1987). For each row in order, the algorithm finds the path from the row
/// to a free column that increases the sum least, and exchanges the assignments along it. After the real columns, each
/// row has an additional column for staying alone, at the cost of doing so.
class Assignment {
 public:
  Assignment(std::size_t columns, const std::vector<PossiblePair>& pairs, const std::vector<double>& alone)
      : own_(columns), edges_(alone.size()) {
    for (const PossiblePair& pair : pairs) edges_[pair.row].push_back({pair.column, pair.cost});
    for (std::size_t row = 0; row < alone.size(); ++row) edges_[row].push_back({std::uint32_t(own_ + row), alone[row]});
    row_of_.assign(own_ + alone.size(), unassigned);
    column_of_.assign(alone.size(), unassigned);
    price_.assign(row_of_.size(), 0);
    distance_.resize(row_of_.size());
    before_.resize(row_of_.size());
    done_.resize(row_of_.size());
  }

  std::vector<std::uint32_t> run() {
    for (std::uint32_t row = 0; row < column_of_.size(); ++row) augment(row);
    for (std::uint32_t& column : column_of_)
      if (column >= own_) column = unassigned;
    return std::move(column_of_);
  }

 private:
  struct Edge {
    std::uint32_t column;
    double cost;
  };
  using Reached = std::pair<double, std::uint32_t>;  ///< distance, column

  /// Dijkstra's algorithm over the columns, with costs reduced by the prices of columns. Along assigned pairs, the
  /// gains of rows make these costs 0.
  void augment(std::uint32_t first) {
    distance_.assign(distance_.size(), std::numeric_limits<double>::infinity());
    done_.assign(done_.size(), false);
    std::priority_queue<Reached, std::vector<Reached>, std::greater<Reached>> next;
    std::vector<std::uint32_t> passed;
    const auto look_from = [&](std::uint32_t row, double so_far) {
      for (const Edge& edge : edges_[row]) {
        const double distance = so_far + edge.cost - price_[edge.column];
        if (done_[edge.column] || !(distance < distance_[edge.column])) continue;
        distance_[edge.column] = distance;
        before_[edge.column] = row;
        next.push({distance, edge.column});
      }
    };
    look_from(first, 0);
    for (;;) {  // terminates: the row's additional column is free
      const auto [distance, column] = next.top();
      next.pop();
      if (done_[column]) continue;
      done_[column] = true;
      const std::uint32_t row = row_of_[column];
      if (row == unassigned) {
        for (std::uint32_t c : passed) price_[c] += distance_[c] - distance;
        return exchange(first, column);
      }
      passed.push_back(column);
      // The cost of the pair that the path would remove.
      look_from(row, distance - (cost(row, column) - price_[column]));
    }
  }

  double cost(std::uint32_t row, std::uint32_t column) const {
    for (const Edge& edge : edges_[row])
      if (edge.column == column) return edge.cost;
    return 0;
  }

  /// Assigns along the path that ends in a free column.
  void exchange(std::uint32_t first, std::uint32_t column) {
    for (;;) {
      const std::uint32_t row = before_[column];
      row_of_[column] = row;
      std::swap(column_of_[row], column);
      if (row == first) return;
    }
  }

  const std::size_t own_;  ///< the first of the additional columns, one for each row
  std::vector<std::vector<Edge>> edges_;
  std::vector<std::uint32_t> row_of_, column_of_;
  std::vector<double> price_, distance_;
  std::vector<std::uint32_t> before_;  ///< for each column, the row from which it was reached
  std::vector<bool> done_;
};

}  // namespace

std::vector<std::uint32_t> assign(std::size_t columns, const std::vector<PossiblePair>& pairs,
                                  const std::vector<double>& alone) {
  return Assignment(columns, pairs, alone).run();
}

}  // namespace cudavision::track
