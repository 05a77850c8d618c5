/** The templates and areas that WordPress knows by name. Editors label templates with them. */

import type { JsonObject } from "../../schema/types.js";

const template = (slug: string, title: string, description: string): JsonObject => ({
  title,
  description,
  slug,
});

export const DEFAULT_TEMPLATE_TYPES: readonly JsonObject[] = [
  template("index", "Index", "Any page without a template of its own."),
  template("home", "Blog Home", "The list of the latest posts."),
  template("front-page", "Front Page", "The first page of the website."),
  template("singular", "Single Entries", "Any single post or page."),
  template("single", "Single Posts", "A single post."),
  template("page", "Pages", "A single page."),
  template("archive", "All Archives", "Any list of posts: by author, term or date."),
  template("author", "Author Archives", "The posts of one author."),
  template("category", "Category Archives", "The posts of one category."),
  template("taxonomy", "Taxonomy", "The posts of one term of a custom taxonomy."),
  template("date", "Date Archives", "The posts of a year, month or day."),
  template("tag", "Tag Archives", "The posts of one tag."),
  template("attachment", "Attachment Pages", "The page of a media item."),
  template("search", "Search Results", "The results of a search."),
  template("privacy-policy", "Privacy Policy", "The page with the privacy policy."),
  template("404", "Page: 404", "The page for an address that does not exist."),
];

export const TEMPLATE_PART_AREAS: readonly JsonObject[] = [
  {
    ...{ area: "uncategorized", label: "General", description: "A part of no particular area." },
    ...{ icon: "layout", area_tag: "div" },
  },
  {
    ...{ area: "header", label: "Header", description: "The top of a page." },
    ...{ icon: "header", area_tag: "header" },
  },
  {
    ...{ area: "footer", label: "Footer", description: "The bottom of a page." },
    ...{ icon: "footer", area_tag: "footer" },
  },
  {
    area: "navigation-overlay",
    ...{ label: "Navigation Overlay", description: "A menu that opens and closes." },
    ...{ icon: "navigation-overlay", area_tag: "div" },
  },
];
