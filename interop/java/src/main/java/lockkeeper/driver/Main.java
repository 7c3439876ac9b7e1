package lockkeeper.driver;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * Redisson locks for a test in another language: requests on stdin, answers on stdout, one line each.
 *
 * <p>The protocol is described in README.md.
 */
public final class Main {
    private static final long DRAIN_MILLIS = 5_000;

    private Main() {
    }

    public static void main(String[] args) throws Exception {
        Clients clients;
        try {
            clients = Clients.connect(Flags.parse(args));
        } catch (RuntimeException e) {
            System.err.println("redisson-driver: " + e);
            System.exit(2);
            return;
        }
        Runtime.getRuntime().addShutdownHook(new Thread(clients::close));
        Workers workers = new Workers();
        Output output = new Output();
        serve(workers, new Verbs(clients), output);

        // The parent closed our stdin, or died. No process must stay and keep renewing its locks.
        workers.drain(DRAIN_MILLIS);
        System.exit(0);
    }

    private static void serve(Workers workers, Verbs verbs, Output output) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank()) {
                continue;
            }
            Request request;
            try {
                request = Request.parse(line);
            } catch (RuntimeException e) {
                output.println(Answer.error(Request.idOf(line), e));
                continue;
            }
            if (request.verb().equals("halt")) {
                Runtime.getRuntime().halt(137); // a crash: no queue, no clean-up, no answer
            }
            workers.submit(request.thread(), () -> {
                output.println(verbs.answer(request));
                if (request.verb().equals("exit")) {
                    System.exit(0);
                }
            });
        }
    }
}
