import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { serializePhp, unserializePhp } from "../../../src/content/wxr/php-serialize.js";
import type { WxrEntry } from "../../../src/content/wxr/types.js";
import { createWxrReader } from "../../../src/content/wxr/wxr-reader.js";
import { WXR_END, wxrFile, wxrHead, wxrItem } from "../../support/wxr-file.js";

const read = (pieces: Iterable<Uint8Array>, maxEntry = 1_000_000): readonly WxrEntry[] => {
  const reader = createWxrReader({ maxEntry });
  const entries = [...pieces].flatMap((piece) => reader.push(piece));
  return [...entries, ...reader.end()];
};
const readText = (text: string, maxEntry?: number): readonly WxrEntry[] =>
  read([Buffer.from(text)], maxEntry);

const refusal = (run: () => unknown): { readonly code: string; readonly message: string } => {
  try {
    run();
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("It was not refused.");
};

describe("the reader of WXR files", () => {
  it.each([
    [
      "with text beside its elements",
      (item: string) => item.replace(/<wp:post_password>.*?<\/wp:post_password>/s, "<wp:post_passwo\n"),
    ],
    ["with two titles", (item: string) => item.replace("<title>", "<title>other</title><title>")],
  ])("refuses an item %s, and reads the others", (_, damage) => {
    const items = [1, 2, 3].map((id) => wxrItem({ id, password: `pw${id}` }));
    const entries = readText(`${wxrHead()}${items[0]}${damage(items[1] ?? "")}${items[2]}${WXR_END}`);
    const kinds = entries.map(({ kind }) => kind).filter((kind) => kind !== "damage");
    expect(kinds).toEqual(["site", "item", "refused", "item"]);
  });

  it.each(["constructor", "toString", "__proto__"])("ignores an element that is called %s", (name) => {
    const entries = readText(`${wxrHead()}<${name}><a>x</a></${name}>${wxrItem({ id: 1 })}${WXR_END}`);
    expect(entries.map(({ kind }) => kind)).toEqual(["site", "item"]);
  });

  it("reads the fields of an item", () => {
    const [site, item] = readText(
      wxrFile([
        {
          id: 7,
          title: "A & B ]]> C",
          content: "<p>x</p>]]>]]>",
          parent: 3,
          sticky: true,
          password: " p ",
          terms: [["category", "ward", "Ward"]],
          meta: { _thumbnail_id: "9" },
          more: "<wp:comment><wp:comment_id>1</wp:comment_id><title>no</title></wp:comment>",
        },
      ]),
    );
    expect(site).toEqual({
      kind: "site",
      version: "1.2",
      title: "Old site",
      url: "https://old.example.org",
    });
    expect(item).toMatchObject({
      id: 7,
      title: "A & B ]]> C",
      content: "<p>x</p>]]>]]>",
      parent: 3,
      isSticky: true,
      password: " p ",
      terms: [{ taxonomy: "category", slug: "ward", name: "Ward" }],
      meta: [{ name: "_thumbnail_id", value: "9" }],
      comments: 1,
      slug: "item-7",
    });
  });

  it("reads entities outside of CDATA sections, and skips a byte order mark", () => {
    const file = wxrFile([]).replace(
      WXR_END,
      "<item><title>R&amp;D &#8211; &lt;b&gt;</title></item></channel></rss>",
    );
    expect(readText(`\ufeff${file}`)[1]).toMatchObject({ title: "R&D – <b>" });
  });

  it.each(["1.0", "1.1", "1.2"])("reads version %s", (version) => {
    const file = wxrFile([{}])
      .replace(">1.2<", `>${version}<`)
      .replaceAll("export/1.2/", `export/${version}/`);
    expect(readText(file).map(({ kind }) => kind)).toEqual(["site", "item"]);
  });

  it("returns the same entries however the bytes are split", () => {
    const text = fc
      .string({ unit: "grapheme", maxLength: 60 })
      .map((value) => value.replace(/\p{Cc}/gu, " "));
    const items = fc.array(
      fc.record({
        title: text,
        content: text,
        excerpt: text,
        id: fc.nat(),
        meta: fc.constant({ a: "é]]>b" }),
      }),
      { maxLength: 4 },
    );
    fc.assert(
      fc.property(items, fc.array(fc.nat(5_000), { maxLength: 30 }), (given, cuts) => {
        const bytes = Buffer.from(wxrFile(given));
        const places = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((end, n) => bytes.subarray(places[n], end));
        const whole = read([bytes]);
        expect(whole.length).toBe(given.length + 1);
        expect(whole.slice(1)).toMatchObject(given.map(({ title, content }) => ({ title, content })));
        expect(read(pieces)).toEqual(whole);
        expect(read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(whole);
      }),
      { numRuns: 40 },
    );
  });

  const HEAD_LINES = wxrHead().split("\n").length;

  it.each<[string, string, string, string]>([
    ["NUL", "be\0fore", "before", "Control characters were removed: XML does not allow them."],
    [
      "control characters",
      "a\u0001b\u000bc\ufffe",
      "abc",
      "Control characters were removed: XML does not allow them.",
    ],
    ["a bare &", "Tea & biscuits", "Tea & biscuits", "A & or < that begins no markup was taken as text."],
    ["a bare & before a tag", "Tea &", "Tea &", "A & or < that begins no markup was taken as text."],
    ["a bare <", "1 < 2 <3", "1 < 2 <3", "A & or < that begins no markup was taken as text."],
    ["an unknown entity", "a &foo; b", "a &foo; b", "An unknown character reference was kept as text."],
    ["&#0;", "a &#0; b", "a &#0; b", "An unknown character reference was kept as text."],
    ["&#8;", "a &#8; b", "a &#8; b", "An unknown character reference was kept as text."],
  ])("keeps an item with %s, and warns once with its line", (_, title, expected, message) => {
    const file = `${wxrHead()}\n\n<item><title>${title}</title></item>${WXR_END}`;
    const damage = { kind: "damage", line: HEAD_LINES + 2, message };
    const expectedEntries = [{ kind: "site" }, { kind: "item", title: expected }, damage];
    expect(readText(file)).toMatchObject(expectedEntries);
    const bytes = [...Buffer.from(file)].map((byte) => Uint8Array.of(byte));
    expect(read(bytes).filter(({ kind }) => kind === "item")).toMatchObject([{ title: expected }]);
    expect(read(bytes).filter(({ kind }) => kind === "damage")).toEqual([damage]);
  });

  it("takes & and < in a CDATA section and in a comment as they are", () => {
    const file = `${wxrHead("<!-- & < -->")}<item><title><![CDATA[& < &foo; &#8;]]></title></item>${WXR_END}`;
    expect(readText(file)).toMatchObject([{ kind: "site" }, { title: "& < &foo; &#8;" }]);
  });

  it.each<[string, (file: string) => string, number, string]>([
    [
      "a PHP warning",
      (file) => `<br />\n<b>Warning</b>: x\n${file}`,
      1,
      "The text before the rss element was ignored.",
    ],
    [
      "a script",
      (file) => `${file}\n<script>x</script>`,
      wxrFile([{}, {}]).split("\n").length + 1,
      "The text after the rss element was ignored.",
    ],
    [
      "a PHP error instead of the end",
      (file) => file.replace(WXR_END, "<br />\n<b>Fatal error</b>: Allowed memory size exhausted<br />"),
      wxrFile([{}, {}]).split("\n").length - 1,
      "The file ends before the end of the rss element.",
    ],
  ])("reads all items of a file with %s, and warns once", (_, damage, line, message) => {
    const entries = readText(damage(wxrFile([{}, {}])));
    expect(entries.map(({ kind }) => kind)).toEqual(["site", "item", "item", "damage"]);
    expect(entries[3]).toEqual({ kind: "damage", line, message });
  });

  const item = (id: number): string => wxrItem({ id });
  const SKIPPED = { kind: "refused", element: "item", line: HEAD_LINES };
  it.each<[string, string, object]>([
    ["whose end tag is missing", item(1).replace("</item>", ""), SKIPPED],
    ["whose start tag is damaged", item(1).replace("<item>", "<iten>"), { kind: "damage" }],
    ["with crossed tags", item(1).replace("</title>", "</titel>"), SKIPPED],
    ["with an element in a text", item(1).replace("</title>", "<br />x</title>"), SKIPPED],
    ["with a damaged CDATA section", item(1).replace("<![CDATA[Item", "<![CDXTA[<b>Item"), SKIPPED],
    ["with an attribute that does not end", item(1).replace('"false"', '"false'), SKIPPED],
    ["with a tag that does not end", item(1).replace("<title>", "<title"), SKIPPED],
    ["with the start of an instruction", item(1).replace("<title>", "<?tle>"), SKIPPED],
  ])("skips an item %s, and reads the next ones", (_, damaged, skipped) => {
    const entries = readText(wxrHead() + damaged + item(2) + item(3) + WXR_END);
    expect(entries.filter(({ kind }) => kind === "item")).toMatchObject([{ id: 2 }, { id: 3 }]);
    expect(entries).toContainEqual(expect.objectContaining(skipped));
  });

  it("skips the item in which the file ends", () => {
    const entries = readText(wxrFile([{ id: 1 }, { id: 2 }]).slice(0, -200));
    expect(entries).toMatchObject([
      { kind: "site" },
      { kind: "item", id: 1 },
      { kind: "refused", reason: "the file ends before it is complete" },
      { kind: "damage", message: "The file ends before the end of the rss element." },
    ]);
  });

  it("replaces bytes that are not UTF-8, and names their lines", () => {
    const bytes = Buffer.from(wxrFile([{ title: "café" }]), "latin1");
    const entries = read([bytes]);
    expect(entries).toMatchObject([{ kind: "site" }, { title: "caf\ufffd" }, { line: HEAD_LINES + 1 }]);
    const half = read([Buffer.from(wxrFile([{}])), Buffer.of(0xc3)]);
    expect(half.map(({ kind }) => kind)).toEqual(["site", "item", "damage", "damage"]);
  });

  it.each([
    ["nothing", "", /line 1: .*not a WXR|empty/],
    ["no XML", "PK\u0003\u0004 zip", /line 1: .* no rss element/],
    ["JSON", '{"a":1}', /line 1: .* no rss element/],
    ["HTML", "<html><body>no</body></html>", /line 1: .* no rss element/],
    ["endless text", "x".repeat(70_000), /line 1: .* no rss element/],
    [
      "a feed",
      "<rss><channel><title>a</title><item><title>b</title></item></channel></rss>",
      /wxr_version is missing/,
    ],
    ["a future version", wxrFile([{}]).replace(">1.2<", ">2.0<"), /WXR version/],
    [
      "a head with crossed tags",
      wxrHead().replace("</title>", "</titel>"),
      /line \d+: it is not well-formed XML/,
    ],
    ["a document type", `<!DOCTYPE rss [<!ENTITY a "b">]>${wxrFile([])}`, /document type/],
    ["another encoding", wxrFile([]).replace("UTF-8", "ISO-8859-1"), /an encoding other than UTF-8/],
    ["deep nesting", wxrHead() + "<a>".repeat(100), /deep/],
  ])("refuses %s and names the line", (_, text, message) => {
    const error = refusal(() => readText(text));
    expect(error.code).toBe("invalid_import");
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/line \d+/);
  });

  it("names the line of an error", () => {
    const lines = wxrHead().split("<wp:wxr")[0]?.split("\n").length ?? 0;
    const damaged = wxrHead().replace("<wp:wxr", "\n\n</wrong><wp:wxr");
    expect(refusal(() => readText(damaged)).message).toContain(`line ${lines + 2}:`);
  });

  it.each([
    [
      "UTF-16 with a mark",
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("<rss>", "utf16le")]),
      /UTF-16/,
    ],
    ["UTF-16 without", Buffer.from("<?xml?>", "utf16le"), /UTF-16/],
  ])("refuses bytes that are %s", (_, bytes, message) => {
    for (const size of [1, 7, bytes.length]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (__, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      expect(refusal(() => read(pieces)).message).toMatch(message);
    }
  });

  it.each([
    ["one endless text", "<item><content:encoded><![CDATA[", "x".repeat(60_000)],
    ["endless elements", "<item>", "<category>a</category>".repeat(2_000)],
    ["endless attributes", "<item><category a='", "x".repeat(60_000)],
    ["an endless comment", "<!-- ", "x".repeat(60_000)],
    ["an endless title of the channel", "<title>", "x".repeat(60_000)],
  ])("ends at %s with little in memory", (_, start, more) => {
    const reader = createWxrReader({ maxEntry: 1_000_000 });
    const entries = [...reader.push(Buffer.from(wxrHead() + wxrItem({ id: 1 }) + start))];
    const piece = Buffer.from(more);
    for (let n = 0; n < 100 && !reader.isBroken(); n += 1) entries.push(...reader.push(piece));
    expect(reader.isBroken()).toBe(true);
    entries.push(...reader.end());
    expect(entries.filter(({ kind }) => kind === "item")).toMatchObject([{ id: 1 }]);
    expect(entries.find(({ kind }) => kind === "damage")).toMatchObject({
      message: expect.stringMatching(/^The rest of the file was not read: /),
    });
  });

  it("skips an endless element that is not read, without keeping it in memory", () => {
    const reader = createWxrReader({ maxEntry: 100_000 });
    reader.push(Buffer.from(`${wxrHead()}<item><wp:comment><wp:comment_content><![CDATA[`));
    const piece = Buffer.from("x".repeat(60_000));
    for (let n = 0; n < 100; n += 1) reader.push(piece);
    const rest = reader.push(Buffer.from(`]]></wp:comment_content></wp:comment></item>${WXR_END}`));
    expect(rest).toMatchObject([{ kind: "item", comments: 1 }]);
  });

  it("throws no error but its own", () => {
    const part = fc.constantFrom(
      ...[
        "<item>",
        "</item>",
        "<![CDATA[",
        "]]>",
        "<",
        ">",
        "&amp;",
        "&",
        "\0",
        "<title>",
        "</title>",
        "</channel>",
        "</rss>",
      ],
      ...[
        "<wp:postmeta>",
        "</wp:postmeta>",
        "<wp:meta_key>",
        "</wp:meta_key>",
        "<?xml",
        "?>",
        "<!--",
        "-->",
        "é",
        'x="',
        "<!DOCTYPE",
      ],
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.boolean(), (parts, hasHead) => {
        let code = "invalid_import";
        try {
          readText((hasHead ? wxrHead() : "") + parts.join(""));
        } catch (error) {
          ({ code } = error as { code: string });
        }
        expect(code).toBe("invalid_import");
      }),
      { numRuns: 500 },
    );
  });
});

describe("serialized values of PHP", () => {
  it("are read as they were written", () => {
    const leaf = fc.oneof(fc.string({ unit: "grapheme" }), fc.integer(), fc.boolean(), fc.constant(null));
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(
          fc.string({ minLength: 1 }).filter((key) => key !== "__proto__"),
          tie("value"),
          { maxKeys: 4 },
        ),
      ),
    }));
    const asMaps = (given: unknown): unknown =>
      typeof given === "object" && given !== null
        ? new Map(Object.entries(given).map(([key, entry]) => [key, asMaps(entry)]))
        : Object.is(given, -0)
          ? 0
          : given;
    fc.assert(
      fc.property(value, (given) => {
        expect(unserializePhp(serializePhp(given))).toEqual(asMaps(given));
      }),
    );
  });

  it.each([
    'O:3:"Foo":0:{}',
    's:99999999:"a";',
    "a:999999999:{",
    "i:1;i:2;",
    "",
    "a:1:{a:0:{}i:1;}",
    "x",
    's:-5:"";',
  ])("are not read if they are invalid or dangerous: %s", (text) =>
    expect(unserializePhp(text)).toBeUndefined(),
  );

  it("are not read if they are nested too deep", () => {
    expect(unserializePhp("a:1:{i:0;".repeat(5_000))).toBeUndefined();
  });
});

describe("the limit of an entry", () => {
  const inItem = (inner: string, attributes = ""): string =>
    `${wxrHead()}<item${attributes}>${inner}</item>${WXR_END}`;

  it.each<[string, string]>([
    ["empty meta values", inItem("<wp:postmeta/>".repeat(200))],
    ["empty comments", inItem("<wp:comment/>".repeat(200))],
    ["elements that nobody knows", inItem("<x/>".repeat(200))],
  ])("counts %s, and is kept from the others", (_, text) => {
    const item = wxrItem({ id: 2 });
    const file = text.replace(WXR_END, item + WXR_END);
    expect(readText(file, 10_000)).toMatchObject([
      { kind: "site" },
      { kind: "refused", element: "item", reason: "it has more than 10000 characters" },
      { kind: "item", id: 2 },
    ]);
    expect(readText(text, 1_000_000)).toHaveLength(2);
    // An entry that goes on and on is not even skipped.
    expect(readText(text.replace("</item>", "<x/>".repeat(400)), 10_000)).toContainEqual(
      expect.objectContaining({
        message: expect.stringContaining("an entry has more than 40000 characters"),
      }),
    );
  });

  it.each<[string, string]>([
    ["attributes of terms", inItem(`<category domain="a" nicename="${"x".repeat(20_000)}"/>`)],
    ["attributes of its own", inItem("", ` a="${"x".repeat(20_000)}"`)],
    ["many attributes", inItem("", Array.from({ length: 200 }, (_, n) => ` a${n}=""`).join(""))],
  ])("counts %s", (_, text) => {
    const ended = readText(text.replace("<item", `${wxrItem({})}<item`), 10_000);
    expect(ended.map(({ kind }) => kind).slice(0, 3)).toEqual(["site", "item", "damage"]);
    expect(ended[2]).toMatchObject({
      message: expect.stringContaining("an entry has more than 10000 characters"),
    });
    expect(readText(text, 1_000_000)).toHaveLength(2);
  });

  it("applies to terms and authors too, and to each one alone", () => {
    const term = `<wp:tag a="b"><wp:tag_slug>t</wp:tag_slug><wp:tag_description>${"x".repeat(5_000)}</wp:tag_description></wp:tag>`;
    const author = `<wp:author a="${"x".repeat(5_000)}"><wp:author_login>a</wp:author_login></wp:author>`;
    const entries = readText(wxrHead() + term.repeat(5) + author.repeat(5) + WXR_END, 10_000);
    const sizes = entries.slice(1).map((entry) => ("size" in entry ? entry.size : 0));
    expect(sizes).toHaveLength(10);
    for (const size of sizes) {
      expect(size).toBeGreaterThan(5_000);
      expect(size).toBeLessThan(6_000);
    }
  });
});
