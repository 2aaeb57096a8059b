// SPDX-License-Identifier: LGPL-2.1-or-later
// cudaintegral: summed-area tables, and filters based on them (docs/elements/cudaintegral.md).
#include "kernels/integral/integral.hpp"

#include <algorithm>
#include <string>

#include "gst/base/caps.hpp"
#include "gst/base/filter/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/elements/elements.hpp"
#include "gst/elements/integral_tables.hpp"
#include "kernels/local/local.hpp"

namespace cudavision {
namespace {

enum Output { OUTPUT_PASSTHROUGH, OUTPUT_LOCAL };  // values from OUTPUT_LOCAL on: OUTPUT_LOCAL plus a local::Operation
constexpr Choice outputs[] = {
    {OUTPUT_PASSTHROUGH, "passthrough", "The unchanged frame, with its tables in a GstCudaVisionIntegralMeta"},
    {OUTPUT_LOCAL + int(local::Operation::box_mean), "box-mean", "The mean of the window around each pixel"},
    {OUTPUT_LOCAL + int(local::Operation::threshold), "threshold", "Black and white, by Bradley's adaptive threshold"},
    {OUTPUT_LOCAL + int(local::Operation::deviation), "deviation",
     "The standard deviation in the window around each pixel"},
    {OUTPUT_LOCAL + int(local::Operation::nlm), "nlm", "The frame denoised by non-local means"},
    {OUTPUT_LOCAL + int(local::Operation::pixelate), "pixelate", "A mosaic: each block gets its mean"}};
constexpr Choice sum_types[] = {
    {integral::SumType::automatic, "auto", "u32 if no sum over the frame can overflow, else u64"},
    {integral::SumType::u32, "u32", "32-bit whole numbers, modulo 2^32"},
    {integral::SumType::u64, "u64", "64-bit whole numbers"},
    {integral::SumType::f32, "f32", "32-bit floating point"},
    {integral::SumType::f64, "f64", "64-bit floating point"}};
constexpr Choice channels[] = {{integral::TableChannel::luma, "luma", "Luma (from RGB by BT.601)"},
                               {integral::TableChannel::all, "all", "Each component, in its own table"}};

struct IntegralElement : NoReadings {
  static constexpr const char* type_name = "GstCudaIntegral";
  static constexpr const char* element_name = "cudaintegral";
  static constexpr const char* long_name = "Summed-area tables";
  static constexpr const char* klass = "Filter/Analyzer/Video";
  static constexpr bool examines = false, sends_data = true;
  static constexpr const char* description =
      "Computes summed-area tables (integral images) of video, and filters that use them: box mean, mosaic, adaptive "
      "threshold, deviation, non-local means; on the GPU or the processor";

  struct Settings : integral::Params, local::Params {
    int output = OUTPUT_PASSTHROUGH;
  };
  using Row = Property<Settings>;

  static std::vector<Row> properties() {
    return {
        Row::choice("output", "Output", &Settings::output, enum_from_table("GstCudaIntegralOutput", outputs),
                    "The output picture"),
        Row::choice("layout", "Layout", &Settings::layout, enum_from_table("GstCudaIntegralLayout", table_layouts),
                    "The samples that an entry of a table sums"),
        Row::choice("sum-type", "Sum type", &Settings::sum_type, enum_from_table("GstCudaIntegralSumType", sum_types),
                    "The type of the entries of a table"),
        Row::flag("squared", "Squared", &Settings::squared,
                  "Also compute tables of the squares, as f64 if sums are f32 or f64, else as u64"),
        Row::choice("channel", "Channel", &Settings::channel, enum_from_table("GstCudaIntegralChannel", channels),
                    "The channels that are summed"),
        Row::number("radius", "Radius", &Settings::radius, 0, local::max_radius,
                    "Radius of the window or block, which is 2·radius + 1 wide and high, in pixels, {}; for "
                    "output=box-mean and pixelate, 0 means an eighth of the shorter side of each region; for "
                    "output=nlm radius of a patch, at most " +
                        std::to_string(local::nlm_max_radius)),
        Row::number("sensitivity", "Sensitivity", &Settings::sensitivity, 0, 1,
                    "For output=threshold: a pixel is black if it is darker than the mean of its window by this share, "
                    "{}"),
        Row::number("search-radius", "Search radius", &Settings::search_radius, 1, local::nlm_max_search_radius,
                    "For output=nlm: the distance to the patches that are compared, in pixels, {}"),
        Row::number("strength", "Strength", &Settings::strength, local::nlm_min_strength, local::nlm_max_strength,
                    "For output=nlm: the difference up to which patches are averaged, in 8-bit steps, {}"),
    };
  }

  static std::string data_caps() { return table_caps_template(); }

  static GstCaps* transform_data_caps(GstPadDirection direction, GstCaps* caps) {
    return transform_table_caps(direction, caps);
  }

  static GstCaps* fixate_data_caps(const Settings& settings, const GstVideoInfo& video, GstCaps* choices) {
    const bool all = settings.channel == integral::TableChannel::all;
    return fixate_table_caps(choices, {resolved(settings.sum_type, video), settings.layout,
                                       all ? std::max(whole_channels(geometry_of(video).format), 1) : 1});
  }

  static Status check(const Settings& settings) { return validate(local_params(settings)); }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    if (settings.output == OUTPUT_PASSTHROUGH) return make_tables(settings, context);
    if (context.data)
      return Status::settings("output is " + std::string(nick_of(settings.output, outputs)) +
                              ": video/x-integral, which downstream requires, needs output=passthrough");
    return make_filter(settings, context);
  }

 private:
  static local::Params local_params(const Settings& settings) {
    local::Params params = settings;
    if (settings.output >= OUTPUT_LOCAL) params.operation = local::Operation(settings.output - OUTPUT_LOCAL);
    const bool patches = params.operation == local::Operation::nlm && settings.output >= OUTPUT_LOCAL;
    if (patches) params.radius = std::min(settings.radius, local::nlm_max_radius);
    return params;
  }

  static Result<FilterPlan> make_filter(const Settings& settings, const PlanContext& context) {
    auto filter = local::make(local_params(settings), geometry_of(context.video), context.backend);
    if (!filter.ok()) return filter.error();
    return FilterPlan{filter_processor(std::move(filter.value())), advice(settings, context)};
  }

  static Result<FilterPlan> make_tables(const Settings& settings, const PlanContext& context) {
    if (context.region != Region::Mode::frame)
      return Status::settings(
          "region is " + std::string(region_name(context.region)) +
          ": output=passthrough makes tables of the whole frame; set region=frame, or output=box-mean, "
          "threshold, deviation, nlm or pixelate");
    integral::Params params = settings;
    if (context.data)
      if (Status status = follow_caps(settings, context, params); !status.ok()) return status;
    auto integral = integral::make(params, geometry_of(context.video), context.backend);
    if (!integral.ok()) return integral.error();
    const Gpu* gpu = context.backend == Backend::cuda ? &context.gpu : nullptr;
    if (context.data)
      return FilterPlan{new_table_data(std::move(integral.value()), gpu, is_cuda_caps(context.data)),
                        advice(settings, context)};
    return FilterPlan{new_table_meta(std::move(integral.value()), params, gpu), advice(settings, context)};
  }

  static std::string advice(const Settings& settings, const PlanContext& context) {
    const std::string output = "output=" + std::string(nick_of(settings.output, outputs));
    const bool tables = settings.output == OUTPUT_PASSTHROUGH;
    const auto only = [&](local::Operation operation) {
      return unless(settings.output == OUTPUT_LOCAL + int(operation), output);
    };
    std::string text = without_effect(FilterElement<IntegralElement>::properties(), settings, Settings(),
                                      {{"layout", unless(tables, output)},
                                       {"sum-type", unless(tables, output)},
                                       {"squared", tables ? unless(!context.data, "video/x-integral") : output},
                                       {"channel", unless(tables, output)},
                                       {"radius", unless(!tables, output)},
                                       {"sensitivity", only(local::Operation::threshold)},
                                       {"search-radius", only(local::Operation::nlm)},
                                       {"strength", only(local::Operation::nlm)}});
    // A controller may drive the radius, so the sentence does not give its value.
    if (const int used = local_params(settings).radius; used < settings.radius)
      text = both(text, "radius counts as " + std::to_string(used) + ", the largest with " + output);
    return text;
  }

  /// `type`, or the type that `automatic` selects for this video.
  static integral::SumType resolved(integral::SumType type, const GstVideoInfo& video) {
    integral::Params params;
    params.sum_type = type;
    return integral::describe_tables(params, geometry_of(video))[0].type;
  }

  /// Sets parameters as the caps video/x-integral require. Errors: settings, if they require something impossible.
  static Status follow_caps(const Settings& settings, const PlanContext& context, integral::Params& params) {
    const Format format = geometry_of(context.video).format;
    if (params.channel == integral::TableChannel::all && whole_channels(format) == 0)
      return Status::settings(
          "channel is all: the components of " + std::string(info(format).name) +
          " differ in size, so that video/x-integral cannot hold them; set channel=luma, or convert to Y444 or RGB");
    const TableCaps caps = read_table_caps(context.data);
    params.sum_type = caps.type;
    if (params.sum_type == integral::SumType::u32 && settings.sum_type != integral::SumType::u32 &&
        resolved(integral::SumType::automatic, context.video) != integral::SumType::u32)
      return Status::settings("the caps request U32LE: sums over " +
                              size_text(GST_VIDEO_INFO_WIDTH(&context.video), GST_VIDEO_INFO_HEIGHT(&context.video)) +
                              " pixels of " + info(format).name +
                              " need U64LE; request that, or set sum-type=u32 for sums modulo 2^32");
    params.layout = caps.layout;
    params.channel = caps.channels > 1 ? integral::TableChannel::all : integral::TableChannel::luma;
    params.squared = false;
    return {};
  }
};

}  // namespace

bool register_integral(GstPlugin* plugin) { return FilterElement<IntegralElement>::register_in(plugin); }

}  // namespace cudavision
