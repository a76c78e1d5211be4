// Pixels that are no encoded image, sound and film.

import { attrs, h, kindOf, number, setText } from "./dom.js";
import { aborted, buffer, bytesUrl, values } from "./api.js";

const LARGEST = 1 << 24; // pixels of an image, and samples of a sound

/** The values of a feature: those that came with the record if it is all of them, else from the server. */
export async function allValues(record, name, signal) {
  const feature = record.features[name];
  const kind = kindOf(feature);
  return feature[kind].length === feature.n ? Float64Array.from(feature[kind], Number) : values(record.id, name, signal, kind);
}

// Types of raw values by the bytes of one, unless the type is declared.
const TYPES = { 1: "Uint8", 2: "Uint16", 4: "Float32", 8: "Float64", bool: "Uint8", int64: "BigInt64", uint64: "BigUint64" };

/** The values of raw bytes; `total` of them, or null if that is not known. */
async function rawValues(record, name, total, signal, { dtype, zlib }) {
  let bytes = await buffer(`/api/bytes/${record.id}`, { feature: name }, signal);
  // Arrays may be compressed. Where that is not declared, a zlib stream of their size is no array.
  if (zlib ?? (total && !TYPES[bytes.byteLength / total] && new Uint8Array(bytes)[0] === 0x78)) {
    bytes = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  }
  const type = (dtype ? TYPES[dtype] ?? dtype[0].toUpperCase() + dtype.slice(1) : TYPES[bytes.byteLength / total]) ?? "Uint8";
  let all = new globalThis[`${type}Array`](bytes);
  // Small integers are no numbers, or almost 0, if they are read as floats.
  if (!dtype && type.startsWith("Float") && all.every((x) => !(Math.abs(x) > 1e-30))) all = new (type === "Float32" ? Int32Array : BigInt64Array)(bytes);
  return typeof all[0] === "bigint" ? Float64Array.from(all, Number) : all;
}

async function load(record, name, total, signal, of = {}) {
  const feature = record.features[name];
  const raw = kindOf(feature) === "bytes";
  if (raw && feature.n > 1) throw new Error(`${name} has ${number(feature.n)} byte strings, expected one.`);
  if ((raw ? (feature.bytes[0].bytes ?? 0) / 4 : feature.n) > LARGEST) throw new Error(`${name} is too large to be drawn.`);
  return raw ? rawValues(record, name, total, signal, of) : allValues(record, name, signal);
}

const product = (sides) => sides.reduce((n, side) => n * (side ?? 1), 1);
const misfit = (name, all, wanted) => new Error(`${name} has ${number(all.length)} values, expected ${wanted}.`);

/** The values and the sides of the array `name`; sides of one are left out. `shape`: numbers, null for any, or the feature that has them. */
export async function arrayOf(record, name, of) {
  const { shape } = of;
  const given = (typeof shape === "string" ? record.features[shape]?.int64 : shape) ?? [null];
  const known = product(given);
  const all = await load(record, name, given.includes(null) ? 0 : known, null, of);
  const sides = given.map((side) => side ?? all.length / known);
  if (product(sides) !== all.length || !sides.every(Number.isInteger)) throw misfit(name, all, given.map((side) => side ?? "any").join(" × "));
  return { all, sides: sides.filter((side) => side !== 1) };
}

// A side is a number, or the name of a feature that has it.
const side = (record, of) => (typeof of === "string" ? Number(record.features?.[of]?.int64?.[0] ?? NaN) : of ?? NaN);

/** Height, width and channels of `n` values, or null if they do not fit. */
function shape(n, height, width, depth) {
  if (height > 0 && width > 0) {
    const channels = depth > 0 ? depth : n / (height * width);
    return height * width * channels === n ? [height, width, channels] : null;
  }
  for (const channels of depth > 0 ? [depth] : [1, 3, 4]) {
    const edge = Math.sqrt(n / channels);
    if (Number.isInteger(edge)) return [edge, edge, channels];
  }
  return null;
}

/** The values of black and white: the usual range that holds all values, else their own. */
export function range(all) {
  let [low, high] = [Infinity, -Infinity];
  for (const x of all) {
    if (x < low && x > -Infinity) low = x;
    if (x > high && x < Infinity) high = x;
  }
  if (low > high) return [0, 1];
  const usual = high > 32 && low >= 0 ? [[0, 255]] : [[0, 1], [-0.5, 0.5], [-1, 1]];
  return usual.find(([from, to]) => low >= from && high <= to) ?? (low < high ? [low, high] : [low, low + 1]);
}

/** Draws values as rows of grey or coloured pixels. Returns a caption. */
export function paint(canvas, all, [rows, columns, channels], [low, high]) {
  const image = new ImageData(columns, rows);
  const scale = 255 / (high - low);
  const level = (i) => (all[i] - low) * scale; // Clamped by the array, NaN becomes 0.
  for (let i = 0; i < rows * columns; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = level(channels * i + (channels > 1 ? c : 0));
    image.data[4 * i + 3] = channels === 4 ? level(4 * i + 3) : 255;
  }
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return `${rows} × ${columns}${channels > 1 ? ` × ${channels}` : ""}, black is ${Number(low.toPrecision(4))}, white is ${Number(high.toPrecision(4))}`;
}

/** Draws the pixels of `roles.pixels` on a canvas. Its title is a caption; after `false` it says why nothing was drawn. */
export async function pixels(canvas, record, roles, { signal } = {}) {
  const say = (text) => {
    canvas.title = text;
    attrs(canvas, { role: "img", label: text });
  };
  const name = roles?.pixels?.feature;
  const feature = record.features?.[name];
  try {
    if (!feature?.n) throw new Error("The record has no pixels.");
    const [height, width, depth] = ["height", "width", "depth"].map((key) => side(record, roles.pixels[key]));
    const total = height > 0 && width > 0 ? height * width * (depth > 0 ? depth : 1) : 0;
    const all = await load(record, name, total, signal, roles.arrays?.[name]);
    const found = shape(all.length, height, width, depth);
    if (!found || ![1, 3, 4].includes(found[2])) {
      const sides = [height, width, depth].filter((x) => x > 0).map(number).join(" × ");
      throw misfit(name, all, sides || "a square image with 1, 3 or 4 channels");
    }
    say(`${name}: ${paint(canvas, all, found, range(all))}`);
    return true;
  } catch (error) {
    if (!aborted(error)) say(error.message);
    return false;
  }
}

// A WAV file of 16-bit samples. Floats beyond 1 and larger integers are scaled to the loudest.
function wav(samples, rate, whole) {
  let peak = 0;
  for (const x of samples) if (Math.abs(x) > peak && Math.abs(x) < Infinity) peak = Math.abs(x);
  const full = whole ? (peak <= 32768 ? 1 : 32767 / peak) : 32767 / Math.max(1, peak);
  const bytes = 2 * samples.length;
  // "RIFF", "WAVE", "fmt ", "data" and sizes between them.
  const head = Uint32Array.of(0x46464952, 36 + bytes, 0x45564157, 0x20746d66, 16, 0x10001, rate, 2 * rate, 0x100002, 0x61746164, bytes);
  return new Blob([head, Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * full) || 0)))], { type: "audio/wav" });
}

const made = new Map(); // player -> blob address, revoked when another record is shown

function release() {
  for (const [player, url] of made) {
    if (player.isConnected) continue;
    URL.revokeObjectURL(url);
    made.delete(player);
  }
}

/** Players for the sound and film of a record, or null. */
export function media(record, context) {
  release();
  const roles = context.roles() ?? {};
  const players = [];
  for (const [name, feature] of Object.entries(record.features ?? {})) {
    const kind = kindOf(feature);
    if (kind === "bytes") {
      feature.bytes.slice(0, 8).forEach((value, i) => {
        const tag = ["video", "audio"].find((tag) => value.type?.startsWith(`${tag}/`) || (name === roles[tag] && !value.type));
        if (!tag) return;
        const note = h("figcaption.small.muted", feature.n > 1 ? `${name} ${i}` : name);
        players.push(h("figure", h(tag, {
          controls: true, preload: "metadata", hook: tag, label: name, src: bytesUrl(record.id, name, { value: i || undefined }),
          onerror: () => setText(note, `${name}: this browser cannot play ${value.type ?? "it"}.`),
        }), note));
      });
    } else if (kind && name === roles.audio) players.push(samples(record, name, roles.rate));
  }
  return players.length ? h("div.media", players) : null;
}

function samples(record, name, of) {
  const feature = record.features[name];
  const from = typeof of === "string" ? record.features[of] : null;
  const given = Math.round(Number(from ? from.int64?.[0] ?? from.float?.[0] : typeof of === "number" ? of : NaN));
  const rate = given >= 100 && given <= 768000 ? given : 16000;
  const assumed = rate === given ? "" : " (assumed, since the record has no rate)";
  const note = h("figcaption.small.muted",
    `${name}: ${number(feature.n)} samples, ${number(feature.n / rate)} s at ${number(rate)} Hz${assumed}`);
  const player = h("audio", { controls: true, hook: "audio", label: name });
  if (feature.n > LARGEST) return h("figure", setText(note, `${name} has ${number(feature.n)} samples, too many to be played.`), note);
  allValues(record, name).then((all) => {
    const url = URL.createObjectURL(wav(all, rate, kindOf(feature) === "int64"));
    made.set(player, url);
    player.src = url;
    release();
  }, (error) => setText(note, `${name}: ${error.message}`));
  return h("figure", player, note);
}
