// The service that most teams would write: Node's own https, PostgreSQL by a pool, the shop's schema by Ajv. A signed v1
// payin in, the operation durable, a v1 reply out. It is a fair rival: nothing is slow on purpose, the create is a single
// prepared statement, and the log is buffered.
//
// Unlike Paybridge, it does not detect duplicate keys, reads numbers inside paymentData as binary floats, encrypts nothing at
// rest, and has no outbox, ledger or second API version.

import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { createWriteStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import https from "node:https";
import { BlockList, isIP } from "node:net";

const settings = JSON.parse(readFileSync(process.argv[2]));
const require = createRequire(settings.modules + "/");
const Ajv = require("ajv/dist/2020").default;
const addFormats = require("ajv-formats").default;
const pg = require("pg");

const ajv = new Ajv({ useDefaults: true, removeAdditional: true, keywords: ["x-allowed-list"] });
addFormats(ajv);
const schema = JSON.parse(readFileSync(settings.schema));
const shop = { code: "card-eur", currency: "EUR", check: ajv.compile({ ...schema, additionalProperties: false }) };
const banks = new Set(readFileSync(settings.banks, "utf8").split("\n").filter((line) => line && !line.startsWith("#")));

const keys = new Map(
  settings.keys.map((key) => {
    const allowed = new BlockList();
    for (const [network, length] of key.networks) allowed.addSubnet(network, length);
    return [key.name, { ...key, allowed, tokens: key.burst, refilled: Date.now() }];
  }),
);

const pool = new pg.Pool({ host: settings.socket, user: settings.user, database: "postgres", max: 16 });

// The log: one line per request, written in batches.
const logFile = createWriteStream(settings.log);
let lines = [];
setInterval(() => {
  if (lines.length) logFile.write(lines.join(""));
  lines = [];
}, 100);

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}
const refuse = (status, message) => {
  throw new Refusal(status, message);
};
const wrong = (member, why) => refuse(400, `${member}: ${why}`);

function admit(request) {
  const key = keys.get(request.headers["x-api-key"]);
  if (!key) refuse(401, "the request is not authentic");
  const peer = request.socket.remoteAddress;
  if (!key.allowed.check(peer, isIP(peer) === 6 ? "ipv6" : "ipv4")) refuse(403, "not allowed from this address");
  const now = Date.now();
  key.tokens = Math.min(key.burst, key.tokens + ((now - key.refilled) * key.perSecond) / 1000);
  key.refilled = now;
  if (key.tokens < 1) refuse(429, "too many requests");
  key.tokens -= 1;
  return key;
}

async function readBody(request) {
  const pieces = [];
  let length = 0;
  for await (const piece of request) {
    length += piece.length;
    if (length > 65536) refuse(413, "the body is too large");
    pieces.push(piece);
  }
  return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
}

function verify(request, key, path, body) {
  const { "x-timestamp": timestamp = "", "x-signature": signature = "" } = request.headers;
  if (!/^[0-9]{1,12}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) {
    refuse(401, "the request is not authentic");
  }
  const expected = createHmac("sha256", key.v1).update(`${timestamp}.${request.method}.${path}.`).update(body).digest();
  const given = Buffer.from(signature, "hex");
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) refuse(401, "the request is not authentic");
}

const KNOWN = new Set(
  "external_id amount currency shop_code callback_url merchant_user_id merchant_user_ip paymentData".split(" "),
);
const RESERVED = ["method", "customer_account_id", "success_url", "pending_url", "fail_url"];
const CUSTOMER = ["first_name", "last_name", "middle_name", "email", "phone"];
const URL_FORM = /^https?:\/\/[^\s/?#@\\\x00-\x20\x7f-\uffff]+(?:[/?#][\x21-\x5b\x5d-\x7e]*)?$/;

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isUrl = (value) => typeof value === "string" && value.length <= 2048 && URL_FORM.test(value);

function userIdOf(value) {
  if (value === undefined || value === null) return null;
  const text = Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text !== "string" || !/^(?:0|[1-9][0-9]{0,18})$/.test(text) || BigInt(text) > 9223372036854775807n) {
    wrong("merchant_user_id", "must be digits without a leading zero");
  }
  return text;
}

// Returns the v2 operation of a v1 body.
function translate(v1) {
  if (!isObject(v1)) wrong("the body", "must be a JSON object");
  for (const name in v1) if (!KNOWN.has(name)) wrong(name, "is not a known field");
  const { external_id: id, amount, currency, callback_url: callback, paymentData } = v1;
  if (typeof id !== "string" || id === "" || [...id].length > 255 || id.includes("\0")) {
    wrong("external_id", "must be a string of 1 to 255 characters");
  }
  if (typeof amount !== "string" || !/^0*[0-9]{1,13}(?:\.[0-9]{1,2})?$/.test(amount) || !/[1-9]/.test(amount)) {
    wrong("amount", "must be a decimal string greater than 0");
  }
  if (typeof currency !== "string" || !/^[A-Za-z]{3}$/.test(currency)) wrong("currency", "must be 3 letters");
  if (!isUrl(callback) || !callback.startsWith("https:")) wrong("callback_url", "must be an https:// URL");
  if (!isObject(paymentData)) wrong("paymentData", "must be a JSON object");
  const { return_user_url: returnUrl, ...fields } = paymentData;
  if (!isUrl(returnUrl)) wrong("paymentData.return_user_url", "must be an http(s):// URL");
  for (const name of RESERVED) if (name in fields) wrong(`paymentData.${name}`, "is a reserved name");
  for (const name of CUSTOMER) {
    if (fields[name] !== undefined && fields[name] !== null && typeof fields[name] !== "string") {
      wrong(`paymentData.${name}`, "must be a string");
    }
  }
  const address = v1.merchant_user_ip ?? fields.merchant_user_ip;
  if (address !== undefined && address !== null) {
    if (typeof address !== "string" || !isIP(address)) wrong("merchant_user_ip", "must be an IP address");
    if ((fields.merchant_user_ip ?? address) !== address) wrong("merchant_user_ip", "is there twice and differs");
    fields.merchant_user_ip = address;
  }
  const method = v1.shop_code ?? null;
  return { id, amount, currency: currency.toUpperCase(), method, user: userIdOf(v1.merchant_user_id), callback, returnUrl, fields };
}

// Checks the shop's current rules.
function checkShop(operation) {
  if ((operation.method ?? shop.code) !== shop.code) wrong("shop_code", "is not an active shop");
  if (operation.currency !== shop.currency) wrong("currency", "is not the shop's");
  const { merchant_user_ip: address, ...rest } = operation.fields;
  if (!shop.check(rest)) wrong(`paymentData${shop.check.errors[0].instancePath}`, shop.check.errors[0].message);
  if (rest.bank_code !== undefined && !banks.has(rest.bank_code)) wrong("paymentData.bank_code", "is not allowed");
  return address === undefined ? rest : { ...rest, merchant_user_ip: address };
}

const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
};

function redirectUrl(transactionId) {
  const path = `/pay/${transactionId}?expires=${Math.floor(Date.now() / 1000) + 1800}`;
  const signature = createHmac("sha256", settings.pageSecret).update(path).digest("hex");
  return `${settings.publicUrl}${path}&signature=${signature}`;
}

const INSERT = {
  name: "create",
  text: `INSERT INTO operations (transaction_id, merchant, direction, order_id, content_hash, amount, currency, shop,
           customer_account_id, callback_url, return_url, fields, redirect_url)
         VALUES ($1, $2, 'payin', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
         ON CONFLICT (merchant, direction, order_id) DO NOTHING`,
};
const EXISTING = {
  name: "existing",
  text: `SELECT transaction_id, redirect_url, content_hash FROM operations
         WHERE merchant = $1 AND direction = 'payin' AND order_id = $2`,
};

// Stores the operation, or finds the existing one: one statement, which is its own transaction.
async function create(key, operation, stored) {
  const { id, amount, currency, user, callback, returnUrl } = operation;
  const hash = createHash("sha256").update(JSON.stringify(sorted({ ...operation, amount: Number(amount) }))).digest();
  const transactionId = (randomBytes(8).readBigUInt64BE() >> 1n).toString();
  const redirect = redirectUrl(transactionId);
  const values = [transactionId, key.merchant, id, hash, amount, currency, shop.code, user, callback, returnUrl, stored, redirect];
  const made = await pool.query({ ...INSERT, values });
  if (made.rowCount === 1) return { transaction_id: transactionId, redirect_url: redirect };
  const { rows } = await pool.query({ ...EXISTING, values: [key.merchant, id] });
  if (!hash.equals(rows[0].content_hash)) refuse(409, "external_id: was used with other data");
  return rows[0];
}

async function answer(request) {
  const [path, query] = request.url.split("?");
  if (path !== "/api/v1/payin") refuse(404, "not found");
  if (request.method !== "POST") refuse(405, "only POST");
  if (query !== undefined) refuse(400, "a POST takes no query");
  if (!/^application\/json(?:;|$)/.test(request.headers["content-type"] ?? "")) refuse(415, "must be application/json");
  const key = admit(request);
  const body = await readBody(request);
  verify(request, key, path, body);
  let v1;
  try {
    v1 = JSON.parse(body);
  } catch {
    wrong("the body", "is not JSON");
  }
  const operation = translate(v1);
  const made = await create(key, operation, checkShop(operation));
  return { transaction_id: made.transaction_id, external_id: operation.id, redirect_url: made.redirect_url };
}

const server = https.createServer(
  { key: readFileSync(settings.key), cert: readFileSync(settings.certificate), keepAliveTimeout: 3600_000 },
  async (request, response) => {
    const started = performance.now();
    const requestId = request.headers["x-request-id"] ?? randomUUID();
    let status = 200;
    let body;
    try {
      body = JSON.stringify(await answer(request));
    } catch (error) {
      status = error instanceof Refusal ? error.status : 500;
      const message = status === 500 ? "an internal error" : error.message;
      body = JSON.stringify({ error: { code: status, message } });
      if (status === 500) process.stderr.write(`${error.stack}\n`);
      request.resume();
    }
    response.writeHead(status, {
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(body),
      "X-Request-Id": requestId,
    });
    response.end(body);
    const duration = (performance.now() - started).toFixed(3);
    const { method, url } = request;
    const time = new Date().toISOString();
    lines.push(`${JSON.stringify({ time, request_id: requestId, method, url, status, duration_ms: duration })}\n`);
  },
);
server.requestTimeout = 0;

await pool.query(readFileSync(settings.tables, "utf8"));
server.listen({ host: "127.0.0.1", port: settings.port, backlog: 4096 });
