// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests InFlight and the poller without a GPU. This file replaces the CUDA functions that they call; an event completes
// at a time that the test sets.
#include "gst/base/cuda/in_flight.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "gst/base/log.hpp"
#include "tests/elements/expect.hpp"

GST_DEBUG_CATEGORY(cudavision_debug);

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct FakeEvent {
  std::atomic<Clock::time_point> due{Clock::time_point()};
};
std::atomic<int> events{0}, buffers{0};

FakeEvent* fake(cudaEvent_t event) { return reinterpret_cast<FakeEvent*>(event); }

using cudavision::test::expect;

/// The time from record() to the completion of the next event of this thread.
thread_local std::chrono::microseconds work{0};
/// The event that this thread recorded last.
thread_local FakeEvent* recorded = nullptr;
/// The number of threads that wait in cudaEventSynchronize().
std::atomic<int> waiting{0};

}  // namespace

extern "C" {
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent);
  ++events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete fake(event);
  --events;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  recorded = fake(event);
  recorded->due = Clock::now() + work;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Clock::now() >= fake(event)->due.load() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++waiting;
  while (Clock::now() < fake(event)->due.load()) std::this_thread::sleep_for(50us);
  --waiting;
  return cudaSuccess;
}
gboolean gst_cuda_context_push(GstCudaContext*) { return TRUE; }
gboolean gst_cuda_context_pop(CUcontext*) { return TRUE; }
}

namespace {

using cudavision::InFlight;
const auto stream = reinterpret_cast<CUstream>(1);

void add(InFlight& frames, int count) {
  for (int i = 0; i < count; ++i) {
    GstBuffer* buffer = gst_buffer_new();
    ++buffers;
    gst_mini_object_weak_ref(
        GST_MINI_OBJECT(buffer), [](gpointer, GstMiniObject*) { --buffers; }, nullptr);
    frames.add(buffer);
    gst_buffer_unref(buffer);
  }
}

bool wait_for_buffers(int left) {
  for (const auto late = Clock::now() + 10s; buffers != left && Clock::now() < late;) std::this_thread::sleep_for(1ms);
  return buffers == left;
}

void drops_buffers_when_their_work_is_done(GstCudaContext* context) {
  InFlight frames(context);
  work = 1h;
  add(frames, 2);
  const auto first = frames.submitted(stream, true);
  FakeEvent* const event = recorded;
  expect(first && frames.query(*first) == cudaErrorNotReady, "work that has just begun is not done");
  add(frames, 3);
  const auto second = frames.submitted(stream, true);
  expect(buffers == 5, "buffers are kept while the GPU may read them");
  event->due = Clock::now();
  expect(frames.wait(*first) == cudaSuccess && frames.query(*first) == cudaSuccess,
         "wait() waits for the work of its ticket");
  expect(wait_for_buffers(3), "the poller drops buffers if no frame follows");
  expect(second && frames.query(*second) == cudaErrorNotReady, "later work is not done with it");
  frames.finished(cudaSuccess);
  expect(buffers == 0, "finished() drops all buffers");
  expect(frames.query(*second) == cudaSuccess, "after finished() all work is done");
  const auto third = frames.submitted(stream, true);
  frames.finished(cudaErrorLaunchFailure);
  expect(third && frames.query(*third) == cudaErrorLaunchFailure, "failed work is not done");
}

void waits_if_many_frames_are_in_flight(GstCudaContext* context) {
  InFlight frames(context);
  work = 100ms;
  for (int i = 0; i < 20; ++i) {
    add(frames, 1);
    frames.submitted(stream, false);
  }
  expect(buffers <= 16, "at most 16 frames are in flight");
}

/// The buffer of a frame is writable after wait() and after finished(), even if the poller drops the references at the
/// same time.
void leaves_buffers_writable(GstCudaContext* context) {
  InFlight frames(context);
  work = 500us;
  for (int round = 0; round < 40; ++round) {
    GstBuffer *slow = gst_buffer_new(), *mine = gst_buffer_new();
    gst_mini_object_weak_ref(
        GST_MINI_OBJECT(slow), [](gpointer, GstMiniObject*) { std::this_thread::sleep_for(2ms); }, nullptr);
    frames.add(slow);
    frames.add(mine);
    gst_buffer_unref(slow);
    const auto ticket = frames.submitted(stream, true);
    std::this_thread::sleep_for(1ms + round * 50us);
    if (round % 2)
      frames.finished(cudaSuccess);
    else
      expect(frames.wait(*ticket) == cudaSuccess, "wait() succeeds");
    expect(gst_buffer_is_writable(mine), "no reference is left");
    gst_buffer_unref(mine);
  }
}

/// While one element waits for the GPU, the poller still drops the buffers of others, because their pools may wait for
/// them.
void does_not_hold_up_others_while_it_waits(GstCudaContext* context) {
  for (bool many : {false, true}) {
    std::atomic<FakeEvent*> first{nullptr};
    std::thread slow([&] {
      InFlight frames(context);
      work = 1h;
      add(frames, 1);
      const auto ticket = frames.submitted(stream, true);
      FakeEvent* const event = recorded;
      work = 0us;
      for (int i = 0; many && i < 15; ++i) {
        add(frames, 1);
        frames.submitted(stream, false);
      }
      first = event;
      if (many) {
        add(frames, 1);
        frames.submitted(stream, false);  // one too many: waits for the first
      } else {
        expect(frames.wait(*ticket) == cudaSuccess, "wait() succeeds");
      }
    });
    while (!first || waiting == 0) std::this_thread::sleep_for(1ms);
    const int others = buffers;
    InFlight frames(context);
    work = 100us;
    add(frames, 3);
    frames.submitted(stream, false);
    expect(wait_for_buffers(others), many ? "buffers are dropped while another object has too many frames in flight"
                                          : "buffers are dropped while another object waits for its work");
    first.load()->due = Clock::now();
    slow.join();
  }
}

/// Objects follow one another, so the poller ends and starts again.
void begins_and_ends(GstCudaContext* context) {
  work = std::chrono::microseconds(100);
  for (int i = 0; i < 500; ++i) {
    InFlight frames(context);
    if (i % 2) continue;
    add(frames, 1);
    frames.submitted(stream, false);
  }
}

void works_in_many_threads(GstCudaContext* context) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 6; ++seed)
    threads.emplace_back([=] {
      std::mt19937 random(seed);
      for (int round = 0; round < 60; ++round) {
        InFlight frames(context);
        std::optional<std::uint64_t> ticket;
        for (unsigned n = random() % 40; n > 0; --n) {
          work = std::chrono::microseconds(random() % 4 ? random() % 300 : random() % 3000);
          add(frames, int(random() % 3));
          ticket = frames.submitted(stream, true);
          if (random() % 8 == 0) expect(frames.wait(*ticket) == cudaSuccess, "wait() succeeds");
          if (random() % 16 == 0) frames.finished(cudaSuccess);
          if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  gst_init(nullptr, nullptr);
  GST_DEBUG_CATEGORY_INIT(cudavision_debug, "cudavision", 0, "");
  auto* context = static_cast<GstCudaContext*>(static_cast<gpointer>(gst_object_ref_sink(gst_bin_new(nullptr))));
  for (const auto test :
       {drops_buffers_when_their_work_is_done, waits_if_many_frames_are_in_flight, leaves_buffers_writable,
        does_not_hold_up_others_while_it_waits, begins_and_ends, works_in_many_threads}) {
    test(context);
    expect(buffers == 0 && events == 0, "nothing is left");
  }
  gst_object_unref(context);
  return cudavision::test::exit_status();
}
