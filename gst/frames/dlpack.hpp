// SPDX-License-Identifier: LGPL-2.1-or-later
// The structures of DLPack 0.8 (unversioned) and 1.0 (versioned), as laid out in its specification.
#pragma once

#include <cstdint>

namespace cudavision::frames::dlpack {

struct Device {
  std::int32_t type, id;
};

struct Type {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  Type type;
  std::int64_t *shape, *strides;  // strides in elements
  std::uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* manager_ctx;
  void (*deleter)(Managed*);
};

struct ManagedVersioned {
  std::uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace cudavision::frames::dlpack
