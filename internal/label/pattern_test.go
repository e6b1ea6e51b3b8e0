package label_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/label"
)

// matches has what a pattern matches and what it does not, in Go and as a regular expression in
// other languages.
var matches = []struct {
	pattern string
	match   []string
	not     []string
	reason  string
}{
	{"encoder.layer.3.attention", []string{"encoder.layer.3.attention", "model.encoder.layer.3.attention"},
		[]string{"encoder.layer.3.attention.self", "encoder.layer.13.attention", "xencoder.layer.3.attention"},
		"the end of a name, at a dot"},
	{"encoder.layer.*.attention", []string{"model.encoder.layer.3.attention", "encoder.layer.11.attention"},
		[]string{"model.encoder.layer.3.attention.self", "encoder.layer.attention", "encoder.layer.0.x.attention"},
		"a star is inside one segment"},
	{"layer.*", []string{"encoder.layer.3"}, []string{"encoder.layer.3.attention", "layer", "layer."},
		"a segment that is a star has a character"},
	{"*_proj", []string{"a.q_proj", "_proj"}, []string{"a.q_proj.b"}, "a star at the edge of a segment may be empty"},
	{"encoder.**.dense", []string{"encoder.dense", "encoder.layer.0.output.dense", "m.encoder.x.dense"},
		[]string{"dense", "encoder.dense.x"}, "two stars are any number of segments"},
	{"**", []string{"a", "a.b.c"}, nil, "everything"},
	{"**.dense", []string{"dense", "a.dense", "a.b.dense"}, []string{"adense", "dense.a"}, "two stars in front"},
	{"a.**", []string{"a", "a.b", "x.a.b.c", "x.a"}, []string{"b.c"}, "two stars at the end"},
	{"a.**.**.b", []string{"a.b", "a.x.b", "a.x.y.b"}, []string{"ab"}, "a repetition changes nothing"},
	{"layers.?", []string{"layers.3"}, []string{"layers.13", "layers.", "layers.."}, "one character"},
	{"layers.[0-2]", []string{"layers.0", "layers.2"}, []string{"layers.3", "layers.10"}, "a set"},
	{"layers.[!0-2]", []string{"layers.3", "layers.x"}, []string{"layers.0", "layers.."}, "a negated set has no dot"},
	{"layers.[^0-2]", []string{"layers.3"}, []string{"layers.0"}, "the other way to negate"},
	{"x[+-0]y", []string{"x+y", "x-y", "x/y", "x0y"}, []string{"x.y"}, "a range over the dot leaves it out"},
	{"x[]a]", []string{"x]", "xa"}, []string{"x["}, "a bracket that is first in a set stands for itself"},
	{"x[a-]", []string{"xa", "x-"}, []string{"xb"}, "a dash that is last in a set stands for itself"},
	{"self_attn.{q,k,v}_proj", []string{"m.self_attn.q_proj", "self_attn.v_proj"}, []string{"self_attn.o_proj"},
		"alternatives"},
	{"{mlp.down,attn.{q,k}}", []string{"a.mlp.down", "attn.q", "attn.k"}, []string{"mlp", "attn.v", "attn.q.mlp"},
		"alternatives with dots, nested"},
	{"layer{,norm}", []string{"layer", "layernorm"}, []string{"layers"}, "an empty alternative"},
	{"a{.b,}.c", []string{"a.b.c", "a.c"}, []string{"a.b"}, "a group over segments"},
	{"model", []string{"model", "model.model"}, []string{"model.norm"}, "the end of a longer name is matched too"},
	{"norm", []string{"norm"}, []string{"norm(2)", "LayerNorm", "Norm"},
		"a second call is another name, and so is another case"},
	{"norm(2)", []string{"model.norm(2)"}, []string{"model.norm2"}, "parentheses stand for themselves"},
	{"norm*", []string{"norm(2)", "norm"}, nil, "all calls"},
	{`a\*b`, []string{"a*b"}, []string{"axb"}, "escaped"},
	{"a+b|c", []string{"a+b|c"}, []string{"aab", "c"}, "signs of regular expressions stand for themselves"},
	{"a,b", []string{"a,b"}, []string{"a", "b"}, "a comma outside a group stands for itself"},
	{`x[\-\]\\^[]y`, []string{"x-y", "x]y", `x\y`, "x^y", "x[y"}, []string{"xy", "x_y"},
		"characters that mean something in a set, escaped and not"},
	{"x[!a^-]", []string{"xb", "x]"}, []string{"xa", "x^", "x-"},
		"a caret and a dash that are not first in a negated set"},
	{"x[&&~~||-]", []string{"x&", "x~", "x|", "x-"}, []string{"xa", "x"}, "there are no operations on sets"},
	{"x[ -~]", []string{"x ", "x#", "xz", "x-", "x~"}, []string{"x.", "x\x7f", "xé"}, "a range over all punctuation"},
	{"x[à-ÿ€-₿\t]", []string{"xé", "x₴", "x\t"}, []string{"xe", "x×"}, "sets beyond ASCII, and of control characters"},
	{"x[😀-😂]?", []string{"x😁😃"}, []string{"x😃😁"}, "characters beyond 16 bits are one each"},
	{"a-b #&~ c", []string{"a-b #&~ c"}, []string{"a-b"}, "spaces and signs that some regular expressions skip"},
	{"a", []string{"a", "\n.a"}, []string{"a\n", "x\na"}, "a line break is a character like any other, also at the end"},
	{"*", []string{"a", "\n", "a.b"}, []string{"", "a."}, "a line break is part of a segment"},
	{"größe.*", []string{"größe.ü"}, []string{"grösse.ü"}, "letters beyond ASCII"},
}

func TestMatch(t *testing.T) {
	for _, tt := range matches {
		t.Run(tt.pattern, func(t *testing.T) {
			p, err := label.CompilePattern(tt.pattern)
			require.NoError(t, err)
			assert.Equal(t, tt.pattern, p.String())
			for _, name := range tt.match {
				assert.True(t, p.Match(name), "%q should match %q: %s", tt.pattern, name, tt.reason)
			}
			for _, name := range tt.not {
				assert.False(t, p.Match(name), "%q should not match %q: %s", tt.pattern, name, tt.reason)
			}
		})
	}
}

// TestExpressionsInPython checks the regular expressions in Python, because the runners of the
// engines use them.
func TestExpressionsInPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3: ", err)
	}
	type row struct {
		Pattern, Tail, Whole string
		Names                []string
		InTail, InWhole      []bool
	}
	var rows []row
	for _, tt := range matches {
		p, err := label.CompilePattern(tt.pattern)
		require.NoError(t, err)
		r := row{Pattern: tt.pattern, Tail: p.Tail(), Whole: p.Whole(), Names: slices.Concat(tt.match, tt.not)}
		for _, name := range r.Names {
			r.InTail, r.InWhole = append(r.InTail, p.Match(name)), append(r.InWhole, p.MatchWhole(name))
		}
		rows = append(rows, r)
	}
	in, err := json.Marshal(rows)
	require.NoError(t, err)
	const script = `
import json, re, sys, warnings
warnings.simplefilter("error")
rows = json.load(sys.stdin)
for r in rows:
    for expression, matched in (("Tail", "InTail"), ("Whole", "InWhole")):
        r[matched] = [re.fullmatch(r[expression], n) is not None for n in r["Names"]]
json.dump(rows, sys.stdout)`
	cmd := exec.CommandContext(t.Context(), python, "-X", "utf8", "-c", script)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), t.Output()
	out, err := cmd.Output()
	require.NoError(t, err)
	var got []row
	require.NoError(t, json.Unmarshal(out, &got))
	for i, want := range rows {
		assert.Equal(t, want, got[i], "%s: %s", want.Pattern, matches[i].reason)
	}
}

func TestMatchWhole(t *testing.T) {
	p, err := label.CompilePattern("{model,*.norm}")
	require.NoError(t, err)
	assert.True(t, p.MatchWhole("model"))
	assert.True(t, p.MatchWhole("model.norm"))
	assert.False(t, p.MatchWhole("model.model"))
	assert.False(t, p.MatchWhole("model.model.norm"))
}

func TestCompileErrors(t *testing.T) {
	tests := []struct{ pattern, want, reason string }{
		{"", "empty", "nothing"},
		{"a.{b,c", "character 3: { is not closed", "open group"},
		{"a}", "character 2: } without {", "closed without opening"},
		{"a.[bc", "character 3: [ is not closed", "open set"},
		{"a[", "[ is not closed", "open set at the end"},
		{`a[b\`, "[ is not closed", "open set at a backslash"},
		{"a[z-a]", "runs backwards", "range"},
		{"a[.]", "only a dot", "a set without characters"},
		{`a\`, "nothing follows", "backslash"},
		{"a..b", "empty segment", "two dots"},
		{".a", "empty segment", "leading dot"},
		{"a.", "empty segment", "trailing dot"},
		{"a.{,b}", "empty segment", "a group that can be empty"},
		{"{,b}", "empty segment", "and is all of the pattern"},
		{"a**", "** stands for whole segments", "half a segment"},
		{"***", "** stands for whole segments", "three stars"},
		{strings.Repeat("a", 401), "at most 400", "length"},
		{strings.Repeat("{a,b}", 20), "more than 100 alternatives", "a million alternatives"},
		{"\xff", "UTF-8", "encoding"},
	}
	for _, tt := range tests {
		_, err := label.CompilePattern(tt.pattern)
		assert.ErrorContains(t, err, tt.want, "%s", tt.reason)
	}
	for _, most := range []string{strings.Repeat("a", 400), strings.Repeat("{a,b,c,d,e,f,g,h,i,j}", 2)} {
		_, err := label.CompilePattern(most)
		assert.NoError(t, err)
	}
}

func TestSpecificity(t *testing.T) {
	// From the least to the most specific.
	order := []string{"**", "*.attention", "layer.*.attention", "encoder.layer.*.attention",
		"encoder.layer.?.attention",
		"encoder.layer.[0-3].attention", "encoder.layer.3.attention", "model.encoder.layer.3.attention"}
	last := -1
	for _, pattern := range order {
		p, err := label.CompilePattern(pattern)
		require.NoError(t, err)
		assert.Greater(t, p.Specificity(), last, pattern)
		last = p.Specificity()
	}
	p, err := label.CompilePattern("{encoder.layer.3.attention,*}")
	require.NoError(t, err)
	assert.Zero(t, p.Specificity(), "the least specific alternative counts")
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"encoder.layer.*.attention", "{a,b.{c,d}}.**", "x[!a-z]?", `\{`, "a[]-]"} {
		f.Add(s, "model.encoder.layer.3.attention")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		name = name[:min(len(name), 1000)]
		p, err := label.CompilePattern(pattern)
		if err != nil {
			return
		}
		if p.MatchWhole(name) && !p.Match(name) {
			t.Fatalf("%q matches %q whole but not its end", pattern, name)
		}
		if name != "" && !strings.HasPrefix(name, ".") && p.MatchWhole(name) && !p.Match("model."+name) {
			t.Fatalf("%q matches %q, but not after model.", pattern, name)
		}
		if !strings.ContainsAny(pattern, `*?[{\`) && !p.MatchWhole(pattern) {
			t.Fatalf("%q has no wildcard and does not match itself", pattern)
		}
	})
}

// A name is quoted so that a pattern stands for it and for nothing else.
func TestQuote(t *testing.T) {
	for _, name := range []string{"a.b", "norm(2)", "x*", "a.**.b", "w[0]", `{a,b}`, `back\slash`, "what?", "a,b", "größe"} {
		p, err := label.CompilePattern(label.QuotePattern(name))
		require.NoError(t, err, name)
		assert.True(t, p.MatchWhole(name), name)
		assert.True(t, p.Match("model."+name), name)
		for _, other := range []string{"xx", "a.c.b", "w0", "a", "b", "whats"} {
			assert.False(t, p.MatchWhole(other), "%s and %s", name, other)
		}
	}
}
