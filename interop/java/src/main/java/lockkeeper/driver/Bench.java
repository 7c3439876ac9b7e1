package lockkeeper.driver;

import java.time.Duration;
import java.util.ArrayList;
import java.util.IntSummaryStatistics;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/**
 * The scenarios of the project's benchmarks, for Redisson.
 *
 * <p>s1: one thread, one lock; s2: many threads, each on a lock of its own as long as there are keys; s3: many threads
 * on one lock; s5: many locks held by one thread under the watchdog; s16: many threads, some permits of a semaphore.
 */
final class Bench {
    private final RedissonClient client;
    private final Request request;
    private final String kind;
    private final String name;
    private final long warmup;
    private final long seconds;

    private Bench(RedissonClient client, Request request) {
        this.client = client;
        this.request = request;
        kind = Locks.kind(request);
        name = request.text("name", "bench");
        warmup = TimeUnit.SECONDS.toNanos(request.number("warmup", 0));
        seconds = request.number("seconds");
    }

    static Answer run(RedissonClient client, Request request) throws Exception {
        Bench bench = new Bench(client, request);
        String scenario = request.text("scenario");
        return switch (scenario) {
            case "s1" -> bench.pairs(1, false, bench.locks(1));
            case "s2" -> bench.pairs(bench.threads(), false, bench.locks((int) request.number("keys")));
            case "s3" -> bench.pairs(bench.threads(), true, bench.locks(1));
            case "s16" -> bench.pairs(bench.threads(), true, bench.permits((int) request.number("permits")));
            case "s5" -> bench.hold((int) request.number("keys"));
            default -> throw new IllegalArgumentException("unknown scenario: " + scenario);
        };
    }

    /** What a thread acquires and releases. */
    private interface Target {
        void acquire() throws InterruptedException;

        void release();
    }

    private int threads() {
        return (int) request.number("threads");
    }

    /** The targets of the threads: that many locks. */
    private IntFunction<Target> locks(int keys) {
        return i -> {
            RLock lock = lock(i % keys);
            return new Target() {
                @Override
                public void acquire() {
                    lock.lock();
                }

                @Override
                public void release() {
                    lock.unlock();
                }
            };
        };
    }

    /** The target of all threads: a semaphore, which ends by itself some time after the benchmark. */
    private IntFunction<Target> permits(int n) {
        RSemaphore semaphore = client.getSemaphore(name);
        semaphore.trySetPermits(n, Duration.ofMinutes(1));
        Target target = new Target() {
            @Override
            public void acquire() throws InterruptedException {
                semaphore.acquire();
            }

            @Override
            public void release() {
                semaphore.release();
            }
        };
        return i -> target;
    }

    /** Acquire and release for the given time. Latency is the wait for the grant, or the whole pair. */
    private Answer pairs(int threads, boolean waitOnly, IntFunction<Target> targets) throws Exception {
        long begin = System.nanoTime() + warmup;
        long end = begin + TimeUnit.SECONDS.toNanos(seconds);
        List<Callable<Latencies>> tasks = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Target target = targets.apply(i);
            tasks.add(() -> pairs(target, begin, end, waitOnly));
        }
        List<Latencies> perThread = runAll(tasks);
        IntSummaryStatistics grants = perThread.stream().mapToInt(Latencies::size).summaryStatistics();
        Answer answer = Answer.ok(request.id()).with("ops", grants.getSum()).with("seconds", seconds);
        return Latencies.addTo(answer, Latencies.sorted(perThread))
                .with("mingrants", grants.getMin())
                .with("maxgrants", grants.getMax());
    }

    private static Latencies pairs(Target target, long begin, long end, boolean waitOnly) throws InterruptedException {
        Latencies latencies = new Latencies();
        for (long start = System.nanoTime(); start - end < 0; start = System.nanoTime()) {
            target.acquire();
            long granted = System.nanoTime();
            target.release();
            long done = System.nanoTime();
            if (start - begin >= 0 && done - end <= 0) {
                latencies.add((waitOnly ? granted : done) - start);
            }
        }
        return latencies;
    }

    /** Takes all keys, holds them, and counts those that are still ours. Latency is that of taking one. */
    private Answer hold(int keys) throws InterruptedException {
        List<RLock> locks = new ArrayList<>();
        Latencies latencies = new Latencies();
        for (int i = 0; i < keys; i++) {
            RLock lock = lock(i);
            long start = System.nanoTime();
            lock.lock();
            latencies.add(System.nanoTime() - start);
            locks.add(lock);
        }
        TimeUnit.NANOSECONDS.sleep(warmup + TimeUnit.SECONDS.toNanos(seconds));
        int held = 0;
        for (RLock lock : locks) {
            if (lock.isHeldByCurrentThread()) {
                held++;
                lock.unlock();
            }
        }
        Answer answer = Answer.ok(request.id()).with("ops", held).with("seconds", seconds);
        return Latencies.addTo(answer, Latencies.sorted(List.of(latencies))).with("lost", keys - held);
    }

    private RLock lock(int i) {
        return Locks.make(client, kind, name + ":" + i);
    }

    private static List<Latencies> runAll(List<Callable<Latencies>> tasks) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(tasks.size());
        try {
            List<Latencies> results = new ArrayList<>();
            for (Future<Latencies> result : threads.invokeAll(tasks)) {
                results.add(result.get());
            }
            return results;
        } finally {
            threads.shutdownNow();
        }
    }
}
