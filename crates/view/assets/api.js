// Requests to the server that serves this page.

import { state } from "./state.js";

/** True for a request that the page itself gave up. */
export function aborted(error) {
  return error?.name === "AbortError";
}

/** The address of an answer. */
export function address(path, params) {
  const query = new URLSearchParams();
  // All paths take `set`, 1 for the data set of --baseline.
  const all = { set: state.set, ...params };
  for (const [name, value] of Object.entries(all)) {
    if (value != null && value !== "" && !(name === "set" && String(value) === "0")) query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

async function request(path, params, signal) {
  let response;
  try {
    response = await fetch(address(path, params), { signal });
  } catch (error) {
    if (aborted(error)) throw error;
    const lost = new Error("the server does not answer: is `tfseek view` still running?");
    lost.status = 0;
    throw lost;
  }
  if (response.ok) return response;
  let message = `the server answered ${response.status}`;
  try {
    message = (await response.json()).error ?? message;
  } catch (error) {
    if (aborted(error)) throw error; // Else the body is not JSON, and the status has to do.
  }
  const failed = new Error(message);
  failed.status = response.status;
  // Without the cookie, not even names are shown: the page asks for the token (app.js).
  if (response.status === 403) dispatchEvent(new Event("tfseek-forbidden"));
  throw failed;
}

/** Gets JSON. The Error thrown has the message of the server, and its `status` (0: no answer). */
export async function get(path, params = {}, { signal } = {}) {
  return (await request(path, params, signal)).json();
}

export async function text(path, params = {}, { signal } = {}) {
  return (await request(path, params, signal)).text();
}

/** The address of one byte string: of a feature, or without one, of the whole payload. */
export const bytesUrl = (id, feature, params) => address(`/api/bytes/${id}`, { feature, ...params });

export const buffer = async (path, params, signal) => (await request(path, params, signal)).arrayBuffer();

/** The first `n` bytes of a payload. */
export async function bytes(id, n, signal) {
  const response = await fetch(bytesUrl(id), { signal, headers: { Range: `bytes=0-${n - 1}` } });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer()).subarray(0, n);
}

/** Gets the values of a feature: Float32Array of floats, Float64Array of int64s (`kind` is "float" or "int64"). */
export async function values(id, feature, signal, kind) {
  return new (kind === "int64" ? Float64Array : Float32Array)(await buffer(`/api/values/${id}`, { feature }, signal));
}

/** Records of one request: also the unit in which records are kept. */
export const PAGE = 60;
const KEPT = 6000; // summaries

/** The summaries of records that were asked for lately. */
export function recordCache(set) {
  const kept = new Map(); // "features id" -> summary, the latest used last
  const key = (id, features) => `${features ?? ""} ${id}`;

  async function load(ids, features, signal) {
    const run = ids.every((id, i) => id === ids[0] + i);
    const params = run ? { from: ids[0], n: ids.length } : { ids: ids.join(",") };
    const found = await get("/api/records", { set, ...params, features }, { signal });
    for (const record of found.records) kept.set(key(record.id, features), record);
    for (const old of kept.keys()) {
      if (kept.size <= KEPT) break;
      kept.delete(old);
    }
  }

  return {
    /** The summary of a record, if it is here already. */
    peek(id, features) {
      return kept.get(key(id, features)) ?? null;
    },
    /** The summaries of `ids` in their order; null for a record that the server did not give. */
    async get(ids, { signal, features } = {}) {
      const missing = ids.filter((id) => !kept.has(key(id, features)));
      const parts = [];
      for (let at = 0; at < missing.length; at += PAGE) parts.push(load(missing.slice(at, at + PAGE), features, signal));
      await Promise.all(parts);
      return ids.map((id) => kept.get(key(id, features)) ?? null);
    },
  };
}
