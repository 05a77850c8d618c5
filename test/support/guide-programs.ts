/**
 * The code blocks of a guide as programs: what belongs together, and how each is run and looked at.
 */

import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Block, blocksOf, type MarkdownFile } from "./markdown.js";

const root = resolve(import.meta.dirname, "../..");

export interface Program extends Block {
  readonly path: string;
  /** Its imports, or its first line. */
  readonly title: string;
  /** For a shell block: the last program above it that listens. */
  readonly host: Program | undefined;
}

const titleOf = (code: string): string =>
  [...new Set([...code.matchAll(/from "([^"]+)"/g)].map(([, name]) => name))].join(", ") ||
  (code.split("\n").find((line) => line !== "") ?? "").slice(0, 60);

const listens = ({ code }: Pick<Block, "code">): boolean => code.includes("process.env.PORT");

/** The blocks of a file, those with `continues` put to the one of the same language before them. */
export function programsOf(file: MarkdownFile): Program[] {
  const programs: Program[] = [];
  for (const block of blocksOf(file)) {
    const before = programs.findLastIndex(({ language }) => language === block.language);
    const opening = programs[before];
    if (block.note === "continues") {
      if (!opening) throw new Error(`${file.path}:${block.line} continues nothing.`);
      programs[before] = { ...opening, code: `${opening.code}\n${block.code}` };
      continue;
    }
    const host = programs.findLast((program) => program.language === "js" && listens(program));
    programs.push({ ...block, path: file.path, title: titleOf(block.code), host });
  }
  return programs;
}

/** How a program in each language is started, given its file. */
const INTERPRETERS: Readonly<
  Record<string, { readonly command: string; readonly args: readonly string[]; readonly ending: string }>
> = {
  js: { command: process.execPath, args: [], ending: "mjs" },
  sh: { command: "bash", args: ["-e"], ending: "sh" },
  python: { command: "python3", args: [], ending: "py" },
  php: { command: "php", args: [], ending: "php" },
  go: { command: "go", args: ["run"], ending: "go" },
};

/** Compiles a TypeScript block against the built package. Returns the compiler's complaints. */
export function compile({ line, code }: Program, { folder }: Surroundings): Promise<string> {
  const file = join(folder, `block-${line}.mts`);
  writeFileSync(file, code);
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = [
    "--ignoreConfig",
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--module",
    "nodenext",
    "--target",
    "es2022",
  ];
  return new Promise((done) => {
    execFile(
      process.execPath,
      [compiler, ...options, "--types", "node", file],
      { cwd: root },
      (_error, out) => done(out),
    );
  });
}

/** True if this machine can run a language. */
export const isThere = (language: string): boolean => {
  const { command } = INTERPRETERS[language] ?? {};
  const flag = language === "go" ? "version" : "--version";
  return command !== undefined && spawnSync(command, [flag], { stdio: "ignore" }).status === 0;
};

export interface Surroundings {
  /** Inside the package, so that programs find it by its name. */
  readonly folder: string;
  readonly redisUrl: string;
  /** For programs that say `postgres`. */
  readonly databaseUrl?: string | undefined;
}

/** The environment of a reader: the command on the PATH, and a folder. */
export function prepare({ folder }: Surroundings): void {
  mkdirSync(join(folder, "bin"), { recursive: true });
  const command = join(folder, "bin", "postbell");
  writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${join(root, "dist/cli.js")}" "$@"\n`);
  chmodSync(command, 0o755);
  // A block must not install or build in the folder that the tests run in.
  for (const name of ["npm", "npx"]) {
    const refused = join(folder, "bin", name);
    writeFileSync(
      refused,
      `#!/bin/sh\necho "${name} is not run from a block: mark it not-run" >&2\nexit 1\n`,
    );
    chmodSync(refused, 0o755);
  }
}

const environment = ({ folder, redisUrl, databaseUrl }: Surroundings): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${join(folder, "bin")}:${process.env["PATH"]}`,
  REDIS_URL: redisUrl,
  DATABASE_URL: databaseUrl,
  SEAL_KEY: randomBytes(32).toString("base64"),
});

/** Resolves to a port of this machine that nothing listens on. */
export const freePort = (): Promise<number> =>
  new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => done(typeof address === "object" && address ? address.port : 0));
    });
  });

/** Without what the default logger writes, such as a warning that a test's Redis keeps nothing. */
const withoutLog = (stderr: string): string =>
  stderr
    .split("\n")
    .filter((line) => !line.startsWith("postbell: "))
    .join("\n");

/** Waits until a program answers. */
export const answers = async (url: string, child: ChildProcess, stderr: () => string): Promise<void> => {
  while (child.exitCode === null) {
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isUp) return;
    // Without a pause the looks take the processor from the program that they wait for.
    await sleep(25);
  }
  throw new Error(`The program ended before it listened:\n${stderr()}`);
};

const save = (surroundings: Surroundings, { language, line, code }: Program, text = code): string => {
  const file = join(surroundings.folder, `block-${line}.${INTERPRETERS[language]?.ending}`);
  writeFileSync(file, text);
  return file;
};

/**
 * Runs a JavaScript program to its end, or until it listens and was visited. Returns what went
 * wrong: nothing, it is to be hoped.
 */
export async function run(
  program: Program,
  surroundings: Surroundings,
  visit: (base: string) => Promise<void>,
): Promise<string> {
  const port = await freePort();
  const child = spawn(process.execPath, [save(surroundings, program)], {
    cwd: surroundings.folder,
    env: { ...environment(surroundings), PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = new Promise<number | null>((done) => child.once("exit", (exitCode) => done(exitCode)));
  if (!listens(program)) return (await ended) === 0 ? withoutLog(stderr) : `It failed: ${stderr}${stdout}`;
  try {
    await answers(`http://localhost:${port}/`, child, () => stderr);
    await visit(`http://localhost:${port}`);
  } finally {
    child.kill();
  }
  const exitCode = await ended;
  // One that handles the signal has to end well; any other is ended by it.
  return program.code.includes("SIGTERM") && exitCode !== 0
    ? `It stopped with ${exitCode}: ${stderr}`
    : withoutLog(stderr);
}

/**
 * Runs a shell block, against `base` where it asks a host. Returns what it printed; rejects where a
 * line fails, or curl is told of an error.
 */
export function runShell(program: Program, surroundings: Surroundings, base: string): Promise<string> {
  const prelude = 'curl() { command curl --fail-with-body --silent "$@"; }\n';
  const text = program.code
    .replaceAll("http://localhost:3000", base)
    .replaceAll("redis://127.0.0.1:6379", surroundings.redisUrl);
  const file = save(surroundings, program, prelude + text);
  const env = environment(surroundings);
  return new Promise((done, fail) => {
    execFile(
      "bash",
      ["-e", "-o", "pipefail", file],
      { cwd: surroundings.folder, env },
      (error, stdout, stderr) =>
        error ? fail(new Error(`${error.message}\n${stdout}${stderr}`)) : done(stdout),
    );
  });
}

export interface Received {
  readonly body: string;
  readonly header: string;
  readonly secret: string;
}

/**
 * True if a program that verifies deliveries accepts one: the body on its standard input, header
 * and secret in SIGNATURE and WEBHOOK_SECRET.
 */
export function accepts(program: Program, surroundings: Surroundings, received: Received): boolean {
  const { command = "", args = [] } = INTERPRETERS[program.language] ?? {};
  const { status, error } = spawnSync(command, [...args, save(surroundings, program)], {
    cwd: surroundings.folder,
    input: received.body,
    env: {
      ...environment(surroundings),
      SIGNATURE: received.header,
      WEBHOOK_SECRET: received.secret,
    },
  });
  if (error) throw error;
  return status === 0;
}
