<?php
// Verifies v1 callbacks of the default dialect, for any HTTP server. Needs only PHP, 8.0 or later.
//
//   $body = file_get_contents('php://input');
//   verify_v1($secret, $_SERVER['REQUEST_URI'], $_SERVER['HTTP_X_TIMESTAMP'] ?? '', $_SERVER['HTTP_X_SIGNATURE'] ?? '', $body);
//   store($body); // durably, once for each transaction_id; then answer 200, and 401 where verify_v1 throws
//
// The target is the path of the callback's address, as the gateway sent it: a proxy must not have changed it. Verify the bytes
// as received, before they are parsed: JSON that is written again differs in its spaces.

// [snippet]
/** Throws unless the callback is valid and recent. $target: as received; $body: exactly the received bytes. */
function verify_v1(string $secret, string $target, string $timestamp, string $signature, string $body): void
{
    $path = explode('?', $target)[0]; // the query is not signed
    $expected = hash_hmac('sha256', "$timestamp.POST.$path.$body", $secret);
    if (!hash_equals($expected, $signature)) { // in constant time
        throw new RuntimeException('wrong signature');
    }
    if (!preg_match('/^[1-9][0-9]{0,11}\z/', $timestamp) || abs(time() - (int) $timestamp) > 300) {
        throw new RuntimeException('wrong timestamp'); // a replayed callback
    }
}
// [/snippet]
