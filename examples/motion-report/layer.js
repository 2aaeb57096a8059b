// SPDX-License-Identifier: LGPL-2.1-or-later
// Draws the mask, the heat map, tracks, boxes with numbers, and the histogram over the clip. Coordinates are pixels of
// the clip.
"use strict";

const colourOf = (id) => `hsl(${(id * 137.508) % 360} 75% 58%)`;

/** The box of an object at a time, interpolated between two places; null if the object was not visible then. */
const boxAt = (track, time, last) => {
  const i = last(track.map((place) => place[0]), time), a = track[i], b = track[i + 1];
  const linked = a && b && b[0] - a[0] <= 1.5;
  if (!a || (!linked && time > a[0] + .2)) return null;
  const share = linked ? (time - a[0]) / (b[0] - a[0]) : 0;
  return [1, 2, 3, 4].map((k) => a[k] + (linked ? share * (b[k] - a[k]) : 0));
};

/** The path of the feet of an object. Boxes move by whole cells, so the path is averaged over nine places. */
const pathOf = (track) => track.map((_, i) => {
  const near = track.slice(Math.max(0, i - 4), i + 5);
  const mean = (value) => near.reduce((sum, place) => sum + value(place), 0) / near.length;
  return [mean(([, x, , w]) => x + w / 2), mean(([, , y, , h]) => y + h)];
});

/** `size`: of the clip. `shows(name)`: whether a layer is switched on. `heat`: [width, height, base64] or null. */
const makeLayer = (canvas, size, recording, shows, heat) => {
  const [width, height] = size, pen = canvas.getContext("2d");
  const small = document.createElement("canvas");
  let chosen = null, chosenPath = [];

  /** Draws cells in one colour over the whole clip; `strength` gives the opacity (0 to 255) of a cell. */
  const cells = (columns, rows, [red, green, blue], strength, smooth) => {
    small.width = columns;
    small.height = rows;
    const picture = small.getContext("2d").createImageData(columns, rows);
    for (let i = 0; i < columns * rows; ++i) picture.data.set([red, green, blue, strength(i)], 4 * i);
    small.getContext("2d").putImageData(picture, 0, 0);
    pen.imageSmoothingEnabled = smooth;
    pen.drawImage(small, 0, 0, width, height);
  };

  const warmth = heat && Uint8Array.from(atob(heat[2]), (c) => c.charCodeAt(0));
  const drawHeat = () => {
    if (warmth) cells(heat[0], heat[1], [255, 96, 0], (i) => warmth[i] && 40 + warmth[i] * .7, true);
  };

  const drawTint = (time) => {
    const mask = recording.mask(time);
    const opacity = (i) => mask.value[i >> 3] & (128 >> (i & 7)) ? 110 : 0;
    if (mask) cells(mask.width, mask.height, [255, 40, 30], opacity, false);
  };

  const stroke = (path, colour, thick) => {
    if (path.length < 2) return;
    pen.beginPath();
    for (const [x, y] of path) pen.lineTo(x, y);
    pen.lineWidth = thick;
    pen.strokeStyle = colour;
    pen.stroke();
  };

  const drawBox = (id, [x, y, w, h], unit) => {
    pen.strokeStyle = colourOf(id);
    pen.lineWidth = (id === chosen ? 4 : 2) * unit;
    pen.strokeRect(x, y, w, h);
    const text = String(id), high = 18 * unit;
    pen.font = `700 ${14 * unit}px system-ui, "DejaVu Sans", sans-serif`;
    const wide = pen.measureText(text).width + 8 * unit;
    const left = Math.min(Math.max(x, 0), width - wide), top = Math.min(Math.max(y - high, 0), height - high);
    pen.fillStyle = colourOf(id);
    pen.fillRect(left, top, wide, high);
    pen.fillStyle = "#fff";
    pen.strokeStyle = "#000b";
    pen.lineWidth = 3 * unit;
    pen.strokeText(text, left + 4 * unit, top + high - 4.5 * unit);
    pen.fillText(text, left + 4 * unit, top + high - 4.5 * unit);
  };

  const drawHistogram = (time) => {
    const bars = recording.histogram(time)?.value;
    if (!bars) return;
    const edge = Math.min(width, height) / 40, wide = width / 4, high = height / 6;
    pen.fillStyle = "#000a";
    pen.fillRect(edge, edge, wide, high);
    pen.fillStyle = "#fffc";
    bars.forEach((bar, i) => pen.fillRect(edge + i * wide / bars.length, edge + high * (1 - bar / 255),
      wide / bars.length, high * bar / 255));
  };

  const draw = (time) => {
    const wide = canvas.clientWidth || width, unit = width / wide, dense = Math.min(window.devicePixelRatio || 1, 3);
    const [w, h] = [Math.round(wide * dense), Math.round(wide * dense * height / width)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    pen.setTransform(w / width, 0, 0, h / height, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.lineJoin = "round";
    if (shows("heat")) drawHeat();
    if (shows("tint")) drawTint(time);
    const tracks = recording.tracks(time - 10, time + 1.5), boxes = new Map();
    for (const [id, track] of tracks) {
      const box = boxAt(track, time, recording.last);
      if (box) boxes.set(id, box);
    }
    if (shows("tracks")) {
      for (const id of boxes.keys()) {
        if (id !== chosen) stroke(pathOf(tracks.get(id).filter(([when]) => when <= time)), colourOf(id), 2 * unit);
      }
      stroke(chosenPath, colourOf(chosen), 3.5 * unit);
    }
    if (shows("boxes")) for (const [id, box] of boxes) drawBox(id, box, unit);
    if (shows("histogram")) drawHistogram(time);
    canvas.dataset.boxes = shows("boxes") ? [...boxes.keys()].join(" ") : "";
  };

  return {
    draw,
    /** Draws the whole track of this object (null: of none), and calls `done` when the track is loaded. */
    choose: async (object, done) => {
      chosen = object?.id ?? null;
      chosenPath = [];
      if (!object) return;
      const track = await recording.track(object.id, object.entered - 2, object.left + 2);
      if (chosen === object.id) chosenPath = pathOf(track);
      done();
    },
  };
};
