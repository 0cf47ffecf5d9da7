// Verifies callbacks, in whatever serves HTTP. Needs Node alone.
//
//   const callbackId = verifyCallback(V2_SECRET, request.headers, body); // throws: answer 401
//   await store(callbackId, body); // durably, once for each id
//   response.writeHead(200).end(); // then read the status, beside the request
//
// Verify the bytes that came, before anything parses them: JSON that is written anew differs in its spaces. While a secret
// is being changed, accept a callback that either of both verifies.

// [snippet]
import { createHmac, timingSafeEqual } from "node:crypto";

/** The id of a callback that is true and new; throws otherwise. `headers`: lower-case names; `body`: the Buffer that came. */
export function verifyCallback(secret, headers, body) {
  const [id, timestamp] = [headers["webhook-id"], headers["webhook-timestamp"]];
  const expected = createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest();
  const given = headers["webhook-signature"].split(" ").filter((one) => one.startsWith("v1,"));
  const same = (one) => one.length === expected.length && timingSafeEqual(one, expected);
  if (!given.some((one) => same(Buffer.from(one.slice(3), "base64")))) throw new Error("wrong signature");
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) throw new Error("too old"); // somebody kept it
  return id;
}
// [/snippet]
