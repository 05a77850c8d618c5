// Plays the steps of one case on a target over HTTP and returns the facts of each.

import { randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { bodyFacts, headerFacts, kindOfSave, Normaliser, valueAt } from "./facts.js";

const DEADLINE_MS = 30_000;
/** Members of a body that are no fields of what it writes. */
const NO_FIELDS = new Set(["validation", "requests", "force", "id", "context", "_method"]);
const TERM_ROUTE = /\/(categories|tags|menus|wp_pattern_category)$/;

const isObject = (value) => typeof value === "object" && value !== null;

function randomWord() {
  return `q${[...randomBytes(7)].map((byte) => "bcdfghjklmnpqrstvwxz"[byte % 20]).join("")}`;
}

/**
 * `{{name}}` becomes the saved value, in texts, lists and objects; `/core/v2` the target's
 * namespace.
 */
function substitute(value, vars, namespace) {
  if (typeof value === "string") {
    const [, whole] = /^\{\{(\w+)\}\}$/.exec(value) ?? [];
    if (vars.has(whole)) return vars.get(whole).value;
    return value
      .replace(/\{\{(\w+)\}\}/g, (all, name) => (vars.has(name) ? `${vars.get(name).value}` : all))
      .replace(/\/core\/v2(?=\/|$|\?)/g, `/${namespace}`);
  }
  if (Array.isArray(value)) return value.map((one) => substitute(one, vars, namespace));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      substitute(key, vars, namespace),
      substitute(inner, vars, namespace),
    ]),
  );
}

function queryText(query) {
  if (query === undefined || query === null) return "";
  if (typeof query === "string") return `?${query}`;
  const pair = (name, value) => `${name}=${encodeURIComponent(value)}`;
  const pairs = Object.entries(query).flatMap(([key, value]) => {
    const name = encodeURIComponent(key);
    return Array.isArray(value) ? value.map((one) => pair(`${name}[]`, one)) : pair(name, value);
  });
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

function multipart({ fields = {}, files = {} }, fixtures) {
  const boundary = `----conformance${randomBytes(8).toString("hex")}`;
  const head = (disposition) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n`;
  const chunks = [];
  for (const [name, value] of Object.entries(fields)) {
    chunks.push(Buffer.from(`${head(`name="${name}"`)}\r\n${value}\r\n`));
  }
  for (const [name, { fixture, filename, type }] of Object.entries(files)) {
    const disposition = `name="${name}"; filename="${filename}"`;
    chunks.push(
      Buffer.from(`${head(disposition)}Content-Type: ${type}\r\n\r\n`),
      Buffer.from(fixtures[fixture].base64, "base64"),
      Buffer.from("\r\n"),
    );
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`));
  return { body: Buffer.concat(chunks), type: `multipart/form-data; boundary=${boundary}` };
}

/** The bytes of a step's body and their media type. */
function payload(given, fill, fixtures) {
  if (given?.$fixture) {
    const { base64, type } = fixtures[given.$fixture];
    return { body: Buffer.from(base64, "base64"), type };
  }
  if (given?.$multipart) return multipart(fill(given.$multipart), fixtures);
  if (given?.$form !== undefined) {
    return { body: `${fill(given.$form)}`, type: "application/x-www-form-urlencoded" };
  }
  const body = given?.$raw === undefined ? JSON.stringify(fill(given)) : fill(given.$raw);
  return { body, type: "application/json" };
}

/** Every date that the case itself sends: these are compared, others are not. */
function collectDates(value, dates = new Set()) {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d/.test(value)) {
    dates.add(value.slice(0, 19).replace(" ", "T"));
  } else if (isObject(value)) {
    for (const inner of Object.values(value)) collectDates(inner, dates);
  }
  return dates;
}

/** Every field that the case writes: these are compared in all its answers. */
function writtenFields({ steps }) {
  const bodies = steps
    .filter(({ setup, path }) => !(setup && TERM_ROUTE.test(path)))
    .flatMap(({ body }) => [
      body,
      body?.$multipart?.fields,
      ...(Array.isArray(body?.requests) ? body.requests.map((request) => request?.body) : []),
    ]);
  const names = bodies
    .filter((body) => isObject(body) && !Array.isArray(body))
    .flatMap((body) => Object.keys(body))
    .filter((name) => !name.startsWith("$") && !NO_FIELDS.has(name));
  return [...new Set(names)];
}

function parse(text) {
  try {
    return { json: JSON.parse(text) };
  } catch {
    return {};
  }
}

function factsOf(normal, step, fields, response, text, json) {
  if (step.setup) return { status: response.status };
  const type = (response.headers.get("content-type") ?? "").split(";")[0].trim();
  const facts = { status: response.status, type };
  const headers = headerFacts(normal, response.headers);
  if (Object.keys(headers).length > 0) facts.headers = headers;
  if (step.responseHeaders) {
    facts.extra = {};
    for (const name of step.responseHeaders) {
      const value = response.headers.get(name);
      facts.extra[name] = value === null ? null : normal.text(value);
    }
  }
  if (json !== undefined) {
    Object.assign(facts, bodyFacts(normal, json, { step, fields, path: step.path, method: step.method }));
  } else if (text === "") facts.body = { kind: "empty" };
  else {
    const start = normal.text(text.slice(0, 60)).replace(/\s+/g, " ").slice(0, 40);
    facts.body = { kind: "text", start };
  }
  return step.only
    ? Object.fromEntries(step.only.flatMap((name) => (name in facts ? [[name, facts[name]]] : [])))
    : facts;
}

/**
 * The facts of every step, in order. `target`: { base, site, namespace, auth: role → { headers } }.
 * A request that gets no answer has the status 0.
 */
export async function playCase(recorded, { base, site, namespace, auth }, fixtures) {
  const uid = randomWord();
  const vars = new Map([
    ["uid", { value: uid, kind: "uid" }],
    ["UID", { value: uid.toUpperCase(), kind: "uid" }],
    ["site", { value: site, kind: "site" }],
    ["site_api", { value: base, kind: "site" }],
  ]);
  const dates = collectDates([recorded.dates, recorded.steps.map(({ body, query }) => [body, query])]);
  const fields = writtenFields(recorded);
  const normal = new Normaliser({ base, site, namespace, uid, vars, dates });
  const fill = (value) => substitute(value, vars, namespace);
  const results = [];
  for (const step of recorded.steps) {
    if (step.wait) await wait(step.wait);
    const headers = { ...auth[step.as]?.headers };
    const hasBody = step.body !== undefined && step.body !== null;
    const { body, type } = hasBody ? payload(step.body, fill, fixtures) : {};
    if (type !== undefined) headers["Content-Type"] = type;
    Object.assign(headers, fill(step.headers ?? {}));
    let response;
    let text;
    try {
      response = await fetch(base + fill(step.path) + queryText(fill(step.query)), {
        method: step.method,
        headers,
        body,
        redirect: "manual",
        signal: AbortSignal.timeout(DEADLINE_MS),
      });
      text = await response.text();
    } catch (error) {
      results.push({ status: 0, transport: `${error.cause?.code ?? error.name}` });
      continue;
    }
    const { json } = parse(text);
    // First of all, so that the facts can name what is saved.
    for (const [name, place] of Object.entries(step.save ?? {})) {
      const value = valueAt(json, place);
      if (value !== undefined) vars.set(name, { value, kind: kindOfSave(place, step.path) });
    }
    results.push(factsOf(normal, step, fields, response, text, json));
  }
  return results;
}
