// Where the pages lead: each walk ends at the merchant's site, or at a page that says why not.

import assert from "node:assert/strict";
import { arrives, doing, eventually, launch, open, plan, quiet, shows, state } from "./browser.mjs";

const focused = (page) => page.evaluate(() => document.activeElement.textContent.trim());

// From the entry link through the preparation to the merchant, by keyboard. Nothing is touched while it prepares, and it
// is ready only when it was seen to come again twice.
async function pays(page, noted, { url, success }) {
  await page.goto(url);
  await eventually("two more preparations", () => noted.shown.filter((shown) => shown === url).length >= 3);
  assert.equal((await fetch(`${plan.merchant}/seen`)).status, 200);
  await shows(page, "sandbox");
  // A page that was not painted yet drops the key.
  await eventually("a focus", async () => {
    if (await page.evaluate(() => document.activeElement !== document.body)) return true;
    await page.keyboard.press("Tab");
  });
  assert.equal(await focused(page), "Pay");
  await page.keyboard.press("Enter");
  await arrives(page, success);
}

// Back from the merchant's page sends no form again: it leads to the merchant, and so does the entry link.
async function looksBack(page, { url, success }) {
  doing("back");
  // A page that has only begun may not be attached yet, and then there is no way back from it.
  await page.waitForLoadState();
  await page.goBack({ waitUntil: "commit" });
  await arrives(page, success);
  await page.goto("about:blank");
  await page.goto(url, { waitUntil: "commit" });
  await arrives(page, success);
}

async function declines(page, { url, fail }) {
  await page.goto(url);
  await shows(page, "sandbox");
  await page.getByRole("button", { name: "Decline" }).click();
  await arrives(page, fail);
  // The merchant's own link says where it stands: what notes the requests would see it of ours too.
  await page.getByRole("link", { name: "Inside" }).click();
  await eventually("the merchant's next page", () => new URL(page.url()).pathname === "/inside");
}

// The link on a page, which leads back while the result is open.
async function returns(page, { url, pending }, wanted) {
  await page.goto(url);
  await shows(page, wanted);
  await page.getByRole("link", { name: "Return to the shop" }).click();
  await arrives(page, pending);
}

// Two windows of the same page: what was said first counts, in both of them.
async function changesMind(context, page, { url, success }) {
  const other = await context.newPage();
  for (const each of [page, other]) {
    await each.goto(url);
    await shows(each, "sandbox");
  }
  // The answers themselves: their pages go on before everybody has looked.
  for (const [each, name, status] of [[page, "Pay", 200], [other, "Decline", 409]]) {
    const answer = each.waitForResponse((reply) => reply.request().method() === "POST");
    await each.getByRole("button", { name }).click();
    assert.equal((await answer).status(), status, name);
    await arrives(each, success);
  }
}

async function isRefused(page, url) {
  doing(`refused: ${url}`);
  const reply = await page.goto(url);
  assert.equal(reply.status(), 403, url);
  assert.equal(await state(page), "refused", url);
}

// A link is refused from some moment on, and stays refused.
async function expires(page, url) {
  await eventually(`${url} expires`, async () => (await page.goto(url)).status() === 403);
  await isRefused(page, url);
}

// Where something drops the header, the page itself says that it comes again, to whoever runs no scripts.
async function refreshesWithoutHeader(browser) {
  const { context, noted, page } = await open(browser, { javaScriptEnabled: false });
  await context.route(/./, async (route) => {
    const reply = await route.fetch({ maxRedirects: 0 });
    const { refresh, ...headers } = reply.headers();
    assert.ok(refresh, "the header");
    await route.fulfill({ response: reply, headers });
  });
  await page.goto(plan.preparing);
  await eventually("two more preparations", () => noted.shown.filter((url) => url === plan.preparing).length >= 3);
  quiet(noted, plan.origins);
}

async function walk(browser, javaScriptEnabled) {
  const { context, noted, page } = await open(browser, { javaScriptEnabled });
  const orders = plan.walks[javaScriptEnabled ? "scripts" : "plain"];
  await pays(page, noted, orders.pay);
  await looksBack(page, orders.pay);
  await declines(page, orders.decline);
  await returns(page, orders.leave, "sandbox");
  await returns(page, orders.instructions, "instructions");
  await returns(page, orders.stopped, "stopped");
  await returns(page, orders.slow, "sandbox");
  await page.goto(orders.failed.url);
  await arrives(page, orders.failed.fail);
  await changesMind(context, page, orders.both);
  for (const url of plan.altered) await isRefused(page, url);
  await expires(page, plan.expiring);
  quiet(noted, [...plan.origins, plan.merchant]);
}

// Windows are left open: what is closed while it navigates may never say that it is closed. The browser ends with this
// program.
const browser = await launch();
await Promise.all([walk(browser, true), walk(browser, false), refreshesWithoutHeader(browser)]);
process.exit();
