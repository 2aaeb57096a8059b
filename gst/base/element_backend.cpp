// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/element_backend.hpp"

#include <gst/video/video.h>

#include <string>
#include <utility>

#include "gst/base/caps.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/log.hpp"
#include "gst/base/processor.hpp"
#include "gst/base/settings/properties.hpp"
#include "kernels/core/backend.hpp"

GST_DEBUG_CATEGORY(cudavision_debug);

namespace cudavision {
namespace {

enum BackendChoice { BACKEND_AUTO, BACKEND_CUDA, BACKEND_CPU };
constexpr Choice backend_choices[] = {{BACKEND_AUTO, "auto", "CUDA if a device can be opened, otherwise the CPU"},
                                      {BACKEND_CUDA, "cuda", "CUDA"},
                                      {BACKEND_CPU, "cpu", "CPU (OpenCV)"}};

GType backend_type() {
  static const GType type = enum_from_table("GstCudaVisionBackend", backend_choices);
  return type;
}

}  // namespace

void post_error(GstElement* element, const Status& status) {
  if (status.code() == Status::Code::settings)
    GST_ELEMENT_ERROR(element, LIBRARY, SETTINGS, ("%s", message_text(status).c_str()), (nullptr));
  else if (status.code() == Status::Code::frame)
    GST_ELEMENT_ERROR(element, STREAM, FORMAT, ("%s", message_text(status).c_str()), (nullptr));
  else
    GST_ELEMENT_ERROR(element, RESOURCE, FAILED, ("%s", message_text(status).c_str()), (nullptr));
}

void post_advice(GstElement* element, std::string advice, std::string& posted) {
  if (advice != posted && !advice.empty())
    GST_ELEMENT_WARNING(element, STREAM, FORMAT, ("%s", advice.c_str()), (nullptr));
  posted = std::move(advice);
}

Status too_many_misfits(guint count, const std::string& why) {
  return Status::frame(std::to_string(count) + " frames in a row do not fit their caps: " + why);
}

std::string message_text(const Status& status) {
  g_autofree gchar* valid = g_utf8_make_valid(status.message().c_str(), -1);
  return valid;
}

// Properties ----------------------------------------------------------------------------------------------------------

ElementBackend::ElementBackend(GstElement* element) : element_(element) {
  const auto notified = +[](GObject*, GParamSpec* changed, gpointer self) {
    auto* host = static_cast<ElementBackend*>(self);
    host->guard([&] {
      for (const auto& property : properties())
        if (g_str_equal(property.spec->name, changed->name)) host->changed(property);
    });
  };
  for (const auto& property : properties())
    g_signal_connect(element, (std::string("notify::") + property.spec->name).c_str(), G_CALLBACK(notified), this);
}

void ElementBackend::changed(const Property<Settings>& property) {
  const std::string name = property.spec->name;
  Status status;
  bool late = false;
  {
    ObjectLock lock(element_);
    if (!backend_) return;
    status = property.check(wanted_);
    if (!status.ok()) property.copy(good_, wanted_);
    late = (name == "backend" && wanted_.backend != opened_.backend) ||
           (name == "cuda-device-id" && wanted_.device_id != opened_.device_id);
  }
  if (!status.ok())
    GST_ELEMENT_WARNING(element_, LIBRARY, SETTINGS, ("%s", message_text(status).c_str()),
                        ("the last good settings stay in use"));
  else if (late)
    GST_ELEMENT_WARNING(element_, LIBRARY, SETTINGS,
                        ("%s was changed: this takes effect when the element goes to NULL and restarts", name.c_str()),
                        (nullptr));
  else if (name == "async-depth") {
    // Waiting frames are taken from the pool. If their number changes, the pool must be chosen again.
    gst_pad_mark_reconfigure(owned(gst_element_get_static_pad(element_, "src")).get());
  }
}

std::vector<Property<ElementBackend::Settings>> ElementBackend::new_properties() {
  return {
      {g_param_spec_enum("backend", "Backend",
                         "The backend that processes frames; takes effect when the element leaves the state NULL",
                         backend_type(), Settings().backend, null_property),
       &Settings::backend},
      {int_spec("cuda-device-id", "CUDA device",
                "Number of the CUDA device; -1 is any device; takes effect when the element leaves the state NULL", -1,
                G_MAXINT, Settings().device_id, null_property),
       &Settings::device_id},
      Property<Settings>::count(
          "async-depth", "Async depth", &Settings::async_depth, 0, max_async_depth,
          "Number of frames that wait in the element while the GPU copies and computes later frames, {}; each adds "
          "the duration of a frame to the latency. Frames that need not wait are pushed immediately"),
  };
}

const std::vector<Property<ElementBackend::Settings>>& ElementBackend::properties() {
  static const auto* const table = new std::vector(new_properties());  // never deleted, because it owns its specs
  return *table;
}

void ElementBackend::install_properties(GObjectClass* klass, guint first) {
  GST_DEBUG_CATEGORY_INIT(cudavision_debug, "cudavision", 0, "cudavision elements");
  for (const auto& property : new_properties()) g_object_class_install_property(klass, first++, property.spec);
  g_object_class_install_property(
      klass, first,
      g_param_spec_enum("active-backend", "Active backend",
                        "The backend in use from the READY state on; auto means none yet", backend_type(), BACKEND_AUTO,
                        GParamFlags(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

void ElementBackend::set_property(guint index, const GValue* value) {
  const ObjectLock lock(element_);
  const auto& property = properties()[index];
  property.set(wanted_, value);
  if (!property.check(wanted_).ok()) return;
  property.copy(wanted_, good_);
  async_depth_ = good_.async_depth;
}

void ElementBackend::get_property(guint index, GValue* value) const {
  const ObjectLock lock(element_);
  if (index < properties().size()) return properties()[index].get(wanted_, value);
  g_value_set_enum(value, !backend_ ? BACKEND_AUTO : *backend_ == Backend::cuda ? BACKEND_CUDA : BACKEND_CPU);
}

// Backend -------------------------------------------------------------------------------------------------------------

GstStateChangeReturn ElementBackend::change_state(GstElementClass* base, GstStateChange transition) {
  if (transition == GST_STATE_CHANGE_NULL_TO_READY && !open()) return GST_STATE_CHANGE_FAILURE;
  const GstStateChangeReturn result = base->change_state(element_, transition);
  if (transition == GST_STATE_CHANGE_READY_TO_NULL ||
      (transition == GST_STATE_CHANGE_NULL_TO_READY && result == GST_STATE_CHANGE_FAILURE))
    close();
  return result;
}

bool ElementBackend::open() {
  Settings settings;
  {
    ObjectLock lock(element_);
    settings = wanted_;
  }
  if (const Status status = check_ranges(settings, properties()); !status.ok()) {
    post_error(status);
    return false;
  }
  const int wanted = settings.backend, device_id = settings.device_id;
  std::optional<Backend> backend;
  std::string reason;
  if (wanted != BACKEND_CPU) {
    const Status opened = gpu.open(element_, device_id);
    if (opened.ok())
      backend = Backend::cuda;
    else
      reason = opened.message();
  }
  if (!backend && wanted != BACKEND_CUDA) {
    if (built_with(Backend::cpu))
      backend = Backend::cpu;
    else
      reason += (reason.empty() ? "" : "; ") + std::string("this build has no CPU backend");
  }
  if (!backend) {
    if (wanted == BACKEND_CUDA)
      GST_ELEMENT_ERROR(element_, RESOURCE, NOT_FOUND,
                        ("backend=cuda cannot be used: %s. Set backend=cpu, or backend=auto, to run on the processor",
                         reason.c_str()),
                        (nullptr));
    else
      GST_ELEMENT_ERROR(element_, RESOURCE, NOT_FOUND, ("no backend can be used: %s", reason.c_str()), (nullptr));
    return false;
  }
  GST_INFO_OBJECT(element_, "running on the %s%s%s", *backend == Backend::cuda ? "GPU (CUDA)" : "processor (OpenCV)",
                  reason.empty() ? "" : ": ", reason.c_str());
  if (wanted == BACKEND_AUTO && backend == Backend::cpu && device_id >= 0)
    GST_ELEMENT_WARNING(element_, RESOURCE, NOT_FOUND,
                        ("cuda-device-id is %d, but the element runs on the processor: %s", device_id, reason.c_str()),
                        (nullptr));
  {
    ObjectLock lock(element_);
    backend_ = backend;
    uses_cuda_ = backend == Backend::cuda;
    opened_ = settings;
    no_cuda_ = reason;
    said_no_cuda_ = false;
    noted_copies_.clear();
  }
  g_object_notify(G_OBJECT(element_), "active-backend");
  return true;
}

void ElementBackend::close() {
  {
    ObjectLock lock(element_);
    backend_.reset();
    uses_cuda_ = false;
  }
  gpu.close();
}

void ElementBackend::set_context(GstElementClass* base, GstContext* context) {
  int device_id;
  {
    ObjectLock lock(element_);
    device_id = wanted_.device_id;
  }
  gpu.offer_context(element_, context, device_id);
  base->set_context(element_, context);
}

bool ElementBackend::answers(GstQuery* query) const {
  return GST_QUERY_TYPE(query) == GST_QUERY_CONTEXT && gpu.answer_context_query(element_, query);
}

bool ElementBackend::follows(GstBuffer* buffer) const {
  if (!gpu.is_foreign(buffer)) return false;
  ObjectLock lock(element_);
  return opened_.device_id < 0 || !gpu.is_on_other_device(buffer);
}

Status ElementBackend::adopt(GstBuffer* buffer) {
  GST_INFO_OBJECT(element_, "switching to the CUDA context of the incoming frames");
  return gpu.adopt(buffer);
}

bool ElementBackend::may_use_cuda() const {
  ObjectLock lock(element_);
  return backend_ ? backend_ == Backend::cuda : wanted_.backend != BACKEND_CPU;
}

GstFlowReturn ElementBackend::failed(const Status& status) const {
  post_error(status);
  return GST_FLOW_ERROR;
}

void ElementBackend::check_memory_of_peer(GstPad* src) {
  if (!GST_PAD_IS_ACTIVE(src)) return;
  const auto wanted = owned(gst_pad_peer_query_caps(src, nullptr));
  bool only_cuda = !gst_caps_is_any(wanted.get()) && !gst_caps_is_empty(wanted.get());
  for (guint i = 0; only_cuda && i < gst_caps_get_size(wanted.get()); ++i)
    only_cuda = gst_caps_features_contains(gst_caps_get_features(wanted.get(), i), cuda_memory_feature);
  std::string reason;
  {
    ObjectLock lock(element_);
    if (!only_cuda || backend_ != Backend::cpu || std::exchange(said_no_cuda_, true)) return;
    reason = no_cuda_.empty() ? "backend=cpu is set" : no_cuda_;
  }
  GST_ELEMENT_ERROR(
      element_, STREAM, FORMAT,
      ("downstream takes %s only, but this element works in system memory: %s", cuda_memory_feature, reason.c_str()),
      (nullptr));
}

void ElementBackend::note_copies(GstPad* pad, GstCaps* caps) {
  // Nobody would read the message, and the queries take time.
  if (gst_debug_category_get_threshold(cudavision_debug) < GST_LEVEL_INFO) return;
  if (!uses_cuda() || !could_be_in_cuda(pad, caps)) return;
  const auto peer = owned(gst_pad_get_peer(pad));
  if (!peer) return;
  bool is_first;
  {
    ObjectLock lock(element_);
    is_first = noted_copies_.insert(GST_PAD_NAME(pad)).second;
  }
  if (is_first)
    GST_INFO_OBJECT(element_,
                    "%s: frames are copied across the bus, although %s:%s can also use %s for them: put a capsfilter "
                    "%s(%s) between them",
                    GST_PAD_NAME(pad), GST_DEBUG_PAD_NAME(peer.get()), cuda_memory_feature,
                    gst_structure_get_name(gst_caps_get_structure(caps, 0)), cuda_memory_feature);
}

Status ElementBackend::finish_work() {
  if (!gpu.has_unfinished_work()) return {};
  const Gpu::Scope scope(gpu);
  return scope.status().ok() ? gpu.finish() : scope.status();
}

bool ElementBackend::finish_or_post_error() {
  const Status status = finish_work();
  if (!status.ok()) post_error(status);
  return status.ok();
}

}  // namespace cudavision
