/**
 * The labels of a type or taxonomy, made from its name: what editors show on buttons and in
 * notices.
 */

import type { JsonObject } from "../../schema/types.js";

interface Names {
  readonly name: string;
  readonly singular: string;
}

export function typeLabels({ name, singular, archives }: Names & { readonly archives: string }): JsonObject {
  const many = name.toLowerCase();
  const one = singular.toLowerCase();
  return {
    name,
    singular_name: singular,
    add_new: `Add ${singular}`,
    add_new_item: `Add ${singular}`,
    edit_item: `Edit ${singular}`,
    new_item: `New ${singular}`,
    view_item: `View ${singular}`,
    view_items: `View ${name}`,
    search_items: `Search ${name}`,
    not_found: `No ${many} found.`,
    not_found_in_trash: `No ${many} found in Trash.`,
    parent_item_colon: `Parent ${singular}:`,
    all_items: `All ${name}`,
    archives,
    attributes: `${singular} Attributes`,
    insert_into_item: `Insert into ${one}`,
    uploaded_to_this_item: `Uploaded to this ${one}`,
    featured_image: "Featured image",
    set_featured_image: "Set featured image",
    remove_featured_image: "Remove featured image",
    use_featured_image: "Use as featured image",
    filter_items_list: `Filter ${many} list`,
    filter_by_date: "Filter by date",
    items_list_navigation: `${name} list navigation`,
    items_list: `${name} list`,
    item_published: `${singular} published.`,
    item_published_privately: `${singular} published privately.`,
    item_reverted_to_draft: `${singular} reverted to draft.`,
    item_trashed: `${singular} trashed.`,
    item_scheduled: `${singular} scheduled.`,
    item_updated: `${singular} updated.`,
    item_link: `${singular} Link`,
    item_link_description: `A link to a ${one}.`,
    menu_name: name,
    name_admin_bar: singular,
    template_name: `Single item: ${singular}`,
  };
}

export function taxonomyLabels({ name, singular }: Names, isHierarchical: boolean): JsonObject {
  const many = name.toLowerCase();
  const one = singular.toLowerCase();
  return {
    name,
    singular_name: singular,
    search_items: `Search ${name}`,
    popular_items: isHierarchical ? null : `Popular ${name}`,
    all_items: `All ${name}`,
    parent_item: isHierarchical ? `Parent ${singular}` : null,
    parent_item_colon: isHierarchical ? `Parent ${singular}:` : null,
    name_field_description: "The name is how it appears on your site.",
    slug_field_description: "The “slug” is the URL-friendly version of the name.",
    parent_field_description: isHierarchical ? `Assign a parent ${one} to make a hierarchy.` : null,
    desc_field_description: "The description is not prominent by default; some themes show it.",
    edit_item: `Edit ${singular}`,
    view_item: `View ${singular}`,
    update_item: `Update ${singular}`,
    add_new_item: `Add ${singular}`,
    new_item_name: `New ${singular} Name`,
    separate_items_with_commas: isHierarchical ? null : `Separate ${many} with commas`,
    add_or_remove_items: isHierarchical ? null : `Add or remove ${many}`,
    choose_from_most_used: isHierarchical ? null : `Choose from the most used ${many}`,
    not_found: `No ${many} found.`,
    no_terms: `No ${many}`,
    filter_by_item: isHierarchical ? `Filter by ${one}` : null,
    items_list_navigation: `${name} list navigation`,
    items_list: `${name} list`,
    most_used: "Most Used",
    back_to_items: `← Go to ${name}`,
    item_link: `${singular} Link`,
    item_link_description: `A link to a ${one}.`,
    menu_name: name,
    name_admin_bar: singular,
  };
}
