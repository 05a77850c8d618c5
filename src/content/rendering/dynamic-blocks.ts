/** The dynamic blocks whose data the site has: what each shows, in WordPress's HTML. */

import type { SiteIndex } from "../query/site-index.js";
import { escapeAttribute } from "./image-markup.js";
import type { PublicRecords } from "./public-records.js";
import type { BlockCall, DynamicBlocks } from "./render-blocks.js";

interface BlockSources {
  index: SiteIndex;
  records: PublicRecords;
}

const toText = (value: unknown): string => (typeof value === "string" ? value : "");

/** Returns the attribute `class` of a block's outer element. */
function wrapperClass(name: string, { attributes }: BlockCall, ...more: string[]): string {
  const { align, className, textAlign } = attributes;
  const classes = [
    ...more,
    toText(textAlign) && `has-text-align-${toText(textAlign)}`,
    toText(align) && `align${toText(align)}`,
    toText(className),
    `wp-block-${name}`,
  ];
  return `class="${escapeAttribute(classes.filter(Boolean).join(" "))}"`;
}

interface Footnote {
  id: string;
  content: string;
}

const isFootnote = (note: Partial<Footnote> | null): note is Footnote =>
  typeof note?.id === "string" && typeof note.content === "string";

async function renderFootnotes(call: BlockCall): Promise<string> {
  const { post, site } = call;
  const stored = toText(post.meta["footnotes"]);
  if (stored === "") return "";
  const json = post.isTrusted ? stored : await site.sanitise("footnotes", stored);
  let notes: unknown;
  try {
    notes = JSON.parse(json);
  } catch {
    return "";
  }
  const valid = Array.isArray(notes) ? notes.filter(isFootnote) : [];
  if (valid.length === 0) return "";
  const items = valid.map(({ id, content }, at) => {
    const anchor = escapeAttribute(id);
    const label = `Jump to footnote reference ${at + 1}`;
    return `<li id="${anchor}">${content} <a href="#${anchor}-link" aria-label="${label}">↩︎</a></li>`;
  });
  return `<ol ${wrapperClass("footnotes", call)}>${items.join("")}</ol>`;
}

/** A published pattern without a password, where it is not already being shown. */
async function renderPattern(
  { attributes: { ref }, include }: BlockCall,
  { index, records }: BlockSources,
): Promise<string> {
  const isKnown = typeof ref === "number" && index.post(ref) !== undefined;
  const pattern = isKnown ? await records.pattern(ref) : undefined;
  return pattern === undefined ? "" : include(pattern);
}

export const createDynamicBlocks = (sources: BlockSources): DynamicBlocks => ({
  "core/block": (call) => renderPattern(call, sources),
  "core/footnotes": renderFootnotes,
});
