/** Ends what a view has begun when the visitor leaves it. */

import { useEffect, useState } from "preact/hooks";

/** Returns a signal that aborts when the component is removed from the page. */
export function useLeaveSignal(): AbortSignal {
  const [controller] = useState(() => new AbortController());
  useEffect(() => () => controller.abort(), [controller]);
  return controller.signal;
}
