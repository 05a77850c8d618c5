import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { findReleaseNotes } from "../../scripts/release-notes.js";
import { createSbom } from "../../scripts/sbom.js";

const read = (name: string): string => readFileSync(resolve(import.meta.dirname, "../..", name), "utf8");

const changelog = `# Changelog

## 1.10.0 (unreleased)

- A change to come.

## 1.1.0 (2027-01-31)

### Webhooks

- A new option.

## 1.0.0 (2026-12-24)

`;

describe("release notes", () => {
  it("of a version are its section of the changelog, without the heading and its neighbours", () => {
    const expected = "### Webhooks\n\n- A new option.";
    expect(findReleaseNotes({ changelog, version: "1.1.0" })).toBe(expected);
    expect(findReleaseNotes({ changelog, version: "1.1.0", tag: "v1.1.0" })).toBe(expected);
  });

  it("of a version without a date are printed, but refused for a tag", () => {
    const version = "1.10.0";
    expect(findReleaseNotes({ changelog, version })).toBe("- A change to come.");
    expect(() => findReleaseNotes({ changelog, version, tag: "v1.10.0" })).toThrow(
      'The section of 1.10.0 in CHANGELOG.md must have a date, as in "## 1.10.0 (2027-01-31)" (got "## 1.10.0 (unreleased)").',
    );
  });

  it.each(["v1.0.0", "1.1.0", "v1.1.0-rc.1"])("are refused for the tag %s of version 1.1.0", (tag) => {
    expect(() => findReleaseNotes({ changelog, version: "1.1.0", tag })).toThrow(
      `The tag must be v1.1.0, as package.json says (got ${tag}).`,
    );
  });

  it("are refused for a version that the changelog does not have, or has nothing to say of", () => {
    expect(() => findReleaseNotes({ changelog, version: "1.1" })).toThrow(
      'CHANGELOG.md must have a section "## 1.1 (<date>)".',
    );
    expect(() => findReleaseNotes({ changelog, version: "1.0.0" })).toThrow(
      "The section of 1.0.0 in CHANGELOG.md is empty.",
    );
  });
});

describe("the software bill of materials", () => {
  it("lists each package that a user installs or the build contains once, with licence and hash", () => {
    const { metadata, components } = JSON.parse(createSbom()) as {
      readonly metadata: { readonly component: { readonly name: string } };
      readonly components: readonly {
        readonly "bom-ref": string;
        readonly licenses: readonly object[];
        readonly hashes: readonly object[];
      }[];
    };
    const { packages } = JSON.parse(read("package-lock.json")) as {
      readonly packages: Record<string, { readonly version: string; readonly dev?: boolean }>;
    };
    const installed = Object.entries(packages)
      .filter(([path, { dev }]) => path !== "" && !dev)
      .map(([path, { version }]) => `${path.replace(/.*node_modules\//, "")}@${version}`);
    const compiledIn = [...read("THIRD_PARTY_NOTICES.md").matchAll(/^## (\S+) (\S+)$/gm)].map(
      ([, name, version]) => `${name}@${version}`,
    );
    expect(installed).toContain("lru-cache@11.5.3");
    expect(compiledIn).toContain("preact@11.2.0");
    expect(metadata.component.name).toBe("postbell");
    const listed = components.map((component) => component["bom-ref"]);
    expect(listed.toSorted()).toEqual([...new Set([...installed, ...compiledIn])].toSorted());
    expect(components.filter(({ licenses, hashes }) => !licenses?.length || !hashes?.length)).toEqual([]);
  });
});
