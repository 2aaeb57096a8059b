// SPDX-License-Identifier: LGPL-2.1-or-later
#include "integral.hpp"

#include "../../kernels/integral.hpp"
#include "../../kernels/local.hpp"
#include "../base/filter_element.hpp"
#include "../base/frame.hpp"
#include "../base/gpu.hpp"
#include "../base/recycler.hpp"
#include "../meta/integral_meta.h"

namespace cudavision {
namespace {

struct Choice {
  const char *nick, *blurb;
};

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
                                {"f64", "64-bit floating point"}};  // as SumType
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
      : memory_(std::exchange(other.memory_, nullptr)), gpu_(other.gpu_), map_(other.map_), mapped_(std::exchange(other.mapped_, false)) {}
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

Status no_memory(gsize bytes) {
  return Status::resource("no memory can be had for a summed-area table of " + std::to_string(bytes) + " bytes");
}

/// Lets frames pass, with tables of them in a meta.
class TableMeta : public Processor {
 public:
  TableMeta(std::unique_ptr<Integral> integral, const IntegralParams& params, const Gpu* gpu)
      : integral_(std::move(integral)), params_(params), gpu_(gpu) {
    for (const TableInfo& table : integral_->tables())
      recyclers_.emplace_back([bytes = bytes_of(table), gpu] {
        return gpu ? gpu->new_linear_memory(bytes) : gst_allocator_alloc(nullptr, bytes, nullptr);
      });
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
      tables.push_back({channel_name(table.role, params_.channel), table.squared, entry_type(table.type), guint(table.width),
                        guint(table.height), blocks_[i].memory(), {}});
    }
    gst_buffer_add_cuda_vision_integral_meta(report.buffer, GstCudaVisionTableLayout(params_.layout), guint(tables.size()), tables.data());
    blocks_.clear();
  }

 private:
  const std::unique_ptr<Integral> integral_;
  const IntegralParams params_;
  const Gpu* const gpu_;  // nullptr on the CPU
  std::vector<Recycler> recyclers_;  // one for each table
  std::vector<Block> blocks_;        // of the frame that is on its way
};

struct IntegralElement {
  static constexpr const char* type_name = "CudaVisionIntegral";
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
    // Values that cannot work are refused with a sentence of our own, not by GObject: hence the wide ranges.
    const auto choice = [](const char* name, const char* nick, const char* blurb, const char* type, const auto& table) {
      return g_param_spec_enum(name, nick, blurb, enum_from_table(type, table, G_N_ELEMENTS(table)), 0, playing_property);
    };
    const auto whole = [](const char* name, const char* nick, int initial, const char* blurb) {
      return g_param_spec_int(name, nick, blurb, G_MININT, G_MAXINT, initial, playing_property);
    };
    const auto real = [](const char* name, const char* nick, double initial, const char* blurb) {
      return g_param_spec_double(name, nick, blurb, -G_MAXDOUBLE, G_MAXDOUBLE, initial, playing_property);
    };
    const Settings initial;
    return {
        {choice("output", "Output", "What goes out", "CudaVisionIntegralOutput", outputs), &Settings::output},
        {choice("layout", "Layout", "Which samples an entry of a table sums", "CudaVisionIntegralLayout", layouts), &Settings::layout},
        {choice("sum-type", "Sum type", "What an entry of a table is", "CudaVisionIntegralSumType", sum_types), &Settings::sum_type},
        {g_param_spec_boolean("squared", "Squared", "Also make tables of the squares (f64 where sums are f32 or f64, else u64)", FALSE,
                              playing_property),
         &Settings::squared},
        {choice("channel", "Channel", "What is summed", "CudaVisionIntegralChannel", channels), &Settings::channel},
        {whole("radius", "Radius", initial.radius,
               "Of the window, which is 2·radius + 1 wide and high, in pixels; 0 to 16384. nlm: of a patch, 0 to 16"),
         &Settings::radius},
        {real("sensitivity", "Sensitivity", initial.sensitivity, "threshold: how far below the window's mean black begins, 0 to 1"),
         &Settings::sensitivity},
        {whole("search-radius", "Search radius", initial.search_radius, "nlm: how far similar patches are looked for, in pixels, 1 to 32"),
         &Settings::search_radius},
        {real("strength", "Strength", initial.strength,
              "nlm: how different patches may be that are averaged, in steps of 8 bits, above 0, at most 1000"),
         &Settings::strength},
    };
  }

  static Status check(const Settings& settings) { return validate(local_params(settings)); }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    return settings.output == OUTPUT_PASSTHROUGH ? make_tables(settings, context) : make_filter(settings, context);
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
      return Status::settings(
          "region is " + std::string(context.region == Region::Mode::inside ? "roi" : "outside-roi") +
          ": output=passthrough makes tables of the whole frame; set region=frame, or output=box-mean, threshold, deviation or nlm");
    const IntegralParams params = table_params(settings);
    auto integral = make_integral(params, geometry_of(context.video), context.backend);
    if (!integral.ok()) return integral.error();
    const Gpu* gpu = context.backend == Backend::cuda ? &context.gpu : nullptr;
    return FilterPlan{std::make_unique<TableMeta>(std::move(integral.value()), params, gpu), {}};
  }

  static std::string window_advice(const Settings& settings, const GstVideoInfo& video) {
    const int width = GST_VIDEO_INFO_WIDTH(&video), height = GST_VIDEO_INFO_HEIGHT(&video), window = 2 * settings.radius + 1;
    if (window <= width && window <= height) return {};
    const auto size = [](int w, int h) { return std::to_string(w) + "×" + std::to_string(h); };
    return "radius is " + std::to_string(settings.radius) + ": the window of " + size(window, window) + " is larger than the frame of " +
           size(width, height) + "; of it counts what lies inside the frame";
  }
};

}  // namespace

bool register_integral(GstPlugin* plugin) { return FilterElement<IntegralElement>::register_in(plugin); }

}  // namespace cudavision
