// SPDX-License-Identifier: LGPL-2.1-or-later
// The player, the layer of shapes over the picture, the time line and the table. Times are stream times of the clip in seconds; the
// video begins at data.start. Texts reach the page as text nodes only.
"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const data = JSON.parse(element("data").textContent);
  const video = element("video"), stage = element("stage"), overlay = element("overlay"), timeline = element("timeline");
  const [width, height] = data.size;
  stage.style.setProperty("--ratio", width / height);
  const length = Math.max(data.end - data.start, 1e-3);
  let chosen = null;  // the object whose way is drawn

  const colour = (id) => `hsl(${(id * 137.508) % 360} 70% 55%)`;
  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const clock = (seconds) => {
    const tenths = Math.round(seconds * 10), hours = Math.floor(tenths / 36000), minutes = Math.floor(tenths / 600) % 60;
    const rest = `${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
    return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
  };

  /** Adds an SVG element with these attributes, and with a text or a tooltip. */
  const draw = (parent, name, attributes, text, tooltip) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    if (tooltip) draw(made, "title", {}, tooltip);
    parent.append(made);
    return made;
  };

  // ---- the player ----
  const complain = (text) => {
    element("message").textContent = text;
    element("message").hidden = false;
  };
  video.addEventListener("error", () => complain(data.embedded ? "This browser cannot play the clip (VP9 in WebM)."
    : "The clip cannot be played: it is the file report.webm, which must lie beside this page."));
  if (data.embedded) {
    const bytes = atob(element("webm").textContent.trim());
    const array = new Uint8Array(bytes.length);
    for (let i = 0; i < bytes.length; ++i) array[i] = bytes.charCodeAt(i);
    video.src = URL.createObjectURL(new Blob([array], {type: "video/webm"}));
  }
  const now = () => data.start + video.currentTime;
  const seek = (time) => {
    video.currentTime = clamp(time - data.start, 0, Number.isFinite(video.duration) ? video.duration : length);
    update();
  };

  // ---- the layer over the picture ----
  const shapes = draw(overlay, "g", {}), moving = draw(overlay, "g", {class: "moving"});
  const text_size = () => 15 * width / (stage.clientWidth || width);

  const label_at = (parent, x, y, size, text) =>
    draw(parent, "text", {x, y, "font-size": size, "stroke-width": size / 5, "text-anchor": "middle"}, text);

  const draw_shapes = () => {
    shapes.replaceChildren();
    const size = text_size();
    for (const zone of data.zones) {
      draw(shapes, "polygon", {points: zone.points.join(" ")});
      const [x, y] = [0, 1].map((i) => zone.points.reduce((sum, point) => sum + point[i], 0) / zone.points.length);
      label_at(shapes, x, y, size, zone.name);
    }
    for (const line of data.lines) {
      const [[x1, y1], [x2, y2]] = line.points;
      draw(shapes, "line", {x1, y1, x2, y2});
      // An arrow to the right of somebody who looks from the first point to the second.
      const long = Math.hypot(x2 - x1, y2 - y1) || 1, [dx, dy] = [(x2 - x1) / long, (y2 - y1) / long];
      const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
      const point = (along, aside) => `${x + along * dx * size - aside * dy * size} ${y + along * dy * size + aside * dx * size}`;
      draw(shapes, "path", {d: `M${point(-.5, 0)} L${point(.5, 0)} L${point(0, .9)} Z`});
      label_at(shapes, x, y - size * .6, size, line.name);
    }
  };

  /** The box of an object at a time, between the two places where it was seen; null if it was not seen then. */
  const box_at = (track, time) => {
    let low = 0, high = track.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track[middle][0] <= time) low = middle + 1;
      else high = middle;
    }
    const [a, b] = [track[low - 1], track[low]];
    if (!a || (!b && time > a[0] + .2) || (b && b[0] - a[0] > 1.5 && time > a[0] + .2)) return null;
    const share = b && b[0] - a[0] <= 1.5 ? (time - a[0]) / (b[0] - a[0]) : 0;
    return [1, 2, 3, 4].map((i) => a[i] + (b ? share * (b[i] - a[i]) : 0));
  };

  /** The way of the feet of an object. Boxes move by whole cells, so the way is averaged over nine places. */
  const way_of = (track) => track.map((_, i) => {
    const near = track.slice(Math.max(0, i - 4), i + 5);
    const mean = (value) => near.reduce((sum, place) => sum + value(place), 0) / near.length;
    return `${mean(([, x, , w]) => x + w / 2).toFixed(1)},${mean(([, , y, , h]) => y + h).toFixed(1)}`;
  }).join(" ");

  const draw_moving = (time) => {
    moving.replaceChildren();
    const size = text_size();
    for (const object of data.objects) {
      const is_chosen = object.id === chosen;
      if (is_chosen && object.track.length > 1) {
        draw(moving, "polyline", {points: way_of(object.track), stroke: colour(object.id)});
      }
      if (time < object.track[0]?.[0] || time > object.track.at(-1)?.[0] + .2) continue;
      const box = box_at(object.track, time);
      if (!box) continue;
      const [x, y, w, h] = box;
      if (is_chosen) draw(moving, "rect", {class: "chosen", x, y, width: w, height: h, stroke: colour(object.id)});
      if (!element("numbers").checked) continue;
      const label = String(object.id), wide = size * (.62 * label.length + .5), high = size * 1.25;
      const left = clamp(x, 0, width - wide), top = clamp(y - high, 0, height - high);
      draw(moving, "rect", {x: left, y: top, width: wide, height: high, rx: size / 5, fill: colour(object.id)});
      label_at(moving, left + wide / 2, top + high * .76, size, label);
    }
  };

  // ---- the time line ----
  let chart = null, head = null, hover = null, plot_width = 1;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  const x_of = (time) => (time - data.start) / length * plot_width;

  /** Each object gets the first lane that is free; the last lane takes what is left. */
  const lanes_of = (objects, most) => {
    const ends = [];
    return objects.map((object) => {
      let lane = ends.findIndex((end) => end < object.entered - length / 500);
      if (lane < 0) lane = Math.min(ends.length, most - 1);
      ends[lane] = Math.max(ends[lane] ?? 0, object.left);
      return lane;
    });
  };

  const points_of = (places) => places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

  const draw_axis = (top, bottom) => {
    const steps = [.1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400];
    const step = steps.find((one) => one / length * plot_width >= 64) ?? 28800;
    for (let time = Math.ceil(data.start / step) * step; time <= data.end; time += step) {
      const x = x_of(time);
      draw(chart, "line", {class: "grid", x1: x, x2: x, y1: top, y2: bottom});
      const anchor = x < 20 ? "start" : x > plot_width - 20 ? "end" : "middle";
      draw(chart, "text", {x, y: bottom + 14, "text-anchor": anchor}, step < 1 ? clock(time) : clock(time).slice(0, -2));
    }
  };

  const draw_timeline = () => {
    const frames = data.frames, count = frames.time.length, lanes = lanes_of(data.objects, 12);
    const lane_count = Math.max(0, ...lanes.map((lane) => lane + 1)), lane_height = lane_count > 6 ? 9 : 13;
    plot_width = Math.max(timeline.clientWidth, 50);
    const rows = {motion: [18, 78], light: [98, 146], events: [166, 180], objects: [200, 200 + lane_count * lane_height]};
    const bottom = lane_count ? rows.objects[1] : rows.events[1];
    timeline.replaceChildren(tip);
    chart = draw(timeline, "svg", {viewBox: `0 0 ${plot_width} ${bottom + 20}`, "aria-hidden": "true"});
    draw_axis(rows.motion[0], bottom + 2);
    const end_of = (i) => i + 1 < count ? frames.time[i + 1] : data.end;
    const name = (text, row) => draw(chart, "text", {class: "name", x: 0, y: row[0] - 5}, text);

    const most = Math.max(...frames.changed, .1), scaled = (value, [top, low], full) => low - value / full * (low - top);
    const steps = (values, row, full) => values.flatMap((value, i) => {
      const y = scaled(value, row, full);
      return [[x_of(frames.time[i]), y], [x_of(end_of(i)), y]];
    });
    name(`motion: up to ${most.toFixed(1)} % of the picture`, rows.motion);
    const ground = rows.motion[1], motion = steps(frames.changed, rows.motion, most);
    draw(chart, "polygon", {class: "changed", points: points_of([[0, ground], ...motion, [plot_width, ground]])});
    name("brightness: mean, and darkest to brightest 1 %", rows.light);
    const bright = steps(frames.bright, rows.light, 100), dark = steps(frames.dark, rows.light, 100);
    draw(chart, "polygon", {class: "band", points: points_of(bright.concat(dark.reverse()))});
    draw(chart, "polyline", {class: "mean", points: points_of(steps(frames.mean, rows.light, 100))});

    const [top, low] = rows.events;
    const signs = [data.lights.length && "▲ light or scene changes", data.crossings.length && "◆ a line is crossed"];
    name(["events: motion", ...signs.filter(Boolean)].join(", "), rows.events);
    for (const [from, to] of data.runs) {
      const x = x_of(from), wide = Math.max(2, x_of(to) - x);
      draw(chart, "rect", {class: "run", x, y: top, width: wide, height: low - top, rx: 2}, undefined,
        `motion ${clock(from)} – ${clock(to)}`);
    }
    for (const time of data.lights) {
      const tooltip = `light or scene changes at ${clock(time)}`;
      draw(chart, "path", {class: "lights", d: `M${x_of(time) - 6} ${low}h12l-6 -13z`}, undefined, tooltip);
    }
    for (const one of data.crossings) {
      draw(chart, "path", {class: "crossing", d: `M${x_of(one.time)} ${top}l5 7l-5 7l-5 -7z`}, undefined,
        `object ${one.id} crosses ${one.line} to the ${one.direction} at ${clock(one.time)}`);
    }
    if (lane_count) name("objects", rows.objects);
    data.objects.forEach((object, i) => {
      const x = x_of(object.entered), wide = Math.max(3, x_of(object.left) - x), y = rows.objects[0] + lanes[i] * lane_height;
      draw(chart, "rect", {class: "object", x, y, width: wide, height: lane_height - 2, rx: 3, fill: colour(object.id)}, undefined,
        `object ${object.id}: ${clock(object.entered)} – ${clock(object.left)}`);
    });
    hover = draw(chart, "line", {class: "hover moving", y1: 0, y2: bottom, visibility: "hidden"});
    head = draw(chart, "line", {class: "head moving", y1: 0, y2: bottom + 4});
  };

  const time_at = (event) => {
    const box = timeline.getBoundingClientRect();
    return data.start + clamp((event.clientX - box.left) / box.width, 0, 1) * length;
  };
  const show_tip = (event) => {
    const time = time_at(event), x = x_of(time);
    tip.hidden = false;
    tip.textContent = clock(time);
    tip.style.left = `${clamp(x - tip.offsetWidth / 2, 0, plot_width - tip.offsetWidth)}px`;
    for (const key of ["x1", "x2"]) hover.setAttribute(key, x);
    hover.setAttribute("visibility", "visible");
  };
  timeline.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    timeline.setPointerCapture(event.pointerId);
    seek(time_at(event));
  });
  timeline.addEventListener("pointermove", (event) => {
    show_tip(event);
    if (timeline.hasPointerCapture(event.pointerId)) seek(time_at(event));
  });
  timeline.addEventListener("pointerleave", () => {
    tip.hidden = true;
    hover.setAttribute("visibility", "hidden");
  });
  timeline.addEventListener("keydown", (event) => {
    const moves = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -length / 10, PageUp: length / 10,
      Home: -Infinity, End: Infinity};
    if (event.key in moves) seek(clamp(now() + moves[event.key], data.start, data.end));
    else if (event.key === " ") video.paused ? video.play() : video.pause();
    else return;
    event.preventDefault();
  });

  // ---- the table and the buttons ----
  const choose = (id) => {
    chosen = id;
    const rows = document.querySelectorAll("tr[data-object]");
    for (const row of rows) row.classList.toggle("chosen", Number(row.dataset.object) === id);
  };
  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-seek]"), row = event.target.closest("tr[data-object]");
    if (row) choose(Number(row.dataset.object));
    if (!target) return;
    seek(Number(target.dataset.seek));
    if (stage.getBoundingClientRect().bottom < 60) stage.scrollIntoView({behavior: "smooth", block: "start"});
  });
  const go = (object) => {
    if (!object) return;
    choose(object.id);
    seek(object.entered);
  };
  element("before").addEventListener("click", () => go(data.objects.findLast((object) => object.entered < now() - .25)));
  element("after").addEventListener("click", () => go(data.objects.find((object) => object.entered > now() + .05)));
  element("speed").addEventListener("change", (event) => { video.playbackRate = Number(event.target.value); });
  element("shapes").addEventListener("change", (event) => {
    shapes.setAttribute("visibility", event.target.checked ? "visible" : "hidden");
  });
  element("shapes-label").hidden = !data.zones.length && !data.lines.length;
  for (const swatch of document.querySelectorAll(".swatch")) swatch.style.background = colour(Number(swatch.dataset.object));

  // ---- what follows the time ----
  const update = () => {
    const time = now(), x = clamp(x_of(time), 1, plot_width - 1);
    for (const key of ["x1", "x2"]) head.setAttribute(key, x);
    timeline.setAttribute("aria-valuenow", time.toFixed(1));
    timeline.setAttribute("aria-valuetext", `${clock(time)} of ${clock(data.end)}`);
    draw_moving(time);
  };
  const follow = () => {
    update();
    if (!video.paused && !video.ended) requestAnimationFrame(follow);
  };
  const layout = () => {
    draw_timeline();
    draw_shapes();
    update();
  };
  timeline.setAttribute("aria-valuemin", data.start.toFixed(1));
  timeline.setAttribute("aria-valuemax", data.end.toFixed(1));
  for (const kind of ["seeked", "timeupdate", "loadedmetadata"]) video.addEventListener(kind, update);
  video.addEventListener("play", follow);
  element("numbers").addEventListener("change", update);
  let seen = "";
  const resized = new ResizeObserver(() => {
    const sizes = `${timeline.clientWidth} ${stage.clientWidth}`;
    if (sizes !== seen) layout();
    seen = sizes;
  });
  resized.observe(timeline);
  resized.observe(stage);
  layout();
})();
