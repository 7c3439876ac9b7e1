package lockkeeper.driver;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** Reads a key twice under a lock, which sees a change in between unless the lock keeps writers away. */
final class Peek {
    private Peek() {
    }

    static Answer run(RedissonClient client, RLock lock, Request request) throws InterruptedException {
        RBucket<String> bucket = client.getBucket(request.text("key"), StringCodec.INSTANCE);
        long rounds = request.number("rounds");
        long torn = 0;
        for (long i = 0; i < rounds; i++) {
            lock.lock();
            try {
                String value = bucket.get();
                if (value == null ? bucket.get() != null : !value.equals(bucket.get())) {
                    torn++;
                }
            } finally {
                lock.unlock();
            }
            TimeUnit.MILLISECONDS.sleep(request.number("pause", 0));
        }
        return Answer.ok(request.id()).with("rounds", rounds).with("torn", torn);
    }
}
