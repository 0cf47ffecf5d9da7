// Verifies v1 callbacks of the default dialect, for any HTTP server. Needs only Node.
//
//   verifyV1(V1_SECRET, request.url, request.headers, body); // throws: answer 401
//   await store(body); // durably, once for each transaction_id
//   response.writeHead(200).end();
//
// `request.url` is the path of the callback's address, as the gateway sent it: a proxy must not have changed it. Verify the
// bytes as received, before they are parsed: JSON that is written again differs in its spaces.

// [snippet]
import { createHmac, timingSafeEqual } from "node:crypto";

/** Throws unless the callback is valid and recent. `target`: as received; `body`: the received Buffer. */
export function verifyV1(secret, target, headers, body) {
  const [timestamp, path] = [headers["x-timestamp"], target.split("?")[0]]; // the query is not signed
  const hmac = createHmac("sha256", secret).update(`${timestamp}.POST.${path}.`).update(body);
  // Compared as texts: a decoder of hex would skip what follows the digits.
  const [expected, given] = [Buffer.from(hmac.digest("hex")), Buffer.from(headers["x-signature"])];
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw new Error("wrong signature");
  const recent = /^[1-9][0-9]{0,11}$/.test(timestamp) && Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300;
  if (!recent) throw new Error("wrong timestamp"); // a replayed callback
}
// [/snippet]
