package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func at(said, layer string) (v verdict) {
	v.Verdict = said
	if layer != "" {
		v.First = &struct {
			Layer string `json:"layer"`
		}{layer}
	}
	return v
}

func TestScore(t *testing.T) {
	bug := truth{Verdict: "fail", Layer: "a.b", Also: []string{"a"}}
	clean := truth{Verdict: "pass"}
	for _, c := range []struct {
		r            result
		want, reason string
	}{
		{result{want: clean, got: at("pass", "")}, "ok", "clean, and said so"},
		{result{want: clean, got: at("fail", "a.b")}, "wrong verdict", "a wrong accusation"},
		{result{want: bug, got: at("pass", "")}, "wrong verdict", "a bug not seen"},
		{result{want: bug, got: at("fail", "a.b")}, "ok", "the place"},
		{result{want: bug, got: at("fail", "a")}, "ok", "as good an answer"},
		{result{want: bug, got: at("fail", "")}, "wrong place", "no place"},
		{result{want: bug, got: at("fail", "c")}, "wrong place", "another place"},
		{result{want: truth{Verdict: "fail", Kind: "drift"}, got: at("fail", "a")}, "wrong kind", "no place is asked, but the kind is"},
		{result{want: bug, err: errors.New("x")}, "error", "no answer"},
	} {
		if got := c.r.score(); got != c.want {
			t.Errorf("%s: score %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	good := result{name: "p", want: truth{Verdict: "pass"}, got: at("pass", "")}
	wrong := result{name: "q", want: truth{Verdict: "fail", Kind: "local", Layer: "a"}, got: at("pass", "")}
	broken := result{name: "r", err: errors.New("exit status 3")}
	for _, c := range []struct {
		results []result
		strict  bool
		want    bool
		reason  string
	}{
		{[]result{good}, true, true, "all right"},
		{[]result{good, wrong}, false, true, "wrong answers are only shown"},
		{[]result{good, wrong}, true, false, "strict"},
		{[]result{good, broken}, false, false, "an error is never fine"},
	} {
		var b bytes.Buffer
		if got := table(&b, c.results, c.strict); got != c.want {
			t.Errorf("%s: %v, want %v\n%s", c.reason, got, c.want, b.String())
		}
		if len(strings.Split(b.String(), "\n")) != len(c.results)+4 {
			t.Errorf("%s: not one line a case:\n%s", c.reason, b.String())
		}
	}
}

func TestAFolderWithoutCasesIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "notes"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (zoo{}).run(dir, regexp.MustCompile("")); err == nil {
		t.Error("nothing was compared, and that is no success")
	}
}

func TestCauseThatSaysTheSame(t *testing.T) {
	for _, c := range []struct {
		proven, want, reason string
	}{
		{"rope/theta", "proven", "the planted cause"},
		{"config/rope_theta", "unsolved", "another word for it is no wrong proof, but not the answer either"},
		{"rope/layout", "wrong proof", "another cause"},
	} {
		r := result{want: truth{Verdict: "fail", Cause: "rope/theta", Same: []string{"config/rope_theta"}}}
		r.got.Causes = []cause{{ID: c.proven, Proven: true}}
		if got := r.cause(); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestCause(t *testing.T) {
	bug := truth{Verdict: "fail", Cause: "norm/eps", Second: "a.c"}
	said := func(causes ...cause) (v verdict) {
		v.Causes = causes
		return v
	}
	for _, c := range []struct {
		r            result
		want, reason string
	}{
		{result{want: truth{Verdict: "pass"}, got: said()}, "", "clean, and nothing said"},
		{result{want: truth{Verdict: "pass"}, got: said(cause{ID: "drift"})}, "accused", "a cause where there is no bug"},
		{result{want: bug, got: said(cause{ID: "norm/eps", Proven: true}, cause{ID: "x"})}, "proven", "the planted one, proven"},
		{result{want: bug, got: said(cause{ID: "norm/eps"}, cause{ID: "x"})}, "first", "named first"},
		{result{want: bug, got: said(cause{ID: "x"}, cause{ID: "y"}, cause{ID: "norm/eps"})}, "top 3", "named third"},
		{result{want: bug, got: said(cause{ID: "x"}, cause{ID: "y"}, cause{ID: "z"}, cause{ID: "norm/eps"})}, "unsolved", "named fourth"},
		{result{want: bug, got: said(cause{ID: "norm/eps"}, cause{ID: "x", Layer: "a.b", Proven: true})}, "wrong proof", "a proof of something else"},
		{result{want: bug, got: said(cause{ID: "norm/eps", Proven: true}, cause{ID: "x", Layer: "a.c.d", Proven: true})}, "proven", "the second bug is not scored"},
	} {
		if got := c.r.cause(); got != c.want {
			t.Errorf("%s: cause %q, want %q", c.reason, got, c.want)
		}
	}
}
