/** The signing secret: a new one, shown once, code that verifies with it, and its rotation. */

import { snippets } from "virtual:verification-snippets";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { RotatedSecretJson } from "../../shapes.js";
import { useConfirmation } from "../components/button.js";
import { Form, SelectField } from "../components/form.js";
import { Check } from "../components/icons.js";
import { CodeBlock, CopyButton } from "../components/small.js";
import { usePage } from "../page-context.js";
import { formatTime, nameZone } from "../times.js";
import { webhookPath } from "./calls.js";
import { RotationNotice, type TabProps } from "./endpoint-actions.js";

/** Code that verifies a signature, in the language that the visitor chooses. */
export function VerificationSnippet() {
  const [language, setLanguage] = useState(snippets[0]?.language);
  const id = useId();
  const shown = snippets.find((snippet) => snippet.language === language);
  return (
    <div>
      <div class="row">
        <div class="field">
          <label for={id}>Verify signatures in</label>
          <select id={id} value={language} onChange={(event) => setLanguage(event.currentTarget.value)}>
            {snippets.map(({ language: name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </div>
      </div>
      <p class="quiet">
        The program reads the raw body from standard input, the signature header from <code>SIGNATURE</code>,
        and the secrets from <code>WEBHOOK_SECRET</code>: one, or several with spaces between them. Its
        function takes a list of secrets; use it in your handler.
      </p>
      {shown !== undefined && <CodeBlock text={shown.code} label="code" />}
    </div>
  );
}

/** `isFirst`: there is no old secret that must stay for a while. */
export function SecretPanel({ secret, isFirst }: { secret: string; isFirst: boolean }) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <section class="new-secret" aria-label="The new secret">
      <label for={id}>Signing secret</label>
      <div class="copy-row">
        <input
          id={id}
          ref={input}
          class="wide code"
          readOnly
          value={secret}
          spellcheck={false}
          onFocus={(event) => event.currentTarget.select()}
        />
        <CopyButton text={secret} label="secret" />
      </div>
      <p>
        <strong>Copy it now: it is shown only once.</strong>{" "}
        {isFirst
          ? "Store it where your endpoint reads its secrets."
          : "Add it to your endpoint beside the old secret. Do not remove the old one yet."}
      </p>
    </section>
  );
}

const OVERLAPS: [seconds: string, label: string][] = [
  ["86400", "24 hours"],
  ["3600", "1 hour"],
  ["604800", "7 days"],
  ["0", "Not at all: the old secret has leaked"],
];

/** The first step of a rotation: makes a new secret. */
function NewSecretForm({
  webhook,
  reload,
  onMade,
}: TabProps & { onMade: (made: RotatedSecretJson, isPending: boolean) => void }) {
  const { api, say, zone } = usePage();
  const [overlap, setOverlap] = useState("86400");
  const isImmediate = overlap === "0";
  const [ask, question] = useConfirmation();
  const act = async (): Promise<void> => {
    const isConfirmed =
      !isImmediate ||
      (await ask({
        title: "Replace the secret at once?",
        explanation:
          "The old secret signs nothing from then on. Until your endpoint has the new one, it refuses every delivery; they are retried.",
        confirm: "Replace it at once",
      }));
    if (!isConfirmed) return;
    const body = { overlap_seconds: Number(overlap) };
    const made = await api.send<RotatedSecretJson>("POST", `${webhookPath(webhook.id)}/rotate`, body);
    onMade(made, !isImmediate);
    say(
      isImmediate
        ? "There is a new secret, and it signs from now on."
        : `There is a new secret. The old one signs until ${formatTime(made.rotatesAt, zone)} ${nameZone(zone)}.`,
    );
    await reload();
  };
  return (
    <>
      <Form label="Rotate the secret" submit="Rotate the secret" kind="plain" act={act}>
        <SelectField
          label="The old secret continues to sign for"
          names={["overlap_seconds"]}
          value={overlap}
          onChange={setOverlap}
          options={OVERLAPS}
          hint={
            isImmediate
              ? "The new secret signs at once. Until your endpoint has it, it refuses every delivery; they are retried."
              : "The new secret begins to sign after this time. Until then your endpoint must accept both."
          }
        />
      </Form>
      {question}
    </>
  );
}

const StepTitle = ({ isDone, children }: { isDone: boolean; children: string }) => (
  <h3>
    {children}
    {isDone && (
      <span class="badge good">
        <Check /> Done
      </span>
    )}
  </h3>
);

/** The rotation of the secret, in three steps. Its state is that of the service. */
export function Rotation({ webhook, reload }: TabProps) {
  const { zone } = usePage();
  const [made, setMade] = useState<{ secret: string; isPending: boolean }>();
  const { rotatesAt } = webhook.stats;
  const isPending = rotatesAt !== null;
  return (
    <ol class="rotation">
      <li aria-current={isPending ? undefined : "step"}>
        <StepTitle isDone={isPending}>Make a new secret</StepTitle>
        {made !== undefined && <SecretPanel secret={made.secret} isFirst={!made.isPending} />}
        {isPending && (
          <p>
            If you rotate again now, a further secret takes the place of the one that waits, and the old one
            continues to sign.
          </p>
        )}
        <NewSecretForm
          webhook={webhook}
          reload={reload}
          onMade={({ secret }, waits) => setMade({ secret, isPending: waits })}
        />
      </li>
      <li aria-current={isPending ? "step" : undefined}>
        <StepTitle isDone={false}>Let your endpoint accept both</StepTitle>
        <p>
          Give it a list of both secrets, such as <code>[oldSecret, newSecret]</code>. A signature by either
          of them is genuine.
        </p>
        <details open={isPending}>
          <summary>Code that takes two secrets</summary>
          <VerificationSnippet />
        </details>
      </li>
      <li>
        <StepTitle isDone={false}>The new secret signs</StepTitle>
        <p>
          {rotatesAt === null
            ? "It begins by itself after the time that you choose above, or as soon as you say so here. Then remove the old one."
            : `It signs from ${formatTime(rotatesAt, zone)} ${nameZone(zone)}, or now. Then remove the old one.`}
        </p>
        <RotationNotice webhook={webhook} reload={reload} />
      </li>
    </ol>
  );
}
