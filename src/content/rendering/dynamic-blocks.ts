/** The dynamic blocks whose data the site has: what each shows, in WordPress's HTML. */

import {
  type BlockSources,
  escapeRecordText,
  findAuthor,
  findTermLink,
  headingOf,
  hideBrackets,
  linkAttributes,
  postLink,
  readAttributeText,
  readCount,
  renderFeaturedImage,
  renderPlainExcerpt,
  renderTime,
  showText,
  wrapperClass,
} from "./block-parts.js";
import { escapeUrl, renderImage } from "./image-markup.js";
import { createListBlocks } from "./list-blocks.js";
import type { BlockCall, DynamicBlocks } from "./render-blocks.js";

interface Footnote {
  id: string;
  content: string;
}

const isFootnote = (note: Partial<Footnote> | null): note is Footnote =>
  typeof note?.id === "string" && typeof note.content === "string";

async function renderFootnotes(call: BlockCall): Promise<string> {
  const { post, owner, site } = call;
  const stored = readAttributeText(post.meta["footnotes"]);
  // In a list, those of a post with a password are hidden as its content is.
  if (stored === "" || (post !== owner && post.password !== "")) return "";
  const json = post.isTrusted ? stored : await site.sanitise("footnotes", stored);
  let notes: unknown;
  try {
    notes = JSON.parse(json);
  } catch {
    return "";
  }
  const valid = Array.isArray(notes) ? notes.filter(isFootnote) : [];
  if (valid.length === 0) return "";
  const items = valid.map(({ id, content }, at) => {
    const anchor = escapeRecordText(id);
    const label = `Jump to footnote reference ${at + 1}`;
    return `<li id="${anchor}">${content} <a href="#${anchor}-link" aria-label="${label}">↩︎</a></li>`;
  });
  return `<ol ${wrapperClass("footnotes", call)}>${items.join("")}</ol>`;
}

/** A published pattern without a password, where it is not already being shown. */
async function renderPattern(
  { attributes: { ref }, include }: BlockCall,
  { records }: BlockSources,
): Promise<string> {
  const pattern = typeof ref === "number" ? await records.part(ref, "wp_block") : undefined;
  return pattern === undefined ? "" : include(pattern);
}

// The parts of a post: of the one whose content it is, or of the one that a list shows.

async function renderPostTitle(call: BlockCall, { index }: BlockSources): Promise<string> {
  const { attributes, post, site } = call;
  const title = hideBrackets(await site.render.title(post));
  if (title === "") return "";
  const element = headingOf(attributes["level"], 2);
  const link = linkAttributes(site.link(post, index), call);
  const shown = attributes["isLink"] === true ? `<a ${link}>${title}</a>` : title;
  return `<${element} ${wrapperClass("post-title", call)}>${shown}</${element}>`;
}

function renderPostDate(call: BlockCall, { index, settings }: BlockSources): string {
  const { attributes, post, site } = call;
  const isModified = attributes["displayType"] === "modified";
  if (isModified && post.modified <= post.date) return "";
  const time = renderTime(isModified ? post.modified : post.date, {
    site,
    settings,
    format: attributes["format"],
    href: attributes["isLink"] === true ? postLink(post, site, index) : "",
  });
  const classes = wrapperClass("post-date", call, isModified ? "wp-block-post-date__modified-date" : "");
  return `<div ${classes}>${time}</div>`;
}

async function renderPostAuthor(call: BlockCall, sources: BlockSources): Promise<string> {
  const { attributes, post, site } = call;
  const author = await findAuthor(post, sources);
  if (author === undefined) return "";
  const part = (name: string, text: string): string =>
    text && `<p class="wp-block-post-author__${name}">${text}</p>`;
  const bio = attributes["showBio"] === true ? showText(site, author.description) : "";
  const byline = part("byline", showText(site, attributes["byline"]));
  const inside = byline + part("name", escapeRecordText(author.name)) + part("bio", bio);
  return `<div ${wrapperClass("post-author", call)}><div class="wp-block-post-author__content">${inside}</div></div>`;
}

async function renderPostExcerpt(call: BlockCall, { index }: BlockSources): Promise<string> {
  const { attributes, post, site } = call;
  const excerpt = await renderPlainExcerpt(post, site, readCount(attributes["excerptLength"], 55));
  const text = showText(site, attributes["moreText"]);
  const href = postLink(post, site, index);
  const more = text && `<a class="wp-block-post-excerpt__more-link" href="${href}">${text}</a>`;
  const isApart = more !== "" && attributes["showMoreOnNewLine"] !== false;
  const end = isApart ? `</p><p class="wp-block-post-excerpt__more-text">${more}</p>` : ` ${more}</p>`;
  return `<div ${wrapperClass("post-excerpt", call)}><p class="wp-block-post-excerpt__excerpt">${excerpt}${end}</div>`;
}

async function renderPostImage(call: BlockCall, { index, records }: BlockSources): Promise<string> {
  const { attributes, post, site } = call;
  const size = readAttributeText(attributes["sizeSlug"]) || "post-thumbnail";
  const image = await renderFeaturedImage(post, { site, size, records });
  if (image === "") return "";
  const link = linkAttributes(site.link(post, index), call);
  const shown = attributes["isLink"] === true ? `<a ${link}>${image}</a>` : image;
  return `<figure ${wrapperClass("post-featured-image", call)}>${shown}</figure>`;
}

function renderPostTerms(call: BlockCall, { index }: BlockSources): string {
  const { attributes, post, site } = call;
  const taxonomy = readAttributeText(attributes["term"]);
  if (!index.model.taxonomies.has(taxonomy)) return "";
  const links = index.termsOf(post, taxonomy).flatMap((id) => {
    const term = index.term(id);
    const href = term && findTermLink(term, site, index);
    return term && href ? [`<a href="${href}" rel="tag">${escapeRecordText(term.name)}</a>`] : [];
  });
  if (links.length === 0) return "";
  const separator = escapeRecordText(readAttributeText(attributes["separator"]) || " ");
  const part = (name: string): string => {
    const text = showText(site, attributes[name]);
    return text && `<span class="wp-block-post-terms__${name}">${text}</span>`;
  };
  const list = links.join(`<span class="wp-block-post-terms__separator">${separator}</span>`);
  return `<div ${wrapperClass("post-terms", call, `taxonomy-${taxonomy}`)}>${part("prefix")}${list}${part("suffix")}</div>`;
}

function renderReadMore(call: BlockCall, { index }: BlockSources): string {
  const { attributes, post, site } = call;
  const title = showText(site, post.title) || `untitled post ${post.id}`;
  const text = showText(site, attributes["content"]) || "Read more";
  const link = linkAttributes(site.link(post, index), call);
  return `<a ${wrapperClass("read-more", call)} ${link}>${text}<span class="screen-reader-text">: ${title}</span></a>`;
}

// The site.

function renderSiteTitle(call: BlockCall, { settings }: BlockSources): string {
  const title = escapeRecordText(settings.read().title);
  if (title === "") return "";
  const { attributes, site } = call;
  const element = headingOf(attributes["level"], 1);
  const target = escapeRecordText(readAttributeText(attributes["linkTarget"]) || "_self");
  const link = `<a href="${escapeUrl(site.home)}" target="${target}" rel="home">${title}</a>`;
  const shown = attributes["isLink"] === false ? title : link;
  return `<${element} ${wrapperClass("site-title", call)}>${shown}</${element}>`;
}

function renderTagline(call: BlockCall, { settings }: BlockSources): string {
  const text = escapeRecordText(settings.read().description);
  const element = headingOf(call.attributes["level"], 0);
  return text && `<${element} ${wrapperClass("site-tagline", call)}>${text}</${element}>`;
}

async function renderSiteLogo(call: BlockCall, { records, settings }: BlockSources): Promise<string> {
  const { attributes, site } = call;
  const { site_logo, title } = settings.read();
  const [logo] = await records.media([site_logo ?? 0], 0, "image/");
  if (!logo?.media) return "";
  const width = readCount(attributes["width"], 0);
  const alt = logo.media.altText || title;
  const image = renderImage({ ...logo, media: { ...logo.media, altText: alt } }, site, "full")
    .replace(/ class="[^"]*"/, ' class="custom-logo"')
    .replace(/^<img width="(\d+)" height="(\d+)"/, (written, ...sides: string[]) => {
      const [whole = 0, high = 0] = sides.map(Number);
      return width === 0 ? written : `<img width="${width}" height="${Math.round((high * width) / whole)}"`;
    });
  const link = `<a href="${escapeUrl(`${site.home}/`)}" class="custom-logo-link" rel="home">${image}</a>`;
  return `<div ${wrapperClass("site-logo", call)}>${attributes["isLink"] === false ? image : link}</div>`;
}

function renderSearch(call: BlockCall): string {
  const { attributes, instance, site } = call;
  const label = showText(site, attributes["label"]) || "Search";
  const button = showText(site, attributes["buttonText"]) || "Search";
  const position = readAttributeText(attributes["buttonPosition"]) || "button-outside";
  const id = `wp-block-search__input-${instance}`;
  const hidden = attributes["showLabel"] === false ? " screen-reader-text" : "";
  const classes = wrapperClass(
    "search",
    call,
    `wp-block-search__${position}`,
    "wp-block-search__text-button",
  );
  const submit = `<button aria-label="${button}" class="wp-block-search__button wp-element-button" type="submit">${button}</button>`;
  return (
    `<form role="search" method="get" action="${escapeUrl(`${site.home}/`)}" ${classes}>` +
    `<label class="wp-block-search__label${hidden}" for="${id}">${label}</label>` +
    `<div class="wp-block-search__inside-wrapper"><input class="wp-block-search__input" id="${id}" ` +
    `placeholder="${showText(site, attributes["placeholder"])}" value="" type="search" name="s" required />` +
    `${position === "no-button" ? "" : submit}</div></form>`
  );
}

// Menus.

/** The menu of a record that everybody may see, or the blocks inside. */
async function renderNavigation(call: BlockCall, { records }: BlockSources): Promise<string> {
  const { attributes, context, include, inner, site } = call;
  const { ref } = attributes;
  const inside = new Map([...context, ["navigation", attributes]]);
  const menu = typeof ref === "number" ? await records.part(ref, "wp_navigation") : undefined;
  const items = menu === undefined ? await inner({ context: inside }) : await include(menu, inside);
  if (items.trim() === "") return "";
  const label = showText(site, attributes["ariaLabel"]) || (menu ? showText(site, menu.title) : "");
  return (
    `<nav ${wrapperClass("navigation", call)}${label && ` aria-label="${label}"`}>` +
    `<ul class="wp-block-navigation__container">${items}</ul></nav>`
  );
}

/** A link to a post that is not published shows nothing. */
async function renderNavigationLink(call: BlockCall, { index, records }: BlockSources): Promise<string> {
  const { attributes, inner, site } = call;
  const { id, kind, label, title, rel, description } = attributes;
  const post = kind === "post-type" && typeof id === "number" ? index.post(id) : undefined;
  if (kind === "post-type" && typeof id === "number" && !records.isPublic(post)) return "";
  const text = showText(site, label);
  if (text === "") return "";
  const submenu = (await inner()).trim();
  const href = post === undefined ? readAttributeText(attributes["url"]) : site.link(post, index);
  const extra = [
    attributes["opensInNewTab"] === true ? ' target="_blank"' : "",
    readAttributeText(rel) && ` rel="${escapeRecordText(readAttributeText(rel))}"`,
    readAttributeText(title) && ` title="${showText(site, title)}"`,
  ];
  const about = showText(site, description);
  const note = about && `<span class="wp-block-navigation-item__description">${about}</span>`;
  const classes = wrapperClass("navigation-link", call, "wp-block-navigation-item", submenu && "has-child");
  return (
    `<li ${classes}><a class="wp-block-navigation-item__content" href="${escapeUrl(href)}"${extra.join("")}>` +
    `<span class="wp-block-navigation-item__label">${text}</span>${note}</a>` +
    `${submenu && `<ul class="wp-block-navigation__submenu-container">${submenu}</ul>`}</li>`
  );
}

function renderHomeLink(call: BlockCall): string {
  const { attributes, site } = call;
  const label = showText(site, attributes["label"]) || "Home";
  return (
    `<li ${wrapperClass("home-link", call, "wp-block-navigation-item")}>` +
    `<a class="wp-block-home-link__content wp-block-navigation-item__content" href="${escapeUrl(site.home)}" rel="home">${label}</a></li>`
  );
}

/** With the name of the service instead of its picture. */
function renderSocialLink(call: BlockCall): string {
  const { attributes, site } = call;
  const service = readAttributeText(attributes["service"]);
  const written = readAttributeText(attributes["url"]);
  if (written === "") return "";
  const isMail = /^[^\s@:/]+@[^\s@:/]+$/.test(written);
  const url = isMail
    ? `mailto:${written}`
    : /^(?:[a-z][a-z\d+.-]*:|\/\/)/i.test(written)
      ? written
      : `https://${written}`;
  const name = service.charAt(0).toUpperCase() + service.slice(1);
  const label = showText(site, attributes["label"]) || escapeRecordText(name) || "Link";
  const rel = readAttributeText(attributes["rel"]);
  const classes = wrapperClass("social-link", call, "wp-social-link", `wp-social-link-${service}`);
  return (
    `<li ${classes}><a href="${escapeUrl(url)}" class="wp-block-social-link-anchor"${rel && ` rel="${escapeRecordText(rel)}"`}>` +
    `<span class="wp-block-social-link-label">${label}</span></a></li>`
  );
}

export const createDynamicBlocks = (sources: BlockSources): DynamicBlocks => ({
  ...createListBlocks(sources),
  "core/block": (call) => renderPattern(call, sources),
  "core/footnotes": renderFootnotes,
  "core/home-link": renderHomeLink,
  "core/navigation": (call) => renderNavigation(call, sources),
  "core/navigation-link": (call) => renderNavigationLink(call, sources),
  "core/navigation-submenu": (call) => renderNavigationLink(call, sources),
  "core/post-author": (call) => renderPostAuthor(call, sources),
  "core/post-date": (call) => renderPostDate(call, sources),
  "core/post-excerpt": (call) => renderPostExcerpt(call, sources),
  "core/post-featured-image": (call) => renderPostImage(call, sources),
  "core/post-terms": (call) => renderPostTerms(call, sources),
  "core/post-title": (call) => renderPostTitle(call, sources),
  "core/read-more": (call) => renderReadMore(call, sources),
  "core/search": renderSearch,
  "core/site-logo": (call) => renderSiteLogo(call, sources),
  "core/site-tagline": (call) => renderTagline(call, sources),
  "core/site-title": (call) => renderSiteTitle(call, sources),
  "core/social-link": renderSocialLink,
});
