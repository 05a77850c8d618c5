/** Sends deliveries again: one, several, or all that failed since a time. */

import { useState } from "preact/hooks";
import type { DeliveryRowJson } from "../../shapes.js";
import { ApiError } from "../api.js";
import { ActionButton } from "../components/button.js";
import { FieldError, Form, readTimeField, TimeField } from "../components/form.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { pluralise, toTimeInput } from "../times.js";
import { deliveryPath, resendDelivery, type SentDelivery, webhookPath } from "./calls.js";
import { DISABLED_REASON, type TabProps } from "./endpoint-actions.js";
import { describeAttempt } from "./wording.js";

const describeSent = ({ attempt }: SentDelivery): string =>
  attempt === undefined ? "It waits for a free slot; its result will follow here." : describeAttempt(attempt);

/**
 * Sends one delivery again. The button stays disabled until the result of the attempt is there, and
 * the result takes the place next to it.
 */
export function ResendButton({
  delivery: { id, webhookId, type, createdAt, state },
  isDisabled,
  kind = "plain",
  onSent,
}: {
  readonly delivery: Pick<DeliveryRowJson, "id" | "webhookId" | "type" | "createdAt" | "state">;
  /** True while the webhook is disabled. */
  readonly isDisabled: boolean;
  readonly kind?: "primary" | "plain";
  readonly onSent: (sent: SentDelivery) => Promise<void>;
}) {
  const { api, say } = usePage();
  const signal = useLeaveSignal();
  const [result, setResult] = useState<SentDelivery>();
  const act = async (): Promise<void> => {
    setResult(undefined);
    say(
      state === "pending"
        ? "Sending now. The retry schedule is unchanged."
        : "Sending now, as a new delivery of the same event.",
    );
    const sent = await resendDelivery(api.within(signal), webhookId, id);
    setResult(sent);
    await onSent(sent);
  };
  return (
    <div class="resend">
      <ActionButton
        act={act}
        kind={kind}
        busyLabel="Sending …"
        label={`Send again: ${type}, ${createdAt}`}
        disabledReason={isDisabled ? DISABLED_REASON : undefined}
      >
        Send again
      </ActionButton>
      {result !== undefined && (
        <span role="status" class={result.attempt?.kind === "delivered" ? "result good" : "result bad"}>
          {describeSent(result)}
        </span>
      )}
    </div>
  );
}

/** Requests an attempt of each delivery, one after another. Returns how many were refused. */
async function resendAll(
  api: ReturnType<typeof usePage>["api"],
  webhookId: string,
  ids: readonly string[],
  onSent: (deliveryId: string) => void,
): Promise<number> {
  let refused = 0;
  for (const id of ids) {
    try {
      await api.send("POST", `${deliveryPath(webhookId, id)}/resend`);
    } catch (error) {
      // In flight, or sent again too often: the others are sent all the same.
      if (!(error instanceof ApiError && error.status === 409)) throw error;
      refused += 1;
    }
    onSent(id);
  }
  return refused;
}

/**
 * Sends the chosen deliveries again. `onSent` gets each as soon as it is requested, so that a
 * visitor who repeats an interrupted run sends none of them twice.
 */
export function BulkResend({
  webhook: { id, status },
  reload,
  chosen,
  onSent,
}: TabProps & { readonly chosen: ReadonlySet<string>; readonly onSent: (deliveryId: string) => void }) {
  const { api, say } = usePage();
  const [total, setTotal] = useState(0);
  const act = async (): Promise<void> => {
    setTotal(chosen.size);
    const refused = await resendAll(api, id, [...chosen], onSent);
    const sent = chosen.size - refused;
    const rest = `${refused} refused: an attempt is in flight, or the limit is reached.`;
    if (sent === 0) say(rest, "failed");
    else
      say(
        `${pluralise(sent, "delivery is", "deliveries are")} being sent again.${refused > 0 ? ` ${rest}` : ""}`,
      );
    await reload();
  };
  const reason = chosen.size === 0 ? "Select deliveries in the list first." : undefined;
  return (
    <ActionButton
      act={act}
      busyLabel={`Sending ${total - chosen.size + 1} of ${total} …`}
      disabledReason={status === "DISABLED" ? DISABLED_REASON : reason}
    >
      {chosen.size === 0 ? "Send selected again" : `Send ${chosen.size} again`}
    </ActionButton>
  );
}

/** Retries everything that the webhook missed since a time. */
export function RetryMissed({ webhook: { id, status, createdDate, stats }, reload }: TabProps) {
  const { api, say, zone } = usePage();
  const from = Date.parse(stats.health.failingSince ?? createdDate);
  const [since, setSince] = useState(toTimeInput(from, zone));
  const act = async (): Promise<void> => {
    const time = readTimeField("since", since, zone);
    if (time === undefined) throw new FieldError("since", "Write the time from which to retry.");
    const { count } = await api.send<{ count: number }>("POST", `${webhookPath(id)}/recover`, {
      since: time,
    });
    say(
      count === 0
        ? "Nothing was missed since then. Pending deliveries go with their next attempt."
        : `${pluralise(count, "event is", "events are")} being sent, one after another.`,
    );
    await reload();
  };
  return (
    <details class="panel">
      <summary>Retry all failed since …</summary>
      <Form
        label="Retry all failed deliveries"
        submit="Retry all failed"
        act={act}
        disabledReason={status === "DISABLED" ? DISABLED_REASON : undefined}
      >
        <TimeField
          label="Since"
          name="since"
          value={since}
          onChange={setSince}
          hint="Sends events that failed, and those from the time when the webhook was disabled. What was delivered is not sent again."
        />
      </Form>
    </details>
  );
}
