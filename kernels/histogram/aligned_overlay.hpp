// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: code for pictures at odd addresses, shared by both backends.
#pragma once

#include <memory>

#include "kernels/core/aligned.hpp"
#include "kernels/histogram/counting.hpp"

namespace cudavision::histogram {

/// The base of all overlays.
class AlignedOverlay : public Overlay {
 public:
  Status submit(const Image& picture, Queue queue) override;

 protected:
  explicit AlignedOverlay(Backend backend) : picture_(backend) {}
  virtual Status draw(const Image& picture, Queue queue) = 0;

 private:
  AlignedPicture picture_;
};

/// Make the backends. `histogram` must outlive the overlay. Errors: resource.
Result<std::unique_ptr<Overlay>> make_overlay_cuda(OverlayPlan plan, const Counting& histogram);
Result<std::unique_ptr<Overlay>> make_overlay_cpu(OverlayPlan plan, const Counting& histogram);

}  // namespace cudavision::histogram
