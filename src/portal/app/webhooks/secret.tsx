/** The signing secret: a new one, shown once, code that verifies with it, and its rotation. */

import { snippets } from "virtual:verification-snippets";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { RotatedSecretJson } from "../../shapes.js";
import { useConfirmation } from "../components/button.js";
import { Form, SelectField } from "../components/form.js";
import { Check } from "../components/icons.js";
import { CodeBlock, CopyButton } from "../components/small.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
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
          <label for={id}>{texts.secret.verifyIn}</label>
          <select id={id} value={language} onChange={(event) => setLanguage(event.currentTarget.value)}>
            {snippets.map(({ language: name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </div>
      </div>
      <p class="quiet">
        {texts.secret.program({ signature: <code>SIGNATURE</code>, secret: <code>WEBHOOK_SECRET</code> })}
      </p>
      {shown !== undefined && <CodeBlock text={shown.code} label={texts.secret.code} />}
    </div>
  );
}

/** `isFirst`: there is no old secret that must stay for a while. */
export function SecretPanel({ secret, isFirst }: { secret: string; isFirst: boolean }) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <section class="new-secret" aria-label={texts.secret.newSecret}>
      <label for={id}>{texts.secret.label}</label>
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
        <CopyButton text={secret} label={texts.secret.copyLabel} />
      </div>
      <p>
        <strong>{texts.secret.copyNow}</strong> {isFirst ? texts.secret.store : texts.secret.addBeside}
      </p>
    </section>
  );
}

/** How long the old secret continues to sign, in seconds. */
const OVERLAPS = ["86400", "3600", "604800", "0"] as const;

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
        title: texts.secret.replaceTitle,
        explanation: texts.secret.replaceExplanation,
        confirm: texts.secret.replace,
      }));
    if (!isConfirmed) return;
    const body = { overlap_seconds: Number(overlap) };
    const made = await api.send<RotatedSecretJson>("POST", `${webhookPath(webhook.id)}/rotate`, body);
    onMade(made, !isImmediate);
    say(
      isImmediate
        ? texts.secret.madeAtOnce
        : texts.secret.made({ time: formatTime(made.rotatesAt, zone), zone: nameZone(zone) }),
    );
    await reload();
  };
  return (
    <>
      <Form label={texts.secret.rotate} submit={texts.secret.rotate} kind="plain" act={act}>
        <SelectField
          label={texts.secret.oldContinues}
          names={["overlap_seconds"]}
          value={overlap}
          onChange={setOverlap}
          options={OVERLAPS.map((seconds) => [seconds, texts.secret.overlaps[seconds]] as const)}
          hint={isImmediate ? texts.secret.atOnce : texts.secret.beginsLater}
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
        <Check /> {texts.secret.done}
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
        <StepTitle isDone={isPending}>{texts.secret.makeNew}</StepTitle>
        {made !== undefined && <SecretPanel secret={made.secret} isFirst={!made.isPending} />}
        {isPending && <p>{texts.secret.rotateAgain}</p>}
        <NewSecretForm
          webhook={webhook}
          reload={reload}
          onMade={({ secret }, waits) => setMade({ secret, isPending: waits })}
        />
      </li>
      <li aria-current={isPending ? "step" : undefined}>
        <StepTitle isDone={false}>{texts.secret.acceptBoth}</StepTitle>
        <p>{texts.secret.acceptBothText({ code: <code>[oldSecret, newSecret]</code> })}</p>
        <details open={isPending}>
          <summary>{texts.secret.codeForTwo}</summary>
          <VerificationSnippet />
        </details>
      </li>
      <li>
        <StepTitle isDone={false}>{texts.secret.newSigns}</StepTitle>
        <p>
          {rotatesAt === null
            ? texts.secret.begins
            : texts.secret.signsFrom({ time: formatTime(rotatesAt, zone), zone: nameZone(zone) })}
        </p>
        <RotationNotice webhook={webhook} reload={reload} />
      </li>
    </ol>
  );
}
