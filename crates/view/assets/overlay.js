// Boxes, keypoints and masks over an image. Mistakes in their data are said in words, and the rest is drawn.

import { bytesUrl } from "./api.js";
import { h, iconButton, kindOf, number, replace, setText, valuesOf, visible } from "./dom.js";
import { caption, imageOf } from "./roles.js";

const MOST = 4096; // boxes drawn
const LARGEST = 4096; // pixels of a side of a mask, or of a canvas
const ZOOM = 16;

/** A colour for a class: the same on each page, and light enough for black text. */
export function colour(text) {
  let hash = 2166136261;
  for (const c of String(text)) hash = Math.imul(hash ^ c.codePointAt(0), 16777619);
  // Neighbouring hashes (labels 1, 2, 3) become far hues.
  const hue = ((hash >>> 0) * 0.618033988749895 * 360) % 360;
  return `hsl(${hue.toFixed(0)} 95% 66%)`;
}

function numbersOf(record, name, problems) {
  const feature = record.features?.[name];
  if (!feature) return null;
  const kind = kindOf(feature);
  if (kind === "bytes") {
    problems.push(`${name}: expected numbers, found bytes`);
    return null;
  }
  return valuesOf(feature).map(Number);
}

/** The size of the image, else by the features for height and width. */
export function frameOf(record, roles, image) {
  if (image?.width && image?.height) return { width: image.width, height: image.height };
  const width = Number(caption(record, roles.width));
  const height = Number(caption(record, roles.height));
  return width >= 1 && height >= 1 && width < 1e6 && height < 1e6 ? { width, height } : null;
}

/** Boxes { x, y, w, h, text }, points { x, y } and problems in words: coordinates are parts of the image, 0 to 1. */
export function shapesOf(record, roles, frame) {
  const problems = [];
  const found = { boxes: [], points: [], problems };
  const { boxes, points } = roles;
  let corners = [];
  if (boxes?.feature) {
    const flat = numbersOf(record, boxes.feature, problems);
    if (flat && flat.length % 4) problems.push(`${boxes.feature}: expected a multiple of 4 values, found ${number(flat.length)}`);
    for (let i = 0; flat && i + 4 <= flat.length; i += 4) {
      const [a, b, c, d] = flat.slice(i, i + 4);
      corners.push(boxes.order === "xywh" ? [a, b, a + c, b + d] : boxes.order === "xyxy" ? [a, b, c, d] : [b, a, d, c]);
    }
    if (!["yxyx", "xyxy", "xywh"].includes(boxes.order) && corners.length) {
      problems.push(`${boxes.feature}: the order of its values is not known, set it under Roles`);
    }
  } else if (boxes) {
    const sides = ["xmin", "ymin", "xmax", "ymax"].map((side) => ({ name: boxes[side], values: numbersOf(record, boxes[side], problems) }));
    const lengths = sides.map((side) => side.values?.length ?? 0);
    const longest = Math.max(...lengths);
    sides.forEach(({ name }, i) => {
      if (lengths[i] === longest) return;
      problems.push(`${name}: expected ${number(longest)} values as in the other sides, found ${number(lengths[i])}`);
    });
    const n = Math.min(...lengths);
    for (let i = 0; i < n; i++) corners.push(sides.map((side) => side.values[i]));
  }
  if (corners.length > MOST) problems.push(`only the first ${number(MOST)} of ${number(corners.length)} boxes are drawn`);
  corners = corners.slice(0, MOST);
  const texts = boxes?.text ? valuesOf(record.features?.[boxes.text]) : [];
  if (boxes?.text && corners.length && texts.length !== corners.length) {
    problems.push(`${boxes.text}: expected ${number(corners.length)} values, one for each box, found ${number(texts.length)}`);
  }
  // All values up to 1.5 are parts of the image: boxes may reach a little over its edge. Others are pixels.
  const scale = (values) => {
    if (values.every((value) => !(Math.abs(value) > 1.5))) return { width: 1, height: 1 };
    if (frame) return frame;
    problems.push("coordinates are in pixels, and the size of the image is not known: set height and width under Roles");
    return null;
  };
  const by = scale(corners.flat());
  corners.forEach(([x0, y0, x1, y1], i) => {
    if (![x0, y0, x1, y1].every(Number.isFinite)) {
      problems.push(`box ${i}: ${[x0, y0, x1, y1].join(", ")} is not a box`);
      return;
    }
    if (!by) return;
    if (x1 < x0 || y1 < y0) problems.push(`box ${i}: ${x1 < x0 ? `xmax ${x1} is below xmin ${x0}` : `ymax ${y1} is below ymin ${y0}`}`);
    const text = typeof texts[i] === "object" ? texts[i].text ?? "" : String(roles.labels?.[boxes.text]?.[texts[i]] ?? texts[i] ?? "");
    found.boxes.push({
      i,
      x: Math.min(x0, x1) / by.width,
      y: Math.min(y0, y1) / by.height,
      w: Math.abs(x1 - x0) / by.width,
      h: Math.abs(y1 - y0) / by.height,
      text,
      corners: [x0, y0, x1, y1],
    });
  });
  if (points) {
    const x = numbersOf(record, points.x, problems) ?? [];
    const y = numbersOf(record, points.y, problems) ?? [];
    if (x.length !== y.length) problems.push(`${points.y}: expected ${number(x.length)} values as in ${points.x}, found ${number(y.length)}`);
    const n = Math.min(x.length, y.length, MOST);
    const at = n ? scale([...x.slice(0, n), ...y.slice(0, n)]) : null;
    for (let i = 0; at && i < n; i++) if (Number.isFinite(x[i]) && Number.isFinite(y[i])) found.points.push({ x: x[i] / at.width, y: y[i] / at.height });
  }
  return found;
}

/** Draws shapes on a canvas that lies over an image of the same size. `hot` is the box to be set off. */
export function draw(canvas, shapes, { hot = -1, masks = [], labels = true } = {}) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const ratio = Math.min(globalThis.devicePixelRatio || 1, LARGEST / Math.max(width, height, 1)); // A picture may be enlarged.
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.imageSmoothingEnabled = false;
  for (const mask of masks) pen.drawImage(mask, 0, 0, canvas.width, canvas.height);
  pen.scale(ratio, ratio);
  pen.font = `600 ${labels === "small" ? 10 : 12}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  // The one in focus last, so that no other covers it.
  const order = [...shapes.boxes].sort((a, b) => (a.i === hot) - (b.i === hot));
  for (const box of order) {
    const [x, y, w, h] = [box.x * width, box.y * height, box.w * width, box.h * height];
    const wide = box.i === hot ? 3 : labels === "small" ? 1.5 : 2;
    pen.globalAlpha = hot >= 0 && box.i !== hot ? 0.45 : 1;
    pen.lineWidth = wide + 2;
    pen.strokeStyle = "rgb(0 0 0 / 70%)";
    pen.strokeRect(x, y, w, h);
    pen.lineWidth = wide;
    pen.strokeStyle = colour(box.text);
    pen.strokeRect(x, y, w, h);
  }
  for (const box of order) {
    if (!box.text || !labels || (labels === "small" && box.w * width < 24)) continue;
    pen.globalAlpha = hot >= 0 && box.i !== hot ? 0.45 : 1;
    const tall = labels === "small" ? 13 : 17;
    const text = visible(box.text.length > 40 ? box.text.slice(0, 39) + "…" : box.text);
    const room = Math.min(pen.measureText(text).width + 8, width);
    // Above the box; inside where there is no place above.
    const x = Math.max(0, Math.min(box.x * width - 1, width - room));
    const y = Math.max(0, Math.min(box.y * height < tall ? box.y * height : box.y * height - tall, height - tall));
    pen.fillStyle = colour(box.text);
    pen.fillRect(x, y, room, tall);
    pen.fillStyle = "#000";
    pen.fillText(text, x + 4, y + tall / 2 + 0.5, width);
  }
  pen.globalAlpha = 1;
  for (const point of shapes.points) {
    pen.beginPath();
    pen.arc(point.x * width, point.y * height, labels === "small" ? 2 : 4, 0, 7);
    pen.fillStyle = "#ffe14d";
    pen.fill();
    pen.lineWidth = 1.5;
    pen.strokeStyle = "#000";
    pen.stroke();
  }
}

/** A mask as a canvas in colours: 0 is no object, and each other value a class. */
async function maskOf(url, only) {
  const image = new Image();
  image.src = url;
  await image.decode();
  const shrink = Math.min(1, LARGEST / Math.max(image.naturalWidth, image.naturalHeight));
  const canvas = h("canvas", { width: Math.max(1, Math.round(image.naturalWidth * shrink)), height: Math.max(1, Math.round(image.naturalHeight * shrink)) });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingEnabled = false;
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  const data = pen.getImageData(0, 0, canvas.width, canvas.height);
  const known = new Map();
  for (let i = 0; i < data.data.length; i += 4) {
    const value = (data.data[i] << 16) | (data.data[i + 1] << 8) | data.data[i + 2];
    if (!known.has(value)) known.set(value, value === 0 ? [0, 0, 0, 0] : [...rgb(colour(only ?? `mask ${value}`)), 140]);
    data.data.set(known.get(value), i);
  }
  pen.putImageData(data, 0, 0);
  return canvas;
}

function rgb(css) {
  const pen = h("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  pen.fillStyle = css;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data.slice(0, 3);
}

/** The image of a record with all that lies over it, or null without an image and boxes. `value`: the ordinal of the image in its list. */
export function stage(record, roles, { value = 0, pixels = null, shown = true, columns } = {}) {
  const image = imageOf(record, roles, value);
  const frame = frameOf(record, roles, image);
  const shapes = shapesOf(record, roles, frame);
  const drawn = !image?.url && pixels && roles.pixels && record.features?.[roles.pixels.feature];
  // The first frame of a sequence: sequence.js shows it with all others.
  if ((!image || image.step === 0) && !drawn && shapes.boxes.length + shapes.points.length + shapes.problems.length === 0) return null;

  const messages = h("ul.problems.warning.small");
  const tell = () => replace(messages, [...new Set(shapes.problems)].slice(0, 12).map((text) => h("li", text)));
  if (image?.problem) shapes.problems.unshift(image.problem);

  const canvas = h("canvas.over", { hook: "boxes", "aria-hidden": "true" });
  const what = caption(record, roles.label, roles.labels) || caption(record, roles.name, roles.labels) || `record ${record.id}`;
  const picture = image?.url
    ? h("img.picture", { alt: `Image of ${what}`, width: image.width, height: image.height, decoding: "async", draggable: "false", hook: "record-image" })
    : drawn ? h("canvas.picture.pixels", { role: "img", label: `Image of ${what}`, hook: "pixels" })
    : h("div.picture.blank", {
      hook: "record-image", role: "img", label: `No image: a blank of ${frame ? `${frame.width} × ${frame.height}` : "unknown size"}`,
    });
  const holder = h("div.stage", picture, canvas);
  const box = h("div.stage-box", { hook: "stage" }, holder);
  const size = image?.url ? image : frame ?? (drawn ? null : { width: 4, height: 3 });
  if (size?.width && size?.height) fitStage(box, size, columns);

  // An enlarged picture is moved by dragging it; fingers and keys scroll.
  let zoom = 1;
  const enlarge = (by, x = box.clientWidth / 2, y = box.clientHeight / 2) => {
    // A small picture beside the features is made a large one first.
    if (element.matches(".beside") && zoom === 1 && element.classList.contains("large") !== by > 1) return element.classList.toggle("large");
    const next = Math.min(ZOOM, Math.max(1, zoom * by));
    const [left, top] = [box.scrollLeft + x, box.scrollTop + y].map((at) => at * next / zoom);
    zoom = next;
    holder.style.width = holder.style.height = `${100 * zoom}%`;
    box.classList.toggle("zoomed", zoom > 1);
    box.scrollTo(left - x, top - y);
  };
  const around = (event, by) => {
    const edge = box.getBoundingClientRect();
    event.preventDefault();
    enlarge(by, event.clientX - edge.left, event.clientY - edge.top);
  };
  box.addEventListener("dblclick", (event) => around(event, zoom > 1 ? 1 / ZOOM : 3));
  box.addEventListener("wheel", (event) => event.ctrlKey && around(event, 2 ** (-event.deltaY / 200)), { passive: false });
  box.addEventListener("pointermove", (event) => event.pointerType === "mouse" && event.buttons === 1 && box.scrollBy(-event.movementX, -event.movementY));
  const buttons = h("div.zoom.group", iconButton("Smaller (-)", () => enlarge(0.5), "zoom-out"), iconButton("Larger (+)", () => enlarge(2), "zoom-in"));

  let masks = [];
  let hot = -1;
  let on = shown;
  const paint = () => {
    canvas.hidden = !on;
    list.classList.toggle("off", !on);
    if (on) draw(canvas, shapes, { hot, masks });
  };
  const light = (i) => {
    hot = i;
    paint();
  };
  const list = h("ol.boxes", { label: "Boxes" }, shapes.boxes.slice(0, 200).map((box) => {
    const swatch = h("span.swatch", { "aria-hidden": "true" });
    swatch.style.background = colour(box.text);
    return h("li", h("button", {
      type: "button", title: box.corners.join(", "),
      onmouseenter: () => light(box.i), onmouseleave: () => light(-1), onfocus: () => light(box.i), onblur: () => light(-1),
    }, swatch, box.text || `box ${box.i}`));
  }));
  list.hidden = shapes.boxes.length === 0;
  holder.addEventListener("pointermove", (event) => {
    if (!on) return;
    const edge = holder.getBoundingClientRect();
    const [x, y] = [(event.clientX - edge.left) / edge.width, (event.clientY - edge.top) / edge.height];
    const inside = shapes.boxes.filter((b) => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h).sort((a, b) => a.w * a.h - b.w * b.h);
    if ((inside[0]?.i ?? -1) !== hot) light(inside[0]?.i ?? -1);
  });
  holder.addEventListener("pointerleave", () => hot >= 0 && light(-1));

  const watch = new ResizeObserver(paint);
  watch.observe(holder);

  const said = h("figcaption.small.muted", { hidden: !drawn });
  const ready = (async () => {
    if (image?.url) {
      picture.src = image.url;
      try {
        await picture.decode();
        if (!image.width) fitStage(box, { width: picture.naturalWidth, height: picture.naturalHeight }, columns);
      } catch {
        if (picture.isConnected) shapes.problems.unshift(`the browser cannot decode ${image.feature}`);
      }
    } else if (drawn) {
      try {
        if (await pixels(picture, record, roles)) {
          fitStage(box, picture, columns);
          setText(said, picture.title);
        } else shapes.problems.unshift(`${picture.title} Height, width and depth are set under Roles.`);
      } catch (error) {
        if (error.name !== "AbortError") shapes.problems.unshift(error.message);
      }
    }
    tell();
    paint();
    const wanted = (roles.mask ?? []).flatMap((name) => (record.features?.[name]?.bytes ?? []).slice(0, 64)
      .map((_, i, all) => ({ name, i, alone: all.length === 1 })));
    masks = (await Promise.all(wanted.map(({ name, i, alone }) =>
      maskOf(bytesUrl(record.id, name, { value: i || undefined }), alone ? null : shapes.boxes[i]?.text || `object ${i}`).catch(() => {
        if (holder.isConnected) shapes.problems.push(`${name}: value ${i} is no image`);
        return null;
      })))).filter(Boolean);
    tell();
    paint();
  })();

  const element = h("figure.column", h("div.stage-place", box, (image?.url || drawn) && buttons), said, list, messages);
  return {
    element,
    enlarge,
    shapes,
    ready,
    count: image?.count ?? 1,
    show(yes) {
      on = yes;
      paint();
    },
    destroy() {
      watch.disconnect();
      element.remove();
    },
  };
}

// The space is there before the bytes. Small images are enlarged, to tell boxes apart.
function fitStage(box, { width, height }, columns) {
  const zoom = Math.max(1, Math.min(64, Math.floor(480 / Math.max(width, height))));
  box.style.aspectRatio = `${width} / ${height}`;
  for (const part of [box, columns]) part.style.setProperty("--wide", `min(${Math.max(1, width * zoom)}px, max(240px, 100dvh - 236px) * ${width / height})`);
  box.style.setProperty("--ratio", width / height);
  columns.classList.toggle("wide", width > 1.8 * height && width * zoom > 800);
  box.classList.toggle("enlarged", zoom > 2);
}
