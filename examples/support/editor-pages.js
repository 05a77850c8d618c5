// The HTML of examples/editor-host.js: sign-in, the lists of posts and pages, the editor and the
// website. Whatever comes from a person is escaped; what is `rendered` is safe HTML already.
const escapeHtml = (text) => `${text}`.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const page = ({ title, head = "", body, bodyClass = "" }) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
${head}
</head>
<body class="${bodyClass}">
${body}
</body>
</html>
`;

/** A page of the website; `links` are the elements that `discoveryLinks` returns. */
export const sitePage = ({ title, links, body }) => page({ title, head: links, body });

export const signInPage = ({ message = "" }) =>
  page({
    title: "Sign in",
    body: `<h1>Sign in</h1>
<p role="alert">${escapeHtml(message)}</p>
<form method="post" action="/wp-login.php">
<p><label>Name <input name="log" autocomplete="username" required></label></p>
<p><label>Password <input name="pwd" type="password" autocomplete="current-password" required></label></p>
<p><button>Sign in</button></p>
</form>`,
  });

export const listPage = ({ user, collection, posts, nonce }) =>
  page({
    title: `All ${collection}`,
    body: `<h1>All ${collection}</h1>
<form method="post" action="/wp-login.php?action=logout">
<p>${escapeHtml(user.name)} (${escapeHtml(user.roles)}) <input type="hidden" name="_wpnonce" value="${nonce}"><button>Sign out</button></p>
</form>
<p><a href="/wp-admin/edit.php?post_type=post">Posts</a> · <a href="/wp-admin/edit.php?post_type=page">Pages</a> ·
<a href="/wp-admin/post-new.php?post_type=${collection === "pages" ? "page" : "post"}">Add</a> · <a href="/">The website</a></p>
<ul>
${posts.map(({ id, title, status }) => `<li><a href="/wp-admin/post.php?post=${id}&amp;action=edit">${title.rendered || "(no title)"}</a>, ${status}</li>`).join("\n")}
</ul>`,
  });

const EDITOR_SETTINGS = {
  titlePlaceholder: "Add a title",
  maxUploadFileSize: 32 * 1024 * 1024,
  // In seconds: saved by the server, and in the browser.
  autosaveInterval: 60,
  localAutosaveInterval: 15,
  // The picture of people without one.
  __experimentalDiscussionSettings: { avatarURL: "/avatar.svg" },
  // The styles of a post while it is edited.
  __unstableResolvedAssets: { styles: '<link rel="stylesheet" href="/editor/content.css">' },
};

/** The bundle reads `config` from the page; docs/guides/edit-with-gutenberg.md has its code. */
export const editorPage = (config) =>
  page({
    title: "Edit",
    head: `<link rel="stylesheet" href="/editor/block-editor.css">
<style>body { margin: 0; font: 13px / 1.4 system-ui, sans-serif; }</style>
<script type="application/json" id="editor-config">${JSON.stringify({ ...config, settings: EDITOR_SETTINGS }).replaceAll("<", "\\u003c")}</script>
<script type="module" src="/editor/block-editor.js"></script>`,
    bodyClass: "js block-editor-page is-fullscreen-mode",
    body: `<div id="editor" class="block-editor__container"></div>`,
  });

export const noEditorPage = ({ folder }) =>
  page({
    title: "The editor is not installed",
    body: `<h1>The editor is not installed</h1>
<p>There is no <code>block-editor.js</code> in ${folder ? `<code>${escapeHtml(folder)}</code>` : "a folder named by the environment variable <code>EDITOR_FOLDER</code>"}.
The packages of the WordPress block editor are under the GPL, so they are not part of this example.
docs/guides/edit-with-gutenberg.md says how to install and bundle them. Everything else works without them.</p>`,
  });

/** The picture of everybody. */
export const AVATAR =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96"><circle cx="48" cy="48" r="48" fill="#2271b1"/></svg>';
