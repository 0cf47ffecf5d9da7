// Signs v1 requests, for fetch, axios or any other client. Needs Node alone.
//
//   const body = JSON.stringify(order);
//   const headers = signV1(API_KEY, V1_SECRET, "POST", "/api/v1/payin", body);
//   await fetch(GATEWAY + "/api/v1/payin", { method: "POST", body, headers: { ...headers, "Content-Type": "application/json" } });
//
// Send what was signed: a string (fetch and axios send it as UTF-8) or a Buffer. Given an object, axios would write JSON of
// its own. Sign each try anew: a timestamp is good for five minutes.

// [snippet]
import { createHmac } from "node:crypto";

/** The headers of a signed v1 request. `body`: the very string or bytes that are sent; none for GET. */
export function signV1(apiKey, secret, method, target, body = "") {
  const timestamp = Math.floor(Date.now() / 1000).toString(); // seconds since 1970
  const path = target.split("?")[0]; // what follows the ? is not signed
  const signature = createHmac("sha256", secret).update(`${timestamp}.${method}.${path}.`).update(body).digest("hex");
  return { "X-Api-Key": apiKey, "X-Timestamp": timestamp, "X-Signature": signature };
}
// [/snippet]
