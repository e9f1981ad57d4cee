# SPDX-License-Identifier: Apache-2.0
# Adds one to the number in a file, under a lock of the host's agent: counter.rb SOCKET FILE TIMES
require 'socket'

socket, file, times = ARGV
agent = UNIXSocket.new(socket)
ask = lambda do |command| # ":5" is a number, "+OK" well done, "-BUSY ..." an error
  agent.write("#{command}\r\n")
  reply = agent.gets or raise 'mortise: the agent has gone'
  raise "mortise: #{reply[1..]}" if reply.start_with?('-')

  reply[1..].strip
end

Integer(times).times do
  fence = ask['LOCK counter 60000']
  number = File.exist?(file) ? File.read(file).to_i : 0
  raise 'the lock was lost before the write' if ask['HELD counter'] == '0'

  File.write(file, number + 1)
  ask["UNLOCK counter #{fence}"]
end
