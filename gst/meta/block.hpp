// SPDX-License-Identifier: LGPL-2.1-or-later
// Code that the metas share. It does not use the C++ runtime library, so C applications need not load it.
#pragma once

#include "gst/meta/prelude.h"

namespace cudavision {

/// The value that make() returned on the first call of this function with `location`.
template <typename Make>
gsize once(gsize* location, Make make) {
  if (g_once_init_enter(location)) g_once_init_leave(location, gsize(make()));
  return *location;
}

/// A meta with plain members. The member `block` points to a g_atomic_rc_box that copies of the meta share. `clear`
/// frees the data that the block refers to; it may be null.
template <auto block, auto clear>
struct BlockMeta;

template <typename Meta, typename Item, const Item* Meta::*block, auto clear>
struct BlockMeta<block, clear> {
  static const GstMetaInfo* register_info(GType api, const char* name) {
    return gst_meta_register(api, name, sizeof(Meta), init, free, transform);
  }

  /// Adds a meta with the members of `model`, and takes over the reference of `model` to the block.
  static Meta* add(GstBuffer* buffer, const GstMetaInfo* info, Meta* model) {
    auto* meta = reinterpret_cast<Meta*>(gst_buffer_add_meta(buffer, info, model));
    release(model);
    return meta;
  }

 private:
  static gpointer box(Meta* meta) { return const_cast<Item*>(meta->*block); }
  static void release(Meta* meta) {
    if (box(meta)) g_atomic_rc_box_release_full(box(meta), clear);
  }

  static gboolean init(GstMeta* meta, gpointer model, GstBuffer*) {
    auto* self = reinterpret_cast<Meta*>(meta);
    const GstMeta head = *meta;
    *self = model ? *static_cast<Meta*>(model) : Meta{};
    *meta = head;
    if (box(self)) g_atomic_rc_box_acquire(box(self));
    return TRUE;
  }
  static void free(GstMeta* meta, GstBuffer*) { release(reinterpret_cast<Meta*>(meta)); }
  static gboolean transform(GstBuffer* to, GstMeta* meta, GstBuffer*, GQuark type, gpointer data) {
    if (!GST_META_TRANSFORM_IS_COPY(type)) return FALSE;
    if (static_cast<GstMetaTransformCopy*>(data)->region) return TRUE;
    return gst_buffer_add_meta(to, meta->info, meta) != nullptr;
  }
};

}  // namespace cudavision
