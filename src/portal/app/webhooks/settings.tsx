/** The settings of a webhook: its URL and event types, its secret, its status, and deleting it. */

import { useState } from "preact/hooks";
import type { EventTypesJson, RotatedSecretJson } from "../../shapes.js";
import { ActionButton, useConfirmation } from "../components/button.js";
import { Form, SelectField, TextField } from "../components/form.js";
import { ErrorMessage, Loading } from "../components/small.js";
import { usePage } from "../page-context.js";
import { formatTime, nameZone } from "../times.js";
import { useResource } from "../use-resource.js";
import { updateWebhook, webhookPath } from "./calls.js";
import { EnableButton, RotationNotice, type TabProps } from "./endpoint-actions.js";
import { type EventTypeChoice, EventTypePicker, fromChoice, toChoice } from "./event-type-picker.js";
import { NameField, URL_LENGTH } from "./register.js";
import { SecretPanel } from "./secret.js";

const isSameChoice = (a: EventTypeChoice, b: EventTypeChoice): boolean =>
  fromChoice(a).join() === fromChoice(b).join();

/** Changes the URL, the name and the event types. Sends only what was changed. */
function EndpointForm({
  webhook: { id, url, description, stats },
  reload,
  catalogue,
}: TabProps & { readonly catalogue: readonly string[] }) {
  const { api, say } = usePage();
  const [typed, setTyped] = useState(url);
  const [name, setName] = useState(description ?? "");
  const [choice, setChoice] = useState(() => toChoice(stats.eventTypes));
  const act = async (): Promise<void> => {
    const changes = {
      ...(typed.trim() !== url && { url: typed.trim() }),
      ...(name.trim() !== (description ?? "") && { description: name.trim() || null }),
      ...(!isSameChoice(choice, toChoice(stats.eventTypes)) && { event_types: fromChoice(choice) }),
    };
    if (Object.keys(changes).length === 0) return say("There is nothing to save.");
    await updateWebhook(api, id, changes);
    await reload();
    const effects = [
      "url" in changes && "Pending deliveries go to the new URL; the failure timer restarts.",
      "event_types" in changes && "New events are chosen by the new types.",
    ];
    say(["Saved.", ...effects.filter((effect) => effect !== false)].join(" "));
  };
  return (
    <Form label="Endpoint" submit="Save" act={act}>
      <TextField
        label="Endpoint URL"
        names={["url"]}
        hint="Pending deliveries go to the new URL; the failure timer restarts."
        type="url"
        class="wide"
        autocomplete="off"
        maxLength={URL_LENGTH}
        value={typed}
        onChange={setTyped}
      />
      <NameField value={name} onChange={setName} />
      <EventTypePicker catalogue={catalogue} choice={choice} onChange={setChoice} />
    </Form>
  );
}

const OVERLAPS: readonly (readonly [seconds: string, label: string])[] = [
  ["86400", "24 hours"],
  ["3600", "1 hour"],
  ["604800", "7 days"],
  ["0", "Not at all: the old secret has leaked"],
];

function RotationForm({ webhook, reload }: TabProps) {
  const { api, say, zone } = usePage();
  const [overlap, setOverlap] = useState("86400");
  const [rotated, setRotated] = useState<RotatedSecretJson>();
  const isImmediate = overlap === "0";
  const isPending = webhook.stats.rotatesAt !== null;
  const act = async (): Promise<void> => {
    const body = { overlap_seconds: Number(overlap) };
    const created = await api.send<RotatedSecretJson>("POST", `${webhookPath(webhook.id)}/rotate`, body);
    setRotated(created);
    say(
      isImmediate
        ? "There is a new secret, and it signs from now on."
        : `There is a new secret. The old one signs until ${formatTime(created.rotatesAt, zone)} ${nameZone(zone)}.`,
    );
    await reload();
  };
  return (
    <section aria-label="Signing secret">
      <h2>Signing secret</h2>
      {rotated !== undefined && (
        <SecretPanel secret={rotated.secret} {...(isPending && { rotatesAt: rotated.rotatesAt })} />
      )}
      <RotationNotice webhook={webhook} reload={reload} />
      {isPending && (
        <p>
          If you rotate again now, a further secret takes the place of the one that waits, and the old one
          continues to sign.
        </p>
      )}
      <Form label="Rotate the secret" submit="Rotate the secret" kind="plain" act={act}>
        <SelectField
          label="The old secret continues to sign for"
          names={["overlap_seconds"]}
          value={overlap}
          onChange={setOverlap}
          options={OVERLAPS}
          hint={
            isImmediate
              ? "The new secret signs at once. Until your endpoint has it, it refuses every delivery; they are retried."
              : "The new secret begins to sign after this time. Until then your endpoint must accept both."
          }
        />
      </Form>
    </section>
  );
}

function StatusPanel({ webhook, reload }: TabProps) {
  const { api, say } = usePage();
  const disable = async (): Promise<void> => {
    await updateWebhook(api, webhook.id, { status: "DISABLED" });
    await reload();
    say("The webhook was disabled.");
  };
  const isEnabled = webhook.status === "ENABLED";
  return (
    <section aria-label="Status">
      <h2>Status</h2>
      <p>
        {isEnabled
          ? "The webhook is enabled. While it is disabled, nothing is sent, and new events create no deliveries; you can retry them once it is enabled again."
          : "The webhook is disabled. Nothing is sent."}
      </p>
      {isEnabled ? (
        <ActionButton act={disable}>Disable</ActionButton>
      ) : (
        <EnableButton webhook={webhook} reload={reload} />
      )}
    </section>
  );
}

function DeletePanel({ webhook: { id } }: TabProps) {
  const { api, say, go } = usePage();
  const [ask, question] = useConfirmation();
  const remove = async (): Promise<void> => {
    const isConfirmed = await ask({
      title: "Delete this webhook?",
      explanation: "Its deliveries are deleted with it, also those that are pending. This cannot be undone.",
      confirm: "Delete the webhook",
    });
    if (!isConfirmed) return;
    await api.send("DELETE", webhookPath(id));
    say("The webhook was deleted.");
    go("/webhooks");
  };
  return (
    <section aria-label="Delete">
      <h2>Delete</h2>
      <ActionButton kind="danger" act={remove}>
        Delete …
      </ActionButton>
      {question}
    </section>
  );
}

export function SettingsTab({ webhook, reload }: TabProps) {
  const { data, error } = useResource((api) => api.get<EventTypesJson>("v1/event-types"), []);
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (data === undefined) return <Loading />;
  const tab = { webhook, reload };
  return (
    <>
      <h2>Endpoint</h2>
      <EndpointForm {...tab} catalogue={data.eventTypes} />
      <RotationForm {...tab} />
      <StatusPanel {...tab} />
      <DeletePanel {...tab} />
    </>
  );
}
