package localise_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/localise"
)

// recorded reads records "layer port [option …]; …" in the order in which they were made. bad is one
// that differs, lone one of the reference alone, same=N the number of equal bytes, alone=E the error
// on golden inputs. A fault is "fault",
// "open" (judged by the golden), "passed", "outside" (an input of the model itself) or "held", and
// differs; from=N is a record, counted from 0, that its piece is made of.
func recorded(t *testing.T, text string) (*localise.Flow, []localise.Fault) {
	t.Helper()
	var entries []localise.Entry
	var faults []localise.Fault
	for line := range strings.SplitSeq(text, ";") {
		f := strings.Fields(line)
		require.GreaterOrEqual(t, len(f), 2, line)
		e := localise.Entry{Key: localise.Key{Case: "a", Step: "0", Layer: f[0], Port: f[1]}, Seq: len(entries),
			Record: localise.Record{Joined: true, Agrees: true, Error: 1e-6}}
		fault, found := localise.Fault{Index: len(entries), Found: "off by 0.3"}, false
		for _, option := range f[2:] {
			key, value, _ := strings.Cut(option, "=")
			switch key {
			case "bad":
			case "lone":
				e.Joined = false
			case "same":
				e.Same = int(number(t, value))
			case "alone":
				x := number(t, value)
				e.Alone = &localise.Alone{Agrees: x <= 1e-4, Error: x}
			case "from":
				fault.From = append(fault.From, int(number(t, value)))
			case "case":
				e.Case = value
			case "step":
				e.Step = value
			case "fault", "open", "passed", "outside", "held":
				found = true
				fault.Open, fault.Passed, fault.Lone = key == "open", key == "passed", key == "outside"
				if key == "held" {
					fault.Held = f[0] + " was recorded wrongly"
				}
			default:
				t.Fatalf("unknown option in %q", line)
			}
			if key == "bad" || found {
				e.Agrees, e.Error = false, 0.3
			}
		}
		entries = append(entries, e)
		if found {
			faults = append(faults, fault)
		}
	}
	return localise.NewFlow(entries), faults
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return x
}

type place struct{ kind, layer, after, before string }

func placeOf(v *localise.Verdict) place {
	if v == nil {
		return place{}
	}
	return place{v.Kind, v.Layer, v.After, v.Before}
}

func TestPlaced(t *testing.T) {
	for _, c := range []struct {
		name, records string
		want          place
		frontier      []string
		text          string // what the verdict's sentence holds
		reason        string
	}{
		{"no fault", "m.0 output bad; m output bad", place{}, nil, "", "what differs has it from rounding: no layer is accused"},
		{"leaf", "m.up input_0; m.up output fault from=0; m output bad",
			place{"local", "m.up", "", ""}, []string{"m.up"}, "m.up computes something else: off by 0.3",
			"nothing was recorded inside it"},
		{"leaf without its input", "m.norm output; m.up input_0 lone; m.up output fault from=0; m output bad",
			place{"local", "m.up", "m.norm", ""}, []string{"m.up"}, "in m.up, or between m.norm and m.up",
			"its piece reaches back to the norm"},
		{"input of a layer", "m.0.up output; m.0.down input_0 fault; m.0.down output bad; m.0 output bad; m output bad",
			place{"between", "m.0", "m.0.up", "m.0.down"}, []string{"m.0.down"},
			"the code of m.0 between m.0.up and m.0.down computes something else", "the code of the container made it"},
		{"first input of a container", `m.embed output; m.0.lin input_0 bad same=1; m.0.lin output bad; m.0 input_0 fault same=1;
			m.0 output bad; m output bad`, place{"between", "m", "m.embed", "m.0"}, []string{"m.0"}, "", "the block was given it"},
		{"passed through", `m.norm output; m.0.lin input_0 fault same=1; m.0.lin output bad; m.0 input_0 lone same=1;
			m.0 output bad; m output bad`,
			place{"between", "m.0", "", "m.0.lin"}, []string{"m.0.lin"}, "between its beginning and m.0.lin",
			"what was given to m.0 was not recorded"},
		{"output of a container", "m.0.down output; m.0 output fault; m output bad",
			place{"between", "m.0", "m.0.down", ""}, []string{"m.0"}, "between m.0.down and its end",
			"the code after its last layer"},
		{"a module that returns what it was given", "m.0.lin output; m.0.drop output passed; m.0 output bad; m output bad",
			place{"between", "m.0", "m.0.lin", "m.0.drop"}, []string{"m.0.drop"}, "", "the code around it made the difference"},
		{"a recording that is wrong", "m.0 output held; m.1 input_0; m.1 output; m output",
			place{"capture", "m.0", "", ""}, nil, "m.0 was recorded wrongly", "it accuses no layer"},
		{"a recording that is wrong, and a fault", "m.0 output held; m.1 input_0; m.1 output fault from=1; m output bad",
			place{"local", "m.1", "", ""}, []string{"m.1"}, "", "the model's own error counts, the recording is evidence"},
		{"another input", "m.embed input_0 bad same=1; m.embed output bad; m input_0 outside same=1; m output bad",
			place{"input", "m.embed", "", ""}, []string{"m.embed"}, "not given the same input: input_0 of m differs",
			"the innermost layer that takes it"},
		{"another input alone", "m.embed input_0 bad same=1; m input_0 outside same=1",
			place{"input", "m.embed", "", ""}, []string{"m.embed"}, "", "no output was recorded"},
		{"another input of a block", `m.0.lin input_0 bad same=1; m.0.lin output bad; m.0 input_0 outside same=1; m.0 output bad;
			m output bad`,
			place{"input", "m.0.lin", "", ""}, []string{"m.0.lin"}, "input_0 of m.0 differs", "the layer inside takes the same value"},
		{"another input of a block, and of a layer", `m.0.lin input_0 bad same=2; m.0.lin output bad; m.0 input_0 outside same=1; m.0 output bad;
			m output bad`, place{"input", "m.0", "", ""}, []string{"m.0"}, "", "the layer inside takes another value"},
		{"another input, no bytes", "m.0.lin input_0 bad; m.0.lin output bad; m.0 input_0 outside; m.0 output bad; m output bad",
			place{"input", "m.0.lin", "", ""}, []string{"m.0.lin"}, "", "the port tells that it is the same value"},
		{"another port, no bytes", "m.0.lin input_1 bad; m.0.lin output bad; m.0 input_0 outside; m.0 output bad; m output bad",
			place{"input", "m.0", "", ""}, []string{"m.0"}, "", "nothing tells that it is the same value"},
		{"several", `m.0.lin output fault; m.0 output bad; m.1.lin output bad; m.1 output bad;
			m.2.lin input_0 fault; m.2.lin output bad; m output fault`,
			place{"local", "m.0.lin", "", ""}, []string{"m.0.lin", "m.2.lin", "m"}, "",
			"the earliest is the place, all are the frontier"},
		{"a second call", "m.lin output; m.lin(2) output fault; m output bad",
			place{"local", "m.lin(2)", "", ""}, []string{"m.lin(2)"}, "", "is a layer of its own"},
		{"another case shows it earlier", "m.0 output; m.1 output fault; m.0 output fault case=b; m.1 output bad case=b",
			place{"local", "m.0", "", ""}, []string{"m.1", "m.0"}, "", "a fault that one case hides shows in the other"},
		{"a later step", "m.0 output; m.1 output fault; m.0 output fault step=1; m.1 output bad step=1",
			place{"local", "m.1", "", ""}, []string{"m.1", "m.0"}, "", "never goes before an earlier one"},
		{"right by itself", "m.up input_0 alone=1e-7; m.up output fault from=0 alone=1e-7; m output bad",
			place{"interaction", "m.up", "", ""}, []string{"m.up"}, "right when it runs on the golden inputs",
			"wrong in the model alone"},
		{"wrong by itself", "m.up input_0; m.up output fault from=0 alone=0.2; m output bad",
			place{"local", "m.up", "", ""}, []string{"m.up"}, "", "the injected run shows it, too"},
		{"right by itself, another input", "m.up input_0 bad; m.up output fault from=0 alone=1e-7; m output bad",
			place{"local", "m.up", "", ""}, []string{"m.up"}, "", "what it was given differs, so the runs say nothing of each other"},
		{"a container that is right by itself", "m.0.lin output alone=1e-7; m.0 input_0; m.0 output fault alone=1e-7; m output bad",
			place{"interaction", "m.0", "", ""}, []string{"m.0"}, "", "its run on golden inputs was right to the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			flow, faults := recorded(t, c.records)
			got := flow.Placed(faults)
			require.Equal(t, c.want, placeOf(got), c.reason)
			if got == nil {
				return
			}
			assert.Equal(t, c.frontier, got.Frontier, c.reason)
			assert.Contains(t, got.Text, c.text, c.reason)
			assert.Equal(t, strings.Contains(got.Text, ", or "), got.Open, c.reason)
			if strings.Contains(c.records, "held") && got.Kind != localise.KindCapture {
				assert.Equal(t, []string{"m.0 was recorded wrongly"}, got.Evidence)
			}
		})
	}
}

// What was judged by the golden is proven only where all that went into it was recorded on both sides.
func TestOpenPlaces(t *testing.T) {
	for _, c := range []struct {
		name, records string
		want          place
		text          string // of the place, "" for a closed one
		gaps          []string
		proven        bool
		reason        string
	}{
		{"all was recorded", "m.up input_0; m.up output open from=0; m output bad",
			place{"local", "m.up", "", ""}, "", nil, true, "right inputs, wrong output"},
		{"outputs only", `m.0.up output same=2; m.0.act input_0 lone same=2; m.0.act output open from=0;
			m.0 output bad`,
			place{"local", "m.0.act", "m.0.up", ""}, "in m.0.act, or between m.0.up and m.0.act", []string{"input_0"}, false,
			"the candidate may have given act something else"},
		{"the first of all", "m.0 output open; m output bad",
			place{"local", "m.0", "", ""}, "in m.0, or before it", nil, false, "nothing before it agrees"},
		{"one of two inputs", "m.norm output; m.up input_0; m.up input_1 lone; m.up output open from=0 from=1; m output bad",
			place{"local", "m.up", "m.norm", ""}, "in m.up, or between m.norm and m.up", []string{"input_1"}, false, "the other is not known"},
		{"a block that was not recorded", `m.0 output same=1; m.1 input_0 lone same=1; m.1 output lone same=2;
			m.2 input_0 open same=2 from=0; m.2 output bad; m output bad`,
			place{"between", "m", "m.0", "m.2"}, "", nil, true, "all that the model's code had before it is right"},
		{"the beginning of a container", `m.embed output; m.0 input_0 lone; m.0.lin input_0 open from=0; m.0.lin output bad;
			m.0 output bad`,
			place{"between", "m.0", "m.embed", "m.0.lin"}, "between m.embed and m.0.lin", nil, false, "what m.0 was given was not compared"},
		{"a layer in between", `m.embed output; m.0.norm output lone; m.0.lin input_0 open from=0; m.0.lin output bad;
			m.0 output bad`,
			place{"between", "m.0", "m.embed", "m.0.lin"}, "between m.embed and m.0.lin", []string{"m.0.norm"}, false, "the norm, or its input"},
		{"wrong on golden inputs", "m.embed output; m.0 input_0 lone; m.0 output open from=0 alone=0.2; m output bad",
			place{"local", "m.0", "", ""}, "", nil, true, "it is the layer, whatever it was given"},
		{"right on golden inputs", `m.norm output; m.up input_0; m.up input_1 lone; m.up output open from=0 from=1 alone=1e-7;
			m output bad`,
			place{"between", "m", "m.norm", "m.up"}, "between m.norm and m.up", []string{"input_1"}, false, "so what it was given is wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			flow, faults := recorded(t, c.records)
			got := flow.Placed(faults)
			require.Equal(t, c.want, placeOf(got), c.reason)
			assert.Equal(t, [2]any{c.text, c.proven}, [2]any{got.Place, got.Proven}, c.reason)
			assert.Equal(t, c.gaps, got.Gaps, c.reason)
		})
	}
}

// Golden inputs that were given inside layers, too, hide what the code between them does.
func TestNestedRun(t *testing.T) {
	for _, c := range []struct {
		nested            bool
		end, want, reason string
	}{
		{true, "alone=1e-7", "between", "the container is right because what its code makes was replaced"},
		{false, "alone=1e-7", "interaction", "the container is right by itself"},
		{false, "", "between", "nothing is known of its end on golden inputs"},
		{false, "alone=0.2", "between", "it is wrong by itself"},
	} {
		flow, faults := recorded(t, "m.0.up output alone=1e-7; m.0.down input_0 fault alone=1e-7; m.0.down output bad alone=1e-7; "+
			"m.0 input_0; m.0 output bad "+c.end+"; m output bad")
		flow.Nested = c.nested
		assert.Equal(t, c.want, placeOf(flow.Placed(faults)).kind, c.reason)
	}
}

func TestUnordered(t *testing.T) {
	for _, c := range []struct {
		name, records string
		want          place
		frontier      []string
		reason        string
	}{
		{"taps", "out tap open; probs tap bad; scores tap bad",
			place{kind: "unordered"}, []string{"out", "probs", "scores"}, "the alphabet accuses no layer"},
		{"one of them agrees", "out tap open; probs tap; scores tap bad",
			place{kind: "unordered"}, []string{"out", "scores"}, "what agrees did nothing"},
		{"replayed", "out tap fault; scores tap bad",
			place{kind: "local", layer: "out"}, []string{"out"}, "the program tells what it is made of"},
		{"only one", "out tap; scores tap open",
			place{kind: "local", layer: "scores"}, []string{"scores"}, "nothing else may have been first"},
		{"inputs tell", "a tap; lin input_0; lin output open; z input_0 bad; z output bad",
			place{kind: "local", layer: "lin"}, []string{"lin"}, "its input agrees, whatever ran before"},
		{"numbers tell", "m.0.x tap open; m.1.x tap bad",
			place{kind: "local", layer: "m.0.x"}, []string{"m.0.x"}, "blocks run by their numbers"},
		{"what made its input is right", "a output same=1; z input_0 open same=1; scores tap bad",
			place{kind: "between", layer: "z", before: "z"}, []string{"z"}, "so the code between is first, whatever else is wrong"},
		{"wrong alone", "out tap open alone=0.2; scores tap bad",
			place{kind: "local", layer: "out"}, []string{"out"}, "it made an error of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			flow, faults := recorded(t, c.records)
			flow.Unordered = map[string]bool{"a": true}
			got := flow.Placed(faults)
			assert.Equal(t, c.want, placeOf(got), c.reason)
			assert.Equal(t, c.frontier, got.Frontier, c.reason)
		})
	}
}

// What lies after a fault has its error from there, or from the fault inside of it.
func TestBlame(t *testing.T) {
	flow, faults := recorded(t, `m.0.lin output fault; m.0 output bad; m.1.lin output bad; m.1 output; m.2.lin output fault;
			m.2 output bad; m output bad`)
	got := flow.Placed(faults)
	require.NotNil(t, got)
	for _, c := range []struct{ layer, want, reason string }{
		{"m.0.lin", "", "the place"},
		{"m.0", "m.0.lin", "the place is inside of it"},
		{"m.1.lin", "m.0.lin", "after the place"},
		{"m.1", "", "it agrees"},
		{"m.2.lin", "", "a fault of its own"},
		{"m.2", "m.2.lin", "the nearer of two"},
		{"m", "", "the model's own output is never excused"},
	} {
		assert.Equal(t, c.want, got.Blame("a", "0", c.layer), "%s: %s", c.layer, c.reason)
	}
	assert.Empty(t, (*localise.Verdict)(nil).Blame("a", "0", "m"), "no verdict blames no layer")
}

func TestDrift(t *testing.T) {
	flow, _ := recorded(t, `m.0.lin output; m.0 input_0; m.0 output alone=2e-4; m.1 output lone; m.2 output bad;
			m output bad`)
	got := flow.Drift("a", "0", "errors add up")
	assert.Equal(t, place{kind: "drift"}, placeOf(got), "no layer is accused")
	assert.Equal(t, []string{}, got.Frontier, "and none made it")
	require.Len(t, got.Growth, 2, "of the blocks that both sides have")
	assert.Equal(t, localise.Growth{Layer: "m.0", Error: 1e-6, Alone: 2e-4}, got.Growth[0])
	assert.Equal(t, "m.2", got.Growth[1].Layer)
	assert.True(t, math.IsNaN(got.Growth[1].Alone), "not known")
}

// Where the inputs differ no layer is accused, whatever was found.
func TestOtherPrompt(t *testing.T) {
	flow, faults := recorded(t, "m.0.lin output; m.0 output open; m output bad")
	got := flow.Placed(faults).OtherPrompt("token 3")
	assert.Equal(t, place{kind: "input"}, placeOf(got))
	assert.Equal(t, [4]any{true, false, "", 0}, [4]any{got.Proven, got.Open, got.Port + got.Place, len(got.Frontier) + len(got.Gaps)})
	assert.Equal(t, "the two runs were not given the same input: token 3", got.Text)
}
