// Sends the steps of a plan with java.net.http, and prints what each was answered (see tests/it/clients/mod.rs).

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public final class Drive {
    private static final Map<String, String> GIVEN = System.getenv();
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private record Step(String name, String place, String method, String target, String sending, String secret, String file) {
        static Step of(String line) {
            String[] words = line.split("\t");
            return new Step(words[0], words[1], words[2], words[3], words[4], words[5], words[6]);
        }

        byte[] body() throws Exception {
            return file.equals("-") ? new byte[0] : Files.readAllBytes(Path.of(file));
        }
    }

    /** Trusts the certificates of a PEM file, and no others. */
    private static SSLContext trusting(Path pem) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream in = Files.newInputStream(pem)) {
            for (var certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("ca-" + store.size(), certificate);
            }
        }
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    private static HttpRequest request(Step step) throws Exception {
        byte[] body = step.body();
        var request = HttpRequest.newBuilder(URI.create(GIVEN.get("CLIENT_URL") + step.target())).timeout(PATIENCE);
        Sign.v1(GIVEN.get("CLIENT_KEY"), step.secret(), step.method(), step.target(), body).forEach(request::header);
        if (step.method().equals("GET")) {
            return request.GET().build();
        }
        BodyPublisher whole = BodyPublishers.ofByteArray(body);
        // A publisher that does not know its length.
        BodyPublisher sent = step.sending().equals("chunked") ? BodyPublishers.fromPublisher(whole) : whole;
        return request.header("Content-Type", "application/json")
                .expectContinue(step.sending().equals("expect")).method(step.method(), sent).build();
    }

    /** Before Java 20, a client that waits for a 100 and is refused instead waits for ever (JDK-8286171). */
    private static boolean wouldHang(Step step) throws Exception {
        boolean refusedAtOnce = step.body().length > 64 * 1024;
        return step.sending().equals("expect") && refusedAtOnce && Runtime.version().feature() < 20;
    }

    private static CompletableFuture<String> perform(HttpClient client, Step step) {
        CompletableFuture<HttpResponse<String>> reply;
        try {
            if (wouldHang(step)) {
                return CompletableFuture.completedFuture(skipped(step, "JDK-8286171"));
            }
            reply = client.sendAsync(request(step), BodyHandlers.ofString());
        } catch (Exception error) {
            reply = CompletableFuture.failedFuture(error);
        }
        return reply.handle((answer, error) -> answer == null ? failed(step, error) : seen(step, answer));
    }

    private static String failed(Step step, Throwable error) {
        return "{\"step\":%s,\"error\":%s}".formatted(quoted(step.name()), quoted(String.valueOf(error)));
    }

    private static String skipped(Step step, String reason) {
        return "{\"step\":%s,\"skipped\":%s}".formatted(quoted(step.name()), quoted(reason));
    }

    private static String seen(Step step, HttpResponse<String> answer) {
        String http = answer.version() == HttpClient.Version.HTTP_2 ? "2" : "1.1";
        return "{\"step\":%s,\"status\":%d,\"http\":\"%s\",\"text\":%s}"
                .formatted(quoted(step.name()), answer.statusCode(), http, quoted(answer.body()));
    }

    /** A JSON string; the JDK has no JSON of its own. */
    private static String quoted(String text) {
        var quoted = new StringBuilder("\"");
        text.chars().forEach(c -> {
            if (c == '"' || c == '\\' || c < ' ') {
                quoted.append("\\u%04x".formatted(c));
            } else {
                quoted.append((char) c);
            }
        });
        return quoted.append('"').toString();
    }

    public static void main(String[] arguments) throws Exception {
        boolean second = GIVEN.get("CLIENT_HTTP").equals("2");
        HttpClient client = HttpClient.newBuilder()
                .sslContext(trusting(Path.of(GIVEN.get("CLIENT_CA"))))
                .version(second ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1)
                .build();
        List<Step> steps = Files.readAllLines(Path.of(GIVEN.get("CLIENT_PLAN"))).stream().map(Step::of).toList();
        var out = new java.io.PrintStream(System.out, true, UTF_8);
        for (Step step : steps) {
            if (step.place().equals("after")) {
                out.println(perform(client, step).join());
            }
        }
        var beside = steps.stream().filter(step -> step.place().equals("beside")).map(step -> perform(client, step)).toList();
        beside.forEach(line -> out.println(line.join()));
        System.exit(0);
    }
}
