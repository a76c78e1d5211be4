// The view "step": the records of one step of an epoch, in the order of the batch.

import { button, count, field, h, number, problem, replace, sorry, vbox } from "./dom.js";
import { aborted, address, get } from "./api.js";
import { card } from "./grid.js";
import { href, state } from "./state.js";

const SHOWN = 256; // cards at first

// Of the form: key in the address and in the request, label, value without an entry (the first of a choice), smallest number.
const FIELDS = [
  ["step", "Step", 0, 0],
  ["epoch", "Epoch", 0, 0],
  ["seed", "Seed", 0, 0],
  ["batch", "Global batch size", 32, 1],
  ["rank", "Rank", 0, 0],
  ["world", "World size", 1, 1],
  ["shuffle", "Shuffle", ["global", "block", "none"]],
  ["last", "Last batch", ["", "short", "pad", "drop", "continuous"]],
];
const usual = (value) => (Array.isArray(value) ? value[0] : value);

// A picture as it is fed, or why there is none.
function fed(path, params, signal) {
  const why = (error) => aborted(error) || picture.replaceWith(sorry(error));
  const onerror = () => get(path, params, { signal }).catch(why);
  const picture = h("img.fed", { hook: "fed", alt: `${params.name} as it is fed`, src: address(path, params), onerror });
  return picture;
}

export function mount(root, context) {
  let asked = null;
  let request = new AbortController();
  const controls = FIELDS.map(([key, , value, min]) => (Array.isArray(value)
    ? h("select", { name: key, hook: `step-${key}`, onchange: () => apply() }, value.map((v) => h("option", { value: v }, v || "by world size")))
    : h("input", { type: "number", min, step: 1, required: true, name: key, hook: `step-${key}` })));
  function apply() {
    const changes = {};
    FIELDS.forEach(([key, , value], i) => { changes[key] = controls[i].value === String(usual(value)) ? null : controls[i].value; });
    context.go(changes);
  }
  const turn = (control, by) => () => !control().disabled && context.go({ step: Number(state.step ?? 0) + by || null });
  const previous = button("Previous step", turn(() => previous, -1), "previous", { title: "Previous step ([)", disabled: true });
  const next = button("Next step", turn(() => next, 1), "next", { title: "Next step (])", disabled: true });
  let command = "";
  const copy = context.copyCommand(() => command, { hidden: true });
  const what = h("p", { role: "status" });
  const box = vbox();
  replace(root, h("div.page.step-view", h("h1.unseen", "Training step"),
    h("form.panel.row", { onsubmit: (e) => { e.preventDefault(); apply(); } }, FIELDS.map(([, label], i) => field(label, controls[i])),
      h("button", { type: "submit", class: "primary" }, "Show"), previous, next, copy),
    what, box));

  async function load(now) {
    const params = Object.fromEntries(FIELDS.map(([key, , value]) => [key, now[key] ?? usual(value)]));
    const wanted = JSON.stringify([params, now.roles]);
    if (wanted === asked) return;
    asked = wanted;
    FIELDS.forEach(([key], i) => { controls[i].value = params[key]; });
    request.abort();
    request = new AbortController();
    const { signal } = request;
    if (!context.dataset.records) return replace(box, h("p.empty", { hook: "empty" }, "There are no records, and no steps."));
    try {
      const { ids, draws, padding = [], steps, command: line } = await get("/api/step", params, { signal });
      const cards = async (from, to) => (await context.records.get(ids.slice(from, to), { signal })).map((record, i) => {
        const element = card(record ?? { id: ids[from + i], error: "no such record" }, context);
        // The record page goes through all records, not through a sample of this seed.
        element.href = href({ view: "record", id: ids[from + i], ...Object.fromEntries(FIELDS.map(([key]) => [key, null])) });
        const pictures = context.dataset.fed.map((name) => fed(`/api/fed/${ids[from + i]}`, { draw: draws[from + i], name }, signal));
        return h("li", { class: padding[from + i] ? "padding" : null }, element, pictures, padding[from + i] && h("span.chip.warning", "padding"));
      });
      const first = await cards(0, SHOWN);
      if (signal.aborted) return;
      command = line;
      copy.hidden = !line;
      const step = Number(params.step);
      previous.disabled = step < 1;
      next.disabled = step + 1 >= steps;
      const padded = padding.filter(Boolean).length;
      const pads = padded ? `, ${number(padded)} of them padding` : "";
      const place = `Step ${number(step)} of ${number(steps)} of rank ${params.rank}`;
      replace(what, `${place}: ${count(ids.length, "record")} in the order of the batch${pads}.`);
      const list = h("ol.batch", { hook: "grid", label: "Records of the step" }, first);
      const all = () => cards(SHOWN, ids.length).then((rest) => {
        list.append(...rest);
        more.remove();
      }, (error) => more.replaceWith(problem(error.message)));
      const more = ids.length > SHOWN && button("Show all", all, "more");
      replace(box, ids.length ? list : h("p.muted", { hook: "empty" }, "This step has no records."), more);
    } catch (error) {
      if (aborted(error) || signal.aborted) return;
      // A step beyond the last one is an error: the way back must stay open.
      previous.disabled = !(Number(params.step) > 0);
      next.disabled = copy.hidden = true;
      replace(what);
      replace(box, problem(error.message));
    }
  }

  return { title: "Training step", keys: { "[": () => previous.click(), "]": () => next.click() }, update: load, unmount: () => request.abort() };
}
