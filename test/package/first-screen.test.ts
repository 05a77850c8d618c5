/** The first screens of README and clinical guide, typed from top to bottom in an empty folder. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { answers, freePort } from "../support/guide-programs.js";
import { blocksOf, guides, readme } from "../support/markdown.js";
import { installPackedPackage, packPackage } from "../support/packed-package.js";

/**
 * With `FIRST_SCREEN=as-typed`, as CI sets it, npm installs from the registry and the ports are the
 * README's. Otherwise ports are free ones, since a test shares its machine.
 */
const isAsTyped = process.env["FIRST_SCREEN"] === "as-typed";
const LIMIT = { timeout: 300_000 };

interface FirstScreen {
  readonly page: string;
  readonly packages: readonly string[];
  /** The line of `postbell listen` for a notification that arrived. */
  readonly arrival: RegExp;
}
const FIRST_SCREENS: readonly FirstScreen[] = [
  {
    page: "README.md",
    packages: ["express", "libsql"],
    arrival: / valid order\.paid .*, signature \d+ s old, .*response 204/,
  },
  {
    page: "docs/guides/clinical-records.md",
    packages: ["express"],
    arrival: / valid patient\.updated .*, Patient, signature \d+ s old, .*response 204/,
  },
];

const readFirstScreen = (page: string, language: string): readonly string[] => {
  const file = [readme, ...guides].find(({ path }) => path === page);
  if (file === undefined) throw new Error(`${page} is missing`);
  return blocksOf(file).flatMap((block) =>
    block.note === "first-screen" && block.language === language ? [block.code] : [],
  );
};

/**
 * The environment of a new terminal. What `npm exec --call` gives to the program that it runs would
 * be taken by the README's `npx` as its own options.
 */
const terminal = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_")));

/** Starts a command in a process group of its own, which ends with the test. */
function start(folder: string, command: readonly [string, ...string[]]) {
  const [program, ...args] = command;
  const child: ChildProcess = spawn(program, args, {
    cwd: folder,
    env: terminal,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const waiting = new Set<() => void>();
  const collect = (chunk: Buffer): void => {
    output += chunk.toString();
    for (const look of waiting) look();
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  const exit = new Promise<number | null>((done) => child.once("exit", done));
  onTestFinished(() => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, "SIGKILL");
  });
  const shows = (pattern: RegExp): Promise<void> =>
    new Promise((done, fail) => {
      const look = (): void => void (pattern.test(output) && done());
      waiting.add(look);
      look();
      void exit.then(() => fail(new Error(`It ended before it showed ${pattern}:\n${output}`)));
    });
  /** Ends the group of processes, so that its port is free. */
  const end = async (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, "SIGKILL");
    await exit;
  };
  return { child, shows, exit, end, output: () => output };
}

it.each(FIRST_SCREENS)(
  "$page shows a signed notification arrive and be verified",
  LIMIT,
  async ({ page, packages, arrival }) => {
    const [install = "", register = "", change = "", ...more] = readFirstScreen(page, "sh");
    const [server = "", ...others] = readFirstScreen(page, "js");
    expect([more, others]).toEqual([[], []]);
    const [npmInstall = "", ...demo] = install.trim().split("\n");
    expect(npmInstall).toBe(`npm install postbell ${packages.join(" ")}`);
    expect(server.trim().split("\n").filter(Boolean).length).toBeLessThanOrEqual(20);

    const { folder, tarball } = isAsTyped ? packPackage() : installPackedPackage(...packages);
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    if (isAsTyped)
      execFileSync("npm", ["install", tarball, ...packages], { cwd: folder, env: terminal, stdio: "pipe" });
    const [hostPort, endpointPort, demoPort] = isAsTyped
      ? [3000, 8484, 3000]
      : [await freePort(), await freePort(), await freePort()];
    const typed = (code: string): string =>
      code.replaceAll("3000", String(hostPort)).replaceAll("8484", String(endpointPort));

    for (const command of demo) {
      const running = start(folder, ["bash", "-c", `${command} --port ${demoPort}`]);
      await running.shows(/verified {2}\/orders {5}order\.paid /);
      await running.end();
    }
    writeFileSync(join(folder, "server.mjs"), typed(server));
    const host = start(folder, [process.execPath, "server.mjs"]);
    await answers(`http://127.0.0.1:${hostPort}/`, host.child, host.output);
    const listener = typed(register).replace(
      "npx postbell listen",
      `$& ${isAsTyped ? "" : `--port ${endpointPort}`}`,
    );
    const subscriber = start(folder, ["bash", "-c", listener]);
    await subscriber.shows(/Listening on http:\/\/127\.0\.0\.1:\d+\/\.\n/);
    const trigger = start(folder, ["bash", "-c", typed(change)]);
    expect(await trigger.exit).toBe(0);
    expect(trigger.output()).toMatch(/"deliveries":\[\{"id":/);
    await subscriber.shows(arrival);
    if (isAsTyped) console.log(subscriber.output());
    await Promise.all([subscriber.end(), host.end()]);
  },
);
