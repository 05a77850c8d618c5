/** All event types, with a sample of each and the webhooks that get it. */

import { useState } from "preact/hooks";
import type { CatalogueJson, EventTypeJson, SubscriptionPageJson } from "../../shapes.js";
import { CodeBlock, ErrorMessage, Facts, Heading, Loading } from "../components/small.js";
import { useResource } from "../use-resource.js";
import { readSubscriptions } from "./calls.js";
import { SearchField } from "./event-type-picker.js";
import { findReceivers } from "./event-types.js";
import { EndpointName } from "./list.js";

function Sample({ type }: { readonly type: string }) {
  const path = `v1/event-types/${encodeURIComponent(type)}/sample`;
  const { data, error } = useResource((api) => api.get<object>(path), [path]);
  if (error !== undefined) return <ErrorMessage error={error} />;
  return data === undefined ? <Loading /> : <CodeBlock text={formatJson(data)} label="sample" />;
}

const formatJson = (value: object): string => JSON.stringify(value, null, 2);

type Subscription = SubscriptionPageJson["webhooks"][number];

function Receivers({ receivers }: { readonly receivers: readonly Subscription[] }) {
  if (receivers.length === 0) return <>No webhook</>;
  return (
    <ul>
      {receivers.map((webhook) => (
        <li key={webhook.id}>
          <a href={`#/webhooks/${webhook.id}`}>
            <EndpointName webhook={webhook} />
          </a>
          {webhook.status === "DISABLED" && " (disabled)"}
        </li>
      ))}
    </ul>
  );
}

function EventType({
  details: { type, description, resourceTypes, schema },
  subscriptions,
}: {
  readonly details: EventTypeJson;
  readonly subscriptions: readonly Subscription[];
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="panel" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>{type}</code> {description !== null && <span class="quiet">{description}</span>}
      </summary>
      {isOpen && (
        <>
          <Facts
            rows={[
              ["Record", resourceTypes?.join(" or ")],
              ["Sent to", <Receivers key="to" receivers={findReceivers(subscriptions, type)} />],
            ]}
          />
          {schema !== null && (
            <>
              <h2>Schema of the data</h2>
              <CodeBlock text={formatJson(schema)} label="schema" />
            </>
          )}
          <h2>Sample</h2>
          <p class="quiet">A test of this type sends this, with other ids and times.</p>
          <Sample type={type} />
        </>
      )}
    </details>
  );
}

/** All event types, with a sample of each and the webhooks that get it. */
export function EventTypeCatalogue() {
  const [text, setText] = useState("");
  const { data, error } = useResource(async (api) => {
    const [{ details }, subscriptions] = await Promise.all([
      api.get<CatalogueJson>("v1/event-types", { include: "details" }),
      readSubscriptions(api),
    ]);
    return { details, subscriptions };
  }, []);
  const wanted = text.trim().toLowerCase();
  const found = data?.details.filter(({ type }) => type.toLowerCase().includes(wanted)) ?? [];
  return (
    <>
      <Heading title="Event types" />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && (
        <>
          <SearchField text={text} onChange={setText} />
          {found.length === 0 && <p class="quiet">No event type contains “{text.trim()}”.</p>}
          {found.map((details) => (
            <EventType key={details.type} details={details} subscriptions={data.subscriptions} />
          ))}
        </>
      )}
    </>
  );
}
