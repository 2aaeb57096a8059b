// SPDX-License-Identifier: LGPL-2.1-or-later
// The player, and everything that follows its time. Times are stream times of the clip in seconds; the video begins at
// data.video.begins.
"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const textOf = (id) => element(id).textContent.trim();
  const data = JSON.parse(textOf("data"));
  const video = element("video"), stage = element("stage"), overlay = element("overlay");
  const [width, height] = data.size;
  stage.style.setProperty("--ratio", width / height);

  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const clock = (seconds) => {
    const tenths = Math.round(seconds * 10);
    const hours = Math.floor(tenths / 36000), minutes = Math.floor(tenths / 600) % 60;
    const rest = `${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
    return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
  };
  /** The clock time of a stream time in the zone of the clip, or an empty text. */
  const wall = (time) => {
    const [from, clock, offset] = data.clocks.findLast((one) => one[0] <= time) ?? data.clocks[0] ?? [];
    return clock === undefined ? ""
      : new Date(clock + 1000 * (time - from + offset)).toISOString().slice(0, 19).replace("T", " ");
  };

  // ---- the player ----
  const complain = (text) => {
    element("message").textContent = text;
    element("message").hidden = false;
  };
  video.addEventListener("error", () => complain(data.video.embedded
    ? `This browser cannot play the clip (${data.video.kind}).`
    : `The clip cannot be played: it is the file ${data.video.name}, which must be in the folder of this page.`));
  if (data.video.embedded) {
    const bytes = atob(textOf("clip")), array = new Uint8Array(bytes.length);
    for (let i = 0; i < bytes.length; ++i) array[i] = bytes.charCodeAt(i);
    video.src = URL.createObjectURL(new Blob([array], {type: data.video.kind}));
  } else if (!data.video.name) {
    complain("There is no video in this report: see “About this report”.");
  }
  let time = data.start;  // the displayed time
  const now = () => data.video.begins + video.currentTime;
  const seek = (wanted) => {
    const length = Number.isFinite(video.duration) ? video.duration : data.end - data.video.begins;
    video.currentTime = clamp(wanted - data.video.begins, 0, length);
    if (!data.video.name) show(wanted);
    else if (video.readyState) show(now());
  };

  // ---- parts of the page that follow the time ----
  const recording = makeRecording(textOf("chunks"), data.chunks, data.keep, () => show(time));
  const shows = (name) => element(name).checked;
  const layer = makeLayer(element("layer"), data.size, recording, shows, data.heat);
  const timeline = makeTimeline(element("timeline"), data, clock, seek);
  const list = makeList(data, textOf("pictures"), element, (event, to) => go(event, to), clock, wall);
  const [zones, lines, drawn] = ["zones", "lines", "drawn"].map((name) => drawSvg(overlay, "g", {class: name}));
  const textSize = () => 15 * width / (stage.clientWidth || width);
  const editor = makeZoneEditor(overlay, drawn, data.size, element, textSize);
  if (!("DecompressionStream" in window)) complain("This browser is too old to draw boxes over the clip.");

  const show = (wanted) => {
    time = wanted;
    layer.draw(time);
    timeline.show(time);
    element("now").textContent = [clock(time), wall(time)].filter(Boolean).join(" · ");
  };
  const choose = (event) => {
    list.choose(event);
    layer.choose(event?.object ?? null, () => show(time));
  };
  const go = (event, to = event?.entered) => {
    if (!event) return;
    choose(event);
    seek(to);
  };

  /** Draws with each displayed frame of the video; without requestVideoFrameCallback, with each refresh of the
      screen. */
  const follow = () => {
    if (video.requestVideoFrameCallback) {
      video.requestVideoFrameCallback((_, frame) => {
        show(data.video.begins + frame.mediaTime);
        follow();
      });
    } else {
      requestAnimationFrame(() => {
        if (!video.paused) show(now());
        follow();
      });
    }
  };
  follow();
  // The video may be the whole clip, of which only a part was analysed.
  video.addEventListener("loadedmetadata", () => data.start > data.video.begins + 1 && seek(data.start), {once: true});
  for (const kind of ["seeked", "timeupdate", "loadedmetadata"]) {
    video.addEventListener(kind, () => video.paused && show(now()));
  }

  // ---- controls ----
  for (const button of document.querySelectorAll(".tiles [data-seek]")) {
    button.addEventListener("click", () => seek(Number(button.dataset.seek)));
  }
  element("before").addEventListener("click", () => go(list.before(time)));
  element("after").addEventListener("click", () => go(list.next(time)));
  element("speed").addEventListener("change", (event) => { video.playbackRate = Number(event.target.value); });
  for (const name of ["boxes", "tracks", "tint", "heat", "histogram"]) {
    element(name).addEventListener("change", () => show(time));
  }
  for (const [name, group] of [["zones", zones], ["lines", lines]]) {
    const follows = () => group.setAttribute("visibility", shows(name) ? "visible" : "hidden");
    element(name).addEventListener("change", follows);
    element(`${name}-label`).hidden = !data[name].length;
  }

  const layers = {b: "boxes", t: "tracks", w: "tint", m: "heat", g: "histogram", z: "zones", l: "lines"};
  const frameTime = Math.max((data.end - data.start) / Math.max(data.count, 1), .01);
  const moves = {ArrowLeft: -1, ArrowRight: 1, ",": -frameTime, ".": frameTime};
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (editor.key(event.key)) return event.preventDefault();
    const on = event.target;
    if (on.matches("input:not([type=checkbox]), select, textarea, video")) return;
    const move = moves[event.key] ?? (on.id === "timeline" ? timeline.moves[event.key] : undefined);
    const key = event.key.toLowerCase();
    if (move !== undefined) seek(clamp(now() + move * (event.shiftKey ? 10 : 1), data.start, data.end));
    else if (key === "n") go(list.next(time));
    else if (key === "p") go(list.before(time));
    else if (key in layers) element(layers[key]).click();
    else if (key === " " && !on.matches("button, summary, a, input")) video.paused ? video.play() : video.pause();
    else return;
    event.preventDefault();
  });

  let seen = "";
  const layout = () => {
    const sizes = `${element("timeline").clientWidth} ${stage.clientWidth}`;
    if (sizes === seen) return;
    seen = sizes;
    timeline.draw();
    drawZones(zones, data.zones, textSize());
    drawLines(lines, data.lines, textSize());
    editor.show();
    show(time);
  };
  const resized = new ResizeObserver(layout);
  resized.observe(element("timeline"));
  resized.observe(stage);
  layout();
})();
