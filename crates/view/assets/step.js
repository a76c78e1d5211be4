// The view "step": the records of one step of an epoch, in the order of the batch.

import { count, h, number, replace } from "./dom.js";
import { aborted, get } from "./api.js";
import { button, problem } from "./dataset.js";
import { fixedList } from "./find.js";
import { gridOver } from "./grid.js";
import { state } from "./state.js";

// Of the form: key in the address and in the question, label, value without an entry (the first of a choice), smallest number.
const FIELDS = [
  ["step", "Step", 0, 0], ["epoch", "Epoch", 0, 0], ["seed", "Seed", 0, 0], ["batch", "Global batch size", 32, 1], ["rank", "Rank", 0, 0], ["world", "World size", 1, 1],
  ["shuffle", "Shuffle", ["global", "block", "none"]], ["last", "Last batch", ["short", "pad", "drop"]],
];
const usual = (value) => (Array.isArray(value) ? value[0] : value);

export function mount(root, context) {
  let asked = null;
  let request = new AbortController();
  let grid = null;
  const controls = FIELDS.map(([key, , value, min]) => (Array.isArray(value)
    ? h("select", { name: key, "data-test": `step-${key}`, onchange: () => apply() }, value.map((v) => h("option", { value: v }, v)))
    : h("input", { type: "number", min, step: 1, required: true, name: key, "data-test": `step-${key}` })));
  function apply() {
    const changes = { at: null, sel: null };
    FIELDS.forEach(([key, , value], i) => { changes[key] = controls[i].value === String(usual(value)) ? null : controls[i].value; });
    context.go(changes);
  }
  const turn = (control, by) => () => !control().disabled && context.go({ step: Number(state.step ?? 0) + by || null, at: null, sel: null });
  const previous = button("Previous step", turn(() => previous, -1), "previous", { title: "Previous step ([)", disabled: true });
  const next = button("Next step", turn(() => next, 1), "next", { title: "Next step (])", disabled: true });
  let command = "";
  const copy = button("Copy as command", () => context.copy(command, "the command"), "copy-command", { hidden: true });
  const what = h("p", { role: "status" });
  const box = h("div", { class: "batch" });
  replace(root, h("div", { class: "step-view" },
    h("form", { onsubmit: (e) => { e.preventDefault(); apply(); } }, FIELDS.map(([, label], i) => h("label", { class: "field" }, h("span", {}, label), controls[i])),
      h("button", { type: "submit", class: "primary" }, "Show"), previous, next, copy),
    what, box));

  async function load(now) {
    const params = Object.fromEntries(FIELDS.map(([key, , value]) => [key, now[key] ?? usual(value)]));
    const question = JSON.stringify(params);
    if (question === asked) return grid?.update(now);
    asked = question;
    FIELDS.forEach(([key], i) => { controls[i].value = params[key]; });
    request.abort();
    request = new AbortController();
    const { signal } = request;
    let shown;
    try {
      const { ids, padding = [], steps, command: line } = await get("/api/step", params, { signal });
      if (signal.aborted) return;
      command = line;
      copy.hidden = !line;
      const step = Number(params.step);
      previous.disabled = step < 1;
      next.disabled = step + 1 >= steps;
      const padded = padding.filter(Boolean).length;
      replace(what, ids.length
        ? `Step ${number(step)} of ${number(steps)} of rank ${params.rank}: ${count(ids.length, "record")} in the order of the batch${padded ? `, ${number(padded)} of them padding` : ""}.`
        : `Step ${number(step)} has no records: the epoch has ${count(steps, "step")} of rank ${params.rank}.`);
      const list = fixedList(ids, padding.map((pad) => (pad ? "padding" : null)));
      grid?.unmount();
      replace(box);
      grid = ids.length ? gridOver(box, context, list) : null;
      shown = grid?.update(now);
    } catch (error) {
      if (aborted(error) || signal.aborted) return;
      grid?.unmount();
      grid = null;
      replace(what);
      replace(box, problem(error.message));
      copy.hidden = true;
    }
    await shown;
    if (!signal.aborted) context.ready?.();
  }

  const keys = { "[": () => previous.click(), "]": () => next.click() };
  for (const key of ["j", "k", "h", "l", "b", "Enter"]) keys[key] = (...args) => grid?.keys?.[key]?.(...args);
  return {
    title: "Training step",
    keys,
    update: load,
    unmount() {
      request.abort();
      grid?.unmount();
    },
  };
}
