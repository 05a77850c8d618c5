import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { basename, dirname, join, relative, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import {
  buildImportGraph,
  filesBelow,
  findCycles,
  findSharedNames,
  TOP_ROOMS,
  toRoom,
} from "../../scripts/house.js";

const root = resolve(import.meta.dirname, "../..");

interface Import {
  readonly from: string;
  /** A path from the project's root for a relative import; else the name of a module. */
  readonly to: string;
}

const listAllImports = (file: string): Import[] => {
  const text = readFileSync(join(root, file), "utf8");
  const specifiers = [...text.matchAll(/^(?:import|export)\b[^;]*?from "([^"]+)";$|\bimport\("([^"]+)"\)/gm)];
  return specifiers.map(([, from = "", dynamic]) => {
    const specifier = dynamic ?? from;
    const to = specifier.startsWith(".")
      ? relative(root, resolve(root, dirname(file), specifier))
      : specifier;
    return { from: file, to };
  });
};

/** The page of the portal, which runs in a browser. */
const app = filesBelow("src/portal/app");
const core = filesBelow("src").filter((file) => !app.includes(file));
const adapters = filesBelow("adapters");
const command = filesBelow("adapters/cli");
const storages = filesBelow("storage");
/** The imports that remain when the types are removed. */
const listRuntimeImports = (file: string): Import[] => {
  const { outputText } = ts.transpileModule(readFileSync(join(root, file), "utf8"), {
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ESNext,
      verbatimModuleSyntax: true,
    },
  });
  return [...outputText.matchAll(/\bfrom "(\.[^"]+)"/g)].map(([, specifier = ""]) => ({
    from: file,
    to: relative(root, resolve(root, dirname(file), specifier)),
  }));
};
const toSource = (path: string): string => path.replace(/\.js$/, ".ts");
const isBuiltin = (name: string): boolean =>
  name.startsWith("node:") && builtinModules.includes(name.slice(5));
const isBelow = (folder: string, path: string): boolean => path.startsWith(`${folder}/`);
/** Comments explain what code may not do, so they are not searched. */
const codeOf = (file: string): string =>
  readFileSync(join(root, file), "utf8")
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/^\s*\/\/.*$/gm, "");

/** The code that runs in the process of a host, without the portal and the suites for authors. */
const hostCode = [...core, ...storages, ...adapters].filter(
  (file) => !["src/portal", "src/testing", "adapters/cli"].some((folder) => isBelow(folder, file)),
);
const everything = TOP_ROOMS.flatMap((room) => filesBelow(room));

/**
 * The one listener on the process: a script that forgot `start()` ends before a timer could tell
 * it. An `emit` of a service that is neither started nor stopped adds it, not the creation of one.
 */
const EXIT_LISTENER = { file: "src/webhooks/start-reminder.ts", code: 'process.once("exit", warnAtExit)' };

const toJudged = (file: string): string =>
  file === EXIT_LISTENER.file ? codeOf(file).replace(EXIT_LISTENER.code, "") : codeOf(file);

/** The libraries that the page is built with. */
const PAGE_LIBRARIES = new Set([
  "preact",
  "preact/hooks",
  "diff",
  "lucide-preact",
  "regexparam",
  "virtual:verification-snippets",
]);

describe("the house", () => {
  it("has files to look at", () => {
    expect(core.length).toBeGreaterThan(20);
    expect(adapters.length).toBeGreaterThan(4);
    expect(storages.length).toBeGreaterThan(2);
    expect(core.flatMap(listAllImports).length).toBeGreaterThan(50);
  });

  it("points inward: from adapters and storages to the core, and from the command to storages", () => {
    const arrows = everything.flatMap(listAllImports).flatMap(({ from, to }) => {
      const [own = "", other = ""] = [from, to].map((path) => path.slice(0, path.indexOf("/")));
      return TOP_ROOMS.includes(other) && own !== other ? [{ from, arrow: `${own} → ${other}` }] : [];
    });
    const allowed = new Set(["adapters → src", "storage → src"]);
    const foreign = arrows.filter(
      ({ from, arrow }) =>
        !allowed.has(arrow) && !(arrow === "adapters → storage" && isBelow("adapters/cli", from)),
    );
    expect(foreign).toEqual([]);
  });

  it("lets each room import only the libraries that it is for", () => {
    const rooms: readonly (readonly [folder: string, ...libraries: string[]])[] = [
      ["src/portal/app", ...PAGE_LIBRARIES],
      ["src/portal", "virtual:portal-app"],
      [
        "src",
        ...["lru-cache", "p-queue", "p-retry", "fastest-levenshtein"],
        ...["htmlparser2", "@fastify/busboy", "sax"],
      ],
      ["storage/redis", "ioredis", "lru-cache"],
      ["storage/sql", "lru-cache"],
      ["storage/postgres", "pg"],
      ["storage"],
      ["adapters/sharp", "sharp"],
      ["adapters/smtp", "nodemailer", "lru-cache"],
      ["adapters/cli", "lru-cache"],
      [
        "adapters",
        ...["express", "koa", "fastify", "fastify-plugin", "@opentelemetry/api", "prom-client", "aws4fetch"],
      ],
    ];
    const foreign = everything.flatMap(listAllImports).filter(({ from, to }) => {
      const [, ...libraries] = rooms.find(([folder]) => isBelow(folder, from)) ?? [];
      return !TOP_ROOMS.some((room) => isBelow(room, to)) && !isBuiltin(to) && !libraries.includes(to);
    });
    expect(foreign).toEqual([]);
  });

  it("lets the portal's server import no file of its page, and the page only itself, shapes and texts", () => {
    const into = core.flatMap(listAllImports).filter(({ to }) => isBelow("src/portal/app", to));
    const outOf = app
      .flatMap(listAllImports)
      .filter(
        ({ to }) =>
          isBelow("src", to) &&
          !isBelow("src/portal/app", to) &&
          !/^src\/portal\/(?:(?:content-)?shapes|texts\/(?:en|table))\.js$/.test(to),
      );
    expect(app.length).toBeGreaterThan(5);
    expect([...into, ...outOf]).toEqual([]);
  });

  it("keeps the page free of HTML in strings and of inline styles", () => {
    const offenders = app.filter((file) =>
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\.style\b|\bstyle:/.test(codeOf(file)),
    );
    expect(offenders).toEqual([]);
  });

  it("keeps the shared parts of the core free of the services", () => {
    const shared = core.filter((file) =>
      [
        "src/core",
        "src/health",
        "src/http",
        "src/json-schema",
        "src/outbound",
        "src/schema",
        "src/signature",
      ].some((folder) => isBelow(folder, file)),
    );
    const upward = shared
      .flatMap(listAllImports)
      .filter(({ to }) => isBelow("src/webhooks", to) || isBelow("src/content", to));
    const across = core
      .flatMap(listAllImports)
      .filter(
        ({ from, to }) =>
          (isBelow("src/webhooks", from) && isBelow("src/content", to)) ||
          (isBelow("src/content", from) && isBelow("src/webhooks", to)),
      );
    expect([...upward, ...across]).toEqual([]);
  });

  it("tells time and draws chance only in the clocks", () => {
    const clocks = ["src/core/clock.ts"];
    const forbidden =
      /\bDate\.now\(|new Date\(\)|\bperformance\.now\(|process\.hrtime|\bMath\.random\(|(?<![.\w])set(?:Timeout|Interval)\(|timers\/promises/;
    const offenders = [...hostCode, ...core.filter((file) => isBelow("src/portal", file))].filter(
      (file) => !clocks.includes(file) && forbidden.test(codeOf(file)),
    );
    expect(offenders).toEqual([]);
  });

  it("has no service's route or header name in an adapter", () => {
    const offenders = adapters
      .filter((file) => !command.includes(file))
      .filter((file) => /\/v1\b|["'`](?:x-service|authorization|idempotency|www-auth)/i.test(codeOf(file)));
    expect(offenders).toEqual([]);
  });

  it("reads no environment, and only the default logger writes to the console", () => {
    const loggers = ["src/core/logger.ts"];
    const forbidden = /\bconsole\.|process\.env|process\.on\(|process\.once\(|process\.exit/;
    const offenders = [...hostCode, ...filesBelow("src/portal")].filter(
      (file) => !loggers.includes(file) && forbidden.test(toJudged(file)),
    );
    expect(offenders).toEqual([]);
  });

  it("keeps the root entry small: at most eighty names, and nothing of content", () => {
    const names = [...codeOf("src/index.ts").matchAll(/(\w+)(?=,|\s*\})/g)];
    expect(names.length).toBeGreaterThan(40);
    expect(names.length).toBeLessThanOrEqual(80);

    const loaded = new Set<string>();
    const load = (file: string): void => {
      if (loaded.has(file)) return;
      loaded.add(file);
      for (const { to } of listRuntimeImports(file)) if (isBelow("src", to)) load(toSource(to));
    };
    load("src/index.ts");
    expect(loaded.size).toBeGreaterThan(50);
    expect([...loaded].filter((file) => isBelow("src/content", file))).toEqual([]);
  });

  it("has no cycle between rooms or files, also none by types", () => {
    expect(findCycles(buildImportGraph(everything, toRoom))).toEqual([]);
    expect(findCycles(buildImportGraph(everything, (file) => file))).toEqual([]);
  });

  it("exports each name from one module", () => {
    expect(findSharedNames(everything)).toEqual([]);
  });

  it("lets no test judge by a clock or by processor time of its own: a busy machine is slower", () => {
    // The fuzz test runs for a given time; the others date what is signed, issued or stored.
    const dates = [
      "certificates.ts",
      "webhook-commands.test.ts",
      "files.test.ts",
      "guide-blocks.thorough.test.ts",
    ];
    const allowed = new Set([
      "cpu-time.ts",
      "cpu-time.isolated.test.ts",
      "fuzz.isolated.test.ts",
      "signature.test.ts",
      ...dates,
    ]);
    const offenders = filesBelow("test")
      .filter((file) => !/^test\/(?:faults|databases|browser|conformance)\//.test(file))
      .filter((file) => !allowed.has(basename(file)) && file !== "test/package/architecture.test.ts")
      .filter((file) =>
        /\bperformance\.now\b|\bhrtime\b|\bDate\.now\b|\b(?:cpu|threadCpu)Usage\b/.test(codeOf(file)),
      );
    expect(offenders).toEqual([]);
  });

  it("does nothing at import or construction: a process that only makes a service ends at once", () => {
    const script = `
      for (const entry of ["", "/content", "/storage", "/express", "/koa", "/fastify", "/node", "/fetch", "/memory", "/images", "/orm", "/outbox", "/portal", "/received", "/receiver", "/smtp", "/testing", "/opentelemetry", "/prometheus"]) await import("postbell" + entry);
      const { createWebhooks } = await import("postbell");
      const { memoryStorage } = await import("postbell/memory");
      createWebhooks({ storage: memoryStorage(), access: { authenticate: () => null, canRead: () => true } });
      const busy = process.getActiveResourcesInfo().filter((name) => /Timeout|Immediate|TCP|UDP|TLS|DNS|QUERY|Server|Worker|Message/i.test(name));
      console.log(JSON.stringify(busy));`;
    const printed = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: root,
      encoding: "utf8",
    });
    expect(JSON.parse(printed)).toEqual([]);
  });
});
