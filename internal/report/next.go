package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/setting"
)

// commands are run one after the other, each a list of words. None is nothing to run.
type commands [][]string

// line is what to type into a shell. It is not ok if that is nothing, too long, or cannot be shown as it is.
func (c commands) line() (string, bool) {
	var lines []string
	for _, words := range c {
		if slices.ContainsFunc(words, func(w string) bool { return Clean(w) != w }) {
			return "", false
		}
		lines = append(lines, setting.Command(words...))
	}
	line := strings.Join(lines, " && ")
	return line, line != "" && quotedLen(line) <= maxNext
}

// quotedLen is the bytes that a text takes in JSON.
func quotedLen(s string) int { return len(s) + strings.Count(s, `"`) + strings.Count(s, `\`) }

// operand is a word that no program takes for a flag (go test -exec): reports come from anywhere.
func operand(s string) string {
	if strings.HasPrefix(s, "-") {
		return "./" + s
	}
	return s
}

// Next says what to run next, and why; the command is empty where there is nothing to run. It runs as it is printed,
// from the working folder; where the dumps of the report are not there any more, only the report, which lies in file,
// is looked at.
func (r *Report) Next(file string) (command, why string) {
	n := next{r: r, file: file}
	if r.Made != nil {
		if here, err := r.Made.Here(); err == nil {
			n.in = &here
		}
	}
	c, why := n.choose()
	if line, ok := c.line(); ok || c == nil {
		return line, why
	}
	command, _ = n.report().line() // another cannot be typed
	return command, why
}

type next struct {
	r    *Report
	file string
	in   *Inputs // two dumps that are there, nil if that is not known
}

func (n next) choose() (commands, string) {
	r := n.r
	switch d, s := r.FirstDivergence, stageNamed(r.stage()); {
	case r.Verdict == Pass && len(r.NotJudged) == 0:
		return nil, "what was compared holds, and nothing that should be covered is open: nothing is left to do"
	case r.Verdict == Pass:
		return n.report(), "what was compared holds; what was not judged is listed"
	case r.Verdict == Fail && s.next != nil:
		return s.next(n)
	case r.Kind == KindInput && d != nil:
		return n.tokens()
	case n.isProven():
		return n.proven()
	case n.nameless():
		args := n.in.Args("golden", "actual", "pad-mask", "encoding", "raw", "fp8")
		return commands{slices.Concat([]string{"parity", "names"}, args, []string{"-o", "names.yaml"})},
			"layers of both sides have no partner: this looks for those that are one by values, shapes and order; then compare with --names names.yaml"
	case r.Verdict == Error:
		return nil, "nothing was judged: " + Headline(r)
	case r.Verdict == Incomplete:
		return n.report("-v"), "too little was compared, the report lists what only one side has: " + OpenHelp
	case d != nil && d.Place != "" && d.Layer != "":
		return n.open(d.Layer)
	case r.Package != "":
		return n.again(), "no cause is proven: the test prints where and by how much the layer is off"
	case r.Causes == nil && d != nil && n.in != nil:
		return n.again(), "no cause was looked for"
	}
	return n.report(), "no cause is proven: the report has where and by how much each tensor is off; change the reference's " +
		"program as you suspect, parity compare --edit"
}

// report looks at the report, which nothing tells where no one wrote it.
func (n next) report(more ...string) commands {
	if n.file == "" {
		return nil
	}
	return commands{slices.Concat([]string{"parity", "report", operand(n.file)}, more)}
}

// again is the same judgement once more: of the tests, or of the dumps.
func (n next) again(more ...string) commands {
	switch {
	case n.r.Package != "":
		return commands{n.gotest()}
	case n.in != nil:
		return commands{slices.Concat([]string{"parity", "compare"}, n.in.Args(), more)}
	}
	return nil
}

// redo is the same judgement once more, or where that cannot be made the report of it, and why.
func (n next) redo(why, again string) (commands, string) {
	if c := n.again(); c != nil {
		return c, why + again
	}
	return n.report(), why + "; the report has the details"
}

// gotest runs the subtest of the place, or of the paths that fail alike there, else the failing row's test, else all.
func (n next) gotest() []string {
	test, pattern, d := "", "", n.r.FirstDivergence
	for _, l := range n.r.Failing() {
		if l.Test != "" && d != nil && l.Case == d.Case && l.Step == d.Step && (l.Layer == d.Layer || l.Layer == d.Before) {
			test = l.Test
			break
		}
		if l.Test != "" && test == "" {
			test, _, _ = strings.Cut(l.Test, "/")
		}
	}
	if test != "" {
		pattern = setting.Pattern(test)
	}
	if all := n.r.Findings(); n.r.Kind == KindPath && len(all) > 0 {
		var names []string
		for _, p := range all[0].Paths {
			names = append(names, regexp.QuoteMeta(setting.Name(PathTest(p))))
		}
		element := strings.Join(names, "|")
		if len(names) > 1 {
			element = "(" + element + ")" // else go test divides the whole pattern there
		}
		root, _, _ := strings.Cut(pattern, "/")
		pattern = root + "/^" + element + "$"
	}
	var by Settings
	if n.r.Settings != nil {
		by = *n.r.Settings
	}
	if pattern == "" {
		return by.GoTest(operand(n.r.Package))
	}
	return by.GoTest(operand(n.r.Package), "-run", pattern)
}

// tokens: the two runs were not given the same input.
func (n next) tokens() (commands, string) {
	const why = "the two runs were not given the same input: record the candidate on the tokens of the golden"
	if n.in == nil || n.in.Golden == "" {
		return n.redo(why, "")
	}
	var golden, actual []string // which layer
	d := n.r.FirstDivergence
	at := n.r.rows(func(l *Layer) bool {
		return l.Layer == d.Layer && l.Port == d.Port && l.Golden != nil && l.Actual != nil &&
			!strings.Contains(l.Golden.Name+l.Actual.Name, " + ")
	})
	if len(at) > 0 {
		golden, actual = []string{"--layer", at[0].Golden.Name}, []string{"--layer", at[0].Actual.Name}
	}
	show := func(dump string, layer []string) []string {
		return slices.Concat([]string{"parity", "show", operand(dump)}, n.in.Args("raw"), layer)
	}
	return commands{show(n.in.Golden, golden), show(n.in.Actual, actual)}, why
}

func (n next) isProven() bool {
	return n.r.Verdict == Fail && len(n.r.Causes) > 0 && n.r.Causes[0].Proven
}

// proven: the cause is known, so what is left is to mend it.
func (n next) proven() (commands, string) {
	again := "; record the candidate again, and this judges it"
	if n.r.Package != "" {
		again = "; then this judges it again"
	}
	return n.mend("mend "+n.r.Causes[0].Layer, "", again)
}

// nameless reports whether layers may be joined that now stand alone on both sides.
func (n next) nameless() bool {
	lonely := func(lones []Lone) bool {
		return slices.ContainsFunc(lones, func(l Lone) bool { return l.Reason == "" && !l.Ignored })
	}
	return n.in != nil && n.in.Golden != "" && n.in.Names == "" && lonely(n.r.Unmatched.Golden) && lonely(n.r.Unmatched.Actual)
}

// open: what the place was made of was not recorded.
func (n next) open(layer string) (commands, string) {
	why := "the place is open: record what was not recorded there, on both sides, and compare again"
	scope := label.QuotePattern(layer)
	if _, err := label.CompilePattern(scope); err != nil || n.in == nil || n.r.ofGeneration() { // a scope is of tensors
		return n.redo(why, "")
	}
	in := *n.in
	in.Scope = []string{scope}
	n.in = &in
	return n.again("-v"), why
}

// mend is what to do where a cause is known, or only which part is wrong: the same judgement follows.
func (n next) mend(what, not, again string) (commands, string) {
	if len(n.r.Causes) > 0 {
		what += fmt.Sprintf(" (%s, see %s)", n.r.Causes[0].ID, n.r.Causes[0].Doc())
	}
	return n.redo(what+not, again)
}

// Made says how parity compare made a report of two dumps: enough to compare them again, and nothing
// that writes a file or runs a program, since a report may come from anywhere.
type Made struct {
	Command string `json:"command"` // "compare"; earlier versions had others
	Dir     string `json:"dir"`     // folder in which it ran
	Inputs
}

// Inputs are what two dumps are compared by. A key is a flag of parity compare with "_" for "-", or one of the flag
// that takes it as KEY=VALUE. What is a file or folder that is read says so.
type Inputs struct {
	Golden      string   `json:"golden" is:"file"`
	Actual      string   `json:"actual" is:"file"`
	Injected    string   `json:"injected,omitempty" is:"file" of:"also"`
	Injection   string   `json:"injection,omitempty"`
	Golden64    string   `json:"golden64,omitempty" is:"file" of:"also"`
	Noise       string   `json:"noise,omitempty" is:"file" of:"also"`
	Unquantised string   `json:"unquantised,omitempty" is:"file" of:"also"`
	Unrounded   string   `json:"unrounded,omitempty" is:"file" of:"also"`
	OnePass     string   `json:"one_pass,omitempty" is:"file" of:"also"`
	Program     string   `json:"program,omitempty" is:"file"`
	Strict      bool     `json:"strict,omitempty"`
	Vacuous     bool     `json:"allow_vacuous,omitempty"`
	Weights     []string `json:"weights,omitempty" is:"file"`
	Config      string   `json:"config,omitempty" is:"file"`
	PadMask     string   `json:"pad_mask,omitempty" is:"file" of:"assume"`
	Names       string   `json:"names,omitempty" is:"file"`
	Scope       []string `json:"scope,omitempty"`
	Encoding    string   `json:"encoding,omitempty" of:"assume"`
	Raw         string   `json:"raw,omitempty" of:"assume"`
	FP8         string   `json:"fp8,omitempty" of:"assume"`
	Within      []string `json:"within,omitempty"`
	Reshape     bool     `json:"allow_reshape,omitempty"`
	Tokens      *int     `json:"tokens,omitempty"` // of a generation; 0 for all, nil: tokens are judged where run.json has them
}

// input is a field of Inputs.
type input struct {
	name   string // of its flag, or its key
	of     string // the flag that takes it as KEY=VALUE; ""
	isFile bool
	value  reflect.Value
}

func (in *Inputs) fields(given bool) (list []input) {
	for field, v := range reflect.ValueOf(in).Elem().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !given || !v.IsZero() {
			list = append(list, input{strings.ReplaceAll(key, "_", "-"), field.Tag.Get("of"), field.Tag.Get("is") == "file", v})
		}
	}
	return list
}

// Also returns by its role where each of the further dumps stands.
func (in *Inputs) Also() map[string]*string {
	roles := map[string]*string{}
	for _, x := range in.fields(false) {
		if x.of == "also" {
			roles[x.name] = x.texts()[0]
		}
	}
	return roles
}

// Paths are where the files and folders that are read stand, of those that are given.
func (in *Inputs) Paths() (paths []*string) {
	for _, x := range in.fields(true) {
		if x.isFile {
			paths = append(paths, x.texts()...)
		}
	}
	return paths
}

// Here returns the inputs with paths that lead there from the working folder. A relative one that is
// not there is looked for in the folder in which the report was made. The error names the first that
// is in neither.
func (m *Made) Here() (Inputs, error) {
	in := m.Inputs
	if in.Golden == "" && in.Program == "" || in.Actual == "" {
		return in, errors.New("made says not which two dumps, or which program and dump, were compared")
	}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	in.Weights = slices.Clone(in.Weights)
	for _, p := range in.Paths() {
		there := filepath.Join(m.Dir, *p)
		switch {
		case exists(*p):
		case !filepath.IsAbs(*p) && filepath.IsAbs(m.Dir) && exists(there):
			*p = there
		default:
			return in, fmt.Errorf("%s, of which the report was made in %s, is gone: compare again where it is (%w)", *p, m.Dir,
				fs.ErrNotExist)
		}
	}
	return in, nil
}

// Args returns the inputs as arguments of parity compare; with names only what these flags say.
func (in Inputs) Args(names ...string) (args []string) {
	for _, x := range in.fields(true) {
		flag, key := "--"+x.name, ""
		if x.of != "" {
			flag, key = "--"+x.of, x.name+"="
		}
		switch texts := x.texts(); {
		case len(names) > 0 && !slices.Contains(names, x.name):
		case x.value.Kind() == reflect.Bool:
			args = append(args, flag)
		case x.value.Kind() == reflect.Pointer:
			args = append(args, flag, fmt.Sprint(x.value.Elem()))
		default:
			for _, s := range texts {
				args = append(args, flag, key+*s)
			}
		}
	}
	return args
}

// Settings are the flags of go test that chose the run which a report judges; empty: left to the default.
type Settings struct {
	Tags      string `json:"tags,omitempty"` // build tags of the test binary
	Run       string `json:"run,omitempty"`
	Replay    string `json:"replay,omitempty"` // relative to the package
	Mode      string `json:"mode,omitempty"`
	Inherited string `json:"inherited,omitempty"`
}

// GoTest returns the command that runs tests of a package by these settings, as it is typed word by
// word: go test PACKAGE …WHICH -count=1 …. Every command that repeats a run is this one.
func (s Settings) GoTest(pkg string, which ...string) []string {
	words := slices.Concat([]string{"go", "test", pkg}, which, []string{"-count=1"})
	for _, flag := range [][2]string{{"-tags=", s.Tags}, {"-parity.run=", s.Run}, {"-parity.replay=", s.Replay},
		{"-parity.mode=", s.Mode}, {"-parity.inherited=", s.Inherited}} {
		if flag[1] != "" {
			words = append(words, flag[0]+flag[1])
		}
	}
	return words
}

func (x input) texts() (texts []*string) {
	switch p := x.value.Addr().Interface().(type) {
	case *string:
		texts = append(texts, p)
	case *[]string:
		for i := range *p {
			texts = append(texts, &(*p)[i])
		}
	}
	return texts
}
