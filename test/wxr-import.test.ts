import { describe, expect, it } from "vitest";
import { contentSite } from "./support/content-site.js";
import { bytesOf, seededSite, streamOf, wxrFile } from "./support/wxr-file.js";

describe("content.import", () => {
  it("imports", { timeout: 60_000 }, async () => {
    const content = contentSite();
    const site = seededSite({ count: 5000, seed: 1 });
    console.time("i");
    const s = await content.import(streamOf(site.file()), { as: 1 });
    console.timeEnd("i");
    console.log(s);
    console.time("j");
    console.log(await content.import(streamOf(site.file()), { as: 1 }));
    console.timeEnd("j");
    const a = await content.request({ method: "GET", path: "/core/v2/posts", query: { per_page: 2 }, as: 1 });
    console.log(a.headers, JSON.stringify(a.body).slice(0, 1500));
  });
});
