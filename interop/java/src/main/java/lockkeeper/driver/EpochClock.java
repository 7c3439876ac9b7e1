package lockkeeper.driver;

import java.time.Instant;
import java.time.temporal.ChronoUnit;

/** The wall clock in microseconds, comparable with that of any other process on the machine. */
final class EpochClock {
    private EpochClock() {
    }

    static long micros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
