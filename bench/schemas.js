// Searches for the schema and the data of at most 1 MB that cost a validation most: a hill climber
// that mutates and crosses hostile families. `node bench/schemas.js [seconds] [seed]`.
import { build } from "esbuild";

const [seconds = 300, firstSeed = 1] = process.argv.slice(2).map(Number);
const MAX_CHARACTERS = 1_000_000;
const POPULATION = 24;
/** Validations of fewer steps are too short to compare their time with their steps. */
const MIN_STEPS = 200_000;

// The package does not export its validator.
const modules = ["data-schema", "budget"].map((name) => `export * from "./src/json-schema/${name}.ts";`);
const { outputFiles } = await build({
  stdin: { contents: modules.join("\n"), resolveDir: `${import.meta.dirname}/..` },
  bundle: true,
  write: false,
  format: "esm",
  platform: "node",
});
const source = outputFiles.map(({ text }) => encodeURIComponent(text)).join("");
const { Budget, TooComplexError, parseDataSchema } = await import(`data:text/javascript,${source}`);

let seed = firstSeed;
/** A whole number below `limit`, the same in every run with this seed. */
function random(limit) {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((seed / 2 ** 32) * limit);
}
const pick = (list) => list[random(list.length)];
const repeat = (count, make) => Array.from({ length: count }, (_, index) => make(index));
const members = (count, make) => Object.fromEntries(repeat(count, make));

/** Whole numbers and texts of digits that Node's hash tables without a secret put in few places. */
function hash(key) {
  let h = (~key + (key << 15)) >>> 0;
  h = (h ^ (h >>> 12)) >>> 0;
  h = (h + (h << 2)) >>> 0;
  h = Math.imul((h ^ (h >>> 4)) >>> 0, 2_057) >>> 0;
  return (h ^ (h >>> 16)) & 0x3fffffff;
}
function collide(count, { bits, from, step = 1 }) {
  const found = [];
  for (let key = from; found.length < count && key < 2 ** 31; key += step)
    if ((hash(key + (step - 1)) & (2 ** bits - 1)) === 0) found.push(key);
  return found;
}
const numbers = collide(30_000, { bits: 16, from: 0 });
const characters = collide(1_000, { bits: 10, from: 0x1_0000 }).filter((code) => code < 0x11_0000);

const PATTERNS = [
  "^(a+)+$",
  "^(?:a|b)*a(?:a|b){400}c$",
  "a(a|b){600}c",
  "^(?:\\p{L}|\\d)*\\p{L}(?:\\p{L}|\\d){300}c$",
  "^.*$",
  "(.*)(.*)(.*)=(.*)",
  "^b",
  "k",
  "[^\\p{L}]{100}$",
  "\\b\\w+\\b!",
  "(x?){500}y",
  "(a|aa|aaa)*c",
];
const FORMATS = [
  "uri",
  "url",
  "regex",
  "email",
  "uri-template",
  "json-pointer",
  "date-time",
  "duration",
  "hostname",
];
const LEAVES = [
  {},
  true,
  { type: "null" },
  { type: ["object", "array", "string", "number"] },
  { const: [1] },
  { enum: [{ a: 1 }, [0], 1, "a"] },
  { uniqueItems: true },
  { minProperties: 1 },
  { maxProperties: 9e9 },
  { multipleOf: 5e-324 },
  { multipleOf: 3 },
  { multipleOf: 0.01 },
  { minLength: 500_000 },
  { maxLength: 400_000 },
  ...PATTERNS.map((pattern) => ({ pattern })),
  ...FORMATS.map((format) => ({ format })),
];
const names = (count) => repeat(count, (index) => `k${index}`);

/** Keywords around a schema. `$defs.s` is the one that `$ref` means. */
const WRAPPERS = {
  allOf: (inner, count) => ({ allOf: repeat(count, () => inner()) }),
  anyOf: (inner, count) => ({ anyOf: [...repeat(count, () => ({ not: inner() })), inner()] }),
  anyOfAll: (inner, count) => ({ anyOf: repeat(count, () => inner()) }),
  oneOf: (inner, count) => ({ oneOf: [...repeat(count, () => ({ not: inner() })), inner()] }),
  not: (inner) => ({ not: { not: inner() } }),
  if: (inner) => ({ if: { not: inner() }, else: inner() }),
  items: (inner) => ({ items: inner() }),
  prefixItems: (inner, count) => ({ prefixItems: repeat(count, () => inner()), items: inner() }),
  contains: (inner, count) => ({ contains: inner(), minContains: count, maxContains: 9e9 }),
  unevaluatedItems: (inner) => ({ ...inner(), unevaluatedItems: true }),
  unevaluatedProperties: (inner) => ({ ...inner(), unevaluatedProperties: true }),
  additionalProperties: (inner) => ({ additionalProperties: inner() }),
  properties: (inner, count) => ({ properties: members(count, (index) => [`k${index}`, inner()]) }),
  patternProperties: (inner, count) => ({
    patternProperties: members(count, (index) => [
      `^k?${index}|${PATTERNS[index % PATTERNS.length]}`,
      inner(),
    ]),
  }),
  propertyNames: (inner) => ({ propertyNames: inner() }),
  required: (inner, count) => ({ ...inner(), required: names(count) }),
  dependentRequired: (inner, count) => ({
    ...inner(),
    dependentRequired: members(count, (index) => [`k${index}`, names(3)]),
  }),
  dependentSchemas: (inner, count) => ({
    dependentSchemas: members(count, (index) => [`k${index}`, inner()]),
  }),
  and: (inner, count) => ({ ...inner(), ...LEAVES[count % LEAVES.length] }),
  recursive: (inner) => ({
    anyOf: [inner(), { items: { $ref: "#" } }, { additionalProperties: { $ref: "#" } }],
  }),
  shared: (inner) => ({ $ref: "#/$defs/s", $defs: { s: inner() } }),
};

const deep = (levels, inner) => repeat(levels, () => 0).reduce((value) => [value], inner);
const UNITS = {
  zero: () => 0,
  float: (index) => index + 0.123_456_789,
  huge: () => 1e308,
  collidingNumber: (index) => numbers[index % numbers.length],
  digits: (index) => String(index * 131_072),
  empty: () => ({}),
  list: () => [],
  near: (index) => ({ b: "x".repeat(20), a: [index, { c: null }] }),
  small: (index) => ({ k0: index, k1: 1, k2: "a" }),
  deep: () => deep(150, 0),
  text: (index) => `${"a".repeat(30)}${index}`,
  ab: (index) => hash(index).toString(2).replaceAll("0", "a").replaceAll("1", "b"),
  collidingText: (index) => String.fromCodePoint(characters[index % characters.length]).repeat(3),
  mixed: (index) =>
    characters
      .slice(index % 900, (index % 900) + 60)
      .map((code) => String.fromCodePoint(code))
      .join(""),
  regex: (index) => "\\p{L}[^\\p{Lu}](?<a>x)".slice(0, 13).repeat(200) + index,
  url: (index) => `http://a@[v1.${"%aa".repeat(20)}]/${"%aa".repeat(200)}?${index}`,
  escapes: () => "\u0001\ud800".repeat(20),
};
const SHAPES = {
  array: (unit, count) => repeat(count, unit),
  object: (unit, count) => members(count, (index) => [`k${index}`, unit(index)]),
  indexed: (unit, count) => members(count, (index) => [String(index * 7_919), unit(index)]),
  longNames: (unit, count) => members(count, (index) => [`${"k".repeat(80)}${index}`, unit(index)]),
  text: (unit, count) => repeat(count, (index) => JSON.stringify(unit(index))).join(""),
  rows: (unit, count) => repeat(Math.ceil(count / 50), () => repeat(50, unit)),
  records: (unit, count) =>
    repeat(Math.ceil(count / 50), () => members(50, (index) => [`k${index}`, unit(index)])),
};

/** The JSON of as many units as fit. */
function makeText({ shape, unit, size }) {
  let count = Math.ceil(size / (JSON.stringify(UNITS[unit](1_000)).length + 1));
  for (;;) {
    const text = JSON.stringify(SHAPES[shape](UNITS[unit], count));
    if (text.length <= MAX_CHARACTERS) return text;
    count = Math.floor((count * MAX_CHARACTERS) / text.length) - 1;
  }
}

function makeSchema({ wraps, leaf }) {
  const build = (at) => {
    const wrap = wraps[at];
    return wrap === undefined ? { ...LEAVES[leaf] } : WRAPPERS[wrap.keyword](() => build(at + 1), wrap.count);
  };
  return build(0);
}

const randomCount = () => Math.ceil(2 ** (random(110) / 10));
const randomWrap = () => ({ keyword: pick(Object.keys(WRAPPERS)), count: randomCount() });
const randomData = () => ({
  shape: pick(Object.keys(SHAPES)),
  unit: pick(Object.keys(UNITS)),
  size: MAX_CHARACTERS,
});
const randomCandidate = () => ({
  wraps: repeat(random(4), randomWrap),
  leaf: random(LEAVES.length),
  data: randomData(),
});

/** Changes one part of a candidate, or takes it from another one. */
function mutate({ wraps, leaf, data }, other) {
  const at = random(wraps.length + 1);
  const changes = [
    () => ({ wraps: wraps.toSpliced(at, 0, randomWrap()), leaf, data }),
    () => ({ wraps: wraps.toSpliced(at, 1), leaf, data }),
    () => ({ wraps: wraps.toSpliced(at, 1, randomWrap()), leaf, data }),
    () => ({ wraps: wraps.map((wrap) => ({ ...wrap, count: randomCount() })), leaf, data }),
    () => ({ wraps, leaf: random(LEAVES.length), data }),
    () => ({ wraps, leaf, data: { ...data, shape: pick(Object.keys(SHAPES)) } }),
    () => ({ wraps, leaf, data: { ...data, unit: pick(Object.keys(UNITS)) } }),
    () => ({ wraps, leaf, data: { ...data, size: Math.ceil(MAX_CHARACTERS / 2 ** random(6)) } }),
    () => ({ wraps: [...wraps.slice(0, at), ...other.wraps.slice(-at)], leaf: other.leaf, data }),
    () => ({ wraps, leaf, data: other.data }),
  ];
  return pick(changes)();
}

/** Milliseconds of CPU, with those of the compiler and the collector. */
function time(work) {
  const start = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(start);
  return { ms: (user + system) / 1_000, result };
}

/** A fixed loop over a Map, to compare with on a busy machine. */
function runLoop() {
  const map = new Map();
  for (let index = 0; index < 1_000_000; index += 1) map.set(`k${index % 50_000}`, index);
  return map.size;
}

function validate(schema, text) {
  const budget = new Budget(text.length);
  const data = JSON.parse(text);
  const { ms, result } = time(() => {
    try {
      return schema.findMistake(data, budget)?.keyword ?? "valid";
    } catch (error) {
      if (error instanceof TooComplexError) return "too complex";
      throw error;
    }
  });
  return { ms, steps: budget.spent, result };
}

const texts = new Map();
function textOf(data) {
  const key = JSON.stringify(data);
  const text = texts.get(key) ?? makeText(data);
  if (texts.size > 100) texts.clear();
  texts.set(key, text);
  return text;
}

/** Validates with the schema as it is at the first event. */
function measure(candidate) {
  const parsed = parseDataSchema(makeSchema(candidate));
  const text = textOf(candidate.data);
  if ("mistake" in parsed) return { candidate, ms: 0, ratio: 0 };
  const { ms, steps, result } = validate(parsed.schema, text);
  const ratio = steps < MIN_STEPS ? 0 : (ms * 1e6) / steps;
  return { candidate, characters: text.length, ms, steps, ratio, result };
}

/** The best of some runs, because of other load. */
const measureAgain = ({ candidate }) =>
  repeat(3, () => measure(candidate)).toSorted((one, other) => one.ms - other.ms)[0];

const byMs = (one, other) => other.ms - one.ms;
const byRatio = (one, other) => other.ratio - one.ratio;

/** Half are those that take longest, half those that take longest for each step. */
function select(population) {
  const distinct = [...new Map(population.map((one) => [JSON.stringify(one.candidate), one])).values()];
  const longest = distinct.toSorted(byMs).slice(0, POPULATION / 2);
  return [...longest, ...distinct.toSorted(byRatio).slice(0, POPULATION / 2)];
}

function describe({ candidate: { wraps, leaf, data }, ms, steps, ratio, characters: length, result }) {
  const path = wraps.map(({ keyword, count }) => `${keyword}×${count}`).join(" › ");
  const what = `${path} › ${JSON.stringify(LEAVES[leaf]).slice(0, 60)} on ${data.shape} of ${data.unit}`;
  return `${ms.toFixed(0)} ms, ${steps} steps, ${ratio.toFixed(0)} ns/step, ${length} characters, ${result}: ${what}`;
}

const { user: startedAt } = process.cpuUsage();
const loops = [];
let population = repeat(2 * POPULATION, () => measure(randomCandidate()));
let measured = population.length;
while (process.cpuUsage().user < startedAt + seconds * 1e6) {
  population = select(population);
  const parent = random(5) === 0 ? randomCandidate() : pick(population).candidate;
  const child = measure(mutate(parent, pick(population).candidate));
  const isAmongWorst = population.some(({ ms, ratio }) => child.ms > 1.2 * ms && child.ratio > 1.2 * ratio);
  population.push(isAmongWorst ? measureAgain(child) : child);
  measured += 1;
  if (measured % 50 === 0) loops.push(time(runLoop).ms);
}
const confirmed = select(population).map(measureAgain);
const loop = loops.toSorted((one, other) => one - other)[Math.floor(loops.length / 2)] ?? time(runLoop).ms;
console.log(`${measured} pairs; the fixed loop takes ${loop.toFixed(0)} ms`);
console.log("longest:");
for (const one of confirmed.toSorted(byMs).slice(0, 8)) console.log(describe(one));
console.log("longest for each step:");
for (const one of confirmed.toSorted(byRatio).slice(0, 8)) console.log(describe(one));
