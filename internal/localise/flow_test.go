package localise_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/tensor"
)

// shared is a layer that is called twice, as hooks record it: what is inside a layer before it,
// inputs together with outputs. A norm inside it is called twice each time, and one part of it only
// once.
const shared = `
m.ids-input_0 #1
m.embed-output #2
m.share.norm-input_0 #2
m.share.norm-output #3
m.share.norm(2)-input_0
m.share.norm(2)-output
m.share.lin-input_0 #3
m.share.lin-output
m.share-input_0 #2
m.share-output #4
m.share.norm(3)-input_0 #4
m.share.norm(3)-output
m.share.norm(4)-output
m.share.extra-output
m.share.lin(2)-output
m.share(2)-input_0 #4
m.share(2)-output #5
m-input_0 #1
m-output #5
`

// read makes a trace of lines "label [#same]", in the order in which they were recorded.
func read(text string) *localise.Flow {
	var entries []localise.Entry
	for line := range strings.Lines(strings.TrimSpace(text)) {
		name, same, _ := strings.Cut(strings.TrimSpace(line), " #")
		layer, port := label.Split(name)
		e := localise.Entry{Key: localise.Key{Case: "a", Step: "0", Layer: layer, Port: port}, Seq: len(entries)}
		if same != "" {
			e.Same = int(same[0] - '0')
		}
		entries = append(entries, e)
	}
	return localise.NewFlow(entries)
}

func labels(p *localise.Pass, events ...int) []string {
	out := []string{}
	for _, i := range events {
		out = append(out, label.Join(p.Events[i].Layer, p.Events[i].Port))
	}
	return out
}

func find(t *testing.T, p *localise.Pass, name string) int {
	t.Helper()
	for i := range p.Events {
		if label.Join(p.Events[i].Layer, p.Events[i].Port) == name {
			return i
		}
	}
	require.Fail(t, "no event", name)
	return -1
}

func TestOrder(t *testing.T) {
	p := read(shared).Pass("a", "0")
	var all []int
	for i := range p.Events {
		all = append(all, i)
	}
	assert.Equal(t, []string{
		"m-input_0", "m.ids-input_0", "m.embed-output",
		"m.share-input_0", "m.share.norm-input_0", "m.share.norm-output", "m.share.norm(2)-input_0",
		"m.share.norm(2)-output",
		"m.share.lin-input_0", "m.share.lin-output", "m.share-output",
		"m.share(2)-input_0", "m.share.norm(3)-input_0", "m.share.norm(3)-output", "m.share.norm(4)-output",
		"m.share.extra-output",
		"m.share.lin(2)-output", "m.share(2)-output", "m-output",
	}, labels(p, all...), "a layer has its inputs before anything inside it, the outer one first")
	for i, e := range p.Events {
		assert.Equal(t, i == 0, e.Given, labels(p, i))
	}
	assert.Equal(t, []string{"m.share(2)-input_0", "m.share(2)-output"}, labels(p, p.Ports("m.share(2)")...))
}

func TestContainer(t *testing.T) {
	p := read(shared).Pass("a", "0")
	for _, tt := range []struct{ layer, container, reason string }{
		{"m.share.lin", "m.share", "the first call"},
		{"m.share.lin(2)", "m.share(2)", "called as often as what is around it"},
		{"m.share.norm(2)", "m.share", "called twice in the first call"},
		{"m.share.norm(3)", "m.share(2)", "what ended after it tells"},
		{"m.share.extra", "m.share(2)", "called once, in the second call"},
		{"m.share(2)", "m", "one call around several"},
		{"m", "m", "a root lies in nothing"},
		{"x.y.z", "x.y", "what was not recorded goes by its name"},
	} {
		assert.Equal(t, tt.container, p.Container(tt.layer), tt.reason)
		if tt.container != tt.layer {
			assert.True(t, p.Inside(tt.layer, tt.container), tt.reason)
		}
	}
	assert.False(t, p.Inside("m.share.norm(3)", "m.share"), "another call of the container")
	assert.True(t, p.Inside("m.share.norm(3)", "m"), "the container's container")
}

func TestProducer(t *testing.T) {
	p := read(shared).Pass("a", "0")
	producer := func(name string) string {
		if i := p.Producer(find(t, p, name)); i >= 0 {
			return labels(p, i)[0]
		}
		return ""
	}
	assert.Equal(t, "m.embed-output", producer("m.share.norm-input_0"), "the output that holds the same bytes")
	assert.Equal(t, "m.share-output", producer("m.share(2)-input_0"),
		"the first call's output is the second one's input")
	assert.Equal(t, "", producer("m-input_0"), "what comes from outside was made by no layer")
	assert.Equal(t, "", producer("m.share.norm(2)-input_0"), "bytes tell nothing")
}

func TestPasses(t *testing.T) {
	at := func(caseName, step string) localise.Entry {
		return localise.Entry{Key: localise.Key{Case: caseName, Step: step, Layer: "m", Port: "output"}}
	}
	tr := localise.NewFlow([]localise.Entry{at("long", "0"), at("long", "10"), at("long", "2"), at("short", "0")})
	var got [][2]string
	for _, p := range tr.Passes {
		got = append(got, [2]string{p.Step, p.Case})
	}
	assert.Equal(t, [][2]string{{"0", "long"}, {"0", "short"}, {"2", "long"}, {"10", "long"}}, got,
		"steps in natural order, then cases as they came")
	assert.Equal(t, 3, tr.Pass("short", "0").Events[0].Index)
	assert.Nil(t, tr.Pass("short", "1"))
}

func TestIdentity(t *testing.T) {
	ramp := make([]float32, 32)
	for i := range ramp {
		ramp[i] = float32(i)
	}
	view, err := of(t, ramp, 4, 8).Slice(1, 0, 4)
	require.NoError(t, err)
	all := []*tensor.Tensor{of(t, ramp, 4, 8), of(t, ramp, 32), of(t, append([]float32{1}, ramp[1:]...), 32), of(t, make([]float32, 32), 32),
		of(t, ramp[:8], 8), of(t, []int64{3, 4}, 1, 2), view, view.Copy()}
	same, err := localise.Identify(context.Background(), all)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 2, 0, 0, 3, 4, 4}, same,
		"equal bytes, whatever the shape; one element differs; constant; tiny; two ids tell something; a view")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = localise.Identify(canceled, all)
	assert.ErrorIs(t, err, context.Canceled)
}

func of[T tensor.Element](t *testing.T, values []T, shape ...int) *tensor.Tensor {
	x, err := tensor.Of(values, shape...)
	require.NoError(t, err)
	return x
}
