/** JSON from outside as a tree: bounded in depth and size, and moved through as a tree. */

import { useMemo, useRef, useState } from "preact/hooks";
import { texts } from "../texts.js";
import { CodeBlock, CopyButton } from "./small.js";

/** A longer text is shown as it is: a page that formats megabytes stands still. */
const MAX_CHARACTERS = 500_000;
/** JSON that is nested deeper is shown as text. FHIR resources stay below 20. */
const MAX_DEPTH = 64;
/** The members of an object or array that are shown at first, and with each "Show more". */
const STEP = 100;
/** The characters of a text that are shown. Copying takes all of it. */
const MAX_SHOWN = 500;
/** Objects and arrays up to this depth are open at first, until so many nodes are in sight. */
const OPEN_DEPTH = 3;
const OPEN_NODES = 200;

/** A number as it was written: 1.10 and numbers beyond 2^53 lose digits when they are parsed. */
class WrittenNumber {
  source: string;
  constructor(source: string) {
    this.source = source;
  }
}

/** The deepest nesting of brackets, without those in texts. Does not recurse. */
function measureDepth(text: string): number {
  let [depth, deepest, isText] = [0, 0, false];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isText) {
      if (character === "\\") at += 1;
      else if (character === '"') isText = false;
    } else if (character === '"') isText = true;
    else if (character === "{" || character === "[") {
      depth += 1;
      deepest = Math.max(deepest, depth);
    } else if (character === "}" || character === "]") depth -= 1;
  }
  return deepest;
}

/** The third argument of a reviver, which older browsers do not give. */
type ReviverContext = { source?: string } | undefined;

/** Parses JSON that can be shown as a tree. Returns `undefined` for other, long or deep texts. */
function parseBounded(text: string): { value: unknown } | undefined {
  if (text.length > MAX_CHARACTERS || !/^\s*[[{]/.test(text) || measureDepth(text) > MAX_DEPTH)
    return undefined;
  const revive = (_key: string, value: unknown, context?: ReviverContext): unknown =>
    typeof value === "number" && context?.source !== undefined ? new WrittenNumber(context.source) : value;
  try {
    return { value: JSON.parse(text, revive) };
  } catch {
    return undefined;
  }
}

const isBranch = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !(value instanceof WrittenNumber);

/** JSON without white space, with numbers as they were written. */
function toJson(value: unknown): string {
  if (value instanceof WrittenNumber) return value.source;
  if (Array.isArray(value)) return `[${value.map(toJson).join(",")}]`;
  if (!isBranch(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}:${toJson(member)}`)
    .join(",")}}`;
}

interface Node {
  /** A JSONPath, which is unique: `$.entry[0].resource`. */
  path: string;
  key: string;
  value: unknown;
  /** 1 for the root. */
  depth: number;
  parent: string | undefined;
  isOpen: boolean;
  /** How many further members of its parent this node stands for. */
  rest?: number;
}

const pathOf = (parent: string, key: string, isItem: boolean): string => {
  if (isItem) return `${parent}[${key}]`;
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? `${parent}.${key}` : `${parent}[${JSON.stringify(key)}]`;
};

/** What the visitor opened and closed, and how many members are shown, by path. */
interface Shown {
  open: Map<string, boolean>;
  counts: Map<string, number>;
}

/** Returns the nodes that are in sight, from top to bottom. Without `open`: as they are at first. */
function listNodes(root: unknown, { open, counts }: Partial<Shown>): Node[] {
  const nodes: Node[] = [];
  const isOpenAt = (path: string, depth: number): boolean =>
    open === undefined ? depth <= OPEN_DEPTH && nodes.length < OPEN_NODES : open.get(path) === true;
  const add = (found: Omit<Node, "isOpen">): void => {
    const { path, value, depth } = found;
    const isOpen = isBranch(value) && isOpenAt(path, depth);
    nodes.push({ ...found, isOpen });
    if (!isOpen) return;
    const members = Object.entries(value);
    const count = counts?.get(path) ?? STEP;
    const below = { depth: depth + 1, parent: path };
    for (const [key, member] of members.slice(0, count))
      add({ ...below, path: pathOf(path, key, Array.isArray(value)), key, value: member });
    const rest = members.length - count;
    if (rest > 0) nodes.push({ ...below, path: `${path} …`, key: "", value: undefined, isOpen: false, rest });
  };
  add({ path: "$", key: "", value: root, depth: 1, parent: undefined });
  return nodes;
}

const shorten = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);

function Value({ value, isOpen }: Node) {
  if (!isBranch(value)) {
    const kind = value instanceof WrittenNumber ? "number" : typeof value;
    return <bdi class={`json-${kind}`}>{shorten(toJson(value))}</bdi>;
  }
  const count = Object.keys(value).length;
  const [begin, end] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (count === 0) return <span class="quiet">{begin + end}</span>;
  return <span class="quiet">{isOpen ? begin : `${begin} ${count} ${end}`}</span>;
}

/** The node that a key moves to; `undefined` for a key that moves nowhere. */
function findTarget(key: string, nodes: Node[], index: number): Node | undefined {
  const node = nodes[index];
  switch (key) {
    case "ArrowDown":
      return nodes[index + 1] ?? node;
    case "ArrowUp":
      return nodes[index - 1] ?? node;
    case "Home":
      return nodes[0];
    case "End":
      return nodes.at(-1);
    case "ArrowRight":
      return nodes[index + 1]?.parent === node?.path ? nodes[index + 1] : node;
    case "ArrowLeft":
      return nodes.find(({ path }) => path === node?.parent) ?? node;
    default:
      return undefined;
  }
}

/** True for a key that opens or closes a node, or shows more. */
const isToggle = (key: string, { value, isOpen }: Node): boolean =>
  key === "Enter" ||
  key === " " ||
  (key === "ArrowRight" && isBranch(value) && !isOpen) ||
  (key === "ArrowLeft" && isOpen);

function Tree({ label, root }: { label: string; root: unknown }) {
  const list = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<Shown>(() => ({
    open: new Map(listNodes(root, {}).map(({ path, isOpen }) => [path, isOpen])),
    counts: new Map(),
  }));
  const [current, setCurrent] = useState("$");
  const nodes = listNodes(root, shown);
  const index = Math.max(
    0,
    nodes.findIndex(({ path }) => path === current),
  );
  const node = nodes[index];
  const choose = (target: Node | undefined): void => {
    if (target === undefined) return;
    setCurrent(target.path);
    const place = nodes.indexOf(target);
    (list.current?.children[place] as HTMLElement | undefined)?.focus();
  };
  const toggle = ({ path, parent = "", value, isOpen, rest }: Node): void => {
    if (rest !== undefined) {
      const counts = new Map(shown.counts).set(parent, (shown.counts.get(parent) ?? STEP) + STEP);
      setShown({ ...shown, counts });
      // Its place is taken by the first of the members that follow.
      setCurrent(nodes[nodes.findIndex((other) => other.path === path) - 1]?.path ?? "$");
    } else if (isBranch(value)) setShown({ ...shown, open: new Map(shown.open).set(path, !isOpen) });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (node === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = findTarget(event.key, nodes, index);
    if (isToggle(event.key, node)) toggle(node);
    else if (target !== undefined) choose(target);
    else return;
    event.preventDefault();
  };
  return (
    <div class="json">
      <div role="tree" aria-label={label} ref={list} onKeyDown={onKeyDown} class="json-tree">
        {nodes.map((each) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys.
          <div
            key={each.path}
            role="treeitem"
            aria-level={each.depth}
            aria-expanded={isBranch(each.value) ? each.isOpen : undefined}
            aria-selected={each === node}
            tabIndex={each === node ? 0 : -1}
            data-depth={Math.min(each.depth, 12)}
            onClick={() => {
              choose(each);
              toggle(each);
            }}
          >
            {each.rest === undefined ? (
              <>
                {each.key !== "" && <bdi class="json-key">{shorten(each.key)}: </bdi>}
                <Value {...each} />
              </>
            ) : (
              <span class="json-more">
                {texts.parts.showMore({ count: Math.min(each.rest, STEP), total: each.rest })}
              </span>
            )}
          </div>
        ))}
      </div>
      {node !== undefined && node.rest === undefined && (
        <p class="json-chosen">
          <code>{shorten(node.path)}</code>
          <CopyButton text={node.path} label={texts.parts.path}>
            {texts.parts.copyPath}
          </CopyButton>
          <CopyButton
            text={typeof node.value === "string" ? node.value : toJson(node.value)}
            label={texts.parts.value}
          >
            {texts.parts.copyValue}
          </CopyButton>
        </p>
      )}
    </div>
  );
}

/**
 * A text from outside. JSON is shown as a tree, or as it is; any other text only as it is.
 *
 * @example
 * <JsonText text={body} label="body" />
 */
export function JsonText({
  text,
  label,
}: {
  text: string;
  /** What it is: `answer`, `body`. */
  label: string;
}) {
  const [isRaw, setRaw] = useState(false);
  const parsed = useMemo(() => parseBounded(text), [text]);
  if (parsed === undefined) return <CodeBlock text={text} label={label} />;
  const views = [
    [false, texts.parts.pretty],
    [true, texts.parts.raw],
  ] as const;
  return (
    <div class="json-text">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for the fields of a form. */}
      <div class="segments" role="group" aria-label={texts.parts.viewOf({ label })}>
        {views.map(([value, name]) => (
          <button
            type="button"
            key={name}
            class="small"
            aria-pressed={isRaw === value}
            onClick={() => setRaw(value)}
          >
            {name}
          </button>
        ))}
      </div>
      {isRaw ? (
        <CodeBlock text={text} label={label} />
      ) : (
        <Tree key={text} label={label} root={parsed.value} />
      )}
    </div>
  );
}
