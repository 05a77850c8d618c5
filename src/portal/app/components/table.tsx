/** Tables that become lists on a narrow screen. */

import type { ComponentChildren } from "preact";

export interface Column<T> {
  readonly name: string;
  /** The name is read by screen readers only. */
  readonly isUnnamed?: boolean;
  /** Numbers stand on the right. */
  readonly isNumber?: boolean;
  readonly cell: (item: T) => ComponentChildren;
}

/**
 * A table. The first column with `isHeader` names its row. On a narrow screen each row is a list of its
 * cells; the roles keep it a table for screen readers.
 */
export function Table<T extends { readonly key: string }>({
  caption,
  columns,
  header,
  rows,
}: {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  /** The name of the column that names a row. */
  readonly header: string;
  readonly rows: readonly T[];
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is too wide.
    <section class="scroll" aria-label={caption} tabIndex={0}>
      {/* biome-ignore lint/a11y/noRedundantRoles: a table whose display is changed loses its role. */}
      <table class="stacks" role="table">
        <caption class="unseen">{caption}</caption>
        {/* biome-ignore lint/a11y/noRedundantRoles: as above. */}
        <thead role="rowgroup">
          {/* biome-ignore lint/a11y/noRedundantRoles: as above. */}
          <tr role="row">
            {columns.map(({ name, isUnnamed, isNumber }) => (
              // biome-ignore lint/a11y/noRedundantRoles: as above.
              <th role="columnheader" scope="col" key={name} class={isNumber ? "number" : undefined}>
                {isUnnamed ? <span class="unseen">{name}</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        {/* biome-ignore lint/a11y/noRedundantRoles: as above. */}
        <tbody role="rowgroup">
          {rows.map((row) => (
            // biome-ignore lint/a11y/noRedundantRoles: as above.
            <tr role="row" key={row.key}>
              {columns.map(({ name, isUnnamed, isNumber, cell }) =>
                name === header ? (
                  // biome-ignore lint/a11y/noRedundantRoles: as above.
                  <th role="rowheader" scope="row" key={name}>
                    {cell(row)}
                  </th>
                ) : (
                  <td
                    // biome-ignore lint/a11y/noRedundantRoles: as above.
                    role="cell"
                    key={name}
                    data-column={isUnnamed ? undefined : name}
                    class={isNumber ? "number" : undefined}
                  >
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
