/* SPDX-License-Identifier: Apache-2.0 */
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.lang.reflect.Method;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Comparator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryNTimes;

/**
 * Curator's locks by commands: SERVERS WHO SESSION-MS; the commands are in holder.c; "on_revoke" comes
 * before the acquire. Two more:
 * "children PATH", answered by "children NODE..." in their order, and "revoke PATH", which asks
 * for the lock that this node stands for; "lead" is acquire as a LeaderSelector does it, without
 * the witness, and gives back by itself when the next command comes.
 */
public final class CuratorHolder {
    private static final int WAIT = 120;
    private static final BufferedReader commands =
            new BufferedReader(new InputStreamReader(System.in));
    private final CuratorFramework client;
    private final String who;
    private String name;
    private String path;
    private RandomAccessFile log;
    private FileOutputStream appender;
    private FileLock witness;
    private InterProcessMutex mutex;
    private InterProcessReadWriteLock sides;
    private InterProcessMutex held;

    private CuratorHolder(String servers, String who, int session) throws Exception {
        this.who = who;
        client = CuratorFrameworkFactory.newClient(servers, session, 10000,
                new RetryNTimes(20, 200));
        client.start();
        client.blockUntilConnected(20, TimeUnit.SECONDS);
    }

    public static void main(String[] arguments) throws Exception {
        CuratorHolder holder = new CuratorHolder(arguments[0], arguments[1],
                Integer.parseInt(arguments[2]));
        for (String line = commands.readLine(); line != null; line = commands.readLine())
            holder.obey(line.split(" "));
        holder.client.close();
    }

    private static void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    /** Closing any descriptor of the log would give up the witness, so it is open all the time. */
    private void use(String name, String path) throws IOException {
        if (log != null) {
            log.close();
            appender.close();
        }
        this.name = name;
        this.path = path;
        log = new RandomAccessFile(path, "rw");
        appender = new FileOutputStream(path, true);
        mutex = new InterProcessMutex(client, name);
        sides = new InterProcessReadWriteLock(client, name + "-sides");
        say("using");
    }

    /** The node in whose name it is held: what the class keeps for its descendants. */
    private String node() throws Exception {
        Method method = InterProcessMutex.class.getDeclaredMethod("getLockPath");
        method.setAccessible(true);
        return (String) method.invoke(held);
    }

    private long czxid() throws Exception {
        return client.checkExists().forPath(node()).getCzxid();
    }

    private long lastCount() throws IOException {
        byte[] text = new byte[(int) Math.min(512, log.length())];
        log.seek(log.length() - text.length);
        log.readFully(text);
        String[] lines = new String(text).split("\n");
        String last = lines[lines.length - 1];
        return last.isEmpty() ? 0 : Long.parseLong(last.substring(0, last.indexOf(' ')));
    }

    /** One line more under the witness, unless there are `total`; the count. */
    private long count(boolean reading, long total) throws Exception {
        witness = log.getChannel().tryLock(0, Long.MAX_VALUE, reading);
        if (witness == null) {
            say("OVERLAP");
            System.exit(1);
        }
        long value = lastCount() + (reading ? 0 : 1);
        if (value <= total)
            appender.write(String.format("%d %s %s %d %s %d%n", value, reading ? "read" : "write",
                    who, czxid(), node().substring(node().lastIndexOf('/') + 1),
                    System.nanoTime()).getBytes());
        return value;
    }

    private boolean acquire(InterProcessMutex lock, int seconds) throws Exception {
        held = lock;
        return lock.acquire(seconds, TimeUnit.SECONDS);
    }

    private void acquireAndSay(InterProcessMutex lock, int seconds) throws Exception {
        if (!acquire(lock, seconds)) {
            say("busy");
            return;
        }
        count(lock == sides.readLock(), Long.MAX_VALUE);
        say("held " + czxid() + " " + node().substring(node().lastIndexOf('/') + 1));
    }

    private void release() throws Exception {
        witness.release();
        held.release();
    }

    private void takeTurns(long total, long milliseconds) throws Exception {
        for (long turns = 0;; turns++) {
            if (!acquire(mutex, WAIT))
                throw new IllegalStateException("no turn");
            boolean over = count(false, total) > total || Files.exists(Paths.get(path + ".stop"));
            if (!over)
                Thread.sleep(milliseconds);
            release();
            if (over) {
                say("done " + turns);
                return;
            }
        }
    }

    private void mix(int turns, int shift) throws Exception {
        for (int i = 0; i < turns; i++) {
            boolean reading = (i + shift) % 3 != 0;
            if (!acquire(reading ? sides.readLock() : sides.writeLock(), WAIT))
                throw new IllegalStateException("no turn");
            count(reading, Long.MAX_VALUE);
            Thread.sleep(2);
            release();
        }
        say("done " + turns);
    }

    private void lead() throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        LeaderSelectorListenerAdapter listener = new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                say("held - -");
                commands.readLine();
                over.countDown();
            }
        };
        try (LeaderSelector selector = new LeaderSelector(client, name, listener)) {
            selector.start();
            over.await();
        }
        say("released");
    }

    private static String sequence(String node) {
        return node.substring(Math.max(0, node.length() - 10));
    }

    private String children(String path) throws Exception {
        return client.getChildren().forPath(path).stream()
                .filter(node -> sequence(node).matches("[0-9]{10}"))
                .sorted(Comparator.comparing(CuratorHolder::sequence))
                .collect(Collectors.joining(" ", "children ", ""));
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "use" -> use(words[1], words[2]);
            case "acquire" -> acquireAndSay(mutex, WAIT);
            case "try" -> acquireAndSay(mutex, 0);
            case "read" -> acquireAndSay(sides.readLock(), WAIT);
            case "write" -> acquireAndSay(sides.writeLock(), WAIT);
            case "turns" -> takeTurns(Long.parseLong(words[1]), Long.parseLong(words[2]));
            case "mixture" -> mix(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "lead" -> lead();
            case "children" -> say(children(words[1]));
            case "on_revoke" -> {
                mutex.makeRevocable(lock -> say("asked"));
                say("registered");
            }
            case "revoke" -> {
                Revoker.attemptRevoke(client, words[1]);
                say("revoked");
            }
            case "release" -> {
                release();
                say("released");
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}
