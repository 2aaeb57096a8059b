// SPDX-License-Identifier: LGPL-2.1-or-later
// The timeline: motion, brightness, events and objects.
"use strict";

const MANY = 800;  // maximum number of marks of a kind; more marks become one shape without tooltips

/** `times(seconds)` returns the text of a time, and `seek(seconds)` goes to this time. */
const makeTimeline = (timeline, data, times, seek) => {
  const length = data.end - data.start;
  let chart = null, head = null, hover = null, width = 1;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const xOf = (time) => (time - data.start) / length * width;

  /** Each object gets the first free lane; the last lane takes the rest. */
  const lanesOf = (objects, most) => {
    const ends = [];
    return objects.map((object) => {
      let lane = ends.findIndex((end) => end < object.entered - length / 500);
      if (lane < 0) lane = Math.min(ends.length, most - 1);
      ends[lane] = Math.max(ends[lane] ?? 0, object.left);
      return lane;
    });
  };

  const pointsOf = (places) => places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

  const drawAxis = (top, bottom) => {
    const steps = [.1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400];
    const step = steps.find((one) => one / length * width >= 64) ?? 28800;
    for (let time = Math.ceil(data.start / step) * step; time <= data.end; time += step) {
      const x = xOf(time), anchor = x < 20 ? "start" : x > width - 20 ? "end" : "middle";
      drawSvg(chart, "line", {class: "grid", x1: x, x2: x, y1: top, y2: bottom});
      const text = step < 1 ? times(time) : times(time).slice(0, -2);
      drawSvg(chart, "text", {x, y: bottom + 14, "text-anchor": anchor}, text);
    }
  };

  /** Draws `shape(one)` (a path, and a tooltip) for each item. */
  const drawAll = (all, name, shape) => {
    if (all.length > MANY) return drawSvg(chart, "path", {class: name, d: all.map((one) => shape(one)[0]).join("")});
    for (const one of all) {
      const [d, tooltip, more] = shape(one);
      drawSvg(chart, "path", {class: name, d, ...more}, undefined, tooltip);
    }
  };
  const bar = (x, y, w, h) => `M${x.toFixed(1)} ${y}h${w.toFixed(1)}v${h}h${(-w).toFixed(1)}z`;

  const drawCurves = (rows) => {
    const frames = data.frames, count = frames.time.length, most = frames.changed.reduce((a, b) => Math.max(a, b), .1);
    const scaled = (value, [top, low], full) => low - value / full * (low - top);
    const endOf = (i) => (i + 1 < count ? frames.time[i + 1] : data.end);
    const steps = (values, row, full) => values.flatMap((value, i) => {
      const y = scaled(value, row, full);
      return [[xOf(frames.time[i]), y], [xOf(endOf(i)), y]];
    });
    const ground = rows.motion[1], motion = steps(frames.changed, rows.motion, most);
    drawSvg(chart, "polygon", {class: "changed", points: pointsOf([[0, ground], ...motion, [width, ground]])});
    const bright = steps(frames.bright, rows.light, 100), dark = steps(frames.dark, rows.light, 100);
    drawSvg(chart, "polygon", {class: "band", points: pointsOf(bright.concat(dark.reverse()))});
    drawSvg(chart, "polyline", {class: "mean", points: pointsOf(steps(frames.mean, rows.light, 100))});
    return most;
  };

  /** Draws unreadable times over all rows. */
  const drawLost = (top, low) => {
    drawAll(data.lost, "lost", ([from, to, frames, about]) => [
      bar(xOf(from), top, Math.max(2, Math.min(width, xOf(to)) - xOf(from)), low - top),
      `${about ? "about " : ""}${frames} frames could not be read, ${times(from)} – ${times(to)}`]);
  };

  /** Draws the times without video between the files of a recording. */
  const drawHoles = (top, low) => {
    drawAll(data.holes, "hole", ([from, to, files]) => [
      bar(xOf(from), top, Math.max(2, Math.min(width, xOf(to)) - xOf(from)), low - top),
      `${files ? `${files} could not be read` : "nothing was recorded"}, ${times(from)} – ${times(to)}`]);
  };

  const drawEvents = ([top, low]) => {
    drawAll(data.runs, "run", ([from, to]) =>
      [bar(xOf(from), top, Math.max(2, xOf(to) - xOf(from)), low - top), `motion ${times(from)} – ${times(to)}`]);
    drawAll(data.lights, "lights", (time) =>
      [`M${xOf(time) - 6} ${low}h12l-6 -13z`, `light or scene changes at ${times(time)}`]);
    drawAll(data.crossings, "crossing", (one) => [`M${xOf(one.time)} ${top}l5 7l-5 7l-5 -7z`,
      `object ${one.id} crosses ${one.line} to the ${one.direction} at ${times(one.time)}`]);
  };

  const draw = () => {
    const lanes = lanesOf(data.objects, 12), laneCount = lanes.reduce((most, lane) => Math.max(most, lane + 1), 0);
    const laneHeight = laneCount > 6 ? 9 : 13;
    width = Math.max(timeline.clientWidth, 50);
    const rows = {motion: [18, 78], light: [98, 146], events: [166, 180], objects: [200, 200 + laneCount * laneHeight]};
    const bottom = laneCount ? rows.objects[1] : rows.events[1];
    timeline.replaceChildren(tip);
    chart = drawSvg(timeline, "svg", {viewBox: `0 0 ${width} ${bottom + 20}`, "aria-hidden": "true"});
    drawAxis(rows.motion[0], bottom + 2);
    const most = drawCurves(rows);
    const name = (text, row) => drawSvg(chart, "text", {class: "name", x: 0, y: row[0] - 5}, text);
    name(`motion: up to ${most.toFixed(1)} % of the picture`, rows.motion);
    name("brightness: mean, and darkest to brightest 1 %", rows.light);
    const signs = [data.lost.length && "▨ frames could not be read", data.holes.length && "▧ there is no video",
      data.lights.length && "▲ light or scene changes", data.crossings.length && "◆ a line is crossed"];
    name(["events: motion", ...signs.filter(Boolean)].join(", "), rows.events);
    drawEvents(rows.events);
    if (laneCount) name("objects", rows.objects);
    const lane = new Map(data.objects.map((object, i) => [object, lanes[i]]));
    drawAll(data.objects, "object", (object) => [
      bar(xOf(object.entered), rows.objects[0] + lane.get(object) * laneHeight,
        Math.max(3, xOf(object.left) - xOf(object.entered)), laneHeight - 2),
      `object ${object.id}: ${times(object.entered)} – ${times(object.left)}`, {fill: colourOf(object.id)}]);
    drawLost(rows.motion[0], bottom);
    drawHoles(rows.motion[0], bottom);
    hover = drawSvg(chart, "line", {class: "hover moving", y1: 0, y2: bottom, visibility: "hidden"});
    head = drawSvg(chart, "line", {class: "head moving", y1: 0, y2: bottom + 4});
  };

  const timeAt = (event) => {
    const box = timeline.getBoundingClientRect();
    return data.start + clamp((event.clientX - box.left) / box.width, 0, 1) * length;
  };
  const showTip = (event) => {
    const time = timeAt(event), x = xOf(time);
    tip.hidden = false;
    tip.textContent = times(time);
    tip.style.left = `${clamp(x - tip.offsetWidth / 2, 0, width - tip.offsetWidth)}px`;
    for (const key of ["x1", "x2"]) hover.setAttribute(key, x);
    hover.setAttribute("visibility", "visible");
  };
  timeline.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    timeline.setPointerCapture(event.pointerId);
    seek(timeAt(event));
  });
  timeline.addEventListener("pointermove", (event) => {
    showTip(event);
    if (timeline.hasPointerCapture(event.pointerId)) seek(timeAt(event));
  });
  timeline.addEventListener("pointerleave", () => {
    tip.hidden = true;
    hover.setAttribute("visibility", "hidden");
  });
  timeline.setAttribute("aria-valuemin", data.start.toFixed(1));
  timeline.setAttribute("aria-valuemax", data.end.toFixed(1));

  return {
    draw,
    show: (time) => {
      const x = clamp(xOf(time), 1, width - 1);
      for (const key of ["x1", "x2"]) head.setAttribute(key, x);
      timeline.setAttribute("aria-valuenow", time.toFixed(1));
      timeline.setAttribute("aria-valuetext", `${times(time)} of ${times(data.end)}`);
    },
    moves: {PageDown: -length / 10, PageUp: length / 10, Home: -Infinity, End: Infinity, ArrowDown: -1, ArrowUp: 1},
  };
};
