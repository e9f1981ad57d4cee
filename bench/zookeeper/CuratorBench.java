/* SPDX-License-Identifier: Apache-2.0 */
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

/**
 * Curator's mutex, measured as `mortise bench` measures ours:
 *
 *   CuratorBench SERVERS PATH CLIENTS THREADS LOCKS WARM-S SECONDS PAUSE-MS [own]
 *
 * CLIENTS sessions with THREADS threads each. The threads of a client share the mutex objects
 * PATH-0 to PATH-(LOCKS-1) in turn, or have each one of its own ("own"). It runs for WARM-S
 * seconds uncounted, so that the compiler is done, then says "ready", waits for a line, and
 * counts. Prints one JSON object.
 */
public final class CuratorBench {
    private static volatile long begin = Long.MAX_VALUE, end = Long.MAX_VALUE;
    private static int[] owner; /* for each lock, written only under it */

    private static final class Worker extends Thread {
        final InterProcessMutex mutex;
        final int lock, number;
        final long pause;
        long[] acquires = new long[1 << 12], cycles = new long[1 << 12];
        int count;
        long handovers;
        Exception fault;

        Worker(InterProcessMutex mutex, int lock, int number, long pause) {
            this.mutex = mutex;
            this.lock = lock;
            this.number = number;
            this.pause = pause;
        }

        @Override
        public void run() {
            try {
                while (System.nanoTime() - end < 0)
                    turn();
            } catch (Exception e) {
                fault = e;
            }
        }

        private void turn() throws Exception {
            long asked = System.nanoTime();
            mutex.acquire();
            long got = System.nanoTime();
            boolean changed = owner[lock] != number;
            owner[lock] = number;
            mutex.release();
            long now = System.nanoTime();
            if (asked - begin >= 0 && now - end < 0) {
                if (count == acquires.length) {
                    acquires = Arrays.copyOf(acquires, 2 * count);
                    cycles = Arrays.copyOf(cycles, 2 * count);
                }
                acquires[count] = got - asked;
                cycles[count++] = now - asked;
                handovers += changed ? 1 : 0;
            }
            if (pause > 0)
                Thread.sleep(pause);
        }
    }

    private static List<Worker> makeWorkers(String[] a, List<CuratorFramework> clients)
            throws Exception {
        int clientCount = Integer.parseInt(a[2]), threads = Integer.parseInt(a[3]);
        int locks = Integer.parseInt(a[4]);
        boolean own = a.length > 8 && a[8].equals("own");
        List<Worker> workers = new ArrayList<>();
        for (int c = 0; c < clientCount; c++) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(a[0], 10000, 10000,
                    new RetryNTimes(20, 200));
            client.start();
            client.blockUntilConnected(20, TimeUnit.SECONDS);
            clients.add(client);
            InterProcessMutex[] shared = new InterProcessMutex[locks];
            for (int i = 0; i < locks; i++)
                shared[i] = new InterProcessMutex(client, a[1] + "-" + i);
            for (int t = 0; t < threads; t++) {
                int lock = t % locks;
                workers.add(new Worker(own ? new InterProcessMutex(client, a[1] + "-" + lock)
                        : shared[lock], lock, workers.size() + 1, Long.parseLong(a[7])));
            }
        }
        return workers;
    }

    private static double p50(List<Worker> workers, boolean cycle) {
        long[] all = workers.stream()
                .flatMapToLong(w -> Arrays.stream(cycle ? w.cycles : w.acquires, 0, w.count))
                .sorted().toArray();
        return all.length == 0 ? 0 : all[all.length / 2] / 1000.0;
    }

    public static void main(String[] a) throws Exception {
        double seconds = Double.parseDouble(a[6]);
        owner = new int[Integer.parseInt(a[4])];
        List<CuratorFramework> clients = new ArrayList<>();
        List<Worker> workers = makeWorkers(a, clients);
        for (Worker worker : workers)
            worker.start();
        Thread.sleep((long) (Double.parseDouble(a[5]) * 1000));
        System.out.println("ready");
        System.out.flush();
        System.in.read();
        long now = System.nanoTime();
        end = now + (long) (seconds * 1e9);
        begin = now;
        long total = 0, handovers = 0, least = Long.MAX_VALUE, most = 0;
        for (Worker worker : workers) {
            worker.join();
            if (worker.fault != null)
                throw worker.fault;
            total += worker.count;
            handovers += worker.handovers;
            least = Math.min(least, worker.count);
            most = Math.max(most, worker.count);
        }
        System.out.printf("{\"acquisitions_per_s\": %.1f, \"handovers_per_s\": %.1f, "
                + "\"acquire_us\": {\"p50\": %.1f}, \"cycle_us\": {\"p50\": %.1f}, "
                + "\"share_min\": %.4f, \"share_max\": %.4f}%n", total / seconds,
                handovers / seconds, p50(workers, false), p50(workers, true),
                total == 0 ? 0 : (double) least * workers.size() / total,
                total == 0 ? 0 : (double) most * workers.size() / total);
        System.out.flush();
        for (CuratorFramework client : clients)
            client.close();
        System.exit(0);
    }
}
