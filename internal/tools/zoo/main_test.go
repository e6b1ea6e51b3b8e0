package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func at(verdict, layer string) (r report) {
	r.Verdict, r.First.Layer = verdict, layer
	return r
}

func causes(list ...cause) report { return report{Verdict: "fail", Causes: list} }

func pass(list ...cause) report { return report{Verdict: "pass", Causes: list} }

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
		{truth{Verdict: "fail", Layer: "a", Seen: "injected"}, at("pass", ""), "wrong verdict", "an injected run shows it"},
		{truth{Verdict: "fail", Layer: "a", Seen: "injected"}.alone(), at("pass", ""), "ok", "two dumps may not show it"},
		{truth{Verdict: "fail", Layer: "a", Seen: "injected"}.alone(), at("fail", "b"), "wrong place", "but not elsewhere"},
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
	rewrite := truth{Verdict: "pass", Rewrite: true}
	eps, other := cause{ID: "norm/eps"}, cause{ID: "x"}
	for _, c := range []struct {
		want   truth
		got    report
		grade  string
		reason string
	}{
		{truth{Verdict: "pass"}, causes(), "", "clean, and nothing said"},
		{truth{Verdict: "pass"}, causes(cause{ID: "drift"}), "accused", "a cause where there is no bug"},
		{rewrite, pass(), "", "a rewrite passes"},
		{rewrite, pass(other), "", "with a note of what was done"},
		{rewrite, causes(other), "accused", "a rewrite that fails"},
		{rewrite, pass(cause{ID: "x", Proven: true}), "wrong proof", "nothing is wrong in a rewrite"},
		{rewrite, causes(cause{ID: "x", Proven: true}), "wrong proof", "a rewrite is no fault"},
		{truth{Verdict: "fail", Cause: "x", Seen: "injected"}.alone(), pass(), "", "not seen, not solved"},
		{truth{Verdict: "fail", Cause: "x"}, pass(), "unsolved", "a bug not seen"},
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

func TestScore(t *testing.T) {
	pass := answer{want: truth{Verdict: "pass"}, got: at("pass", "")}
	missed := answer{want: truth{Verdict: "fail", Kind: "local", Layer: "a"}, got: at("pass", "")}
	bug := truth{Verdict: "fail", Cause: "x"}
	proven, guessed := answer{want: bug, got: causes(cause{ID: "x", Proven: true})}, answer{want: bug, got: causes(cause{ID: "x"})}
	several := answer{want: bug, got: causes(cause{ID: "guess"}, cause{ID: "x", Proven: true}, cause{ID: "late"}, cause{ID: "x", Proven: true})}
	broken := answer{err: errors.New("exit\nstatus 3")}
	for _, c := range []struct {
		result         result
		errors, strict bool
		lines, kept    []string
		reason         string
	}{
		{result{"p", pass, pass, nil}, false, true, []string{"p ok pass"}, nil, "all right: one line, which is not kept"},
		{result{"p", pass, missed, nil}, false, false,
			[]string{"p ok pass", "p (alone) wrong verdict pass, planted: fail local a"},
			[]string{"p (alone) wrong verdict pass, planted: fail local a"},
			"another answer from the dumps alone has a line of its own"},
		{result{"p", missed, pass, nil}, false, false,
			[]string{"p wrong verdict pass, planted: fail local a", "p (alone) ok pass"},
			[]string{"p wrong verdict pass, planted: fail local a", "p (alone) ok pass"},
			"both are kept: the first line would be of both"},
		{result{"p", proven, proven, nil}, false, true, []string{"p ok proven fail x!"}, nil, "the planted cause is proven"},
		{result{"p", several, several, nil}, false, true, []string{"p ok proven fail guess x!"}, nil,
			"guesses after the first are not kept, and equal proofs once"},
		{result{"p", guessed, guessed, nil}, false, true, []string{"p ok first fail x"}, []string{"p ok first fail x"},
			"the planted cause should be proven"},
		{result{"p", broken, broken, nil}, true, false, []string{"p error exit status 3"}, []string{"p error exit status 3"},
			"an error is in one line, and never fine"},
	} {
		s := score{c.result}
		if s.errors() != c.errors || s.strict() != c.strict {
			t.Errorf("%s: errors %v, strict %v", c.reason, s.errors(), s.strict())
		}
		for text, want := range map[string][]string{s.String(): c.lines, s.kept(): c.kept} {
			var lines []string
			for l := range strings.Lines(strings.TrimSuffix(text, "\n"+s.totals())) {
				lines = append(lines, strings.Join(strings.Fields(l), " "))
			}
			if !slices.Equal(lines, want) {
				t.Errorf("%s: %q, want %q", c.reason, lines, want)
			}
		}
	}
}

func TestMargin(t *testing.T) {
	var r report
	err := json.Unmarshal([]byte(`{"layers": [
		{"layer": "a", "port": "output", "status": "pass",
			"standard": {"rel_l2": 0.01, "row_rel_l2": 0.06}, "tolerance": {"rel_l2": 0.03, "row_rel_l2": 0.08, "source": "default"}},
		{"layer": "b", "port": "output", "status": "pass", "standard": {"rel_l2": "NaN"}, "tolerance": {"rel_l2": 0.03}},
		{"layer": "c", "port": "input_0", "status": "pass", "standard": {"max_abs": 3}, "tolerance": {"atol": 0, "rtol": 0}},
		{"layer": "e", "port": "output", "status": "pass", "standard": {"rel_l2": 1.4}, "tolerance": {"rel_l2": 0.03}},
		{"layer": "d", "port": "output", "status": "ignored", "standard": {"rel_l2": 9}, "tolerance": {"rel_l2": 0.03}}]}`), &r)
	if err != nil {
		t.Fatal(err)
	}
	if worst, at := r.margin(); worst != 0.75 || at != "a output" {
		t.Errorf("%v at %s, want 0.75 at a output: the worst row is nearest to its limit", worst, at)
	}
}

func TestInnocence(t *testing.T) {
	near := pass()
	near.Layers = []row{{Layer: "a", Port: "output", Status: "pass",
		Standard: map[string]any{"rel_l2": 0.02}, Tolerance: map[string]any{"rel_l2": 0.04}}}
	clean, rewrite := truth{Verdict: "pass"}, truth{Verdict: "pass", Rewrite: true}
	s := score{
		{name: "near", full: answer{want: clean, got: near}, alone: answer{want: clean, got: pass()}},
		{name: "accused", full: answer{want: clean, got: pass()}, alone: answer{want: clean, got: causes()}},
		{name: "rewrite", full: answer{want: rewrite, got: causes()}, alone: answer{want: rewrite, got: causes()}},
	}
	if got, want := s.innocence(), "clean: 2 pairs, 1 accused, worst margin 0.50 near a output\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.accusations(); !strings.HasPrefix(got, "accused ") {
		t.Errorf("accused: %q", got)
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ old, now, want, reason string }{
		{"a 1\nb 2\n", "a 1\nb 2\n", "", "equal scores"},
		{"a 1\nb 2\nc 3\n", "a 1\nb 4\nc 5\n", "- b 2\n+ b 4\n- c 3\n+ c 5\n",
			"old and new of a case are side by side"},
		{"a 1\n", "a 1\nb 2\n", "+ b 2\n", "a new case"},
		{"clean: 2 pairs, 0 accused, worst margin 0.50 a\n", "clean: 2 pairs, 0 accused, worst margin 0.54 b\n", "",
			"another processor rounds in another way"},
		{"clean: 2 pairs, 0 accused, worst margin 0.50 a\n", "clean: 2 pairs, 0 accused, worst margin 0.60 a\n",
			"- clean: 2 pairs, 0 accused, worst margin 0.50 a\n+ clean: 2 pairs, 0 accused, worst margin 0.60 a\n", "nearer to an accusation"},
		{"clean: 2 pairs, 0 accused, worst margin 0.50 a\n", "clean: 1 pairs, 0 accused, worst margin 0.50 a\n",
			"- clean: 2 pairs, 0 accused, worst margin 0.50 a\n+ clean: 1 pairs, 0 accused, worst margin 0.50 a\n", "a clean pair less"},
	} {
		if got := diff(c.old, c.now); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.reason, got, c.want)
		}
	}
}

// TestMain is also the parity that is judged: it says about each case what the case holds in
// said.json, and proposes the rules that are in rules.yaml.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	flags := map[string]string{}
	for i := 2; i+1 < len(os.Args); i += 2 {
		flags[os.Args[i]] = os.Args[i+1]
	}
	file, out := "said.json", flags["--json"]
	switch os.Args[1] {
	case "compare":
	case "names":
		file, out = "rules.yaml", flags["-o"]
	default:
		os.Exit(m.Run())
	}
	folder := filepath.Dir(flags["--golden"])
	data, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		os.Exit(3)
	}
	if _, full := flags["--config"]; !full && strings.Contains(string(data), "poor alone") {
		data = []byte(`{"verdict": "fail"}`)
	}
	if _, asked := flags["--names"]; file == "said.json" && asked != strings.Contains(string(data), "net.") {
		os.Exit(2)
	}
	if string(data) == "none is needed" {
		return
	}
	if err := os.WriteFile(out, data, 0o644); err != nil {
		panic(err)
	}
	if strings.Contains(string(data), "fail") {
		os.Exit(1)
	}
	if strings.Contains(string(data), "incomplete") {
		os.Exit(3)
	}
}

func TestJudge(t *testing.T) {
	const pass, fail, poor = `{"verdict": "pass"}`, `{"verdict": "fail"}`, `{"verdict": "pass", "note": "poor alone"}`
	for _, c := range []struct {
		said, kept    string // of the one case, and of the score; "" for neither
		strict, clean bool
		full, update  bool
		ok, err       bool
		reason        string
	}{
		{said: pass, ok: true, reason: "right"},
		{said: fail, ok: true, reason: "wrong answers are only shown"},
		{said: fail, strict: true, reason: "unless -strict is given"},
		{said: fail, clean: true, err: true, reason: "or -clean"},
		{said: fail, kept: fail, clean: true, err: true, reason: "a score that accuses a clean pair is not good enough, kept or not"},
		{said: poor, clean: true, err: true, reason: "the dumps alone, too"},
		{said: poor, clean: true, strict: true, full: true, ok: true, reason: "unless -full is given"},
		{said: `{"verdict": "incomplete"}`, ok: true, reason: "too little compared is a wrong answer"},
		{said: `{"verdict": "incomplete"}`, strict: true, reason: "and no more than that"},
		{said: `{"verdict": "unknown"}`, reason: "a verdict that does not fit the exit code"},
		{said: "", reason: "no report"},
		{said: "", update: true, reason: "an error is never kept"},
		{said: pass, kept: pass, ok: true, reason: "the score of before"},
		{said: pass, kept: fail, err: true, reason: "a better score is another one, too"},
		{said: fail, kept: pass, err: true, reason: "a worse score"},
	} {
		folder := t.TempDir()
		say := func(text string) {
			os.RemoveAll(filepath.Join(folder, "case"))
			writeCase(t, folder, map[string]string{"truth.json": pass, "case.json": "{}", "config.json": "{}", "said.json": text})
		}
		kept := ""
		if c.kept != "" || c.update {
			kept = filepath.Join(folder, "score.txt")
		}
		if c.kept != "" {
			say(c.kept)
			if ok, err := (options{parity: os.Args[0], kept: kept, update: true}).judge(folder, regexp.MustCompile("")); !ok || err != nil {
				t.Fatalf("%s: the score was not kept: %v", c.reason, err)
			}
		}
		say(c.said)
		ok, err := options{os.Args[0], c.strict, c.clean, c.full, false, kept, c.update}.judge(folder, regexp.MustCompile(""))
		if ok != c.ok || (err != nil) != c.err {
			t.Errorf("%s: %v, %v", c.reason, ok, err)
		}
		if _, err := os.Stat(kept); c.kept == "" && err == nil {
			t.Errorf("%s: a score was written", c.reason)
		}
	}
}

// writeCase makes the folder of a case with files of some content.
func writeCase(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	err := os.Mkdir(filepath.Join(dir, "case"), 0o755)
	for name, text := range files {
		if text != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, "case", name), []byte(text), 0o644))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDumpsAloneAreWithoutTheRest(t *testing.T) {
	folder := t.TempDir()
	writeCase(t, folder, map[string]string{"case.json": "{}", "ref16": "a dump"})
	alone, more, err := arguments(filepath.Join(folder, "case"))
	if err != nil || slices.Contains(alone, "--noise") || !slices.Contains(more, "--noise") {
		t.Errorf("%q, %q, %v", alone, more, err)
	}
}

func TestAFolderWithoutCasesIsAnError(t *testing.T) {
	dir := t.TempDir()
	writeCase(t, dir, nil)
	if _, err := (options{parity: "parity"}).run(dir, regexp.MustCompile("")); err == nil {
		t.Error("nothing was compared, and that is no success")
	}
}
