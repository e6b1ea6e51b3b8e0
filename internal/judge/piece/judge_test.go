package piece_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"

	"github.com/goparity/goparity/internal/judge/piece"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// gated is x → a = 2x, b = 3x, c = a·b.
const gated = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[2],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[2],"dtype":"float32","from":{"op":2}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%0","other":3},"out":["%2"],"layer":"b","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%1","other":"%2"},"out":["%3"],"layer":"c","call":1}],
"passes":[{"step":"0","ops":[0,3],"ports":{"model-input_x":["%0",0,3],"a-output":["%1",1,1],"b-output":["%2",2,2],"c-output":["%3",3,3]}}]}`

// judge judges what a candidate has for the ports of a program, as numbers and as edits change its records, and names the
// ports that are wrong. What comes from outside is as load has it.
func judge(t *testing.T, source string, encoding tensor.DType, load replay.Load, name func(at program.Port) string,
	have func(at program.Port) []float64, edits ...func(at program.Port, r *piece.Record),
) (r *piece.Result, run *piece.Run, faults []string) {
	t.Helper()
	p, err := program.Parse("p", []byte(source), nil)
	require.NoError(t, err)
	run = &piece.Run{Program: p, Encoding: encoding, Load: load}
	for _, at := range p.Ports {
		var rec piece.Record
		if x := have(at); len(x) > 0 {
			rec.Tensor = array(t, p.Values[at.Value].DType, p.Values[at.Value].Shape, x)
		}
		for _, edit := range edits {
			edit(at, &rec)
		}
		run.Records = append(run.Records, rec)
	}
	r, err = piece.Judge(t.Context(), run)
	require.NoError(t, err)
	for _, i := range r.Faults {
		faults = append(faults, name(p.Ports[i]))
	}
	return r, run, faults
}

func layerOf(at program.Port) string { return at.Layer }
func nameOf(at program.Port) string  { return at.Name }
func portOf(at program.Port) string  { return at.Layer + "-" + at.Name }

// by has numbers by the name of a port.
func by(name func(at program.Port) string, values map[string][]float64) func(at program.Port) []float64 {
	return func(at program.Port) []float64 { return values[name(at)] }
}

func array(t *testing.T, d tensor.DType, shape []int, x []float64) *replay.Array {
	a, err := replay.Of(d, shape, x)
	require.NoError(t, err)
	return a
}

// judged judges a run of tensors of two numbers, by layer or port, and returns what is said of each layer, and the
// layers of faults and of what is written otherwise. edit changes a record.
func judged(t *testing.T, source string, values map[string][]float64, edit func(at program.Port, r *piece.Record)) (local map[string]*piece.Local, faults, written []string) {
	load := func(*program.Value) (*replay.Array, error) { return replay.Of(tensor.F32, []int{2}, []float64{1, 2}) }
	found, run, faults := judge(t, source, tensor.F32, load, layerOf, func(at program.Port) []float64 {
		if x, ok := values[portOf(at)]; ok {
			return x
		}
		return values[at.Layer]
	}, func(at program.Port, r *piece.Record) { r.Golden.Known = r.Tensor != nil }, edit)
	local = map[string]*piece.Local{}
	for i, l := range found.Local {
		local[run.Program.Ports[i].Layer] = l
	}
	for _, i := range slices.Concat(found.Stretches...) {
		written = append(written, run.Program.Ports[i].Layer)
	}
	return local, faults, written
}

// Zeros are no witness: whatever is multiplied with them is right.
func TestZerosAreNoWitness(t *testing.T) {
	_, faults, written := judged(t, gated, map[string][]float64{"model": {1, 2}, "a": {0, 0}, "b": {0, 0}, "c": {0, 0}}, func(program.Port, *piece.Record) {})
	assert.Empty(t, written)
	assert.Equal(t, []string{"a", "b"}, faults)
}

// A record in another shape is no fault where what was made of its value is judged.
func TestBridged(t *testing.T) {
	unknown := strings.Replace(counted, `"aten.add.Tensor","args":{"self":"%3"`, `"aten.unknown.default","args":{"self":"%3"`, 1)
	require.NotEqual(t, counted, unknown)
	for _, tt := range []struct {
		program, misfit string
		c               []float64 // what was made of b; nil: not recorded
		faults, written []string
		reason          string
	}{
		{counted, "b", []float64{4, 6}, nil, []string{"b"}, "what is made of it is right: laid out otherwise"},
		{counted, "b", []float64{4, 9}, []string{"c"}, []string{"b"}, "what is made of it is wrong: the place is there, or in what made b"},
		{counted, "b", nil, []string{"b"}, nil, "nothing is known of what is made of it"},
		{counted, "c", []float64{4, 6}, []string{"c"}, nil, "nothing is made of it: the result of the model"},
		{unknown, "b", []float64{4, 9}, []string{"b"}, nil, "nor of what cannot be replayed, and has no golden"},
	} {
		_, faults, written := judged(t, tt.program, map[string][]float64{"model": {1, 2}, "a": {2, 4}, "b": {3, 5}, "c": tt.c}, func(at program.Port, r *piece.Record) {
			if at.Layer == tt.misfit {
				*r = piece.Record{Misfit: true}
			}
		})
		assert.Equal(t, tt.faults, faults, tt.reason)
		assert.Equal(t, tt.written, written, tt.reason)
	}
}

// What cannot be replayed is judged by the golden, where all that it is made of agrees with that.
func TestByGolden(t *testing.T) {
	unknown := strings.Replace(gated, "aten.mul.Tensor\",\"args\":{\"self\":\"%1\"", "aten.unknown.default\",\"args\":{\"self\":\"%1\"", 1)
	require.NotEqual(t, gated, unknown)
	right := piece.Golden{Known: true, Agrees: true, Error: 0.1}
	off := func(by float64) piece.Golden { return piece.Golden{Known: true, Error: by} }
	for _, tt := range []struct {
		a, b, c         piece.Golden
		encoding        tensor.DType
		wrong, unjudged bool
		reason          string
	}{
		{right, right, right, tensor.F32, false, false, "all agree"},
		{right, right, off(1.1), tensor.F32, true, false, "what is made of it does not"},
		{right, right, piece.Golden{}, tensor.F32, false, true, "there is no golden"},
		{right, off(9), off(9), tensor.F32, false, true, "nor does what it is made of"},
		{right, piece.Golden{}, off(9), tensor.F32, false, true, "of which nothing is known"},
		{piece.Golden{Known: true, Agrees: true, Tied: true}, right, off(9), tensor.F32, false, true, "it hangs on a choice"},
		{right, piece.Golden{Known: true, Agrees: true, Error: 0.9}, off(1.7), tensor.F32, false, true, "by little more than what it is made of"},
		{piece.Golden{Known: true, Agrees: true, Error: 0.9}, right, off(1.9), tensor.F32, true, false, "by more"},
		{right, right, off(1.4), tensor.BF16, false, true, "in 16 bits a floor and a half is not enough"},
		{right, right, off(1.6), tensor.BF16, true, false, "and more is"},
		{right, right, piece.Golden{Known: true, Error: 1.4, Measured: true}, tensor.BF16, true, false, "the floor is the reference's own"},
	} {
		golden := map[string]piece.Golden{"a": tt.a, "b": tt.b, "c": tt.c, "model": right}
		r, _, faults := judge(t, unknown, tt.encoding, nil, layerOf,
			by(layerOf, map[string][]float64{"model": {1, 2}, "a": {2, 4}, "b": {3, 6}, "c": {7, 9}}),
			func(at program.Port, r *piece.Record) { r.Golden = golden[at.Layer] })
		assert.Equal(t, tt.wrong, len(faults) > 0, tt.reason)
		assert.Equal(t, tt.unjudged, r.Local[3].Unjudged, tt.reason)
		assert.Contains(t, r.Local[3].Opaque, "unknown")
	}
}

// counted is x → a = 2x, of which Python is given the sum while b runs, b = a + 1, which no guard covers.
const counted = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[],"dtype":"float32","from":{"op":1}},{"id":3,"shape":[2],"dtype":"float32","from":{"op":2}},
{"id":4,"shape":[2],"dtype":"float32","from":{"op":3}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.sum.default","args":{"self":"%1","dtype":null},"out":["%2"],"layer":"b","call":1},
{"op":"aten.add.Tensor","args":{"self":"%1","other":1,"alpha":1},"out":["%3"],"layer":"b","call":1},
{"op":"aten.add.Tensor","args":{"self":"%3","other":1,"alpha":1},"out":["%4"],"layer":"c","call":1}],
"passes":[{"step":"0","ops":[0,4],"ports":{"model-input_x":["%0",0,4],"a-output":["%1",1,1],"b-output":["%3",3,3],"c-output":["%4",4,4]}}],
"guards":[{"value":"%2","equal":[6.0],"ops":[2,3]}]}`

// What a piece makes is not bound to what goes into it where the reference draws random numbers, or
// would have gone another way. What is made of that is.
func TestFree(t *testing.T) {
	random := strings.Replace(counted, `"layer":"b","call":1},
{"op":"aten.add.Tensor","args":{"self":"%3"`, `"layer":"b","call":1,"random":true},
{"op":"aten.add.Tensor","args":{"self":"%3"`, 1)
	require.NotEqual(t, counted, random)
	drawnFirst := strings.Replace(counted, `"layer":"a","call":1`, `"layer":"a","call":1,"random":true`, 1)
	for _, tt := range []struct {
		program        string
		a, b, c        []float64
		agrees, misfit bool // b with the golden; in shape
		faults         []string
		tied, drawn    bool
		unjudged       bool
		reason         string
	}{
		{counted, []float64{2, 4}, []float64{3, 5}, []float64{4, 6}, true, false, nil, false, false, false, "as recorded"},
		{counted, []float64{2, 4}, []float64{3, 9}, []float64{4, 10}, false, false, []string{"b"}, false, false, false, "wrong, and the guard holds"},
		{counted, []float64{2, 4.000001}, []float64{3, 9}, []float64{4, 10}, false, false, []string{"b"}, false, false, false, "the same float but for rounding"},
		{counted, []float64{2, 5}, []float64{3, 9}, []float64{4, 10}, false, false, []string{"a"}, true, false, true, "another way: a alone is wrong"},
		{counted, []float64{2, 5}, []float64{3, 9}, []float64{4, 99}, false, false, []string{"a", "c"}, true, false, true, "and what is made of b is judged"},
		{counted, []float64{2, 5}, []float64{3, 9}, []float64{4, 10}, false, true, []string{"a"}, true, false, true, "of another shape, which another way may have"},
		{counted, []float64{2, 4}, []float64{3, 9}, []float64{4, 10}, false, true, []string{"b"}, false, false, false, "of another shape, which it may not"},
		{random, []float64{2, 4}, []float64{7, 8}, []float64{8, 9}, false, false, nil, false, true, true, "random numbers"},
		{random, []float64{2, 4}, []float64{3, 5}, []float64{4, 6}, true, false, nil, false, true, false, "the same random numbers"},
		{random, []float64{2, 4}, []float64{7, 8}, []float64{8, 8}, false, false, []string{"c"}, false, true, true, "what is made of them is judged"},
		{drawnFirst, []float64{3, 5}, []float64{3, 9}, []float64{4, 10}, false, false, nil, false, true, true, "another way by random numbers"},
	} {
		local, faults, _ := judged(t, tt.program, map[string][]float64{"model": {1, 2}, "a": tt.a, "b": tt.b, "c": tt.c}, func(at program.Port, r *piece.Record) {
			r.Golden = piece.Golden{Known: true, Agrees: at.Layer != "b" || tt.agrees, Error: 9}
			if at.Layer == "b" && tt.misfit {
				r.Misfit, r.Tensor = true, nil
			}
			if at.Layer == "c" && tt.misfit {
				*r = piece.Record{}
			}
		})
		assert.Equal(t, tt.faults, faults, tt.reason)
		if l := local["b"]; l != nil {
			assert.Equal(t, []bool{tt.tied, tt.drawn, tt.unjudged}, []bool{l.Tied, l.Drawn, l.Unjudged}, tt.reason)
		}
	}
}

// routed is x → logits = x + w → the two largest, whose rows of a table are added.
const routed = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[4],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[4],"dtype":"float32","from":{"weight":"w"}},
{"id":2,"shape":[4],"dtype":"float32","from":{"op":0}},{"id":3,"shape":[2],"dtype":"float32","from":{"op":1}},
{"id":4,"shape":[2],"dtype":"int64","from":{"op":1}},{"id":5,"shape":[4,2],"dtype":"float32","from":{"weight":"table"}},
{"id":6,"shape":[2,2],"dtype":"float32","from":{"op":2}},{"id":7,"shape":[2],"dtype":"float32","from":{"op":3}}],
"ops":[{"op":"aten.add.Tensor","args":{"self":"%0","other":"%1","alpha":1},"out":["%2"],"layer":"gate","call":1},
{"op":"aten.topk.default","args":{"self":"%2","k":2,"dim":-1,"largest":true,"sorted":true},"out":["%3","%4"],"layer":"gate","call":1},
{"op":"aten.index_select.default","args":{"self":"%5","dim":0,"index":"%4"},"out":["%6"],"layer":"experts","call":1},
{"op":"aten.sum.dim_IntList","args":{"self":"%6","dim":[0],"keepdim":false,"dtype":null},"out":["%7"],"layer":"experts","call":1}],
"passes":[{"step":"0","ops":[0,4],"ports":{"model-input_x":["%0",0,4],"gate-output.0":["%2",2,2],"gate-output.1":["%4",2,2],"experts-output":["%7",4,4]}}]}`

// Experts that are numbered otherwise are another way to write the same: the choice, which is right by its
// own scores, is made anew with them.
func TestExpertsNumberedOtherwise(t *testing.T) {
	for _, tt := range []struct {
		logits, choice, y []float64
		faults            []string
		stretch           bool
		reason            string
	}{
		{[]float64{1, 4, 3, 2}, []float64{1, 2}, []float64{14, 18}, nil, false, "as recorded"},
		{[]float64{4, 3, 2, 1}, []float64{0, 1}, []float64{14, 18}, nil, true, "experts 1, 2, 3, 0"},
		{[]float64{4, 3, 2, 1}, []float64{0, 1}, []float64{12, 14}, []string{"gate"}, false, "other experts"},
		{[]float64{4, 3, 2, 1}, []float64{2, 3}, []float64{14, 18}, []string{"gate"}, true, "a choice that is none of these scores: they have nothing after them"},
	} {
		load := func(v *program.Value) (*replay.Array, error) {
			return replay.Of(tensor.F32, v.Shape, map[string][]float64{"": {1, 2, 3, 4}, "w": {0, 2, 0, -2}, "table": {1, 3, 6, 8, 8, 10, 9, 9}}[v.Weight])
		}
		r, _, faults := judge(t, routed, tensor.F32, load, layerOf,
			by(nameOf, map[string][]float64{"input_x": {1, 2, 3, 4}, "output.0": tt.logits, "output.1": tt.choice, "output": tt.y}))
		assert.Len(t, r.Stretches, map[bool]int{true: 1}[tt.stretch], tt.reason)
		if len(tt.faults) == 0 {
			assert.Empty(t, faults, tt.reason)
		} else {
			assert.Equal(t, tt.faults[0], faults[0], tt.reason)
		}
	}
}

// handed is x → a = 2x, which b is given and adds 1 to.
const handed = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},{"id":1,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":2,"shape":[2],"dtype":"float32","from":{"op":1}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"a","call":1},
{"op":"aten.add.Tensor","args":{"self":"%1","other":1,"alpha":1},"out":["%2"],"layer":"b","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"model-input_x":["%0",0,2],"a-output":["%1",1,1],"b-input_0":["%1",1,2],"b-output":["%2",2,2]}}]}`

// An output is recorded otherwise where the next layer was given what it should be; where it was given the
// same wrong tensor, the output is wrong, whatever the golden says of its input.
func TestAside(t *testing.T) {
	for _, tt := range []struct {
		a, in, b []float64
		golden   piece.Golden // of b's input
		faults   []string
		reason   string
	}{
		{[]float64{2, 4}, []float64{2, 4}, []float64{3, 5}, piece.Golden{}, nil, "as recorded"},
		{[]float64{1, 2}, []float64{2, 4}, []float64{3, 5}, piece.Golden{}, nil, "what b was given is right"},
		{[]float64{1, 2}, []float64{1, 2}, []float64{2, 3}, piece.Golden{}, []string{"a"}, "b was given what is wrong"},
		{[]float64{1, 2}, []float64{1, 2}, []float64{2, 3}, piece.Golden{Known: true, Agrees: true}, []string{"a"}, "and its golden is made of that"},
	} {
		_, faults, _ := judged(t, handed, map[string][]float64{"model": {1, 2}, "a": tt.a, "b-input_0": tt.in, "b": tt.b}, func(at program.Port, r *piece.Record) {
			switch {
			case at.Layer == "b" && at.Input:
				r.Golden = tt.golden
			case at.Layer == "a":
				r.Golden = piece.Golden{Known: tt.golden.Known, Error: 9}
			default:
				r.Golden = piece.Golden{}
			}
		})
		assert.Equal(t, tt.faults, faults, tt.reason)
	}
}

// twice is x → y = 2x → z = 0.5 y, 16 rows of 16.
const twice = `{"schema":1,"engine":"torch","case":"c","frames":[],"stacks":[],
"values":[{"id":0,"shape":[16,16],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":1,"shape":[16,16],"dtype":"float32","from":{"op":0}},{"id":2,"shape":[16,16],"dtype":"float32","from":{"op":1}}],
"ops":[{"op":"aten.mul.Tensor","args":{"self":"%0","other":2},"out":["%1"],"layer":"y","call":1},
{"op":"aten.mul.Tensor","args":{"self":"%1","other":0.5},"out":["%2"],"layer":"z","call":1}],
"passes":[{"step":"0","ops":[0,2],"ports":{"model-input_x":["%0",0,2],"y-output":["%1",1,1],"z-output":["%2",2,2]}}]}`

// Numbers that are as good as infinite, and what masks deny, are compared by what they mean.
func TestMeaning(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		x, y   []float64 // y beside 2x
		wrong  bool
		reason string
	}{
		{[]float64{1, inf, -inf, nan}, []float64{2, inf, -inf, nan}, false, "the same"},
		{[]float64{1, 1e31, -inf, 3}, []float64{2, inf, -1e38, 6}, false, "an infinity, or nearly"},
		{[]float64{1, inf, 2, 3}, []float64{2, -inf, 4, 6}, true, "the other infinity"},
		{[]float64{1, inf, 2, 3}, []float64{2, 7, 4, 6}, true, "finite"},
		{[]float64{1, 2, 3, 4}, []float64{2, 4, inf, 8}, true, "infinite"},
		{[]float64{1, 2, 3, 4}, []float64{2, 4, nan, 8}, true, "no number"},
		{[]float64{1, nan, 3, 4}, []float64{2, 4, 6, 8}, true, "a number where there is none"},
		{[]float64{0, -1e4, -1e4, 0}, []float64{0, -inf, -3e38, 0}, false, "a mask that denies the same"},
		{[]float64{0, -1e4, -1e4, 0}, []float64{0, -1e4, 0, 0}, true, "and one that allows more"},
		{[]float64{0, 0, 0, 0}, []float64{0, -1e4, 0, 0}, true, "less"},
		{[]float64{1, -1e4, -1e4, 0}, []float64{2, -1e5, -1e5, 0}, true, "a bias and a mask have numbers"},
		{[]float64{0, 0, 5e-8, 0}, []float64{0, 0, 0, 0}, false, "of zeros an error counts as it is"},
		{[]float64{0, 0, 1e-3, 0}, []float64{0, 0, 0, 0}, true, "and may be too large"},
		{[]float64{1000, 2000, 1e-3, 2e-3}, []float64{2000, 4000, 2.1e-3, 4e-3}, false, "a row of nearly nothing"},
		{[]float64{1000, 2000, 900, 900}, []float64{2000, 4000, 1800, 1800.1}, true, "a row beside a larger one"},
	} {
		half := slices.Clone(tt.y)
		floats.Scale(0.5, half)
		_, _, faults := judge(t, strings.ReplaceAll(twice, "[16,16]", "[2,2]"), tensor.F32, nil, layerOf,
			by(layerOf, map[string][]float64{"model": tt.x, "y": tt.y, "z": half}))
		assert.Equal(t, tt.wrong, len(faults) > 0, tt.reason)
	}
}

// An error counts by what rounding makes there: where sums cancel, that is much.
func TestNoise(t *testing.T) {
	cancelled := func(by string) string {
		s := strings.Replace(twice, `"aten.mul.Tensor","args":{"self":"%0","other":2}`, `"aten.add.Tensor","args":{"self":"%0","other":`+by+`,"alpha":1}`, 1)
		s = strings.Replace(s, `"aten.mul.Tensor","args":{"self":"%1","other":0.5}`, `"aten.add.Tensor","args":{"self":"%1","other":-`+by+`,"alpha":1}`, 1)
		return strings.ReplaceAll(strings.Replace(s, `"y-output":["%1",1,1],`, "", 1), "[16,16]", "[2,2]")
	}
	for _, tt := range []struct {
		encoding tensor.DType
		by       string
		off      float64 // of one number, which is about 1
		wrong    bool
		reason   string
	}{
		{tensor.F32, "0", 1e-4, true, "nothing cancels"},
		{tensor.F32, "1e4", 3e-4, false, "half of the last place of 1e4"},
		{tensor.F32, "1e4", 2e-2, true, "many of them"},
		{tensor.BF16, "0", 0.1, true, "nothing cancels"},
		{tensor.BF16, "100", 0.25, false, "half of the last place of 100"},
		{tensor.BF16, "100", 4, true, "many of them"},
	} {
		x := []float64{1.1015625, -0.90625, 0.8046875, 1.203125}
		z := slices.Clone(x)
		z[0] += tt.off
		_, _, faults := judge(t, cancelled(tt.by), tt.encoding, nil, layerOf, by(layerOf, map[string][]float64{"model": x, "z": z}))
		assert.Equal(t, tt.wrong, len(faults) > 0, "%s %s: %s", tt.encoding, tt.by, tt.reason)
	}
}

// A tensor that is larger throughout is wrong in 16 bits, although its error is within that of rounding.
func TestLarger(t *testing.T) {
	x := make([]float64, 256)
	for i := range x {
		x[i] = math.Sin(float64(i)*1.7) * (1 + float64(i%7))
	}
	x = array(t, tensor.BF16, []int{16, 16}, x).Floats()
	massive := slices.Clone(x)
	for i := 3; i < len(x); i += 16 {
		massive[i] *= 64
	}
	for _, r := range []struct {
		encoding tensor.DType
		x        []float64
		y        func(i int, y float64) float64
		larger   float64
		reason   string
	}{
		{tensor.BF16, x, func(_ int, y float64) float64 { return y }, 0, "right"},
		{tensor.BF16, x, func(_ int, y float64) float64 { return y * 1.003 }, 0, "a constant may be a rounding off"},
		{tensor.BF16, x, func(_ int, y float64) float64 { return y * 1.01 }, 0.01, "1 % is less than twice the floor, and throughout"},
		{tensor.BF16, x, func(_ int, y float64) float64 { return y * 0.985 }, -0.015, "smaller"},
		{tensor.BF16, x, func(i int, y float64) float64 { return y * (1 + 0.01*float64(1-i%2*2)) }, 0, "as often too large as too small"},
		{tensor.BF16, x, func(i int, y float64) float64 { return y * (1 + 0.01*float64(1-i/16%2*2)) }, 0, "by rows"},
		{tensor.F16, x, func(_ int, y float64) float64 { return y * 1.001 }, 0.001, "float16 is finer"},
		{tensor.F16, massive, func(_ int, y float64) float64 { return y * 1.001 }, 0, "one channel is all that there is: its factor was rounded more than once"},
		{tensor.F16, massive, func(_ int, y float64) float64 { return y * 1.002 }, 0.002, "more than roundings make of a channel"},
	} {
		y, z := make([]float64, len(x)), make([]float64, len(x))
		for i, v := range r.x {
			y[i] = r.y(i, 2*v)
			z[i] = y[i] / 2
		}
		got, _, _ := judge(t, twice, r.encoding, nil, layerOf, by(layerOf, map[string][]float64{"model": r.x, "y": y, "z": z}),
			func(_ program.Port, rec *piece.Record) {
				rec.Tensor = array(t, r.encoding, rec.Tensor.Shape(), rec.Tensor.Floats())
			})
		assert.InDelta(t, r.larger, got.Local[1].Larger, 5e-4, r.reason)
		if r.larger != 0 {
			assert.Equal(t, []int{1}, got.Faults, "%s: what follows is right, and does not excuse it", r.reason)
		}
	}
}
