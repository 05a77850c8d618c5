/** The package of the tag before, built in a folder of its own. */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");
const SUPPORT = "test/faults/support";

export interface PreviousBuild {
  /** Its worker-process.js, which imports the package of that build. */
  readonly program: string;
  readonly remove: () => void;
}

const git = (...args: readonly string[]): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();

/** Returns the newest release that is not this commit; undefined if this is the first. */
export function findPreviousTag(): string | undefined {
  try {
    return (
      git("tag", "--list", "v*", "--sort=-v:refname", "--no-contains", "HEAD").split("\n")[0] || undefined
    );
  } catch {
    // Not a clone, but an unpacked archive.
    return undefined;
  }
}

/** Builds a tag with the dependencies that are installed for this commit. */
function buildTag(tag: string, folder: string): () => void {
  git("worktree", "add", "--detach", "--force", folder, tag);
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  execFileSync("npm", ["run", "build:js", "--silent"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return () => git("worktree", "remove", "--force", folder);
}

/** Copies the build of this commit, so that the test itself runs before the first release. */
function copyBuild(folder: string): void {
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  cpSync(join(root, "package.json"), join(folder, "package.json"));
  cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true });
  mkdirSync(join(folder, SUPPORT), { recursive: true });
  for (const name of readdirSync(join(root, SUPPORT)).filter((file) => file.endsWith(".js")))
    cpSync(join(root, SUPPORT, name), join(folder, SUPPORT, name));
}

/** Builds the tag, or without one copies the build of this commit. The caller removes it. */
export function buildPrevious(tag: string | undefined): PreviousBuild {
  const folder = mkdtempSync(join(tmpdir(), "postbell-previous-"));
  const program = join(folder, SUPPORT, "worker-process.js");
  if (tag === undefined) {
    copyBuild(folder);
    return { program, remove: () => rmSync(folder, { recursive: true, force: true }) };
  }
  return { program, remove: buildTag(tag, folder) };
}
