// Signs v1 requests, for fetch, axios or any other client. Needs only Node.
//
//   const body = JSON.stringify(order);
//   const headers = signV1(API_KEY, V1_SECRET, "POST", "/api/v1/payin", body);
//   await fetch(GATEWAY + "/api/v1/payin", { method: "POST", body, headers: { ...headers, "Content-Type": "application/json" } });
//
// Send exactly the signed string (fetch and axios send it as UTF-8) or Buffer. Given an object, axios would write JSON of its
// own. Sign every attempt anew: a timestamp is valid for five minutes.

// [snippet]
import { createHmac } from "node:crypto";

/** Returns the headers of a signed v1 request. `body`: exactly the string or bytes to send; none for GET. */
export function signV1(apiKey, secret, method, target, body = "") {
  const timestamp = Math.floor(Date.now() / 1000).toString(); // seconds since 1970
  const path = target.split("?")[0]; // the query is not signed
  const signature = createHmac("sha256", secret).update(`${timestamp}.${method}.${path}.`).update(body).digest("hex");
  return { "X-Api-Key": apiKey, "X-Timestamp": timestamp, "X-Signature": signature };
}
// [/snippet]
