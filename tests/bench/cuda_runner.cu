// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "tests/bench/runner.hpp"

namespace cudavision::bench {
namespace {

constexpr std::size_t pool_bytes = 288u << 20;     // several times the 60 MB of L2; fits two RGBA pictures of 8K
constexpr std::size_t motion_bytes = 1200u << 20;  // nine pictures of Data::motion: each is a small part of the mean
constexpr double sample_us = 300;                  // minimum duration of a graph's replay, which hides its launch
constexpr int graph_most = 512;                    // most nodes in a graph, unless the ring is longer

__global__ void fill_words(std::uint32_t* words, std::size_t count, std::uint32_t mask, Data data, std::size_t period,
                           int sample_bytes) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * blockDim.x)
    words[i] = word_of(data, i, period, sample_bytes) & mask;
}

__global__ void copy_words(const uint4* src, uint4* dst, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x;
  if (i < count) dst[i] = src[i];
}

Status check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // clears the error for the next row; has no effect if the context is lost
  return Status::resource(std::string(what) + ": " + cudaGetErrorString(error));
}

#define RETURN_IF_ERROR(expression) \
  if (Status status_ = (expression); !status_.ok()) return status_

struct GraphDelete {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using Graph = std::unique_ptr<CUgraphExec_st, GraphDelete>;

class CudaRunner : public Runner {
 public:
  ~CudaRunner() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    if (stream_) cudaStreamDestroy(stream_);
    for (void* memory : {static_cast<void*>(src_), static_cast<void*>(dst_), static_cast<void*>(values_)})
      cudaFree(memory);
  }

  Status open() {
    RETURN_IF_ERROR(check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"));
    RETURN_IF_ERROR(check(cudaMalloc(&src_, motion_bytes), "cudaMalloc"));
    RETURN_IF_ERROR(check(cudaMalloc(&dst_, motion_bytes), "cudaMalloc"));
    RETURN_IF_ERROR(check(cudaMalloc(&values_, values_most * sizeof(float)), "cudaMalloc"));
    events_.resize(budget().most + 1);
    for (cudaEvent_t& event : events_) RETURN_IF_ERROR(check(cudaEventCreate(&event), "cudaEventCreate"));
    return {};
  }

  Status prepare(const Geometry& geometry, Data data, std::size_t dst_bytes) override {
    const FormatInfo& format = info(geometry.format);
    const std::uint32_t bits = format.depth > 8 ? std::uint32_t(format.max_value()) << format.shift : 0xffffu;
    const std::size_t bytes = data == Data::motion ? motion_bytes : pool_bytes;
    RETURN_IF_ERROR(lay_out(geometry, src_, dst_, bytes, dst_bytes));
    fill_words<<<4096, 256, 0, stream_>>>(reinterpret_cast<std::uint32_t*>(src_), bytes / 4, bits << 16 | bits, data,
                                          picture_bytes_ / 4, format.sample_bytes());
    return check(cudaGetLastError(), "filling the pictures");
  }

  Result<Timing> time(const Work& work, int ring, const Budget& budget) override {
    int next = 0;  // the slot in the ring; continues from warm-up to the samples
    const auto submit = [&](int count) -> Status {
      for (int i = 0; i < count; ++i, next = (next + 1) % ring) RETURN_IF_ERROR(work(next, Queue{stream_}));
      return {};
    };
    RETURN_IF_ERROR(submit(2));
    RETURN_IF_ERROR(check(cudaStreamSynchronize(stream_), "warming up"));
    auto rough = intervals(1, [&] { return submit(3); });
    if (!rough.ok()) return rough.error();
    const double estimate = std::max(rough.value()[0] / 3, 1.0);

    Timing timing;
    Graph graph;
    if (estimate < sample_us) {
      timing.per_sample = ring * int(std::ceil(sample_us / (ring * estimate)));
      while (timing.per_sample > std::max(ring, graph_most)) timing.per_sample -= ring;
      next = 0;
      graph = capture([&] { return submit(timing.per_sample); });
      timing.graph = graph != nullptr;
    }
    const auto sample = [&] {
      return graph ? check(cudaGraphLaunch(graph.get(), stream_), "cudaGraphLaunch") : submit(timing.per_sample);
    };
    if (graph) RETURN_IF_ERROR(sample());
    const double wanted = budget.us / (estimate * timing.per_sample);
    timing.samples = int(std::clamp(wanted, double(budget.least), double(budget.most)));
    auto times = intervals(timing.samples, sample);
    if (!times.ok()) return times.error();
    timing.us = median(times.value()) / timing.per_sample;
    return timing;
  }

  Result<Timing> copy(std::size_t bytes) override {
    return flat(bytes, [this, bytes](std::size_t at) {
      return check(cudaMemcpyAsync(dst_ + at, src_ + at, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
    });
  }

  Result<Timing> copy_kernel(std::size_t bytes) override {
    const std::size_t words = bytes / sizeof(uint4);
    return flat(bytes, [this, words](std::size_t at) {
      copy_words<<<unsigned((words + 255) / 256), 256, 0, stream_>>>(reinterpret_cast<const uint4*>(src_ + at),
                                                                     reinterpret_cast<uint4*>(dst_ + at), words);
      return check(cudaGetLastError(), "the copy kernel");
    });
  }

  const float* upload(const std::vector<float>& values) override {
    if (values.size() > values_most) return nullptr;
    // Use the runner's stream, because queued work may still read the old values.
    const bool done = cudaMemcpyAsync(values_, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice,
                                      stream_) == cudaSuccess &&
                      cudaStreamSynchronize(stream_) == cudaSuccess;
    return done ? values_ : nullptr;
  }

  Budget budget() const override { return {100, 100, 0}; }

  std::string device() const override {
    cudaDeviceProp properties;
    int id = 0, driver = 0;
    if (cudaGetDevice(&id) != cudaSuccess || cudaGetDeviceProperties(&properties, id) != cudaSuccess ||
        cudaDriverGetVersion(&driver) != cudaSuccess)
      return "unknown";
    return std::string(properties.name) + ", CUDA " + std::to_string(driver / 1000) + "." +
           std::to_string(driver % 1000 / 10);
  }

 private:
  static constexpr std::size_t values_most = 64 * 64;

  /// Runs `count` samples one after another. Returns the device time of each in µs.
  template <typename Sample>
  Result<std::vector<double>> intervals(int count, Sample sample) {
    RETURN_IF_ERROR(check(cudaEventRecord(events_[0], stream_), "cudaEventRecord"));
    for (int i = 0; i < count; ++i) {
      RETURN_IF_ERROR(sample());
      RETURN_IF_ERROR(check(cudaEventRecord(events_[i + 1], stream_), "cudaEventRecord"));
    }
    RETURN_IF_ERROR(check(cudaStreamSynchronize(stream_), "running"));
    std::vector<double> times(count);
    for (int i = 0; i < count; ++i) {
      float ms = 0;
      RETURN_IF_ERROR(check(cudaEventElapsedTime(&ms, events_[i], events_[i + 1]), "cudaEventElapsedTime"));
      times[i] = ms * 1e3;
    }
    return times;
  }

  /// Captures the submits as a graph. Returns null if a peer waits or allocates, which makes this impossible.
  template <typename Submits>
  Graph capture(Submits submits) {
    if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return nullptr;
    const bool submitted = submits().ok();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    if (cudaStreamEndCapture(stream_, &graph) != cudaSuccess || !submitted ||
        cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess)
      exec = nullptr;
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    return Graph(exec);
  }

  /// Times a copy of `bytes`, at the next offset in the pools each time.
  template <typename Copy>
  Result<Timing> flat(std::size_t bytes, Copy copy) {
    const std::size_t stride = (bytes + 511) & ~std::size_t(511);
    if (stride > pool_bytes) return Status::settings("the copy is larger than the pool");
    return time([&](int i, Queue) { return copy(i * stride); }, int(pool_bytes / stride), budget());
  }

  cudaStream_t stream_ = nullptr;
  std::byte *src_ = nullptr, *dst_ = nullptr;
  float* values_ = nullptr;
  std::vector<cudaEvent_t> events_;
};

}  // namespace

Result<std::unique_ptr<Runner>> make_cuda_runner() {
  auto runner = std::make_unique<CudaRunner>();
  RETURN_IF_ERROR(runner->open());
  return std::unique_ptr<Runner>(std::move(runner));
}

}  // namespace cudavision::bench
