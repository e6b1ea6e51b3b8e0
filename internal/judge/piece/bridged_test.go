package piece_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// A record in another shape is no fault where what was made of its value is judged.
func TestBridged(t *testing.T) {
	p, err := program.Parse("p", []byte(counted), nil)
	require.NoError(t, err)
	for _, tt := range []struct {
		misfit  string
		c       []float64 // what was made of b; nil: not recorded
		faults  []string
		written []string
		reason  string
	}{
		{"b", []float64{4, 6}, nil, []string{"b"}, "what is made of it is right: laid out otherwise"},
		{"b", []float64{4, 9}, []string{"c"}, []string{"b"}, "what is made of it is wrong: the place is there, or in what made b"},
		{"b", nil, []string{"b"}, nil, "nothing is known of what is made of it"},
		{"c", []float64{4, 6}, []string{"c"}, nil, "nothing is made of it: the result of the model"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			run := &piece.Run{Program: p, Encoding: tensor.F32}
			for _, at := range p.Ports {
				x := map[string][]float64{"model": {1, 2}, "a": {2, 4}, "b": {3, 5}, "c": tt.c}[at.Layer]
				r := piece.Record{Misfit: at.Layer == tt.misfit}
				if !r.Misfit && x != nil {
					r.Golden.Known = true
					r.Tensor, err = replay.Of(tensor.F32, []int{2}, x)
					require.NoError(t, err)
				}
				run.Records = append(run.Records, r)
			}
			found, err := piece.Judge(context.Background(), run)
			require.NoError(t, err)
			layers := func(ports []int) (out []string) {
				for _, i := range ports {
					out = append(out, p.Ports[i].Layer)
				}
				return out
			}
			assert.Equal(t, tt.faults, layers(found.Faults))
			var written []string
			for _, s := range found.Stretches {
				written = append(written, layers(s)...)
			}
			assert.Equal(t, tt.written, written)
		})
	}
}
