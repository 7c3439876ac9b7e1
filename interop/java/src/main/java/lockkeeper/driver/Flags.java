package lockkeeper.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/** The command line. */
record Flags(List<String> redis, OptionalLong watchdogMillis, OptionalLong fairWaitMillis) {

    static Flags parse(String[] args) {
        List<String> redis = new ArrayList<>();
        OptionalLong watchdog = OptionalLong.empty();
        OptionalLong fairWait = OptionalLong.empty();
        for (int i = 0; i < args.length; i += 2) {
            if (i + 1 == args.length) {
                throw new IllegalArgumentException("flag without a value: " + args[i]);
            }
            String value = args[i + 1];
            switch (args[i]) {
                case "-redis" -> redis.add(value);
                case "-watchdog" -> watchdog = OptionalLong.of(Long.parseLong(value));
                case "-fairwait" -> fairWait = OptionalLong.of(Long.parseLong(value));
                default -> throw new IllegalArgumentException("unknown flag: " + args[i]);
            }
        }
        if (redis.isEmpty()) {
            redis.add("redis://127.0.0.1:6379");
        }
        return new Flags(List.copyOf(redis), watchdog, fairWait);
    }
}
