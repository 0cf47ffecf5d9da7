<?php
// Signs v1 requests, for PHP's curl or any other client. Needs PHP alone.
//
//   $body = json_encode($order, JSON_THROW_ON_ERROR);
//   $headers = sign_v1($apiKey, $secret, 'POST', '/api/v1/payin', $body);
//   curl_setopt_array($curl, [CURLOPT_POSTFIELDS => $body, CURLOPT_HTTPHEADER => [...$headers, 'Content-Type: application/json']]);
//
// Send the string that was signed: an array as CURLOPT_POSTFIELDS would be sent as a form. An empty PHP array is written as
// [], where v1 wants an object: cast it, (object) []. Sign each try anew: a timestamp is good for five minutes.

// [snippet]
/** The headers of a signed v1 request. $body: the very string that is sent; none for GET. */
function sign_v1(string $apiKey, string $secret, string $method, string $target, string $body = ''): array
{
    $timestamp = time(); // seconds since 1970
    $path = explode('?', $target)[0]; // what follows the ? is not signed
    $signature = hash_hmac('sha256', "$timestamp.$method.$path.$body", $secret);
    return ["X-Api-Key: $apiKey", "X-Timestamp: $timestamp", "X-Signature: $signature"];
}
// [/snippet]
