import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isUuid, nameUuid, randomUUID } from "../../src/core/uuid.js";

describe("isUuid", () => {
  it("takes the examples of RFC 9562, versions 1 to 8, in either case", () => {
    for (const example of [
      "C232AB00-9414-11EC-B3C8-9F6BDECED846",
      "000003e8-cbb9-21ea-b201-00045a86c8a1",
      "5df41881-3aed-3515-88a7-2f4a814cf09e",
      "919108f7-52d1-4320-9bac-f847db4148a8",
      "2ed6657d-e927-568b-95e1-2665a8aea6a2",
      "1EC9414C-232A-6B00-B3C8-9F6BDECED846",
      "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
      "2489E9AD-2EE2-8E00-8EC9-32D5F69181C0",
    ]) {
      expect(isUuid(example), example).toBe(true);
    }
  });

  it("refuses placeholders, other variants and other ways to write one", () => {
    for (const text of [
      "",
      "00000000-0000-0000-0000-000000000000",
      "ffffffff-ffff-ffff-ffff-ffffffffffff",
      "919108f7-52d1-4320-cbac-f847db4148a8",
      "919108f7-52d1-9320-9bac-f847db4148a8",
      "919108f752d143209bacf847db4148a8",
      "{919108f7-52d1-4320-9bac-f847db4148a8}",
      "urn:uuid:919108f7-52d1-4320-9bac-f847db4148a8",
      "919108f7-52d1-4320-9bac-f847db4148a8\n",
      "919108f7-52d1-4320-9bac-f847db4148ag",
    ]) {
      expect(isUuid(text), text).toBe(false);
    }
  });
});

describe("nameUuid", () => {
  const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

  it("makes the UUIDs of the published vectors", () => {
    expect(nameUuid(dns, "www.example.com")).toBe("2ed6657d-e927-568b-95e1-2665a8aea6a2");
    expect(nameUuid(dns, "python.org")).toBe("886313e1-3b8a-5372-9b90-0c9aee199e5d");
    expect(nameUuid("6ba7b811-9dad-11d1-80b4-00c04fd430c8", "http://python.org/")).toBe(
      "4c565f0d-3f5a-5890-b41b-20cf47701c5e",
    );
  });

  it("gives a valid UUID for any name, the same for a namespace in upper case", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const made = nameUuid(dns, name);
        expect(isUuid(made)).toBe(true);
        expect(nameUuid(dns.toUpperCase(), name)).toBe(made);
      }),
    );
  });

  it("gives different names and different namespaces different UUIDs", () => {
    const other = randomUUID();
    expect(new Set([nameUuid(dns, "a"), nameUuid(dns, "b"), nameUuid(other, "a")]).size).toBe(3);
  });
});
