package dump_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/maxckpt"
	"github.com/goparity/goparity/tensor/npy"
	"github.com/goparity/goparity/tensor/raw"
	"github.com/goparity/goparity/tensor/safetensors"
)

// folder writes files: the extension says the format, the value is the tensor's only element.
func folder(t *testing.T, files map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for name, v := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		var b bytes.Buffer
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		case float64:
			x, err := tensor.Of([]float32{float32(v)}, 1)
			require.NoError(t, err)
			switch filepath.Ext(name) {
			case ".max":
				require.NoError(t, maxckpt.Write(&b, strings.TrimSuffix(filepath.Base(name), ".max"), x))
			case ".npy":
				require.NoError(t, npy.Write(&b, x))
			default:
				_, err := x.WriteTo(&b)
				require.NoError(t, err)
			}
		case []tensor.Named:
			require.NoError(t, safetensors.Write(&b, v, nil))
		}
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	return dir
}

func named(t *testing.T, names ...string) (out []tensor.Named) {
	for i, n := range names {
		x, err := tensor.Of([]float32{float32(i)}, 1)
		require.NoError(t, err)
		out = append(out, tensor.Named{Name: n, Tensor: x})
	}
	return out
}

func run(order ...string) string {
	var l []string
	for _, o := range order {
		l = append(l, fmt.Sprintf("[%s]", o))
	}
	return `{"schema":1,"engine":"max","case":"c","order":[` + strings.Join(l, ",") + `]}`
}

func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		files  map[string]any
		opt    dump.Options
		want   string // "step layer port" of each entry
		by     string
		mode   string
		notes  string
		reason string
	}{
		{
			name: "run.json",
			files: map[string]any{"run.json": run(`"0","b","output","b-output.max"`, `0,"a","output","a-output.max"`,
				`"1","a","output","a-output.max"`), "0/a-output.max": 1., "0/b-output.max": 2., "1/a-output.max": 3.},
			want: "0 b output, 0 a output, 1 a output", by: dump.OrderRunFile, mode: "standard",
			reason: "the order of run.json, a step may be a number",
		},
		{
			name: "flat",
			files: map[string]any{"layers.10-output.max": 1., "layers.2-output.npy": 2., "README.md": "x",
				".hidden": "x"},
			want: "0 layers.2 output, 0 layers.10 output", by: dump.OrderNatural, mode: "standard",
			reason: "formats mix, natural order",
		},
		{
			name: "names",
			files: map[string]any{"0/tensor_names.txt": "b-output\na-output\ngone-output\nlost.3\nlost.1\nlost.2\n",
				"0/a-output.max": 1., "0/b-output.max": 2., "0/c-output.max": 2.},
			want: "0 b output, 0 a output, 0 c output", by: dump.OrderNames, mode: "standard",
			notes:  `4 tensors that have no file, the first is "gone-output"`,
			reason: "tensor_names.txt gives the order, the rest follows",
		},
		{
			name:  "steps",
			files: map[string]any{"10/a-output.max": 1., "2/a-output.max": 2.},
			want:  "2 a output, 10 a output", by: dump.OrderNatural, mode: "standard",
			reason: "step folders in natural order",
		},
		{
			name: "no order",
			files: map[string]any{"model-output.max": 1., "model.lm_head-output.max": 1.,
				"model.model.norm-output.max": 1., "model.model.embed-output.max": 1.,
				"model.model.layers.0-output.max": 1., "model.model.layers.0.norm-output.max": 1.,
				"model.model.layers.0.mlp-output.max": 1., "model.model-output.max": 1.},
			want: "0 model.model.embed output, 0 model.model.layers.0.mlp output, 0 model.model.layers.0.norm output, " +
				"0 model.model.layers.0 output, " +
				"0 model.model.norm output, 0 model.model output, 0 model.lm_head output, 0 model output",
			by: dump.OrderNatural, mode: "standard",
			reason: "a container follows what is inside it, a final norm and a head follow the blocks",
		},
		{
			name:  "container",
			files: map[string]any{"all.safetensors": named(t, "z-output", "a-output", "tapped")},
			want:  "0 z output, 0 a output, 0 tapped tap", by: dump.OrderNatural, mode: "standard",
			reason: "names of a container are labels",
		},
		{
			name:  "nested",
			files: map[string]any{"a-computed_0.max": 1., "a-output.max": 1.},
			want:  "0 a computed_0, 0 a output", by: dump.OrderNatural, mode: "injected",
			reason: "computed ports tell an injected run",
		},
		{
			name:  "headerless",
			files: map[string]any{"model.a-output": 1., "model.b-output": 1.},
			opt: dump.Options{Raw: func(label string, size int64) (raw.Spec, error) {
				return raw.Spec{DType: tensor.F32, Shape: []int{1}}, nil
			}},
			want: "0 model.a output, 0 model.b output", by: dump.OrderNatural, mode: "standard",
			reason: "MAX's style BINARY: the file is named exactly like the label",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := dump.Open(folder(t, tt.files), tt.opt)
			require.NoError(t, err, tt.reason)
			defer r.Close()
			var got []string
			for i, e := range r.Entries {
				assert.Equal(t, i, e.Seq)
				got = append(got, e.Step+" "+e.Layer+" "+e.Port)
			}
			if tt.name == "container" { // openFolder sorts labels, the file alone keeps its order
				assert.ElementsMatch(t, strings.Split(tt.want, ", "), got)
			} else {
				assert.Equal(t, tt.want, strings.Join(got, ", "), tt.reason)
			}
			assert.Equal(t, tt.by, r.OrderBy)
			assert.Equal(t, tt.mode, r.Info.Mode)
			assert.Contains(t, strings.Join(r.Notes, "\n"), tt.notes)
		})
	}
}

func TestOpenFile(t *testing.T) {
	dir := folder(t, map[string]any{"all.safetensors": named(t, "z-output", "a-output"), "x-output.npy": 1.})
	r, err := dump.Open(filepath.Join(dir, "all.safetensors"), dump.Options{})
	require.NoError(t, err)
	defer r.Close()
	assert.Equal(t, "a", r.Entries[0].Layer, "writers of .safetensors sort: their order says nothing")
	assert.Equal(t, dump.OrderNatural, r.OrderBy)
	r2, err := dump.Open(filepath.Join(dir, "x-output.npy"), dump.Options{})
	require.NoError(t, err)
	defer r2.Close()
	assert.Equal(t, "x-output", r2.Entries[0].Label())
	require.NoError(t, r2.Changed())
	require.NoError(t, os.Chtimes(r2.Path, time.Time{}, time.Unix(1, 0)))
	require.Error(t, r2.Changed(), "what was read proves nothing any more")
}

func TestOpenErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		files  map[string]any
		want   []string
		reason string
	}{
		{"empty", map[string]any{"README.md": "x"}, []string{"no tensors", ".safetensors"},
			"a folder without tensors is not a dump"},
		{"missing file", map[string]any{"run.json": run(`"0","a","output","a-output.max"`)},
			[]string{"a-output.max", "order entry 0"}, "a listed file that is gone is damage"},
		{"escape", map[string]any{"run.json": run(`"0","a","output","../../etc/passwd"`)},
			[]string{"order entry 0", "leaves the dump's folder"}, "nothing outside the folder is read"},
		{"escape by step", map[string]any{"run.json": run(`"..","a","output","x.max"`)},
			[]string{"leaves the dump's folder"}, "nothing outside the folder is read"},
		{"absolute", map[string]any{"run.json": run(`"0","a","output","/x.max"`)}, []string{"leaves the dump's folder"},
			"nothing outside the folder is read"},
		{"not json", map[string]any{"run.json": "{\n\"schema\": 1,\n oops}"}, []string{"run.json", "line 3"},
			"the error names the line"},
		{"schema", map[string]any{"run.json": `{"schema":3}`}, []string{"schema is 3", "reads 1 to 2"},
			"a later version"},
		{"no schema", map[string]any{"run.json": `{"engine":"max"}`}, []string{"schema is 0", "reads 1 to 2"},
			"nothing says how to read it"},
		{"mode", map[string]any{"run.json": `{"schema":1,"mode":"wild"}`}, []string{`mode is "wild"`}, "unknown mode"},
		{"short entry", map[string]any{"run.json": `{"schema":1,"order":[["0","a"]]}`},
			[]string{`["step","layer","port","file"]`}, "an entry is a list of four"},
		{"twice", map[string]any{"run.json": run(`"0","a","output","a.max"`, `"0","a","output","a.max"`),
			"0/a.max": 1.}, []string{`has "a-output" twice`}, "one name, one tensor"},
		{"two formats", map[string]any{"a-output.max": 1., "a-output.npy": 1.}, []string{`has "a-output" twice`},
			"which one is meant cannot be known"},
		{"truncated", map[string]any{"a-output.max": "\x93\xf0"}, []string{"a-output.max"}, "the error names the file"},
		{"headerless", map[string]any{"a-output": 1.}, []string{"no tensors"}, "headerless files need --raw"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := dump.Open(folder(t, tt.files), dump.Options{})
			require.Error(t, err, tt.reason)
			for _, w := range tt.want {
				assert.ErrorContains(t, err, w, tt.reason)
			}
		})
	}
	_, err := dump.Open(filepath.Join(t.TempDir(), "nowhere"), dump.Options{})
	assert.ErrorContains(t, err, "nowhere")
}

// What the folders in a folder are: dumps of cases, or steps.
func TestCaseFolders(t *testing.T) {
	const info = `{"schema":1,"case":"run","order":[["0","a","output","a-output.max"]]}`
	named := `{"schema":1,"case":"other","order":[["0","a","output","a-output.max"]]}`
	for _, tt := range []struct {
		files  map[string]any
		cases  []string
		want   string
		steps  []string // of the first run
		reason string
	}{
		{map[string]any{"x/run.json": info, "x/0/a-output.max": 1., "y/run.json": info, "y/0/a-output.max": 1.}, nil,
			`"x", "y"`, []string{"0"}, "parity run names no case"},
		{map[string]any{"x/run.json": named, "x/0/a-output.max": 1.}, nil, `"other"`, []string{"0"}, "run.json counts"},
		{map[string]any{"x/run.json": `{"schema":1,"order":[["0","a","output","a-output.max"]]}`, "x/0/a-output.max": 1.}, nil, `"x"`, []string{"0"},
			"else the folder's name"},
		{map[string]any{"x/run.json": named, "x/0/a-output.max": 1.}, []string{"x"}, `"x"`, []string{"0"},
			"but not a case that no one asks for"},
		{map[string]any{"x/run.json": named, "x/0/a-output.max": 1.}, []string{"x", "other"}, `"other"`, []string{"0"},
			"run.json counts where both are asked for"},
		{map[string]any{"x/a-output.max": 1., "y/a-output.max": 1.}, []string{"x", "y"}, `"x", "y"`, []string{"0"},
			"folders of cases without steps"},
		{map[string]any{"x/a-output.max": 1., "y/a-output.max": 1.}, nil, `""`, []string{"x", "y"},
			"without cases they are steps"},
		{map[string]any{"x/run.json": info, "x/0/a-output.max": 1., "y/a-output.max": 1.}, []string{"x", "y"},
			`"x", "y"`, []string{"0"}, "one of them has a run.json"},
		{map[string]any{"x/0/a-output.max": 1., "x/1/a-output.max": 1., "y/0/a-output.max": 1.}, nil, `"x", "y"`,
			[]string{"0", "1"}, "folders with steps are cases"},
		{map[string]any{"0/a-output.max": 1., "1/a-output.max": 1.}, []string{"0", "1"}, `""`, []string{"0", "1"},
			"numbers are steps"},
		{map[string]any{"0/0/a-output.max": 1., "1/0/a-output.max": 1.}, []string{"0", "1"}, `"0", "1"`, []string{"0"},
			"numbers with steps are cases"},
		{map[string]any{"a-output.max": 1., "x/a-output.max": 1.}, []string{"x"}, `""`, []string{"0"},
			"a flat folder, whatever else is in it"},
	} {
		runs, err := dump.OpenCases(folder(t, tt.files), dump.Options{Cases: tt.cases})
		require.NoError(t, err, tt.reason)
		assert.Equal(t, tt.want, dump.CaseNames(runs), tt.reason)
		assert.Equal(t, tt.steps, runs[0].Steps(), tt.reason)
		require.NoError(t, dump.CloseAll(runs), tt.reason)
	}
}

// A .max file knows its tensor's name: that of another file is damage, a renamed file is not.
func TestNameInMaxFile(t *testing.T) {
	x, err := tensor.Of([]float32{1}, 1)
	require.NoError(t, err)
	for _, tt := range []struct{ key, beside, note, err, reason string }{
		{"model.layers.1.mlp-output", "", "", "", "as it was written"},
		{"model.layers.0.mlp-output", "model.layers.0.mlp-output", "", "calls its tensor", "another layer's tensor in this file"},
		{"model.layers.0.mlp-output", "", `calls its tensor "model.layers.0.mlp-output"`, "", "a file that was renamed to another layer"},
		{"tapped", "", `calls its tensor "tapped"`, "", "a renamed file"},
	} {
		var b, other bytes.Buffer
		require.NoError(t, maxckpt.Write(&b, tt.key, x))
		files := map[string]any{"model.layers.1.mlp-output.max": b.String()}
		if tt.beside != "" {
			require.NoError(t, maxckpt.Write(&other, tt.beside, x))
			files[tt.beside+".max"] = other.String()
		}
		r, err := dump.Open(folder(t, files), dump.Options{})
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, tt.reason)
			require.ErrorIs(t, err, tensor.ErrCorrupt)
			continue
		}
		require.NoError(t, err, tt.reason)
		assert.Contains(t, strings.Join(r.Notes, "\n"), tt.note, tt.reason)
		require.NoError(t, r.Close())
	}
}

// Arrays of ml_dtypes say only that an element has one byte.
func TestFP8(t *testing.T) {
	x, err := tensor.New(tensor.F8E4M3FN, []int{2}, []byte{0x38, 0x40})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, x))
	dir := folder(t, map[string]any{"a-output.npy": b.String()})
	_, err = dump.Open(dir, dump.Options{})
	require.ErrorIs(t, err, tensor.ErrUnsupported)
	r, err := dump.Open(dir, dump.Options{FP8: tensor.F8E4M3FN})
	require.NoError(t, err)
	defer r.Close()
	assert.Equal(t, []float64{1, 2}, []float64{r.Entries[0].Tensor.At(0), r.Entries[0].Tensor.At(1)})
}

func FuzzRunFile(f *testing.F) {
	f.Add([]byte(run(`"0","a","output","a.max"`)))
	f.Add([]byte(`{"schema":1,"cases":[{"schema":1,"order":[["0","a","tap","a.max","n"]]}]}`))
	f.Add([]byte(full))
	f.Add([]byte(`{"schema":2,"token_ids":[[1,2,3]],"path":"prefix","passes":[[{"sequence":0,"from":0,"to":2}],[{"from":0,"to":1,"fresh":true}]],"pad_mask":[[1]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, dump.RunFile), data, 0o644))
		if runs, err := dump.OpenCases(dir, dump.Options{}); err == nil {
			t.Errorf("%d runs of a folder without a tensor file", len(runs))
			dump.CloseAll(runs)
		}
		if info, err := dump.ParseInfo(dump.RunFile, data); err == nil {
			b, err := json.Marshal(info)
			require.NoError(t, err)
			again, err := dump.ParseInfo(dump.RunFile, b)
			require.NoError(t, err, "what was read can be written and read again: %s", b)
			twice, err := json.Marshal(again)
			require.NoError(t, err)
			require.Equal(t, string(b), string(twice))
			_ = info.Describe()
			_ = info.NotJudged()
			_ = info.Judgeable()
		}
		var e dump.OrderEntry
		if json.Unmarshal(data, &e) == nil {
			b, err := json.Marshal(e)
			require.NoError(t, err)
			var again dump.OrderEntry
			require.NoError(t, json.Unmarshal(b, &again))
			require.Equal(t, e, again)
		}
	})
}

// docs/support.md says of each format what wrote the files that were read.
func TestFormatsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "support.md"))
	require.NoError(t, err)
	ends := strings.Fields(strings.NewReplacer(",", "", " or ", " ").Replace(dump.Formats()))
	require.Greater(t, len(ends), 5)
	for _, end := range ends {
		assert.Contains(t, string(page), "`"+end+"`")
	}
}
