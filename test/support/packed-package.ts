/** The package as a host gets it: packed, and unpacked into a folder of its own. */

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** Adds what a package needs at run time, whatever that needs in turn included, to `known`. */
function collectNeeded(folder: string, known: Set<string>): void {
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  ) as {
    readonly dependencies?: Readonly<Record<string, string>>;
    readonly optionalDependencies?: Readonly<Record<string, string>>;
  };
  // Binaries for other platforms are not installed.
  const optional = Object.keys(optionalDependencies).filter((dependency) =>
    existsSync(join(root, "node_modules", dependency)),
  );
  for (const dependency of [...Object.keys(dependencies), ...optional]) {
    if (known.has(dependency)) continue;
    known.add(dependency);
    collectNeeded(join(root, "node_modules", dependency), known);
  }
}

export interface PackedPackage {
  /** Temporary; the caller removes it. */
  readonly folder: string;
  /** The path of the tarball. */
  readonly tarball: string;
}

/** Packs the build into an empty temporary folder. */
export function packPackage(): PackedPackage {
  const folder = mkdtempSync(join(tmpdir(), "postbell-consumer-"));
  const packed = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], {
    cwd: root,
    encoding: "utf8",
  });
  const [{ filename }] = JSON.parse(packed) as [{ readonly filename: string }];
  return { folder, tarball: join(folder, filename) };
}

/**
 * Packs the package and installs it with `packages` as npm would, from the project's own modules
 * and so without the registry.
 */
export function installPackedPackage(...packages: readonly string[]): PackedPackage {
  const packed = packPackage();
  const modules = join(packed.folder, "node_modules");
  const target = join(modules, "postbell");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  mkdirSync(target);
  execFileSync("tar", ["-xzf", packed.tarball, "-C", target, "--strip-components=1"]);
  const needed = new Set(packages);
  for (const name of packages) collectNeeded(join(root, "node_modules", name), needed);
  collectNeeded(root, needed);
  for (const name of needed)
    cpSync(join(root, "node_modules", name), join(modules, name), { recursive: true });
  symlinkSync("../postbell/dist/cli.js", join(modules, ".bin", "postbell"));
  chmodSync(join(target, "dist/cli.js"), 0o755);
  writeFileSync(join(packed.folder, "package.json"), "{}");
  return packed;
}
