// Turns one HTTP answer into the facts that are compared: ids, dates and URLs of the target become
// names. Knows no target.

const TERMS = new Set(["categories", "tags", "menus", "wp_pattern_category", "categories_exclude"]);
const POSTS = new Set(["parent", "post", "featured_media", "object_id"]);
const DATES = new Set(["date", "date_gmt", "modified", "modified_gmt"]);
const FILES = new Set(["source_url", "file", "src"]);
const LEFT_OUT = new Set([
  "class_list",
  "generated_slug",
  "permalink_template",
  "guid",
  "link",
  "preview_link",
  "_links",
  "_embedded",
]);
const OF_ARGUMENTS = [
  "type",
  "default",
  "enum",
  "required",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minItems",
  "maxItems",
  "format",
  "uniqueItems",
];

const isObject = (value) => typeof value === "object" && value !== null;
const ascending = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const sortedKeys = (value) => Object.keys(value ?? {}).sort(ascending);

/**
 * Returns the kind of record that an id in a response to `path` names: `post` (of any type), `term`
 * or `user`.
 */
function kindOfPath(path) {
  const [, collection] = /^\/core\/v2\/([a-z_-]+)/.exec(path) ?? [];
  if (TERMS.has(collection)) return "term";
  return collection === "users" ? "user" : "post";
}

/**
 * Returns the kind of the value at `place` of a response to `path`: the id of a `post`, `term` or
 * `user`, or a plain `value`.
 */
export function kindOfSave(place, path) {
  const last = place
    .replace(/\[\d+\]$/, "")
    .split(".")
    .at(-1);
  if (last === "author") return "user";
  if (TERMS.has(last)) return "term";
  if (POSTS.has(last)) return "post";
  return last === "id" ? kindOfPath(path) : "value";
}

/** Returns the value at a place such as `$[0].title.rendered`, or `undefined`. */
export const valueAt = (json, place) =>
  [...place.matchAll(/[\w-]+/g)].reduce((inner, [key]) => inner?.[key], json);

/**
 * Replaces what differs from run to run by names. `run`: base, site and namespace of the target,
 * the case's random word `uid`, the saved `vars` (name → { value, kind }), and the `dates` that the
 * case sets itself.
 */
export class Normaliser {
  constructor(run) {
    this.run = run;
  }

  nameOf(kind, value) {
    for (const [name, saved] of this.run.vars) {
      if (saved.kind === kind && String(saved.value) === String(value)) return `{{${name}}}`;
    }
    return undefined;
  }

  id(kind, value) {
    if (value === 0) return value;
    return this.nameOf(kind, value) ?? (kind === "user" ? "<user>" : "<id>");
  }

  text(given) {
    const { base, site, namespace, uid } = this.run;
    const post = (id) => this.nameOf("post", id) ?? "<id>";
    let text = given.replaceAll(base, "{site_api}").replaceAll(site, "{site}");
    if (namespace !== "core/v2") {
      text = text === namespace ? "core/v2" : text.replaceAll(`/${namespace}`, "/core/v2");
    }
    return text
      .replace(
        /(\/core\/v2\/([a-z_-]+)\/)(\d+)/g,
        (_, path, collection, id) =>
          path + (this.nameOf(TERMS.has(collection) ? "term" : "post", id) ?? "<id>"),
      )
      .replace(/\/(revisions|autosaves)\/(\d+)/g, (_, kind, id) => `/${kind}/${post(id)}`)
      .replace(/^(\d+)(-(?:revision|autosave)-v1)$/, (_, id, rest) => post(id) + rest)
      .replace(
        /([?&](?:p|page_id|attachment_id|post|preview_id|parent|post_id)=)(\d+)/g,
        (_, name, id) => name + post(id),
      )
      .replaceAll(uid, "{{uid}}")
      .replaceAll(uid.toUpperCase(), "{{UID}}")
      .replaceAll(uid[0].toUpperCase() + uid.slice(1), "{{Uid}}");
  }

  /** `value` of the field `key` in an answer about a record of `kind`. */
  value(value, key, html, kind) {
    if (value === null || value === undefined) return null;
    if (DATES.has(key)) {
      return typeof value === "string" && !this.run.dates.has(value.slice(0, 19)) ? "<date>" : value;
    }
    if (typeof value === "number") {
      if (key === "id") return this.id(kind, value);
      if (key === "author") return this.id("user", value);
      if (TERMS.has(key)) return this.id("term", value);
      if (key === "object_id" && value !== 0) {
        return this.nameOf("post", value) ?? this.nameOf("term", value) ?? "<id>";
      }
      return POSTS.has(key) ? this.id("post", value) : value;
    }
    if (typeof value === "string") {
      if (key === "rendered" && !html) return "<html>";
      if (key === "slug" && /^\d+$/.test(value)) return this.nameOf("post", value) ?? "<id>";
      return this.text(FILES.has(key) ? value.split("/").at(-1) : value);
    }
    if (typeof value === "boolean") return value;
    if (Array.isArray(value)) return value.map((one) => this.value(one, key, html, kind));
    const result = {};
    if (key === "media_details") {
      for (const name of ["width", "height"]) if (name in value) result[name] = value[name];
      if ("file" in value) result.file = this.value(value.file, "file", html, kind);
      if (isObject(value.sizes)) result.sizes = sortedKeys(value.sizes);
      return result;
    }
    for (const [name, inner] of Object.entries(value)) {
      if (!LEFT_OUT.has(name)) result[this.text(name)] = this.value(inner, name, html, kind);
    }
    return result;
  }
}

function argumentFacts(normal, argument) {
  const facts = {};
  for (const key of OF_ARGUMENTS) {
    const value = argument[key];
    if (!(key in argument) || (key === "required" && value === false)) continue;
    facts[key] = typeof value === "string" ? normal.text(value) : value;
  }
  if (argument.items) facts.items = argumentFacts(normal, argument.items);
  if (argument.properties && !Array.isArray(argument.properties)) {
    facts.properties = {};
    for (const key of sortedKeys(argument.properties)) {
      facts.properties[key] = argumentFacts(normal, argument.properties[key]);
    }
  }
  if (argument.oneOf) facts.oneOf = argument.oneOf.map((one) => argumentFacts(normal, one));
  return facts;
}

function endpointFacts(normal, endpoints, { args: withArguments = true, dropArgs = [] }) {
  return (endpoints ?? []).map(({ methods, allow_batch, args }) => {
    const facts = { methods };
    if (allow_batch) facts.allow_batch = allow_batch;
    if (withArguments) {
      facts.args = {};
      // WordPress writes an empty array instead of an empty object.
      for (const key of Array.isArray(args) ? [] : sortedKeys(args)) {
        if (!dropArgs.includes(key)) facts.args[key] = argumentFacts(normal, args[key]);
      }
    }
    return facts;
  });
}

/** `undefined` for what is no error. */
function errorFacts(body) {
  if (!isObject(body) || typeof body.code !== "string" || !("message" in body)) return undefined;
  const { params, details, status = null } = body.data ?? {};
  const facts = { code: body.code, status };
  if (params) facts.params = (Array.isArray(params) ? [...params] : Object.keys(params)).sort(ascending);
  if (details && !Array.isArray(details)) {
    facts.details = {};
    for (const key of sortedKeys(details)) facts.details[key] = details[key]?.code;
  }
  if (Array.isArray(body.additional_errors)) {
    facts.additional = body.additional_errors.map(({ code }) => code).sort(ascending);
  }
  return facts;
}

function embeddedFacts(normal, embedded, html) {
  const one = (item) => {
    if (Array.isArray(item)) return item.map(({ id }) => normal.value(id, "id", html, "term"));
    return item?.code ? `error:${item.code}` : `{${sortedKeys(item).join(",")}}`;
  };
  return Object.fromEntries(sortedKeys(embedded).map((key) => [key, [].concat(embedded[key]).map(one)]));
}

/** Checks the items of a response against a step. */
function resourceFacts(normal, resource, { step, fields, kind, html }) {
  const error = errorFacts(resource);
  if (error) return { error };
  const facts = { keys: sortedKeys(resource), values: {} };
  const wanted = step.full ? Object.keys(resource) : [...new Set([...(step.fields ?? []), ...fields])];
  if ("id" in resource) facts.values.id = normal.value(resource.id, "id", html, kind);
  for (const key of wanted.sort(ascending)) {
    if (!(key in resource) || LEFT_OUT.has(key) || step.omit?.includes(key)) continue;
    facts.values[key] = normal.value(resource[key], key, html, kind);
  }
  if (step.links && resource._links) facts.links = sortedKeys(resource._links);
  if (resource._embedded) facts.embedded = embeddedFacts(normal, resource._embedded, html);
  return facts;
}

function listFacts(normal, body, wanted) {
  const facts = {
    kind: "list",
    items: body.map((item) => {
      if (!isObject(item)) return item;
      return "id" in item ? normal.value(item.id, "id", wanted.html, wanted.kind) : "{}";
    }),
    keys: [...new Set(body.filter(isObject).flatMap((item) => Object.keys(item)))].sort(ascending),
  };
  const resources = () => body.map((item) => resourceFacts(normal, item, wanted));
  if (wanted.step.fields || wanted.step.full) facts.values = resources().map(({ values }) => values);
  if (body.some((item) => item?._embedded)) {
    facts.embedded = resources().map(({ embedded }) => embedded ?? null);
  }
  return facts;
}

function indexFacts(normal, body, { step, kind, html }) {
  const facts = { kind: "index", keys: sortedKeys(body) };
  if (step.pickRoutes) {
    facts.routes = {};
    for (const path of step.pickRoutes) {
      const route = body.routes[path.replace("/core/v2", `/${normal.run.namespace}`)];
      facts.routes[path] = route
        ? {
            namespace: normal.text(route.namespace ?? ""),
            methods: route.methods,
            endpoints: endpointFacts(normal, route.endpoints, step),
          }
        : null;
    }
  }
  if (step.fields) {
    facts.values = {};
    for (const key of step.fields) {
      facts.values[key] = key in body ? normal.value(body[key], key, html, kind) : "<absent>";
    }
  }
  if (step.hasNamespaces) {
    const namespaces = new Set((body.namespaces ?? []).map((name) => normal.text(name)));
    facts.namespaces = step.hasNamespaces.filter((name) => namespaces.has(name));
  }
  return facts;
}

function optionsFacts(normal, body, step) {
  const facts = {
    kind: "options",
    namespace: normal.text(body.namespace ?? ""),
    methods: body.methods,
    endpoints: endpointFacts(normal, body.endpoints, step),
    keys: sortedKeys(body),
  };
  if (body.schema) {
    facts.schema = { title: body.schema.title, properties: sortedKeys(body.schema.properties) };
  }
  return facts;
}

/** Of a parsed JSON body: `{ error }` or `{ body }`. `fields` are those that the case writes. */
export function bodyFacts(normal, body, { step, fields, path, method }) {
  const error = errorFacts(body);
  if (error) return { error };
  if (body === null) return { body: { kind: "empty" } };
  if (!isObject(body)) {
    return { body: { kind: "scalar", value: typeof body === "string" ? normal.text(body) : body } };
  }
  const wanted = { step, fields, kind: kindOfPath(path), html: step.html === true };
  if (Array.isArray(body)) return { body: listFacts(normal, body, wanted) };
  if (Array.isArray(body.responses)) {
    const inner = { step, fields, path: step.innerPath ?? "/core/v2/posts/1", method: "POST" };
    const responses = body.responses.map((response) =>
      response === null ? null : { status: response.status, ...bodyFacts(normal, response.body, inner) },
    );
    return { body: { kind: "batch", failed: body.failed ?? null, responses } };
  }
  if ("body" in body && "status" in body && "headers" in body) {
    const headers = new Headers(
      Object.entries(body.headers ?? {}).map(([name, value]) => [name, `${value}`]),
    );
    return {
      body: {
        kind: "envelope",
        status: body.status,
        headers: headerFacts(normal, headers),
        inner: bodyFacts(normal, body.body, { step, fields, path, method }),
      },
    };
  }
  if ("deleted" in body && "previous" in body) {
    const previous = resourceFacts(normal, body.previous, wanted);
    return { body: { kind: "deleted", deleted: body.deleted, keys: sortedKeys(body), previous } };
  }
  if (isObject(body.routes)) return { body: indexFacts(normal, body, wanted) };
  if (method === "OPTIONS" && body.endpoints) return { body: optionsFacts(normal, body, step) };
  return { body: { kind: "resource", ...resourceFacts(normal, body, wanted) } };
}

export function headerFacts(normal, headers) {
  const facts = {};
  const total = headers.get("x-wp-total");
  const totalPages = headers.get("x-wp-totalpages");
  const allow = headers.get("allow");
  const location = headers.get("location");
  if (total !== null) facts.total = total;
  if (totalPages !== null) facts.totalPages = totalPages;
  if (allow !== null) {
    facts.allow = allow
      .split(",")
      .map((method) => method.trim())
      .filter(Boolean)
      .sort(ascending);
  }
  if (location !== null) facts.location = normal.text(location).replace("{site_api}", "");
  const link = {};
  for (const [, url, relation] of (headers.get("link") ?? "").matchAll(/<([^>]*)>;\s*rel="?(next|prev)"?/g)) {
    const [, page] = /[?&]page=(\d+)/.exec(url) ?? [];
    link[relation] = page === undefined ? "present" : `page=${page}`;
  }
  if (Object.keys(link).length > 0) facts.link = link;
  return facts;
}
