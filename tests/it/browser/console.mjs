// The operators' console: what operators do with scripts and without, what viewers see, and every page in every look.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { accessible, arrives, doing, eventually, fits, launch, open, picture, plan, quiet, reachable, whole } from "./browser.mjs";

const WINDOWS = {
  phone: { width: 390, height: 844 },
  tablet: { width: 820, height: 1180 },
  wide: { width: 1280, height: 900 },
};
const LOOKS = process.env.PAYBRIDGE_LONG
  ? Object.keys(WINDOWS).flatMap((window) => [[window, "light"], [window, "dark"]])
  : [["phone", "dark"], ["wide", "light"]];
const PAGE_LIMIT = 40 * 1024;
const at = (path) => plan.origin + path;

const button = (page, name) => page.getByRole("button", { name });
const says = (page, text) => eventually(`the page says ${text}`, () => page.locator(".message", { hasText: text }).count());
const rows = (page) => page.locator("main table").first().locator("tbody tr").count();

// Presses a button that leads to a page: its reply.
async function press(page, name) {
  doing(`press ${name}`);
  const shown = page.waitForNavigation();
  await button(page, name).click();
  return shown;
}

async function isSentToSignIn(page, path) {
  await page.goto(at(path));
  const { pathname, searchParams } = new URL(page.url());
  assert.deepEqual([pathname, searchParams.get("to") ?? "/"], ["/sign-in", path]);
}

// Opens a page without a session, and comes to it by the sign-in form.
async function enter(browser, user, path, options) {
  const visit = await open(browser, { viewport: WINDOWS.wide, ...options });
  const { page } = visit;
  await isSentToSignIn(page, path);
  await page.getByLabel("Token").fill(plan.tokens[user]);
  await press(page, "Sign in");
  await arrives(page, at(path));
  return visit;
}

// Waits until a list has so many rows.
async function lists(page, path, count) {
  await eventually(`${path} has ${count} rows`, async () => {
    await page.goto(at(path));
    return (await rows(page)) === count;
  });
}

async function withoutScripts(browser) {
  const mine = "/callbacks?state=failed&merchant=acme";
  const { noted, page } = await enter(browser, "ada", mine, { javaScriptEnabled: false });
  await lists(page, mine, 2);
  // The empty fields of the form are sent, too.
  await page.getByLabel("Order id").fill("NW-2026-004713");
  await press(page, "Filter");
  assert.match(page.url(), /merchant=acme&order_id=NW-2026-004713&since=&until=$/);
  assert.equal(await rows(page), 1);
  await follows(page, mine, "NW-2026-004713");
  await press(page, "Resend");
  await says(page, "Queued (ada, ");
  await lists(page, mine, 2);
  await page.getByRole("link", { name: /^Resend all failed/ }).click();
  await page.getByText("2 failed callbacks match").waitFor();
  await press(page, "Resend 2 callbacks");
  await says(page, "2 queued (ada, ");
  await page.goto(at("/rules"));
  await press(page, "Reload now");
  await says(page, "were loaded (ada, ");
  assert.match(page.url(), /\/rules\?result=\d+$/);
  await explains(page, plan.refused);
  await says(page, "It would be refused");
  await press(page, "Sign out");
  await isSentToSignIn(page, "/audit");
  quiet(noted, [plan.origin]);
}

async function explains(page, body) {
  await page.goto(at("/explain?merchant=acme"));
  await page.getByLabel("v1 body").fill(body);
  return press(page, "Explain");
}

async function withScripts(browser) {
  const mine = "/callbacks?state=failed&merchant=beta";
  const { noted, page } = await enter(browser, "ada", mine);
  await lists(page, mine, 1);
  await follows(page, mine, "FT-90212");
  let agrees = false;
  const questions = [];
  page.on("dialog", (dialog) => {
    questions.push(dialog.message());
    return agrees ? dialog.accept() : dialog.dismiss();
  });
  await button(page, "Resend").click();
  assert.deepEqual(questions, ["Send this callback again?"]);
  assert.deepEqual(noted.requests.filter((url) => url.endsWith("/resend")), []);
  agrees = true;
  await button(page, "Resend").dblclick();
  await says(page, /Queued|has not ended/);
  // To reload the outcome asks nothing and sends no form.
  const [forms, asked] = [noted.posts.length, questions.length];
  await eventually("the outcome", async () => {
    await page.reload();
    return page.locator(".message", { hasText: "Queued (ada, " }).count();
  });
  assert.deepEqual([noted.posts.length, questions.length], [forms, asked]);
  await lists(page, "/audit?user=ada&action=callbacks.resend", 2);
  await refreshes(page, noted);
  quiet(noted, [plan.origin]);
}

// The overview refreshes in the time that the page believes, but for what a person reads with the focus in it.
async function refreshes(page, noted) {
  await page.clock.install();
  await page.goto(at("/"));
  const requests = () => noted.requests.filter((url) => url === at("/")).length;
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  const old = () => page.evaluate(() => "old" in document.querySelector("#fresh").dataset);
  await page.evaluate(() => (document.querySelector("#fresh").dataset.old = ""));
  await page.locator("#fresh a").first().focus();
  const before = requests();
  await page.clock.runFor(10_000);
  assert.equal(requests(), before, "with the focus inside");
  await button(page, "Stop refreshing").focus();
  await page.clock.runFor(10_000);
  await eventually("newer figures", async () => !(await old()));
  assert.equal(await focused(), "Stop refreshing");
  assert.equal(requests(), before + 1);
  await page.keyboard.press("Enter");
  assert.equal(await focused(), "Refresh by itself");
  await page.clock.runFor(30_000);
  assert.equal(requests(), before + 1, "stopped");
}

// Pages that only have to be opened.
const PATHS = {
  rules: "/rules",
  merchants: "/merchants",
  merchant: "/merchants/acme",
  "merchant-shadow": "/merchants/beta",
  operations: "/operations?merchant=acme&direction=&order_id=NW-2026-004712",
  "operations-large": "/operations?merchant=acme&order_id=NW-2026-004718",
  "operations-long": `/operations?merchant=acme&order_id=${plan.long}`,
  "operations-none": "/operations?merchant=acme&order_id=none",
  callbacks: "/callbacks?state=pending%2Cdelivered%2Cfailed",
  "callbacks-refused": "/callbacks?since=yesterday",
  resend: "/callbacks/resend?merchant=acme",
  "sample-form": "/callbacks/sample?merchant=acme",
  "explain-form": "/explain?merchant=acme",
  requests: "/requests",
  "requests-none": "/requests?request_id=none",
  audit: "/audit",
  "audit-none": "/audit?user=eve",
  missing: "/merchants/none",
  "missing-page": "/merchant",
  // Late, so that it has figures: there is one every ten seconds.
  overview: "/",
};

// Opens a list and follows the link of an order: the reply.
async function follows(page, list, order) {
  await page.goto(at(list));
  const shown = page.waitForNavigation();
  await page.locator("tbody th a").filter({ hasText: order }).first().click();
  return shown;
}

const WAYS = {
  operation: (page) => follows(page, PATHS.operations, ""),
  "operation-failed": (page) => follows(page, "/operations?merchant=acme&order_id=NW-2026-004714", ""),
  "operation-pending": (page) => follows(page, "/operations?merchant=acme&order_id=NW-2026-004715", ""),
  "operation-large": (page) => follows(page, "/operations?merchant=acme&order_id=NW-2026-004718", ""),
  "operation-long": (page) => follows(page, `/operations?merchant=acme&order_id=${plan.long}`, ""),
  callback: (page) => follows(page, PATHS.callbacks, "NW-2026-004712"),
  "callback-failed": (page) => follows(page, PATHS.callbacks, "NW-2026-004713"),
  explain: (page) => explains(page, plan.accepted),
  "explain-refused": (page) => explains(page, plan.refused),
  async sample(page) {
    await page.goto(at(PATHS["sample-form"]));
    await page.getByLabel("Address").fill(plan.sample);
    return press(page, "Send the sample");
  },
  ...Object.fromEntries(Object.entries(PATHS).map(([name, path]) => [name, (page) => page.goto(at(path))])),
  async "sign-in"(page) {
    await page.context().clearCookies();
    await page.goto(at("/"));
    await page.getByLabel("Token").fill("not the token of any user");
    return press(page, "Sign in");
  },
};

async function looks(browser, ways) {
  const { noted, page } = await enter(browser, "ada", "/");
  for (const [name, way] of ways) {
    doing(name);
    const reply = await way(page);
    const length = (await reply.body()).length;
    assert.ok(length <= PAGE_LIMIT, `${name}: ${length} bytes`);
    for (const [window, colorScheme] of LOOKS) {
      const where = `${name}, ${window}, ${colorScheme}`;
      await page.setViewportSize(WINDOWS[window]);
      await page.emulateMedia({ colorScheme });
      await fits(page, where);
      await whole(page, where);
      await accessible(page, where);
      await picture(page, `${name}-${window}-${colorScheme}`);
    }
    await reachable(page, name, 0);
  }
  quiet(noted, [plan.origin]);
}

// The first step of the Tab key leads past the navigation.
async function skips(page) {
  await page.goto(at("/callbacks"));
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  await eventually("the content is focused", () => page.evaluate(() => document.activeElement.id === "main"));
}

// A viewer finds no form that acts, and no link to one.
async function views(browser) {
  const { noted, page } = await enter(browser, "bob", "/rules");
  await skips(page);
  const looks = Object.entries(WAYS).filter(([name]) => name in PATHS || /^(operation|callback)/.test(name));
  for (const [name, way] of looks) {
    await way(page);
    const found = await page.evaluate(() => [
      ...[...document.querySelectorAll("form[method=post]")].map((form) => form.getAttribute("action")),
      ...[...document.querySelectorAll("main a.button")].map((link) => link.getAttribute("href").split("?")[0]),
    ]);
    const acting = found.filter((path) => /^.(rules.reload|callbacks.+)$/.test(path));
    assert.deepEqual(acting, [], name);
  }
  quiet(noted, [plan.origin]);
}

// A key that is not known, and a value of the wrong type.
async function breaks(page) {
  const file = `${plan.rules}/merchants/gamma.toml`;
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace("default_shop", "defualt_shop").replace("payout = true", 'payout = "yes"'));
  await eventually("the rules are refused", async () => {
    await page.goto(at("/rules"));
    return page.locator(".problem").count();
  });
  await says(page, "The files on disk are refused");
  await press(page, "Reload now");
  await says(page, "Failed: the files were refused; problems: ");
}

const browser = await launch();
await Promise.all([withoutScripts(browser), withScripts(browser)]);
const { page } = await enter(browser, "ada", "/", { javaScriptEnabled: false });
await breaks(page);
const ways = Object.entries(WAYS);
const halves = [0, 1].map((half) => ways.filter((_, index) => index % 2 === half));
await Promise.all([...halves.map((half) => looks(browser, half)), views(browser)]);
process.exit();
