// The view "step": the records of one step of an epoch, in the order of the batch.

import { count, h, number, replace } from "./dom.js";
import { aborted, get } from "./api.js";
import { state } from "./state.js";

// Of the form: key in the address and in the question, label, value without an entry, smallest value.
const NUMBERS = [["batch", "Global batch size", 32, 1], ["step", "Step", 0, 0], ["epoch", "Epoch", 0, 0], ["seed", "Seed", 0, 0], ["rank", "Rank", 0, 0], ["world", "World size", 1, 1]];
const CHOICES = [["shuffle", "Shuffle", ["global", "block", "none"]], ["last", "Last batch", ["short", "pad", "drop"]]];

export function mount(root, context) {
  let asked = null;
  let request = new AbortController();
  const controls = {};
  const field = (label, control) => h("label", { class: "field" }, h("span", {}, label), control);
  const fields = [
    ...NUMBERS.map(([key, label, , min]) => field(label, (controls[key] = h("input", { type: "number", min, step: 1, name: key, "data-test": `step-${key}` })))),
    ...CHOICES.map(([key, label, values]) => field(label, (controls[key] = h("select", { name: key, "data-test": `step-${key}` }, values.map((v) => h("option", { value: v }, v)))))),
  ];
  const apply = () => {
    const changes = {};
    for (const [key, , value] of NUMBERS) changes[key] = controls[key].value === "" || Number(controls[key].value) === value ? null : controls[key].value;
    for (const [key, , values] of CHOICES) changes[key] = controls[key].value === values[0] ? null : controls[key].value;
    context.go(changes);
  };
  const turn = (by) => () => {
    const to = Number(state.step ?? 0) + by;
    if (to >= 0 && !(by > 0 && next.disabled)) context.go({ step: to || null });
  };
  const previous = h("button", { type: "button", "data-test": "previous", onclick: turn(-1) }, "Previous step");
  const next = h("button", { type: "button", "data-test": "next", onclick: turn(1) }, "Next step");
  const what = h("p", { role: "status" });
  const copy = h("button", { type: "button", "data-test": "copy-command", hidden: true }, "Copy as command");
  const box = h("div");
  replace(root, h("div", { class: "page step-view" }, h("h1", {}, "Training step"),
    h("p", { class: "muted" }, "The records that a loader of tfseek reads in one step, from the seed and the epoch alone."),
    h("form", { class: "panel", onsubmit: (e) => { e.preventDefault(); apply(); } },
      h("div", { class: "row" }, fields), h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Show"), previous, next, copy)),
    what, box));

  const valueOf = (key, value) => state[key] ?? value;

  async function load() {
    const params = Object.fromEntries([...NUMBERS.map(([key, , value]) => [key, valueOf(key, value)]), ...CHOICES.map(([key, , values]) => [key, valueOf(key, values[0])])]);
    const question = JSON.stringify([params, state.roles]);
    if (question === asked) return;
    asked = question;
    for (const [key, control] of Object.entries(controls)) control.value = params[key];
    request.abort();
    request = new AbortController();
    const { signal } = request;
    try {
      const answer = await get("/api/step", params, { signal });
      const records = await context.records.get(answer.ids, { signal });
      const { card } = await import("./grid.js").catch(() => ({}));
      if (signal.aborted) return;
      const step = Number(params.step);
      previous.disabled = step < 1;
      next.disabled = step + 1 >= answer.steps;
      copy.hidden = !answer.command;
      copy.onclick = () => context.copy(answer.command, "the command");
      const padded = (answer.padding ?? []).filter(Boolean).length;
      replace(what, answer.ids.length ? `Step ${number(step)} of ${number(answer.steps)} of rank ${params.rank}: ${count(answer.ids.length, "record")}${padded ? `, ${number(padded)} of them padding` : ""}.`
        : `Step ${number(step)} has no records: the epoch has ${count(answer.steps, "step")} of rank ${params.rank}.`);
      replace(box, h("ol", { class: "batch", "data-test": "grid" }, answer.ids.map((id, i) => h("li", { class: answer.padding?.[i] ? "padding" : null },
        records[i] && card ? card(records[i], context) : h("a", { href: `#view=record&id=${id}`, "data-test": "card" }, `record ${number(id)}`),
        answer.padding?.[i] ? h("span", { class: "chip warning" }, "padding") : null))));
    } catch (error) {
      if (aborted(error) || signal.aborted) return;
      replace(what);
      replace(box, h("p", { class: "note error", role: "alert", "data-test": "error" }, error.message));
    }
    context.ready?.();
  }

  load();
  return { title: "Training step", keys: { j: turn(1), k: turn(-1) }, update: load, unmount: () => request.abort() };
}
