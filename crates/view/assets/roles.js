// Roles: which feature is the image, the label, the boxes.
//
// The address keeps only the changed ones, as JSON.

import { bytesUrl } from "./api.js";
import { bytesText, field, h, hbox, kindOf, setText } from "./dom.js";

/** The roles in force: those of the data set, and over them those of the address. */
export function rolesOf(dataset, state) {
  let changed = {};
  try {
    changed = JSON.parse(state.roles ?? "{}") ?? {};
  } catch {
    // An address typed by hand. The guess is better than nothing.
  }
  const roles = { ...dataset.roles, ...(typeof changed === "object" ? changed : null) };
  roles.labels = dataset.labels ?? {};
  for (const role of ["mask", "sequence"]) roles[role] = Array.isArray(roles[role]) ? roles[role].filter((name) => typeof name === "string") : [];
  return roles;
}

/** The features that cards need, as the parameter `features` of /api/records; undefined for all. */
export function featuresFor(dataset, roles) {
  const names = new Set();
  const add = (value) => {
    if (typeof value === "string") names.add(value);
    else if (Array.isArray(value)) value.forEach(add);
    else if (value && typeof value === "object") Object.values(value).forEach(add);
  };
  const { image, pixels, sequence } = roles;
  if (image || pixels) {
    add([image, roles.label, roles.name, roles.height, roles.width, sequence ?? []]);
    add({ ...pixels });
    add({ ...roles.boxes });
    add({ ...roles.points });
  } else if (dataset.features.length > 16) {
    add([roles.label, roles.name, sequence, Object.entries(roles.arrays ?? {}), dataset.features.slice(0, 12).map((f) => f.name)]);
  }
  // A comma or a star would be read as part of the list.
  const known = [...names].filter((name) => dataset.features.some((f) => f.name === name));
  return known.length && known.every((name) => !/[,*]/.test(name)) ? known.join(",") : undefined;
}

/** A text of one value for a caption, or "". `labels` as in rolesOf(). */
export function caption(record, name, labels = undefined) {
  const feature = name ? record.features?.[name] : null;
  const value = feature?.bytes?.[0] ?? feature?.int64?.[0] ?? feature?.float?.[0];
  if (value === undefined) return "";
  if (typeof value === "object") return typeof value.text === "string" ? value.text : "";
  return labels?.[name]?.[value] ?? bytesText(String(value));
}

const isImage = (value) => typeof value === "object" && typeof value.type === "string" && value.type.startsWith("image/");

/** The encoded image of a record, or { problem } in words, or null. `value`: its ordinal. */
export function imageOf(record, roles, value = 0) {
  const feature = roles.image ? record.features?.[roles.image] : null;
  if (feature) {
    if (kindOf(feature) !== "bytes") return feature.n ? { problem: `${roles.image} holds ${kindOf(feature)} values, not an encoded image` } : null;
    const found = feature.bytes[value];
    if (found === undefined) return null;
    if (isImage(found)) {
      const { width, height } = found;
      return { url: bytesUrl(record.id, roles.image, { value: value || undefined }), width, height, feature: roles.image, count: feature.n };
    }
    if (found === "" || found.bytes === 0) return { problem: "empty image", blank: true };
    return { problem: `${roles.image} is no image that browsers show`, blank: true };
  }
  for (const name of roles.sequence ?? []) {
    const found = record.lists?.[name]?.first?.[0]?.bytes?.[0];
    if (isImage(found)) return { url: bytesUrl(record.id, name, { step: 0 }), width: found.width, height: found.height, feature: name, count: 1, step: 0 };
  }
  return null;
}

const FIELDS = { image: "Encoded image", label: "Label", boxes: "Boxes", name: "Name" };
const SIDES = ["ymin", "xmin", "ymax", "xmax"];
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
// Without the order of its members, and with null for what is not there.
const plain = (value) => JSON.stringify(value, (_, v) => (isObject(v) ? Object.fromEntries(Object.entries(v).filter(([, x]) => x != null).sort()) : v));
const none = (value) => value == null || (Array.isArray(value) && !value.length) || plain(value) === "{}";

// Boxes in four features, or in one whose values are a multiple of four.
function boxesOf(features, text) {
  const names = new Set(features.map((f) => f.name));
  const four = [...names].filter((name) => name.endsWith(SIDES[0])).map((name) => name.slice(0, -4))
    .filter((prefix) => SIDES.every((side) => names.has(prefix + side)))
    .map((prefix) => [`${prefix}*`, { ...Object.fromEntries(SIDES.map((side) => [side, prefix + side])), text }]);
  const one = features.filter(({ n }) => n > 0 && n % 4 === 0)
    .flatMap(({ name }) => ["yxyx", "xyxy", "xywh"].map((order) => [`${name} as ${order}`, { feature: name, order, text }]));
  return [...four, ...one];
}

// What is wrong with a role that was typed, in words, or null. `names`: those of all features.
function wrong(role, value, names) {
  const name = (v) => (names.has(v) ? null : `${role}: expected the name of a feature, found ${JSON.stringify(v)}`);
  const side = (v) => (v == null || (Number.isInteger(v) && v > 0) ? null : name(v));
  const expected = (what) => `${role}: expected ${what}, found ${JSON.stringify(value)}`;
  if (role === "mask" || role === "sequence") return Array.isArray(value) ? value.map(name).find(Boolean) : expected("a list of names of features");
  if (role === "rate") return side(value);
  if (!["pixels", "points", "arrays"].includes(role)) return name(value);
  if (!isObject(value)) return expected("an object");
  if (role === "points") return name(value.x) ?? name(value.y);
  if (role === "pixels") return name(value.feature) ?? side(value.height) ?? side(value.width) ?? side(value.depth);
  return Object.entries(value).map(([key, array]) => name(key)
    ?? (Array.isArray(array?.shape) || names.has(array?.shape) ? null : `${role}: ${key} needs a shape, a list of numbers or the name of a feature`)).find(Boolean);
}

/** Opens the dialog that changes the roles. `context` as in app.js. */
export function rolesDialog(context) {
  const { dataset } = context;
  const roles = context.roles();
  const single = (kinds) => dataset.features.filter((f) => !f.list && kinds.includes(f.kind));
  const values = single(["bytes", "int64", "float"]).map((f) => [f.name, f.name]);
  const choices = {
    image: single(["bytes"]).map((f) => [f.name, f.name]), label: values, name: values,
    boxes: boxesOf(single(["int64", "float"]), roles.boxes?.text ?? null),
  };
  const fields = Object.entries(FIELDS).map(([role, label]) => {
    const now = roles[role] ?? null;
    const known = choices[role].some(([, value]) => plain(value) === plain(now));
    const all = [["none", null], ...(now === null || known ? [] : [[typeof now === "string" ? now : JSON.stringify(now), now]]), ...choices[role]];
    const box = h("select", all.map(([text, value], i) => h("option", { value: i, selected: plain(value) === plain(now) }, text)));
    return { role, element: field(label, box), value: () => all[box.value][1] };
  });
  const others = Object.keys(dataset.roles).filter((role) => !Object.hasOwn(FIELDS, role));
  const json = h("textarea", { rows: 6, class: "mono", spellcheck: "false", hook: "roles-json", "aria-describedby": "roles-error" });
  json.value = JSON.stringify(Object.fromEntries(others.filter((role) => !none(roles[role])).map((role) => [role, roles[role]])), null, 1);
  const error = h("p.error.small", { id: "roles-error", role: "alert", hook: "roles-error" });

  // The other roles as they are typed. Throws an Error in words.
  function typed() {
    let found;
    try {
      found = JSON.parse(json.value.trim() || "{}");
    } catch (e) {
      throw new Error(`Expected JSON: ${e.message}`);
    }
    if (!isObject(found)) throw new Error(`Expected an object of roles, found ${json.value.trim()}`);
    const names = new Set(dataset.features.map((f) => f.name));
    for (const [role, value] of Object.entries(found)) {
      if (!others.includes(role)) throw new Error(`Expected a role (${others.join(", ")}), found ${JSON.stringify(role)}`);
      const problem = none(value) || plain(value) === plain(roles[role]) ? null : wrong(role, value, names);
      if (problem) throw new Error(problem);
    }
    return Object.fromEntries(others.map((role) => [role, found[role] ?? (["mask", "sequence"].includes(role) ? [] : null)]));
  }

  function submit(event) {
    if (event.submitter?.value === "guess") return context.go({ roles: null });
    try {
      const chosen = { ...Object.fromEntries(fields.map(({ role, value }) => [role, value()])), ...typed() };
      const changed = Object.entries(chosen).filter(([role, value]) => !(none(value) && none(dataset.roles[role])) && plain(value) !== plain(dataset.roles[role]));
      return context.go({ roles: changed.length ? JSON.stringify(Object.fromEntries(changed)) : null });
    } catch (e) {
      event.preventDefault();
      setText(error, e.message);
      json.ariaInvalid = true;
      return json.focus();
    }
  }

  context.dialog("Roles of features", submit,
    h("p.muted", "Guessed from 16 records. Changes are kept in the address of this page."),
    h("div.fields", fields.map(({ element }) => element)),
    field("Other roles, as JSON", json), error,
    hbox(h("button.primary", { value: "use" }, "Use these"), h("button", { value: "guess" }, "Back to the guess")));
}
