// SPDX-License-Identifier: LGPL-2.1-or-later
// DLPack tensors (https://dmlc.github.io/dlpack/latest/c_api.html). Written in C++ instead of Python, because consumers
// delete tensors on any thread, without the interpreter's lock, and sometimes after the interpreter has ended.
#include "gst/frames/dlpack.hpp"

#include "gst/frames/maker.hpp"
#include "gst/frames/owner.hpp"

namespace cudavision::frames {
namespace {

constexpr const char *unversioned_name = "dltensor", *versioned_name = "dltensor_versioned";
constexpr std::uint64_t read_only = 1;

/// A tensor together with the data that it points to.
template <typename Managed>
struct Exported {
  Managed managed;
  std::int64_t shape[3], strides[3];
};

template <typename Managed>
void delete_tensor(Managed* managed) {
  static_cast<Owner*>(managed->manager_ctx)->unref();
  delete reinterpret_cast<Exported<Managed>*>(managed);  // `managed` is its first member
}

template <typename Managed>
Managed* export_tensor(Owner* owner, const CudavisionArray& array) {
  auto* exported = new Exported<Managed>{};
  for (int i = 0; i < array.dimensions; ++i) {
    exported->shape[i] = array.shape[i];
    exported->strides[i] = array.strides[i] / (array.bits / 8);
  }
  exported->managed.manager_ctx = owner->ref();
  exported->managed.deleter = delete_tensor<Managed>;
  dlpack::Tensor& tensor = exported->managed.tensor;
  tensor.data = array.data;  // includes the offset of the plane, because some consumers ignore byte_offset
  tensor.device = {array.device_type, array.device_id};
  tensor.dimensions = array.dimensions;
  tensor.type = {std::uint8_t(array.code), std::uint8_t(array.bits), 1};
  tensor.shape = exported->shape;
  tensor.strides = exported->strides;
  return &exported->managed;
}

std::atomic<const CudavisionPython*> python{nullptr};
std::atomic<int> ending{0};  // number of sources that another thread is deleting

/// Waits until no sources are being deleted, but not forever. The caller must not hold the interpreter's lock.
void wait_for_deletions() {
  for (int ms = 0; ending > 0 && ms < 10000; ++ms) g_usleep(1000);
}

}  // namespace

/// Python libraries give arrays back under the interpreter's lock, and a thread may have to wait a long time for this
/// lock. A streaming thread, and the thread that drops references for all elements, must not wait. So unless the
/// current thread holds the lock, another thread deletes the sources.
void Sources::end() {
  const CudavisionPython* interpreter = python.load();
  if (!interpreter || interpreter->holds_gil()) {
    delete this;
    return;
  }
  const GFunc delete_sources = [](gpointer sources, gpointer) {
    delete static_cast<Sources*>(sources);
    --ending;
  };
  static GThreadPool* const thread = g_thread_pool_new(delete_sources, nullptr, 1, FALSE, nullptr);
  ++ending;
  g_thread_pool_push(thread, this, nullptr);
}

Sources::~Sources() {
  for (const CudavisionSource& source : sources_) {
    if (source.managed && source.versioned) {
      auto* managed = static_cast<dlpack::ManagedVersioned*>(source.managed);
      if (managed->deleter) managed->deleter(managed);
    } else if (source.managed) {
      auto* managed = static_cast<dlpack::Managed*>(source.managed);
      if (managed->deleter) managed->deleter(managed);
    }
    const CudavisionPython* interpreter = python.load();
    if (source.object && interpreter) {
      const int state = interpreter->ensure_gil();
      interpreter->decrement(source.object);
      interpreter->release_gil(state);
    }
  }
}

}  // namespace cudavision::frames

using namespace cudavision::frames;

void cudavision_frames_python(const CudavisionPython* functions) {
  static CudavisionPython copy;
  if (functions)
    copy = *functions;
  else
    wait_for_deletions();  // deletions need the interpreter
  python = functions ? &copy : nullptr;
}

void* cudavision_dlpack_new(CudavisionOwner* owner, const CudavisionArray* array, int versioned) {
  if (!versioned) return export_tensor<dlpack::Managed>(owner, *array);
  auto* managed = export_tensor<dlpack::ManagedVersioned>(owner, *array);
  managed->major = 1;
  managed->flags = array->writable ? 0 : read_only;
  return managed;
}

void cudavision_capsule_destroyed(void* capsule) {
  const CudavisionPython* interpreter = python.load();
  if (!interpreter) return;
  // A consumer renames the capsule and deletes the tensor itself.
  if (interpreter->capsule_is_valid(capsule, unversioned_name))
    delete_tensor(static_cast<dlpack::Managed*>(interpreter->capsule_pointer(capsule, unversioned_name)));
  else if (interpreter->capsule_is_valid(capsule, versioned_name))
    delete_tensor(static_cast<dlpack::ManagedVersioned*>(interpreter->capsule_pointer(capsule, versioned_name)));
}
