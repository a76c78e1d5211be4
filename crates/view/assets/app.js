// The shell of the page: head, views, keys and dialogs. Each view is a module that exports
//
//     mount(root, context) -> { update(state), unmount(), keys: { "j": () => .. }, title }
//
// `root` is an empty element. `update` is called after each change of the state (the address) while the view stays the same.
// The context is the same object for the life of a view:
//
//     dataset   the answer of /api/dataset for the set on show      set       "0" or "1" (the set of --against)
//     roles()   the roles in force (roles.js)                       records   recordCache (api.js)
//     list      the list of records on show (find.js)               copy(text, what)  to the clipboard
//     announce(text)  said by screen readers                        go(changes, { replace })  changes the state
//     ready()   to be called once the first content is there: also for an empty page or an error

import { h, replace, setText } from "./dom.js";
import { get, recordCache } from "./api.js";
import * as address from "./state.js";

const VIEWS = {
  grid: { label: "Grid", load: () => import("./grid.js") },
  table: { label: "Table", load: () => import("./table.js") },
  record: { label: "Record", load: () => import("./record.js") },
  data: { label: "Data set", load: () => import("./dataset.js") },
  compare: { label: "Compare", load: () => import("./compare.js") },
  step: { label: "Training step", load: () => import("./step.js") },
};

const main = document.getElementById("main");

async function start() {
  const dataset = await get("/api/dataset");
  const { name } = dataset;
  document.title = `${name} – tfseek`;
  const view = VIEWS[address.state.view] ?? VIEWS.grid;
  const module = await view.load();
  const root = h("div", { class: "view" });
  replace(main, root);
  const context = {
    dataset,
    set: address.state.set ?? "0",
    roles: () => dataset.roles,
    records: recordCache(address.state.set ?? "0"),
    copy: (text) => navigator.clipboard.writeText(text),
    announce: (text) => setText(document.getElementById("live"), text),
    go: address.go,
    ready: () => (document.body.dataset.ready = address.state.view ?? "grid"),
  };
  const mounted = module.mount(root, context);
  mounted.update(address.state);
  address.onChange((state) => mounted.update(state));
}

start().catch((error) => replace(main, h("p", { class: "empty error" }, error.message)));
