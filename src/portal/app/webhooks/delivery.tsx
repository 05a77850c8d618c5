/** One delivery: what was sent, and what the endpoint answered to each attempt. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { DeliveryJson, DeliveryRequestJson, WebhookWithStatsJson } from "../../shapes.js";
import { ChevronLeft, X } from "../components/icons.js";
import { JsonText } from "../components/json-tree.js";
import {
  CodeBlock,
  CopyButton,
  ErrorMessage,
  Facts,
  Heading,
  Loading,
  RelativeTime,
  Time,
} from "../components/small.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import {
  buildCurlCommand,
  deliveryLink,
  deliveryPath,
  findSignatureHeader,
  type SentDelivery,
  WEBHOOK_PARTS,
  webhookPath,
} from "./calls.js";
import { ChosenAttempt, FoldButton, foldAttempts, StateBadge, WholeId } from "./delivery-name.js";
import { EndpointUrl } from "./endpoint-actions.js";
import { nameDelivery, ResendButton } from "./resend.js";
import { VerificationSnippet } from "./secret.js";
import { describeReason, getNextAttempt } from "./wording.js";

const REFRESH_MS = 5_000;

interface Found {
  webhook: WebhookWithStatsJson;
  delivery: DeliveryJson;
}

/** The attempts, newest first, with the chosen one beside them. */
function Attempts({ delivery: { attempts }, children }: Found & { children: ComponentChildren }) {
  // Without a choice it is the newest one, also once there is another.
  const [chosen, setChosen] = useState<number>();
  const folds = foldAttempts(attempts);
  const fold = folds.find(({ number }) => number === chosen) ?? folds[0];
  return (
    <div class="delivery-parts">
      <section aria-label={texts.delivery.attemptsTitle} class="attempts-part">
        <h2>
          {texts.delivery.attemptsTitle} <span class="quiet">{attempts.length}</span>
        </h2>
        {attempts.length === 0 && <p>{texts.delivery.noneYet}</p>}
        <ol class="attempts" reversed>
          {folds.map((each) => (
            <FoldButton
              key={each.number}
              fold={each}
              isChosen={each === fold}
              onChoose={() => setChosen(each.number)}
            />
          ))}
        </ol>
      </section>
      <div class="delivery-part">
        {fold !== undefined && <ChosenAttempt fold={fold} />}
        {children}
      </div>
    </div>
  );
}

/** What an attempt sends, with a command that sends it again by hand. */
function SentRequest({ path }: { path: string }) {
  const { session } = usePage();
  // An operator who looks through accounts sees a record on request only.
  const [isBodyShown, setBodyShown] = useState(session.account === undefined);
  const isIncluded = session.canReadRecords && isBodyShown;
  const { data, error } = useResource(
    (api) => api.get<DeliveryRequestJson>(`${path}/request`, { include: isIncluded ? "body" : undefined }),
    [path, isIncluded],
  );
  if (data === undefined)
    return (
      <section aria-label={texts.delivery.request}>
        <h3>{texts.delivery.request}</h3>
        {error === undefined ? <Loading /> : <ErrorMessage error={error} />}
      </section>
    );
  const curl = buildCurlCommand(data, findSignatureHeader(data));
  const headers = Object.entries(data.headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <section aria-label={texts.delivery.request}>
      <div class="title-row">
        <h3>{texts.delivery.request}</h3>
        <CopyButton text={curl} label={texts.delivery.curlCommand}>
          {texts.delivery.copyCurl}
        </CopyButton>
      </div>
      <p>
        <code class="address">
          {data.method} {data.url}
        </code>
        <br />
        <span class="quiet">{texts.delivery.bytes({ count: data.bytes })}</span>
      </p>
      <details>
        <summary>{texts.delivery.headerCount({ count: headers.length })}</summary>
        <CodeBlock text={headers.join("\n")} label={texts.delivery.headers} />
      </details>
      {data.body !== null && <JsonText text={data.body} label={texts.delivery.body} />}
      {session.canReadRecords && !isBodyShown && (
        <button type="button" class="plain" onClick={() => setBodyShown(true)}>
          {texts.delivery.showBody}
        </button>
      )}
      {!session.canReadRecords && <p class="quiet">{texts.delivery.bodyNotShown}</p>}
      <details>
        <summary>{texts.delivery.sendYourself}</summary>
        {data.body === null && <p>{texts.delivery.bodyFirst({ file: <code>notification.json</code> })}</p>}
        <CodeBlock text={curl} label={texts.delivery.command} />
      </details>
      <details>
        <summary>{texts.delivery.verify}</summary>
        <VerificationSnippet />
      </details>
    </section>
  );
}

/** State, next attempt, facts, attempts and request of a delivery. */
function Details({
  webhook,
  delivery,
  heading,
  onSent,
}: Found & {
  heading: ComponentChildren;
  onSent: (sent: SentDelivery) => Promise<void>;
}) {
  const next = getNextAttempt(webhook, delivery.nextAttemptAt);
  return (
    <div class="delivery">
      <div class="title-row">
        {heading}
        <StateBadge delivery={{ ...delivery, attemptCount: delivery.attempts.length }} />
        <ResendButton
          delivery={delivery}
          isDisabled={webhook.status === "DISABLED"}
          kind={delivery.state === "delivered" ? "plain" : "primary"}
          onSent={onSent}
        />
      </div>
      {delivery.reason !== null && <p class="quiet">{describeReason(delivery.reason)}</p>}
      <Facts
        rows={[
          [
            texts.delivery.endpoint,
            <a key="endpoint" href={`#/webhooks/${webhook.id}`}>
              <EndpointUrl url={webhook.url} />
            </a>,
          ],
          [texts.delivery.about, delivery.subject !== null && <bdi key="record">{delivery.subject}</bdi>],
          [
            texts.delivery.eventId,
            <WholeId key="event" id={delivery.eventId} label={texts.delivery.eventIdLabel} />,
          ],
          [texts.delivery.created, <Time key="created" at={delivery.createdAt} />],
          [texts.delivery.completed, delivery.endedAt !== null && <Time at={delivery.endedAt} />],
          [
            texts.delivery.nextAttempt,
            next !== null && (
              <>
                <Time at={next} /> (<RelativeTime at={next} />)
              </>
            ),
          ],
        ]}
      />
      <Attempts key={delivery.id} webhook={webhook} delivery={delivery}>
        <SentRequest path={deliveryPath(webhook.id, delivery.id)} />
      </Attempts>
    </div>
  );
}

interface DeliveryProps {
  webhookId: string;
  deliveryId: string;
  /** Shows the delivery that was sent in its place. */
  onOther: (deliveryId: string) => void;
  /** The heading of a delivery with this name. */
  heading: (name: string) => ComponentChildren;
}

/** A delivery that is read and kept fresh. */
function DeliveryDetails({ webhookId, deliveryId, onOther, heading }: DeliveryProps) {
  const { data, error, reload } = useResource(
    async (api): Promise<Found> => {
      const [webhook, delivery] = await Promise.all([
        api.get<WebhookWithStatsJson>(webhookPath(webhookId), { include: WEBHOOK_PARTS }),
        api.get<DeliveryJson>(deliveryPath(webhookId, deliveryId)),
      ]);
      return { webhook, delivery };
    },
    [webhookId, deliveryId],
    REFRESH_MS,
  );
  const onSent = async ({ id }: SentDelivery): Promise<void> => {
    if (id === deliveryId) await reload();
    else onOther(id);
  };
  const found = data?.delivery.id === deliveryId ? data : undefined;
  if (found !== undefined)
    return <Details {...found} heading={heading(nameDelivery(found.delivery))} onSent={onSent} />;
  return (
    <>
      {heading(texts.delivery.label)}
      {error === undefined ? <Loading /> : <ErrorMessage error={error} />}
    </>
  );
}

/** Where the visitor was in a list when a delivery was opened from it. */
export interface ListPlace {
  /** The address of the list. */
  hash: string;
  top: number;
  /** The delivery. */
  id: string;
}

let lastPlace: ListPlace | undefined;
let isReturning = false;

/** Keeps the place, with the entry of the history too, so that Back and a reload find it. */
export function keepPlace(id: string): void {
  lastPlace = { hash: location.hash, top: scrollY, id };
  history.replaceState({ place: lastPlace }, "");
}

/** Returns the place in the list that is shown now, if the visitor comes back to it. */
export function takePlace(): ListPlace | undefined {
  const saved = (history.state as { place?: ListPlace } | null)?.place;
  const place = saved ?? (isReturning ? lastPlace : undefined);
  isReturning = false;
  return place?.hash === location.hash ? place : undefined;
}

export function DeliveryView({ params: { webhookId = "", deliveryId = "" } }: ViewProps) {
  const { go } = usePage();
  const listLink = `#/webhooks/${webhookId}/deliveries`;
  const path = lastPlace?.hash.split("?", 1)[0];
  const back =
    lastPlace !== undefined && (path === listLink || path === "#/deliveries") ? lastPlace.hash : listLink;
  return (
    <>
      <p>
        <a
          href={back}
          class="back"
          onClick={() => {
            isReturning = true;
          }}
        >
          <ChevronLeft class="icon" aria-hidden="true" />
          {path === "#/deliveries" && back !== listLink
            ? texts.delivery.allDeliveries
            : texts.delivery.ofThisWebhook}
        </a>
      </p>
      <DeliveryDetails
        webhookId={webhookId}
        deliveryId={deliveryId}
        onOther={(id) => go(`/webhooks/${webhookId}/deliveries/${encodeURIComponent(id)}`)}
        heading={(name) => <Heading title={name} />}
      />
    </>
  );
}

/** A delivery that is open beside the list, at a separate address. */
export function DeliveryPanel({
  id,
  onClose,
  onOther,
}: {
  id: string;
  onClose: () => void;
  onOther: (id: string) => void;
}) {
  const panel = useRef<HTMLElement>(null);
  const [webhookId = ""] = id.split(".", 1);
  // Not for each delivery: who moves with the keys in the list stays there.
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  return (
    <aside class="delivery-panel" aria-label={texts.delivery.label} tabIndex={-1} ref={panel}>
      <div class="panel-bar">
        <a href={deliveryLink({ webhookId, id })}>{texts.delivery.onItsOwn}</a>
        <button
          type="button"
          class="bare small icon-only"
          aria-label={texts.delivery.close}
          onClick={onClose}
        >
          <X class="icon" aria-hidden="true" />
        </button>
      </div>
      <DeliveryDetails
        webhookId={webhookId}
        deliveryId={id}
        onOther={onOther}
        heading={(name) => <h2>{name}</h2>}
      />
    </aside>
  );
}
