/** The audit log of the account: who did what to its webhooks, and when. */

import type { AuditEntryJson, AuditPageJson, NamedWebhookJson } from "../../shapes.js";
import { ErrorMessage, Heading, Loading, RelativeTime } from "../components/small.js";
import { type Column, PagerButtons, Table, usePager } from "../components/table.js";
import { useResource } from "../use-resource.js";
import { deliveryLink, readSubscriptions } from "./calls.js";
import { EndpointName } from "./list.js";
import { describeAction, shortenId } from "./wording.js";

const REFRESH_MS = 10_000;

type ActivityRow = AuditEntryJson & {
  readonly key: string;
  /** `undefined`: the webhook was deleted. */
  readonly webhook: NamedWebhookJson | undefined;
};

function Actor({ actor }: ActivityRow) {
  if (actor.type === "key") return <>Key {actor.id}</>;
  return actor.type === "host" ? <>The application</> : <span class="quiet">Automatic</span>;
}

function ActivityTarget({ webhookId, deliveryId, webhook }: ActivityRow) {
  if (webhook === undefined) return <code title={webhookId}>{shortenId(webhookId)}</code>;
  const link =
    deliveryId === undefined ? `#/webhooks/${webhookId}` : deliveryLink({ webhookId, id: deliveryId });
  return (
    <a href={link} class="address">
      <EndpointName webhook={webhook} />
    </a>
  );
}

const ACTIVITY_COLUMNS: readonly Column<ActivityRow>[] = [
  { name: "Action", cell: (row) => describeAction(row) },
  { name: "Webhook", cell: (row) => <ActivityTarget {...row} /> },
  { name: "By", cell: (row) => <Actor {...row} /> },
  { name: "When", cell: ({ at }) => <RelativeTime at={at} /> },
];

const ENTRIES_PER_PAGE = 50;

/** The audit log of the account. */
export function Activity() {
  const pager = usePager();
  const { data, error } = useResource(
    async (api) => {
      const [page, webhooks] = await Promise.all([
        api.get<AuditPageJson>("v1/audit", { cursor: pager.cursor, limit: ENTRIES_PER_PAGE }),
        readSubscriptions(api),
      ]);
      const byId = new Map(webhooks.map((webhook) => [webhook.id, webhook]));
      const rows = page.entries.map((entry, index) => ({
        ...entry,
        key: `${entry.at} ${index}`,
        webhook: byId.get(entry.webhookId),
      }));
      return { rows, next: page.next };
    },
    [pager.cursor],
    REFRESH_MS,
  );
  return (
    <>
      <Heading title="Activity" />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data?.rows.length === 0 && <p>Nothing has been done yet.</p>}
      {data !== undefined && data.rows.length > 0 && (
        <>
          <Table
            caption="What was done to the webhooks of the account"
            columns={ACTIVITY_COLUMNS}
            header="Action"
            rows={data.rows}
          />
          <PagerButtons pager={pager} next={data.next} labels={["Newer", "Older"]} />
        </>
      )}
    </>
  );
}
