package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func at(verdict, layer string) (r report) {
	r.Verdict, r.First.Layer = verdict, layer
	return r
}

func causes(list ...cause) report { return report{Verdict: "fail", Causes: list} }

func TestPlace(t *testing.T) {
	bug := truth{Verdict: "fail", Layer: "a.b", AlsoLayer: []string{"a"}}
	clean := truth{Verdict: "pass"}
	for _, c := range []struct {
		want   truth
		got    report
		grade  string
		reason string
	}{
		{clean, at("pass", ""), "ok", "clean, and said so"},
		{clean, at("fail", "a.b"), "wrong verdict", "a wrong accusation"},
		{bug, at("pass", ""), "wrong verdict", "a bug not seen"},
		{bug, at("fail", "a.b"), "ok", "the place"},
		{bug, at("fail", "a"), "ok", "as good a place"},
		{bug, at("fail", ""), "wrong place", "no place"},
		{bug, at("fail", "c"), "wrong place", "another place"},
		{truth{Verdict: "fail", Kind: "drift"}, at("fail", "a"), "wrong kind", "no place is asked, but the kind is"},
		{truth{Verdict: "fail", Kind: "local", AlsoKind: []string{""}}, at("fail", "a"), "ok", "as good a kind"},
		{truth{Verdict: "fail", Kind: "interaction"}.alone(), report{Verdict: "fail", Kind: "local"}, "ok",
			"two dumps cannot tell an interaction"},
	} {
		if got := c.want.place(c.got); got != c.grade {
			t.Errorf("%s: %q, want %q", c.reason, got, c.grade)
		}
	}
}

func TestCause(t *testing.T) {
	bug := truth{Verdict: "fail", Cause: "norm/eps", AlsoCause: []string{"config/eps"}, Second: "a.c"}
	pattern := truth{Verdict: "fail", Cause: "norm/eps", Pattern: regexp.MustCompile("^moe/")}
	eps, other := cause{ID: "norm/eps"}, cause{ID: "x"}
	for _, c := range []struct {
		want   truth
		got    report
		grade  string
		reason string
	}{
		{truth{Verdict: "pass"}, causes(), "", "clean, and nothing said"},
		{truth{Verdict: "pass"}, causes(cause{ID: "drift"}), "accused", "a cause where there is no bug"},
		{bug, causes(cause{ID: "norm/eps", Proven: true}, other), "proven", "the planted one, proven"},
		{bug, causes(cause{ID: "config/eps", Proven: true}), "proven", "an id that says the same"},
		{pattern, causes(cause{ID: "moe/router", Proven: true}), "proven", "an id that the pattern allows"},
		{bug, causes(eps, other), "first", "named first"},
		{bug, causes(other, other, eps), "top 3", "named third"},
		{bug, causes(other, other, other, eps), "unsolved", "named fourth"},
		{bug, causes(eps, cause{ID: "x", Layer: "a.b", Proven: true}), "wrong proof", "a proof of something else"},
		{bug, causes(eps, cause{ID: "x", Layer: "a.c.d", Proven: true}), "first", "the second bug is not scored"},
		{truth{Verdict: "fail", Kind: "interaction", Cause: "interaction"}.alone(),
			causes(cause{ID: "x", Proven: true}), "proven", "two dumps cannot tell an interaction"},
	} {
		if got := c.want.cause(c.got); got != c.grade {
			t.Errorf("%s: %q, want %q", c.reason, got, c.grade)
		}
	}
}

func TestSaid(t *testing.T) {
	r := causes(cause{ID: "guess"}, cause{ID: "proof", Proven: true}, cause{ID: "late guess"},
		cause{ID: "proof", Proven: true})
	r.Kind = "drift"
	if got, want := r.said(), "fail drift guess proof!"; got != want {
		t.Errorf("%q, want %q: guesses after the first are not kept, and equal proofs once", got, want)
	}
}

func TestScore(t *testing.T) {
	pass := answer{want: truth{Verdict: "pass"}, got: at("pass", "")}
	missed := answer{want: truth{Verdict: "fail", Kind: "local", Layer: "a"}, got: at("pass", "")}
	broken := answer{err: errors.New("exit\nstatus 3")}
	for _, c := range []struct {
		result         result
		errors, strict bool
		lines          []string
		reason         string
	}{
		{result{"p", pass, pass}, false, true, []string{"p ok pass"}, "all right: one line"},
		{result{"p", pass, missed}, false, false,
			[]string{"p ok pass", "p (alone) wrong verdict pass, planted: fail local a"},
			"another answer from the dumps alone has a line of its own"},
		{result{"p", broken, broken}, true, false, []string{"p error exit status 3"},
			"an error is in one line, and never fine"},
	} {
		s := score{c.result}
		if s.errors() != c.errors || s.strict() != c.strict {
			t.Errorf("%s: errors %v, strict %v", c.reason, s.errors(), s.strict())
		}
		cases, _, _ := strings.Cut(s.String(), "\n\n")
		for i, l := range strings.Split(cases, "\n") {
			if got := strings.Join(strings.Fields(l), " "); i >= len(c.lines) || got != c.lines[i] {
				t.Errorf("%s: line %d is %q", c.reason, i, got)
			}
		}
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ old, now, want, reason string }{
		{"a 1\nb 2\n", "a 1\nb 2\n", "", "equal scores"},
		{"a 1\nb 2\nc 3\n", "a 1\nb 4\nc 5\n", "- b 2\n+ b 4\n- c 3\n+ c 5\n",
			"old and new of a case are side by side"},
		{"a 1\n", "a 1\nb 2\n", "+ b 2\n", "a new case"},
	} {
		if got := diff(c.old, c.now); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.reason, got, c.want)
		}
	}
}

// TestMain is also the parity that is judged: it says about each case what the case holds in
// said.json.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "compare" {
		os.Exit(m.Run())
	}
	args := os.Args[2:] // --json OUT --golden FOLDER/ref …
	data, err := os.ReadFile(filepath.Join(filepath.Dir(args[3]), "said.json"))
	if err != nil {
		os.Exit(3)
	}
	if err := os.WriteFile(args[1], data, 0o644); err != nil {
		panic(err)
	}
	if strings.Contains(string(data), "fail") {
		os.Exit(1)
	}
}

func TestJudge(t *testing.T) {
	const pass, fail = `{"verdict": "pass"}`, `{"verdict": "fail"}`
	for _, c := range []struct {
		said, kept     string // of the one case, and of the score; "" for neither
		strict, update bool
		ok, err        bool
		reason         string
	}{
		{said: pass, ok: true, reason: "right"},
		{said: fail, ok: true, reason: "wrong answers are only shown"},
		{said: fail, strict: true, reason: "unless -strict is given"},
		{said: "", reason: "no report"},
		{said: "", update: true, reason: "an error is never kept"},
		{said: pass, kept: pass, ok: true, reason: "the score of before"},
		{said: pass, kept: fail, err: true, reason: "a better score is another one, too"},
		{said: fail, kept: pass, err: true, reason: "a worse score"},
	} {
		folder := t.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		say := func(text string) {
			os.RemoveAll(filepath.Join(folder, "case"))
			if err := os.Mkdir(filepath.Join(folder, "case"), 0o755); err != nil {
				t.Fatal(err)
			}
			write("case/truth.json", pass)
			write("case/case.json", "{}")
			if text != "" {
				write("case/said.json", text)
			}
		}
		kept := ""
		if c.kept != "" || c.update {
			kept = filepath.Join(folder, "score.txt")
		}
		if c.kept != "" {
			say(c.kept)
			if ok, err := judge(os.Args[0], folder, regexp.MustCompile(""), false, kept, true); !ok || err != nil {
				t.Fatalf("%s: the score was not kept: %v", c.reason, err)
			}
		}
		say(c.said)
		ok, err := judge(os.Args[0], folder, regexp.MustCompile(""), c.strict, kept, c.update)
		if ok != c.ok || (err != nil) != c.err {
			t.Errorf("%s: %v, %v", c.reason, ok, err)
		}
		if _, err := os.Stat(kept); c.kept == "" && err == nil {
			t.Errorf("%s: a score was written", c.reason)
		}
	}
}

func TestAFolderWithoutCasesIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "notes"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := run("parity", dir, regexp.MustCompile("")); err == nil {
		t.Error("nothing was compared, and that is no success")
	}
}
