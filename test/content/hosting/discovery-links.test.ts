import { Parser } from "htmlparser2";
import { expect, it } from "vitest";
import { discoveryLinks } from "../../../src/content/hosting/discovery-links.js";

const ROOT = "https://www.example.org/wp-json";

const linksIn = (html: string): Record<string, string>[] => {
  const found: Record<string, string>[] = [];
  const parser = new Parser({ onopentag: (name, attributes) => void found.push({ name, ...attributes }) });
  parser.end(html);
  return found;
};

it("leads from any page to the interface", () => {
  for (const root of [ROOT, `${ROOT}/`])
    expect(discoveryLinks({ root })).toEqual({
      header: '<https://www.example.org/wp-json/>; rel="https://api.w.org/"',
      html: '<link rel="https://api.w.org/" href="https://www.example.org/wp-json/">',
    });
});

it("leads from the page of a post to the post and to its two oEmbed forms", () => {
  const link = "https://www.example.org/dutch-&-english/?a=1&b=2";
  const { header, html } = discoveryLinks({ root: ROOT, post: { link, self: `${ROOT}/wp/v2/posts/3` } });
  expect(header).toBe(
    `<${ROOT}/>; rel="https://api.w.org/", <${ROOT}/wp/v2/posts/3>; rel="alternate"; title="JSON"; type="application/json"`,
  );
  const embed = `${ROOT}/oembed/1.0/embed?url=${encodeURIComponent(link)}`;
  expect(linksIn(html).slice(1)).toEqual([
    {
      name: "link",
      rel: "alternate",
      title: "JSON",
      type: "application/json",
      href: `${ROOT}/wp/v2/posts/3`,
    },
    { name: "link", rel: "alternate", title: "oEmbed (JSON)", type: "application/json+oembed", href: embed },
    {
      name: "link",
      rel: "alternate",
      title: "oEmbed (XML)",
      type: "text/xml+oembed",
      href: `${embed}&format=xml`,
    },
  ]);
});

it("lets no character of a URL end the header or the element", () => {
  const hostile = 'https://www.example.org/a>; rel="x"\r\nSet-Cookie: a=b"><script>/?b=">&c=<';
  const { header, html } = discoveryLinks({ root: ROOT, post: { link: hostile, self: hostile } });
  expect(header.match(/[<>]/g)).toHaveLength(4);
  expect(header).not.toMatch(/[\r\n]/);
  expect(linksIn(html).map(({ name }) => name)).toEqual(["link", "link", "link", "link"]);
});

it.each([
  [{ root: "/wp-json" }, "root"],
  [{ root: "javascript:alert(1)" }, "root"],
  [{ root: 5 as unknown as string }, "root"],
  [{ root: ROOT, post: { link: "/a", self: ROOT } }, "post.link"],
  [{ root: ROOT, post: { link: ROOT, self: "" } }, "post.self"],
])("refuses a URL that is not absolute: %j", (options, field) => {
  expect(() => discoveryLinks(options)).toThrow(expect.objectContaining({ code: "invalid_argument", field }));
});
