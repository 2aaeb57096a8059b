// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/cases.hpp"

#include <cstdio>
#include <memory>
#include <thread>

#include "tests/streams/complaints.hpp"
#include "tests/streams/plugin.hpp"
#include "tests/streams/settings.hpp"

namespace cudavision::fuzz {
namespace {

using namespace streams;

/// The inputs of an element: one, or several for a mixer.
using Inputs = std::vector<std::unique_ptr<Input>>;

/// Sets properties. Writes them to stderr for the report of a failed case.
void set_properties(Random& random, GstObject* object, Mood mood, int most) {
  // Without a preset or weights, cudaconvolve is the identity, which tests little.
  GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(object), "preset");
  std::vector<Setting> settings;
  if (spec && G_IS_PARAM_SPEC_ENUM(spec) && !random.one_in(4)) {
    settings.push_back({"preset", Value(spec->value_type)});
    g_value_set_enum(settings[0].value.get(),
                     random.between(1, int(G_PARAM_SPEC_ENUM(spec)->enum_class->n_values) - 1));
  }
  for (const Setting& setting : draw_settings(random, G_OBJECT(object), mood, most)) settings.push_back(setting);
  if (!random.reads_bytes()) log_settings(GST_OBJECT_NAME(object), settings);
  apply_settings(G_OBJECT(object), settings);
}

Inputs make_inputs(Rig& rig, Random& random, const Case& c, Mood mood, bool is_live) {
  Inputs inputs;
  if (!is_mixer(c.element)) {
    inputs.push_back(std::make_unique<Input>(rig, gst_element_get_static_pad(rig.element(), "sink"), is_live));
    return inputs;
  }
  for (int i = random.pick<int>({1, 2, 2, 3, 4}); i > 0; --i) {
    GstPad* pad = gst_element_request_pad_simple(rig.element(), "sink_%u");
    set_properties(random, GST_OBJECT(pad), mood, 4);
    inputs.push_back(std::make_unique<Input>(rig, pad, is_live));
  }
  return inputs;
}

/// Draws the plan of input `index`. The first input uses the plan of the case.
StreamPlan plan_for(const Case& c, Random& random, std::size_t index) {
  StreamPlan plan = c.plan;
  if (index == 0) return plan;
  const std::vector<std::string> formats = formats_of(c.element, nullptr);
  plan.format = random.pick(formats);
  plan.other_format = random.pick(formats);
  plan.device = false;
  draw_size(random, plan);
  return plan;
}

// Other threads
// -----------------------------------------------------------------------------------------------------------------

/// Calls `act` repeatedly on another thread during this object's lifetime.
class Meanwhile {
 public:
  template <typename F>
  Meanwhile(Random random, F&& act)
      : thread_([this, random, act]() mutable {
          for (int i = 0; i < 300 && !stopped_; ++i) {
            act(random);
            g_usleep(gulong(random.below(400)));
          }
        }) {}
  ~Meanwhile() {
    stopped_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

void change_something(Random& random, Rig& rig, const Inputs& inputs, bool mixer) {
  GObject* object = G_OBJECT(rig.element());
  if (mixer && random.one_in(2)) object = G_OBJECT(random.pick(inputs)->target());
  apply_settings(object, draw_settings(random, object, random.one_in(2) ? Mood::calm : Mood::bold, 3));
  if (random.one_in(8)) read_all(object);
}

/// Requests a pad, sends at most one frame and releases the pad.
void visit(Random& random, Rig& rig, const Case& c) {
  GstPad* pad = gst_element_request_pad_simple(rig.element(), "sink_%u");
  if (!pad) return;
  Input input(rig, pad, false);
  apply_settings(G_OBJECT(pad), draw_settings(random, G_OBJECT(pad), Mood::calm, 3));
  StreamPlan plan = plan_for(c, random, 1);
  plan.frames = random.below(2);
  plan.disturbed = false;
  if (!random.one_in(4)) feed(rig, input, random.fork(), plan);
  g_usleep(gulong(random.below(1000)));
  input.release();
}

// Kinds of cases
// ----------------------------------------------------------------------------------------------------------------

/// Feeds all inputs in parallel. Stops inputs that wait for each other forever.
void feed_all(Rig& rig, Inputs& inputs, Random& random, const Case& c, bool interrupt) {
  if (!is_mixer(c.element)) return feed(rig, *inputs[0], random.reads_bytes() ? random : random.fork(), c.plan);
  std::vector<std::thread> feeders;
  std::atomic<int> left{int(inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const StreamPlan plan = plan_for(c, random, i);
    const bool takes_rest = random.reads_bytes() && i + 1 == inputs.size();
    feeders.emplace_back([&, i, plan, own = takes_rest ? random : random.fork()] {
      feed(rig, *inputs[i], own, plan);
      --left;
    });
  }
  if (interrupt) {
    g_usleep(gulong(random.below(3000)));
    rig.set_state(random.pick<GstState>({GST_STATE_READY, GST_STATE_PAUSED, GST_STATE_NULL}));
    rig.set_state(GST_STATE_PLAYING);
  }
  const int patience_ms = random.reads_bytes() ? 50 : 200;
  for (int i = 0; i < patience_ms && left > 0 && rig.errors() == 0; ++i) g_usleep(1000);
  rig.wait_for_eos(left > 0 ? 0 : 30);
  rig.set_state(GST_STATE_READY);  // releases the waiting feeders
  for (std::thread& feeder : feeders) feeder.join();
}

void run_stream(const Case& c) {
  Random random = c.random;
  const Mood mood = random.reads_bytes() || random.one_in(3) ? Mood::bold : Mood::calm;
  Downstream downstream = draw_downstream(random, is_mixer(c.element));
  if (random.one_in(16)) downstream.pool = Downstream::Pool::lying;
  Rig rig(c.element, c.backend, downstream);
  Inputs inputs = make_inputs(rig, random, c, mood, random.one_in(6) && !random.reads_bytes());
  set_properties(random, GST_OBJECT(rig.element()), mood, 6);
  for (int round = random.one_in(6) ? 2 : 1; round > 0; --round) {
    const bool started = rig.set_state(GST_STATE_PLAYING);
    if (started) {
      std::unique_ptr<Meanwhile> changes, visits;
      if (c.changed_meanwhile)
        changes = std::make_unique<Meanwhile>(
            random.fork(), [&](Random& own) { change_something(own, rig, inputs, is_mixer(c.element)); });
      if (c.pads_come_and_go)
        visits = std::make_unique<Meanwhile>(random.fork(), [&](Random& own) { visit(own, rig, c); });
      feed_all(rig, inputs, random, c, random.one_in(10) && !random.reads_bytes());
    }
    read_all(G_OBJECT(rig.element()));
    rig.set_state(started && random.one_in(2) ? GST_STATE_READY : GST_STATE_NULL);  // READY may fail again
  }
  rig.set_state(GST_STATE_NULL);
}

/// The output for the case's pictures in this layout.
std::vector<std::string> outputs_of(const Case& c, Layout layout, bool decorated) {
  Random random = c.random;
  Rig rig(c.element, c.backend, draw_downstream(random, is_mixer(c.element)), Rig::Keep::samples);
  Inputs inputs = make_inputs(rig, random, c, Mood::calm, false);
  set_properties(random, GST_OBJECT(rig.element()), Mood::calm, 6);
  std::vector<std::thread> feeders;
  if (rig.set_state(GST_STATE_PLAYING)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      StreamPlan plan = plan_for(c, random, i);
      std::vector<Picture> pictures;
      for (int frame = 0; frame < plan.frames; ++frame) pictures.push_back(draw_picture(random, video_of(plan)));
      feeders.emplace_back([&, i, plan, pictures, own = random.fork()] {
        feed_pictures(*inputs[i], own, plan, pictures, layout, decorated);
      });
    }
    rig.wait_for_eos(5000);
  }
  rig.set_state(GST_STATE_NULL);
  for (std::thread& feeder : feeders) feeder.join();
  return rig.outputs();
}

void run_layouts(const Case& c) {
  const auto layout = Layout(Random(c.random).between(1, layout_count - 1));
  const bool decorated = layout != Layout::cropped;  // regions of interest are relative to the uncropped frame
  const auto expected = outputs_of(c, Layout::tight, decorated), actual = outputs_of(c, layout, decorated);
  const std::string other = std::string("frames in another layout (") + name_of(layout) + ")";
  if (expected.size() != actual.size())
    return complain(other + " give " + std::to_string(actual.size()) + " frames instead of " +
                    std::to_string(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].size() != actual[i].size()) return complain(other + " give a frame of another size");
    if (const auto at = std::mismatch(expected[i].begin(), expected[i].end(), actual[i].begin()).first;
        at != expected[i].end())
      return complain(other + " give another picture: frame " + std::to_string(i) + ", byte " +
                      std::to_string(at - expected[i].begin()) + " of its samples");
  }
}

}  // namespace

Case draw_case(Random random, const std::vector<std::string>& elements, const std::string& backend) {
  Case c{random};
  c.element = random.pick(elements);
  c.backend = backend;
  if (random.one_in(6)) c.kind = Case::Kind::layouts;
  const auto formats = formats_of(c.element, nullptr), device_formats = formats_of(c.element, "memory:CUDAMemory");
  c.plan.device = backend == "cuda" && c.kind == Case::Kind::stream && !device_formats.empty() && random.one_in(3);
  c.plan.format = random.pick(c.plan.device ? device_formats : formats);
  c.plan.other_format = random.pick(formats);
  c.plan.frames = random.between(1, 6);
  draw_size(random, c.plan);
  c.plan.hostile_frames = random.one_in(2);
  c.plan.hostile_caps = random.one_in(6);
  c.plan.disturbed = random.one_in(2);
  if (!random.reads_bytes()) {
    c.changed_meanwhile = random.one_in(4);
    c.pads_come_and_go = random.one_in(3) && is_mixer(c.element);
  }
  c.random = random;
  return c;
}

std::string describe(const Case& c) {
  std::string text = c.element + " " + c.plan.format + " " + std::to_string(c.plan.width) + "x" +
                     std::to_string(c.plan.height) + ", " + std::to_string(c.plan.frames) + " frames";
  if (c.kind == Case::Kind::layouts) return text + ", the same in two layouts";
  if (c.plan.device) text += ", CUDA memory";
  if (c.plan.hostile_frames) text += ", hostile frames";
  if (c.plan.hostile_caps) text += ", hostile caps";
  if (c.plan.disturbed) text += ", events";
  if (c.changed_meanwhile) text += ", properties change";
  if (c.pads_come_and_go) text += ", pads come and go";
  return text;
}

void run_case(const Case& c) { (c.kind == Case::Kind::layouts ? run_layouts : run_stream)(c); }

}  // namespace cudavision::fuzz
