// SPDX-License-Identifier: LGPL-2.1-or-later
// Pads that have the output's samples are laid over each other in place, in those samples, where what comes of it are whole
// numbers. Which way a part of a picture is composed does not show: both make the same bits.
#pragma once

#include "kernels/blend/blend.hpp"

namespace cudavision::detail {

/// Whether a layer can be laid in place; last: it leaves fractions, so only if nothing comes after it.
enum class InPlace : std::uint8_t { no, last, yes };
InPlace find_in_place(const FormatInfo& format, const BlendTarget& target, const BlendLayer& layer);

/// Nothing of a sample is lost, and nothing of what is below is left.
bool copies_samples(const BlendTarget& target, const BlendLayer& layer);

/// Lays a part of what is visible of a layer over what the output holds, or over the samples of `base`.
void lay_in_place(const FormatInfo& format, const BlendTarget& target, const BlendLayer& layer, const BlendLayer* base,
                  const Rect& part);

/// Copies rows of the output from those right above them.
void repeat_rows(const FormatInfo& format, const BlendTarget& target, const Rect& rows);

}  // namespace cudavision::detail
