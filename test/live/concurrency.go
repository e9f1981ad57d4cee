// SPDX-License-Identifier: Apache-2.0

// Go's own client of etcd, for tests beside ours: concurrency ENDPOINT WHAT NAME ARGUMENT
//
//	hold   locks, makes the file ARGUMENT, and unlocks at a line of its input, or the end
//	lead   campaigns with the value ARGUMENT, makes a file of that name, and resigns likewise
//	turns  locks and unlocks for ARGUMENT seconds, from a line of its input on, when it has said
//	       "ready"; prints how often
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func makeFile(name string) {
	file, err := os.Create(name)
	must(err)
	must(file.Close())
}

func awaitLine() {
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != io.EOF {
		must(err)
	}
}

func takeTurns(mutex *concurrency.Mutex, seconds string) {
	length, err := strconv.ParseFloat(seconds, 64)
	must(err)
	fmt.Println("ready")
	awaitLine()
	count := 0
	end := time.Now().Add(time.Duration(length * float64(time.Second)))
	for ; time.Now().Before(end); count++ {
		must(mutex.Lock(context.Background()))
		must(mutex.Unlock(context.Background()))
	}
	fmt.Println(count)
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("concurrency ENDPOINT hold|lead|turns NAME ARGUMENT")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	must(err)
	name, argument := os.Args[3], os.Args[4]
	switch os.Args[2] {
	case "hold":
		mutex := concurrency.NewMutex(session, name)
		must(mutex.Lock(context.Background()))
		makeFile(argument)
		awaitLine()
		must(mutex.Unlock(context.Background()))
	case "lead":
		election := concurrency.NewElection(session, name)
		must(election.Campaign(context.Background(), argument))
		makeFile(argument)
		awaitLine()
		must(election.Resign(context.Background()))
	case "turns":
		takeTurns(concurrency.NewMutex(session, name), argument)
	}
	must(session.Close())
	must(client.Close())
}
