/**
 * The console in a real browser: what somebody who runs a site does from its first to its last
 * step.
 */

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { axeFindings, launch } from "./support/chromium.js";
import { contentHost, fixture } from "./support/content-host.js";

let browser: Browser;
let host: Awaited<ReturnType<typeof contentHost>>;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());
beforeEach(async () => {
  host = await contentHost(browser, { uploadBytes: 200_000 });
});
afterEach(async () => {
  const faults = await host.close();
  if (faults.length > 0) throw new Error(`The page did what it must not: ${faults.join("; ")}`);
});

const outcome = (page: Page) => page.locator("main > [role=status]");
const said = async (page: Page, text: string | RegExp): Promise<void> => {
  await outcome(page).filter({ hasText: text }).waitFor({ timeout: 10_000 });
};
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

const isFocused = (what: Locator): Promise<boolean> =>
  what.evaluate((given: unknown) => {
    const element = given as { readonly ownerDocument: { readonly activeElement: unknown } };
    return element.ownerDocument.activeElement === element;
  });
const shareOf = (bar: Locator): Promise<number> =>
  bar.evaluate((given: unknown) => (given as { readonly value: number }).value);

const TEXT = { title: "Opening hours", content: "Monday\nTuesday", status: "publish" } as const;

describe("posts", () => {
  it("are written, published, found, trashed, restored and deleted for good", async () => {
    const page = await host.visit("editor", "/posts");
    await page.getByRole("link", { name: "New post" }).click();
    await page.getByLabel("Title").fill("Flu season");
    await page.getByLabel("Content").fill("Come early.");
    await press(page, "Save as draft");
    await said(page, "Saved as a draft.");
    await page.getByRole("heading", { level: 1, name: "Flu season" }).waitFor();

    await page.getByLabel("Excerpt").fill("In short");
    await press(page, "Publish");
    await said(page, "Saved. Published.");
    const id = Number(new URL(page.url()).hash.split("/")[2]);
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({
      status: "publish",
      slug: "flu-season",
      content: { raw: "Come early." },
      excerpt: { raw: "In short" },
    });
    expect(await page.getByLabel("Slug").inputValue()).toBe("flu-season");

    await press(page, "Move to the trash");
    await said(page, "“Flu season” is in the trash.");
    await page.getByLabel("Status").selectOption("In the trash");
    await press(page, "Search");
    await page.getByRole("link", { name: "Flu season" }).click();
    await press(page, "Restore as draft");
    await said(page, "Restored as a draft.");
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({
      status: "draft",
      slug: "flu-season",
    });

    await press(page, "Move to the trash");
    await said(page, "is in the trash");
    await page.goto(`${host.origin}/portal/#/posts/${id}`);
    await press(page, "Delete permanently");
    await press(page, "Cancel");
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({ status: "trash" });
    await press(page, "Delete permanently");
    await page.getByRole("dialog").getByRole("button", { name: "Delete permanently" }).click();
    await said(page, "“Flu season” was deleted.");
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({ code: "rest_post_invalid_id" });
  });

  it("are made once, however often the button is pressed, and what was typed before is kept", async () => {
    const page = await host.visit("editor", "/posts/new");
    await page.getByLabel("Title").fill("Half a tit");
    await page.getByRole("link", { name: "Pages", exact: true }).click();
    await page.getByText("0 pages.").waitFor();
    await page.goBack();
    await said(page, "Your unsaved changes are still here.");
    await page.getByLabel("Title").fill("Once");
    await page.getByRole("button", { name: "Save as draft" }).dblclick();
    await said(page, "Saved as a draft.");
    expect(await host.request("editor", "GET /posts?status=any")).toMatchObject([{ title: { raw: "Once" } }]);
    await page.goto(`${host.origin}/portal/#/posts/new`);
    await page.getByRole("heading", { level: 1, name: "New post" }).waitFor();
    expect(await page.getByLabel("Title").inputValue()).toBe("");
  });

  it("are searched for in any status, and paged", async () => {
    for (let number = 1; number <= 21; number += 1)
      await host.request("editor", "POST /posts", {
        title: `Note ${number}`,
        status: number % 2 ? "draft" : "publish",
      });
    const page = await host.visit("editor", "/posts");
    await page.getByText("21 posts.").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(20);
    await page.getByRole("link", { name: "Next" }).click();
    await page.getByText("Page 2 of 2").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
    await page.getByLabel("Search").fill("Note 17");
    await press(page, "Search");
    await page.getByText("1 post with “Note 17”.").waitFor();
    expect(await page.locator("tbody tr").innerText()).toContain("Draft");
    await page.goBack();
    await page.getByText("Page 2 of 2").waitFor();
  });

  it("wait for a date to come, and are told so", async () => {
    const { id } = await host.request("editor", "POST /posts", { ...TEXT, status: "draft" });
    const page = await host.visit("editor", `/posts/${id}`);
    await page.getByLabel("Date").fill("2199-01-02T03:04");
    await press(page, "Publish");
    await said(page, "Saved. Scheduled for 2 Jan 2199, 03:04.");
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({
      status: "future",
      date: "2199-01-02T03:04:00",
    });
  });

  it("say next to a field what is wrong with it", async () => {
    const { id } = await host.request("editor", "POST /posts", TEXT);
    const page = await host.visit("editor", `/posts/${id}`);
    await page.getByLabel("Title").fill("Changed");
    await page.route("**/api/content/posts/*", (route) =>
      route.request().method() === "POST"
        ? route.fulfill({
            status: 400,
            contentType: "application/json",
            body: JSON.stringify({
              error: { code: "rest_invalid_param", message: "The slug is too long.", field: "slug" },
            }),
          })
        : route.continue(),
    );
    await press(page, "Save");
    const slug = page.getByLabel("Slug");
    await page.getByText("The slug is too long.").waitFor();
    expect(await slug.getAttribute("aria-invalid")).toBe("true");
    expect(await isFocused(slug)).toBe(true);
  });
});

describe("what somebody else has saved meanwhile", () => {
  async function bothEdit() {
    const { id } = await host.request("administrator", "POST /posts", TEXT);
    const page = await host.visit("editor", `/posts/${id}`);
    await page.getByLabel("Content").fill("Monday\nTuesday\nSunday");
    // The time of a state is told in whole seconds.
    await host.clock.advance(1_000);
    await host.request("administrator", `POST /posts/${id}`, {
      content: "Monday\nWednesday",
      title: "Hours",
    });
    await press(page, "Save");
    const heading = page.getByRole("heading", { name: "Someone else has saved this in the meantime" });
    await heading.waitFor();
    await expect.poll(() => isFocused(heading)).toBe(true);
    const read = () => host.request("editor", `GET /posts/${id}`);
    expect(await read()).toMatchObject({ content: { raw: "Monday\nWednesday" } });
    const table = page.getByRole("table", { name: "Content" });
    expect(await table.getByRole("columnheader").allInnerTexts()).toEqual(["Theirs", "Yours"]);
    const title = page.getByRole("table", { name: "Title" });
    expect(await title.getByRole("columnheader").allInnerTexts()).toEqual(["Theirs", "Before"]);
    expect(await table.locator("del").allInnerTexts()).toEqual(["Wednesday"]);
    expect(await table.locator("ins").allInnerTexts()).toEqual(["Tuesday", "Sunday"]);
    return { page, read };
  }

  it("is shown beside the visitor's own, who may save over it; what he has not touched stays theirs", async () => {
    const { page, read } = await bothEdit();
    await press(page, "Overwrite with mine");
    await said(page, "Saved. Published.");
    expect(await read()).toMatchObject({
      content: { raw: "Monday\nTuesday\nSunday" },
      title: { raw: "Hours" },
    });
  });

  it("can be taken instead", async () => {
    const { page, read } = await bothEdit();
    await press(page, "Use theirs");
    expect(await page.getByLabel("Content").inputValue()).toBe("Monday\nWednesday");
    expect(await isFocused(page.getByLabel("Title"))).toBe(true);
    expect(await read()).toMatchObject({ content: { raw: "Monday\nWednesday" } });
  });

  it("keeps it from the trash until the visitor has seen it", async () => {
    const { id } = await host.request("administrator", "POST /posts", TEXT);
    const page = await host.visit("editor", `/posts/${id}`);
    await page.getByLabel("Title").waitFor();
    await host.clock.advance(1_000);
    await host.request("administrator", `POST /posts/${id}`, { title: "Not this one" });
    await press(page, "Move to the trash");
    await said(page, "someone else has changed this in the meantime");
    expect(await page.getByLabel("Title").inputValue()).toBe("Not this one");
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({ status: "publish" });
  });
});

it("keeps what was typed and not saved when its post is left and opened again", async () => {
  const { id } = await host.request("editor", "POST /posts", TEXT);
  const page = await host.visit("editor", `/posts/${id}`);
  await page.getByLabel("Content").fill("Half a sent");
  await page.getByRole("link", { name: "Pages", exact: true }).click();
  await page.getByText("0 pages.").waitFor();
  await page.goBack();
  await said(page, "Your unsaved changes are still here.");
  expect(await page.getByLabel("Content").inputValue()).toBe("Half a sent");
  await press(page, "Save");
  await said(page, "Saved.");
  expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({ content: { raw: "Half a sent" } });
});

it("keeps what is typed while it is being saved", async () => {
  const { id } = await host.request("editor", "POST /posts", TEXT);
  const page = await host.visit("editor", `/posts/${id}`);
  await page.getByLabel("Title").fill("Hours");
  let respond = (): void => {};
  const isTyped = new Promise<void>((resolve) => {
    respond = resolve;
  });
  await page.route("**/api/content/posts/*", async (route) => {
    await isTyped;
    await route.continue();
  });
  await press(page, "Save");
  await page.getByLabel("Content").fill("Sunday");
  respond();
  await said(page, "Saved. Published.");
  expect(await page.getByLabel("Content").inputValue()).toBe("Sunday");
  expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({
    title: { raw: "Hours" },
    content: { raw: TEXT.content },
  });
  await press(page, "Save");
  await expect
    .poll(() => host.request("editor", `GET /posts/${id}`))
    .toMatchObject({ content: { raw: "Sunday" } });
});

describe("revisions", () => {
  it("stand side by side, told apart without colour, and one of them can be restored", async () => {
    const { id } = await host.request("editor", "POST /pages", { ...TEXT, content: "" });
    for (const content of ["Monday\nTuesday\nFriday", "Monday\nFriday\nSaturday"])
      await host.request("editor", `POST /pages/${id}`, { content });
    const page = await host.visit("editor", `/pages/${id}`);
    await page.getByRole("link", { name: "Revisions" }).click();
    const table = page.getByRole("table", { name: "Content" });
    await table.waitFor();
    expect(await table.locator("td.left").allInnerTexts()).toEqual([
      expect.stringMatching(/^Removed:\s+− Tuesday$/),
    ]);
    expect(await table.locator("td.right").allInnerTexts()).toEqual([
      expect.stringMatching(/^Added:\s+\+ Saturday$/),
    ]);
    await press(page, "Restore the left version");
    await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
    await said(page, "Restored the version of");
    expect(await page.getByLabel("Content").inputValue()).toBe("Monday\nTuesday\nFriday");
    expect(await host.request("editor", `GET /pages/${id}`)).toMatchObject({
      content: { raw: "Monday\nTuesday\nFriday" },
    });
  });

  it("are not restored over what somebody else has saved since they were compared", async () => {
    const { id } = await host.request("editor", "POST /posts", { ...TEXT, content: "" });
    for (const content of ["Monday", "Tuesday"])
      await host.request("editor", `POST /posts/${id}`, { content });
    const page = await host.visit("editor", `/posts/${id}/revisions`);
    const added = page.getByRole("table", { name: "Content" }).locator("td.right ins");
    await added.getByText("Tuesday").waitFor();
    await host.clock.advance(1_000);
    await host.request("administrator", `POST /posts/${id}`, { content: "Wednesday" });
    const restore = async (): Promise<void> => {
      await press(page, "Restore the left version");
      await page.getByRole("dialog").getByRole("button", { name: "Restore" }).click();
    };
    await restore();
    await said(page, "Nothing was restored");
    await added.getByText("Wednesday").waitFor();
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({ content: { raw: "Wednesday" } });
    await restore();
    await said(page, "Restored the version of");
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({ content: { raw: "Monday" } });
  });
});

describe("media", () => {
  const upload = (page: Page, ...files: { name: string; mimeType: string; buffer: Buffer }[]) =>
    page.getByLabel("Upload files").setInputFiles(files);
  const png = { name: "heart.png", mimeType: "image/png", buffer: fixture("small.png") };

  it("are uploaded together, each with its own outcome in words, shown and described", async () => {
    const page = await host.visit("author", "/media");
    await upload(
      page,
      { name: "tool.png", mimeType: "image/png", buffer: Buffer.from("MZ no picture") },
      { name: "big.txt", mimeType: "text/plain", buffer: Buffer.alloc(300_000, "a") },
      png,
    );
    const rows = page.getByRole("list", { name: "Uploads" }).getByRole("listitem");
    await rows.nth(2).getByText("Uploaded").waitFor();
    expect(await rows.allInnerTexts()).toEqual([
      expect.stringMatching(/tool\.png\s+Sorry, you are not allowed to upload this file type/),
      expect.stringMatching(/big\.txt\s+The file is too large: at most 200000 bytes/),
      expect.stringMatching(/heart\.png\s+Uploaded/),
    ]);
    await said(page, "heart.png: Uploaded");
    const picture = page.getByRole("list", { name: "Files" }).locator("img");
    await picture.waitFor();
    await expect
      .poll(() => picture.evaluate((image: unknown) => (image as { naturalWidth: number }).naturalWidth))
      .toBeGreaterThan(0);

    await page.getByRole("link", { name: "heart" }).click();
    await page.getByRole("heading", { level: 1, name: "heart" }).waitFor();
    await page.getByRole("textbox", { name: "Alternative text" }).fill("A heart");
    await press(page, "Save");
    await said(page, "Saved.");
    await page.reload();
    await page.getByRole("img", { name: "A heart" }).waitFor();
    await press(page, "Delete permanently");
    await page.getByRole("dialog").getByRole("button", { name: "Delete permanently" }).click();
    await said(page, "“heart” was deleted.");
    await page.getByText("0 files.").waitFor();
  });

  it("are put into a text and shown as the featured picture, from the library or by an upload", async () => {
    const page = await host.visit("author", "/media");
    await upload(page, png);
    await said(page, "heart.png: Uploaded");
    await page.goto(`${host.origin}/portal/#/posts/new`);
    await page.getByLabel("Title").fill("With a picture");
    await page.getByLabel("Content").fill("First.\n\nSecond.");
    await page.getByLabel("Content").press("Control+Home");
    await press(page, "Insert a picture");
    const dialog = page.getByRole("dialog", { name: "Choose a picture" });
    await dialog.getByLabel("Search the pictures").fill("nothing like it");
    await dialog.getByText("No picture was found.").waitFor();
    await dialog.getByLabel("Search the pictures").fill("heart");
    await dialog.getByRole("button", { name: "heart" }).click();
    await press(page, "Choose the featured picture");
    await dialog.locator("input[type=file]").setInputFiles({ ...png, name: "cover.png" });
    await page.getByRole("region", { name: "Featured picture" }).getByRole("img").waitFor();
    await press(page, "Publish");
    await said(page, "Published.");
    const id = Number(new URL(page.url()).hash.split("/")[2]);
    const [cover, heart] = await host.request("author", "GET /media");
    expect(await host.request("author", `GET /posts/${id}`)).toMatchObject({
      status: "publish",
      featured_media: cover.id,
      content: {
        // No block: it would end the paragraphs that blank lines make.
        raw: `First.\n\n<figure class="wp-block-image"><img src="${heart.source_url}" alt="" class="wp-image-${heart.id}"/></figure>\n\nSecond.`,
        rendered: expect.stringMatching(/^<p>First\.<\/p>\n<figure[\s\S]*<\/figure>\n<p>Second\.<\/p>/),
      },
    });
    await press(page, "Remove it");
    await press(page, "Save");
    await said(page, "Saved. Published.");
    expect(await host.request("author", `GET /posts/${id}`)).toMatchObject({ featured_media: 0 });
  });

  const filled = (files: readonly { name: string; type: string; base64: string }[]): string =>
    `(() => { const data = new DataTransfer(); for (const { name, type, base64 } of ${JSON.stringify(files)}) data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, { type })); return data; })()`;
  const dropped = { name: "dropped.png", type: "image/png", base64: png.buffer.toString("base64") };

  it("are taken when they are dropped on the page or pasted, and nothing else is", async () => {
    const page = await host.visit("author", "/media");
    const drop = page.getByRole("region", { name: "Upload" });
    await drop.waitFor();
    await page.getByText("There are no files yet. Drag pictures").waitFor();
    await page.evaluate(
      `(() => { const dataTransfer = ${filled([dropped])}; const fire = (type) => document.querySelector("h1").dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer })); window.kept = fire("dragover"); })()`,
    );
    expect(await page.evaluate("window.kept")).toBe(false);
    await page.locator(".drop.over").waitFor();
    await page.evaluate(
      `document.querySelector("h1").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: ${filled([dropped])} }))`,
    );
    await said(page, "dropped.png: Uploaded");
    await page.evaluate(
      `document.body.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, clipboardData: ${filled([{ ...dropped, name: "pasted.png" }])} }))`,
    );
    await said(page, "pasted.png: Uploaded");
    expect(await page.locator(".drop.over").count()).toBe(0);
    const files = page.getByRole("list", { name: "Files" }).getByRole("listitem");
    await expect.poll(() => files.count()).toBe(2);
    // A text that is dragged stays with the browser.
    const isFree = await page.evaluate(
      `(() => { const dataTransfer = new DataTransfer(); dataTransfer.setData("text/plain", "x"); return document.body.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer })); })()`,
    );
    expect(isFree).toBe(true);
    expect(await host.request("author", "GET /media")).toHaveLength(2);
  });

  it("warn where a picture has no alternative text, and take it on the spot", async () => {
    const page = await host.visit("author", "/media");
    await upload(page, png, { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("a") });
    await said(page, "notes.txt: Uploaded");
    const heart = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: "heart" }) });
    await heart.getByText("No alternative text").waitFor();
    expect(await page.getByText("No alternative text").count()).toBe(1);
    const save = heart.getByRole("button", { name: "Save" });
    await save.click();
    await heart.getByText("Describe the picture in a few words.").waitFor();
    await heart.getByLabel("Alternative text", { exact: true }).fill('A "heart" & more');
    await save.click();
    await said(page, "The alternative text of “heart” was saved.");
    await heart.getByText("No alternative text").waitFor({ state: "detached" });
    expect(await host.request("author", "GET /media")).toEqual(
      expect.arrayContaining([expect.objectContaining({ alt_text: 'A "heart" & more' })]),
    );
  });

  it("offer the alternative text of what is another's as a warning only", async () => {
    const author = await host.visit("author", "/media");
    await upload(author, png);
    await said(author, "heart.png: Uploaded");
    const page = await host.visit("subscriber", "/media");
    await page.getByText("No alternative text").waitFor();
    expect(await page.getByLabel("Alternative text").count()).toBe(0);
  });

  it("show how far an upload is, and stop on demand without leaving anything", async () => {
    const page = await host.visit("author", "/media");
    const slow = await page.context().newCDPSession(page);
    await slow.send("Network.enable");
    await slow.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: 20_000,
    });
    await upload(page, { name: "long.txt", mimeType: "text/plain", buffer: Buffer.alloc(190_000, "a") });
    await upload(page, { name: "next.txt", mimeType: "text/plain", buffer: Buffer.from("a") });
    await press(page, "Cancel the upload of next.txt");
    await said(page, "next.txt: Cancelled");
    const bar = page.getByRole("progressbar", { name: "Upload of long.txt" });
    await expect.poll(() => shareOf(bar), { timeout: 15_000 }).toBeGreaterThan(0.1);
    expect(await shareOf(bar)).toBeLessThan(1);
    await press(page, "Cancel the upload of long.txt");
    await said(page, "long.txt: Cancelled");
    expect(await host.request("author", "GET /media")).toEqual([]);
  });
});

describe("rights", () => {
  it("show a subscriber what is published, to read", async () => {
    const { id } = await host.request("editor", "POST /posts", TEXT);
    await host.request("editor", "POST /posts", { title: "Secret", status: "draft" });
    const page = await host.visit("subscriber", "/posts");
    await page.getByText("1 post. You see published content only.").waitFor();
    expect(await page.getByRole("link", { name: "New post" }).count()).toBe(0);
    expect(await page.getByLabel("Status").count()).toBe(0);
    await page.getByRole("link", { name: "Opening hours" }).click();
    await page.getByText("Monday").first().waitFor();
    expect(await page.getByRole("main").getByRole("button").count()).toBe(0);
    await page.goto(`${host.origin}/portal/#/posts/${id}/revisions`);
    await page.getByText("Sorry, you are not allowed").waitFor();
    await page.goto(`${host.origin}/portal/#/media`);
    await page.getByText("0 files. You see published content only.").waitFor();
    expect(await page.getByLabel("Upload files").count()).toBe(0);
  });

  it("let a contributor write, but neither publish nor touch what is another's", async () => {
    const { id } = await host.request("editor", "POST /posts", TEXT);
    const own = await host.request("contributor", "POST /posts", { title: "Mine" });
    const page = await host.visit("contributor", `/posts/${own.id}`);
    expect(await page.getByLabel("Status").locator("option").allInnerTexts()).toEqual([
      "Draft",
      "Pending review",
    ]);
    expect(await page.getByRole("button", { name: "Publish" }).isVisible()).toBe(false);
    await page.getByLabel("Status").selectOption("Pending review");
    await press(page, "Save");
    await said(page, "Saved. Pending review.");
    await page.goto(`${host.origin}/portal/#/posts/${id}`);
    await page.getByText("Monday").first().waitFor();
    expect(await page.locator("form").count()).toBe(0);
  });
});

it("shows hostile titles and contents as text", async () => {
  const hostile = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>&lt;b&gt;`;
  const { id } = await host.request("administrator", "POST /posts", {
    title: `Bad ${hostile}`,
    content: hostile,
    excerpt: hostile,
    status: "publish",
  });
  await host.request("administrator", `POST /posts/${id}`, { content: `${hostile}\nmore` });
  await host.request("administrator", `POST /posts/${id}`, { content: `${hostile}\nless` });
  for (const [role, views] of [
    ["administrator", ["/posts", `/posts/${id}`, `/posts/${id}/revisions`]],
    ["subscriber", ["/posts", `/posts/${id}`]],
  ] as const) {
    const page = await host.visit(role, views[0]);
    for (const view of views) {
      await page.goto(`${host.origin}/portal/#${view}`);
      await page
        .getByText(view === "/posts" ? "1 post" : /Bad/)
        .first()
        .waitFor();
      await page.waitForLoadState("networkidle");
      expect(await page.locator("main img, main script, main b").count()).toBe(0);
      expect(await page.title()).not.toBe("owned");
    }
  }
});

describe.each(["light", "dark"] as const)("in the %s scheme", (colorScheme) => {
  it("has nothing that axe finds wrong", async () => {
    const { id } = await host.request("editor", "POST /posts", TEXT);
    for (const content of ["Monday", "Monday\nFriday"])
      await host.request("editor", `POST /posts/${id}`, { content });
    const page = await host.visit("editor", "/posts", { colorScheme });
    for (const [view, text] of [
      ["/posts", "1 post."],
      ["/posts/new", "Save as draft"],
      [`/posts/${id}`, "Move to the trash"],
      [`/posts/${id}/revisions`, "Added:"],
      ["/media", "Upload files"],
    ] as const) {
      await page.goto(`${host.origin}/portal/#${view}`);
      await page.getByText(text).first().waitFor();
      expect(await axeFindings(page), view).toEqual([]);
    }
  });
});

it("is worked with the keyboard alone", async () => {
  await host.request("editor", "POST /posts", { ...TEXT, status: "draft" });
  const page = await host.visit("editor", "/posts");
  const link = page.getByRole("link", { name: "Opening hours" });
  await link.waitFor();
  const tabTo = async (what: Locator): Promise<void> => {
    for (let count = 0; count < 30; count += 1) {
      await page.keyboard.press("Tab");
      if (await isFocused(what)) return;
    }
    throw new Error("It cannot be reached with the Tab key.");
  };
  await tabTo(link);
  await page.keyboard.press("Enter");
  const title = page.getByLabel("Title");
  await title.waitFor();
  await tabTo(title);
  await page.keyboard.type("New hours");
  await page.keyboard.press("Enter");
  await said(page, "Saved. Draft.");
  await tabTo(page.getByRole("button", { name: "Move to the trash" }));
  await page.keyboard.press("Enter");
  await said(page, "is in the trash.");
  expect(await host.request("editor", "GET /posts?status=trash")).toMatchObject([
    { title: { raw: "New hours" } },
  ]);
});

describe("an empty list", () => {
  it("says what a post is and how to begin, and what to do where a search finds nothing", async () => {
    const page = await host.visit("editor", "/posts");
    await page.getByRole("heading", { name: "Write the first post" }).waitFor();
    await page.getByText("It stays a draft").waitFor();
    await page.getByLabel("Search").fill("nothing");
    await press(page, "Search");
    await page.getByText("Nothing matches.").waitFor();
    await page.getByRole("link", { name: "Clear the search" }).click();
    await page.getByRole("heading", { name: "Write the first post" }).waitFor();
    const reader = await host.visit("subscriber", "/posts");
    await reader.getByText("Nothing has been published yet.").waitFor();
    expect(await reader.getByText("Write the first post").count()).toBe(0);
  });
});

describe("dates", () => {
  it("are the site's, and say in which zone they are", async () => {
    const other = await contentHost(browser, { timezone: "Asia/Tokyo" });
    const { id } = await other.request("editor", "POST /posts", TEXT);
    const page = await other.visit("editor", "/posts");
    await page.getByText("Dates are in the site’s time zone, Asia/Tokyo.").waitFor();
    expect(await page.locator("tbody tr").innerText()).toContain("22 Nov 2026, 18:00");
    await page.goto(`${other.origin}/portal/#/posts/${id}`);
    await page.getByText("The site’s time, Asia/Tokyo.").waitFor();
    await page.getByText("22 Nov 2026, 18:00 Asia/Tokyo").first().waitFor();
    expect(await page.getByText("UTC").count()).toBe(0);
    expect(await other.close()).toEqual([]);
  });
});

describe("the preview", () => {
  const frameOf = async (page: Page) => {
    const frame = page.frame({ name: "preview" });
    await frame?.waitForLoadState();
    return frame;
  };

  it("shows what is typed and not saved, as it will be served", async () => {
    const { id } = await host.request("editor", "POST /posts", TEXT);
    const page = await host.visit("editor", `/posts/${id}`);
    const text = page.getByLabel("Content (HTML)");
    await text.fill('Closed on "Monday"\n\n<p style="color:rgb(1, 2, 3)">Open</p>');
    await press(page, "Show the preview");
    const shown = page.frameLocator("iframe[name=preview]");
    await shown.getByText("Closed on “Monday”").waitFor();
    const color = await shown
      .getByText("Open")
      .evaluate(
        (element: unknown) =>
          (globalThis as unknown as { getComputedStyle(given: unknown): { color: string } }).getComputedStyle(
            element,
          ).color,
      );
    expect(color).toBe("rgb(1, 2, 3)");
    await text.fill("Something else");
    await press(page, "Show it as it is now");
    await shown.getByText("Something else").waitFor();
    await page.getByRole("status").getByText("The preview is shown.").waitFor({ state: "attached" });
    expect(await host.request("editor", `GET /posts/${id}`)).toMatchObject({
      content: { raw: TEXT.content },
    });
    expect(await axeFindings(page)).toEqual([]);
  });

  it("runs nothing, whoever writes it", async () => {
    const { id } = await host.request("administrator", "POST /posts", TEXT);
    const page = await host.visit("administrator", `/posts/${id}`);
    const attacks = [
      `<script>top.document.title = "owned"</script>`,
      `<img src=x onerror="top.document.title='owned'">`,
      `<svg onload="top.document.title='owned'"></svg>`,
      `<iframe srcdoc="<script>top.document.title='owned'</script>"></iframe>`,
      `<object data="javascript:top.document.title='owned'"></object>`,
      `<meta http-equiv="refresh" content="0;url=https://evil.example/">`,
      `<base href="https://evil.example/"><img src="pixel.png">`,
      `<form action="https://evil.example/"><button autofocus>Send</button></form>`,
      `<link rel="stylesheet" href="https://evil.example/a.css"><style>@import "https://evil.example/b.css";</style>`,
      `</body></html><script>top.document.title = "owned"</script>`,
      `"><script>top.document.title = "owned"</script>`,
      `<a id="leave" href="javascript:top.document.title='owned'" target="_top">leave</a>`,
      `<a id="away" href="https://evil.example/" target="_top">away</a>`,
    ];
    await page.getByLabel("Content (HTML)").fill(`${attacks.join("\n\n")}\n\n<p>The end</p>`);
    await press(page, "Show the preview");
    const shown = page.frameLocator("iframe[name=preview]");
    await shown.getByText("The end").waitFor();
    await shown.getByText("leave").click();
    await shown.getByText("away").click();
    const frame = await frameOf(page);
    expect(await page.title()).not.toBe("owned");
    expect(page.url()).toContain(`#/posts/${id}`);
    expect(frame?.url()).toBe(`${host.origin}/portal/api/content/posts/${id}/preview`);
    expect(page.context().pages()).toHaveLength(1);
    host.forgive(/Unsafe attempt to initiate navigation for frame .* is sandboxed/);
    expect(await shown.locator("script, iframe, object, form, link, meta[http-equiv], svg").count()).toBe(0);
  });

  it("has a policy that stops what a host's own rendering lets through", async () => {
    const { id } = await host.request("editor", "POST /posts", TEXT);
    const page = await host.visit("editor", `/posts/${id}`);
    const policies: string[] = [];
    await page.route(`**/portal/api/content/posts/${id}/preview`, async (route) => {
      const given = await route.fetch();
      policies.push(given.headers()["content-security-policy"] ?? "");
      await route.fulfill({
        response: given,
        body: `<p>Here</p><script>document.title = "owned"; parent.postMessage("owned", "*")</script>`,
      });
    });
    await page.evaluate("addEventListener('message', () => { document.title = 'owned'; })");
    await press(page, "Show the preview");
    await page.frameLocator("iframe[name=preview]").getByText("Here").waitFor();
    expect(policies).toEqual([expect.stringMatching(/^sandbox; default-src 'none'/)]);
    expect(await (await frameOf(page))?.title()).not.toBe("owned");
    expect(await page.title()).not.toBe("owned");
    host.forgive(/Blocked script execution|policy: script-src/);
  });
});

describe("the host's editor", () => {
  it("is linked where it can open the record, and only there", async () => {
    const asked: unknown[] = [];
    const other = await contentHost(browser, {
      editUrl: (record) => {
        asked.push(record);
        return record.type === "post" ? `https://edit.example.org/?post=${record.id}` : "javascript:alert(1)";
      },
    });
    const post = await other.request("editor", "POST /posts", TEXT);
    const page = await other.request("editor", "POST /pages", TEXT);
    const visitor = await other.visit("editor", "/posts");
    await visitor.getByRole("link", { name: "Opening hours" }).waitFor();
    expect(asked).toEqual([]);
    await visitor.goto(`${other.origin}/portal/#/posts/${post.id}`);
    const link = visitor.getByRole("link", { name: "Edit in the block editor" });
    expect(await link.getAttribute("href")).toBe(`https://edit.example.org/?post=${post.id}`);
    expect(asked).toEqual([
      { id: post.id, type: "post", slug: "opening-hours", status: "publish", title: "Opening hours" },
    ]);
    await visitor.goto(`${other.origin}/portal/#/pages/${page.id}`);
    await visitor.getByLabel("Title").waitFor();
    await expect.poll(() => asked.length).toBe(2);
    await visitor.waitForLoadState("networkidle");
    expect(await link.count()).toBe(0);
    const reader = await other.visit("subscriber", `/posts/${post.id}`);
    await reader.waitForLoadState("networkidle");
    expect(await reader.getByRole("link", { name: "Edit in the block editor" }).count()).toBe(0);
    expect(asked).toHaveLength(2);
    expect(await other.close()).toEqual([]);
  });
});
