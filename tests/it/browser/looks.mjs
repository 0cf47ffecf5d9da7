// Every state in every look: languages, windows, colours; by axe, by measure, by keyboard, and as pictures for people.

import assert from "node:assert/strict";
import { accessible, eventually, fits, launch, open, picture, plan, quiet, reachable, shows, state } from "./browser.mjs";

const LOCALES = { en: "en-GB", de: "de-AT", fr: "fr-CA", es: "es-MX", ar: "ar-EG" };
const WINDOWS = { phone: [390, 844], small: [320, 640], desktop: [1280, 800] };
// One language for each direction has every window looked at whole; the others, whose texts alone differ, a phone by day.
const WHOLE = process.env.PAYBRIDGE_LONG ? Object.keys(LOCALES) : ["en", "ar"];
const PAGE_LIMIT = 12 * 1024;

// Leads a page to a state.
const ways = {
  preparing: (page) => page.goto(plan.preparing),
  instructions: (page) => ready(page, plan.instructions, "instructions"),
  stopped: (page) => ready(page, plan.stopped, "stopped"),
  sandbox: (page) => ready(page, plan.sandbox, "sandbox"),
  success: (page) => decide(page, plan.paid, "pay"),
  failed: (page) => decide(page, plan.declined, "decline"),
  refused: (page) => page.goto(plan.refused),
  busy: (page) => ready(page, plan.busy, "busy"),
  error: (page) => decide(page, plan.sandbox, "neither"),
};

async function ready(page, url, wanted) {
  return eventually(wanted, async () => {
    const reply = await page.goto(url);
    return (await state(page)) === wanted && reply;
  });
}

// Sends the form of the sandbox's page from a page of the same origin: sent again, it says again what was posted.
async function decide(page, entry, decision) {
  if (!hosted.has(entry)) {
    await ready(page, entry, "sandbox");
    hosted.set(entry, page.url());
  }
  await page.goto(plan.preparing);
  const shown = page.waitForNavigation();
  await page.evaluate(
    ([action, value]) => {
      const form = document.createElement("form");
      Object.assign(form, { method: "post", action });
      const input = document.createElement("input");
      Object.assign(input, { name: "decision", value });
      form.append(input);
      document.body.append(form);
      form.submit();
    },
    [hosted.get(entry), decision],
  );
  return shown;
}
const hosted = new Map();

// The page stands still while it is looked at: the walks see that it goes on by itself.
async function still(context) {
  await context.route(/./, async (route) => {
    const reply = await route.fetch({ maxRedirects: 0 });
    const { refresh, ...headers } = reply.headers();
    await route.fulfill({ response: reply, headers });
  });
}

async function look(page, name, tag) {
  const reply = await ways[name](page);
  await shows(page, name);
  const what = `${name} in ${tag}`;
  const length = (await reply.body()).length;
  assert.ok(length < PAGE_LIMIT, `${what}: ${length} bytes`);
  assert.deepEqual(
    await page.evaluate(() => [document.documentElement.lang, document.documentElement.dir]),
    [tag, tag === "ar" ? "rtl" : "ltr"],
    what,
  );
  // Browsers without a window ask for no icons, so that the requests would not tell.
  assert.equal(await page.evaluate(() => document.querySelector("link[rel=icon]").href), "data:,", what);
  for (const [window, [width, height]] of Object.entries(WINDOWS)) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      const where = `${what}, ${window}, ${colorScheme}`;
      await fits(page, where);
      if (!WHOLE.includes(tag) && (window !== "phone" || colorScheme === "dark")) continue;
      await accessible(page, where);
      await picture(page, `${name}-${window}-${colorScheme}-${tag}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await reachable(page, what);
  await crowded(page, what, `${name}-crowded-${tag}`);
}

// The smallest window holds the longest texts that anybody may have sent, and text of twice the size.
async function crowded(page, what, name) {
  await page.setViewportSize({ width: 320, height: 640 });
  for (const size of ["200%", "100%"]) {
    await page.evaluate((size) => (document.documentElement.style.fontSize = size), size);
    await fits(page, `${what}, text at ${size}`);
  }
  await page.evaluate(() => {
    for (const each of document.querySelectorAll("dd > bdi, dt > bdi")) each.textContent = "W".repeat(300);
  });
  await fits(page, `${what}, crowded`);
  await picture(page, name);
}

const browser = await launch();
for (const [tag, locale] of Object.entries(LOCALES)) {
  const { context, noted, page } = await open(browser, { locale });
  await still(context);
  for (const name of Object.keys(ways)) await look(page, name, tag);
  quiet(noted, plan.origins);
  await context.close();
}

// The sign of progress rests for whoever asked for less motion, and what was sent is text.
const { context, noted, page } = await open(browser, { reducedMotion: "reduce" });
await page.goto(plan.preparing);
const motion = () => page.evaluate(() => getComputedStyle(document.querySelector(".turning")).animationName);
assert.equal(await motion(), "none");
await page.emulateMedia({ reducedMotion: "no-preference" });
assert.equal(await motion(), "turn");
await page.goto(plan.hostile.url);
assert.equal(await page.locator("dd", { hasText: plan.hostile.order_id }).count(), 1);
assert.equal(await page.locator("img, script, iframe").count(), 0);
quiet(noted, plan.origins);
await context.close();
await browser.close();
