/** Stores what an editor saves automatically: one autosave per user and post, beside the post. */

import type { Json } from "../../../schema/types.js";
import type { Collection } from "../../collections.js";
import type { Post, Revision } from "../../records/records.js";
import type { ContentRepository, Transaction } from "../../repository/content-repository.js";
import { resolvePostDates } from "../post-dates.js";
import type { FieldTarget } from "../post-field.js";
import { writeMeta } from "../post-meta.js";
import type { PostTypeHandler } from "../post-type-handler.js";
import type { SanitisedValues, WriteContext } from "../write-context.js";
import { isSameMeta, isSameText, REVISIONED_TEXTS, selectRevisionedMeta } from "./keep-revisions.js";

const isGiven = (value: Json | undefined): value is Json => value !== undefined && value !== null;

const isText = (name: string): boolean => (REVISIONED_TEXTS as readonly string[]).includes(name);

const selectValues = (values: SanitisedValues, isWanted: (name: string) => boolean): SanitisedValues =>
  Object.fromEntries(Object.entries(values).filter(([name]) => isWanted(name))) as SanitisedValues;

/**
 * Picks the values that an author's autosave of his own draft writes to the draft. Like in
 * WordPress, it excludes terms and meta fields.
 */
export const selectAutosavedValues = (
  values: SanitisedValues,
  { fields }: PostTypeHandler,
): SanitisedValues =>
  selectValues(values, (name) => fields.has("content") && fields.get(name)?.isAutosaved === true);

/**
 * Returns `before` with the texts and meta fields in `values`. Like in WordPress, an autosave of a
 * menu item holds no text.
 */
function writeTexts(
  before: Revision,
  {
    values,
    post,
    type,
  }: { readonly values: SanitisedValues; readonly post: Post; readonly type: PostTypeHandler },
  context: WriteContext,
): Revision {
  const { collection } = context;
  const { title, content, excerpt, isTrusted } = before;
  const target: FieldTarget["post"] = { ...post, title, content, excerpt, isTrusted };
  for (const name of REVISIONED_TEXTS) {
    const value = values[name];
    if (isGiven(value)) type.fields.get(name)?.write?.(value, { ...context, post: target });
  }
  const { meta } = values;
  return {
    ...before,
    title: target.title,
    content: target.content,
    excerpt: target.excerpt,
    isTrusted: target.isTrusted,
    meta: isGiven(meta)
      ? selectRevisionedMeta(writeMeta(before.meta, meta, collection.meta), collection)
      : before.meta,
  };
}

/** True if the texts and meta fields in `values` differ from those of the post itself. */
function differs(written: Revision, values: SanitisedValues, post: Post, collection: Collection): boolean {
  const hasOtherText = REVISIONED_TEXTS.some(
    (name) => isGiven(values[name]) && !isSameText(written[name], post[name]),
  );
  if (hasOtherText) return true;
  return isGiven(values["meta"]) && !isSameMeta(written.meta, selectRevisionedMeta(post.meta, collection));
}

const createAutosave = (id: number, post: Post, { caller, collection }: WriteContext): Revision => ({
  id,
  parent: post.id,
  author: caller.id,
  date: 0,
  dateGmt: 0,
  title: "",
  content: "",
  excerpt: "",
  isTrusted: true,
  meta: selectRevisionedMeta(post.meta, collection),
});

/** Refuses what an update would refuse. The texts cannot be a reason, so they are left out. */
function assertSavable(
  values: SanitisedValues,
  post: Post,
  type: PostTypeHandler,
  context: WriteContext,
): void {
  const checked = type.fields.has("content") ? selectValues(values, (name) => !isText(name)) : values;
  const dates = resolvePostDates(values, context.site);
  type.write({ values: checked, previous: post, id: post.id, dates }, context);
}

/** Saves `values` as the caller's autosave of `post`, and returns it. */
export function createSaveAutosave(type: PostTypeHandler, repository: Pick<ContentRepository, "revisions">) {
  return async (
    transaction: Transaction,
    values: SanitisedValues,
    post: Post,
    context: WriteContext,
  ): Promise<Revision> => {
    const { caller, now, site, collection } = context;
    assertSavable(values, post, type, context);
    const knownId = post.autosaves[caller.id];
    const [known] = knownId === undefined ? [] : await repository.revisions([knownId]);
    const id = known?.id ?? (await transaction.newId("post"));
    const written = writeTexts(known ?? createAutosave(id, post, context), { values, post, type }, context);
    if (known !== undefined && !differs(written, values, post, collection)) return known;
    const revision: Revision = { ...written, date: site.zone.toLocal(now), dateGmt: now };
    transaction.putRevision(revision, known?.version ?? 0);
    if (known === undefined) {
      transaction.putBookkeeping({
        ...post,
        revisions: [...post.revisions, id],
        autosaves: { ...post.autosaves, [caller.id]: id },
      });
    }
    return revision;
  };
}
