import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { filesBelow } from "../../scripts/house.js";

const root = resolve(import.meta.dirname, "../..");

/**
 * Asks for a list of posts three times and prints which files had a function called in between. V8
 * counts calls per function, and taking the counts resets them.
 */
const script = `
  import { Session } from "node:inspector/promises";
  import { createContent } from "./src/content/index.js";
  import { memoryStorage } from "./storage/memory/index.js";

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
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const here = new URL("./", import.meta.url).href;
  const walk = async (query) => {
    await session.post("Profiler.takePreciseCoverage");
    const baseUrl = "https://www.example.org/api";
    const response = await content.handle({ method: "GET", path: "/core/v2/posts", query, headers: {}, baseUrl });
    if (response.status !== 200) throw new Error("status " + response.status);
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
      .flatMap(({ url }) => (url.startsWith(here) ? [url.slice(here.length)] : []))
      .filter((file) => /^(?:src|storage)\\//.test(file))
      .sort();
  };
  console.log(JSON.stringify({ first: await walk(""), cached: await walk(""), rendered: await walk("page=1") }));
  await content.stop();
`;

/** Emits two events and prints which files had a function called until the second is settled. */
const eventScript = `
  import { createServer } from "node:http";
  import { Session } from "node:inspector/promises";
  import { createWebhooks } from "./src/index.js";
  import { memoryStorage } from "./storage/memory/index.js";

  const endpoint = createServer((request, response) => request.resume().on("end", () => response.end()));
  await new Promise((ready) => endpoint.listen(0, "127.0.0.1", ready));
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  const here = new URL("./", import.meta.url).href;
  const walk = async (storage) => {
    const webhooks = createWebhooks({
      storage,
      access: { authenticate: () => null, canRead: () => true },
      destinations: { allowHttp: true, allowPrivateNetworks: true },
      logger: false,
    });
    const url = "http://127.0.0.1:" + endpoint.address().port;
    await webhooks.registrations.create({ id: "key", account: "clinic" }, { url });
    await webhooks.start();
    const emit = async (id) => {
      await webhooks.emit({ type: "patient.updated", account: "clinic", resource: { resourceType: "Patient", id } });
      await webhooks.idle();
    };
    await emit("first");
    await session.post("Profiler.takePreciseCoverage");
    await emit("second");
    const { result } = await session.post("Profiler.takePreciseCoverage");
    await webhooks.stop();
    await storage.close();
    return result
      .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
      .flatMap(({ url }) => (url.startsWith(here) ? [url.slice(here.length)] : []))
      .filter((file) => /^(?:src|storage)\\//.test(file))
      .sort();
  };
  console.log(JSON.stringify({ event: await walk(memoryStorage()) }));
  endpoint.close();
  endpoint.closeAllConnections();
`;

let folder: string;
let walked: { readonly [request: string]: readonly string[] };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "postbell-walk-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  const files = [...filesBelow("src"), ...filesBelow("storage")];
  await build({
    entryPoints: files.map((file) => join(root, file)),
    outbase: root,
    outdir: folder,
    format: "esm",
    platform: "node",
    logLevel: "silent",
  });
  writeFileSync(join(folder, "walk.js"), script);
  writeFileSync(join(folder, "event-walk.js"), eventScript);
  const run = (file: string) =>
    JSON.parse(execFileSync(process.execPath, [file], { cwd: folder, encoding: "utf8" })) as typeof walked;
  walked = { ...run("walk.js"), ...run("event-walk.js") };
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The files that a reader has to open to follow a request, down to the helpers of helpers. */
describe("the path of an event, from emit to its settlement", () => {
  it("passes few files in memory", () => {
    const files = walked["event"] ?? [];
    expect(files).toContain("src/webhooks/delivery/worker.js");
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(45);
  });
});

describe("the way of a list of posts", () => {
  it.each([
    ["first", 57],
    ["rendered", 45],
    ["cached", 20],
  ])("passes few files: %s", (request, most) => {
    const files = walked[request] ?? [];
    expect(files).toContain("src/content/rest/server.js");
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(most);
  });
});
