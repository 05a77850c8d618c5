/** What stands in place of a view until it has been read. */

import { ApiError } from "../api.js";
import { Heading } from "../components/heading.js";
import { ErrorMessage, Loading } from "../components/small.js";

/** `error`: why it cannot be read. */
export function Pending({ title, error }: { readonly title: string; readonly error: unknown }) {
  const isMissing = error instanceof ApiError && error.status === 404;
  return (
    <>
      <Heading title={isMissing ? "Not found" : title} />
      {error === undefined ? <Loading /> : <ErrorMessage error={error} />}
    </>
  );
}
