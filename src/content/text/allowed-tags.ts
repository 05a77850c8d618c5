/** The allow-lists of the HTML sanitiser: tags and attributes for posts, titles and comments. */

/** Attribute names, separated by blanks, by tag. */
export type AttributesByTag = { [tag: string]: string };

const CELL = "abbr align axis bgcolor char charoff colspan headers height nowrap rowspan scope valign width";
const COLUMN = "align char charoff span valign width";
const ROWS = "align char charoff valign";

/** Attributes of every MathML element besides `POST_GLOBALS`. They only change looks. */
const MATH = "displaystyle mathbackground mathcolor mathsize scriptlevel";
const OVER_UNDER = `${MATH} accent accentunder`;

/**
 * The presentation elements of MathML Core, as WordPress has them. They run and load nothing, and
 * their content is parsed like any other. Not allowed, here as there: `annotation-xml`, which holds
 * HTML or SVG, `maction`, `mglyph` and links.
 */
const MATH_TAGS: AttributesByTag = {
  ...tags("merror mmultiscripts mn mphantom mprescripts mroot mrow ms msqrt mstyle msub msubsup msup", MATH),
  ...tags("mtext semantics", MATH),
  ...tags("mover munder munderover", OVER_UNDER),
  annotation: `${MATH} encoding`,
  math: `${MATH} display`,
  menclose: `${MATH} notation`,
  mfrac: `${MATH} linethickness`,
  mi: `${MATH} mathvariant`,
  mo: `${MATH} fence form largeop lspace maxsize minsize movablelimits rspace separator stretchy symmetric`,
  mpadded: `${MATH} depth height lspace voffset width`,
  mspace: `${MATH} depth height width`,
  mtable: `${MATH} align columnalign columnlines columnspacing frame framespacing rowalign rowlines rowspacing width`,
  mtd: `${MATH} columnalign columnspan rowalign rowspan`,
  mtr: `${MATH} columnalign rowalign`,
};

/**
 * WordPress's tags for posts, with the attributes of each besides `POST_GLOBALS`. Leaves out
 * `textarea` and `title`, whose content is raw text. The differences from WordPress stand in
 * docs/decisions/html-sanitising.md.
 */
export const POST_TAGS: AttributesByTag = {
  ...MATH_TAGS,
  ...tags(
    "abbr acronym address b bdi bdo big center cite code dd dfn dl dt em fieldset i kbd mark rb rp rt rtc ruby",
  ),
  ...tags("s samp search small strike strong sub sup tt u var wbr br"),
  ...tags(
    "article aside caption figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup legend main",
    "align",
  ),
  ...tags("nav p section span summary", "align"),
  a: "href rel rev name target download",
  area: "alt coords href nohref shape target",
  audio: "autoplay controls loop muted preload src",
  blockquote: "cite",
  button: "aria-haspopup command commandfor disabled name popovertarget popovertargetaction type value",
  col: COLUMN,
  colgroup: COLUMN,
  data: "value",
  del: "cite datetime",
  details: "align name open",
  dialog: "autofocus closedby open popover",
  div: "align popover",
  font: "color face size",
  hr: "align noshade size width",
  img: "alt align border height hspace loading longdesc vspace src usemap width",
  ins: "cite datetime",
  label: "for",
  li: "align value",
  map: "name",
  menu: "type",
  meter: "high low max min optimum value",
  // Only for PDF files of the site, which the sanitiser checks.
  object: "data type",
  ol: "start type reversed",
  pre: "width",
  progress: "max value",
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
  ul: "popover type",
  video: "autoplay controls height loop muted playsinline poster preload src width",
};

/** Attributes that every tag of a post may have. */
export const POST_GLOBALS = "class dir hidden id lang role style tabindex title xml:lang aria-* data-*";

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
