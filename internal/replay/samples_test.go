package replay_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// sums are the operators that add many numbers in an order of their own: what they make is right to
// 1e-6 of the largest number in float32, others' to two units in the last place.
var sums = strings.Fields(`
	mm bmm addmm baddbmm mv dot _grouped_mm scaled_dot_product_attention convolution _cdist_forward
	scatter_add scatter_reduce index_add cumsum cumprod logcumsumexp
	avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
	upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
	_fft_r2c _fft_c2r _fft_c2c
	sum mean prod var std var_mean std_mean logsumexp linalg_vector_norm
	_softmax _log_softmax native_layer_norm native_group_norm native_batch_norm _native_batch_norm_legit_no_training
	gelu lerp digamma view_as_complex _linalg_slogdet _linalg_det linalg_inv_ex`)

// samples are the tables that testdata/generate.py wrote.
func samples(t *testing.T) map[string]*program.Program {
	all := map[string]*program.Program{}
	files, err := filepath.Glob("testdata/*/program.json")
	require.NoError(t, err)
	for _, f := range files {
		p, err := program.Read(f)
		require.NoError(t, err)
		all[filepath.Dir(f)] = p
	}
	return all
}

// modes are those in which floats move as far as the rounding says, and no farther: limit is of the largest number, as
// chains have up to a few roundings.
var modes = []struct {
	mode   replay.Mode
	limit  float64
	reason string
}{
	{replay.Mode{Wide: true}, 2e-6, "float64"},
	{replay.Mode{Round: replay.Shake}, 1e-6, "half a unit each"},
	{replay.Mode{Round: replay.Nearest, To: tensor.BF16}, 3e-2, "eight digits"},
	{replay.Mode{Round: replay.Zero, To: tensor.F16}, 4e-3, "eleven digits"},
}

// TestSamples replays what torch ran, in single operators and short chains of them, in every mode.
func TestSamples(t *testing.T) {
	for folder, p := range samples(t) {
		results, err := safetensors.Open(filepath.Join(folder, "results.safetensors"))
		require.NoError(t, err)
		t.Cleanup(func() { results.Close() })
		for i, port := range p.Ports {
			if port.Layer == "model" || !strings.HasPrefix(port.Name, "output") {
				continue
			}
			t.Run(filepath.Base(folder)+"/"+strings.TrimPrefix(port.Layer, "model.")+"/"+port.Name, func(t *testing.T) {
				want, ok := results.Lookup(port.Layer + "-" + port.Name)
				require.True(t, ok, "no result of that name")
				piece := p.Piece(i, func(int) bool { return false })
				run := func(m replay.Mode) *replay.Array {
					a, err := replay.Run(t.Context(), piece, (&toy.Recording{Program: p}).Load, m)
					require.NoError(t, err)
					return a
				}
				got := run(replay.Mode{})
				near(t, want, got, piece)
				for _, r := range modes {
					if got.DType().IsFloat() {
						assert.LessOrEqual(t, moved(got.Floats(), run(r.mode).Floats()), max(r.limit, coarse[want.DType()])*factor(piece, 4), r.reason)
					}
				}
			})
		}
	}
}

// coarse is the limit in types of 16 bits, which round in any mode.
var coarse = map[tensor.DType]float64{tensor.BF16: 1e-2, tensor.F16: 2e-3}

// moved is by how much numbers are others, relative to the largest.
func moved(x, y []float64) float64 {
	most, by := 0.0, 0.0
	for i, v := range y {
		by = max(by, distance(x[i], v))
		if math.Abs(v) < 1e300 {
			most = max(most, math.Abs(v))
		}
	}
	return by / max(most, math.SmallestNonzeroFloat64)
}

// factor is by how much more a piece may be off that was recorded as a chain of many operators, each of which rounds.
func factor(p *program.Piece, long float64) float64 {
	if len(p.Ops) > 8 {
		return long
	}
	return 1
}

// near compares a replayed result with torch's.
func near(t *testing.T, want *tensor.Tensor, got *replay.Array, p *program.Piece) {
	assert.Equal(t, want.DType(), got.DType())
	w, g := make([]float64, want.Len()), got.Floats()
	want.Float64s(w, 0)
	require.Len(t, g, len(w))
	off := factor(p, 2)
	sum := off > 1 || slices.ContainsFunc(p.Ops, func(o program.Op) bool { return slices.Contains(sums, o.Name) })
	most := 0.0
	for _, v := range w {
		if math.Abs(v) <= math.MaxFloat64 {
			most = max(most, math.Abs(v))
		}
	}
	for i := range w {
		assert.LessOrEqual(t, distance(w[i], g[i]), off*allowed(want.DType(), w[i], most, sum), "element %d of %v is %v, not %v", i, want.Shape(), g[i], w[i])
	}
}

// distance is 0 for equal numbers, of which NaN is one.
func distance(a, b float64) float64 {
	if a == b || a != a && b != b {
		return 0
	}
	if d := math.Abs(a - b); d == d {
		return d
	}
	return math.Inf(1)
}

// allowed is the largest difference from a number of a tensor.
func allowed(d tensor.DType, x, most float64, sum bool) float64 {
	unit := 2 * d.Epsilon() * max(math.Abs(x), map[tensor.DType]float64{tensor.F16: 0x1p-14}[d])
	switch {
	case !d.IsFloat() || x-x != 0:
		return 0
	case d == tensor.BF16 || d == tensor.F16:
		if sum {
			return max(unit, d.Epsilon()*most) // torch rounds on the way, too
		}
		return unit
	case d == tensor.F64 && sum:
		return 1e-14 * most
	case sum:
		return 1e-6 * most
	}
	return 2 * unit
}

// TestSampled finds a sample of every operator.
func TestSampled(t *testing.T) {
	found := map[string]bool{}
	for _, p := range samples(t) {
		for _, o := range p.Ops {
			found[o.Name] = true
		}
	}
	for _, n := range replay.Operators() {
		assert.True(t, found[n], "no sample of %s: add a row to a table in testdata, and run testdata/generate.py", n)
	}
}

func zeros(v *program.Value) (*replay.Array, error) {
	n := 1
	for _, d := range v.Shape {
		n *= d
	}
	if n > 1<<16 {
		return nil, os.ErrNotExist
	}
	return replay.Of(v.DType, v.Shape, make([]float64, n))
}

// TestForged runs each sampled operator with arguments that nobody recorded: none may crash, hang or
// make another shape than recorded. Chains repeat what others have had. What is run and what is refused, and why, is kept in
// a file.
func TestForged(t *testing.T) {
	var said strings.Builder
	all := samples(t)
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		p := all[folder]
		seen := map[string]int{}
		for i := range p.Ops {
			o := &p.Ops[i]
			if seen[o.Full]++; seen[o.Full] > 3 {
				continue
			}
			for k := range o.Args {
				was := o.Args[k].Value
				run, refused, why := 0, 0, ""
				for _, v := range forged(was) {
					o.Args[k].Value = v
					for _, id := range o.Out {
						if id == program.None {
							continue
						}
						piece := alone(p, i, id)
						if piece == nil {
							continue
						}
						a, err := replay.Run(t.Context(), piece, zeros, replay.Mode{})
						if err != nil {
							e, ok := errors.AsType[*replay.OpaqueError](err)
							require.True(t, ok, "%v", err)
							refused++
							why, _, _ = strings.Cut(e.Reason, ": runtime error") // which is Go's own word
							continue
						}
						run++
						assert.True(t, slices.Equal(piece.Values[piece.Out].Shape, a.Shape()), "%s with %s = %v", o.Full, o.Args[k].Name, v)
					}
				}
				o.Args[k].Value = was
				fmt.Fprintf(&said, "%s %s: %d run, %d refused %s\n", o.Layer, o.Args[k].Name, run, refused, why)
			}
		}
	}
	toy.Kept(t, "forged.txt", said.String())
}

// forged are arguments of the kinds that an argument may have.
func forged(v any) []any {
	switch v := v.(type) {
	case program.ID:
		return []any{nil, program.ID(0), 3}
	case []program.ID:
		return []any{nil, []program.ID{}, []program.ID{program.None, v[0]}}
	case nil, string:
		return []any{7, "floor", []int{3, -1}}
	case bool:
		return []any{!v}
	}
	const huge = math.MaxInt >> 22
	return []any{nil, -1, -7, 0, 5, huge, math.MinInt / 2, 1e300, []int{}, []int{-1}, []int{0, 0}, []int{huge, huge}, []int{9, -9, 9, 9, 9, 9, 9, 9}}
}

// alone is one operator of a program, with all that it takes from outside; nil where that is no program.
func alone(p *program.Program, i int, out program.ID) *program.Piece {
	q, to := &program.Program{Ops: slices.Clone(p.Ops[i : i+1])}, map[program.ID]program.ID{}
	own := func(id program.ID) program.ID {
		if id < 0 || int(id) >= len(p.Values) {
			return id
		}
		if _, there := to[id]; !there {
			to[id], q.Values = program.ID(len(q.Values)), append(q.Values, p.Values[id])
			if m := p.Maker(id); m >= 0 && m != i {
				q.Values[to[id]].Weight = "w"
			}
		}
		return to[id]
	}
	o := &q.Ops[0]
	o.Args, o.Out, o.Stack = o.Args.Map(own), slices.Clone(o.Out), -1
	for k, id := range o.Out {
		o.Out[k] = own(id)
	}
	q.Ports = []program.Port{{Value: to[out], At: 1, Until: 1}}
	if q.Check() != nil {
		return nil
	}
	return q.Piece(0, func(int) bool { return false })
}

// far is the error of x, relative to what torch had: that of all, and of a number that is not exact.
func far(x, want []float64) float64 {
	var d, n float64
	for i, w := range want {
		switch {
		case x[i] == w || x[i] != x[i] && w != w || math.Abs(w) > 1e30 && math.Abs(x[i]) > 1e30:
		default:
			d += (x[i] - w) * (x[i] - w)
		}
		if math.Abs(w) < 1e30 {
			n += w * w
		}
	}
	return math.Sqrt(d / max(n, 1e-300))
}

// TestProgramsReplay runs every port of recorded models from the records before it. GOPARITY_PROGRAMS
// names a folder with further recordings.
func TestProgramsReplay(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("testdata", "programs", "*", "program.json"))
	require.NoError(t, err)
	if more := os.Getenv("GOPARITY_PROGRAMS"); more != "" {
		further, err := filepath.Glob(filepath.Join(more, "program.json"))
		require.NoError(t, err)
		folders = append(folders, further...)
	}
	for _, f := range folders {
		t.Run(filepath.Base(filepath.Dir(f)), func(t *testing.T) {
			r := toy.Open(t, filepath.Dir(f))
			worst, at := 0.0, ""
			unordered := map[int]bool{} // ports whose rows are in an order of torch's own
			recorded := func(q int) bool { _, ok := r.Record(q); return ok && !unordered[q] }
			for i := range r.Ports {
				want, ok := r.Record(i)
				if !ok {
					continue
				}
				p := r.Piece(i, recorded)
				got, err := replay.Run(t.Context(), p, r.Load, replay.Mode{})
				label := r.Ports[i].Step + "/" + r.Ports[i].Layer + "-" + r.Ports[i].Name
				if !assert.NoError(t, err, label) {
					continue
				}
				w := make([]float64, want.Len())
				want.Float64s(w, 0)
				e := far(got.Floats(), w)
				limit := map[tensor.DType]float64{tensor.F32: 1e-6, tensor.BF16: 6e-3, tensor.F16: 1e-3}[want.DType()]
				if !(e <= limit) {
					turned, err := replay.Run(t.Context(), p, r.Load, replay.Mode{Ties: true})
					require.NoError(t, err)
					if unordered[i] = !slices.Equal(got.Floats(), turned.Floats()); unordered[i] {
						continue
					}
					var names []string
					for _, o := range p.Ops {
						names = append(names, o.Name)
					}
					t.Errorf("%s: off by %.2g: %v", label, e, names[max(0, len(names)-12):])
				}
				if e > worst && want.DType() == tensor.F32 {
					worst, at = e, label
				}
			}
			t.Logf("%d ports, %d in an order of their own, worst %.2g at %s", len(r.Ports), len(unordered), worst, at)
		})
	}
}

// BenchmarkPieces replays all ports of a small model, each from the records before it.
func BenchmarkPieces(b *testing.B) {
	r := toy.Open(b, filepath.Join("testdata", "programs", "llama"))
	var pieces []*program.Piece
	for i := range r.Ports {
		pieces = append(pieces, r.Piece(i, func(q int) bool { _, ok := r.Record(q); return ok }))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range pieces {
			_, err := replay.Run(b.Context(), p, r.Load, replay.Mode{})
			require.NoError(b, err)
		}
	}
	b.ReportMetric(float64(b.N*len(pieces))/b.Elapsed().Seconds(), "pieces/s")
}
