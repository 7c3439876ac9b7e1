package lockkeeper.driver;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.SentinelServersConfig;

/** One Redisson client for each -redis flag. Every client has an id of its own. */
final class Clients {
    private static final String CLUSTER = "redis-cluster://";
    private static final String SENTINEL = "redis-sentinel://";

    private final List<RedissonClient> clients;

    private Clients(List<RedissonClient> clients) {
        this.clients = clients;
    }

    static Clients connect(Flags flags) {
        List<RedissonClient> clients = new ArrayList<>();
        for (String url : flags.redis()) {
            Config config = new Config();
            if (url.startsWith(CLUSTER)) {
                for (String address : url.substring(CLUSTER.length()).split(",")) {
                    config.useClusterServers().addNodeAddress("redis://" + address);
                }
            } else if (url.startsWith(SENTINEL)) {
                String[] parts = url.substring(SENTINEL.length()).split("\\?master_set=");
                SentinelServersConfig sentinels = config.useSentinelServers().setMasterName(parts[1]);
                sentinels.setReadMode(ReadMode.MASTER); // what a lock protects here is in this Redis, and replicas lag
                for (String address : parts[0].split(",")) {
                    sentinels.addSentinelAddress("redis://" + address);
                }
            } else {
                config.useSingleServer().setAddress(url);
            }
            flags.watchdogMillis().ifPresent(config::setLockWatchdogTimeout);
            flags.fairWaitMillis().ifPresent(millis -> setFairWait(config, millis));
            clients.add(Redisson.create(config));
        }
        return new Clients(clients);
    }

    /** Config.setFairLockWaitTimeout exists since Redisson 3.46; before, the wait is always five minutes. */
    private static void setFairWait(Config config, long millis) {
        try {
            Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, millis);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException("-fairwait is unknown to Redisson " + version(), e);
        }
    }

    /** The version of Redisson in this jar. */
    static String version() {
        try (InputStream in = Redisson.class.getResourceAsStream("/META-INF/maven/org.redisson/redisson/pom.properties")) {
            Properties properties = new Properties();
            properties.load(in);
            return properties.getProperty("version");
        } catch (IOException | NullPointerException e) {
            return "unknown";
        }
    }

    int size() {
        return clients.size();
    }

    RedissonClient get(int i) {
        return clients.get(i);
    }

    /** Closes the connections. Locks that are held stay in Redis until their lease has run out. */
    void close() {
        for (RedissonClient client : clients) {
            client.shutdown(0, 2, TimeUnit.SECONDS);
        }
    }
}
