import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSiteZone, formatDate, parseDate, toDateFields } from "../../../src/content/text/dates.js";

const utc = (text: string): number => Date.parse(`${text}Z`);

describe("a date that a client sends", () => {
  it.each([
    ["2019-03-04T05:06:07", "2019-03-04T05:06:07", false],
    ["2018-02-03 04:05:06", "2018-02-03T04:05:06", false],
    ["2018-02-03t04:05:06z", "2018-02-03T04:05:06", true],
    ["2018-02-03T04:05:06+02:00", "2018-02-03T02:05:06", true],
    ["2018-02-03T04:05:06-05:00", "2018-02-03T09:05:06", true],
    ["2018-02-03T04:05:06+02", "2018-02-03T02:05:06", true],
    ["2018-02-03T04:05:06-00:00", "2018-02-03T04:05:06", true],
    ["2018-02-03T04:05:06.999999999", "2018-02-03T04:05:06", false],
    ["2018-02-03T04:05:06.5Z", "2018-02-03T04:05:06", true],
    ["2024-02-29T00:00:00", "2024-02-29T00:00:00", false],
    ["0001-01-01T00:00:00", "0001-01-01T00:00:00", false],
    ["0099-06-01T00:00:00", "0099-06-01T00:00:00", false],
    ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59", true],
  ])("%s is read", (text, read, hasZone) => {
    const parsed = parseDate(text);
    expect(parsed?.hasZone).toBe(hasZone);
    expect(formatDate(parsed?.ms ?? Number.NaN)).toBe(read);
  });

  it.each([
    ...[
      "",
      "tomorrow",
      "nope",
      "2018-02-03",
      "20180203T040506",
      "2021",
      "2018-02-03T04:05",
      "2018-02-03T04:05Z",
    ],
    ...[
      "2021-13-45T00:00:00",
      "2021-00-01T00:00:00",
      "2021-01-00T00:00:00",
      "2021-02-30T00:00:00",
      "2023-02-29T00:00:00",
    ],
    ...["2016-12-31T23:59:60Z", "2021-01-01T24:00:00", "2021-01-01T00:60:00"],
    ...[
      "0000-01-01T00:00:00",
      "0000-12-31T23:00:00-02:00",
      "-0001-01-01T00:00:00",
      "+275760-09-13T00:00:00Z",
      "275760-09-13T00:00:00",
      "10000-01-01T00:00:00",
    ],
    ...[
      "2021-01-01T00:00:00+99:99",
      "2021-01-01T00:00:00+24:00",
      "2021-01-01T00:00:00+01:60",
      "2021-01-01T00:00:00+1:00",
    ],
    ...["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"],
    ...[
      " 2021-01-01T00:00:00",
      "2021-01-01T00:00:00 ",
      "2021-01-01T00:00:00\n",
      "2021-01-01T00:00:00.",
      "2021-01-01T00:00:00 Z",
    ],
    ...["２０２１-01-01T00:00:00", "2021-01-01T00:00:00\0", "2021-01-01_00:00:00"],
  ])("rejects %j", (text) => {
    expect(parseDate(text)).toBeUndefined();
  });

  it("comes back as it was written, whenever it is", () => {
    const anyMs = fc.integer({
      min: utc("0001-01-01T00:00:00") / 1000,
      max: utc("9999-12-31T23:59:59") / 1000,
    });
    fc.assert(
      fc.property(anyMs, (seconds) => {
        expect(parseDate(formatDate(seconds * 1000))).toEqual({ ms: seconds * 1000, hasZone: false });
        expect(parseDate(`${formatDate(seconds * 1000)}Z`)).toEqual({ ms: seconds * 1000, hasZone: true });
      }),
    );
  });
});

describe("the site's time zone", () => {
  it.each([
    ["UTC", "2026-07-01T12:00:00", "2026-07-01T12:00:00", 0],
    ["+05:30", "2026-07-01T12:00:00", "2026-07-01T17:30:00", 5.5],
    ["-03:30", "2026-07-01T12:00:00", "2026-07-01T08:30:00", -3.5],
    ["Europe/Berlin", "2026-07-01T12:00:00", "2026-07-01T14:00:00", 2],
    ["Europe/Berlin", "2026-01-01T12:00:00", "2026-01-01T13:00:00", 1],
    ["America/St_Johns", "2026-01-01T12:00:00", "2026-01-01T08:30:00", -3.5],
    ["Asia/Kathmandu", "2026-01-01T00:00:00", "2026-01-01T05:45:00", 5.75],
    ["Pacific/Apia", "2026-01-01T12:00:00", "2026-01-02T01:00:00", 13],
    ["Europe/Berlin", "0099-06-01T00:00:00", "0099-06-01T00:53:28", 3208 / 3600],
  ])("%s shows %s as %s", (name, time, local, hours) => {
    const zone = createSiteZone(name);
    expect(zone.name).toBe(name);
    expect(formatDate(zone.toLocal(utc(time)))).toBe(local);
    expect(zone.offsetHours(utc(time))).toBeCloseTo(hours, 10);
    expect(formatDate(zone.toUtc(utc(local)))).toBe(time);
  });

  it("reads a time that the clock leaves out as one hour later", () => {
    const zone = createSiteZone("Europe/Berlin");
    expect(formatDate(zone.toUtc(utc("2026-03-29T02:30:00")))).toBe("2026-03-29T01:30:00");
    expect(formatDate(zone.toUtc(utc("2026-03-29T01:59:59")))).toBe("2026-03-29T00:59:59");
    expect(formatDate(zone.toUtc(utc("2026-03-29T03:00:00")))).toBe("2026-03-29T01:00:00");
  });

  it("reads a time that comes twice as its second", () => {
    const zone = createSiteZone("Europe/Berlin");
    expect(formatDate(zone.toUtc(utc("2026-10-25T02:30:00")))).toBe("2026-10-25T01:30:00");
    expect(formatDate(zone.toUtc(utc("2026-10-25T03:00:00")))).toBe("2026-10-25T02:00:00");
    expect(formatDate(createSiteZone("America/New_York").toUtc(utc("2026-11-01T01:30:00")))).toBe(
      "2026-11-01T06:30:00",
    );
  });

  it("reads a day that never was as the next one", () => {
    // Samoa went from 29 to 31 December 2011.
    const zone = createSiteZone("Pacific/Apia");
    expect(formatDate(zone.toLocal(zone.toUtc(utc("2011-12-30T12:00:00"))))).toBe("2011-12-31T12:00:00");
  });

  it("keeps milliseconds, also before 1970", () => {
    const zone = createSiteZone("Europe/Berlin");
    expect(zone.toLocal(-1)).toBe(3_600_000 - 1);
    expect(zone.toUtc(zone.toLocal(-1))).toBe(-1);
  });

  it.each(["", "Nowhere/Atlantis", "+25:00", "+05:60", "5", "Europe/Berlin\0"])("%j is refused", (name) => {
    expect(() => createSiteZone(name)).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "site.timezone" }),
    );
  });

  it("turns what it shows back into the same local time, wherever and whenever", () => {
    const names = [
      "UTC",
      "+05:30",
      "-11:00",
      "Europe/Berlin",
      "America/Sao_Paulo",
      "Australia/Lord_Howe",
      "Africa/Casablanca",
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...names),
        fc.integer({ min: utc("1900-01-01T00:00:00") / 1000, max: utc("2100-01-01T00:00:00") / 1000 }),
        (name, seconds) => {
          const zone = createSiteZone(name);
          const local = zone.toLocal(seconds * 1000);
          const back = zone.toUtc(local);
          expect(zone.toLocal(back)).toBe(local);
          expect(back).toBeLessThanOrEqual(seconds * 1000);
        },
      ),
    );
  });
});

describe("the dates of a request", () => {
  const berlin = createSiteZone("Europe/Berlin");
  const read = (given: { date?: string; dateGmt?: string }, zone = berlin): string[] | undefined => {
    const dates = toDateFields(given, zone);
    return dates && [formatDate(dates.date), formatDate(dates.dateGmt)];
  };

  it("takes a date without an offset as the site's time", () => {
    expect(read({ date: "2026-07-01T12:00:00" })).toEqual(["2026-07-01T12:00:00", "2026-07-01T10:00:00"]);
  });

  it("counts an offset in either", () => {
    const zone = createSiteZone("UTC");
    expect(read({ date: "2018-02-03T04:05:06+02:00" }, zone)).toEqual([
      "2018-02-03T02:05:06",
      "2018-02-03T02:05:06",
    ]);
    expect(read({ date: "2018-02-03T04:05:06Z" }, zone)).toEqual([
      "2018-02-03T04:05:06",
      "2018-02-03T04:05:06",
    ]);
    expect(read({ dateGmt: "2018-02-03T04:05:06-05:00" }, zone)).toEqual([
      "2018-02-03T09:05:06",
      "2018-02-03T09:05:06",
    ]);
    expect(read({ date: "2026-07-01T12:00:00Z" })).toEqual(["2026-07-01T14:00:00", "2026-07-01T12:00:00"]);
  });

  it("takes a date_gmt without an offset as UTC", () => {
    expect(read({ dateGmt: "2026-07-01T12:00:00" })).toEqual(["2026-07-01T14:00:00", "2026-07-01T12:00:00"]);
  });

  it("lets date win over date_gmt, even one that cannot be read", () => {
    expect(read({ date: "2026-07-01T12:00:00", dateGmt: "2020-01-01T00:00:00" })?.[1]).toBe(
      "2026-07-01T10:00:00",
    );
    expect(read({ date: "nope", dateGmt: "2020-01-01T00:00:00" })).toBeUndefined();
  });

  it("has none where none is given, and none that could not be shown in four digits of a year", () => {
    expect(read({})).toBeUndefined();
    expect(read({ dateGmt: "9999-12-31T23:59:59" })).toBeUndefined();
    expect(read({ date: "0001-01-01T00:00:00" })).toBeUndefined();
  });
});
