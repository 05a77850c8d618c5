// The options of a site with types, taxonomies, fields and blocks of its own, which the cases in
// `cases-4` need.

const escapeHtml = (text) =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#039;");

/** By role; others begin with the letter of the role. */
export const EMAILS = { administrator: "a", author: "au" };

const types = {
  recipe: {
    base: "recipes",
    labels: { name: "Recipes", singular: "Recipe" },
    supports: ["title", "editor", "excerpt", "author", "thumbnail", "revisions", "custom-fields"],
    taxonomies: ["cuisine", "course"],
  },
  chapter: {
    base: "chapters",
    labels: { name: "Chapters", singular: "Chapter" },
    hierarchical: true,
    supports: ["title", "editor", "page-attributes"],
    taxonomies: ["category", "post_tag"],
  },
  story: {
    base: "stories",
    labels: { name: "Stories", singular: "Story" },
    supports: ["title", "editor", "author"],
    capabilityType: ["story", "stories"],
  },
};

const taxonomies = {
  cuisine: { base: "cuisines", labels: { name: "Cuisines", singular: "Cuisine" } },
  course: {
    base: "courses",
    labels: { name: "Courses", singular: "Course" },
    hierarchical: true,
    types: ["page"],
  },
};

const roles = {
  reviewer: {
    inherits: "author",
    capabilities: [
      "edit_others_posts",
      "edit_stories",
      "publish_stories",
      "edit_published_stories",
      "delete_stories",
      "edit_others_stories",
    ],
  },
};

const meta = {
  post: {
    subtitle: { single: true, revisions: true },
    steps: {},
    price: { type: "number", single: true, schema: { minimum: 0 }, canWrite: "edit_others_posts" },
    place: {
      type: "object",
      single: true,
      schema: { properties: { lat: { type: "number" }, lon: { type: "number" } } },
    },
    codes: { type: "array", single: true, schema: { items: { type: "string" } } },
    level: { single: true, default: "low", schema: { enum: ["low", "high"] } },
    _hidden: { single: true },
  },
  recipe: { minutes: { type: "integer", single: true, default: 5 } },
};

const editor = {
  theme: { stylesheet: "plain", name: "Plain" },
  patternCategories: [{ name: "clinic-blocks", label: "Clinic", description: "For clinics" }],
  patterns: [
    {
      name: "clinic/hours",
      title: "Opening hours",
      content: "<!-- wp:paragraph --><p>9–17</p><!-- /wp:paragraph -->",
      description: "Hours",
      categories: ["clinic-blocks"],
      keywords: ["time"],
      viewportWidth: 500,
    },
    { name: "clinic/plain", title: "Plain", content: "<p>x</p>" },
  ],
  blockTypes: [
    {
      name: "clinic/today",
      apiVersion: 3,
      title: "Today",
      category: "widgets",
      description: "The day",
      keywords: ["date"],
      attributes: { label: { type: "string", default: "x" }, count: { type: "integer" } },
      supports: { html: false },
      isDynamic: true,
    },
  ],
  renderBlock: ({ name, attributes: { label = "x", count = 0 } }) =>
    name === "clinic/today" ? `<p>${escapeHtml(label)} ${Number(count)}</p>` : undefined,
};

export const OWN_OPTIONS = { types, taxonomies, roles, meta, editor };
