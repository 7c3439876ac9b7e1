package lockkeeper.driver;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/** One line of output: {@code <id> ok key=value …} or {@code <id> err class=… message=…}. */
final class Answer {
    private final StringBuilder line;

    private Answer(String id, String state) {
        line = new StringBuilder(id).append(' ').append(state);
    }

    static Answer ok(String id) {
        return new Answer(id, "ok");
    }

    static Answer error(String id, Throwable e) {
        return new Answer(id, "err").with("class", e.getClass().getName()).with("message", e.getMessage());
    }

    Answer with(String key, Object value) {
        String encoded = URLEncoder.encode(String.valueOf(value), StandardCharsets.UTF_8).replace("+", "%20");
        line.append(' ').append(key).append('=').append(encoded);
        return this;
    }

    @Override
    public String toString() {
        return line.toString();
    }
}
