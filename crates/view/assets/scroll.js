// A scroll bar of our own.
//
// Browsers end an element at some 17 to 33 million pixels: a data set of 10^9 records is longer. So nothing here is tall. The
// position is a number of rows with a fraction; a float has enough digits for each pixel of 10^12 rows. A drag is as coarse as
// the track is short; the wheel, a finger and the keys move by pixels and rows, wherever that is.

import { h } from "./dom.js";

const LINE = 40; // pixels of a wheel that counts lines
const THUMB = 28; // least height: a finger has to find it

/**
 * Makes `root` a viewport with a scroll bar.
 *
 * `label` names the bar; `onMove(top)` is called after each move, at most once a frame; `describe(row)` is the position in words.
 */
export function scroller(root, { label, onMove, describe }) {
  const view = h("div", { class: "scroll-view" });
  const thumb = h("div", { class: "scroll-thumb" });
  const bubble = h("div", { class: "scroll-bubble", hidden: true, "aria-hidden": "true" });
  const bar = h("div", {
    class: "scroll-bar", role: "scrollbar", tabindex: "0", "aria-label": label, "aria-orientation": "vertical",
    "aria-valuemin": "0", "data-test": "scrollbar",
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
    bar.setAttribute("aria-valuemax", String(Math.ceil(end()) * per));
    bar.setAttribute("aria-valuenow", String(row() * per));
    bar.setAttribute("aria-valuetext", describe(row()));
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
  const row = () => Math.ceil(top - 1e-6);
  const by = (pixels) => to(top + pixels / rowHeight);
  // A page keeps a part of a row that was cut, so that nothing is skipped unread.
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
    /** The first row that is not cut. */
    get row() {
      return row();
    },
    /** Rows that fit, with a fraction. */
    get visible() {
      return visible();
    },
    /** Changes the number of rows, their height in pixels, and the records of a row; `at` is the row to be put at the top. */
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
