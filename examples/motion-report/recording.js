// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads the data of recording.py: one chunk for each minute, inflated when it is shown. Times are stream times in
// seconds.
"use strict";

/** The recording in a base64 text. `index` has [minute, first character, number of characters] of each chunk.
    `loaded` is called when a chunk is loaded. The text contains one of `keep` masks. */
const makeRecording = (text, index, keep, loaded) => {
  const MINUTE = 60, KEPT = 12, BINS = 64;
  const where = new Map(index.map(([minute, first, count]) => [minute, [first, count]]));
  const chunks = new Map();  // minute → the chunk or its promise; the most recently used one is the last

  const inflate = async ([first, count]) => {
    const bytes = Uint8Array.from(atob(text.slice(first, first + count)), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  };

  const parse = (buffer, minute) => {
    const [places, masks, bars, width, height] = new Uint32Array(buffer.slice(0, 20));
    let at = 20;
    const take = (kind, count) => {
      const length = kind.BYTES_PER_ELEMENT * count, taken = new kind(buffer.slice(at, at + length));
      at += length;
      return taken;
    };
    const times = (count) => Float64Array.from(take(Uint16Array, count), (ms) => minute * MINUTE + ms / 1000);
    const ids = take(Uint32Array, places), when = times(places);
    const [x, y, w, h] = [0, 1, 2, 3].map(() => take(Uint16Array, places));
    const tracks = new Map();
    ids.forEach((id, i) => {
      if (!tracks.has(id)) tracks.set(id, []);
      tracks.get(id).push([when[i], x[i], y[i], w[i], h[i]]);
    });
    const maskTimes = times(masks), barTimes = times(bars), size = Math.ceil(width * height / 8);
    return {tracks, maskTimes, barTimes, width, height,
      masks: Array.from(maskTimes, () => take(Uint8Array, size)),
      bars: Array.from(barTimes, () => take(Uint8Array, BINS))};
  };

  const load = (minute) => {
    if (!where.has(minute)) return null;
    const found = chunks.get(minute);
    chunks.delete(minute);
    chunks.set(minute, found ?? inflate(where.get(minute)).then((buffer) => {
      const chunk = parse(buffer, minute);
      if (chunks.has(minute)) chunks.set(minute, chunk);
      loaded();
      return chunk;
    }));
    if (chunks.size > KEPT) chunks.delete(chunks.keys().next().value);
    return chunks.get(minute);
  };

  /** The loaded chunks between two times. Starts loading the others. */
  const between = (from, to) => {
    const found = [];
    for (let minute = Math.max(0, Math.floor(from / MINUTE)); minute <= to / MINUTE; ++minute) {
      const chunk = load(minute);
      if (chunk && !(chunk instanceof Promise)) found.push(chunk);
    }
    return found;
  };

  /** The index of the last of these ascending times that is not after `time`; -1 if there is none. */
  const last = (times, time) => {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time + 1e-4) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };

  const sample = (time, most, times, values) => {
    for (const chunk of between(time - most, time).reverse()) {
      const i = last(chunk[times], time);
      if (i >= 0 && time - chunk[times][i] > most) return null;
      if (i >= 0) return {value: chunk[values][i], width: chunk.width, height: chunk.height};
    }
    return null;
  };

  return {
    /** The places [time, x, y, width, height] of each object between two times, by id. */
    tracks: (from, to) => {
      const joined = new Map();
      for (const chunk of between(from, to)) {
        for (const [id, track] of chunk.tracks) joined.set(id, joined.has(id) ? joined.get(id).concat(track) : track);
      }
      return joined;
    },
    /** The mask to show at a time: {value: bits, width, height}, or null. */
    mask: (time) => sample(time, Math.max(.45, .15 * keep), "maskTimes", "masks"),
    /** The histogram to show at a time: {value: bars of 0 to 255}, or null. */
    histogram: (time) => sample(time, 2.5, "barTimes", "bars"),
    /** All places of one object in the first hour of its stay. Loading them may take a while. */
    track: async (id, from, to) => {
      let found = [];
      const end = Math.min(to, from + 3600) / MINUTE;
      for (let minute = Math.max(0, Math.floor(from / MINUTE)); minute <= end; ++minute) {
        const chunk = await load(minute);
        found = found.concat(chunk?.tracks.get(id) ?? []);
      }
      return found;
    },
    last,
  };
};
