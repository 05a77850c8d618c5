/** One delivery: what was sent, and what the endpoint answered to each attempt. */

import { useState } from "preact/hooks";
import type { AttemptJson, DeliveryJson, DeliveryRequestJson, WebhookWithStatsJson } from "../../shapes.js";
import {
  Badge,
  CodeBlock,
  ErrorMessage,
  Facts,
  Heading,
  Loading,
  RelativeTime,
  Time,
} from "../components/small.js";
import { usePage } from "../page-context.js";
import { useResource } from "../use-resource.js";
import type { ViewProps } from "../view.js";
import { deliveryPath, type SentDelivery, WEBHOOK_PARTS, webhookPath } from "./calls.js";
import { buildCurlCommand, findSignatureHeader } from "./curl.js";
import { EventId } from "./delivery-name.js";
import { EndpointUrl } from "./list.js";
import { ResendButton } from "./resend.js";
import { VerificationSnippet } from "./secret.js";
import { describeAttempt, describeReason, getNextAttempt, labelState } from "./wording.js";

const REFRESH_MS = 5_000;

/** True if there was a response and the log has none of it. */
const isWithoutExcerpt = ({ kind, excerpt }: AttemptJson): boolean => kind === "http" && !excerpt;

function Attempt({ attempt, number }: { readonly attempt: AttemptJson; readonly number: number }) {
  const isGood = attempt.kind === "delivered";
  return (
    <li>
      <h3>
        Attempt {number}
        {attempt.isExtra && ", on request"}
      </h3>
      <p>
        <span class={isGood ? "result good" : "result bad"}>{describeAttempt(attempt)}</span>
        {", "}
        <Time at={attempt.at} /> (<RelativeTime at={attempt.at} />)
      </p>
      {attempt.excerpt && (
        <>
          <p class="quiet">The endpoint answered:</p>
          <CodeBlock text={attempt.excerpt} label="answer" />
        </>
      )}
      {isWithoutExcerpt(attempt) && (
        <p class="quiet">Its answer was empty, or is not kept or not shown to you.</p>
      )}
    </li>
  );
}

interface Found {
  readonly webhook: WebhookWithStatsJson;
  readonly delivery: DeliveryJson;
}

/** All attempts in order, and the next one that is planned. */
function Attempts({ webhook, delivery: { attempts, nextAttemptAt } }: Found) {
  const next = getNextAttempt(webhook, nextAttemptAt);
  return (
    <section aria-label="Attempts">
      <h2>Attempts</h2>
      {attempts.length === 0 && <p>None yet.</p>}
      <ol class="attempts">
        {attempts.map((attempt, index) => (
          <Attempt key={index + 1} attempt={attempt} number={index + 1} />
        ))}
      </ol>
      {next !== null && (
        <p>
          Next attempt planned: <Time at={next} /> (<RelativeTime at={next} />)
        </p>
      )}
      {attempts.some(isWithoutExcerpt) && (
        <p class="quiet">
          The beginning of an answer is kept if the service sets <code>delivery.excerptCharacters</code>.
        </p>
      )}
    </section>
  );
}

/** What an attempt sends, with a command that sends it again by hand. */
function SentRequest({ path }: { readonly path: string }) {
  const { session } = usePage();
  const [isBodyShown, setBodyShown] = useState(false);
  const { data, error } = useResource(
    (api) => api.get<DeliveryRequestJson>(`${path}/request`, { include: isBodyShown ? "body" : undefined }),
    [path, isBodyShown],
  );
  return (
    <section aria-label="Request">
      <h2>Request</h2>
      {error !== undefined && <ErrorMessage error={error} />}
      {data !== undefined && (
        <>
          <pre class="panel">
            <code>
              {[
                `${data.method} ${data.url}`,
                ...Object.entries(data.headers).map(([name, value]) => `${name}: ${value}`),
              ].join("\n")}
            </code>
          </pre>
          <p class="quiet">
            {data.bytes.toLocaleString("en-GB")} bytes of JSON. Signature and time are those of each attempt.
          </p>
          {data.body !== null && <CodeBlock text={data.body} label="body" />}
          {session.canReadRecords && data.body === null && (
            <button type="button" class="plain" onClick={() => setBodyShown(true)}>
              Show the body
            </button>
          )}
          {!session.canReadRecords && (
            <p class="quiet">The body contains the record. It is not shown to you.</p>
          )}
          <details class="panel">
            <summary>Send it yourself with curl</summary>
            {data.body === null && (
              <p>
                Put the body into <code>notification.json</code> first.
              </p>
            )}
            <CodeBlock text={buildCurlCommand(data, findSignatureHeader(data))} label="command" />
          </details>
          <details class="panel">
            <summary>Verify its signature</summary>
            <VerificationSnippet />
          </details>
        </>
      )}
    </section>
  );
}

function Details({
  webhook,
  delivery,
  onSent,
}: Found & { readonly onSent: (sent: SentDelivery) => Promise<void> }) {
  const { label, tone } = labelState({ ...delivery, attemptCount: delivery.attempts.length });
  return (
    <>
      <p>
        <Badge tone={tone}>{label}</Badge> {describeReason(delivery.reason)}
      </p>
      <ResendButton
        delivery={delivery}
        isDisabled={webhook.status === "DISABLED"}
        kind={delivery.state === "delivered" ? "plain" : "primary"}
        onSent={onSent}
      />
      <Facts
        rows={[
          [
            "Endpoint",
            <a key="endpoint" href={`#/webhooks/${webhook.id}`}>
              <EndpointUrl url={webhook.url} />
            </a>,
          ],
          ["Record", delivery.subject],
          ["Event ID", <EventId key="event" id={delivery.eventId} />],
          ["Created", <Time key="created" at={delivery.createdAt} />],
          ["Completed", delivery.endedAt !== null && <Time at={delivery.endedAt} />],
        ]}
      />
      <Attempts webhook={webhook} delivery={delivery} />
      <SentRequest path={deliveryPath(webhook.id, delivery.id)} />
    </>
  );
}

export function DeliveryView({ params: { webhookId = "", deliveryId = "" } }: ViewProps) {
  const { go } = usePage();
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
    else go(`/webhooks/${webhookId}/deliveries/${encodeURIComponent(id)}`);
  };
  return (
    <>
      <p>
        <a href={`#/webhooks/${webhookId}/deliveries`}>All deliveries of this webhook</a>
      </p>
      <Heading title={data === undefined ? "Delivery" : `Delivery of ${data.delivery.type}`} />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && <Details {...data} onSent={onSent} />}
    </>
  );
}
