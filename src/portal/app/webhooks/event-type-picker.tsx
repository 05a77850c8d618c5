/** Chooses the event types of a webhook: all of them, all of a record, or single ones. */

import { useId, useState } from "preact/hooks";
import { FieldProblem, SelectField, useFieldProblem } from "../components/form.js";
import { CodeBlock, ErrorMessage, Loading } from "../components/small.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import {
  actionOf,
  countCovered,
  type EventTypeGroup,
  findOtherPatterns,
  groupEventTypes,
  searchEventTypes,
  togglePattern,
  wildcardOf,
} from "./event-types.js";

/** What is chosen; `null`: all types, also future ones. */
export type EventTypeChoice = Set<string> | null;

export const toChoice = (types: readonly string[] | null): EventTypeChoice =>
  types === null || types.includes("*") ? null : new Set(types);

/** The value for the API. It has no `null`: `*` stands for all types. */
export const fromChoice = (choice: EventTypeChoice): string[] =>
  choice === null ? ["*"] : [...choice].sort();

const SEARCH_LENGTH = 60;

/** A checkbox for a pattern, whose label may be shorter than the pattern. */
function Checkbox({
  pattern,
  name = pattern,
  label,
  isChecked,
  isDisabled = false,
  onToggle,
}: {
  pattern: string;
  /** The name for screen readers. */
  name?: string;
  label: string;
  isChecked: boolean;
  isDisabled?: boolean;
  onToggle: () => void;
}) {
  return (
    <label title={pattern}>
      <input
        type="checkbox"
        aria-label={name}
        checked={isChecked}
        disabled={isDisabled}
        onChange={onToggle}
      />{" "}
      {label}
    </label>
  );
}

/** What an event of a type looks like. A test of this type sends it, with other ids and times. */
export function Sample({ type }: { type: string }) {
  const path = `v1/event-types/${encodeURIComponent(type)}/sample`;
  const { data, error } = useResource((api) => api.get<object>(path), [path]);
  if (error !== undefined) return <ErrorMessage error={error} />;
  return data === undefined ? (
    <Loading />
  ) : (
    <CodeBlock text={formatJson(data)} label={texts.eventTypes.sampleLabel} />
  );
}

export const formatJson = (value: object): string => JSON.stringify(value, null, 2);

/** Opens a sample of one of the types of a group. */
function GroupSample({ group }: { group: EventTypeGroup }) {
  const [isOpen, setOpen] = useState(false);
  const [type, setType] = useState(group.types[0] ?? "");
  return (
    <details class="sample" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="small">{texts.eventTypes.lookLike}</summary>
      {isOpen && (
        <>
          {group.types.length > 1 && (
            <SelectField
              label={texts.eventTypes.sampleOf({ title: group.title })}
              value={type}
              onChange={setType}
              options={group.types.map((each) => [each, each] as const)}
            />
          )}
          <Sample type={type} />
        </>
      )}
    </details>
  );
}

/** The types of one record: all of them, or some. */
function Group({
  group,
  chosen,
  onToggle,
}: {
  group: EventTypeGroup;
  chosen: Set<string>;
  onToggle: (pattern: string) => void;
}) {
  const wildcard = wildcardOf(group);
  const isAll = chosen.has(wildcard);
  return (
    <fieldset class="type-group">
      <legend>
        {group.title}{" "}
        <span class="quiet small">
          {texts.eventTypes.countOf({
            count: countCovered(group.types, chosen),
            total: group.types.length,
          })}
        </span>
      </legend>
      <Checkbox
        pattern={wildcard}
        name={texts.eventTypes.allOf({ title: group.title, pattern: wildcard })}
        label={texts.eventTypes.allOfGroup}
        isChecked={isAll}
        onToggle={() => onToggle(wildcard)}
      />
      {group.types.map((type) => (
        <Checkbox
          key={type}
          pattern={type}
          label={actionOf(group, type)}
          isChecked={isAll || chosen.has(type)}
          isDisabled={isAll}
          onToggle={() => onToggle(type)}
        />
      ))}
      <GroupSample group={group} />
    </fieldset>
  );
}

/** Searches event types by a part of their names. */
export function SearchField({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{texts.eventTypes.search}</label>
      <input
        id={id}
        type="search"
        maxLength={SEARCH_LENGTH}
        value={text}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </div>
  );
}

function Choices({
  catalogue,
  chosen,
  onChange,
}: {
  catalogue: string[];
  chosen: Set<string>;
  onChange: (choice: Set<string>) => void;
}) {
  const [text, setText] = useState("");
  const groups = groupEventTypes(catalogue);
  const found = searchEventTypes(groups, text);
  const others = findOtherPatterns(groups, chosen);
  const toggle = (pattern: string): void => onChange(togglePattern(chosen, pattern));
  return (
    <>
      <div class="row">
        <SearchField text={text} onChange={setText} />
        <p class="count" role="status">
          {texts.eventTypes.chosen({
            chosen: countCovered(catalogue, chosen),
            count: catalogue.length,
          })}
        </p>
      </div>
      {others.length > 0 && (
        <fieldset class="type-group">
          <legend>{texts.eventTypes.otherPatterns}</legend>
          {others.map((pattern) => (
            <Checkbox
              key={pattern}
              pattern={pattern}
              label={pattern}
              isChecked
              onToggle={() => toggle(pattern)}
            />
          ))}
        </fieldset>
      )}
      {found.length === 0 && <p class="quiet">{texts.eventTypes.noMatch({ text: text.trim() })}</p>}
      <div class="type-groups">
        {found.map((group) => (
          <Group key={group.name} group={group} chosen={chosen} onToggle={toggle} />
        ))}
      </div>
    </>
  );
}

export function EventTypePicker({
  catalogue,
  choice,
  onChange,
}: {
  catalogue: string[];
  choice: EventTypeChoice;
  onChange: (choice: EventTypeChoice) => void;
}) {
  const id = useId();
  const problem = useFieldProblem(["event_types", "eventTypes"]);
  return (
    <fieldset class="field" aria-describedby={`${id}-problem`}>
      <legend>{texts.eventTypes.legend}</legend>
      <label>
        <input type="radio" name={id} checked={choice === null} onChange={() => onChange(null)} />{" "}
        {texts.eventTypes.all}
      </label>
      <label>
        <input type="radio" name={id} checked={choice !== null} onChange={() => onChange(new Set())} />{" "}
        {texts.eventTypes.only}
      </label>
      <FieldProblem id={`${id}-problem`} problem={problem} role="alert" />
      {choice !== null && <Choices catalogue={catalogue} chosen={choice} onChange={onChange} />}
    </fieldset>
  );
}
