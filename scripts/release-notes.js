// `node scripts/release-notes.js [tag]` prints the section of CHANGELOG.md for the version in
// package.json: the notes of its release. With a tag, it fails unless the release may go out.
import { readFileSync, realpathSync } from "node:fs";
import { resolve } from "node:path";

/**
 * Returns the section of a version, without its heading.
 *
 * @param {object} release
 * @param {string} release.changelog
 * @param {string} release.version
 * @param {string} [release.tag] if given, it must be the version's, and the section must be dated
 * @throws Error if the tag or the section is not as a release needs it
 */
export function findReleaseNotes({ changelog, version, tag }) {
  if (tag !== undefined && tag !== `v${version}`)
    throw new Error(`The tag must be v${version}, as package.json says (got ${tag}).`);
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.startsWith(`${version} (`));
  if (section === undefined) throw new Error(`CHANGELOG.md must have a section "## ${version} (<date>)".`);
  const [heading = "", ...lines] = section.split("\n");
  if (tag !== undefined && !/ \(\d{4}-\d\d-\d\d\)$/.test(heading))
    throw new Error(
      `The section of ${version} in CHANGELOG.md must have a date, as in "## ${version} (2027-01-31)" (got "## ${heading}").`,
    );
  const notes = lines.join("\n").trim();
  if (notes === "") throw new Error(`The section of ${version} in CHANGELOG.md is empty.`);
  return notes;
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename) {
  const read = (name) => readFileSync(resolve(import.meta.dirname, "..", name), "utf8");
  const { version } = JSON.parse(read("package.json"));
  try {
    console.log(findReleaseNotes({ changelog: read("CHANGELOG.md"), version, tag: process.argv[2] }));
  } catch ({ message }) {
    console.error(message);
    process.exitCode = 1;
  }
}
