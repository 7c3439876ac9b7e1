package lockkeeper.driver;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** Adds 1 to a key with a GET and a SET, which loses updates unless a lock keeps others away. */
final class Increment {
    private Increment() {
    }

    static Answer run(RedissonClient client, RLock lock, Request request) {
        RBucket<String> bucket = client.getBucket(request.text("key"), StringCodec.INSTANCE);
        long rounds = request.number("rounds");
        long start = System.nanoTime();
        for (long i = 0; i < rounds; i++) {
            if (request.has("lease")) {
                lock.lock(request.number("lease"), TimeUnit.MILLISECONDS);
            } else {
                lock.lock();
            }
            try {
                String value = bucket.get();
                bucket.set(Long.toString(value == null ? 1 : Long.parseLong(value) + 1));
            } finally {
                lock.unlock();
            }
        }
        long micros = TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - start);
        return Answer.ok(request.id()).with("rounds", rounds).with("micros", micros);
    }
}
