// SPDX-License-Identifier: Apache-2.0
// Adds one to the number in a file, under a lock of the host's agent: counter SOCKET FILE TIMES
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

func main() {
	connection, err := net.Dial("unix", os.Args[1])
	must(err)
	replies := bufio.NewReader(connection)
	ask := func(format string, words ...any) string { // ":5" a number, "+OK", or "-BUSY ..." an error
		fmt.Fprintf(connection, format+"\r\n", words...)
		reply, err := replies.ReadString('\n')
		must(err)
		if reply[0] == '-' {
			panic("mortise: " + reply[1:])
		}
		return strings.TrimSpace(reply[1:])
	}
	times, err := strconv.Atoi(os.Args[3])
	must(err)
	for i := 0; i < times; i++ {
		fence := ask("LOCK counter 60000")
		text, _ := os.ReadFile(os.Args[2])
		number, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		if ask("HELD counter") == "0" {
			panic("mortise: the lock was lost before the write")
		}
		must(os.WriteFile(os.Args[2], []byte(strconv.Itoa(number+1)), 0o600))
		ask("UNLOCK counter %s", fence)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
