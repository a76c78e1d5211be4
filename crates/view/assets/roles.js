// Roles: which feature is the image, the label, the boxes.
//
// The address keeps only the changed ones, as JSON.

import { bytesUrl } from "./api.js";
import { field, h, hbox, kindOf } from "./dom.js";

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
  return labels?.[name]?.[value] ?? String(value);
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

const SINGLE = {
  image: "Encoded image", label: "Label", name: "Name", height: "Height", width: "Width", audio: "Audio", rate: "Sample rate", video: "Video",
};

function select(label, names, value, { none = "none", numbers = false } = {}) {
  if (numbers) {
    const list = `list-${label.replaceAll(" ", "-")}`;
    const input = h("input", { list, value: value ?? "", placeholder: "number or feature" });
    return {
      element: field(label, input, h("datalist", { id: list }, names.map((n) => h("option", { value: n })))),
      value: () => (/^\d+$/.test(input.value) ? Number(input.value) : input.value || null),
    };
  }
  const all = value && !names.includes(value) ? [value, ...names] : names;
  const box = h("select", h("option", { value: "" }, none), all.map((name) => h("option", { value: name, selected: name === value }, name)));
  return { element: field(label, box), value: () => box.value || null };
}

function several(label, names, values) {
  const boxes = names.map((name) => h("input", { type: "checkbox", value: name, checked: values.includes(name) }));
  return {
    element: h("fieldset.several", h("legend", label), boxes.map((box) => h("label.row", box, box.value))),
    value: () => boxes.filter((box) => box.checked).map((box) => box.value),
  };
}

/** Opens the dialog that changes the roles. `context` as in app.js. */
export function rolesDialog(context) {
  const { dataset } = context;
  const roles = context.roles();
  const named = (kinds) => dataset.features.filter((f) => !f.list && kinds.includes(f.kind)).map((f) => f.name);
  const lists = dataset.features.filter((f) => f.list).map((f) => f.name);
  const bytes = named(["bytes"]);
  const numbers = named(["int64", "float"]);
  const any = [...bytes, ...numbers];
  const kinds = { image: bytes, label: any, name: any, height: numbers, width: numbers, audio: any, rate: numbers, video: bytes };

  const single = Object.fromEntries(Object.entries(SINGLE).map(([role, label]) =>
    [role, select(label, kinds[role], roles[role], { numbers: role === "rate" })]));
  const pixels = {
    feature: select("Pixels", any, roles.pixels?.feature),
    height: select("Pixel height", numbers, roles.pixels?.height, { numbers: true }),
    width: select("Pixel width", numbers, roles.pixels?.width, { numbers: true }),
    depth: select("Channels", numbers, roles.pixels?.depth, { numbers: true }),
  };
  const { boxes } = roles;
  const form = h("select", { hook: "roles-boxes" }, [["", "none"], ["four", "four features"], ["one", "one feature of 4 n values"]].map(([value, text]) =>
    h("option", { value, selected: value === (!boxes ? "" : boxes.feature ? "one" : "four") }, text)));
  const four = Object.fromEntries(["ymin", "xmin", "ymax", "xmax"].map((side) => [side, select(side, numbers, boxes?.[side])]));
  const one = {
    feature: select("Values of boxes", numbers, boxes?.feature),
    order: select("Order", ["yxyx", "xyxy", "xywh"], boxes?.order ?? "yxyx", { none: "choose" }),
  };
  const text = select("Classes of boxes", any, boxes?.text);
  const points = { x: select("Keypoints x", numbers, roles.points?.x), y: select("Keypoints y", numbers, roles.points?.y) };
  const mask = several("Masks", bytes, roles.mask ?? []);
  const sequence = several("Sequence", lists, roles.sequence ?? []);
  const parts = (group) => Object.values(group).map((part) => part.element);
  const fourParts = h("div.fields", parts(four));
  const oneParts = h("div.fields", parts(one));
  const shape = () => {
    fourParts.hidden = form.value !== "four";
    oneParts.hidden = form.value !== "one";
    text.element.hidden = form.value === "";
  };
  form.addEventListener("change", shape);
  shape();
  const values = (group) => Object.fromEntries(Object.entries(group).map(([key, part]) => [key, part.value()]));

  function chosen() {
    const found = values(single);
    const px = values(pixels);
    found.pixels = px.feature ? px : null;
    const all = form.value === "one" ? values(one) : form.value === "four" ? values(four) : null;
    found.boxes = all && Object.values(all).every(Boolean) ? { ...all, text: text.value() } : null;
    const at = values(points);
    found.points = at.x && at.y ? at : null;
    found.mask = mask.value();
    found.sequence = sequence.value();
    const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
    const changed = Object.entries(found).filter(([role, value]) => !same(value, dataset.roles?.[role] ?? (Array.isArray(value) ? [] : null)));
    return changed.length ? JSON.stringify(Object.fromEntries(changed)) : null;
  }

  context.dialog("Roles of features", (event) => context.go({ roles: event.submitter?.value === "guess" ? null : chosen() }),
    h("p.muted", "Guessed from 16 records. Changes are kept in the address of this page."),
    h("div.fields", parts(single)),
    h("h3", "Image as numbers or raw bytes"),
    h("div.fields", parts(pixels)),
    h("h3", "Boxes"),
    h("div.fields", field("Boxes are in", form), text.element), fourParts, oneParts,
    h("h3", "Keypoints and masks"),
    h("div.fields", parts(points)),
    bytes.length > 0 && mask.element,
    lists.length > 0 && sequence.element,
    hbox(h("button.primary", { value: "use" }, "Use these"), h("button", { value: "guess" }, "Back to the guess")));
}

function sorted(value) {
  if (!value || typeof value !== "object" || Array.isArray(value)) return value ?? null;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, value[key] ?? null]));
}
