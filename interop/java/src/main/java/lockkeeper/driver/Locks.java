package lockkeeper.driver;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Finds the Redisson object that a request is about. */
final class Locks {
    private final Clients clients;
    private final Map<String, RLock> labelled = new ConcurrentHashMap<>();

    Locks(Clients clients) {
        this.clients = clients;
    }

    /** The client that the request names by its index; the first one if it names none. */
    RedissonClient client(Request request) {
        return clients.get((int) request.number("client", 0));
    }

    /** The lock of kind= and name=. */
    RLock single(Request request) {
        return object(request, () -> make(client(request), kind(request), request.text("name")));
    }

    /** All of names=, in that order, from one client; each of the kind in kinds=, or all of kind=. */
    RLock multi(Request request) {
        return object(request, () -> {
            RedissonClient client = client(request);
            List<String> names = request.list("names");
            List<String> kinds = request.has("kinds") ? request.list("kinds") : List.of();
            RLock[] locks = new RLock[names.size()];
            for (int i = 0; i < locks.length; i++) {
                locks[i] = make(client, i < kinds.size() ? kinds.get(i) : kind(request), names.get(i));
            }
            return client.getMultiLock(locks);
        });
    }

    /** A majority of names=: the first name on the first client, the second on the second, and round again. */
    @SuppressWarnings("deprecation") // Redisson advises against RedLock; fleets that use it still exist
    RLock red(Request request) {
        return object(request, () -> {
            List<String> names = request.list("names");
            RLock[] locks = new RLock[names.size()];
            for (int i = 0; i < locks.length; i++) {
                locks[i] = make(clients.get(i % clients.size()), kind(request), names.get(i));
            }
            return new RedissonRedLock(locks);
        });
    }

    static RLock make(RedissonClient client, String kind, String name) {
        return switch (kind) {
            case "plain" -> client.getLock(name);
            case "fenced" -> client.getFencedLock(name);
            case "fair" -> client.getFairLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "spin" -> client.getSpinLock(name);
            default -> throw new IllegalArgumentException("unknown kind: " + kind);
        };
    }

    static String kind(Request request) {
        return request.text("kind", "plain");
    }

    /**
     * A fresh Java object, or with obj= the one that was made for this label.
     *
     * <p>It makes a difference: a Redisson lock object remembers the last lease it was given.
     */
    private RLock object(Request request, Supplier<RLock> fresh) {
        return request.has("obj") ? labelled.computeIfAbsent(request.text("obj"), label -> fresh.get()) : fresh.get();
    }
}
