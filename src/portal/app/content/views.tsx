/** The views of content in the order of the navigation. If two paths match, the first one wins. */

import { useState } from "preact/hooks";
import type { ContentAnswerJson, RecordJson } from "../../content-shapes.js";
import { Form } from "../components/form.js";
import { FileText, Image, Newspaper } from "../components/icons.js";
import { Heading } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import type { View } from "../view.js";
import { useDraft, useEarlierDraft } from "./drafts.js";
import { type Kind, kinds } from "./kinds.js";
import { RecordList } from "./list.js";
import { RecordView } from "./record.js";
import { type FieldTexts, RecordFieldInput } from "./record-fields.js";
import { RevisionsView } from "./revisions.js";

/** Posts and pages are written here, and have revisions. Files are uploaded in their list. */
const viewsOfWritten = (kind: Kind): readonly View[] => [
  { path: `/${kind.name}/new`, part: "content", component: () => <NewRecord kind={kind} /> },
  {
    path: `/${kind.name}/:id/revisions`,
    part: "content",
    component: ({ params: { id = "" } }) => <RevisionsView kind={kind} id={id} />,
  },
];

const ICONS = { posts: Newspaper, pages: FileText, media: Image } as const;

export const contentViews: readonly View[] = kinds.flatMap((kind) => [
  {
    path: `/${kind.name}`,
    part: "content",
    label: kind.many,
    icon: ICONS[kind.name],
    searchPath: (text: string) => `/${kind.name}?${new URLSearchParams({ search: text })}`,
    component: ({ query }) => <RecordList kind={kind} query={query} />,
  },
  ...(kind.hasTrash ? viewsOfWritten(kind) : []),
  {
    path: `/${kind.name}/:id`,
    part: "content",
    component: ({ params: { id = "" } }) => <RecordView kind={kind} id={id} />,
  },
]);

const NAMES = ["title", "content", "excerpt"] as const;

function NewRecord({ kind }: { readonly kind: Kind }) {
  const { api, say, go } = usePage();
  const left = useLeaveSignal();
  const path = `content/${kind.name}`;
  const [typed, setTyped] = useState<FieldTexts>(useEarlierDraft(path)?.typed ?? {});
  useDraft(path, Object.values(typed).some((text) => text !== "") ? { typed } : undefined);
  const act = async (): Promise<void> => {
    const { body } = await api.within(left).send<ContentAnswerJson<RecordJson>>("POST", path, typed);
    setTyped({});
    say("Saved as a draft.");
    go(`/${kind.name}/${body.id}`);
  };
  const title = `New ${kind.one}`;
  return (
    <>
      <Heading title={title} />
      <Form label={title} submit="Save as draft" act={act}>
        {NAMES.map((name) => (
          <RecordFieldInput
            key={name}
            name={name}
            value={typed[name] ?? ""}
            onChange={(text) => setTyped((before) => ({ ...before, [name]: text }))}
          />
        ))}
      </Form>
    </>
  );
}
