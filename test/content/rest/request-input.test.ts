import { describe, expect, it } from "vitest";
import { RestError } from "../../../src/content/rest/error.js";
import { mergeParameters, readBody } from "../../../src/content/rest/request-input.js";
import type { HttpRequest } from "../../../src/http/types.js";

const limit = 1_000_000;

const read = (body: HttpRequest["body"], type: string | undefined, more: Partial<HttpRequest> = {}) =>
  readBody(
    { method: "POST", body, headers: type === undefined ? {} : { "content-type": type }, ...more },
    { limit },
  );

const json = (text: string | Uint8Array, type = "application/json") =>
  read(typeof text === "string" ? Buffer.from(text) : text, type);

async function refusal(reading: Promise<unknown>): Promise<string> {
  const error = await reading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(RestError);
  const { status, code } = error as RestError;
  return `${status} ${code}`;
}

describe("the body of a request", () => {
  it("gives the members of a JSON object, of equal names the last", async () => {
    expect(await json('\ufeff{"a":[1,{"b":null}],"c":1,"c":2}')).toEqual({ a: [1, { b: null }], c: 2 });
    expect(await json('{"a":1}', "application/vnd.api+json; charset=UTF-8")).toEqual({ a: 1 });
  });

  it("gives nothing where it is empty", async () => {
    for (const text of ["", "{}"]) expect(Object.keys(await json(text))).toEqual([]);
    expect(Object.keys(await read(null, "application/json"))).toEqual([]);
    expect(Object.keys(await read(new Uint8Array(0), "image/png"))).toEqual([]);
  });

  it("is refused when it is JSON but no object", async () => {
    for (const text of ["[]", "[1,2]", '"text"', "null", "5", "true"]) {
      expect(await refusal(json(text))).toBe("400 rest_invalid_json");
    }
    for (const parsed of [[1], "text", 5, true]) {
      expect(await refusal(read({ parsed }, "application/json"))).toBe("400 rest_invalid_json");
    }
  });

  it("is refused when a text or a name has half a surrogate pair", async () => {
    for (const text of ['{"a":"\\ud83d"}', '{"a":{"b":["x\\udc00"]}}', '{"\\udc00":1}'])
      expect(await refusal(json(text))).toBe("400 rest_invalid_json");
    expect(await json('{"a":"\\ud83d\\ude00"}')).toEqual({ a: "😀" });
  });

  it("may be a form, in PHP's notation", async () => {
    const form = Buffer.from("a=1&b[]=x&b[]=y&c[d]=%C3%A9+z");
    expect(await read(form, "application/x-www-form-urlencoded; charset=UTF-8")).toEqual({
      a: "1",
      b: ["x", "y"],
      c: { d: "é z" },
    });
  });

  const part = (name: string, value: string, more = ""): string =>
    `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
  const multipart = (...parts: readonly string[]) =>
    read(Buffer.from(`${parts.join("")}--b--\r\n`), "multipart/form-data; boundary=b");

  it("may be multipart form data, in PHP's notation", async () => {
    const parts = [
      ...[part("a", "1"), part("b[]", "x"), part("b[]", "y"), part("c[d][e]", "é & z"), part("a.b", "\r\n")],
      // A form sends a file field that nobody filled in.
      part("file", "", '; filename=""'),
    ];
    expect(await multipart(...parts)).toEqual({
      a: "1",
      b: ["x", "y"],
      c: { d: { e: "é & z" } },
      a_b: "\r\n",
    });
    expect(await read({ parsed: { a: "1" } }, "multipart/form-data; boundary=b")).toEqual({ a: "1" });
  });

  it("is refused as multipart form data with a file, and when it is cut off or not bounded", async () => {
    const file = await multipart(part("a", "1"), part("picture", "x", '; filename="a.png"')).catch(
      (error: unknown) => error as RestError,
    );
    expect(file).toMatchObject({ status: 400, code: "rest_invalid_multipart" });
    expect((file as RestError).message).toContain("Only uploads of media take a file");
    const cut = Buffer.from(part("a", "1"));
    expect(await refusal(read(cut, "multipart/form-data; boundary=b"))).toBe("400 rest_invalid_multipart");
    expect(await refusal(read(cut, "multipart/form-data"))).toBe("400 rest_invalid_multipart");
    const many = Array.from({ length: 1_001 }, (_, n) => part(`a${n}`, ""));
    expect(await refusal(multipart(...many))).toBe("400 rest_invalid_query");
    expect(await refusal(multipart(part(`a${"[x]".repeat(80)}`, "")))).toBe("400 rest_invalid_query");
    expect(await refusal(multipart(part("a", "x".repeat(limit))))).toBe("413 rest_body_too_large");
    const gone = read({ parsed: undefined }, "multipart/form-data; boundary=b", {
      headers: { "content-type": "multipart/form-data; boundary=b", "content-length": "9" },
    });
    await expect(gone).rejects.toMatchObject({ code: "raw_body_unavailable" });
  });

  it("is taken as a body parser of the host has made it", async () => {
    expect(await read({ parsed: { a: 1 } }, "application/json")).toEqual({ a: 1 });
    expect(await read({ parsed: { a: "1" } }, "application/x-www-form-urlencoded")).toEqual({ a: "1" });
    expect(Object.keys(await read({ parsed: undefined }, undefined))).toEqual([]);
  });

  it("is refused when it is not JSON", async () => {
    for (const text of ["{bad json", '{"a":', '{"a":1,}', "NaN", "{'a':1}"]) {
      expect(await refusal(json(text))).toBe("400 rest_invalid_json");
    }
    const utf16 = Buffer.from('{"a":1}', "utf16le");
    for (const bytes of [utf16, Buffer.from([0x22, 0xff, 0x22])]) {
      expect(await refusal(json(bytes))).toBe("400 rest_invalid_json");
    }
  });

  it("is refused in a type or coding that it cannot be read in", async () => {
    const body = Buffer.from('{"a":1}');
    for (const type of [undefined, "text/plain", "application/json; charset=utf-7"]) {
      expect(await refusal(read(body, type))).toBe("415 rest_unsupported_media_type");
    }
    const headers = { "content-type": "application/json", "content-encoding": "gzip" };
    expect(await refusal(read(body, undefined, { headers }))).toBe("415 rest_unsupported_media_type");
    const form = { "content-type": "application/x-www-form-urlencoded", "content-encoding": "gzip" };
    expect(await refusal(read(Buffer.from("a=1"), undefined, { headers: form }))).toBe(
      "415 rest_unsupported_media_type",
    );
  });

  it("is refused when it is too large, too deep or too wide", async () => {
    expect(await refusal(json(`"${"x".repeat(limit)}"`))).toBe("413 rest_body_too_large");
    expect(await refusal(json(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`))).toBe(
      "400 rest_invalid_json",
    );
    expect(await refusal(json(`{"a":[${"1,".repeat(300_000)}1]}`))).toBe("400 rest_invalid_json");
    const form = Buffer.from(Array.from({ length: 2000 }, (_, index) => `a${index}=1`).join("&"));
    expect(await refusal(read(form, "application/x-www-form-urlencoded"))).toBe("400 rest_invalid_query");
  });

  it("is refused when the client leaves", async () => {
    async function* broken() {
      yield Buffer.from('{"a":');
      throw new Error("socket");
    }
    expect(await refusal(read(broken(), "application/json"))).toBe("400 rest_request_aborted");
  });

  it("of a GET counts only as JSON", async () => {
    const body = Buffer.from('{"a":1}');
    expect(await read(body, "application/json", { method: "GET" })).toEqual({ a: 1 });
    expect(Object.keys(await read(body, "text/plain", { method: "GET" }))).toEqual([]);
  });
});

describe("parameters from two sources", () => {
  it("are one over the other, and any name is harmless", () => {
    const over = JSON.parse('{"a":1,"b":null,"c":null,"__proto__":{"x":1}}');
    const all = mergeParameters(over, { a: 2, b: 3 });
    expect(Object.entries(all)).toEqual([
      ["a", 1],
      ["b", 3],
      ["c", null],
      ["__proto__", { x: 1 }],
    ]);
    expect("x" in all).toBe(false);
  });
});
