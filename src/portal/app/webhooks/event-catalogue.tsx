/** All event types by record, with a sample of each, the webhooks that get it, and a test. */

import { useState } from "preact/hooks";
import type { CatalogueJson, EventTypeJson, SubscriptionPageJson } from "../../shapes.js";
import { Form, SelectField } from "../components/form.js";
import { CodeBlock, ErrorMessage, Facts, Heading, Loading } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import { readSubscriptions, sendTest } from "./calls.js";
import { formatJson, Sample, SearchField } from "./event-type-picker.js";
import {
  type EventTypeGroup,
  findReceivers,
  groupEventTypes,
  searchEventTypes,
  sortByOwner,
} from "./event-types.js";
import { EndpointName } from "./list.js";
import { describeAttempt, nameWebhook } from "./wording.js";

type Subscription = SubscriptionPageJson["webhooks"][number];

function Receivers({ receivers }: { receivers: Subscription[] }) {
  if (receivers.length === 0) return <>{texts.eventTypes.noWebhook}</>;
  return (
    <ul>
      {receivers.map((webhook) => (
        <li key={webhook.id}>
          <a href={`#/webhooks/${webhook.id}`}>
            <EndpointName webhook={webhook} />
          </a>
          {webhook.status === "DISABLED" && texts.eventTypes.disabledHook}
        </li>
      ))}
    </ul>
  );
}

/** Sends a test of a type to an endpoint that the visitor chooses. Its result is announced. */
function TestForm({ type, webhooks }: { type: string; webhooks: Subscription[] }) {
  const { api, say } = usePage();
  const signal = useLeaveSignal();
  const [chosen, setChosen] = useState(webhooks[0]?.id ?? "");
  const act = async (): Promise<void> => {
    const { attempt } = await sendTest(api.within(signal), chosen, type);
    if (attempt === undefined) say(texts.endpoint.testWaits);
    else say(describeAttempt(attempt), attempt.kind === "delivered" ? "done" : "failed");
  };
  if (webhooks.length === 0) return <p class="quiet">{texts.eventTypes.noneToTest}</p>;
  return (
    <Form
      label={texts.eventTypes.testOf({ type })}
      submit={texts.endpoint.sendTest}
      kind="plain"
      isRow
      act={act}
    >
      <SelectField
        label={texts.eventTypes.sendTo}
        names={["event_type"]}
        value={chosen}
        onChange={setChosen}
        options={webhooks.map((webhook) => [webhook.id, nameWebhook(webhook).name] as const)}
      />
    </Form>
  );
}

/** The enabled endpoints, those first that get the type. */
const listTestable = (subscriptions: Subscription[], receivers: Subscription[]) =>
  [...receivers, ...subscriptions.filter((webhook) => !receivers.includes(webhook))].filter(
    ({ status }) => status === "ENABLED",
  );

/** `Patient or Group`; `undefined` for an event without a FHIR resource. */
const nameRecords = (types: readonly string[] | null): string | undefined =>
  types?.reduce((before, last) => texts.eventTypes.or({ types: before, last }));

function EventType({
  details: { type, description, resourceTypes, schema },
  subscriptions,
}: {
  details: EventTypeJson;
  subscriptions: Subscription[];
}) {
  const [isOpen, setOpen] = useState(false);
  const receivers = findReceivers(subscriptions, type);
  return (
    <details class="event-type" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>{type}</code> <span class="quiet">{description ?? nameRecords(resourceTypes)}</span>
        <span class="quiet small">{texts.webhooks.endpointCount({ count: receivers.length })}</span>
      </summary>
      {isOpen && (
        <>
          <Facts
            rows={[
              [texts.eventTypes.record, nameRecords(resourceTypes)],
              [texts.eventTypes.sentTo, <Receivers key="to" receivers={receivers} />],
            ]}
          />
          <TestForm type={type} webhooks={listTestable(subscriptions, receivers)} />
          {schema !== null && (
            <>
              <h3>{texts.eventTypes.schema}</h3>
              <CodeBlock text={formatJson(schema)} label={texts.eventTypes.schemaLabel} />
            </>
          )}
          <h3>{texts.eventTypes.sample}</h3>
          <p class="quiet">{texts.eventTypes.sampleNote}</p>
          <Sample type={type} />
        </>
      )}
    </details>
  );
}

/** True for a group whose events are about FHIR resources: it stands after those of the host. */
const isClinical = (byType: Map<string, EventTypeJson>, { types }: EventTypeGroup): boolean =>
  types.every((type) => byType.get(type)?.resourceTypes !== null);

/** All event types by their record, with a sample of each and the webhooks that get it. */
export function EventTypeCatalogue() {
  const [text, setText] = useState("");
  const { data, error } = useResource(async (api) => {
    const [{ details }, subscriptions] = await Promise.all([
      api.get<CatalogueJson>("v1/event-types", { include: "details" }),
      readSubscriptions(api),
    ]);
    return { details: sortByOwner(details), subscriptions };
  }, []);
  const byType = new Map(data?.details.map((each) => [each.type, each]));
  const groups = searchEventTypes(groupEventTypes([...byType.keys()]), text).toSorted(
    (a, b) => Number(isClinical(byType, a)) - Number(isClinical(byType, b)),
  );
  const count = groups.reduce((sum, { types }) => sum + types.length, 0);
  return (
    <>
      <Heading title={texts.views.eventTypes} />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && (
        <div class="catalogue">
          <div class="row">
            <SearchField text={text} onChange={setText} />
            <p class="count" role="status">
              {texts.eventTypes.count({ count })}
            </p>
          </div>
          {count === 0 && <p class="quiet">{texts.eventTypes.noMatch({ text: text.trim() })}</p>}
          {groups.map(({ name, title, types }) => (
            <section key={name} aria-label={title} class="type-rows">
              <h2>{title}</h2>
              {types.map((type) => {
                const details = byType.get(type);
                return (
                  details && <EventType key={type} details={details} subscriptions={data.subscriptions} />
                );
              })}
            </section>
          ))}
        </div>
      )}
    </>
  );
}
