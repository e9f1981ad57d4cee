/* SPDX-License-Identifier: Apache-2.0 */
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryNTimes;

/**
 * Curator's recipes, measured as bench/recipes.c measures ours, each client a session and a thread:
 *
 *   CuratorRecipes SERVERS PATH RECIPE CLIENTS WARM-S SECONDS
 *
 * It runs for WARM-S seconds uncounted, so that the compiler is done. Prints one JSON object.
 */
public final class CuratorRecipes {
    private static final int PERMITS = 5, READS = 10, MEMBERS = 3;
    private static volatile long begin = Long.MAX_VALUE, end = Long.MAX_VALUE;

    private interface Turn {
        /** How many attempts failed before it succeeded. */
        int take(long number) throws Exception;
    }

    private static Turn around(InterProcessLock lock) {
        return number -> {
            lock.acquire();
            lock.release();
            return 0;
        };
    }

    private static Turn multi(CuratorFramework client, String path, int number) {
        List<InterProcessLock> members = new ArrayList<>();
        for (int i = 0; i < MEMBERS; i++)
            members.add(new InterProcessMutex(client, path + "-" + number + "-" + i));
        return around(new InterProcessMultiLock(members));
    }

    /** One attempt at a time, so that those that fail are counted as ours are. */
    private static Turn cell(CuratorFramework client, String path) {
        DistributedAtomicLong value =
                new DistributedAtomicLong(client, path, new RetryNTimes(0, 0));
        return number -> {
            for (int failed = 0;; failed++) {
                AtomicValue<Long> result = value.increment();
                if (result.succeeded())
                    return failed;
            }
        };
    }

    private static Turn make(CuratorFramework client, String path, String recipe, int number) {
        switch (recipe) {
        case "read-write":
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
            Turn read = around(lock.readLock()), write = around(lock.writeLock());
            return turn -> ((turn + number) % (READS + 1) == 0 ? write : read).take(turn);
        case "semaphore":
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, PERMITS);
            return turn -> {
                Lease lease = semaphore.acquire();
                semaphore.returnLease(lease);
                return 0;
            };
        case "semaphore-mutex":
            return around(new InterProcessSemaphoreMutex(client, path));
        case "multi":
            return multi(client, path, number);
        default:
            return cell(client, path);
        }
    }

    private static final class Worker extends Thread {
        final Turn turn;
        long done, refused;
        Exception fault;

        Worker(Turn turn) {
            this.turn = turn;
        }

        @Override
        public void run() {
            try {
                for (long number = 0; System.nanoTime() - end < 0; number++) {
                    int failed = turn.take(number);
                    long now = System.nanoTime();
                    if (now - begin >= 0 && now - end < 0) {
                        done++;
                        refused += failed;
                    }
                }
            } catch (Exception e) {
                fault = e;
            }
        }
    }

    public static void main(String[] a) throws Exception {
        int count = Integer.parseInt(a[3]);
        double warm = Double.parseDouble(a[4]), seconds = Double.parseDouble(a[5]);
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(a[0], 10000, 10000,
                    new RetryNTimes(20, 200));
            client.start();
            client.blockUntilConnected(20, TimeUnit.SECONDS);
            workers.add(new Worker(make(client, a[1], a[2], i)));
        }
        for (Worker worker : workers)
            worker.start();
        Thread.sleep((long) (warm * 1000));
        long now = System.nanoTime();
        end = now + (long) (seconds * 1e9);
        begin = now;
        long done = 0, refused = 0;
        for (Worker worker : workers) {
            worker.join();
            if (worker.fault != null)
                throw worker.fault;
            done += worker.done;
            refused += worker.refused;
        }
        System.out.printf("{\"acquisitions_per_s\": %.1f, \"succeeds\": %.4f}%n", done / seconds,
                done == 0 ? 0 : (double) done / (done + refused));
        System.out.flush();
        System.exit(0);
    }
}
