/** The settings of a webhook as cards: its endpoint, event types, secret, and what ends it. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { EventTypesJson } from "../../shapes.js";
import { ActionButton } from "../components/button.js";
import { FieldError, Form, TextField } from "../components/form.js";
import { ErrorMessage, Loading } from "../components/small.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import { updateWebhook, webhookPath } from "./calls.js";
import { EnableButton, type TabProps, useDisable } from "./endpoint-actions.js";
import { EndpointOptions } from "./endpoint-options.js";
import { type EventTypeChoice, EventTypePicker, fromChoice, toChoice } from "./event-type-picker.js";
import { NameField, URL_LENGTH } from "./register.js";
import { Rotation } from "./secret.js";
import { splitUrl } from "./wording.js";

const isSameChoice = (a: EventTypeChoice, b: EventTypeChoice): boolean =>
  fromChoice(a).join() === fromChoice(b).join();

/** Changes the URL and the name. Sends only what was changed. */
function EndpointForm({ webhook: { id, url, description }, reload }: TabProps) {
  const { api, say } = usePage();
  const [typed, setTyped] = useState(url);
  const [name, setName] = useState(description ?? "");
  const act = async (): Promise<void> => {
    const changes = {
      ...(typed.trim() !== url && { url: typed.trim() }),
      ...(name.trim() !== (description ?? "") && { description: name.trim() || null }),
    };
    if (Object.keys(changes).length === 0) return say(texts.settings.nothingToSave);
    await updateWebhook(api, id, changes);
    await reload();
    say("url" in changes ? texts.settings.moved : texts.settings.saved);
  };
  return (
    <Form label={texts.settings.endpoint} submit={texts.common.save} act={act}>
      <TextField
        label={texts.register.url}
        names={["url"]}
        hint={texts.settings.urlHint}
        type="url"
        class="wide"
        autocomplete="off"
        maxLength={URL_LENGTH}
        value={typed}
        onChange={setTyped}
      />
      <NameField value={name} onChange={setName} />
    </Form>
  );
}

/** Changes the event types. */
function EventTypesForm({ webhook: { id, stats }, reload, catalogue }: TabProps & { catalogue: string[] }) {
  const { api, say } = usePage();
  const [choice, setChoice] = useState(() => toChoice(stats.eventTypes));
  const act = async (): Promise<void> => {
    if (isSameChoice(choice, toChoice(stats.eventTypes))) return say(texts.settings.nothingToSave);
    await updateWebhook(api, id, { event_types: fromChoice(choice) });
    await reload();
    say(texts.settings.newTypes);
  };
  return (
    <Form label={texts.settings.eventTypes} submit={texts.settings.saveEventTypes} act={act}>
      <EventTypePicker catalogue={catalogue} choice={choice} onChange={setChoice} />
    </Form>
  );
}

/** Disables and enables the webhook. Disabling asks first, since events are missed meanwhile. */
function StatusPanel({ webhook, reload }: TabProps) {
  const [disable, question] = useDisable({ webhook, reload });
  const isEnabled = webhook.status === "ENABLED";
  return (
    <div class="danger-row">
      <div>
        <h3>{isEnabled ? texts.settings.disable : texts.settings.enable}</h3>
        <p>{isEnabled ? texts.settings.disableExplanation : texts.settings.disabledExplanation}</p>
      </div>
      {isEnabled ? (
        <ActionButton kind="danger" act={disable}>
          {texts.webhook.disable}
        </ActionButton>
      ) : (
        <EnableButton webhook={webhook} reload={reload} />
      )}
      {question}
    </div>
  );
}

/** Host names have at most 253 characters; a port follows. */
const HOST_LENGTH = 260;

/** Deletes the webhook once its host was typed: its deliveries are lost. */
function DeleteForm({ webhook: { id, url }, close }: { webhook: TabProps["webhook"]; close: () => void }) {
  const { api, say, go } = usePage();
  const [typed, setTyped] = useState("");
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  const { host } = splitUrl(url);
  const remove = async (): Promise<void> => {
    if (typed.trim().toLowerCase() !== host.toLowerCase())
      throw new FieldError("host", texts.settings.otherHost);
    await api.send("DELETE", webhookPath(id));
    say(texts.settings.deleted);
    go("/webhooks");
  };
  return (
    <div ref={form}>
      <Form
        label={texts.settings.deleteConfirm}
        submit={texts.settings.deleteConfirm}
        kind="danger"
        act={remove}
        more={
          <button type="button" class="plain" onClick={close}>
            {texts.common.cancel}
          </button>
        }
      >
        <TextField
          label={texts.settings.typeToDelete({ host })}
          names={["host"]}
          class="wide"
          autocomplete="off"
          maxLength={HOST_LENGTH}
          value={typed}
          onChange={setTyped}
        />
      </Form>
    </div>
  );
}

function DeletePanel({ webhook }: { webhook: TabProps["webhook"] }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <div class="danger-row">
        <div>
          <h3>{texts.settings.delete}</h3>
          <p>{texts.settings.deleteExplanation}</p>
        </div>
        {!isAsked && (
          <button type="button" class="danger" onClick={() => setAsked(true)}>
            {texts.webhook.delete}
          </button>
        )}
      </div>
      {isAsked && <DeleteForm webhook={webhook} close={() => setAsked(false)} />}
    </>
  );
}

export function SettingsTab({ webhook, reload }: TabProps) {
  const { data, error } = useResource((api) => api.get<EventTypesJson>("v1/event-types"), []);
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (data === undefined) return <Loading />;
  const tab = { webhook, reload };
  return (
    <div class="narrow">
      <section class="card" aria-labelledby="endpoint-heading">
        <h2 id="endpoint-heading">{texts.settings.endpoint}</h2>
        <EndpointForm {...tab} />
      </section>
      <section class="card" aria-labelledby="types-heading">
        <h2 id="types-heading">{texts.settings.eventTypes}</h2>
        <EventTypesForm {...tab} catalogue={data.eventTypes} />
      </section>
      <EndpointOptions {...tab} />
      <section class="card" aria-labelledby="secret-heading">
        <h2 id="secret-heading">{texts.settings.secret}</h2>
        <Rotation {...tab} />
      </section>
      <section class="card danger-zone" aria-labelledby="danger-heading">
        <h2 id="danger-heading">{texts.settings.danger}</h2>
        <StatusPanel {...tab} />
        <DeletePanel {...tab} />
      </section>
    </div>
  );
}
