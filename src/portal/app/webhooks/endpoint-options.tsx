/** The settings of an endpoint that the service may offer: its filter, secret headers, and rate. */

import { useState } from "preact/hooks";
import type { WebhookWithStatsJson } from "../../shapes.js";
import { Field, FieldError, Form, FormButton, TextField } from "../components/form.js";
import { usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { updateWebhook } from "./calls.js";
import type { TabProps } from "./endpoint-actions.js";

/** The longest text that a form takes: more than the largest filter, or ten headers. */
const MAX_TEXT = 20_000;

/** The largest rate that the service takes. */
const MAX_RATE = 10_000;

function TextArea({
  label,
  name,
  hint,
  value,
  onChange,
}: {
  label: string;
  /** The name of the field, as the API calls it. */
  name: string;
  hint: string;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} names={[name]} hint={hint}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="wide code"
          rows={4}
          spellcheck={false}
          autocomplete="off"
          maxLength={MAX_TEXT}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Returns a function that changes the webhook, reads it again and says so. */
function useChange({ webhook: { id }, reload }: TabProps) {
  const { api, say } = usePage();
  return async (change: Parameters<typeof updateWebhook>[2]): Promise<void> => {
    await updateWebhook(api, id, change);
    await reload();
    say(texts.settings.saved);
  };
}

function parseFilter(text: string): object | null {
  if (text.trim() === "") return null;
  try {
    return JSON.parse(text) as object;
  } catch {
    throw new FieldError("filter", texts.options.noJson);
  }
}

function FilterForm(tab: TabProps) {
  const { filter } = tab.webhook;
  const [text, setText] = useState(filter == null ? "" : JSON.stringify(filter, null, 2));
  const change = useChange(tab);
  const words = texts.options;
  return (
    <Form
      label={words.filter}
      submit={words.saveFilter}
      act={async () => change({ filter: parseFilter(text) })}
    >
      <TextArea label={words.filter} name="filter" hint={words.filterHint} value={text} onChange={setText} />
    </Form>
  );
}

/** Reads `Name: value` lines. */
function parseHeaders(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new FieldError("headers", texts.options.noHeaders);
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new FieldError("headers", texts.options.noHeader);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
  const names = headers.map(([name]) => name.toLowerCase());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new FieldError("headers", texts.options.headerTwice({ name: twice }));
  return Object.fromEntries(headers);
}

/** Shows the names of the headers. Their values are secret: they are typed, and never shown. */
function HeadersForm(tab: TabProps) {
  const { header_names: names = [] } = tab.webhook;
  const [text, setText] = useState("");
  const change = useChange(tab);
  const words = texts.options;
  const save = async (headers: Record<string, string> | null): Promise<void> => {
    await change({ headers });
    setText("");
  };
  return (
    <Form
      label={words.headers}
      submit={words.saveHeaders}
      act={async () => save(parseHeaders(text))}
      more={names.length > 0 && <FormButton act={() => save(null)}>{words.removeHeaders}</FormButton>}
    >
      <p>{names.length === 0 ? words.noneSet : words.headersSet({ names: names.join(", ") })}</p>
      <TextArea
        label={words.headers}
        name="headers"
        hint={words.headersHint}
        value={text}
        onChange={setText}
      />
    </Form>
  );
}

function RateForm(tab: TabProps) {
  const { per_second: rate } = tab.webhook;
  const [text, setText] = useState(rate == null ? "" : String(rate));
  const change = useChange(tab);
  const words = texts.options;
  const save = async (): Promise<void> => {
    const typed = text.trim();
    const isRate = /^\d{1,5}$/.test(typed) && Number(typed) >= 1 && Number(typed) <= MAX_RATE;
    if (typed !== "" && !isRate) throw new FieldError("per_second", words.noRate({ most: MAX_RATE }));
    await change({ per_second: typed === "" ? null : Number(typed) });
  };
  return (
    <Form label={words.rate} submit={words.saveRate} act={save}>
      <TextField
        label={words.rate}
        names={["per_second"]}
        hint={words.rateHint({ most: MAX_RATE })}
        inputMode="numeric"
        autocomplete="off"
        maxLength={6}
        value={text}
        onChange={setText}
      />
    </Form>
  );
}

/** True if the service offers any of the settings. */
const isAnyOffered = ({ filter, header_names, per_second }: WebhookWithStatsJson): boolean =>
  filter !== undefined || header_names !== undefined || per_second !== undefined;

/** A card with the settings that the service offers. */
export function EndpointOptions(tab: TabProps) {
  const { filter, header_names, per_second } = tab.webhook;
  if (!isAnyOffered(tab.webhook)) return null;
  return (
    <section class="card" aria-labelledby="options-heading">
      <h2 id="options-heading">{texts.options.title}</h2>
      {filter !== undefined && <FilterForm {...tab} />}
      {header_names !== undefined && <HeadersForm {...tab} />}
      {per_second !== undefined && <RateForm {...tab} />}
    </section>
  );
}

/** The settings that are set, as facts. */
export const listOptions = ({
  filter,
  header_names: names = [],
  per_second: rate,
}: WebhookWithStatsJson): [term: string, value: string | false][] => [
  [texts.options.filter, filter == null ? false : JSON.stringify(filter)],
  [texts.options.headers, names.length > 0 && names.join(", ")],
  [texts.options.rate, rate == null ? false : String(rate)],
];
