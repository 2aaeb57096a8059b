// SPDX-License-Identifier: LGPL-2.1-or-later
// The zones and lines of the report, and an editor for zones and ignored parts, which become the text of options.
"use strict";

/** Adds an SVG element with these attributes, and with a text or a tooltip. */
const drawSvg = (parent, name, attributes, text, tooltip) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (tooltip) drawSvg(made, "title", {}, tooltip);
  parent.append(made);
  return made;
};

const labelAt = (parent, x, y, size, text) =>
  drawSvg(parent, "text", {x, y, "font-size": size, "stroke-width": size / 5, "text-anchor": "middle"}, text);

const middleOf = (points) => [0, 1].map((i) => points.reduce((sum, point) => sum + point[i], 0) / points.length);

/** Draws the zones and lines of the report; `size` is the font size in pixels of the clip. */
const drawZones = (group, zones, size) => {
  group.replaceChildren();
  for (const zone of zones) {
    drawSvg(group, "polygon", {points: zone.points.join(" ")});
    labelAt(group, ...middleOf(zone.points), size, zone.name);
  }
};

const drawLines = (group, lines, size) => {
  group.replaceChildren();
  for (const line of lines) {
    const [[x1, y1], [x2, y2]] = line.points;
    drawSvg(group, "line", {x1, y1, x2, y2});
    // An arrow to the right, as seen from the first point towards the second.
    const long = Math.hypot(x2 - x1, y2 - y1) || 1, [dx, dy] = [(x2 - x1) / long, (y2 - y1) / long];
    const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
    const point = (along, aside) =>
      `${x + along * dx * size - aside * dy * size} ${y + along * dy * size + aside * dx * size}`;
    drawSvg(group, "path", {d: `M${point(-.5, 0)} L${point(.5, 0)} L${point(0, .9)} Z`});
    labelAt(group, x, y - size * .6, size, line.name);
  }
};

/** Draws zones and ignored parts (`mask`) with the mouse into `group` of the SVG `overlay`. */
const makeZoneEditor = (overlay, group, [width, height], element, textSize) => {
  let drawn = [], points = null, pointer = null;  // points: the corners of the unfinished zone, or null

  const share = (value, full) => Math.min(Math.max(value / full, 0), 1).toFixed(3);
  const pointsOf = ({corners}) => corners.map(([x, y]) => `${share(x, width)},${share(y, height)}`).join(" ");
  // In a shell, no character is special between ' and '.
  const option = (name, texts) => `--${name}'${texts.join("; ").replaceAll("'", "'\\''")}'`;
  const text = () => {
    const zones = drawn.filter((one) => !one.mask), masks = drawn.filter((one) => one.mask);
    return [
      ...zones.length || !masks.length ? [option("zones=", zones.map((one) => `${one.name}: ${pointsOf(one)}`))] : [],
      ...masks.length ? [option("set=mask-regions=", masks.map(pointsOf))] : [],
    ].join(" ");
  };
  const show = () => {
    group.replaceChildren();
    for (const {name, corners, mask} of drawn) {
      drawSvg(group, "polygon", {points: corners.join(" "), class: mask ? "ignored" : "zone"});
      labelAt(group, ...middleOf(corners), textSize(), name);
    }
    if (points?.length) drawSvg(group, "polyline", {points: points.concat(pointer ? [pointer] : []).join(" ")});
    overlay.classList.toggle("drawing", points !== null);
    element("zone-draw").setAttribute("aria-pressed", String(points !== null));
    element("zone-text").value = text();
  };
  /** A unique name without the characters that separate zones. */
  const nameOf = () => {
    const wanted = element("zone-name").value.replace(/[:;\s]+/g, " ").trim() || "zone";
    for (let number = 1; ; ++number) {
      const name = number > 1 ? `${wanted} ${number}` : wanted;
      if (drawn.every((zone) => zone.name !== name)) return name;
    }
  };
  const finish = () => {
    const corners = points.filter((point, i) => !i || String(point) !== String(points[i - 1]));
    const mask = element("zone-kind").value === "mask";
    if (corners.length >= 3) drawn.push({name: mask ? "ignored" : nameOf(), corners, mask});
    points = null;
    show();
  };
  const place = (event) => {
    const box = overlay.getBoundingClientRect();
    return [Math.round((event.clientX - box.left) / box.width * width),
      Math.round((event.clientY - box.top) / box.height * height)];
  };

  overlay.addEventListener("click", (event) => {
    if (!points) return;
    if (event.detail > 1) return finish();
    points.push(place(event));
    show();
  });
  overlay.addEventListener("pointermove", (event) => {
    if (!points) return;
    pointer = place(event);
    show();
  });
  element("zone-draw").addEventListener("click", () => {
    if (points) return finish();
    points = [];
    pointer = null;
    show();
  });
  element("zone-clear").addEventListener("click", () => {
    drawn = [];
    points = null;
    show();
  });
  element("zone-copy").addEventListener("click", () => {
    element("zone-text").select();
    document.execCommand("copy");  // works even without access to the clipboard, as on a page opened from a disk
  });
  show();

  return {
    /** Handles a key. Returns whether it was for the unfinished zone. */
    key: (key) => {
      if (!points || !["Enter", "Escape"].includes(key)) return false;
      if (key === "Escape") points = [];
      finish();
      return true;
    },
    show,
  };
};
