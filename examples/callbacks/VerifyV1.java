// Verifies v1 callbacks of the default dialect, for any HTTP server. Needs only the JDK, 17 or later.
//
//   byte[] body = request.getInputStream().readAllBytes();
//   VerifyV1.verify(V1_SECRET, request.getRequestURI(), request.getHeader("X-Timestamp"), request.getHeader("X-Signature"), body);
//   store(body); // durably, once for each transaction_id; then answer 200, and 401 where verify throws
//
// The target is the path of the callback's address, as the gateway sent it: a proxy must not have changed it. Verify the bytes
// as received, before they are parsed: JSON that is written again differs in its spaces.

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SignatureException;
import java.time.Instant;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class VerifyV1 {
    private VerifyV1() {}

    // [snippet]
    /** Throws unless the callback is valid and recent. `target`: as received; `body`: exactly the received bytes. */
    public static void verify(String secret, String target, String timestamp, String signature, byte[] body)
            throws GeneralSecurityException {
        String path = target.split("\\?", 2)[0]; // the query is not signed
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
        mac.update((timestamp + ".POST." + path + ".").getBytes(UTF_8));
        String expected = HexFormat.of().formatHex(mac.doFinal(body));
        // isEqual compares in constant time.
        if (signature == null || !MessageDigest.isEqual(expected.getBytes(UTF_8), signature.getBytes(UTF_8)))
            throw new SignatureException("wrong signature");
        if (timestamp == null || !timestamp.matches("[1-9][0-9]{0,11}")
                || Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) > 300)
            throw new SignatureException("wrong timestamp"); // a replayed callback
    }
    // [/snippet]
}
