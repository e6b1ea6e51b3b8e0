package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goparity/goparity/internal/serving/servingtest"
)

// mkServed writes a fixture of the stub's model, whose server is a stubserver: mkserved DIR [MOOD]
func mkServed(ts *testscript.TestScript, _ bool, args []string) {
	more := ""
	if len(args) > 1 {
		more = fmt.Sprintf("serve:\n  command: [stubserver, %s, \"${port}\"]\n  ready: stub is ready\n", args[1])
	}
	ts.Check(servingtest.WriteFixture(ts.MkAbs(args[0]), more))
}

// stubServer is a server with a fault, and with a child that would outlive it: stubserver MOOD PORT
func stubServer() {
	if os.Args[1] == "child" {
		time.Sleep(time.Minute)
		return
	}
	known(os.Getpid())
	exe, err := os.Executable()
	if err == nil {
		child := exec.Command(exe, "child")
		child.Args[0] = os.Args[0]
		if err = child.Start(); err == nil {
			known(child.Process.Pid) // it may be ended before it could say so itself
		}
	}
	if err != nil {
		panic(err)
	}
	switch os.Args[1] {
	case "dies":
		os.Exit(9)
	case "never":
		time.Sleep(time.Minute)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[2])
	if err != nil {
		panic(err)
	}
	fmt.Println("stub is ready")
	panic(http.Serve(l, servingtest.Named(os.Args[1]).Handler()))
}

// known adds a process to those that alive looks for.
func known(pid int) {
	f, err := os.OpenFile(os.Getenv("PIDS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		fmt.Fprintln(f, pid)
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

// alive succeeds if a stubserver or a child of one is alive, or if there was none.
func alive(ts *testscript.TestScript, neg bool, _ []string) {
	found := ""
	pids := strings.Fields(ts.ReadFile("pids"))
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		ts.Check(err)
		if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
			found += " " + text
		}
	}
	if neg == (found != "") || len(pids) < 2 {
		ts.Fatalf("of the processes %v these are alive:%s", pids, found)
	}
}

// await waits until a file has so many lines: await FILE LINES
func await(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	for range 3000 {
		if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && bytes.Count(data, []byte("\n")) >= want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not get %d lines", args[0], want)
}
