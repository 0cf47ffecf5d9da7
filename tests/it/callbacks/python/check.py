"""Verifies callbacks, one a line of JSON, with the public library and as examples/callbacks does; prints what each says."""

import json, os, sys

from standardwebhooks import Webhook

sys.path.insert(0, os.environ["EXAMPLES"])
from verify import verify_callback


def by_library(secret, headers, body):
    return Webhook(secret.encode()).verify(body, headers)["order_id"]


for line in sys.stdin:
    case = json.loads(line)
    said = {}
    for name, verify in [("library", by_library), ("by_hand", verify_callback)]:
        try:
            said[name] = verify(case["secret"], case["headers"], case["body"].encode())
        except Exception as error:
            said[name] = f"refused: {error}"
    print(json.dumps(said))
