/**
 * Runs the short codes of a content: those of the host, within a time limit, and those that
 * WordPress has itself. One that fails is shown as it is written.
 */

import { AsyncResource } from "node:async_hooks";
import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import { nextTurn } from "../../core/next-turn.js";
import type { SiteIndex } from "../query/site-index.js";
import type { Post } from "../records/records.js";
import type { Site } from "../site.js";
import { tokenise } from "../text/markup.js";
import {
  type IsShortCode,
  isBuiltInShortCode,
  parseShortCodeAttributes,
  putShortCodesBack,
  type ShortCodeAttributes,
  type TakenText,
} from "../text/short-codes.js";
import { escapeAmpersands } from "../text/typography.js";
import { BUILT_IN_SHORT_CODES } from "./media-short-codes.js";
import type { PublicRecords } from "./public-records.js";

/**
 * Returns the HTML of a short code, or `null` or `undefined` to show it as it is written. The HTML
 * is shown as it is, so escape the attributes: authors write them. For authors who may not write
 * free HTML they are sanitised like their text.
 *
 * Results are cached with the content, until something on the site changes. So it must not depend
 * on the time or on the reader.
 *
 * @param attributes by name in lower case; those without a name as `0`, `1` …
 * @param content the HTML between the two tags; empty for a short code that encloses nothing
 */
export type RenderShortCode = (
  attributes: ShortCodeAttributes,
  content: string,
  context: ShortCodeContext,
) => string | null | undefined | PromiseLike<string | null | undefined>;

/** Where a short code stands. */
export interface ShortCodeContext {
  readonly name: string;
  /** The post whose content is shown. */
  readonly post: Post;
}

/** Functions that render short codes, by name: `{ price: ({ id }) => "<b>9 €</b>" }`. */
export interface ShortCodes {
  readonly [name: string]: RenderShortCode;
}

/** For all short codes of the host in one content. */
const TIMEOUT_MS = 5_000;
/** Characters of HTML that the short codes of one content make. */
const MAX_HTML = 1_048_576;
/** Characters of HTML after which other requests run. */
const TURN_HTML = 32_768;
/** Characters that one short code counts as in addition. */
const OVERHEAD = 512;

interface RunnerBase {
  clock: Clock;
  logger: Logger;
  index: SiteIndex;
  records: PublicRecords;
  shortCodes: ShortCodes;
}

/** One content while its short codes run. */
interface Run {
  post: Post;
  site: Site;
  taken: TakenText;
  /** The place of each tag in the text. */
  places: Map<number, number>;
  instances: Map<string, number>;
  deadline: number;
  html: number;
  sinceTurn: number;
}

export interface ShortCodeRunner {
  isShortCode: IsShortCode;
  /** Returns the content with its short codes run. */
  run: (taken: TakenText, post: Post, site: Site) => Promise<string>;
}

export function createShortCodeRunner(base: RunnerBase): ShortCodeRunner {
  const { clock, logger, index, records } = base;
  // Readers share the result, so it must not depend on the async context of one of them.
  const own = new Map(
    Object.entries(base.shortCodes).map(([name, render]) => [name, AsyncResource.bind(render)]),
  );

  async function callOwn(
    run: Run,
    name: string,
    call: () => ReturnType<RenderShortCode>,
  ): Promise<string | undefined> {
    const left = run.deadline - clock.monotonic();
    const late = (): Error => new Error(`the short codes of a content took more than ${TIMEOUT_MS} ms`);
    try {
      if (left <= 0) throw late();
      const html = await withTimeout(clock, left, Promise.resolve(call()), late);
      if (html === null || html === undefined) return undefined;
      if (typeof html !== "string") throw new Error("the short code did not return a text");
      return html;
    } catch (error) {
      logger.warn({ error, shortCode: name, post: run.post.id }, "a short code of the host has failed");
      return undefined;
    }
  }

  async function render(
    name: string,
    attributes: ShortCodeAttributes,
    content: string,
    run: Run,
  ): Promise<string | undefined> {
    const instance = (run.instances.get(name) ?? 0) + 1;
    run.instances.set(name, instance);
    const ownRender = own.get(name);
    const { post, site } = run;
    if (ownRender !== undefined) {
      return callOwn(run, name, () => ownRender(attributes, content, { name, post }));
    }
    return BUILT_IN_SHORT_CODES[name]?.({ attributes, content, post, instance, site, index, records });
  }

  /** Returns the HTML of the texts from `from` to `to`, and of the tags between them. */
  async function runBetween(run: Run, from: number, to: number): Promise<string> {
    const { texts, numbers, tags } = run.taken;
    const parts = [texts[from] ?? ""];
    for (let at = from; at < to; at += 1) {
      const tag = tags[numbers[at] ?? -1];
      const { code } = tag ?? {};
      const end = code?.end === undefined ? at : (run.places.get(code.end) ?? at);
      const content = end === at ? (code?.enclosed ?? "") : await runBetween(run, at + 1, end);
      const html = code && run.html < MAX_HTML ? await renderOnce(run, code, content) : undefined;
      const closing = end > at ? `${content}${tags[numbers[end] ?? -1]?.shown ?? ""}` : "";
      parts.push(html ?? `${escapeAmpersands(tag?.shown ?? "")}${closing}`, texts[end + 1] ?? "");
      at = end;
    }
    return parts.join("");
  }

  async function renderOnce(
    run: Run,
    { name, attributes }: { name: string; attributes: string },
    content: string,
  ): Promise<string | undefined> {
    const html = await render(name, parseShortCodeAttributes(attributes), content, run);
    const added = html?.length ?? 0;
    if (run.html + added > MAX_HTML) {
      run.html = MAX_HTML;
      return undefined;
    }
    run.html += added;
    run.sinceTurn += added + OVERHEAD;
    if (run.sinceTurn >= TURN_HTML) {
      run.sinceTurn = 0;
      await nextTurn();
    }
    return html;
  }

  return {
    isShortCode: (name) => own.has(name) || isBuiltInShortCode(name),
    async run(taken, post, site) {
      if (!taken.tags.some(({ code }) => code !== undefined)) return putShortCodesBack(taken, "shown");
      const html = await runBetween(
        {
          post,
          site,
          taken,
          places: new Map(taken.numbers.map((number, at) => [number, at])),
          instances: new Map(),
          deadline: clock.monotonic() + TIMEOUT_MS,
          html: 0,
          sinceTurn: 0,
        },
        0,
        taken.numbers.length,
      );
      const isEnclosing = taken.tags.some(({ code }) => code?.end !== undefined);
      return isEnclosing && !post.isTrusted ? closeTags(html) : html;
    },
  };
}

const VOID: Set<string> = new Set(
  "area base br col embed hr img input link meta source track wbr".split(" "),
);

/**
 * Returns HTML whose elements nest: a tag that closes nothing is left out, and what is open is
 * closed. The elements of an author's text nest, but a short code may enclose a part of them.
 */
function closeTags(html: string): string {
  const open: string[] = [];
  const counts = new Map<string, number>();
  const parts: string[] = [];
  const close = (): string => {
    const name = open.pop() ?? "";
    counts.set(name, (counts.get(name) ?? 0) - 1);
    parts.push(`</${name}>`);
    return name;
  };
  for (const { kind, text, name, isClosing } of tokenise(html)) {
    if (kind !== "tag" || name === "" || VOID.has(name) || text.endsWith("/>")) parts.push(text);
    else if (!isClosing) {
      open.push(name);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      parts.push(text);
    } else if ((counts.get(name) ?? 0) > 0) while (close() !== name);
  }
  while (open.length > 0) close();
  return parts.join("");
}
