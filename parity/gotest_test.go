package parity_test

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goparity/goparity/internal/report"
)

// userTests runs the tests of users' packages as go test does. Linking a test binary takes far
// longer than running it, so scripts whose package has the same sources share one.
type userTests struct {
	dir string // where the binaries are

	mu    sync.Mutex
	built map[string]func() error // by the name of the binary
}

func (u *userTests) gotest(ts *testscript.TestScript, neg bool, args []string) {
	pkg, flags := binaryArgs(args)
	ended(ts, neg, u.run(ts, pkg, flags))
}

// ended checks how a command ended: with neg it must have failed.
func ended(ts *testscript.TestScript, neg bool, err error) {
	if !neg {
		ts.Check(err)
	} else if err == nil {
		ts.Fatalf("the tests passed")
	}
}

// run runs the tests of pkg in its folder. Both of their outputs become stdout, as with go test.
func (u *userTests) run(ts *testscript.TestScript, pkg string, flags []string) error {
	binary, err := u.build(ts, pkg)
	ts.Check(err)
	command := []string{"-c", `cd "$0" && exec "$@" 2>&1`, ts.MkAbs(pkg), binary, "-test.paniconexit0",
		"-test.timeout=10m0s"}
	return ts.Exec("sh", append(command, flags...)...)
}

// build returns the test binary of pkg, which the first script with these sources compiles.
func (u *userTests) build(ts *testscript.TestScript, pkg string) (string, error) {
	sources, err := filepath.Glob(filepath.Join(ts.MkAbs(pkg), "*.go"))
	ts.Check(err)
	hash := sha256.New()
	for _, name := range sources {
		text := ts.ReadFile(name)
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(name), len(text), text)
	}
	binary := filepath.Join(u.dir, fmt.Sprintf("%x.test", hash.Sum(nil)))
	u.mu.Lock()
	build := u.built[binary]
	if build == nil {
		build = sync.OnceValue(func() error { return ts.Exec("go", "test", "-c", "-o", binary, pkg) })
		u.built[binary] = build
	}
	u.mu.Unlock()
	return binary, build()
}

// binaryArgs divides the arguments of go test into the package, which is the working directory
// where there is none, and the flags as the test binary knows them: -run X becomes -test.run X.
func binaryArgs(args []string) (pkg string, flags []string) {
	pkg = "."
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag {
			pkg = args[i]
			continue
		}
		name, _, hasValue := strings.Cut(name, "=")
		f := flag.Lookup("test." + name)
		if f == nil {
			flags = append(flags, args[i])
			continue
		}
		flags = append(flags, "-test."+args[i][1:])
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); !hasValue && !(ok && b.IsBoolFlag()) && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	return pkg, flags
}

var rerunLine = regexp.MustCompile(`(?m)rerun: (go test (.*))$`)

func (u *userTests) rerun(ts *testscript.TestScript, neg bool, args []string) {
	m := rerunLine.FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("rerun: the last output has no rerun line")
	}
	var err error
	if len(args) > 0 && args[0] == "-go" {
		err = ts.Exec("sh", "-c", strings.Join(append([]string{m[1]}, args[1:]...), " "))
	} else {
		// The shell takes the quotes off.
		ts.Check(ts.Exec("sh", "-c", `printf '%s\n' `+m[2]))
		pkg, flags := binaryArgs(append(strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n"), args...))
		err = u.run(ts, pkg, flags)
	}
	ended(ts, neg, err)
}

// next runs what parity explain prints for the report in out, and wants the verdict and the kind that
// the report has.
func (u *userTests) next(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: next")
	}
	file := ts.MkAbs("out/report.json")
	judged := func() (*report.Report, string) {
		var r report.Report
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &r))
		return &r, fmt.Sprintf("verdict %s, kind %q", r.Verdict, r.Kind)
	}
	r, want := judged()
	line := report.BriefOf(r, "out/report.json").Next
	if line == nil {
		ts.Fatalf("there is no next command for %s", want)
	}
	command, ok := strings.CutPrefix(*line, "go test example.com/user")
	if !ok {
		ts.Fatalf("the next command is %s", *line)
	}
	ts.Logf("%s", *line)
	ts.Check(os.Remove(file))
	ts.Check(ts.Exec("sh", "-c", `printf '%s\n' .`+command))
	pkg, flags := binaryArgs(strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n"))
	ended(ts, r.Verdict != report.Pass, u.run(ts, pkg, flags))
	if _, got := judged(); got != want {
		ts.Fatalf("%s: %s, want %s", *line, got, want)
	}
}
