package lockkeeper.driver;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** The synchronizers: semaphores, expirable semaphores, and latches. */
final class Synchronizers {
    private Synchronizers() {
    }

    static Answer semaphore(RedissonClient client, Request request) throws InterruptedException {
        RSemaphore semaphore = client.getSemaphore(request.text("name"));
        Answer ok = Answer.ok(request.id());
        int n = (int) request.number("n", 1);
        return switch (request.text("op")) {
            case "set" -> ok.with("done", semaphore.trySetPermits(n));
            case "add" -> {
                semaphore.addPermits(n);
                yield ok;
            }
            case "drain" -> ok.with("n", semaphore.drainPermits());
            case "available" -> ok.with("n", semaphore.availablePermits());
            case "acquire" -> timed(ok, () -> {
                semaphore.acquire(n);
                return true;
            });
            case "tryacquire" -> timed(ok, () -> request.has("wait")
                    ? semaphore.tryAcquire(n, request.number("wait"), TimeUnit.MILLISECONDS)
                    : semaphore.tryAcquire(n));
            case "release" -> {
                ok.with("at", EpochClock.micros());
                semaphore.release(n);
                yield ok;
            }
            case "crowd" -> crowd(client, request, () -> {
                semaphore.acquire();
                return semaphore::release;
            });
            default -> throw new IllegalArgumentException("unknown op: " + request.text("op"));
        };
    }

    static Answer expirableSemaphore(RedissonClient client, Request request) throws InterruptedException {
        RPermitExpirableSemaphore permits = client.getPermitExpirableSemaphore(request.text("name"));
        Answer ok = Answer.ok(request.id());
        int n = (int) request.number("n", 1);
        return switch (request.text("op")) {
            case "set" -> ok.with("done", permits.trySetPermits(n));
            case "available" -> ok.with("n", permits.availablePermits());
            case "acquire" -> {
                List<String> ids = request.has("lease")
                        ? permits.acquire(n, request.number("lease"), TimeUnit.MILLISECONDS)
                        : permits.acquire(n);
                yield ok.with("held", true).with("at", EpochClock.micros()).with("id", String.join(",", ids));
            }
            case "tryacquire" -> {
                List<String> ids = permits.tryAcquire(n, request.number("wait", 0), request.number("lease", -1), TimeUnit.MILLISECONDS);
                ok.with("held", !ids.isEmpty()).with("at", EpochClock.micros());
                yield ids.isEmpty() ? ok : ok.with("id", String.join(",", ids));
            }
            case "release" -> {
                ok.with("at", EpochClock.micros());
                permits.release(request.list("id"));
                yield ok;
            }
            case "ttl" -> ok.with("ttl", permits.getLeaseTime(request.text("id")));
            case "crowd" -> crowd(client, request, () -> {
                String id = permits.acquire();
                return () -> permits.release(id);
            });
            default -> throw new IllegalArgumentException("unknown op: " + request.text("op"));
        };
    }

    static Answer latch(RedissonClient client, Request request) throws InterruptedException {
        RCountDownLatch latch = client.getCountDownLatch(request.text("name"));
        Answer ok = Answer.ok(request.id());
        return switch (request.text("op")) {
            case "set" -> ok.with("done", latch.trySetCount(request.number("n")));
            case "count" -> ok.with("n", latch.getCount());
            case "down" -> {
                ok.with("at", EpochClock.micros());
                for (long i = request.number("n", 1); i > 0; i--) {
                    latch.countDown();
                }
                yield ok;
            }
            case "wait" -> timed(ok, () -> {
                if (request.has("wait")) {
                    return latch.await(request.number("wait"), TimeUnit.MILLISECONDS);
                }
                latch.await();
                return true;
            });
            default -> throw new IllegalArgumentException("unknown op: " + request.text("op"));
        };
    }

    /** Takes one permit; what it returns gives it back. */
    private interface Take {
        Runnable take() throws InterruptedException;
    }

    /** Acquires a permit again and again, and counts at key= how many are held at the same time. */
    private static Answer crowd(RedissonClient client, Request request, Take permit) throws InterruptedException {
        RAtomicLong inside = client.getAtomicLong(request.text("key"));
        long most = 0;
        for (long i = request.number("rounds"); i > 0; i--) {
            Runnable giveBack = permit.take();
            most = Math.max(most, inside.incrementAndGet());
            inside.decrementAndGet();
            giveBack.run();
        }
        return Answer.ok(request.id()).with("most", most);
    }

    private interface Attempt {
        boolean run() throws InterruptedException;
    }

    private static Answer timed(Answer answer, Attempt attempt) throws InterruptedException {
        long start = System.nanoTime();
        boolean held = attempt.run();
        long at = EpochClock.micros();
        return answer.with("held", held).with("nanos", System.nanoTime() - start).with("at", at);
    }
}
