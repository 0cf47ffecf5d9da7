// Sends the steps of a plan with fetch, axios or Node's own http and http2, and prints what each was answered (see
// tests/it/clients/mod.rs).
//
//   node drive.mjs fetch|axios|core

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import diagnostics from "node:diagnostics_channel";
import http2 from "node:http2";
import https from "node:https";

const { signV1 } = await import(process.env.CLIENT_SIGN + "/sign.mjs");
const installed = createRequire(process.env.CLIENT_MODULES + "/");
const { CLIENT_URL: BASE, CLIENT_HTTP: HTTP, CLIENT_KEY: KEY } = process.env;
const ca = readFileSync(process.env.CLIENT_CA);
const PATIENCE_MS = 30_000;

/** A body of unknown length. */
async function* inPieces(body) {
  for (let start = 0; start < body.length; start += 1000) yield body.subarray(start, start + 1000);
}

/** The fetch of Node itself speaks HTTP/1.1; that of undici, from which Node's is made, HTTP/2 too. */
function withFetch() {
  const protocols = new Set();
  diagnostics.subscribe("undici:client:connected", ({ socket }) => protocols.add(socket.alpnProtocol || "http/1.1"));
  const { fetch: send, ...own } = HTTP === "2" ? fetchOverHttp2() : { fetch };
  return async ({ method, target, headers, body, sending }) => {
    if (sending === "expect") return { skipped: "fetch does not offer Expect" };
    const streamed = sending === "chunked" ? { body: inPieces(body), duplex: "half" } : { body };
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const reply = await send(BASE + target, { method, headers, signal, ...own, ...(body ? streamed : {}) });
    const text = await reply.text();
    const http = [...protocols].map((name) => (name === "h2" ? "2" : "1.1")).join();
    return { status: reply.status, http, text };
  };
}

function fetchOverHttp2() {
  const { Agent, fetch } = installed("undici");
  return { fetch, dispatcher: new Agent({ allowH2: true, connect: { ca } }) };
}

function withAxios() {
  const axios = installed("axios");
  const httpsAgent = new https.Agent({ ca, keepAlive: true });
  const own = HTTP === "2" ? { httpVersion: 2, http2Options: { ca } } : { httpsAgent };
  return async ({ method, target, headers, body, sending }) => {
    const { Readable } = await import("node:stream");
    const data = sending === "chunked" ? Readable.from(inPieces(body)) : body;
    // axios throws for 4xx unless it is told not to, and writes a body of its own unless it is given bytes.
    const reply = await axios.request({
      method, url: BASE + target, headers, data, ...own,
      maxRedirects: 0, timeout: PATIENCE_MS, responseType: "text", transformResponse: (text) => text,
      validateStatus: () => true,
    });
    const http = reply.request?.res?.httpVersion ?? (isHttp2(reply.request) ? "2" : "unknown");
    return { status: reply.status, http, text: reply.data };
  };
}

const isHttp2 = (stream) => stream?.constructor?.name === "ClientHttp2Stream";

function collect(stream) {
  return new Promise((resolve, reject) => {
    const pieces = [];
    stream.on("data", (piece) => pieces.push(piece));
    stream.on("end", () => resolve(Buffer.concat(pieces).toString()));
    stream.on("error", reject);
  });
}

/** Writes the body as the step wants it: after the 100 where one was asked for. */
function write(request, sending, body) {
  if (sending === "expect") request.on("continue", () => request.end(body));
  else if (sending === "chunked") void (async () => {
    for await (const piece of inPieces(body)) request.write(piece);
    request.end();
  })();
  else request.end(body);
}

function withHttps() {
  const agent = new https.Agent({ ca, keepAlive: true });
  return ({ method, target, headers, body, sending }) => new Promise((resolve, reject) => {
    const length = body && sending !== "chunked" ? { "Content-Length": body.length } : {};
    const expect = sending === "expect" ? { Expect: "100-continue" } : {};
    const request = https.request(BASE + target, {
      method, agent, headers: { ...headers, ...length, ...expect }, timeout: PATIENCE_MS,
    });
    let answered = false;
    request.on("timeout", () => request.destroy(new Error("no answer in time")));
    // The gateway may close while the rest of a refused body is still on its way: the reply counts.
    request.on("error", (error) => answered || reject(error));
    request.on("response", async (reply) => {
      answered = true;
      const text = await collect(reply).catch(reject);
      resolve({ status: reply.statusCode, http: reply.httpVersion, text });
    });
    write(request, sending, body);
  });
}

function withHttp2() {
  const session = http2.connect(BASE, { ca });
  return ({ method, target, headers, body, sending }) => new Promise((resolve, reject) => {
    const length = body && sending !== "chunked" ? { "content-length": body.length } : {};
    const expect = sending === "expect" ? { expect: "100-continue" } : {};
    const request = session.request(
      { ":method": method, ":path": target, ...headers, ...length, ...expect }, { endStream: !body },
    );
    let answered = false;
    request.setTimeout(PATIENCE_MS, () => request.destroy(new Error("no answer in time")));
    request.on("error", (error) => answered || reject(error));
    request.on("response", async (head) => {
      answered = true;
      const text = await collect(request).catch(reject);
      if (!request.writableEnded) request.close();
      resolve({ status: head[":status"], http: session.alpnProtocol === "h2" ? "2" : "unknown", text });
    });
    if (body) write(request, sending, body);
  });
}

async function perform(send, [step, , method, target, sending, secret, file]) {
  const body = file === "-" ? undefined : readFileSync(file);
  const headers = signV1(KEY, secret, method, target, body);
  if (body) headers["Content-Type"] = "application/json";
  if (sending === "expect" && process.argv[2] === "axios") headers.Expect = "100-continue";
  try {
    return { step, ...(await send({ method, target, headers, body, sending })) };
  } catch (error) {
    return { step, error: `${error} ${error.cause ?? ""}` };
  }
}

const libraries = { fetch: withFetch, axios: withAxios, core: HTTP === "2" ? withHttp2 : withHttps };
const send = libraries[process.argv[2]]();
const steps = readFileSync(process.env.CLIENT_PLAN, "utf8").trimEnd().split("\n").map((line) => line.split("\t"));
const seen = [];
for (const step of steps.filter((step) => step[1] === "after")) seen.push(await perform(send, step));
seen.push(...(await Promise.all(steps.filter((step) => step[1] === "beside").map((step) => perform(send, step)))));
for (const line of seen) console.log(JSON.stringify(line));
process.exit(0);
