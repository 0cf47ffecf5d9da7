"""Verifies v1 callbacks of the default dialect, for any HTTP server. Needs only the standard library.

    def callback(request):
        verify_v1(V1_SECRET, request.path, request.headers, request.body)  # raises: answer 401
        store(request.body)  # durably, once for each transaction_id
        return 200

`request.path` is that of the callback's address, as the gateway sent it: a proxy must not have changed it. Verify the bytes as
received, before they are parsed: JSON that is written again differs in its spaces.
"""

# [snippet]
import hashlib, hmac, re, time


def verify_v1(secret: str, target: str, headers, body: bytes) -> None:
    """Raises unless the callback is valid and recent. `target`: as received; `body`: exactly the received bytes."""
    timestamp, path = headers["X-Timestamp"], target.split("?")[0]  # the query is not signed
    payload = f"{timestamp}.POST.{path}.".encode() + body
    expected = hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), headers["X-Signature"].encode()):
        raise ValueError("wrong signature")
    if not re.fullmatch("[1-9][0-9]{0,11}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        raise ValueError("wrong timestamp")  # a replayed callback
# [/snippet]
