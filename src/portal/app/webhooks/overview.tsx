/** The first tab of a webhook: its health, its numbers, its timeline, and a test. */

import { useState } from "preact/hooks";
import type { EventTypesJson } from "../../shapes.js";
import { ActionButton } from "../components/button.js";
import { SelectField } from "../components/form.js";
import { Facts, RelativeTime } from "../components/small.js";
import { usePage } from "../page-context.js";
import { formatDuration } from "../times.js";
import { useResource } from "../use-resource.js";
import { sendTest } from "./calls.js";
import { DISABLED_REASON, EnableButton, RotationNotice, type TabProps } from "./endpoint-actions.js";
import { describeEventTypes } from "./event-types.js";
import { Timeline } from "./timeline.js";
import {
  describeAttempt,
  describeHealth,
  formatSuccessRate,
  getNextAttempt,
  labelHealth,
  TEST_TYPE,
} from "./wording.js";

/** What to do about an endpoint with a problem, step by step. */
function Repair({ webhook, reload }: TabProps) {
  const label = labelHealth(webhook.stats);
  if (label === "Healthy" || label === "Not tried yet") return null;
  return (
    <ol class="steps">
      <li>
        Look at the answers of your endpoint under{" "}
        <a href={`#/webhooks/${webhook.id}/deliveries`}>Deliveries</a>, and repair it, or correct its URL
        under <a href={`#/webhooks/${webhook.id}/settings`}>Settings</a>.
      </li>
      {label === "Disabled" && (
        <li>
          <EnableButton webhook={webhook} reload={reload} />
        </li>
      )}
      <li>Send a test.</li>
      <li>
        Retry all failed deliveries, under <a href={`#/webhooks/${webhook.id}/deliveries`}>Deliveries</a>.
        Pending ones are retried automatically.
      </li>
    </ol>
  );
}

/** Sends a test, and shows its result in place. */
function TestPanel({ webhook, reload }: TabProps) {
  const { api, say } = usePage();
  const { data } = useResource((reader) => reader.get<EventTypesJson>("v1/event-types"), []);
  const [type, setType] = useState(TEST_TYPE);
  const [result, setResult] = useState<{ readonly isGood: boolean; readonly text: string }>();
  const act = async (): Promise<void> => {
    setResult(undefined);
    say("");
    const { attempt } = await sendTest(api, webhook.id, type === TEST_TYPE ? undefined : type);
    setResult(
      attempt === undefined
        ? {
            isGood: false,
            text: "The test still waits for its attempt. Its result will be under Deliveries.",
          }
        : { isGood: attempt.kind === "delivered", text: describeAttempt(attempt) },
    );
    await reload();
  };
  return (
    <section aria-label="Test">
      <h2>Test</h2>
      <p>A test is signed like any delivery and contains no record. It is attempted once.</p>
      <div class="row">
        <SelectField
          label="Event type of the test"
          value={type}
          onChange={setType}
          options={[TEST_TYPE, ...(data?.eventTypes ?? [])].map((name) => [name, name] as const)}
        />
        <ActionButton
          act={act}
          busyLabel="Sending …"
          disabledReason={webhook.status === "DISABLED" ? DISABLED_REASON : undefined}
        >
          Send test
        </ActionButton>
      </div>
      <p role="status" class={result === undefined ? "" : `outcome ${result.isGood ? "done" : "failed"}`}>
        {result?.text}
      </p>
    </section>
  );
}

export function OverviewTab({ webhook, reload }: TabProps) {
  const { zone } = usePage();
  const { stats } = webhook;
  const { lastDay, lastAttempt } = stats;
  const next = getNextAttempt(webhook, stats.nextAttemptAt);
  return (
    <>
      <p>{describeHealth(stats, zone)}</p>
      <Repair webhook={webhook} reload={reload} />
      <RotationNotice webhook={webhook} reload={reload} />
      <Facts
        rows={[
          [
            "Success, last 24 h",
            lastDay.attempts > 0 && `${formatSuccessRate(lastDay)} of ${lastDay.attempts} attempts`,
          ],
          ["Average time", lastDay.averageMs !== null && formatDuration(lastDay.averageMs)],
          ["Pending", stats.pending],
          ["Failed", stats.failed],
          ["Delivered", stats.delivered],
          ["Withheld", stats.withheld > 0 && stats.withheld],
          ["Next attempt", next !== null && <RelativeTime at={next} />],
          [
            "Last attempt",
            lastAttempt !== null && (
              <>
                {describeAttempt(lastAttempt)}, <RelativeTime at={lastAttempt.at} />
              </>
            ),
          ],
          ["Event types", describeEventTypes(stats.eventTypes)],
          ["Created", <RelativeTime key="created" at={webhook.createdDate} />],
        ]}
      />
      {webhook.metadata !== null && (
        <section aria-label="Metadata">
          <h2>Metadata</h2>
          <Facts rows={Object.entries(webhook.metadata)} />
        </section>
      )}
      <TestPanel webhook={webhook} reload={reload} />
      <Timeline webhook={webhook} />
    </>
  );
}
