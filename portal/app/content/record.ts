/** One post, page or media item: to read, write, publish, trash, restore and delete. */

import type { ContentAnswerJson, RecordJson } from "../../content-shapes.js";
import { ApiError } from "../api.js";
import { type Child, h } from "../dom.js";
import { button, confirmed, type FormField, facts, field, form } from "../forms.js";
import type { PageContext, View } from "../view.js";
import { comparison } from "./compare.js";
import {
  type FieldName,
  getAuthor,
  getPicture,
  getText,
  getTitle,
  type Kind,
  moment,
  statusWord,
} from "./kinds.js";
import { ifUnchanged, isConflict } from "./unchanged.js";

type Input = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

type Entry = FormField & { readonly input: Input };

type Values = { [name in FieldName]?: string };

const LABELS: Readonly<Record<FieldName, string>> = {
  title: "Title",
  content: "Content",
  excerpt: "Excerpt",
  status: "Status",
  date: "Date",
  slug: "Slug",
  alt_text: "Alternative text",
  caption: "Caption",
  description: "Description",
};

const HINTS: { readonly [name in FieldName]?: string } = {
  date: "The site’s time. What is published with a date to come waits for it.",
  slug: "The last part of the address. Empty: made from the title.",
  alt_text: "What somebody is told who does not see the picture.",
};

const ROWS: { readonly [name in FieldName]?: number } = {
  content: 18,
  excerpt: 3,
  caption: 3,
  description: 5,
};

/** What was typed and not saved when a record was left, to go on from; with the state that it was typed over. */
const unsaved = new Map<string, { readonly record: RecordJson; readonly values: Values }>();

/** The same of one that is not made yet, by its collection. */
const begun = new Map<string, Values>();

interface Open {
  readonly record: RecordJson;
  readonly mayEdit: boolean;
  readonly mayDelete: boolean;
}

/** As the visitor may edit it; else as he may read it. */
async function open({ api }: PageContext, { name }: Kind, id: string): Promise<Open> {
  const read = (context: string): Promise<ContentAnswerJson<RecordJson>> =>
    api.get(`content/${name}/${id}`, { context, _embed: "author" });
  try {
    const { body, allow } = await read("edit");
    return { record: body, mayEdit: allow.includes("POST"), mayDelete: allow.includes("DELETE") };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 403)) throw error;
    return { record: (await read("view")).body, mayEdit: false, mayDelete: false };
  }
}

function textIn(record: RecordJson, name: FieldName): string {
  const value = record[name] ?? "";
  return typeof value === "string" ? value : (value.raw ?? "");
}

/** A date needs its seconds, which the input leaves out where there are none; without one, the record is dated anew. */
function asSent({ date, ...values }: Values): object {
  if (date === undefined) return values;
  return { ...values, date: date === "" ? null : date.length === 16 ? `${date}:00` : date };
}

/** Says an error next to its field, and goes there; false where it is no field's. */
function sayAtField(fields: ReadonlyMap<string, Entry>, error: unknown): boolean {
  const at = error instanceof ApiError && error.field !== undefined ? fields.get(error.field) : undefined;
  if (at === undefined) return false;
  at.problem((error as ApiError).message);
  at.focus();
  return true;
}

function outcomeOf({ status, date }: RecordJson): string {
  if (status === "inherit") return "Saved.";
  return `Saved. ${statusWord(status)}${status === "future" ? ` for ${moment(date)}` : ""}.`;
}

export const newView = (kind: Kind): View => ({
  path: `/${kind.name}/new`,
  title: `New ${kind.one}`,
  part: "content",
  async render(root, _params, page) {
    const names = (["title", "content", "excerpt"] as const).filter((name) => kind.fields.includes(name));
    const fields = Object.fromEntries(names.map((name) => [name, fieldFor(name, undefined)]));
    const entries = Object.entries(fields);
    for (const [name, { input }] of entries) input.value = begun.get(kind.name)?.[name as FieldName] ?? "";
    const values = (): Values => Object.fromEntries(entries.map(([name, { input }]) => [name, input.value]));
    const isBegun = (): boolean => Object.values(values()).some((value) => value !== "");
    const { signal } = page;
    const warn = (event: Event): void => {
      if (isBegun()) event.preventDefault();
    };
    addEventListener("beforeunload", warn, { signal });
    signal.addEventListener("abort", () => begun.set(kind.name, values()));
    const act = async (): Promise<void> => {
      const { body } = await page.api.send<ContentAnswerJson<RecordJson>>(
        "POST",
        `content/${kind.name}`,
        values(),
      );
      for (const [, { input }] of entries) input.value = "";
      page.say("Saved as a draft.");
      page.go(`/${kind.name}/${body.id}`);
    };
    const content = entries.map(([, { element }]) => element);
    root.append(form(page, { fields, content, submit: "Save as a draft", act }));
    if (isBegun()) page.say("What you had not saved is still here.");
  },
});

export const recordView = (kind: Kind): View => ({
  path: `/${kind.name}/:id`,
  title: kind.one,
  part: "content",
  async render(root, { id = "" }, page) {
    const path = `content/${kind.name}/${id}`;
    const key = `${kind.name}/${id}`;
    /** Ends what belongs to the form that is shown. */
    let shown = new AbortController();
    /** As it was last read or written here. */
    let record: RecordJson;
    const about = h("div");

    const reload = (): Promise<Open> => open(page, kind, id);

    /** What is typed into the form is not wanted any more. */
    const discard = (): void => {
      shown.abort();
      unsaved.delete(key);
    };

    /** The button that was pressed is gone. */
    const focusForm = (): void => root.querySelector<HTMLElement>("form input")?.focus();

    const know = (newest: RecordJson): void => {
      record = newest;
      page.title(getTitle(record));
      about.replaceChildren(h("div", {}, aboutOf(kind, record, page)));
    };

    const show = (current: Open, typed: Values = {}): void => {
      const { mayEdit, mayDelete } = current;
      discard();
      shown = new AbortController();
      know(current.record);
      const isTrashed = record.status === "trash";
      root.replaceChildren(
        about,
        mayEdit && !isTrashed ? editor(typed) : readOnly(kind, record),
        ...(mayEdit && isTrashed ? [button("Restore as a draft", page, restore)] : []),
        ...(mayDelete ? [removal()] : []),
      );
    };

    function editor(typed: Values): HTMLElement {
      const fields = new Map(kind.fields.map((name) => [name, fieldFor(name, record)]));
      const base: Values = {};
      const each = (act: (name: FieldName, entry: Entry) => void): void => {
        for (const [name, one] of fields) act(name, one);
      };
      each((name, { input }) => {
        input.value = textIn(record, name);
        // As the input writes it: a date without its seconds.
        base[name] = input.value;
        input.value = typed[name] ?? input.value;
      });
      const changes = (): Values =>
        Object.fromEntries(
          [...fields].flatMap(([name, { input }]) =>
            input.value === base[name] ? [] : [[name, input.value]],
          ),
        );

      const keep = (): void => {
        const values = changes();
        if (Object.keys(values).length > 0) unsaved.set(key, { record, values });
        else unsaved.delete(key);
      };
      const own = shown;
      const { signal } = own;
      const leave = (): void => {
        keep();
        own.abort();
      };
      page.signal.addEventListener("abort", leave, { signal });
      const warn = (event: Event): void => {
        if (Object.keys(changes()).length > 0) event.preventDefault();
      };
      addEventListener("beforeunload", warn, { signal });

      let isBusy = false;
      const save = async (also: Values = {}): Promise<void> => {
        const values = { ...changes(), ...also };
        if (isBusy) return;
        if (Object.keys(values).length === 0) return page.say("There is nothing to save.");
        isBusy = true;
        const before: Values = {};
        each((name, { input, problem }) => {
          before[name] = input.value;
          problem("");
        });
        try {
          const { body } = await page.api.send<ContentAnswerJson<RecordJson>>(
            "POST",
            `${path}?_embed=author`,
            asSent(values),
            ifUnchanged(record),
          );
          each((name, { input }) => {
            const now = input.value;
            input.value = textIn(body, name);
            base[name] = input.value;
            // Somebody may type on while it is saved.
            if (now !== before[name]) input.value = now;
          });
          know(body);
          publish.hidden = !isPublishable(body);
          conflict.replaceChildren();
          page.say(outcomeOf(body));
        } catch (error) {
          if (isConflict(error)) await showConflict(values).catch(page.fail);
          else if (!sayAtField(fields as ReadonlyMap<string, Entry>, error)) page.fail(error);
        } finally {
          isBusy = false;
        }
      };

      const showConflict = async (mine: Values): Promise<void> => {
        const theirs = await reload();
        const take = (): void => {
          show(theirs);
          focusForm();
        };
        const heading = h("h2", { tabindex: -1 }, "Somebody else has saved this meanwhile");
        const rows = kind.fields.flatMap((name) => {
          const theirValue = textIn(theirs.record, name);
          const isTheirs = theirValue !== textIn(record, name);
          if (!isTheirs) return [];
          const myValue = mine[name] ?? base[name] ?? "";
          return (
            comparison(
              LABELS[name],
              { label: "Theirs", text: theirValue },
              { label: "Yours", text: myValue },
            ) ?? []
          );
        });
        conflict.replaceChildren(
          h(
            "section",
            { class: "panel" },
            heading,
            h(
              "p",
              {},
              `Nothing of yours was saved. Fields that you have not touched will be theirs in either case.`,
            ),
            rows,
            h(
              "div",
              { class: "row" },
              h(
                "button",
                {
                  type: "button",
                  onclick: () => {
                    show(theirs, mine);
                    focusForm();
                    root.querySelector("form")?.requestSubmit();
                  },
                },
                "Save mine over it",
              ),
              h("button", { type: "button", class: "plain", onclick: take }, "Take theirs"),
            ),
          ),
        );
        heading.focus();
      };

      const conflict = h("div");
      const isPublishable = (of: RecordJson): boolean =>
        mayPublish(of) && ["draft", "pending"].includes(of.status);
      const publish = h(
        "button",
        { type: "button", class: "plain", onclick: () => save({ status: "publish" }) },
        "Publish",
      );
      publish.hidden = !isPublishable(record);
      const submit = (event: Event): void => {
        event.preventDefault();
        void save();
      };
      return h(
        "form",
        { onsubmit: submit, "aria-label": getTitle(record) },
        conflict,
        [...fields.values()].map(({ element }) => element),
        h("div", { class: "row" }, h("button", {}, "Save"), publish),
      );
    }

    /** Does something to the record as it is shown; says so where it is another one by now. */
    async function act(method: "POST" | "DELETE", query: string, body: object): Promise<boolean> {
      try {
        await page.api.send(method, `${path}${query}`, body, ifUnchanged(record));
        return true;
      } catch (error) {
        if (!isConflict(error)) page.fail(error);
        else {
          show(await reload());
          page.say(
            "Somebody else has changed this meanwhile: this is how it is now. Nothing was done.",
            "failed",
          );
        }
        return false;
      }
    }

    async function restore(): Promise<void> {
      if (!(await act("POST", "", { status: "draft" }))) return;
      show(await reload());
      focusForm();
      page.say("Restored as a draft.");
    }

    async function trash(): Promise<void> {
      const title = getTitle(record);
      if (!(await act("DELETE", "", {}))) return;
      discard();
      page.say(`“${title}” is in the trash.`);
      page.go(`/${kind.name}`);
    }

    async function remove(): Promise<void> {
      const title = getTitle(record);
      if (!(await confirmed(`Delete “${title}”?`, "It cannot be brought back.", "Delete for good"))) return;
      if (!(await act("DELETE", "?force=true", {}))) return;
      discard();
      page.say(`“${title}” is deleted.`);
      page.go(`/${kind.name}`);
    }

    function removal(): HTMLElement {
      const isLast = !kind.hasTrash || record.status === "trash";
      const [label, act] = isLast
        ? (["Delete for good", remove] as const)
        : (["Move to the trash", trash] as const);
      return h("p", {}, button(label, page, act, { class: "danger" }));
    }

    const kept = unsaved.get(key);
    const current = await reload();
    if (kept === undefined || !current.mayEdit) return show(current);
    // With the state that it was typed over, so that what somebody else has saved since is noticed.
    show({ ...current, record: kept.record }, kept.values);
    page.say("What you had not saved is still here.");
  },
});

const mayPublish = ({ _links }: RecordJson): boolean => _links?.["wp:action-publish"] !== undefined;

function statusOptions(record: RecordJson): readonly string[] {
  const own = ["draft", "pending", ...(mayPublish(record) ? ["publish", "future", "private"] : [])];
  return own.includes(record.status) ? own : [...own, record.status];
}

function fieldFor(name: FieldName, record: RecordJson | undefined): Entry {
  const rows = ROWS[name];
  const input =
    name === "status" && record
      ? h(
          "select",
          {},
          statusOptions(record).map((value) => h("option", { value }, statusWord(value))),
        )
      : rows === undefined
        ? h("input", name === "date" ? { type: "datetime-local", step: 1 } : { type: "text", class: "wide" })
        : h("textarea", { rows });
  input.name = name;
  return { ...field(LABELS[name], input, HINTS[name]), input };
}

function aboutOf(kind: Kind, record: RecordJson, { api }: PageContext): readonly Child[] {
  const { filesize, width, height } = record.media_details ?? {};
  const picture = getPicture(record, "large");
  const author = getAuthor(record);
  const rows: readonly (readonly [string, Child])[] = [
    ["Status", record.status !== "inherit" && statusWord(record.status)],
    ["Author", author !== "" && author],
    ["Date", moment(record.date)],
    ["Changed", moment(record.modified)],
    ["Kind", record.mime_type],
    ["Size", filesize !== undefined && `${filesize.toLocaleString("en")} bytes`],
    ["Pixels", Boolean(width) && `${width} × ${height}`],
    [
      "Earlier",
      record._links?.["version-history"] !== undefined &&
        h("a", { href: `#/${kind.name}/${record.id}/revisions` }, "Revisions"),
    ],
    [
      "On the site",
      /^https?:/.test(record.link) &&
        record.status !== "trash" &&
        h("a", { href: record.link, rel: "noreferrer" }, record.link),
    ],
  ];
  return [
    picture !== undefined &&
      h("img", {
        src: api.url(picture),
        alt: record.alt_text || "The picture, without an alternative text",
        class: "preview",
      }),
    facts(rows.filter(([, value]) => value)),
  ];
}

/** Without any markup where it is rendered, with it where it is stored. */
function readOnly(kind: Kind, record: RecordJson): HTMLElement {
  const texts = kind.fields.flatMap((name) => {
    const value = record[name];
    if (name === "title" || value === undefined || typeof value === "string") return [];
    const text = getText(value);
    return text === "" ? [] : [h("h2", {}, LABELS[name]), h("pre", {}, text)];
  });
  return h("div", {}, texts);
}
