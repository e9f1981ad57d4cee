// SPDX-License-Identifier: Apache-2.0
// Adds one to the number in a file, under a lock of the host's agent: Counter SOCKET FILE TIMES
import java.io.BufferedReader;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;

public final class Counter {
    private static SocketChannel agent;
    private static BufferedReader replies;

    // ":5" is a number, "+OK" well done, "-BUSY ..." an error.
    private static String ask(String command) throws IOException {
        agent.write(ByteBuffer.wrap((command + "\r\n").getBytes()));
        String reply = replies.readLine();
        if (reply == null || reply.startsWith("-"))
            throw new IOException("mortise: " + (reply == null ? "the agent has gone" : reply));
        return reply.substring(1);
    }

    public static void main(String[] words) throws IOException {
        agent = SocketChannel.open(UnixDomainSocketAddress.of(words[0]));
        replies = new BufferedReader(Channels.newReader(agent, "UTF-8"));
        Path file = Path.of(words[1]);
        for (int i = 0; i < Integer.parseInt(words[2]); i++) {
            String fence = ask("LOCK counter 60000");
            long number = Files.exists(file) ? Long.parseLong(Files.readString(file).trim()) : 0;
            if (ask("HELD counter").equals("0"))
                throw new IOException("the lock was lost before the write");
            Files.writeString(file, Long.toString(number + 1));
            ask("UNLOCK counter " + fence);
        }
    }
}
