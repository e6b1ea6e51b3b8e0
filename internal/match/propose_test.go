package match_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// layer is a line of a model: what it is called, how wide it is, and which outputs it is given.
type layer struct {
	name  string
	width int
	from  []string
}

const tokens = 8

// gpt2 is a model of n blocks in the vocabulary of GPT-2.
func gpt2(n int) (m []layer) {
	m = append(m, layer{"transformer.wte", 16, nil})
	before := "transformer.wte"
	for i := range n {
		b := fmt.Sprintf("transformer.h.%d", i)
		m = append(m,
			layer{b + ".ln_1", 16, []string{before}},
			layer{b + ".attn.q", 16, []string{b + ".ln_1"}},
			layer{b + ".attn.k", 16, []string{b + ".ln_1"}},
			layer{b + ".attn.v", 16, []string{b + ".ln_1"}},
			layer{b + ".attn.c_proj", 16, []string{b + ".attn.q", b + ".attn.k", b + ".attn.v"}},
			layer{b + ".attn", 16, []string{b + ".ln_1"}},
			layer{b + ".ln_2", 16, []string{b + ".attn", before}},
			layer{b + ".mlp.c_fc", 64, []string{b + ".ln_2"}},
			layer{b + ".mlp.act", 64, []string{b + ".mlp.c_fc"}},
			layer{b + ".mlp.c_proj", 16, []string{b + ".mlp.act"}},
			layer{b + ".mlp", 16, []string{b + ".ln_2"}},
			layer{b, 16, []string{b + ".mlp", before}})
		before = b
	}
	return append(m, layer{"transformer.ln_f", 16, []string{before}}, layer{"lm_head", 32, []string{"transformer.ln_f"}})
}

// copies are layers that return what another one does.
var copies = strings.NewReplacer(".attn|", ".attn.c_proj|", ".mlp|", ".mlp.c_proj|")

// run records a model. After the layer called wrong, and in it, all values are others; of "~wrong"
// they are a fifth off.
func run(m []layer, seed uint64, wrong string) (ports []match.Port) {
	wrong, little := strings.CutPrefix(wrong, "~")
	r, broken := rand.New(rand.NewPCG(seed, 0)), false
	values := map[string]*tensor.Tensor{}
	add := func(name, port string, x *tensor.Tensor) {
		ports = append(ports, match.Port{Tensor: x, Step: "0", Layer: name, Port: port, Seq: len(ports), DType: x.DType(), Shape: x.Shape()})
	}
	for _, l := range m {
		other := rand.New(rand.NewPCG(seed+1000, uint64(len(ports))))
		if broken = broken || l.name == wrong; broken && !little {
			r = other
		}
		x := make([]float32, tokens*l.width)
		for i := range x {
			x[i] = float32(r.NormFloat64())
			if broken && little {
				x[i] += 0.2 * float32(other.NormFloat64())
			}
		}
		out, _ := tensor.Of(x, 1, tokens, l.width)
		if same := strings.TrimSuffix(copies.Replace(l.name+"|"), "|"); same != l.name && values[same] != nil {
			out = values[same]
		}
		for i, from := range l.from {
			add(l.name, fmt.Sprintf("input_%d", i), values[from])
		}
		values[l.name] = out
		add(l.name, "output", out)
	}
	return ports
}

// renamed gives the layers other match.
func renamed(ports []match.Port, rename func(string) string) []match.Port {
	out := slices.Clone(ports)
	for i := range out {
		out[i].Layer = rename(out[i].Layer)
	}
	return out
}

// without drops layers.
func without(ports []match.Port, ends ...string) []match.Port {
	return slices.DeleteFunc(slices.Clone(ports), func(p match.Port) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(p.Layer, end) })
	})
}

// home are names that nobody has heard of.
var home = strings.NewReplacer("transformer.h.", "net.stage.", "transformer.", "net.", "wte", "lookup", "ln_1", "pre", "ln_2", "mid",
	"attn", "mix", "c_proj", "merge", "mlp", "wide", "c_fc", "grow", "act", "bend", "ln_f", "fin", "lm_head", "vote",
	".q", ".ask", ".k", ".find", ".v", ".get")

func flat(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(home.Replace(name), "stage.", "L"), ".", "_")
}

func fromOne(name string) string {
	parts := strings.Split(home.Replace(name), ".")
	for i, p := range parts {
		if len(p) == 1 && p[0] >= '0' && p[0] <= '9' {
			parts[i] = string(p[0] + 1)
		}
	}
	return strings.Join(parts, ".")
}

// silent names say nothing at all.
func silent() func(string) string {
	seen := map[string]string{}
	return func(name string) string {
		if seen[name] == "" {
			seen[name] = fmt.Sprintf("t%d", len(seen))
		}
		return seen[name]
	}
}

// later counts blocks from one, and has the same names else.
func later(name string) string {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		n, _ := strconv.Atoi(parts[2])
		parts[2] = strconv.Itoa(n + 1)
	}
	return strings.Join(parts, ".")
}

// joined returns what package match joins with the rules of a proposal, by golden layer.
func joined(t *testing.T, golden, actual []match.Port, opt match.Options, p *match.Proposal) map[string][]string {
	t.Helper()
	for _, r := range p.Rules {
		opt.Rules = append(opt.Rules, r.Rule)
	}
	r, err := match.Runs(golden, actual, opt)
	require.NoError(t, err)
	return partners(golden, actual, r)
}

// equal is the tolerance of float32.
const equal = 1e-4

// told is what a proposal says, what is the same in all blocks in one line.
func told(p *match.Proposal) string {
	var rules, alike, left []string
	for _, r := range p.Rules {
		rules = append(rules, starred(fmt.Sprintf("%s | %s: %s | %d of %d", &r.Rule, r.Sure, r.Reason, r.Equal, r.Pairs)))
	}
	for _, a := range p.Ambiguous {
		alike = append(alike, fmt.Sprintf("%s | %s | %s", a.Golden, a.Candidate, a.Why))
	}
	for _, l := range p.Golden {
		left = append(left, starred("golden "+l.Layer+" "+l.Same))
	}
	for _, l := range p.Actual {
		left = append(left, starred("candidate "+l.Layer+" "+l.Same))
	}
	return section("rules", rules) + section("ambiguous", alike) + section("left", left) + fmt.Sprintf("# joined: %d\n", p.Joined)
}

func TestPropose(t *testing.T) {
	var all strings.Builder
	model := gpt2(4)
	for _, c := range []struct {
		name   string
		rename func(string) string
		wrong  string // the layer with the error; "" for none
		drop   []string
		byName bool
		least  int // layers that must be joined
		reason string
	}{
		{"own names", home.Replace, "", nil, false, 51, "equal tensors are the same tensor, whatever they are called"},
		{"flat", flat, "", nil, false, 51, "a block's number inside of a word counts blocks"},
		{"from one", fromOne, "", nil, false, 51, "blocks that are counted from one are joined one by one"},
		{"silent", silent(), "", nil, false, 51, "values need no names"},
		{"no order", home.Replace, "", nil, true, 51, "nor an order"},
		{"error in block 2", home.Replace, "transformer.h.2.mlp.c_fc", nil, false, 51, "the blocks before it tell what is after it"},
		{"error in block 2, no order", home.Replace, "transformer.h.2.mlp.c_fc", nil, true, 51, "nor an order"},
		{"error in block 0", home.Replace, "transformer.h.0.attn.k", nil, false, 43, "the order and the shapes tell, but not k from v"},
		{"error in block 0, silent", silent(), "transformer.h.0.attn.c_proj", nil, false, 42, "where both have the same layers"},
		{"from one, one vocabulary", later, "transformer.h.2.mlp.c_fc", nil, false, 51, "equal names are of other blocks"},
		{"from one, one vocabulary, error in block 0", later, "transformer.h.0.attn.k", nil, false, 51, "the first blocks are each other's"},
		{"a small error in block 0, silent", silent(), "~transformer.h.0.attn.q", nil, false, 51, "what is after it is still alike"},
		{"error in block 0, silent, a layer less", silent(), "transformer.h.0.attn.c_proj", []string{".attn.q"}, false, 35,
			"what two layers may be is left"},
		{"no containers", home.Replace, "transformer.h.1.attn.v", []string{".attn", ".mlp"}, false, 43, "what only one side has has no partner"},
		{"no containers, error in block 0", home.Replace, "transformer.h.0.attn.v", []string{".attn", ".mlp"}, false, 43,
			"the values before the error show it"},
		{"no activation", home.Replace, "", []string{".mlp.act"}, false, 47, "nothing is left that it could be"},
		{"no activation, error in block 1", home.Replace, "transformer.h.1.ln_1", []string{".mlp.act"}, false, 47,
			"the block before the error tells of the others"},
		{"no projection, error in block 1", home.Replace, "transformer.h.1.ln_1", []string{".mlp.c_fc"}, false, 47,
			"though the activation has its shape"},
		{"no module", home.Replace, "", []string{".mlp"}, false, 47, "its value is compared"},
		{"equal names", strings.Clone, "transformer.h.1.ln_1", nil, false, 51, "no rule is needed"},
	} {
		golden := run(model, 1, "")
		truth := map[string]string{}
		actual := without(run(model, 1, c.wrong), c.drop...)
		for i, p := range renamed(actual, c.rename) {
			truth[p.Layer] = actual[i].Layer
			actual[i] = p
		}
		opt := match.Options{ActualByName: c.byName}
		if c.byName {
			slices.SortStableFunc(actual, func(a, b match.Port) int { return cmp.Compare(a.Layer, b.Layer) })
			for i := range actual {
				actual[i].Seq = i
			}
		}
		p, err := match.Propose(golden, actual, opt, equal)
		require.NoError(t, err, c.name)
		require.Empty(t, p.Foreign, c.name)
		assert.Equal(t, len(p.Ambiguous) > 0, strings.Contains(p.YAML(), "# ambiguous: "), c.name)
		n := 0
		for g, partners := range joined(t, golden, actual, opt, p) {
			for _, a := range partners {
				assert.Equal(t, g, truth[a], "%s: %s", c.name, c.reason)
				n++
			}
		}
		assert.GreaterOrEqual(t, n, c.least, "%s: %s", c.name, c.reason)
		fmt.Fprintf(&all, "=== %s: %s\n%s", c.name, c.reason, told(p))
	}
	toy.Kept(t, "proposed.want", all.String())
}

func TestProposeNothing(t *testing.T) {
	golden := run(gpt2(3), 1, "")
	for _, c := range []struct {
		actual []match.Port
		reason string
	}{
		{renamed(run(gpt2(3), 2, ""), home.Replace), "the same shapes in the same order are not the same model"},
		{renamed(run(gpt2(3), 1, "transformer.h.0.ln_1"), home.Replace), "one value may be shared by two models"},
	} {
		p, err := match.Propose(golden, c.actual, match.Options{}, equal)
		require.NoError(t, err, c.reason)
		assert.NotEmpty(t, p.Foreign, c.reason)
		assert.Empty(t, p.Rules, c.reason)
	}
}

// fuse makes one layer of the three projections of each block.
func fuse(t *testing.T, ports []match.Port) (out []match.Port) {
	t.Helper()
	var parts []*tensor.Tensor
	for _, p := range ports {
		last := p.Layer[strings.LastIndexByte(p.Layer, '.')+1:]
		switch {
		case !strings.Contains("qkv", last):
			out = append(out, p)
			continue
		case p.Port != "output":
			continue
		}
		if parts = append(parts, p.Tensor); len(parts) < 3 {
			continue
		}
		whole, err := tensor.Concat(2, parts...)
		require.NoError(t, err)
		parts = nil
		p.Layer = strings.TrimSuffix(p.Layer, "v") + "three"
		p.Tensor, p.Shape = whole, whole.Shape()
		out = append(out, p)
	}
	return out
}

func TestFused(t *testing.T) {
	model, all := gpt2(3), ""
	for _, wrong := range []string{"", "transformer.h.1.ln_2", "transformer.h.0.ln_1.none", "transformer.h.0.attn.c_proj", "~transformer.h.0.ln_1"} {
		apart, whole := run(model, 1, ""), renamed(fuse(t, run(model, 1, wrong)), home.Replace)
		p, err := match.Propose(apart, whole, match.Options{}, equal)
		require.NoError(t, err, wrong)
		got := joined(t, apart, whole, match.Options{}, p)
		for i := range 3 {
			for _, part := range "qkv" {
				assert.Equal(t, []string{fmt.Sprintf("net.stage.%d.mix.three", i)}, got[fmt.Sprintf("transformer.h.%d.attn.%c", i, part)], wrong)
			}
		}
		all += fmt.Sprintf("=== error in %q\n%s", wrong, told(p))
	}
	whole, apart := fuse(t, run(model, 1, "")), renamed(run(model, 1, "transformer.h.1.ln_2"), home.Replace)
	p, err := match.Propose(whole, apart, match.Options{}, equal)
	require.NoError(t, err)
	assert.Equal(t, []string{"net.stage.2.mix.ask", "net.stage.2.mix.find", "net.stage.2.mix.get"},
		joined(t, whole, apart, match.Options{}, p)["transformer.h.2.attn.three"])
	all += "=== the golden is fused\n" + told(p)
	p, err = match.Propose(run(model, 1, ""), renamed(fuse(t, run(model, 1, "transformer.h.1.ln_2")), fromOne), match.Options{}, equal)
	require.NoError(t, err)
	all += "=== counted from one\n" + told(p)
	known := strings.NewReplacer(".attn.q", ".self_attn.q_proj", ".attn.k", ".self_attn.k_proj", ".attn.v", ".self_attn.v_proj", ".attn.three", ".self_attn.qkv_proj")
	p, err = match.Propose(renamed(run(model, 1, ""), known.Replace), renamed(fuse(t, run(model, 1, "")), known.Replace), match.Options{}, equal)
	require.NoError(t, err)
	toy.Kept(t, "proposed_fused.want", all+"=== names that are known\n"+told(p))
}

// change gives the outputs of a layer, or all tensors for "", another form.
func change(t *testing.T, ports []match.Port, layer string, form func(*tensor.Tensor) (*tensor.Tensor, error)) []match.Port {
	out := slices.Clone(ports)
	for i, p := range out {
		if strings.HasSuffix(p.Layer, layer) && (p.Port == "output" || layer == "") {
			x, err := form(p.Tensor)
			require.NoError(t, err)
			out[i].Tensor, out[i].Shape = x.Copy(), x.Shape()
		}
	}
	return out
}

// ruleOf returns the rule that is proposed for a layer of the golden.
func ruleOf(t *testing.T, golden, actual []match.Port, layer string) match.Proposed {
	t.Helper()
	p, err := match.Propose(golden, actual, match.Options{}, equal)
	require.NoError(t, err)
	i := slices.IndexFunc(p.Rules, func(r match.Proposed) bool { return r.Golden[0] == layer })
	require.GreaterOrEqual(t, i, 0, "%v %v", p.Rules, p.Ambiguous)
	return p.Rules[i]
}

// A value in another layout is joined by a rule that lays it out.
func TestMoved(t *testing.T) {
	golden := run(gpt2(2), 1, "")
	turned := func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Transpose(0, 2, 1) }
	swapped := match.Rule{Transpose: []int{0, 2, 1}}
	same := strings.NewReplacer()
	for _, c := range []struct {
		layer, end string
		names      *strings.Replacer
		form       func(*tensor.Tensor) (*tensor.Tensor, error)
		want       match.Rule
		yaml       string
		reason     string
	}{
		{"transformer.h.*.attn.q", ".ask", home, func(x *tensor.Tensor) (*tensor.Tensor, error) {
			heads, err := x.Reshape(1, tokens, 4, 4)
			require.NoError(t, err)
			return heads.Transpose(0, 2, 1, 3)
		}, match.Rule{Transpose: []int{0, 2, 1, 3}, Reshape: []int{1, -1, 16}}, "    transpose: [0, 2, 1, 3]\n    reshape: [1, -1, 16]\n", "a projection with its heads first"},
		{"lm_head", "vote", home, func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(1, tokens-1, tokens) },
			match.Rule{Rows: match.LastRow}, "    rows: last\n", "the end of a generating model may have the last row only"},
		{"transformer.h.*.attn.q", ".q", same, turned, swapped, "    transpose: [0, 2, 1]\n", "by the same names"},
		{"transformer.h.1.attn.q", "h.1.attn.q", same, turned, swapped, "    transpose: [0, 2, 1]\n", "and in one block alone"},
	} {
		r := ruleOf(t, golden, change(t, renamed(golden, c.names.Replace), c.end, c.form), c.layer)
		assert.Equal(t, c.want, match.Rule{Transpose: r.Transpose, Reshape: r.Reshape, Rows: r.Rows}, c.reason)
		assert.Equal(t, match.Certain, r.Sure, c.reason)
		assert.Contains(t, r.YAML(), "]\n"+c.yaml+"    reason: ", c.reason)
	}
}

// Values that are a rounding apart are equal, also of long tensors, with an infinity, and where rows of padding differ.
func TestSamples(t *testing.T) {
	wide := gpt2(2)
	for i := range wide {
		wide[i].width *= 20
	}
	padding := [][]bool{{true, true, true, true, true, true, false, false}}
	golden := run(wide, 1, "")
	actual := renamed(golden, home.Replace)
	near := map[*tensor.Tensor]*tensor.Tensor{}
	for i, p := range actual {
		if near[p.Tensor] == nil {
			x := make([]float64, p.Tensor.Len())
			p.Tensor.Float64s(x, 0)
			for k := range x {
				x[k] *= 1 + 1e-5*float64(k%3)
				if k >= 6*p.Shape[2] {
					x[k] = 7 // padding
				}
			}
			if p.Layer == "net.lookup" {
				x[3] = math.Inf(1)
			}
			y, err := tensor.Of(x, p.Shape...)
			require.NoError(t, err)
			near[p.Tensor] = y
		}
		actual[i].Tensor, actual[i].DType = near[p.Tensor], tensor.F64
	}
	ids, err := tensor.Of([]int64{1, 2, 3, 4, 5, 6, 7, 8}, 1, 8)
	require.NoError(t, err)
	for i, side := range [][]match.Port{golden, actual} {
		side = append(side, match.Port{Step: "0", Layer: side[0].Layer, Port: "input_0", Seq: -1, DType: tensor.I64, Shape: ids.Shape(), Tensor: ids})
		if i == 0 {
			golden = side
		} else {
			actual = side
		}
	}
	p, err := match.Propose(golden, actual, match.Options{PadMask: padding}, equal)
	require.NoError(t, err)
	toy.Kept(t, "proposed_samples.want", told(p))
	assert.Equal(t, "names: []\n", (&match.Proposal{}).YAML())
}

// A layer is known by the output that Runs compares, also where it recorded another one first.
func TestMainOutput(t *testing.T) {
	golden := run(gpt2(2), 1, "")
	actual := renamed(golden, home.Replace)
	other, err := tensor.Of(make([]float32, 64), 1, 1, tokens, tokens)
	require.NoError(t, err)
	var ports []match.Port
	for _, p := range actual {
		if p.Layer == "net.stage.0.mix" && p.Port == "output" {
			weights := p
			weights.Port, weights.Tensor, weights.Shape, weights.Seq = "output_1", other, other.Shape(), len(ports)
			ports = append(ports, weights)
		}
		p.Seq = len(ports)
		ports = append(ports, p)
	}
	assert.Equal(t, 2, ruleOf(t, golden, ports, "transformer.h.*.attn").Equal, "both blocks hold equal values")
}

func TestHint(t *testing.T) {
	rule := match.Proposed{Rule: match.Rule{Golden: []string{"m.*.up"}, Candidate: []string{"x.*.up"}}}
	const more = "more: parity names -o FILE writes all of them"
	of := func(n int) *match.Proposal { return &match.Proposal{Rules: slices.Repeat([]match.Proposed{rule}, n)} }
	one, nine := of(1), of(9)
	layer, lines := one.Hint([]string{"m.norm", "m.1.up(2)"})
	assert.Equal(t, "m.1.up(2)", layer, "a rule joins it")
	assert.Contains(t, lines, "names:\n  - golden:")
	assert.NotContains(t, lines, more)
	_, six := of(6).Hint([]string{"m.1.up"})
	assert.NotContains(t, six, more)
	_, seven := of(7).Hint([]string{"m.1.up"})
	assert.Contains(t, seven, "# and 1 "+more)
	_, long := nine.Hint([]string{"m.1.up"})
	assert.Contains(t, long, lines)
	assert.Contains(t, long, more, "the first rules only")
	layer, _ = one.Hint([]string{"m.norm"})
	assert.Empty(t, layer, "no rule joins it")
}
