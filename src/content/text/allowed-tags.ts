/** The allow-lists of the HTML sanitiser: tags and attributes for posts, titles and comments. */

/** Attribute names, separated by blanks, by tag. */
export type AttributesByTag = { readonly [tag: string]: string };

const CELL = "abbr align axis bgcolor char charoff colspan headers height nowrap rowspan scope valign width";
const COLUMN = "align char charoff span valign width";
const ROWS = "align char charoff valign";

/**
 * WordPress's tags for posts, with the attributes of each besides `POST_GLOBALS`. Leaves out
 * `object`, `textarea` and other raw text.
 */
export const POST_TAGS: AttributesByTag = {
  ...tags(
    "abbr acronym address b bdi bdo big center cite code dd dfn dl dt em fieldset i kbd mark rb rp rt rtc ruby",
  ),
  ...tags("s samp small strike strong sub sup tt u var wbr br"),
  ...tags(
    "article aside caption details div figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup legend main",
    "align",
  ),
  ...tags("nav p section span summary", "align"),
  a: "href rel rev name target download",
  area: "alt coords href nohref shape target",
  audio: "autoplay controls loop muted preload src",
  blockquote: "cite",
  button: "disabled name type value",
  col: COLUMN,
  colgroup: COLUMN,
  del: "cite datetime",
  details: "align open",
  font: "color face size",
  hr: "align noshade size width",
  img: "alt align border height hspace loading longdesc vspace src usemap width",
  ins: "cite datetime",
  label: "for",
  li: "align value",
  map: "name",
  menu: "type",
  ol: "start type reversed",
  pre: "width",
  q: "cite",
  table: "align bgcolor border cellpadding cellspacing rules summary width",
  tbody: ROWS,
  td: CELL,
  tfoot: ROWS,
  th: CELL,
  thead: ROWS,
  time: "datetime",
  tr: `${ROWS} bgcolor`,
  track: "default kind label src srclang",
  ul: "type",
  video: "autoplay controls height loop muted playsinline poster preload src width",
};

/** Attributes that every tag of a post may have. */
export const POST_GLOBALS = "class dir hidden id lang role style title xml:lang aria-* data-*";

/** WordPress's tags for titles and comments. */
export const TITLE_TAGS: AttributesByTag = {
  ...tags("b code em i s strike strong cite"),
  a: "href title",
  abbr: "title",
  acronym: "title",
  blockquote: "cite",
  del: "datetime",
  q: "cite",
};

function tags(names: string, attributes = ""): AttributesByTag {
  return Object.fromEntries(names.split(" ").map((name) => [name, attributes]));
}
