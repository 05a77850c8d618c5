/** Actions of a webhook: test, retry, enable, disable, and finishing a rotation of its secret. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { CatalogueJson, StatsJson, WebhookWithStatsJson } from "../../shapes.js";
import type { Api } from "../api.js";
import { ActionButton, useConfirmation } from "../components/button.js";
import { Check, CircleAlert, Clock, TriangleAlert, X } from "../components/icons.js";
import { Badge } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { formatTime, nameZone } from "../times.js";
import type { Tone } from "../tone.js";
import { useResource } from "../use-resource.js";
import { recoverDeliveries, sendTest, updateWebhook, webhookPath } from "./calls.js";
import { SearchField } from "./event-type-picker.js";
import { findReceivers, sortByOwner } from "./event-types.js";
import { describeAttempt, getHealthTone, isTroubled, labelHealth, splitUrl } from "./wording.js";

export interface TabProps {
  webhook: WebhookWithStatsJson;
  /** Reads the webhook again, after it was changed. */
  reload: () => Promise<void>;
}

export function RotationNotice({ webhook: { id, stats }, reload }: TabProps) {
  const { api, say, zone } = usePage();
  const [ask, question] = useConfirmation();
  if (stats.rotatesAt === null) return null;
  const finish = async (): Promise<void> => {
    const isConfirmed = await ask({
      title: texts.secret.finishTitle,
      explanation: texts.secret.finishExplanation,
      confirm: texts.secret.finish,
    });
    if (!isConfirmed) return;
    await api.send("POST", `${webhookPath(id)}/rotate/finish`);
    await reload();
    say(texts.secret.finished);
  };
  return (
    <section class="notice" aria-label={texts.secret.rotation}>
      <h2>{texts.secret.pendingTitle({ time: formatTime(stats.rotatesAt, zone), zone: nameZone(zone) })}</h2>
      <p>{texts.secret.pendingText({ header: <code>webhook-signature</code> })}</p>
      <ActionButton act={finish}>{texts.secret.finish}</ActionButton>
      {question}
    </section>
  );
}

/** Enables a webhook that is disabled. */
export function EnableButton({ webhook, reload }: TabProps) {
  const { api, say } = usePage();
  const enable = async (): Promise<void> => {
    await updateWebhook(api, webhook.id, { status: "ENABLED" });
    await reload();
    say(texts.endpoint.enabled);
  };
  return (
    <ActionButton kind="primary" act={enable}>
      {texts.endpoint.enable}
    </ActionButton>
  );
}

/** Returns a function that disables a webhook once the visitor has confirmed, and its question. */
export function useDisable({ webhook: { id }, reload }: TabProps) {
  const { api, say } = usePage();
  const [ask, question] = useConfirmation();
  const disable = async (): Promise<void> => {
    const isConfirmed = await ask({
      title: texts.endpoint.disableTitle,
      explanation: texts.endpoint.disableExplanation,
      confirm: texts.endpoint.disableConfirm,
    });
    if (!isConfirmed) return;
    await updateWebhook(api, id, { status: "DISABLED" });
    await reload();
    say(texts.endpoint.disabled);
  };
  return [disable, question] as const;
}

/** Returns a function that sends a test and announces its result. Without a type: the plain test. */
function useTest({ webhook: { id }, reload }: TabProps): (type?: string) => Promise<void> {
  const { api, say } = usePage();
  const signal = useLeaveSignal();
  return async (type) => {
    say("");
    const { attempt } = await sendTest(api.within(signal), id, type);
    if (attempt === undefined) say(texts.endpoint.testWaits);
    else say(describeAttempt(attempt), attempt.kind === "delivered" ? "done" : "failed");
    await reload();
  };
}

/** Sends a test. Its result is announced. `label`: its name for screen readers, where several stand on a page. */
export function TestButton({ label, ...tab }: TabProps & { label?: string }) {
  const test = useTest(tab);
  return (
    <ActionButton
      act={test}
      hasCooldown
      busyLabel={texts.resend.sending}
      label={label}
      disabledReason={tab.webhook.status === "DISABLED" ? texts.endpoint.disabledReason : undefined}
    >
      {texts.endpoint.sendTest}
    </ActionButton>
  );
}

/** Asks for the type whose sample a test has. A catalogue has fifty types or more: it is searched. */
function TestTypeDialog({
  types,
  onChoose,
  onClose,
}: {
  types: string[];
  onChoose: (type: string) => void;
  onClose: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const wanted = text.trim().toLowerCase();
  const found = types.filter((type) => type.toLowerCase().includes(wanted));
  return (
    <dialog ref={dialog} class="test-types" aria-labelledby="test-types-title" onClose={onClose}>
      <h2 id="test-types-title">{texts.endpoint.sample}</h2>
      <SearchField text={text} onChange={setText} />
      {found.length === 0 && <p class="quiet">{texts.eventTypes.noMatch({ text: text.trim() })}</p>}
      <ul>
        {found.map((type) => (
          <li key={type}>
            <button
              type="button"
              class="bare"
              onClick={() => {
                // First, so that the focus returns to the button.
                dialog.current?.close();
                onChoose(type);
              }}
            >
              {type}
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="plain" onClick={() => dialog.current?.close()}>
        {texts.common.cancel}
      </button>
    </dialog>
  );
}

/** The types of which a sample can be sent to a webhook, behind the button. The host's come first. */
export function TestMenu(tab: TabProps) {
  const { fail } = usePage();
  const test = useTest(tab);
  const [isOpen, setOpen] = useState(false);
  const { data } = useResource(
    (reader) => reader.get<CatalogueJson>("v1/event-types", { include: "details" }),
    [],
  );
  const { eventTypes } = tab.webhook.stats;
  const types = sortByOwner(data?.details ?? [])
    .map(({ type }) => type)
    .filter((type) => findReceivers([{ event_types: eventTypes ?? ["*"] }], type).length > 0);
  if (tab.webhook.status === "DISABLED" || types.length === 0) return null;
  const choose = (type: string): void => {
    test(type).catch(fail);
  };
  return (
    <>
      <button
        type="button"
        class="icon-only"
        aria-label={texts.endpoint.sample}
        title={texts.endpoint.sample}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        ▾
      </button>
      {isOpen && <TestTypeDialog types={types} onChoose={choose} onClose={() => setOpen(false)} />}
    </>
  );
}

/**
 * Sends everything that an endpoint did not receive, in one call: what failed or was missed, and
 * what waits for a retry. The service sends it one after another. Returns how many.
 */
const sendAllNow = (api: Api, { id, createdDate }: WebhookWithStatsJson): Promise<number> =>
  recoverDeliveries(api, id, { since: createdDate, state: "undelivered" });

interface Sending {
  /** How many deliveries were pending once all of them were sent. */
  pending: number;
  /** How many had failed before. */
  failed: number;
}

/**
 * Says how many of the deliveries that were sent are still pending, and how many failed since. Those
 * of new events are not told apart: they are pending too, and never counted as sent.
 */
function SendProgress({ sending, stats }: { sending: Sending; stats: StatsJson }) {
  const total = Math.max(sending.pending, stats.pending);
  const failed = Math.max(0, stats.failed - sending.failed);
  if (stats.pending === 0 && failed === 0) return null;
  return (
    <span class="sending">
      {stats.pending > 0 && (
        <progress aria-label={texts.resend.sent} value={total - stats.pending} max={total} />
      )}
      {stats.pending > 0 && texts.resend.stillPending({ count: stats.pending })}
      {failed > 0 && <span class="quiet">{texts.resend.failedSince({ count: failed })}</span>}
    </span>
  );
}

/** Sends everything that an endpoint did not receive, and says how far it is. */
export function RetryButton({ webhook, reload }: TabProps) {
  const { api, say } = usePage();
  const { failed, pending } = webhook.stats;
  /** The failed deliveries that were sent again: they stay in the log. */
  const [retried, setRetried] = useState(0);
  const [sending, setSending] = useState<Sending>();
  const isWaiting = isTroubled(webhook.stats);
  const act = async (): Promise<void> => {
    say("");
    const count = await sendAllNow(api, webhook);
    setRetried(failed);
    setSending(count === 0 ? undefined : { pending: Math.max(count, pending), failed });
    say(count === 0 ? texts.resend.nothingMissed : texts.resend.beingSent({ count }));
    await reload();
  };
  const count = Math.max(0, failed - retried) + (isWaiting ? pending : 0);
  return (
    <>
      {sending !== undefined && <SendProgress sending={sending} stats={webhook.stats} />}
      {(isWaiting || count > 0) && (
        <ActionButton
          act={act}
          hasCooldown
          busyLabel={texts.resend.sending}
          disabledReason={webhook.status === "DISABLED" ? texts.endpoint.disabledReason : undefined}
        >
          {count === 0 ? texts.resend.missed : texts.resend.now({ count })}
        </ActionButton>
      )}
    </>
  );
}

const TONE_ICONS: Record<Tone, typeof Check> = {
  good: Check,
  warn: TriangleAlert,
  bad: X,
  info: Clock,
  neutral: CircleAlert,
};

export function HealthBadge({ stats }: { stats: StatsJson }) {
  const label = labelHealth(stats);
  const tone = getHealthTone(stats);
  const Icon = TONE_ICONS[tone];
  return (
    <Badge tone={tone}>
      <Icon aria-hidden="true" /> {label}
    </Badge>
  );
}

/** The end of an address that is always shown. */
const TAIL_LENGTH = 12;
/** A path is cut in its middle if that hides more than the ellipsis takes. */
const MIN_CUT = 4;

/**
 * The address of an endpoint in one line: its host stands out, its query is not shown. If there is no
 * room it is cut in the middle. It is whole as a title, and while a link around it has the focus.
 */
export function EndpointUrl({ url }: { url: string }) {
  const { host, path } = splitUrl(url);
  const whole = host + path;
  const isLong = path.length > TAIL_LENGTH + MIN_CUT;
  const rest = isLong ? path.slice(0, -TAIL_LENGTH) : path;
  const tail = path.slice(rest.length);
  return (
    // An image in the sense of a text with a name: its parts are one word for screen readers.
    <bdi class="shortened" role="img" aria-label={whole} title={whole}>
      <strong>{host}</strong>
      <span class="shortened-rest quiet">{rest}</span>
      <span class="shortened-tail quiet">{tail}</span>
    </bdi>
  );
}
