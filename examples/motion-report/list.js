// SPDX-License-Identifier: LGPL-2.1-or-later
// The list of events with their filters. Texts reach the page as text nodes only.
"use strict";

/** Adds an HTML element with a text and these properties. */
const add = (parent, name, text = "", properties = {}) => {
  const made = Object.assign(document.createElement(name), properties);
  if (text) made.textContent = text;
  parent.append(made);
  return made;
};

/** Seconds from 75, 1:15 or 0:01:15; null if the text is not a time. */
const secondsOf = (text) => {
  if (!/^\s*(\d+:){0,2}\d+(\.\d*)?\s*$/.test(text)) return null;
  return text.split(":").reduce((sum, part) => 60 * sum + Number(part), 0);
};

/** `go(event)` is called when the user chooses an event. `times(seconds)` returns the text of a time, and
    `wall(seconds)` the text of the clock time, which may be empty. */
const makeList = (data, pictures, element, go, times, wall) => {
  const PAGE = 60;
  let shown = [], count = PAGE, chosen = null;
  const objects = data.objects.map((object) => ({...object, key: `object-${object.id}`, object}));
  const byStart = [...objects].sort((a, b) => a.entered - b.entered);
  const area = (event) => event.box[2] * event.box[3];
  const motions = data.runs.map(([entered, left, clip], i) => {
    let largest = null;
    for (const object of byStart) {
      if (object.entered > left) break;
      if (object.left >= entered && (!largest || area(object) > area(largest))) largest = object;
    }
    return {key: `motion-${i}`, entered, left, clip, seconds: left - entered, picture: largest?.picture,
      box: largest?.box ?? [0, 0, 0, 0], visits: largest?.visits ?? [], crossed: [], notes: [], still: false,
      object: null, number: i + 1};
  });

  const sourceOf = (picture) =>
    typeof picture === "string" ? picture
      : `data:image/jpeg;base64,${pictures.slice(picture[0], picture[0] + picture[1])}`;
  const badge = (list, text, time) => {
    const button = add(add(list, "li"), "button", text, {className: "link", type: "button"});
    button.dataset.seek = time.toFixed(3);
    add(list.lastChild, "span", ` ${times(time)}`, {className: "when"});
  };

  const cardOf = (event) => {
    const card = document.createElement("li");
    card.className = "event";
    card.dataset.key = event.key;
    const main = add(card, "button", "", {className: "main", type: "button"});
    const name = event.object ? `Object ${event.object.id}` : `Motion ${event.number}`;
    if (event.picture) {
      add(main, "img", "", {src: sourceOf(event.picture), alt: `${name} at its best`, loading: "lazy"});
    } else {
      add(main, "span", "no picture", {className: "blank"});
    }
    const title = add(main, "span", "", {className: "title"});
    if (event.object) add(title, "span", "", {className: "swatch"}).style.background = colourOf(event.object.id);
    add(title, "strong", name);
    add(main, "span", `${times(event.entered)} – ${times(event.left)}`, {className: "span"});
    if (wall(event.entered)) add(main, "span", wall(event.entered), {className: "when"});
    add(main, "span",
      `${event.seconds.toFixed(1)} s${event.still ? ", still" : event.path ? `, ${event.path} px` : ""}`,
      {className: "when"});
    const places = document.createElement("ul");
    places.className = "places";
    if (event.object) {
      for (const [zone, entered] of event.visits) badge(places, zone, entered);
      for (const [line, direction, time] of event.crossed) badge(places, `${line} → ${direction}`, time);
      for (const [what, time] of event.notes) badge(places, what, time);
    }
    if (places.children.length) card.append(places);
    if (event.clip) add(card, "a", "clip", {href: event.clip, className: "clip"});
    return card;
  };

  const passes = (event) => {
    const from = secondsOf(element("from").value), to = secondsOf(element("to").value), zone = element("zone").value;
    const tall = 100 * event.box[3] / data.size[1];
    return (from === null || event.left - data.start >= from) && (to === null || event.entered - data.start <= to)
      && event.seconds >= Number(element("least").value)
      && (!Number(element("size").value) || tall >= Number(element("size").value))
      && !(element("hide-still").checked && event.still)
      && (!zone || event.visits.some(([name]) => name === zone));
  };

  const render = () => {
    element("events").replaceChildren(...shown.slice(0, count).map(cardOf));
    if (!shown.length) add(element("events"), "li", "No event passes the filters.", {className: "none"});
    element("more").hidden = shown.length <= count;
    mark();
  };
  const mark = () => {
    for (const card of element("events").children) card.classList.toggle("chosen", card.dataset.key === chosen);
  };
  const update = () => {
    const all = element("kind").value === "motions" ? motions : objects;
    shown = all.filter(passes);
    count = PAGE;
    element("count").textContent = shown.length === all.length ? `${all.length}` : `${shown.length} of ${all.length}`;
    render();
  };

  const zones = [...new Set(objects.flatMap((object) => object.visits.map(([zone]) => zone)))].sort();
  for (const zone of zones) add(element("zone"), "option", zone, {value: zone});
  element("zone-label").hidden = !zones.length;
  if (!objects.length && motions.length) element("kind").value = "motions";
  element("filters").addEventListener("input", update);
  element("filters").addEventListener("submit", (event) => event.preventDefault());
  element("more").addEventListener("click", () => {
    count += PAGE;
    render();
  });
  window.addEventListener("beforeprint", () => {
    count = Math.max(count, 500);
    render();
  });
  element("events").addEventListener("click", (click) => {
    const card = click.target.closest("li.event"), seek = click.target.closest("[data-seek]");
    if (!card || click.target.closest("a")) return;
    const event = shown.find((one) => one.key === card.dataset.key);
    go(event, seek ? Number(seek.dataset.seek) : event.entered);
  });
  update();

  return {
    choose: (event) => {
      chosen = event?.key ?? null;
      mark();
    },
    next: (time) => shown.find((event) => event.entered > time + .05),
    before: (time) => shown.findLast((event) => event.entered < time - .25),
    ofObject: (id) => objects.find((event) => event.object.id === id),
    kept: () => shown,
  };
};
