package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/glob"
	"github.com/goparity/goparity/internal/setting"
)

// commands are run one after the other, each a list of words. None is nothing to run.
type commands [][]string

// line is what to type into a shell. It is not ok if there is nothing to run, or what would have to
// be typed is too long or cannot be shown as it is.
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

// next chooses the next command.
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

// gotest runs the subtest of the place, or of the execution paths that fail alike there, else the
// test of a failing row, else the package.
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
	scope := glob.Quote(layer)
	if _, err := glob.Compile(scope); err != nil || n.in == nil || n.r.ofGeneration() { // a scope is of tensors
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
