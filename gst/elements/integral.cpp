// SPDX-License-Identifier: LGPL-2.1-or-later
// cudaintegral: summed-area tables, and filters on them (docs/elements/cudaintegral.md).
#include "kernels/integral/integral.hpp"

#include <algorithm>
#include <optional>

#include "gst/base/caps.hpp"
#include "gst/base/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/gpu.hpp"
#include "gst/base/recycler.hpp"
#include "gst/elements/elements.hpp"
#include "gst/meta/integral_meta.h"
#include "kernels/local/local.hpp"

namespace cudavision {
namespace {

enum Output { OUTPUT_PASSTHROUGH, OUTPUT_LOCAL };  // from OUTPUT_LOCAL on rows as LocalOperation
constexpr Choice outputs[] = {{"passthrough", "The frame as it came, with its tables in a GstCudaVisionIntegralMeta"},
                              {"box-mean", "The mean of each pixel's window"},
                              {"threshold", "Black or white by Bradley's adaptive threshold"},
                              {"deviation", "The standard deviation of each pixel's window"},
                              {"nlm", "Denoised by non-local means"}};
constexpr Choice layouts[] = {{"inclusive", "W×H entries: (x, y) sums columns 0 to x, rows 0 to y"},
                              {"padded", "(W+1)×(H+1) entries, the first row and column zero, as in OpenCV"}};  // as TableLayout
constexpr Choice sum_types[] = {{"auto", "u32 where no sum over the frame can overflow, else u64"},
                                {"u32", "32-bit whole numbers, modulo 2^32"},
                                {"u64", "64-bit whole numbers"},
                                {"f32", "32-bit floating point"},
                                {"f64", "64-bit floating point"}};                                        // as SumType
constexpr Choice channels[] = {{"luma", "Luma (of RGB: BT.601)"}, {"all", "Every component by itself"}};  // as TableChannel

GstCudaVisionEntryType entry_type(SumType type) { return GstCudaVisionEntryType(int(type) - int(SumType::u32)); }

const char* channel_name(Role role, TableChannel channel) {
  constexpr const char* names[] = {"Y", "Cb", "Cr", "R", "G", "B", "A"};  // as Role
  return channel == TableChannel::luma ? "luma" : names[int(role)];
}

gsize bytes_of(const TableInfo& table) { return gsize(table.width) * table.height * table.entry_bytes(); }

/// A memory, held and mapped to be written by the backend.
class Block {
 public:
  /// Takes `memory`. NULL stays unmapped. `gpu`: whose device memory it is, or nullptr.
  Block(GstMemory* memory, const Gpu* gpu) : memory_(memory), gpu_(gpu) {
    mapped_ = memory_ && gst_memory_map(memory_, &map_, GstMapFlags(GST_MAP_WRITE | (gpu ? Gpu::map_flag() : GstMapFlags(0))));
  }
  Block(Block&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        gpu_(other.gpu_),
        map_(other.map_),
        mapped_(std::exchange(other.mapped_, false)) {}
  Block& operator=(Block&&) = delete;
  ~Block() {
    unmap();
    if (memory_) gst_memory_unref(memory_);
  }

  guint8* data() const { return mapped_ ? map_.data : nullptr; }
  GstMemory* memory() const { return memory_; }
  /// Comes when what is written is done.
  void unmap() {
    if (!std::exchange(mapped_, false)) return;
    gst_memory_unmap(memory_, &map_);
    if (gpu_) gpu_->release(memory_);
  }

 private:
  GstMemory* memory_;
  const Gpu* gpu_;
  GstMapInfo map_;
  bool mapped_;
};

/// (transfer full) System memory; NULL where there is not so much. (GStreamer's own allocator would end the process.)
GstMemory* new_system_memory(gsize bytes) {
  gpointer data = g_try_malloc(bytes);
  return data ? gst_memory_new_wrapped(GstMemoryFlags(0), data, bytes, 0, bytes, data, g_free) : nullptr;
}

Status no_memory(gsize bytes) {
  return Status::resource("no memory can be had for a summed-area table of " + std::to_string(bytes) + " bytes");
}

/// Lets frames pass, with tables of them in a meta.
class TableMeta : public Processor {
 public:
  TableMeta(std::unique_ptr<Integral> integral, const IntegralParams& params, const Gpu* gpu)
      : integral_(std::move(integral)), params_(params), gpu_(gpu) {
    for (const TableInfo& table : integral_->tables())
      recyclers_.emplace_back(
          [bytes = bytes_of(table), gpu] { return gpu ? gpu->new_linear_memory(bytes) : new_system_memory(bytes); });
  }

  bool passes_through() const override { return true; }
  bool adds_metas() const override { return true; }

  Status submit(const FrameJob& job) override {
    blocks_.clear();
    std::vector<Plane> planes;
    for (std::size_t i = 0; i < recyclers_.size(); ++i) {
      const TableInfo& table = integral_->tables()[i];
      blocks_.emplace_back(recyclers_[i].take(), gpu_);
      planes.push_back({blocks_[i].data(), std::ptrdiff_t(table.width) * table.entry_bytes()});
      if (!planes[i].data) return no_memory(bytes_of(table));
    }
    return integral_->submit(job.src, planes, job.queue);
  }

  void finished(const FrameReport& report) override {
    std::vector<GstCudaVisionIntegralTable> tables;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const TableInfo& table = integral_->tables()[i];
      blocks_[i].unmap();
      tables.push_back({channel_name(table.role, params_.channel),
                        table.squared,
                        entry_type(table.type),
                        guint(table.width),
                        guint(table.height),
                        blocks_[i].memory(),
                        {}});
    }
    gst_buffer_add_cuda_vision_integral_meta(report.buffer, GstCudaVisionTableLayout(params_.layout), guint(tables.size()),
                                             tables.data());
    blocks_.clear();
  }

 private:
  const std::unique_ptr<Integral> integral_;
  const IntegralParams params_;
  const Gpu* const gpu_;             // nullptr on the CPU
  std::vector<Recycler> recyclers_;  // one for each table
  std::vector<Block> blocks_;        // of the frame that is on its way
};

/// Sends tables instead of the frame: those of a plan, which are all of one type and size, one after the other: R, G, B, A or Y,
/// Cb, Cr.
class TableData : public Processor {
 public:
  /// `gpu`: of Backend::cuda, or nullptr. `on_device`: where the tables go out.
  TableData(std::unique_ptr<Integral> integral, const Gpu* gpu, bool on_device)
      : integral_(std::move(integral)),
        gpu_(gpu),
        on_device_(on_device),
        bytes_(integral_->tables().size() * bytes_of(integral_->tables()[0])),
        outputs_(allocation(on_device)),
        scratches_(allocation(true)) {}

  Result<GstBuffer*> new_output() override {
    output_.emplace(outputs_.take(), on_device_ ? gpu_ : nullptr);
    if (!output_->data()) return no_memory(bytes_);
    GstBuffer* buffer = gst_buffer_new();
    gst_buffer_append_memory(buffer, gst_memory_ref(output_->memory()));
    return buffer;
  }

  Status submit(const FrameJob& job) override {
    const bool downloads = gpu_ && !on_device_;
    scratch_.emplace(downloads ? scratches_.take() : nullptr, gpu_);
    guint8* const begin = downloads ? scratch_->data() : output_->data();
    if (!begin) return no_memory(bytes_);
    std::vector<Plane> planes;
    const std::vector<TableInfo>& tables = integral_->tables();
    for (const TableInfo& table : tables) {
      const auto before =
          std::count_if(tables.begin(), tables.end(), [&](const TableInfo& other) { return other.role < table.role; });
      planes.push_back({begin + gsize(before) * bytes_of(table), std::ptrdiff_t(table.width) * table.entry_bytes()});
    }
    const Status status = integral_->submit(job.src, planes, job.queue);
    return status.ok() && downloads ? gpu_->download(begin, output_->data(), bytes_) : status;
  }

  void finished(const FrameReport&) override {
    output_.reset();
    scratch_.reset();
  }

 private:
  std::function<GstMemory*()> allocation(bool on_device) const {
    if (!gpu_) return [bytes = bytes_] { return new_system_memory(bytes); };
    if (on_device) return [bytes = bytes_, gpu = gpu_] { return gpu->new_linear_memory(bytes); };
    const std::shared_ptr<GstAllocator> pinned(gpu_->new_pinned_allocator(), gst_object_unref);
    return [bytes = bytes_, pinned] { return gst_allocator_alloc(pinned.get(), bytes, nullptr); };
  }

  const std::unique_ptr<Integral> integral_;
  const Gpu* const gpu_;
  const bool on_device_;
  const gsize bytes_;  // of all tables
  Recycler outputs_, scratches_;
  std::optional<Block> output_, scratch_;  // of the frame that is on its way
};

// Caps of tables that go out instead of video -----------------------------------------------------------------------------------

constexpr const char* table_media = "video/x-integral";

struct TableFormat {
  const char* name;
  SumType type;
};
constexpr TableFormat table_formats[] = {
    {"U32LE", SumType::u32}, {"U64LE", SumType::u64}, {"F32LE", SumType::f32}, {"F64LE", SumType::f64}};

/// The tables of channel=all that one buffer can hold: those of formats whose components are all of the frame's size. Else 0.
int whole_channels(Format format) {
  const Geometry geometry{format, 2, 2};
  IntegralParams params;
  params.channel = TableChannel::all;
  const std::vector<TableInfo> tables = describe_tables(params, geometry);
  const bool whole = std::all_of(tables.begin(), tables.end(), [](const TableInfo& t) { return t.width == 2 && t.height == 2; });
  return whole ? int(tables.size()) : 0;
}

GValue as_value(int number) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, G_TYPE_INT);
  g_value_set_int(&value, number);
  return value;
}
GValue as_value(const char* text) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, G_TYPE_STRING);
  g_value_set_string(&value, text);
  return value;
}

/// Sets a field to any of some values.
template <typename Values, typename Value>
void set_choices(GstStructure* structure, const char* field, const Values& values, Value&& value_of) {
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_LIST);
  for (const auto& value : values) {
    GValue item = as_value(value_of(value));
    gst_value_list_append_and_take_value(&list, &item);
  }
  gst_structure_take_value(structure, field, &list);
}

/// The numbers of tables that a buffer may have for a format: 1, of luma, and those of channel=all.
std::vector<int> channel_counts(const FormatInfo& format) {
  const int all = whole_channels(format.format);
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

/// A dimension (a number, a range, or a list of them), made `more` larger. Of anything else any is left.
GValue larger(const GValue* value, int more) {
  const auto moved = [more](int number) { return CLAMP(number, 1, G_MAXINT - 1) + more; };
  if (value && G_VALUE_HOLDS_INT(value)) return as_value(moved(g_value_get_int(value)));
  GValue result = G_VALUE_INIT;
  if (value && GST_VALUE_HOLDS_LIST(value)) {
    g_value_init(&result, GST_TYPE_LIST);
    for (guint i = 0; i < gst_value_list_get_size(value); ++i) {
      GValue item = larger(gst_value_list_get_value(value, i), more);
      gst_value_list_append_and_take_value(&result, &item);
    }
    return result;
  }
  int low = 1, high = 16385;
  if (value && GST_VALUE_HOLDS_INT_RANGE(value)) {
    low = std::max(moved(gst_value_get_int_range_min(value)), 1);
    high = std::max(moved(gst_value_get_int_range_max(value)), low + 1);
  }
  g_value_init(&result, GST_TYPE_INT_RANGE);
  gst_value_set_int_range(&result, low, high);
  return result;
}

/// Whether a structure lets a field be this.
template <typename T>
bool allows(const GstStructure* structure, const char* field, T wanted) {
  const GValue* value = gst_structure_get_value(structure, field);
  if (!value) return true;
  GValue one = as_value(wanted);
  const bool allowed = gst_value_intersect(nullptr, value, &one);
  g_value_unset(&one);
  return allowed;
}

/// (transfer full) What is the same in video and its tables: size but for `more`, framerate.
GstStructure* related(const GstStructure* from, const char* media, int more) {
  GstStructure* to = gst_structure_new_empty(media);
  for (const char* field : {"width", "height"}) {
    GValue size = larger(gst_structure_get_value(from, field), more);
    gst_structure_take_value(to, field, &size);
  }
  if (const GValue* rate = gst_structure_get_value(from, "framerate")) gst_structure_set_value(to, "framerate", rate);
  return to;
}

GstStructure* tables_of_video(const GstStructure* video, TableLayout layout) {
  GstStructure* tables = related(video, table_media, int(layout));
  set_choices(tables, "format", table_formats, [](const TableFormat& format) { return format.name; });
  gst_structure_set(tables, "layout", G_TYPE_STRING, layouts[int(layout)].nick, nullptr);
  const char* name = gst_structure_get_string(video, "format");
  const FormatInfo* format = name ? find_format(name) : nullptr;
  set_choices(tables, "channels", format ? channel_counts(*format) : std::vector<int>{1, 3, 4}, [](int count) { return count; });
  return tables;
}

GstStructure* video_of_tables(const GstStructure* tables, TableLayout layout) {
  GstStructure* video = related(tables, "video/x-raw", -int(layout));
  std::vector<const char*> names;
  for (const FormatInfo& format : formats()) {
    const std::vector<int> counts = channel_counts(format);
    if (std::any_of(counts.begin(), counts.end(), [&](int count) { return allows(tables, "channels", count); }))
      names.push_back(format.name);
  }
  set_choices(video, "format", names, [](const char* name) { return name; });
  return video;
}

struct IntegralElement {
  static constexpr const char* type_name = "GstCudaIntegral";
  static constexpr const char* element_name = "cudaintegral";
  static constexpr const char* long_name = "Summed-area tables";
  static constexpr const char* klass = "Filter/Analyzer/Video";
  static constexpr const char* description =
      "Makes summed-area tables (integral images) of video for applications, and filters by them: box mean, adaptive threshold, "
      "deviation, non-local means; on the GPU or the processor";

  struct Settings {
    int output = OUTPUT_PASSTHROUGH, layout = int(TableLayout::inclusive), sum_type = int(SumType::automatic),
        channel = int(TableChannel::luma);
    bool squared = false;
    int radius = LocalParams().radius, search_radius = LocalParams().search_radius;
    double sensitivity = LocalParams().sensitivity, strength = LocalParams().strength;
  };

  static std::vector<Property<Settings>> properties() {
    const auto choice = [](const char* name, const char* nick, const char* blurb, const char* type, const auto& table) {
      return g_param_spec_enum(name, nick, blurb, enum_from_table(type, table), 0, playing_property);
    };
    const Settings initial;
    return {
        {choice("output", "Output", "What goes out", "GstCudaIntegralOutput", outputs), &Settings::output},
        {choice("layout", "Layout", "Which samples an entry of a table sums", "GstCudaIntegralLayout", layouts), &Settings::layout},
        {choice("sum-type", "Sum type", "What an entry of a table is", "GstCudaIntegralSumType", sum_types), &Settings::sum_type},
        {g_param_spec_boolean("squared", "Squared", "Also make tables of the squares (f64 where sums are f32 or f64, else u64)",
                              FALSE, playing_property),
         &Settings::squared},
        {choice("channel", "Channel", "What is summed", "GstCudaIntegralChannel", channels), &Settings::channel},
        {int_property("radius", "Radius",
                      "Of the window, which is 2·radius + 1 wide and high, in pixels; 0 to 16384. nlm: of a patch, 0 to 16", 0,
                      local_max_radius, initial.radius),
         &Settings::radius},
        {double_property("sensitivity", "Sensitivity", "threshold: how far below the window's mean black begins, 0 to 1", 0, 1,
                         initial.sensitivity),
         &Settings::sensitivity},
        {int_property("search-radius", "Search radius", "nlm: how far similar patches are looked for, in pixels, 1 to 32", 1,
                      nlm_max_search_radius, initial.search_radius),
         &Settings::search_radius},
        {double_property("strength", "Strength",
                         "nlm: how different patches may be that are averaged, in steps of 8 bits, 0.001 to 1000", nlm_min_strength,
                         nlm_max_strength, initial.strength),
         &Settings::strength},
    };
  }

  /// Width and height are the entries of a table: with layout=padded one more than the frame's pixels.
  static constexpr const char* data_caps =
      "video/x-integral, format=(string){ U32LE, U64LE, F32LE, F64LE }, layout=(string){ inclusive, padded }, "
      "channels=(int){ 1, 3, 4 }, width=(int)[ 1, 16385 ], height=(int)[ 1, 16385 ], framerate=(fraction)[ 0/1, max ]";

  static GstCaps* transform_data_caps(GstPadDirection direction, GstCaps* caps) {
    const bool to_tables = direction == GST_PAD_SINK;
    GstCaps* result = gst_caps_new_empty();
    for (guint i = 0; i < gst_caps_get_size(caps); ++i) {
      const GstStructure* structure = gst_caps_get_structure(caps, i);
      if (bool(gst_structure_has_name(structure, table_media)) == to_tables) continue;
      for (TableLayout layout : {TableLayout::inclusive, TableLayout::padded})
        if (to_tables)
          gst_caps_append_structure(result, tables_of_video(structure, layout));
        else if (allows(structure, "layout", layouts[int(layout)].nick))
          gst_caps_append_structure(result, video_of_tables(structure, layout));
    }
    return result;
  }

  static GstCaps* fixate_data_caps(const Settings& settings, const GstVideoInfo& video, GstCaps* choices) {
    const char* layout = layouts[settings.layout].nick;
    guint chosen = 0;
    for (guint i = gst_caps_get_size(choices); i-- > 0;)
      if (allows(gst_caps_get_structure(choices, i), "layout", layout)) chosen = i;
    GstCaps* result = gst_caps_copy_nth(choices, chosen);
    gst_caps_unref(choices);
    GstStructure* structure = gst_caps_get_structure(result, 0);
    // What the settings say, or else what can hold most.
    for (SumType type : {resolved(SumType(settings.sum_type), video), SumType::u64, SumType::f64, SumType::f32, SumType::u32}) {
      const char* name = table_formats[int(type) - int(SumType::u32)].name;
      if (!allows(structure, "format", name)) continue;
      gst_structure_set(structure, "format", G_TYPE_STRING, name, nullptr);
      break;
    }
    const bool all = TableChannel(settings.channel) == TableChannel::all;
    gst_structure_fixate_field_nearest_int(structure, "channels", all ? std::max(whole_channels(geometry_of(video).format), 1) : 1);
    return result;
  }

  static Status check(const Settings& settings) { return validate(local_params(settings)); }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    if (settings.output == OUTPUT_PASSTHROUGH) return make_tables(settings, context);
    if (context.data)
      return Status::settings("output is " + std::string(outputs[settings.output].nick) +
                              ": video/x-integral, which is asked for, needs output=passthrough");
    return make_filter(settings, context);
  }

 private:
  static LocalParams local_params(const Settings& settings) {
    LocalParams params;
    if (settings.output >= OUTPUT_LOCAL) params.operation = LocalOperation(settings.output - OUTPUT_LOCAL);
    params.radius = settings.radius;
    params.sensitivity = settings.sensitivity;
    params.search_radius = settings.search_radius;
    params.strength = settings.strength;
    return params;
  }

  static IntegralParams table_params(const Settings& settings) {
    return {TableLayout(settings.layout), SumType(settings.sum_type), settings.squared, TableChannel(settings.channel)};
  }

  static Result<FilterPlan> make_filter(const Settings& settings, const PlanContext& context) {
    auto filter = make_local(local_params(settings), geometry_of(context.video), context.backend);
    if (!filter.ok()) return filter.error();
    return FilterPlan{filter_processor(std::move(filter.value())), window_advice(settings, context.video)};
  }

  static Result<FilterPlan> make_tables(const Settings& settings, const PlanContext& context) {
    if (context.region != Region::Mode::frame)
      return Status::settings("region is " + std::string(context.region == Region::Mode::inside ? "roi" : "outside-roi") +
                              ": output=passthrough makes tables of the whole frame; set region=frame, or output=box-mean, "
                              "threshold, deviation or nlm");
    IntegralParams params = table_params(settings);
    if (context.data)
      if (Status status = follow_caps(settings, context, params); !status.ok()) return status;
    auto integral = make_integral(params, geometry_of(context.video), context.backend);
    if (!integral.ok()) return integral.error();
    const Gpu* gpu = context.backend == Backend::cuda ? &context.gpu : nullptr;
    if (context.data)
      return FilterPlan{std::make_unique<TableData>(std::move(integral.value()), gpu, is_cuda_caps(context.data)), {}};
    return FilterPlan{std::make_unique<TableMeta>(std::move(integral.value()), params, gpu), {}};
  }

  /// `type`, or for automatic what that is for this video.
  static SumType resolved(SumType type, const GstVideoInfo& video) {
    IntegralParams params;
    params.sum_type = type;
    return describe_tables(params, geometry_of(video))[0].type;
  }

  /// What goes out as video/x-integral is as its caps say. Errors: settings, where they ask for what cannot be.
  static Status follow_caps(const Settings& settings, const PlanContext& context, IntegralParams& params) {
    const GstStructure* caps = gst_caps_get_structure(context.data, 0);
    const Format format = geometry_of(context.video).format;
    if (params.channel == TableChannel::all && whole_channels(format) == 0)
      return Status::settings(
          "channel is all: the components of " + std::string(info(format).name) +
          " differ in size, so that video/x-integral cannot hold them; set channel=luma, or convert to Y444 or RGB");
    for (const TableFormat& row : table_formats)
      if (g_strcmp0(gst_structure_get_string(caps, "format"), row.name) == 0) params.sum_type = row.type;
    if (params.sum_type == SumType::u32 && SumType(settings.sum_type) != SumType::u32 &&
        resolved(SumType::automatic, context.video) != SumType::u32)
      return Status::settings("the caps ask for U32LE: sums over " + std::to_string(GST_VIDEO_INFO_WIDTH(&context.video)) + "×" +
                              std::to_string(GST_VIDEO_INFO_HEIGHT(&context.video)) + " pixels of " + info(format).name +
                              " need U64LE; ask for that, or set sum-type=u32 for sums modulo 2^32");
    for (TableLayout layout : {TableLayout::inclusive, TableLayout::padded})
      if (g_strcmp0(gst_structure_get_string(caps, "layout"), layouts[int(layout)].nick) == 0) params.layout = layout;
    int count = 1;
    gst_structure_get_int(caps, "channels", &count);
    params.channel = count > 1 ? TableChannel::all : TableChannel::luma;
    params.squared = false;
    return {};
  }

  static std::string window_advice(const Settings& settings, const GstVideoInfo& video) {
    const int width = GST_VIDEO_INFO_WIDTH(&video), height = GST_VIDEO_INFO_HEIGHT(&video), window = 2 * settings.radius + 1;
    if (window <= width && window <= height) return {};
    const auto size = [](int w, int h) { return std::to_string(w) + "×" + std::to_string(h); };
    return "radius is " + std::to_string(settings.radius) + ": the window of " + size(window, window) +
           " is larger than the frame of " + size(width, height) + "; of it counts what lies inside the frame";
  }
};

}  // namespace

bool register_integral(GstPlugin* plugin) { return FilterElement<IntegralElement>::register_in(plugin); }

}  // namespace cudavision
