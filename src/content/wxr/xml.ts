/** Writes texts as XML. Pure. */

/** Invalid in XML 1.0: control characters, lone surrogates and two noncharacters. */
const INVALID = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]|\p{Surrogate}/gu;

const removeInvalid = (text: string): string => text.replace(INVALID, "");

/** Writes a CDATA section, so that markup stays readable. `]]>` is split over two of them. */
export const writeCdata = (text: string): string =>
  `<![CDATA[${removeInvalid(text).replaceAll("]]>", "]]]]><![CDATA[>")}]]>`;

const ENTITIES: { readonly [sign: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** Escapes a text, or an attribute in double quotes. */
export const escapeXml = (text: string): string =>
  removeInvalid(text).replace(/[&<>"]/g, (sign) => ENTITIES[sign] ?? "");

/** Writes an element with a text on a line of its own. */
export const writeElement = (name: string, text: string | number): string =>
  `\t\t<${name}>${typeof text === "number" ? text : writeCdata(text)}</${name}>\n`;
