/** Diagnoses a webhook: examines its endpoint, and explains why it did or did not get an event. */

import type { ComponentChild } from "preact";
import { useState } from "preact/hooks";
import type {
  DeliveryJson,
  ExaminationCheckJson,
  ExaminationJson,
  ExplanationJson,
  WebhookWithStatsJson,
} from "../../shapes.js";
import type { Api } from "../api.js";
import { ActionButton, useConfirmation } from "../components/button.js";
import { FieldError, Form, TextField } from "../components/form.js";
import { Check, CircleAlert, X } from "../components/icons.js";
import { Badge, ErrorMessage, Loading } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatDuration, formatRelativeTime, formatTime } from "../times.js";
import type { Tone } from "../tone.js";
import { useResource } from "../use-resource.js";
import { deliveryLink, deliveryPath, readPage, webhookPath } from "./calls.js";
import type { TabProps } from "./endpoint-actions.js";
import { describeAttempt } from "./wording.js";

const RESULTS: Record<ExaminationCheckJson["result"], [tone: Tone, icon: typeof Check]> = {
  passed: ["good", Check],
  failed: ["bad", X],
  skipped: ["neutral", CircleAlert],
};

const RECEIVER = "createReceiver({ secrets, onEvent })";
const ON_EVENT = "createReceiver({ onEvent: async (event) => queue.add(event) })";

type CheckName = ExaminationCheckJson["name"];

/** The code of a receiver that passes a check. */
const CODES: Record<CheckName, string> = {
  signed: RECEIVER,
  prompt: ON_EVENT,
  wrong_signature: RECEIVER,
  changed_body: RECEIVER,
  unsigned: RECEIVER,
  old_signature: "createReceiver({ toleranceMs: 300_000 })",
  duplicate: "createReceiver({ storage: pgReceived({ pool }) })",
  unknown_type: ON_EVENT,
  slow_body: RECEIVER,
  large_body: "createReceiver({ limits: { requestBytes: 1_048_576 } })",
};

/** The checks that the endpoint must refuse. */
const REFUSED = ["wrong_signature", "changed_body", "unsigned", "old_signature"];

/** `HTTP 204 in 12 ms` */
function describeResponse({ status, code, durationMs }: ExaminationCheckJson): string {
  const words = texts.diagnosis;
  if (durationMs === null) return words.notChecked;
  const duration = formatDuration(durationMs);
  return status === null
    ? words.unanswered({ duration, code: code ?? "" })
    : words.answered({ status: String(status), duration });
}

/** Says what to do about a check, or about its problem. */
const describeAdvice = (step: ExaminationCheckJson["advice"][number]): ComponentChild =>
  step in CODES
    ? texts.diagnosis.fixes[step as CheckName]({ code: <code key="code">{CODES[step as CheckName]}</code> })
    : texts.diagnosis.hints[step as Exclude<typeof step, CheckName>];

function CheckRow({ check }: { check: ExaminationCheckJson }) {
  const { name, result, problem, advice } = check;
  const words = texts.diagnosis;
  const [tone, Icon] = RESULTS[result];
  return (
    <li>
      <Badge tone={tone}>
        <Icon aria-hidden="true" /> {words[result]}
      </Badge>
      <div>
        <h4>{words.titles[name]}</h4>
        <p class="quiet">{describeResponse(check)}</p>
        {problem !== null && (
          <p>
            {name !== "prompt" &&
              `${words.shouldAnswer({ expected: REFUSED.includes(name) ? words.refuse : words.accept })} `}
            {advice.map((step) => (
              <span key={step}>{describeAdvice(step)} </span>
            ))}
          </p>
        )}
      </div>
    </li>
  );
}

function summarise({ isPassed, checks }: ExaminationJson): string {
  if (isPassed) return texts.diagnosis.allPassed;
  const count = checks.filter(({ result }) => result === "failed").length;
  return count === 0 ? texts.diagnosis.undecided : texts.diagnosis.failedChecks({ count });
}

/** The report of an examination: a row for each check. */
function Report({ report }: { report: ExaminationJson }) {
  const { zone } = usePage();
  return (
    <section class="report" aria-label={texts.diagnosis.report({ time: formatTime(report.at, zone) })}>
      <h3>{summarise(report)}</h3>
      <p class="quiet">{texts.diagnosis.report({ time: formatTime(report.at, zone) })}</p>
      <ol class="checks">
        {report.checks.map((check) => (
          <CheckRow key={check.name} check={check} />
        ))}
      </ol>
    </section>
  );
}

/** Sends tests to the endpoint, after a question if it is in use, and shows the report. */
function ExaminePanel({ webhook: { id, status } }: { webhook: WebhookWithStatsJson }) {
  const { api, say } = usePage();
  const signal = useLeaveSignal();
  const [ask, question] = useConfirmation();
  const [report, setReport] = useState<ExaminationJson>();
  const words = texts.diagnosis;
  const examine = async (): Promise<void> => {
    const isEnabled = status === "ENABLED";
    const asked = { title: words.askTitle, explanation: words.askText, confirm: words.askConfirm };
    if (isEnabled && !(await ask(asked))) return;
    say(words.examining);
    const body = { even_if_enabled: isEnabled };
    const made = await api
      .within(signal)
      .send<ExaminationJson>("POST", `${webhookPath(id)}/examination`, body);
    setReport(made);
    say(summarise(made), made.isPassed ? "done" : "failed");
  };
  return (
    <section class="card" aria-labelledby="examine-heading">
      <h2 id="examine-heading">{words.examine}</h2>
      <p>{words.examineIntro}</p>
      <ActionButton act={examine} kind="primary" hasCooldown busyLabel={words.examining}>
        {words.examine}
      </ActionButton>
      {question}
      {report !== undefined && <Report report={report} />}
    </section>
  );
}

const EVENT_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** An explanation of an event, with the delivery that decides. */
interface Explained {
  explanation: ExplanationJson;
  delivery: DeliveryJson | undefined;
}

async function readExplanation(api: Api, webhookId: string, eventId: string): Promise<Explained> {
  const path = `${webhookPath(webhookId)}/events/${encodeURIComponent(eventId)}/explanation`;
  const explanation = await api.get<ExplanationJson>(path);
  const { deliveryId } = explanation;
  const delivery =
    deliveryId === null ? undefined : await api.get<DeliveryJson>(deliveryPath(webhookId, deliveryId));
  return { explanation, delivery };
}

/** Says what to do next: where the visitor can do it, or who can. */
function describeStep(reason: ExplanationJson["reason"], hasRate: boolean, isOperator: boolean): string {
  const { steps, dueForOperators, rateOfService } = texts.diagnosis;
  if (reason === "due" && isOperator) return dueForOperators;
  if (reason === "rate" && !hasRate) return rateOfService;
  return steps[reason];
}

/** Where the next step is made. */
function NextLink({
  webhookId,
  explanation: { reason, deliveryId },
  hasRate,
}: {
  webhookId: string;
  explanation: ExplanationJson;
  /** True if the visitor can set the rate of the webhook. */
  hasRate: boolean;
}) {
  const words = texts.diagnosis;
  if (reason === "rate" && !hasRate) return null;
  if (reason === "type_not_subscribed" || reason === "filtered" || reason === "rate")
    return <a href={`#/webhooks/${webhookId}/settings`}>{words.openSettings}</a>;
  if (deliveryId !== null && reason !== "disabled")
    return <a href={deliveryLink({ webhookId, id: deliveryId })}>{words.openDelivery}</a>;
  if (reason === "event_unknown" || reason === "registered_later") return null;
  return <a href={`#/webhooks/${webhookId}`}>{words.openWebhook}</a>;
}

const REASON_TONES: Partial<Record<ExplanationJson["reason"], Tone>> = {
  delivered: "good",
  failed: "bad",
  disabled: "bad",
  missed: "bad",
  waiting: "warn",
  postponed: "warn",
};

/** Why the endpoint did or did not get an event, what to do, and where. */
function Answer({ webhook, eventId }: { webhook: WebhookWithStatsJson; eventId: string }) {
  const { zone, now, session } = usePage();
  const { id: webhookId, per_second: rate } = webhook;
  const hasRate = rate !== undefined;
  const { data, error } = useResource((api) => readExplanation(api, webhookId, eventId), [eventId], 5_000);
  const words = texts.diagnosis;
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (data === undefined) return <Loading />;
  const { explanation, delivery } = data;
  const { reason, nextAttemptAt } = explanation;
  const last = delivery?.attempts.at(-1);
  return (
    <div class={`answer-card ${REASON_TONES[reason] ?? "info"}`} aria-live="polite">
      <h3>{words.reasons[reason]}</h3>
      {last !== undefined && <p>{words.lastAttempt({ result: describeAttempt(last) })}</p>}
      {nextAttemptAt !== null && (reason === "waiting" || reason === "postponed") && (
        <p>
          {words.nextAttempt({
            relative: formatRelativeTime(nextAttemptAt, now()),
            time: formatTime(nextAttemptAt, zone),
          })}
        </p>
      )}
      <p>
        {describeStep(reason, hasRate, session.isOperator === true)}{" "}
        <NextLink webhookId={webhookId} explanation={explanation} hasRate={hasRate} />
      </p>
      <p class="quiet small">
        <code>{words.event({ id: eventId })}</code>
      </p>
    </div>
  );
}

/** Asks for an event by its ID or its record. The event is part of the address. */
function ExplainPanel({ webhook, eventId }: { webhook: WebhookWithStatsJson; eventId: string }) {
  const { id } = webhook;
  const { api, go } = usePage();
  const [text, setText] = useState(eventId);
  const words = texts.diagnosis;
  const find = async (): Promise<void> => {
    const typed = text.trim();
    if (typed === "") throw new FieldError("event", words.whyEmpty);
    let found: string | undefined = typed;
    if (!EVENT_ID.test(typed)) {
      const { deliveries } = await readPage(api, undefined, { subject: typed }, { limit: 1 });
      found = deliveries[0]?.eventId;
    }
    if (found === undefined) throw new FieldError("event", words.whyNoRecord);
    go(`/webhooks/${id}/diagnosis?${new URLSearchParams({ event: found })}`);
  };
  return (
    <section class="card" aria-labelledby="why-heading">
      <h2 id="why-heading">{words.why}</h2>
      <p>{words.whyIntro}</p>
      <Form label={words.why} submit={words.whyButton} act={find}>
        <TextField
          label={words.whyField}
          names={["event"]}
          hint={words.whyHint}
          class="wide"
          autocomplete="off"
          maxLength={256}
          value={text}
          onChange={setText}
        />
      </Form>
      {eventId !== "" && <Answer key={eventId} webhook={webhook} eventId={eventId} />}
    </section>
  );
}

export function DiagnosisTab({ webhook, query }: TabProps & { query: URLSearchParams }) {
  return (
    <div class="narrow">
      <ExplainPanel webhook={webhook} eventId={query.get("event") ?? ""} />
      <ExaminePanel webhook={webhook} />
    </div>
  );
}
