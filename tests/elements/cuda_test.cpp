// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests that need a CUDA device: frames in device memory, CUDA contexts, and the CUDA backend compared with the CPU
// backend.
#include <cstdio>

#include "backends.h"
#include "tests/elements/harness.hpp"

#if CUDAVISION_CUDA
#include "gst/base/compat.hpp"
#include "tests/elements/cuda_context.hpp"

using namespace cudavision::test;

namespace {

const Size size{85, 66};  // even height: libgstcuda fails for some formats with an odd height
const Size even{84, 66};  // for packed 4:2:2, where libgstcuda fails with an odd width

Run on_cpu(const Run& run) { return {run.element, "cpu"}; }

/// The expected result: the output of the element on the CPU, applied `times` times. With the settings of the profiles,
/// both backends give the same bits.
Picture expected_of(const Run& run, const GstVideoInfo& video, const Buffer& frame, int times = 1) {
  Rig rig(on_cpu(run), "", caps_of(video));
  Buffer result = copied(frame);
  while (times-- > 0) result = rig.push(std::move(result));
  return picture(result.get(), video);
}

/// Runs a kernel that fails. After this, CUDA answers each call in this context with an error.
void lose_gpu(GstCudaContext* context) {
  constexpr char ptx[] = ".version 6.4 .target sm_75 .address_size 64 .visible .entry fail() { trap; }";
  CUmodule module;
  CUfunction fail_at_once;
  EXPECT(gst_cuda_context_push(context));
  EXPECT_EQ(CuModuleLoadData(&module, ptx), CUDA_SUCCESS);
  EXPECT_EQ(CuModuleGetFunction(&fail_at_once, module, "fail"), CUDA_SUCCESS);
  EXPECT_EQ(CuLaunchKernel(fail_at_once, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT(CuStreamSynchronize(nullptr) != CUDA_SUCCESS);
  gst_cuda_context_pop(nullptr);
}

/// The pipeline `first ! second`, with access to the pad between the elements.
struct Pair {
  GstElement *first, *second;
  Rig rig;

  explicit Pair(const Run& run, const std::string& settings = "")
      : Pair(with_shared_context(make_element(run, settings), run), make_element(run, settings)) {}
  Pair(GstElement* a, GstElement* b) : first(a), second(b), rig(bin(a, b)) {}

  Caps middle_caps() const {
    g_autoptr(GstPad) pad = gst_element_get_static_pad(first, "src");
    return Caps(gst_pad_get_current_caps(pad));
  }

 private:
  static GstElement* bin(GstElement* a, GstElement* b) {
    GstElement* bin = gst_bin_new(nullptr);
    gst_bin_add_many(GST_BIN(bin), a, b, nullptr);
    EXPECT(gst_element_link(a, b));
    for (const auto& [element, name] : {std::pair{a, "sink"}, {b, "src"}}) {
      g_autoptr(GstPad) pad = gst_element_get_static_pad(element, name);
      gst_element_add_pad(bin, gst_ghost_pad_new(name, pad));
    }
    return bin;
  }
};

bool in_cuda_memory(const Caps& caps) {
  return caps && gst_caps_features_contains(gst_caps_get_features(caps.get(), 0), cuda_memory);
}
bool in_cuda_memory(GstBuffer* buffer) { return gst_is_cuda_memory(gst_buffer_peek_memory(buffer, 0)); }
GstCudaContext* context_of(GstBuffer* buffer) {
  return GST_CUDA_MEMORY_CAST(gst_buffer_peek_memory(buffer, 0))->context;
}

/// The element's answer to a query for a CUDA context; nullptr if there is none.
GstCudaContext* context_of(GstElement* element) {
  g_autoptr(GstPad) pad = gst_element_get_static_pad(element, "src");
  g_autoptr(GstQuery) query = gst_query_new_context(GST_CUDA_CONTEXT_TYPE);
  GstCudaContext* found = nullptr;
  GstContext* context = nullptr;
  if (gst_pad_query(pad, query)) gst_query_parse_context(query, &context);
  if (context)
    gst_structure_get(gst_context_get_structure(context), GST_CUDA_CONTEXT_TYPE, GST_TYPE_CUDA_CONTEXT, &found,
                      nullptr);
  if (found) gst_object_unref(found);  // the element keeps a reference
  return found;
}

/// Makes the downstream peer accept device memory only.
void want_cuda(const Rig& rig, const std::string& format) {
  gst_harness_set_sink_caps_str(rig.harness(), caps_text(format, size, "", cuda_memory).c_str());
}

/// While this object exists, the GPU pauses for up to this many ms before random frames of the elements that start.
class LateStreams {
 public:
  explicit LateStreams(const char* ms) : already_(g_getenv(variable)) {
    if (!already_) g_setenv(variable, ms, TRUE);
  }
  ~LateStreams() {
    if (!already_) g_unsetenv(variable);
  }
  LateStreams(const LateStreams&) = delete;
  LateStreams& operator=(const LateStreams&) = delete;

 private:
  static constexpr const char* variable = "CUDAVISION_DELAY_STREAMS";
  const bool already_;
};

Buffer uploaded(GstCudaContext* context, const GstVideoInfo& video, const Buffer& frame) {
  gst_cuda_memory_init_once();
  const Caps caps(gst_caps_from_string(caps_of(video, cuda_memory).c_str()));
  g_autoptr(GstBufferPool) pool = gst_cuda_buffer_pool_new(context);
  GstStructure* config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps.get(), guint(GST_VIDEO_INFO_SIZE(&video)), 0, 0);
  EXPECT(gst_buffer_pool_set_config(pool, config) && gst_buffer_pool_set_active(pool, TRUE));
  GstBuffer* buffer = nullptr;
  EXPECT_EQ(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
  gst_buffer_pool_set_active(pool, FALSE);
  copy_frame(frame.get(), buffer, video);
  return Buffer(buffer);
}

}  // namespace

TEST(stays_on_the_device_between_two_elements, Each::run) {
  const std::vector<std::string> names = formats(run, cuda_memory);
  EXPECT(names.size() >= 24);
  for (const std::string& format : names) {
    at(format);
    Pair pair(run);
    gst_harness_set_sink_caps_str(pair.rig.harness(), "video/x-raw");
    const bool packed = format == "YUY2" || format == "UYVY";  // with an odd width it stays in system memory
    pair.rig.caps(caps_text(format, packed ? even : size));
    const Buffer frame = noise(pair.rig.video());
    const Picture expected = expected_of(run, pair.rig.video(), frame, 2);
    for (int i = 0; i < 3; ++i) EXPECT_SAME(pair.rig.filter(frame), expected);
    EXPECT(in_cuda_memory(pair.middle_caps()));
    EXPECT(!in_cuda_memory(pair.rig.src_caps()));
  }
}

TEST(negotiates_in_a_pipeline, Each::run) {
  const auto with = [&](const std::string& element) { return element + " backend=cuda " + profile(element).needs; };
  for (const Profile& other : profiles())
    for (const auto& [sink, on_device] : {std::pair{"video/x-raw ! appsink wait-on-eos=false", false},
                                          {"video/x-raw(memory:CUDAMemory) ! fakesink", true}}) {
      at(other.element + " " + sink);
      const std::string text = "videotestsrc num-buffers=5 ! video/x-raw,format=NV12 ! " + with(run.element) +
                               " name=a ! " + with(other.element) + " name=b ! " + sink + " sync=false";
      g_autoptr(GstElement) pipeline = gst_parse_launch(text.c_str(), nullptr);
      with_shared_context(pipeline, run);
      g_autoptr(GstMessage) last = play_to_end(pipeline);
      EXPECT(last && GST_MESSAGE_TYPE(last) == GST_MESSAGE_EOS);
      for (const auto& [name, expected] : {std::pair{"a", true}, {"b", bool(on_device)}}) {
        g_autoptr(GstElement) one = gst_bin_get_by_name(GST_BIN(pipeline), name);
        g_autoptr(GstPad) pad = gst_element_get_static_pad(one, "src");
        EXPECT_EQ(in_cuda_memory(Caps(gst_pad_get_current_caps(pad))), expected);
      }
      gst_element_set_state(pipeline, GST_STATE_NULL);
    }
}

TEST(gives_finished_frames_to_other_plugins, Each::run) {
  for (const char* format : {"NV12", "RGBA", "I420"}) {
    at(format);
    Rig rig(run);
    want_cuda(rig, format);
    rig.caps(caps_text(format, size));
    for (unsigned i = 0; i < 50; ++i) {
      const Buffer frame = noise(rig.video(), i);
      const Buffer result = rig.push(copied(frame));
      EXPECT(in_cuda_memory(result.get()));
      EXPECT_SAME(picture(result.get(), rig.video()), expected_of(run, rig.video(), frame));
    }
    EXPECT(in_cuda_memory(rig.src_caps()));
  }
}

namespace {

/// Settings with which an element passes frames on while the GPU still works on them, and settings with which it waits
/// for results, which go into metas or the picture.
struct Modes {
  std::vector<std::string> early, waiting;
};
Modes modes(const Run& run) {
  if (run.element == "cudadiff")
    return {{"attach-roi=false", "attach-roi=false output=mask", "attach-roi=false output=passthrough"},
            {"attach-roi=true", "output=overlay"}};
  if (run.element == "cudahistogram")
    return {{"equalize=false", "equalize=true", "equalize=false overlay=true", "equalize=true post-messages=false",
             "equalize=false watch=true"},
            {"add-meta=true"}};
  if (run.element == "cudaintegral")
    return {{"output=box-mean", "output=threshold", "output=pixelate radius=0"}, {"output=passthrough"}};
  return {{""}, {}};
}

/// The text of the next element message on the bus of a rig; empty if none arrives within `wait`.
std::string next_message(const Rig& rig, GstClockTime wait = 0) {
  g_autoptr(GstBus) bus = gst_element_get_bus(rig.element());
  g_autoptr(GstMessage) message = gst_bus_timed_pop_filtered(bus, wait, GST_MESSAGE_ELEMENT);
  g_autofree gchar* text = message ? gst_structure_to_string(gst_message_get_structure(message)) : nullptr;
  return text ? text : "";
}

}  // namespace

TEST(does_not_wait_between_elements_in_cuda_memory, Each::run) {
  constexpr int count = 8;  // number of frames; an element keeps this many results
  struct Found {
    int waits;
    bool passes;  // whether the frames themselves are passed on
  };
  const auto play = [&](const std::string& settings) {
    at(settings);
    Pair pair(run, settings);
    want_cuda(pair.rig, "NV12");
    pair.rig.caps(caps_text("NV12", size, "", cuda_memory));
    std::vector<Buffer> frames, results;
    for (int i = 0; i < count; ++i)
      frames.push_back(uploaded(context_of(pair.first), pair.rig.video(), noise(pair.rig.video(), unsigned(i))));
    const GstBuffer* const first = frames[0].get();
    results.push_back(pair.rig.push(std::move(frames[0])));  // this allocates
    const bool passes = results[0].get() == first;
    LineCount waits("waits for the GPU");  // waits on the host
    for (int i = 1; i < count; ++i) results.push_back(pair.rig.push(std::move(frames[std::size_t(i)])));
    return Found{waits.take(), passes};
  };
  for (const std::string& settings : modes(run).early) {
    const Found found = play(settings);
    // 1.22 has no way to tell the sink of the test that a frame is unfinished.
    EXPECT_EQ(found.waits, found.passes || cudavision::compat::running_minor() >= 24 ? 0 : count - 1);
  }
  for (const std::string& settings : modes(run).waiting) EXPECT(play(settings).waits >= count - 1);
}

namespace {

/// Reads the first plane of a frame in its own stream without waiting. An element of another plugin may do so with
/// GStreamer 1.22, where it gets only finished frames.
std::vector<guint8> read_at_once(GstBuffer* buffer, const GstVideoInfo& video) {
  const std::size_t width = std::size_t(GST_VIDEO_INFO_WIDTH(&video)),
                    height = std::size_t(GST_VIDEO_INFO_HEIGHT(&video));
  std::vector<guint8> samples(width * height);
  EXPECT(gst_cuda_context_push(context_of(buffer)));
  CUstream stream;
  EXPECT_EQ(CuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  GstVideoFrame frame;
  EXPECT(gst_video_frame_map(&frame, &video, buffer, GstMapFlags(GST_MAP_READ | GST_MAP_CUDA)));
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = CUdeviceptr(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0));
  copy.srcPitch = gsize(GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0));
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = samples.data();
  copy.dstPitch = copy.WidthInBytes = width;
  copy.Height = height;
  EXPECT_EQ(CuMemcpy2DAsync(&copy, stream), CUDA_SUCCESS);
  EXPECT_EQ(CuStreamSynchronize(stream), CUDA_SUCCESS);
  gst_video_frame_unmap(&frame);
  CuStreamDestroy(stream);
  gst_cuda_context_pop(nullptr);
  return samples;
}

}  // namespace

/// The preceding element has learned that this element accepts unfinished frames. When they begin to pass through, they
/// must be finished for the next element.
TEST(passes_finished_frames_when_it_changes_to_passthrough, Each::run) {
  const std::pair<const char*, const char*> changes[] = {{"output=difference attach-roi=false", "output=passthrough"},
                                                         {"equalize=true", "equalize=false"}};
  const int change = run.element == "cudadiff" ? 0 : run.element == "cudahistogram" ? 1 : -1;
  // From 1.24 on, memory has a stream, which readers follow.
  if (change < 0 || cudavision::compat::running_minor() >= 24) return;
  const LateStreams late("30");
  const Run before{"cudagaussian", run.backend};
  GstElement* element = make_element(run, changes[change].first);
  Pair pair(with_shared_context(make_element(before), before), element);
  want_cuda(pair.rig, "NV12");
  pair.rig.caps(caps_text("NV12", size));
  for (unsigned i = 0; i < 12; ++i) {
    at("frame " + std::to_string(i));
    if (i == 2) set(element, changes[change].second);
    const Buffer frame = noise(pair.rig.video(), i);
    const Buffer result = pair.rig.push(copied(frame));
    if (i < 2) continue;
    const std::vector<guint8> actual = read_at_once(result.get(), pair.rig.video());
    const cv::Mat expected = expected_of(before, pair.rig.video(), frame)[0];
    for (std::size_t k = 0; k < actual.size(); ++k)
      EXPECT_EQ(actual[k], expected.at<guint16>(int(k) / size.width, int(k) % size.width));
  }
}

/// Frames may be pushed before their results are known. The messages follow in the same order.
TEST(posts_the_messages_of_the_cpu, Each::run) {
  for (const std::string& settings : modes(run).early) {
    at(settings);
    std::vector<std::string> texts[2];
    std::size_t before_the_end = 0;  // number of messages
    for (bool on_gpu : {false, true}) {
      Rig rig(on_gpu ? run : on_cpu(run), settings);
      gst_harness_set_sink_caps_str(rig.harness(), caps_text("NV12", size, "", on_gpu ? cuda_memory : nullptr).c_str());
      rig.caps_alone(caps_text("NV12", size, "", on_gpu ? cuda_memory : nullptr));
      for (unsigned i = 0; i < 40; ++i) {
        const Buffer frame = noise(rig.video(), i / 3);
        Buffer sent = on_gpu ? uploaded(context_of(rig.element()), rig.video(), frame) : copied(frame);
        GST_BUFFER_PTS(sent.get()) = i * GST_MSECOND;
        EXPECT_EQ(gst_harness_push(rig.harness(), sent.release()), GST_FLOW_OK);
      }
      const auto hear = [&](GstClockTime wait) {
        const std::string text = next_message(rig, wait);
        if (!text.empty()) texts[on_gpu].push_back(text);
        return !text.empty();
      };
      if (on_gpu)  // without another frame and without the end of the stream
        while (texts[1].size() < before_the_end && hear(5 * GST_SECOND)) continue;
      else
        while (hear(0)) ++before_the_end;
      EXPECT(gst_harness_push_event(rig.harness(), gst_event_new_eos()));
      while (hear(0)) continue;
    }
    EXPECT_EQ(texts[1].size(), texts[0].size());
    for (std::size_t i = 0; i < texts[0].size(); ++i) EXPECT_EQ(texts[1][i], texts[0][i]);
  }
}

/// The preceding pad claims that it can make CUDA memory, but never does.
TEST(says_once_that_frames_are_copied, Each::run) {
  const auto claim = +[](GstPad* pad, GstObject* parent, GstQuery* query) -> gboolean {
    if (GST_QUERY_TYPE(query) != GST_QUERY_CAPS) return gst_pad_query_default(pad, parent, query);
    const Caps both(
        gst_caps_from_string((caps_text("NV12", even) + ";" + caps_text("NV12", even, "", cuda_memory)).c_str()));
    gst_query_set_caps_result(query, both.get());
    return TRUE;
  };
  for (const std::string& element : {run.element, std::string("cudablend")})
    for (bool claims : {true, false}) {
      at(element + (claims ? "" : " without a reason"));
      const std::string text = "videotestsrc num-buffers=3 ! capsfilter name=claims caps=\"" + caps_text("NV12", even) +
                               "\" ! queue ! " + element + " backend=cuda " + profile(element).needs +
                               " ! queue ! fakesink";
      g_autoptr(GstElement) pipeline = gst_parse_launch(text.c_str(), nullptr);
      with_shared_context(pipeline, run);
      if (claims) {
        g_autoptr(GstElement) filter = gst_bin_get_by_name(GST_BIN(pipeline), "claims");
        g_autoptr(GstPad) pad = gst_element_get_static_pad(filter, "src");
        gst_pad_set_query_function(pad, claim);
      }
      LineCount lines("copied across the bus");
      const auto play = [&] {
        g_autoptr(GstMessage) last = play_to_end(pipeline);
        EXPECT(last && GST_MESSAGE_TYPE(last) == GST_MESSAGE_EOS);
        return lines.take();
      };
      EXPECT_EQ(play(), int(claims));
      gst_element_set_state(pipeline, GST_STATE_READY);
      EXPECT_EQ(play(), 0);
      gst_element_set_state(pipeline, GST_STATE_NULL);
      EXPECT_EQ(play(), int(claims));
      gst_element_set_state(pipeline, GST_STATE_NULL);
    }
}

/// The GPU pauses before random frames. If the memory of a frame were used too early or too late, the frame would
/// differ.
TEST(keeps_frames_apart_while_streams_are_late, Each::run) {
  const LateStreams late("3");
  for (const char* format : {"NV12", "RGBA"}) {
    at(format);
    const GstVideoInfo video = video_info(format, {160, 120});
    const auto text = [&](const char* backend) {
      const std::string element = " ! " + run.element + " " + profile(run.element).needs + " backend=" + backend;
      return "videotestsrc num-buffers=60 pattern=ball ! " + caps_text(format, {160, 120}) + element + " ! queue" +
             element + " ! tee name=t ! queue" + element + " ! queue" + element +
             " ! appsink name=out sync=false  t. ! queue" + element + " ! fakesink async=false sync=false";
    };
    const std::vector<Picture> expected = frames_of(text("cpu"), video), actual = frames_of(text("cuda"), video);
    EXPECT_EQ(actual.size(), std::size_t(60));
    EXPECT_EQ(expected.size(), actual.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      at(std::string(format) + " frame " + std::to_string(i));
      EXPECT_SAME(actual[i], expected[i]);
    }
  }
}

/// Memories that are used repeatedly are page-locked. A memory that overlaps a locked one is partly locked.
TEST(takes_windows_of_one_picture, Each::run) {
  const Size own{160, 120};
  const GstVideoInfo video = video_info("RGBA", own);
  const gsize bytes = GST_VIDEO_INFO_SIZE(&video);
  const Buffer content = noise(video_info("RGBA", {own.width, 2 * own.height}));
  GstMapInfo map;
  EXPECT(gst_buffer_map(content.get(), &map, GST_MAP_READ));
  std::vector<GstMemory*> windows;
  for (gsize offset : {gsize(30000), gsize(0), gsize(60000), bytes, gsize(30004)})
    windows.push_back(
        gst_memory_new_wrapped(GST_MEMORY_FLAG_READONLY, map.data + offset, bytes, 0, bytes, nullptr, nullptr));
  {
    Rig rig(run), expected(on_cpu(run));
    for (Rig* one : {&rig, &expected}) {
      gst_harness_set_sink_caps_str(one->harness(), "video/x-raw");
      one->caps(caps_text("RGBA", own));
    }
    for (int round = 0; round < 8; ++round)
      for (std::size_t i = 0; i < windows.size(); ++i) {
        at("round " + std::to_string(round) + " window " + std::to_string(i));
        Buffer frame(gst_buffer_new());
        gst_buffer_append_memory(frame.get(), gst_memory_ref(windows[i]));
        const Picture wanted = expected.filter(frame);
        EXPECT_SAME(picture(rig.push(std::move(frame)).get(), video), wanted);
      }
  }
  for (GstMemory* memory : windows) gst_memory_unref(memory);
  gst_buffer_unmap(content.get(), &map);
}

TEST(uses_page_locked_memory_again, Each::run) {
  Rig rig(run);
  gst_harness_set_sink_caps_str(rig.harness(), caps_text("NV12", size).c_str());
  rig.caps(caps_text("NV12", size));
  const auto address = [&] {
    const Query query(
        gst_query_new_allocation(Caps(gst_caps_from_string(caps_text("NV12", size).c_str())).get(), TRUE));
    EXPECT(gst_pad_peer_query(rig.harness()->srcpad, query.get()));
    g_autoptr(GstBufferPool) pool = nullptr;
    gst_query_parse_nth_allocation_pool(query.get(), 0, &pool, nullptr, nullptr, nullptr);
    EXPECT(pool && gst_buffer_pool_set_active(pool, TRUE));
    g_autoptr(GstBuffer) frame = nullptr;
    EXPECT_EQ(gst_buffer_pool_acquire_buffer(pool, &frame, nullptr), GST_FLOW_OK);
    EXPECT(gst_memory_is_type(gst_buffer_peek_memory(frame, 0), "GstCudaVisionPinnedMemory"));
    GstMapInfo map;
    EXPECT(gst_buffer_map(frame, &map, GST_MAP_WRITE));
    const auto* data = map.data;
    gst_buffer_unmap(frame, &map);
    gst_buffer_pool_set_active(pool, FALSE);
    return data;
  };
  const auto* first = address();
  EXPECT(address() == first);
}

TEST(uses_the_applications_context, Each::run) {
  GstCudaContext* context = new_context();
  GstElement* element = make_element(run);
  give(element, context);
  Rig rig(element);
  want_cuda(rig, "NV12");
  rig.caps(caps_text("NV12", size));
  const Buffer frame = noise(rig.video());
  const Buffer result = rig.push(copied(frame));
  EXPECT(context_of(result.get()) == context);
  EXPECT_SAME(picture(result.get(), rig.video()), expected_of(run, rig.video(), frame));
  gst_object_unref(context);
}

/// Tested before the first frame. Neighbours ask each other for a context; other elements ask the bin. With two
/// contexts, frames would go through system memory.
TEST(makes_no_second_context, Each::run) {
  for (const char* other : {run.element.c_str(), "cudablend"})
    for (bool linked : {true, false}) {
      at(std::string(other) + (linked ? ", linked" : ", in one bin"));
      GstElement *pipeline = gst_pipeline_new(nullptr), *first = make_element(run),
                 *second = make_element({other, run.backend});
      gst_bin_add_many(GST_BIN(pipeline), first, second, nullptr);
      if (linked) EXPECT(gst_element_link(first, second));
      EXPECT_EQ(gst_element_set_state(pipeline, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
      EXPECT(context_of(first));
      EXPECT(context_of(first) == context_of(second));
      gst_element_set_state(pipeline, GST_STATE_NULL);
      gst_object_unref(pipeline);
    }
}

TEST(accepts_frames_of_other_contexts, Each::run) {
  GstCudaContext* contexts[] = {new_context(), new_context()};
  for (bool to_device : {false, true})
    for (const char* format : {"NV12", "RGB", "I420_10LE"}) {
      at(format + std::string(to_device ? " to the device" : " to system memory"));
      Rig rig(run);
      gst_harness_set_sink_caps_str(rig.harness(),
                                    caps_text(format, size, "", to_device ? cuda_memory : nullptr).c_str());
      rig.caps(caps_text(format, size, "", cuda_memory));
      for (unsigned i = 0; i < 6; ++i) {
        GstCudaContext* context = contexts[i / 2 % 2];
        // the remembered frame is lost with the other context
        if (i % 2 == 0 && profile(run.element).remembers) rig.push(uploaded(context, rig.video(), black(rig.video())));
        const Buffer frame = noise(rig.video(), i);
        const Buffer result = rig.push(uploaded(context, rig.video(), frame));
        EXPECT_EQ(in_cuda_memory(result.get()), to_device);
        EXPECT_SAME(picture(result.get(), rig.video()), expected_of(run, rig.video(), frame));
      }
    }
  // two elements, each with its own context
  GstElement *first = make_element(run), *second = make_element(run);
  give(first, contexts[0]);
  give(second, contexts[1]);
  Pair pair(first, second);
  pair.rig.caps(caps_text("NV12", size));
  for (unsigned i = 0; i < 4; ++i) {
    const Buffer frame = noise(pair.rig.video(), i);
    EXPECT_SAME(pair.rig.filter(frame), expected_of(run, pair.rig.video(), frame, 2));
  }
  for (GstCudaContext* context : contexts) gst_object_unref(context);
}

/// Crops of frames in CUDA memory that begin inside groups of pixels. In passthrough, the crop is applied where the
/// frame leaves in system memory.
TEST(honours_crops_of_each_parity_on_the_device, Each::run) {
  GstCudaContext* context = new_context();
  const std::string& passing = profile(run.element).passing;
  for (const char* format : {"YUY2", "UYVY", "NV12", "Y42B", "RGB"}) {
    const GstVideoInfo whole = video_info(format, even);
    for (int parity = 0; parity < 16; ++parity) {
      const GstVideoRectangle part{(parity & 1) + 2, (parity >> 1 & 1) + 2, 36 + (parity >> 2 & 1),
                                   28 + (parity >> 3 & 1)};
      at(std::string(format) + " " + std::to_string(parity));
      const Buffer frame = noise(whole), cropped = cut(whole, frame.get(), part);
      const auto push = [&](const std::string& settings) {
        Rig rig(run, settings);
        gst_harness_set_sink_caps_str(rig.harness(), "video/x-raw");
        rig.caps_alone(caps_text(format, {part.w, part.h}, "", cuda_memory));
        if (profile(run.element).remembers) {
          Buffer first = uploaded(context, whole, black(whole));
          add_crop(first.get(), part);
          rig.push(std::move(first));
        }
        Buffer device = uploaded(context, whole, frame);
        add_crop(device.get(), part);
        const Buffer result = rig.push(std::move(device));
        EXPECT(!in_cuda_memory(result.get()));
        return picture(result.get(), rig.video());
      };
      EXPECT_SAME(push(""), expected_of(run, video_info(format, {part.w, part.h}), cropped));
      if (!passing.empty()) EXPECT_SAME(push(passing), picture(cropped.get(), video_info(format, {part.w, part.h})));
    }
  }
  gst_object_unref(context);
}

TEST(passes_frames_in_any_memory, Each::run) {
  const std::string& passing = profile(run.element).passing;
  if (passing.empty()) return;
  GstCudaContext* context = new_context();
  for (const std::string& format : formats(run, cuda_memory))
    for (bool device_in : {false, true})
      for (bool device_out : {false, true}) {
        at(format + (device_in ? " from the device" : "") + (device_out ? " to the device" : ""));
        Rig rig(run, passing), cpu(on_cpu(run), passing);
        gst_harness_set_sink_caps_str(rig.harness(),
                                      caps_text(format, even, "", device_out ? cuda_memory : nullptr).c_str());
        rig.caps(caps_text(format, even, "", device_in ? cuda_memory : nullptr));
        cpu.caps(caps_text(format, even));
        // The element restarts after a change of context.
        if (device_in && profile(run.element).remembers) rig.push(uploaded(context, rig.video(), black(rig.video())));
        for (const Rig* each : {&rig, &cpu})
          while (!next_message(*each, 20 * GST_MSECOND).empty()) continue;
        for (unsigned i = 0; i < 3; ++i) {
          const Buffer frame = noise(rig.video(), i);
          Buffer in = device_in ? uploaded(context, rig.video(), frame) : copied(frame);
          GST_BUFFER_PTS(in.get()) = GST_BUFFER_PTS(frame.get());
          GstBuffer* pushed = in.get();
          const Buffer out = rig.push(std::move(in));
          if (device_in == device_out) EXPECT(out.get() == pushed);
          EXPECT_EQ(in_cuda_memory(out.get()), device_out);
          EXPECT_SAME(picture(out.get(), rig.video()), picture(frame.get(), rig.video()));
          cpu.filter(frame);
          const std::string expected = next_message(cpu);
          EXPECT_EQ(next_message(rig, expected.empty() ? 0 : 10 * GST_SECOND), expected);  // it may follow its frame
        }
      }
  gst_object_unref(context);
}

TEST(drops_device_frames_with_a_wrong_meta, Each::run) {
  GstCudaContext* context = new_context();
  Rig rig(run, "", caps_text("NV12", size, "", cuda_memory));
  const Buffer frame = noise(rig.video());
  rig.push(uploaded(context, rig.video(), frame));
  for (void (*lie)(GstVideoMeta*) : {+[](GstVideoMeta* meta) { meta->stride[0] = 0; },
                                     +[](GstVideoMeta* meta) { meta->stride[1] = -meta->stride[1]; },
                                     +[](GstVideoMeta* meta) { meta->stride[0] = G_MAXINT; },
                                     +[](GstVideoMeta* meta) { meta->offset[1] = gsize(1) << 40; },
                                     +[](GstVideoMeta* meta) { meta->n_planes = 1; }}) {
    const guint before = gst_harness_buffers_received(rig.harness());
    Buffer device = uploaded(context, rig.video(), frame);
    lie(gst_buffer_get_video_meta(device.get()));
    EXPECT_EQ(gst_harness_push(rig.harness(), device.release()), GST_FLOW_OK);
    EXPECT(!rig.warning().text.empty());
    EXPECT_EQ(gst_harness_buffers_received(rig.harness()), before);
    rig.push(uploaded(context, rig.video(), frame));
    EXPECT_EQ(rig.error().text, "");
  }
  gst_object_unref(context);
}

namespace {

/// The output of cudablend for two pads with frames of noise. With CUDA, each pad has frames in its own context.
std::vector<Picture> blended(const char* backend, GstCudaContext* const* contexts) {
  constexpr int count = 12;
  GstElement* pipeline =
      gst_parse_launch((std::string("cudablend name=b sink_1::alpha=0.5 backend=") + backend +
                        " ! video/x-raw,format=RGBA,framerate=25/1 ! appsink name=out sync=false "
                        "appsrc name=a0 format=time ! b.sink_0 appsrc name=a1 format=time ! b.sink_1")
                           .c_str(),
                       nullptr);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  for (int pad = 0; pad < 2; ++pad) {
    const std::string format = pad == 0 ? "NV12" : "RGBA";
    const GstVideoInfo video = video_info(format, size);
    g_autoptr(GstElement) source = gst_bin_get_by_name(GST_BIN(pipeline), pad == 0 ? "a0" : "a1");
    const Caps caps(
        gst_caps_from_string(caps_text(format, size, ",framerate=25/1", contexts ? cuda_memory : nullptr).c_str()));
    g_object_set(source, "caps", caps.get(), nullptr);
    for (unsigned i = 0; i < count; ++i) {
      Buffer frame = noise(video, 2 * i + unsigned(pad));
      if (contexts) frame = uploaded(contexts[pad], video, frame);
      GST_BUFFER_PTS(frame.get()) = i * GST_SECOND / 25;
      GST_BUFFER_DURATION(frame.get()) = GST_SECOND / 25;
      GstFlowReturn flow;
      GstBuffer* pushed = frame.get();
      g_signal_emit_by_name(source, "push-buffer", pushed, &flow);
      EXPECT_EQ(flow, GST_FLOW_OK);
    }
    GstFlowReturn flow;
    g_signal_emit_by_name(source, "end-of-stream", &flow);
  }
  return frames_of(pipeline, video_info("RGBA", size));
}

int device_count() {
  int count = 0;
  return gst_cuda_load_library() && CuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

}  // namespace

TEST(blends_frames_of_several_contexts, Each::element) {
  if (run.element != "cudablend") return;
  GstCudaContext* contexts[] = {new_context(), new_context()};
  const std::vector<Picture> expected = blended("cpu", nullptr), actual = blended("cuda", contexts);
  EXPECT_EQ(expected.size(), std::size_t(12));
  EXPECT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_SAME(actual[i], expected[i]);
  for (GstCudaContext* context : contexts) gst_object_unref(context);
}

TEST(exchanges_frames_between_devices, Each::run) {
  if (device_count() < 2) {
    std::printf("skipped: %s between devices: there is only one\n", run.element.c_str());
    return;
  }
  for (const char* format : {"NV12", "RGBA", "I420_10LE"}) {
    at(format);
    Pair pair(make_element(run, "cuda-device-id=0"), make_element(run, "cuda-device-id=1"));
    want_cuda(pair.rig, format);
    pair.rig.caps(caps_text(format, size));
    for (unsigned i = 0; i < 20; ++i) {
      const Buffer frame = noise(pair.rig.video(), i);
      const Buffer result = pair.rig.push(copied(frame));
      EXPECT(in_cuda_memory(pair.middle_caps()));
      EXPECT_EQ(get<guint>(context_of(result.get()), "cuda-device-id"), 1);
      EXPECT_SAME(picture(result.get(), pair.rig.video()), expected_of(run, pair.rig.video(), frame, 2));
    }
  }
}

// After a failed kernel, the context is lost for the rest of the process, as when a GPU falls off the bus. The element
// outputs no wrong frame, never hangs, reports the reason and stops.
TEST(says_that_the_gpu_is_lost, Each::run) {
  if (!own_process()) return;
  GstCudaContext* context = new_context();
  GstElement* element = make_element(run);
  give(element, context);
  Rig rig(element);
  rig.caps(caps_text("NV12", even));
  const Buffer frame = noise(rig.video());
  const Picture expected = rig.filter(frame);
  if (!profile(run.element).remembers) EXPECT_SAME(rig.filter(frame), expected);
  lose_gpu(context);
  EXPECT_EQ(gst_harness_push(rig.harness(), gst_buffer_copy_deep(frame.get())), GST_FLOW_ERROR);
  EXPECT_EQ(gst_harness_buffers_in_queue(rig.harness()), 0u);
  const Message error = rig.error();
  EXPECT_EQ(error.domain, GST_RESOURCE_ERROR);
  EXPECT_CONTAINS(error.text, "cudaError");
  gst_object_unref(context);
}

TEST(refuses_missing_devices, Each::run) {
  g_autoptr(GstElement) element = make_element(run, "cuda-device-id=99");
  gst_object_ref_sink(element);
  g_autoptr(GstBus) bus = gst_bus_new();
  gst_element_set_bus(element, bus);
  EXPECT_EQ(gst_element_set_state(element, GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  const Message error = pop_message(bus, GST_MESSAGE_ERROR);
  EXPECT_EQ(error.domain, GST_RESOURCE_ERROR);
  EXPECT_CONTAINS(error.text, "99");
  EXPECT_CONTAINS(error.text, "backend=cpu");
  gst_element_set_bus(element, nullptr);
}

int main() { return run_tests("cuda", nullptr, Needs::cuda); }
#else
int main() {
  std::printf("skipped: this build has no CUDA backend\n");
  return 77;
}
#endif
