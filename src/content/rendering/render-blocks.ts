/**
 * Renders the blocks of a content: those that show other records by the table of dynamic blocks,
 * the others as they were saved.
 */

import { nextTurn } from "../../core/next-turn.js";
import type { JsonObject } from "../../schema/types.js";
import type { Post } from "../records/records.js";
import type { RenderBudget } from "../render-budget.js";
import type { Site } from "../site.js";
import { addBlockClass, hasBlocks, renderBlocks, splitBlocks } from "../text/blocks.js";

/** A block with the texts and blocks that it holds, in order. */
interface Block {
  name: string;
  /** The JSON of its attributes, not checked; empty without any. */
  attributes: string;
  parts: (string | Block)[];
}

/** A block to render, with the post that it shows. */
export interface BlockCall {
  attributes: JsonObject;
  /** The post whose content it stands in, or the one of a list that is being shown. */
  post: Post;
  /** The post whose content is rendered, also within a list. */
  owner: Post;
  site: Site;
  /** Values that blocks around it gave to all blocks inside, by name. */
  context: Map<string, JsonObject>;
  /** Counts the blocks of this name in the content, from 1. */
  instance: number;
  budget: RenderBudget;
  /** Renders the blocks that it holds, for `post` if there is one. */
  inner: (options?: { post?: Post; context?: BlockCall["context"] }) => Promise<string>;
  /** Renders the content of another record inside this one; empty if it is being rendered. */
  include: (record: Post, context?: BlockCall["context"]) => Promise<string>;
}

/** Returns the HTML of a block, or `undefined` to show what was saved. */
export type RenderDynamicBlock = (call: BlockCall) => string | undefined | Promise<string | undefined>;

export type DynamicBlocks = { [name: string]: RenderDynamicBlock };

/** Deeper blocks are shown as they were saved. */
const MAX_LEVELS = 100;
/** Dynamic blocks that one content renders; further ones are left out. */
const MAX_DYNAMIC = 1_000;
/** Characters of HTML that they make. */
const MAX_HTML = 1_048_576;
/** Characters of HTML after which other requests run. */
const TURN_HTML = 32_768;
/** Characters that one dynamic block counts as in addition. */
const OVERHEAD = 1_024;

/** Reads the blocks of a text. Delimiters that do not match are left out. */
function parseBlocks(text: string): (string | Block)[] {
  const root: Block = { name: "", attributes: "", parts: [] };
  const open = [root];
  let skipped = 0;
  for (const part of splitBlocks(text)) {
    const current = open.at(-1) ?? root;
    if (typeof part === "string") current.parts.push(part);
    else if (part.kind === "close") {
      if (skipped > 0) skipped -= 1;
      else if (open.length > 1) open.pop();
    } else if (open.length > MAX_LEVELS) {
      if (part.kind === "open") skipped += 1;
    } else {
      const block: Block = { name: part.name, attributes: part.attributes, parts: [] };
      current.parts.push(block);
      if (part.kind === "open") open.push(block);
    }
  }
  return root.parts;
}

function readAttributes(json: string): JsonObject {
  if (json === "") return {};
  try {
    return JSON.parse(json) as JsonObject;
  } catch {
    return {};
  }
}

/** Names of blocks in a text, without reading it as blocks. */
const NAMES = /<!--\s+wp:((?:[a-z][a-z0-9_-]*\/)?[a-z][a-z0-9_-]*)\s/g;

/** True if the text has a dynamic block. */
export function hasDynamicBlock(text: string, blocks: DynamicBlocks): boolean {
  if (!hasBlocks(text)) return false;
  for (const [, name = ""] of text.matchAll(NAMES)) {
    if (Object.hasOwn(blocks, name.includes("/") ? name : `core/${name}`)) return true;
  }
  return false;
}

interface RenderBlocksOptions {
  post: Post;
  site: Site;
  blocks: DynamicBlocks;
  budget: RenderBudget;
  /** Called with the error of a block that could not be rendered: it shows nothing. */
  onError: (error: unknown, block: string) => void;
}

/** Returns the HTML of a text with blocks, which must be safe. */
export async function renderDynamicBlocks(text: string, options: RenderBlocksOptions): Promise<string> {
  if (!hasDynamicBlock(text, options.blocks)) return renderBlocks(text);
  const rendering = new Rendering(options);
  const { post } = options;
  return rendering.renderAll(parseBlocks(text), { post, context: new Map() });
}

interface Surroundings {
  post: Post;
  context: BlockCall["context"];
}

/** One content while its blocks are rendered. */
class Rendering {
  #owner: Post;
  #site: Site;
  #blocks: DynamicBlocks;
  #budget: RenderBudget;
  #onError: RenderBlocksOptions["onError"];
  #instances = new Map<string, number>();
  /** Ids of the records whose content is being rendered inside the other ones. */
  #included = new Set<number>();
  #dynamic = 0;
  #html = 0;
  #sinceTurn = 0;

  constructor({ post, site, blocks, budget, onError }: RenderBlocksOptions) {
    this.#owner = post;
    this.#site = site;
    this.#blocks = blocks;
    this.#budget = budget;
    this.#onError = onError;
  }

  async renderAll(parts: (string | Block)[], around: Surroundings, name = ""): Promise<string> {
    const html: string[] = [];
    for (const [at, part] of parts.entries()) {
      if (typeof part !== "string") html.push(await this.#render(part, around));
      else html.push(at === 0 ? addBlockClass(name, part) : part);
    }
    return html.join("");
  }

  async #render(block: Block, around: Surroundings): Promise<string> {
    const { name, parts } = block;
    const render = Object.hasOwn(this.#blocks, name) ? this.#blocks[name] : undefined;
    if (render === undefined) return this.renderAll(parts, around, name);
    this.#dynamic += 1;
    if (this.#dynamic > MAX_DYNAMIC || this.#html > MAX_HTML || this.#budget.take(1) === 0) return "";
    const instance = (this.#instances.get(name) ?? 0) + 1;
    this.#instances.set(name, instance);
    const html = await this.#callRenderer(name, render, {
      attributes: readAttributes(block.attributes),
      post: around.post,
      owner: this.#owner,
      site: this.#site,
      context: around.context,
      instance,
      budget: this.#budget,
      inner: ({ post = around.post, context = around.context } = {}) =>
        this.renderAll(parts, { post, context }, name),
      include: (record, context = around.context) => this.#include(record, { post: around.post, context }),
    });
    if (html === undefined) return this.renderAll(parts, around, name);
    this.#html += html.length;
    this.#sinceTurn += html.length + OVERHEAD;
    if (this.#sinceTurn > TURN_HTML) {
      this.#sinceTurn = 0;
      await nextTurn();
    }
    return this.#html > MAX_HTML ? "" : html;
  }

  async #callRenderer(
    name: string,
    render: RenderDynamicBlock,
    call: BlockCall,
  ): Promise<string | undefined> {
    try {
      return await render(call);
    } catch (error) {
      this.#onError(error, name);
      return "";
    }
  }

  async #include(record: Post, around: Surroundings): Promise<string> {
    const { id, content, isTrusted } = record;
    if (this.#included.has(id)) return "";
    this.#included.add(id);
    try {
      const safe = isTrusted ? content : await this.#site.sanitise("content", content);
      return await this.renderAll(parseBlocks(safe), around);
    } finally {
      this.#included.delete(id);
    }
  }
}
