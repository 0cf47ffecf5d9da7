"""Verifies callbacks, in whatever serves HTTP. Needs the standard library alone.

    def callback(request):
        callback_id = verify_callback(V2_SECRET, request.headers, request.body)  # raises: answer 401
        store(callback_id, request.body)  # durably, once for each id
        return 200  # then read the status, beside the request

Verify the bytes that came, before anything parses them: JSON that is written anew differs in its spaces. While a secret is
being changed, accept a callback that either of both verifies.
"""

# [snippet]
import base64, hashlib, hmac, time


def verify_callback(secret: str, headers, body: bytes) -> str:
    """The id of a callback that is true and new; raises otherwise. `body`: the very bytes that came."""
    callback_id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    payload = f"{callback_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(secret.encode(), payload, hashlib.sha256).digest()).decode()
    if not any(hmac.compare_digest(f"v1,{signature}", given) for given in headers["webhook-signature"].split(" ")):
        raise ValueError("wrong signature")
    if abs(time.time() - int(timestamp)) > 300:  # a callback that somebody kept
        raise ValueError("too old")
    return callback_id
# [/snippet]
