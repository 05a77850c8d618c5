import { LIBRARY_NAME } from "../../storage/redis/library.js";

/** Returns the name of a function of the storage, from the name that FCALL takes. */
export const toCalledFunction = (name: string): string | undefined =>
  name.startsWith(`${LIBRARY_NAME}_`) ? name.slice(LIBRARY_NAME.length + 1) : undefined;
