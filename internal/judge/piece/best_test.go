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

// sparse is the two best of four scores → the sum of what stands there in x, times w.
const sparse = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2,4],"dtype":"float32","from":{"input":"scores","step":"0"}},{"id":1,"shape":[2,4],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":2,"shape":[2,2],"dtype":"float32","from":{"input":"w","step":"0"}},{"id":3,"shape":[2,2],"dtype":"float32","from":{"op":0}},{"id":4,"shape":[2,2],"dtype":"int64","from":{"op":0}},
{"id":5,"shape":[2,2],"dtype":"int32","from":{"op":1}},{"id":6,"shape":[2,2],"dtype":"int64","from":{"op":2}},{"id":7,"shape":[2,2],"dtype":"float32","from":{"op":3}},
{"id":8,"shape":[2,2],"dtype":"float32","from":{"op":4}},{"id":9,"shape":[2],"dtype":"float32","from":{"op":5}}],
"ops":[{"op":"aten.topk.default","args":{"self":"%0","k":2,"dim":-1,"largest":true,"sorted":true},"out":["%3","%4"],"layer":"router","call":1},
{"op":"aten._to_copy.default","args":{"self":"%4","dtype":"int32"},"out":["%5"],"layer":"router","call":1},
{"op":"aten._to_copy.default","args":{"self":"%5","dtype":"int64"},"out":["%6"],"layer":"moe","call":1},
{"op":"aten.gather.default","args":{"self":"%1","dim":-1,"index":"%6","sparse_grad":false},"out":["%7"],"layer":"moe","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%7","other":"%2"},"out":["%8"],"layer":"moe","call":1},
{"op":"aten.sum.dim_IntList","args":{"self":"%8","dim":[-1],"keepdim":false,"dtype":null},"out":["%9"],"layer":"moe","call":1}],
"passes":[{"step":"0","ops":[0,6],"ports":{"model-input_scores":["%0",0,6],"model-input_x":["%1",0,6],"model-input_w":["%2",0,6],"router-output":["%5",2,2],"moe-output":["%9",6,6]}}]}`

// A choice is a set: its order, and which of equal scores it took, is the candidate's own affair, and no excuse for what
// is made of it.
func TestBestChoice(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, tt := range []struct {
		first, second []float64 // the choices of the rows
		taken         []float64 // what stands at them, in the order of w
		wrong         []string
		reason        string
	}{
		{[]float64{0, 1}, []float64{1, 2}, []float64{1, 2, 6, 7}, nil, "as recorded"},
		{[]float64{1, 0}, []float64{2, 1}, []float64{1, 2, 6, 7}, nil, "in another order, which the sum does not hang on"},
		{[]float64{0, 2}, []float64{2, 1}, []float64{1, 3, 6, 7}, nil, "the other one of two equal scores"},
		{[]float64{0, 1}, []float64{2, 1}, []float64{1, 2, 7, 6}, []string{"router-output"}, "in another order, and not what it is weighed by"},
		{[]float64{0, 1}, []float64{1, 3}, []float64{1, 2, 6, 8}, []string{"router-output"}, "the third best"},
		{[]float64{0, 3}, []float64{1, 2}, []float64{1, 4, 6, 7}, []string{"router-output"}, "below the equal ones"},
		{[]float64{0, 1}, []float64{1, 1}, []float64{1, 2, 6, 6}, []string{"router-output"}, "one of them twice"},
		{[]float64{0, 1}, []float64{1, 4}, []float64{1, 2, 6, 8}, []string{"router-output"}, "out of range"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p, err := program.Parse("p", []byte(sparse), nil)
			require.NoError(t, err)
			w := []float64{3, 2, 4, 1}
			have := map[string][]float64{"input_scores": {0.5, 0, 0, -1, 0.1, 0.9, 0.3, 0.2}, "input_x": x, "input_w": w, "router-output": append(tt.first, tt.second...),
				"moe-output": {w[0]*tt.taken[0] + w[1]*tt.taken[1], w[2]*tt.taken[2] + w[3]*tt.taken[3]}}
			run := &piece.Run{Program: p, Encoding: tensor.F32}
			for _, at := range p.Ports {
				v := p.Values[at.Value]
				x, is := have[at.Name]
				if !is {
					x = have[at.Layer+"-"+at.Name]
				}
				a, err := replay.Of(v.DType, v.Shape, x)
				require.NoError(t, err)
				run.Records = append(run.Records, piece.Record{Tensor: a})
			}
			r, err := piece.Judge(context.Background(), run)
			require.NoError(t, err)
			var wrong []string
			for _, f := range r.Faults {
				wrong = append(wrong, p.Ports[f].Layer+"-"+p.Ports[f].Name)
			}
			assert.Equal(t, tt.wrong, wrong)
		})
	}
}
