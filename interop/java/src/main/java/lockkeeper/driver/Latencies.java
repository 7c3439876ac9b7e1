package lockkeeper.driver;

import java.util.Arrays;
import java.util.List;

/** Durations in nanoseconds, collected by one thread. */
final class Latencies {
    private long[] nanos = new long[1024];
    private int size;

    void add(long value) {
        if (size == nanos.length) {
            nanos = Arrays.copyOf(nanos, 2 * size);
        }
        nanos[size++] = value;
    }

    int size() {
        return size;
    }

    /** All values of all parts, sorted. */
    static long[] sorted(List<Latencies> parts) {
        return parts.stream()
                .flatMapToLong(part -> Arrays.stream(part.nanos, 0, part.size))
                .sorted()
                .toArray();
    }

    /** Adds p50us, p99us and maxus of sorted values. */
    static Answer addTo(Answer answer, long[] sorted) {
        return answer.with("p50us", quantile(sorted, 0.50) / 1000)
                .with("p99us", quantile(sorted, 0.99) / 1000)
                .with("maxus", quantile(sorted, 1.00) / 1000);
    }

    private static long quantile(long[] sorted, double q) {
        return sorted.length == 0 ? 0 : sorted[Math.max(0, (int) Math.ceil(q * sorted.length) - 1)];
    }
}
