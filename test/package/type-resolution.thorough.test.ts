/** A TypeScript host finds the types of every entry, however its compiler resolves modules. */

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installPackedPackage } from "../support/packed-package.js";

const { exports } = JSON.parse(readFileSync(resolve(import.meta.dirname, "../../package.json"), "utf8")) as {
  readonly exports: Readonly<Record<string, unknown>>;
};
const entries = Object.keys(exports)
  .filter((path) => path !== "./package.json")
  .map((path) => `postbell${path.slice(1)}`);

/** Entries whose types must compile in a host that has installed nothing else. */
const WITHOUT_CLIENTS = [
  "index",
  "content",
  "storage",
  "memory",
  "images",
  "orm",
  "outbox",
  "received",
  "portal",
  "prometheus",
  "receiver",
  "smtp",
  "testing",
];

const host = `
${entries.map((entry, index) => `import * as entry${index} from "${entry}";`).join("\n")}
import { createWebhooks, PostbellError } from "postbell";
import { expressAdapter } from "postbell/express";
import { memoryStorage } from "postbell/memory";
export const entries: object[] = [${entries.map((_, index) => `entry${index}`).join(", ")}];
export const webhooks = createWebhooks({ storage: memoryStorage(), access: { authenticate: () => null, canRead: () => true } });
export const handler = expressAdapter(webhooks);
export const codeOf = (thrown: unknown): string => (thrown instanceof PostbellError ? thrown.code : "other");
// @ts-expect-error The types are those of the package, not \`any\`.
memoryStorage({ nonsense: 1 });
`;

let folder: string;
beforeAll(() => {
  ({ folder } = installPackedPackage(
    ...["@opentelemetry/api", "@types/express", "@types/koa", "@types/node", "fastify", "koa", "prom-client"],
  ));
  for (const name of ["host.ts", "host.mts", "host.cts"]) writeFileSync(join(folder, name), host);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Compiles one file as `tsc` does. Returns its errors. */
function compile(file: string, options: ts.CompilerOptions): string[] {
  const program = ts.createProgram([join(folder, file)], {
    ...{ strict: true, noEmit: true, skipLibCheck: true, esModuleInterop: true, types: ["node"] },
    ...{ target: ts.ScriptTarget.ES2022, typeRoots: [join(folder, "node_modules/@types")] },
    ...options,
  });
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

describe("the types of every entry", () => {
  it.each<[string, string, ts.CompilerOptions]>([
    [
      "node, which Next.js 15 writes into a new tsconfig.json",
      "host.ts",
      {
        module: ts.ModuleKind.ESNext,
        moduleResolution: ts.ModuleResolutionKind.Node10,
        ignoreDeprecations: "6.0",
      },
    ],
    [
      "bundler",
      "host.ts",
      { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
    ],
    [
      "nodenext, in an ES module",
      "host.mts",
      { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
    ],
    [
      "nodenext, in CommonJS",
      "host.cts",
      { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
    ],
  ])("are found with moduleResolution %s", (_, file, options) => {
    expect(compile(file, options)).toEqual([]);
  });

  it("need no framework, driver or client, without an adapter or a storage that takes one", () => {
    const dist = join(folder, "node_modules/postbell/dist");
    const reached = new Set<string>();
    const visit = (name: string): void => {
      if (reached.has(name)) return;
      reached.add(name);
      const text = readFileSync(join(dist, name), "utf8");
      for (const [, next = ""] of text.matchAll(/(?:from|import\() ?['"]\.\/([^'"]+)\.cjs['"]/g))
        visit(`${next}.d.cts`);
    };
    for (const entry of WITHOUT_CLIENTS) visit(`${entry}.d.cts`);
    expect(reached.size).toBeGreaterThan(WITHOUT_CLIENTS.length);
    const offenders = [...reached].filter((name) =>
      /from ['"](?:express|koa|fastify|ioredis|undici|lru-cache|sharp|nodemailer|pg|mysql2|@opentelemetry)/.test(
        readFileSync(join(dist, name), "utf8"),
      ),
    );
    expect(offenders).toEqual([]);
  });
});
