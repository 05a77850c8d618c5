/** Records: the names of collections and statuses, their texts, and where two texts differ. */

import { diffArrays } from "diff";
import type { CollectionName, MediaDetailsJson, RecordJson, TextJson } from "../../content-shapes.js";
import { ApiError } from "../api.js";
import { texts } from "../texts.js";
import { formatUtcTime } from "../times.js";
import type { Tone } from "../tone.js";

export interface Kind {
  name: CollectionName;
  /** The capability without which the visitor sees what is published alone. */
  capability: string;
  hasTrash: boolean;
  /** Fields of the form, in order. */
  fields: readonly FieldName[];
}

export type FieldName =
  | "title"
  | "content"
  | "excerpt"
  | "featured_media"
  | "status"
  | "date"
  | "slug"
  | "alt_text"
  | "caption"
  | "description";

const written = ["title", "content", "excerpt", "featured_media", "status", "date", "slug"] as const;

export const kinds: Kind[] = [
  { name: "posts", capability: "edit_posts", hasTrash: true, fields: written },
  { name: "pages", capability: "edit_pages", hasTrash: true, fields: written },
  {
    name: "media",
    capability: "upload_files",
    hasTrash: false,
    fields: ["title", "alt_text", "caption", "description", "slug"],
  },
];

export const listStatuses = (): [status: string, label: string][] => Object.entries(texts.content.statuses);

export const labelStatus = (status: string): string =>
  (texts.content.statuses as Record<string, string>)[status] ?? status;

/** The tones of statuses; that of any other is neutral. */
const STATUS_TONES: Record<string, Tone> = { publish: "good", future: "info", trash: "bad" };

export const getStatusTone = (status: string): Tone => STATUS_TONES[status] ?? "neutral";

/** The browser's class. Declared here because the tests of this file know no DOM. */
declare class DOMParser {
  parseFromString(html: string, type: "text/html"): { body: { textContent: string | null } };
}

/** Returns the text of rendered HTML. The parsed document loads nothing and runs nothing. */
const plain = (html: string): string =>
  new DOMParser().parseFromString(withoutTags(html), "text/html").body.textContent?.trim() ?? "";

/**
 * Removes tags, which leaves the parser only text and entities. A parsed document runs no script,
 * but Chromium reports its event handlers as violations of the Content-Security-Policy.
 */
const withoutTags = (html: string): string => html.replace(/<[^<>]*>/g, "").replaceAll("<", "&lt;");

export const getText = ({ raw, rendered }: TextJson): string => raw ?? plain(rendered);

export const getTitle = ({ title, id }: RecordJson): string =>
  getText(title) || texts.content.noTitle({ id: String(id) });

/** Formats a time of the site, `2026-11-22T09:00:00`, as `22 Nov 2026, 09:00`. */
export function formatSiteTime(date: string): string {
  const ms = Date.parse(`${date}Z`);
  return Number.isNaN(ms) ? date : formatUtcTime(ms);
}

/** True if the visitor may change a record of a list. */
export function mayEdit({ _links }: RecordJson): boolean {
  const [self] = (_links?.["self"] ?? []) as { targetHints?: { allow?: string[] } }[];
  return self?.targetHints?.allow?.includes("POST") === true;
}

/** True for a picture that people who cannot see it learn nothing about. */
export const lacksAltText = ({ mime_type: type, alt_text: text }: RecordJson): boolean =>
  type?.startsWith("image/") === true && (text ?? "").trim() === "";

export const getAuthor = ({ _embedded }: { _embedded?: RecordJson["_embedded"] }): string =>
  _embedded?.author?.[0]?.name ?? "";

/** The path of the portal's API to a picture of the file; `undefined` for what is no picture. */
export function getPicture(
  { mime_type: type, media_details: details }: RecordJson,
  size: "thumbnail" | "large",
): string | undefined {
  const name = type?.startsWith("image/") ? nameOf(details ?? {}, size) : undefined;
  return name === undefined ? undefined : `content/file?name=${encodeURIComponent(name)}`;
}

/** Builds the file name of a version of a picture, which is in the same folder. */
function nameOf({ file, sizes }: MediaDetailsJson, size: string): string | undefined {
  const version = sizes?.[size];
  return file && version ? file.slice(0, file.lastIndexOf("/") + 1) + version.file : file;
}

/** Makes a write fail with 412 where the record is no longer the one that is shown. */
export const ifUnchanged = ({ modified_gmt: modified }: RecordJson): Record<string, string> => ({
  "if-unmodified-since": new Date(`${modified}Z`).toUTCString(),
});

export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.status === 412;

// Puts a picture into a content.

const escapeMarkup = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** Returns a picture as HTML for a content. */
const buildFigure = ({ id, source_url: url = "", alt_text: alt = "" }: RecordJson): string =>
  `<figure class="wp-block-image"><img src="${escapeMarkup(url)}" alt="${escapeMarkup(alt)}" class="wp-image-${id}"/></figure>`;

/** The boundary of a block of the block editor: its name, or a slash for its end. */
const BLOCK_BOUNDARY = /<!-- (\/?)wp:([^<>]*)-->/g;

/** Returns where a block can stand: at `at`, or behind the outermost block around it. */
function findBlockEnd(text: string, at: number): number {
  let depth = 0;
  for (const { index, 0: boundary, 1: ends, 2: rest = "" } of text.matchAll(BLOCK_BOUNDARY)) {
    if (index >= at && depth === 0) return at;
    if (!rest.endsWith("/")) depth += ends === "" ? 1 : -1;
    // Also if the caret stands within the boundary.
    const end = index + boundary.length;
    if (end >= at && depth <= 0) return end;
  }
  return depth === 0 ? at : text.length;
}

/**
 * Inserts a picture into a content at the caret, with a blank line on each side. A content of
 * blocks gets a block; in any other, a block would end the paragraphs that blank lines make.
 */
export function insertPicture(text: string, at: number, picture: RecordJson): string {
  const hasBlocks = text.includes("<!-- wp:");
  const end = text.indexOf("\n", at);
  const place = hasBlocks ? findBlockEnd(text, at) : end === -1 ? text.length : end;
  const figure = buildFigure(picture);
  const part = hasBlocks ? `<!-- wp:image {"id":${picture.id}} -->\n${figure}\n<!-- /wp:image -->` : figure;
  const [before, after] = [text.slice(0, place).trimEnd(), text.slice(place).trimStart()];
  return [before, part, after].filter((each) => each !== "").join("\n\n");
}

// Compares two texts line by line.

/** A line on each side; `null` if a side has no such line. Equal texts are an unchanged line. */
export interface LinePair {
  left: string | null;
  right: string | null;
}

/** With more different lines than this, lines are not matched: it would take too long. */
const MAX_DIFFERENCES = 1_000;

const toLines = (text: string): string[] => (text === "" ? [] : text.split(/\r?\n/));

/** True if two texts are equal, apart from how their lines end. */
export const hasSameLines = (left: string, right: string): boolean =>
  left.replaceAll("\r\n", "\n") === right.replaceAll("\r\n", "\n");

/**
 * Returns the lines of both texts side by side, in order. Lines of one side only are paired with
 * those in the same place on the other side.
 */
export function pairLines(leftText: string, rightText: string): LinePair[] {
  const [left, right] = [toLines(leftText), toLines(rightText)];
  const pairs: LinePair[] = [];
  const pair = (removed: string[], added: string[]): void => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1)
      pairs.push({ left: removed[at] ?? null, right: added[at] ?? null });
  };
  /** Removed lines whose counterparts follow. */
  let removed: string[] = [];
  const changes = diffArrays(left, right, { maxEditLength: MAX_DIFFERENCES });
  if (changes === undefined) pair(left, right);
  for (const change of changes ?? []) {
    if (change.removed) {
      removed = change.value;
      continue;
    }
    if (!change.added) pair(removed, []);
    pair(change.added ? removed : change.value, change.value);
    removed = [];
  }
  pair(removed, []);
  return pairs;
}
