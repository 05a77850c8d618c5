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

const CLASS = /\sclass\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i;

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
      return (
        html.slice(0, start) + withClass(text, name, generated.className) + html.slice(start + text.length)
      );
    }
    start += text.length;
  }
  return html;
}

function withClass(tag: string, name: string, className: string): string {
  const found = CLASS.exec(tag);
  if (found === null) {
    const end = 1 + name.length;
    return `${tag.slice(0, end)} class="${className}"${tag.slice(end)}`;
  }
  const names = (found[1] ?? found[2] ?? found[3] ?? "").split(/\s+/).filter((one) => one !== "");
  if (names.includes(className)) return tag;
  const end = found.index + found[0].length;
  return `${tag.slice(0, found.index)} class="${[...names, className].join(" ")}"${tag.slice(end)}`;
}
