<?php
// Signs v1 requests, for PHP's curl or any other client. Needs only PHP.
//
//   $body = json_encode($order, JSON_THROW_ON_ERROR);
//   $headers = sign_v1($apiKey, $secret, 'POST', '/api/v1/payin', $body);
//   curl_setopt_array($curl, [CURLOPT_POSTFIELDS => $body, CURLOPT_HTTPHEADER => [...$headers, 'Content-Type: application/json']]);
//
// Send the signed string: an array as CURLOPT_POSTFIELDS would be sent as a form. json_encode writes an empty PHP array as [],
// where v1 requires an object: cast it, (object) []. Sign every attempt anew: a timestamp is valid for five minutes.

// [snippet]
/** Returns the headers of a signed v1 request. $body: exactly the string to send; none for GET. */
function sign_v1(string $apiKey, string $secret, string $method, string $target, string $body = ''): array
{
    $timestamp = time(); // seconds since 1970
    $path = explode('?', $target)[0]; // the query is not signed
    $signature = hash_hmac('sha256', "$timestamp.$method.$path.$body", $secret);
    return ["X-Api-Key: $apiKey", "X-Timestamp: $timestamp", "X-Signature: $signature"];
}
// [/snippet]
