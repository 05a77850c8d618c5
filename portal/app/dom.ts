/** Makes elements and renews them in place. Text is always text: nothing here parses HTML. */

type Handler = (event: Event) => unknown;
export type Child = Node | string | number | null | undefined | false | readonly Child[];
/**
 * `true` writes an attribute without a value; `false`, `null` and `undefined` omit it. A function
 * is a handler, such as `onclick`.
 */
export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | Handler>>;

const HANDLERS = ["onclick", "onsubmit", "onchange", "oninput", "onkeydown"] as const;

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") (element as unknown as Record<string, Handler>)[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (typeof child === "string" || typeof child === "number") parent.append(String(child));
    else if (child instanceof Node) parent.append(child);
    else if (child) append(parent, child);
  }
}

/** An HTML element: `h("a", { href: "#/" }, "Home")`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. Looks come from the style sheet: the policy of the page takes no `style`. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

const keyOf = (node: Node): string =>
  node instanceof Element ? `${node.nodeName} ${node.getAttribute("data-key") ?? ""}` : node.nodeName;

/**
 * Makes the children of `parent` equal to `children`, and keeps every node that stays, with its
 * focus, its selection and what is typed into it. Nodes match if their tag and `data-key` do.
 */
export function patch(parent: Element, ...children: readonly Child[]): void {
  const wanted = document.createElement("div");
  append(wanted, children);
  renewChildren(parent, wanted);
}

function renewChildren(parent: Element, wanted: Element): void {
  const kept = Array.from(parent.childNodes);
  const used = new Set<Node>();
  let place: ChildNode | null = parent.firstChild;
  for (const fresh of Array.from(wanted.childNodes)) {
    const same = kept.find((node) => !used.has(node) && keyOf(node) === keyOf(fresh));
    const node = same ? renewNode(same, fresh) : fresh;
    used.add(node);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of kept) if (!used.has(node)) node.remove();
}

function renewNode(node: ChildNode, fresh: ChildNode): ChildNode {
  if (!(node instanceof Element && fresh instanceof Element)) {
    if (node.nodeValue !== fresh.nodeValue) node.nodeValue = fresh.nodeValue;
    return node;
  }
  for (const { name } of Array.from(node.attributes)) {
    // The visitor opens and closes details, and a waiting button stays disabled.
    const isKept = (name === "open" && node.nodeName === "DETAILS") || name === "aria-disabled";
    if (!fresh.hasAttribute(name) && !isKept) node.removeAttribute(name);
  }
  for (const { name, value } of Array.from(fresh.attributes)) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  const handlers = node as unknown as Record<string, unknown>;
  for (const name of HANDLERS) handlers[name] = (fresh as unknown as Record<string, unknown>)[name];
  renewChildren(node, fresh);
  return node;
}
