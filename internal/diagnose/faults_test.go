package diagnose_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// The sizes of the world of these tests.
const (
	leafBatch, leafLength, leafWidth = 2, 20, 48
	leafRows                         = leafBatch * leafLength
)

// values are numbers in row-major order.
type values []float64

func (v values) tensor(t testing.TB, shape ...int) *tensor.Tensor {
	t.Helper()
	x := make([]float32, len(v))
	for i := range v {
		x[i] = float32(v[i])
	}
	return toy.Of(t, x, shape...)
}

func (v values) each(f func(x float64) float64) values {
	out := make(values, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return out
}

// from takes element at(i) for each i.
func (v values) from(at func(i int) int) values {
	out := make(values, len(v))
	for i := range v {
		out[i] = v[at(i)]
	}
	return out
}

// where changes some elements.
func (v values) where(is func(row, column int) bool, f func(i int, x float64) float64) values {
	out := slices.Clone(v)
	for i, x := range v {
		if is(i/leafWidth, i%leafWidth) {
			out[i] = f(i, x)
		}
	}
	return out
}

// leafRandom is normally distributed.
func leafRandom(seed uint64, n int) values {
	r := rand.New(rand.NewPCG(seed, 7))
	out := make(values, n)
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}

// leafWorld is a small run: a layer "m.layers.1.attn.o_proj" of unknown weights between an earlier
// one like it and a model's end. Its golden output is out, its candidate's that after a fault, with
// the rounding that clean layers show.
type leafWorld struct {
	in, out, earlier values
}

func newLeafWorld() leafWorld {
	w := leafRandom(3, leafWidth*leafWidth)
	x := leafRandom(1, leafRows*leafWidth)
	y := make(values, leafRows*leafWidth)
	for r := range leafRows {
		for c := range leafWidth {
			for k := range leafWidth {
				y[r*leafWidth+c] += x[r*leafWidth+k] * w[c*leafWidth+k] / math.Sqrt(leafWidth)
			}
		}
	}
	return leafWorld{in: x, out: y, earlier: leafRandom(5, leafRows*leafWidth)}
}

const (
	leaf        = "m.layers.1.attn.o_proj"
	earlierLeaf = "m.layers.0.attn.o_proj"
)

var leafFloor = compare.Limits{RelL2: 3e-5, RowRelL2: 3e-5}

// leafNoisy is what another order of summation does to numbers.
func leafNoisy(v values) values {
	r := rand.New(rand.NewPCG(11, 13))
	return v.each(func(x float64) float64 { return x * (1 + 2e-7*r.NormFloat64()) })
}

// scene is the world with a candidate.
func (w leafWorld) scene(t testing.TB, actual values) *diagnose.Scene {
	shape := []int{leafBatch, leafLength, leafWidth}
	s := runOf(t, "local", made{earlierLeaf, "output", shape, w.earlier, leafNoisy(w.earlier), false},
		made{leaf, "input_0", shape, w.in, leafNoisy(w.in), false}, made{leaf, "output", shape, w.out, actual, false})
	s.Config = checkpoint.Config{"num_attention_heads": 4.0, "hidden_size": float64(leafWidth)}
	return s
}

// leafRound keeps some bits of the significand.
func leafRound(bits int) func(x float64) float64 {
	return func(x float64) float64 {
		_, e := math.Frexp(x)
		unit := math.Ldexp(1, e-bits)
		return math.RoundToEven(x/unit) * unit
	}
}

// leafFault is a fault and what is proven of it: "" for those that nothing in the catalogue is.
type leafFault struct {
	name, id string
	first    string // the first cause where none is proven
	actual   values
	reason   string
}

func leafFaults(w leafWorld) []leafFault {
	g := w.out
	coin := rand.New(rand.NewPCG(17, 19))
	noise := leafRandom(23, len(g))
	permutation := rand.New(rand.NewPCG(29, 31)).Perm(leafWidth)
	from8 := func(r, _ int) bool { return r >= 8 }
	block := func(_, c int) bool { return c >= 20 && c < 25 }
	head := func(_, c int) bool { return c >= 12 && c < 24 }
	garbage := func(i int, _ float64) float64 { return noise[i] }
	zero := func(int, float64) float64 { return 0 }
	return []leafFault{
		{"scale", "value/scale", "", leafNoisy(g.each(func(x float64) float64 { return 1.02 * x })), "a factor of two per cent is a hundred times the noise"},
		{"scale of a root", "value/scale", "", leafNoisy(g.each(func(x float64) float64 { return x * math.Sqrt(leafWidth) })), "a known factor"},
		{"scale of the root of two", "value/scale", "", leafNoisy(g.each(func(x float64) float64 { return x * math.Sqrt2 })), "no size of the model: a number"},
		{"half", "value/scale", "", leafNoisy(g.each(func(x float64) float64 { return x / 2 })), "a whole number"},
		{"offset", "value/offset", "", leafNoisy(g.each(func(x float64) float64 { return x + 0.25 })), "one number everywhere"},
		{"sign", "value/sign", "", leafNoisy(g.each(func(x float64) float64 { return -x })), "not a scale of −1"},
		{"absolute", "value/sign", "", leafNoisy(g.each(math.Abs)), "the sign is lost"},
		{"zeros", "value/constant", "", make(values, len(g)), "a weight that was not loaded"},
		{"constant", "value/constant", "", g.each(func(float64) float64 { return 0.5 }), "one value everywhere"},
		{"one row late", "layout/shifted", "", leafNoisy(g.from(func(i int) int {
			if i/leafWidth%leafLength == 0 {
				return i
			}
			return i - leafWidth
		})), "each token has the one before; the first has itself, which nothing predicts"},
		{"one column late", "layout/shifted", "", leafNoisy(g.from(func(i int) int { return i - i%leafWidth + (i%leafWidth+leafWidth-1)%leafWidth })), "goes round"},
		{"permuted columns", "layout/permuted", "", leafNoisy(g.from(func(i int) int { return i - i%leafWidth + permutation[i%leafWidth] })), "any order"},
		{"permuted rows", "layout/permuted", "", leafNoisy(g.from(func(i int) int { return i/leafWidth*7%leafRows*leafWidth + i%leafWidth })), "of all sequences"},
		{"permuted heads", "layout/permuted", "", leafNoisy(g.from(func(i int) int { return i - i%leafWidth + (i%leafWidth+12)%leafWidth })), "a shift by a whole head is an order of heads"},
		{"transposed", "layout/transposed", "", leafNoisy(g.from(func(i int) int {
			b, k := i/(leafLength*leafWidth), i%(leafLength*leafWidth)
			return b*leafLength*leafWidth + k%leafLength*leafWidth + k/leafLength
		})), "read column by column"},
		{"strided", "layout/strided", "", leafNoisy(g.from(func(i int) int { return 2 * i % len(g) })), "every second element"},
		{"bfloat16", "dtype/downcast", "", g.each(leafRound(8)), "every number has 8 bits"},
		{"float16 result", "dtype/downcast", "", leafNoisy(g).each(leafRound(11)), "11 bits, after the noise"},
		{"dropout", "dropout", "", leafNoisy(g).each(func(x float64) float64 {
			if coin.Float64() < 0.1 {
				return 0
			}
			return x / 0.9
		}), "zeros at the rate that the others' factor tells"},
		{"stale", "state/stale", "", leafNoisy(w.earlier), "the output of the leaf of the same name in the block before"},
		{"zero rows", "rows/from", "", leafNoisy(g).where(from8, zero), "what stands there is known"},
		{"scaled rows", "rows/from", "", leafNoisy(g).where(from8, func(_ int, x float64) float64 { return 1.5 * x }), "right values times a factor"},
		{"zero columns", "columns/set", "", leafNoisy(g).where(block, zero), "a tile"},
		{"zero head", "head/one", "", leafNoisy(g).where(head, zero), "a whole head of the four"},
		{"one NaN", "nan/first", "", leafNoisy(g).where(func(r, c int) bool { return r == 3 && c == 4 }, func(int, float64) float64 { return math.NaN() }), "all others are right"},

		{"garbage rows", "", "rows/from", leafNoisy(g).where(from8, garbage), "the place is sure, what stands there is not"},
		{"garbage row", "", "rows/set", leafNoisy(g).where(func(r, _ int) bool { return r == 5 }, garbage), "one row"},
		{"garbage columns", "", "columns/set", leafNoisy(g).where(block, garbage), "a block of columns"},
		{"garbage head", "", "head/one", leafNoisy(g).where(head, garbage), "a head"},
		{"NaN everywhere", "", "nan/first", g.each(func(float64) float64 { return math.NaN() }), "where it began is not known"},
		{"infinite", "", "dtype/overflow", leafNoisy(g).where(func(r, c int) bool { return r == 3 && c < 4 }, func(int, float64) float64 { return math.Inf(1) }), "of what type is not known"},

		{"right", "", "", leafNoisy(g), "whatever is tried"},
		{"twice, with noise", "", "value/scale", g.each(func(x float64) float64 { return 2 * x }).where(func(int, int) bool { return true },
			func(i int, x float64) float64 { return x + 0.05*noise[i] }), "it fits to some per cent"},

		// Not in the catalogue.
		{"sine", "", "", g.each(func(x float64) float64 { return x + 0.3*math.Sin(7*x) }), "no cause has this form"},
		{"square", "", "", g.each(func(x float64) float64 { return x * math.Abs(x) }), "nor this"},
		{"noise", "", "", g.from(func(i int) int { return i }).where(func(int, int) bool { return true }, func(i int, x float64) float64 { return x + 0.5*noise[i] }),
			"noise far above any rounding"},
		{"other numbers", "", "", noise, "the candidate has nothing of the golden; the same distribution is no permutation"},
		{"row scales", "", "", g.where(func(int, int) bool { return true }, func(i int, x float64) float64 { return x * (1 + float64(i/leafWidth%7)/3) }), "each row by another factor"},
	}
}

// leafVariants are other circumstances of the faults, which tell more or less.
var leafVariants = []struct {
	name   string
	change func(t *testing.T, s *diagnose.Scene)
}{
	{"where not all was recorded", func(_ *testing.T, s *diagnose.Scene) { s.Open = true }},
	{"between layers", func(_ *testing.T, s *diagnose.Scene) { s.Kind = "between" }},
	{"right alone", func(_ *testing.T, s *diagnose.Scene) { s.Kind = "interaction" }},
	{"without a config", func(_ *testing.T, s *diagnose.Scene) { s.Config = nil }},
	{"with nothing else recorded", func(_ *testing.T, s *diagnose.Scene) { s.Ports = s.Ports[2:] }},
	{"as in the block before", func(_ *testing.T, s *diagnose.Scene) { s.Ports[0].Actual = s.Target.Actual }},
	{"made of the candidate's inputs", func(_ *testing.T, s *diagnose.Scene) { s.Made = s.Target.Actual }},
	{"with padding", func(_ *testing.T, s *diagnose.Scene) {
		s.Target.PadRows = slices.Concat(make([]bool, leafLength-4), []bool{true, true, true, true})
	}},
	{"of one sequence", func(t *testing.T, s *diagnose.Scene) { leafCut(t, s, 0, 1) }},
	{"of four rows", func(t *testing.T, s *diagnose.Scene) { leafCut(t, s, 1, 4) }},
	{"of four columns", func(t *testing.T, s *diagnose.Scene) { leafCut(t, s, 2, 4) }},
	{"disturbed", func(t *testing.T, s *diagnose.Scene) { leafDisturbed(t, s, 1e-3) }},
	{"much disturbed", func(t *testing.T, s *diagnose.Scene) { leafDisturbed(t, s, 0.1) }},
	{"in a convolution", leafNamed("m.layers.1.conv_out")},
	{"in a table of positions", leafNamed("m.embeddings.position_embeddings")},
	{"in a fused projection", leafNamed("m.layers.1.attn.qkv_proj")},
	{"in another one", leafNamed("m.layers.1.mlp.gate_up_proj")},
	{"in keys", func(t *testing.T, s *diagnose.Scene) {
		leafNamed("m.layers.1.attn.k_proj")(t, s)
		s.Config["num_key_value_heads"] = 2.0
	}},
	{"in an expert", leafNamed("m.layers.1.experts.0")},
}

// leafCut leaves the first slices of all tensors along an axis.
func leafCut(t *testing.T, s *diagnose.Scene, axis, n int) {
	for _, p := range s.Ports {
		for _, x := range []**tensor.Tensor{&p.Golden, &p.Actual} {
			cut, err := (*x).Slice(axis, 0, n)
			require.NoError(t, err)
			*x = cut
		}
	}
}

// leafDisturbed adds noise to the candidate's numbers.
func leafDisturbed(t *testing.T, s *diagnose.Scene, by float64) {
	noise := leafRandom(37, s.Target.Actual.Len())
	for i := range noise {
		noise[i] = s.Target.Actual.At(i) + by*noise[i]
	}
	s.Target.Actual = noise.tensor(t, s.Target.Actual.Shape()...)
}

func leafNamed(layer string) func(*testing.T, *diagnose.Scene) {
	return func(_ *testing.T, s *diagnose.Scene) { s.Layer, s.Ports[1].Layer, s.Target.Layer = layer, layer, layer }
}

func TestLeafFaults(t *testing.T) {
	w := newLeafWorld()
	var all strings.Builder
	faults := leafFaults(w)
	for _, h := range []int{2, 4, 8, 12, 16, 24} {
		id, d := map[bool]string{true: "layout/transposed", false: "layout/permuted"}[h == 4], leafWidth/h
		faults = append(faults, leafFault{fmt.Sprint(h, " heads before tokens"), id, "", leafNoisy(w.out.from(func(i int) int {
			k := i % (leafLength * leafWidth)
			return i - k + k/d%leafLength*leafWidth + k/d/leafLength*d + k%d
		})), "as many as the config says, or another order"})
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			causes := diagnose.Diagnose(t.Context(), w.scene(t, f.actual))
			said(&all, f.name, causes)
			if first := cmp.Or(f.id, f.first); first != "" {
				require.NotEmpty(t, causes, f.reason)
				assert.Equal(t, [2]any{first, f.id != ""}, [2]any{causes[0].ID, causes[0].Proven}, "%s: %s", f.reason, causes[0].Text)
			}
			for i, c := range causes {
				if c.Proven {
					assert.True(t, i == 0 && f.id != "", "proven: %s", c.Text)
					assert.LessOrEqual(t, c.Fit, leafFloor.RelL2)
					assert.True(t, c.Fit <= c.FitGolden/8 || f.name == "one NaN", "the golden's metric is over finite pairs")
				}
				assert.Equal(t, leaf, c.Layer)
			}
			as := fmt.Sprint(causes)
			for _, v := range leafVariants {
				s := w.scene(t, f.actual)
				v.change(t, s)
				causes := diagnose.Diagnose(t.Context(), s)
				if text := fmt.Sprint(causes); strings.ReplaceAll(text, s.Layer, leaf) != as {
					said(&all, f.name+", "+v.name, causes)
				}
			}
		})
	}
	toy.Kept(t, "leaf.txt", all.String())
}

// said writes causes as a reader gets them.
func said(b *strings.Builder, name string, causes []diagnose.Cause) {
	fmt.Fprintf(b, "== %s\n", name)
	for _, c := range causes {
		fmt.Fprintf(b, "%s, proven %t, fit %.2g of %.2g, next %s %.2g: %s\n", c.ID, c.Proven, c.Fit, c.FitGolden, c.Next, c.NextFit, c.Text)
	}
}
