/** The list of a collection: search, status, pages; for media the upload too. */

import type { ContentAnswerJson, MeJson, RecordJson } from "../../content-shapes.js";
import { h } from "../dom.js";
import type { View } from "../view.js";
import { getAuthor, getPicture, getTitle, type Kind, moment, STATUS_WORDS, statusWord } from "./kinds.js";
import { uploadPanel } from "./uploads.js";

const PER_PAGE = 20;
const FIELDS = "id,title,status,date,modified,mime_type,media_details,_links,_embedded";

/** Search and filter are part of the address, so that going back restores them. */
const asked = (): URLSearchParams => new URLSearchParams(location.hash.split("?")[1]);

const addressOf = ({ name }: Kind, query: Readonly<Record<string, string>>): string => {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  return `/${name}${given.length === 0 ? "" : `?${new URLSearchParams(given)}`}`;
};

export const listView = (kind: Kind): View => ({
  path: `/${kind.name}`,
  title: kind.many,
  part: "content",
  label: kind.many,
  async render(root, _params, page) {
    const { api, go } = page;
    const { body: me } = await api.get<ContentAnswerJson<MeJson>>("content/users/me", {
      context: "edit",
      _fields: "id,capabilities",
    });
    const isWriter = me.capabilities[kind.capability] === true;
    const query = asked();
    const [search = "", status = ""] = ["search", "status"].map((name) => query.get(name) ?? "");
    const number = Number(query.get("page") ?? 1);
    const found = h("div");

    const load = async (): Promise<void> => {
      const { body, total } = await api.get<ContentAnswerJson<readonly RecordJson[]>>(
        `content/${kind.name}`,
        {
          search,
          status: kind.hasTrash && isWriter ? status || "any" : undefined,
          page: number,
          per_page: PER_PAGE,
          orderby: search === "" ? "modified" : "relevance",
          _embed: "author",
          _fields: FIELDS,
        },
      );
      found.replaceChildren(
        h("p", { class: "quiet" }, countWords(kind, total ?? body.length, { search, isWriter })),
        ...(body.length === 0 ? [] : [table(kind, body, api.url)]),
        ...pages(kind, { search, status }, number, Math.ceil((total ?? 0) / PER_PAGE)),
      );
    };

    const searchInput = h("input", { type: "search", id: "search", name: "search" });
    searchInput.value = search;
    const statusInput = h(
      "select",
      { id: "status", name: "status" },
      h("option", { value: "" }, "All but the trash"),
      Object.entries(STATUS_WORDS).map(([value, word]) => h("option", { value }, word)),
    );
    statusInput.value = status;
    const submit = (event: Event): void => {
      event.preventDefault();
      go(addressOf(kind, { search: searchInput.value.trim(), status: statusInput.value }));
    };
    root.append(
      ...(isWriter && kind.hasTrash
        ? [h("p", {}, h("a", { href: `#/${kind.name}/new` }, `New ${kind.one}`))]
        : []),
      ...(isWriter && !kind.hasTrash ? [uploadPanel(page, load)] : []),
      h(
        "form",
        { role: "search", class: "row", onsubmit: submit },
        h("div", { class: "field" }, h("label", { for: "search" }, "Search"), searchInput),
        isWriter &&
          kind.hasTrash &&
          h("div", { class: "field" }, h("label", { for: "status" }, "Status"), statusInput),
        h("button", {}, "Search"),
      ),
      found,
    );
    await load();
  },
});

function countWords(
  { many, one, hasTrash }: Kind,
  total: number,
  { search, isWriter }: { readonly search: string; readonly isWriter: boolean },
): string {
  const what = total === 1 ? one : hasTrash ? many.toLowerCase() : "files";
  const where = search === "" ? "" : ` with “${search}”`;
  return `${total} ${what}${where}${isWriter ? "" : ". You see what is published"}.`;
}

function table(kind: Kind, records: readonly RecordJson[], url: (path: string) => string): HTMLElement {
  const heads = kind.hasTrash
    ? ["Title", "Status", "Author", "Date", "Changed"]
    : ["Title", "", "Kind", "Author", "Date"];
  const row = (record: RecordJson): HTMLElement => {
    const link = h("a", { href: `#/${kind.name}/${record.id}` }, getTitle(record));
    const title = h("th", { scope: "row", class: "address" }, link);
    const author = h("td", {}, getAuthor(record));
    const date = h("td", {}, moment(record.date));
    if (kind.hasTrash) {
      const status = h("td", {}, h("span", { class: `badge ${record.status}` }, statusWord(record.status)));
      return h("tr", {}, title, status, author, date, h("td", {}, moment(record.modified)));
    }
    const picture = getPicture(record, "thumbnail");
    const image = picture && h("img", { src: url(picture), alt: "", loading: "lazy", class: "thumbnail" });
    return h("tr", {}, title, h("td", {}, image), h("td", {}, record.mime_type ?? ""), author, date);
  };
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      {},
      h("caption", { class: "unseen" }, kind.many),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => (head === "" ? h("td") : h("th", { scope: "col" }, head))),
        ),
      ),
      h("tbody", {}, records.map(row)),
    ),
  );
}

function pages(
  kind: Kind,
  query: { readonly search: string; readonly status: string },
  number: number,
  last: number,
): readonly HTMLElement[] {
  if (last <= 1) return [];
  const link = (to: number, word: string): HTMLElement | false =>
    to >= 1 && to <= last && h("a", { href: `#${addressOf(kind, { ...query, page: String(to) })}` }, word);
  return [
    h(
      "nav",
      { "aria-label": "Pages of the list", class: "row" },
      link(number - 1, "Previous"),
      h("span", {}, `Page ${number} of ${last}`),
      link(number + 1, "Next"),
    ),
  ];
}
