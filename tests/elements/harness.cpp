// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/elements/harness.hpp"

#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "backends.h"
#include "tests/kernels/reference/picture.hpp"
#include "tests/property_text.hpp"
#include "tests/sanitizers/thread.hpp"
#if CUDAVISION_CUDA
#include "tests/elements/cuda_context.hpp"
#endif

namespace cudavision::test {

// Tests ---------------------------------------------------------------------------------------------------------------

namespace {

struct Registered {
  const char* name;
  Each each;
  void (*body)(int);
};
std::vector<Registered>& registered() {
  static std::vector<Registered> tests;
  return tests;
}

std::vector<Run> runs, elements;
Run current;
std::string place;

/// Whether the backend works. Tries it in a child process, because a CUDA context does not survive fork().
bool works(const Run& run) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    // a missing backend is not an error, so nothing is logged
    gst_debug_set_default_threshold(GST_LEVEL_NONE);
    gst_debug_set_active(FALSE);
    GstElement* element = gst_element_factory_make(run.element.c_str(), nullptr);
    gst_util_set_object_arg(G_OBJECT(element), "backend", run.backend.c_str());
    _exit(gst_element_set_state(element, GST_STATE_READY) == GST_STATE_CHANGE_FAILURE);
  }
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/// Returns the elements, or only the filters among them, on a backend, if the backend works. Creates no element in this
/// process: an element may start threads, such as GLib's thread pool, which forked tests would not have.
std::vector<Run> find_runs(const std::vector<Run>& elements, const char* backend, bool filters_only) {
  std::vector<Run> found;
  for (const Run& element : elements) {
    g_autoptr(GstElementFactory) factory = gst_element_factory_find(element.element.c_str());
    g_autoptr(GstPluginFeature) loaded = gst_plugin_feature_load(GST_PLUGIN_FEATURE(factory));
    const gpointer element_class = g_type_class_ref(gst_element_factory_get_element_type(GST_ELEMENT_FACTORY(loaded)));
    if (!filters_only || GST_IS_BASE_TRANSFORM_CLASS(element_class)) found.push_back({element.element, backend});
    g_type_class_unref(element_class);
  }
  if (!found.empty() && works(found[0])) return found;  // the result for one element is valid for all
  std::printf("no tests with backend=%s: it does not work here\n", backend);
  return {};
}

}  // namespace

Test::Test(const char* name, Each each, void (*body)(int)) { registered().push_back({name, each, body}); }

const Run& begin(Each each, int index) {
  current = (each == Each::run ? runs : elements)[std::size_t(index)];
  place.clear();
  return current;
}

std::vector<Run> find_elements(const char* only) {
  std::vector<Run> found;
  GList* features = gst_registry_get_feature_list_by_plugin(gst_registry_get(), "cudavision");
  for (GList* item = features; item; item = item->next) {
    if (!GST_IS_ELEMENT_FACTORY(item->data)) continue;
    const std::string name = GST_OBJECT_NAME(item->data);
    if (!only || name == only) found.push_back({name, "auto"});
  }
  gst_plugin_feature_list_free(features);
  std::sort(found.begin(), found.end(), [](const Run& a, const Run& b) { return a.element < b.element; });
  return found;
}

std::vector<Run> find_filters(const std::vector<Run>& elements, const char* backend) {
  return find_runs(elements, backend, true);
}

void at(const std::string& what) { place = what; }
std::string where() { return current.element + " backend=" + current.backend + (place.empty() ? "" : " " + place); }

bool own_process() { return g_strcmp0(g_getenv("CK_FORK"), "no") != 0; }

namespace {

std::ptrdiff_t count_threads() { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); }

}  // namespace

int run_tests(const char* name, const char* element, Needs needs) {
  gst_check_init(nullptr, nullptr);
  elements = find_elements(element);
  if (needs == Needs::any_backend) runs = find_runs(elements, "cpu", !element);
  for (const Run& run : find_runs(elements, "cuda", !element)) runs.push_back(run);
  Suite* suite = suite_create(name);
  for (const Registered& test : registered()) {
    const int count = int(test.each == Each::run ? runs.size() : elements.size());
    if (count == 0) continue;
    TCase* tcase = tcase_create(test.name);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, test.body, 0, count);
    suite_add_tcase(suite, tcase);
  }
  if (elements.empty()) {
    std::printf("the plugin cudavision has no such element: is GST_PLUGIN_PATH set?\n");
    return 1;
  }
  if (runs.empty()) {
    std::printf("skipped: no backend that these tests need works here\n");
    return 77;
  }
  if (own_process() && count_threads() > 1) {
    std::printf("the test program started a thread before the tests fork: a forked test would wait for it forever\n");
    return 1;
  }
  return gst_check_run_suite(suite, name, name) ? 1 : 0;
}

// Frames --------------------------------------------------------------------------------------------------------------

namespace {

class Mapped {
 public:
  Mapped(GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags flags) {
    EXPECT(gst_video_frame_map(&frame_, &video, buffer, flags));
  }
  ~Mapped() { gst_video_frame_unmap(&frame_); }
  GstVideoFrame* get() { return &frame_; }

 private:
  GstVideoFrame frame_;
};

const reference::Definition& definition_of(const GstVideoInfo& video) {
  // indexed by GStreamer's number, because this is looked up for each sample
  static const std::vector<const reference::Definition*> known = [] {
    std::vector<const reference::Definition*> definitions(1024);
    for (int i = 0; i < format_count; ++i) {
      const reference::Definition& definition = reference::definition(Format(i));
      definitions[std::size_t(gst_video_format_from_string(definition.name))] = &definition;
    }
    return definitions;
  }();
  const reference::Definition* const definition = known.at(std::size_t(GST_VIDEO_INFO_FORMAT(&video)));
  EXPECT(definition != nullptr);
  return *definition;
}

int bytes_of(const GstVideoInfo& video) { return definition_of(video).sample_bytes(); }
int shift_of(const GstVideoInfo& video) { return definition_of(video).shift; }
int max_of(const GstVideoInfo& video) { return definition_of(video).max_value(); }

/// The number of components, including the padding of RGBx, which GStreamer does not count.
int components_of(const GstVideoInfo& video) { return int(definition_of(video).components.size()); }

/// Component `c` in GStreamer's order, which ends with padding.
const reference::Component& component_of(const GstVideoInfo& video, int c) {
  const bool rgb = GST_VIDEO_INFO_IS_RGB(&video);
  const Role roles[] = {rgb ? Role::red : Role::luma, rgb ? Role::green : Role::cb, rgb ? Role::blue : Role::cr,
                        Role::alpha};
  const Role role = c >= int(GST_VIDEO_INFO_N_COMPONENTS(&video)) ? Role::padding : roles[c];
  const auto& all = definition_of(video).components;
  const auto at = std::find_if(all.begin(), all.end(), [&](const auto& component) { return component.role == role; });
  EXPECT(at != all.end());
  return *at;
}

/// The location of a component's samples in a frame.
struct Samples {
  const reference::Component& component;
  guint8* data;
  int stride, width, height, bytes;

  Samples(GstVideoFrame* frame, int c) : component(component_of(frame->info, c)) {
    const GstVideoInfo& video = frame->info;
    data = static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(frame, component.plane)) + component.offset;
    stride = GST_VIDEO_FRAME_PLANE_STRIDE(frame, component.plane);
    const cv::Rect grid = scaled(video, c, {0, 0, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)});
    width = grid.width, height = grid.height;
    bytes = bytes_of(video);
  }
  const reference::Component::Field* field(int x) const {
    return component.fields.empty() ? nullptr : &component.fields[std::size_t(x % component.fields_in_group())];
  }
  guint8* at(int x, int y) const {
    guint8* const group = data + y * stride + x / component.fields_in_group() * component.step;
    return field(x) ? group + 4 * field(x)->word : group;
  }
  int get(int x, int y) const {
    if (const auto* bits = field(x)) return int(GST_READ_UINT32_LE(at(x, y)) >> bits->bit & ((1u << bits->bits) - 1));
    return bytes == 1 ? *at(x, y) : GST_READ_UINT16_LE(at(x, y));
  }
  void put(int x, int y, int word) const {
    if (const auto* bits = field(x)) {
      const guint32 mask = (1u << bits->bits) - 1;
      GST_WRITE_UINT32_LE(at(x, y), (GST_READ_UINT32_LE(at(x, y)) & ~(mask << bits->bit)) | (guint32(word) & mask)
                                                                                                << bits->bit);
    } else if (bytes == 1) {
      *at(x, y) = guint8(word);
    } else {
      GST_WRITE_UINT16_LE(at(x, y), guint16(word));
    }
  }
};

/// Writes word(component, x, y) to every sample.
template <typename F>
void fill(GstBuffer* buffer, const GstVideoInfo& video, F&& word) {
  Mapped frame(buffer, video, GST_MAP_WRITE);
  for (int c = 0; c < components_of(video); ++c) {
    const Samples samples(frame.get(), c);
    for (int y = 0; y < samples.height; ++y)
      for (int x = 0; x < samples.width; ++x) samples.put(x, y, word(c, x, y));
  }
}

void copy(GstBuffer* from, GstBuffer* to, const GstVideoInfo& from_video, const GstVideoInfo& to_video, int left = 0,
          int top = 0) {
  Mapped frame(from, from_video, GST_MAP_READ);
  fill(to, to_video, [&](int c, int x, int y) {
    const cv::Rect origin = scaled(from_video, c, {left, top, 1, 1});
    return Samples(frame.get(), c).get(origin.x + x, origin.y + y);
  });
}

Buffer blank(const GstVideoInfo& video) {
  Buffer buffer(gst_buffer_new_allocate(nullptr, GST_VIDEO_INFO_SIZE(&video), nullptr));
  gst_buffer_memset(buffer.get(), 0, 0, GST_VIDEO_INFO_SIZE(&video));
  GST_BUFFER_PTS(buffer.get()) = 0;
  return buffer;
}

}  // namespace

std::vector<std::string> formats(const Run& run, const char* feature) {
  g_autoptr(GstElementFactory) factory = gst_element_factory_find(run.element.c_str());
  std::vector<std::string> names;
  for (const GList* item = gst_element_factory_get_static_pad_templates(factory); item; item = item->next) {
    auto* pad = static_cast<GstStaticPadTemplate*>(item->data);
    if (pad->direction != GST_PAD_SINK) continue;
    const Caps caps(gst_static_pad_template_get_caps(pad));
    for (guint i = 0; i < gst_caps_get_size(caps.get()); ++i) {
      if (!gst_caps_features_contains(gst_caps_get_features(caps.get(), i),
                                      feature ? feature : GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY))
        continue;
      const GValue* list = gst_structure_get_value(gst_caps_get_structure(caps.get(), i), "format");
      for (guint n = 0; n < gst_value_list_get_size(list); ++n)
        names.push_back(g_value_get_string(gst_value_list_get_value(list, n)));
    }
  }
  return names;
}

std::string caps_text(const std::string& format, Size size, const std::string& more, const char* feature) {
  return "video/x-raw" + (feature ? "(" + std::string(feature) + ")" : "") + ",format=" + format +
         ",width=" + std::to_string(size.width) + ",height=" + std::to_string(size.height) + ",framerate=25/1" + more;
}

std::string caps_of(const GstVideoInfo& video, const char* feature) {
  return caps_text(GST_VIDEO_INFO_NAME(&video), {GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)}, "",
                   feature);
}

GstVideoInfo video_info(const std::string& format, Size size) {
  GstVideoInfo video;
  EXPECT(gst_video_info_set_format(&video, gst_video_format_from_string(format.c_str()), guint(size.width),
                                   guint(size.height)));
  return video;
}

Buffer noise(const GstVideoInfo& video, unsigned seed) {
  std::mt19937 random(seed);
  Buffer buffer = blank(video);
  fill(buffer.get(), video, [&](int, int, int) { return int(random() & unsigned(max_of(video))) << shift_of(video); });
  return buffer;
}

Buffer flat(const GstVideoInfo& video, const std::vector<int>& values) {
  Buffer buffer = blank(video);
  fill(buffer.get(), video, [&](int c, int, int) { return values[std::size_t(c) % values.size()] << shift_of(video); });
  return buffer;
}

Buffer black(const GstVideoInfo& video) {
  const int middle = (max_of(video) + 1) / 2;
  return GST_VIDEO_INFO_IS_YUV(&video) ? flat(video, {0, middle, middle}) : flat(video, {0});
}

void copy_frame(GstBuffer* from, GstBuffer* to, const GstVideoInfo& video) {
  Mapped source(from, video, GST_MAP_READ), target(to, video, GST_MAP_WRITE);
  gst_video_frame_copy(target.get(), source.get());
}

Buffer cut(const GstVideoInfo& video, GstBuffer* frame, const GstVideoRectangle& rectangle) {
  const GstVideoInfo part = video_info(GST_VIDEO_INFO_NAME(&video), {rectangle.w, rectangle.h});
  Buffer buffer = blank(part);
  copy(frame, buffer.get(), video, part, rectangle.x, rectangle.y);
  return buffer;
}

void add_crop(GstBuffer* frame, const GstVideoRectangle& part) {
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(frame);
  crop->x = guint(part.x), crop->y = guint(part.y), crop->width = guint(part.w), crop->height = guint(part.h);
}

void add_crop(GstBuffer* frame, const GstVideoInfo& whole, const GstVideoRectangle& part) {
  gst_buffer_add_video_meta(frame, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&whole),
                            guint(GST_VIDEO_INFO_WIDTH(&whole)), guint(GST_VIDEO_INFO_HEIGHT(&whole)));
  add_crop(frame, part);
}

Buffer timed(Buffer frame, GstClockTime pts, GstClockTime duration) {
  GST_BUFFER_PTS(frame.get()) = pts;
  GST_BUFFER_DURATION(frame.get()) = duration;
  return frame;
}

std::vector<GstVideoRegionOfInterestMeta*> rois_of(GstBuffer* frame) {
  std::vector<GstVideoRegionOfInterestMeta*> all;
  gpointer cursor = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(frame, &cursor, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
    all.push_back(reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta));
  return all;
}

cv::Rect box_of(const GstVideoRegionOfInterestMeta* roi) {
  return {int(roi->x), int(roi->y), int(roi->w), int(roi->h)};
}

Buffer spread(const GstVideoInfo& video, GstBuffer* frame, guint8 poison) {
  const int odd = bytes_of(video) == 1 ? 5 : 6;  // 16-bit samples stay aligned
  gsize offset[GST_VIDEO_MAX_PLANES] = {}, end = 0;
  gint stride[GST_VIDEO_MAX_PLANES] = {};
  for (int p = 0; p < int(GST_VIDEO_INFO_N_PLANES(&video)); ++p) {
    const int lines = p == 0 ? GST_VIDEO_INFO_HEIGHT(&video)
                             : GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(video.finfo, p, GST_VIDEO_INFO_HEIGHT(&video));
    offset[p] = end + gsize(7 * odd);
    stride[p] = GST_VIDEO_INFO_PLANE_STRIDE(&video, p) + odd * (2 * p + 1);
    end = offset[p] + gsize(stride[p]) * gsize(lines);
  }
  end += 16;
  Buffer buffer(gst_buffer_new_allocate(nullptr, end, nullptr));
  gst_buffer_memset(buffer.get(), 0, poison, end);
  gst_buffer_add_video_meta_full(buffer.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&video),
                                 guint(GST_VIDEO_INFO_WIDTH(&video)), guint(GST_VIDEO_INFO_HEIGHT(&video)),
                                 GST_VIDEO_INFO_N_PLANES(&video), offset, stride);
  copy(frame, buffer.get(), video, video);
  GST_BUFFER_PTS(buffer.get()) = GST_BUFFER_PTS(frame);
  return buffer;
}

Picture picture(GstBuffer* buffer, const GstVideoInfo& video) {
  Mapped frame(buffer, video, GST_MAP_READ);
  Picture result;
  for (int c = 0; c < components_of(video); ++c) {
    const Samples samples(frame.get(), c);
    cv::Mat matrix(samples.height, samples.width, CV_16U);
    for (int y = 0; y < samples.height; ++y)
      for (int x = 0; x < samples.width; ++x) {
        const int word = samples.get(x, y);
        FAIL_UNLESS((word >> shift_of(video)) <= max_of(video) && (word & ((1 << shift_of(video)) - 1)) == 0,
                    "%s: the word 0x%x at %d, %d of component %d has bits that the format does not use",
                    where().c_str(), word, x, y, c);
        matrix.at<guint16>(y, x) = guint16(word >> shift_of(video));
      }
    result.push_back(matrix);
  }
  return result;
}

std::string difference(const Picture& actual, const Picture& expected, int tolerance) {
  if (actual.size() != expected.size()) return "it has another number of components";
  for (std::size_t c = 0; c < actual.size(); ++c) {
    if (actual[c].size() != expected[c].size()) return "component " + std::to_string(c) + " has another size";
    int wrong = 0;
    std::string first;
    for (int y = 0; y < actual[c].rows; ++y)
      for (int x = 0; x < actual[c].cols; ++x) {
        const int a = actual[c].at<guint16>(y, x), e = expected[c].at<guint16>(y, x);
        if (std::abs(a - e) > tolerance && wrong++ == 0)
          first = std::to_string(a) + " and not " + std::to_string(e) + " at " + std::to_string(x) + ", " +
                  std::to_string(y);
      }
    if (wrong)
      return "component " + std::to_string(c) + " of " + show(actual[c].size()) + " differs in " +
             std::to_string(wrong) + " samples, first " + first;
  }
  return {};
}

cv::Rect scaled(const GstVideoInfo& video, int component, const cv::Rect& pixels) {
  const int c = component < int(GST_VIDEO_INFO_N_COMPONENTS(&video)) ? component : 0;
  const int sx = GST_VIDEO_FORMAT_INFO_W_SUB(video.finfo, c), sy = GST_VIDEO_FORMAT_INFO_H_SUB(video.finfo, c);
  const auto up = [](int value, int shift) { return (value + (1 << shift) - 1) >> shift; };
  return {pixels.x >> sx, pixels.y >> sy, up(pixels.width, sx), up(pixels.height, sy)};
}

// Elements ------------------------------------------------------------------------------------------------------------

void set(gpointer object, const std::string& settings) {
  const std::string wrong = set_from_text(object, settings);
  FAIL_UNLESS(wrong.empty(), "%s", wrong.c_str());
}

GstElement* make_element(const Run& run, const std::string& settings) {
  GstElement* element = gst_element_factory_make(run.element.c_str(), nullptr);
  FAIL_UNLESS(element != nullptr, "there is no element %s", run.element.c_str());
  if (g_object_class_find_property(G_OBJECT_GET_CLASS(element), "backend")) set(element, "backend=" + run.backend);
  set(element, profile(run.element).needs);
  set(element, settings);
  return element;
}

std::string get_enum(gpointer object, const char* property) {
  GParamSpec* const spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), property);
  return g_enum_get_value(G_PARAM_SPEC_ENUM(spec)->enum_class, get<int>(object, property))->value_nick;
}

std::string value_text(gpointer object, GParamSpec* spec) {
  if (G_IS_PARAM_SPEC_ENUM(spec)) return get_enum(object, spec->name);
  g_auto(GValue) value = G_VALUE_INIT;
  g_value_init(&value, spec->value_type);
  g_object_get_property(G_OBJECT(object), spec->name, &value);
  g_autofree gchar* text = gst_value_serialize(&value);
  return text ? text : "none";
}

bool is_own(const GParamSpec* spec) { return g_str_has_prefix(g_type_name(spec->owner_type), "GstCuda"); }

void control(gpointer object, const char* property, double from, double to, GstClockTime end, bool absolute) {
  g_autoptr(GstControlSource) source = gst_interpolation_control_source_new();
  g_object_set(source, "mode", GST_INTERPOLATION_MODE_LINEAR, nullptr);
  gst_timed_value_control_source_set(GST_TIMED_VALUE_CONTROL_SOURCE(source), 0, from);
  gst_timed_value_control_source_set(GST_TIMED_VALUE_CONTROL_SOURCE(source), end, to);
  const auto bind = absolute ? gst_direct_control_binding_new_absolute : gst_direct_control_binding_new;
  EXPECT(gst_object_add_control_binding(GST_OBJECT(object), bind(GST_OBJECT(object), property, source)));
}

Message read_message(GstMessage* message) {
  const bool is_error = GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR;
  g_autoptr(GError) error = nullptr;
  (is_error ? gst_message_parse_error : gst_message_parse_warning)(message, &error, nullptr);
  return {error->domain, error->code, error->message, is_error};
}

Message pop_message(GstBus* bus, GstMessageType type, GstClockTime wait) {
  g_autoptr(GstMessage) message = gst_bus_timed_pop_filtered(bus, wait, type);
  return message ? read_message(message) : Message();
}

const GValue* Told::value(const char* field, GType type) const {
  const GValue* found = gst_structure_get_value(structure_.get(), field);
  FAIL_UNLESS(found && G_VALUE_HOLDS(found, type), "%s: the message has no %s that is a %s", where().c_str(), field,
              g_type_name(type));
  return found;
}

namespace {

template <typename F>
void each_value(const GValue* array, F&& f) {
  for (guint i = 0; i < gst_value_array_get_size(array); ++i) f(gst_value_array_get_value(array, i));
}

}  // namespace

std::vector<Told> Told::list(const char* field) const {
  std::vector<Told> all;
  each_value(value(field, GST_TYPE_ARRAY), [&](const GValue* one) { all.emplace_back(gst_value_get_structure(one)); });
  return all;
}

std::string Told::texts(const char* field) const {
  std::string all;
  each_value(value(field, GST_TYPE_ARRAY),
             [&](const GValue* one) { all += (all.empty() ? "" : ",") + std::string(g_value_get_string(one)); });
  return all;
}

std::vector<guint64> Told::counts(const char* field) const {
  std::vector<guint64> all;
  each_value(value(field, GST_TYPE_ARRAY), [&](const GValue* one) { all.push_back(g_value_get_uint64(one)); });
  return all;
}

cv::Rect Told::box(const std::string& prefix) const {
  const auto of = [&](const char* field) { return integer((prefix + field).c_str()); };
  return {of("x"), of("y"), of("width"), of("height")};
}

std::optional<Told> next_message(GstElement* element, GstClockTime wait) {
  g_autoptr(GstBus) bus = gst_element_get_bus(element);
  g_autoptr(GstMessage) message = gst_bus_timed_pop_filtered(bus, wait, GST_MESSAGE_ELEMENT);
  if (!message) return {};
  EXPECT(GST_MESSAGE_SRC(message) == GST_OBJECT(element));
  return Told(gst_message_get_structure(message));
}

std::vector<Told> messages_of(GstElement* element) {
  std::vector<Told> all;
  while (const std::optional<Told> message = next_message(element)) all.push_back(*message);
  return all;
}

GstMessage* play_to_end(GstElement* pipeline, GstClockTime wait) {
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  g_autoptr(GstBus) bus = gst_element_get_bus(pipeline);
  return gst_bus_timed_pop_filtered(bus, wait, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
}

GstElement* with_shared_context(GstElement* element, [[maybe_unused]] const Run& run) {
#if CUDAVISION_CUDA
  static GstCudaContext* context = nullptr;
  static const bool works = gst_cuda_load_library();
  if (works && run.backend != "cpu") {  // backend=auto also uses CUDA if there is a device
    if (!context) context = gst_cuda_context_new(0);
    if (context) give(element, context);
  }
#endif
  return element;
}

Rig::Rig(const Run& run, const std::string& settings, const std::string& caps)
    : Rig(with_shared_context(make_element(run, settings), run)) {
  if (!caps.empty()) this->caps(caps);
}

Rig::Rig(GstElement* element) : bus_(gst_bus_new()) {
  gst_object_ref_sink(element);
  gst_element_set_bus(element, bus_);
  harness_ = gst_harness_new_with_element(element, "sink", "src");
  gst_object_unref(element);
}

Rig::~Rig() {
  g_autoptr(GstElement) own = GST_ELEMENT(gst_object_ref(element()));
  gst_harness_teardown(harness_);
  gst_element_set_bus(own, nullptr);
  gst_object_unref(bus_);
}

Caps Rig::src_caps() const { return Caps(gst_pad_get_current_caps(harness_->sinkpad)); }

void Rig::caps(const std::string& text) {
  caps_alone(text);
  GstElement* one = GST_IS_BIN(element()) ? GST_ELEMENT(GST_BIN_CHILDREN(element())->data) : element();
  if (profile(GST_OBJECT_NAME(gst_element_get_factory(one))).remembers) push(black(video_));
}

void Rig::caps_alone(const std::string& text) {
  GstCaps* caps = gst_caps_from_string(text.c_str());
  EXPECT(caps && gst_video_info_from_caps(&video_, caps));
  gst_harness_set_src_caps(harness_, caps);
}

Buffer Rig::push(Buffer frame) {
  const GstFlowReturn flow = gst_harness_push(harness_, frame.release());
  FAIL_UNLESS(flow == GST_FLOW_OK, "%s: the push gave %s (%s)", where().c_str(), gst_flow_get_name(flow),
              error().text.c_str());
  Buffer result(gst_harness_try_pull(harness_));
  EXPECT(result);
  return result;
}

Picture Rig::filter(const Buffer& frame) { return picture(push(copied(frame)).get(), video_); }

void flush(const Rig& rig) {
  EXPECT(gst_harness_push_event(rig.harness(), gst_event_new_flush_start()));
  EXPECT(gst_harness_push_event(rig.harness(), gst_event_new_flush_stop(TRUE)));
  EXPECT(gst_harness_push_event(rig.harness(), new_segment()));
}

std::vector<Picture> frames_of(const std::string& text, const GstVideoInfo& video) {
  GError* error = nullptr;
  GstElement* pipeline = gst_parse_launch(text.c_str(), &error);
  FAIL_UNLESS(!error, "%s: %s", text.c_str(), error ? error->message : "");
  return frames_of(pipeline, video);
}

std::vector<Sample> samples_of(GstElement* pipeline) {
  g_autoptr(GstElement) sink = gst_bin_get_by_name(GST_BIN(pipeline), "out");
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  std::vector<Sample> samples;  // all of them, so that many frames are in flight
  GstSample* sample = nullptr;
  while (g_signal_emit_by_name(sink, "try-pull-sample", 20 * GST_SECOND, &sample), sample) samples.emplace_back(sample);
  EXPECT(get<gboolean>(sink, "eos"));
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(pipeline);
  return samples;
}

std::vector<Picture> frames_of(GstElement* pipeline, const GstVideoInfo& video) {
  std::vector<Picture> pictures;
  for (const Sample& sample : samples_of(pipeline))
    pictures.push_back(picture(gst_sample_get_buffer(sample.get()), video));
  return pictures;
}

Picture filtered(const Run& run, const std::string& settings, const GstVideoInfo& video, const Buffer& frame) {
  return Rig(run, settings, caps_of(video)).filter(frame);
}

}  // namespace cudavision::test
