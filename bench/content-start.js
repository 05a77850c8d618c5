// One process that starts on content in a storage (see `openContentStorage`): writes a site of
// `posts` first where told to, else answers with what the start took.
import { once } from "node:events";
import { performance } from "node:perf_hooks";
import { createContent } from "postbell/content";
import { openContentStorage } from "./content-address.js";
import { makeSite } from "./content-site.js";

const [{ posts, ...address }] = await once(process, "message");
const storage = await openContentStorage({ ...address, name: "start" });
if (posts) {
  await makeSite(posts, { storage });
  process.send?.({});
} else {
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  const start = performance.now();
  const content = createContent({
    storage,
    site: { url: "http://localhost" },
    authenticate: () => null,
    users: [],
  });
  const { status } = await content.request({ method: "GET", path: "/core/v2/posts", as: null });
  if (status !== 200) throw new Error(`the first response has the status ${status}`);
  const seconds = (performance.now() - start) / 1_000;
  globalThis.gc();
  process.send?.({
    seconds,
    heapBytes: process.memoryUsage().heapUsed - before,
    peakBytes: process.resourceUsage().maxRSS * 1_024,
  });
}
await once(process, "disconnect");
await storage.close();
