import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isReservedSlug, toSlug, uniqueSlug } from "../../../src/content/text/slug.js";
import { expectLinear } from "../../support/cpu-time.js";

/**
 * Expects a valid slug: letters, digits and complete percent-encoded characters beyond ASCII, with
 * single dashes between them.
 */
function expectSlug(slug: string): void {
  expect(slug).toMatch(/^(?:[a-z0-9_-]|%(?!25|2e|7f)[2-9a-f][0-9a-f])*$/);
  expect(slug).not.toMatch(/^-|-$|--/);
  expect(slug.length).toBeLessThanOrEqual(200);
  // Throws where an encoded character is cut.
  decodeURIComponent(slug);
}

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({ unit: "grapheme", maxLength: 300 }),
  fc
    .array(
      fc.constantFrom(
        ...[
          "%",
          "%e6",
          "%97",
          "%a5",
          "日",
          "本",
          "é",
          "e\u0301",
          "İ",
          "ß",
          "&",
          ";",
          "&nbsp;",
          "<",
          ">",
          "-",
          "--",
          " ",
          ".",
        ],
        ...[
          "/",
          "\0",
          "\ud800",
          "\u200d",
          "a",
          "Z",
          "9",
          "\n",
          "<b>",
          "\u1100",
          "\u1161",
          "\u034f",
          "%2f",
          "%C3%A9",
        ],
      ),
      { maxLength: 120 },
    )
    .map((parts) => parts.join("")),
);

describe("a slug", () => {
  it.each([
    ["Hello, World!", "hello-world"],
    ["Ünïcode Çafé", "unicode-cafe"],
    ["it's—a “test”", "its-a-test"],
    ["a/b\\c", "a-bc"],
    ["w <i>x</i> &amp; y", "w-x-y"],
    ["x Hello World", "x-hello-world"],
    ["x--a__b", "x-a__b"],
    ["x-ÄÖÜ-é", "x-aou-e"],
    ["x/slash.dot", "x-slash-dot"],
    ["x<b>tag</b>", "xtag"],
    ["x 100% & more", "x-100-more"],
    ["x-日本語", "x-%e6%97%a5%e6%9c%ac%e8%aa%9e"],
    [" x-trim ", "x-trim"],
    ["!!!", ""],
    ["Three!", "three"],
    ["-revision-v1", "revision-v1"],
  ])("is what WordPress makes of %j", (text, slug) => {
    expect(toSlug(text)).toBe(slug);
  });

  it("is cut after 200 bytes", () => {
    expect(toSlug(`abcdefgh-${"abcdefghij".repeat(24)}`)).toBe(`abcdefgh-${"abcdefghij".repeat(19)}a`);
    expect(toSlug("x".repeat(10_240))).toBe("x".repeat(200));
    // Nine bytes each: 22 whole ones.
    expect(toSlug("日".repeat(5000))).toBe("%e6%97%a5".repeat(22));
    expect(toSlug(`${"x".repeat(199)}-y`)).toBe("x".repeat(199));
  });

  it.each([
    ["a NUL", "a\0b", "ab"],
    ["a way up", "../../etc/passwd", "etc-passwd"],
    ["a way up in octets", "%2e%2e%2fetc", "%2fetc"],
    ["a NUL in octets", "a%00b", "ab"],
    ["octets in octets", "%252f", "2f"],
    ["octets of a letter", "caf%C3%A9", "caf%c3%a9"],
    ["broken octets", "a%e6%97-%zz%", "a-zz"],
    ["half a character", "a\ud83db", "ab"],
    ["letters turned around", "abc\u202egnp.exe", "abcgnp-exe"],
    ["invisible characters", "ad\u200bm\u00adi\u2060n\ufeff", "admin"],
    ["a mark written apart", "cafe\u0301", "cafe"],
    ["Latin without a base letter", "Straße Ærø Łódź Þór ð đ œuvre", "strase-aero-lodz-thor-d-d-oeuvre"],
    ["a capital that grows when folded", "İstanbul", "istanbul"],
    ["dashes of all kinds", "a – b — c&nbsp;d&#8212;e\u00a0f\u2009g", "a-b-c-d-e-f-g"],
    ["a sign that reads as a letter", "3×4", "3x4"],
    ["a script", "<script>alert(1)</script>", "alert1"],
    ["a tag that never ends", "a<b c", "ab-c"],
    ["signs of money", "£5 €6 $7", "5-e6-7"],
    ["digits", "2024", "2024"],
  ])("tells nothing of %s", (_, text, slug) => {
    expect(toSlug(text)).toBe(slug);
  });

  it("tells look-alikes of other scripts apart", () => {
    expect(toSlug("аdmin")).toBe("%d0%b0dmin");
    expect(toSlug("й")).toBe("%d0%b9");
    // The same letter, written as two characters.
    expect(toSlug("\u0438\u0306")).toBe("%d0%b9");
  });

  it("is safe, short and its own slug, whatever the text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const slug = toSlug(text);
        expectSlug(slug);
        expect(toSlug(slug)).toBe(slug);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ["ampersands", (size: number) => "&".repeat(size)],
    ["ampersands before one semicolon", (size: number) => `${"&\n".repeat(size / 2)};`],
    ["angle brackets", (size: number) => "<a".repeat(size / 2)],
    ["percent signs", (size: number) => "%a".repeat(size / 2)],
    ["blanks", (size: number) => " ".repeat(size)],
    ["marks", (size: number) => `a${"\u0301".repeat(size / 2)}`],
  ])("is made of a megabyte of %s in linear time", async (_, textOf) => {
    await expectLinear(1_000_000, (size) => expectSlug(toSlug(textOf(size))));
  });
});

describe("a unique slug", () => {
  const taken = (...slugs: string[]) => {
    const set = new Set(slugs);
    return (slug: string) => set.has(slug);
  };

  it("is the wanted one where it is free", () => {
    expect(uniqueSlug("same", taken("other"))).toBe("same");
  });

  it("gets the first number that is free", () => {
    expect(uniqueSlug("same", taken("same"))).toBe("same-2");
    expect(uniqueSlug("same", taken("same", "same-2", "same-4"))).toBe("same-3");
  });

  it("counts on from the wanted one, also where that ends in a number", () => {
    expect(uniqueSlug("same-2", taken("same-2"))).toBe("same-2-2");
  });

  it("makes room for the number", () => {
    expect(uniqueSlug("x".repeat(200), taken("x".repeat(200)))).toBe(`${"x".repeat(198)}-2`);
    expect(uniqueSlug(`${"x".repeat(197)}-yy`, taken(`${"x".repeat(197)}-yy`))).toBe(`${"x".repeat(197)}-2`);
    const encoded = `xx${"%e6%97%a5".repeat(22)}`;
    expect(uniqueSlug(encoded, taken(encoded))).toBe(`xx${"%e6%97%a5".repeat(21)}-2`);
  });

  it("is safe, short and free, whatever is wanted and taken", () => {
    fc.assert(
      fc.property(anyText, fc.nat({ max: 12 }), (text, count) => {
        const wanted = toSlug(text);
        const used = new Set<string>();
        for (let n = 0; n <= count; n += 1) {
          const slug = uniqueSlug(wanted, (other) => used.has(other));
          if (wanted !== "") expectSlug(slug);
          expect(used.has(slug)).toBe(false);
          used.add(slug);
        }
      }),
    );
  });
});

describe("a reserved slug", () => {
  it.each(["feed", "rdf", "rss", "rss2", "atom", "embed"])("is %s for everything", (slug) => {
    for (const type of ["post", "page", "attachment"]) expect(isReservedSlug(slug, type)).toBe(true);
  });

  it("is a number where an address could mean a page of a list", () => {
    expect(isReservedSlug("2024", "page")).toBe(true);
    expect(isReservedSlug("page2", "page")).toBe(true);
    expect(isReservedSlug("2024", "post")).toBe(true);
    expect(isReservedSlug("2024", "attachment")).toBe(false);
    expect(isReservedSlug("page2", "post")).toBe(false);
    expect(isReservedSlug("2024-review", "page")).toBe(false);
    expect(isReservedSlug("feeds", "page")).toBe(false);
  });
});
