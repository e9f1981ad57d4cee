import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

/** Takes turns on a Curator mutex: SERVERS PATH COUNTER-FILE TURNS; or measures: SERVERS PATH - TURNS. */
public final class CuratorHolder {
    public static void main(String[] arguments) throws Exception {
        int turns = Integer.parseInt(arguments[3]);
        CuratorFramework client = CuratorFrameworkFactory.newClient(arguments[0], 10000, 10000,
                new RetryNTimes(20, 200));
        client.start();
        client.blockUntilConnected(20, TimeUnit.SECONDS);
        InterProcessMutex mutex = new InterProcessMutex(client, arguments[1]);
        if (arguments[2].equals("-")) {
            measure(mutex, turns);
        } else {
            for (int i = 0; i < turns; i++)
                turn(mutex, arguments[2]);
        }
        client.close();
    }

    private static void turn(InterProcessMutex mutex, String path) throws Exception {
        if (!mutex.acquire(60, TimeUnit.SECONDS))
            throw new IllegalStateException("no turn within a minute");
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            FileLock witness = file.getChannel().tryLock();
            if (witness == null)
                throw new IllegalStateException("OVERLAP");
            String line = file.readLine();
            long value = line == null ? 0 : Long.parseLong(line.trim());
            file.seek(0);
            file.write(String.format("%d%n", value + 1).getBytes());
            witness.release();
        }
        mutex.release();
    }

    private static void measure(InterProcessMutex mutex, int turns) throws Exception {
        long[] times = new long[turns];
        for (int i = -turns / 2; i < turns; i++) {
            long begin = System.nanoTime();
            mutex.acquire();
            mutex.release();
            if (i >= 0)
                times[i] = System.nanoTime() - begin;
        }
        java.util.Arrays.sort(times);
        System.out.println("cycle p50 us: " + times[turns / 2] / 1000);
    }
}
