/** Builds the model of a site from the tables of what every site has. */

import { capabilityNames } from "./auth/capabilities.js";
import { type BuiltInCollection, collections } from "./collections.js";
import type { Collection, ContentModel, TaxonomyDefinition } from "./records/content-model.js";
import type { PostType, Taxonomy } from "./records/records.js";
import { taxonomies } from "./terms/taxonomies.js";

/** Returns the model of a site. */
export function createContentModel(): ContentModel {
  const definitions = new Map<Taxonomy, TaxonomyDefinition>(
    Object.entries(taxonomies).map(([name, definition]) => [
      name,
      { ...definition, capabilities: capabilityNames[name as keyof typeof taxonomies] },
    ]),
  );
  const types = Object.values<BuiltInCollection>(collections).map((row): [PostType, Collection] => [
    row.type,
    {
      ...row,
      capabilities: capabilityNames[row.type],
      taxonomies: row.taxonomies.flatMap((name) => definitions.get(name) ?? []),
    },
  ]);
  return { types: new Map(types), taxonomies: definitions };
}

/** The model of a site whose host declares nothing. */
export const builtInModel: ContentModel = createContentModel();
