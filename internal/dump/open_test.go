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

// files are those of the names, of one element, 1, 2, … in their order, in the format that the extension says, and others
// by their name and what they hold.
func files(names string, others ...any) map[string]any {
	out := map[string]any{}
	for i, name := range strings.Fields(names) {
		out[name] = float64(i + 1)
	}
	for i := 0; i < len(others); i += 2 {
		out[others[i].(string)] = others[i+1]
	}
	return out
}

// folder writes files.
func folder(t testing.TB, files map[string]any) string {
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

func named(names ...string) (out []tensor.Named) {
	for i, n := range names {
		x, _ := tensor.Of([]float32{float32(i)}, 1)
		out = append(out, tensor.Named{Name: n, Tensor: x})
	}
	return out
}

// maxFile is a .max file that calls its tensor so.
func maxFile(t *testing.T, key string) string {
	var b bytes.Buffer
	require.NoError(t, maxckpt.Write(&b, key, named(key)[0].Tensor))
	return b.String()
}

// run is a run.json of some entries, and of other keys.
func run(order string, keys ...string) string {
	keys = append(keys, `"schema": 1`)
	return "{" + strings.Join(keys, ", ") + `, "order": [` + order + "]}"
}

const (
	a0   = `["0", "a", "output", "a-output.max"]`
	a0a1 = a0 + `, [1, "a", "output", "a-output.max"]`
)

// told is what was opened: of each run its case, its entries, who says their order, its mode, its program and notes, as
// far as they are not the usual ones.
func told(dir string, runs []*dump.Run) string {
	var all []string
	for _, r := range runs {
		var entries []string
		for i, e := range r.Entries {
			values := make([]float64, e.Tensor.Len())
			e.Tensor.Float64s(values, 0)
			text := fmt.Sprintf("%s %s=%v", e.Step, e.Label(), strings.Trim(fmt.Sprint(values), "[]"))
			if e.Printed != nil {
				text += " printed"
			}
			if e.Seq != i {
				text += fmt.Sprintf(" at %d", e.Seq)
			}
			entries = append(entries, text)
		}
		text := strings.Join(entries, ", ")
		if r.Info.Case != "" {
			text = r.Info.Case + ": " + text
		}
		if r.OrderBy != dump.OrderNatural {
			text += " by " + r.OrderBy
		}
		if r.Info.Mode != dump.Standard {
			text += " " + r.Info.Mode + " " + r.Info.Injection
		}
		if r.Program != "" {
			text += " of " + filepath.ToSlash(strings.TrimPrefix(r.Program, dir+string(filepath.Separator)))
		}
		all = append(all, strings.Join(append([]string{text}, r.Notes...), " | "))
	}
	return strings.Join(all, "; ")
}

func TestOpen(t *testing.T) {
	one := func(string, int64) (raw.Spec, error) { return raw.Spec{DType: tensor.F32, Shape: []int{1}}, nil }
	cases := func(names ...string) dump.Options { return dump.Options{Cases: names} }
	none := dump.Options{}
	other := run(a0, `"case": "other"`)
	unnamed := run(a0, `"case": "run"`)
	const log = "model.a-output = tensor<1x2xf32> [1.500000e+00, -2.000000e+00]\nx = tensor([[1.0000, 2.0000, 3.0000]], dtype=f32, shape=[1,3])\n"
	style := func(order, raw string) map[string]any {
		return files("", "run.json", run(order, `"raw": {`+raw+`}`), "0/print.log", log, "0/model.a-output", "\x01\x00\x02\x00")
	}
	var fp8 bytes.Buffer
	x, err := tensor.New(tensor.F8E4M3FN, []int{2}, []byte{0x38, 0x40})
	require.NoError(t, err)
	require.NoError(t, npy.Write(&fp8, x))
	several := func(run string) map[string]any {
		return files("", "short.0.safetensors", named("a-output", "b-output"), "run.json", run)
	}
	shared := func(sha string) string {
		return `{"schema": 1, "cases": [{"schema": 1, "case": "short", "sha256": {` + sha + `}, "order": [["0", "a", "output", "short.0.safetensors"],
			["0", "b", "input_0", "short.0.safetensors", "a-output"], ["0", "b", "output", "short.0.safetensors"]]}]}`
	}
	mlp := "model.layers.1.mlp-output.max"
	const norm, attn = "model.layers.0.mlp-output", "model.layers.1.mlp-output"
	whole := one4(`"passes": [[{"sequence": 0, "from": 0, "to": 4}]]`)
	twoSteps := func(run string) map[string]any {
		return files("0/a-output.max 1/a-output.max", "run.json", strings.TrimSuffix(run, "}")+`, "order": [`+a0a1+`]}`)
	}
	weights := func(list string) map[string]any {
		return files("0/a-output.max", "run.json", one4(`"weights": ["w.safetensors", "more/w.safetensors"], `+list),
			"w.safetensors", named("w"), "more/w.safetensors", named("v"))
	}
	look, chunked := dump.Options{Unjudged: true}, passes("chunked:2", "0 0 2|0 2 4")
	for _, tt := range []struct {
		files  map[string]any
		opt    dump.Options
		want   string // with "error: " in front, what an error contains, parted by …
		reason string
	}{
		{files("0/b-output.max 0/a-output.max 1/a-output.max",
			"run.json", run(`["0", "b", "output", "b-output.max"], [0, "a", "output", "a-output.max"], ["1", "a", "output", "a-output.max"]`)), none,
			"0 b-output=1, 0 a-output=2, 1 a-output=3 by run.json", "the order of run.json, a step may be a number"},
		{files("layers.10-output.max layers.2-output.npy", "README.md", "x", ".hidden", "x"), none,
			"0 layers.2-output=2, 0 layers.10-output=1", "formats mix, natural order"},
		{files("0/a-output.max 0/b-output.max 0/c-output.max",
			"0/tensor_names.txt", "b-output\na-output\ngone-output\nlost.3\nlost.1\nlost.2\n"), none,
			`0 b-output=2, 0 a-output=1, 0 c-output=3 by tensor_names.txt | tensor_names.txt lists 4 tensors that have no file, the first is "gone-output"`,
			"tensor_names.txt gives the order, the rest follows"},
		{files("10/a-output.max 2/a-output.max"), none, "2 a-output=2, 10 a-output=1", "step folders in natural order"},
		{files("model-output.max model.lm_head-output.max model.model.norm-output.max model.model.embed-output.max model.model.layers.0-output.max " +
			"model.model.layers.0.norm-output.max model.model.layers.0.mlp-output.max model.model-output.max"), none,
			"0 model.model.embed-output=4, 0 model.model.layers.0.mlp-output=7, 0 model.model.layers.0.norm-output=6, 0 model.model.layers.0-output=5, " +
				"0 model.model.norm-output=3, 0 model.model-output=8, 0 model.lm_head-output=2, 0 model-output=1",
			"a container follows what is inside it, a final norm and a head follow the blocks"},
		{files("", "all.safetensors", named("z-output", "a-output", "tapped")), none,
			"0 a-output=1, 0 tapped=2, 0 z-output=0", "names of a container are labels"},
		{files("a-computed_0.max a-output.max"), none,
			"0 a-computed_0=1, 0 a-output=2 injected nested", "computed ports tell an injected run"},
		{files("model.a-output model.b-output"), dump.Options{Raw: one},
			"0 model.a-output=1, 0 model.b-output=2", "MAX's style BINARY: the file is named exactly like the label"},
		{files("", "a-output.npy", fp8.String()), none, "error: V1", "arrays of ml_dtypes say only that an element has one byte"},
		{files("", "a-output.npy", fp8.String()), dump.Options{FP8: tensor.F8E4M3FN},
			"0 a-output=1 2", "which is known"},

		{files("", "README.md", "x"), none, "error: no tensors … .safetensors", "a folder without tensors is not a dump"},
		{files("", "run.json", run(a0)), none, "error: a-output.max … order entry 0", "a listed file that is gone is damage"},
		{files("", "run.json", run(`["0", "a", "output", "../../etc/passwd"]`)), none, "error: order entry 0 … leaves the dump's folder",
			"nothing outside the folder is read"},
		{files("", "run.json", run(`["..", "a", "output", "x.max"]`)), none, "error: leaves the dump's folder", "by a step, either"},
		{files("", "run.json", run(`["0", "a", "output", "/x.max"]`)), none, "error: leaves the dump's folder", "nor by its whole path"},
		{files("", "run.json", "{\n\"schema\": 1,\n oops}"), none, "error: run.json … line 3", "the error names the line"},
		{files("", "run.json", `{"schema": 3}`), none, "error: schema is 3 … reads 1 to 2", "a later version"},
		{files("", "run.json", `{"engine": "max"}`), none, "error: schema is 0 … reads 1 to 2", "nothing says how to read it"},
		{files("", "run.json", `{"schema": 1, "mode": "wild"}`), none, `error: mode is "wild"`, "unknown mode"},
		{files("", "run.json", run(`["0", "a"]`)), none, `error: ["step","layer","port","file"]`, "an entry is a list of four"},
		{files("0/a-output.max", "run.json", run(a0+", "+a0)), none, `error: has "a-output" twice`, "one name, one tensor"},
		{files("a-output.max a-output.npy"), none, `error: has "a-output" twice`, "which one is meant cannot be known"},
		{files("", "a-output.max", "\x93\xf0"), none, "error: a-output.max", "the error names the file"},
		{files("a-output"), none, "error: no tensors", "headerless files need --raw"},

		{files("x/0/a-output.max y/0/a-output.max", "x/run.json", unnamed, "y/run.json", unnamed), none,
			"x: 0 a-output=1 by run.json; y: 0 a-output=2 by run.json", "parity run names no case"},
		{files("x/0/a-output.max", "x/run.json", other), none, "other: 0 a-output=1 by run.json", "run.json counts"},
		{files("x/0/a-output.max", "x/run.json", run(a0)), none,
			"x: 0 a-output=1 by run.json", "else the folder's name"},
		{files("x/0/a-output.max", "x/run.json", other), cases("x"),
			"x: 0 a-output=1 by run.json", "but not a case that no one asks for"},
		{files("x/0/a-output.max", "x/run.json", other), cases("x", "other"),
			"other: 0 a-output=1 by run.json", "run.json counts where both are asked for"},
		{files("x/a-output.max y/a-output.max"), cases("x", "y"),
			"x: 0 a-output=1; y: 0 a-output=2", "folders of cases without steps"},
		{files("x/a-output.max y/a-output.max"), none, "x a-output=1, y a-output=2", "without cases they are steps"},
		{files("x/0/a-output.max y/a-output.max", "x/run.json", unnamed), cases("x", "y"),
			"x: 0 a-output=1 by run.json; y: 0 a-output=2", "one of them has a run.json"},
		{files("x/0/a-output.max x/1/a-output.max y/0/a-output.max"), none,
			"x: 0 a-output=1, 1 a-output=2; y: 0 a-output=3", "folders with steps are cases"},
		{files("0/a-output.max 1/a-output.max"), cases("0", "1"), "0 a-output=1, 1 a-output=2", "numbers are steps"},
		{files("0/0/a-output.max 1/0/a-output.max"), cases("0", "1"),
			"0: 0 a-output=1; 1: 0 a-output=2", "numbers with steps are cases"},
		{files("a-output.max x/a-output.max"), cases("x"),
			"0 a-output=1 | read as a flat folder: the folders x in it were left out",
			"a flat folder, whatever else is in it"},

		{files("", mlp, maxFile(t, attn)), none,
			"0 model.layers.1.mlp-output=0", "a .max file knows its tensor's name"},
		{files("", mlp, maxFile(t, norm), norm+".max", maxFile(t, norm)), none,
			"error: calls its tensor … another file is called", "another layer's tensor in this file"},
		{files("", mlp, maxFile(t, norm)), none,
			`0 model.layers.1.mlp-output=0 | model.layers.1.mlp-output.max calls its tensor "model.layers.0.mlp-output": the file's name counts`,
			"a file that was renamed to another layer"},
		{files("", mlp, maxFile(t, "tapped")), none,
			`0 model.layers.1.mlp-output=0 | model.layers.1.mlp-output.max calls its tensor "tapped": the file's name counts`,
			"a renamed file"},

		{files("a-output.npy", "program.json", "", "program.safetensors", ""), none,
			"0 a-output=1 of program.json", "a program beside a run is its own, and its constants are no tensors"},
		{files("0/a-output.npy", "program.json", "", "program.safetensors", ""), none,
			"0 a-output=1 of program.json", "also over step folders"},
		{files("a/0/a-output.max b/0/a-output.max", "a/run.json", run(a0), "a/program.json", "", "b/run.json", run(a0)), none,
			"a: 0 a-output=1 by run.json of a/program.json; b: 0 a-output=2 by run.json", "each case has its own"},

		{style(`["0", "model.a", "output", "print.log", "model.a-output"]`, ""), none,
			"0 model.a-output=1.5 -2 printed by run.json | print.log is a log: numbers were compared to the decimals that it shows",
			"MAX's style COMPACT or FULL: a name in the log"},
		{style(`["0", "model.a", "output", "print.log"]`, ""), none,
			"0 model.a-output=1.5 -2 printed by run.json | print.log is a log: numbers were compared to the decimals that it shows",
			"without a name the label counts"},
		{style(`["0", "x", "tap", "print.log"]`, ""), none,
			"0 x=1 2 3 printed by run.json | print.log is a log: numbers were compared to the decimals that it shows",
			"both styles of printing"},
		{style(`["0", "model.b", "output", "print.log"]`, ""), none, `error: has no tensor "model.b-output"`, "a log that lacks what is listed"},
		{style(`["0", "model.a", "output", "model.a-output"]`, `"0/model.a-output": "i16:2"`), none,
			"0 model.a-output=1 2 by run.json", "run.json says what a headerless file holds"},
		{style(`["0", "model.a", "output", "model.a-output"]`, `"0/model.a-output": "f32:2"`), none, "error: model.a-output", "the file is too short"},
		{style(`["0", "model.a", "output", "model.a-output"]`, `"0/model.a-output": "f33:2"`), none, `error: raw: spec "f33:2"`, "no such type"},
		{style(`["0", "model.a", "output", "model.a-output"]`, ""), none, "error: unknown kind of file", "nothing says what it holds"},

		{several(shared("")), none,
			"short: 0 a-output=0, 0 b-input_0=0, 0 b-output=1 by run.json",
			"one run.json may have several cases; an equal tensor is stored once"},
		{several(shared(`"short.0.safetensors": "00"`)), none, "error: damaged", "a hash that does not fit"},
		{several(`{"schema": 4, "cases": [{"schema": 1}]}`), none, "error: schema is 4, this version reads 1 to 3", "a later version"},
		{several(`{"schema": 2, "cases": [{"schema": 1}], "path": "chunked:4"}`), none,
			`error: unknown field "path": next to "cases" want "schema" alone`, "it would say nothing here"},
		{several(`{"schema": 2, "cases": [{"schema": 2, "pth": "one-pass"}]}`), none, `error: did you mean "path"?`, "a case is read like a dump"},
		{several(`{"schema": 1, "cases": []}`), none, "error: it has no cases", "an empty list"},

		{twoSteps(chunked), none,
			`error: run.json": path is "chunked:2", not one-pass: only parity compare judges such a run, parity show prints it`,
			"one pass is judged"},
		{twoSteps(chunked), look,
			"0 a-output=1, 1 a-output=2 by run.json", "others are opened only to be looked at"},
		{twoSteps(whole), look, `error: step "1" belongs to none of the 1 forward passes of passes: want steps 0 to 0`, "a step that no pass made"},
		{files("0/a-output.max 1/a-output.max", "run.json", whole), look, `error: step "1" belongs to none`, "folders also count without a list"},
		{twoSteps(passes("decode", "0 0 2|0 2 3|0 3 4")), look, `error: passes[2] has no tensors: want a step "2" in the dump`, "a pass without its folder"},
		{twoSteps(with(`"pad_masks": {"7": [[1]]}`)), look, `error: pad_masks has step "7", the dump has none`, "a mask that masks nothing"},
		{twoSteps(with(`"weights": ["w.safetensors"]`)), look, `error: weights[0]: there is no file "w.safetensors" in the dump's folder`,
			"a listed file that is gone is damage"},
		{weights(`"order": [` + a0 + `]`), none, "0 a-output=1 by run.json", "weights are no tensors of the run"},
		{weights(`"mode": "standard"`), none,
			"0 a-output=1 | run.json lists no tensors: they were taken from the folder",
			"nor where run.json lists none"},
	} {
		dir := folder(t, tt.files)
		runs, err := dump.OpenCases(dir, tt.opt)
		parts, fails := strings.CutPrefix(tt.want, "error: ")
		if !fails {
			require.NoError(t, err, tt.reason)
			assert.Equal(t, tt.want, told(dir, runs), tt.reason)
			require.NoError(t, dump.CloseAll(runs), tt.reason)
			continue
		}
		require.Error(t, err, tt.reason)
		for part := range strings.SplitSeq(parts, " … ") {
			require.ErrorContains(t, err, part, tt.reason)
		}
	}
	_, err = dump.OpenCases(filepath.Join(t.TempDir(), "nowhere"), none)
	assert.ErrorContains(t, err, "nowhere")
	for class, files := range map[error]map[string]any{tensor.ErrUnsupported: files("", "a-output.npy", fp8.String()),
		tensor.ErrCorrupt: files("", mlp, maxFile(t, norm), norm+".max", maxFile(t, norm)), dump.ErrUnjudged: twoSteps(chunked)} {
		_, err := dump.OpenCases(folder(t, files), none)
		assert.ErrorIs(t, err, class)
	}
	_, err = dump.ReadInfo(folder(t, twoSteps(chunked)))
	assert.ErrorIs(t, err, dump.ErrUnjudged, "it opens no tensor, and refuses what is not judged, too")
}

func TestOpenFile(t *testing.T) {
	dir := folder(t, map[string]any{"all.safetensors": named("z-output", "a-output"), "x-output.npy": 1.})
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

func FuzzRunFile(f *testing.F) {
	f.Add([]byte(run(a0)))
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
