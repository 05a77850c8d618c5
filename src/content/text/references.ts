/** Character references of HTML, such as `&copy;`: which ones stay as an author wrote them. */

/** The names of HTML 4, and `apos`. */
const NAMES: Set<string> = new Set(
  (
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn acute micro " +
    "para middot cedil ordm raquo iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute " +
    "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute " +
    "Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml " +
    "igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml " +
    "yacute thorn yuml quot amp lt gt apos OElig oelig Scaron scaron Yuml circ tilde ensp emsp thinsp zwnj zwj " +
    "lrm rlm ndash mdash lsquo rsquo sbquo ldquo rdquo bdquo dagger Dagger permil lsaquo rsaquo euro fnof Alpha " +
    "Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho Sigma Tau Upsilon Phi Chi " +
    "Psi Omega alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf " +
    "sigma tau upsilon phi chi psi omega thetasym upsih piv bull hellip prime Prime oline frasl weierp image real " +
    "trade alefsym larr uarr rarr darr harr crarr lArr uArr rArr dArr hArr forall part exist empty nabla isin " +
    "notin ni prod sum minus lowast radic prop infin ang and or cap cup int sim cong asymp ne equiv le ge sub sup " +
    "nsub sube supe oplus otimes perp sdot lceil rceil lfloor rfloor lang rang loz spades clubs hearts diams " +
    "sup1 sup2 sup3 frac14 frac12 frac34 there4"
  ).split(" "),
);

const REFERENCE = /&(?:#(\d{1,16});|#[xX]([\da-fA-F]{1,16});|([a-zA-Z][a-zA-Z0-9]{0,31});)?/g;

/**
 * Writes `&amp;` for each `&` that begins no reference that WordPress knows. Doing it again changes
 * nothing. Linear.
 */
export const normaliseReferences = (text: string): string =>
  text.includes("&") ? text.replace(REFERENCE, normaliseReference) : text;

function normaliseReference(reference: string, decimal?: string, hex?: string, name?: string): string {
  const isKnown =
    name === undefined
      ? isCharacter(Number.parseInt(decimal ?? hex ?? "", hex === undefined ? 10 : 16))
      : NAMES.has(name);
  return isKnown ? reference : `&amp;${reference.slice(1)}`;
}

/** True for the code of a character that XML allows. */
const isCharacter = (code: number): boolean =>
  code === 0x9 ||
  code === 0xa ||
  code === 0xd ||
  (code >= 0x20 && code <= 0xd7ff) ||
  (code >= 0xe000 && code <= 0xfffd) ||
  (code >= 0x10000 && code <= 0x10ffff);
