package judge_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// BenchmarkMany compares runs of many tensors and reports them: equal ones, and ones with an error
// in the third layer that everything after it inherits. Ten times the tensors take ten times as
// long, in each form, and a failing run hardly longer than a passing one.
func BenchmarkMany(b *testing.B) {
	forms := []struct {
		name string
		at   func(i int) (step, layer, port string)
	}{
		{"blocks", func(i int) (string, string, string) {
			return "0", fmt.Sprintf("model.layers.%d.lin%d", i/20, i/2%10), []string{"input_0", "output"}[i%2]
		}},
		{"flat", func(i int) (string, string, string) { return "0", fmt.Sprintf("op_%d", i), "output" }},
		{"ports", func(i int) (string, string, string) { return "0", "model.big", fmt.Sprintf("output.%d", i) }},
		{"calls", func(i int) (string, string, string) { return "0", fmt.Sprintf("model.norm(%d)", i+2), "output" }},
		{"steps", func(i int) (string, string, string) {
			return fmt.Sprint(i / 100), fmt.Sprintf("model.layers.%d.mlp", i%100), "output"
		}},
	}
	for _, f := range forms {
		for _, values := range []string{"different", "equal"} {
			for _, verdict := range []string{"pass", "fail"} {
				for _, n := range []int{2_000, 20_000} {
					golden, actual := many(b, n, f.at, values, false), many(b, n, f.at, values, verdict == "fail")
					b.Run(fmt.Sprintf("%s/%s/%s/%d", f.name, values, verdict, n), func(b *testing.B) {
						for b.Loop() {
							c, err := judge.Compare(context.Background(),
								[]judge.Case{{Name: "a", Golden: golden, Actual: actual}}, judge.Options{})
							require.NoError(b, err)
							require.Equal(b, verdict, string(c.Report("many", true).Verdict))
						}
					})
				}
			}
		}
	}
}

func many(b *testing.B, n int, at func(int) (step, layer, port string), values string, wrong bool) *dump.Run {
	b.Helper()
	var entries []dump.Entry
	for i := range n {
		e := dump.Entry{}
		e.Step, e.Layer, e.Port = at(i)
		v := make([]float32, 32)
		for j := range v {
			v[j] = float32(j%7) - 3
			if values == "different" {
				v[j] += float32((i*31 + j*17) % 101)
			}
			if wrong && i > 5 && !(label.IsInput(e.Port) && i == 6) {
				v[j] += float32(j % 3)
			}
		}
		x, err := tensor.Of(v, 4, 8)
		require.NoError(b, err)
		e.Tensor = x
		entries = append(entries, e)
	}
	return dump.New("torch", dump.Info{Engine: "torch", Case: "a", Mode: dump.Standard}, dump.OrderRunFile, entries)
}
