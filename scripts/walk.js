// Lists the files that one event and one content request pass, down to the helpers of helpers: what
// a reader has to open to follow it. `scripts/house.js` prints the counts, and
// `test/package/request-walk.test.ts` holds limits for them.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { filesBelow, root } from "./house.js";

const COMMON = `
  import { Session } from "node:inspector/promises";
  import { memoryStorage } from "./storage/memory/index.js";

  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const here = new URL("./", import.meta.url).href;
  // V8 counts the calls of each function, and taking the counts resets them.
  const walk = async (run) => {
    await session.post("Profiler.takePreciseCoverage");
    await run();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
      .flatMap(({ url }) => (url.startsWith(here) ? [url.slice(here.length)] : []))
      .filter((file) => /^(?:src|storage)\\//.test(file))
      .sort();
  };
`;

/** Asks for a list of posts three times. */
const REQUESTS = `${COMMON}
  import { createContent } from "./src/content/index.js";

  const content = createContent({
    storage: memoryStorage(),
    site: { name: "Clinic", url: "https://www.example.org" },
    authenticate: () => null,
    users: [{ id: 1, slug: "ada", name: "Ada", roles: ["administrator"] }],
  });
  await content.start();
  for (const title of ["One", "Two", "Three"]) {
    const body = { title, content: "Text", status: "publish" };
    const { status } = await content.request({ method: "POST", path: "/core/v2/posts", as: 1, body });
    if (status !== 201) throw new Error("status " + status);
  }
  const list = (query) => walk(async () => {
    const baseUrl = "https://www.example.org/api";
    const response = await content.handle({ method: "GET", path: "/core/v2/posts", query, headers: {}, baseUrl });
    if (response.status !== 200) throw new Error("status " + response.status);
  });
  console.log(JSON.stringify({ first: await list(""), cached: await list(""), rendered: await list("page=1") }));
  await content.stop();
`;

/**
 * Emits four events after a first one. The files are those that each of the four passes until it is
 * settled: what a timer runs in between falls into one or two of them.
 */
const EVENTS = `${COMMON}
  import { createServer } from "node:http";
  import { createWebhooks } from "./src/index.js";
  import { redisStorage } from "./storage/redis/index.js";

  const endpoint = createServer((request, response) => request.resume().on("end", () => response.end()));
  await new Promise((ready) => endpoint.listen(0, "127.0.0.1", ready));
  const walkEvent = async (storage) => {
    const webhooks = createWebhooks({
      storage,
      access: { authenticate: () => null, canRead: () => true },
      destinations: { allowHttp: true, allowPrivateNetworks: true },
      logger: false,
    });
    const url = "http://127.0.0.1:" + endpoint.address().port;
    await webhooks.registrations.create({ subscriber: { id: "key", account: "clinic" }, url });
    await webhooks.start();
    const emit = async (id) => {
      await webhooks.emit({ type: "patient.updated", account: "clinic", resource: { resourceType: "Patient", id } });
      await webhooks.idle();
    };
    await emit("first");
    let files = await walk(() => emit("second"));
    for (const id of ["third", "fourth", "fifth"]) {
      const walked = await walk(() => emit(id));
      files = files.filter((file) => walked.includes(file));
    }
    await webhooks.stop();
    await storage.close();
    return files;
  };
  const walks = { memory: await walkEvent(memoryStorage()) };
  const { REDIS_URL } = process.env;
  if (REDIS_URL) walks.redis = await walkEvent(redisStorage({ url: REDIS_URL, prefix: "walk-" + process.pid }));
  console.log(JSON.stringify(walks));
  endpoint.close();
  endpoint.closeAllConnections();
`;

/** Each source file becomes one module, so that coverage tells them apart; Lua becomes text. */
const buildModules = async (/** @type {string} */ folder) =>
  build({
    entryPoints: [...filesBelow("src"), ...filesBelow("storage")].map((file) => join(root, file)),
    outbase: root,
    outdir: folder,
    format: "esm",
    platform: "node",
    logLevel: "silent",
    bundle: true,
    loader: { ".lua": "text", ".sql": "text" },
    plugins: [
      {
        name: "one-module-per-file",
        setup(building) {
          building.onResolve({ filter: /./ }, ({ kind, path }) =>
            kind === "entry-point" || path.endsWith(".lua") ? undefined : { path, external: true },
          );
        },
      },
    ],
  });

/**
 * Returns the files that each walk passes: `first`, `cached` and `rendered` for a list of posts,
 * `memory` for an event, and `redis` for one through the server at `redisUrl`.
 *
 * @param {string | undefined} redisUrl
 * @returns {Promise<{ [walk: string]: string[] | undefined }>}
 */
export const listWalks = async (redisUrl) => {
  const folder = mkdtempSync(join(tmpdir(), "postbell-walk-"));
  try {
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    await buildModules(folder);
    const walks = {};
    for (const [file, program] of Object.entries({ "requests.js": REQUESTS, "events.js": EVENTS })) {
      writeFileSync(join(folder, file), program);
      const env = { ...process.env, REDIS_URL: redisUrl };
      const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder, env });
      Object.assign(walks, JSON.parse(stdout));
    }
    return walks;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
