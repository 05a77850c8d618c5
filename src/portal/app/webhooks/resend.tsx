/** Sends deliveries again: one, several, or all that failed since a time. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { DeliveryRowJson } from "../../shapes.js";
import { ApiError } from "../api.js";
import { ActionButton, Menu, type MenuAction, useAction } from "../components/button.js";
import { FieldError, Form, readTimeField, TimeField } from "../components/form.js";
import { RotateCcw } from "../components/icons.js";
import { CopyButton, getMessage, isAbort } from "../components/small.js";
import type { useRowChoice } from "../components/table.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatTime, toTimeInput } from "../times.js";
import { deliveryPath, recoverDeliveries, resendDelivery, type SentDelivery } from "./calls.js";
import type { TabProps } from "./endpoint-actions.js";
import { describeAttempt, shortenId } from "./wording.js";

type Sendable = Pick<
  DeliveryRowJson,
  "id" | "webhookId" | "eventId" | "type" | "subject" | "createdAt" | "state"
>;

/** `patient.updated, Patient/p1` */
export const nameDelivery = ({
  type,
  subject,
  eventId,
}: Pick<DeliveryRowJson, "type" | "subject" | "eventId">): string =>
  `${type}, ${subject ?? shortenId(eventId)}`;

/** After a result, the buttons of its event rest for so long: a second click was meant for the first. */
const REST_MS = 2_000;

type Hold = "sending" | "resting";

/**
 * The events that are being sent, or were a moment ago. Kept for the page and not for a button: the
 * result of a failed delivery is another delivery, with a separate button.
 */
const holds = new Map<string, Hold>();
const watchers = new Set<() => void>();

function setHold(key: string, hold: Hold | undefined): void {
  if (hold === undefined) holds.delete(key);
  else holds.set(key, hold);
  for (const update of watchers) update();
}

/** Returns whether an event may be sent now, and a function that sends it and announces the result. */
function useResend(delivery: Sendable, onSent: (sent: SentDelivery) => Promise<void>) {
  const { api, say } = usePage();
  const signal = useLeaveSignal();
  const [, update] = useState({});
  useEffect(() => {
    const watcher = (): void => update({});
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  const { id, webhookId, eventId, state } = delivery;
  const key = `${webhookId} ${eventId}`;
  const act = async (): Promise<void> => {
    if (holds.has(key)) return;
    setHold(key, "sending");
    let isSent = false;
    try {
      say(state === "pending" ? texts.resend.sendingNow : texts.resend.sendingNew);
      const sent = await resendDelivery(api.within(signal), webhookId, id);
      isSent = true;
      announceResult(sent);
      await onSent(sent);
    } catch (error) {
      // The view was left: it cannot say any more how the attempt went.
      if (!isAbort(error)) throw error;
    } finally {
      setHold(key, isSent ? "resting" : undefined);
      if (isSent) setTimeout(() => setHold(key, undefined), REST_MS);
    }
  };
  // It replaces "Sending now" in the one status line, which is read out.
  const announceResult = ({ attempt }: SentDelivery): void => {
    if (attempt === undefined) say(texts.resend.waits);
    else
      say(
        texts.resend.result({ result: describeAttempt(attempt), name: nameDelivery(delivery) }),
        attempt.kind === "delivered" ? "done" : "failed",
      );
  };
  return [holds.get(key), act] as const;
}

const labelHold = (hold: Hold): string => (hold === "sending" ? texts.resend.sending : texts.resend.sent);

/** Sends one delivery again. The button stays disabled until two seconds after the result. */
export function ResendButton({
  delivery,
  isDisabled,
  kind = "plain",
  isSmall = false,
  onSent,
}: {
  delivery: Sendable;
  /** True while the webhook is disabled. */
  isDisabled: boolean;
  kind?: "primary" | "plain";
  /** An icon alone, for a row of a table. */
  isSmall?: boolean;
  onSent: (sent: SentDelivery) => Promise<void>;
}) {
  const { zone } = usePage();
  const [hold, act] = useResend(delivery, onSent);
  const [, run] = useAction(act);
  const id = useId();
  const reason = isDisabled ? texts.endpoint.disabledReason : undefined;
  const name = texts.resend.againOf({
    name: nameDelivery(delivery),
    time: formatTime(delivery.createdAt, zone),
  });
  const label = hold === undefined ? texts.resend.again : labelHold(hold);
  return (
    <>
      <button
        type="button"
        class={isSmall ? "bare small icon-only" : kind}
        aria-disabled={hold !== undefined || isDisabled}
        aria-label={name}
        aria-describedby={reason !== undefined && !isSmall ? id : undefined}
        title={reason ?? (isSmall ? label : undefined)}
        onClick={() => hold === undefined && !isDisabled && run()}
      >
        <RotateCcw class="icon" aria-hidden="true" />
        {!isSmall && label}
      </button>
      {reason !== undefined && !isSmall && (
        <span id={id} class="reason">
          {reason}
        </span>
      )}
    </>
  );
}

/** The actions of a row: one on hover and focus, and all of them in a menu. */
export function RowActions({
  delivery,
  isDisabled,
  more,
  onSent,
}: {
  delivery: Sendable;
  isDisabled: boolean;
  more: MenuAction[];
  onSent: (sent: SentDelivery) => Promise<void>;
}) {
  const [hold, act] = useResend(delivery, onSent);
  const reason = hold === undefined ? undefined : labelHold(hold);
  const send = {
    text: texts.resend.again,
    disabledReason: isDisabled ? texts.endpoint.disabledReason : reason,
    act,
  };
  return (
    <span class="row-actions">
      <span class="on-hover">
        <ResendButton delivery={delivery} isDisabled={isDisabled} isSmall onSent={onSent} />
      </span>
      <Menu label={texts.deliveries.actionsOf({ name: nameDelivery(delivery) })} items={[send, ...more]} />
    </span>
  );
}

/** A delivery that was not sent with the others, and why. */
interface Refusal {
  delivery: Sendable;
  message: string;
}

/**
 * Sends the chosen deliveries again, one after another. `onSent` gets each as soon as it is
 * requested, so that a visitor who repeats an interrupted run sends none of them twice.
 */
function BulkResend({
  chosen,
  onSent,
  onDone,
  isDisabled = false,
  children,
}: {
  chosen: Sendable[];
  onSent: (deliveryId: string) => void;
  onDone: () => Promise<void>;
  isDisabled?: boolean;
  /** Further actions for what is chosen. */
  children: ComponentChildren;
}) {
  const { api, say } = usePage();
  const [total, setTotal] = useState(0);
  const [refusals, setRefusals] = useState<Refusal[]>([]);
  const act = async (): Promise<void> => {
    setTotal(chosen.length);
    setRefusals([]);
    const refused: Refusal[] = [];
    let [sent, interruption] = [0, ""];
    for (const delivery of chosen) {
      try {
        await api.send("POST", `${deliveryPath(delivery.webhookId, delivery.id)}/resend`);
        sent += 1;
      } catch (error) {
        // In flight, disabled or gone: the others are sent all the same.
        if (!(error instanceof ApiError && [403, 404, 409].includes(error.status))) {
          interruption = getMessage(error);
          break;
        }
        refused.push({ delivery, message: error.message });
      }
      onSent(delivery.id);
    }
    setRefusals(refused);
    say(
      [
        sent > 0 && texts.resend.beingSentAgain({ count: sent }),
        refused.length > 0 && texts.resend.refused({ count: refused.length }),
        interruption !== "" && `${interruption} ${texts.resend.othersSelected}`,
      ]
        .filter(Boolean)
        .join(" "),
      sent === 0 || interruption !== "" ? "failed" : "done",
    );
    await onDone();
  };
  const reason = chosen.length === 0 ? texts.resend.selectFirst : undefined;
  return (
    <>
      <div class="bulk">
        <ActionButton
          act={act}
          busyLabel={texts.resend.sendingOf({ number: total - chosen.length + 1, total })}
          disabledReason={isDisabled ? texts.endpoint.disabledReason : reason}
        >
          {chosen.length === 0 ? texts.resend.selected : texts.resend.selectedCount({ count: chosen.length })}
        </ActionButton>
        {children}
      </div>
      {refusals.length > 0 && (
        <section class="notice" aria-label={texts.resend.notAgain}>
          <h3>{texts.resend.notAgain}</h3>
          <ul>
            {refusals.map(({ delivery, message }) => (
              <li key={delivery.id}>
                <bdi>{nameDelivery(delivery)}</bdi>: {message}
              </li>
            ))}
          </ul>
          <button type="button" class="plain small" onClick={() => setRefusals([])}>
            {texts.common.close}
          </button>
        </section>
      )}
    </>
  );
}

/** The actions for the selected rows of a list. */
export function Selection({
  choice: { chosen, toggleAll, deselect },
  total,
  isDisabled,
  onDone,
}: {
  choice: ReturnType<typeof useRowChoice<DeliveryRowJson & { key: string }>>;
  total: number;
  isDisabled: boolean;
  onDone: () => Promise<void>;
}) {
  return (
    <BulkResend chosen={chosen} onSent={deselect} onDone={onDone} isDisabled={isDisabled}>
      <label>
        <input type="checkbox" checked={chosen.length === total} onChange={toggleAll} />{" "}
        {texts.deliveries.selectAll({ count: total })}
      </label>
      {chosen.length > 0 && (
        <CopyButton text={chosen.map(({ id }) => id).join("\n")} label={texts.deliveries.deliveryIds}>
          {texts.deliveries.copyIds}
        </CopyButton>
      )}
    </BulkResend>
  );
}

/** Retries everything that the webhook missed since a time. */
export function RetryMissed({ webhook: { id, status, createdDate, stats }, reload }: TabProps) {
  const { api, say, zone } = usePage();
  const from = Date.parse(stats.health.failingSince ?? createdDate);
  const [since, setSince] = useState(toTimeInput(from, zone));
  const act = async (): Promise<void> => {
    const time = readTimeField("since", since, zone);
    if (time === undefined) throw new FieldError("since", texts.resend.writeSince);
    const count = await recoverDeliveries(api, id, { since: time });
    say(count === 0 ? texts.resend.nothingMissedSince : texts.resend.beingSent({ count }));
    await reload();
  };
  return (
    <details class="panel">
      <summary>{texts.resend.retryAllSince}</summary>
      <Form
        label={texts.resend.retryAllLabel}
        submit={texts.resend.retryAll}
        act={act}
        disabledReason={status === "DISABLED" ? texts.endpoint.disabledReason : undefined}
      >
        <TimeField
          label={texts.resend.since}
          name="since"
          value={since}
          onChange={setSince}
          hint={texts.resend.sinceHint}
        />
      </Form>
    </details>
  );
}
