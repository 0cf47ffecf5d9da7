"""Verifies callbacks, for any HTTP server. Needs only the standard library.

    def callback(request):
        callback_id = verify_callback(V2_SECRET, request.headers, request.body)  # raises: answer 401
        store(callback_id, request.body)  # durably, once for each id
        return 200  # then read the status, outside of this request

Verify the bytes as received, before they are parsed: JSON that is written again differs in its spaces. While a secret is being
changed, accept a callback that the old or the new one verifies.
"""

# [snippet]
import base64, hashlib, hmac, re, time


def verify_callback(secret: str, headers, body: bytes) -> str:
    """Returns the id of a valid, recent callback; raises otherwise. `body`: exactly the received bytes."""
    callback_id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    payload = f"{callback_id}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(secret.encode(), payload, hashlib.sha256).digest())
    if not any(hmac.compare_digest(expected, given.encode()) for given in headers["webhook-signature"].split(" ")):
        raise ValueError("wrong signature")
    if not re.fullmatch("[1-9][0-9]{0,11}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        raise ValueError("wrong timestamp")  # a replayed callback
    return callback_id
# [/snippet]
