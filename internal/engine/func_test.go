package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// labelsOf lists what a run has, in order: "0:a-output".
func labelsOf(r *dump.Run) (all []string) {
	for _, e := range r.Entries {
		all = append(all, e.Step+":"+e.Label())
	}
	return all
}

// A function is asked for each step of a golden, and what it returns has the golden's order.
func TestFunc(t *testing.T) {
	x := toy.Of(t, []float32{1}, 1)
	entry := func(step, layer, port string) dump.Entry {
		return dump.Entry{Step: step, Layer: layer, Port: port, Tensor: x}
	}
	golden := dump.New("g", dump.Info{Case: "c", TokenIDs: []byte("[[7,8]]")}, dump.OrderRunFile,
		[]dump.Entry{entry("0", "z", "output"), entry("0", "b", "tap"), entry("0", "a", "output"), entry("1", "z", "output"), entry("1", "a", "output")})
	var asked []string
	both := engine.Func(func(p engine.Pass) (map[string]*tensor.Tensor, error) {
		asked = append(asked, fmt.Sprintf("%s %s %v %d %q", p.Case, p.Step, p.TokenIDs, len(p.Golden), p.Path))
		return map[string]*tensor.Tensor{"a": x, "z-output": x, "b": x}, nil
	})
	r, err := both.Run(golden)
	require.NoError(t, err)
	assert.Equal(t, []string{`c 0 [[7 8]] 3 ""`, `c 1 [[7 8]] 2 ""`}, asked)
	assert.Equal(t, []string{"func", "c", "[[7,8]]"}, []string{r.Info.Engine, r.Info.Case, string(r.Info.TokenIDs)})
	got := labelsOf(r)
	assert.Equal(t, 6, len(got))
	assert.Contains(t, got, "1:b-output", "an output, where the golden has no tap of it")
	first := strings.Join(got[:3], " ")
	assert.Less(t, strings.Index(first, "0:z-output"), strings.Index(first, "0:a-output"), "in the golden's order")

	for _, tt := range []struct {
		out    map[string]*tensor.Tensor
		err    error
		want   string
		reason string
	}{
		{nil, errors.New("no such layer"), "case c: step 0: no such layer", "it fails"},
		{nil, nil, "case c: the function returned no tensors", "nothing"},
		{map[string]*tensor.Tensor{"a": nil}, nil, "case c: step 0: a is nil", "no tensor"},
	} {
		_, err := engine.Func(func(engine.Pass) (map[string]*tensor.Tensor, error) { return tt.out, tt.err }).Run(golden)
		assert.EqualError(t, err, tt.want, tt.reason)
	}
}

// Along a path it is asked for each forward pass; padding and what is hidden are in the masks.
func TestFuncAlong(t *testing.T) {
	x := toy.Of(t, []float32{1}, 1)
	tokens := [][]int{{1, 2, 3}, {4}}
	item := func(sequence, to int, hidden ...int) dump.PassItem {
		return dump.PassItem{Sequence: sequence, To: to, Hidden: hidden}
	}
	for _, tt := range []struct {
		path   string
		passes [][]dump.PassItem
		first  [][]int
		second [][]int
		reason string
	}{
		{"batch", [][]dump.PassItem{{item(0, 3), item(1, 1)}}, nil, nil, "rows without padding"},
		{"padding:left", [][]dump.PassItem{{item(0, 3), item(1, 1)}}, [][]int{{1, 1, 1}, {0, 0, 1}}, nil, "before"},
		{"padding:right", [][]dump.PassItem{{item(0, 3), item(1, 1)}, {item(1, 1), item(0, 2)}}, [][]int{{1, 1, 1}, {1, 0, 0}}, [][]int{{1, 0}, {1, 1}}, "after"},
		{"mask", [][]dump.PassItem{{item(0, 2, 3)}}, [][]int{{1, 1, 0}}, nil, "hidden"},
	} {
		var asked []string
		r, err := engine.Func(func(p engine.Pass) (map[string]*tensor.Tensor, error) {
			asked = append(asked, fmt.Sprint(p.Case, " ", p.Step, " ", p.Path, len(p.Items)))
			return map[string]*tensor.Tensor{"a": x}, nil
		}).Along("c", tt.path, tokens, tt.passes)
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.first, r.Info.PadMask, tt.reason)
		assert.Equal(t, tt.second, r.Info.PadMasks["1"], tt.reason)
		assert.Equal(t, fmt.Sprint("c 0 ", tt.path, len(tt.passes[0])), asked[0], tt.reason)
		assert.Len(t, labelsOf(r), len(tt.passes), tt.reason)
		assert.Equal(t, []any{tt.path, tt.passes, tokens}, []any{r.Info.Path, r.Info.Passes, r.Info.Tokens()}, tt.reason)
	}
	_, err := engine.Func(nil).Along("c", "nowhere", tokens, nil)
	assert.ErrorContains(t, err, "nowhere")
	_, err = engine.Func(func(engine.Pass) (map[string]*tensor.Tensor, error) { return nil, errors.New("no cache") }).Along("c", "batch", tokens, [][]dump.PassItem{{item(0, 3)}})
	assert.EqualError(t, err, "case c: step 0: no cache")
}

// CI reads of a file that the machine is at fault, and of no other error.
func TestStatus(t *testing.T) {
	dir, bazel := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "made", "infra")
	t.Setenv("TEST_INFRASTRUCTURE_FAILURE_FILE", bazel)
	_, _, err := engine.ReadStatus(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	infra := fmt.Errorf("in all: %w", &engine.Error{Class: engine.ClassInfra, Msg: "no GPU"})
	require.NoError(t, engine.WriteStatus(dir, "toy", infra))
	fixture, text, err := engine.ReadStatus(dir)
	require.NoError(t, err)
	assert.Equal(t, "toy", fixture)
	assert.Equal(t, engine.ClassInfra+": "+infra.Error(), text)
	data, err := os.ReadFile(bazel)
	require.NoError(t, err)
	assert.Contains(t, string(data), "no GPU")
	require.NoError(t, engine.WriteStatus(dir, "toy", &engine.Error{Class: engine.ClassUsage, Msg: "no such engine"}))
	_, _, err = engine.ReadStatus(dir)
	require.ErrorIs(t, err, fs.ErrNotExist, "that is not the machine's fault")
	require.NoError(t, engine.WriteStatus(dir, "toy", nil))
	require.NoError(t, engine.WriteStatus("", "toy", nil), "no folder")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "infra.txt"), []byte("another text\n"), 0o644))
	fixture, text, err = engine.ReadStatus(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"", "another text"}, []string{fixture, text})
}

func TestUse(t *testing.T) {
	for _, tt := range []struct {
		name, engine, file string
		known              bool
	}{{engine.MAX, "max", "", true}, {"some/own.py", "own", "some/own.py", true}, {"nothing", "nothing", "", false}} {
		var job engine.Job
		assert.Equal(t, tt.known, job.Use(tt.name), tt.name)
		assert.Equal(t, []string{tt.engine, tt.file}, []string{job.Engine, job.EngineFile}, tt.name)
	}
	assert.Empty(t, engine.Raised(errors.New("x")))
	assert.Empty(t, engine.Raised(&engine.Error{Class: engine.ClassInfra, Case: "a"}), "the machine")
	assert.Equal(t, "a", engine.Raised(&engine.Error{Class: "model", Case: "a"}))
}

// Hooks may not change what a model returns: it runs with them and without.
func TestObserve(t *testing.T) {
	made := func(name string, v float32) *engine.Result {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "0"), 0o755))
		x := toy.Of(t, []float32{v}, 1)
		out, err := os.Create(filepath.Join(dir, "0", "returned.safetensors"))
		require.NoError(t, err)
		require.NoError(t, errors.Join(safetensors.Write(out, []tensor.Named{{Name: name, Tensor: x}}, nil), out.Close()))
		return &engine.Result{Runs: []*dump.Run{dump.New(dir, dump.Info{Case: "c"}, dump.OrderRunFile,
			[]dump.Entry{{Step: "0", Layer: "returned", Port: "output_0", Tensor: x}})}}
	}
	const name = "returned-output_0"
	for _, tt := range []struct {
		engine      string
		seen, blind *engine.Result // nil: it fails
		note, err   string
		reason      string
	}{
		{engine.MAX, made(name, 1), made(name, 1), "observer check: max returns the same without hooks, all 1 outputs bit for bit", "", "the same"},
		{engine.MAX, made(name, 1), made(name, 2), "without hooks max returns something else: 1 of 1 outputs differ, the first in case c, step 0", "", "another"},
		{engine.MAX, made("other", 1), made(name, 1), "", "has no returned-output_0, which the model returned without hooks", "it is not there"},
		{engine.MAX, nil, made(name, 1), "", "it fails", "with hooks"},
		{engine.MAX, made(name, 1), nil, "", "observer check: it fails", "without"},
		{engine.Command, made(name, 1), nil, "observer check: not made", "", "a program of one's own"},
	} {
		var cases []int
		job := engine.Job{Engine: tt.engine, Cases: []engine.Case{{Name: "c"}, {Name: "along", Passes: [][]dump.PassItem{{}}}}}
		r, note, err := engine.Observe(job, func(j engine.Job) (*engine.Result, error) {
			cases = append(cases, len(j.Cases))
			of := map[string]*engine.Result{engine.Seen: tt.seen, "": tt.seen, engine.Blind: tt.blind}[j.Observer]
			if of == nil {
				return nil, errors.New("it fails")
			}
			return of, nil
		})
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Same(t, tt.seen, r, tt.reason)
		assert.Contains(t, note, tt.note, tt.reason)
		assert.Equal(t, []int{2, 1}[:len(cases)], cases, "%s: in one pass alone", tt.reason)
	}
}
