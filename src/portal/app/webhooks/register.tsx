/** Adds an endpoint, and shows its secret once. */

import { useState } from "preact/hooks";
import type { CreatedWebhookJson, EventTypesJson } from "../../shapes.js";
import { Form, TextField } from "../components/form.js";
import { CodeBlock, ErrorMessage, Heading, Loading } from "../components/small.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import { type EventTypeChoice, EventTypePicker, fromChoice } from "./event-type-picker.js";
import { SecretPanel, VerificationSnippet } from "./secret.js";

/** The longest URL that the service accepts. */
export const URL_LENGTH = 2_048;

/** A field for the description of a webhook, which the page shows as its name. */
export function NameField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <TextField
      label={texts.register.name}
      names={["description"]}
      hint={texts.register.nameHint}
      class="wide"
      autocomplete="off"
      maxLength={256}
      value={value}
      onChange={onChange}
    />
  );
}

function Added({ webhook, secret }: CreatedWebhookJson) {
  return (
    <>
      <Heading title={texts.register.added} />
      <div class="narrow">
        <div class="card">
          <SecretPanel secret={secret} isFirst />
        </div>
        <section class="card" aria-labelledby="code-heading">
          <h2 id="code-heading">{texts.register.verify}</h2>
          <VerificationSnippet />
        </section>
        <p>
          <a class="button" href={`#/webhooks/${webhook.id}`}>
            {texts.register.goToWebhook}
          </a>
        </p>
      </div>
    </>
  );
}

export function Register() {
  const { api, say } = usePage();
  const [url, setUrl] = useState("");
  const [name, setName] = useState("");
  const [choice, setChoice] = useState<EventTypeChoice>(null);
  const [added, setAdded] = useState<CreatedWebhookJson>();
  const { data, error } = useResource((reader) => reader.get<EventTypesJson>("v1/event-types"), []);
  if (added !== undefined) return <Added {...added} />;

  const act = async (): Promise<void> => {
    const body = {
      url: url.trim(),
      ...(name.trim() !== "" && { description: name.trim() }),
      ...(choice !== null && { event_types: fromChoice(choice) }),
    };
    setAdded(await api.send<CreatedWebhookJson>("POST", "v1/webhooks", body));
    say(texts.register.addedStatus);
  };
  return (
    <>
      <Heading title={texts.register.add} />
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && (
        <div class="narrow">
          <Form label={texts.register.add} submit={texts.register.add} act={act}>
            <section class="card" aria-labelledby="endpoint-heading">
              <h2 id="endpoint-heading">{texts.register.endpoint}</h2>
              <TextField
                label={texts.register.url}
                names={["url"]}
                hint={texts.register.urlHint}
                type="url"
                class="wide"
                autocomplete="off"
                placeholder="https://hooks.example.com/events"
                maxLength={URL_LENGTH}
                value={url}
                onChange={setUrl}
              />
              <NameField value={name} onChange={setName} />
            </section>
            <section class="card" aria-labelledby="types-heading">
              <h2 id="types-heading">{texts.eventTypes.legend}</h2>
              <EventTypePicker catalogue={data.eventTypes} choice={choice} onChange={setChoice} />
            </section>
          </Form>
        </div>
      )}
    </>
  );
}

/** A receiver in a few lines, for whoever has no endpoint yet. */
const RECEIVER = [
  'import { createServer } from "node:http";',
  'import { nodeAdapter } from "postbell/node";',
  'import { createReceiver } from "postbell/receiver";',
  "",
  "const receiver = createReceiver({",
  '  secrets: "whsec_…", // shown once, when you add the endpoint',
  "  onEvent: (notification) => queue.push(notification), // a queue of your own",
  "});",
  "createServer(nodeAdapter(receiver)).listen(3000);",
].join("\n");

/** What stands in place of an empty list. */
export const FirstSteps = () => (
  <section class="card narrow" aria-labelledby="first">
    <h2 id="first">{texts.register.noneYet}</h2>
    <p>{texts.register.explanation}</p>
    <ol>
      <li>{texts.register.step1}</li>
      <li>{texts.register.step2({ link: <a href="#/webhooks/new">{texts.register.firstLink}</a> })}</li>
      <li>{texts.register.step3}</li>
    </ol>
    <CodeBlock text={RECEIVER} label={texts.register.receiver} />
  </section>
);
