/** Regular expressions of hosts: the same results as Node's own engine, in linear time. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Budget } from "../../src/json-schema/budget.js";
import { Pattern } from "../../src/json-schema/pattern.js";

const unlimited = () => new Budget(Number.POSITIVE_INFINITY);

const stepsOf = (source: string, text: string): number => {
  const budget = unlimited();
  new Pattern(source).matches(text, budget);
  return budget.spent;
};

const atom = fc.constantFrom(
  ...["a", "b", "-", ".", "é", "😀", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\.", "\\/", "/", "\\u0061"],
  ...["\\u{1f600}", "\\ud83d\\ude00", "\\x41", "\\cJ", "\\n", "\\0", "\\p{L}", "\\P{Lu}", "[ab]", "[^ab]"],
  ...["[a-c\\]]", "[\\d-]", "[^]", "[]", "[\\]\\\\]", "[😀-😂]", "\\b", "\\B", "^", "$"],
);
const isAssertion = (source: string): boolean => ["\\b", "\\B", "^", "$"].includes(source);
const quantifier = fc.constantFrom(
  "",
  "",
  "",
  "*",
  "+",
  "?",
  "*?",
  "+?",
  "??",
  "{2}",
  "{1,}",
  "{0,2}",
  "{0}",
  "{1,3}?",
);
const { source } = fc.letrec<{ source: string; sequence: string; term: string; group: string }>((tie) => ({
  source: fc.array(tie("sequence"), { minLength: 1, maxLength: 3 }).map((parts) => parts.join("|")),
  sequence: fc.array(tie("term"), { maxLength: 4 }).map((parts) => parts.join("")),
  term: fc
    .tuple(fc.oneof({ maxDepth: 2 }, atom, atom, tie("group")), quantifier)
    .map(([part, sign]) => (isAssertion(part) ? part : part + sign)),
  group: fc.tuple(fc.constantFrom("(", "(?:"), tie("source")).map(([start, inner]) => `${start}${inner})`),
}));
const text = fc.string({
  unit: fc.constantFrom("a", "b", "c", "A", "1", "-", " ", "\n", "é", "😀", "\ud83d", "\\", "]", "/"),
  maxLength: 5,
});

/**
 * Tries each character: left alone, V8 also begins within a surrogate pair, where "\\B" matches.
 * ECMA-262 forbids that (RegExpBuiltinExec, AdvanceStringIndex).
 */
const matchesInNode = (source: string, text: string): boolean => {
  const engine = new RegExp(source, "uy");
  let start = 0;
  for (const character of text) {
    engine.lastIndex = start;
    if (engine.test(text)) return true;
    start += character.length;
  }
  engine.lastIndex = start;
  return engine.test(text);
};

describe("a pattern", () => {
  it("does not begin within a surrogate pair", () => {
    const pattern = new Pattern("\\B");
    const matches = ["a😀a", "ab", "😀", "a"].map((one) => pattern.matches(one, unlimited()));
    expect(matches).toEqual([false, true, true, false]);
  });

  // The texts are short, because Node's engine may need exponential time.
  it("matches what Node's engine matches", () => {
    fc.assert(
      fc.property(source, fc.array(text, { minLength: 1, maxLength: 5 }), (pattern, texts) => {
        const own = new Pattern(pattern);
        for (const one of texts)
          expect([one, own.matches(one, unlimited())]).toEqual([one, matchesInNode(pattern, one)]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("may name its groups, and repeat them", () => {
    const pattern = new Pattern("^(?<year>\\d{4})(?:-(?<part>\\d\\d)){1,2}$");
    const matches = ["2026-01", "2026-01-31", "2026", "2026-01-31-01"].map((one) =>
      pattern.matches(one, unlimited()),
    );
    expect(matches).toEqual([true, true, false, false]);
  });

  it.each([
    ["^(a+)+$", "a"],
    ["a+$", "a"],
    ["(a|a)*c", "a"],
    ["^(a|aa|aaa)*c$", "a"],
    ["([a-zA-Z]+)*@", "ab"],
    ["^(\\w+\\s?)*$", "ab "],
    ["^(.*?,){11}P", "1,"],
    ["(.*)(.*)(.*)=(.*)", "x"],
    ["^\\b(\\w|\\d)*\\b!", "a1"],
  ])("takes steps that grow with the text only: %s", (pattern, unit) => {
    const [short, long] = [1_000, 8_000].map((count) => stepsOf(pattern, `${unit.repeat(count)}!`));
    expect(long).toBeLessThanOrEqual(8 * (short ?? 0) + 1_000);
    expect(long).toBeLessThanOrEqual(2 * 8_000 * unit.length + 20_000);
  });

  it("ends with the text if it can only match at the beginning", () => {
    expect(stepsOf("^\\d+$", `x${"1".repeat(100_000)}`)).toBeLessThan(50);
  });

  it("remembers little, and stays right when it forgets", () => {
    const pattern = new Pattern("^(?:a|b)*a(?:a|b){12}$");
    const node = /^(?:a|b)*a(?:a|b){12}$/u;
    for (let seed = 1; seed < 400; seed += 1) {
      const one = (seed * 2_654_435_761).toString(2).repeat(3).replaceAll("0", "a").replaceAll("1", "b");
      expect(pattern.matches(one, unlimited())).toBe(node.test(one));
    }
  });

  it.each([
    ["an open group", "(", "is not a regular expression of ECMAScript with the flag u"],
    [
      "a class that only old engines know",
      "[\\w-.]",
      "is not a regular expression of ECMAScript with the flag u",
    ],
    ["a lookahead", "^(?=.*\\d)", "lookaround"],
    ["a lookbehind", "(?<!a)b", "lookaround"],
    ["a numbered reference", "(a)\\1", "reference to a group"],
    ["a named reference", "(?<a>x)\\k<a>", "reference to a group"],
    ["nested repetitions", "(a{1000}){1000}", "at most 2000 states"],
    ["repetitions of nothing", "(){1000000}", "too large"],
    ["200 levels", `${"(".repeat(200)}${")".repeat(200)}`, "more than 100 levels"],
    ["5000 characters", "a".repeat(5_000), "longer than 4096 characters"],
  ])("is refused if it has %s", (_, pattern, message) => {
    expect(() => new Pattern(pattern)).toThrow(message);
  });
});
