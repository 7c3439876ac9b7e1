package lockkeeper.driver;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RList;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** Acquires a lock again and again until a given time, and appends each hold to a list in Redis: asked, granted, left. */
final class Taking {
    private Taking() {
    }

    static Answer run(RedissonClient client, RLock lock, Request request) throws InterruptedException {
        RList<String> list = client.getList(request.text("key"), StringCodec.INSTANCE);
        long rounds = 0;
        for (; EpochClock.micros() < request.number("until"); rounds++) {
            long asked = EpochClock.micros();
            lock.lock();
            try {
                long granted = EpochClock.micros();
                TimeUnit.MILLISECONDS.sleep(request.number("hold"));
                list.add(request.text("as") + " " + asked + " " + granted + " " + EpochClock.micros());
            } finally {
                lock.unlock();
            }
        }
        return Answer.ok(request.id()).with("rounds", rounds);
    }
}
