// Signs v1 requests, for java.net.http or any other client. Needs only the JDK, 17 or later.
//
//   byte[] body = json.getBytes(StandardCharsets.UTF_8);
//   var request = HttpRequest.newBuilder(URI.create(GATEWAY + "/api/v1/payin"))
//       .header("Content-Type", "application/json").POST(BodyPublishers.ofByteArray(body));
//   Sign.v1(API_KEY, V1_SECRET, "POST", "/api/v1/payin", body).forEach(request::header);
//
// Send the signed bytes. Sign every attempt anew: a timestamp is valid for five minutes.

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Sign {
    private Sign() {}

    // [snippet]
    /** Returns the headers of a signed v1 request. `body`: exactly the bytes to send; empty for GET. */
    public static Map<String, String> v1(String apiKey, String secret, String method, String target, byte[] body)
            throws GeneralSecurityException {
        String timestamp = Long.toString(Instant.now().getEpochSecond()); // seconds since 1970
        String path = target.split("\\?", 2)[0]; // the query is not signed
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
        mac.update((timestamp + "." + method + "." + path + ".").getBytes(UTF_8));
        String signature = HexFormat.of().formatHex(mac.doFinal(body));
        return Map.of("X-Api-Key", apiKey, "X-Timestamp", timestamp, "X-Signature", signature);
    }
    // [/snippet]
}
