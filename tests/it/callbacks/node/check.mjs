// Verifies callbacks, one a line of JSON, with the public library and as examples/callbacks does; prints what each says.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { Webhook } = createRequire(`${process.env.MODULES}/`)("standardwebhooks");
const { verifyCallback } = await import(pathToFileURL(`${process.env.EXAMPLES}/verify.mjs`));

const ways = {
  library: (secret, headers, body) => new Webhook(secret, { format: "raw" }).verify(body, headers).order_id,
  by_hand: verifyCallback,
};
for (const line of readFileSync(0, "utf8").trim().split("\n")) {
  const { secret, headers, body } = JSON.parse(line);
  const said = {};
  for (const [name, verify] of Object.entries(ways)) {
    try {
      said[name] = verify(secret, headers, Buffer.from(body));
    } catch (error) {
      said[name] = `refused: ${error.message}`;
    }
  }
  console.log(JSON.stringify(said));
}
