// A scroll bar of our own: browsers end an element at 17 to 33 million pixels, and 10^9 records are longer. The position is
// a number of rows with a fraction.

import { aborted, PAGE } from "./api.js";
import { attrs, button, debounce, h, number, replace } from "./dom.js";
import { href, note } from "./state.js";

const LINE = 40; // pixels of a wheel that counts lines
const THUMB = 28; // least height: a finger has to find it

/**
 * Makes `root` a viewport with a scroll bar. `label` names the bar; `onMove(top)` is called after each move, at most once a frame;
 * `describe(row)` is the position in words.
 */
export function scroller(root, { label, onMove, describe }) {
  const view = h("div.scroll-view");
  const thumb = h("div.scroll-thumb");
  const bubble = h("div.scroll-bubble", { hidden: true, "aria-hidden": "true" });
  const bar = h("div", {
    class: "scroll-bar", role: "scrollbar", tabindex: "0", label, "aria-orientation": "vertical",
    "aria-valuemin": "0", hook: "scrollbar",
  }, thumb, bubble);
  root.classList.add("scroll");
  root.append(view, bar);

  let rows = 0;
  let rowHeight = 1;
  let per = 1;
  let height = 0;
  let top = 0;
  let frame = 0;

  const visible = () => height / rowHeight;
  const end = () => Math.max(0, rows - visible());
  const travel = () => Math.max(1, height - thumbHeight());
  const thumbHeight = () => Math.min(height, Math.max(THUMB, (height * visible()) / Math.max(rows, visible())));

  function paint() {
    frame = 0;
    const share = end() > 0 ? top / end() : 0;
    thumb.style.height = `${thumbHeight()}px`;
    thumb.style.transform = `translateY(${share * travel()}px)`;
    bar.classList.toggle("idle", end() === 0);
    attrs(bar, { "aria-valuemax": Math.ceil(end()) * per, "aria-valuenow": row() * per, "aria-valuetext": describe(row()) });
    if (!bubble.hidden) {
      bubble.textContent = describe(row());
      bubble.style.transform = `translateY(${share * travel() + thumbHeight() / 2 - 14}px)`;
    }
    onMove(top);
  }

  function later() {
    if (!frame) frame = requestAnimationFrame(paint);
  }

  function to(row) {
    const next = Math.min(end(), Math.max(0, row));
    if (next === top) return false;
    top = next;
    later();
    return true;
  }

  // The first row that is not cut.
  const row = () => Math.max(0, Math.ceil(top - 1e-6));
  const by = (pixels) => to(top + pixels / rowHeight);
  // A page keeps a row that was cut.
  const page = (sign) => to(top + sign * Math.max(1, Math.floor(visible())));

  view.addEventListener("wheel", (event) => {
    if (event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return; // zoom, or a wide table
    glide.stop();
    const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? height : 1;
    if (by(event.deltaY * unit)) event.preventDefault();
  }, { passive: false });

  // A finger: the page follows it, and glides on for a moment.
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const glide = {
    frame: 0,
    stop() {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
    },
    start(speed) {
      this.stop();
      if (still.matches) return;
      let last = performance.now();
      const tick = (now) => {
        const passed = now - last;
        last = now;
        const moved = by(speed * passed);
        speed *= Math.exp(-passed / 325);
        this.frame = moved && Math.abs(speed) > 0.02 ? requestAnimationFrame(tick) : 0;
      };
      this.frame = requestAnimationFrame(tick);
    },
  };
  let finger = null;
  view.addEventListener("pointerdown", (event) => {
    glide.stop();
    if (event.pointerType === "touch" && event.isPrimary) finger = { y: event.clientY, at: event.timeStamp, speed: 0, moved: false };
  });
  view.addEventListener("pointermove", (event) => {
    if (!finger || !event.isPrimary || event.pointerType !== "touch") return;
    const step = finger.y - event.clientY;
    if (!finger.moved && Math.abs(step) < 8) return;
    if (!finger.moved) view.setPointerCapture(event.pointerId);
    finger.speed = step / Math.max(1, event.timeStamp - finger.at);
    finger = { ...finger, y: event.clientY, at: event.timeStamp, moved: true };
    by(step);
  });
  const lift = (event) => {
    if (!finger || event.pointerType !== "touch") return;
    if (finger.moved && event.type === "pointerup" && event.timeStamp - finger.at < 80) glide.start(finger.speed);
    finger = null;
  };
  view.addEventListener("pointerup", lift);
  view.addEventListener("pointercancel", lift);

  // The thumb is dragged; a click beside it is a page.
  let drag = null;
  bar.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || end() === 0) return;
    event.preventDefault();
    bar.focus();
    glide.stop();
    const y = event.clientY - bar.getBoundingClientRect().top;
    const at = (top / end()) * travel();
    if (y < at || y > at + thumbHeight()) {
      page(y < at ? -1 : 1);
      return;
    }
    drag = { grip: y - at };
    bar.setPointerCapture(event.pointerId);
    bar.classList.add("dragged");
    bubble.hidden = false;
    later();
  });
  bar.addEventListener("pointermove", (event) => {
    if (drag) to(((event.clientY - bar.getBoundingClientRect().top - drag.grip) / travel()) * end());
  });
  const drop = () => {
    drag = null;
    bubble.hidden = true;
    bar.classList.remove("dragged");
  };
  bar.addEventListener("pointerup", drop);
  bar.addEventListener("pointercancel", drop);
  bar.addEventListener("wheel", (event) => {
    if (by(event.deltaY)) event.preventDefault();
  }, { passive: false });
  bar.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = {
      ArrowDown: () => to(Math.floor(top) + 1), ArrowUp: () => to(Math.ceil(top) - 1),
      PageDown: () => page(1), PageUp: () => page(-1), " ": () => page(event.shiftKey ? -1 : 1), Home: () => to(0), End: () => to(end()),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  });

  function measure() {
    height = view.clientHeight;
    top = Math.min(top, end());
    later();
  }
  const watch = new ResizeObserver(measure);
  watch.observe(view);

  return {
    view,
    bar,
    get top() {
      return top;
    },
    get row() {
      return row();
    },
    /** Rows that fit, with a fraction. */
    get visible() {
      return visible();
    },
    /** Changes the number of rows, their height, and the records of a row; `at` is the row at the top. */
    set(count, tall, records, at = top) {
      rows = count;
      rowHeight = tall;
      per = records;
      height = view.clientHeight;
      top = Math.min(end(), Math.max(0, at));
      later();
    },
    to,
    page,
    /** Moves as little as needed to show all of a row. */
    reveal(wanted) {
      if (wanted < top) to(wanted);
      else if (wanted + 1 > top + visible()) to(wanted + 1 - Math.max(1, visible()));
    },
    destroy() {
      watch.disconnect();
      glide.stop();
      cancelAnimationFrame(frame);
    },
  };
}

/** The part that grid and table share: src/assets.rs describes its hooks. */
export function listView(context, { holder, blank, list, label, make, fill, fail, place, mark }) {
  const items = new Map(); // by position
  const loads = new Map(); // page -> AbortController
  let [columns, tall, features] = [1, 1, undefined];
  let [current, look, noted] = [null, null, ""];
  let selected = 0;
  let wanted = null; // { at, sel } of the address that the list has not reached yet
  let filled = null; // called once the first items have content
  let endGrowth = () => {};

  const bar = scroller(holder, {
    label: "Position in the records",
    onMove: render,
    describe: (row) => (list().length ? `record ${number(list().at(Math.min(row * columns, list().length - 1)))}` : "no records"),
  });
  const layer = h("div.layer", { role: label });
  bar.view.append(layer);
  attrs(bar.bar, { "aria-controls": (bar.view.id = "records") });
  const within = (position) => Math.max(0, Math.min(list().length - 1, position));
  const top = () => bar.row * columns;

  function render() {
    const base = Math.floor(bar.top);
    const [from, to] = [base * columns, Math.min(list().length, (Math.floor(bar.top + bar.visible) + 1) * columns)];
    for (const [position, item] of items) if (position < from || position >= to) drop(position, item);
    layer.style.transform = `translateY(${(base - bar.top) * tall}px)`;
    for (let i = from; i < to; i++) {
      let item = items.get(i);
      if (!item) {
        item = { ...make(i, list().at(i)), id: list().at(i), position: i, full: false };
        items.set(i, item);
        layer.append(item.element);
      }
      place(item, Math.floor(i / columns) - base);
    }
    marked();
    load(from, to);
    remember();
  }

  function drop(position, item) {
    item.element.querySelector("img")?.removeAttribute("src"); // ends its download
    item.element.remove();
    items.delete(position);
  }

  function clear() {
    for (const [position, item] of items) drop(position, item);
    for (const stop of loads.values()) stop.abort();
    loads.clear();
    ask.cancel();
  }

  function load(from, to) {
    const wanted = new Set();
    for (let i = from; i < to; i++) {
      const item = items.get(i);
      if (item.full) continue;
      const record = context.records.peek(item.id, features);
      if (record) finish(item, record);
      else wanted.add(Math.floor(i / PAGE));
    }
    for (const [page, stop] of loads) {
      if ((page + 1) * PAGE > from && page * PAGE < to) continue;
      stop.abort();
      loads.delete(page);
    }
    ask.cancel();
    if (wanted.size === 0) {
      if (to > from) filled?.();
    } else if (filled) request(wanted);
    else ask(wanted);
  }

  function finish(item, record) {
    item.full = true;
    if (record.error) fail(item, record.error, record);
    else fill(item, record);
  }

  function request(pages) {
    for (const page of pages) {
      if (loads.has(page)) continue;
      const stop = new AbortController();
      loads.set(page, stop);
      const ids = [];
      for (let i = page * PAGE; i < Math.min(list().length, (page + 1) * PAGE); i++) ids.push(list().at(i));
      const each = (f) => {
        for (const item of items.values()) if (Math.floor(item.position / PAGE) === page && !item.full) f(item);
        marked();
        filled?.();
      };
      context.records.get(ids, { signal: stop.signal, features })
        .then((found) => stop.signal.aborted || each((item) => {
          const at = item.position - page * PAGE;
          if (at < found.length) finish(item, found[at] ?? { error: "no such record" });
          else ask([page]); // the list has grown since
        }))
        .catch((error) => aborted(error) || each((item) => fail(item, error.message)))
        .finally(() => loads.get(page) === stop && loads.delete(page));
    }
  }
  const ask = debounce(request, 50);

  // After a move: the next key starts at what is seen.
  const remember = debounce(() => {
    if (!document.body.dataset.ready) return;
    const row = Math.floor(selected / columns);
    if (row + 1 <= bar.top || row >= bar.top + bar.visible) {
      selected = within(top());
      marked();
    }
    keep();
  }, 200);

  function keep() {
    if (wanted) return;
    noted = top() ? String(top()) : "";
    const sel = selected === top() ? "" : String(selected);
    const state = context.state();
    if (noted !== (state.at ?? "") || sel !== (state.sel ?? "")) note({ at: noted, sel });
  }

  function marked() {
    selected = within(selected);
    for (const item of items.values()) {
      item.element.classList.toggle("selected", item.position === selected);
      item.element.ariaSelected = item.position === selected;
    }
    mark(selected);
  }

  function select(position, show = true) {
    selected = within(position);
    if (show) bar.reveal(Math.floor(selected / columns));
    marked();
    remember(); // and not at once: browsers count the changes of an address while a key is held
  }

  function open(position = selected) {
    if (position >= list().length) return;
    remember.cancel();
    selected = position;
    keep();
    context.go({ view: "record", id: list().at(position), tab: null });
  }

  function grown() {
    empty();
    if (bar.top > 0) wanted = null;
    const reached = wanted && (list().length > wanted.at || !list().more) ? wanted : null;
    if (reached) [wanted, selected] = [null, reached.sel];
    bar.set(Math.ceil(list().length / columns), tall, columns, reached ? Math.floor(reached.at / columns) : undefined);
  }

  function empty() {
    const none = list().length === 0 && !list().more;
    blank.hidden = !none;
    blank.parentElement.classList.toggle("none", none);
    if (!none) return;
    const { where } = context.state();
    const wrong = context.searchError();
    const [what, more] = wrong?.status === 400 ? ["This condition cannot be searched for.", "Correct it in the box above."]
      : wrong ? ["The search failed.", "The reason is above."]
      : where ? ["No record meets the condition.",
        ["Names and values are listed on the page Data set. ", button("How conditions are written", context.help, null, { class: "link" })]]
      : ["There are no records here.", context.dataset.records ? "Choose other records above."
        : "The files are read, and hold none. Check the paths that tfseek view was given."];
    replace(blank, h("p", what), h("p.muted", more), where && h("p.row", ...[["Show all records"], ["Data set", "data"]].map(([text, view]) =>
      h("a.button", { href: href({ where: null, at: null, sel: null, ...(view && { view }) }) }, text))));
    filled?.();
  }

  function turn(sign) {
    const step = sign * Math.max(1, Math.floor(bar.visible));
    bar.to(bar.top + step);
    select(selected + step * columns);
  }

  return {
    bar, items, layer, clear, open, select,
    get selected() {
      return selected;
    },
    /** Changes the columns and the height of a row; `at` is the position at the top. */
    shape(records, height, at = top()) {
      [columns, tall] = [records, height];
      bar.set(Math.ceil(list().length / columns), tall, columns, Math.floor(at / columns));
    },
    /** Updates the list. `name` is a text of all that items depend on; `names` the features that they show. */
    update(state, name, names, shape) {
      const changed = name !== look || current !== list();
      const moved = (state.at ?? "") !== noted;
      let done = Promise.resolve();
      if (changed) {
        clear();
        endGrowth();
        endGrowth = list().onGrow(grown);
        [look, current, features] = [name, list(), names];
        done = new Promise((resolve) => {
          filled = () => {
            filled = null;
            resolve();
          };
        });
      }
      empty();
      if (changed || moved) {
        noted = state.at ?? "";
        const at = Math.max(0, Math.floor(Number(noted) || 0));
        selected = Math.floor(Number(state.sel ?? at)) || 0;
        wanted = list().more && at >= list().length && at > 0 ? { at, sel: selected } : null;
        shape(at);
        if (selected < list().length) bar.reveal(Math.floor(selected / columns));
      }
      marked();
      return done;
    },
    destroy() {
      endGrowth();
      clear();
      remember.cancel();
      bar.destroy();
      replace(context.tools);
    },
    keys: { PageDown: () => turn(1), PageUp: () => turn(-1), Home: () => select(0), End: () => select(list().length - 1) },
  };
}
