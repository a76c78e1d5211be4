// The grid: images, or cards of features. Each card has its place by its number, so nothing moves while images come in.

import { aborted } from "./api.js";
import { attrs, button, count, examplesOf, featureText, h, kindOf, muted, number, payloadText, replace, size } from "./dom.js";
import { draw, frameOf, shapesOf } from "./overlay.js";
import { caption, featuresFor, imageOf } from "./roles.js";
import { listView } from "./scroll.js";
import { sketch } from "./sequence.js";
import { href } from "./state.js";

// Least width of a card, and the height of its caption, in pixels.
const SIZES = {
  small: { label: "Small", cell: 96, caption: 20 },
  medium: { label: "Medium", cell: 160, caption: 40 },
  large: { label: "Large", cell: 272, caption: 40 },
};
const GAP = 8;
const LARGEST = 1 << 19; // values or bytes of an image that a card draws from numbers
const SHAPE = 0.82; // height of a picture to its width

const sizeOf = ({ size }) => (Object.hasOwn(SIZES, size ?? "") ? size : "medium");

/** A card that stands alone: for records that are no list, such as a step. */
export function card(record, context) {
  const element = h("a.card.still", { href: href({ view: "record", id: record.id }), hook: "card", "data-id": record.id });
  const look = { ...SIZES.medium, picture: Math.round(SIZES.medium.cell * SHAPE), roles: context.roles(), boxes: true, pixels: context.pixels };
  element.style.setProperty("--picture", `${look.picture}px`);
  const item = parts(element);
  if (record.error) fail(item, record.error);
  else fill(item, record, look);
  return element;
}

function parts(element) {
  const item = { element, picture: h("div.card-picture"), text: h("div.card-text", { hook: "caption" }) };
  element.append(item.picture, item.text);
  return item;
}

function fail(item, message) {
  item.element.classList.add("failed");
  replace(item.picture, h("p.error.small", message));
}

function fill(item, record, look) {
  const { roles } = look;
  const [label, name] = [caption(record, roles.label, roles.labels), caption(record, roles.name, roles.labels)];
  replace(item.text,
    h("span.card-label", label || name),
    look.caption > 20 && h("span.card-name", label ? name : record.kind === "bytes" ? size(record.bytes) : ""),
    h("span.card-number", number(record.id)));
  attrs(item.element, {
    title: [`record ${number(record.id)}`, label, name, record.shard].filter(Boolean).join("\n"),
    label: [label, name, `record ${number(record.id)}`].filter(Boolean).join(", "),
  });
  const image = imageOf(record, roles);
  if (image?.url) {
    const picture = h("img", { alt: "", class: image.width <= 64 ? "tiny" : null, decoding: "async", draggable: "false", hook: "card-image" });
    picture.addEventListener("error", () => picture.isConnected && facts(item, record, look, "the browser cannot decode the image"));
    if (image.width && image.height) overlay(item, record, look, image);
    else picture.addEventListener("load", () => overlay(item, record, look, { width: picture.naturalWidth, height: picture.naturalHeight }));
    picture.src = image.url;
    item.picture.prepend(picture);
  } else if (look.pixels && drawable(record.features?.[roles.pixels?.feature])) {
    const canvas = h("canvas.pixels", { hook: "pixels" });
    item.picture.prepend(canvas);
    look.pixels(canvas, record, roles)
      .then((drawn) => (drawn ? overlay(item, record, look, canvas) : facts(item, record, look)))
      .catch((error) => aborted(error) || facts(item, record, look, error.message));
  } else {
    const frame = frameOf(record, roles, null);
    if (frame && overlay(item, record, look, frame)) item.picture.prepend(fit(h("div.blank"), frame, look));
    else facts(item, record, look, image?.problem);
  }
}

// Large ones are drawn on their own page only.
function drawable(feature) {
  return feature?.n > 0 && feature.n <= LARGEST && !(feature.bytes?.[0]?.bytes > LARGEST);
}

// The part of the picture that the image covers.
function fit(element, frame, { cell, picture }) {
  const scale = Math.min(cell / frame.width, picture / frame.height);
  const [width, height] = [frame.width * scale, frame.height * scale];
  Object.assign(element.style, { width: `${width}px`, height: `${height}px`, left: `${(cell - width) / 2}px`, top: `${(picture - height) / 2}px` });
  return element;
}

function overlay(item, record, look, frame) {
  if (!look.boxes || !frame.width || !frame.height) return false;
  const shapes = shapesOf(record, look.roles, frame);
  if (shapes.boxes.length + shapes.points.length === 0) return false;
  const canvas = fit(h("canvas.over", { "aria-hidden": "true", hook: "boxes" }), frame, look);
  item.picture.append(canvas);
  // A card that stands alone has no size before it is in the page.
  if (canvas.clientWidth) draw(canvas, shapes, { labels: look.cell > 100 ? "small" : false });
  else requestAnimationFrame(() => draw(canvas, shapes, { labels: "small" }));
  return true;
}

const nameOf = (name) => name.split("/").pop() || name;

// Lines of a name and a text of these lengths on a card: one, or several that the text begins anew.
function linesOf(cell, ...lengths) {
  const parts = lengths.map((n) => 7 * n / (cell - 12));
  return parts[0] + parts[1] < 1 ? 1 : Math.ceil(parts[0]) + Math.ceil(parts[1]);
}

// Without a picture: a curve, and the first features that have room.
function facts(item, record, { roles, cell, picture }, problem) {
  const drawn = problem ? null : sketch(record, roles);
  let room = Math.max(1, Math.floor((picture - 11 - (drawn ? 49 : 0)) / 17));
  const rows = [];
  const row = (name, text) => {
    const element = h("div.fact", h("span.muted", `${name} `), text);
    const tall = linesOf(cell, name.length, text.length);
    // A long text is cut at the end of the card; others are there as a whole or not.
    if (tall > room && (tall < 5 || room < 2)) return;
    if (tall > room) element.style.setProperty("--lines", room);
    room -= tall;
    rows.push(element);
  };
  const fact = (name, feature, names, more = "") => {
    if (room < 1) return;
    const texts = [8, 4, 3, 2, 1].map((n) => (featureText(feature, n, names) || "no values") + more);
    const lines = (text) => linesOf(cell, nameOf(name).length, text.length);
    row(nameOf(name), texts.find((text) => lines(text) === lines(texts[4])));
  };
  const [[context], [first]] = examplesOf(record);
  const all = Object.entries(record.features ?? context?.features ?? {}).filter(([name]) => name !== roles.label || !caption(record, roles.label));
  const short = ([, feature]) => feature.n > 0 && feature.n <= 8 && (kindOf(feature) !== "bytes" || feature.bytes.every((v) => typeof v === "string"));
  for (const [name, feature] of all.sort((a, b) => short(b) - short(a))) fact(name, feature, roles.labels?.[name]);
  for (const [name, found] of Object.entries(record.lists ?? {})) fact(name, found.first[0], null, ` · ${count(found.steps, "step")}`);
  for (const [name, feature] of Object.entries(first?.features ?? {})) fact(name, feature, null, ` · ${count(record.total, "Example")}`);
  if (!rows.length) row("", record.kind === "bytes" ? payloadText(record) : "no features");
  replace(item.picture, h("div.facts", problem && muted(problem), drawn, rows));
}

export function mount(root, context) {
  const blank = h("div.empty", { hook: "empty", hidden: true });
  const holder = h("div.grid");
  root.append(holder, blank);
  root.classList.add("list-view");
  let look = { ...SIZES.medium };
  let columns = 1;

  const list = listView(context, {
    holder, blank, list: () => context.list, label: "presentation",
    make(position, id) {
      const element = h("a", {
        class: "card", role: "option", id: `card-${position}`, tabindex: "-1", hook: "card", "data-id": id,
        "aria-posinset": position + 1, href: href({ view: "record", id }),
        onclick(event) {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          list.open(position);
        },
      });
      const item = parts(element);
      item.text.append(h("span.card-number", number(id)));
      return item;
    },
    fill: (item, record) => fill(item, record, look),
    fail,
    place({ element, position }, row) {
      element.style.transform = `translate(${(position % columns) * (look.cell + GAP) + GAP}px, ${row * (look.picture + look.caption + GAP) + GAP}px)`;
      element.ariaSetSize = context.list.more ? -1 : context.list.length;
    },
    mark(position) {
      if (list) attrs(view, { "aria-activedescendant": list.items.has(position) && `card-${position}` });
    },
  });
  const { view } = list.bar;
  attrs(view, { role: "listbox", tabindex: "0", label: "Records", hook: "grid" });

  const toggle = () => context.go({ boxes: look.boxes ? "off" : null }, { replace: true });
  const boxes = button("Boxes", toggle, null, { title: "Boxes (b)" });
  const sizes = Object.entries(SIZES).map(([name, { label }]) =>
    h("button", { type: "button", "data-size": name, onclick: () => context.go({ size: name === "medium" ? null : name }, { replace: true }) }, label));
  replace(context.tools, boxes, h("div.group", { role: "group", label: "Size of cards" }, sizes));

  function layout(at) {
    const width = view.clientWidth;
    if (!width) return;
    const form = SIZES[sizeOf(context.state())];
    columns = Math.max(1, Math.floor((width - GAP) / (form.cell + GAP)));
    const cell = Math.floor((width - GAP) / columns) - GAP;
    look = { ...look, ...form, cell, picture: Math.round(Math.min(cell, form.cell * 1.6) * SHAPE) };
    // Without pictures a card is as high as the features of the set need.
    const { image, pixels, boxes, sequence, label, name } = look.roles;
    if (!label && !name && context.dataset.kind !== "bytes") look.caption = 20;
    const lines = context.dataset.features.reduce((sum, f) => sum + linesOf(cell, nameOf(f.name).length, f.kind === "bytes" ? f.value?.length ?? 80 : 9), 0);
    if (!image && !pixels && !boxes && !sequence?.length) look.picture = Math.min(look.picture, 14 + 17 * Math.max(3, lines || 8));
    holder.classList.toggle("compact", look.caption <= 20);
    for (const part of ["cell", "picture", "caption"]) view.style.setProperty(`--${part}`, `${look[part]}px`);
    list.shape(columns, look.picture + look.caption + GAP, at);
  }

  let wide = 0;
  const watch = new ResizeObserver(() => {
    if (view.clientWidth === wide) return;
    wide = view.clientWidth;
    list.clear(); // boxes have another place
    layout();
  });
  watch.observe(view);

  const by = (step) => () => list.select(list.selected + step);
  return {
    title: "Grid",
    update(state) {
      Object.assign(look, { roles: context.roles(), boxes: state.boxes !== "off", pixels: context.pixels });
      boxes.ariaPressed = look.boxes;
      boxes.hidden = !look.roles.boxes && !look.roles.points;
      for (const button of sizes) button.ariaPressed = button.dataset.size === sizeOf(state);
      return list.update(state, JSON.stringify([state.size, state.roles, state.boxes, state.set]), featuresFor(context.dataset, look.roles), layout);
    },
    unmount() {
      watch.disconnect();
      list.destroy();
    },
    keys: {
      ...list.keys,
      j: by(1), k: by(-1), l: by(1), h: by(-1), ArrowRight: by(1), ArrowLeft: by(-1),
      ArrowDown: () => list.select(list.selected + columns), ArrowUp: () => list.select(list.selected - columns),
      Enter: () => list.open(), b: toggle,
    },
  };
}
