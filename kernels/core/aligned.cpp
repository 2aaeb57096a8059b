// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/aligned.hpp"

#include "kernels/core/backend.hpp"
#include "kernels/core/packed.hpp"
#include "kernels/core/packing.hpp"

namespace cudavision {
namespace {

bool is_packed(const Image& image) { return info(image.geometry.format).packing; }

bool at_odd_addresses(const Image& image) {
  if (info(image.geometry.format).sample_bytes() == 1) return false;
  std::uintptr_t bits = 0;
  for (const Plane& plane : image.planes)
    bits |= reinterpret_cast<std::uintptr_t>(plane.data) | std::uintptr_t(plane.pitch);
  return bits & 1;
}

/// The distance between rows in bytes. Rows begin at multiples of 256 bytes.
std::size_t pitch_of(const PlaneExtent& size) { return (size.row_bytes + 255) / 256 * 256; }

/// The bytes of memory that lay_out() needs.
std::size_t block_size(const Geometry& geometry) {
  std::size_t bytes = 0;
  for (int plane = 0; plane < info(geometry.format).planes; ++plane) {
    const PlaneExtent size = extent(geometry, plane);
    bytes += pitch_of(size) * size.rows;
  }
  return bytes;
}

/// Places the planes in a block of memory, one after the other.
void lay_out(Image& image, void* memory) {
  auto* at = static_cast<unsigned char*>(memory);
  for (int plane = 0; plane < info(image.geometry.format).planes; ++plane) {
    const PlaneExtent size = extent(image.geometry, plane);
    image.planes[plane] = {at, std::ptrdiff_t(pitch_of(size))};
    at += pitch_of(size) * size.rows;
  }
}

}  // namespace

Result<Image> AlignedPicture::write(const Image& image) {
  if (is_packed(image) || at_odd_addresses(image)) return allocate(unpacked(image.geometry));
  return image;
}

Result<Image> AlignedPicture::allocate(const Geometry& geometry) {
  Image copy{geometry, {}};
  if (const std::size_t bytes = block_size(geometry); bytes > bytes_) {
    auto memory = on_backend(
        backend_, [&] { return picture_memory_cuda(bytes); }, [&] { return picture_memory_cpu(bytes); });
    if (!memory.ok()) return memory.error();
    memory_ = std::move(memory.value());
    bytes_ = bytes;
  }
  lay_out(copy, memory_.get());
  return copy;
}

Result<Image> AlignedPicture::read(const Image& image, Queue queue) {
  auto copy = write(image);
  if (!copy.ok()) return copy;
  Status status;
  if (is_packed(image))
    status = unpack(backend_, image, copy.value(), queue);
  else if (at_odd_addresses(image))
    status = copy_picture(backend_, image, copy.value(), queue);
  return status.ok() ? copy : Result<Image>(status);
}

Status AlignedPicture::finish(const Image& image, Queue queue) {
  if (is_packed(image) || at_odd_addresses(image)) {
    Image copy{unpacked(image.geometry), {}};
    lay_out(copy, memory_.get());
    if (is_packed(image)) return pack(backend_, copy, image, queue);
    if (Status status = copy_picture(backend_, copy, image, queue); !status.ok()) return status;
  }
  return fill_padding(backend_, image, queue);
}

Status copy_picture(Backend backend, const Image& from, const Image& to, Queue queue, int first_plane) {
  return on_backend(
      backend, [&] { return copy_picture_cuda(from, to, queue, first_plane); },
      [&] { return copy_picture_cpu(from, to, first_plane); });
}

}  // namespace cudavision
