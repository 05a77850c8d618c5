/**
 * Attacks on `sanitize-html`, from its published advisories and the security sections of its
 * changelog. Each calls `bad()` if it works.
 */

const IMAGE = "<img src=x onerror=bad()>";
const SCRIPT = "<script>bad()</script>";

/** The subject of an attack, with its advisory or the version that fixed it, and the texts. */
export const ADVISORIES: readonly (readonly [what: string, ...texts: readonly string[]])[] = [
  [
    "tags in tags that are removed (1.4.3)",
    `<<img src="csrf-attack"/>img src="csrf-attack"/>`,
    `<scr<script></script>ipt>bad()</scr<script></script>ipt>`,
    `<<script></script>script>bad()<</script>/script>`,
    `<im<b></b>g src=x onerror=bad()>`,
  ],
  [
    "references in a textarea (1.11.4, GHSA-xc6g-ggrc-qq4r)",
    `<textarea>&lt;/textarea&gt;&lt;svg/onload=bad()&gt;</textarea>`,
    `<textarea>&lt;/textarea&gt;${IMAGE}</textarea>`,
  ],
  [
    "names of the prototype as tags and attributes (1.11.4)",
    `<__proto__>${IMAGE}</__proto__>`,
    `<constructor __proto__=bad() toString=bad()>${SCRIPT}</constructor>`,
    `<p __proto__=x constructor=y hasownproperty=z onclick=bad()>x</p>`,
    `<p __proto__[onclick]=bad() constructor.prototype.onclick=bad()>x</p>`,
  ],
  [
    "text from an attribute that was transformed (2.0.0)",
    `<a title="${SCRIPT.replaceAll('"', "&quot;")}">x</a>`,
    `<a title='&lt;script&gt;bad()&lt;/script&gt;' href="&lt;script&gt;bad()&lt;/script&gt;">x</a>`,
    `<iframe src="x" title="${SCRIPT}">${SCRIPT}</iframe>`,
  ],
  [
    "hosts of frames in another alphabet (2.3.1)",
    `<iframe src="//www.youtube.com%C3%9E.93.184.216.34.nip.io">${SCRIPT}</iframe>`,
  ],
  [
    "backslashes and blanks in the address of a frame (2.3.2)",
    `<iframe src="/\\example.com">${SCRIPT}</iframe>`,
    `<iframe src="\\/example.com"></iframe><iframe src="/\texample.com"></iframe>`,
  ],
  [
    "schemes with other signs than letters (2.3.3)",
    `<a href="ms-calculator:x">x</a>`,
    `<a href="web+javascript:bad()">x</a><a href="x-javascript.1:bad()">x</a>`,
  ],
  [
    "the names of files by source maps in a style (2.12.1, CVE-2024-21501, GHSA-rm97-x556-q36h)",
    `<p style="color:red; /*# sourceMappingURL=/etc/passwd */">x</p>`,
    `<p style='background-image: url("/*# sourceMappingURL=./package.json */");'>x</p>`,
  ],
  [
    "references with many zeros (2.17.2)",
    `<a href="&#0000001javascript:bad()">x</a>`,
    `<a href="&#x000000001;&#0000106;avascript:bad()">x</a>`,
    `<a href="java&#0000009;script&#00000000058;bad()">x</a>`,
    `<a href="&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;bad()">x</a>`,
    `<a href="&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A&#x62&#x61&#x64()">x</a>`,
    `<a href="javascript&colon;bad()">x</a><a href="java&NewLine;script&colon;bad()">x</a>`,
  ],
  [
    "references in an option (2.17.3)",
    `<option>&lt;script&gt;bad()&lt;/script&gt;</option>`,
    `<select><option>&lt;img src=x onerror=bad()&gt;</option></select>`,
  ],
  [
    "raw text in xmp (2.17.4, CVE-2026-44990, GHSA-rpr9-rxv7-x643)",
    `<xmp>${SCRIPT}</xmp>`,
    `<xmp>${IMAGE}`,
    `<xmp><svg onload=bad()></xmp>`,
    `<b><xmp></b>${IMAGE}</xmp>`,
  ],
  [
    "addresses in attributes that were not judged (2.17.5, GHSA-vccv-cmxp-4j9h)",
    `<form action="javascript:bad()"><input formaction="javascript:bad()" type=submit></form>`,
    `<button formaction="javascript:bad()">x</button><object data="javascript:bad()"></object>`,
    `<video poster="javascript:bad()"></video><blockquote cite="javascript:bad()">x</blockquote>`,
    `<body background="javascript:bad()"><a ping="javascript:bad()" href=x>x</a>`,
    `<img longdesc="javascript:bad()" usemap="javascript:bad()" dynsrc="javascript:bad()" lowsrc="javascript:bad()">`,
    `<a xlink:href="javascript:bad()">x</a><img srcset="javascript:bad() 1x">`,
  ],
  [
    "other raw text if the list of its tags is changed (2.17.5)",
    `<script>${IMAGE}</script>`,
    `<style>${IMAGE}</style>`,
    `<style><style/>${IMAGE}</style>`,
    `<noscript><p title="</noscript>${IMAGE}"></noscript>`,
    `<title>${IMAGE}</title><noembed>${IMAGE}</noembed><noframes>${IMAGE}</noframes>`,
    `<iframe>${IMAGE}</iframe><plaintext>${IMAGE}`,
    `<template>${IMAGE}</template>`,
  ],
  [
    "raw text in svg and math (2.17.6)",
    `<svg><textarea>${IMAGE}</textarea></svg>`,
    `<math><xmp>${IMAGE}</xmp></math>`,
    `<svg><foreignObject><xmp>${IMAGE}</xmp></foreignObject></svg>`,
    `<math><mtext><textarea>${IMAGE}</textarea></mtext></math>`,
    `<math><mi><style>${IMAGE}</style></mi></math>`,
  ],
  [
    "an end tag with a slash (2.17.6, GHSA-jxwj-j7wr-gfrw)",
    `<textarea></textarea/>${IMAGE}`,
    `<xmp></xmp/>${IMAGE}</xmp>`,
    `<script></script/>${IMAGE}`,
    `<style></style x>${IMAGE}</style>`,
  ],
  [
    "animations of addresses (2.17.7, GHSA-g8qq-57p8-ggw5)",
    `<svg><a><animate attributeName="href" values="javascript:bad()"></animate><text>x</text></a></svg>`,
    `<svg><a id=x><text>x</text></a><set attributeName="href" to="javascript:bad()" href="#x"></set></svg>`,
    `<svg><animateTransform attributeName="xlink:href" from="javascript:bad()" begin=0 onbegin=bad()></svg>`,
  ],
  [
    "a comment in an address (1.2.2, 2.7.1)",
    `<a href="java<!-- -->script:bad()">x</a>`,
    `<a href="<!-- --><!-- -->javascript:bad()">x</a>`,
    `<a href="java&lt;!-- --&gt;script:bad()">x</a>`,
  ],
  [
    "closing tags of elements that were not opened (2.7.2)",
    `</p></script></style></textarea></xmp>${IMAGE}`,
    `<b></i></b></svg></math>${SCRIPT}`,
  ],
  [
    "markup that is read in another way the second time",
    `<math><mtext><table><mglyph><style><!--</style>${IMAGE}`,
    `<form><math><mtext></form><form><mglyph><style></math>${IMAGE}`,
    `<svg></p><style><a id="</style>${IMAGE}">`,
    `<table><td><xmp></table>${IMAGE}</xmp>`,
    `<p><svg><desc><p></svg>${IMAGE}`,
  ],
];

/** Texts of about `length` characters that took a version of `sanitize-html` very long. */
export const SLOW_TEXTS: { readonly [what: string]: (length: number) => string } = {
  "comments in an address (2.7.1)": (length) => `<a href="${"<!--".repeat(length / 4)}">x</a>`,
  "brackets in a style": (length) => `<p style="width:${"calc(".repeat(length / 5)}">x</p>`,
  "references in an address": (length) => `<a href="${"&#58;".repeat(length / 5)}">x</a>`,
  "candidates of a srcset": (length) => `<img srcset="${"a,".repeat(length / 2)}">`,
  classes: (length) => `<p class="${"a ".repeat(length / 2)}">x</p>`,
  "raw text that never ends": (length) => "<textarea>".repeat(length / 10),
};
