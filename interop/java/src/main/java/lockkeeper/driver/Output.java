package lockkeeper.driver;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Stdout, shared by the workers: whole lines only, each flushed. */
final class Output {
    private final PrintStream out =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    synchronized void println(Answer answer) {
        out.println(answer);
        out.flush();
    }
}
