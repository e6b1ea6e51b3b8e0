package match_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// parse reads a listing: a port a line, in execution order, as "<step> <layer>-<port> <dtype>
// <shape>", the shape as 1x7x64, a scalar's as "-".
func parse(t testing.TB, text string) []match.Port {
	t.Helper()
	var ports []match.Port
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		require.Len(t, f, 4, "%q", line)
		d, err := tensor.ParseDType(f[2])
		require.NoError(t, err)
		var shape []int
		if f[3] != "-" {
			for s := range strings.SplitSeq(f[3], "x") {
				n, err := strconv.Atoi(s)
				require.NoError(t, err)
				shape = append(shape, n)
			}
		}
		layer, port := label.Split(f[1])
		ports = append(ports, match.Port{Step: f[0], Layer: layer, Port: port, Seq: len(ports), DType: d, Shape: shape})
	}
	return ports
}

func read(t testing.TB, name string) []match.Port {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	return parse(t, string(data))
}

// blocks is how many blocks invented models have: more than have one digit.
const blocks = 11

// invent makes the ports of a model from a short form, in execution order. A line is a layer,
//
//	model.layers.*.mlp 1x7x64 > 1x7x64
//
// its inputs and outputs parted by commas, each [<name>=][<dtype>:]<shape>. Unnamed inputs are
// numbered, an unnamed output is "output", and computed_0, tap and key_cache are ports by themselves.
// Lines with a * that follow each other are repeated for each block.
func invent(t testing.TB, text string) []match.Port {
	t.Helper()
	var ports []match.Port
	step := "0"
	add := func(layer, spec, prefix string, at int) {
		name, rest, named := strings.Cut(spec, "=")
		if !named {
			name, rest = fmt.Sprint(at), spec
		}
		port := prefix + "_" + name
		if !named && prefix == "output" {
			port = prefix
		} else if name == label.Tap || label.IsCache(name) || label.RoleOf(name) == label.RoleComputed {
			port = name
		}
		d := "f32"
		if dtype, shape, ok := strings.Cut(rest, ":"); ok {
			d, rest = dtype, shape
		}
		p := parse(t, fmt.Sprintf("%s %s %s %s", step, layer, d, rest))[0]
		p.Layer, p.Port, p.Seq = layer, port, len(ports)
		ports = append(ports, p)
	}
	layer := func(line string) {
		name, rest, _ := strings.Cut(line, " ")
		in, out, _ := strings.Cut(rest, ">")
		for i, s := range fields(in) {
			add(name, s, "input", i)
		}
		for i, s := range fields(out) {
			add(name, s, "output", i)
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if s, ok := strings.CutPrefix(line, "step "); ok {
			step = s
			continue
		}
		if !strings.Contains(line, "*") {
			layer(line)
			continue
		}
		end := i
		for end < len(lines) && strings.Contains(lines[end], "*") {
			end++
		}
		for b := range blocks {
			for _, l := range lines[i:end] {
				layer(strings.ReplaceAll(strings.TrimSpace(l), "*", fmt.Sprint(b)))
			}
		}
		i = end - 1
	}
	return ports
}

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
}

// show writes a result for people to check: what is the same in all blocks and steps in one line,
// with their number.
func show(golden, actual []match.Port, r *match.Result) string {
	var b strings.Builder
	section := func(title string, lines []string) { b.WriteString(section(title, lines)) }
	name := func(p match.Port) string { return starred(p.Layer) + "-" + p.Port }
	names := func(ports []match.Port, indices []int) string {
		var out []string
		for _, i := range indices {
			p := ports[i]
			out = append(out, fmt.Sprintf("%s %s%s", name(p), p.DType.Short(), tensor.FormatShape(p.Shape)))
		}
		return strings.Join(out, " + ")
	}
	var pairs []string
	for _, p := range r.Pairs {
		line := names(golden, p.Golden) + " = " + names(actual, p.Actual)
		for _, flag := range []struct {
			on   bool
			text string
		}{{p.Problem != "", "PROBLEM " + p.Problem}, {p.Computed, "computed"}, {p.Mask, "mask"},
			{p.RowMask != nil, fmt.Sprintf("%d rows of %d", strings.Count(fmt.Sprint(p.RowMask), "true"), len(p.RowMask))},
			{len(p.GoldenView) > 0, "golden: " + p.GoldenView.String()}, {len(p.ActualView) > 0, p.ActualView.String()},
			{p.Note != "", starred(p.Note)}} {
			if flag.on {
				line += " | " + flag.text
			}
		}
		pairs = append(pairs, line)
	}
	section("pairs", pairs)
	left := func(ports []match.Port, list []match.Unmatched) []string {
		var out []string
		for _, u := range list {
			line := name(ports[u.Index])
			if u.Reason != "" {
				line += " | " + starred(u.Reason)
			}
			if u.Usual {
				line += " | usual"
			}
			if u.Nearest != "" {
				line += " | nearest " + starred(u.Nearest)
			}
			out = append(out, line)
		}
		return out
	}
	section("golden only", left(golden, r.UnmatchedGolden))
	section("candidate only", left(actual, r.UnmatchedActual))
	var ignored []string
	for _, i := range r.Ignored {
		ignored = append(ignored, name(map[bool][]match.Port{true: golden, false: actual}[i.Golden][i.Index])+" | "+i.Reason)
	}
	section("ignored", ignored)
	section("notes", slices.Concat(r.Notes, r.Unused))
	var gaps []string
	for _, g := range r.Gaps {
		gaps = append(gaps, g.String())
	}
	section("gaps", gaps)
	section("in another order", r.Moved)
	return b.String()
}

// section writes lines with how often each is there.
func section(title string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	text, count := "# "+title+"\n", map[string]int{}
	for _, l := range lines {
		count[l]++
	}
	for _, l := range lines {
		if count[l] > 0 {
			text += fmt.Sprintf("%3d  %s\n", count[l], l)
		}
		count[l] = 0
	}
	return text
}

// starred writes * for the numbers between dots.
func starred(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		if strings.Contains(w, ".") {
			words[i] = label.Stars(w)
		}
	}
	return strings.Join(words, " ")
}

// numbers are the block numbers in a label.
func numbers(label string) []string {
	var out []string
	for s := range strings.SplitSeq(label, ".") {
		if _, err := strconv.Atoi(s); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// partners are the layers of the candidate that each layer of the golden is compared with.
func partners(golden, actual []match.Port, r *match.Result) map[string][]string {
	out := map[string][]string{}
	for _, p := range r.Pairs {
		layer := golden[p.Golden[0]].Layer
		for _, i := range p.Actual {
			if with := actual[i].Layer; !slices.Contains(out[layer], with) {
				out[layer] = append(out[layer], with)
			}
		}
	}
	return out
}

// check holds for every result: no port is paired twice, blocks keep their numbers, steps and calls
// agree, and nothing is lost.
func check(t testing.TB, golden, actual []match.Port, r *match.Result) {
	t.Helper()
	usedGolden, usedActual := map[int]bool{}, map[int]bool{}
	for _, p := range r.Pairs {
		for _, g := range p.Golden {
			if usedGolden[g] && !p.Computed {
				t.Fatalf("golden %s is paired twice", golden[g].Label())
			}
			usedGolden[g] = usedGolden[g] || !p.Computed
		}
		for _, a := range p.Actual {
			if shared := strings.Contains(p.Note, "of candidate "); usedActual[a] && !shared {
				t.Fatalf("candidate %s is paired twice", actual[a].Label())
			}
			usedActual[a] = true
		}
	}
	for _, side := range []struct {
		ports []match.Port
		left  []match.Unmatched
		used  map[int]bool
	}{{golden, r.UnmatchedGolden, usedGolden}, {actual, r.UnmatchedActual, usedActual}} {
		for _, u := range side.left {
			if side.used[u.Index] {
				t.Fatalf("%s is paired and unmatched", side.ports[u.Index].Label())
			}
			side.used[u.Index] = true
		}
	}
	for _, u := range r.Ignored {
		map[bool]map[int]bool{true: usedGolden, false: usedActual}[u.Golden][u.Index] = true
	}
	if len(usedGolden) != len(golden) || len(usedActual) != len(actual) {
		t.Fatalf("%d of %d golden ports and %d of %d of the candidate's are accounted for",
			len(usedGolden), len(golden), len(usedActual), len(actual))
	}
	bySeq := func(a, b match.Pair) int { return cmp.Compare(golden[a.Golden[0]].Seq, golden[b.Golden[0]].Seq) }
	if !slices.IsSortedFunc(r.Pairs, bySeq) {
		t.Fatal("the pairs are not in the golden's order")
	}
	checkViews(t, golden, actual, r)
}

// checkViews applies each view to a tensor of the port's shape: both sides get the pair's shape.
func checkViews(t testing.TB, golden, actual []match.Port, r *match.Result) {
	t.Helper()
	look := func(ports []match.Port, indices []int, v match.View) []int {
		var parts []*tensor.Tensor
		for _, i := range indices {
			parts = append(parts, zero(t, ports[i]))
		}
		got, err := v.Apply(parts...)
		if err != nil {
			t.Fatalf("%s: %v", ports[indices[0]].Label(), err)
		}
		return got.Shape()
	}
	for _, p := range r.Pairs {
		if p.Problem != "" {
			continue
		}
		g, a := look(golden, p.Golden, p.GoldenView), look(actual, p.Actual, p.ActualView)
		if !slices.Equal(g, a) || !slices.Equal(g, p.Shape) {
			t.Fatalf("%s: golden %v, candidate %v, pair %v", golden[p.Golden[0]].Label(), g, a, p.Shape)
		}
		if p.RowMask != nil {
			rows := 1
			for _, d := range g[:len(g)-1] {
				rows *= d
			}
			if rows != len(p.RowMask) {
				t.Fatalf("%s: %d flags for %d rows", golden[p.Golden[0]].Label(), len(p.RowMask), rows)
			}
		}
	}
}

// zero is a tensor of zeros, one element repeated.
func zero(t testing.TB, p match.Port) *tensor.Tensor {
	one, err := tensor.New(p.DType, nil, make([]byte, p.DType.Size()))
	require.NoError(t, err)
	z, err := one.Broadcast(p.Shape...)
	require.NoError(t, err)
	return z
}
