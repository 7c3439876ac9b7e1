package lockkeeper.driver;

import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;

/** Does what a request says, in the calling thread. */
final class Verbs {
    private final Clients clients;
    private final Locks locks;

    Verbs(Clients clients) {
        this.clients = clients;
        this.locks = new Locks(clients);
    }

    Answer answer(Request request) {
        try {
            return dispatch(request);
        } catch (Throwable e) { // any exception of Redisson is the answer
            return Answer.error(request.id(), e);
        }
    }

    private Answer dispatch(Request request) throws Exception {
        Answer ok = Answer.ok(request.id());
        return switch (request.verb()) {
            case "hello" -> ok.with("redisson", Clients.version())
                    .with("client", locks.client(request).getId())
                    .with("tid", Thread.currentThread().getId())
                    .with("pid", ProcessHandle.current().pid());
            case "lock", "trylock", "unlock" -> operate(request, request.verb(), locks.single(request));
            case "multilock" -> operate(request, request.text("op"), locks.multi(request));
            case "redlock" -> operate(request, request.text("op"), locks.red(request));
            case "semaphore" -> Synchronizers.semaphore(locks.client(request), request);
            case "expirable_semaphore" -> Synchronizers.expirableSemaphore(locks.client(request), request);
            case "latch" -> Synchronizers.latch(locks.client(request), request);
            case "rmw", "peek", "take" -> operate(request, request.verb(), locks.single(request));
            case "force" -> ok.with("was", locks.single(request).forceUnlock());
            case "count" -> ok.with("count", locks.single(request).getHoldCount());
            case "ttl" -> ok.with("ttl", locks.single(request).remainTimeToLive());
            case "islocked" -> ok.with("locked", locks.single(request).isLocked());
            case "heldbyme" -> ok.with("held", locks.single(request).isHeldByCurrentThread());
            case "token" -> ok.with("token", locks.client(request).getFencedLock(request.text("name")).getToken());
            case "sleep" -> {
                Thread.sleep(request.number("ms"));
                yield ok;
            }
            case "exit" -> ok; // and the caller ends the process
            default -> throw new IllegalArgumentException("unknown verb: " + request.verb());
        };
    }

    private Answer operate(Request request, String op, RLock lock) throws InterruptedException {
        Answer ok = Answer.ok(request.id());
        return switch (op) {
            case "lock" -> Acquire.lock(lock, request).addTo(ok);
            case "trylock" -> Acquire.tryLock(lock, request).addTo(ok);
            case "unlock" -> {
                long at = EpochClock.micros();
                long start = System.nanoTime();
                lock.unlock();
                yield ok.with("at", at).with("nanos", System.nanoTime() - start);
            }
            case "rmw" -> Increment.run(locks.client(request), lock, request);
            case "peek" -> Peek.run(locks.client(request), lock, request);
            case "take" -> Taking.run(locks.client(request), lock, request);
            default -> throw new IllegalArgumentException("unknown op: " + op);
        };
    }
}
