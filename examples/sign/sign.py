"""Signs v1 requests, for requests, httpx or any other client. Needs only the standard library.

    body = json.dumps(order).encode()
    headers = sign_v1(API_KEY, V1_SECRET, "POST", "/api/v1/payin", body)
    requests.post(GATEWAY + "/api/v1/payin", data=body, headers=headers | {"Content-Type": "application/json"})

Send the signed bytes: `data=body` (httpx: `content=body`). With `json=order` the library would write JSON of its own, with
other spaces, and the signature would not match. Sign every attempt anew: a timestamp is valid for five minutes.
"""

# [snippet]
import hashlib, hmac, time


def sign_v1(api_key: str, secret: str, method: str, target: str, body: bytes = b"") -> dict[str, str]:
    """Returns the headers of a signed v1 request. `body`: exactly the bytes to send; none for GET."""
    timestamp = str(int(time.time()))  # seconds since 1970
    path = target.split("?")[0]  # the query is not signed
    payload = f"{timestamp}.{method}.{path}.".encode() + body
    signature = hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest()
    return {"X-Api-Key": api_key, "X-Timestamp": timestamp, "X-Signature": signature}
# [/snippet]
