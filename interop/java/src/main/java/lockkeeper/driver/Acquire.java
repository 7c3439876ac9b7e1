package lockkeeper.driver;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;

/** How one attempt to take a lock went. A token of 0 means none. */
record Acquire(boolean held, long token, long nanos, long atMicros) {

    /** Waits as long as it takes. No lease: the watchdog renews the lock. */
    static Acquire lock(RLock lock, Request request) throws InterruptedException {
        if (request.has("lease")) {
            long lease = request.number("lease");
            return timed(lock, () -> {
                // Not RFencedLock.lockAndGetToken(lease, unit), which ignores the lease.
                lock.lock(lease, TimeUnit.MILLISECONDS);
                return 0L;
            });
        }
        return timed(lock, () -> {
            if (lock instanceof RFencedLock fenced) {
                return fenced.lockAndGetToken();
            }
            lock.lock();
            return 0L;
        });
    }

    /** Waits for wait= milliseconds at most; without wait= there is one attempt. */
    static Acquire tryLock(RLock lock, Request request) throws InterruptedException {
        if (!request.has("wait") && !request.has("lease")) {
            // Not RFencedLock.tryLockAndGetToken(), which waits for ever.
            return timed(lock, () -> lock.tryLock() ? 0L : null);
        }
        long wait = request.number("wait", 0);
        long lease = request.number("lease", -1);
        return timed(lock, () -> {
            if (lock instanceof RFencedLock fenced) {
                return fenced.tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS);
            }
            return lock.tryLock(wait, lease, TimeUnit.MILLISECONDS) ? 0L : null;
        });
    }

    Answer addTo(Answer answer) {
        answer.with("held", held).with("nanos", nanos).with("at", atMicros);
        return token == 0 ? answer : answer.with("token", token);
    }

    /** Returns null if the lock was refused, otherwise the token, or 0 if the call does not return it. */
    private interface Attempt {
        Long run() throws InterruptedException;
    }

    private static Acquire timed(RLock lock, Attempt attempt) throws InterruptedException {
        long start = System.nanoTime();
        Long token = attempt.run();
        long at = EpochClock.micros();
        long nanos = System.nanoTime() - start;
        if (token == null) {
            return new Acquire(false, 0, nanos, at);
        }
        if (token == 0 && lock instanceof RFencedLock fenced) {
            token = fenced.getToken(); // the newest token is ours as long as we hold the lock
        }
        return new Acquire(true, token, nanos, at);
    }
}
