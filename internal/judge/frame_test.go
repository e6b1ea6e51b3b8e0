package judge_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
)

// An engine that has the logits of the last token alone is judged by these, in the frame of the golden's.
func TestLastRowAlone(t *testing.T) {
	x := wave(t, 1, 0.3, 2, 3, 8)
	data, _ := x.Bytes()
	value := func(id int, from string) string {
		return fmt.Sprintf(`{"id":%d,"shape":[2,3,8],"dtype":"float32","from":{%s}}`, id, from)
	}
	p, err := program.Parse("program.json", fmt.Appendf(nil, `{"schema":1,"engine":"torch","case":"short","values":[%s,%s,%s],"ops":[
{"op":"aten.mul.Tensor","args":{"self":"%%0","other":3},"out":["%%1"],"layer":"m.norm","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%%1","other":"%%1"},"out":["%%2"],"layer":"m.lm_head","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"m.norm-output":["%%1",1,1],"m.lm_head-output":["%%2",2,2]}}]}`,
		value(0, fmt.Sprintf(`"data":%q`, base64.StdEncoding.EncodeToString(data))), value(1, `"op":0`), value(2, `"op":1`)), nil)
	require.NoError(t, err)
	// A run in which one row of the norm, and one of the logits, are too large.
	side := func(engine string, norm, logits int, last bool) *dump.Run {
		of := func(row int, f func(v float64) float64) *tensor.Tensor {
			return change(t, x, func(r, c int) float64 {
				v := f(x.At(8*r + c))
				if r == row {
					v *= 1.5
				}
				return v
			})
		}
		y := of(logits, func(v float64) float64 { return 9 * v * v })
		if last {
			v := make([]float32, y.Len())
			y.Float32s(v, 0)
			y = toy.Of(t, append(v[16:24:24], v[40:]...), 2, 8)
		}
		return run(engine, port{"m.norm-output", of(norm, func(v float64) float64 { return 3 * v })}, port{"m.lm_head-output", y})
	}
	for _, tt := range []struct {
		norm, logits int
		last         bool
		place        string
		note         bool
		reason       string
	}{
		{-1, -1, true, "", false, "as recorded"},
		{-1, 5, true, "m.lm_head", false, "the last row of the second sequence"},
		{-1, 2, true, "m.lm_head", false, "and of the first"},
		{5, -1, true, "", true, "the norm is written otherwise: what is made of its row is right"},
		{1, -1, false, "", true, "so it is where all rows are there"},
		{1, -1, true, "m.norm", false, "nothing is made of a row whose logits are not there"},
	} {
		c := compareRuns(t, side("torch", -1, -1, false), side("max", tt.norm, tt.logits, tt.last), func(k *judge.Case) { k.Program = p })
		r := c.Report("toy", true)
		place := ""
		if r.FirstDivergence != nil {
			place = r.FirstDivergence.Layer
		}
		assert.Equal(t, tt.place, place, tt.reason)
		assert.Equal(t, tt.note, len(r.Stretches) > 0, tt.reason)
	}
}
