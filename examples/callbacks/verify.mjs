// Verifies callbacks, for any HTTP server. Needs only Node.
//
//   const callbackId = verifyCallback(V2_SECRET, request.headers, body); // throws: answer 401
//   await store(callbackId, body); // durably, once for each id
//   response.writeHead(200).end(); // then read the status, outside of this request
//
// Verify the bytes as received, before they are parsed: JSON that is written again differs in its spaces. While a secret is
// being changed, accept a callback that the old or the new one verifies.

// [snippet]
import { createHmac, timingSafeEqual } from "node:crypto";

/** Returns the id of a valid, recent callback; throws otherwise. `headers`: lower-case names; `body`: the received Buffer. */
export function verifyCallback(secret, headers, body) {
  const [id, timestamp] = [headers["webhook-id"], headers["webhook-timestamp"]];
  const hmac = createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`); // compared as texts: a decoder would skip wrong characters
  const same = (given) => given.length === expected.length && timingSafeEqual(given, expected);
  const given = headers["webhook-signature"].split(" ").map((one) => Buffer.from(one));
  if (!given.some(same)) throw new Error("wrong signature");
  const recent = /^[1-9][0-9]{0,11}$/.test(timestamp) && Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300;
  if (!recent) throw new Error("wrong timestamp"); // a replayed callback
  return id;
}
// [/snippet]
