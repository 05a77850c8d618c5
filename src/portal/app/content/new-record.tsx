/** A new post or page, which is saved as a draft. */

import { useState } from "preact/hooks";
import type { ContentAnswerJson, RecordJson } from "../../content-shapes.js";
import { Form } from "../components/form.js";
import { Heading } from "../components/heading.js";
import { usePage } from "../page-context.js";
import { useLeaveSignal } from "../use-leave-signal.js";
import { useDraft, useEarlierDraft } from "./drafts.js";
import type { Kind } from "./kinds.js";
import { type FieldTexts, RecordFieldInput } from "./record-fields.js";

const NAMES = ["title", "content", "excerpt"] as const;

export function NewRecord({ kind }: { readonly kind: Kind }) {
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
