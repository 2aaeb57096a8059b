// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/blend/blend.hpp"

#include <algorithm>
#include <string>

#include "kernels/blend/plan.hpp"
#include "kernels/core/aligned.hpp"
#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"

namespace cudavision::blend {
namespace {

std::string side_text(const char* name, int width, int height, const char* allowed, int most) {
  return std::string(name) + " is " + std::to_string(width) + "x" + std::to_string(height) +
         ": width and height must be " + allowed + std::to_string(most);
}

Status check_frame(const char* name, const Geometry& geometry) {
  const int width = geometry.width, height = geometry.height;
  if (std::min(width, height) >= 1 && std::max(width, height) <= max_frame_side) return {};
  return Status::settings(side_text(name, width, height, "1 to ", max_frame_side));
}

}  // namespace

Status validate(const Pad& pad) {
  Status status = check_range("alpha", pad.alpha, 0, 1);
  for (double value : pad.key.color)
    if (status.ok() && !(value >= 0 && value <= 1))  // also rejects NaN
      status =
          Status::settings("key-color is " + number_text(value) + ": it must be 0 to 1 in each of red, green and blue");
  if (status.ok()) status = check_range("key-tolerance", pad.key.tolerance, 0, 255);
  if (status.ok()) status = check_range("key-softness", pad.key.softness, 0, 255);
  if (!status.ok()) return status;
  const Rect &place = pad.place, &crop = pad.crop;
  if (std::max(place.width, place.height) > max_side)
    return Status::settings(side_text("the pad", place.width, place.height, "at most ", max_side));
  for (auto [name, value] : {std::pair("xpos", place.x), {"ypos", place.y}})
    if (status = check_range(name, value, -max_position, max_position); !status.ok()) return status;
  const Geometry& geometry = pad.src.geometry;
  if (status = check_frame("the pad's picture", geometry); !status.ok()) return status;
  if (!crop.empty() &&
      (crop.x < 0 || crop.y < 0 || crop.x > geometry.width - crop.width || crop.y > geometry.height - crop.height))
    return Status::settings("the crop is " + std::to_string(crop.width) + "x" + std::to_string(crop.height) + " at (" +
                            std::to_string(crop.x) + ", " + std::to_string(crop.y) +
                            "): it must lie inside the picture of " + std::to_string(geometry.width) + "x" +
                            std::to_string(geometry.height));
  return {};
}

namespace {

/// Checks and resolves the pads of each frame, and passes them to the backend.
class LayeredBlend final : public Blend {
 public:
  LayeredBlend(const Geometry& geometry, const Color& color, Division division, Backend backend,
               std::unique_ptr<Composer> composer)
      : out_(geometry.format, color.matrix, color.limited),
        division_(division),
        backend_(backend),
        composer_(std::move(composer)),
        target_(make_target(geometry, out_)),
        dst_(backend) {
    layers_.reserve(max_pads);
  }

  Status submit(const Image& dst, const Background& background, const std::vector<Pad>& pads, Queue queue) override {
    return guarded([&]() -> Status {
      const auto to = dst_.write(dst);
      if (!to.ok()) return to.error();
      const Status status = run(to.value(), background, pads, queue);
      return status.ok() ? dst_.finish(dst, queue) : status;
    });
  }

 private:
  Status run(const Image& dst, const Background& background, const std::vector<Pad>& pads, Queue queue) {
    if (pads.size() > max_pads)
      return Status::settings("there are " + std::to_string(pads.size()) + " pads: at most " +
                              std::to_string(max_pads) + " make a picture");
    set_frame(dst, out_, background, target_);
    layers_.clear();
    while (sources_.size() < pads.size()) sources_.push_back(std::make_unique<AlignedPicture>(backend_));
    for (std::size_t i = 0; i < pads.size(); ++i) {
      if (Status status = validate(pads[i]); !status.ok())
        return Status::settings("sink_" + std::to_string(i) + ": " + status.message());
      const auto src = sources_[i]->read(pads[i].src, queue);
      if (!src.ok()) return src.error();
      Layer layer;
      if (resolve(pads[i], src.value(), out_, target_, division_, layer)) layers_.push_back(layer);
    }
    return composer_->submit(target_, layers_, queue);
  }

  const ColorCoding out_;
  const Division division_;
  const Backend backend_;
  const std::unique_ptr<Composer> composer_;
  Target target_;
  std::vector<Layer> layers_;
  AlignedPicture dst_;
  std::vector<std::unique_ptr<AlignedPicture>> sources_;  ///< one entry for each pad
};

}  // namespace

Result<std::unique_ptr<Blend>> make(const Geometry& output, const Color& color, Backend backend, Division division) {
  return guarded([&]() -> Result<std::unique_ptr<Blend>> {
    const Geometry geometry = unpacked(output);
    if (Status status = check_frame("the output", geometry); !status.ok()) return status;
    auto composer = on_backend(
        backend, [&] { return make_cuda(geometry); }, [&] { return make_cpu(geometry); });
    if (!composer.ok()) return composer.error();
    return std::unique_ptr<Blend>(
        std::make_unique<LayeredBlend>(geometry, color, division, backend, std::move(composer.value())));
  });
}

}  // namespace cudavision::blend
