// SPDX-License-Identifier: LGPL-2.1-or-later
// What both backends share: which frames are compared, results by ticket, and boxes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/core/aligned.hpp"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

class Sequence : public Diff {
 public:
  const Geometry& geometry() const override { return plan_.geometry; }
  Status submit(const Image& src, const Image& dst, Queue queue) override;
  void reset() override { number_ = 0; }
  bool continue_from(Diff& previous) override;
  std::uint64_t ticket() const override { return ticket_; }
  using Diff::result;
  const FrameResult& result(std::uint64_t ticket) override;
  Status draw_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue) override;

 protected:
  Sequence(Plan plan, Backend backend)
      : plan_(std::move(plan)), src_(backend), dst_(backend), compared_(std::size_t(plan_.params.in_flight)) {
    result_.cells = plan_.cells;
  }
  const Plan& plan() const { return plan_; }

  /// The references: ring_size() pictures, which the backend allocates. A frame is stored in place of the reference
  /// that it is compared with.
  std::vector<Image> ring_;

  virtual Status compute(const Frame& frame, Queue queue) = 0;
  /// Swaps the kept references, except ring_, with a plan that keeps the same planes. Returns false if `other` has
  /// another backend.
  virtual bool swap_reference(Sequence& other) = 0;
  /// Adds the changed pixels of each cell to `changed`. Called for frames with Frame::compared.
  virtual FrameCounts collect(int slot, std::vector<std::uint32_t>& changed) const = 0;
  /// Sets the looks of the cells that changed in a frame. `looks` has an element for each cell.
  virtual void collect_looks(int slot, std::vector<CellLooks>& looks) const = 0;
  /// Fills rectangles with the colour of boxes.
  virtual Status fill(const Image& dst, const std::vector<Fill>& fills, Queue queue) = 0;

 private:
  Status run(const Image& src, const Image& dst, Queue queue);
  bool take_over(Sequence& previous);
  Status fill_boxes(const Image& dst, const std::vector<MotionRegion>& regions, Queue queue);

  const Plan plan_;
  AlignedPicture src_, dst_;
  std::vector<bool> compared_;  ///< by slot
  std::uint64_t number_ = 0, ticket_ = 0;
  FrameResult result_;  ///< result of the last call; its vectors are reused, because most frames change few cells
};

}  // namespace cudavision::diff
