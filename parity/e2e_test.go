package parity_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/serving/servingtest"
	"github.com/goparity/goparity/internal/session"
	"github.com/goparity/goparity/internal/setting"
	scripts "github.com/goparity/goparity/internal/toy"
)

// TestScripts plays a user: each script is a module of its own that imports this one. It begins
// with the files of testdata/base.txtar, where the script has none of that name, and with a go.mod
// that points here. A file that begins with a test begins with what is before that of base.txtar.
//
// Besides testscript's own commands there are:
//
//	mkdump [flags] DIR MODEL [edit …]   run a toy model, as toy_test.go describes it, and write a dump
//	golden FIXTURE DUMP                 make goldens from a dump of the reference
//	record FIXTURE DUMP NAME            keep a dump of the candidate as a recorded run
//	flip PATTERN OFFSET                 change one byte of a file; a negative offset counts from the end
//	replace FILE OLD NEW                change a text
//	cut FILE PATH N                     leave N entries of a list in a JSON file: cut index.json .runs.0.info.order 4
//	drop FILE PATH LAYER                take a layer's entries out of a list in a JSON file
//	reseal FILE                         make the hash of an index fit again
//	age DIR                             make all files an hour old: go test stores no result that depends on fresh ones
//	mkserved FIXTURE [YAML]             write a fixture of the stub server's model, goldens and all
//	stub MOOD                           start such a server; URL is its address
//	[!] gotest [flags] [PACKAGE]        go test of one package, whose tests are a file of a script, without linking it
//	[!] rerun [-go] [args]              run the first command that the last output calls "rerun:",
//	                                    as gotest does, or with -go by go itself
//	next                                run what parity explain prints for out/report.json: it must judge the same
//
// Where go test itself is the point (its cache, -tags, several packages), exec go test.
func TestScripts(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"go", "sh"} {
		if _, err := exec.LookPath(tool); err != nil || runtime.GOOS == "windows" {
			t.Skip("the scripts call go and sh, and run programs without .exe")
		}
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB",
		"GOFLAGS").Output()
	require.NoError(t, err)
	var env map[string]string
	require.NoError(t, json.Unmarshal(out, &env))
	base, err := txtar.ParseFile(filepath.Join("testdata", "base.txtar"))
	require.NoError(t, err)
	gomod, sums, err := scripts.UserModule(root)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	require.NoError(t, err)
	archives, own := []*txtar.Archive{base}, map[string][]txtar.File{}
	user := slices.IndexFunc(base.Files, func(f txtar.File) bool { return f.Name == "user_test.go" })
	before, _, _ := bytes.Cut(base.Files[user].Data, []byte("func TestToy"))
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for i, f := range a.Files {
			if bytes.HasPrefix(f.Data, []byte("func Test")) {
				a.Files[i].Data = slices.Concat(before, f.Data)
			}
		}
		archives, own["script-"+strings.TrimSuffix(filepath.Base(file), ".txtar")] = append(archives, a), a.Files
	}
	users := gather(t, archives)

	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			for k, v := range env {
				e.Setenv(k, v)
			}
			// Neither vet nor the linker's debug information is what the scripts are about, and
			// both take time.
			e.Setenv("GOFLAGS", strings.TrimSpace(env["GOFLAGS"]+" -mod=mod -vet=off -ldflags=-s"))
			e.Setenv("GOTOOLCHAIN", "local")
			e.Setenv("HOME", e.WorkDir)
			for _, f := range slices.Concat([]txtar.File{{Name: "go.mod", Data: gomod}, {Name: "go.sum", Data: sums}}, base.Files, own[filepath.Base(e.WorkDir)]) {
				path := filepath.Join(e.WorkDir, filepath.FromSlash(f.Name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, f.Data, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mkdump": cmdMkdump, "replace": scripts.Replace, "gotest": users.gotest, "rerun": users.rerun,
			"golden": command("golden FIXTURE DUMP", cmdGolden), "record": command("record FIXTURE DUMP NAME", cmdRecord),
			"flip": command("flip FILE OFFSET", cmdFlip), "age": command("age DIR", cmdAge),
			"cut": command("cut FILE PATH N", cmdCut), "drop": command("drop FILE PATH LAYER", cmdDrop), "reseal": command("reseal FILE", cmdReseal),
			"mkserved": command("mkserved FIXTURE [YAML]", cmdMkserved), "stub": command("stub MOOD", cmdStub), "next": command("next", users.next),
		},
	})
}

// command is a command of scripts that does not fail, with the arguments that its usage shows.
func command(usage string, run func(ts *testscript.TestScript, args []string)) func(*testscript.TestScript, bool, []string) {
	most := len(strings.Fields(usage)) - 1
	least := most - strings.Count(usage, "[")
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < least || len(args) > most {
			ts.Fatalf("usage: %s", usage)
		}
		run(ts, args)
	}
}

func cmdMkdump(ts *testscript.TestScript, neg bool, args []string) {
	var r toyRun
	fs := flag.NewFlagSet("mkdump", flag.ContinueOnError)
	fs.StringVar(&r.engine, "engine", "torch", "")
	fs.StringVar(&r.format, "format", "max", "")
	fs.StringVar(&r.caseName, "case", "short", "")
	fs.StringVar(&r.encoding, "dtype", "float32", "")
	fs.StringVar(&r.mode, "mode", "standard", "")
	fs.IntVar(&r.steps, "steps", 1, "")
	fs.Float64Var(&r.noise, "noise", 0, "")
	fs.BoolVar(&r.bare, "bare", false, "")
	ts.Check(fs.Parse(args))
	if neg || fs.NArg() < 2 {
		ts.Fatalf("usage: mkdump [flags] DIR MODEL [edit …]")
	}
	for _, a := range fs.Args()[2:] {
		e, err := parseEdit(a)
		ts.Check(err)
		r.edits = append(r.edits, e)
	}
	m, err := parseToy(ts.ReadFile(fs.Arg(1)))
	ts.Check(err)
	dir := ts.MkAbs(fs.Arg(0))
	ts.Check(os.RemoveAll(dir))
	ts.Check(m.write(dir, r))
}

func cmdGolden(ts *testscript.TestScript, args []string) {
	ts.Check(makeGoldens(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

// makeGoldens makes the goldens of a fixture from a dump of the reference.
func makeGoldens(fixture, dump string) error {
	s, err := session.Start(session.Config{Fixtures: []string{fixture}, Update: setting.UpdateAll, GoldenDump: dump})
	if err != nil {
		return err
	}
	return errors.Join(s.Update(io.Discard), s.Close())
}

func cmdMkserved(ts *testscript.TestScript, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(servingtest.WriteFixture(dir, strings.Join(args[1:], "")+"\n"))
	ts.Check(makeGoldens(dir, filepath.Join(dir, "dump")))
}

func cmdStub(ts *testscript.TestScript, args []string) {
	server := httptest.NewServer(servingtest.Named(args[0]).Handler())
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL)
}

func cmdRecord(ts *testscript.TestScript, args []string) {
	s, err := session.Start(session.Config{Fixtures: []string{ts.MkAbs(args[0])}, Replay: ts.MkAbs(args[1]),
		Record: args[2]})
	ts.Check(err)
	_, err = s.Default().Comparison()
	ts.Check(err)
	ts.Check(s.Finish(io.Discard))
	ts.Check(s.Close())
}

func cmdFlip(ts *testscript.TestScript, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s: %d files", args[0], len(files))
	}
	path := files[0]
	data, err := os.ReadFile(path)
	ts.Check(err)
	var at int
	_, err = fmt.Sscan(args[1], &at)
	ts.Check(err)
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 0x10
	ts.Check(os.WriteFile(path, data, 0o644))
}

func cmdAge(ts *testscript.TestScript, args []string) {
	hour := time.Now().Add(-time.Hour)
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, hour, hour))
	}))
}

// userTests runs the tests of users' packages as go test does. Linking a test binary takes far
// longer than running it, so one has those of all scripts, and USER_TESTS says which it runs.
type userTests struct {
	binary string
	sets   map[string]bool
	build  func()
}

var (
	testFile = regexp.MustCompile(`^package \w+\n\nimport[^)]*"testing"`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w*)\((\w+ \*testing\.([MT])\))`)
)

const allTests = `package user

import (
	"os"
	"reflect"
	"testing"
)

func TestMain(m *testing.M) {
	tests := (*[]testing.InternalTest)(reflect.ValueOf(m).Elem().FieldByName("tests").Addr().UnsafePointer())
	switch os.Getenv("USER_TESTS") {
%s	}
	os.Exit(m.Run())
}
`

// gather writes a module with the tests of all scripts, those of each file with names of their own.
func gather(t *testing.T, archives []*txtar.Archive) *userTests {
	u, files, cases := &userTests{sets: map[string]bool{}}, map[string]string{}, ""
	for _, a := range archives {
		for _, f := range a.Files {
			if !testFile.Match(f.Data) {
				continue
			}
			sources := map[string]string{"user_test.go": string(f.Data)}
			for _, o := range a.Files {
				if name := path.Base(o.Name); path.Dir(o.Name) == path.Dir(f.Name) && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
					sources[name], files[name] = string(o.Data), string(o.Data)
				}
			}
			id, run, list := setOf(sources), "", ""
			if u.sets[id] {
				continue
			}
			u.sets[id] = true
			_, code, _ := strings.Cut(string(f.Data), "\n")
			files["user"+id+"_test.go"] = "package user\n//line user_test.go:2\n" + testFunc.ReplaceAllString(code, "func user${1}"+id+"($2")
			for _, m := range testFunc.FindAllStringSubmatch(code, -1) {
				if m[3] == "M" {
					run = "userTestMain" + id + "(m)"
				} else {
					list += fmt.Sprintf("{%q, user%s%s}, ", m[1], m[1], id)
				}
			}
			cases += fmt.Sprintf("\tcase %q:\n\t\t*tests = []testing.InternalTest{%s}\n\t\t%s\n", id, list, run)
		}
	}
	files["all_test.go"] = fmt.Sprintf(allTests, cases)
	dir := writeModule(t, files)
	u.binary, u.build = filepath.Join(dir, "user.test"), sync.OnceFunc(func() { build(t, dir) })
	return u
}

// setOf names a package by its sources.
func setOf(sources map[string]string) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		fmt.Fprintf(hash, "%s %d\n%s", name, len(sources[name]), sources[name])
	}
	return fmt.Sprintf("_%x", hash.Sum(nil)[:8])
}

func (u *userTests) gotest(ts *testscript.TestScript, neg bool, args []string) {
	pkg, flags := scripts.BinaryArgs(args)
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
	names, err := filepath.Glob(filepath.Join(ts.MkAbs(pkg), "*.go"))
	ts.Check(err)
	sources := map[string]string{}
	for _, path := range names {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") {
			name = "user_test.go"
		}
		sources[name] = ts.ReadFile(path)
	}
	id := setOf(sources)
	if !u.sets[id] {
		ts.Fatalf("the tests of %s are no file of a script", pkg)
	}
	u.build()
	command := []string{"-c", `cd "$0" && export USER_TESTS="$1" && shift && exec "$@" 2>&1`, ts.MkAbs(pkg), id}
	if i := slices.Index(flags, "-json"); i >= 0 {
		command, flags[i] = append(command, "go", "tool", "test2json", "-t", "-p", "example.com/user"), "-test.v=test2json"
	}
	command = append(command, u.binary, "-test.paniconexit0", "-test.timeout=10m0s")
	return ts.Exec("sh", append(command, flags...)...)
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
		pkg, flags := scripts.BinaryArgs(append(strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n"), args...))
		err = u.run(ts, pkg, flags)
	}
	ended(ts, neg, err)
}

// next runs what parity explain prints for the report in out, and wants the verdict and the kind that
// the report has.
func (u *userTests) next(ts *testscript.TestScript, _ []string) {
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
	pkg, flags := scripts.BinaryArgs(strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n"))
	ended(ts, r.Verdict != report.Pass, u.run(ts, pkg, flags))
	if _, got := judged(); got != want {
		ts.Fatalf("%s: %s, want %s", *line, got, want)
	}
}

// editJSON changes a JSON file, which it writes in another form than goparity does.
func editJSON(ts *testscript.TestScript, file string, edit func(object map[string]any)) {
	var object map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &object))
	edit(object)
	data, err := json.Marshal(object)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(file), data, 0o644))
}

// editList changes the list at a path such as .passes.0.tensors.
func editList(ts *testscript.TestScript, file, path string, edit func([]any) []any) {
	editJSON(ts, file, func(object map[string]any) {
		keys := strings.Split(strings.TrimPrefix(path, "."), ".")
		last := len(keys) - 1
		for i := 0; i < last; i++ {
			switch value := object[keys[i]].(type) {
			case map[string]any:
				object = value
			case []any:
				n, err := strconv.Atoi(keys[i+1])
				ts.Check(err)
				object = value[n].(map[string]any)
				i++
			}
		}
		object[keys[last]] = edit(object[keys[last]].([]any))
	})
}

func cmdCut(ts *testscript.TestScript, args []string) {
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	editList(ts, args[0], args[1], func(l []any) []any { return l[:n:n] })
}

func cmdDrop(ts *testscript.TestScript, args []string) {
	editList(ts, args[0], args[1], func(l []any) []any {
		return slices.DeleteFunc(l, func(e any) bool { return e.([]any)[1] == args[2] })
	})
}

func cmdReseal(ts *testscript.TestScript, args []string) {
	sum, err := dump.Seal([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	editJSON(ts, args[0], func(object map[string]any) { object["sha256"] = sum })
}
