// The page of one episode: films, curves, texts and flags under one cursor.

import { aborted, bytesUrl, get, values } from "./api.js";
import {
  aside, attrs, bytesText, count, debounce, featureText, float, h, hbox, muted, named, number, replace, setText, size, sorry, svg, vbox,
} from "./dom.js";
import { pager } from "./find.js";
import { COLUMNS, chart } from "./sequence.js";
import { href, note } from "./state.js";

const CELL = 96; // width of a picture in a film, in pixels
const LONGEST = 8_000_000; // width of a film in pixels: browsers end elements at 17 million. A longer one leaves out steps
const MOST = 1 << 20; // values that are fetched for one curve
const WIDEST = 32; // dimensions that are drawn

const missing = (img) => () => img.replaceWith(h("span.film-cell.muted.small", "no picture"));

// A picture of a step. It is requested when it is in the page.
function picture(id, value, step, props) {
  const img = h("img", { src: bytesUrl(id, value.feature, { value: step }), alt: `${value.name}, step ${step}`, draggable: "false", ...props });
  img.addEventListener("error", missing(img));
  return img;
}

// A row of pictures for each camera. Only those in view are in the page.
function film(id, cameras, steps, move) {
  const stride = Math.ceil((steps * CELL) / LONGEST);
  const columns = Math.ceil(steps / stride);
  const cells = new Map(); // column -> its pictures
  let current = 0;
  const rows = cameras.map((camera) => {
    const [width, height] = camera.picture;
    const row = h("div.film-row");
    row.style.height = `${Math.max(48, Math.min(128, width && height ? (CELL * height) / width : 72))}px`;
    row.style.width = `${columns * CELL}px`;
    return row;
  });
  const box = h("div.film", { tabindex: "0", role: "group", hook: "film", label: `Pictures of ${count(cameras.length, "camera")} by step` },
    cameras.map((camera, i) => [h("div.film-name.small", camera.name), rows[i]]));
  const place = (cell, c) => {
    cell.style.transform = `translateX(${c * CELL}px)`;
    cell.classList.toggle("current", c === current);
    return cell;
  };
  function fill() {
    const from = Math.max(0, Math.floor(box.scrollLeft / CELL) - 1);
    const to = Math.min(columns, Math.ceil((box.scrollLeft + box.clientWidth) / CELL) + 1);
    for (const [c, parts] of cells) {
      if (c >= from && c < to) continue;
      for (const part of parts) part.remove();
      cells.delete(c);
    }
    for (let c = from; c < to; c++) {
      if (cells.has(c)) continue;
      cells.set(c, rows.map((row, i) => {
        const cell = place(h("div.film-cell", { "data-step": c * stride }, picture(id, cameras[i], c * stride)), c);
        row.append(cell);
        return cell;
      }));
    }
  }
  const later = debounce(fill, 50); // Steps that only pass by are not requested.
  const at = (event) => move(Math.min(steps - 1, Math.max(0, Math.floor((event.clientX - box.getBoundingClientRect().left + box.scrollLeft) / CELL)) * stride));
  box.addEventListener("scroll", later);
  box.addEventListener("click", at);
  // Fingers scroll, a mouse drags the cursor.
  box.addEventListener("pointermove", (event) => event.pointerType === "mouse" && event.buttons === 1 && at(event));
  function reveal() {
    const x = current * CELL;
    if (x < box.scrollLeft || x + CELL > box.scrollLeft + box.clientWidth) box.scrollLeft = x - (box.clientWidth - CELL) / 2;
  }
  const watch = new ResizeObserver(() => {
    reveal();
    fill();
  });
  watch.observe(box);
  return {
    element: box,
    at(step) {
      for (const cell of cells.get(current) ?? []) cell.classList.remove("current");
      current = Math.floor(step / stride);
      for (const cell of cells.get(current) ?? []) cell.classList.add("current");
      reveal();
    },
    end() {
      watch.disconnect();
      later.cancel();
    },
  };
}

// The steps with a flag, as marks on the axis of the curves.
function marks(flag, steps) {
  const x = (step) => Math.max(0, Math.min(COLUMNS, steps > 1 ? (step / (steps - 1)) * COLUMNS : COLUMNS / 2));
  const cursor = svg("line.cursor", { y1: 0, y2: 10 });
  const set = flag.runs.reduce((sum, [from, to]) => sum + to - from, 0);
  const label = `${flag.name}: ${count(set, "step")}${flag.until < steps ? " or more" : ""}`;
  const element = h("div.chart.marks", h("div.scale.small.muted", { title: flag.name, "aria-hidden": "true" }, h("span", flag.name)),
    svg("svg", { viewBox: `0 0 ${COLUMNS} 10`, role: "img", hook: "marks", label },
      flag.runs.map(([from, to]) => {
        const left = Math.min(x(from - 0.5), COLUMNS - 4);
        return svg("rect.mark", { x: left, y: 1, height: 8, width: Math.max(4, x(to - 0.5) - left) });
      }), cursor));
  return {
    element,
    at(step) {
      attrs(cursor, { x1: x(step), x2: x(step) });
    },
  };
}

function curves(value, all, steps, names, move) {
  const { width } = value;
  const series = Array.from({ length: width }, (_, d) => Float64Array.from({ length: steps }, (_, step) => all[step * width + d]));
  return chart(value.name, series, steps, (share) => move(Math.round(share * (steps - 1))), (x) => (width === 1 ? named(x, names) : float(x)));
}

export function mount(root, context) {
  let shown = null; // the episode
  let step = 0;
  let parts = []; // what follows the cursor: { at(step) }
  let strip = null;
  let stop = new AbortController();
  let endGrowth = () => {};
  let fetched = new Map(); // feature -> promise of its values

  const title = h("h1", { hook: "episode" });
  const where = h("p.muted.small");
  const { previous, next, nth, turn, update: ends } = pager(context, "episode", { step: null });
  const toRecord = h("a.button", { hook: "to-record" }, "Record");
  const slider = h("input", { type: "range", class: "wide", min: 0, hook: "slider", label: "Step", oninput: () => move(Number(slider.value)) });
  const place = h("output.small.number", { hook: "place" });
  const jump = h("input", {
    inputmode: "numeric", size: "6", autocomplete: "off", hook: "goto-step", placeholder: "Step", label: "Go to step",
    oninput: () => jump.setCustomValidity(""),
  });
  const jumpForm = h("form.row", { onsubmit: goTo }, jump, h("button", "Go"));
  const body = h("div.column.episode");
  const rest = vbox();
  const steps = h("div.row.steps", slider, place, jumpForm);
  root.append(h("div.page.episode-view",
    h("div.row.spread", hbox(previous, title, next, nth),
      hbox(toRecord, context.copyCommand(() => context.command("get", String(Number(context.state().id ?? 0)))))),
    where, steps, body, rest));

  const number64 = (text) => Number(text.replaceAll(/[,_ ]/g, ""));

  // The address follows the cursor when it rests.
  const later = debounce(() => note({ step: step || null }), 200);

  function move(to) {
    if (!shown?.steps) return;
    step = Math.max(0, Math.min(shown.steps - 1, to));
    draw();
    later();
  }

  function goTo(event) {
    event.preventDefault();
    const to = number64(jump.value);
    if (jump.value.trim() === "" || !Number.isInteger(to) || to < 0 || to >= shown.steps) {
      jump.setCustomValidity(`Expected a number from 0 to ${number(shown.steps - 1)}, found ${jump.value || "nothing"}`);
      jump.reportValidity();
      return;
    }
    jump.value = "";
    move(to);
  }

  function draw() {
    slider.value = step;
    slider.ariaValueText = `${step} of ${shown.steps}`;
    setText(place, `step ${number(step)} of ${number(shown.steps)}`);
    for (const part of parts) part.at(step);
  }

  function numbersOf(value, signal) {
    if (value.n > MOST) return Promise.reject(new Error(`${number(value.n)} values are too many to show.`));
    if (!fetched.has(value.feature)) fetched.set(value.feature, values(shown.id, value.feature, signal, value.kind));
    return fetched.get(value.feature);
  }

  // A curve, or a line of text if the value is the same at all steps.
  function track(value, constants, signal) {
    const box = h("div.slot", muted("Reading …"));
    const figure = h("figure.track", { hook: "curve", "data-key": value.name },
      h("figcaption.row", h("strong", value.name), aside(value.type)),
      value.about && h("p.muted.small", { hook: "about" }, bytesText(value.about)), box);
    const names = context.dataset.labels?.[value.feature];
    const part = { at() {} };
    numbersOf(value, signal).then((all) => {
      const { width } = value;
      if (all.every((x, i) => Object.is(x, all[i % width])) && shown.steps > 1) {
        figure.remove();
        constants.parentElement.hidden = false;
        constants.append(h("dt", value.name), h("dd.mono", Array.from(all.slice(0, width), (x) => named(x, width === 1 ? names : undefined)).join(", ")));
        return;
      }
      const drawn = curves(value, all, shown.steps, names, move);
      replace(box, drawn.element);
      part.at = drawn.at;
      part.at(step);
    }).catch((error) => aborted(error) || replace(box, sorry(error)));
    return { figure, part };
  }

  function textAt(value, at) {
    if (at >= value.until) return "not listed";
    let [low, high] = [0, value.runs.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (value.runs[middle].from <= at) low = middle;
      else high = middle;
    }
    return bytesText(value.runs[low]?.text ?? "");
  }

  const flagAt = (flag, at) => flag.runs.some(([from, to]) => from <= at && at < to);

  function build(signal) {
    const { id, values: all } = shown;
    const of = (role) => all.filter((value) => value.role === role);
    const [cameras, texts, flags, numbers] = ["picture", "text", "flag", "numbers"].map(of);
    parts = [];
    strip?.end();
    strip = cameras.length ? film(id, cameras, shown.steps, move) : null;
    if (strip) parts.push(strip);

    const large = cameras.map((camera) => {
      const figure = h("figure");
      let at = -1;
      parts.push({ at(to) {
        if (at !== to) replace(figure, picture(id, camera, to, { class: "large", hook: "camera" }), h("figcaption.small.muted", camera.name));
        at = to;
      } });
      return figure;
    });
    const said = texts.map((value) => {
      const text = h("dd", { hook: "text" });
      parts.push({ at: (to) => setText(text, textAt(value, to)) });
      return [h("dt", value.name), text];
    });
    const chips = h("div.row", { hook: "flags" });
    if (flags.length) parts.push({ at: (to) => replace(chips, flags.filter((flag) => flagAt(flag, to)).map((flag) => h("span.chip", flag.name))) });
    const rows = flags.map((flag) => marks(flag, shown.steps));
    parts.push(...rows);

    const constants = h("dl.pairs.small");
    const same = h("section.column", { hidden: true, hook: "constants" }, h("h2", "The same at all steps"), constants);
    const narrow = numbers.filter((value) => value.width <= WIDEST);
    const tracks = narrow.map((value) => track(value, constants, signal));
    parts.push(...tracks.map(({ part }) => part));

    const left = all.filter((value) => value.role === "other" || (value.role === "numbers" && value.width > WIDEST));
    const own = Object.entries(shown.features);
    const problems = all.filter((value) => value.problem);
    replace(body,
      problems.length > 0 && h("div.note.error", { hook: "problems" }, problems.map((value) => h("p", `${value.name}: ${value.problem}`))),
      strip?.element, large.length > 0 && h("div.cameras", large),
      said.length > 0 && h("dl.pairs", said), flags.length > 0 && chips,
      rows.length > 0 && h("div.axis-marks", rows.map((row) => row.element)),
      tracks.map(({ figure }) => figure), same);
    replace(rest,
      left.length > 0 && h("section.column", h("h2", "Not drawn"), h("dl.pairs.small", left.map((value) => [h("dt", value.name), h("dd.muted", value.type)]))),
      own.length > 0 && h("section.column", h("h2", "Of the episode"), h("dl.pairs.small", own.map(([name, feature]) =>
        [h("dt", name), h("dd", featureText(feature, 8, context.dataset.labels?.[name]) || "no value")]))),
      shown.left_out > 0 && muted(`${count(shown.left_out, "more value")} not listed: see the record.`));
  }

  return {
    title: "Episode",
    async update(state) {
      later.cancel();
      endGrowth();
      endGrowth = context.list.onGrow(ends);
      ends();
      const id = Number(state.id ?? 0);
      if (shown?.id !== id) {
        stop.abort();
        stop = new AbortController();
        const { signal } = stop;
        shown = null;
        fetched = new Map();
        parts = [];
        try {
          shown = await get(`/api/episode/${encodeURIComponent(state.id ?? "0")}`, { set: context.set }, { signal });
        } catch (error) {
          if (aborted(error)) return;
          strip?.end();
          strip = null;
          replace(title, `Episode ${state.id ?? "0"}`);
          steps.hidden = true;
          replace(body);
          replace(rest);
          replace(where, h("span.error", { hook: "error" }, error.message), " ",
            h("a", { href: href({ view: "record", step: null }) }, "Show the record"));
          return;
        }
        replace(title, `Episode ${number(shown.id)}`);
        replace(where, [shown.shard, `record ${number(shown.record)} in it`, size(shown.bytes), count(shown.steps, "step")].filter(Boolean).join(" · "));
        toRecord.href = href({ view: "record", id: shown.id, step: null });
        steps.hidden = !shown.steps;
        slider.max = Math.max(0, shown.steps - 1);
        if (shown.steps) build(signal);
        else {
          replace(body, h("p.empty", { hook: "empty" }, "This episode has no steps."));
          replace(rest);
        }
      }
      if (!shown.steps) return;
      step = Math.max(0, Math.min(shown.steps - 1, Math.floor(Number(state.step)) || 0));
      draw();
    },
    unmount() {
      later.cancel();
      endGrowth();
      stop.abort();
      strip?.end();
    },
    keys: {
      j: () => turn(1), k: () => turn(-1), h: () => move(step - 1), l: () => move(step + 1), ArrowLeft: () => move(step - 1), ArrowRight: () => move(step + 1),
      PageUp: () => move(step - 10), PageDown: () => move(step + 10), Home: () => move(0), End: () => move(Infinity),
    },
  };
}
