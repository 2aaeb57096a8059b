// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>

#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Gives the backends pictures whose samples they can access as words. A picture with 16-bit samples at odd addresses
/// is copied to memory of the backend, and a picture of a packed format (FormatInfo::packing) is unpacked there. This
/// memory is reused for the next picture, and grows if that picture is larger. Any other picture is used in place.
class AlignedPicture {
 public:
  explicit AlignedPicture(Backend backend) : backend_(backend) {}

  /// The picture to read: `image`, or a copy. Errors: resource.
  Result<Image> read(const Image& image, Queue queue);
  /// The picture to which the caller writes all samples. finish() then completes `image`: it copies or packs the
  /// samples if needed, and fills the padding of packed 4:2:2. Errors: resource.
  Result<Image> write(const Image& image);
  Status finish(const Image& image, Queue queue);
  /// A picture in this memory, in addition to the pictures of read() and write(). Errors: resource.
  Result<Image> allocate(const Geometry& geometry);

 private:
  const Backend backend_;
  std::shared_ptr<void> memory_;
  std::size_t bytes_ = 0;  ///< size of memory_
};

/// Copies `first_plane` and all later planes bit for bit. Does not wait for CUDA.
Status copy_picture(Backend backend, const Image& from, const Image& to, Queue queue, int first_plane = 0);

// The functions that each backend provides for this.
Status copy_picture_cuda(const Image& from, const Image& to, Queue queue, int first_plane);
Status copy_picture_cpu(const Image& from, const Image& to, int first_plane);
Result<std::shared_ptr<void>> picture_memory_cuda(std::size_t bytes);
Result<std::shared_ptr<void>> picture_memory_cpu(std::size_t bytes);

}  // namespace cudavision
