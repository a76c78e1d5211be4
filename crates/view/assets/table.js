// The table: chosen features as columns, with their distribution above.

import { follow as updates } from "./dataset.js";
import { aside, attrs, button, bytesText, h, hbox, kindOf, named, number, payloadText, replace, setText, timeOf, valuesOf } from "./dom.js";
import { condition } from "./find.js";
import { and, percent, sparkline } from "./histogram.js";
import { imageOf } from "./roles.js";
import { listView } from "./scroll.js";
import { href } from "./state.js";

const ROW = 30;
const MOST = 12; // columns by default

export function mount(root, context) {
  const { dataset } = context;
  const head = h("div.thead", { role: "row", "aria-rowindex": "1" });
  const holder = h("div.tbody");
  const wide = h("div.table-wide", { role: "presentation" }, head, holder);
  const table = h("div.table-scroll", { role: "grid", tabindex: "0", label: "Records", hook: "table" }, wide);
  const blank = h("div.empty", { hook: "empty", hidden: true });
  root.append(table, blank);
  root.classList.add("list-view");

  const known = dataset.features.filter((f) => !f.list);
  const kinds = new Map(known.map((f) => [f.name, f.kind]));
  let columns = [];
  let roles = {};
  let cell = 0; // 0 is the number of the record, 1 the first feature

  const list = listView(context, {
    holder, blank, list: () => context.list, label: "rowgroup",
    make: (position, id) => ({
      element: h("div.tr", { role: "row", "aria-rowindex": position + 2, "data-id": id },
        cellOf(position, 0, h("a", { href: href({ view: "record", id }), tabindex: "-1" }, number(id)), "number")),
    }),
    fill(item, record) {
      item.record = record;
      if (record.kind === "bytes") cells(item, [cellOf(item.position, 1, payloadText(record), "mono span")]);
      else cells(item, columns.map((name, i) => cellOf(item.position, i + 1, ...content(record, name))));
    },
    fail: (item, message) => cells(item, [cellOf(item.position, 1, message, "error span")]),
    place: ({ element }, row) => (element.style.transform = `translateY(${row * ROW}px)`),
    mark() {
      holder.querySelector(".hot")?.classList.remove("hot");
      const hot = list && document.getElementById(`cell-${list.selected}-${cell}`);
      hot?.classList.add("hot");
      attrs(table, { "aria-activedescendant": hot?.id });
    },
  });

  function cellOf(position, column, content, kind = "") {
    return h("div", { class: `td ${kind}`, role: "gridcell", id: `cell-${position}-${column}`, "aria-colindex": column + 1, "data-cell": column }, content);
  }

  function cells(item, found) {
    item.element.replaceChildren(item.element.firstChild, ...found);
  }

  function content(record, name) {
    const feature = record.features?.[name];
    const image = name === roles.image ? imageOf(record, roles) : null;
    if (image?.url) return [h("img", { src: image.url, alt: "", decoding: "async", onerror: (event) => event.target.remove() }), "picture"];
    if (!feature?.n) return [h("span.muted", feature ? "empty" : "–")];
    const kind = kindOf(feature);
    const values = valuesOf(feature).slice(0, 6).map((v) => (kind === "bytes" ? bytesText(v) : named(v, dataset.labels?.[name])));
    if (feature.n === 1) return [[timeOf(name, values[0]) ?? values[0]], kind === "bytes" ? "" : "number"];
    return [[values.join(", "), feature.n > values.length && h("span.muted", ` … ${number(feature.n)} values`)]];
  }

  function chosen({ cols }) {
    if (cols) return cols.split(",").map((name) => name.replaceAll("%2C", ",")).filter(Boolean);
    const { image, name, label } = roles;
    return [...new Set([image, name, label, ...kinds.keys()])].filter((name) => kinds.has(name)).slice(0, MOST);
  }

  function choose() {
    const boxes = known.map((f) => h("input", { type: "checkbox", value: f.name, checked: columns.includes(f.name) }));
    const filter = () => boxes.forEach((box) => (box.parentElement.hidden = !box.value.toLowerCase().includes(find.value.toLowerCase())));
    const find = h("input", { type: "search", label: "Filter the names", placeholder: "Filter the names", oninput: filter });
    context.dialog("Columns", (event) => {
      const names = boxes.filter((box) => box.checked).map((box) => box.value);
      const all = [...columns.filter((name) => names.includes(name)), ...names.filter((name) => !columns.includes(name))];
      context.go({ cols: event.submitter?.value === "default" ? null : all.map((name) => name.replaceAll(",", "%2C")).join(",") });
    },
    known.length > 12 && find,
    h("fieldset.several", h("legend.unseen", "Features"),
      boxes.map((box) => h("label.row", box, box.value, aside(kinds.get(box.value))))),
    hbox(h("button.primary", { value: "use" }, "Show these"), h("button", { value: "default" }, "Default")));
  }
  replace(context.tools, button("Columns", choose, "columns"));

  function heading() {
    const pixels = columns.map((name) => (name === roles.image ? 88 : { bytes: 190, int64: 164 }[kinds.get(name)] ?? 130));
    wide.style.setProperty("--columns", ["112px", ...pixels.map((width) => `minmax(${width}px, 1fr)`)].join(" "));
    wide.style.minWidth = `${pixels.reduce((a, b) => a + b, 112)}px`;
    table.ariaColCount = columns.length + 1;
    const th = (i, name, ...rest) => h("div.th", { role: "columnheader", "aria-colindex": i + 1 }, h("span.th-name", { title: name }, name), rest);
    replace(head, th(0, "record"), columns.map((name, i) => th(i + 1, name, h("span.muted", kinds.get(name)), h("div.spark"))));
  }

  // Statistics come in parts: each newer version is drawn above the columns.
  let followed = null;
  let stop = new AbortController();
  let statistics = null;
  function follow({ where, set }) {
    const name = JSON.stringify([where, set]);
    if (followed === name) return;
    followed = name;
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    statistics = null;
    updates("/api/stats", { where }, signal, (answer) => {
      statistics = answer.stats ?? statistics;
      summary();
    }, () => {});
  }

  function summary() {
    columns.forEach((name, i) => {
      const found = statistics?.features?.find((f) => f.name === name);
      const [, kind, line] = head.children[i + 1].children;
      replace(line, found && sparkline(found));
      if (!found) return;
      const share = found.present === statistics.records ? "all" : percent(found.present, statistics.records);
      setText(kind, [kinds.get(name), share].filter(Boolean).join(" · "));
      kind.title = `in ${number(found.present)} of ${number(statistics.records)} records`;
    });
  }

  function move(step, across = 0) {
    cell = Math.max(0, Math.min(columns.length, cell + across));
    list.select(list.selected + step, step !== 0);
    // A cell out of sight on a narrow screen.
    if (across) document.getElementById(`cell-${list.selected}-${cell}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // Enter on a value shows its rows.
  function enter() {
    const name = columns[cell - 1];
    const feature = list.items.get(list.selected)?.record?.features?.[name];
    const where = feature?.n ? condition(name, kindOf(feature), valuesOf(feature)[0], feature.n) : null;
    if (where) context.go({ where: and(context.state().where, where), seed: null, n: null, at: null, sel: null });
    else list.open();
  }

  list.layer.addEventListener("click", (event) => {
    const at = event.target.closest("[data-cell]");
    if (!at || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const position = [...list.items.values()].find((item) => item.element === at.parentElement)?.position;
    cell = Number(at.dataset.cell);
    if (event.target.closest("a")) {
      event.preventDefault();
      list.open(position);
    } else list.select(position, false);
  });
  list.layer.addEventListener("dblclick", () => list.open());

  return {
    title: "Table",
    update(state) {
      roles = context.roles();
      const before = columns.join();
      columns = chosen(state);
      if (columns.join() !== before || !head.firstChild) {
        heading();
        summary();
      }
      follow(state);
      table.ariaRowCount = context.list.more ? -1 : context.list.length + 1;
      const plain = columns.length && columns.every((name) => !/[,*]/.test(name));
      return list.update(state, JSON.stringify([columns, state.roles, state.set]), plain ? columns.join(",") : undefined, (at) => list.shape(1, ROW, at));
    },
    unmount() {
      stop.abort();
      list.destroy();
    },
    keys: {
      ...list.keys,
      j: () => move(1), k: () => move(-1), l: () => move(0, 1), h: () => move(0, -1),
      ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowRight: () => move(0, 1), ArrowLeft: () => move(0, -1), Enter: enter,
    },
  };
}
