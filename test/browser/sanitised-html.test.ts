/** Sanitised HTML in a real browser: nothing of it runs, parsed once or again from its output. */

import fc from "fast-check";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { renderContent } from "../../src/content/text/render.js";
import { sanitiseHtml } from "../../src/content/text/sanitise-html.js";
import { hostileHtml } from "../support/hostile-html.js";
import { ADVISORIES } from "../support/sanitize-html-advisories.js";
import { launch } from "./support/chromium.js";

let browser: Browser;
let page: Page;

beforeAll(async () => {
  browser = await launch();
  page = await browser.newPage();
  // Images and other files must not be fetched: a failed one would only slow the test down.
  await page.route("**/*", (route) => route.abort());
  await page.setContent("<!DOCTYPE html><title>t</title><main></main>");
});
afterAll(() => browser?.close());

/** Runs in the page: puts each text into it, serialises and parses it again, and lists faults. */
const INSPECT = `(texts) => {
  const faults = [];
  window.alert = window.bad = () => faults.push("a script ran");
  const main = document.querySelector("main");
  const allowed = /^(?:https?|ftps?|mailto|tel|sms|fax|xmpp|ircs?|news|webcal|urn):$/;
  const inspect = (html, step) => {
    for (const element of main.querySelectorAll("*")) {
      const fault = (what) => faults.push(step + ": " + what + " in " + html);
      if (/^(?:script|style|iframe|frame|embed|object|base|link|meta|form|input|textarea|select|template|svg|annotation-xml|mglyph|maction|title|xmp|noscript)$/i.test(element.localName)) fault(element.localName);
      if (!/xhtml$|MathML$/.test(element.namespaceURI)) fault(element.namespaceURI);
      for (const { name, value } of element.attributes) {
        if (/^on|^form|^srcdoc$|^data-wp-|^xmlns|^xlink/i.test(name)) fault(name);
        if (/^(?:href|src|cite|poster|longdesc|usemap)$/.test(name) && !allowed.test(new URL(value, "https://site.test/").protocol)) fault(value);
      }
      const { position, behavior } = element.style ?? {};
      if (position || behavior) fault("style");
    }
  };
  for (const html of texts) {
    main.innerHTML = html;
    inspect(html, "parsed");
    for (const step of ["parsed again", "parsed a third time"]) {
      main.innerHTML = main.innerHTML;
      inspect(html, step);
    }
    main.innerHTML = "<math><mtext>" + html + "</mtext></math>";
    inspect(html, "in math");
    main.innerHTML = "";
  }
  return faults;
}`;

const inspect = (texts: readonly string[]): Promise<string[]> =>
  page.evaluate(`(${INSPECT})(${JSON.stringify(texts)})`);

it("notices scripts, handlers and foreign markup", async () => {
  const texts = [
    "<img src=x onerror=bad()>",
    "<svg></svg>",
    '<a href="javascript:bad()">x</a>',
    "<p style='position:fixed'>",
  ];
  for (const text of texts) expect(await inspect([text])).not.toEqual([]);
});

it("runs nothing of known attacks on MathML and new elements", async () => {
  const script = "<img src=x onerror=bad()>";
  const attacks = [
    `<math><mtext><table><mglyph><style><!--</style>${script}`,
    `<form><math><mtext></form><form><mglyph><style></math>${script}`,
    `<math><mtext><h1><a><h6></a></h6><mglyph><svg><mtext><style><a title="</style>${script}</style>"></h1>`,
    `<math><annotation-xml encoding="text/html"><style>${script}</style></annotation-xml></math>`,
    `<math><annotation-xml encoding="application/xhtml+xml"><svg><title>${script}</title></svg></annotation-xml></math>`,
    `<svg></p><style><a id="</style>${script}">`,
    `<math></br><style><!--</style>${script}--></style>`,
    `<math><mi><mglyph><malignmark><title><!--</title>${script}`,
    `<math href="javascript:bad()"><mrow xlink:href="javascript:bad()"><maction actiontype="toggle" selection="2">x</maction></mrow></math>`,
    `<noscript><math><p title="</noscript>${script}"></noscript>`,
    `<math><![CDATA[</math>${script}]]></math>`,
    `<dialog open onclose="bad()" oncancel=bad()><p autofocus onfocus=bad() tabindex=1>x</dialog>`,
    `<details open ontoggle=bad()><summary>s</summary></details>`,
    `<div popover ontoggle=bad() onbeforetoggle=bad() id=p></div><button popovertarget=p>x</button>`,
    `<object data="javascript:bad()" type="application/pdf"></object><object data="data:text/html,${script}"></object>`,
    `<!-- wp:x --><math><mtext><!-- wp:y {"a":"</mtext><style>${script}"} --></mtext></math><!-- /wp:x -->`,
    `<a href="java&Tab;script:bad()" download>x</a><button formaction="javascript:bad()" command="--x" commandfor="y">x</button>`,
    `<p title='"${script}' class="'${script}">x</p><p title="&quot;&gt;${script}">x</p>`,
  ];
  expect(await inspect(attacks.map((text) => sanitiseHtml(text)))).toEqual([]);
});

it("runs nothing of the attacks in the advisories of sanitize-html", async () => {
  const attacks = ADVISORIES.flatMap(([, ...texts]) => texts);
  expect(await inspect(attacks.map((text) => sanitiseHtml(text)))).toEqual([]);
  expect(await inspect(attacks.map((text) => renderContent(text, { isTrusted: false })))).toEqual([]);
});

it("runs nothing of any text", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(hostileHtml, { minLength: 40, maxLength: 60 }), async (texts) => {
      expect(await inspect(texts.map((text) => sanitiseHtml(text)))).toEqual([]);
    }),
    { numRuns: 60 },
  );
});

it("shows the formula of a Math block as MathML", async () => {
  const html = '<math display="block"><msqrt><mi>x</mi><mspace width="1em"></mspace></msqrt></math>';
  const expression = `(() => { const main = document.querySelector("main"); main.innerHTML = ${JSON.stringify(sanitiseHtml(html))}; return [main.innerHTML, main.querySelector("msqrt").namespaceURI]; })()`;
  expect(await page.evaluate(expression)).toEqual([html, "http://www.w3.org/1998/Math/MathML"]);
});
