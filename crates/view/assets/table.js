// The table: chosen features as columns, with their distribution above, over a list of any length.

import { aborted, get, PAGE } from "./api.js";
import { bytesText, debounce, float, h, kindOf, number, replace, setText, valuesOf } from "./dom.js";
import { both, condition } from "./find.js";
import { sparkline } from "./histogram.js";
import { imageOf } from "./roles.js";
import { scroller } from "./scroll.js";
import { href, note } from "./state.js";

const ROW = 30;
const MOST = 12; // columns by default

/** The view "table". */
export function mount(root, context) {
  const { dataset, records } = context;
  root.classList.add("table-view");
  const head = h("div", { class: "thead", role: "row", "aria-rowindex": "1" });
  const holder = h("div", { class: "tbody" });
  const wide = h("div", { class: "table-wide", role: "presentation" }, head, holder);
  const table = h("div", { class: "table-scroll", role: "grid", tabindex: "0", "aria-label": "Records", "aria-rowcount": "-1", "data-test": "table" }, wide);
  const blank = h("div", { class: "empty", "data-test": "empty", hidden: true });
  root.append(table, blank);

  let columns = [];
  let features;
  let roles = {};
  let shown = null;
  let current = null;
  let selected = 0;
  let cell = 0; // 0 is the number of the record, 1 the first feature
  let noted = "";
  let filled = null;
  let endGrowth = () => {};
  const rows = new Map(); // position -> { element, id, full }
  const loads = new Map();
  const list = () => context.list;

  const bar = scroller(holder, {
    label: "Position in the records",
    onMove: render,
    describe: (row) => (list().length ? `record ${number(list().at(Math.min(row, list().length - 1)))}` : "no records"),
  });
  const layer = h("div", { class: "layer", role: "rowgroup" });
  bar.view.append(layer);
  bar.bar.setAttribute("aria-controls", (bar.view.id = "rows"));

  const known = dataset.features.filter((f) => !f.list);
  const chooser = h("button", { type: "button", class: "quiet", "data-test": "columns", onclick: choose }, "Columns");
  replace(context.tools, chooser);

  function defaults() {
    const first = [roles.name, roles.label].filter(Boolean);
    // Long byte strings say little in a cell: images and such come last.
    const rest = known.map((f) => f.name).filter((name) => !first.includes(name) && name !== roles.image);
    return [...new Set([...(roles.image ? [roles.image] : []), ...first, ...rest])].filter((name) => known.some((f) => f.name === name)).slice(0, MOST);
  }

  function chosen(state) {
    if (!state.cols) return defaults();
    try {
      const found = JSON.parse(state.cols);
      return Array.isArray(found) ? found.filter((name) => typeof name === "string") : defaults();
    } catch {
      return state.cols.split(",").filter(Boolean); // typed by hand
    }
  }

  function choose() {
    const boxes = known.map((f) => h("input", { type: "checkbox", value: f.name, checked: columns.includes(f.name) }));
    const find = h("input", {
      type: "search", "aria-label": "Filter the names", placeholder: "Filter the names",
      oninput: () => boxes.forEach((box) => (box.parentElement.hidden = !box.value.toLowerCase().includes(find.value.toLowerCase()))),
    });
    const dialog = h("dialog", { "aria-labelledby": "columns-title" }, h("form", {
      method: "dialog", class: "column",
      onsubmit(event) {
        const names = boxes.filter((box) => box.checked).map((box) => box.value);
        const kept = columns.filter((name) => names.includes(name));
        const all = [...kept, ...names.filter((name) => !kept.includes(name))];
        // A name may hold a comma: then the list is JSON.
        const text = all.some((name) => name.includes(",") || name.startsWith("[")) ? JSON.stringify(all) : all.join(",");
        context.go({ cols: event.submitter?.value === "default" || all.length === 0 ? null : text });
      },
    },
    h("h2", { id: "columns-title" }, "Columns"), known.length > 12 ? find : null,
    h("fieldset", { class: "several tall" }, h("legend", { class: "unseen" }, "Features"), boxes.map((box, i) => h("label", { class: "row" }, box, box.value, h("span", { class: "muted small" }, known[i].kind)))),
    h("div", { class: "row" }, h("button", { class: "primary", value: "use" }, "Show these"), h("button", { value: "default" }, "Default"),
      h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"))));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  const kindOfColumn = (name) => dataset.features.find((f) => f.name === name)?.kind ?? null;

  function heading() {
    const pixels = [104, ...columns.map((name) => (name === roles.image ? 96 : kindOfColumn(name) === "bytes" ? 200 : 140))];
    const tracks = pixels.map((width, i) => (i === 0 ? `${width}px` : `minmax(${width}px, 1fr)`)).join(" ");
    wide.style.setProperty("--columns", tracks);
    wide.style.minWidth = `${pixels.reduce((a, b) => a + b, 14)}px`;
    table.setAttribute("aria-colcount", String(columns.length + 1));
    replace(head, h("div", { class: "th", role: "columnheader", "aria-colindex": "1" }, h("span", { class: "th-name" }, "record")),
      columns.map((name, i) => h("div", { class: "th", role: "columnheader", "aria-colindex": i + 2, "data-column": name, title: name },
        h("span", { class: "th-name" }, name), h("span", { class: "th-kind muted" }, kindOfColumn(name) ?? ""), h("div", { class: "spark" }))));
  }

  // Statistics come in parts: each newer version is drawn above the columns.
  let statistics = null;
  let counted = null;
  function follow(state) {
    const name = JSON.stringify([state.where ?? "", state.set ?? "0"]);
    if (statistics?.name === name) return drawStatistics();
    statistics?.stop.abort();
    const stop = new AbortController();
    statistics = { name, stop };
    counted = null;
    (async () => {
      let after;
      for (;;) {
        const answer = await get("/api/stats", { where: state.where, after }, { signal: stop.signal });
        if (answer.stats) counted = answer.stats;
        after = answer.version;
        drawStatistics();
        if (answer.done || answer.error) return;
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
    })().catch(() => {}); // The table is of use without its sparklines; the page Data set shows the error.
  }

  function drawStatistics() {
    for (const element of head.querySelectorAll("[data-column]")) {
      const found = counted?.features?.find((f) => f.name === element.dataset.column);
      const total = counted?.records ?? 0;
      const line = element.querySelector(".spark");
      if (!found) {
        replace(line);
        continue;
      }
      const present = found.records ?? found.present ?? total;
      const share = total ? present / total : 0;
      setText(element.querySelector(".th-kind"), `${kindOfColumn(element.dataset.column) ?? ""} · ${share >= 1 ? "all" : `${float(Math.floor(share * 1000) / 10)} %`}`);
      element.title = `${element.dataset.column}\nin ${number(present)} of ${number(total)} records`;
      replace(line, sparkline(found));
    }
  }

  function layout(at) {
    table.setAttribute("aria-rowcount", String(list().more ? -1 : list().length + 1));
    bar.set(list().length, ROW, 1, at);
  }

  function render(top) {
    const base = Math.floor(top);
    const to = Math.min(list().length, Math.floor(top + bar.visible) + 1);
    for (const [position, row] of rows) {
      if (position >= base && position < to) continue;
      row.element.querySelector("img")?.removeAttribute("src");
      row.element.remove();
      rows.delete(position);
    }
    layer.style.transform = `translateY(${-(top - base) * ROW}px)`;
    for (let i = base; i < to; i += 1) {
      let row = rows.get(i);
      if (!row) {
        const id = list().at(i);
        row = { id, full: false, element: h("div", { class: "tr", role: "row", "aria-rowindex": i + 2, "data-id": id }, cellOf(i, 0, h("a", { href: href({ view: "record", id }), tabindex: "-1", onclick: (event) => plain(event) && open(i) }, number(id)), "number")) };
        rows.set(i, row);
        layer.append(row.element);
      }
      row.element.style.transform = `translateY(${(i - base) * ROW}px)`;
    }
    mark();
    load(base, to);
    remember();
  }

  function plain(event) {
    const yes = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (yes) event.preventDefault();
    return yes;
  }

  function cellOf(position, column, content, kind = "") {
    return h("div", { class: `td ${kind}`, role: "gridcell", id: `cell-${position}-${column}`, "aria-colindex": column + 1, "data-position": position, "data-cell": column }, content);
  }

  function load(from, to) {
    const wanted = new Set();
    for (let i = from; i < to; i += 1) {
      const row = rows.get(i);
      if (!row || row.full) continue;
      const record = records.peek(row.id, features);
      if (record) fill(i, row, record);
      else wanted.add(Math.floor(i / PAGE));
    }
    for (const [page, stop] of loads) {
      if ((page + 1) * PAGE <= from || page * PAGE >= to) {
        stop.abort();
        loads.delete(page);
      }
    }
    if (wanted.size === 0) {
      ask.cancel();
      if (to > from || !list().more) filled?.();
    } else if (filled) request([...wanted]);
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
      const each = (f) => {
        if (name === shown) for (const [i, row] of rows) if (Math.floor(i / PAGE) === page && !row.full) f(i, row);
      };
      records.get(ids, { signal: stop.signal, features })
        .then((found) => each((i, row) => fill(i, row, found[i - page * PAGE] ?? { id: row.id, error: "no such record" })))
        .catch((error) => aborted(error) || each((i, row) => replaceCells(row, [cellOf(i, 1, error.message, "error")])))
        .finally(() => {
          if (loads.get(page) === stop) loads.delete(page);
          filled?.();
        });
    }
  }

  function replaceCells(row, cells) {
    while (row.element.children.length > 1) row.element.lastChild.remove();
    row.element.append(...cells);
  }

  function fill(position, row, record) {
    row.full = true;
    row.record = record;
    if (record.error) {
      replaceCells(row, [cellOf(position, 1, record.error, "error span")]);
    } else if (record.kind === "bytes") {
      replaceCells(row, [cellOf(position, 1, record.payload === undefined ? "" : bytesText(record.payload), "mono span")]);
    } else {
      replaceCells(row, columns.map((name, i) => {
        const feature = record.features?.[name];
        const kind = kindOf(feature);
        if (name === roles.image) {
          const image = imageOf(record, roles);
          if (image?.url) return cellOf(position, i + 1, h("img", { src: image.url, alt: "", decoding: "async", class: "thumb", onerror: (event) => event.target.remove() }), "picture");
        }
        const text = textOf(feature);
        return cellOf(position, i + 1, text, kind === "bytes" || feature?.n !== 1 ? "" : "number");
      }));
    }
    mark();
  }

  function textOf(feature) {
    if (!feature || feature.n === 0) return h("span", { class: "muted" }, feature ? "empty" : "–");
    const values = valuesOf(feature).slice(0, 6).map((v) => (kindOf(feature) === "bytes" ? bytesText(v) : kindOf(feature) === "float" ? float(v) : String(v)));
    return feature.n === 1 ? values[0] : [values.join(", "), feature.n > values.length ? h("span", { class: "muted" }, ` … ${number(feature.n)} values`) : null];
  }

  function mark() {
    const length = list().length;
    selected = Math.max(0, Math.min(selected, length - 1));
    cell = Math.max(0, Math.min(cell, columns.length));
    layer.querySelectorAll(".hot").forEach((element) => element.classList.remove("hot"));
    for (const [position, row] of rows) {
      row.element.classList.toggle("selected", position === selected);
      row.element.setAttribute("aria-selected", String(position === selected));
    }
    const hot = document.getElementById(`cell-${selected}-${cell}`);
    hot?.classList.add("hot");
    if (hot) table.setAttribute("aria-activedescendant", hot.id);
    else table.removeAttribute("aria-activedescendant");
  }

  const remember = debounce(() => {
    if (String(bar.row) === (noted || "0")) return;
    noted = bar.row ? String(bar.row) : "";
    note({ at: noted, sel: selected === bar.row ? null : selected });
  }, 200);

  function move(step, across = 0) {
    selected = Math.max(0, Math.min(list().length - 1, selected + step));
    cell = Math.max(0, Math.min(columns.length, cell + across));
    if (step) bar.reveal(selected);
    mark();
    // A cell out of sight on a narrow screen.
    if (across) document.getElementById(`cell-${selected}-${cell}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    note({ sel: selected === Number(noted || 0) ? null : selected });
  }

  function open(position) {
    remember.cancel();
    note({ at: bar.row || null, sel: position === bar.row ? null : position });
    context.go({ view: "record", id: list().at(position), tab: null });
  }

  // Enter on a value shows its rows.
  function enter() {
    const row = rows.get(selected);
    if (!row) return;
    const name = columns[cell - 1];
    const feature = cell > 0 ? row.record?.features?.[name] : null;
    if (!feature) {
      open(selected);
      return;
    }
    const where = feature.n === 0 ? null : condition(name, kindOf(feature), valuesOf(feature)[0], feature.n);
    if (where) context.go({ where: both(context.state().where, where), seed: null, at: null, sel: null });
    else open(selected);
  }

  layer.addEventListener("click", (event) => {
    const at = event.target.closest("[data-cell]");
    if (!at || event.defaultPrevented) return;
    [selected, cell] = [Number(at.dataset.position), Number(at.dataset.cell)];
    mark();
  });
  layer.addEventListener("dblclick", (event) => {
    const at = event.target.closest("[data-cell]");
    if (at) open(Number(at.dataset.position));
  });

  function clear() {
    for (const row of rows.values()) row.element.remove();
    rows.clear();
    for (const load of loads.values()) load.abort();
    loads.clear();
    ask.cancel();
  }

  function empty() {
    const none = list().length === 0 && !list().more;
    blank.hidden = !none;
    table.hidden = none;
    if (!none) return;
    const { where } = context.state();
    replace(blank, h("p", null, context.searchError?.() ? "The condition can not be searched for: correct it in the box above." : where ? "No record meets the condition." : "There are no records here."),
      where ? h("a", { class: "button", href: href({ where: null, at: null, sel: null }) }, "Show all records") : null);
    filled?.();
  }

  return {
    title: "Table",
    update(state) {
      roles = context.roles();
      columns = chosen(state);
      features = columns.length && columns.every((name) => !/[,*]/.test(name)) ? columns.join(",") : undefined;
      const next = JSON.stringify([columns, state.roles, state.set]);
      const changed = next !== shown || current !== list();
      if (changed) clear();
      if (current !== list()) {
        endGrowth();
        endGrowth = list().onGrow(() => {
          empty();
          layout();
        });
      }
      if (next !== shown) heading();
      const moved = (state.at ?? "") !== noted;
      [shown, current] = [next, list()];
      let done = Promise.resolve();
      if (changed) done = new Promise((resolve) => (filled = () => { filled = null; resolve(); }));
      empty();
      if (changed || moved) {
        noted = state.at ?? "";
        const at = Math.max(0, Math.floor(Number(state.at) || 0));
        selected = Math.floor(Number(state.sel ?? at)) || 0;
        layout(at);
      }
      follow(state);
      return done;
    },
    unmount() {
      statistics?.stop.abort();
      endGrowth();
      clear();
      remember.cancel();
      bar.destroy();
      replace(context.tools);
    },
    focus: () => table.focus(),
    go: (position) => context.go({ at: position || null, sel: null }),
    keys: {
      j: () => move(1), k: () => move(-1), l: () => move(0, 1), h: () => move(0, -1),
      ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowRight: () => move(0, 1), ArrowLeft: () => move(0, -1),
      PageDown: () => move(Math.max(1, Math.floor(bar.visible))), PageUp: () => move(-Math.max(1, Math.floor(bar.visible))),
      Home: () => move(-list().length), End: () => move(list().length), Enter: enter,
    },
  };
}
