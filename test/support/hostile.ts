/**
 * Values that no honest client sends, and ones that a schema asks for; the same for the same seed.
 */

import type { Json, JsonObject, Schema } from "../../src/schema/types.js";
import { manualClock } from "../../src/testing/manual-clock.js";

export interface Chance {
  /** From 0 up to, but not including, `below`. */
  readonly int: (below: number) => number;
  /** True once in `n` times. */
  readonly once: (n: number) => boolean;
  readonly pick: <T>(list: readonly T[]) => T;
}

export function chanceOf(seed: number): Chance {
  const clock = manualClock(0, { seed });
  const int = (below: number): number => Math.floor(clock.random() * below);
  return { int, once: (n) => int(n) === 0, pick: (list) => list[int(list.length)] as (typeof list)[number] };
}

const TEXTS: readonly string[] = [
  "",
  " ",
  "\0",
  "a\0b",
  "\ud800",
  "x\udc00y",
  "\u202egnp.exe",
  "\ufeff",
  "\uffff",
  "\u2028",
  "٠١",
  "İıß",
  "ﬀ",
  "👩‍👩‍👧",
  "e\u0301",
  "\r\nX-Evil: 1",
  "'; DROP TABLE posts; --",
  "%",
  "_",
  "%_\\",
  "%2e%2e%2f",
  "../../../etc/passwd",
  "(a+)+$",
  "[[[[",
  '"',
  '"unclosed phrase',
  "-",
  "- - -a",
  ",,,,",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "<script>alert(1)</script>",
  "<a href='javascript:alert(1)'>",
  "<!-- wp:html {",
  "<!-- wp:x /-->",
  "<!--more-->",
  "&#0;&#x110000;&amp",
  "javascript:alert(1)",
  "//evil.example",
  "http://[::1",
  "http://",
  "0",
  "-1",
  "1.5",
  "1e5",
  "1e400",
  "-0",
  "0x10",
  "NaN",
  "Infinity",
  "9007199254740993",
  "99999999999999999999",
  "1,2,3",
  "1 2",
  "true",
  "null",
  "[]",
  "{}",
  "any",
  "trash",
  "0000-00-00T00:00:00",
  "2026-02-30T25:61:61",
  "+275760-09-13T00:00:00Z",
  "-000001-01-01T00:00:00Z",
  "9999-12-31T23:59:59",
  "2016-12-31T23:59:60Z",
  "2026-01-01T00:00:00+99:99",
  "2026-11-21",
];

const LONG: readonly ((chance: Chance) => string)[] = [
  ({ int }) => "a".repeat(int(5_000)),
  ({ int }) => "é".repeat(int(400)),
  ({ int }) => "<b>".repeat(int(1_500)),
  ({ int }) => "<a <a ".repeat(int(700)),
  ({ int }) => "<!-- wp:group -->".repeat(int(300)),
  ({ int }) => " ".repeat(int(5_000)),
  ({ int }) => "- ".repeat(int(1_000)),
  ({ int }) => "\n".repeat(int(2_000)),
  ({ int }) => "a,".repeat(int(1_000)),
  ({ int }) => "[gallery ".repeat(int(500)),
  ({ int }) => "https://example.org/".repeat(int(100)),
];

const NUMBERS: readonly number[] = [
  0,
  -0,
  1,
  -1,
  0.5,
  5e-324,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 63,
  1e21,
  1e308,
  -1e308,
];

/** Own members with names that objects inherit; only the parser of JSON makes these. */
const TRAPS: readonly string[] = [
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"__proto__":null,"raw":"a"}',
  '{"toString":1,"valueOf":2}',
  '{"toJSON":1}',
  '{"then":1}',
  '{"length":1000000000}',
  '{"raw":{"raw":{"raw":[]}}}',
  '{"raw":null,"rendered":1,"protected":"x"}',
  '{"terms":[0,-1,1e400,"x"],"operator":"AND","include_children":[]}',
  '{"0":1,"1":2}',
];

export const hostileText = (chance: Chance): string => {
  if (chance.once(6)) return chance.pick(LONG)(chance);
  if (chance.once(8)) return chance.pick(TEXTS) + chance.pick(TEXTS);
  return chance.pick(TEXTS);
};

function nested(chance: Chance): Json {
  let value: Json = hostileText(chance);
  for (let level = chance.int(90); level > 0; level -= 1) value = chance.once(2) ? [value] : { raw: value };
  return value;
}

/** Any JSON value. Containers are small, but for some that are deep or wide. */
export function hostileValue(chance: Chance, levels = 3): Json {
  switch (chance.int(levels > 0 ? 10 : 6)) {
    case 0:
    case 1:
    case 2:
      return hostileText(chance);
    case 3:
      return chance.pick(NUMBERS);
    case 4:
      return chance.pick([null, true, false]);
    case 5:
      return JSON.parse(chance.pick(TRAPS)) as Json;
    case 6:
      return Array.from({ length: chance.int(4) }, () => hostileValue(chance, levels - 1));
    case 7:
      return chance.once(4) ? nested(chance) : hostileValue(chance, levels - 1);
    case 8:
      return chance.once(20) ? Array.from({ length: 3_000 }, (_, at) => at) : [];
    default:
      return Object.fromEntries(
        Array.from({ length: chance.int(4) }, () => [hostileText(chance), hostileValue(chance, levels - 1)]),
      );
  }
}

const WORDS = ["apple", "Beta", "gamma ray", "delta-4", "the end", "<em>eta</em>"];
const DATES = ["2026-11-21T12:00:00", "2001-01-01T00:00:00Z", "2099-05-05T05:05:05+02:00"];

/** One that the schema takes, most of the time. `ids` are some that exist. */
export function plausibleValue(schema: Schema, chance: Chance, ids: readonly number[]): Json {
  const { enum: values, oneOf, properties, items, format } = schema;
  if (values !== undefined) return chance.pick(values as readonly Json[]);
  if (oneOf !== undefined) return plausibleValue(chance.pick(oneOf), chance, ids);
  const type = Array.isArray(schema.type) ? chance.pick(schema.type as readonly string[]) : schema.type;
  if (type === "boolean") return chance.once(2);
  if (type === "integer" || type === "number") {
    return chance.once(3) || ids.length === 0 ? chance.int(7) : chance.pick(ids);
  }
  if (type === "array") {
    return Array.from({ length: chance.int(3) }, () => plausibleValue(items ?? {}, chance, ids));
  }
  if (type === "object") {
    return Object.fromEntries(
      Object.entries(properties ?? {})
        .filter(() => chance.once(2))
        .map(([name, member]) => [name, plausibleValue(member, chance, ids)]),
    );
  }
  if (format === "date-time") return chance.pick(DATES);
  return format === "uri" ? "https://example.org/a" : chance.pick(WORDS);
}

/** A query string in PHP's notation. */
export function queryText(values: JsonObject): string {
  const pairs: string[] = [];
  const add = (name: string, value: Json): void => {
    if (typeof value === "object" && value !== null) {
      for (const [member, item] of Object.entries(value)) add(`${name}[${member}]`, item);
    } else pairs.push(`${encoded(name)}=${encoded(String(value))}`);
  };
  for (const [name, value] of Object.entries(values)) add(name, value);
  return pairs.join("&");
}

/** Texts that cannot be encoded are sent unchanged. */
const encoded = (text: string): string => {
  try {
    return encodeURIComponent(text);
  } catch {
    return text;
  }
};
