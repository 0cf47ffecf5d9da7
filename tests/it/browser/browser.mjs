// Chromium, and what must hold of whatever it shows.

import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(process.env.BROWSER_MODULES + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const PATIENCE_MS = 60_000;
// Of one look at a page: what the browser is asked while it navigates may never be answered.
const LOOK_MS = 5_000;
// Of a whole program, below what is waited for it: one hangs that is not done by then on the busiest machine.
const PROGRAM_MS = 15 * 60_000;

export const plan = JSON.parse(process.env.BROWSER_PLAN);

const steps = [];

// Says what is being done, for whoever has to find out why it never ends.
export const doing = (what) => steps.push(what);

setTimeout(() => {
  console.error(`not done in time; the last steps: ${steps.slice(-12).join(" | ")}`);
  process.exit(1);
}, PROGRAM_MS).unref();

// The hash of a certificate's key, by which Chromium can be told to believe it.
function keyHash(file) {
  const { publicKey } = new X509Certificate(readFileSync(file));
  return createHash("sha256").update(publicKey.export({ type: "spki", format: "der" })).digest("base64");
}

// Nothing but the gateways' own certificates is believed.
export function launch() {
  const args = [
    `--ignore-certificate-errors-spki-list=${JSON.parse(process.env.BROWSER_CERTIFICATES).map(keyHash)}`,
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ];
  const root = process.getuid() === 0;
  return chromium.launch({ executablePath: process.env.BROWSER_PROGRAM, args, chromiumSandbox: !root });
}

// A person's browser, which notes every request, every complaint in the console and every page it shows.
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, locale: "en-GB", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const noted = { requests: [], posts: [], complaints: [], shown: [] };
  context.on("request", (request) => {
    noted.requests.push(request.url());
    if (request.method() === "POST") noted.posts.push(request.url());
  });
  context.on("page", (page) => {
    page.on("console", (message) => noted.complaints.push(message.text()));
    page.on("pageerror", (error) => noted.complaints.push(String(error)));
    page.on("framenavigated", (frame) => noted.shown.push(frame.url()));
  });
  return { context, noted, page: await context.newPage() };
}

// Only these origins were asked for anything, and nothing was complained of but that a status is no success.
export function quiet(noted, origins) {
  const elsewhere = noted.requests.filter((url) => url !== "data:," && !origins.includes(new URL(url).origin));
  assert.deepEqual(elsewhere, [], "requests to other origins");
  const statuses = /^Failed to load resource: the server responded with a status of (400|401|403|404|409|429) /;
  assert.deepEqual(noted.complaints.filter((text) => !statuses.test(text)), [], "the console");
}

// What is not answered in time is an error, and is asked again by whoever polls.
function soon(answer) {
  const late = sleep(LOOK_MS, undefined, { ref: false }).then(() => Promise.reject(new Error("no answer")));
  return Promise.race([answer, late]);
}

// Polls; what a page does while it is being replaced says nothing.
export async function eventually(what, condition) {
  const deadline = Date.now() + PATIENCE_MS;
  let seen;
  doing(what);
  while (Date.now() < deadline) {
    try {
      seen = await soon(condition());
      if (seen) return seen;
    } catch (error) {
      if (error.code === "ERR_ASSERTION") throw error;
      seen = error;
    }
    await sleep(25);
  }
  throw new Error(`never happened: ${what}; at last: ${seen}`);
}

export const state = (page) => page.evaluate(() => document.querySelector("main")?.className ?? "");

export const shows = (page, wanted) =>
  eventually(`the page shows ${wanted}`, async () => (await state(page)) === wanted);

export const arrives = (page, url) => eventually(`the browser is at ${url}`, () => page.url() === url);

// Nothing is wider than the window.
export async function fits(page, what) {
  const [whole, window] = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return [scrollWidth, clientWidth];
  });
  assert.ok(whole <= window, `${what}: ${whole} px in a window of ${window} px`);
}

// Amounts, states, modes, times and ids are on one line each, no word is broken, no fact covers another, and no row of a phone
// has to be scrolled.
export async function whole(page, what) {
  const faults = await page.evaluate(() => {
    const main = document.querySelector("main");
    const texts = (within) => {
      const walk = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
      const found = [];
      for (let text; (text = walk.nextNode()); ) found.push(text);
      return found;
    };
    const lines = (text, from, to) => {
      const range = document.createRange();
      range.setStart(text, from);
      range.setEnd(text, to);
      const drawn = [...range.getClientRects()].filter(({ width }) => width > 0);
      return new Set(drawn.map(({ bottom }) => Math.round(bottom))).size;
    };
    const single = [...main.querySelectorAll("td.n, .one, .badge, time, .id:not(.long)")];
    const wrapped = single.filter((one) => texts(one).some((text) => lines(text, 0, text.length) > 1));
    const broken = texts(main)
      .filter((text) => !text.parentElement.closest("pre, textarea, option, thead, .hidden"))
      .flatMap((text) => [...text.data.matchAll(/\S+/g)]
        .filter((piece) => piece[0].length <= (text.parentElement.closest("h1, .dot") ? 40 : 24))
        .flatMap((piece) => [...piece[0].matchAll(/[\p{L}\p{N}]+/gu)].map((word) => [piece.index + word.index, word[0]]))
        .filter(([from, word]) => lines(text, from, from + word.length) > 1)
        .map(([, word]) => word));
    const facts = [...main.querySelectorAll("dd")].filter((fact) => fact.scrollWidth > fact.clientWidth);
    const boxes = innerWidth > 480 ? [] : [...main.querySelectorAll(".panel")];
    const scrolled = boxes.filter((box) => box.scrollWidth > box.clientWidth);
    return [...wrapped, ...facts, ...scrolled].map((one) => one.textContent.trim()).concat(broken);
  });
  assert.deepEqual(faults, [], what);
}

// A picture of the whole page for people, where the long run has the time.
export async function picture(page, name) {
  if (!process.env.PAYBRIDGE_LONG) return;
  const path = `${process.env.BROWSER_PICTURES}/${name}.png`;
  await page.screenshot({ path, fullPage: true, animations: "disabled" });
}

// What axe finds.
export async function accessible(page, what) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const violations = await page.evaluate(async (values) => {
    const { violations } = await globalThis.axe.run(document, { runOnly: { type: "tag", values } });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html + node.failureSummary).join("; ")}`);
  }, TAGS);
  assert.deepEqual(violations, [], what);
}

// The Tab key alone reaches everything that can be used, in the order of the text, and each shows that it was reached.
export async function reachable(page, what, leastHeight = 44) {
  const controls = page.locator("a[href], button, input:not([type=hidden], [hidden]), select, textarea, main [tabindex='0']");
  const usable = await controls.evaluateAll((all) => all.map((one) => one.name || one.textContent.trim()));
  // The key is held: one message to the browser a step, where pressing and looking would take four.
  await page.evaluate(() => {
    globalThis.reached = [];
    document.addEventListener("focusin", ({ target }) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(target);
      const outline = outlineStyle === "none" ? 0 : Number.parseFloat(outlineWidth);
      const name = target.name || target.textContent.trim();
      globalThis.reached.push({ name, outline, height: target.getBoundingClientRect().height });
    });
  });
  for (let step = 0; step < usable.length; step++) await page.keyboard.down("Tab");
  await page.keyboard.up("Tab");
  const reached = await page.evaluate(() => globalThis.reached);
  for (const { name, outline, height } of reached) {
    assert.ok(outline >= 2, `${what}: ${name}: an outline of ${outline} px`);
    assert.ok(height >= leastHeight, `${what}: ${name}: ${height} px high`);
  }
  assert.deepEqual(reached.map(({ name }) => name), usable, what);
}
