// The recorded cases that are not run yet, and why. A case is named by its id, or a group of them by `prefix*`; `count` is how many that are.

const EMBEDS = "the embed routes answer nothing yet";

export const LEFT_OUT = [{ cases: "oembed.*", count: 11, why: EMBEDS }];
