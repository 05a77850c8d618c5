/** The revisions of a post or page: compare two of them, and restore one. */

import type { ContentAnswerJson, RecordJson, RevisionJson } from "../../content-shapes.js";
import { h } from "../dom.js";
import { button, confirmed } from "../forms.js";
import type { View } from "../view.js";
import { comparison } from "./compare.js";
import { getAuthor, getTitle, type Kind } from "./kinds.js";
import { ifUnchanged, isConflict } from "./unchanged.js";

const TEXTS = [
  ["title", "Title"],
  ["content", "Content"],
  ["excerpt", "Excerpt"],
] as const;

type Texts = Pick<RevisionJson, "title" | "content" | "excerpt">;
type Present = Texts & Pick<RecordJson, "modified_gmt">;

const NOW = "now";

export const revisionsView = (kind: Kind): View => ({
  path: `/${kind.name}/:id/revisions`,
  title: "Revisions",
  part: "content",
  async render(root, { id = "" }, page) {
    const { api } = page;
    const path = `content/${kind.name}/${id}`;
    const [{ body: record, allow }, { body: revisions }] = await Promise.all([
      api.get<ContentAnswerJson<RecordJson>>(path, { context: "edit" }),
      api.get<ContentAnswerJson<readonly RevisionJson[]>>(`${path}/revisions`, {
        context: "edit",
        _embed: "author",
        _fields: "id,date,_links,_embedded",
      }),
    ]);
    page.title(`Revisions of “${getTitle(record)}”`);
    root.append(h("p", {}, h("a", { href: `#/${kind.name}/${id}` }, `Back to the ${kind.one}`)));
    if (revisions.length === 0) {
      root.append(h("p", {}, "There are no revisions: it was not changed since it was made."));
      return;
    }

    const names = new Map([
      ...revisions.map((revision) => [String(revision.id), nameOf(revision)] as const),
      [NOW, "The present state"],
    ]);
    const choice = (key: string, label: string, value: string): HTMLSelectElement => {
      const select = h(
        "select",
        { id: key, onchange: () => compare().catch(page.fail) },
        [...names].map(([option, name]) => h("option", { value: option }, name)),
      );
      select.value = value;
      choices.append(h("div", { class: "field" }, h("label", { for: key }, label), select));
      return select;
    };
    const choices = h("div", { class: "row" });
    // The newest revision is the present state, unless it was never written again.
    const left = choice("left", "Left", String((revisions[1] ?? revisions[0])?.id));
    const right = choice("right", "Right", NOW);
    const shown = h("div", { "aria-live": "polite" });
    const restore = button("Restore the left one", page, () => restoreLeft());
    root.append(choices, shown, ...(allow.includes("POST") && record.status !== "trash" ? [restore] : []));

    const read = async <T>(url: string, fields: string): Promise<T> =>
      (await api.get<ContentAnswerJson<T>>(url, { context: "edit", _fields: fields })).body;
    /** The present state as the visitor has seen it last: what is newer is not replaced unseen. */
    let seen: Pick<RecordJson, "modified_gmt"> = record;
    const textsOf = async (choice: string): Promise<Texts> => {
      if (choice !== NOW) return read<Texts>(`${path}/revisions/${choice}`, "title,content,excerpt");
      const present = await read<Present>(path, "title,content,excerpt,modified_gmt");
      seen = present;
      return present;
    };

    let latest = 0;
    const compare = async (): Promise<void> => {
      latest += 1;
      const own = latest;
      restore.hidden = left.value === NOW;
      const [older, newer] = await Promise.all([textsOf(left.value), textsOf(right.value)]);
      if (own !== latest) return;
      const [leftName, rightName] = [left, right].map(({ value }) => names.get(value) ?? "");
      const tables = TEXTS.flatMap(
        ([name, label]) =>
          comparison(
            label,
            { label: leftName as string, text: older[name].raw ?? "" },
            { label: rightName as string, text: newer[name].raw ?? "" },
          ) ?? [],
      );
      shown.replaceChildren(...(tables.length === 0 ? [h("p", {}, "Both say the same.")] : tables));
    };

    const restoreLeft = async (): Promise<void> => {
      const name = names.get(left.value);
      const explanation = "What it is now stays among the revisions.";
      if (!(await confirmed(`Make the state of ${name} the present one?`, explanation, "Restore"))) return;
      try {
        await api.send("POST", `${path}/revisions/${left.value}/restore`, {}, ifUnchanged(seen));
        page.say(`It is again as it was at ${name}.`);
        page.go(`/${kind.name}/${id}`);
      } catch (error) {
        if (!isConflict(error)) throw error;
        right.value = NOW;
        await compare();
        page.say(
          "Somebody else has changed this meanwhile: on the right is how it is now. Nothing was restored.",
          "failed",
        );
      }
    };
    await compare();
  },
});

function nameOf(revision: RevisionJson): string {
  const author = getAuthor(revision);
  return `${revision.date.replace("T", " ")}${author === "" ? "" : `, ${author}`}`;
}
