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
import type { RenderBudget } from "../render-budget.js";
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

/** The content that holds the short codes. */
interface ShortCodePlace {
  post: Post;
  site: Site;
  budget: RenderBudget;
}

export interface ShortCodeRunner {
  isShortCode: IsShortCode;
  /** Returns the content with its short codes run. Its tags may be left open. */
  run: (taken: TakenText, where: ShortCodePlace) => Promise<string>;
}

export function createShortCodeRunner(base: RunnerBase): ShortCodeRunner {
  // Readers share the result, so it must not depend on the async context of one of them.
  const renderers = new Map(
    Object.entries(base.shortCodes).map(([name, render]) => [name, AsyncResource.bind(render)]),
  );
  return {
    isShortCode: (name) => renderers.has(name) || isBuiltInShortCode(name),
    async run(taken, where) {
      const codes = taken.tags.flatMap(({ code }) => code ?? []);
      if (codes.length === 0) return putShortCodesBack(taken, "shown");
      return new ShortCodeRun(base, renderers, taken, where).run();
    },
  };
}

/** One content while its short codes run. */
class ShortCodeRun {
  #base: RunnerBase;
  #renderers: Map<string, RenderShortCode>;
  #taken: TakenText;
  #where: ShortCodePlace;
  /** The place of each tag in the text. */
  #places: Map<number, number>;
  #instances = new Map<string, number>();
  #deadline: number;
  #html = 0;
  #sinceTurn = 0;

  constructor(
    base: RunnerBase,
    renderers: Map<string, RenderShortCode>,
    taken: TakenText,
    where: ShortCodePlace,
  ) {
    this.#base = base;
    this.#renderers = renderers;
    this.#taken = taken;
    this.#where = where;
    this.#places = new Map(taken.numbers.map((number, at) => [number, at]));
    this.#deadline = base.clock.monotonic() + TIMEOUT_MS;
  }

  run(): Promise<string> {
    return this.#between(0, this.#taken.numbers.length);
  }

  #tagAt(place: number): TakenText["tags"][number] {
    return this.#taken.tags[this.#taken.numbers[place] ?? -1] ?? { written: "", shown: "" };
  }

  /** Returns the HTML of the texts from `from` to `to`, and of the tags between them. */
  async #between(from: number, to: number): Promise<string> {
    const { texts } = this.#taken;
    const parts = [texts[from] ?? ""];
    for (let at = from; at < to; at += 1) {
      const { code, shown } = this.#tagAt(at);
      const end = this.#places.get(code?.end ?? -1) ?? at;
      const content = end > at ? await this.#between(at + 1, end) : "";
      const html = code && (await this.#runCode(code, code.enclosed ?? content));
      const closing = end > at ? `${content}${this.#tagAt(end).shown}` : "";
      parts.push(html ?? `${escapeAmpersands(shown)}${closing}`, texts[end + 1] ?? "");
      at = end;
    }
    return parts.join("");
  }

  /** Returns `undefined` to show the short code as it is written. */
  async #runCode(
    { name, attributes }: { name: string; attributes: string },
    content: string,
  ): Promise<string | undefined> {
    if (this.#html >= MAX_HTML || this.#where.budget.take(1) === 0) return undefined;
    const html = await this.#render(name, parseShortCodeAttributes(attributes), content);
    const added = html?.length ?? 0;
    if (this.#html + added > MAX_HTML) {
      this.#html = MAX_HTML;
      return undefined;
    }
    this.#html += added;
    this.#sinceTurn += added + OVERHEAD;
    if (this.#sinceTurn >= TURN_HTML) {
      this.#sinceTurn = 0;
      await nextTurn();
    }
    return html;
  }

  async #render(name: string, attributes: ShortCodeAttributes, content: string): Promise<string | undefined> {
    const instance = (this.#instances.get(name) ?? 0) + 1;
    this.#instances.set(name, instance);
    const render = this.#renderers.get(name);
    const { post, site, budget } = this.#where;
    if (render !== undefined) return this.#callOwn(name, () => render(attributes, content, { name, post }));
    const { index, records } = this.#base;
    return BUILT_IN_SHORT_CODES[name]?.({
      attributes,
      content,
      post,
      instance,
      site,
      index,
      records,
      budget,
    });
  }

  async #callOwn(name: string, call: () => ReturnType<RenderShortCode>): Promise<string | undefined> {
    const { clock, logger } = this.#base;
    const left = this.#deadline - clock.monotonic();
    const late = (): Error => new Error(`the short codes of a content took more than ${TIMEOUT_MS} ms`);
    try {
      if (left <= 0) throw late();
      const html = await withTimeout(clock, left, Promise.resolve(call()), late);
      if (html === null || html === undefined) return undefined;
      if (typeof html !== "string") throw new Error("the short code did not return a text");
      return html;
    } catch (error) {
      const post = this.#where.post.id;
      logger.warn({ error, shortCode: name, post }, "a short code of the host has failed");
      return undefined;
    }
  }
}

const VOID: Set<string> = new Set(
  "area base br col embed hr img input link meta source track wbr".split(" "),
);

/**
 * Returns HTML whose elements nest: a tag that closes nothing is left out, and what is open is
 * closed. The elements of an author's text nest, but a short code or a dynamic block may replace a
 * part of them.
 */
export function closeTags(html: string): string {
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
