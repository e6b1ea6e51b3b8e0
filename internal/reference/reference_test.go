package reference_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/reference"
	"github.com/goparity/goparity/internal/store"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// twice is the program y = x + x.
const twice = `{"schema":1,"engine":"torch","case":"a",
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}}],
"ops":[{"op":"aten.add.Tensor","args":{"self":"%0","other":"%0","alpha":1},"out":["%1"],"layer":"model","call":1}],
"passes":[{"step":"0","ops":[0,1],"ports":{"model-input_0":["%0",0,1],"model-output":["%1",1,1]}}]}`

func run(t *testing.T, layer, port string, values ...float32) *dump.Run {
	t.Helper()
	x, err := tensor.Of(values, len(values))
	require.NoError(t, err)
	return dump.New("golden", dump.Info{}, dump.OrderRunFile, []dump.Entry{{Step: "0", Layer: layer, Port: port, Tensor: x}})
}

// The program of a golden that is kept, with its constants.
func TestInStore(t *testing.T) {
	own := run(t, "model", "output", 1, 2)
	for _, tt := range []struct {
		program   string
		constants bool
		note      string
		reason    string
	}{
		{"", false, "", "none"},
		{twice, false, "", "its own"},
		{twice, true, "", "with constants"},
		{strings.ReplaceAll(twice, "[2]", "[3]"), false, "it is the program of another run", "another"},
		{twice[:40], false, "judged without the reference's program", "damaged"},
	} {
		dir, kept := t.TempDir(), store.Recording{Kept: store.Kept{Variant: "float32", Info: dump.Info{Case: "a", Engine: "torch", Mode: dump.Standard}}, Run: own}
		if tt.program != "" {
			kept.Program = filepath.Join(dir, "program.json")
			require.NoError(t, os.WriteFile(kept.Program, []byte(tt.program), 0o644))
		}
		if tt.constants {
			out, err := os.Create(filepath.Join(dir, "program.safetensors"))
			require.NoError(t, err)
			require.NoError(t, errors.Join(safetensors.Write(out, []tensor.Named{{Name: "c", Tensor: own.Entries[0].Tensor}}, nil), out.Close()))
		}
		golden := filepath.Join(dir, "golden")
		require.NoError(t, store.Update(t.Context(), golden, nil, func(*store.Store) (*store.Change, error) { return &store.Change{Add: []store.Recording{kept}}, nil }))
		s, err := store.Open(golden)
		require.NoError(t, err)
		defer s.Close()
		r, err := s.Golden("float32", "a")
		require.NoError(t, err)
		p := reference.InStore(s, "float32", "a", r)
		assert.Contains(t, strings.Join(r.Notes, ""), tt.note, tt.reason)
		assert.Equal(t, tt.note == "", len(r.Notes) == 0, tt.reason)
		assert.Equal(t, tt.note == "" && tt.program != "", p != nil, tt.reason)
		if p != nil {
			_, err := p.Constant("c")
			assert.Equal(t, tt.constants, err == nil, tt.reason)
		}
	}
}

func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		program string
		golden  *dump.Run
		want    string
		reason  string
	}{
		{twice, run(t, "model", "output", 1, 2), "", "its own"},
		{twice, run(t, "model", "output", 1, 2, 3), "passes: step 0: model-output is [2], in the golden [3]: it is the program of another run", "of other tokens"},
		{twice, run(t, "other", "output", 1, 2), "passes: none of its ports is in the golden: it is the program of another run", "of another model"},
		{twice[:40], run(t, "model", "output", 1, 2), "not JSON", "damaged"},
		{`{"schema":2}`, run(t, "model", "output", 1, 2), "schema 2", "of another version"},
	} {
		file := filepath.Join(t.TempDir(), "program.json")
		require.NoError(t, os.WriteFile(file, []byte(tt.program), 0o644))
		p, err := reference.Open(file, tt.golden.Entries)
		assert.Nil(t, reference.Beside(tt.golden), "none is named")
		assert.Empty(t, tt.golden.Notes, tt.reason)
		tt.golden.Program = file
		beside := reference.Beside(tt.golden)
		if tt.want == "" {
			require.NoError(t, err, tt.reason)
			require.NotNil(t, beside, tt.reason)
			require.NoError(t, errors.Join(p.Close(), beside.Close()))
			continue
		}
		require.ErrorContains(t, err, tt.want, tt.reason)
		assert.ErrorContains(t, err, file, tt.reason)
		assert.Nil(t, beside, tt.reason)
		note := strings.Join(tt.golden.Notes, "")
		assert.Contains(t, note, "case golden: judged without the reference's program: "+err.Error(), tt.reason)
		assert.Contains(t, note, "record it again: parity golden program MODEL --golden DIR")
	}
}

func TestCase(t *testing.T) {
	ids := func(step string, values ...int64) dump.Entry {
		x, err := tensor.Of(values, 1, len(values))
		require.NoError(t, err)
		return dump.Entry{Step: step, Layer: "model.embed_tokens", Port: "input_0", Tensor: x}
	}
	out := func(step string) dump.Entry {
		return dump.Entry{Step: step, Layer: "model", Port: "output", Tensor: ids("0", 1).Tensor}
	}
	for _, tt := range []struct {
		info    dump.Info
		entries []dump.Entry
		want    engine.Case
		err     string
		reason  string
	}{
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 1}, "", "a prefill"},
		{dump.Info{}, []dump.Entry{ids("0", 1, 2), out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 1}, "", "the inputs show the tokens"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{ids("0", 1, 2), ids("1", 3), ids("2", 4)},
			engine.Case{TokenIDs: [][]int{{1, 2}}, Steps: 3, Forced: [][]int{{3, 4}}}, "", "decode steps"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2]]")}, []dump.Entry{out("0"), out("1")},
			engine.Case{}, "has 2 steps, and does not show which tokens", "no one knows what was decoded"},
		{dump.Info{TokenIDs: json.RawMessage("[[0,1,2],[3,4,5]]"), PadMask: [][]int{{0, 1, 1}, {1, 1, 1}}}, []dump.Entry{out("0")},
			engine.Case{TokenIDs: [][]int{{1, 2}, {3, 4, 5}}, Steps: 1}, "", "padding is the reference's own"},
		{dump.Info{TokenIDs: json.RawMessage("[[1,2,3]]"), Path: "chunked:2",
			Passes: [][]dump.PassItem{{{From: 0, To: 2}}, {{From: 2, To: 3}}}}, []dump.Entry{out("0"), out("1")},
			engine.Case{TokenIDs: [][]int{{1, 2, 3}}, Steps: 1}, "", "one pass judges all paths"},
	} {
		tt.info.Case, tt.want.Name = "a", "a"
		got, err := reference.Case(dump.New("d", tt.info, dump.OrderRunFile, tt.entries))
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, got, tt.reason)
	}
}

// passes is the program of forward passes of which each was given ids and a mask and makes one number of each id;
// operand says which value the operator of a pass takes.
func passes(t *testing.T, ids, masks [][][]int64, operand func(pass int) int) *program.Program {
	t.Helper()
	var values, ops, list []string
	file := &tensor.File{}
	for k := range ids {
		for _, in := range []struct {
			name string
			rows [][]int64
		}{{"input_ids", ids[k]}, {"attention_mask", masks[k]}} {
			var all []int64
			for _, row := range in.rows {
				all = append(all, row...)
			}
			if all == nil {
				continue
			}
			x, err := tensor.Of(all, len(in.rows), len(in.rows[0]))
			require.NoError(t, err)
			file.Tensors = append(file.Tensors, tensor.Named{Name: fmt.Sprintf("input:%d:%s", k, in.name), Tensor: x})
		}
		shape := "[1,2]"
		if ids[k] != nil {
			shape = fmt.Sprintf("[%d,%d]", len(ids[k]), len(ids[k][0]))
		}
		v := 3 * k
		values = append(values, fmt.Sprintf(`{"id":%d,"shape":%s,"dtype":"int64","from":{"input":"input_ids","step":"%d"}}`, v, shape, k),
			fmt.Sprintf(`{"id":%d,"shape":%s,"dtype":"float32","from":{"op":%d}}`, v+1, shape, 2*k),
			fmt.Sprintf(`{"id":%d,"shape":%s,"dtype":"complex64","from":{"op":%d}}`, v+2, shape, 2*k+1))
		for i, from := range []int{operand(k), 3 * len(ids)} { // the second takes a weight
			ops = append(ops, fmt.Sprintf(`{"op":"aten.some.default","args":{"self":"%%%d"},"out":["%%%d"],"layer":"model","call":1}`, from, v+1+i))
		}
		list = append(list, fmt.Sprintf(`{"step":"%d","ops":[%d,%d],"ports":{"model-input_0":["%%%d",%d,%d],"model-output":["%%%d",%d,%d],"model.freqs-output":["%%%d",%d,%d]}}`,
			k, 2*k, 2*k+2, v, 2*k, 2*k, v+1, 2*k+1, 2*k+1, v+2, 2*k+2, 2*k+2))
	}
	values = append(values, fmt.Sprintf(`{"id":%d,"shape":[2],"dtype":"float32","from":{"weight":"w"}}`, 3*len(ids)))
	text := fmt.Sprintf(`{"schema":1,"engine":"torch 2.9","case":"c","values":[%s],"ops":[%s],"passes":[%s]}`,
		strings.Join(values, ","), strings.Join(ops, ","), strings.Join(list, ","))
	p, err := program.Parse("p", []byte(text), func() (*tensor.File, error) { return file, nil })
	require.NoError(t, err)
	return p
}

// What stands for the golden of a program: its ports, what the model was given, and the tokens of each pass.
func TestBlank(t *testing.T) {
	own := func(pass int) int { return 3 * pass }
	first, second := [][]int64{{0, 1, 2}, {3, 4, 5}}, [][]int64{{6, 7}}
	part := func(sequence, to int) dump.PassItem { return dump.PassItem{Sequence: sequence, To: to, Fresh: true} }
	for _, tt := range []struct {
		ids, masks [][][]int64
		operand    func(pass int) int
		tokens     string
		padded     [2][][]int // the padding of the two passes
		passes     [][]dump.PassItem
		reason     string
	}{
		{[][][]int64{first, second}, [][][]int64{{{1, 1, 1}, {1, 1, 1}}, nil}, own, "[[0,1,2],[3,4,5],[6,7]]", [2][][]int{},
			[][]dump.PassItem{{part(0, 3), part(1, 3)}, {part(2, 2)}}, "passes of their own"},
		{[][][]int64{first, second}, [][][]int64{{{0, 1, 1}, {1, 1, 1}}, {{1, 0}}}, own, "[[1,2],[3,4,5],[6]]", [2][][]int{{{0, 1, 1}, {1, 1, 1}}, {{1, 0}}},
			[][]dump.PassItem{{part(0, 2), part(1, 3)}, {part(2, 1)}}, "with padding"},
		{[][][]int64{first, second}, [][][]int64{{{0, 1, 1}, {1, 1, 1}}, nil}, func(int) int { return 0 }, "[[0,1,2],[3,4,5]]", [2][][]int{{{0, 1, 1}, {1, 1, 1}}},
			nil, "the second goes on with what the first was given"},
		{[][][]int64{first, second}, [][][]int64{nil, nil}, func(pass int) int { return pass }, "[[0,1,2],[3,4,5]]", [2][][]int{}, nil,
			"the second goes on with what the first made"},
		{[][][]int64{first}, [][][]int64{{{1, 1, 0}, {1, 1, 1}}}, own, "[[0,1,2],[3,4,5]]", [2][][]int{{{1, 1, 0}, {1, 1, 1}}}, nil, "one pass"},
		{[][][]int64{first, nil}, [][][]int64{nil, nil}, own, "[[0,1,2],[3,4,5]]", [2][][]int{}, nil, "nobody knows what the second was given"},
	} {
		runs, err := reference.Blanks([]*program.Program{passes(t, tt.ids, tt.masks, tt.operand)})
		require.NoError(t, err, tt.reason)
		info := runs[0].Info
		assert.JSONEq(t, tt.tokens, string(info.TokenIDs), tt.reason)
		assert.Equal(t, tt.padded, [2][][]int{info.PadMask, info.PadMasks["1"]}, tt.reason)
		assert.Equal(t, tt.passes, info.Passes, tt.reason)
		assert.Equal(t, []string{"torch", "2.9"}, []string{info.Engine, info.Versions["torch"]}, tt.reason)
		require.Len(t, runs[0].Entries, 2*len(tt.ids), "%s: no complex numbers", tt.reason)
		in, out := runs[0].Entries[0], runs[0].Entries[1]
		assert.Equal(t, []float64{0, 5}, []float64{in.Tensor.At(0), in.Tensor.At(5)}, "%s: what it was given", tt.reason)
		assert.Equal(t, []string{"model", "output", "0"}, []string{out.Layer, out.Port, out.Step}, tt.reason)
		assert.Equal(t, tensor.F32, out.Tensor.DType(), tt.reason)
		assert.Equal(t, []int{2, 3}, out.Tensor.Shape(), tt.reason)
		if len(tt.ids) > 1 {
			assert.NotEqual(t, out.Tensor.At(0), runs[0].Entries[3].Tensor.At(0), "%s: another number for each value", tt.reason)
		}
	}
}

// A program lies in a folder of its case, or alone where there is one run.
func TestOfCase(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(twice), 0o644))
		return file
	}
	alone, of := write("program.json"), write("a/program.json")
	for _, tt := range []struct {
		path, name string
		only       bool
		file, err  string
		reason     string
	}{
		{alone, "a", true, alone, "", "a file"},
		{alone, "a", false, "", "is of one case", "one file for several cases"},
		{dir, "a", false, of, "", "a folder of the case"},
		{dir, "a", true, of, "", "which is preferred"},
		{dir, "b", true, alone, "", "a folder with one program"},
		{dir, "b", false, "", filepath.Join(dir, "b"), "a case without one"},
		{filepath.Join(dir, "x"), "b", true, "", filepath.Join(dir, "x", "b"), "no folder"},
	} {
		p, err := reference.OfCase(tt.path, dump.New("r", dump.Info{Case: tt.name}, dump.OrderRunFile, nil), tt.only)
		if tt.err != "" {
			assert.ErrorContains(t, err, tt.err, tt.reason)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.file, p.File, tt.reason)
		require.NoError(t, p.Close())
	}
}

// What is replayed is the same in memory and in the file, which goes in the end.
func TestKeep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var opt judge.AloneOptions
	undo, err := reference.Keep(&opt)
	require.NoError(t, err)
	large, err := tensor.Of([]float32{7}, 1)
	require.NoError(t, err)
	large, err = large.Broadcast(reference.InMemory/4 - 2) // all but 8 bytes
	require.NoError(t, err)
	_, err = opt.Keep(large)
	require.NoError(t, err)
	files := func() []string {
		names, err := filepath.Glob(filepath.Join(os.TempDir(), "goparity-replayed-*", "tensors"))
		require.NoError(t, err)
		return names
	}
	var kept []*tensor.Tensor
	for k := range 4 {
		x, err := tensor.Of([]float32{float32(k), 1}, 2)
		require.NoError(t, err)
		x, err = opt.Keep(x)
		require.NoError(t, err)
		kept = append(kept, x)
		assert.Equal(t, k > 0, len(files()) == 1, "what is more than the limit is written")
	}
	for k, x := range kept {
		assert.Equal(t, []float64{float64(k), 1}, []float64{x.At(0), x.At(1)})
	}
	require.NoError(t, undo())
	assert.Empty(t, files())
	undo, err = reference.Keep(&opt)
	require.NoError(t, err)
	assert.NoError(t, undo(), "nothing was kept")
}
