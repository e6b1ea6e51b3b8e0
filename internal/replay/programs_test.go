package replay_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

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
