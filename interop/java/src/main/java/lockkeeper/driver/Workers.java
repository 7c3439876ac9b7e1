package lockkeeper.driver;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Named threads, made on first use, each with its own queue of requests.
 *
 * <p>A lock in Redisson belongs to a Java thread, so a name here is one owner for good.
 */
final class Workers {
    private final Map<String, ExecutorService> workers = new ConcurrentHashMap<>();

    void submit(String name, Runnable task) {
        workers.computeIfAbsent(name, Workers::start).execute(task);
    }

    private static ExecutorService start(String name) {
        return Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        });
    }

    /** Waits until all queues are empty, but no longer than the limit. */
    void drain(long limitMillis) throws InterruptedException {
        workers.values().forEach(ExecutorService::shutdown);
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMillis);
        for (ExecutorService worker : workers.values()) {
            worker.awaitTermination(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
    }
}
