package lockkeeper.driver;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * One line of input: {@code <id> <verb> key=value …}.
 *
 * <p>Values are percent-encoded; a plus sign stands for itself.
 */
record Request(String id, String verb, Map<String, String> raw) {

    static Request parse(String line) {
        String[] words = line.trim().split(" +");
        if (words.length < 2) {
            throw new IllegalArgumentException("want: <id> <verb> key=value …");
        }
        Map<String, String> raw = new HashMap<>();
        for (int i = 2; i < words.length; i++) {
            int eq = words[i].indexOf('=');
            if (eq < 1) {
                throw new IllegalArgumentException("want key=value, got " + words[i]);
            }
            raw.put(words[i].substring(0, eq), words[i].substring(eq + 1));
        }
        return new Request(words[0], words[1], raw);
    }

    /** The id of a line that may be malformed otherwise. */
    static String idOf(String line) {
        return line.trim().split(" +", 2)[0];
    }

    String thread() {
        return text("thread", "main");
    }

    boolean has(String key) {
        return raw.containsKey(key);
    }

    String text(String key) {
        if (!has(key)) {
            throw new IllegalArgumentException(verb + " needs " + key + "=");
        }
        return decode(raw.get(key));
    }

    String text(String key, String absent) {
        return has(key) ? text(key) : absent;
    }

    long number(String key) {
        return Long.parseLong(text(key));
    }

    long number(String key, long absent) {
        return has(key) ? number(key) : absent;
    }

    /** A list separated by commas; a comma within an element is written %2C. */
    List<String> list(String key) {
        text(key);
        List<String> elements = new ArrayList<>();
        for (String element : raw.get(key).split(",")) {
            elements.add(decode(element));
        }
        return elements;
    }

    private static String decode(String value) {
        return URLDecoder.decode(value.replace("+", "%2B"), StandardCharsets.UTF_8);
    }
}
