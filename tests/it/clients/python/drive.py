"""Sends the steps of a plan with requests or httpx, and prints what each was answered (see tests/it/clients/mod.rs).

    drive.py requests|httpx
"""

import asyncio
import json
import os
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.environ["CLIENT_SIGN"])
from sign import sign_v1  # noqa: E402

BASE, CA, HTTP = os.environ["CLIENT_URL"], os.environ["CLIENT_CA"], os.environ["CLIENT_HTTP"]
PATIENCE_SECONDS = 30


def in_pieces(body):
    """A body of unknown length."""
    for start in range(0, len(body), 1000):
        yield body[start : start + 1000]


class WithRequests:
    def __init__(self):
        import requests

        self.session = requests.Session()

    def send(self, method, target, headers, body, chunked):
        data = in_pieces(body) if chunked else body
        # With every request: what a session is told to verify by gives way to REQUESTS_CA_BUNDLE.
        reply = self.session.request(
            method, BASE + target, headers=headers, data=data, verify=CA, timeout=PATIENCE_SECONDS
        )
        return reply.status_code, {11: "1.1", 20: "2"}[reply.raw.version], reply.text

    def beside(self, steps):
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda step: perform(self, step), steps))


class WithHttpx:
    def __init__(self):
        import httpx

        trust = ssl.create_default_context(cafile=CA)
        settings = {"verify": trust, "http1": HTTP == "1.1", "http2": HTTP == "2", "timeout": PATIENCE_SECONDS}
        self.client = httpx.Client(**settings)
        self.concurrent = lambda: httpx.AsyncClient(**settings)

    def send(self, method, target, headers, body, chunked):
        content = in_pieces(body) if chunked else body
        return self.seen(self.client.request(method, BASE + target, headers=headers, content=content))

    def beside(self, steps):
        # The client without async mixes up the streams of an HTTP/2 connection that threads share.
        return asyncio.run(self.beside_async(steps))

    async def beside_async(self, steps):
        async with self.concurrent() as client:
            return await asyncio.gather(*(self.perform_async(client, step) for step in steps))

    async def perform_async(self, client, step):
        method, target, headers, body = request(step)
        try:
            reply = await client.request(method, BASE + target, headers=headers, content=body)
        except Exception as error:
            return failed(step, error)
        return answered(step, *self.seen(reply))

    @staticmethod
    def seen(reply):
        return reply.status_code, reply.http_version.removeprefix("HTTP/"), reply.text


def request(step):
    _, _, method, target, sending, secret, file = step
    body = None if file == "-" else Path(file).read_bytes()
    headers = sign_v1(os.environ["CLIENT_KEY"], secret, method, target, body or b"")
    if body is not None:
        headers["Content-Type"] = "application/json"
    if sending == "expect":
        # Neither library waits for the 100: both have to live with it coming while they send.
        headers["Expect"] = "100-continue"
    return method, target, headers, body


def failed(step, error):
    return {"step": step[0], "error": f"{type(error).__name__}: {error}"}


def answered(step, status, http, text):
    return {"step": step[0], "status": status, "http": http, "text": text}


def perform(client, step):
    method, target, headers, body = request(step)
    try:
        return answered(step, *client.send(method, target, headers, body, step[4] == "chunked"))
    except Exception as error:
        return failed(step, error)


def main():
    client = {"requests": WithRequests, "httpx": WithHttpx}[sys.argv[1]]()
    steps = [line.split("\t") for line in Path(os.environ["CLIENT_PLAN"]).read_text().splitlines()]
    seen = [perform(client, step) for step in steps if step[1] == "after"]
    seen += client.beside([step for step in steps if step[1] == "beside"])
    for line in seen:
        print(json.dumps(line))


main()
