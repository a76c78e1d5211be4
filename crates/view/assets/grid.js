// The grid: images, or cards of features, over a list of any length.
//
// Only the cards on the screen are elements. Each has its place by its number, so nothing moves while images come in.

import { aborted, PAGE } from "./api.js";
import { bytesText, count, debounce, featureText, h, kindOf, number, replace, size } from "./dom.js";
import { draw, frameOf, shapesOf } from "./overlay.js";
import { caption, featuresFor, imageOf } from "./roles.js";
import { scroller } from "./scroll.js";
import { href, note } from "./state.js";

// Least width of a card, and the height of its caption, in pixels.
const SIZES = {
  small: { label: "Small", cell: 96, caption: 20 },
  medium: { label: "Medium", cell: 160, caption: 40 },
  large: { label: "Large", cell: 272, caption: 40 },
};
const GAP = 8;
const SHAPE = 0.82; // height of a picture to its width

/** The view "grid": over the list of the page. */
export function mount(root, context) {
  return gridOver(root, context, () => context.list);
}

/** A grid over a list (find.js), or over what a function returns. Otherwise as a view: { update, unmount, keys, title }. */
export function gridOver(root, context, source) {
  const list = () => (typeof source === "function" ? source() : source);
  const { records } = context;
  root.classList.add("grid-view");
  const blank = h("div", { class: "empty", "data-test": "empty", hidden: true });
  const holder = h("div", { class: "grid" });
  root.append(holder, blank);

  const cards = new Map(); // position -> card
  const loads = new Map(); // page -> AbortController
  let shown = null; // what the cards were made for: see `look`
  let columns = 1;
  let cell = 160;
  let picture = 120;
  let form = SIZES.medium;
  let selected = 0;
  let noted = ""; // the position that the address has
  let features;
  let roles = {};
  let boxes = true;
  let endGrowth = () => {};
  let filled = null; // resolves once the first cards have content

  const bar = scroller(holder, {
    label: "Position in the records",
    onMove: render,
    describe(row) {
      const at = Math.min(row * columns, list().length - 1);
      return at < 0 ? "no records" : `record ${number(list().at(at))}`;
    },
  });
  const { view } = bar;
  const layer = h("div", { class: "layer", role: "presentation" });
  view.append(layer);
  for (const [name, value] of Object.entries({ role: "listbox", tabindex: "0", "aria-label": "Records", "data-test": "grid" })) view.setAttribute(name, value);
  bar.bar.setAttribute("aria-controls", (view.id = "cards"));

  // The tools of the grid: size of cards, boxes.
  const sizes = Object.entries(SIZES).map(([name, { label }]) =>
    h("button", { type: "button", class: "quiet", "data-size": name, title: `${label} cards`, onclick: () => context.go({ size: name === "medium" ? null : name }, { replace: true }) }, label));
  const boxesButton = h("button", { type: "button", class: "quiet", title: "Boxes (b)", onclick: toggleBoxes }, "Boxes");
  replace(context.tools, boxesButton, h("div", { class: "group row", role: "group", "aria-label": "Size of cards" }, sizes));

  function toggleBoxes() {
    context.go({ boxes: boxes ? "off" : null }, { replace: true });
  }

  function layout(at = null) {
    const width = view.clientWidth;
    if (!width || !view.clientHeight) return;
    // The record at the top stays there when the width changes.
    const first = at ?? bar.row * columns;
    columns = Math.max(1, Math.floor((width - GAP) / (form.cell + GAP)));
    cell = Math.floor((width - GAP) / columns) - GAP;
    picture = Math.round(Math.min(cell, form.cell * 1.6) * SHAPE);
    view.style.setProperty("--cell", `${cell}px`);
    view.style.setProperty("--picture", `${picture}px`);
    view.style.setProperty("--caption", `${form.caption}px`);
    bar.set(Math.ceil(list().length / columns), picture + form.caption + GAP, columns, Math.floor(first / columns));
  }

  function render(top) {
    const length = list().length;
    const tall = picture + form.caption + GAP;
    const base = Math.floor(top);
    const from = base * columns;
    const to = Math.min(length, (Math.floor(top + bar.visible) + 1) * columns);
    for (const [position, card] of cards) if (position < from || position >= to) drop(position, card);
    layer.style.transform = `translateY(${-(top - base) * tall}px)`;
    for (let i = from; i < to; i += 1) {
      let card = cards.get(i);
      if (!card) {
        card = make(i);
        cards.set(i, card);
        layer.append(card.element);
      }
      const [x, y] = [(i % columns) * (cell + GAP) + GAP, (Math.floor(i / columns) - base) * tall + GAP];
      card.element.style.transform = `translate(${x}px, ${y}px)`;
      card.element.setAttribute("aria-setsize", String(list().more ? -1 : length));
    }
    mark();
    load(from, to);
    remember();
  }

  const remember = debounce(() => {
    const at = bar.row * columns;
    if (String(at) !== (noted || "0")) {
      noted = at ? String(at) : "";
      note({ at: noted, sel: selected === at ? null : selected });
    }
  }, 200);

  function mark() {
    const length = list().length;
    selected = Math.max(0, Math.min(selected, length - 1));
    for (const [position, card] of cards) {
      card.element.classList.toggle("selected", position === selected);
      card.element.setAttribute("aria-selected", String(position === selected));
    }
    if (cards.has(selected)) view.setAttribute("aria-activedescendant", `card-${selected}`);
    else view.removeAttribute("aria-activedescendant");
  }

  // Pages of records. What was scrolled past is given up; a drag that flies over a million records asks for none of them.
  function load(from, to) {
    const wanted = new Set();
    for (let i = from; i < to; i += 1) {
      const card = cards.get(i);
      if (card && !card.full) {
        const record = records.peek(card.id, features);
        if (record) fill(card, record);
        else wanted.add(Math.floor(i / PAGE));
      }
    }
    for (const [page, load] of loads) {
      if ((page + 1) * PAGE <= from || page * PAGE >= to) {
        load.abort();
        loads.delete(page);
      }
    }
    if (wanted.size === 0) {
      ask.cancel();
      if (to > from || !list().more) filled?.();
      return;
    }
    // The first ask of a list is at once.
    if (filled) request([...wanted]);
    else ask([...wanted]);
  }

  const ask = debounce((pages) => request(pages), 50);

  function request(pages) {
    for (const page of pages) {
      if (loads.has(page)) continue;
      const stop = new AbortController();
      loads.set(page, stop);
      const ids = [];
      for (let i = page * PAGE; i < Math.min(list().length, (page + 1) * PAGE); i += 1) ids.push(list().at(i));
      const name = shown;
      records.get(ids, { signal: stop.signal, features }).then((found) => {
        if (name !== shown) return;
        found.forEach((record, i) => {
          const card = cards.get(page * PAGE + i);
          if (card && !card.full) fill(card, record ?? { id: ids[i], error: "no such record" });
        });
        filled?.();
      }).catch((error) => {
        if (aborted(error) || name !== shown) return;
        // Not remembered: the next move asks again.
        for (const [position, card] of cards) {
          if (Math.floor(position / PAGE) === page && !card.full) replace(card.picture, h("p", { class: "error small" }, error.message));
        }
        filled?.();
      }).finally(() => {
        if (loads.get(page) === stop) loads.delete(page);
      });
    }
  }

  function make(position) {
    const id = list().at(position);
    const image = h("div", { class: "card-picture" });
    const text = h("div", { class: "card-text", "data-test": "caption" }, h("span", { class: "card-number" }, number(id)));
    const element = h("a", {
      class: "card", role: "option", id: `card-${position}`, tabindex: "-1", "data-test": "card", "data-id": id,
      "aria-posinset": position + 1, href: href({ view: "record", id }),
      onclick(event) {
        if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        selected = position;
        open(position);
      },
    }, image, text);
    return { element, picture: image, text, id, position, full: false };
  }

  function fill(card, record) {
    card.full = true;
    const said = list().note(card.position);
    const label = caption(record, roles.label);
    const name = caption(record, roles.name);
    replace(card.text,
      h("span", { class: "card-label" }, label || name || ""),
      h("span", { class: "card-number" }, number(card.id)),
      form.caption > 20 ? h("span", { class: "card-name" }, said ? h("em", null, said) : label ? name : record.kind === "bytes" ? size(record.bytes) : "") : null);
    card.element.title = [`record ${number(card.id)}`, label, name, record.shard, said].filter(Boolean).join("\n");
    card.element.setAttribute("aria-label", [label, name, `record ${number(card.id)}`, said, record.error].filter(Boolean).join(", "));
    if (record.error) {
      card.element.classList.add("bad");
      replace(card.picture, h("p", { class: "error small" }, record.error));
      return;
    }
    const image = imageOf(record, roles);
    if (image?.url) {
      const picture = h("img", { alt: "", decoding: "async", draggable: "false", "data-test": "card-image" });
      card.image = picture;
      picture.addEventListener("error", () => picture.isConnected && facts(card, record, "image can not be decoded"));
      picture.addEventListener("load", () => overlay(card, record, { width: picture.naturalWidth, height: picture.naturalHeight }));
      picture.src = image.url;
      replace(card.picture, picture);
      // Boxes need not wait for the bytes if the size is known.
      if (image.width && image.height) overlay(card, record, image);
    } else if (context.pixels && roles.pixels && record.features?.[roles.pixels.feature]?.n) {
      const canvas = h("canvas", { class: "pixels", "data-test": "pixels" });
      replace(card.picture, canvas);
      context.pixels(canvas, record, roles)
        .then((drawn) => (drawn ? overlay(card, record, canvas) : facts(card, record, "")))
        .catch((error) => aborted(error) || facts(card, record, error.message));
    } else {
      const frame = frameOf(record, roles, null);
      const shapes = shapesOf(record, roles, frame);
      if (frame && shapes.boxes.length + shapes.points.length) {
        replace(card.picture, h("div", { class: "blank" }));
        overlay(card, record, frame);
      } else facts(card, record, image?.problem ?? "");
    }
  }

  // Boxes over the part of the picture that the image covers.
  function overlay(card, record, frame) {
    if (!boxes || !frame?.width || !frame?.height) return;
    const shapes = shapesOf(record, roles, frame);
    const empty = card.picture.querySelector(".blank");
    const scale = Math.min(cell / frame.width, picture / frame.height);
    const [width, height] = [frame.width * scale, frame.height * scale];
    const place = (element) => Object.assign(element.style, { width: `${width}px`, height: `${height}px`, left: `${(cell - width) / 2}px`, top: `${(picture - height) / 2}px` });
    if (empty) place(empty);
    if (shapes.boxes.length + shapes.points.length === 0) return;
    let canvas = card.picture.querySelector("canvas.over");
    if (!canvas) card.picture.append((canvas = h("canvas", { class: "over", "aria-hidden": "true", "data-test": "boxes" })));
    place(canvas);
    draw(canvas, shapes, { labels: form.cell > 100 ? "small" : false });
  }

  // A card without a picture shows its first short features.
  function facts(card, record, problem) {
    const rows = [];
    if (problem) rows.push(h("p", { class: "muted small" }, problem));
    if (record.kind === "bytes") {
      const payload = record.payload;
      rows.push(h("p", { class: "mono small payload" }, payload === undefined || payload === null ? "" : bytesText(payload)));
    } else {
      const all = Object.entries(record.features ?? {}).filter(([name]) => name !== roles.label || !caption(record, roles.label));
      const short = all.filter(([, feature]) => feature.n > 0 && feature.n <= 8 && (kindOf(feature) !== "bytes" || feature.bytes.every((v) => typeof v === "string")));
      const lines = [...short, ...all.filter((entry) => !short.includes(entry))].slice(0, 12);
      for (const [name, feature] of lines) {
        rows.push(h("div", { class: "fact" }, h("span", { class: "muted" }, name.split("/").pop() || name), " ", featureText(feature, 4) || "none"));
      }
      for (const [name, found] of Object.entries(record.lists ?? {}).slice(0, 6)) rows.push(h("div", { class: "fact" }, h("span", { class: "muted" }, name), ` ${count(found.steps, "step")}`));
      if (rows.length === 0) rows.push(h("p", { class: "muted small" }, "no features"));
    }
    replace(card.picture, h("div", { class: "facts" }, rows));
  }

  function drop(position, card) {
    card.image?.removeAttribute("src"); // ends its download
    card.element.remove();
    cards.delete(position);
  }

  function clear() {
    for (const [position, card] of cards) drop(position, card);
    for (const load of loads.values()) load.abort();
    loads.clear();
    ask.cancel();
  }

  function open(position) {
    if (position >= list().length) return;
    remember.cancel();
    const at = bar.row * columns;
    note({ at: at || null, sel: position === at ? null : position });
    context.go({ view: "record", id: list().at(position), tab: null });
  }

  function move(step) {
    selected = Math.max(0, Math.min(list().length - 1, selected + step));
    bar.reveal(Math.floor(selected / columns));
    mark();
    note({ sel: selected === Number(noted || 0) ? null : selected });
  }

  function jump(position) {
    selected = Math.max(0, Math.min(list().length - 1, position));
    bar.reveal(Math.floor(selected / columns));
    mark();
  }

  function turn(sign) {
    const row = Math.floor(selected / columns) - bar.top;
    bar.page(sign);
    const next = sign * Math.max(1, Math.floor(bar.visible)) * columns;
    selected = Math.max(0, Math.min(list().length - 1, selected + next));
    if (row < 0 || row > bar.visible) selected = Math.max(0, Math.min(list().length - 1, bar.row * columns));
    mark();
  }

  function look(state) {
    return JSON.stringify([state.size, state.roles, state.boxes, state.set]);
  }

  let current = null; // the list that the cards are of

  function empty() {
    const { where, seed } = context.state();
    const none = list().length === 0 && !list().more;
    blank.hidden = !none;
    holder.hidden = none;
    if (!none) return;
    filled?.();
    const failed = context.searchError?.();
    replace(blank,
      h("p", null, failed ? "The condition can not be searched for." : where ? "No record meets the condition." : seed ? "The sample is empty." : "There are no records here."),
      where
        ? [h("p", { class: "muted" }, failed ? "Correct it in the box above." : "Check names and values: the page Data set lists all features with their values."),
          h("div", { class: "row" }, h("a", { class: "button", href: href({ where: null, at: null, sel: null }) }, "Show all records"), h("a", { class: "button", href: href({ view: "data", where: null }) }, "Data set"))]
        : h("p", { class: "muted" }, context.dataset.records === 0 ? "The files are read and hold none. Check the paths that tfseek view was given." : "Choose other records above."));
  }

  function grown() {
    if (!holder.hidden || list().length) {
      blank.hidden = true;
      holder.hidden = false;
    }
    bar.set(Math.ceil(list().length / columns), picture + form.caption + GAP, columns);
    empty();
  }

  const watch = new ResizeObserver(() => {
    if (Math.floor(view.clientWidth) !== watch.width) {
      watch.width = Math.floor(view.clientWidth);
      for (const card of cards.values()) card.full = false; // boxes have another place
      layout();
    }
  });
  watch.observe(view);

  return {
    title: "Grid",
    update(state) {
      const next = look(state);
      const changed = next !== shown || current !== list();
      form = SIZES[state.size] ?? SIZES.medium;
      roles = context.roles();
      boxes = state.boxes !== "off";
      features = featuresFor(context.dataset, roles);
      boxesButton.setAttribute("aria-pressed", String(boxes));
      boxesButton.hidden = !roles.boxes && !roles.points;
      for (const button of sizes) button.setAttribute("aria-pressed", String(SIZES[button.dataset.size] === form));
      holder.classList.toggle("compact", form.caption <= 20);
      const at = Math.max(0, Math.floor(Number(state.at) || 0));
      if (changed) clear();
      if (current !== list()) {
        endGrowth();
        endGrowth = list().onGrow(grown);
      }
      const moved = (state.at ?? "") !== noted;
      [shown, current] = [next, list()];
      let done = Promise.resolve();
      if (changed) done = new Promise((resolve) => (filled = () => { filled = null; resolve(); }));
      if (changed || moved) {
        noted = state.at ?? "";
        selected = Math.floor(Number(state.sel ?? at)) || 0;
        layout(at);
      }
      empty();
      mark();
      return done;
    },
    unmount() {
      endGrowth();
      clear();
      remember.cancel();
      watch.disconnect();
      bar.destroy();
      replace(context.tools);
    },
    focus: () => view.focus(),
    go: (position) => context.go({ at: position || null, sel: null }),
    keys: {
      j: () => move(1), k: () => move(-1), l: () => move(1), h: () => move(-1),
      ArrowRight: () => move(1), ArrowLeft: () => move(-1), ArrowDown: () => move(columns), ArrowUp: () => move(-columns),
      PageDown: () => turn(1), PageUp: () => turn(-1), Home: () => jump(0), End: () => jump(list().length - 1),
      Enter: () => open(selected), b: toggleBoxes,
    },
  };
}
