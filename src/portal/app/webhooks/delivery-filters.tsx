/** The filters and pages of a list of deliveries. They act at once, and are its address. */

import { useEffect, useState } from "preact/hooks";
import type { DeliveryStateJson, EventTypesJson } from "../../shapes.js";
import { Form, readTimeField, SelectField, TextField, TimeField } from "../components/form.js";
import { ChevronLeft, ChevronRight, X } from "../components/icons.js";
import { usePage } from "../page-context.js";
import { locale, texts } from "../texts.js";
import { formatTime, toTimeInput } from "../times.js";
import { useResource } from "../use-resource.js";
import { useLocation } from "../view.js";
import {
  countDeliveries,
  type FoundPage,
  findNextPage,
  findPreviousPage,
  formatListAddress,
  isNarrowed,
  type ListAddress,
  parseListAddress,
  type StateCounts,
} from "./delivery-pages.js";
import { TEST_TYPE } from "./wording.js";

/** Returns the filters of the address, and a function that shows another address of the list. */
export function useListAddress() {
  const { path, query } = useLocation();
  const address = parseListAddress(query);
  const change = (next: ListAddress, isReplaced = false): void => {
    const hash = `#${formatListAddress(path, next)}`;
    if (isReplaced) location.replace(hash);
    else location.hash = hash;
  };
  return [address, change] as const;
}

interface FilterProps {
  address: ListAddress;
  /** Shows the first page at another address. `isReplaced`: in place of this one in the history. */
  change: (next: ListAddress, isReplaced?: boolean) => void;
  counts: StateCounts | undefined;
}

const TYPING_MS = 400;

/** The search acts a moment after the last key, and at once on Enter. */
function Search({ address, change }: FilterProps) {
  const { q = "" } = address;
  const [text, setText] = useState(q);
  useEffect(() => setText(q), [q]);
  const search = (): void => {
    if (text.trim() !== q) change({ ...address, q: text.trim() || undefined }, true);
  };
  useEffect(() => {
    const timer = setTimeout(search, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <form
      aria-label={texts.deliveries.search}
      onSubmit={(event) => {
        event.preventDefault();
        search();
      }}
    >
      <TextField
        label={texts.deliveries.ids}
        type="search"
        maxLength={200}
        placeholder={texts.deliveries.placeholder}
        value={text}
        onChange={setText}
      />
    </form>
  );
}

const STATES: (DeliveryStateJson | undefined)[] = [undefined, "pending", "failed", "delivered", "withheld"];

/**
 * The states with their counts, as long as nothing else narrows what is counted: as buttons, or as
 * a list where there is no room for them.
 */
function StateFilter({ address, change, counts, isNarrow }: FilterProps & { isNarrow: boolean }) {
  const countOf = (state: DeliveryStateJson | undefined): string =>
    (isNarrowed(address) ? undefined : countDeliveries(counts, state))?.toLocaleString(locale) ?? "";
  const states = STATES.map((state) => [state, texts.deliveries.states[state ?? "all"]] as const);
  if (isNarrow)
    return (
      <SelectField
        label={texts.deliveries.state}
        value={address.state ?? ""}
        onChange={(value) => change({ ...address, state: STATES.find((state) => state === value) })}
        options={states.map(([state, label]) => [state ?? "", `${label} ${countOf(state)}`.trim()] as const)}
      />
    );
  return (
    <fieldset class="field state-filter">
      <legend>{texts.deliveries.state}</legend>
      <div class="segments">
        {states.map(([state, label]) => {
          const count = countOf(state);
          return (
            <button
              type="button"
              key={label}
              aria-pressed={address.state === state}
              onClick={() => change({ ...address, state })}
            >
              {label}
              {count !== "" && <span class="count"> {count}</span>}
            </button>
          );
        })}
      </div>
    </fieldset>
  );
}

const BETWEEN = "between";

/** A period of two times, which the visitor types. */
function Between({ address, change, onDone }: FilterProps & { onDone: () => void }) {
  const { zone } = usePage();
  const show = (at: string | undefined): string =>
    at === undefined ? "" : toTimeInput(Date.parse(at), zone);
  const [since, setSince] = useState(show(address.since));
  const [until, setUntil] = useState(show(address.until));
  const act = async (): Promise<void> => {
    const times = { since: readTimeField("since", since, zone), until: readTimeField("until", until, zone) };
    change({ ...address, ...times, period: undefined });
    onDone();
  };
  return (
    <Form label={texts.deliveries.period} submit={texts.deliveries.apply} kind="plain" isRow act={act}>
      <TimeField label={texts.deliveries.from} name="since" value={since} onChange={setSince} />
      <TimeField label={texts.deliveries.before} name="until" value={until} onChange={setUntil} />
    </Form>
  );
}

/** `isNarrow`: true if the list has less room than buttons for the states need. */
export function DeliveryFilters({ isNarrow, ...props }: FilterProps & { isNarrow: boolean }) {
  const { address, change } = props;
  const { zone } = usePage();
  const [isBetween, setBetween] = useState(false);
  const types = useResource((api) => api.get<EventTypesJson>("v1/event-types"), []);
  const names = [...(types.data?.eventTypes ?? []), TEST_TYPE];
  const { type = "", period = "", since, until } = address;
  if (type !== "" && !names.includes(type)) names.push(type);
  const isTimed = since !== undefined || until !== undefined;
  const choosePeriod = (value: string): void => {
    setBetween(value === BETWEEN);
    if (value !== BETWEEN)
      change({ ...address, period: value || undefined, since: undefined, until: undefined });
  };
  const show = (at: string | undefined): string => (at === undefined ? "…" : formatTime(at, zone));
  return (
    <section aria-label={texts.deliveries.filter} class="filters">
      <div class="filter-row">
        <Search {...props} />
        <StateFilter {...props} isNarrow={isNarrow} />
        <SelectField
          label={texts.deliveries.eventType}
          value={type}
          onChange={(value) => change({ ...address, type: value || undefined })}
          options={[["", texts.deliveries.any], ...names.map((name) => [name, name] as const)]}
        />
        <SelectField
          label={texts.deliveries.created}
          value={isBetween || isTimed ? BETWEEN : period}
          onChange={choosePeriod}
          options={[
            ...(["", "1h", "24h", "72h"] as const).map(
              (each) => [each, texts.deliveries.periods[each]] as const,
            ),
            [BETWEEN, texts.deliveries.between],
          ]}
        />
      </div>
      {isBetween && <Between {...props} onDone={() => setBetween(false)} />}
      {isTimed && !isBetween && (
        <p class="chips">
          <button
            type="button"
            class="chip small"
            aria-label={texts.deliveries.removePeriod({ from: show(since), to: show(until) })}
            onClick={() => change({ ...address, since: undefined, until: undefined })}
          >
            {show(since)} – {show(until)}
            <X class="icon" aria-hidden="true" />
          </button>
        </p>
      )}
    </section>
  );
}

/** Removes all filters, if there are any. */
export function ClearButton({ address, change }: Omit<FilterProps, "counts">) {
  if (!isNarrowed(address) && address.state === undefined) return null;
  return (
    <button
      type="button"
      class="bare small"
      onClick={() => {
        change({});
        // The button goes.
        document.querySelector<HTMLElement>(".log-head h2")?.focus();
      }}
    >
      <X class="icon" aria-hidden="true" />
      {texts.deliveries.clear}
    </button>
  );
}

/** Moves to the newer and the older deliveries. */
export function DeliveryPages({
  address,
  page: { deliveries, next },
  onPage,
}: {
  address: ListAddress;
  page: FoundPage;
  onPage: (next: ListAddress) => void;
}) {
  if (address.after === undefined && next === null) return null;
  const previous = findPreviousPage(address);
  return (
    <nav class="pager" aria-label={texts.common.pages}>
      <button
        type="button"
        disabled={address.after === undefined}
        onClick={() => onPage({ ...address, after: previous?.previous, open: undefined })}
      >
        <ChevronLeft class="icon" aria-hidden="true" />
        {previous === undefined ? texts.deliveries.newest : texts.deliveries.newer}
      </button>
      <button
        type="button"
        disabled={next === null}
        onClick={() => next !== null && onPage(findNextPage(address, next, deliveries.length))}
      >
        {texts.deliveries.older}
        <ChevronRight class="icon" aria-hidden="true" />
      </button>
    </nav>
  );
}
