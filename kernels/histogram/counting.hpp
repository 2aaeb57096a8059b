// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: code shared by both backends: the pieces of a region, and the results of several frames.
#pragma once

#include <memory>

#include "kernels/core/aligned.hpp"
#include "kernels/histogram/plan.hpp"

namespace cudavision::histogram {

/// The base of all histograms.
class Counting : public Histogram {
 public:
  Backend backend() const override { return backend_; }
  const Geometry& geometry() const override { return plan_.geometry; }
  Status submit(const Image& src, const Region& region, Queue queue) override;
  void add_result(Counts& sums, int age) const override;

  /// The counts of the last frame, [channel][bin], in the backend's memory (CUDA: device memory), for work on the same
  /// queue.
  virtual const std::uint32_t* latest() const = 0;
  const Plan& plan() const { return plan_; }

 protected:
  /// `results`: whether to keep counts for result().
  Counting(Plan plan, Backend backend, bool results);

  /// The number of counts of one frame.
  std::size_t words() const { return plan_.channels.size() * std::size_t(plan_.bins); }
  /// The number of frames whose results are kept.
  int slots() const { return slots_; }
  /// Counts the samples of `pieces`. Writes the counts to latest() and, if slots() is not 0, to `slot` of the results.
  virtual Status count(const Image& src, const SetPieces& pieces, int slot, Queue queue) = 0;
  /// The counts of a slot, [channel][bin], in host memory.
  virtual const std::uint32_t* slot_counts(int slot) const = 0;

 private:
  const Plan plan_;
  const Backend backend_;
  const int slots_;
  SetPieces frame_, pieces_;
  AlignedPicture src_;
  int last_ = 0;
};

/// Make the backends. CUDA plans are made and used with the context current. `results`: see Counting. Errors: resource.
Result<std::unique_ptr<Counting>> make_cuda(Plan plan, bool results);
Result<std::unique_ptr<Counting>> make_cpu(Plan plan);

}  // namespace cudavision::histogram
