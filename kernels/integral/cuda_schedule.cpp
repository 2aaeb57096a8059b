// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/integral/cuda_schedule.hpp"

#include <algorithm>

namespace cudavision::integral {
namespace {

/// The size of the frame in the unit of cuda_tuning.hpp: tiles of 256 × 64 entries in all its tables.
long count_tiles(const Plan& plan, const std::vector<int>& tables) {
  long tiles = 0;
  for (int i : tables)
    tiles += long(divide_up(plan.tables[i].width, tile_width)) * divide_up(plan.tables[i].height, 64);
  return tiles;
}

/// The fields of a job that do not depend on the frame or on memory.
SumJob make_job(const Plan& plan, int index, int tile_height, int first_tile) {
  const TableInfo& table = plan.tables[index];
  SumJob job{};
  job.zero_line = plan.padded;
  job.width = table.width - job.zero_line;
  job.height = table.height - job.zero_line;
  job.type = table.type;
  // Tight rows whose width is not a multiple of a sector do not all begin with a sector.
  job.overlap = job.zero_line || table.width * table.entry_bytes() % 32 != 0 ? tile_overlap : 0;
  job.tile_step = tile_width - job.overlap;
  job.tiles_x = divide_up(job.width + job.overlap, job.tile_step);
  job.tiles_y = divide_up(table.height, tile_height);
  job.first_tile = first_tile;
  return job;
}

/// Whether the kernel unpacks the samples of a table.
bool unpacks(const Plan& plan, const std::vector<int>& tables) {
  const FormatInfo& format = info(plan.geometry.format);
  return std::any_of(tables.begin(), tables.end(), [&](int i) {
    const TableSource& source = plan.sources[i];
    return source.luma || format.sets[source.set].channels > 1;
  });
}

/// The number of tiles that are summed before the first one is written: at least a row of tiles, because the first
/// written tile waits for it.
int choose_ahead(const KernelParams& params) {
  int ahead = tuning.ahead;
  for (int i = 0; i < params.count; ++i)
    ahead = std::max(ahead, params.jobs[i].tiles_x * (params.jobs_in_turn ? params.count : 1));
  return std::min(ahead, params.tiles);
}

}  // namespace

Schedule make_schedule(const Plan& plan, bool squared) {
  Schedule schedule;
  KernelParams& params = schedule.params;
  for (std::size_t i = 0; i < plan.tables.size(); ++i)
    if (plan.tables[i].squared == squared) schedule.tables.push_back(int(i));
  params.count = int(schedule.tables.size());
  if (params.count == 0) return schedule;
  schedule.sample_bytes = info(plan.geometry.format).sample_bytes();
  schedule.squared = squared;
  schedule.type = plan.tables[schedule.tables[0]].type;

  const long frame = count_tiles(plan, schedule.tables);
  const int sum_bytes = schedule.type == SumType::u32 ? 4 : 8;
  const int most_rows = max_warp_rows(schedule.sample_bytes, squared, sum_bytes);
  const bool one_step = in_one_step(frame, unpacks(plan, schedule.tables), sum_bytes);
  schedule.rows = one_step ? std::min(warp_rows(frame), most_rows) : most_rows;
  params.jobs_in_turn = true;
  for (int i = 0; i < params.count; ++i) {
    SumJob& job = params.jobs[i] = make_job(plan, schedule.tables[i], warps * schedule.rows, params.tiles);
    params.tiles += job.tiles_x * job.tiles_y;
    params.tile_rows += job.tiles_y;
    params.jobs_in_turn =
        params.jobs_in_turn && job.tiles_x == params.jobs[0].tiles_x && job.tiles_y == params.jobs[0].tiles_y;
    schedule.scratch_bytes += scratch_parts(schedule, job).end;
  }
  params.ahead = one_step ? 0 : choose_ahead(params);
  schedule.scratch_bytes += sizeof(unsigned) * (params.tile_rows + 1);
  return schedule;
}

ScratchParts scratch_parts(const Schedule& schedule, const SumJob& job) {
  const std::size_t line = schedule.squared && schedule.sample_bytes == 2 ? 8 : 4;  // bytes of SampleQuad::LineSum
  // Bytes of SampleQuad::ColumnSum.
  const std::size_t column = schedule.squared || schedule.sample_bytes == 2 ? line : 2;
  const std::size_t tiles = std::size_t(job.tiles_x) * job.tiles_y, tile_height = std::size_t(warps) * schedule.rows;
  ScratchParts parts;
  parts.rows = tiles * job.tile_step * column;
  parts.totals = parts.rows + tiles * tile_height * line;
  parts.end = (parts.totals + tiles * line + 15) / 16 * 16;
  return parts;
}

void set_scratch(Schedule& schedule, unsigned char* scratch) {
  KernelParams& params = schedule.params;
  for (int i = 0; i < params.count; ++i) {
    SumJob& job = params.jobs[i];
    const ScratchParts parts = scratch_parts(schedule, job);
    job.columns = scratch;
    job.rows = scratch + parts.rows;
    job.totals = scratch + parts.totals;
    scratch += parts.end;
  }
  params.written = reinterpret_cast<unsigned*>(scratch);
  unsigned* summed = params.written + 1;
  for (int i = 0; i < params.count; ++i) {
    params.jobs[i].summed = summed;
    summed += params.jobs[i].tiles_y;
  }
}

}  // namespace cudavision::integral
