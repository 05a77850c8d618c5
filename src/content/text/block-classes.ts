/**
 * Adds the class names that WordPress adds to paragraphs, headings and lists when it renders their
 * blocks. The stored content does not need to have them.
 */

import { tokenise } from "./markup.js";

interface GeneratedClass {
  readonly elements: ReadonlySet<string>;
  readonly className: string;
}

const GENERATED: ReadonlyMap<string, GeneratedClass> = new Map([
  ["core/paragraph", { elements: new Set(["p"]), className: "wp-block-paragraph" }],
  [
    "core/heading",
    { elements: new Set(["h1", "h2", "h3", "h4", "h5", "h6"]), className: "wp-block-heading" },
  ],
  ["core/list", { elements: new Set(["ul", "ol"]), className: "wp-block-list" }],
]);

/**
 * One attribute with the blanks before it, by the rules of HTML: a value ends where a browser ends
 * it. So a text inside the value of another attribute is never taken for a class.
 */
const ATTRIBUTE =
  /[\t\n\f\r /]*(([^\t\n\f\r />=]+)(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r >"'][^\t\n\f\r >]*)))?)/y;

/** Where the attribute stands in the HTML, with its name, and its value. */
interface ClassAttribute {
  readonly start: number;
  readonly end: number;
  readonly value: string;
}

/**
 * Returns the text that follows the opening delimiter of a block, with the class in the first tag
 * of the block's element. Other text is returned as it is. Linear.
 *
 * @param block the name of the block, such as `core/paragraph`
 */
export function addBlockClass(block: string, html: string): string {
  const generated = GENERATED.get(block);
  if (generated === undefined) return html;
  let start = 0;
  for (const { kind, name, text, isClosing } of tokenise(html)) {
    if (kind === "tag" && !isClosing && generated.elements.has(name)) {
      return withClass(html, start + 1 + name.length, generated.className);
    }
    start += text.length;
  }
  return html;
}

/** `at`: the end of the tag's name. */
function withClass(html: string, at: number, className: string): string {
  const found = findClass(html, at);
  if (found === undefined) return `${html.slice(0, at)} class="${className}"${html.slice(at)}`;
  const names = found.value.split(/[\t\n\f\r ]+/).filter((name) => name !== "");
  if (names.includes(className)) return html;
  const value = [...names, className].join(" ").replaceAll('"', "&quot;");
  return `${html.slice(0, found.start)}class="${value}"${html.slice(found.end)}`;
}

function findClass(html: string, from: number): ClassAttribute | undefined {
  ATTRIBUTE.lastIndex = from;
  for (let match = ATTRIBUTE.exec(html); match !== null; match = ATTRIBUTE.exec(html)) {
    const [, attribute = "", name = "", ...values] = match;
    if (name.toLowerCase() !== "class") continue;
    const end = ATTRIBUTE.lastIndex;
    const value = values.find((one) => one !== undefined) ?? "";
    return { start: end - attribute.length, end, value };
  }
  return undefined;
}
