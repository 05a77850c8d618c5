/** Texts as they stand in XML. Pure. */

/** What XML 1.0 has no way to hold: control characters, halves of characters, and two that are no characters. */
const UNHELD = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]|\p{Surrogate}/gu;

const held = (text: string): string => text.replace(UNHELD, "");

/** In a section of its own, so that markup stays readable; `]]>` stands in two of them. */
export const cdata = (text: string): string =>
  `<![CDATA[${held(text).replaceAll("]]>", "]]]]><![CDATA[>")}]]>`;

const ENTITIES: { readonly [sign: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

/** For a text or an attribute in double quotes. */
export const escaped = (text: string): string =>
  held(text).replace(/[&<>"]/g, (sign) => ENTITIES[sign] ?? "");

/** An element with a text, on a line of its own. */
export const element = (name: string, text: string | number): string =>
  `\t\t<${name}>${typeof text === "number" ? text : cdata(text)}</${name}>\n`;
