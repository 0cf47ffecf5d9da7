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
  const expected = createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest();
  const given = headers["webhook-signature"].split(" ").filter((one) => one.startsWith("v1,"));
  const same = (one) => one.length === expected.length && timingSafeEqual(one, expected);
  if (!given.some((one) => same(Buffer.from(one.slice(3), "base64")))) throw new Error("wrong signature");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) throw new Error("too old"); // replayed
  return id;
}
// [/snippet]
