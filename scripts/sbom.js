// `node scripts/sbom.js` prints, as CycloneDX, the packages that a user installs and those that the
// build contains.
//
// `npm sbom --omit dev` leaves out every package that a development dependency needs too, such as
// lru-cache. So npm reads a copy of the lock file that has no other packages.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const read = (name) => readFileSync(resolve(import.meta.dirname, "..", name), "utf8");

/** The packages that the build contains. The notices have a heading for each. */
const readCompiledIn = () => [...read("THIRD_PARTY_NOTICES.md").matchAll(/^## (\S+) (\S+)$/gm)];

/** Returns the software bill of materials, in the JSON of CycloneDX. */
export function createSbom() {
  const manifest = JSON.parse(read("package.json"));
  const { packages, ...lock } = JSON.parse(read("package-lock.json"));
  const compiledIn = readCompiledIn();
  for (const [, name, version] of compiledIn)
    if (name in manifest.devDependencies) manifest.dependencies[name] = version;
  delete manifest.devDependencies;
  delete manifest.overrides;
  const isCompiledIn = (path) => compiledIn.some(([, name]) => path === `node_modules/${name}`);
  for (const [path, entry] of Object.entries(packages)) {
    if (entry.dev && !isCompiledIn(path)) delete packages[path];
    delete entry.dev;
    // The page is built with a newer preact than its icons ask for: see `overrides`.
    delete entry.peerDependencies;
  }
  packages[""] = manifest;
  const folder = mkdtempSync(join(tmpdir(), "sbom-"));
  try {
    // npm takes the name of the component from the folder.
    const copy = join(folder, manifest.name);
    mkdirSync(copy);
    writeFileSync(join(copy, "package.json"), JSON.stringify(manifest));
    writeFileSync(join(copy, "package-lock.json"), JSON.stringify({ ...lock, packages }));
    const options = [
      "--package-lock-only",
      "--sbom-format=cyclonedx",
      "--sbom-type=library",
      "--loglevel=error",
    ];
    return execFileSync("npm", ["sbom", ...options], { cwd: copy, encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename)
  process.stdout.write(createSbom());
