<?php
// Sends the steps of a plan with PHP's curl, and prints what each was answered (see tests/it/clients/mod.rs).

require getenv('CLIENT_SIGN') . '/sign.php';

const PATIENCE_SECONDS = 30;

function version(): int
{
    return getenv('CLIENT_HTTP') === '2' ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;
}

/** A transfer that is ready to be performed, on a handle that may have been used before. */
function prepared(CurlHandle $curl, array $step): CurlHandle
{
    [, , $method, $target, $sending, $secret, $file] = $step;
    $body = $file === '-' ? '' : file_get_contents($file);
    $headers = sign_v1(getenv('CLIENT_KEY'), $secret, $method, $target, $body);
    curl_reset($curl);
    curl_setopt_array($curl, [
        CURLOPT_URL => getenv('CLIENT_URL') . $target,
        CURLOPT_CAINFO => getenv('CLIENT_CA'),
        CURLOPT_HTTP_VERSION => version(),
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => PATIENCE_SECONDS,
        // A 100 that is asked for and does not come is an error here, not a second lost.
        CURLOPT_EXPECT_100_TIMEOUT_MS => 2 * PATIENCE_SECONDS * 1000,
    ]);
    if ($file !== '-') {
        $headers[] = 'Content-Type: application/json';
        curl_setopt_array($curl, body($sending, $body));
    }
    if ($sending === 'expect') {
        $headers[] = 'Expect: 100-continue';
    } elseif ($sending === 'chunked') {
        $headers[] = 'Transfer-Encoding: chunked';
    }
    curl_setopt($curl, CURLOPT_HTTPHEADER, $headers);
    return $curl;
}

function body(string $sending, string $body): array
{
    if ($sending !== 'chunked') {
        return [CURLOPT_POSTFIELDS => $body];
    }
    $sent = 0;
    $next = function ($curl, $file, int $length) use (&$sent, $body): string {
        $piece = substr($body, $sent, min($length, 1000));
        $sent += strlen($piece);
        return $piece;
    };
    return [CURLOPT_POST => true, CURLOPT_READFUNCTION => $next];
}

function seen(CurlHandle $curl, string $step, string $error, ?string $text): array
{
    if ($error !== '') {
        return ['step' => $step, 'error' => $error];
    }
    $names = [CURL_HTTP_VERSION_1_1 => '1.1', CURL_HTTP_VERSION_2 => '2', CURL_HTTP_VERSION_2_0 => '2'];
    $http = $names[curl_getinfo($curl, CURLINFO_HTTP_VERSION)] ?? 'unknown';
    return ['step' => $step, 'status' => curl_getinfo($curl, CURLINFO_RESPONSE_CODE), 'http' => $http, 'text' => $text];
}

function one_after_another(array $steps): array
{
    $curl = curl_init();
    return array_map(function (array $step) use ($curl): array {
        $text = curl_exec(prepared($curl, $step));
        return seen($curl, $step[0], curl_error($curl), $text === false ? null : $text);
    }, $steps);
}

function beside_each_other(array $steps): array
{
    $all = curl_multi_init();
    $transfers = array_map(fn (array $step): CurlHandle => prepared(curl_init(), $step), $steps);
    array_map(fn (CurlHandle $curl) => curl_multi_add_handle($all, $curl), $transfers);
    do {
        curl_multi_exec($all, $running);
        curl_multi_select($all, 1.0);
    } while ($running > 0);
    return array_map(
        fn (CurlHandle $curl, array $step): array =>
            seen($curl, $step[0], curl_error($curl), curl_multi_getcontent($curl)),
        $transfers,
        $steps,
    );
}

$steps = array_map(fn (string $line): array => explode("\t", $line), file(getenv('CLIENT_PLAN'), FILE_IGNORE_NEW_LINES));
$placed = fn (string $place): array => array_values(array_filter($steps, fn (array $step): bool => $step[1] === $place));
foreach ([...one_after_another($placed('after')), ...beside_each_other($placed('beside'))] as $line) {
    echo json_encode($line, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE), "\n";
}
