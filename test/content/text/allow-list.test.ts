/**
 * The allow-list of the sanitiser against WordPress 7.1's. Each difference stands in the decision
 * with a reason, and the decision lists no other.
 */

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import {
  type AttributesByTag,
  POST_GLOBALS,
  POST_TAGS,
  TITLE_TAGS,
} from "../../../src/content/text/allowed-tags.js";
import {
  cleanStyle,
  STYLE_FAMILIES,
  STYLE_FUNCTIONS,
  STYLE_PROPERTIES,
} from "../../../src/content/text/style-attribute.js";
import { isSafeUrl, URL_SCHEMES } from "../../../src/content/text/urls.js";

interface Elements {
  /** Attributes that every element of the group may have. */
  readonly attributes: string;
  readonly elements: AttributesByTag;
}

interface AllowedHtml {
  readonly html: Elements;
  readonly math: Elements;
  readonly title: AttributesByTag;
  readonly styles: string;
  readonly styleFunctions: string;
  readonly schemes: string;
}

const wordpress: AllowedHtml = JSON.parse(
  readFileSync(new URL("../../data/wordpress-allowed-html.json", import.meta.url), "utf8"),
);

const words = (text: string): string[] => text.split(" ").filter((word) => word !== "");

/** `+ name` for what is only here, `- name` for what is only in WordPress. `a*` is a beginning. */
const compare = (ours: readonly string[], theirs: readonly string[]): string[] => {
  const isIn = (names: readonly string[], name: string): boolean =>
    names.some((one) => one === name || (one.endsWith("*") && name.startsWith(one.slice(0, -1))));
  return [
    ...ours.filter((name) => !isIn(theirs, name)).map((name) => `+ ${name}`),
    ...theirs.filter((name) => !isIn(ours, name)).map((name) => `- ${name}`),
  ];
};

/** Differences of one group: elements as `+ bdi`, attributes as `+ a[ping]`, `+ html[role]`. */
function compareGroup(group: "html" | "math"): string[] {
  const { attributes, elements } = wordpress[group];
  const isMath = (tag: string): boolean => Object.hasOwn(wordpress.math.elements, tag);
  const ours = Object.keys(POST_TAGS).filter((tag) => isMath(tag) === (group === "math"));
  const shared = ours.filter((tag) => Object.hasOwn(elements, tag));
  const byTag = shared.map((tag) =>
    compare(
      [...words(POST_TAGS[tag] ?? ""), ...words(POST_GLOBALS)],
      [...words(elements[tag] ?? ""), ...words(attributes)],
    ),
  );
  const everywhere = (byTag[0] ?? []).filter((difference) => byTag.every((all) => all.includes(difference)));
  const within = (difference: string, tag: string): string => difference.replace(/ (.*)/, ` ${tag}[$1]`);
  return [
    ...compare(ours, Object.keys(elements)),
    ...everywhere.map((difference) => within(difference, group)),
    ...byTag.flatMap((all, n) =>
      all
        .filter((difference) => !everywhere.includes(difference))
        .map((difference) => within(difference, shared[n] ?? "")),
    ),
  ];
}

function compareTitles(): string[] {
  const flat = (tags: AttributesByTag): string[] =>
    Object.entries(tags).flatMap(([tag, names]) => [
      `title ${tag}`,
      ...words(names).map((name) => `title ${tag}[${name}]`),
    ]);
  return compare(flat(TITLE_TAGS), flat(wordpress.title));
}

function compareStyles(): string[] {
  const theirs = words(wordpress.styles);
  const families = STYLE_FAMILIES.map((family) => `${family}*`);
  return compare([...families, ...STYLE_PROPERTIES], theirs).map((difference) =>
    difference.replace(" ", " style "),
  );
}

const compareListed = (kind: string, ours: readonly string[], theirs: string): string[] =>
  compare(ours, words(theirs)).map((difference) => difference.replace(" ", ` ${kind} `));

const differences = (): string[] => [
  ...compareGroup("html"),
  ...compareGroup("math"),
  ...compareTitles(),
  ...compareStyles(),
  ...compareListed("function", [...STYLE_FUNCTIONS, "url"], wordpress.styleFunctions),
  ...compareListed("scheme", URL_SCHEMES, wordpress.schemes),
];

/** The differences that the decision gives reasons for: code in the first column of the table. */
function explained(): string[] {
  const page = readFileSync(new URL("../../../docs/decisions/html-sanitising.md", import.meta.url), "utf8");
  return [...page.matchAll(/^\| ((?:`[+-] [^`]+`(?:, )?)+) \| (.+) \|$/gm)].flatMap(
    ([, codes = "", reason = ""]) => {
      expect(reason.length).toBeGreaterThan(20);
      return [...codes.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
    },
  );
}

it("differs from WordPress only where the decision says why", () => {
  const listed = explained();
  expect(new Set(listed).size).toBe(listed.length);
  expect(listed.toSorted()).toEqual(differences().toSorted());
});

it("compares the whole of WordPress's list", () => {
  expect(Object.keys(wordpress.html.elements)).toHaveLength(95);
  expect(Object.keys(wordpress.math.elements)).toHaveLength(29);
  expect(words(wordpress.styles)).toHaveLength(186);
});

it("judges schemes, properties and functions by the lists that are compared", () => {
  for (const scheme of words(wordpress.schemes))
    expect(isSafeUrl(`${scheme}:x`)).toBe(URL_SCHEMES.includes(scheme));
  for (const name of words(wordpress.styles)) {
    const isAllowed = !differences().includes(`- style ${name}`);
    expect(cleanStyle(`${name.replace("*", "x")}:1px`) !== "", name).toBe(isAllowed);
  }
  for (const name of words(wordpress.styleFunctions)) {
    const style = `width:${name}(1)`;
    expect(cleanStyle(style)).toBe(name === "url" || STYLE_FUNCTIONS.has(name) ? style : "");
  }
});
