// A little website to look at: its users, and what is on it.
export const users = [
  { id: 1, slug: "ada", name: "Ada", roles: ["administrator"] },
  { id: 2, slug: "erik", name: "Erik", roles: ["editor"] },
];

/** Writes the sample through the content interface of this process, in its namespace. */
export async function writeSample(content, namespace = "core") {
  const create = async (collection, body) => {
    const answer = await content.request({
      method: "POST",
      path: `/${namespace}/v2/${collection}`,
      body,
      as: 1,
    });
    if (answer.status !== 201)
      throw new Error(`${collection}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const news = await create("categories", { name: "News" });
  await create("pages", { title: "About us", content: "A clinic by the sea.", status: "publish" });
  for (const [title, content] of [
    ["Opening hours", "From May on we are open on Saturdays, too."],
    ["A new doctor", "Dr Chalmers has joined us.\n\nShe speaks Dutch & English."],
    ["Flu season", "Vaccination begins in October."],
  ]) {
    await create("posts", { title, content, status: "publish", author: 2, categories: [news.id] });
  }
}
