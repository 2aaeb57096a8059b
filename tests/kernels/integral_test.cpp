// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/integral/integral.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <opencv2/imgproc.hpp>
#include <sstream>

#include "kernels/integral/cuda_schedule.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/opencv.hpp"
#include "tests/kernels/reference/integral.hpp"

namespace cudavision::test {
namespace {

using integral::SumType;
using integral::TableChannel;
using integral::TableLayout;

const std::vector<SumType> types = {SumType::automatic, SumType::u32, SumType::u64, SumType::f32, SumType::f64};

std::string describe(const integral::Params& p) {
  std::ostringstream text;
  text << "integral layout=" << (p.layout == TableLayout::padded ? "padded" : "inclusive")
       << " sum_type=" << int(p.sum_type) << " squared=" << p.squared
       << " channel=" << (p.channel == TableChannel::all ? "all" : "luma");
  return text.str();
}

/// One block of memory for the tables of a plan. Bytes around the tables and between rows have a known pattern.
class Tables {
 public:
  /// `offset`: entries before the first entry of each table. `padding`: entries between rows.
  Tables(Backend backend, std::vector<integral::TableInfo> tables, int offset, int padding)
      : infos_(std::move(tables)) {
    std::size_t end = 64;
    for (const integral::TableInfo& table : infos_) {
      const std::size_t entry = std::size_t(table.entry_bytes());
      begins_.push_back((end + 255) / 256 * 256 + offset * entry);
      pitches_.push_back(std::ptrdiff_t((table.width + padding) * entry));
      end = begins_.back() + pitches_.back() * table.height + 64;
    }
    std::vector<std::uint8_t> bytes(end);
    for (std::size_t i = 0; i < end; ++i) bytes[i] = std::uint8_t(i * 37 + 11);
    memory_ = std::make_unique<Bytes>(backend, std::move(bytes));
  }

  std::vector<Plane> planes() const {
    std::vector<Plane> all;
    for (std::size_t i = 0; i < infos_.size(); ++i)
      all.push_back({static_cast<std::uint8_t*>(memory_->data()) + begins_[i], pitches_[i]});
    return all;
  }

  /// Returns an empty string if the tables are as expected and no other byte was written.
  std::string difference(const std::vector<reference::Sums>& expected, bool padded) {
    if (expected.size() != infos_.size())
      return "expected " + std::to_string(expected.size()) + " tables, got " + std::to_string(infos_.size());
    const std::vector<std::uint8_t>& bytes = memory_->read();
    std::vector<bool> ours(bytes.size());
    for (std::size_t i = 0; i < infos_.size(); ++i) {
      const integral::TableInfo& table = infos_[i];
      if (table.width != expected[i].width + padded || table.height != expected[i].height + padded)
        return "table of a wrong size";
      for (const auto& [x, y] : positions(table)) {
        const std::size_t at = begins_[i] + y * pitches_[i] + std::size_t(x) * table.entry_bytes();
        for (int b = 0; b < table.entry_bytes(); ++b) ours[at + b] = true;
        const std::uint64_t want = expected[i].at(x + !padded, y + !padded);
        std::string got = wrong(table.type, &bytes[at], want);
        if (!got.empty())
          return "table " + std::to_string(i) + ", entry (" + std::to_string(x) + ", " + std::to_string(y) + ") of " +
                 std::to_string(table.width) + "x" + std::to_string(table.height) + ": expected " +
                 std::to_string(want) + ", got " + got;
      }
    }
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (!ours[i] && bytes[i] != std::uint8_t(i * 37 + 11))
        return "byte " + std::to_string(i) + " outside the tables was written";
    return {};
  }

 private:
  template <typename T>
  static T value(const std::uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static std::string wrong(SumType type, const std::uint8_t* at, std::uint64_t want) {
    switch (type) {
      case SumType::u32:
        return value<std::uint32_t>(at) == std::uint32_t(want) ? "" : std::to_string(value<std::uint32_t>(at));
      case SumType::u64:
        return value<std::uint64_t>(at) == want ? "" : std::to_string(value<std::uint64_t>(at));
      case SumType::f32:
        return std::abs(double(value<float>(at)) - double(want)) <= std::ldexp(double(want), -20)
                   ? ""
                   : std::to_string(value<float>(at));
      case SumType::f64:
        return std::abs(value<double>(at) - double(want)) <= std::ldexp(double(want), -48)
                   ? ""
                   : std::to_string(value<double>(at));
      default:
        return "an automatic type";
    }
  }

  std::vector<integral::TableInfo> infos_;
  std::vector<std::size_t> begins_;
  std::vector<std::ptrdiff_t> pitches_;
  std::unique_ptr<Bytes> memory_;
};

/// Returns an empty string if the plan computes the tables of the reference.
std::string check(Backend backend, const integral::Params& params, const Picture& src, int offset = 0,
                  int padding = 0) {
  auto plan = integral::make(params, src.geometry(), backend);
  if (!plan.ok()) return "no plan: " + plan.error().message();
  Bytes picture(backend, src.bytes());
  Tables tables(backend, plan.value()->tables(), offset, padding);
  const Status status = plan.value()->submit(src.at(picture.data()), tables.planes(), Queue{});
  if (!status.ok()) return "submit failed: " + status.message();
  std::string wrong = tables.difference(reference::tables(params, src), params.layout == TableLayout::padded);
  if (picture.read() != src.bytes()) wrong += " the source was written to";
  return wrong;
}

class IntegralSweep : public OnBackendWithFormat {};

/// Every format with every size, layout and type, at any alignment.
TEST_P(IntegralSweep, EqualsReference) {
  Random random(unsigned(format) + 300);
  std::vector<std::pair<int, int>> all = sizes;
  for (const auto& size : {std::pair{255, 65}, {256, 64}, {257, 129}, {1023, 300}, {700, 641}}) all.push_back(size);
  for (int i = 0; i < rounds() * int(all.size()); ++i) {
    const integral::Params params{random.below(2) ? TableLayout::padded : TableLayout::inclusive,
                                  types[(i + i / int(all.size()) + int(format)) % types.size()], random.below(2) == 1,
                                  random.below(2) ? TableChannel::all : TableChannel::luma};
    const Case c = random_case(random, format, all[i % all.size()]);
    const int offset = random.below(3) ? 0 : random.below(5), padding = random.below(3) ? 0 : random.below(9);
    const Picture src = make_picture(c.geometry, unsigned(i), c.data, c.src);
    ASSERT_EQ(check(backend, params, src, offset, padding), "")
        << test::describe(c.geometry, c.src, {}, {}, c.data) << "\n"
        << describe(params) << " offset " << offset << " padding " << padding;
  }
}

INSTANTIATE_FOR_FORMATS(IntegralSweep, all_formats());

class IntegralPlans : public OnBackend {};

/// White frames of more than 16.8 Mpx: sums wrap in 32 bits, but not in 64.
TEST_P(IntegralPlans, LargeFramesWrapOnlyIn32Bits) {
  const Picture white = make_picture({Format::GRAY8, 4112, 4100}, 0, Data::max);
  ASSERT_GT(4112ll * 4100 * 255, 1ll << 32);
  for (SumType type : types) {
    const integral::Params params{type == SumType::u64 ? TableLayout::padded : TableLayout::inclusive, type,
                                  type == SumType::f64};
    EXPECT_EQ(check(backend, params, white), "") << describe(params);
  }
}

TEST_P(IntegralPlans, EightK) {
  integral::Params params;
  params.sum_type = SumType::u32;
  EXPECT_EQ(check(backend, params, make_picture({Format::GRAY8, 7680, 4320}, 3)), "");
  params.layout = TableLayout::padded;
  EXPECT_EQ(check(backend, params, make_picture({Format::GRAY8, 7680, 4320}, 4)), "");
  EXPECT_EQ(check(backend, params, make_picture({Format::RGBA, 4100, 4320}, 5)), "");
  EXPECT_EQ(check(backend, params, make_picture({Format::BGR, 1024, 700}, 7)), "");
  params.channel = TableChannel::all;
  EXPECT_EQ(check(backend, params, make_picture({Format::RGB, 3000, 2500}, 6)), "");
  params.sum_type = SumType::automatic;
  EXPECT_EQ(check(backend, params, make_picture({Format::P010_10LE, 3841, 2161}, 3)), "");
}

TEST_P(IntegralPlans, LongestSides) {
  const integral::Params params{TableLayout::padded, SumType::automatic, true, TableChannel::all};
  for (const Geometry& geometry : longest_frames)
    EXPECT_EQ(check(backend, params, make_picture(geometry, 1, Data::max)), "") << info(geometry.format).name;
}

TEST(IntegralReference, EqualsOpenCV) {
  const Picture src = make_picture({Format::GRAY8, 641, 363}, 9);
  cv::Mat sums, squares;
  cv::integral(mat_of(src), sums, squares, CV_64F, CV_64F);
  const Grid grid = src.read(src.format().components[0]);
  const reference::Sums our_sums(grid, false), our_squares(grid, true);
  for (const auto& [x, y] : positions(642, 364)) {
    ASSERT_EQ(double(our_sums.at(x, y)), sums.at<double>(y, x));
    ASSERT_EQ(double(our_squares.at(x, y)), squares.at<double>(y, x));
  }
}

/// Submits two pictures alternately to one plan. Checks every `every`-th frame and the last one.
void serve_frames(Backend backend, const Geometry& geometry, SumType type, int frames, int every) {
  const integral::Params params{TableLayout::inclusive, type};
  auto plan = integral::make(params, geometry, backend);
  ASSERT_TRUE(plan.ok());
  const Picture one = make_picture(geometry, 1), other = make_picture(geometry, 2, Data::max);
  Bytes first(backend, one.bytes()), second(backend, other.bytes());
  Tables tables(backend, plan.value()->tables(), 0, 0);
  for (int i = 0; i < frames; ++i) {
    ASSERT_TRUE(plan.value()->submit(i % 2 ? one.at(first.data()) : other.at(second.data()), tables.planes(), {}).ok());
    if (i % every != 0 && i != frames - 1) continue;
    ASSERT_EQ(tables.difference(reference::tables(params, i % 2 ? one : other), false), "") << "frame " << i;
  }
}

/// Tiles share sums and counters in memory that a plan keeps between frames.
TEST_P(IntegralPlans, ServeManyFrames) {
  serve_frames(backend, {Format::GRAY8, 1100, 200}, SumType::u64, backend == Backend::cuda ? 40000 : 200, 4001);
}

/// A frame so large that each block either sums a tile or writes one.
TEST_P(IntegralPlans, ServeLargeFrames) { serve_frames(backend, {Format::GRAY8, 5200, 4000}, SumType::u32, 3, 1); }

/// Several plans run at once, each on its own thread and stream.
TEST_P(IntegralPlans, DoNotDisturbEachOther) {
  in_threads(4, [&](int t) {
    const Format formats[] = {Format::GRAY8, Format::RGBA, Format::NV12, Format::P010_10LE};
    const Picture src = make_picture({formats[t], 1920 - t, 1080 + t}, unsigned(t));
    const integral::Params params{TableLayout::inclusive, SumType::automatic, t % 2 == 1, TableChannel::all};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(check(backend, params, src), "") << t;
  });
}

TEST_P(IntegralPlans, RefuseAWrongNumberOfTables) {
  auto plan = integral::make({}, {Format::NV12, 64, 48}, backend);
  ASSERT_TRUE(plan.ok());
  const Status status = plan.value()->submit({{Format::NV12, 64, 48}, {}}, {}, {});
  EXPECT_EQ(status.code(), Status::Code::settings) << status.message();
}
INSTANTIATE_FOR_BACKENDS(IntegralPlans);

/// Tests the CUDA schedule of a plan. No GPU is needed.
class IntegralSchedule : public testing::Test {
 protected:
  template <typename Check>
  static void for_schedules(Check check) {
    std::vector<std::pair<int, int>> all = sizes;
    for (const auto& size :
         {std::pair{255, 65}, {256, 64}, {257, 129}, {1920, 1080}, {3840, 2160}, {7680, 4320}, {16384, 3}, {3, 16384}})
      all.push_back(size);
    for (Format format : all_formats())
      for (const auto& [width, height] : all)
        for (int i = 0; i < 12; ++i) {
          const SumType type = std::array{SumType::u32, SumType::u64, SumType::f32}[i / 4];
          const auto sources =
              integral::table_sources(info(format), i % 2 ? TableChannel::all : TableChannel::luma, true);
          const integral::Plan plan =
              integral::resolve_tables({format, width, height}, i / 2 % 2, sources, type, true, SumType::u64);
          for (bool squared : {false, true}) {
            SCOPED_TRACE(testing::Message()
                         << info(format).name << " " << width << "x" << height << " case " << i << squared);
            check(plan, integral::make_schedule(plan, squared));
            if (testing::Test::HasFatalFailure()) return;
          }
        }
  }
};

/// The tiles of a job cover its table, and every table has a job.
TEST_F(IntegralSchedule, TilesCoverTheTables) {
  for_schedules([](const integral::Plan& plan, const integral::Schedule& schedule) {
    const integral::KernelParams& p = schedule.params;
    ASSERT_EQ(std::size_t(p.count) * 2, plan.tables.size());
    ASSERT_LE(p.count, integral::max_jobs);
    int tiles = 0;
    for (int i = 0; i < p.count; ++i) {
      const integral::SumJob& job = p.jobs[i];
      const integral::TableInfo& table = plan.tables[schedule.tables[i]];
      ASSERT_EQ(table.squared, schedule.squared);
      ASSERT_EQ(job.width + job.zero_line, table.width);
      ASSERT_EQ(job.height + job.zero_line, table.height);
      // A tile stores `tile_step` entries. Rows may begin up to `overlap` − 1 entries before a sector.
      ASSERT_EQ(job.tile_step + job.overlap, integral::tile_width);
      ASSERT_TRUE(just_cover(job.tiles_x, job.tile_step, job.width + job.overlap));
      ASSERT_EQ(job.overlap == 0, !plan.padded && table.width * table.entry_bytes() % 32 == 0);
      ASSERT_TRUE(just_cover(job.tiles_y, integral::warps * schedule.rows, table.height));
      ASSERT_EQ(job.first_tile, tiles);
      tiles += job.tiles_x * job.tiles_y;
    }
    ASSERT_EQ(p.tiles, tiles);
  });
}

/// Every tile is summed once and written once. A block needs only its own sums and sums of earlier blocks.
TEST_F(IntegralSchedule, BlocksTakeEveryTileOnceAndWaitForEarlierBlocks) {
  for_schedules([](const integral::Plan&, const integral::Schedule& schedule) {
    const integral::KernelParams& p = schedule.params;
    std::vector<int> summed(p.count), written(p.count);  // the tiles of each job, row by row
    for (int block = 0; block < p.blocks(); ++block) {
      const integral::Turn turn = integral::turn_of(p, block);
      ASSERT_TRUE(turn.sums || turn.writes);
      ASSERT_GE(turn.tile, 0);
      ASSERT_LT(turn.tile, p.tiles);
      const integral::TableTile tile = integral::tile_of(p, turn.tile);
      ASSERT_LT(tile.job, p.count);
      const integral::SumJob& job = p.jobs[tile.job];
      ASSERT_LT(tile.x, job.tiles_x);
      const int number = tile.y * job.tiles_x + tile.x;
      if (turn.sums) {
        ASSERT_EQ(number, summed[tile.job]++);
      }
      if (turn.writes) {
        ASSERT_EQ(number, written[tile.job]++);
        ASSERT_GE(summed[tile.job], number);
      }
    }
    for (int i = 0; i < p.count; ++i) {
      ASSERT_EQ(summed[i], p.jobs[i].tiles_x * p.jobs[i].tiles_y);
      ASSERT_EQ(written[i], summed[i]);
    }
  });
}

TEST_F(IntegralSchedule, ScratchMemoryIsLargeEnough) {
  for_schedules([](const integral::Plan& plan, const integral::Schedule& made) {
    integral::Schedule schedule = made;
    const integral::KernelParams& p = schedule.params;
    auto* const scratch = reinterpret_cast<unsigned char*>(std::uintptr_t(1) << 40);
    integral::set_scratch(schedule, scratch);
    std::vector<std::pair<const unsigned char*, std::size_t>> parts;
    const auto add = [&](const void* at, std::size_t bytes, std::size_t alignment) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0u);
      parts.emplace_back(static_cast<const unsigned char*>(at), bytes);
    };
    const int sample_bytes = info(plan.geometry.format).sample_bytes();
    const std::size_t line = schedule.squared && sample_bytes == 2 ? 8 : 4;
    const std::size_t column = schedule.squared || sample_bytes == 2 ? line : 2;
    for (int i = 0; i < p.count; ++i) {
      const integral::SumJob& job = p.jobs[i];
      const std::size_t tiles = std::size_t(job.tiles_x) * job.tiles_y;
      add(job.columns, tiles * job.tile_step * column, 16);
      add(job.rows, tiles * integral::warps * schedule.rows * line, 16);
      add(job.totals, tiles * line, line);
    }
    add(p.written, std::size_t(p.tile_rows + 1) * 4, 4);
    std::sort(parts.begin(), parts.end());
    const unsigned char* end = scratch;
    for (const auto& [at, bytes] : parts) {
      ASSERT_GE(at, end);
      end = at + bytes;
    }
    ASSERT_LE(end, scratch + schedule.scratch_bytes);
  });
}

/// Kernels exist for powers of two, up to a limit that the samples and sums set.
TEST_F(IntegralSchedule, RowsOfAWarpRespectTheLimits) {
  for_schedules([](const integral::Plan& plan, const integral::Schedule& schedule) {
    const int sum_bytes = schedule.type == SumType::u32 ? 4 : 8,
              sample_bytes = info(plan.geometry.format).sample_bytes();
    ASSERT_EQ(schedule.rows & (schedule.rows - 1), 0);
    ASSERT_GE(schedule.rows, 1);
    ASSERT_LE(schedule.rows, integral::max_warp_rows(sample_bytes, schedule.squared, sum_bytes));
    // Samples take the largest part of the 48 KiB of shared memory.
    ASSERT_LE(integral::warps * schedule.rows * integral::tile_width * sample_bytes, 32 * 1024);
  });
}

/// In large frames of contiguous samples, blocks either sum a tile or write it. In all other frames they do both.
TEST_F(IntegralSchedule, LargeFramesAreSummedAhead) {
  const auto ahead = [](Format format, int width, int height, SumType type) {
    const auto sources = integral::table_sources(info(format), TableChannel::luma, true);
    return integral::make_schedule(integral::resolve_tables({format, width, height}, false, sources, type, false, type),
                                   false)
        .params.ahead;
  };
  EXPECT_EQ(ahead(Format::GRAY8, 1920, 1080, SumType::u32), 0);
  EXPECT_EQ(ahead(Format::GRAY8, 3840, 2160, SumType::u32), 0);
  EXPECT_GT(ahead(Format::GRAY8, 3840, 2160, SumType::u64), 0);
  EXPECT_GT(ahead(Format::GRAY8, 7680, 4320, SumType::u32), 0);
  EXPECT_EQ(ahead(Format::RGBA, 7680, 4320, SumType::u32), 0);
}

TEST_F(IntegralSchedule, PlansWithoutSquaresHaveNoJobsForThem) {
  const auto sources = integral::table_sources(info(Format::NV12), TableChannel::all, true);
  const auto plan = integral::resolve_tables({Format::NV12, 64, 48}, false, sources, SumType::u32, false, SumType::u64);
  EXPECT_TRUE(integral::make_schedule(plan, true).tables.empty());
  EXPECT_EQ(integral::make_schedule(plan, false).tables.size(), 3u);
}

TEST(IntegralTables, AreDescribed) {
  const integral::Params params{TableLayout::padded, SumType::automatic, true, TableChannel::all};
  const auto tables = integral::describe_tables(params, {Format::NV12, 33, 17});
  ASSERT_EQ(tables.size(), 6u);
  EXPECT_EQ(tables[0].role, Role::luma);
  EXPECT_EQ(tables[0].width, 34);
  EXPECT_EQ(tables[1].role, Role::cb);
  EXPECT_EQ(tables[2].width, 18);
  EXPECT_EQ(tables[2].height, 10);
  EXPECT_TRUE(tables[3].squared);
  EXPECT_EQ(tables[3].type, SumType::u64);
  EXPECT_EQ(integral::describe_tables(params, {Format::RGBx, 3, 3}).size(), 6u);
  EXPECT_EQ(integral::describe_tables(params, {Format::RGBA, 3, 3}).size(), 8u);
}

TEST(IntegralTables, AutomaticTypeHoldsTheFrame) {
  const auto type = [](Format format, int width, int height) {
    return integral::describe_tables({}, {format, width, height})[0].type;
  };
  EXPECT_EQ(type(Format::GRAY8, 4105, 4103), SumType::u32);  // the largest sum is 4294854825, below 2^32 − 1
  EXPECT_EQ(type(Format::GRAY8, 4112, 4100), SumType::u64);
  EXPECT_EQ(type(Format::GRAY16_LE, 256, 256), SumType::u32);
  EXPECT_EQ(type(Format::GRAY16_LE, 257, 256), SumType::u64);
  EXPECT_EQ(type(Format::GRAY8, 16384, 16384), SumType::u64);
}

}  // namespace
}  // namespace cudavision::test
