/** What a delivery and its attempts are called in lists and in details: name, state, answers. */

import type { AttemptJson, AttemptResultJson, DeliveryRowJson } from "../../shapes.js";
import { Check, CircleAlert, Clock, RotateCcw, X } from "../components/icons.js";
import { JsonText } from "../components/json-tree.js";
import { Badge, CopyButton, RelativeTime, Time } from "../components/small.js";
import type { Column } from "../components/table.js";
import { texts } from "../texts.js";
import { formatDuration } from "../times.js";
import { deliveryLink } from "./calls.js";
import { nameDelivery } from "./resend.js";
import { describeReason, describeResult, labelState, shortenId } from "./wording.js";

export function WholeId({ id, label }: { id: string; label: string }) {
  return (
    <span class="whole-id">
      <code>{id}</code> <CopyButton text={id} label={label} />
    </span>
  );
}

/** The state of a delivery with its icon. */
export function StateBadge({
  delivery,
}: {
  delivery: Pick<DeliveryRowJson, "state" | "type" | "attemptCount">;
}) {
  const { label, tone } = labelState(delivery);
  const Icon = { pending: Clock, delivered: Check, failed: X, withheld: CircleAlert }[delivery.state];
  return (
    <Badge tone={tone}>
      <Icon class="icon" aria-hidden="true" />
      {label}
    </Badge>
  );
}

const STATUS_TEXTS: Record<number, string> = {
  200: "OK",
  201: "Created",
  202: "Accepted",
  204: "No Content",
  301: "Moved Permanently",
  302: "Found",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/** `503 · 812 ms`, or what kept an answer from coming. */
function describeAnswer(attempt: AttemptResultJson): string {
  const { status, durationMs } = attempt;
  if (status === null) return describeResult(attempt);
  return durationMs === undefined ? String(status) : `${status} · ${formatDuration(durationMs)}`;
}

/** Attempts in a row that got the same answer, newest first. */
interface Fold {
  /** The number of its newest attempt. */
  number: number;
  attempts: AttemptJson[];
}

const isSameAnswer = (a: AttemptJson, b: AttemptJson | undefined): boolean =>
  a.kind === b?.kind && a.status === b.status && a.code === b.code && a.excerpt === b.excerpt;

/** Folds equal answers, newest first. The newest attempt stands alone: it is what counts. */
export function foldAttempts(attempts: readonly AttemptJson[]): Fold[] {
  const folds: { number: number; attempts: AttemptJson[] }[] = [];
  for (const [index, attempt] of [...attempts.entries()].reverse()) {
    const last = folds.at(-1);
    if (last !== undefined && folds.length > 1 && isSameAnswer(attempt, last.attempts[0]))
      last.attempts.push(attempt);
    else folds.push({ number: index + 1, attempts: [attempt] });
  }
  return folds;
}

/** `6`, `3–1` */
const numberFold = ({ number, attempts }: Fold): string =>
  attempts.length === 1 ? String(number) : `${number}–${number - attempts.length + 1}`;

/** An attempt of the list; the chosen one is shown beside the list. */
export function FoldButton({
  fold,
  isChosen,
  onChoose,
}: {
  fold: Fold;
  isChosen: boolean;
  onChoose: () => void;
}) {
  const [attempt] = fold.attempts;
  if (attempt === undefined) return null;
  const isGood = attempt.kind === "delivered";
  return (
    <li>
      <button type="button" aria-current={isChosen} onClick={onChoose}>
        {isGood ? <Check class="icon good" aria-hidden="true" /> : <X class="icon bad" aria-hidden="true" />}
        <span class="attempt-number">
          <span class="unseen">
            {isGood ? texts.delivery.deliveredAttempt : texts.delivery.failedAttempt}
          </span>
          {numberFold(fold)}
        </span>{" "}
        <span class="attempt-answer">{attempt.status ?? attempt.code}</span>{" "}
        <span class="quiet">
          {fold.attempts.length > 1 ? texts.delivery.sameAnswer : formatDuration(attempt.durationMs)}
        </span>{" "}
        <span class="quiet attempt-time">
          {attempt.isExtra && <RotateCcw class="icon" aria-label={texts.delivery.onRequest} />}
          <RelativeTime at={attempt.at} />
        </span>
      </button>
    </li>
  );
}

/** True if there was a response and the log has none of it. */
const isWithoutExcerpt = ({ kind, excerpt }: AttemptJson): boolean => kind === "http" && !excerpt;

/** What the endpoint answered to an attempt, or to each of a fold. */
export function ChosenAttempt({ fold }: { fold: Fold }) {
  const [attempt] = fold.attempts;
  if (attempt === undefined) return null;
  const { status, durationMs, excerpt, isExtra, kind } = attempt;
  const tone = kind === "delivered" ? "good" : "bad";
  return (
    <section class="answer" aria-label={texts.delivery.response}>
      <h3>
        {(fold.attempts.length > 1 ? texts.delivery.attempts : texts.delivery.attempt)({
          number: numberFold(fold),
          time: <Time at={attempt.at} />,
        })}
        {isExtra && ` · ${texts.delivery.onRequest}`}
      </h3>
      <p class={`result ${tone}`}>
        {status === null
          ? describeResult(attempt)
          : `${status} ${STATUS_TEXTS[status] ?? ""} · ${formatDuration(durationMs)}`}
      </p>
      {excerpt && <JsonText key={fold.number} text={excerpt} label={texts.delivery.answer} />}
      {isWithoutExcerpt(attempt) && (
        <p class="quiet">
          {texts.delivery.noAnswerKept({ option: <code>delivery.excerptCharacters</code> })}
        </p>
      )}
      {fold.attempts.length > 1 && (
        <details>
          <summary>{texts.delivery.sameAnswers({ count: fold.attempts.length })}</summary>
          <ul class="same-answers">
            {fold.attempts.map((each, index) => (
              <li key={fold.number - index}>
                {fold.number - index}: <Time at={each.at} /> · {formatDuration(each.durationMs)}
                {each.isExtra && ` · ${texts.delivery.onRequest}`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

export interface Row extends DeliveryRowJson {
  key: string;
  /** True if a newer delivery of the same event is on this page. */
  isSentAgain: boolean;
}

/**
 * Marks deliveries that have a newer one of the same event to the same webhook. `deliveries`: newest
 * first.
 */
export function toRows(deliveries: DeliveryRowJson[]): Row[] {
  const seen = new Set<string>();
  return deliveries.map((delivery) => {
    const sent = `${delivery.webhookId} ${delivery.eventId}`;
    const isSentAgain = seen.has(sent);
    seen.add(sent);
    return { ...delivery, key: delivery.id, isSentAgain };
  });
}

/** What the endpoint answered last, or why nothing was sent. */
function LastAnswer({ lastAttempt, reason }: Row) {
  if (lastAttempt === null)
    return <span class="quiet">{describeReason(reason) || texts.deliveries.noneYet}</span>;
  const text = describeAnswer(lastAttempt);
  return <span class={lastAttempt.kind === "delivered" ? undefined : "result bad"}>{text}</span>;
}

/** The columns that say what a delivery is and what came of it. A row is named by its event and subject. */
export const createContentColumns = (
  onOpen: (event: MouseEvent, row: Row) => void,
  openId: string | undefined,
): Column<Row>[] => [
  { name: texts.deliveries.state, class: "state", cell: (row) => <StateBadge delivery={row} /> },
  {
    name: texts.deliveries.event,
    class: "cut event",
    cell: (row) => (
      <a
        href={deliveryLink(row)}
        data-row={row.id}
        aria-label={nameDelivery(row)}
        aria-current={row.id === openId ? "true" : undefined}
        title={texts.deliveries.eventTitle({ type: row.type, id: row.eventId })}
        onClick={(event) => onOpen(event, row)}
      >
        {row.type}
      </a>
    ),
  },
  {
    name: texts.deliveries.about,
    class: "cut about",
    cell: ({ subject, eventId }) =>
      subject === null ? (
        <code class="quiet" title={texts.deliveries.eventOf({ id: eventId })}>
          {shortenId(eventId)}
        </code>
      ) : (
        <bdi title={subject}>{subject}</bdi>
      ),
  },
  {
    name: texts.deliveries.attempts,
    isNumber: true,
    class: "attempt-count",
    cell: ({ attemptCount }) => attemptCount,
  },
  { name: texts.deliveries.lastAnswer, class: "cut answer-cell", cell: (row) => <LastAnswer {...row} /> },
  {
    name: texts.deliveries.created,
    class: "time created",
    cell: (row) => <RelativeTime at={row.createdAt} />,
  },
];
